//! Prints what masks cost: for a few grammars and texts, nanoseconds a mask,
//! with cold walks (a new grammar for each text) and with warm ones.
//!
//! `cargo run --release --example mask_speed -- tokenizer.json`
//!
//! With `check` after the path, every mask is also compared with brute force.
#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use maskwright::{
    compiled::CompiledGrammar,
    mask::TokenTrie,
    matcher::Matcher,
    vocabulary::{TokenId, Vocabulary},
};
use maskwright_grammar_core::automaton::Automaton;
use maskwright_json_schema::{Options, compile};

/// A name, a schema, and texts that it allows.
type Case = (&'static str, &'static str, &'static [&'static str]);

const CASES: &[Case] = &[
    (
        "any value",
        "true",
        &[
            r#"{"name": "Ada", "tags": ["x", "y\n"], "age": 36.5e2}"#,
            r#"[1, 2, {"deep": {"er": null}}, "text of some length, plain"]"#,
        ],
    ),
    (
        "flat object",
        r#"{"type": "object", "properties": {
            "name": {"type": "string"}, "age": {"type": "integer"},
            "email": {"type": "string", "maxLength": 40},
            "kind": {"enum": ["person", "company"]},
            "tags": {"type": "array", "items": {"type": "string"}}
        }, "required": ["name", "age"], "additionalProperties": false}"#,
        &[
            r#"{"name": "Ada Lovelace", "age": 36, "kind": "person"}"#,
            r#"{"name": "Bob", "age": 7, "email": "bob@example.org", "kind": "company", "tags": ["a", "b"]}"#,
        ],
    ),
    (
        "open object",
        r#"{"type": "object", "properties": {
            "name": {"type": "string"}, "size": {"type": "number"}
        }, "required": ["name"]}"#,
        &[r#"{"name": "disk", "size": 12.5, "other": [true, null]}"#],
    ),
    (
        "patterns",
        r#"{"type": "object", "properties": {
            "id": {"type": "string", "pattern": "^[a-z]{2,8}-[0-9]+$"},
            "note": {"type": "string", "minLength": 3, "maxLength": 100}
        }, "required": ["id", "note"]}"#,
        &[r#"{"id": "disk-0042", "note": "a short note on it"}"#],
    ),
];

/// How often each text is read; the best time of a mask counts, so that
/// whatever else the machine does does not.
const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let path =
        std::env::args().nth(1).ok_or("the path of a tokenizer.json")?;
    let vocabulary = Arc::new(Vocabulary::from_path(&path)?);
    let start = Instant::now();
    let tokens = Arc::new(TokenTrie::new(vocabulary));
    println!("trie: {:?}, {tokens:?}", start.elapsed());
    let (mut all_cold, mut all_warm) = (Vec::new(), Vec::new());
    for &(name, schema, texts) in CASES {
        let (mut cold, mut warm) = (Vec::new(), Vec::new());
        for &text in texts {
            let (mut colds, mut warms) = (Vec::new(), Vec::new());
            let text = split(tokens.vocabulary(), text);
            if std::env::args().nth(2).as_deref() == Some("check") {
                check(&bind(schema, &tokens)?, &text)?;
            }
            for _ in 0..ROUNDS {
                let grammar = bind(schema, &tokens)?;
                best(&mut colds, measure(&grammar, &text)?);
                best(&mut warms, measure(&grammar, &text)?);
            }
            cold.extend(colds);
            warm.extend(warms);
        }
        report(name, "cold", &mut cold);
        report(name, "warm", &mut warm);
        all_cold.extend(cold);
        all_warm.extend(warm);
    }
    report("all", "cold", &mut all_cold);
    report("all", "warm", &mut all_warm);
    Ok(())
}

/// The times of the masks along a text, each with the text before it.
type Times = Vec<(Duration, String)>;

fn best(times: &mut Times, more: Times) {
    if times.is_empty() {
        *times = more;
        return;
    }
    for (time, more) in times.iter_mut().zip(more) {
        time.0 = time.0.min(more.0);
    }
}

fn bind(
    schema: &str,
    tokens: &Arc<TokenTrie>,
) -> Result<Arc<CompiledGrammar>, Box<dyn Error>> {
    let automaton: Arc<dyn Automaton> =
        compile(schema, &Options::default())?.automaton;
    let grammar = CompiledGrammar::new(automaton, Arc::clone(tokens))?;
    Ok(Arc::new(grammar))
}

/// Takes a mask, copied out, before each of `tokens`.
fn measure(
    grammar: &Arc<CompiledGrammar>,
    tokens: &[TokenId],
) -> Result<Times, Box<dyn Error>> {
    let mut times = Times::new();
    let mut matcher = Matcher::new(Arc::clone(grammar))?;
    let mut words = vec![0; grammar.vocabulary().n_logits().div_ceil(32)];
    let mut before = String::new();
    for &token in tokens {
        let start = Instant::now();
        matcher.mask_into(&mut words)?;
        times.push((start.elapsed(), before.clone()));
        matcher.accept(token)?;
        before.push_str(&grammar.vocabulary().text(token));
    }
    Ok(times)
}

/// Compares the masks along a text with brute force.
fn check(
    grammar: &Arc<CompiledGrammar>,
    tokens: &[TokenId],
) -> Result<(), Box<dyn Error>> {
    let mut matcher = Matcher::new(Arc::clone(grammar))?;
    let mut n_wrong = 0;
    for &token in tokens {
        let exact = matcher.brute_force_mask()?;
        if *matcher.mask()? != exact {
            n_wrong += 1;
            println!("    wrong: {}", matcher.describe());
        }
        matcher.accept(token)?;
    }
    println!("    {} masks checked, {n_wrong} wrong", tokens.len());
    Ok(())
}

/// Splits `text` into tokens, each as long as possible.
fn split(vocabulary: &Vocabulary, text: &str) -> Vec<TokenId> {
    let mut tokens = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((token, length)) = longest(vocabulary, rest) {
        tokens.push(token);
        rest = &rest[length..];
    }
    tokens
}

/// Returns the longest token that begins `text`.
fn longest(vocabulary: &Vocabulary, text: &[u8]) -> Option<(TokenId, usize)> {
    vocabulary
        .text_tokens()
        .filter(|(_, bytes)| text.starts_with(bytes))
        .map(|(token, bytes)| (token, bytes.len()))
        .max_by_key(|&(_, length)| length)
}

fn report(name: &str, round: &str, times: &mut Times) {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].0;
    let sum: Duration = times.iter().map(|(time, _)| *time).sum();
    println!(
        "{name:12} {round} {:4} masks: p50 {:>8?} p90 {:>8?} p99 {:>8?} \
         mean {:>8?}",
        times.len(),
        at(50),
        at(90),
        at(99),
        sum / u32::try_from(times.len()).unwrap_or(u32::MAX),
    );
    for (time, place) in times.iter().rev().take(3) {
        println!("    {time:>9?} after {place}");
    }
}
