//! Masks equal brute force over the vocabulary, on random walks.

use std::sync::Arc;

use maskwright::{
    grammar::{Grammar, SchemaOptions, Whitespace},
    mask::{TokenMask, TokenTrie},
    matcher::Matcher,
};
use maskwright_tests::{
    corpus::{Case, cases},
    gbnf::random_grammar,
    vocabularies::{Random, pieces, real_model},
    walk::walk,
};

fn compare(case: &Case, trie: &Arc<TokenTrie>, n_states: usize, seed: u64) {
    for options in [SchemaOptions::widest(), SchemaOptions::default()] {
        let Ok(grammar) = case.compile_with(&options) else { return };
        let compiled = grammar.compile(trie).expect("no atoms");
        let mut matcher = Matcher::new(compiled).expect("a start");
        let mut random = Random::new(seed);
        walk(&mut matcher, n_states, &mut random, &mut |matcher, mask| {
            check(case, matcher, mask);
        });
        if case.kind != "schema" {
            return;
        }
    }
}

fn check(case: &Case, matcher: &Matcher, mask: &TokenMask) {
    let brute = matcher.brute_force_mask().expect("a mask");
    assert!(
        *mask == brute,
        "{} in {}: the mask is {mask:?} and should be {brute:?}",
        case.name,
        matcher.describe(),
    );
}

#[test]
fn masks_equal_brute_force_on_toy_vocabularies() {
    let cases: Vec<Case> =
        cases().into_iter().filter(|case| case.error.is_none()).collect();
    assert!(cases.len() >= 30, "at least 30 grammars");
    for (seed, case) in (0..).zip(&cases) {
        let texts: Vec<&str> =
            case.accept.iter().map(String::as_str).collect();
        compare(case, &pieces(&texts, seed), 200, seed);
    }
}

/// Random tokens seldom come to the end of a line, so instances are followed
/// byte by byte too.
#[test]
fn masks_on_indented_lines_equal_brute_force() {
    let mut options = SchemaOptions::widest();
    options.text.whitespace = Whitespace::Indent { width: 2 };
    let mut n_texts = 0;
    for (seed, case) in (0..).zip(&cases()) {
        if case.kind != "schema" || case.error.is_some() {
            continue;
        }
        let texts = case.accept.iter().map(|text| {
            let value = serde_json::from_str::<serde_json::Value>(text);
            let value = value.expect("an instance");
            serde_json::to_string_pretty(&value).expect("it can be written")
        });
        let texts: Vec<String> = texts.collect();
        let pieces_of: Vec<&str> = texts.iter().map(String::as_str).collect();
        let grammar = case.compile_with(&options).expect("a grammar");
        let trie = pieces(&pieces_of, seed);
        let compiled = grammar.compile(&trie).expect("no atoms");
        let mut matcher = Matcher::new(compiled).expect("a start");
        walk(&mut matcher, 100, &mut Random::new(seed), &mut |at, mask| {
            check(case, at, mask);
        });
        for text in &texts {
            matcher.reset().expect("the start");
            for byte in text.bytes() {
                let mask = matcher.mask().expect("a mask").clone();
                check(case, &matcher, &mask);
                let read = matcher.accept_bytes(&[byte]);
                assert!(read.is_ok(), "{}: {text}: {read:?}", case.name);
            }
            let accepts = matcher.is_accepting().expect("under the limits");
            assert!(accepts, "{}: {text}", case.name);
            n_texts += 1;
        }
    }
    assert!(n_texts > 100, "{n_texts} texts");
}

/// Brute force over 49,152 tokens is slow, so each grammar is looked at in
/// fewer states here.
#[test]
fn masks_equal_brute_force_on_the_vocabulary_of_the_model() {
    let Some(model) = real_model("masks on the model's vocabulary") else {
        return;
    };
    let vocabulary = Arc::clone(model.tokenizer.vocabulary());
    let trie = Arc::new(TokenTrie::new(vocabulary));
    for (seed, case) in (0..).zip(&cases()) {
        compare(case, &trie, 8, seed);
    }
}

/// Brute force reads every token by itself, and says no where the machine
/// does: what the machine accepts, other tests compare with a recogniser by
/// spans.
#[test]
fn masks_of_random_grammars_equal_brute_force() {
    let texts = [
        "ab,a",
        "bab",
        "ééü,",
        "[1]10",
        "[true,false]",
        "{\"a\":0,\"b\":0}",
        "10,1",
        "aaabbb",
        "\"a\"[1]",
    ];
    let (mut n_grammars, mut n_masks) = (0, 0);
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let gbnf = random_grammar(&mut random);
        // One that derives nothing is refused.
        let Ok(grammar) = Grammar::from_gbnf(&gbnf) else { continue };
        n_grammars += 1;
        let compiled =
            grammar.compile(&pieces(&texts, seed)).expect("no atoms");
        let mut matcher = Matcher::new(compiled).expect("a start");
        for _ in 0..12 {
            // Some are so ambiguous that the limit on stacks is met.
            let Ok(mask) = matcher.mask().cloned() else { break };
            let Ok(brute) = matcher.brute_force_mask() else { break };
            n_masks += 1;
            assert_eq!(mask, brute, "in {}\n{gbnf}", matcher.describe());
            let tokens: Vec<_> = mask.tokens().collect();
            assert!(!tokens.is_empty(), "{}\n{gbnf}", matcher.describe());
            let token = *random.pick(&tokens);
            if matcher.accept(token).is_err() {
                break;
            }
            if matcher.is_terminated() {
                matcher.reset().expect("the start");
            }
        }
    }
    assert!(n_grammars > 100, "{n_grammars} grammars");
    assert!(n_masks > 11 * n_grammars, "{n_masks} masks");
}

/// A matcher that goes back gives the masks that it gave before.
#[test]
fn rollback_and_fork_give_the_same_masks() {
    for (seed, case) in (0..).zip(&cases()) {
        let Ok(grammar) = case.compile() else { continue };
        let texts: Vec<&str> =
            case.accept.iter().map(String::as_str).collect();
        let compiled =
            grammar.compile(&pieces(&texts, seed)).expect("no atoms");
        let mut matcher = Matcher::new(compiled).expect("a start");
        let mut random = Random::new(seed);
        for _ in 0..20 {
            let before = matcher.mask().expect("a mask").clone();
            let fork = matcher.fork();
            let steps = matcher.n_steps();
            let mut taken = 0;
            for _ in 0..=random.below(5) {
                let mask = matcher.mask().expect("a mask");
                let tokens: Vec<_> = mask.tokens().collect();
                let token = tokens[random.below(tokens.len())];
                matcher.accept(token).expect("a token of the mask");
                taken += 1;
                if matcher.is_terminated() {
                    break;
                }
            }
            matcher.rollback(taken).expect("so many steps were taken");
            assert_eq!(matcher.n_steps(), steps);
            assert_eq!(*matcher.mask().expect("a mask"), before);
            matcher = fork;
            assert_eq!(*matcher.mask().expect("a mask"), before);
            let tokens: Vec<_> = before.tokens().collect();
            let token = tokens[random.below(tokens.len())];
            matcher.accept(token).expect("a token of the mask");
            if matcher.is_terminated() {
                matcher.reset().expect("the start");
            }
        }
    }
}
