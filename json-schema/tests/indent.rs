//! Texts on many lines: exactly what `json.dumps(value, indent=n)` writes.

mod common;
#[path = "common/lines.rs"]
mod lines;

use common::accepts;
use lines::{Quoted, indented, one_line};
use maskwright_grammar_core::automaton::{
    Completions, Machine, Recognizer, StackLimits,
};
use maskwright_json_schema::{
    Compiled, FormatPolicy, Options, Order, Whitespace, compile_value,
};
use serde_json::{Value, json};

const WIDTHS: [u8; 4] = [0, 1, 2, 4];

fn options(whitespace: Whitespace, order: Order) -> Options {
    let mut options = Options::widest();
    options.parse.format = FormatPolicy::AssertKnown;
    options.text.whitespace = whitespace;
    options.text.order = order;
    options
}

fn compiled(schema: &Value, whitespace: Whitespace, order: Order) -> Compiled {
    compile_value(schema, &options(whitespace, order)).expect("valid")
}

/// A schema, instances (members in the order of the schema), and values that
/// are none.
struct Case {
    schema: Value,
    valid: Vec<Value>,
    invalid: Vec<Value>,
}

fn free() -> Case {
    Case {
        schema: json!(true),
        valid: vec![
            json!({}),
            json!([]),
            json!(null),
            json!("\n \" , { \\"),
            json!(-12.5),
            json!([[], {}, [[]], [{}], {"a": []}]),
            json!({"a": {"b": {"": [1, "x, y: z", true]}}, "c": [[2]]}),
        ],
        invalid: vec![],
    }
}

fn objects() -> Vec<Case> {
    vec![
        Case {
            schema: json!({
                "type": "object",
                "properties": {
                    "a": {"type": "integer", "minimum": 3},
                    "b": {"type": "array", "items": {"type": "string"}},
                    "c": {"properties": {"d": {"type": ["null", "number"]}}}
                },
                "required": ["a"]
            }),
            valid: vec![
                json!({"a": 3}),
                json!({"a": 30, "b": [], "c": {}}),
                json!({"a": 4, "b": ["x", "y"], "c": {"d": 1e5, "e": [0]}}),
                json!({"a": 5, "c": [], "z": {"y": {}}}),
            ],
            invalid: vec![json!({}), json!({"a": 2}), json!({"a": 3, "b": 0})],
        },
        Case {
            schema: json!({"type": "object", "additionalProperties": false}),
            valid: vec![json!({})],
            invalid: vec![json!({"a": 1}), json!([])],
        },
        Case {
            schema: json!({
                "patternProperties": {
                    "^n": {"type": "number"},
                    "s$": {"type": ["number", "object"], "maxProperties": 1}
                },
                "additionalProperties": {"maxItems": 1},
                "minProperties": 1
            }),
            valid: vec![
                json!({"ns": 1, "s": {}, "other": []}),
                json!({"s": {"s": [1]}, "x": [[1, 2]]}),
            ],
            invalid: vec![json!({}), json!({"ns": {}}), json!({"x": [1, 2]})],
        },
        Case {
            schema: json!({
                "oneOf": [
                    {"properties": {"k": {"const": 1}}, "required": ["v"]},
                    {"properties": {"k": {"enum": [1, {"l": []}]}}}
                ],
                "type": "object",
                "propertyNames": {"maxLength": 1}
            }),
            valid: vec![
                json!({"k": 1}),
                json!({"k": {"l": []}, "v": [1]}),
                json!({}),
            ],
            invalid: vec![json!({"k": 1, "v": [1]}), json!({"kk": 1})],
        },
        Case {
            schema: json!({
                "type": "object",
                "properties": {
                    "next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}
                },
                "required": ["next"],
                "additionalProperties": false
            }),
            valid: vec![json!({"next": {"next": {"next": null}}})],
            invalid: vec![json!({"next": {"next": {}}})],
        },
    ]
}

