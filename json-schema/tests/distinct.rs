//! `uniqueItems` by bytes, against brute force: every text over a few bytes
//! up to a length is accepted just if its value is valid, and every prefix
//! that is alive can be completed.

use std::sync::Arc;

use maskwright_grammar_core::automaton::{Automaton, Recognizer};
use maskwright_json_schema::{
    Options, Order, compile_value,
    formula::{Formulas, Tracker},
    parse,
};
use serde_json::{Value, json};

/// A recognizer is cheap to run again, and tests are clearest without state.
fn read(automaton: &Arc<dyn Automaton>, text: &[u8]) -> Option<bool> {
    let mut recognizer =
        Recognizer::new(Arc::clone(automaton)).expect("it starts");
    let alive = recognizer.push_bytes(text).expect("under the limits");
    alive.then(|| recognizer.is_accepting().expect("under the limits"))
}

struct Brute {
    automaton: Arc<dyn Automaton>,
    any: Arc<dyn Automaton>,
    formulas: Formulas,
    n_texts: usize,
    n_valid: usize,
}

impl Brute {
    fn new(schema: &Value, options: &Options) -> Brute {
        let compiled = compile_value(schema, options).expect("compiles");
        let any = compile_value(&json!(true), options).expect("compiles");
        let (parsed, pool) =
            parse::parse_value(schema, &options.parse).expect("parses");
        let limits = parse::Limits::default();
        Brute {
            automaton: compiled.automaton,
            any: any.automaton,
            formulas: Formulas::new(Arc::new(parsed), pool, limits),
            n_texts: 0,
            n_valid: 0,
        }
    }

    fn is_valid(&mut self, text: &[u8]) -> bool {
        let text = std::str::from_utf8(text).expect("ASCII");
        let value = parse::read_json(text, 64).expect("JSON");
        let mut tracker = Tracker::new(&mut self.formulas);
        tracker.validate(&value).expect("under the limits")
    }

    /// Checks all texts that begin with `prefix` and have at most `max`
    /// bytes. Returns whether any of them is valid.
    fn check(
        &mut self,
        prefix: &mut Vec<u8>,
        bytes: &[u8],
        max: usize,
    ) -> bool {
        let Some(is_json) = read(&self.any, prefix) else { return false };
        let ours = read(&self.automaton, prefix);
        let mut found = false;
        if is_json {
            self.n_texts += 1;
            found = self.is_valid(prefix);
            self.n_valid += usize::from(found);
            let text = String::from_utf8_lossy(prefix);
            assert_eq!(ours == Some(true), found, "{text}");
        }
        if prefix.len() < max {
            for &byte in bytes {
                prefix.push(byte);
                found |= self.check(prefix, bytes, max);
                prefix.pop();
            }
        }
        if found {
            let text = String::from_utf8_lossy(prefix);
            assert!(ours.is_some(), "{text} can be completed");
        }
        found
    }

    /// Checks that every prefix of at most `max` bytes that is alive can be
    /// completed with at most `more` bytes.
    fn check_alive(
        &mut self,
        prefix: &mut Vec<u8>,
        bytes: &[u8],
        (max, more): (usize, usize),
    ) {
        if read(&self.automaton, prefix).is_none() {
            return;
        }
        let text = String::from_utf8_lossy(prefix).into_owned();
        let ends = completes(&self.automaton, prefix, bytes, more);
        assert!(ends, "{text} is a dead end");
        if prefix.len() < max {
            for &byte in bytes {
                prefix.push(byte);
                self.check_alive(prefix, bytes, (max, more));
                prefix.pop();
            }
        }
    }
}

fn completes(
    automaton: &Arc<dyn Automaton>,
    prefix: &mut Vec<u8>,
    bytes: &[u8],
    more: usize,
) -> bool {
    match read(automaton, prefix) {
        None => return false,
        Some(true) => return true,
        Some(false) => {}
    }
    more > 0
        && bytes.iter().any(|&byte| {
            prefix.push(byte);
            let ends = completes(automaton, prefix, bytes, more - 1);
            prefix.pop();
            ends
        })
}

