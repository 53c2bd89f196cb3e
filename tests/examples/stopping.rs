//! How soon work stops that is broken off.
//!
//! ```sh
//! cargo run --release -p maskwright-tests --example stopping -- [--schemas N]
//! ```
//!
//! Every schema of MaskBench is compiled, and the masks along its instances
//! made, under limits on time that are shorter than the work: how long after
//! its limit each call returns is what is printed. What is broken off is tried
//! again with twice the time, until it is done.
#![allow(clippy::print_stdout, reason = "it is a program that reports")]

use std::{
    error::Error,
    time::{Duration, Instant},
};

use clap::Parser;
use maskwright::{
    compiler::{CompileError, Compiler, GrammarSource},
    interrupt::Interrupt,
    matcher::{Matcher, MatcherError},
};
use maskwright_grammar_core::automaton::AutomatonError;
use maskwright_tests::{maskbench::entries, vocabularies::llama};

/// Measures how soon work stops.
#[derive(Debug, Parser)]
struct Options {
    /// How many schemas are looked at.
    #[arg(long, default_value_t = 400)]
    schemas: usize,
    /// The first limit, in microseconds.
    #[arg(long, default_value_t = 20)]
    first_us: u64,
}

/// How long after their limits calls returned, with what they were asked.
#[derive(Debug, Default)]
struct Late {
    n_done: usize,
    times: Vec<(Duration, String)>,
}

impl Late {
    /// Calls `work` under longer and longer limits until it is done.
    fn watch<T, E>(
        &mut self,
        name: &str,
        first: Duration,
        is_interrupted: impl Fn(&E) -> bool,
        mut work: impl FnMut(&Interrupt) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut limit = first;
        loop {
            let start = Instant::now();
            let result = work(&Interrupt::after(limit));
            let elapsed = start.elapsed();
            match result {
                Err(error) if is_interrupted(&error) => {
                    let late = elapsed.saturating_sub(limit);
                    self.times.push((late, name.to_owned()));
                    limit *= 2;
                }
                result => {
                    self.n_done += 1;
                    return result;
                }
            }
        }
    }

    fn print(&mut self, what: &str) {
        self.times.sort_by(|one, other| other.cmp(one));
        let count = self.times.len();
        let at = |permille: usize| {
            let index = (count * (1_000 - permille) / 1_000).min(count - 1);
            self.times[index].0
        };
        println!("{what}: {} done, {count} broken off", self.n_done);
        if count == 0 {
            return;
        }
        println!(
            "  late by p50 {:?}, p99 {:?}, p99.9 {:?}; the latest:",
            at(500),
            at(990),
            at(999)
        );
        for (late, name) in self.times.iter().take(8) {
            println!("  {late:?} {name}");
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let entries = entries(options.schemas)
        .ok_or("the schemas of MaskBench are not there")?;
    let trie = llama().ok_or("the tokenizer of Llama 3.1 is not there")?;
    let first = Duration::from_micros(options.first_us);
    let (mut compiles, mut masks) = (Late::default(), Late::default());
    let mut words = vec![0; trie.vocabulary().n_logits().div_ceil(32)];
    for entry in &entries {
        let source = GrammarSource::schema(entry.schema.to_string());
        let compiler = Compiler::new(1 << 30);
        let compiled = compiles.watch(
            &entry.name,
            first,
            |error| matches!(error, CompileError::Interrupted(_)),
            |interrupt| compiler.compile_within(&trie, &source, interrupt),
        );
        // What does not compile is of no interest here.
        let Ok(compiled) = compiled else { continue };
        let Ok(mut matcher) = Matcher::new(compiled.compiled) else {
            continue;
        };
        for (data, _) in entry.tests.iter().filter(|(_, is_valid)| *is_valid) {
            matcher.reset()?;
            for byte in data.to_string().bytes() {
                let made = masks.watch(
                    &entry.name,
                    first,
                    is_interrupted,
                    |interrupt| {
                        matcher.mask_into_within(&mut words, interrupt)
                    },
                );
                if made.is_err() || matcher.accept_bytes(&[byte]).is_err() {
                    break;
                }
            }
        }
    }
    compiles.print("compiling");
    masks.print("masks");
    Ok(())
}

fn is_interrupted(error: &MatcherError) -> bool {
    matches!(error, MatcherError::Automaton(AutomatonError::Interrupted(_)))
}
