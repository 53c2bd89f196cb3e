//! Fuzz bodies: functions from bytes to nothing, which panic when a promise
//! is broken.
//!
//! They are plain functions, so that `cargo test` replays the inputs in
//! `regressions/` (and a handful of generated ones) on every machine. A
//! coverage-guided fuzzer calls the same functions.

use std::sync::Arc;

use maskwright::{
    check::Checker,
    grammar::{Grammar, SchemaOptions},
    mask::TokenTrie,
    matcher::Matcher,
    vocabulary::{TokenId, Vocabulary},
};

/// Any bytes as a schema, a regex and a grammar in GBNF: each compiles or is
/// refused with an error that says something, and a compiled one checks the
/// rest of the input without a panic.
///
/// # Panics
///
/// If an error has no message.
pub fn hostile_grammar(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (source, instance) = text.split_once('\0').unwrap_or((&text, ""));
    let options = SchemaOptions::widest();
    let grammars = [
        Grammar::from_schema(source, &options),
        Grammar::from_regex(source),
        Grammar::from_gbnf(source),
    ];
    for grammar in grammars {
        match grammar {
            Ok(grammar) => {
                // A limit is an answer too.
                let _ = Checker::new(&grammar).check(instance.as_bytes());
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// A schema and token choices: masks equal brute force along the way, and no
/// mask is empty.
///
/// # Panics
///
/// If a mask differs from brute force, or a walk gets stuck.
pub fn masks_equal_brute_force(data: &[u8]) {
    let Some((source, choices)) = split(data) else { return };
    let Ok(schema) = std::str::from_utf8(source) else { return };
    let options = SchemaOptions::widest();
    let Ok(grammar) = Grammar::from_schema(schema, &options) else { return };
    let Ok(compiled) = grammar.compile(&trie()) else { return };
    let Ok(mut matcher) = Matcher::new(compiled) else { return };
    for &choice in choices {
        let (Ok(mask), Ok(brute)) =
            (matcher.mask().cloned(), matcher.brute_force_mask())
        else {
            return;
        };
        assert_eq!(mask, brute, "{schema} in {}", matcher.describe());
        let tokens: Vec<TokenId> = mask.tokens().collect();
        assert!(
            !tokens.is_empty(),
            "{schema}: stuck in {}",
            matcher.describe()
        );
        let token = tokens[usize::from(choice) % tokens.len()];
        matcher.accept(token).expect("a token of the mask is accepted");
        if matcher.is_terminated() {
            return;
        }
    }
}

/// Splits an input at its first zero byte.
fn split(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = data.iter().position(|&byte| byte == 0)?;
    Some((&data[..end], &data[end + 1..]))
}

/// Every byte, and tokens that end one thing and begin another.
fn trie() -> Arc<TokenTrie> {
    let joints = [
        "\",\"",
        "\":",
        "\"}",
        "},",
        "}]",
        "{\"",
        "[\"",
        "a\":1,\"a",
        "\\u00",
        "00",
        "ab",
        "  ",
        "\": ",
    ];
    let tokens: Vec<Vec<u8>> = (0..=u8::MAX)
        .map(|byte| vec![byte])
        .chain(joints.iter().map(|joint| joint.as_bytes().to_vec()))
        .chain([b"<end>".to_vec()])
        .collect();
    let end = TokenId(u32::try_from(tokens.len() - 1).unwrap_or(0));
    let vocabulary =
        Vocabulary::from_tokens(tokens, [end]).expect("valid tokens");
    Arc::new(TokenTrie::new(Arc::new(vocabulary)))
}
