//! Forced tokens with the tokenizer of a real model.

use std::sync::Arc;

use maskwright::{
    grammar::Grammar, mask::TokenTrie, matcher::Matcher, vocabulary::TokenId,
};
use maskwright_tests::vocabularies::real_model;

/// What may follow: words, numbers, signs, white space, and what joins the
/// text before it.
const ENDINGS: [&str; 16] = [
    "", "a", "ing", "A", "7", "42", " ", "  x", "\n", "\n\n  y", "\"", "\",",
    ":", "'s", "é", "\u{301}",
];

#[test]
fn they_are_what_the_model_s_tokenizer_writes() {
    let Some(model) = real_model("forced tokens") else { return };
    let tokenizer = &model.tokenizer;
    let trie = Arc::new(TokenTrie::new(Arc::clone(tokenizer.vocabulary())));
    let split = |text: &str| {
        let ids = tokenizer.encode(text, false).ok()?;
        Some(ids.into_iter().map(TokenId).collect::<Vec<_>>())
    };
    let mut n_forced = 0;
    for known in [
        r#"{"name":"#,
        r#"{"name": "#,
        "{\n  \"first_name\": \"",
        "The answer is 42",
        "I don't know, he'll say; 12345 times",
        "    indented\n\n\tcode\n",
        "über-groß: déjà vu",
        "x = [1, 2,  3]  ",
    ] {
        let pattern: String = known
            .chars()
            .map(|c| format!(r"\u{{{:x}}}", u32::from(c)))
            .chain([r"(?s:.|\n)*".to_owned()])
            .collect();
        for before in ["", "Reply in JSON.\n", "<|im_start|>assistant\n"] {
            let grammar = Grammar::from_regex(&format!("{pattern}!"));
            let grammar = grammar.expect("a pattern");
            let compiled = grammar.compile(&trie).expect("no atoms");
            let matcher = Matcher::new(compiled).expect("a start");
            let bytes = matcher.forced_bytes().expect("no limit");
            assert_eq!(bytes, known.as_bytes());
            let forced = matcher.forced_tokens(before, split).expect("none");
            n_forced += forced.len();
            let given = split(before).expect("a text");
            for ending in ENDINGS {
                if forced.is_empty() {
                    break;
                }
                let all = split(&format!("{before}{known}{ending}"));
                let all = all.expect("a text");
                assert!(
                    all.starts_with(&given)
                        && all[given.len()..].starts_with(&forced),
                    "{before:?}, {known:?}, {ending:?}: {forced:?}, {all:?}",
                );
            }
        }
    }
    assert!(n_forced > 60, "{n_forced} tokens");
}
