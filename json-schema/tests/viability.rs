//! Viability against the verdicts of the tracker, on random schemas.

#![allow(clippy::print_stderr, reason = "a test tells its counts")]

use std::sync::Arc;

use maskwright_json_schema::formula::{FormulaId, Formulas, Tracker};
use maskwright_json_schema::parse::{JsonType, Limits, Options, parse_value};
use maskwright_json_schema::viability::{COMPILE_BUDGET, Verdict, Viability};
use serde_json::{Map, Value, json};

/// A small generator (xorshift), so that a seed is a reproducer.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).expect("small")
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

const KEYS: &[&str] = &["a", "b", "c"];

const KEYWORDS: &[&str] = &[
    "properties",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "items",
    "prefixItems",
    "contains",
    "minItems",
    "maxItems",
    "uniqueItems",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "unevaluatedProperties",
    "unevaluatedItems",
    "type",
    "enum",
];

fn scalar(random: &mut Random) -> Value {
    let scalars = [
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(2),
        json!(1.5),
        json!(""),
        json!("a"),
        json!("b"),
        json!("ab"),
    ];
    random.pick(&scalars).clone()
}

fn leaf(random: &mut Random) -> Value {
    let leaves = [
        json!(true),
        json!(false),
        json!({"type": "integer"}),
        json!({"type": "string"}),
        json!({"type": "object"}),
        json!({"type": "array"}),
        json!({"type": "null"}),
        json!({"minimum": 1}),
        json!({"maximum": 1}),
        json!({"multipleOf": 2}),
        json!({"minLength": 1}),
        json!({"maxLength": 1}),
        json!({"pattern": "^a"}),
        json!({"exclusiveMinimum": 0}),
        json!({"not": {"type": "string"}}),
        json!({"enum": [{"a": 1}, [1], 0]}),
        json!({"enum": [0, "a", null]}),
    ];
    if random.below(4) == 0 {
        return json!({"const": scalar(random)});
    }
    random.pick(&leaves).clone()
}

fn keyword(random: &mut Random, name: &str, depth: usize) -> Value {
    let key = |random: &mut Random| (*random.pick(KEYS)).to_owned();
    let one = |key: String, value: Value| {
        Value::Object(Map::from_iter([(key, value)]))
    };
    match name {
        "properties" | "dependentSchemas" => {
            let mut map = Map::new();
            for _ in 0..=random.below(2) {
                map.insert(key(random), schema(random, depth - 1));
            }
            Value::Object(map)
        }
        "required" => json!([key(random)]),
        "patternProperties" => {
            let patterns = ["^[ab]", "[bc]", "a"];
            let pattern = (*random.pick(&patterns)).to_owned();
            one(pattern, schema(random, depth - 1))
        }
        "propertyNames" => {
            let names = [
                json!({"enum": ["a", "b"]}),
                json!({"pattern": "[ac]"}),
                json!({"not": {"const": "a"}}),
                json!(false),
            ];
            random.pick(&names).clone()
        }
        "minProperties" | "maxProperties" | "minItems" | "maxItems" => {
            json!(random.below(4))
        }
        "dependentRequired" => one(key(random), json!([key(random)])),
        "prefixItems" | "allOf" | "anyOf" | "oneOf" => {
            let n = 2 + random.below(2);
            (0..n).map(|_| schema(random, depth - 1)).collect()
        }
        "uniqueItems" => json!(true),
        "type" => {
            let types = [
                json!("object"),
                json!("array"),
                json!(["object", "null"]),
                json!(["array", "object", "string"]),
            ];
            random.pick(&types).clone()
        }
        "enum" => {
            let enums = [
                json!([{"a": 1}, {"b": [0]}, 1]),
                json!([[0, 1], [1], {}]),
                json!([null, true, false, 0]),
            ];
            random.pick(&enums).clone()
        }
        "additionalProperties"
        | "unevaluatedProperties"
        | "items"
        | "unevaluatedItems"
            if random.below(2) == 0 =>
        {
            json!(false)
        }
        _ => schema(random, depth - 1),
    }
}

