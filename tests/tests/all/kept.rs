//! Masks that are kept whole equal those that are put together anew.
//!
//! A mask is kept by the frames that it was found to depend on. Where that
//! is one too few, another place gets a mask that is not its own; so many
//! walks share the grammar that keeps, each place is asked for often enough
//! to be kept, and beside it a grammar that forgets everything says what the
//! mask is.

use std::sync::Arc;

use maskwright::{
    grammar::{Grammar, SchemaOptions},
    mask::TokenTrie,
    matcher::Matcher,
    vocabulary::TokenId,
};
use maskwright_tests::{
    corpus::cases,
    maskbench,
    vocabularies::{Random, pieces},
};

/// A mask of few walks is kept when it comes for the fifth time.
const ENOUGH: usize = 6;

fn start(grammar: &Grammar, trie: &Arc<TokenTrie>) -> Matcher {
    let compiled = grammar.compile(trie).expect("no atoms");
    Matcher::new(compiled).expect("a start")
}

/// Returns how many masks were compared.
fn compare(
    name: &str,
    grammar: &Grammar,
    trie: &Arc<TokenTrie>,
    n_walks: u64,
    n_steps: usize,
) -> usize {
    let keeping = start(grammar, trie);
    let forgetful = start(grammar, trie);
    let mut n_masks = 0;
    for seed in 0..n_walks {
        // Each walk is gone twice.
        let mut random = Random::new(seed / 2);
        let mut keeping = keeping.fork();
        let mut forgetful = forgetful.fork();
        let mut words = vec![0; trie.vocabulary().n_logits().div_ceil(32)];
        for _ in 0..n_steps {
            forgetful.grammar().clear_cache();
            let Ok(mask) = forgetful.mask().cloned() else { break };
            let place = keeping.describe();
            for _ in 0..ENOUGH {
                assert_eq!(keeping.mask(), Ok(&mask), "{name}: {place}");
            }
            assert!(keeping.mask_stats().is_hit(), "{name}: {place}");
            keeping.mask_into(&mut words).expect("a mask");
            let same = mask.words().eq(words.iter().copied());
            assert!(same, "{name}: {place}");
            n_masks += 1;
            let tokens: Vec<TokenId> = mask.tokens().collect();
            let token = *random.pick(&tokens);
            for matcher in [&mut keeping, &mut forgetful] {
                matcher.accept(token).expect("a token of the mask");
            }
            if keeping.is_terminated() {
                break;
            }
        }
    }
    n_masks
}

#[test]
fn kept_masks_of_the_corpus_are_those_made_anew() {
    let mut n_masks = 0;
    for (seed, case) in (0..).zip(cases()) {
        let texts: Vec<&str> =
            case.accept.iter().map(String::as_str).collect();
        let trie = pieces(&texts, seed);
        for options in [SchemaOptions::default(), SchemaOptions::widest()] {
            let Ok(grammar) = case.compile_with(&options) else { continue };
            n_masks += compare(&case.name, &grammar, &trie, 6, 12);
        }
    }
    assert!(n_masks > 5_000, "{n_masks}");
}

#[test]
fn kept_masks_of_real_schemas_are_those_made_anew() {
    let Some(entries) = maskbench::entries(150) else { return };
    let mut n_schemas = 0;
    for (seed, entry) in (0..).zip(entries) {
        let schema = &entry.schema;
        let options = SchemaOptions::default();
        let Ok(grammar) = Grammar::from_schema_value(schema, &options) else {
            continue;
        };
        compare(&entry.name, &grammar, &entry.pieces(seed), 4, 12);
        n_schemas += 1;
    }
    assert!(n_schemas > 100, "{n_schemas}");
}
