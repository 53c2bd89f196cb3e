//! Prints what becomes of the schemas of MaskBench and their instances.
//!
//! ```sh
//! cargo run --release -p maskwright-json-schema --example maskbench -- \
//!     [FILTER]
//! ```
//!
//! Every instance is read by bytes, with members in any order and in the
//! order of the schema. Printed are the schemas that do not compile, the
//! verdicts that are not those of MaskBench, the states in which something
//! was assumed, and what took longest. `FILTER` is a part of a schema's name.
//! The corpus is looked for below the folder that `MASKWRIGHT_SHARED` names.

#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use maskwright_grammar_core::automaton::Recognizer;
use maskwright_json_schema::{
    Compiled, FormatPolicy, Options, Order, Stats, compile_value,
    parse::{Limits, read_json},
};
use serde_json::Value;

/// How many of the slowest schemas are printed.
const N_SLOWEST: usize = 20;

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let Some(files) = files() else {
        println!("the corpus is not there; see the example's documentation");
        return;
    };
    let mut tally = Tally::default();
    for file in files {
        println!("{}", file.display());
        let text = fs::read_to_string(&file).expect("a readable file");
        for line in text.lines() {
            let case = read_json(line, Limits::default().max_depth)
                .expect("a line of JSON");
            if name(&case).contains(&filter) {
                tally.add(&case);
            }
        }
    }
    tally.print();
}

fn files() -> Option<Vec<PathBuf>> {
    let shared = match std::env::var_os("MASKWRIGHT_SHARED") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
    };
    let entries = fs::read_dir(shared.join("corpora/maskbench")).ok()?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    files.sort();
    Some(files)
}

fn name(case: &Value) -> &str {
    case["name"].as_str().unwrap_or_default()
}

/// What was found.
#[derive(Default)]
struct Tally {
    n_schemas: usize,
    n_refused_schemas: usize,
    n_right: usize,
    n_refused: usize,
    n_accepted: usize,
    n_limits: usize,
    /// Valid instances that only the order of the schema refuses.
    n_ordered: usize,
    n_states: usize,
    n_inexact: usize,
    /// The time of a schema and its instances, its states, and its name.
    times: Vec<(Duration, usize, String)>,
}

impl Tally {
    fn add(&mut self, case: &Value) {
        self.n_schemas += 1;
        let start = Instant::now();
        let name = name(case);
        let compiled = match compiled_in(case, Order::Any) {
            Ok(compiled) => compiled,
            Err(error) => {
                self.n_refused_schemas += 1;
                println!("no schema | {name} | {error}");
                return;
            }
        };
        let ordered = compiled_in(case, Order::Schema).ok();
        for test in case["tests"].as_array().into_iter().flatten() {
            let Some(valid) = test["valid"].as_bool() else { continue };
            let text = test["data"].to_string();
            self.add_verdict(name, &compiled, &text, valid);
            if let Some(ordered) = &ordered
                && valid != accepts(ordered, &text).unwrap_or(!valid)
            {
                if valid {
                    self.n_ordered += 1;
                } else {
                    println!("WRONGLY ACCEPTED in order | {name} | {text}");
                }
            }
        }
        let Stats { n_states, n_inexact } = compiled.stats();
        self.n_states += n_states;
        self.n_inexact += n_inexact;
        if n_inexact > 0 {
            println!("{n_inexact} of {n_states} states not exact | {name}");
        }
        self.times.push((start.elapsed(), n_states, name.to_owned()));
    }

    fn add_verdict(
        &mut self,
        name: &str,
        compiled: &Compiled,
        text: &str,
        valid: bool,
    ) {
        match (accepts(compiled, text), valid) {
            (Ok(true), true) | (Ok(false), false) => self.n_right += 1,
            (Ok(true), false) => {
                self.n_accepted += 1;
                println!("WRONGLY ACCEPTED | {name} | {text}");
            }
            (Ok(false), true) => {
                self.n_refused += 1;
                println!("wrongly refused | {name} | {text}");
            }
            (Err(error), _) => {
                self.n_limits += 1;
                println!("limit | {name} | {error}");
            }
        }
    }

    fn print(mut self) {
        println!(
            "\n{} schemas, {} of them refused\n\
             {} verdicts right, {} wrongly accepted, {} wrongly refused, {} \
             limits\n\
             {} valid instances refused in the order of the schema\n\
             {} states, {} of them not exact\n\nslowest, with instances:",
            self.n_schemas,
            self.n_refused_schemas,
            self.n_right,
            self.n_accepted,
            self.n_refused,
            self.n_limits,
            self.n_ordered,
            self.n_states,
            self.n_inexact,
        );
        self.times.sort_unstable();
        for (time, n_states, name) in self.times.iter().rev().take(N_SLOWEST) {
            println!("{time:8.1?} | {n_states} states | {name}");
        }
    }
}

fn compiled_in(case: &Value, order: Order) -> Result<Compiled, String> {
    let mut options = Options::widest();
    options.parse.format = FormatPolicy::AssertKnown;
    options.text.order = order;
    compile_value(&case["schema"], &options).map_err(|error| error.to_string())
}

fn accepts(compiled: &Compiled, text: &str) -> Result<bool, String> {
    let run = || {
        let mut recognizer = Recognizer::new(compiled.automaton.clone())?;
        Ok(recognizer.push_bytes(text.as_bytes())?
            && recognizer.is_accepting()?)
    };
    run().map_err(
        |error: maskwright_grammar_core::automaton::AutomatonError| {
            error.to_string()
        },
    )
}
