//! Objects whose keys many patterns tell apart.

mod common;

use std::collections::BTreeMap;

use common::accepts;
use maskwright_grammar_core::automaton::{Hint, Recognizer};
use maskwright_json_schema::{Options, compile_value};
use serde_json::{Value, json};

#[test]
fn few_keys_that_many_patterns_match() {
    let patterns: BTreeMap<String, Value> = (0..20)
        .map(|n| (format!("^k{n}:(en|nl)$"), json!({ "const": n })))
        .collect();
    let schema =
        json!({"patternProperties": patterns, "additionalProperties": false});
    let compiled = compile_value(&schema, &Options::widest()).expect("valid");
    for (text, want) in [
        (r#"{"k19:nl":19,"k0:en":0,"k0:nl":0}"#, true),
        (r#"{"k19:nl":18}"#, false),
        (r#"{"k20:nl":20}"#, false),
        (r#"{"k1:en":1,"k1:en":1}"#, false),
    ] {
        assert_eq!(accepts(&compiled, text), want, "{text}");
    }
}

/// Prefixes within prefixes, a suffix across all of them, declared names
/// among them: what a key's value must be is known without any automaton.
#[test]
fn hundreds_of_patterns_that_overlap() {
    let mut patterns = BTreeMap::new();
    for n in 0..300 {
        patterns.insert(format!("^p{n}"), json!({ "minimum": n }));
    }
    patterns.insert("_max$".to_owned(), json!({ "maximum": 100 }));
    let schema = json!({
        "properties": {"p7": {"multipleOf": 5}, "other": true},
        "patternProperties": patterns,
        "additionalProperties": {"type": "string"},
    });
    let compiled = compile_value(&schema, &Options::widest()).expect("valid");
    let least = |key: &str| {
        let holds = |n: &u32| key.starts_with(&format!("p{n}"));
        (0..300).rev().find(holds)
    };
    let keys = ["p7", "p70", "p29", "p299", "p299_max", "p42_max", "_max"];
    let others = ["other", "p", "q1", "p3_ma", "p0", "p100_max"];
    for key in keys.into_iter().chain(others) {
        for value in [0, 7, 10, 70, 100, 101, 300] {
            let text = json!({ key: value }).to_string();
            let least = least(key);
            let is_free = key == "other" || key.ends_with("_max");
            let want = match least {
                None => is_free,
                Some(least) => value >= least,
            } && !(key.ends_with("_max") && value > 100)
                && !(key == "p7" && value % 5 != 0);
            assert_eq!(accepts(&compiled, &text), want, "{text}");
        }
    }
    assert!(accepts(&compiled, r#"{"q":"","q1":"","p1":200}"#));
    assert!(!accepts(&compiled, r#"{"p1":200,"p1":200}"#));
}

/// The same beneath a condition on the whole object, which has to be derived.
#[test]
fn many_patterns_in_an_object_that_is_more_than_a_table() {
    let patterns: BTreeMap<String, Value> =
        (0..40).map(|n| (format!("^{n}-"), json!({ "minimum": n }))).collect();
    let schema = json!({
        "patternProperties": patterns,
        "oneOf": [{"required": ["a"]}, {"required": ["39-x"]}],
    });
    let compiled = compile_value(&schema, &Options::widest()).expect("valid");
    for (text, want) in [
        (r#"{"38-":38,"a":1}"#, true),
        (r#"{"38-":37,"a":1}"#, false),
        (r#"{"38-":38,"39-x":39}"#, true),
        (r#"{"38-":38,"39-x":38}"#, false),
        (r#"{"39-x":39,"a":1}"#, false),
        (r#"{"38-":38}"#, false),
    ] {
        assert_eq!(accepts(&compiled, text), want, "{text}");
    }
}

/// Which of 24 letters a key has is too much to tell apart: an error, in
/// time, that names the limit.
#[test]
fn patterns_that_match_in_too_many_ways_are_refused() {
    let patterns: BTreeMap<String, Value> = ('a'..='x')
        .map(|letter| (letter.to_string(), json!({ "type": "null" })))
        .collect();
    let schema = json!({ "patternProperties": patterns });
    let compiled = compile_value(&schema, &Options::widest()).expect("valid");
    let error = Recognizer::new(compiled.automaton).expect_err("too many");
    assert!(error.to_string().contains("patterns"), "{error}");
}

/// Keys that cannot be read into a dead end read what any key reads, so that
/// a vocabulary is not walked for them.
#[test]
fn keys_that_cannot_die_say_so() {
    let words = json!({
        "patternProperties": {"foo|bar": true},
        "additionalProperties": false,
    });
    let overlapping = json!({
        "patternProperties": {"foo": {"const": 1}, "bar": {"const": 2}},
        "additionalProperties": false,
    });
    // These are few, and are declared or not, once they were used.
    let few = json!({"patternProperties": {"^[a-z]{2}$": {"type": "null"}}});
    for (schema, text, want) in [
        (&words, r#"{""#, true),
        (&words, r#"{"xfo"#, true),
        (&words, r#"{"foox"#, true),
        (&few, r#"{""#, true),
        (&few, r#"{"a"#, true),
        (&few, r#"{"ab":null,""#, true),
        // No value is right with both.
        (&overlapping, r#"{""#, false),
        (&json!({"propertyNames": {"pattern": "^foo"}}), r#"{""#, false),
        (&json!({"propertyNames": {"pattern": "^foo"}}), r#"{"foo"#, true),
    ] {
        let compiled =
            compile_value(schema, &Options::widest()).expect("valid");
        let mut recognizer =
            Recognizer::new(compiled.automaton.clone()).expect("it starts");
        assert!(recognizer.push_bytes(text.as_bytes()).expect("no limit"));
        let tops = recognizer.configuration().tops();
        let [top] = tops else { panic!("one way: {tops:?}") };
        let row = compiled.automaton.row(top.frame.state).expect("a row");
        let never_dies = matches!(row.hint, Hint::Ends { .. });
        assert_eq!(never_dies, want, "{schema} after {text}: {row:?}");
    }
}
