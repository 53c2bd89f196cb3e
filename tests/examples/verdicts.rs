//! Compares our verdicts with those of others, a million and more of them.
//!
//! ```sh
//! cargo run --release -p maskwright-tests --example verdicts -- \
//!     --random 1 --schemas 30000
//! cargo run --release -p maskwright-tests --example verdicts -- FILE
//! ```
//!
//! `--random SEED` draws that many schemas with every keyword of every draft,
//! over few keys and values, and documents for each: drawn at random, drawn
//! from our own masks and completed, changed a little. The judge is the
//! `jsonschema` crate. What differs is printed as a JSON line, made small.
//!
//! A FILE has JSON lines `{"schema": …, "text": …, "valid": true}`, or
//! `{"schema": …, "prefix": …, "viable": true}` where the question is whether
//! some document begins like that; `"draft": "7"` says which draft a schema is
//! of (2020-12 if nothing does). Members may come in any order, and formats
//! are annotations. `-` reads standard input.
#![allow(clippy::print_stdout, reason = "it is a program that reports")]

mod program;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufRead, BufReader},
    path::PathBuf,
};

use clap::Parser;
use indicatif::ProgressBar;
use maskwright_grammar_core::automaton::Completions;
use maskwright_json_schema::Draft;
use maskwright_tests::{
    schemas::RandomSchema,
    subject::{Subject, policy, widest},
    verdicts::{Tally, compare, drawn, pieces, smaller},
};
use program::{bar, on_deep_stack};
use serde_json::Value;

/// Compares our verdicts on documents with those of others.
#[derive(Debug, Parser)]
struct Options {
    /// JSON lines with schemas, texts and verdicts; `-` is standard input.
    file: Option<PathBuf>,
    /// Draw schemas and documents, from this seed.
    #[arg(long, conflicts_with = "file")]
    random: Option<u64>,
    /// How many schemas to draw.
    #[arg(long, default_value_t = 1000)]
    schemas: u64,
    /// The number of the first of them, to run some alone.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Print each schema before it is compared.
    #[arg(long)]
    list: bool,
    /// How many mismatches to print.
    #[arg(long, default_value_t = 50)]
    show: usize,
}

/// How many compiled schemas of a file are kept.
const MAX_KEPT: usize = 4096;

fn main() {
    let options = Options::parse();
    on_deep_stack(move || match (&options.file, options.random) {
        (Some(file), _) => read_file(file, options.show),
        (None, Some(seed)) => run_random(seed, &options),
        (None, None) => println!("give a FILE or --random SEED; see --help"),
    });
}

fn run_random(seed: u64, options: &Options) {
    let tokens = pieces();
    let mut tally = Tally::default();
    let bar = bar(options.schemas);
    let mut n_shown = 0;
    for number in options.first..options.first + options.schemas {
        let n_before = tally.mismatches.len();
        let of_schema = seed.wrapping_mul(1 << 32).wrapping_add(number);
        if options.list {
            let RandomSchema { draft, schema } = drawn(of_schema).0;
            println!("{number} {draft} {schema}");
        }
        compare(&tokens, of_schema, &mut tally);
        // One of each schema; the others mostly are the same fault.
        if let Some(mismatch) = tally.mismatches.get(n_before)
            && n_shown < options.show
        {
            n_shown += 1;
            bar.suspend(|| println!("{}", smaller(mismatch)));
        }
        bar.inc(1);
        if number % 5000 == 4999 && bar.is_hidden() {
            println!("{} of {} schemas: {tally}", number + 1, options.schemas);
        }
    }
    bar.finish_and_clear();
    println!("{tally}");
}

/// What came of a file.
#[derive(Debug, Default)]
struct Counts {
    n_verdicts: usize,
    n_valid: usize,
    n_prefixes: usize,
    n_completed: usize,
    n_wrong: usize,
    refused: BTreeMap<String, usize>,
}

fn read_file(file: &PathBuf, n_shown: usize) {
    let reader: Box<dyn BufRead> = if file.as_os_str() == "-" {
        Box::new(BufReader::new(io::stdin()))
    } else {
        Box::new(BufReader::new(File::open(file).expect("a readable file")))
    };
    let mut counts = Counts::default();
    let mut kept: BTreeMap<String, Result<Subject, String>> = BTreeMap::new();
    let bar = ProgressBar::new_spinner();
    for line in reader.lines() {
        let line = line.expect("a readable file");
        let entry: Value = serde_json::from_str(&line).expect("JSON lines");
        bar.inc(1);
        if kept.len() > MAX_KEPT {
            kept.clear();
        }
        let draft = entry["draft"].as_str().unwrap_or("2020-12");
        let draft: Draft = draft.parse().expect("a draft");
        let key = format!("{draft} {}", entry["schema"]);
        let subject = kept.entry(key).or_insert_with(|| {
            Subject::new(&entry["schema"], &widest(draft, policy(false)))
                .map_err(|error| error.kind().to_owned())
        });
        let what = match subject {
            Ok(subject) => check(subject, &entry, &mut counts),
            Err(kind) => {
                *counts.refused.entry(kind.clone()).or_default() += 1;
                continue;
            }
        };
        if let Some(what) = what {
            counts.n_wrong += 1;
            if counts.n_wrong <= n_shown {
                bar.suspend(|| println!("{what}: {line}"));
            }
        }
    }
    bar.finish_and_clear();
    println!(
        "{} verdicts ({} valid), {} prefixes ({} completed), {} wrong; lines \
         whose schema was refused: {:?}",
        counts.n_verdicts,
        counts.n_valid,
        counts.n_prefixes,
        counts.n_completed,
        counts.n_wrong,
        counts.refused,
    );
}

/// Returns what is wrong with one line.
fn check(
    subject: &Subject,
    entry: &Value,
    counts: &mut Counts,
) -> Option<String> {
    if let Some(text) = entry["text"].as_str() {
        let valid = entry["valid"].as_bool().expect("a verdict");
        counts.n_verdicts += 1;
        counts.n_valid += usize::from(valid);
        return match subject.accepts(text) {
            Ok(accepted) if accepted == valid => None,
            Ok(true) => Some("WRONGLY ACCEPTED".to_owned()),
            Ok(false) => Some("wrongly refused".to_owned()),
            Err(error) => Some(error.to_string()),
        };
    }
    let prefix = entry["prefix"].as_str().expect("a text or a prefix");
    let viable = entry["viable"].as_bool().expect("a verdict");
    counts.n_prefixes += 1;
    let mut completions = Completions::new();
    let bytes = prefix.as_bytes();
    match subject.completed(bytes, &mut completions) {
        Err(error) => Some(error.to_string()),
        Ok((n_read, ending)) => {
            let is_read = n_read == bytes.len() && subject.grammar().is_some();
            counts.n_completed += usize::from(is_read && ending.is_some());
            match (is_read, viable) {
                (true, false) => Some("a dead end is let in".to_owned()),
                (false, true) => Some("wrongly refused".to_owned()),
                (true, true) if ending.is_none() => {
                    Some("no completion".to_owned())
                }
                _ => None,
            }
        }
    }
}
