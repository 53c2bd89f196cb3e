//! Does what is decoded under a schema finish, and does it fit?
//!
//! ```sh
//! cargo run --release -p maskwright-tests --example finish
//! ```
//!
//! 50 schemas (40 of the shared corpus, 10 of the project's own) × 4 seeds on
//! the default model, drawn at temperature 1 with at most 256 tokens, within
//! which the document must be finished: that is the default of requests. Each
//! finished document is parsed and judged by the `jsonschema` crate. A run is
//! stuck if a mask is empty: that is an error, and ends the program.
//!
//! Two numbers as arguments run a part: how many schemas to skip, and how
//! many to run then. Each run is printed as why it finished, its tokens, and
//! how many of those were steered by the limit.
#![allow(clippy::print_stdout, reason = "it is a program that reports")]

use std::{collections::BTreeMap, env, fs, ops::ControlFlow, time::Duration};

use maskwright::{
    generate::{Generation, Generator, Message, Prompt, Request, Role},
    grammar::{Grammar, SchemaOptions},
    pipeline::SamplingOptions,
};
use maskwright_tests::{corpus::shared, vocabularies::real_model};
use serde_json::Value;

const N_SHARED: usize = 40;
const N_SEEDS: u64 = 4;
const MAX_TOKENS: usize = 256;
/// The schema is part of the prompt.
const MAX_SCHEMA_BYTES: usize = 1000;

/// Ten of our own: recursion, arrays, choices, lengths, unbounded strings.
const OWN: [&str; 10] = [
    r##"{"type":"object","properties":{"name":{"type":"string","maxLength":10},"children":{"type":"array","items":{"$ref":"#"},"maxItems":2}},"required":["name","children"],"additionalProperties":false}"##,
    r#"{"type":"array","items":{"type":"string","maxLength":12},"minItems":1,"maxItems":4}"#,
    r#"{"type":"object","properties":{"title":{"type":"string"},"tags":{"type":"array","items":{"type":"string"},"maxItems":3}},"required":["title","tags"],"additionalProperties":false}"#,
    r#"{"anyOf":[{"type":"object","properties":{"k":{"const":"a"},"n":{"type":"integer"}},"required":["k","n"],"additionalProperties":false},{"type":"object","properties":{"k":{"const":"b"},"s":{"type":"string"}},"required":["k","s"],"additionalProperties":false}]}"#,
    r#"{"type":"string","pattern":"^[A-Z][a-z]+ [A-Z][a-z]+$"}"#,
    r#"{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0,"maximum":120}},"required":["name","age"],"additionalProperties":false}"#,
    r#"{"type":"object","patternProperties":{"^[a-z]{1,3}$":{"type":"boolean"}},"additionalProperties":false,"minProperties":1,"maxProperties":3}"#,
    r##"{"$defs":{"t":{"type":"array","items":{"$ref":"#/$defs/t"},"maxItems":2}},"$ref":"#/$defs/t"}"##,
    r#"{"enum":["low","medium","high",null,{"level":3}]}"#,
    r#"{"allOf":[{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},{"properties":{"city":{"maxLength":20},"zip":{"type":"string","pattern":"^[0-9]{5}$"}},"required":["zip"]}],"unevaluatedProperties":false}"#,
];

/// What came of the runs.
#[derive(Default)]
struct Tally {
    reasons: BTreeMap<&'static str, u32>,
    n_runs: u32,
    n_finished: u32,
    /// Finished, and steered at least once.
    n_saved: u32,
    n_steered: usize,
    n_invalid: u32,
    n_tokens: usize,
    decode_time: Duration,
    plan_time: Duration,
}

impl Tally {
    fn add(&mut self, generation: &Generation) {
        let finished = generation.is_complete();
        let steered = generation.n_steered > 0;
        *self.reasons.entry(generation.finish_reason.name()).or_default() += 1;
        self.n_runs += 1;
        self.n_finished += u32::from(finished);
        self.n_saved += u32::from(finished && steered);
        self.n_steered += generation.n_steered;
        self.n_tokens += generation.tokens.len();
        self.decode_time += generation.decode_time;
        self.plan_time += generation.plan_time;
    }

    fn print(&self) {
        let share = |part: u32| {
            100.0 * f64::from(part) / f64::from(self.n_runs.max(1))
        };
        println!(
            "{} runs: {:?}; finished {} ({:.1} %), of them {} ({:.1} %) \
             steered, {} draws in all; invalid {}",
            self.n_runs,
            self.reasons,
            self.n_finished,
            share(self.n_finished),
            self.n_saved,
            share(self.n_saved),
            self.n_steered,
            self.n_invalid,
        );
        let tokens = f64::from(u32::try_from(self.n_tokens).unwrap_or(1));
        let each = |time: Duration| 1e3 * time.as_secs_f64() / tokens;
        println!(
            "{} tokens, {:.2} ms each, of them {:.3} ms for plans",
            self.n_tokens,
            each(self.decode_time),
            each(self.plan_time),
        );
    }
}

