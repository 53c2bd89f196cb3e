//! Is what we write valid, and does it come to an end?
//!
//! ```sh
//! cargo run --release -p maskwright-tests --example walks -- \
//!     --schemas 1000 --documents 20
//! cargo run --release -p maskwright-tests --example walks -- --mutate 20
//! ```
//!
//! Draws documents of schemas of MaskBench (spread evenly over the whole) and
//! of the project's own corpus: up to `--tokens` tokens, each drawn evenly
//! among those of its mask, and then the shortest completion. Each must be
//! accepted and valid by the `jsonschema` crate, and none may get stuck.
//!
//! With `--mutate N`, changes every valid instance of MaskBench N times a
//! little, and compares our verdict with the crate's on each.
//!
//! The vocabulary is that of Llama 3.1 (`bench/fetch-tokenizer.sh` fetches
//! it, `MASKWRIGHT_TOKENIZER` names another), or else a small one. What fails
//! is printed with schema and document; the same seed draws the same.
#![allow(clippy::print_stdout, reason = "it is a program that reports")]

mod program;

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use clap::Parser;
use indicatif::ProgressBar;
use maskwright::mask::TokenTrie;
use maskwright_json_schema::Budgets;
use maskwright_tests::{
    corpus::cases,
    maskbench::entries,
    vocabularies::{llama, pieces},
    walks::{Failure, Plan, Report, mutate_entry, walk_schema},
};
use program::{bar, on_deep_stack};
use serde_json::Value;

/// Draws documents of many schemas and judges them.
#[derive(Debug, Parser)]
struct Options {
    /// How many schemas of MaskBench to take.
    #[arg(long, default_value_t = 1000)]
    schemas: usize,
    /// How many documents of each schema to draw.
    #[arg(long, default_value_t = 20)]
    documents: usize,
    /// How many tokens to draw at most.
    #[arg(long, default_value_t = 64)]
    tokens: usize,
    /// Makes the draws.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Instead of drawing, change each valid instance so many times.
    #[arg(long)]
    mutate: Option<usize>,
    /// Take formats as annotations, on both sides.
    #[arg(long)]
    annotate_formats: bool,
    /// How many steps a question of viability may take.
    #[arg(long)]
    budget: Option<u64>,
    /// Only schemas whose name contains this.
    #[arg(long, default_value = "")]
    filter: String,
    /// Print the refused schemas too.
    #[arg(long)]
    refused: bool,
    /// How many failures of each kind to print.
    #[arg(long, default_value_t = 40)]
    show: usize,
}

/// How many of the slowest schemas are named.
const N_SLOWEST: usize = 5;

/// Longer schemas and documents are cut where they are printed.
const MAX_SHOWN: usize = 4000;

fn main() {
    let options = Options::parse();
    on_deep_stack(move || run(&options));
}

fn run(options: &Options) {
    let budgets = options.budget.map_or_else(Budgets::default, |steps| {
        Budgets { compile: steps, state: steps }
    });
    let plan = Plan {
        n_documents: options.mutate.unwrap_or(options.documents),
        n_tokens: options.tokens,
        seed: options.seed,
        formats: !options.annotate_formats,
        budgets,
    };
    let mut report = Report::default();
    if options.mutate.is_some() {
        mutate(options, &plan, &mut report);
    } else {
        walk(options, &plan, &mut report);
    }
    print(options, &report);
}

fn mutate(options: &Options, plan: &Plan, report: &mut Report) {
    let mut entries = entries(options.schemas).unwrap_or_default();
    entries.retain(|entry| entry.name.contains(&options.filter));
    let bar = bar(entries.len() as u64);
    for entry in &entries {
        mutate_entry(entry, plan, report);
        advance(&bar, report);
    }
    bar.finish_and_clear();
}

fn walk(options: &Options, plan: &Plan, report: &mut Report) {
    let tokens = llama();
    let mut schemas: Vec<(String, Value)> = cases()
        .into_iter()
        .filter(|case| case.kind == "schema" && case.error.is_none())
        .map(|case| (case.name, case.input))
        .collect();
    let entries = entries(options.schemas).unwrap_or_default();
    schemas
        .extend(entries.into_iter().map(|entry| (entry.name, entry.schema)));
    schemas.retain(|(name, _)| name.contains(&options.filter));
    if let Some(tokens) = &tokens {
        let n_tokens = tokens.vocabulary().n_tokens();
        println!("{} schemas, {n_tokens} tokens", schemas.len());
    }
    let bar = bar(schemas.len() as u64);
    let mut times = Vec::new();
    for (name, schema) in &schemas {
        let start = Instant::now();
        let tokens = tokens.clone().unwrap_or_else(|| own(schema, plan));
        walk_schema(name, schema, &tokens, plan, report);
        times.push((start.elapsed(), name));
        advance(&bar, report);
    }
    bar.finish_and_clear();
    times.sort_unstable();
    for (time, name) in times.iter().rev().take(N_SLOWEST) {
        println!("slowest: {name}, {} ms", time.as_millis());
    }
}

fn own(schema: &Value, plan: &Plan) -> Arc<TokenTrie> {
    pieces(&[&schema.to_string()], plan.seed)
}

/// On a terminal the bar tells; elsewhere a line now and then does.
fn advance(bar: &ProgressBar, report: &Report) {
    bar.inc(1);
    if bar.is_hidden() && bar.position().is_multiple_of(50) {
        let all = bar.length().unwrap_or_default();
        println!("{} of {all} schemas: {report}", bar.position());
    }
}

fn print(options: &Options, report: &Report) {
    if options.refused {
        report.refused.iter().for_each(|line| println!("REFUSED {line}"));
    }
    let show = |kind: &str, failures: &[Failure]| {
        for failure in failures.iter().take(options.show) {
            let text = failure.to_string();
            let end = text.floor_char_boundary(MAX_SHOWN);
            println!("{kind} {}", &text[..end]);
        }
    };
    show("FORMAT", &report.of_formats);
    show("FAILURE", &report.failures);
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for line in &report.refused {
        let why = line.split_once(": ").map_or("", |(_, why)| why);
        let why = why.split('(').next().unwrap_or_default();
        *reasons.entry(&why[..why.floor_char_boundary(60)]).or_default() += 1;
    }
    for (why, n) in reasons {
        println!("refused {n}: {why}");
    }
    println!("{report}");
}
