//! Stages that remember or look back, through the generator: what a text
//! comes to, and not only a row.

use std::ops::ControlFlow;

use maskwright::{
    generate::{
        Boundaries, Generation, Generator, Prompt, Request, Search,
        sample_seed,
    },
    grammar::Grammar,
    pipeline::{
        DryOptions, ForbiddenTokens, History, MirostatOptions,
        MirostatVersion, Order, SamplingOptions, Scratch, Step,
    },
    vocabulary::TokenId,
};
use maskwright_tests::scripted::{END, generator};

/// Writes after the prompt `?`, without an end.
fn write(
    generator: &mut Generator,
    sampling: &SamplingOptions,
    request: Request,
) -> Vec<Generation> {
    let request = Request {
        prompt: Prompt::Text("?".to_owned()),
        sampling: sampling.clone(),
        ..request
    };
    generator
        .generate_all(&request, &mut |_| ControlFlow::Continue(()))
        .expect("texts")
}

/// 64 tokens, of which the first are likelier by a little.
fn flat() -> (Vec<Vec<u8>>, impl Fn(&[u32]) -> Vec<f32> + Clone) {
    let mut tokens: Vec<Vec<u8>> =
        (b'!'..b'!' + 63).map(|byte| vec![byte]).collect();
    tokens.push(END.to_vec());
    let rule = |read: &[u32]| {
        let turn = read.iter().sum::<u32>() % 5;
        let logit = |token: u32| -> f32 {
            let rank = (token + turn) % 63;
            -0.08 * f32::from(u8::try_from(rank).expect("few"))
        };
        let mut logits: Vec<f32> = (0..63).map(logit).collect();
        // It never ends by itself.
        logits.push(-99.0);
        logits
    };
    (tokens, rule)
}

/// The tokens that a pipeline comes to by hand, and what they would be if
/// nothing were learnt from them.
fn by_hand(
    rule: &impl Fn(&[u32]) -> Vec<f32>,
    sampling: &SamplingOptions,
    n_tokens: usize,
    learns: bool,
) -> Vec<TokenId> {
    let pipeline = sampling.build().expect("in range");
    let mut history = History::new([TokenId(QUESTION)]);
    let mut scratch = Scratch::new();
    for _ in 0..n_tokens {
        let read: Vec<u32> = history.tokens().iter().map(|it| it.0).collect();
        let step = Step::new(&history);
        let choice = pipeline.choose(&mut rule(&read), &step, &mut scratch);
        let choice = choice.expect("a good row");
        if learns {
            history.observe(&choice);
        }
        history.push(choice.token);
    }
    history.output().to_vec()
}

/// The id of `?` among the tokens of [`flat`].
const QUESTION: u32 = (b'?' - b'!') as u32;

#[test]
fn mirostat_learns_from_each_token_of_a_text() {
    let (tokens, rule) = flat();
    let tokens: Vec<&[u8]> = tokens.iter().map(Vec::as_slice).collect();
    let n_tokens = 60;
    for version in [MirostatVersion::V1, MirostatVersion::V2] {
        let mirostat = MirostatOptions {
            tau: 3.0,
            eta: 0.4,
            ..MirostatOptions::new(version)
        };
        let sampling = SamplingOptions {
            order: Order::LlamaCpp,
            mirostat: Some(mirostat),
            seed: 3,
            ..SamplingOptions::default()
        };
        let (mut generator, _) = generator(&tokens, rule.clone());
        let request = || Request {
            max_tokens: n_tokens,
            search: Search::Sample { n: 3, best_of: 3 },
            ..Request::default()
        };
        let made = write(&mut generator, &sampling, request());
        assert_eq!(made.len(), 3);
        for (index, one) in made.iter().enumerate() {
            // Each sequence learns for itself.
            let seed = sample_seed(sampling.seed, index);
            let own = SamplingOptions { seed, ..sampling.clone() };
            let expected = by_hand(&rule, &own, n_tokens, true);
            assert_eq!(one.tokens, expected, "{version:?}, {index}");
            let forgetful = by_hand(&rule, &own, n_tokens, false);
            assert_ne!(one.tokens, forgetful, "{version:?}, {index}");
        }
        // Under a grammar as well: what it allows is all that there is.
        let grammar = Grammar::from_regex("[!-Z]{40}").expect("a pattern");
        let grammar = generator.compile(&grammar).expect("no atoms");
        let made = write(
            &mut generator,
            &sampling,
            Request { grammar: Some(grammar), ..request() },
        );
        let masked = |read: &[u32]| {
            let mut logits = rule(read);
            logits[(b'Z' - b'!') as usize + 1..].fill(f32::NEG_INFINITY);
            logits
        };
        let expected = by_hand(&masked, &sampling, 40, true);
        assert_eq!(made[0].tokens, expected, "{version:?}");
    }
}

