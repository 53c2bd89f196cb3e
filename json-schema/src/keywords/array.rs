//! Keywords of arrays.

use super::Reader;
use crate::draft::Draft;
use crate::error::SchemaError;
use crate::parse::{Json, Keyword, WarningReason};

/// Reads an applicator of arrays; false where it is something else.
pub(super) fn applicator<'a>(
    reader: &mut Reader<'_, 'a>,
    keyword: &str,
    value: &'a Json<'a>,
) -> Result<bool, SchemaError> {
    match keyword {
        "items" => items(reader, value)?,
        "prefixItems" if reader.since(Draft::Draft202012) => {
            let nodes = reader.children("prefixItems", value)?;
            reader.push("prefixItems", Keyword::PrefixItems(nodes));
        }
        "additionalItems" if has_additional_items(reader) => {
            additional_items(reader, value)?;
        }
        "contains" if reader.since(Draft::Draft6) => contains(reader, value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Whether the dialect has array-valued `items` and `additionalItems`.
fn has_additional_items(reader: &Reader<'_, '_>) -> bool {
    reader.draft() <= Draft::Draft201909 || reader.dialect.compatible
}

fn items<'a>(
    reader: &mut Reader<'_, 'a>,
    value: &'a Json<'a>,
) -> Result<(), SchemaError> {
    if value.is_array() {
        if !has_additional_items(reader) {
            let expected = "a schema; write the list as `prefixItems`";
            return Err(reader.invalid("items", expected));
        }
        let nodes = reader.children("items", value)?;
        reader.push("items", Keyword::PrefixItems(nodes));
        return Ok(());
    }
    let prefix = match reader.map.get("prefixItems") {
        Some(Json::Array(prefix)) if reader.since(Draft::Draft202012) => {
            prefix.len()
        }
        _ => 0,
    };
    let node = reader.child("items", value)?;
    reader.push("items", Keyword::Items { from: prefix as u64, node });
    Ok(())
}

fn additional_items<'a>(
    reader: &mut Reader<'_, 'a>,
    value: &'a Json<'a>,
) -> Result<(), SchemaError> {
    let node = reader.child("additionalItems", value)?;
    let Some(Json::Array(prefix)) = reader.map.get("items") else {
        reader.warn("additionalItems", WarningReason::WithoutPartner);
        return Ok(());
    };
    let from = prefix.len() as u64;
    reader.push("additionalItems", Keyword::Items { from, node });
    Ok(())
}

fn contains<'a>(
    reader: &mut Reader<'_, 'a>,
    value: &'a Json<'a>,
) -> Result<(), SchemaError> {
    let node = reader.child("contains", value)?;
    let (mut min, mut max) = (1, None);
    let validation = reader.dialect.vocabularies.validation;
    if reader.since(Draft::Draft201909) && validation {
        if let Some(bound) = reader.map.get("minContains") {
            min = reader.count("minContains", bound)?;
        }
        if let Some(bound) = reader.map.get("maxContains") {
            max = Some(reader.count("maxContains", bound)?);
        }
    }
    let evaluates = reader.since(Draft::Draft202012);
    let keyword = Keyword::Contains { node, min, max, evaluates };
    reader.push("contains", keyword);
    Ok(())
}

/// Reads an assertion on arrays; false where it is something else.
pub(super) fn validation<'a>(
    reader: &mut Reader<'_, 'a>,
    keyword: &str,
    value: &'a Json<'a>,
) -> Result<bool, SchemaError> {
    match keyword {
        "minItems" => {
            let count = reader.count("minItems", value)?;
            reader.push("minItems", Keyword::MinItems(count));
        }
        "maxItems" => {
            let count = reader.count("maxItems", value)?;
            reader.push("maxItems", Keyword::MaxItems(count));
        }
        "uniqueItems" => match value {
            Json::Bool(true) => {
                reader.push("uniqueItems", Keyword::UniqueItems);
            }
            Json::Bool(false) => {}
            _ => return Err(reader.invalid("uniqueItems", "a boolean")),
        },
        "minContains" | "maxContains" if reader.since(Draft::Draft201909) => {
            reader.count(keyword, value)?;
            if !reader.map.contains_key("contains") {
                reader.warn(keyword, WarningReason::WithoutPartner);
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}
