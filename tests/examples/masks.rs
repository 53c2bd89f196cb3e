//! Masks of a whole vocabulary against brute force, along MaskBench's texts.
//!
//! ```sh
//! cargo run --release -p maskwright-tests --example masks -- [N] [FILTER]
//! ```
//!
//! `N` schemas (200), spread evenly over those whose text contains `FILTER`
//! (`"pattern"`). A few states of each valid instance are looked at, most of
//! them within strings and keys, where masks are made in the most ways. Toy
//! vocabularies, which the tests use, are too small for some of these. The
//! vocabulary is that of Llama 3.1 (`bench/fetch-tokenizer.sh`).
#![allow(clippy::print_stdout, reason = "it is a program that reports")]

mod program;

use std::{env, sync::Arc};

use maskwright::{
    grammar::{Grammar, SchemaOptions},
    mask::TokenTrie,
    matcher::Matcher,
};
use maskwright_tests::{
    maskbench::{Entry, entries},
    tokens::{Split, Splitter},
    vocabularies::{Random, llama},
};
use program::bar;

/// How many states of a schema are looked at: brute force steps the whole
/// vocabulary in each.
const N_STATES: usize = 6;

fn main() {
    let mut arguments = env::args().skip(1);
    let n = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(200);
    let filter = arguments.next().unwrap_or_else(|| "\"pattern\"".to_owned());
    let (Some(tokens), Some(all)) = (llama(), entries(usize::MAX)) else {
        println!("the vocabulary or the corpus is not there");
        return;
    };
    let all: Vec<Entry> = all
        .into_iter()
        .filter(|entry| entry.schema.to_string().contains(&filter))
        .collect();
    let n = n.min(all.len());
    let splitter = Splitter::new(tokens.vocabulary());
    let (mut n_states, mut n_wrong) = (0, 0);
    let bar = bar(n as u64);
    for index in 0..n {
        let entry = &all[index * all.len() / n];
        let random = Random::new(index as u64);
        let (looked_at, wrong) = compare(entry, &tokens, &splitter, random);
        n_states += looked_at;
        n_wrong += wrong.len();
        for line in wrong {
            bar.println(line);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    println!("{n} schemas, {n_states} states, {n_wrong} masks wrong");
}

/// Returns how many states were looked at, and what was wrong.
fn compare(
    entry: &Entry,
    tokens: &Arc<TokenTrie>,
    splitter: &Splitter,
    mut random: Random,
) -> (usize, Vec<String>) {
    let mut wrong = Vec::new();
    let schema = entry.schema.to_string();
    let Ok(grammar) = Grammar::from_schema(&schema, &SchemaOptions::default())
    else {
        return (0, wrong);
    };
    let compiled = grammar.compile(tokens).expect("no atoms");
    let Some((value, _)) = entry.tests.iter().find(|(_, is_valid)| *is_valid)
    else {
        return (0, wrong);
    };
    let text = value.to_string();
    let split = splitter.split(&text, Split::Longest);
    let mut matcher = Matcher::new(compiled).expect("a start");
    let mut n_states = 0;
    for &token in &split {
        let within = matcher.describe().starts_with("inside");
        if n_states < N_STATES && random.chance(if within { 40 } else { 5 }) {
            n_states += 1;
            let mask = matcher.mask().expect("a mask").clone();
            let exact = matcher.brute_force_mask().expect("a mask");
            if mask != exact {
                let differs =
                    mask.bits().symmetric_difference(exact.bits()).count();
                let place = matcher.describe();
                wrong.push(format!("{}: {differs}, {place}", entry.name));
            }
        }
        if matcher.accept(token).is_err() {
            break;
        }
    }
    (n_states, wrong)
}