fn main() {
    let mut numbers = env::args().skip(1).map(|argument| {
        argument.parse::<usize>().expect("a number of schemas")
    });
    let n_skipped = numbers.next().unwrap_or(0);
    let n_asked = numbers.next().unwrap_or(usize::MAX);
    let schemas = schemas();
    count_kinds(&schemas);
    let model = real_model("the 50 schemas").expect("the model is fetched");
    let mut generator = Generator::new(model).expect("a chat template");
    let mut tally = Tally::default();
    for (name, schema) in schemas.iter().skip(n_skipped).take(n_asked) {
        run(name, schema, &mut generator, &mut tally);
    }
    tally.print();
}

fn run(
    name: &str,
    schema: &Value,
    generator: &mut Generator,
    tally: &mut Tally,
) {
    let grammar =
        Grammar::from_schema_value(schema, &SchemaOptions::default())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    let compiled = generator.compile(&grammar).expect("no atoms");
    let validator = jsonschema::validator_for(schema).expect("valid");
    let mut line = String::new();
    for seed in 0..N_SEEDS {
        let request = Request {
            prompt: prompt(schema),
            grammar: Some(compiled.clone()),
            max_tokens: MAX_TOKENS,
            sampling: SamplingOptions { seed, ..SamplingOptions::default() },
            finish_within_budget: true,
            ..Request::default()
        };
        let generation = generator
            .generate(&request, &mut |_| ControlFlow::Continue(()))
            .unwrap_or_else(|error| panic!("{name}, {seed}: {error}"));
        tally.add(&generation);
        if generation.is_complete() {
            let value: Value = serde_json::from_str(&generation.text)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            if !validator.is_valid(&value) {
                tally.n_invalid += 1;
                println!("INVALID {name}: {}", generation.text);
            }
        }
        let tokens = generation.tokens.len();
        let reason = generation.finish_reason.name();
        let n_steered = generation.n_steered;
        line = format!("{line} {reason} {tokens} ({n_steered})");
    }
    println!("{name}:{line}");
}

/// Says how many of the shared schemas leave the length of a document open.
fn count_kinds(schemas: &[(String, Value)]) {
    let shared = &schemas[OWN.len()..];
    let count = |is_kind: fn(&Value) -> bool| {
        shared.iter().filter(|(_, schema)| has(schema, is_kind)).count()
    };
    let (n_strings, n_nested) = (count(is_free_string), count(is_nested));
    println!(
        "{} shared schemas: {n_strings} with unbounded strings, {n_nested} \
         with recursion, arrays or anyOf",
        shared.len()
    );
    assert!(shared.len() == N_SHARED && n_strings >= 10 && n_nested >= 10);
}

/// Whether any part of a schema is of a kind.
fn has(schema: &Value, is_kind: fn(&Value) -> bool) -> bool {
    let mut pending = vec![schema];
    while let Some(value) = pending.pop() {
        if is_kind(value) {
            return true;
        }
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => pending.extend(members.values()),
            _ => {}
        }
    }
    false
}

fn is_free_string(schema: &Value) -> bool {
    let bounds = ["maxLength", "enum", "const", "pattern", "format"];
    schema["type"] == "string"
        && bounds.iter().all(|bound| schema.get(bound).is_none())
}

fn is_nested(schema: &Value) -> bool {
    let reference = schema["$ref"].as_str();
    schema["type"] == "array"
        || schema["anyOf"].is_array()
        // Recursion begins at the root, in what we pick.
        || reference == Some("#")
}

fn prompt(schema: &Value) -> Prompt {
    Prompt::Chat(vec![
        Message::new(
            Role::System,
            "You answer with one short JSON document that fits the schema.",
        ),
        Message::new(Role::User, format!("Schema: {schema}")),
    ])
}

fn schemas() -> Vec<(String, Value)> {
    let mut schemas: Vec<(String, Value)> = (1..)
        .zip(OWN)
        .map(|(number, text)| {
            let schema = serde_json::from_str(text).expect("JSON");
            (format!("own {number}"), schema)
        })
        .collect();
    let folder = shared("corpora/maskbench").expect("the shared corpus");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("a readable folder")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.sort();
    let mut by_file: Vec<Vec<(String, Value)>> = files
        .iter()
        .map(|file| {
            let text = fs::read_to_string(file).expect("a readable file");
            let mut all: Vec<_> = text.lines().filter_map(fitting).collect();
            all.reverse();
            all
        })
        .collect();
    // One of each file in turn, from its beginning.
    let end = schemas.len() + N_SHARED;
    while schemas.len() < end {
        let n_before = schemas.len();
        for file in &mut by_file {
            if schemas.len() < end {
                schemas.extend(file.pop());
            }
        }
        assert!(schemas.len() > n_before, "enough schemas of that size");
    }
    schemas
}

/// A schema of the corpus that is small, has a test that it accepts, and says
/// more than a type.
fn fitting(line: &str) -> Option<(String, Value)> {
    let entry: Value = serde_json::from_str(line).ok()?;
    let schema = &entry["schema"];
    let text = schema.to_string();
    let valid =
        entry["tests"].as_array()?.iter().any(|test| test["valid"] == true);
    let fits = text.len() <= MAX_SCHEMA_BYTES && text.len() > 120;
    let options = SchemaOptions::default();
    (valid && fits)
        .then(|| Grammar::from_schema_value(schema, &options).ok())
        .flatten()?;
    Some((entry["name"].as_str()?.to_owned(), schema.clone()))
}
