//! `type`, `enum`, `const`.

use smallvec::SmallVec;

use super::Reader;
use crate::draft::Draft;
use crate::error::SchemaError;
use crate::parse::{ConstantId, Json, JsonType, Keyword, NumberRule, TypeSet};

/// Reads an assertion on any value; false where it is something else.
pub(super) fn read<'a>(
    reader: &mut Reader<'_, 'a>,
    keyword: &str,
    value: &'a Json<'a>,
) -> Result<bool, SchemaError> {
    match keyword {
        "type" => {
            let types = types(reader, value)?;
            reader.push("type", Keyword::Type(types));
        }
        "enum" => {
            let Json::Array(values) = value else {
                return Err(reader.invalid("enum", "an array"));
            };
            let mut constants = Vec::with_capacity(values.len());
            for value in *values {
                constants.push(constant(reader, "enum", value)?);
            }
            reader.push("enum", Keyword::Enum(constants.into()));
        }
        "const" if reader.since(Draft::Draft6) => {
            let constant = constant(reader, "const", value)?;
            reader.push("const", Keyword::Const(constant));
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn constant(
    reader: &mut Reader<'_, '_>,
    keyword: &str,
    value: &Json<'_>,
) -> Result<ConstantId, SchemaError> {
    let id = reader.builder.pool.json(*value);
    id.ok_or_else(|| reader.invalid(keyword, "numbers of smaller exponents"))
}

fn types(
    reader: &Reader<'_, '_>,
    value: &Json<'_>,
) -> Result<TypeSet, SchemaError> {
    let one = std::slice::from_ref(value);
    let names = match value {
        Json::Array(names) => names,
        _ => one,
    };
    if names.is_empty() {
        return Err(reader.invalid("type", "at least one type"));
    }
    let texts: SmallVec<[Option<&str>; 8]> =
        names.iter().map(Json::as_str).collect();
    reader.distinct("type", &[], &texts, names)?;
    let mut set = TypeSet { bits: 0, numbers: NumberRule::None };
    for (index, name) in names.iter().enumerate() {
        let added: &[JsonType] = match name.as_str() {
            Some("null") => &[JsonType::Null],
            Some("boolean") => &[JsonType::False, JsonType::True],
            Some("string") => &[JsonType::String],
            Some("array") => &[JsonType::Array],
            Some("object") => &[JsonType::Object],
            Some("number") => {
                set.numbers = NumberRule::All;
                &[JsonType::Number]
            }
            Some("integer") => {
                if set.numbers == NumberRule::None {
                    set.numbers = integer_rule(reader.draft());
                }
                &[JsonType::Number]
            }
            _ => {
                let expected = "null, boolean, integer, number, string, \
                                array, object, or a list of these";
                return Err(if value.is_array() {
                    reader.invalid_item("type", &[], index, expected, name)
                } else {
                    reader.invalid("type", expected)
                });
            }
        };
        for json_type in added {
            set.bits |= 1 << json_type.index();
        }
    }
    Ok(set)
}

fn integer_rule(draft: Draft) -> NumberRule {
    if draft == Draft::Draft4 {
        NumberRule::IntegerText
    } else {
        NumberRule::Integer
    }
}