fn arrays() -> Vec<Case> {
    let checked = json!({"type": "string", "format": "regex"});
    vec![
        Case {
            schema: json!({"type": "array", "maxItems": 0}),
            valid: vec![json!([])],
            invalid: vec![json!([1]), json!([[]])],
        },
        Case {
            schema: json!({
                "prefixItems": [{"type": "object"}, {"type": "integer"}],
                "items": {"type": "array", "minItems": 1},
                "minItems": 2,
                "maxItems": 3,
                "type": "array"
            }),
            valid: vec![json!([{}, 1]), json!([{"a": 1}, 12, [[]]])],
            invalid: vec![json!([{}]), json!([{}, 1, []])],
        },
        Case {
            schema: json!({"type": "array", "uniqueItems": true}),
            valid: vec![
                json!([]),
                json!([[1], [2], [[1]], {"a": [1]}, {"a": [1, 2]}, 1, "a"]),
                json!([{"a": 1, "b": []}, {"a": 1, "b": [[]]}, {}, []]),
            ],
            invalid: vec![
                json!([[1], [1]]),
                json!([{"a": {"b": [1]}}, 2, {"a": {"b": [1]}}]),
                json!([{"a": 1, "b": 2}, {"b": 2, "a": 1}]),
                json!([1, 1]),
            ],
        },
        Case {
            schema: json!({
                "type": "array",
                "not": {"uniqueItems": true},
                "items": {"enum": [[1], {}, null]}
            }),
            valid: vec![json!([[1], {}, [1]]), json!([{}, {}])],
            invalid: vec![json!([[1], {}]), json!([{"a": 1}, {"a": 1}])],
        },
        Case {
            schema: json!({
                "type": "array",
                "uniqueItems": true,
                "items": {
                    "properties": {"p": checked, "q": {"maxLength": 900}}
                }
            }),
            valid: vec![json!([{"p": "(a)"}, {"p": "(b)", "q": "q"}])],
            invalid: vec![
                json!([{"p": "(a"}]),
                json!([{"p": "(a)", "q": "q"}, {"p": "(a)", "q": "q"}]),
            ],
        },
        Case {
            schema: json!({
                "type": "array", "contains": checked, "maxContains": 1
            }),
            valid: vec![json!(["(", "(a)", ["(a)"]])],
            invalid: vec![json!(["(a)", "(b)"]), json!([])],
        },
        Case {
            schema: json!({"enum": [[], [[]], {"a": [1, {}]}, "x"]}),
            valid: vec![json!([]), json!([[]]), json!({"a": [1, {}]})],
            invalid: vec![json!([[[]]]), json!({"a": [1]})],
        },
    ]
}

fn cases() -> impl Iterator<Item = Case> {
    [free()].into_iter().chain(objects()).chain(arrays())
}

