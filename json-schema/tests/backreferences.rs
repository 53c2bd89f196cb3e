//! Patterns with backreferences: refused, or checked as strings end.

mod common;

use common::accepts;
use maskwright_grammar_core::automaton::{
    Completions, Machine, Recognizer, StackLimits,
};
use maskwright_json_schema::{
    Backreferences, Compiled, ErrorKind, Options, compile,
};

fn options() -> Options {
    let mut options = Options::widest();
    options.parse.backreferences = Backreferences::Check;
    options
}

fn compiled(schema: &str) -> Compiled {
    compile(schema, &options()).expect(schema)
}

/// Texts that a schema accepts, and texts that it does not.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

const CASES: &[Case] = &[
    (
        r#"{"pattern": "^(a|bc)-\\1$"}"#,
        &[r#""a-a""#, r#""bc-bc""#, r#""\u0061-a""#, "1"],
        &[r#""a-bc""#, r#""bc-b""#, r#""a-""#],
    ),
    (
        r#"{"type": "string", "pattern": "<(\\w+)>.*</\\1>", "maxLength": 9}"#,
        &[r#""<b>x</b>""#, r#""<a></a>""#],
        &[r#""<b>x</i>""#, r#""<bb>x</bb>""#],
    ),
    (
        r#"{"not": {"pattern": "^(.)\\1$"}}"#,
        &[r#""ab""#, r#""aaa""#],
        &[r#""aa""#, r#""\u0041A""#, "null"],
    ),
    (
        r#"{"oneOf": [{"pattern": "^(.)\\1"}, {"pattern": "^a"}]}"#,
        &[r#""ab""#, r#""bb""#],
        &[r#""aab""#, r#""cd""#],
    ),
    (
        r#"{"type": "object", "additionalProperties": false,
            "patternProperties": {"^(.)\\1$": {"type": "integer"}, "^a": {}}}"#,
        &[r#"{"bb": 1, "ab": "x"}"#, r#"{"aa": 2}"#, "{}"],
        &[r#"{"bb": "x"}"#, r#"{"aa": null}"#, r#"{"bc": 1}"#],
    ),
    (
        r#"{"propertyNames": {"pattern": "^(.)(?!\\1)"}, "minProperties": 1}"#,
        &[r#"{"ab": 1}"#, r#"{"x": 1}"#],
        &[r#"{"aa": 1}"#, r#"{"": 1}"#, "{}"],
    ),
    (
        r#"{"items": {"pattern": "^(a*)b\\1$"}, "uniqueItems": true}"#,
        &[r#"["b", "aba"]"#, "[]"],
        &[r#"["ab"]"#, r#"["b", "b"]"#],
    ),
];

#[test]
fn strings_are_checked_as_they_end() {
    for (schema, good, bad) in CASES {
        let compiled = compiled(schema);
        for (texts, expected) in [(good, true), (bad, false)] {
            for text in *texts {
                let accepted = accepts(&compiled, text);
                assert_eq!(accepted, expected, "{schema} {text}");
            }
        }
    }
}

#[test]
fn without_the_option_they_are_errors_with_a_caret() {
    let schema = r#"{"properties": {"a": {"pattern": "(a)\\1"}}}"#;
    let error = compile(schema, &Options::widest()).map(|_| ());
    let error = error.expect_err("it is not regular");
    let ErrorKind::UnsupportedRegex { offset, .. } = error.kind() else {
        panic!("{error}");
    };
    assert_eq!(*offset, 3);
    assert!(error.to_string().ends_with("| (a)\\1\n  |    ^"), "{error}");
}

#[test]
fn what_may_turn_out_a_dead_end_is_counted() {
    let compiled = compiled(r#"{"type": "string", "pattern": "^(a|b)\\1$"}"#);
    let mut recognizer =
        Recognizer::new(compiled.automaton.clone()).expect("it starts");
    assert!(recognizer.push_bytes(b"\"a").expect("no limit"));
    assert!(compiled.stats().n_inexact > 0);
    // A search for an end asks the matcher too.
    let machine = Machine::new(&*compiled.automaton);
    let end = Completions::new()
        .shortest(machine, StackLimits::default(), recognizer.configuration())
        .expect("no limit");
    assert_eq!(end.as_deref(), Some(&b"a\""[..]));
}

#[test]
fn a_string_that_takes_too_many_steps_neither_matches_nor_not() {
    let schema = r#"{"pattern": "^(a+)+(a+)+b\\2\\2c$"}"#;
    let long = format!("\"{}bac\"", "a".repeat(200));
    assert!(!accepts(&compiled(schema), &long));
    let schema = format!("{{\"not\": {schema}}}");
    assert!(!accepts(&compiled(&schema), &long));
}
