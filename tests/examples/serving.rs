//! What serving engines ask for, in figures.
//!
//! ```sh
//! cargo run --release -p maskwright-tests --example serving
//! ```
//!
//! The masks of many sequences under different schemas of MaskBench, all of
//! them new: along valid instances on a plain loop and on pools of one thread
//! and more, in turns; and rows of logits under masks. The vocabulary is that
//! of Llama 3.1, which `bench/fetch-tokenizer.sh` fetches. With `--tokenizer`,
//! the time to read a vocabulary as it comes, and from a file of ours.
#![allow(clippy::print_stdout, reason = "it is a program that reports")]

use std::{
    error::Error,
    hint::black_box,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Parser;
use half::{bf16, f16};
use maskwright::{
    batch::{BatchMatcher, BatchRow, RowMask},
    grammar::{Grammar, SchemaOptions},
    mask::TokenTrie,
    matcher::Matcher,
    pipeline::{Logit, mask_logits},
    vocabulary::TokenId,
};
use maskwright_tests::{
    maskbench::entries,
    tokens::{Split, Splitter},
    vocabularies::llama,
};

/// Measures batches of masks, and rows of logits.
#[derive(Debug, Parser)]
struct Options {
    /// How many sequences are in a batch.
    #[arg(long, default_value_t = 64)]
    sequences: usize,
    /// How many tokens each of them reads.
    #[arg(long, default_value_t = 24)]
    steps: usize,
    /// How often each way is tried.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// A `tokenizer.json` to read, for the time that takes.
    #[arg(long)]
    tokenizer: Option<PathBuf>,
    /// How many threads the pools have.
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
}

/// A schema, and tokens of one of its instances.
struct Sequence {
    grammar: Grammar,
    tokens: Vec<TokenId>,
}

fn sequences(options: &Options, tokens: &TokenTrie) -> Vec<Sequence> {
    let all = entries(options.sequences * 3).unwrap_or_default();
    let splitter = Splitter::new(tokens.vocabulary());
    let sequences = all.into_iter().filter_map(|entry| {
        let default = SchemaOptions::default();
        let grammar = Grammar::from_schema_value(&entry.schema, &default);
        let (value, _) = entry.tests.iter().find(|(_, valid)| *valid)?;
        let tokens = splitter.split(&value.to_string(), Split::Longest);
        Some(Sequence { grammar: grammar.ok()?, tokens })
    });
    sequences.take(options.sequences).collect()
}

/// Makes all masks of a batch that is new, and returns how long that took.
fn run(
    options: &Options,
    sequences: &[Sequence],
    warm: &TokenTrie,
    pool: Option<&BatchMatcher>,
) -> Result<Duration, Box<dyn Error>> {
    let trie = Arc::new(warm.snapshot());
    let n_words = trie.vocabulary().n_logits().div_ceil(32);
    let mut matchers = Vec::new();
    for sequence in sequences {
        matchers.push(Matcher::new(sequence.grammar.compile(&trie)?)?);
    }
    let mut bitmask = vec![0_u32; n_words * matchers.len()];
    let mut elapsed = Duration::ZERO;
    for step in 0..options.steps {
        let start = Instant::now();
        let words = bitmask.chunks_exact_mut(n_words);
        let mut rows: Vec<BatchRow<'_>> = matchers
            .iter_mut()
            .zip(words)
            .map(|(matcher, words)| BatchRow::new(matcher, words))
            .collect();
        if let Some(pool) = pool {
            for result in pool.fill(&mut rows, None) {
                assert!(matches!(result?, RowMask::Done { .. }));
            }
        } else {
            drop(rows);
            let words = bitmask.chunks_exact_mut(n_words);
            for (matcher, words) in matchers.iter_mut().zip(words) {
                matcher.mask_into(words)?;
            }
        }
        elapsed += start.elapsed();
        for (matcher, sequence) in matchers.iter_mut().zip(sequences) {
            if let Some(&token) = sequence.tokens.get(step) {
                matcher.try_accept(&[token])?;
            }
        }
    }
    Ok(elapsed)
}

fn batches(options: &Options) -> Result<(), Box<dyn Error>> {
    let Some(warm) = llama() else { return Ok(()) };
    warm.warm_up(&SchemaOptions::default());
    let mut pools = vec![None];
    for &n_threads in &options.threads {
        pools.push(Some(BatchMatcher::new(n_threads)?));
    }
    let mut best = vec![Duration::MAX; pools.len()];
    for _ in 0..options.rounds {
        for (pool, best) in pools.iter().zip(&mut best) {
            // New machines each time, made before the clock starts.
            let sequences = sequences(options, &warm);
            let took = run(options, &sequences, &warm, pool.as_ref())?;
            *best = took.min(*best);
        }
    }
    for (pool, took) in pools.iter().zip(&best) {
        let name = match pool {
            None => "a plain loop".to_owned(),
            Some(pool) => format!("a pool of {}", pool.n_threads()),
        };
        let ratio = best[0].as_secs_f64() / took.as_secs_f64();
        println!("{name}: {took:.1?}, {ratio:.2} times the loop");
    }
    Ok(())
}

/// A mask's words, by their place.
type Words = fn(usize) -> u32;

fn logits<L: Logit>(name: &str, one: L) {
    const N: usize = 151_936;
    const TIMES: u32 = 200;
    let patterns: [(&str, Words); 4] = [
        ("everything", |_| u32::MAX),
        ("nothing", |_| 0),
        ("every third token", |word| 0x4924_9249 << (word % 3)),
        ("all but a few", |word| if word % 40 == 0 { 7 } else { u32::MAX }),
    ];
    for (what, word) in patterns {
        let words: Vec<u32> = (0..N.div_ceil(32)).map(word).collect();
        let mut row = vec![one; N];
        let start = Instant::now();
        for _ in 0..TIMES {
            mask_logits(black_box(&mut row), black_box(&words));
        }
        let took = start.elapsed() / TIMES;
        println!("{name}, {what} allowed: {took:.1?} a row of {N}");
    }
}

/// Reads a vocabulary as it comes, and from a file of ours.
fn vocabularies(tokenizer: &Path) -> Result<(), Box<dyn Error>> {
    let part = format!("maskwright-{}.vocabulary", std::process::id());
    let cache = std::env::temp_dir().join(part);
    for _ in 0..4 {
        let start = Instant::now();
        let loaded = TokenTrie::from_path_cached(tokenizer, None, &cache)?;
        let took = start.elapsed();
        println!("the vocabulary: {took:.1?}, {:?}", loaded.1);
    }
    std::fs::remove_file(&cache)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    if let Some(tokenizer) = &options.tokenizer {
        vocabularies(tokenizer)?;
    }
    logits("f32", 1.0_f32);
    logits("f16", f16::ONE);
    logits("bf16", bf16::ONE);
    batches(&options)
}
