//! Tokens, masks and calls that no sound engine would send.

use std::sync::Arc;

use maskwright::{
    generate::{ChatTemplate, Message, Role},
    grammar::Grammar,
    mask::TokenTrie,
    matcher::{DraftNode, Matcher, MatcherError},
    pipeline::mask_logits,
    vocabulary::{TokenId, Vocabulary, VocabularyError},
};

use super::on_a_small_stack;

/// Duplicates, nothing, 4,000 bytes, a control token, half a character, and
/// two ends.
fn vocabulary() -> Vocabulary {
    let long = "a".repeat(4_000);
    let tokens: [&[u8]; 9] = [
        b"a",
        b"a",
        b"",
        long.as_bytes(),
        b"<unk>",
        b"\xC3",
        b"\xA9",
        b"</s>",
        b"<end>",
    ];
    let mut vocabulary =
        Vocabulary::from_tokens(tokens, [TokenId(7), TokenId(8)])
            .and_then(|it| it.with_special_tokens([TokenId(4)]))
            .expect("valid tokens");
    // As rows of logits are padded.
    vocabulary.set_n_logits(70).expect("wider than the tokens");
    vocabulary
}

fn matcher(regex: &str) -> Matcher {
    let trie = Arc::new(TokenTrie::new(Arc::new(vocabulary())));
    let grammar = Grammar::from_regex(regex).expect("valid");
    let compiled = grammar.compile(&trie).expect("no atoms");
    Matcher::new(compiled).expect("a start")
}

fn allowed(matcher: &mut Matcher) -> Vec<u32> {
    let mask = matcher.mask().expect("a mask");
    mask.tokens().map(|token| token.0).collect()
}

/// Whatever a token's id is, the answer is a value, and a refusal changes
/// nothing.
#[test]
fn ids_that_are_no_tokens() {
    on_a_small_stack(|| {
        let mut matcher = matcher("(?s).*");
        matcher.accept(TokenId(0)).expect("a letter");
        let before = allowed(&mut matcher);
        assert_eq!(before, [0, 1, 3, 5, 7, 8]);
        let minus_one = TokenId(u32::MAX);
        for token in [TokenId(9), TokenId(70), TokenId(1 << 31), minus_one] {
            let error = matcher.accept(token).expect_err("no token");
            assert_eq!(
                error,
                MatcherError::TokenOutOfRange { token, n_tokens: 9 }
            );
            assert!(matcher.is_token_allowed(token).is_err());
            let draft = [TokenId(0), token];
            assert!(matcher.validate_draft(&draft).is_err());
        }
        // A control token, and one that spells nothing.
        for token in [TokenId(2), TokenId(4)] {
            let error = matcher.accept(token).expect_err("no text");
            assert!(
                matches!(
                    error,
                    MatcherError::NotText { .. }
                        | MatcherError::TokenRefused { .. }
                ),
                "{token}: {error}"
            );
        }
        assert_eq!((matcher.n_steps(), allowed(&mut matcher)), (1, before));
    });
}

#[test]
fn twins_and_giants() {
    on_a_small_stack(|| {
        let mut all = matcher("a{4000}");
        assert_eq!(allowed(&mut all), [0, 1, 3]);
        all.accept(TokenId(3)).expect("4,000 letters at once");
        assert_eq!(allowed(&mut all), [7, 8]);
        let mut less = matcher("a{3999}");
        assert_eq!(allowed(&mut less), [0, 1]);
        for token in [0, 1, 0] {
            less.accept(TokenId(token)).expect("twins are alike");
        }
        let error = less.accept(TokenId(3)).expect_err("too long");
        assert!(matches!(error, MatcherError::TokenRefused { .. }), "{error}");
        assert!(error.to_string().len() < 9_000);
        let mut half = matcher("é");
        assert_eq!(allowed(&mut half), [5]);
        half.accept(TokenId(5)).expect("half of it");
        assert_eq!(allowed(&mut half), [6]);
    });
}

#[test]
fn words_that_are_too_few_or_too_many() {
    let mut matcher = matcher("(?s).*");
    for n_words in [0, 1, 2, 4, 1_000] {
        let mut words = vec![7_u32; n_words];
        let error = matcher.mask_into(&mut words).expect_err("3 words");
        assert!(matches!(error, MatcherError::Mask(_)), "{error}");
        assert_eq!(words, vec![7; n_words], "nothing is written");
        let mut words = vec![7_i32; n_words];
        assert!(matcher.mask_into_i32(&mut words).is_err());
    }
    let mut words = vec![u32::MAX; 3];
    matcher.mask_into(&mut words).expect("just as many");
    // No place of a row beyond the tokens.
    assert_eq!(words[0] >> 9, 0);
    assert_eq!(words[1..], [0, 0]);
}

#[test]
fn rows_that_are_too_short_or_too_long() {
    let forbidden = f32::NEG_INFINITY;
    for width in [0, 1, 9, 32, 33, 64, 70, 500] {
        let mut logits = vec![1.0; width];
        mask_logits(&mut logits, &[0b11_u32, 0]);
        let mut expected = vec![forbidden; width];
        expected.iter_mut().take(2).for_each(|logit| *logit = 1.0);
        assert_eq!(logits, expected, "{width}");
        mask_logits::<f32, u32>(&mut logits, &[]);
        assert_eq!(
            logits,
            vec![forbidden; width],
            "no mask lets none through"
        );
    }
}

