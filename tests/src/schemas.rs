//! Random schemas with every keyword of every draft, over few keys and
//! values, so that the keywords meet.

use maskwright_json_schema::Draft;
use serde_json::{Map, Value, json};

use crate::vocabularies::Random;

/// The keys of objects.
pub const KEYS: [&str; 4] = ["a", "b", "c", "é"];

/// Scalars, as they are written.
pub const SCALARS: [&str; 20] = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "2",
    "-1",
    "1.0",
    "0.5",
    "1e1",
    "-0",
    "3.14",
    "10000000000000000000001",
    "\"\"",
    "\"a\"",
    "\"b\"",
    "\"ab\"",
    "\"ba\"",
    "\"é\"",
    "\"\u{1F600}a\"",
];

const PATTERNS: [&str; 10] = [
    "^a", "b$", "^[ab]*$", "a|é", "^(?!b)", "^.$", "(?=ab)a", "[^a]", "\\w",
    "^(ab)+$",
];

const TYPES: [&str; 7] =
    ["null", "boolean", "integer", "number", "string", "object", "array"];

/// A schema and the draft that it is of.
#[derive(Clone, Debug)]
pub struct RandomSchema {
    /// The draft.
    pub draft: Draft,
    /// The schema, which does not name it.
    pub schema: Value,
}

/// Where the second document of a schema pretends to be.
const OTHER: &str = "http://example.test/other";

/// Draws a schema whose subschemas nest up to `depth`.
pub fn schema(depth: usize, random: &mut Random) -> RandomSchema {
    let draft = *random.pick(&Draft::ALL);
    let mut maker =
        Maker { draft, random, has_other: false, is_inside: false };
    maker.has_other = maker.random.chance(20);
    let mut root = loop {
        if let Value::Object(root) = maker.schema(depth) {
            break root;
        }
    };
    let mut definitions = Map::new();
    for name in ["d", "e"] {
        let definition = maker.schema(depth - 1);
        definitions.insert(name.to_owned(), definition);
    }
    if maker.has_other {
        definitions.insert("other".to_owned(), maker.other(depth - 1));
    }
    maker.anchor(&mut root);
    let keyword = maker.definitions();
    root.insert(keyword.to_owned(), Value::Object(definitions));
    RandomSchema { draft, schema: Value::Object(root) }
}

/// Draws a value over the same keys and scalars.
pub fn document(depth: usize, random: &mut Random) -> Value {
    match random.below(10) {
        3..=6 if depth > 0 => {
            let n = random.below(4);
            let members = (0..n).map(|_| {
                let key = (*random.pick(&KEYS)).to_owned();
                (key, document(depth - 1, random))
            });
            Value::Object(members.collect())
        }
        7..=9 if depth > 0 => {
            let n = random.below(4);
            (0..n).map(|_| document(depth - 1, random)).collect()
        }
        _ => scalar(random),
    }
}

fn scalar(random: &mut Random) -> Value {
    written(random, &SCALARS)
}

/// One of some values, as they are written.
fn written(random: &mut Random, texts: &[&str]) -> Value {
    let text = *random.pick(texts);
    serde_json::from_str(text).expect("JSON")
}

struct Maker<'a> {
    draft: Draft,
    random: &'a mut Random,
    /// Whether there is an embedded resource to refer to.
    has_other: bool,
    /// Whether what is made is inside of it, where pointers lead elsewhere.
    is_inside: bool,
}

