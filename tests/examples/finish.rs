//! Does what is decoded under a schema finish, and does it fit?
//!
//! ```sh
//! cargo run --release -p maskwright-tests --example finish
//! ```
//!
//! 50 schemas (40 of the shared corpus, 10 of the project's own) × 4 seeds on
//! the default model, drawn at temperature 1 with at most 256 tokens. Each
//! finished document is parsed and judged by the `jsonschema` crate. A run is
//! stuck if a mask is empty: that is an error, and ends the program.
#![allow(clippy::print_stdout, reason = "it is a program that reports")]

use std::{collections::BTreeMap, fs, ops::ControlFlow};

use maskwright::{
    generate::{Generator, Message, Prompt, Request, Role},
    grammar::{Grammar, SchemaOptions},
    pipeline::SamplingOptions,
};
use maskwright_tests::{corpus::shared, vocabularies::real_model};
use serde_json::Value;

const N_SHARED: usize = 40;
const N_SEEDS: u64 = 4;
const MAX_TOKENS: usize = 256;
/// Longer schemas ask for longer documents than fit in 256 tokens.
const MAX_SCHEMA_BYTES: usize = 420;

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

fn main() {
    let model = real_model("the 50 schemas").expect("the model is fetched");
    let mut generator = Generator::new(model).expect("a chat template");
    let schemas = schemas();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut n_finished, mut n_invalid, mut n_runs) = (0, 0, 0);
    for (name, schema) in &schemas {
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
                sampling: SamplingOptions {
                    seed,
                    ..SamplingOptions::default()
                },
            };
            let generation = generator
                .generate(&request, &mut |_| ControlFlow::Continue(()))
                .unwrap_or_else(|error| panic!("{name}, {seed}: {error}"));
            n_runs += 1;
            *counts.entry(generation.finish_reason.name()).or_default() += 1;
            if generation.is_complete() {
                n_finished += 1;
                let value: Value = serde_json::from_str(&generation.text)
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
                if !validator.is_valid(&value) {
                    n_invalid += 1;
                    println!("INVALID {name}: {}", generation.text);
                }
            }
            let tokens = generation.tokens.len();
            let reason = generation.finish_reason.name();
            line = format!("{line} {reason} {tokens}");
        }
        println!("{name}:{line}");
    }
    println!("{n_runs} runs of {} schemas: {counts:?}", schemas.len());
    println!(
        "finished {n_finished} ({:.1} %), invalid {n_invalid}",
        100.0 * f64::from(n_finished) / f64::from(n_runs)
    );
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
    // An open object is never done: what it holds is up to the model.
    let closed = text.contains("\"required\"");
    let options = SchemaOptions::default();
    (valid && fits && closed)
        .then(|| Grammar::from_schema_value(schema, &options).ok())
        .flatten()?;
    Some((entry["name"].as_str()?.to_owned(), schema.clone()))
}
