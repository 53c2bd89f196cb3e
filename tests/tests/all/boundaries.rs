//! Where text and tokens meet: every spelling is legal, prompts heal, and the
//! tokenizer's own spelling can be asked for.

use std::{collections::BTreeSet, ops::ControlFlow};

use maskwright::{
    classify::{ClassifyOptions, classify_with},
    generate::{
        Beams, Boundaries, Encoder, GenerateError, Generation, Generator,
        Message, Prompt, Request, Role, Search,
    },
    grammar::{ChoiceOptions, Grammar},
    matcher::Matcher,
    pipeline::SamplingOptions,
    vocabulary::TokenId,
};
use maskwright_tests::{
    scripted::{END, Longest, generator},
    vocabularies::Random,
};

fn write(
    generator: &mut Generator,
    request: &Request,
) -> Result<Generation, GenerateError> {
    let mut pieces = String::new();
    let made = generator.generate(request, &mut |piece| {
        pieces.push_str(piece);
        ControlFlow::Continue(())
    })?;
    assert_eq!(pieces, made.text);
    Ok(made)
}

fn logit(random: &mut Random, end: usize) -> f32 {
    f32::from(u8::try_from(random.below(end)).expect("small")) / 10.0
}

/// All ways to spell `text` in `tokens`.
fn spellings(tokens: &[&[u8]], text: &[u8]) -> Vec<Vec<TokenId>> {
    let mut found = Vec::new();
    let mut open = vec![(Vec::new(), text)];
    while let Some((ids, rest)) = open.pop() {
        if rest.is_empty() {
            found.push(ids);
            continue;
        }
        for (index, token) in tokens.iter().enumerate() {
            if let Some(rest) = rest.strip_prefix(*token) {
                let mut ids: Vec<TokenId> = ids.clone();
                ids.push(TokenId::from_index(index));
                open.push((ids, rest));
            }
        }
    }
    found
}