fn options() -> Options {
    let mut options = Options::default();
    options.text.order = Order::Any;
    options.text.whitespace = maskwright_json_schema::Whitespace::Compact;
    options
}

#[test]
fn texts_are_accepted_just_if_valid() {
    let unique = json!({"type": "array", "uniqueItems": true});
    let cases: &[(Value, &[u8], usize)] = &[
        (unique.clone(), b"[],12", 8),
        (unique.clone(), b"[],1.0", 8),
        (unique.clone(), b"[],\"ab", 8),
        (unique.clone(), b"[]{},:\"a", 8),
        (
            json!({"uniqueItems": true, "items": {"uniqueItems": true}}),
            b"[],1",
            8,
        ),
        (json!({"type": "array", "not": {"uniqueItems": true}}), b"[],12", 8),
        (json!({"type": "array", "not": {"uniqueItems": true}}), b"[],\"a", 8),
        (
            json!({"type": "array", "oneOf": [
                {"uniqueItems": true}, {"maxItems": 2},
            ]}),
            b"[],12",
            8,
        ),
        (
            json!({"type": "array", "anyOf": [
                {"uniqueItems": true, "minItems": 3},
                {"not": {"uniqueItems": true}, "contains": {"const": 2}},
            ]}),
            b"[],12",
            8,
        ),
        (
            json!({
                "type": "array",
                "if": {"uniqueItems": true},
                "then": {"items": {"const": 1}},
                "else": {"maxItems": 2},
            }),
            b"[],12",
            8,
        ),
        (
            json!({"type": "array", "items": {"type": "array"},
                "uniqueItems": true, "contains": {"minItems": 1}}),
            b"[],1",
            9,
        ),
        (
            json!({"type": "array", "uniqueItems": true,
                "unevaluatedItems": false,
                "anyOf": [{"prefixItems": [{"const": 1}, true]}, true]}),
            b"[],12",
            8,
        ),
    ];
    for (schema, bytes, max) in cases {
        let mut brute = Brute::new(schema, &options());
        brute.check(&mut Vec::new(), bytes, *max);
        let Brute { n_texts, n_valid, .. } = brute;
        assert!(n_valid > 0 && n_valid < n_texts, "{schema}");
    }
}

#[test]
fn what_is_alive_can_be_completed() {
    let array = |items: Value, min: u64| {
        json!({"type": "array", "uniqueItems": true, "items": items,
            "minItems": min})
    };
    let cases: &[(Value, &[u8], (usize, usize))] = &[
        (array(json!({"enum": ["a", "b"]}), 2), b"[],\"ab", (10, 9)),
        (array(json!({"enum": ["a", "ab", 1]}), 3), b"[],\"ab1", (11, 12)),
        (
            array(json!({"type": ["boolean", "null"]}), 2),
            b"[],truefalsn",
            (6, 12),
        ),
        (
            array(json!({"type": "integer", "minimum": 0, "maximum": 2}), 3),
            b"[],0123",
            (7, 7),
        ),
        (
            array(json!({"type": "integer", "minimum": 9, "maximum": 11}), 2),
            b"[],019",
            (8, 8),
        ),
        (array(json!({"type": "integer"}), 3), b"[],0-1", (7, 9)),
        (
            array(json!({"type": "string", "maxLength": 1}), 2),
            b"[],\"ab",
            (8, 9),
        ),
        (
            array(json!({"type": "string", "pattern": "^(x|y[0-9])$"}), 2),
            b"[],\"xy01",
            (10, 10),
        ),
    ];
    for (schema, bytes, bounds) in cases {
        let mut brute = Brute::new(schema, &options());
        brute.check_alive(&mut Vec::new(), bytes, *bounds);
    }
}