/// A model that writes `abcabc...`, and `x` where it may not go on.
#[test]
fn dry_breaks_a_repetition_off_and_its_breakers_allow_it() {
    let tokens: &[&[u8]] = &[b"?", b"a", b"b", b"c", b"x", END];
    let rule = |read: &[u32]| {
        let mut logits = vec![0.0, 0.0, 0.0, 0.0, 4.0, -9.0];
        let next = match read.last() {
            Some(1) => 2,
            Some(2) => 3,
            _ => 1,
        };
        logits[next] = 5.0;
        logits
    };
    let [a, b, c, x] = [1, 2, 3, 4].map(TokenId);
    for (multiplier, breakers, expected) in [
        (0.0, vec![], "abcabcabca"),
        // The second `ab` is a repetition of two, and a `c` after it would
        // cost 2, from 5 to 3. The third time `x` is no better, and then `a`
        // costs 4.
        (2.0, vec![], "abcabxabcx"),
        // No repetition reaches back over a `b`: there is never more than
        // one token after it.
        (2.0, vec![vec![b]], "abcabcabca"),
        // After `ca` the second `b` stands alone; `bc` does not, and `a`
        // after it is too dear.
        (2.0, vec![vec![c, a]], "abcabcxabx"),
        // One that never comes changes nothing.
        (2.0, vec![vec![x, x]], "abcabxabcx"),
    ] {
        let dry = DryOptions {
            multiplier,
            base: 2.0,
            allowed_length: 2,
            breakers: breakers.clone(),
            ..DryOptions::default()
        };
        let sampling = SamplingOptions { dry, ..SamplingOptions::greedy() };
        let (mut generator, _) = generator(tokens, rule);
        let limit = Request { max_tokens: 10, ..Request::default() };
        let made = write(&mut generator, &sampling, limit);
        assert_eq!(made[0].text, expected, "{multiplier}, {breakers:?}");
    }
}

#[test]
fn bans_that_gave_way_to_the_grammar_are_counted() {
    let tokens: &[&[u8]] = &[b"?", b"a", b"b", END];
    let rule = |_: &[u32]| vec![0.0, 2.0, 1.0, 0.0];
    let once = SamplingOptions {
        forbidden: ForbiddenTokens {
            no_repeat_ngram: 1,
            ..ForbiddenTokens::default()
        },
        ..SamplingOptions::greedy()
    };
    let (mut generator, _) = generator(tokens, rule);
    let mut run = |regex: &str, forced| {
        let grammar = Grammar::from_regex(regex).expect("a pattern");
        let request = Request {
            grammar: Some(generator.compile(&grammar).expect("no atoms")),
            boundaries: Boundaries { forced, ..Boundaries::default() },
            ..Request::default()
        };
        let made = write(&mut generator, &once, request).swap_remove(0);
        (made.text, made.n_yielded)
    };
    // No token may come twice, and after the first the grammar has none
    // that did not.
    assert_eq!(run("a{4}", false), ("aaaa".to_owned(), 3));
    // What is forced is not chosen, so nothing has to give way.
    assert_eq!(run("a{4}", true), ("aaaa".to_owned(), 0));
    // Where there is another token, the ban holds; then both were there.
    assert_eq!(run("[ab]{2}", false), ("ab".to_owned(), 0));
    assert_eq!(run("[ab]{3}", false), ("aba".to_owned(), 1));
}