#[test]
fn calls_in_the_wrong_order() {
    let mut matcher = matcher("a");
    let error = matcher.rollback(1).expect_err("nothing was read");
    assert_eq!(error, MatcherError::Rollback { n_steps: 1, n_read: 0 });
    assert!(matcher.rollback(usize::MAX).is_err());
    let error = matcher.accept(TokenId(7)).expect_err("it is not complete");
    assert!(matches!(error, MatcherError::NotAccepting { .. }), "{error}");
    let error = matcher.accept_bytes(b"ab").expect_err("one letter");
    assert!(
        matches!(error, MatcherError::ByteRefused { offset: 1, .. }),
        "{error}"
    );
    assert_eq!(matcher.n_steps(), 0, "all of it or nothing");
    matcher.accept_bytes(b"").expect("nothing is read");
    let draft = [TokenId(0), TokenId(0), TokenId(7)];
    assert_eq!(matcher.try_accept(&draft), Ok(1));
    matcher.accept(TokenId(8)).expect("an end");
    assert!(matcher.is_terminated());
    assert_eq!(matcher.mask().err(), Some(MatcherError::Finished));
    for token in [TokenId(0), TokenId(7), TokenId(8)] {
        assert_eq!(matcher.accept(token), Err(MatcherError::Finished));
    }
    assert_eq!(matcher.accept_bytes(b"a"), Err(MatcherError::Finished));
    matcher.reset().expect("a start");
    assert_eq!(allowed(&mut matcher), [0, 1]);
}

#[test]
fn trees_of_drafts_that_are_none() {
    let matcher = matcher("a*");
    let node = |parent, token| DraftNode { parent, token: TokenId(token) };
    let mut room = vec![0_u32; 9];
    for parent in [Some(1), Some(5), Some(usize::MAX)] {
        let draft = [node(None, 0), node(parent, 0)];
        let error = matcher.draft_masks(&draft, &mut room);
        let error = error.expect_err("no such parent");
        assert!(matches!(error, MatcherError::DraftOrder { node: 1, .. }));
    }
    let draft = [node(None, 0), node(Some(0), 0)];
    for n_words in [0, 6, 10] {
        let mut room = vec![0_u32; n_words];
        let error = matcher.draft_masks(&draft, &mut room);
        let error = error.expect_err("nine words");
        assert!(matches!(error, MatcherError::DraftRoom { .. }), "{error}");
    }
    // A token that is none is a node that may not stand there.
    let draft = [node(None, 0), node(None, u32::MAX)];
    if let Ok(masks) = matcher.draft_masks(&draft, &mut room) {
        assert!(masks.is_accepted(0) && !masks.is_accepted(1));
    }
}

#[test]
fn vocabularies_that_are_none() {
    let one = || Vocabulary::from_tokens(["a"], []).expect("a token");
    for token in [TokenId(1), TokenId(u32::MAX)] {
        for result in [
            one().with_end_tokens([token]),
            one().with_special_tokens([token]),
        ] {
            let error = result.expect_err("no such token");
            assert!(
                matches!(error, VocabularyError::UnknownToken { .. }),
                "{error}"
            );
        }
    }
    let error = one().set_n_logits(0).expect_err("no room");
    assert!(matches!(error, VocabularyError::NarrowLogits { .. }), "{error}");
    let error = one().set_n_logits(usize::MAX).expect_err("too wide");
    assert!(matches!(error, VocabularyError::TooManyTokens { .. }), "{error}");
    // Without any token there is a mask, of nothing.
    let none = Vocabulary::from_tokens([""; 0], []).expect("an empty one");
    let trie = Arc::new(TokenTrie::new(Arc::new(none)));
    let grammar = Grammar::from_regex("a*").expect("valid");
    let compiled = grammar.compile(&trie).expect("no atoms");
    let mut matcher = Matcher::new(compiled).expect("a start");
    assert_eq!(allowed(&mut matcher), [0; 0]);
}

#[test]
fn templates_that_loop_or_nest() {
    let bomb = "{% set x = 'a' %}{% for i in range(60) %}\
                {% set x = x + x %}{{ x }}{% endfor %}";
    let templates = [
        "{% for i in range(100000) %}{% for j in range(100000) %}{{ j }}\
         {% endfor %}{% endfor %}"
            .to_owned(),
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}".to_owned(),
        "{{ 'a' * 10000000000 }}".to_owned(),
        "{{ range(1000000000000) | list }}".to_owned(),
        "{{ messages[0].no.such.thing }}".to_owned(),
        "{{ 1 // 0 }}".to_owned(),
        "{% if %}".to_owned(),
        "{{".to_owned(),
        "{% include 'chat' %}".to_owned(),
        bomb.to_owned(),
        "(".repeat(10) + &nested_parentheses(100_000),
    ];
    let messages = [Message::new(Role::User, "hi")];
    for source in templates {
        let template = ChatTemplate::new(Some(&source), "", "");
        let result = template.and_then(|it| it.render(&messages));
        let start: String = source.chars().take(60).collect();
        // What doubles within a loop begins anew in each of its rounds.
        let is_harmless = source == bomb || source.starts_with('(');
        match result {
            Ok(text) => {
                assert!(is_harmless, "{start}");
                assert!(text.len() <= 1 << 26);
            }
            Err(error) => assert!(!error.to_string().is_empty(), "{start}"),
        }
    }
}

fn nested_parentheses(depth: usize) -> String {
    format!("{{{{ {}1{} }}}}", "(".repeat(depth), ")".repeat(depth))
}