impl Maker<'_> {
    fn definitions(&self) -> &'static str {
        let is_new = self.draft >= Draft::Draft201909;
        if is_new { "$defs" } else { "definitions" }
    }

    fn count(&mut self) -> Value {
        Value::from(*self.random.pick(&[0, 1, 1, 2, 2, 3]))
    }

    fn key(&mut self) -> String {
        (*self.random.pick(&KEYS)).to_owned()
    }

    fn keys(&mut self) -> Vec<String> {
        let first = self.key();
        let second = self.key();
        if second == first || self.random.chance(60) {
            vec![first]
        } else {
            vec![first, second]
        }
    }

    /// Always true, or never.
    fn fixed(&mut self, holds: bool) -> Value {
        if self.draft >= Draft::Draft6 {
            return Value::Bool(holds);
        }
        if holds { json!({}) } else { json!({"not": {}}) }
    }

    /// An embedded resource, which references reach by its address.
    fn other(&mut self, depth: usize) -> Value {
        self.is_inside = true;
        let mut other = match self.schema(depth) {
            Value::Object(other) => other,
            _ => Map::new(),
        };
        self.is_inside = false;
        self.anchor(&mut other);
        if self.draft < Draft::Draft201909 {
            // Beside a reference all else is void, the address too.
            other.remove("$ref");
        }
        let id = if self.draft == Draft::Draft4 { "id" } else { "$id" };
        other.insert(id.to_owned(), Value::from(OTHER));
        Value::Object(other)
    }

    /// Makes a root of something that dynamic references lead to.
    fn anchor(&mut self, root: &mut Map<String, Value>) {
        if !self.random.chance(70) {
            return;
        }
        match self.draft {
            Draft::Draft201909 => {
                root.insert("$recursiveAnchor".to_owned(), Value::from(true));
            }
            Draft::Draft202012 => {
                root.insert("$dynamicAnchor".to_owned(), Value::from("x"));
            }
            _ => {}
        }
    }

    fn schema(&mut self, depth: usize) -> Value {
        if depth == 0 || self.random.chance(12) {
            return self.leaf();
        }
        let mut schema = Map::new();
        for _ in 0..*self.random.pick(&[1, 1, 2, 2, 3, 4]) {
            self.add_any(&mut schema, depth - 1);
        }
        if self.random.chance(10) {
            self.add_reference(&mut schema);
        }
        Value::Object(schema)
    }

    fn add_reference(&mut self, schema: &mut Map<String, Value>) {
        let definitions = self.definitions();
        let (keyword, target) = match self.random.below(6) {
            0 => ("$ref", "#".to_owned()),
            1 if self.has_other => ("$ref", OTHER.to_owned()),
            2 if self.draft == Draft::Draft202012 => {
                ("$dynamicRef", "#x".to_owned())
            }
            2 if self.draft == Draft::Draft201909 => {
                ("$recursiveRef", "#".to_owned())
            }
            _ if self.is_inside => ("$ref", "#".to_owned()),
            3 => ("$ref", format!("#/{definitions}/e")),
            _ => ("$ref", format!("#/{definitions}/d")),
        };
        schema.insert(keyword.to_owned(), Value::from(target));
    }

    /// A schema without subschemas.
    fn leaf(&mut self) -> Value {
        match self.random.below(12) {
            0 => self.fixed(true),
            1 => self.fixed(false),
            2..=4 => json!({"type": self.random.pick(&TYPES)}),
            5 => {
                let values = (0..3).map(|_| scalar(self.random));
                let mut values: Vec<Value> = values.collect();
                values.dedup();
                if values.first() == values.last() {
                    values.truncate(1);
                }
                json!({"enum": values})
            }
            6 => json!({"enum": [{"a": 1}, [1], 0]}),
            7 if self.draft >= Draft::Draft6 => {
                json!({"const": scalar(self.random)})
            }
            8 => json!({"not": {"type": "string"}}),
            _ => {
                let mut schema = Map::new();
                self.add_scalar_keyword(&mut schema);
                Value::Object(schema)
            }
        }
    }

    fn add_any(&mut self, schema: &mut Map<String, Value>, depth: usize) {
        match self.random.below(10) {
            0 => self.add_scalar_keyword(schema),
            1..=4 => self.add_object_keyword(schema, depth),
            5..=6 => self.add_array_keyword(schema, depth),
            _ => self.add_logic(schema, depth),
        }
    }

    fn add_scalar_keyword(&mut self, schema: &mut Map<String, Value>) {
        let numbers = ["0", "1", "2", "-1", "0.5", "1.0", "1e1", "3.14"];
        let number = written(self.random, &numbers);
        let (keyword, value) = match self.random.below(11) {
            0 => ("minimum", number),
            1 => ("maximum", number),
            2 | 3 => {
                let (bound, name) = *self.random.pick(&[
                    ("minimum", "exclusiveMinimum"),
                    ("maximum", "exclusiveMaximum"),
                ]);
                if self.draft > Draft::Draft4 {
                    (name, number)
                } else {
                    schema.insert(bound.to_owned(), number);
                    (name, Value::from(self.random.chance(70)))
                }
            }
            4 => {
                let steps = ["2", "0.5", "1", "0.01", "3", "1.0"];
                ("multipleOf", written(self.random, &steps))
            }
            5 => ("minLength", self.count()),
            6 => ("maxLength", self.count()),
            7 | 8 => ("pattern", Value::from(*self.random.pick(&PATTERNS))),
            9 => {
                let names = ["date", "uuid", "ipv4", "no-such-format"];
                ("format", Value::from(*self.random.pick(&names)))
            }
            _ => match self.random.below(3) {
                0 => ("type", json!(["object", "null"])),
                1 => ("type", json!(["array", "object", "string"])),
                _ => ("type", json!(self.random.pick(&TYPES))),
            },
        };
        schema.insert(keyword.to_owned(), value);
    }

    fn add_object_keyword(
        &mut self,
        schema: &mut Map<String, Value>,
        depth: usize,
    ) {
        let is_new = self.draft >= Draft::Draft201909;
        let (keyword, value) = match self.random.below(13) {
            0..=2 => {
                let keys = self.keys();
                let members: Map<String, Value> = keys
                    .into_iter()
                    .map(|key| (key, self.schema(depth)))
                    .collect();
                ("properties", Value::Object(members))
            }
            3 => ("required", json!(self.keys())),
            4 => ("additionalProperties", self.schema_or_boolean(depth)),
            5 | 6 => {
                let patterns = ["^[ab]", "[bc]", "a", "^.$", "^(?!a)"];
                let pattern = (*self.random.pick(&patterns)).to_owned();
                ("patternProperties", json!({pattern: self.schema(depth)}))
            }
            7 if self.draft >= Draft::Draft6 => {
                let names = [
                    json!({"enum": ["a", "b"]}),
                    json!({"pattern": "[acé]"}),
                    json!({"not": {"const": "a"}}),
                    json!({"maxLength": 1}),
                    json!(false),
                ];
                ("propertyNames", self.random.pick(&names).clone())
            }
            8 => ("minProperties", self.count()),
            9 => ("maxProperties", self.count()),
            10 if is_new => {
                let keys = self.keys();
                ("dependentRequired", json!({self.key(): keys}))
            }
            11 if is_new => {
                let inner = self.schema(depth);
                ("dependentSchemas", json!({self.key(): inner}))
            }
            12 if is_new => {
                ("unevaluatedProperties", self.schema_or_boolean(depth))
            }
            _ if !is_new => {
                let keys = self.keys();
                let inner = if self.random.chance(50) {
                    json!(keys)
                } else {
                    self.schema(depth)
                };
                ("dependencies", json!({self.key(): inner}))
            }
            _ => ("minProperties", self.count()),
        };
        schema.insert(keyword.to_owned(), value);
    }

    fn schema_or_boolean(&mut self, depth: usize) -> Value {
        if self.random.chance(40) {
            Value::Bool(false)
        } else {
            self.schema(depth)
        }
    }

    fn add_array_keyword(
        &mut self,
        schema: &mut Map<String, Value>,
        depth: usize,
    ) {
        let is_new = self.draft >= Draft::Draft201909;
        let (keyword, value) = match self.random.below(9) {
            0 | 1 => ("items", self.schema(depth)),
            2 | 3 => {
                let n = 1 + self.random.below(2);
                let items = (0..n).map(|_| self.schema(depth)).collect();
                if self.draft == Draft::Draft202012 {
                    ("prefixItems", items)
                } else {
                    if self.random.chance(60) {
                        let rest = self.schema_or_boolean(depth);
                        schema.insert("additionalItems".to_owned(), rest);
                    }
                    ("items", items)
                }
            }
            4 if self.draft >= Draft::Draft6 => {
                for keyword in ["minContains", "maxContains"] {
                    if is_new && self.random.chance(40) {
                        let count = self.random.below(3);
                        schema.insert(keyword.to_owned(), json!(count));
                    }
                }
                ("contains", self.schema(depth))
            }
            5 => ("minItems", self.count()),
            6 => ("maxItems", self.count()),
            7 if is_new => ("unevaluatedItems", self.schema_or_boolean(depth)),
            _ => ("uniqueItems", Value::Bool(true)),
        };
        schema.insert(keyword.to_owned(), value);
    }

    fn add_logic(&mut self, schema: &mut Map<String, Value>, depth: usize) {
        let (keyword, value) = match self.random.below(8) {
            n @ 0..=4 => {
                let keyword = ["allOf", "anyOf", "anyOf", "oneOf", "oneOf"][n];
                let n = *self.random.pick(&[1, 2, 2, 3]);
                let branches = (0..n).map(|_| self.schema(depth)).collect();
                (keyword, branches)
            }
            5 => ("not", self.schema(depth)),
            _ if self.draft >= Draft::Draft7 => {
                for keyword in ["then", "else"] {
                    if self.random.chance(70) {
                        let branch = self.schema(depth);
                        schema.insert(keyword.to_owned(), branch);
                    }
                }
                ("if", self.schema(depth))
            }
            _ => {
                let values = [
                    json!([{"a": 1}, {"b": [0]}, 1]),
                    json!([[0, 1], [1], {}]),
                    json!(["a", "ab", 1.0, null]),
                ];
                ("enum", self.random.pick(&values).clone())
            }
        };
        schema.insert(keyword.to_owned(), value);
    }
}
