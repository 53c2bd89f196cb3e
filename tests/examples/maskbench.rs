//! Prints what becomes of the schemas of MaskBench and their instances.
//!
//! ```sh
//! cargo run --release -p maskwright-tests --example maskbench -- [FILTER]
//! ```
//!
//! Every instance is read by bytes, with members in any order and in the
//! order of the schema. Printed are the schemas that do not compile, the
//! verdicts that are not those of MaskBench, the states in which something
//! was assumed, and what took longest. `FILTER` is a part of a schema's name.
//! The corpus is looked for below the folder that `MASKWRIGHT_SHARED` names.
#![allow(clippy::print_stdout, reason = "it is a program that reports")]

mod program;

use std::time::{Duration, Instant};

use maskwright::grammar::{
    FormatPolicy, Grammar, GrammarError, Order, SchemaOptions,
};
use maskwright_json_schema::Stats;
use maskwright_tests::maskbench::{Entry, entries};
use program::bar;

/// How many of the slowest schemas are printed.
const N_SLOWEST: usize = 20;

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let Some(mut entries) = entries(usize::MAX) else {
        println!("MaskBench is not there; set MASKWRIGHT_SHARED");
        return;
    };
    entries.retain(|entry| entry.name.contains(&filter));
    let bar = bar(entries.len() as u64);
    let mut tally = Tally::default();
    for entry in &entries {
        tally.add(entry);
        bar.inc(1);
    }
    bar.finish_and_clear();
    tally.print();
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
    lines: Vec<String>,
    /// The time of a schema and its instances, its states, and its name.
    times: Vec<(Duration, usize, String)>,
}

impl Tally {
    fn add(&mut self, entry: &Entry) {
        let Entry { name, schema: _, tests } = entry;
        self.n_schemas += 1;
        let start = Instant::now();
        let grammar = match compiled(entry, Order::Any) {
            Ok(grammar) => grammar,
            Err(error) => {
                self.n_refused_schemas += 1;
                self.lines.push(format!("no schema | {name} | {error}"));
                return;
            }
        };
        let ordered = compiled(entry, Order::Schema).ok();
        for (data, valid) in tests {
            let text = data.to_string();
            self.add_verdict(name, &grammar, &text, *valid);
            let Some(ordered) = &ordered else { continue };
            match (ordered.accepts(&text), *valid) {
                (Ok(false), true) => self.n_ordered += 1,
                (Ok(true), false) => self.lines.push(format!(
                    "WRONGLY ACCEPTED in order | {name} | {text}"
                )),
                _ => {}
            }
        }
        let stats = grammar.schema().expect("it is one of a schema").stats();
        let Stats { n_states, n_inexact } = stats;
        self.n_states += n_states;
        self.n_inexact += n_inexact;
        if n_inexact > 0 {
            self.lines.push(format!(
                "{n_inexact} of {n_states} states not exact | {name}"
            ));
        }
        self.times.push((start.elapsed(), n_states, name.clone()));
    }

    fn add_verdict(
        &mut self,
        name: &str,
        grammar: &Grammar,
        text: &str,
        valid: bool,
    ) {
        let what = match (grammar.accepts(text), valid) {
            (Ok(true), true) | (Ok(false), false) => {
                self.n_right += 1;
                return;
            }
            (Ok(true), false) => {
                self.n_accepted += 1;
                format!("WRONGLY ACCEPTED | {name} | {text}")
            }
            (Ok(false), true) => {
                self.n_refused += 1;
                format!("wrongly refused | {name} | {text}")
            }
            (Err(error), _) => {
                self.n_limits += 1;
                format!("limit | {name} | {error}")
            }
        };
        self.lines.push(what);
    }

    fn print(mut self) {
        for line in &self.lines {
            println!("{line}");
        }
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

fn compiled(entry: &Entry, order: Order) -> Result<Grammar, GrammarError> {
    let mut options = SchemaOptions::widest();
    options.parse.format = FormatPolicy::AssertKnown;
    options.text.order = order;
    Grammar::from_schema_value(&entry.schema, &options)
}