#[test]
fn too_many_different_items_are_unsatisfiable() {
    for (items, min) in [
        (json!({"enum": ["r", "g", "b"]}), 4),
        (json!({"type": ["boolean", "null"]}), 4),
        (json!({"type": "integer", "minimum": 1, "maximum": 300}), 301),
        (json!({"const": {"a": 1}}), 2),
    ] {
        let schema = json!({"type": "array", "items": items,
            "uniqueItems": true, "minItems": min});
        let refused = compile_value(&schema, &Options::default());
        let error = refused.expect_err("there are not so many values");
        assert_eq!(error.kind_name(), "unsatisfiable", "{schema}: {error}");
    }
}

#[test]
fn every_spelling_of_an_item_is_the_same() {
    let schema = json!({"uniqueItems": true});
    let compiled = compile_value(&schema, &Options::widest());
    let automaton = compiled.expect("compiles").automaton;
    for (text, want) in [
        (r#"["a","\u0061"]"#, false),
        (r#"[ {"a" : 1 , "b":[ ]}, {"b":[],"\u0061":1.0} ]"#, false),
        (r#"[{"a":1,"b":2},{"a":2,"b":1}]"#, true),
        (r"[1e2,100]", false),
        (r"[1e400,10e399]", false),
        (r"[1e400,10e398]", true),
        (r"[0,-0]", false),
        (r"[[1],[true]]", true),
        (r#"["1",1,true,null,"null","true",[],{},""]"#, true),
        (r#"[[["x"]],[["\u0078"]]]"#, false),
        ("[[[1],[1]],[[1],[2]]]", true),
    ] {
        assert_eq!(
            read(&automaton, text.as_bytes()) == Some(true),
            want,
            "{text}"
        );
    }
}

/// Keys count, whether the object may have others or not.
#[test]
fn items_with_different_keys_differ() {
    for items in [
        json!({"enum": [{"a": 1}, {"b": 1}, {"a": 1, "b": 1}]}),
        json!({
            "properties": {"a": {}, "b": {}}, "additionalProperties": false,
        }),
        json!({"properties": {"a": {}, "b": {}}}),
        json!({"patternProperties": {"^[ab]$": {}}}),
        json!({"patternProperties": {"^a": {}, "b$": {}}}),
        json!({"propertyNames": {"enum": ["a", "b"]}}),
        json!({"propertyNames": {"enum": ["a", "b"]}, "maxProperties": 2,
               "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        json!({"additionalProperties": {"const": 1}}),
        json!(true),
    ] {
        let schema = json!({"uniqueItems": true, "items": items});
        let compiled = compile_value(&schema, &Options::widest());
        let automaton = compiled.expect("compiles").automaton;
        for (text, valid) in [
            (r#"[{"a":1},{"b":1}]"#, true),
            (r#"[{"a":1},{"a":1,"b":1},{"b":1}]"#, true),
            (r#"[{"a":1},{"a":1}]"#, false),
            (r#"[{"a":1},{"\u0061":1.0}]"#, false),
            (r#"[{"a":1,"b":1},{"b":1},{"b":1,"a":1}]"#, false),
        ] {
            let read = read(&automaton, text.as_bytes());
            assert_eq!(read == Some(true), valid, "{schema} {text}");
        }
    }
}

/// Items within items of the same kind are recorded by the same states.
#[test]
fn items_are_recorded_at_every_depth() {
    let schema = json!({
        "uniqueItems": true,
        "items": {"$ref": "#"},
        "properties": {"a": {"$ref": "#"}},
        "additionalProperties": {"$ref": "#"},
    });
    let compiled = compile_value(&schema, &Options::widest());
    let automaton = compiled.expect("compiles").automaton;
    for (text, valid) in [
        (r#"[[[1],[2]],[[2],[1]],{"a":[{"a":1},{"b":1}]}]"#, true),
        ("[[[1],[2]],[[2],[1]],[[1],[2]]]", false),
        (r#"{"a":[{"a":[1,1.0]}]}"#, false),
        (r#"{"b":[{"c":[1,2]},{"c":[2,1]}]}"#, true),
    ] {
        let read = read(&automaton, text.as_bytes());
        assert_eq!(read == Some(true), valid, "{schema} {text}");
    }
}
