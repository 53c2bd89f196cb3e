//! Beam search, against trying everything.

use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc};

use maskwright::{
    compiled::CompiledGrammar,
    generate::{
        Beams, Boundaries, EarlyStopping, FinishReason, GenerateError,
        Generation, Generator, LengthPenalty, Prompt, Request, Search,
    },
    grammar::Grammar,
    matcher::Matcher,
    pipeline::SamplingOptions,
    vocabulary::TokenId,
};
use maskwright_tests::{
    scripted::{END, generator},
    vocabularies::Random,
};

fn find(
    generator: &mut Generator,
    request: &Request,
) -> Result<Vec<Generation>, GenerateError> {
    generator.generate_all(request, &mut |_| ControlFlow::Continue(()))
}

fn with_beams(beams: Beams) -> Request {
    Request {
        prompt: Prompt::Text("?".to_owned()),
        sampling: SamplingOptions::greedy(),
        search: Search::Beams(beams),
        ..Request::default()
    }
}

fn beams(width: usize) -> Beams {
    Beams { width, n: width, ..Beams::default() }
}

/// DECODING.md, section 4: A is likelier than B, but what follows B is
/// likelier than what follows A.
#[test]
fn two_beams_find_what_greedy_misses() {
    let tokens: &[&[u8]] = &[b"?", b"A", b"B", b"X", b"Y", END];
    let rule = |read: &[u32]| {
        let probabilities: [f32; 6] = match read[1..] {
            [] => [0.0, 0.6, 0.4, 0.0, 0.0, 0.0],
            [1] => [0.25, 0.25, 0.25, 0.25, 0.0, 0.0],
            [2] => [0.0, 0.0, 0.0, 0.1, 0.9, 0.0],
            _ => [0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        };
        probabilities.iter().map(|p| p.ln()).collect()
    };
    let probability =
        |made: &Generation| made.trace.log_probability.expect("scored").exp();
    let near = |one: f64, other: f64| (one - other).abs() < 1e-6;
    let (mut generator, _) = generator(tokens, rule);
    let greedy = Request {
        logprobs: Some(0),
        search: Search::default(),
        ..with_beams(beams(1))
    };
    let made = find(&mut generator, &greedy).expect("a text");
    assert!(made[0].text.starts_with('A'));
    assert!(near(probability(&made[0]), 0.15));
    let none = LengthPenalty::Power(0.0);
    let two = Beams { width: 2, length_penalty: none, ..Beams::default() };
    let made = find(&mut generator, &with_beams(two)).expect("a text");
    assert_eq!((made.len(), made[0].text.as_str()), (1, "BY"));
    assert!(near(probability(&made[0]), 0.36));
    assert_eq!(made[0].finish_reason, FinishReason::Stop);
    // One beam is greedy.
    let one = Beams { width: 1, ..two };
    let made = find(&mut generator, &with_beams(one)).expect("a text");
    assert!(near(probability(&made[0]), 0.15));
    // Under a grammar that forbids Y, B is no better than A any more.
    let grammar = Grammar::from_regex("[AB][ABX]").expect("a pattern");
    let grammar = generator.compile(&grammar).expect("no atoms");
    let request = Request { grammar: Some(grammar), ..with_beams(two) };
    let made = find(&mut generator, &request).expect("a text");
    assert!(near(probability(&made[0]), 0.15), "{:?}", made[0]);
    assert!(made[0].text.starts_with('A'));
}

/// A small model with random logits that depend on all tokens so far.
const TOKENS: &[&[u8]] = &[b"?", b"a", b"b", b"ab", b"c", END];

fn random_rule(seed: u64) -> impl Fn(&[u32]) -> Vec<f32> + Send + Sync {
    move |read| {
        let mixed = read.iter().fold(seed, |mixed, &token| {
            (mixed ^ u64::from(token)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        let mut random = Random::new(mixed);
        let logit = |n| f32::from(u16::try_from(n).expect("small")) / 800.0;
        TOKENS.iter().map(|_| logit(random.below(4000))).collect()
    }
}

fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let total: f64 = logits.iter().map(|&l| f64::from(l).exp()).sum();
    logits.iter().map(|&l| f64::from(l) - total.ln()).collect()
}

/// All outputs of up to `max` tokens that are whole, by their tokens, with the
/// sums of their log-probabilities, the end token's included. At the limit
/// there is no end token any more: only what cannot go on is whole there.
fn everything(
    rule: &dyn Fn(&[u32]) -> Vec<f32>,
    grammar: Option<&Arc<CompiledGrammar>>,
    max: usize,
) -> BTreeMap<Vec<u32>, f64> {
    let end = TOKENS.len() - 1;
    let mut found = BTreeMap::new();
    let mut open = vec![(Vec::new(), 0.0)];
    while let Some((tokens, sum)) = open.pop() {
        let read: Vec<u32> = [0].into_iter().chain(tokens.clone()).collect();
        let logs = log_softmax(&rule(&read));
        let allowed: Vec<usize> = match grammar {
            None => (0..=end).collect(),
            Some(grammar) => {
                let mut matcher =
                    Matcher::new(Arc::clone(grammar)).expect("a start");
                for &token in &tokens {
                    matcher.accept(TokenId(token)).expect("allowed before");
                }
                let mask = matcher.brute_force_mask().expect("no limit");
                mask.tokens().map(TokenId::index).collect()
            }
        };
        let is_at_limit = tokens.len() == max;
        if allowed == [end] || allowed.contains(&end) && !is_at_limit {
            found.insert(tokens.clone(), sum + logs[end]);
        }
        if is_at_limit {
            continue;
        }
        for token in allowed.into_iter().filter(|&token| token < end) {
            let mut tokens = tokens.clone();
            tokens.push(u32::try_from(token).expect("few"));
            open.push((tokens, sum + logs[token]));
        }
    }
    found
}

/// As wide as there are beginnings, the search finds the best of all.
#[test]
fn an_exhaustive_width_finds_the_best() {
    let grammars = [None, Some("(ab|c)*"), Some("a?b?c"), Some("ab(ab|c)")];
    let penalties = [
        LengthPenalty::Power(0.0),
        LengthPenalty::Power(1.0),
        LengthPenalty::Power(-0.5),
        LengthPenalty::Gnmt(1.0),
    ];
    let max = 3;
    for seed in 0..12 {
        for regex in grammars {
            let grammar =
                regex.map(|it| Grammar::from_regex(it).expect("a pattern"));
            let (mut generator, _) = generator(TOKENS, random_rule(seed));
            let compiled = grammar
                .as_ref()
                .map(|it| generator.compile(it).expect("no atoms"));
            let all = everything(&random_rule(seed), compiled.as_ref(), max);
            for length_penalty in penalties {
                let search = Beams {
                    width: 200,
                    n: 3,
                    length_penalty,
                    early_stopping: EarlyStopping::Never,
                    sampled: false,
                };
                let request = Request {
                    grammar: compiled.clone(),
                    max_tokens: max,
                    finish_within_budget: false,
                    boundaries: Boundaries {
                        forced: false,
                        ..Boundaries::default()
                    },
                    ..with_beams(search)
                };
                let made = find(&mut generator, &request).expect("texts");
                let mut best: Vec<f64> = all
                    .iter()
                    .map(|(tokens, &sum)| {
                        length_penalty.score(sum, tokens.len() + 1)
                    })
                    .collect();
                best.sort_by(|a, b| b.total_cmp(a));
                let whole: Vec<&Generation> =
                    made.iter().filter(|it| it.is_complete()).collect();
                assert_eq!(whole.len(), best.len().min(3), "{regex:?}");
                for (made, best) in whole.iter().zip(&best) {
                    let score = made.trace.score.expect("a score");
                    assert!(
                        (score - best).abs() < 1e-4,
                        "{seed}, {regex:?}, {length_penalty:?}: {score} of \
                         {:?} and not {best}",
                        made.text
                    );
                    let tokens: Vec<u32> =
                        made.tokens.iter().map(|token| token.0).collect();
                    let sum = made.trace.log_probability.expect("a sum");
                    assert!((all[&tokens] - sum).abs() < 1e-4);
                }
            }
        }
    }
}

/// Whoever asks for more sequences than beams gets them, too, as far as the
/// grammar has so many.
#[test]
fn as_many_are_found_as_were_asked_for() {
    let max = 8;
    for seed in 0..10 {
        for regex in ["(a|b|ab)c?", "abc|abab(c|a)b{0,2}", "[abc]{2,3}", "c"] {
            let grammar = Grammar::from_regex(regex).expect("a pattern");
            let (mut generator, _) = generator(TOKENS, random_rule(seed));
            let compiled = generator.compile(&grammar).expect("no atoms");
            let all = everything(&random_rule(seed), Some(&compiled), max);
            for (width, n) in [(1, 2), (1, 5), (3, 4), (2, 9), (4, 4)] {
                let request = Request {
                    grammar: Some(compiled.clone()),
                    max_tokens: max,
                    boundaries: Boundaries {
                        forced: false,
                        ..Boundaries::default()
                    },
                    ..with_beams(Beams { width, n, ..Beams::default() })
                };
                let made = find(&mut generator, &request).expect("texts");
                let expected = n.min(all.len());
                assert_eq!(made.len(), expected, "{regex}, {width}, {n}");
                assert!(made.iter().all(Generation::is_complete));
                // It is the search that as many beams make.
                let search = Search::Beams(Beams {
                    width: width.max(n),
                    n,
                    ..Beams::default()
                });
                let wide = Request { search, ..request.clone() };
                let texts = |made: &[Generation]| -> Vec<Vec<TokenId>> {
                    made.iter().map(|one| one.tokens.clone()).collect()
                };
                let wide = find(&mut generator, &wide).expect("texts");
                assert_eq!(texts(&made), texts(&wide));
                let warned = request.ignored().join("; ");
                let expected = format!(
                    "{width} beams are too few to find {n} sequences for \
                     certain, so {n} are followed"
                );
                assert_eq!(warned == expected, n > width, "{warned}");
            }
        }
    }
}

/// Whatever the width and the options, what is returned is in the grammar,
/// no two are the same, and the better ones come first.
#[test]
fn beams_never_leave_the_grammar() {
    let stops = [EarlyStopping::Yes, EarlyStopping::No, EarlyStopping::Never];
    let mut random = Random::new(5);
    let (mut n_texts, mut n_forced, mut n_steered) = (0, 0, 0);
    for seed in 0..60 {
        let regex = *random.pick(&[
            "(ab)+c",
            "abab(c|a)b*",
            "[abc]{2,6}",
            "(a|b)*c(a|b)",
            "a{3}b{3}c{3}",
        ]);
        let grammar = Grammar::from_regex(regex).expect("a pattern");
        let (mut generator, _) = generator(TOKENS, random_rule(seed));
        let sampled = random.chance(40);
        let search = Beams {
            width: 1 + random.below(5),
            n: 1 + random.below(5),
            early_stopping: *random.pick(&stops),
            sampled,
            ..Beams::default()
        };
        let sampling = SamplingOptions {
            temperature: if sampled { 1.2 } else { 0.0 },
            top_k: if sampled { random.below(4) } else { 0 },
            seed,
            ..SamplingOptions::default()
        };
        let request = Request {
            grammar: Some(generator.compile(&grammar).expect("no atoms")),
            max_tokens: 9 + random.below(3),
            sampling,
            boundaries: Boundaries {
                forced: random.chance(70),
                canonical: random.chance(20),
                heal: false,
            },
            ..with_beams(search)
        };
        let made = find(&mut generator, &request).expect("texts");
        assert!((1..=search.n).contains(&made.len()), "{search:?}");
        let scores: Vec<f64> =
            made.iter().filter_map(|it| it.trace.score).collect();
        assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
        for (index, one) in made.iter().enumerate() {
            assert!(one.is_complete(), "{regex}, {request:?}: {one:?}");
            assert!(grammar.accepts(&one.text).expect("no limit"), "{one:?}");
            assert!(one.tokens.len() <= request.max_tokens);
            let same = |other: &Generation| other.tokens == one.tokens;
            assert!(!made[..index].iter().any(same), "{made:?}");
            n_texts += 1;
            n_forced += one.n_forced;
            n_steered += one.n_steered;
        }
        let again = find(&mut generator, &request).expect("texts");
        let tokens = |made: &[Generation]| {
            made.iter().map(|it| it.tokens.clone()).collect::<Vec<_>>()
        };
        assert_eq!(tokens(&made), tokens(&again));
    }
    assert!(n_texts > 80 && n_forced > 30, "{n_texts}, {n_forced}");
    let _ = n_steered;
}

/// Within the limit on tokens every beam is finished, though the model would
/// go on for ever.
#[test]
fn beams_are_finished_within_the_limit() {
    let rule = |_: &[u32]| vec![0.0, 5.0, 0.0, 0.0, 0.0, -5.0];
    let (mut generator, _) = generator(TOKENS, rule);
    let grammar = Grammar::from_regex("a*bbc").expect("a pattern");
    let compiled = generator.compile(&grammar).expect("no atoms");
    for max_tokens in 3..9 {
        let request = Request {
            grammar: Some(compiled.clone()),
            max_tokens,
            ..with_beams(beams(3))
        };
        let made = find(&mut generator, &request).expect("texts");
        for one in made {
            assert!(one.is_complete() && one.tokens.len() <= max_tokens);
            assert!(grammar.accepts(&one.text).expect("no limit"));
        }
    }
    let request = Request {
        grammar: Some(compiled),
        max_tokens: 2,
        ..with_beams(beams(3))
    };
    assert!(matches!(
        find(&mut generator, &request),
        Err(GenerateError::Budget { needed: 3, limit: 2 })
    ));
}

/// Whether what is forced is read at once or token by token, the search finds
/// the same where the tokenizer's spelling is the only one.
#[test]
fn beams_that_run_ahead_lag() {
    let tokens: &[&[u8]] = &[b"?", b"a", b"b", b"c", b"d", END];
    for seed in 0..20 {
        let run = |forced| {
            let (mut generator, model) = generator(tokens, random_rule(seed));
            let regex = "a(bcbcb(a|d)|cdcdc(b|a)|d(aaaaab|b))";
            let grammar = Grammar::from_regex(regex).expect("a pattern");
            let request = Request {
                grammar: Some(generator.compile(&grammar).expect("no atoms")),
                boundaries: Boundaries { forced, ..Boundaries::default() },
                ..with_beams(beams(3))
            };
            let made = find(&mut generator, &request).expect("texts");
            let found: Vec<(String, String)> = made
                .iter()
                .map(|one| {
                    let score = one.trace.score.expect("a score");
                    (one.text.clone(), format!("{score:.4}"))
                })
                .collect();
            let n_forced: usize = made.iter().map(|one| one.n_forced).sum();
            (found, n_forced, model.take_passes())
        };
        let (ahead, n_forced, passes) = run(true);
        let (stepped, none, more_passes) = run(false);
        assert_eq!(ahead, stepped, "{seed}");
        assert!(n_forced > 0 && none == 0);
        let n_fed = |passes: &[Vec<usize>]| passes.concat().len();
        assert!(n_fed(&passes) < n_fed(&more_passes), "{seed}");
    }
}

#[test]
fn a_stop_string_ends_a_beam() {
    let rule = |_: &[u32]| vec![-9.0, 2.0, 1.5, 0.0, 1.0, -9.0];
    let (mut generator, _) = generator(TOKENS, rule);
    let mut request = Request { max_tokens: 6, ..with_beams(beams(4)) };
    request.stop.strings = vec!["ab".to_owned(), "c".to_owned()];
    let made = find(&mut generator, &request).expect("texts");
    for one in &made {
        assert_eq!(one.finish_reason, FinishReason::StopString, "{one:?}");
        assert!(!one.text.contains("ab") && !one.text.contains('c'));
    }
    assert_eq!(made.len(), 4);
}

#[test]
fn lengths_are_penalised_by_either_formula() {
    let sum = -6.0;
    let near = |one: f64, other: f64| (one - other).abs() < 1e-12;
    assert!(near(LengthPenalty::Power(1.0).score(sum, 3), -2.0));
    assert!(near(LengthPenalty::Power(2.0).score(sum, 2), -1.5));
    assert!(near(LengthPenalty::Power(0.0).score(sum, 9), sum));
    assert!(near(LengthPenalty::Gnmt(1.0).score(sum, 7), -3.0));
    assert!(near(LengthPenalty::Gnmt(0.5).score(sum, 19), -3.0));
    assert_eq!(LengthPenalty::default(), LengthPenalty::Power(1.0));
}

#[test]
fn what_is_out_of_range_is_an_error() {
    let (mut generator, _) = generator(TOKENS, random_rule(0));
    let none = Beams { width: 0, ..Beams::default() };
    let endless = LengthPenalty::Power(f64::INFINITY);
    let endless = Beams { length_penalty: endless, ..Beams::default() };
    for (search, option) in [
        (Search::Beams(none), "beams"),
        (Search::Beams(Beams { n: 0, ..Beams::default() }), "n"),
        (Search::Beams(endless), "length_penalty"),
        (Search::Sample { n: 0, best_of: 1 }, "n"),
        (Search::Sample { n: 3, best_of: 2 }, "best_of"),
    ] {
        let request = Request { search, ..with_beams(beams(1)) };
        let error = find(&mut generator, &request).expect_err(option);
        let GenerateError::OutOfRange { option: named, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(named, option);
    }
}

#[test]
fn what_has_no_effect_is_said() {
    let sampling = SamplingOptions::default();
    let cases = [
        (Request { sampling, ..with_beams(beams(2)) }, "beam search"),
        (
            Request {
                search: Search::Sample { n: 2, best_of: 2 },
                ..with_beams(beams(1))
            },
            "temperature 0",
        ),
    ];
    for (request, part) in cases {
        let ignored = request.ignored();
        assert!(ignored.iter().any(|it| it.contains(part)), "{ignored:?}");
    }
    assert!(with_beams(beams(2)).ignored().is_empty());
}
