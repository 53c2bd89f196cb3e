//! The table of keywords against what schemas do, keyword by keyword and
//! draft by draft.

mod common;

use std::fmt::Write as _;

use common::accepts;
use maskwright_json_schema::{
    Draft, Options, compile,
    keywords::{KEYWORDS, Support},
};

/// For each keyword that is enforced: a schema in which nothing else is, and
/// a text that violates it. `@` stands for the schema of nothing.
const ENFORCED: &[(&str, &str, &str)] = &[
    (
        "$ref",
        r##""$ref": "#/definitions/n", "definitions": {"n": {"type": "null"}}"##,
        "1",
    ),
    (
        "$dynamicRef",
        r##""$dynamicRef": "#/$defs/n", "$defs": {"n": {"type": "null"}}"##,
        "1",
    ),
    (
        "$recursiveRef",
        r##""$defs": {"n": {"properties": {"a": @}}},
            "items": {"$recursiveRef": "#"}, "maxItems": 1"##,
        "[[1,2]]",
    ),
    ("type", r#""type": "string""#, "1"),
    ("enum", r#""enum": ["a"]"#, "1"),
    ("const", r#""const": "a""#, "1"),
    ("multipleOf", r#""multipleOf": 2"#, "1"),
    ("minimum", r#""minimum": 2"#, "1"),
    ("maximum", r#""maximum": 0"#, "1"),
    ("exclusiveMinimum", r#""exclusiveMinimum": 1"#, "1"),
    ("exclusiveMaximum", r#""exclusiveMaximum": 1"#, "1"),
    ("minLength", r#""minLength": 2"#, r#""a""#),
    ("maxLength", r#""maxLength": 0"#, r#""a""#),
    ("pattern", r#""pattern": "b""#, r#""a""#),
    ("format", r#""format": "date""#, r#""a""#),
    ("properties", r#""properties": {"a": @}"#, r#"{"a":1}"#),
    ("patternProperties", r#""patternProperties": {"a": @}"#, r#"{"a":1}"#),
    ("additionalProperties", r#""additionalProperties": @"#, r#"{"a":1}"#),
    ("propertyNames", r#""propertyNames": @"#, r#"{"a":1}"#),
    ("required", r#""required": ["b"]"#, r#"{"a":1}"#),
    ("minProperties", r#""minProperties": 2"#, r#"{"a":1}"#),
    ("maxProperties", r#""maxProperties": 0"#, r#"{"a":1}"#),
    ("dependencies", r#""dependencies": {"a": ["b"]}"#, r#"{"a":1}"#),
    (
        "dependentRequired",
        r#""dependentRequired": {"a": ["b"]}"#,
        r#"{"a":1}"#,
    ),
    ("dependentSchemas", r#""dependentSchemas": {"a": @}"#, r#"{"a":1}"#),
    ("unevaluatedProperties", r#""unevaluatedProperties": @"#, r#"{"a":1}"#),
    ("items", r#""items": @"#, "[1]"),
    ("prefixItems", r#""prefixItems": [@]"#, "[1]"),
    ("additionalItems", r#""items": [{}], "additionalItems": @"#, "[1,2]"),
    ("minItems", r#""minItems": 2"#, "[1]"),
    ("maxItems", r#""maxItems": 0"#, "[1]"),
    ("uniqueItems", r#""uniqueItems": true"#, "[1,1.0]"),
    ("contains", r#""contains": {"type": "string"}"#, "[1]"),
    ("unevaluatedItems", r#""unevaluatedItems": @"#, "[1]"),
    ("allOf", r#""allOf": [{}, {"type": "string"}]"#, "1"),
    ("anyOf", r#""anyOf": [{"type": "array"}, {"type": "string"}]"#, "1"),
    ("oneOf", r#""oneOf": [{}, {"type": "number"}]"#, "1"),
    ("not", r#""not": {"type": "number"}"#, "1"),
    ("if", r#""if": {"type": "number"}, "then": @"#, "1"),
];

/// As far as draft 4 spells it otherwise.
const DRAFT_4: &[(&str, &str, &str)] = &[
    ("exclusiveMinimum", r#""minimum": 1, "exclusiveMinimum": true"#, "1"),
    ("exclusiveMaximum", r#""maximum": 1, "exclusiveMaximum": true"#, "1"),
];

/// As far as draft 2020-12 does, and refuses the spelling of before.
const DRAFT_2020_12: &[(&str, &str, &str)] =
    &[("additionalItems", r#""items": {}, "additionalItems": @"#, "[1,2]")];

fn options(draft: Draft) -> Options {
    let mut options = Options::widest();
    options.parse.draft = Some(draft);
    options.parse.format = Options::default().parse.format;
    options
}

/// The schema of a keyword in a draft, and a text that violates it.
fn example(keyword: &str, draft: Draft) -> (String, &'static str) {
    let own = match draft {
        Draft::Draft4 => DRAFT_4,
        Draft::Draft202012 => DRAFT_2020_12,
        _ => &[],
    };
    let mut examples = own.iter().chain(ENFORCED);
    let (_, schema, text) = examples
        .find(|(name, ..)| *name == keyword)
        .unwrap_or_else(|| panic!("no example of {keyword}"));
    (format!("{{{}}}", schema.replace('@', r#"{"not": {}}"#)), text)
}

#[test]
fn what_the_table_calls_enforced_is_just_where_it_says() {
    let mut wrong = String::new();
    for info in KEYWORDS {
        let enforced = [Support::Enforced, Support::EnforcedIfKnown];
        if !enforced.contains(&info.support) {
            continue;
        }
        for draft in Draft::ALL {
            let (schema, text) = example(info.name, draft);
            let compiled = compile(&schema, &options(draft));
            let refused = compiled.map(|it| !accepts(&it, text));
            if refused != Ok(info.is_in(draft)) {
                let _ = writeln!(wrong, "{} in {draft}", info.name);
            }
        }
    }
    assert_eq!(wrong, "");
}

/// The names by which definitions go work in every draft, as pointers do.
#[test]
fn a_keyword_that_a_draft_lacks_is_reported_unless_it_never_means_anything() {
    for info in KEYWORDS {
        let is_silent = info.support == Support::Annotation
            || ["definitions", "$defs"].contains(&info.name);
        for draft in Draft::ALL {
            let schema = match info.support {
                Support::Enforced | Support::EnforcedIfKnown => {
                    example(info.name, draft).0
                }
                _ if info.is_in(draft) || is_silent => {
                    format!(r#"{{"{}": {{}}}}"#, info.name)
                }
                _ => format!(r#"{{"{}": 1}}"#, info.name),
            };
            let Ok(compiled) = compile(&schema, &options(draft)) else {
                // The value above is not one that the keyword can have.
                assert!(info.is_in(draft), "{} in {draft}", info.name);
                continue;
            };
            let mut unknown = compiled.unknown_keywords();
            let reported = unknown.any(|note| note.keyword == info.name);
            let want = !info.is_in(draft) && !is_silent;
            assert_eq!(reported, want, "{} in {draft}", info.name);
        }
    }
}

#[test]
fn annotations_constrain_nothing() {
    for info in KEYWORDS {
        if info.support == Support::Annotation {
            let schema = format!(r#"{{"{}": "x"}}"#, info.name);
            let compiled = compile(&schema, &Options::widest());
            let compiled = compiled.expect("an annotation");
            assert!(accepts(&compiled, "1"), "{}", info.name);
        }
    }
}
