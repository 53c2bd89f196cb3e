//! Masks are the same whatever is cached: nothing, little, everything, and
//! what was made in advance.

use std::{sync::Arc, time::Duration};

use maskwright::{
    compiled::CompiledGrammar,
    grammar::{Grammar, SchemaOptions},
    interrupt::Interrupt,
    mask::{TokenMask, TokenTrie},
    matcher::Matcher,
    precompute::{PrecomputeEnd, PrecomputeOptions},
    vocabulary::TokenId,
};
use maskwright_tests::{
    corpus::cases,
    maskbench,
    vocabularies::{Random, pieces},
};

fn options(max_places: usize) -> PrecomputeOptions {
    let n_threads = 2;
    PrecomputeOptions { max_places, n_threads, ..Default::default() }
}

fn start(grammar: &Grammar, trie: &Arc<TokenTrie>) -> Matcher {
    let compiled = grammar.compile(trie).expect("no atoms");
    Matcher::new(compiled).expect("a start")
}

/// The mask after `read` of a grammar and a vocabulary that nothing is known
/// of.
fn bare_mask(
    grammar: &Grammar,
    read: &[TokenId],
    like: &TokenTrie,
) -> TokenMask {
    let trie = Arc::new(TokenTrie::new(Arc::clone(like.vocabulary())));
    let mut matcher = start(grammar, &trie);
    let n_read = matcher.try_accept(read).expect("no limit");
    assert_eq!(n_read, read.len());
    matcher.mask().expect("a mask").clone()
}

/// Walks at random, and compares. Returns how many masks were compared and
/// how many of those that were made in advance were hits.
fn compare(
    name: &str,
    grammar: &Grammar,
    trie: &Arc<TokenTrie>,
    seed: u64,
    n_steps: usize,
) -> (usize, usize) {
    let mut random = Random::new(seed);
    let mut full = start(grammar, trie);
    let mut small = start(grammar, trie);
    let mut ahead = start(grammar, &Arc::new(trie.snapshot()));
    let done = ahead.grammar().precompute(&options(60));
    let done = done.expect("no limit");
    assert!(done.n_places > 0 && done.n_places <= 60, "{name}: {done:?}");
    let (mut read, mut n_hits) = (Vec::new(), 0);
    for step in 0..n_steps {
        let mask = full.mask().expect("a mask").clone();
        small.grammar().clear_cache();
        assert_eq!(small.mask(), Ok(&mask), "{name}: {read:?}");
        assert_eq!(ahead.mask(), Ok(&mask), "{name}: {read:?}");
        n_hits += usize::from(ahead.mask_stats().is_hit());
        if step % 3 == 0 {
            assert_eq!(bare_mask(grammar, &read, trie), mask, "{name}");
        }
        if random.chance(10) {
            let exact = full.brute_force_mask().expect("a mask");
            assert_eq!(exact, mask, "{name}: {read:?}");
        }
        let tokens: Vec<TokenId> = mask.tokens().collect();
        let token = *random.pick(&tokens);
        for matcher in [&mut full, &mut small, &mut ahead] {
            matcher.accept(token).expect("a token of the mask");
        }
        if full.is_terminated() {
            return (step + 1, n_hits);
        }
        read.push(token);
    }
    (n_steps, n_hits)
}

#[test]
fn masks_of_the_corpus_do_not_depend_on_caches() {
    let (mut n_masks, mut n_hits) = (0, 0);
    for (seed, case) in (0..).zip(cases()) {
        let Ok(grammar) = case.compile() else { continue };
        let texts: Vec<&str> =
            case.accept.iter().map(String::as_str).collect();
        let trie = pieces(&texts, seed);
        let (masks, hits) = compare(&case.name, &grammar, &trie, seed, 10);
        (n_masks, n_hits) = (n_masks + masks, n_hits + hits);
    }
    // Sixty places are not all, but most of what a short text sees.
    assert!(n_hits * 10 > n_masks * 8, "{n_hits} of {n_masks}");
}

#[test]
fn masks_of_real_schemas_do_not_depend_on_caches() {
    let Some(entries) = maskbench::entries(230) else { return };
    let mut n_schemas = 0;
    for (seed, entry) in (0..).zip(entries) {
        let schema = &entry.schema;
        let default = SchemaOptions::default();
        let Ok(grammar) = Grammar::from_schema_value(schema, &default) else {
            continue;
        };
        compare(&entry.name, &grammar, &entry.pieces(seed), seed, 9);
        n_schemas += 1;
    }
    assert!(n_schemas >= 200, "{n_schemas}");
}

fn compiled(schema: &str) -> Arc<CompiledGrammar> {
    let grammar = Grammar::from_schema(schema, &SchemaOptions::default());
    let trie = pieces(&[r#"{"name": "x", "list": [1, 20]}"#], 1);
    grammar.expect("valid").compile(&trie).expect("no atoms")
}

const SMALL: &str = r#"{"type": "object", "properties": {
    "name": {"enum": ["x", "yy"]}, "flag": {"type": "boolean"}},
    "required": ["name"], "additionalProperties": false}"#;

/// Where all places were gone to, no mask has anything left to make.
#[test]
fn all_masks_of_a_small_grammar_are_hits() {
    for n_threads in [1, 2] {
        let grammar = compiled(SMALL);
        let options = PrecomputeOptions { n_threads, ..Default::default() };
        let done = grammar.precompute(&options).expect("no limit");
        assert_eq!(done.end, PrecomputeEnd::Complete);
        assert!(done.n_walks > 10, "{done:?}");
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut matcher = Matcher::new(Arc::clone(&grammar)).expect("one");
            while !matcher.is_terminated() {
                let tokens: Vec<TokenId> =
                    matcher.mask().expect("a mask").tokens().collect();
                let stats = matcher.mask_stats();
                assert!(stats.is_hit(), "{stats:?}: {matcher:?}");
                matcher.accept(*random.pick(&tokens)).expect("allowed");
            }
        }
        let again = grammar.precompute(&options).expect("no limit");
        assert_eq!((again.n_places, again.n_walks), (done.n_places, 0));
    }
}

#[test]
fn limits_end_it_and_are_told() {
    let nested = r##"{"type": "array", "items": {"$ref": "#"}}"##;
    let grammar = compiled(nested);
    let done = grammar.precompute(&options(3)).expect("no error");
    assert_eq!((done.n_places, done.end), (3, PrecomputeEnd::Places));
    let few = PrecomputeOptions { max_bytes: 1, ..options(1_000) };
    let done = compiled(SMALL).precompute(&few).expect("no error");
    assert_eq!(done.end, PrecomputeEnd::Bytes);
    let interrupt = Interrupt::after(Duration::ZERO);
    let none = PrecomputeOptions { interrupt, ..options(1_000) };
    let grammar = compiled(SMALL);
    let done = grammar.precompute(&none).expect("no error");
    assert_eq!(done.end, PrecomputeEnd::Interrupted);
    // And nothing is wrong after it.
    let done = grammar.precompute(&options(1_000)).expect("no error");
    assert_eq!(done.end, PrecomputeEnd::Complete);
}
