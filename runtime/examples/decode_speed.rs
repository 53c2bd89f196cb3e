//! Measures how fast the bundled models read a prompt and write tokens.
//!
//! `cargo run --release --example decode_speed -- MODEL N_NEW RUNS`
//! reads token ids from the standard input (one line, separated by spaces),
//! decodes greedily, and prints one JSON line. `bench/decode_speed` runs it
//! beside another engine.

use std::io::{self, BufRead, Write};
use std::path::Path;
use std::time::Instant;

use maskwright::model::{Feed, Logits, Want, load};

fn argmax(row: &[f32]) -> u32 {
    let mut best = (0, f32::NEG_INFINITY);
    for (token, logit) in (0..).zip(row) {
        if *logit > best.1 {
            best = (token, *logit);
        }
    }
    best.0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: MODEL N_NEW RUNS")?;
    let n_new: usize = arguments.next().ok_or("N_NEW is missing")?.parse()?;
    let n_runs: usize = arguments.next().ok_or("RUNS is missing")?.parse()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let prompt: Vec<u32> =
        line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;

    let start = Instant::now();
    let loaded = load(Path::new(&path))?;
    let load_s = start.elapsed().as_secs_f64();
    let model = loaded.model;
    let mut logits = Logits::new();
    let mut out = io::stdout().lock();
    for _ in 0..n_runs {
        let mut cache = model.new_cache();
        let mut step = |tokens: &[u32]| {
            let feed = Feed { tokens, cache: &mut cache, want: Want::Last };
            model.forward(&mut [feed], &mut logits)?;
            let row = logits.last(0).ok_or("no logits")?;
            Ok::<u32, Box<dyn std::error::Error>>(argmax(row))
        };
        let start = Instant::now();
        let mut token = step(&prompt)?;
        let prompt_s = start.elapsed().as_secs_f64();
        let mut tokens = vec![token];
        let start = Instant::now();
        while tokens.len() <= n_new {
            token = step(&[token])?;
            tokens.push(token);
        }
        let decode_s = start.elapsed().as_secs_f64();
        writeln!(
            out,
            "{{\"load_s\": {load_s}, \"prompt_s\": {prompt_s}, \
             \"decode_s\": {decode_s}, \"tokens\": {tokens:?}}}"
        )?;
    }
    Ok(())
}
