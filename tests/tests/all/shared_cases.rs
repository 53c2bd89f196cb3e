//! The shared cases, where they are at hand.

use std::fs;

use maskwright::{
    check::Checker,
    grammar::{Grammar, SchemaOptions},
};
use maskwright_tests::corpus::shared;
use serde_json::Value;

/// Cases of kind `json_schema` that are refused as yet, by line, with the
/// kind of the error: each names the keyword and its place.
const REFUSED: &[(usize, &str)] = &[];
/// Lines that describe a case in words only.
const IN_WORDS: &[usize] = &[21];

#[test]
fn json_schema_cases() {
    let Some(file) = shared("cases/json_schema.jsonl") else { return };
    let text = fs::read_to_string(file).expect("a readable file");
    let mut options = SchemaOptions::widest();
    options.parse.format = maskwright_json_schema::FormatPolicy::AssertKnown;
    let mut wrong = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if IN_WORDS.contains(&number) {
            continue;
        }
        let case: Value = serde_json::from_str(line).expect("JSON lines");
        let refused = REFUSED.iter().find(|&&(line, _)| line == number);
        let grammar = Grammar::from_schema_value(&case["input"], &options);
        let grammar = match (grammar, refused) {
            (Ok(grammar), None) => grammar,
            (Err(error), Some(&(_, kind))) => {
                assert_eq!(error.kind(), kind, "line {number}");
                assert!(error.location().is_some(), "line {number}");
                continue;
            }
            (Err(error), None) if error.kind() == "unsatisfiable" => {
                if !texts(&case, "accept").is_empty() {
                    wrong.push(format!("{number}: {error}"));
                }
                continue;
            }
            (result, _) => {
                let result = result.map(|_| "compiled");
                wrong.push(format!("{number}: {result:?}"));
                continue;
            }
        };
        for (kind, expected) in [("accept", true), ("reject", false)] {
            for text in texts(&case, kind) {
                let verdict = Checker::new(&grammar)
                    .check(text.as_bytes())
                    .expect("within limits");
                if verdict.is_accepted() != expected {
                    wrong.push(format!("{number}: {kind} {text:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn regex_cases() {
    let Some(file) = shared("cases/regex.jsonl") else { return };
    let text = fs::read_to_string(file).expect("a readable file");
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON lines");
        let pattern = case["input"].as_str().expect("a pattern");
        let grammar = match Grammar::from_regex(pattern) {
            Ok(grammar) => grammar,
            Err(error) => {
                assert!(texts(&case, "accept").is_empty(), "{error}");
                assert!(error.location().is_some(), "{error}");
                continue;
            }
        };
        for text in texts(&case, "accept") {
            assert!(grammar.accepts(&text).expect("within limits"), "{text}");
        }
        for text in texts(&case, "reject") {
            assert!(!grammar.accepts(&text).expect("within limits"), "{text}");
        }
    }
}

#[test]
fn gbnf_cases() {
    let Some(file) = shared("cases/gbnf.jsonl") else { return };
    let text = fs::read_to_string(file).expect("a readable file");
    let mut n_read = 0;
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON lines");
        // One is told in words; the hostile tests spell it out.
        let Some(gbnf) = case["input"].as_str() else { continue };
        let grammar = Grammar::from_gbnf(gbnf).expect(gbnf);
        for text in texts(&case, "accept") {
            assert!(grammar.accepts(&text).expect("within limits"), "{text}");
        }
        for text in texts(&case, "reject") {
            assert!(!grammar.accepts(&text).expect("within limits"), "{text}");
        }
        n_read += 1;
    }
    assert!(n_read > 20, "{n_read} grammars");
}

fn texts(case: &Value, kind: &str) -> Vec<String> {
    let texts = case[kind].as_array().into_iter().flatten();
    texts.filter_map(|text| Some(text.as_str()?.to_owned())).collect()
}
