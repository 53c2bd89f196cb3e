//! Prints what becomes of the regular expressions of MaskBench's schemas.
//!
//! ```sh
//! cargo run --release -p maskwright-tests --example patterns
//! ```
//!
//! Every distinct `pattern` and key of `patternProperties` is compiled as
//! ECMA-262 has it. Printed are how many compile, which of them look around,
//! and each one that is refused, with its reason. The corpus is looked for
//! below the folder that `MASKWRIGHT_SHARED` names.
#![allow(clippy::print_stdout, reason = "it is a program that reports")]

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use maskwright_grammar_core::regular::{Language, Limits, Regex};
use maskwright_tests::maskbench::entries;
use serde_json::Value;

/// How many of the slowest patterns are printed.
const N_SLOWEST: usize = 5;

fn main() {
    let Some(entries) = entries(usize::MAX) else {
        println!("MaskBench is not there; set MASKWRIGHT_SHARED");
        return;
    };
    let mut patterns = BTreeSet::new();
    for entry in &entries {
        collect(&entry.schema, &mut patterns);
    }
    let (mut n_compiled, mut n_around) = (0, 0);
    let mut refused = Vec::new();
    let mut times: Vec<(Duration, &str)> = Vec::new();
    for pattern in &patterns {
        let started = Instant::now();
        let language = Regex::ecma(pattern)
            .map_err(|error| error.to_string())
            .and_then(|regex| {
                Language::new(&regex, Limits::new())
                    .map_err(|error| error.to_string())
            });
        times.push((started.elapsed(), pattern));
        match language {
            Ok(_) => {
                n_compiled += 1;
                let looks = ["(?=", "(?!", "(?<=", "(?<!"];
                let looks = looks.iter().any(|look| pattern.contains(look));
                n_around += usize::from(looks);
            }
            Err(error) => refused.push((pattern, error)),
        }
    }
    println!(
        "{} distinct patterns in {} schemas: {n_compiled} compile ({n_around} \
         of them look around), {} are refused",
        patterns.len(),
        entries.len(),
        refused.len(),
    );
    for (pattern, error) in refused {
        println!("refused {pattern:?}: {error}");
    }
    times.sort_by(|a, b| b.cmp(a));
    for (time, pattern) in &times[..times.len().min(N_SLOWEST)] {
        let shown: String = pattern.chars().take(60).collect();
        println!("{time:>10.1?} {shown:?}");
    }
}

/// Adds the patterns of a schema, wherever they stand.
fn collect<'a>(schema: &'a Value, patterns: &mut BTreeSet<&'a str>) {
    let mut todo = vec![schema];
    while let Some(value) = todo.pop() {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    match (name.as_str(), value) {
                        ("pattern", Value::String(pattern)) => {
                            patterns.insert(pattern);
                        }
                        ("patternProperties", Value::Object(keys)) => {
                            patterns.extend(keys.keys().map(String::as_str));
                        }
                        _ => {}
                    }
                    todo.push(value);
                }
            }
            Value::Array(items) => todo.extend(items),
            _ => {}
        }
    }
}