#[test]
fn the_lines_are_those_of_a_pretty_printer() {
    for value in cases().flat_map(|case| case.valid) {
        let text = serde_json::to_string_pretty(&value).expect("writes");
        assert_eq!(indented(&value.to_string(), 2), text);
        assert_eq!(one_line(&text), value.to_string());
    }
    let text = "[\n 1,\n {},\n {\n  \"a\": []\n }\n]";
    assert_eq!(indented(r#"[1, {}, {"a":[]}]"#, 1), text);
    assert_eq!(indented("[ [1] ]", 0), "[\n[\n1\n]\n]");
}

#[test]
fn instances_are_accepted_on_lines_and_only_so() {
    for case in cases() {
        for (width, order) in WIDTHS
            .into_iter()
            .flat_map(|width| [(width, Order::Any), (width, Order::Schema)])
        {
            let policy = Whitespace::Indent { width };
            let compiled = compiled(&case.schema, policy, order);
            for value in &case.valid {
                let compact = value.to_string();
                let text = indented(&compact, width);
                assert!(accepts(&compiled, &text), "{}: {text}", case.schema);
                let is_same = compact == text;
                assert_eq!(accepts(&compiled, &compact), is_same, "{compact}");
            }
            for value in &case.invalid {
                let text = indented(&value.to_string(), width);
                assert!(!accepts(&compiled, &text), "{}: {text}", case.schema);
            }
        }
    }
}

/// Every text that differs by one byte of white space outside of strings.
fn nearly(text: &str) -> Vec<String> {
    const SPACES: [&str; 4] = [" ", "\n", "\t", "\r"];
    let mut all = Vec::new();
    let mut quoted = Quoted::default();
    for (at, character) in text.char_indices() {
        if quoted.goes_on(character) {
            continue;
        }
        let (before, after) = text.split_at(at);
        all.extend(SPACES.map(|space| format!("{before}{space}{after}")));
        if character.is_ascii_whitespace() {
            let after = &after[1..];
            all.extend(SPACES.map(|space| format!("{before}{space}{after}")));
            all.push(format!("{before}{after}"));
        }
    }
    all.extend(SPACES.map(|space| format!("{text}{space}")));
    all.retain(|other| other != text);
    all
}

#[test]
fn one_byte_of_white_space_makes_a_difference() {
    let mut n_texts = 0;
    for case in cases() {
        for width in WIDTHS {
            let policy = Whitespace::Indent { width };
            let compiled = compiled(&case.schema, policy, Order::Any);
            for value in &case.valid {
                for text in nearly(&indented(&value.to_string(), width)) {
                    n_texts += 1;
                    assert!(!accepts(&compiled, &text), "{text:?}");
                }
            }
        }
    }
    assert!(n_texts > 10_000, "{n_texts}");
}

/// Draws a text byte by byte, and completes it.
fn draw(compiled: &Compiled, n_bytes: usize, random: &mut Random) -> String {
    let automaton = compiled.automaton.clone();
    let mut recognizer =
        Recognizer::new(automaton.clone()).expect("it starts");
    let mut text = Vec::new();
    while text.len() < n_bytes {
        let allowed = recognizer.allowed_bytes().expect("under the limits");
        let bytes: Vec<u8> =
            (0..=u8::MAX).filter(|&b| allowed[usize::from(b)]).collect();
        if bytes.is_empty() {
            assert!(recognizer.is_accepting().expect("under the limits"));
            break;
        }
        // Mostly those that say something about lines.
        let structure: Vec<u8> = bytes
            .iter()
            .copied()
            .filter(|byte| b"{}[],:\"\n 1a".contains(byte))
            .collect();
        let rare = structure.is_empty() || random.below(8) == 0;
        let from = if rare { &bytes } else { &structure };
        let byte = from[random.below(from.len())];
        assert!(recognizer.push_byte(byte).expect("under the limits"));
        text.push(byte);
    }
    let end = Completions::new()
        .shortest(
            Machine::new(&*automaton),
            StackLimits::default(),
            recognizer.configuration(),
        )
        .expect("under the limits");
    let Some(end) = end else {
        let text = String::from_utf8_lossy(&text);
        panic!("{text:?} is not completed");
    };
    text.extend(end);
    String::from_utf8(text).expect("machines write UTF-8")
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % n
    }
}

/// Both policies accept the same values: what is drawn on one line is
/// accepted on many, and the other way round.
#[test]
fn what_is_drawn_is_indented() {
    let mut random = Random(1);
    let mut n_lines = 0;
    for (number, case) in cases().enumerate() {
        let width = WIDTHS[number % WIDTHS.len()];
        let policy = Whitespace::Indent { width };
        for order in [Order::Any, Order::Schema] {
            let line = compiled(&case.schema, Whitespace::Compact, order);
            let lines = compiled(&case.schema, policy, order);
            for _ in 0..20 {
                let text = draw(&lines, 60, &mut random);
                let value = serde_json::from_str::<Value>(&text);
                assert!(value.is_ok(), "{text:?}: {value:?}");
                assert_eq!(text, indented(&text, width));
                assert!(accepts(&line, &one_line(&text)), "{text}");
                n_lines += text.lines().count();
                let text = draw(&line, 30, &mut random);
                assert!(accepts(&lines, &indented(&text, width)), "{text}");
            }
        }
    }
    assert!(n_lines > 2_000, "{n_lines}");
}

#[test]
fn where_nothing_else_can_come_nothing_else_is_offered() {
    let next = |schema: &Value, text: &str| -> String {
        let policy = Whitespace::Indent { width: 2 };
        let compiled = compiled(schema, policy, Order::Schema);
        let automaton = compiled.automaton.clone();
        let mut recognizer = Recognizer::new(automaton).expect("it starts");
        let read = recognizer.push_bytes(text.as_bytes()).expect("short");
        assert!(read, "{text}");
        let allowed = recognizer.allowed_bytes().expect("under the limits");
        (0..=u8::MAX)
            .filter(|&byte| allowed[usize::from(byte)])
            .map(char::from)
            .collect()
    };
    let empty = json!({"type": "array", "maxItems": 0});
    assert_eq!(next(&empty, "["), "]");
    let one = json!({
        "type": "array", "items": {"const": true}, "minItems": 1, "maxItems": 1
    });
    assert_eq!(next(&one, "["), "\n");
    assert_eq!(next(&one, "[\n "), " ");
    assert_eq!(next(&one, "[\n  "), "t");
    assert_eq!(next(&one, "[\n  true"), "\n");
    assert_eq!(next(&one, "[\n  true\n"), "]");
    let two = json!({
        "type": "object", "required": ["a", "b"], "maxProperties": 2
    });
    assert_eq!(next(&two, "{\n  \"a\""), ":");
    assert_eq!(next(&two, "{\n  \"a\":"), " ");
    assert_eq!(next(&two, "{\n  \"a\": {}"), ",");
    assert_eq!(next(&two, "{\n  \"a\": {},\n  "), "\"");
    assert_eq!(next(&two, "{\n  \"a\": {},\n  \"b\": []"), "\n");
    assert_eq!(next(&json!(true), "[\n  {}"), "\n,");
}

#[test]
fn depth_is_not_limited_by_indentation() {
    let text = "[".repeat(200) + &"]".repeat(200);
    let width = 2;
    for schema in [
        json!(true),
        json!({"type": "array", "items": {"$ref": "#"}, "uniqueItems": true}),
    ] {
        let policy = Whitespace::Indent { width };
        let compiled = compiled(&schema, policy, Order::Any);
        assert!(accepts(&compiled, &indented(&text, width)));
    }
}
