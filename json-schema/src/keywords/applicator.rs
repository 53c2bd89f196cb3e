//! `allOf`, `anyOf`, `oneOf`, `not`, `if`.

use super::Reader;
use crate::draft::Draft;
use crate::error::SchemaError;
use crate::parse::{Json, Keyword, WarningReason};

/// Reads an in-place applicator; false where it is something else.
pub(super) fn read<'a>(
    reader: &mut Reader<'_, 'a>,
    keyword: &str,
    value: &'a Json<'a>,
) -> Result<bool, SchemaError> {
    match keyword {
        "allOf" => {
            let nodes = reader.children("allOf", value)?;
            reader.push("allOf", Keyword::AllOf(nodes));
        }
        "anyOf" => {
            let nodes = reader.children("anyOf", value)?;
            reader.push("anyOf", Keyword::AnyOf(nodes));
        }
        "oneOf" => {
            let nodes = reader.children("oneOf", value)?;
            reader.push("oneOf", Keyword::OneOf(nodes));
        }
        "not" => {
            let node = reader.child("not", value)?;
            reader.push("not", Keyword::Not(node));
        }
        "if" if reader.since(Draft::Draft7) => conditional(reader, value)?,
        "then" | "else" if reader.since(Draft::Draft7) => {
            if !reader.map.contains_key("if") {
                reader.schema(keyword, value)?;
                reader.warn(keyword, WarningReason::WithoutPartner);
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn conditional<'a>(
    reader: &mut Reader<'_, 'a>,
    value: &'a Json<'a>,
) -> Result<(), SchemaError> {
    let map = reader.map;
    let condition = reader.child("if", value)?;
    let mut branch = |keyword: &'static str| {
        map.get(keyword).map(|value| reader.child(keyword, value)).transpose()
    };
    let then = branch("then")?;
    let otherwise = branch("else")?;
    // An `if` alone constrains nothing, but what it evaluates counts.
    reader.push("if", Keyword::If { condition, then, otherwise });
    Ok(())
}
