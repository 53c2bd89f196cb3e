//! No byte is offered after which a text cannot be finished, where that
//! depends on the keys and the items that came before.

mod common;

use common::accepts;
use maskwright_grammar_core::automaton::Recognizer;
use maskwright_json_schema::{Compiled, Options, compile};

fn compiled(schema: &str) -> Compiled {
    compile(schema, &Options::widest()).expect(schema)
}

/// The bytes but white space that may follow a prefix.
fn follow(schema: &str, prefix: &str) -> String {
    let automaton = compiled(schema).automaton;
    let mut recognizer = Recognizer::new(automaton).expect("it starts");
    let read = recognizer.push_bytes(prefix.as_bytes()).expect("no limit");
    assert!(read, "{schema} refuses {prefix}");
    let allowed = recognizer.allowed_bytes().expect("no limit");
    let bytes = (0..=u8::MAX).filter(|&byte| allowed[usize::from(byte)]);
    let shown = bytes.filter(|byte| !byte.is_ascii_whitespace());
    shown.map(char::from).collect()
}

#[test]
fn keys_that_are_used_up_are_not_waited_for() {
    let cases = [
        // Two keys in all, and four of them, or one.
        (
            r#"{"anyOf": [{"maxProperties": 1}, {"minProperties": 4}],
                "propertyNames": {"enum": ["a", "b"]}}"#,
            "{\"a\":null",
            "}",
        ),
        // Only `a` may come, and it has.
        (
            r#"{"if": {"enum": [{}]},
                "else": {"propertyNames": {"enum": ["a"]}}}"#,
            "{\"a\":null",
            "}",
        ),
        (
            r#"{"propertyNames": {"enum": ["a", "b"]},
                "not": {"maxProperties": 2,
                        "properties": {"a": {"maximum": 1}}}}"#,
            "{\"b\":null,\"a\":2",
            ".0123456789Ee}",
        ),
        (
            r#"{"propertyNames": {"enum": ["a", "b"]},
                "not": {"maxProperties": 2,
                        "properties": {"a": {"type": "null"}}}}"#,
            "{\"a\":",
            "\"-0123456789[ft{",
        ),
    ];
    for (schema, prefix, expected) in cases {
        assert_eq!(follow(schema, prefix), expected, "{schema} {prefix}");
    }
    // Four members of three keys.
    let schema = r#"{"type": "object", "minProperties": 4,
        "propertyNames": {"pattern": "^[ab]?$"},
        "oneOf": [{"required": ["a"]}, {"minProperties": 1}]}"#;
    assert!(compile(schema, &Options::widest()).is_err());
}

#[test]
fn items_that_are_used_up_are_not_waited_for() {
    let values = r#"{"uniqueItems": true, "minItems": 3,
        "items": {"enum": [[1], [2], {"a": 1}, "x", 2]}}"#;
    let prefixed = r#"{"uniqueItems": true, "minItems": 2,
        "prefixItems": [{"enum": [1, 2]}, {"const": 1}]}"#;
    let repeated = r#"{"maxItems": 2, "not": {"uniqueItems": true}}"#;
    let second = r#"{"maxItems": 2, "not": {"uniqueItems": true},
        "prefixItems": [true, {"additionalProperties": false}]}"#;
    let third = r#"{"maxItems": 3, "not": {"uniqueItems": true},
        "prefixItems": [true, true], "items": {"const": 0.5}}"#;
    let either = r#"{"maxItems": 2, "anyOf": [
        {"not": {"items": {"properties": {"c": false}}}},
        {"not": {"uniqueItems": true}}]}"#;
    let cases = [
        // All spellings of two, and no second list of one.
        (values, "[[1],[", "02"),
        (values, "[{\"a\":1.0},[1],", "\"02["),
        (values, "[[1],2,\"x\",[2],", "{"),
        (values, "[[1],2,\"x\",[2],{\"a\":1}", "]"),
        // The second must be one, so the first is two.
        (prefixed, "[", "02"),
        (prefixed, "[2.0,", "01"),
        // The second must equal the first.
        (repeated, "[[null,1e1],[", "n"),
        (repeated, "[[null,1e1],[null,", "01"),
        (repeated, "[{\"a\":1,\"b\":2},{\"b\":2,", "\""),
        (repeated, "[[],[", "]"),
        (repeated, "[\"a\",\"", "\\a"),
        // The second is a number, or nothing with members.
        (second, "[", "\"-0123456789[fnt{"),
        (second, "[{", "}"),
        (third, "[1,", "015"),
        (third, "[0.5,[", "\"-0123456789[]fnt{"),
        // The second must equal the first, or have a member `c`.
        (either, "[{\"b\":[]},", "{"),
        (either, "[{\"b\":[]},{\"b\":[]", ",}"),
        (either, "[{\"c\":[]},", "\"-0123456789[fnt{"),
    ];
    for (schema, prefix, expected) in cases {
        assert_eq!(follow(schema, prefix), expected, "{schema} {prefix}");
    }
    for (text, valid) in [
        ("[[1],{\"a\":1},\"x\"]", true),
        ("[[1],{\"a\":1},[1.0]]", false),
        ("[[1],2]", false),
    ] {
        assert_eq!(accepts(&compiled(values), text), valid, "{text}");
    }
    for schema in [
        // One value, twice.
        r#"{"type": "array", "uniqueItems": true, "minItems": 2, "items": {
            "propertyNames": false, "enum": [{"a": 1}, {"b": 0}, 1]}}"#,
        r#"{"type": "array", "enum": [[0, 1]], "not": {"uniqueItems": true}}"#,
        // Two items, equal, of which one has members and one has none.
        r#"{"type": "array", "maxItems": 2, "not": {"uniqueItems": true},
            "prefixItems": [{"minProperties": 1, "type": "object"},
                            {"additionalProperties": false}]}"#,
        r#"{"type": "array", "uniqueItems": true, "minItems": 2,
            "prefixItems": [{"const": 1}, {"const": 1.0}]}"#,
    ] {
        let refused = compile(schema, &Options::widest());
        assert!(refused.is_err(), "{schema}");
    }
}
