//! Formats by bytes: the policy, and the format tests of the official suite.
//!
//! The suite is looked for in the folder that `MASKWRIGHT_SHARED` names, or
//! in `shared` beside the workspace. Without it that test says so and is
//! over.

#![allow(clippy::print_stdout, reason = "tests say what they skip")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use maskwright_grammar_core::automaton::Recognizer;
use maskwright_json_schema::{
    Compiled, Draft, FormatPolicy, Options, compile, compile_value, format,
};
use serde_json::{Value, json};

fn accepts(compiled: &Compiled, text: &str) -> bool {
    let automaton = compiled.automaton.clone();
    let mut recognizer = Recognizer::new(automaton).expect("it starts");
    recognizer.push_bytes(text.as_bytes()).expect("under the limits")
        && recognizer.is_accepting().expect("under the limits")
}

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
fn a_format_that_the_draft_does_not_have_is_reported() {
    for (name, draft) in
        [("phone", Draft::Draft202012), ("uuid", Draft::Draft7)]
    {
        let schema = json!({ "format": name });
        let known = widest(FormatPolicy::AssertKnown, draft);
        let compiled = compile_value(&schema, &known).expect("compiles");
        assert_eq!(compiled.warnings.len(), 1, "{:?}", compiled.warnings);
        assert!(accepts(&compiled, r#""x""#));
        let all = widest(FormatPolicy::AssertAll, draft);
        let error = compile_value(&schema, &all).expect_err("refused");
        assert_eq!(error.kind_name(), "unknown_format");
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

const DRAFTS: [(&str, Draft); 5] = [
    ("draft4", Draft::Draft4),
    ("draft6", Draft::Draft6),
    ("draft7", Draft::Draft7),
    ("draft2019-09", Draft::Draft201909),
    ("draft2020-12", Draft::Draft202012),
];

/// Valid names that are refused since they have labels in Punycode.
fn is_exception(format: &str, text: &str) -> bool {
    format.ends_with("hostname") && text.contains("xn--")
}

/// Names too long for the states that one language may have.
fn is_too_long(format: &str, text: &str) -> bool {
    format == "idn-hostname" && text.chars().count() > 200
}

fn suite() -> Option<PathBuf> {
    let shared = std::env::var_os("MASKWRIGHT_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    );
    let tests = shared.join("corpora/json-schema-test-suite/tests");
    tests.is_dir().then_some(tests)
}

#[test]
fn suite_of_formats() {
    let Some(suite) = suite() else {
        println!("skipped: the suite is absent; set MASKWRIGHT_SHARED");
        return;
    };
    for (folder, draft) in DRAFTS {
        let mut scores = BTreeMap::new();
        let folder = suite.join(folder).join("optional/format");
        for entry in fs::read_dir(folder).expect("the suite has formats") {
            let path = entry.expect("readable").path();
            let text = fs::read_to_string(path).expect("readable");
            let groups: Value = serde_json::from_str(&text).expect("JSON");
            for group in groups.as_array().expect("groups") {
                check_group(group, draft, &mut scores);
            }
        }
        for (format, (passed, refused)) in scores {
            println!("{draft} {format}: {passed} passed, {refused} refused");
        }
    }
}

/// Checks the tests of one schema, where its format is known in the draft.
fn check_group(
    group: &Value,
    draft: Draft,
    scores: &mut BTreeMap<String, (u32, u32)>,
) {
    let Some(name) = group["schema"]["format"].as_str() else { return };
    if format::since(name).is_none_or(|since| since > draft) {
        return;
    }
    let options = widest(FormatPolicy::AssertAll, draft);
    let compiled = compile_value(&group["schema"], &options);
    let compiled = compiled.expect("the suite's schemas are valid");
    let (passed, refused) = scores.entry(name.to_owned()).or_default();
    for test in group["tests"].as_array().expect("tests") {
        let data = test["data"].as_str().unwrap_or_default();
        if is_too_long(name, data) {
            continue;
        }
        let got = accepts(&compiled, &test["data"].to_string());
        let want = test["valid"].as_bool().expect("a verdict");
        if want && !got && is_exception(name, data) {
            *refused += 1;
            continue;
        }
        assert_eq!(got, want, "{draft} {name}: {}", test["data"]);
        *passed += 1;
    }
}
