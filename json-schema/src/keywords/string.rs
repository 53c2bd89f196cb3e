//! Keywords of strings.

use super::Reader;
use crate::error::{ErrorKind, SchemaError};
use crate::format;
use crate::parse::{FormatPolicy, Json, Keyword, WarningReason};

/// Reads an assertion on strings; false where it is something else.
pub(super) fn read<'a>(
    reader: &mut Reader<'_, 'a>,
    keyword: &str,
    value: &'a Json<'a>,
) -> Result<bool, SchemaError> {
    match keyword {
        "minLength" => {
            let count = reader.count("minLength", value)?;
            reader.push("minLength", Keyword::MinLength(count));
        }
        "maxLength" => {
            let count = reader.count("maxLength", value)?;
            reader.push("maxLength", Keyword::MaxLength(count));
        }
        "pattern" => {
            let Json::String(source) = value else {
                let expected = "a regular expression as a string";
                return Err(reader.invalid("pattern", expected));
            };
            if let Some(pattern) = reader.pattern("pattern", source)? {
                reader.push("pattern", Keyword::Pattern(pattern));
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Reads `format` under the policy; false where it is something else.
pub(super) fn format<'a>(
    reader: &mut Reader<'_, 'a>,
    keyword: &str,
    value: &'a Json<'a>,
) -> Result<bool, SchemaError> {
    if keyword != "format" {
        return Ok(false);
    }
    let Json::String(name) = value else {
        return Err(reader.invalid("format", "a string"));
    };
    let options = reader.builder.options;
    let known = options.known_formats.contains(name);
    let policy = reader.dialect.vocabularies.format.unwrap_or(options.format);
    match policy {
        FormatPolicy::Annotate => {}
        FormatPolicy::AssertKnown | FormatPolicy::AssertAll if known => {
            let name = format::name_in(name, reader.draft());
            let format = reader.builder.pool.format(name);
            reader.push("format", Keyword::Format(format));
        }
        FormatPolicy::AssertKnown => {
            reader.warn("format", WarningReason::UnknownFormat);
        }
        FormatPolicy::AssertAll => {
            let place = reader.place().child("format");
            let format = (*name).to_owned();
            let kind = ErrorKind::UnknownFormat { format };
            reader.builder.leave_out(SchemaError::new(kind, place))?;
        }
    }
    Ok(true)
}
