//! The keywords of JSON Schema: what each is, and how its value is checked.
//!
//! [`KEYWORDS`] is the one table that says what becomes of a keyword; the
//! other modules read the values, a file for each family.

mod applicator;
mod array;
mod number;
mod object;
mod reader;
mod reference;
mod string;
mod table;
mod value;

use crate::draft::Draft;
pub(crate) use reader::{Reader, read};
pub use table::markdown;

/// What becomes of a keyword.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Support {
    /// Its constraint is enforced.
    Enforced,
    /// What it names is enforced where [`crate::format`] knows it and the
    /// policy ([`FormatPolicy`](crate::FormatPolicy)) asks for it; otherwise
    /// it is an annotation, a warning or an error, as the policy says.
    EnforcedIfKnown,
    /// It constrains nothing, by the specification.
    Annotation,
    /// It is read with another keyword.
    With(&'static str),
    /// It is understood, but masks cannot enforce it yet; the text says what
    /// works instead.
    NotYet(&'static str),
}

/// A row of the table of keywords.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KeywordInfo {
    /// The keyword.
    pub name: &'static str,
    /// The first draft that has it.
    pub since: Draft,
    /// The last draft that has it, if it was dropped.
    pub until: Option<Draft>,
    /// What becomes of it.
    pub support: Support,
}

impl KeywordInfo {
    /// Whether a draft has the keyword.
    pub fn is_in(&self, draft: Draft) -> bool {
        self.since <= draft && self.until.is_none_or(|until| draft <= until)
    }
}

use Draft::{
    Draft4 as D4, Draft6 as D6, Draft7 as D7, Draft201909 as D19,
    Draft202012 as D20,
};
use Support::{Annotation, Enforced, EnforcedIfKnown, With};

const fn row(
    name: &'static str,
    since: Draft,
    until: Option<Draft>,
    support: Support,
) -> KeywordInfo {
    KeywordInfo { name, since, until, support }
}

/// Every keyword of drafts 4 to 2020-12.
pub static KEYWORDS: &[KeywordInfo] = &[
    row("$schema", D4, None, With("$id")),
    row("id", D4, Some(D4), With("$ref")),
    row("$id", D6, None, With("$ref")),
    row("$anchor", D19, None, With("$ref")),
    row("$dynamicAnchor", D20, None, With("$dynamicRef")),
    row("$recursiveAnchor", D19, Some(D19), With("$recursiveRef")),
    row("$vocabulary", D19, None, With("$schema")),
    row("$defs", D19, None, With("$ref")),
    row("definitions", D4, None, With("$ref")),
    row("$ref", D4, None, Enforced),
    row("$dynamicRef", D20, None, Enforced),
    row("$recursiveRef", D19, Some(D19), Enforced),
    row("type", D4, None, Enforced),
    row("enum", D4, None, Enforced),
    row("const", D6, None, Enforced),
    row("multipleOf", D4, None, Enforced),
    row("minimum", D4, None, Enforced),
    row("maximum", D4, None, Enforced),
    row("exclusiveMinimum", D4, None, Enforced),
    row("exclusiveMaximum", D4, None, Enforced),
    row("minLength", D4, None, Enforced),
    row("maxLength", D4, None, Enforced),
    row("pattern", D4, None, Enforced),
    row("format", D4, None, EnforcedIfKnown),
    row("properties", D4, None, Enforced),
    row("patternProperties", D4, None, Enforced),
    row("additionalProperties", D4, None, Enforced),
    row("propertyNames", D6, None, Enforced),
    row("required", D4, None, Enforced),
    row("minProperties", D4, None, Enforced),
    row("maxProperties", D4, None, Enforced),
    row("dependencies", D4, None, Enforced),
    row("dependentRequired", D19, None, Enforced),
    row("dependentSchemas", D19, None, Enforced),
    row("unevaluatedProperties", D19, None, Enforced),
    row("items", D4, None, Enforced),
    row("prefixItems", D20, None, Enforced),
    row("additionalItems", D4, Some(D19), Enforced),
    row("minItems", D4, None, Enforced),
    row("maxItems", D4, None, Enforced),
    row("uniqueItems", D4, None, Enforced),
    row("contains", D6, None, Enforced),
    row("minContains", D19, None, With("contains")),
    row("maxContains", D19, None, With("contains")),
    row("unevaluatedItems", D19, None, Enforced),
    row("allOf", D4, None, Enforced),
    row("anyOf", D4, None, Enforced),
    row("oneOf", D4, None, Enforced),
    row("not", D4, None, Enforced),
    row("if", D7, None, Enforced),
    row("then", D7, None, With("if")),
    row("else", D7, None, With("if")),
    row("title", D4, None, Annotation),
    row("description", D4, None, Annotation),
    row("default", D4, None, Annotation),
    row("examples", D6, None, Annotation),
    row("$comment", D7, None, Annotation),
    row("readOnly", D7, None, Annotation),
    row("writeOnly", D7, None, Annotation),
    row("deprecated", D19, None, Annotation),
    row("contentMediaType", D7, None, Annotation),
    row("contentEncoding", D7, None, Annotation),
    row("contentSchema", D19, None, Annotation),
];

/// Returns what becomes of a keyword, if it is one.
pub fn support(keyword: &str) -> Option<Support> {
    KEYWORDS.iter().find(|info| info.name == keyword).map(|info| info.support)
}

/// Whether a draft has a keyword.
pub(crate) fn is_in(keyword: &str, draft: Draft) -> bool {
    KEYWORDS.iter().any(|info| info.name == keyword && info.is_in(draft))
}

/// Where the schemas in a keyword's value are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Shape {
    /// The value is a schema.
    Schema,
    /// The value is an object of schemas.
    Map,
    /// The value is an array of schemas.
    List,
    /// The value is a schema or an array of schemas.
    SchemaOrList,
    /// There are none.
    Other,
}

/// Says where the schemas in a keyword's value are.
pub(crate) fn shape(keyword: &str) -> Shape {
    match keyword {
        "properties" | "patternProperties" | "definitions" | "$defs"
        | "dependentSchemas" | "dependencies" => Shape::Map,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Shape::List,
        "items" => Shape::SchemaOrList,
        "additionalProperties"
        | "additionalItems"
        | "contains"
        | "not"
        | "if"
        | "then"
        | "else"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contentSchema" => Shape::Schema,
        _ => Shape::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_each_keyword_once() {
        for (index, info) in KEYWORDS.iter().enumerate() {
            let first = KEYWORDS.iter().position(|k| k.name == info.name);
            assert_eq!(first, Some(index), "{}", info.name);
            assert_eq!(support(info.name), Some(info.support));
        }
        assert_eq!(support("x-order"), None);
    }
}
