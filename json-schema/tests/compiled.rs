//! What a compiled schema says about itself.

mod common;

use common::accepts;
use maskwright_grammar_core::automaton::Recognizer;
use maskwright_json_schema::{
    Compiled, Draft, FormatPolicy, Options, WarningReason, compile,
    compile_value,
};

#[test]
fn unknown_keywords_are_listed_with_their_pointers() {
    let schema = r#"{
        "x-order": 1,
        "properties": {"a": {"type": "string", "typ": "x", "title": "A"}}
    }"#;
    let compiled = compile(schema, &Options::default()).expect("valid");
    let unknown: Vec<(&str, String)> = compiled
        .unknown_keywords()
        .map(|note| (&*note.keyword, note.location.to_string()))
        .collect();
    let places = unknown.iter().map(|(keyword, at)| (*keyword, at.as_str()));
    assert_eq!(
        places.collect::<Vec<_>>(),
        [("x-order", "/x-order"), ("typ", "/properties/a/typ")],
    );
    let texts = compiled.notes.iter().map(ToString::to_string);
    assert_eq!(texts.collect::<Vec<_>>(), compiled.warnings);
}

#[test]
fn every_reason_is_noted_and_only_unknown_keywords_are_listed_as_such() {
    let mut options = Options::default();
    options.parse.draft = Some(Draft::Draft7);
    let schema = r##"{
        "properties": {
            "a": {"$ref": "#/definitions/s", "minLength": 2},
            "b": {"format": "phone", "else": false},
            "c": {"prefixItems": [false]}
        },
        "definitions": {"s": {}}
    }"##;
    let compiled = compile(schema, &options).expect("valid");
    let notes: Vec<(&str, WarningReason)> = compiled
        .notes
        .iter()
        .map(|note| (note.location.pointer.as_str(), note.reason))
        .collect();
    assert_eq!(
        notes,
        [
            ("/properties/a/minLength", WarningReason::HiddenByRef),
            ("/properties/b/format", WarningReason::UnknownFormat),
            ("/properties/b/else", WarningReason::WithoutPartner),
            ("/properties/c/prefixItems", WarningReason::UnknownKeyword),
        ],
    );
    assert_eq!(compiled.unknown_keywords().count(), 1);
}

/// A ring of 41 keys, where one of each two that are next to each other, or
/// seven apart, has to come: that takes 21 at least, and there is room for 20.
/// No search within its budget says that they do not fit.
#[test]
fn a_state_in_which_something_was_assumed_is_counted() {
    let key = |n: u32| format!("k{}", n % 41);
    let either = |n: u32, m: u32| {
        let branch = |n| serde_json::json!({"required": [key(n)]});
        serde_json::json!({ "anyOf": [branch(n), branch(n + m)] })
    };
    let pairs = (0..41).flat_map(|n| [either(n, 1), either(n, 7)]);
    let schema = serde_json::json!({
        "type": "object",
        "maxProperties": 20,
        "allOf": pairs.collect::<Vec<_>>(),
        "properties": {"k0": {"type": "integer"}},
    });
    let options = Options::widest();
    let compiled = compile_value(&schema, &options).expect("undecided");
    let automaton = compiled.automaton.clone();
    let mut recognizer = Recognizer::new(automaton).expect("it starts");
    assert!(recognizer.push_bytes(b"{\"k0\":").expect("small"));
    let stats = compiled.stats();
    assert!(0 < stats.n_inexact, "{stats:?}");
    assert!(stats.n_inexact < stats.n_states, "{stats:?}");
}

#[test]
fn states_are_counted_as_they_are_made() {
    let schema = r#"{"properties": {"a": {"minimum": 3}}, "required": ["a"]}"#;
    let compiled = compile(schema, &Options::default()).expect("valid");
    let before = compiled.stats();
    let automaton = compiled.automaton.clone();
    let mut recognizer = Recognizer::new(automaton).expect("it starts");
    assert!(recognizer.push_bytes(b"{\"a\":17}").expect("small"));
    let after = compiled.stats();
    assert!(before.n_states < after.n_states, "{before:?} {after:?}");
    assert_eq!(after.n_inexact, 0);
}

