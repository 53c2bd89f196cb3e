//! Ten sentences, three labels: with the choices as a grammar the answer is a
//! label each time; how often is it without?
//!
//! ```sh
//! cargo run --release -p maskwright-tests --example labels
//! ```
#![allow(clippy::print_stdout, reason = "it is a program that reports")]

use std::ops::ControlFlow;

use maskwright::{
    classify::{classify, prompt},
    generate::{Generator, Request},
    pipeline::SamplingOptions,
};
use maskwright_tests::{
    sentences::{LABELS, TEXTS},
    vocabularies::real_model,
};

fn main() {
    let model = real_model("ten sentences").expect("the model is fetched");
    let mut generator = Generator::new(model).expect("a chat template");
    let (mut n_with, mut n_without) = (0, 0);
    for text in TEXTS {
        let scores = classify(&mut generator, &LABELS, text).expect("scores");
        n_with += u32::from(LABELS.contains(&&*scores[0].label));
        let request = Request {
            prompt: prompt(&LABELS, text),
            grammar: None,
            max_tokens: 24,
            sampling: SamplingOptions::greedy(),
            finish_within_budget: false,
            ..Request::default()
        };
        let free = generator
            .generate(&request, &mut |_| ControlFlow::Continue(()))
            .expect("an answer");
        let answer = free.text.trim();
        n_without += u32::from(LABELS.contains(&answer));
        println!(
            "{text:?}: {} ({:.2}); free: {answer:?}",
            scores[0].label, scores[0].probability,
        );
    }
    println!("a label with the grammar: {n_with} of {}", TEXTS.len());
    println!("a label without it: {n_without} of {}", TEXTS.len());
}
