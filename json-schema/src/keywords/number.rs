//! Keywords of numbers.

use super::Reader;
use crate::draft::Draft;
use crate::error::SchemaError;
use crate::parse::{Json, Keyword, NumberId, WarningReason};

/// Reads an assertion on numbers; false where it is something else.
pub(super) fn read<'a>(
    reader: &mut Reader<'_, 'a>,
    keyword: &str,
    value: &'a Json<'a>,
) -> Result<bool, SchemaError> {
    match keyword {
        "multipleOf" => {
            let number = number(reader, keyword, value)?;
            let divisor = reader.builder.pool.number_value(number);
            if divisor.is_negative() || divisor.is_zero() {
                let expected = "a number greater than 0";
                return Err(reader.invalid(keyword, expected));
            }
            reader.push("multipleOf", Keyword::MultipleOf(number));
        }
        "minimum" => {
            let limit = number(reader, keyword, value)?;
            let exclusive = flagged(reader, "exclusiveMinimum");
            let keyword = Keyword::Minimum { limit, exclusive };
            reader.push("minimum", keyword);
        }
        "maximum" => {
            let limit = number(reader, keyword, value)?;
            let exclusive = flagged(reader, "exclusiveMaximum");
            let keyword = Keyword::Maximum { limit, exclusive };
            reader.push("maximum", keyword);
        }
        "exclusiveMinimum" => {
            if let Some(limit) = exclusive(reader, keyword, "minimum", value)?
            {
                let keyword = Keyword::Minimum { limit, exclusive: true };
                reader.push("exclusiveMinimum", keyword);
            }
        }
        "exclusiveMaximum" => {
            if let Some(limit) = exclusive(reader, keyword, "maximum", value)?
            {
                let keyword = Keyword::Maximum { limit, exclusive: true };
                reader.push("exclusiveMaximum", keyword);
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn number(
    reader: &mut Reader<'_, '_>,
    keyword: &str,
    value: &Json<'_>,
) -> Result<NumberId, SchemaError> {
    let Json::Number(number) = value else {
        return Err(reader.invalid(keyword, "a number"));
    };
    let id = reader.builder.pool.number(number);
    id.ok_or_else(|| reader.invalid(keyword, "a smaller exponent"))
}

/// Whether the dialect has boolean `exclusiveMinimum` and `-Maximum`.
fn has_flags(reader: &Reader<'_, '_>) -> bool {
    reader.draft() == Draft::Draft4 || reader.dialect.compatible
}

/// Whether a boolean beside a bound makes it exclusive.
fn flagged(reader: &Reader<'_, '_>, keyword: &str) -> bool {
    has_flags(reader) && reader.map.get(keyword).is_some_and(Json::is_true)
}

/// Reads an exclusive bound: a number since draft 6, a flag before.
fn exclusive(
    reader: &mut Reader<'_, '_>,
    keyword: &str,
    partner: &str,
    value: &Json<'_>,
) -> Result<Option<NumberId>, SchemaError> {
    if value.is_boolean() && has_flags(reader) {
        if !reader.map.contains_key(partner) {
            reader.warn(keyword, WarningReason::WithoutPartner);
        }
        return Ok(None);
    }
    if reader.draft() == Draft::Draft4 {
        return Err(reader.invalid(keyword, "a boolean"));
    }
    number(reader, keyword, value).map(Some)
}