fn lenient() -> Options {
    let mut options = Options::widest();
    options.parse.lenient = true;
    options.parse.format = FormatPolicy::AssertAll;
    options
}

/// The pointers and kinds of what was left out.
fn left_out(compiled: &Compiled) -> Vec<(&str, &str)> {
    let all = compiled.left_out.iter();
    all.map(|it| (it.location().pointer.as_str(), it.kind_name())).collect()
}

#[test]
fn what_cannot_be_enforced_is_left_out_and_listed() {
    let schema = r#"{"properties": {
        "a": {"pattern": "^(.)\\1$", "minLength": 2},
        "b": {"format": "phone", "type": "string"}
    }}"#;
    let compiled = compile(schema, &lenient()).expect("lenient");
    assert_eq!(
        left_out(&compiled),
        [
            ("/properties/a/pattern", "unsupported_regex"),
            ("/properties/b/format", "unknown_format"),
        ],
    );
    assert_eq!(compiled.warnings.len(), 2, "{:?}", compiled.warnings);
    assert!(accepts(&compiled, r#"{"a":"ab","b":""}"#));
    assert!(!accepts(&compiled, r#"{"a":"a"}"#));
    assert!(!accepts(&compiled, r#"{"b":1}"#));
    let strict = Options { text: lenient().text, ..Options::default() };
    assert!(compile(schema, &strict).is_err());
}

/// No key may be refused, or held to a schema, for a pattern that nobody
/// knows it does not match.
#[test]
fn a_pattern_of_keys_that_is_left_out_takes_every_key() {
    let schema = r#"{
        "patternProperties": {
            "^(.)\\1$": {"type": "string"},
            "^n": {"type": "number"}
        },
        "properties": {"s": {"type": "string"}},
        "additionalProperties": false
    }"#;
    let compiled = compile(schema, &lenient()).expect("lenient");
    let place = "/patternProperties/^(.)\\1$";
    assert_eq!(left_out(&compiled), [(place, "unsupported_regex")]);
    assert!(accepts(&compiled, r#"{"aa":1,"ab":"","n":1,"s":""}"#));
    assert!(!accepts(&compiled, r#"{"n":""}"#));
    assert!(!accepts(&compiled, r#"{"s":1}"#));
    let unevaluated = r#"{
        "allOf": [{"patternProperties": {"^(.)\\1$": true}}],
        "unevaluatedProperties": false
    }"#;
    let compiled = compile(unevaluated, &lenient()).expect("lenient");
    assert!(accepts(&compiled, r#"{"aa":1,"ab":1}"#));
}

#[test]
fn faults_of_a_schema_are_errors_however_lenient() {
    for (schema, kind) in [
        (r#"{"pattern": "("}"#, "invalid_regex"),
        (r##"{"$ref": "#/definitions/none"}"##, "unresolved_ref"),
        (r#"{"minimum": "3"}"#, "invalid_keyword"),
        (r#"{"not": {"pattern": "^(.)\\1$"}}"#, "unsatisfiable"),
        (
            r#"{"allOf": [{"type": "null"}, {"type": "array"}]}"#,
            "unsatisfiable",
        ),
    ] {
        let error = compile(schema, &lenient()).expect_err(schema);
        assert_eq!(error.kind_name(), kind, "{schema}: {error}");
    }
}

/// Branches that nothing tells apart for certain: a member that is read first
/// leaves very many ways, but few questions about its value.
#[test]
fn branches_that_overlap_are_decided() {
    let branches: Vec<String> = (0..5)
        .map(|n| {
            format!(
                r#"{{"properties": {{
                    "command": {{"enum": ["c{n}"]}},
                    "parameters": {{"required": ["p{n}", "q"]}}
                }}}}"#
            )
        })
        .collect();
    let schema =
        format!(r#"{{"type": "object", "oneOf": [{}]}}"#, branches.join(", "));
    let compiled = compile(&schema, &Options::widest()).expect("valid");
    for (text, want) in [
        (r#"{"parameters":{"p3":1,"q":1}}"#, true),
        (r#"{"parameters":{"p3":1,"p1":2,"q":1}}"#, false),
        (r#"{"parameters":{"p3":1,"p1":2,"q":1},"command":"c1"}"#, true),
        (r#"{"parameters":{"p3":1,"q":1},"command":"c1"}"#, false),
        (r#"{"command":"c1","parameters":1}"#, true),
        (r#"{"parameters":{}}"#, false),
    ] {
        assert_eq!(accepts(&compiled, text), want, "{text}");
    }
    assert_eq!(compiled.stats().n_inexact, 0);
}

/// A schema that applies itself to the same value is refused before any text
/// is read, whatever the kind of the reference, and wherever it is.
#[test]
fn a_cycle_in_place_is_an_error_of_the_schema() {
    for (draft, schema) in [
        (
            "2019-09",
            r##"{"dependentSchemas": {"b": {"$recursiveRef": "#"}}}"##,
        ),
        (
            "2019-09",
            r##"{"$recursiveAnchor": true, "type": ["null", "object"],
                "dependentSchemas": {"b": {"$recursiveRef": "#"}}}"##,
        ),
        (
            "2020-12",
            r##"{"items": {"$dynamicAnchor": "x", "dependentSchemas": {
                "b": {"not": {"$dynamicRef": "#x"}}}}}"##,
        ),
        (
            "2020-12",
            r##"{"$id": "http://a/", "additionalProperties": {
                    "anyOf": [{"$ref": "tree"}, {"type": "null"}]},
                "$defs": {"t": {"$id": "tree", "$dynamicAnchor": "n",
                    "properties": {"c": {"allOf": [{"$dynamicRef": "#n"}],
                        "$dynamicAnchor": "m"}},
                    "if": {"$dynamicRef": "#n"}}}}"##,
        ),
    ] {
        let mut options = Options::widest();
        let uri = format!("https://json-schema.org/draft/{draft}/schema");
        options.parse.draft = Draft::from_uri(&uri);
        let error = compile(schema, &options).expect_err(schema);
        assert_eq!(error.kind_name(), "in_place_cycle", "{schema} {error}");
    }
    let tree = r##"{"$dynamicAnchor": "n", "dependentSchemas": {"b": {
        "properties": {"c": {"$dynamicRef": "#n"}}}}}"##;
    compile(tree, &Options::widest()).expect("one level deeper");
}

/// Branches of a `oneOf` that a member tells apart are simple where it must
/// exist, and exclude each other where it does not.
#[test]
fn branches_with_a_discriminating_member_are_exact() {
    let branch = |n: u32| {
        let options = serde_json::json!({
            "type": "object", "required": [format!("o{n}")],
        });
        serde_json::json!({"properties": {
            "kind": {"enum": [format!("k{n}")]}, "options": options,
        }})
    };
    let branches: Vec<_> = (0..12).map(branch).collect();
    let some = serde_json::json!({"type": "object", "oneOf": branches});
    let mut required = some.clone();
    required["required"] = serde_json::json!(["kind"]);
    let cases = [
        (r#"{"kind":"k3","options":{"o3":1}}"#, true, true),
        (r#"{"options":{"o3":1},"kind":"k3"}"#, true, true),
        (r#"{"options":{"o4":1},"kind":"k3"}"#, false, false),
        (r#"{"kind":"k12"}"#, false, false),
        (r#"{"kind":"k0"}"#, true, true),
        (r#"{"options":{"o5":1}}"#, true, false),
        (r#"{"options":{"o5":1,"o6":1}}"#, false, false),
        ("{}", false, false),
    ];
    for (schema, is_required) in [(&some, false), (&required, true)] {
        let compiled =
            compile_value(schema, &Options::widest()).expect("valid");
        for (text, valid, valid_if_required) in cases {
            let valid = if is_required { valid_if_required } else { valid };
            assert_eq!(accepts(&compiled, text), valid, "{schema} {text}");
        }
        assert_eq!(compiled.stats().n_inexact, 0, "{schema}");
    }
}
