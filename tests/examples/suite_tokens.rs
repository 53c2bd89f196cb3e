//! Runs the official JSON-Schema-Test-Suite token by token.
//!
//! ```sh
//! cargo run --release -p maskwright-tests --example suite_tokens -- [FILTER]
//! ```
//!
//! Every instance, in each spelling that the suite's byte run tries, is split
//! into tokens twice: each time the longest that fits, and at random. A valid
//! one must be allowed by every mask on the way and an end token by the last;
//! an invalid one must not. The vocabulary is that of Llama 3.1, if it is
//! there (`bench/fetch-tokenizer.sh`), or else a small one. What is not right
//! by bytes is not by tokens either: `json-schema/tests/suite/exceptions.txt`.
#![allow(clippy::print_stdout, reason = "it is a program that reports")]

mod program;

use maskwright_tests::{
    suite::{Score, Suite},
    vocabularies::{llama, pieces},
};
use program::bar;

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let tokens = llama().unwrap_or_else(|| pieces(&[], 0));
    let Some(suite) = Suite::read(&filter, tokens) else {
        println!("the suite is not there; set MASKWRIGHT_SHARED");
        return;
    };
    let bar = bar(suite.n_schemas() as u64);
    let mut score = Score::default();
    for number in 0..suite.n_schemas() {
        suite.run(number, &mut score);
        bar.inc(1);
    }
    bar.finish_and_clear();
    for line in &score.wrong {
        println!("{line}");
    }
    let n_tests = score.n_right + score.wrong.len();
    println!(
        "{} of {n_tests} tests of {} schemas right, {} texts, {} tokens \
         looked up",
        score.n_right,
        suite.n_schemas(),
        score.n_texts,
        score.n_tokens,
    );
}