fn schema(random: &mut Random, depth: usize) -> Value {
    if depth == 0 || random.below(8) == 0 {
        return leaf(random);
    }
    let mut map = Map::new();
    for _ in 0..=random.below(3) {
        let name = *random.pick(KEYWORDS);
        map.insert(name.to_owned(), keyword(random, name, depth));
        if name == "if" {
            map.insert("then".to_owned(), schema(random, depth - 1));
            map.insert("else".to_owned(), schema(random, depth - 1));
        }
        if name == "contains" && random.below(2) == 0 {
            map.insert("minContains".to_owned(), json!(random.below(3)));
            map.insert("maxContains".to_owned(), json!(random.below(3)));
        }
    }
    if random.below(10) == 0 {
        let mut properties = Map::new();
        let key = (*random.pick(KEYS)).to_owned();
        properties.insert(key, json!({"$ref": "#"}));
        map.insert("properties".to_owned(), Value::Object(properties));
    }
    Value::Object(map)
}

fn document(random: &mut Random, depth: usize) -> Value {
    match random.below(10) {
        _ if depth == 0 => scalar(random),
        0..=2 => scalar(random),
        3..=6 => {
            let mut map = Map::new();
            for _ in 0..random.below(4) {
                let key = (*random.pick(KEYS)).to_owned();
                map.insert(key, document(random, depth - 1));
            }
            Value::Object(map)
        }
        _ => {
            let n = random.below(4);
            (0..n).map(|_| document(random, depth - 1)).collect()
        }
    }
}

fn compile(schema: &Value) -> Option<Formulas> {
    let (schema, pool) = parse_value(schema, &Options::default()).ok()?;
    Some(Formulas::new(Arc::new(schema), pool, Limits::default()))
}

/// The residual formulas of the objects and arrays on the top level of a
/// document, member by member.
fn residuals(
    formulas: &mut Formulas,
    data: &Value,
) -> Vec<(FormulaId, JsonType)> {
    let root = formulas.root();
    let mut found = Vec::new();
    let (json_type, children): (_, Vec<_>) = match data {
        Value::Object(map) => (
            JsonType::Object,
            map.iter().map(|(k, v)| (Some(k.clone()), v.clone())).collect(),
        ),
        Value::Array(items) => (
            JsonType::Array,
            items.iter().map(|v| (None, v.clone())).collect(),
        ),
        _ => return found,
    };
    let mut id = formulas.typed(root, json_type).expect("small");
    found.push((id, json_type));
    for (key, child) in children {
        let pending = match key {
            Some(key) => {
                let name = formulas.pool_mut().name(&key);
                formulas.derive_name(id, name)
            }
            None => formulas.derive_item(id),
        };
        let pending = formulas.factor(pending);
        let truths: Vec<(FormulaId, bool)> = formulas
            .leaves(pending)
            .into_iter()
            .map(|leaf| {
                let holds = Tracker::new(formulas).holds(leaf, &child);
                (leaf, holds.expect("small"))
            })
            .collect();
        id = formulas.substitute(pending, &|goal| {
            truths.iter().any(|&(leaf, truth)| leaf == goal && truth)
        });
        found.push((id, json_type));
    }
    found
}

fn check(seed: u64, budget: u64, counts: &mut [u64; 4]) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..4 {
        random.next();
    }
    let schema = schema(&mut random, 3);
    let Some(mut formulas) = compile(&schema) else {
        return;
    };
    let mut viability = Viability::new(budget);
    let root = formulas.root();
    let verdict = viability.value(&mut formulas, root).expect("small");
    let negation = formulas.negate(root);
    let other = viability.value(&mut formulas, negation).expect("small");
    assert!(
        verdict.may_hold() || other.may_hold(),
        "seed {seed}: neither {schema} nor its negation",
    );
    let slot = match verdict {
        Verdict::Yes => 0,
        Verdict::No => 1,
        Verdict::Unknown => 2,
    };
    counts[slot] += 1;
    let mut found = false;
    for _ in 0..40 {
        let data = document(&mut random, 2);
        let valid = Tracker::new(&mut formulas).validate(&data);
        let valid = valid.expect("small");
        found |= valid;
        assert!(
            !valid || verdict.may_hold(),
            "seed {seed}: {data} is valid for {schema}",
        );
        assert!(
            valid || other.may_hold(),
            "seed {seed}: {data} is not valid for {schema}",
        );
        if !valid {
            continue;
        }
        // Every prefix of a valid document can be finished.
        let unique = schema.to_string().contains("uniqueItems");
        for (residual, json_type) in residuals(&mut formulas, &data) {
            if unique && json_type == JsonType::Array {
                continue;
            }
            let viable = viability
                .typed(&mut formulas, residual, json_type)
                .expect("small");
            assert!(
                viable.may_hold(),
                "seed {seed}: a prefix of {data} for {schema}",
            );
        }
    }
    counts[3] += u64::from(verdict == Verdict::Yes && !found);
}

