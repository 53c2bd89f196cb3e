//! `$ref`, `$dynamicRef`, `$recursiveRef`.

use super::Reader;
use crate::error::SchemaError;
use crate::location::Locations;
use crate::parse::resources::{Target, address_of};
use crate::parse::{Json, Keyword, NodeId};

/// Reads `$ref`.
pub(super) fn reference<'a>(
    reader: &mut Reader<'_, 'a>,
    value: &'a Json<'a>,
) -> Result<(), SchemaError> {
    let (target, _) = resolve(reader, "$ref", value)?;
    let node = node(reader, "$ref", target)?;
    reader.out.push(Keyword::Ref(node));
    Ok(())
}

/// Reads `$dynamicRef`: it is dynamic where what it means statically is a
/// `$dynamicAnchor` of the same name.
pub(super) fn dynamic<'a>(
    reader: &mut Reader<'_, 'a>,
    value: &'a Json<'a>,
) -> Result<(), SchemaError> {
    let (found, anchor) = resolve(reader, "$dynamicRef", value)?;
    let target = node(reader, "$dynamicRef", found)?;
    let resource = reader.builder.resources.get(found.resource);
    let anchor = anchor.filter(|anchor| {
        resource.dynamic.iter().any(|(name, place)| {
            name == anchor
                && address_of(place.value) == address_of(found.value)
        })
    });
    let anchor = anchor.map(|anchor| {
        let name = reader.builder.pool.name(&anchor);
        reader.builder.dynamic_anchor(name);
        name
    });
    reader.out.push(Keyword::DynamicRef { target, anchor });
    Ok(())
}

/// Reads `$recursiveRef`: it is dynamic where its target is recursive.
pub(super) fn recursive<'a>(
    reader: &mut Reader<'_, 'a>,
    value: &'a Json<'a>,
) -> Result<(), SchemaError> {
    let (found, _) = resolve(reader, "$recursiveRef", value)?;
    let target = node(reader, "$recursiveRef", found)?;
    let anchor = found.value.as_object();
    let anchor = anchor.and_then(|map| map.get("$recursiveAnchor"));
    let dynamic = anchor.is_some_and(Json::is_true);
    reader.builder.is_recursive |= dynamic;
    reader.out.push(Keyword::RecursiveRef { target, dynamic });
    Ok(())
}

fn resolve<'a>(
    reader: &mut Reader<'_, 'a>,
    keyword: &'static str,
    value: &'a Json<'a>,
) -> Result<(Target<'a>, Option<String>), SchemaError> {
    let Json::String(reference) = value else {
        return Err(reader.invalid(keyword, "an address as a string"));
    };
    let location = reader.location;
    let at =
        move |locations: &Locations| locations.get(location).child(keyword);
    reader.builder.resources.resolve(reference, reader.resource, &at)
}

fn node<'a>(
    reader: &mut Reader<'_, 'a>,
    keyword: &str,
    target: Target<'a>,
) -> Result<NodeId, SchemaError> {
    if !target.value.is_object() && !target.value.is_boolean() {
        let expected = "the address of a schema (an object or a boolean)";
        return Err(reader.invalid(keyword, expected));
    }
    reader.builder.node(target)
}
