//! Formats that are not regular: a string is checked when it ends.

mod common;

use maskwright_json_schema::{FormatPolicy, Options, compile};

fn accepts(schema: &str, text: &str) -> bool {
    let mut options = Options::widest();
    options.parse.format = FormatPolicy::AssertKnown;
    common::accepts(&compile(schema, &options).expect("valid"), text)
}

fn check(schema: &str, good: &[&str], bad: &[&str]) {
    for (texts, want) in [(good, true), (bad, false)] {
        for text in texts {
            assert_eq!(accepts(schema, text), want, "{schema}: {text}");
        }
    }
}

#[test]
fn as_a_value() {
    let good = [r#""(a)""#, r#""[a-z]+\\d""#, r#""\u0028a\u0029""#, "1"];
    let bad = [r#""(a""#, r#""\u005bz-a]""#, r#""*""#];
    check(r#"{"format": "regex"}"#, &good, &bad);
    check(r#"{"type": "string", "not": {"format": "regex"}}"#, &bad, &good);
}

#[test]
fn beside_other_keywords() {
    let schema = r#"{
        "type": "string", "format": "regex", "pattern": "^\\(", "maxLength": 4
    }"#;
    check(schema, &[r#""(ab)""#], &[r#""(ab""#, r#""a""#, r#""(abc)""#]);
    let listed = r#"{"enum": ["a", "(", "(b)"], "format": "regex"}"#;
    check(listed, &[r#""a""#, r#""(b)""#], &[r#""(""#, r#""b""#]);
    let either = r#"{"oneOf": [{"format": "regex"}, {"minLength": 3}]}"#;
    check(
        either,
        &[r#""(""#.replace('(', "a").as_str(), r#""(ab""#],
        &[r#""(""#, r#""(a)""#],
    );
}

#[test]
fn where_verdicts_decide() {
    let schema = r#"{
        "properties": {"kind": {}, "body": {}},
        "if": {"properties": {"kind": {"format": "regex"}}},
        "then": {"required": ["body"]},
        "else": {"properties": {"body": false}}
    }"#;
    check(
        schema,
        &[
            r#"{"kind": "(a)", "body": 1}"#,
            r#"{"kind": "(a"}"#,
            r#"{"body": 1, "kind": "[a]"}"#,
        ],
        &[
            r#"{"kind": "(a)"}"#,
            r#"{"kind": "(a", "body": 1}"#,
            r#"{"body": 1, "kind": "[a"}"#,
        ],
    );
    let counted = r#"{
        "contains": {"type": "string", "format": "regex"}, "maxContains": 1
    }"#;
    check(
        counted,
        &[r#"["(", "(a)", "["]"#, r#"["(b)"]"#],
        &[r#"["(a)", "(b)"]"#, r#"["(", 1]"#],
    );
}

#[test]
fn where_items_differ() {
    let schema = r#"{"uniqueItems": true, "items": {"format": "regex"}}"#;
    check(
        schema,
        &[r#"["(a)", "(b)", 1]"#, r#"["(a)"]"#],
        &[r#"["(a)", "\u0028a)"]"#, r#"["(a", "b"]"#, r#"["b", "(a"]"#],
    );
    let nested = r#"{
        "uniqueItems": true,
        "items": {"properties": {"p": {"format": "regex"}}}
    }"#;
    check(
        nested,
        &[r#"[{"p": "(a)"}, {"p": "(b)"}]"#],
        &[r#"[{"p": "(a)"}, {"p": "(a)"}]"#, r#"[{"p": "(a"}]"#],
    );
    let repeated = r#"{
        "type": "array",
        "not": {"uniqueItems": true}, "items": {"format": "regex"}
    }"#;
    check(
        repeated,
        &[r#"["(a)", "(a)"]"#],
        &[r#"["(a)", "(b)"]"#, r#"["(a", "(a"]"#],
    );
}

#[test]
fn as_a_key() {
    let schema = r#"{
        "propertyNames": {"format": "regex"},
        "properties": {"(": {}, "(x)": {"const": 1}},
        "additionalProperties": {"not": {"format": "regex"}}
    }"#;
    check(
        schema,
        &[r#"{"a+": "*"}"#, r#"{"(x)": 1}"#, r#"{"(a)": "]", "(b)": "]"}"#],
        &[
            r#"{"a+": "a+"}"#,
            r#"{"*": "*"}"#,
            r#"{"(": 1}"#,
            r#"{"(a)": "]", "\u0028a)": "]"}"#,
        ],
    );
    let counted = r#"{
        "patternProperties": {"^a": {"const": 0}},
        "propertyNames": {"not": {"format": "regex"}},
        "minProperties": 2
    }"#;
    check(
        counted,
        &[r#"{"a(": 0, "(": 1}"#],
        &[r#"{"a(": 1, "(": 1}"#, r#"{"a": 0, "(": 1}"#, r#"{"(": 0}"#],
    );
}

#[test]
fn hosts_with_punycode() {
    let schema = r#"{"format": "hostname"}"#;
    check(
        schema,
        &[r#""xn--4gbwdl.xn--wgbh1c""#, r#""a.b""#],
        &[r#""xn--X""#, r#""a.xn--""#, r#""ab--c""#],
    );
}
