//! Formats by bytes: the policy, and formats beside other keywords. The
//! official suite of formats is run in `suite`.

mod common;

use common::accepts;
use maskwright_json_schema::{
    Draft, FormatPolicy, Options, compile, compile_value,
};
use serde_json::json;

fn widest(policy: FormatPolicy, draft: Draft) -> Options {
    let mut options = Options::widest();
    options.parse.format = policy;
    options.parse.draft = Some(draft);
    options
}

#[test]
fn known_formats_are_enforced_for_generation_and_not_for_checking() {
    let schema = r#"{"type": "string", "format": "date"}"#;
    let enforced = compile(schema, &Options::default()).expect("compiles");
    assert!(accepts(&enforced, r#""2024-02-29""#));
    assert!(!accepts(&enforced, r#""2023-02-29""#));
    assert!(enforced.warnings.is_empty());
    let annotated = compile(schema, &Options::widest()).expect("compiles");
    assert!(accepts(&annotated, r#""2023-02-29""#));
}

#[test]
fn a_format_that_is_not_known_is_reported() {
    let schema = json!({ "format": "phone" });
    let known = widest(FormatPolicy::AssertKnown, Draft::Draft202012);
    let compiled = compile_value(&schema, &known).expect("compiles");
    assert_eq!(compiled.warnings.len(), 1, "{:?}", compiled.warnings);
    assert!(accepts(&compiled, r#""x""#));
    let all = widest(FormatPolicy::AssertAll, Draft::Draft202012);
    let error = compile_value(&schema, &all).expect_err("refused");
    assert_eq!(error.kind_name(), "unknown_format");
}

#[test]
fn a_known_format_is_enforced_in_every_draft() {
    for draft in Draft::ALL {
        for name in ["date", "uuid", "duration", "iri"] {
            let options = widest(FormatPolicy::AssertKnown, draft);
            let schema = json!({ "format": name });
            let compiled = compile_value(&schema, &options).expect("compiles");
            assert!(!accepts(&compiled, r#""no such thing""#), "{name}");
        }
    }
}

#[test]
fn formats_stand_beside_other_keywords() {
    let schema = json!({
        "oneOf": [
            { "format": "ipv4" },
            { "pattern": "^[12]", "not": { "format": "ipv4" } },
        ],
        "type": "string",
        "maxLength": 9,
    });
    let options = widest(FormatPolicy::AssertAll, Draft::Draft202012);
    let compiled = compile_value(&schema, &options).expect("compiles");
    for (text, want) in [
        (r#""10.2.30.4""#, true),
        (r#""10.2.30.40""#, false),
        (r#""1""#, true),
        (r#""3.2.1.4""#, true),
        (r#""3.2.1""#, false),
        (r#""\u0031""#, true),
    ] {
        assert_eq!(accepts(&compiled, text), want, "{text}");
    }
    let never = json!({ "type": "string", "format": "uuid", "maxLength": 9 });
    let error = compile_value(&never, &options).expect_err("unsatisfiable");
    assert_eq!(error.kind_name(), "unsatisfiable");
}
