//! Keywords of objects.

use super::Reader;
use crate::draft::Draft;
use crate::error::SchemaError;
use crate::location::Token;
use crate::parse::{Json, Keyword, NameId, NodeId, Object, PatternId};

/// Reads an applicator of objects; false where it is something else.
pub(super) fn applicator<'a>(
    reader: &mut Reader<'_, 'a>,
    keyword: &str,
    value: &'a Json<'a>,
) -> Result<bool, SchemaError> {
    match keyword {
        "properties" => {
            let members = members(reader, "properties", value)?;
            reader.push("properties", Keyword::Properties(members));
        }
        "patternProperties" => pattern_properties(reader, value)?,
        "additionalProperties" => additional_properties(reader, value)?,
        "propertyNames" if reader.since(Draft::Draft6) => {
            let node = reader.child("propertyNames", value)?;
            reader.push("propertyNames", Keyword::PropertyNames(node));
        }
        "dependentSchemas" if reader.since(Draft::Draft201909) => {
            let members = members(reader, "dependentSchemas", value)?;
            let keyword = Keyword::DependentSchemas(members);
            reader.push("dependentSchemas", keyword);
        }
        "dependencies" => dependencies(reader, value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn object<'a>(
    reader: &Reader<'_, 'a>,
    keyword: &str,
    value: &'a Json<'a>,
) -> Result<&'a Object<'a>, SchemaError> {
    value
        .as_object()
        .ok_or_else(|| reader.invalid(keyword, "an object of schemas"))
}

fn members<'a>(
    reader: &mut Reader<'_, 'a>,
    keyword: &'static str,
    value: &'a Json<'a>,
) -> Result<Box<[(NameId, NodeId)]>, SchemaError> {
    let map = object(reader, keyword, value)?;
    let mut members = Vec::with_capacity(map.len());
    for (name, value) in map.iter() {
        let id = reader.builder.pool.name(name);
        let token = Token::Name(reader.builder.pool.shared_name(id));
        members.push((id, reader.grandchild(keyword, token, value)?));
    }
    Ok(members.into())
}

fn pattern_properties<'a>(
    reader: &mut Reader<'_, 'a>,
    value: &'a Json<'a>,
) -> Result<(), SchemaError> {
    let keyword = "patternProperties";
    let map = object(reader, keyword, value)?;
    let mut members = Vec::with_capacity(map.len());
    for (pattern, value) in map.iter() {
        let id = reader.pattern(keyword, pattern)?;
        let token = Token::Name(pattern.into());
        let node = reader.grandchild(keyword, token, value)?;
        members.push(match id {
            Some(id) => (id, node),
            None => (every_key(reader)?, anything(reader)?),
        });
    }
    reader.push(keyword, Keyword::PatternProperties(members.into()));
    Ok(())
}

/// The pattern that stands for one that was left out: what it matches is not
/// known, so no key may be held against it.
fn every_key(reader: &mut Reader<'_, '_>) -> Result<PatternId, SchemaError> {
    let pattern = reader.pattern("patternProperties", "")?;
    Ok(pattern.expect("the empty pattern is regular and small"))
}

/// The schema that everything satisfies.
fn anything(reader: &mut Reader<'_, '_>) -> Result<NodeId, SchemaError> {
    static ANYTHING: Json<'static> = Json::Bool(true);
    reader.child("patternProperties", &ANYTHING)
}

fn additional_properties<'a>(
    reader: &mut Reader<'_, 'a>,
    value: &'a Json<'a>,
) -> Result<(), SchemaError> {
    let node = reader.child("additionalProperties", value)?;
    let beside =
        |keyword: &str| reader.map.get(keyword).and_then(Json::as_object);
    let (properties, patterned) =
        (beside("properties"), beside("patternProperties"));
    let mut names = Vec::new();
    for (name, _) in properties.into_iter().flat_map(Object::iter) {
        names.push(reader.builder.pool.name(name));
    }
    let mut patterns = Vec::new();
    for (pattern, _) in patterned.into_iter().flat_map(Object::iter) {
        let id = reader.pattern("patternProperties", pattern)?;
        patterns.push(match id {
            Some(id) => id,
            None => every_key(reader)?,
        });
    }
    let (names, patterns) = (names.into(), patterns.into());
    reader.push(
        "additionalProperties",
        Keyword::AdditionalProperties { node, names, patterns },
    );
    Ok(())
}

/// Reads `dependencies`, whose values are schemas or arrays of names.
fn dependencies<'a>(
    reader: &mut Reader<'_, 'a>,
    value: &'a Json<'a>,
) -> Result<(), SchemaError> {
    let keyword = "dependencies";
    let Json::Object(map) = value else {
        let expected = "an object of schemas and arrays of strings";
        return Err(reader.invalid(keyword, expected));
    };
    let (mut required, mut schemas) = (Vec::new(), Vec::new());
    for (name, value) in map.iter() {
        let id = reader.builder.pool.name(name);
        if value.is_array() {
            required.push((id, reader.names(keyword, &[name], value)?));
        } else {
            let token = Token::Name(reader.builder.pool.shared_name(id));
            schemas.push((id, reader.grandchild(keyword, token, value)?));
        }
    }
    if !required.is_empty() {
        reader.push(keyword, Keyword::DependentRequired(required.into()));
    }
    if !schemas.is_empty() {
        reader.push(keyword, Keyword::DependentSchemas(schemas.into()));
    }
    Ok(())
}

/// Reads an assertion on objects; false where it is something else.
pub(super) fn validation<'a>(
    reader: &mut Reader<'_, 'a>,
    keyword: &str,
    value: &'a Json<'a>,
) -> Result<bool, SchemaError> {
    match keyword {
        "required" => {
            let names = reader.names("required", &[], value)?;
            if !names.is_empty() {
                reader.push("required", Keyword::Required(names));
            }
        }
        "minProperties" => {
            let count = reader.count("minProperties", value)?;
            reader.push("minProperties", Keyword::MinProperties(count));
        }
        "maxProperties" => {
            let count = reader.count("maxProperties", value)?;
            reader.push("maxProperties", Keyword::MaxProperties(count));
        }
        "dependentRequired" if reader.since(Draft::Draft201909) => {
            dependent_required(reader, value)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn dependent_required<'a>(
    reader: &mut Reader<'_, 'a>,
    value: &'a Json<'a>,
) -> Result<(), SchemaError> {
    let keyword = "dependentRequired";
    let Json::Object(map) = value else {
        let expected = "an object of arrays of strings";
        return Err(reader.invalid(keyword, expected));
    };
    let mut required = Vec::with_capacity(map.len());
    for (name, value) in map.iter() {
        let id = reader.builder.pool.name(name);
        required.push((id, reader.names(keyword, &[name], value)?));
    }
    reader.push(keyword, Keyword::DependentRequired(required.into()));
    Ok(())
}