#[test]
fn every_spelling_of_a_legal_text_is_legal() {
    let tokens: &[&[u8]] = &[
        b"{",
        b"}",
        b"\"",
        b":",
        b",",
        b"a",
        b"1",
        b"{\"",
        b"\":",
        b"\"a",
        b"\":1",
        b"1}",
        b"a\"",
        b",\"",
        b"\xc3",
        b"\xa9",
        b"\xc3\xa9",
        b"\"\xc3",
        b" a",
        b" ",
        END,
    ];
    let (generator, _) = generator(tokens, |_| Vec::new());
    for (grammar, text) in [
        (r#"\{"a":1\}"#, r#"{"a":1}"#),
        (r#"\{("[aé ]+":1,?)*\}"#, r#"{"a":1,"é":1,"a a":1}"#),
        ("( a|a )+", " a aa "),
    ] {
        let grammar = Grammar::from_regex(grammar).expect("a pattern");
        let compiled = generator.compile(&grammar).expect("no atoms");
        let all = spellings(&tokens[..20], text.as_bytes());
        assert!(all.len() >= 4, "{}", all.len());
        for spelling in all {
            let mut matcher = Matcher::new(compiled.clone()).expect("a start");
            for &token in &spelling {
                let mask = matcher.mask().expect("a mask");
                assert!(mask.is_allowed(token), "{text}: {spelling:?}");
                matcher.accept(token).expect("allowed");
            }
            assert!(matcher.is_accepting().expect("no limit"));
        }
    }
}

/// A prompt that is healed ends as it did, and the text goes on from there.
const URL: &[&[u8]] = &[
    b"see ", b"http", b":", b"://", b"//", b"/", b"a", b".", b"b", b"h", b"t",
    b"p", b"ht", END,
];

/// After `http` it wants `://`, but after `:` it is lost; then `a.b`.
fn surfer(read: &[u32]) -> Vec<f32> {
    let mut logits = vec![0.0; URL.len()];
    let next = match read.last() {
        Some(0) => 1,
        Some(1) => 3,
        Some(3..=5) => 6,
        Some(6) => 7,
        Some(7) => 8,
        Some(8) => 13,
        _ => 2,
    };
    logits[next] = 9.0;
    logits
}

fn heal(text: &str) -> Request {
    Request {
        prompt: Prompt::Text(text.to_owned()),
        sampling: SamplingOptions::greedy(),
        max_tokens: 12,
        boundaries: Boundaries { heal: true, ..Boundaries::default() },
        ..Request::default()
    }
}

#[test]
fn a_prompt_that_ends_within_a_token_is_healed() {
    let (mut generator, _) = generator(URL, surfer);
    let off =
        Request { boundaries: Boundaries::default(), ..heal("see http:") };
    let made = write(&mut generator, &off).expect("a text");
    assert!(made.text.starts_with(':'), "{made:?}");
    let made = write(&mut generator, &heal("see http:")).expect("a text");
    assert_eq!(made.text, "//a.b");
    // `see ` and `http` stay; `://` is one token, and partly the prompt's.
    assert_eq!((made.n_prompt, made.tokens[0].0), (2, 3));
    assert_eq!(made.trace.n_healed, 0);
    // Nothing could join the end of this one, so nothing is taken back.
    let made = write(&mut generator, &heal("see http:/a")).expect("a text");
    assert_eq!((made.text.as_str(), made.n_prompt), (".b", 5));
}

#[test]
fn the_end_of_a_prompt_may_be_spelled_in_several_tokens() {
    // Taken back to `h`, which `ht` and `http` begin with, and spelled `ht`,
    // `t`, and `p`, as the model wants.
    let rule = |read: &[u32]| {
        let mut logits = vec![0.0; URL.len()];
        let next = match read.last() {
            Some(0) => 12,
            Some(12) => 10,
            Some(10) => 11,
            Some(11) => 3,
            _ => 13,
        };
        logits[next] = 9.0;
        logits
    };
    let (mut generator, _) = generator(URL, rule);
    let request = Request { logprobs: Some(1), ..heal("see htt") };
    let made = write(&mut generator, &request).expect("a text");
    assert_eq!(made.text, "p://");
    assert_eq!((made.n_prompt, made.trace.n_healed), (3, 2));
    assert_eq!(made.tokens.len(), made.trace.steps.len());
}

#[test]
fn a_grammar_begins_after_a_prompt_that_is_healed() {
    let (mut generator, _) = generator(URL, surfer);
    for (regex, text) in [
        ("//a\\.b", "//a.b"),
        // `://` would go on as the grammar does not.
        ("/a", "/a"),
        ("a\\.b", "a.b"),
        ("", ""),
    ] {
        let grammar = Grammar::from_regex(regex).expect("a pattern");
        let request = Request {
            grammar: Some(generator.compile(&grammar).expect("no atoms")),
            ..heal("see http:")
        };
        let made = write(&mut generator, &request).expect("a text");
        assert_eq!(made.text, text, "{regex}");
        assert!(made.is_complete(), "{regex}: {made:?}");
    }
    // Within the least number of tokens, too.
    let grammar = Grammar::from_regex("//a+").expect("a pattern");
    let grammar = generator.compile(&grammar).expect("no atoms");
    for max_tokens in 3..6 {
        let request = Request {
            grammar: Some(grammar.clone()),
            max_tokens,
            ..heal("see http:")
        };
        let made = write(&mut generator, &request).expect("a text");
        assert!(made.is_complete(), "{max_tokens}: {made:?}");
        assert!(made.tokens.len() <= max_tokens);
    }
}

/// Whatever the model likes: prompt and text together are what a matcher
/// accepts for the prompt's text and then the grammar, and a stop string
/// counts from the end of the prompt.
#[test]
fn healed_texts_fit_whatever_the_model_likes() {
    let tokens: &[&[u8]] =
        &[b"a", b"b", b"ab", b"ba", b"aab", b"bb", b"abb", END];
    let mut random = Random::new(11);
    for seed in 0..80_u64 {
        let (mut generator, _) = generator(tokens, move |read| {
            let mut random =
                Random::new(seed ^ read.len() as u64 ^ u64::from(read[0]));
            (0..8).map(|_| logit(&mut random, 50)).collect()
        });
        let prompt: String =
            (0..5).map(|_| *random.pick(&['a', 'b'])).collect();
        let grammar = Grammar::from_regex("(ab?b?)*").expect("a pattern");
        let search = if seed % 3 == 0 {
            Search::Beams(Beams { width: 3, ..Beams::default() })
        } else {
            Search::default()
        };
        let request = Request {
            grammar: Some(generator.compile(&grammar).expect("no atoms")),
            sampling: SamplingOptions { seed, ..SamplingOptions::default() },
            search,
            ..heal(&prompt)
        };
        let made = write(&mut generator, &request).expect("a text");
        assert!(grammar.accepts(&made.text).expect("no limit"), "{made:?}");
        assert!(made.is_complete());
    }
}

#[test]
fn a_conversation_is_not_healed_and_says_so() {
    let (mut generator, _) = generator(URL, surfer);
    let prompt = Prompt::Chat(vec![Message::new(Role::User, "a")]);
    let request = Request { prompt, ..heal("") };
    assert_eq!(request.ignored().len(), 1);
    // Neither is a prompt of which nothing would be left.
    let made = write(&mut generator, &heal("h")).expect("a text");
    assert_eq!(made.n_prompt, 1);
}

/// With the option, the tokens are those of the tokenizer; without it, they
/// need not be. The text fits either way.
#[test]
fn canonical_tokens_are_the_tokenizer_s() {
    let tokens: &[&[u8]] =
        &[b"?", b"a", b"b", b"c", b"ab", b"bc", b"abc", b"ca", b"aa", END];
    let longest = Longest::new(&tokens[..9]);
    let (mut n_other, mut n_runs, mut n_yielded) = (0, 0, 0);
    for seed in 0..150 {
        let (mut generator, _) = generator(tokens, move |read| {
            let last = u64::from(*read.last().unwrap_or(&0));
            let mut random =
                Random::new(seed << 20 ^ last << 10 ^ read.len() as u64);
            (0..10).map(|_| logit(&mut random, 40)).collect()
        });
        let regex = ["[abc]{4,8}", "(ab|ca|c)+", "(abc)*", "a*bc"];
        let regex = regex[usize::try_from(seed).expect("small") % 4];
        let grammar = Grammar::from_regex(regex).expect("a pattern");
        for (canonical, beams) in [(true, false), (true, true), (false, false)]
        {
            let search = if beams {
                Search::Beams(Beams { width: 3, ..Beams::default() })
            } else {
                Search::default()
            };
            let top_k = if seed % 2 == 0 { 3 } else { 0 };
            let request = Request {
                prompt: Prompt::Text("?".to_owned()),
                grammar: Some(generator.compile(&grammar).expect("no atoms")),
                max_tokens: 30,
                sampling: SamplingOptions {
                    seed,
                    top_k,
                    ..SamplingOptions::default()
                },
                search,
                boundaries: Boundaries { canonical, ..Boundaries::default() },
                ..Request::default()
            };
            let made = write(&mut generator, &request).expect("a text");
            assert!(grammar.accepts(&made.text).expect("no limit"));
            let ids: Vec<u32> = made.tokens.iter().map(|it| it.0).collect();
            let own = longest.encode(&made.text, false).expect("splits");
            if canonical {
                n_runs += 1;
                n_yielded += usize::from(made.trace.n_not_canonical > 0);
                let is_own = ids == own;
                let yielded = made.trace.n_not_canonical > 0;
                assert!(is_own || yielded || made.n_steered > 0, "{made:?}");
            } else {
                n_other += usize::from(ids != own);
            }
        }
    }
    assert!(n_other > 50, "{n_other} spelled otherwise without the option");
    assert!(n_yielded * 20 < n_runs, "{n_yielded} of {n_runs} yielded");
}

/// There need not be a token that the tokenizer would write: then the step
/// takes another, and the result counts it.
#[test]
fn where_no_token_is_canonical_that_is_counted() {
    let tokens: &[&[u8]] = &[b"?", b"a", b"ab", b"b", END];
    let (mut generator, _) = generator(tokens, |_| vec![0.0; 5]);
    // The tokenizer writes `ab` in one token, which is not in the grammar.
    let grammar =
        Grammar::from_gbnf("root ::= <[1]> <[3]>").expect("tokens by id");
    let request = Request {
        prompt: Prompt::Text("?".to_owned()),
        grammar: Some(generator.compile(&grammar).expect("tokens")),
        sampling: SamplingOptions::greedy(),
        finish_within_budget: false,
        boundaries: Boundaries { canonical: true, ..Boundaries::default() },
        ..Request::default()
    };
    let made = write(&mut generator, &request).expect("a text");
    assert_eq!(made.text, "ab");
    assert!(made.trace.n_not_canonical > 0);
}

/// Without a grammar, too.
#[test]
fn free_text_can_be_canonical() {
    let tokens: &[&[u8]] = &[b"?", b"a", b"b", b"ab", END];
    let longest = Longest::new(&tokens[..4]);
    let (mut generator, _) =
        generator(tokens, |_| vec![-9.0, 1.0, 1.0, 0.0, -0.5]);
    let mut n_other = 0;
    for seed in 0..60 {
        for canonical in [true, false] {
            let request = Request {
                prompt: Prompt::Text("?".to_owned()),
                sampling: SamplingOptions {
                    seed,
                    ..SamplingOptions::default()
                },
                boundaries: Boundaries { canonical, ..Boundaries::default() },
                max_tokens: 20,
                ..Request::default()
            };
            let made = write(&mut generator, &request).expect("a text");
            let ids: Vec<u32> = made.tokens.iter().map(|it| it.0).collect();
            let own = longest.encode(&made.text, false).expect("splits");
            assert!(!canonical || ids == own, "{made:?}");
            n_other += usize::from(!canonical && ids != own);
        }
    }
    assert!(n_other > 20, "{n_other}");
}

#[test]
fn choices_may_have_a_space_before_them() {
    let choices = ["yes", "no"];
    let plain = Grammar::from_choices(&choices).expect("two");
    let options = ChoiceOptions { leading_space: true };
    let spaced = Grammar::from_choices_with(&choices, &options).expect("two");
    for text in ["yes", "no", " yes", " no"] {
        assert!(spaced.accepts(text).expect("no limit"), "{text:?}");
        let is_plain = !text.starts_with(' ');
        assert_eq!(plain.accepts(text).expect("no limit"), is_plain);
    }
    for text in ["", " ", "  yes", "yes "] {
        assert!(!spaced.accepts(text).expect("no limit"), "{text:?}");
    }
    assert!(!ChoiceOptions::default().leading_space);
    // A choice that begins with a space has no second one.
    let both = Grammar::from_choices_with(&[" a"], &options).expect("one");
    assert!(both.accepts(" a").expect("no limit"));
    assert!(!both.accepts("  a").expect("no limit"));
}

/// A model that writes labels with a space before them, scored with and
/// without.
#[test]
fn labels_are_scored_in_both_spellings() {
    let bytes: Vec<[u8; 1]> = (0..=u8::MAX).map(|byte| [byte]).collect();
    let mut tokens: Vec<&[u8]> = vec![b"yes", b"no", b" yes", b" no"];
    tokens.extend(bytes.iter().map(|byte| &byte[..]));
    tokens.push(END);
    let n_tokens = tokens.len();
    let rule = move |read: &[u32]| {
        let mut logits = vec![-90.0; n_tokens];
        match read.last() {
            Some(0..=3) => logits[n_tokens - 1] = 9.0,
            _ => logits[..4].copy_from_slice(&[0.1, 0.2, 2.0, -1.0]),
        }
        logits
    };
    let (mut generator, _) = generator(&tokens, rule);
    let labels = ["yes", "no"];
    let mut best = |leading_space| {
        let options = ClassifyOptions { leading_space };
        classify_with(&mut generator, &labels, "user", &options)
            .expect("scores")
    };
    assert_eq!(best(false)[0].label, "no");
    let scores = best(true);
    assert_eq!(scores[0].label, "yes");
    let weights = [0.1_f64, 0.2, 2.0, -1.0].map(f64::exp);
    let yes = weights[0] + weights[2];
    let expected = yes / weights.iter().sum::<f64>();
    assert!((scores[0].probability - expected).abs() < 1e-6);
    let labels: BTreeSet<&str> =
        scores.iter().map(|score| score.label.as_str()).collect();
    assert_eq!(labels.len(), 2);
}