#[test]
fn what_is_valid_can_be_finished() {
    let mut counts = [0; 4];
    for seed in 1..=4_000 {
        check(seed, COMPILE_BUDGET, &mut counts);
    }
    let [yes, no, unknown, no_witness] = counts;
    eprintln!(
        "yes {yes}, no {no}, unknown {unknown}, yes but none of 40 random documents {no_witness}"
    );
    assert!(yes > 1_000 && no > 20, "yes {yes}, no {no}");
    assert!(unknown * 50 < yes, "unknown {unknown} of {yes}");
}

#[test]
fn small_budgets_change_no_answer_to_no() {
    for budget in [1, 10, 100] {
        for seed in 1..=800 {
            check(seed, budget, &mut [0; 4]);
        }
    }
}

/// Schemas that nothing satisfies, with what the explanation must mention.
#[test]
fn unsatisfiable_schemas_are_explained() {
    let cases = [
        (
            json!({
                "allOf": [
                    {"properties": {"a": {}}, "additionalProperties": false},
                    {"properties": {"b": {}}, "additionalProperties": false},
                ],
                "required": ["a"], "type": "object",
            }),
            "\"a\" is required by /required/0 and forbidden by \
             /allOf/1/additionalProperties",
        ),
        (
            json!({
                "properties": {"next": {"$ref": "#"}},
                "required": ["next"], "type": "object",
            }),
            "no document is finite",
        ),
        (json!(false), "false"),
        (
            json!({"type": "string", "minLength": 3, "maxLength": 2}),
            "/maxLength",
        ),
        (
            json!({"type": "integer", "minimum": 0.2, "maximum": 0.8}),
            "/minimum",
        ),
        (json!({"type": "string", "pattern": "^a", "enum": ["b"]}), "/enum"),
        (
            json!({
                "type": "array", "items": {"enum": [1, 2, 3]},
                "uniqueItems": true, "minItems": 4,
            }),
            "/uniqueItems",
        ),
    ];
    for (schema, want) in cases {
        let mut formulas = compile(&schema).expect("a schema");
        let mut viability = Viability::new(COMPILE_BUDGET);
        let error = viability.check_root(&mut formulas);
        let text = error.expect_err(want).to_string();
        assert!(text.contains(want), "{text} for {schema}");
    }
}

/// Schemas that something satisfies, although it takes a look to see it.
#[test]
fn satisfiable_schemas_are_proved() {
    let cases = [
        json!({"type": ["object", "null"], "properties": {"next": {"$ref": "#"}}, "required": ["next"]}),
        json!({"contains": {"const": 0}, "maxContains": 2, "maxItems": 3, "items": {"enum": [0, 1]}, "type": "array"}),
        json!({"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": true, "minItems": 3}),
        json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true, "minItems": 300}),
        json!({"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": false, "minProperties": 3}),
        json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        json!({"type": "object", "minProperties": 2, "properties": {"a": {"const": 1}, "b": {"const": 1}}, "additionalProperties": false}),
        json!({"type": "object", "unevaluatedProperties": false, "anyOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"properties": {"b": true}, "required": ["b"]}]}),
    ];
    for schema in cases {
        let mut formulas = compile(&schema).expect("a schema");
        let mut viability = Viability::new(COMPILE_BUDGET);
        let root = formulas.root();
        let verdict = viability.value(&mut formulas, root);
        assert_eq!(verdict, Ok(Verdict::Yes), "{schema}");
    }
}

/// Members and items that meet no condition could be added until the bound
/// is reached; the search must turn to those that meet one.
#[test]
fn searches_go_to_what_brings_the_end_nearer() {
    let some_member = |key: &str, value: &str| {
        let other = json!({"not": {"type": "string", "pattern": value}});
        json!({"not": {"patternProperties": {key: other}}})
    };
    let cases = [
        json!({
            "type": "object",
            "allOf": [some_member("a", "A"), some_member("b", "B")],
            "propertyNames": {"pattern": "^....$"},
            "maxProperties": 100, "minProperties": 1,
        }),
        json!({
            "type": "array", "maxItems": 1_000,
            "allOf": [
                {"contains": {"type": "string", "pattern": "A"}},
                {"contains": {"type": "string", "pattern": "^B"}},
            ],
        }),
    ];
    for schema in cases {
        let mut formulas = compile(&schema).expect("a schema");
        let mut viability = Viability::new(60);
        let root = formulas.root();
        let verdict = viability.value(&mut formulas, root);
        assert_eq!(verdict, Ok(Verdict::Yes), "{schema}");
    }
}
