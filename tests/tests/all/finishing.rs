//! How outputs end and how their text goes out, case by case: section by
//! section what `docs/decoding-search.md` promises.
//!
//! The models here say what a script tells them to, token by token, and the
//! prompt is the one token `?`.

use std::{ops::ControlFlow, sync::mpsc, time::Duration};

use maskwright::{
    generate::{
        FinishReason, Flush, GenerateError, Generation, Generator, Origin,
        Prompt, Request, Search, Stop, sample_seed,
    },
    grammar::Grammar,
    interrupt::{CancelFlag, Interrupt},
    pipeline::SamplingOptions,
};
use maskwright_tests::scripted::{CONTEXT, END, generator, says};

/// Runs to the end, and returns the pieces as they came.
fn write(
    generator: &mut Generator,
    request: &Request,
) -> (Generation, Vec<String>) {
    let mut pieces = Vec::new();
    let made = generator
        .generate(request, &mut |piece| {
            pieces.push(piece.to_owned());
            ControlFlow::Continue(())
        })
        .expect("an output");
    assert_eq!(pieces.concat(), made.text, "the pieces are the text");
    (made, pieces)
}

/// The prompt `?`, the likeliest token each time.
fn ask() -> Request {
    Request {
        prompt: Prompt::Text("?".to_owned()),
        sampling: SamplingOptions::greedy(),
        ..Request::default()
    }
}

fn stop_at(strings: &[&str]) -> Request {
    let strings = strings.iter().map(|&it| it.to_owned()).collect();
    Request { stop: Stop { strings, include: false }, ..ask() }
}

fn under(generator: &Generator, regex: &str) -> Request {
    let grammar = Grammar::from_regex(regex).expect("a pattern");
    let grammar = generator.compile(&grammar).expect("no atoms");
    Request { grammar: Some(grammar), ..ask() }
}

// Reasons.

#[test]
fn an_end_token_first_is_an_empty_text() {
    let (mut generator, _) = says(&[END]);
    let (made, pieces) = write(&mut generator, &ask());
    assert_eq!(made.finish_reason, FinishReason::Stop);
    assert_eq!((made.text.as_str(), made.tokens.len()), ("", 0));
    assert!(pieces.is_empty() && made.is_complete());
}

#[test]
fn the_model_ends_the_text() {
    let (mut generator, _) = says(&[b"Hel", b"lo", END]);
    let (made, pieces) = write(&mut generator, &ask());
    assert_eq!(made.finish_reason, FinishReason::Stop);
    assert_eq!(pieces, ["Hel", "lo"]);
    assert_eq!((made.n_prompt, made.tokens.len()), (1, 2));
}

#[test]
fn the_grammar_ends_the_text() {
    let (mut generator, model) = says(&[b"a", b"b", b"c"]);
    let request = under(&generator, "ab");
    let (made, _) = write(&mut generator, &request);
    assert_eq!(made.finish_reason, FinishReason::Grammar);
    assert_eq!(made.text, "ab");
    // Both are forced, and nobody asks what comes after the last token: the
    // model has read the prompt alone.
    assert_eq!((made.n_forced, model.take_passes().len()), (2, 1));
}

#[test]
fn the_limit_cuts_off_and_says_so() {
    let (mut generator, _) = says(&[b"a"]);
    let free = Request { max_tokens: 3, ..ask() };
    let (made, _) = write(&mut generator, &free);
    assert_eq!(made.finish_reason, FinishReason::Length);
    assert_eq!((made.text.as_str(), made.is_complete()), ("aaa", false));
    // Under a grammar it is the beginning of a text, if that is allowed.
    let cut = Request {
        max_tokens: 3,
        finish_within_budget: false,
        ..under(&generator, "a{5}")
    };
    let (made, _) = write(&mut generator, &cut);
    assert_eq!(made.finish_reason, FinishReason::Length);
    assert_eq!((made.text.as_str(), made.is_complete()), ("aaa", false));
}

#[test]
fn a_text_that_just_fits_is_whole() {
    let (mut generator, _) = says(&[b"a"]);
    let request = Request { max_tokens: 5, ..under(&generator, "a{5}") };
    let (made, _) = write(&mut generator, &request);
    assert_eq!(made.finish_reason, FinishReason::Grammar);
    assert_eq!((made.text.as_str(), made.is_complete()), ("aaaaa", true));
}

#[test]
fn a_context_that_is_full_ends_the_text() {
    let (mut generator, _) = says(&[b"a"]);
    let request = Request { max_tokens: usize::MAX, ..ask() };
    let (made, _) = write(&mut generator, &request);
    assert_eq!(made.finish_reason, FinishReason::Length);
    assert_eq!(made.tokens.len(), CONTEXT - 1);
}

#[test]
fn no_tokens_at_all() {
    let (mut generator, model) = says(&[b"a", b"b"]);
    let none = |request| Request { max_tokens: 0, ..request };
    let (made, pieces) = write(&mut generator, &none(ask()));
    assert_eq!(made.finish_reason, FinishReason::Length);
    assert!(made.text.is_empty() && pieces.is_empty());
    // The empty text may be all there is.
    let request = none(under(&generator, ""));
    let (made, _) = write(&mut generator, &request);
    assert_eq!(made.finish_reason, FinishReason::Grammar);
    assert!(made.is_complete());
    // It may also be a beginning only.
    let request = none(under(&generator, "ab"));
    let error = generator
        .generate(&request, &mut |_| ControlFlow::Continue(()))
        .expect_err("no text of no tokens");
    assert!(matches!(error, GenerateError::Budget { limit: 0, .. }));
    let request = Request { finish_within_budget: false, ..request };
    let (made, _) = write(&mut generator, &request);
    assert_eq!(made.finish_reason, FinishReason::Length);
    assert!(!made.is_complete());
    // The model has read the prompt, and nothing else.
    assert!(model.take_passes().concat().iter().all(|&n| n == 1));
}

// Stop strings.

#[test]
fn a_stop_string_in_one_token() {
    let (mut generator, _) = says(&[b"one", b"<END>two", b"three"]);
    let (made, pieces) = write(&mut generator, &stop_at(&["<END>"]));
    assert_eq!(made.finish_reason, FinishReason::StopString);
    assert_eq!(made.stop_string, Some(0));
    assert_eq!((pieces, made.tokens.len()), (vec!["one".to_owned()], 2));
    assert!(made.is_complete());
}

#[test]
fn a_stop_string_across_two_tokens() {
    let (mut generator, _) = says(&[b"one<E", b"ND>two"]);
    let (made, pieces) = write(&mut generator, &stop_at(&["<END>"]));
    assert_eq!(made.finish_reason, FinishReason::StopString);
    // Nothing of it went out while it was not complete.
    assert_eq!(pieces, ["one"]);
}

#[test]
fn what_only_could_have_been_a_stop_string_goes_out() {
    let (mut generator, _) = says(&[b"one<E", b"N", b"<EN", b"Dx", END]);
    let (made, pieces) = write(&mut generator, &stop_at(&["<END>"]));
    assert_eq!(made.finish_reason, FinishReason::Stop);
    assert_eq!(pieces, ["one", "<EN", "<ENDx"]);
}

#[test]
fn what_is_held_back_goes_out_at_the_end() {
    let (mut generator, _) = says(&[b"one<EN", END]);
    let (made, pieces) = write(&mut generator, &stop_at(&["<END>"]));
    assert_eq!(made.finish_reason, FinishReason::Stop);
    assert_eq!(pieces, ["one", "<EN"]);
}

#[test]
fn of_several_stop_strings_the_first_that_is_complete() {
    let (mut generator, _) = says(&[b"one\n", b"\ntwo###", END]);
    let (made, _) = write(&mut generator, &stop_at(&["###", "\n\n"]));
    assert_eq!((made.text.as_str(), made.stop_string), ("one", Some(1)));
}

#[test]
fn of_stop_strings_that_overlap_the_one_that_ends_first() {
    for (stops, text, which) in [
        (["abcd", "bc"], "xa", 1),
        // Both end at one byte: the longer begins earlier.
        (["END>", "<END>"], "xabcd", 1),
        (["<END>", "END>"], "xabcd", 0),
        (["cd<E", "d<"], "xabc", 1),
    ] {
        for script in
            [&[&b"xabcd<END>y"[..]][..], &[b"xab", b"cd<", b"EN", b"D>y"]]
        {
            let (mut generator, _) = says(script);
            let (made, _) = write(&mut generator, &stop_at(&stops));
            assert_eq!(made.text, text, "{stops:?}");
            assert_eq!(made.stop_string, Some(which), "{stops:?}");
        }
    }
}

#[test]
fn a_stop_string_that_begins_again_within_itself() {
    let (mut generator, _) = says(&[b"aab", b"aaa", b"b", b"x"]);
    let (made, _) = write(&mut generator, &stop_at(&["aaab"]));
    assert_eq!(made.text, "aab");
}

#[test]
fn a_stop_string_can_be_part_of_the_text() {
    let (mut generator, _) = says(&[b"one<E", b"ND>two"]);
    let mut request = stop_at(&["<END>"]);
    request.stop.include = true;
    let (made, _) = write(&mut generator, &request);
    assert_eq!(made.text, "one<END>");
    assert_eq!(made.finish_reason, FinishReason::StopString);
}

#[test]
fn a_stop_string_whose_character_is_split_over_tokens() {
    // "ở" is e1 bb 9f.
    let script: &[&[u8]] = &[b"ph\xe1", b"\xbb", b"\x9f!", b"x"];
    let (mut generator, _) = says(script);
    let (made, pieces) = write(&mut generator, &stop_at(&["ở"]));
    assert_eq!(made.finish_reason, FinishReason::StopString);
    assert_eq!(pieces, ["ph"]);
    // And one that ends where half a character follows: that half is no text.
    let (mut generator, _) = says(&[b"ab\xe1", b"\xbb\x9f"]);
    let (made, _) = write(&mut generator, &stop_at(&["b"]));
    assert_eq!(made.text, "a");
}

#[test]
fn a_stop_string_before_the_end_token() {
    let (mut generator, _) = says(&[b"#", END]);
    let (made, _) = write(&mut generator, &stop_at(&["#"]));
    assert_eq!(made.finish_reason, FinishReason::StopString);
    assert!(made.text.is_empty());
}

#[test]
fn stop_strings_are_not_looked_for_in_the_prompt() {
    let (mut generator, _) = says(&[b"a", END]);
    let (made, _) = write(&mut generator, &stop_at(&["?", "?a"]));
    assert_eq!((made.finish_reason, made.text.as_str()), {
        (FinishReason::Stop, "a")
    });
}

#[test]
fn a_text_that_a_stop_string_cut_may_fit_the_grammar() {
    for (regex, is_whole) in
        [("a+(;b+)?", true), ("a+;b+", false), ("a;b|aa(;b)?", true)]
    {
        let (mut generator, _) = says(&[b"a", b"a;", b"b", b";"]);
        let stop = stop_at(&[";"]).stop;
        let request = Request { stop, ..under(&generator, regex) };
        let (made, _) = write(&mut generator, &request);
        assert_eq!(made.finish_reason, FinishReason::StopString, "{regex}");
        assert_eq!(made.text, "aa", "{regex}");
        assert_eq!(made.is_complete(), is_whole, "{regex}");
    }
}

#[test]
fn a_stop_string_within_what_the_grammar_forces() {
    let (mut generator, _) = says(&[b"a", b"name", b"=", b"b", b"c"]);
    let stop = stop_at(&["="]).stop;
    let request = Request { stop, ..under(&generator, "aname=(b|c)") };
    let (made, _) = write(&mut generator, &request);
    assert_eq!(made.finish_reason, FinishReason::StopString);
    assert_eq!((made.text.as_str(), made.is_complete()), ("aname", false));
}

#[test]
fn an_empty_stop_string_is_an_error() {
    let (mut generator, _) = says(&[b"a"]);
    let error = generator
        .generate(&stop_at(&["x", ""]), &mut |_| ControlFlow::Continue(()))
        .expect_err("every text contains it");
    assert!(matches!(error, GenerateError::EmptyStop { index: 1 }));
}

// Pieces.

#[test]
fn characters_that_are_split_over_tokens_come_whole() {
    let text = "phở 👩‍👩‍👧 é";
    for cut in 1..5 {
        let mut script: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
        script.push(END);
        let (mut generator, _) = says(&script);
        let (made, pieces) = write(&mut generator, &ask());
        assert_eq!(made.text, text);
        assert!(pieces.iter().all(|piece| !piece.contains('\u{fffd}')));
    }
}

#[test]
fn half_a_character_at_the_end_is_replaced() {
    let (mut generator, _) = says(&[b"ph\xe1", b"\xbb", END]);
    let (made, pieces) = write(&mut generator, &ask());
    assert_eq!(pieces, ["ph", "\u{fffd}"]);
    assert_eq!(made.text, "ph\u{fffd}");
}

#[test]
fn text_is_handed_over_when_enough_has_gathered() {
    let script: &[&[u8]] = &[b"a", b"bc", b"d", b"ef", b"g", END];
    let pieces = |flush| {
        let (mut generator, _) = says(script);
        write(&mut generator, &Request { flush, ..ask() }).1
    };
    let none = Flush::default();
    assert_eq!(pieces(none), ["a", "bc", "d", "ef", "g"]);
    assert_eq!(pieces(Flush { bytes: Some(3), ..none }), ["abc", "def", "g"]);
    assert_eq!(pieces(Flush { bytes: Some(99), ..none }), ["abcdefg"]);
    let after = |time| Flush { time: Some(time), ..none };
    assert_eq!(pieces(after(Duration::MAX)), ["abcdefg"]);
    assert_eq!(pieces(after(Duration::ZERO)).len(), 5);
    // Whichever comes first.
    let both = Flush { bytes: Some(3), time: Some(Duration::MAX) };
    assert_eq!(pieces(both), ["abc", "def", "g"]);
}

// Cancellation.

#[test]
fn the_receiver_may_stop_midway() {
    let (mut generator, model) = says(&[b"a"]);
    let mut n_pieces = 0;
    let request = Request { max_tokens: 1000, ..ask() };
    let made = generator
        .generate(&request, &mut |_| {
            n_pieces += 1;
            if n_pieces == 3 {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })
        .expect("what was written");
    assert_eq!(made.finish_reason, FinishReason::Cancelled);
    assert_eq!((made.text.as_str(), n_pieces), ("aaa", 3));
    assert!(!made.is_complete());
    // The prompt, and the two tokens before the last: no pass after the stop.
    assert_eq!(model.take_passes().len(), 3);
}

#[test]
fn another_thread_may_cancel_midway() {
    let (mut generator, model) = says(&[b"a"]);
    let flag = CancelFlag::new();
    let request = Request {
        max_tokens: 1000,
        interrupt: Some(Interrupt::on(&flag)),
        ..ask()
    };
    let (third, wait_for_third) = mpsc::channel();
    let (set, wait_for_set) = mpsc::channel();
    let mut n_pieces = 0;
    let made = std::thread::scope(|scope| {
        let flag = flag.clone();
        scope.spawn(move || {
            wait_for_third.recv().expect("three pieces come");
            flag.cancel();
            set.send(()).expect("the other thread waits");
        });
        generator.generate(&request, &mut |_| {
            n_pieces += 1;
            if n_pieces == 3 {
                third.send(()).expect("the other thread waits");
                wait_for_set.recv().expect("the flag is set");
            }
            ControlFlow::Continue(())
        })
    });
    let made = made.expect("what was written");
    assert_eq!(made.finish_reason, FinishReason::Cancelled);
    assert_eq!(made.text, "aaa");
    assert_eq!(model.take_passes().len(), 4);
}

#[test]
fn what_is_cancelled_before_it_begins_writes_nothing() {
    let (mut generator, model) = says(&[b"a"]);
    let interrupt = Some(Interrupt::after(Duration::ZERO));
    let request = Request { interrupt, ..under(&generator, "a+") };
    let (made, _) = write(&mut generator, &request);
    assert_eq!(made.finish_reason, FinishReason::Cancelled);
    assert!(made.text.is_empty() && model.take_passes().is_empty());
    // The generator is as good as before.
    let request = Request { max_tokens: 2, ..ask() };
    assert_eq!(write(&mut generator, &request).0.text, "aa");
}

/// What the model remembers of a sequence is given back in the step in which
/// it is cancelled; the prompt stays for the next request.
#[test]
fn memory_is_given_back_at_once() {
    let (mut generator, _) = says(&[b"a"]);
    let request = Request { max_tokens: 1000, ..ask() };
    let mut n_pieces = 0;
    let mut cancelled = |generator: &mut Generator| {
        generator
            .generate(&request, &mut |_| {
                n_pieces += 1;
                if n_pieces % 500 == 0 {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            })
            .expect("what was written")
    };
    cancelled(&mut generator);
    let prompt_only = generator.memory_usage();
    write(&mut generator, &request);
    assert!(generator.memory_usage() > 10 * prompt_only);
    cancelled(&mut generator);
    assert_eq!(generator.memory_usage(), prompt_only);
    generator.forget();
    assert_eq!(generator.memory_usage(), 0);
}

// Several samples.

/// A model whose sequences end at different lengths.
fn dice() -> (Generator, std::sync::Arc<maskwright_tests::scripted::Scripted>)
{
    let tokens: &[&[u8]] = &[b"?", b"a", b"b", b"c", END];
    generator(tokens, |read| {
        let last = if read.last() == Some(&2) { 0.3 } else { 0.1 };
        vec![-9.0, 0.5, 0.2 + last, 0.1, 0.0]
    })
}

#[test]
fn samples_side_by_side_are_what_each_is_alone() {
    let (mut together, model) = dice();
    let sampling = SamplingOptions { seed: 7, ..SamplingOptions::default() };
    let request = Request {
        search: Search::Sample { n: 6, best_of: 6 },
        sampling: sampling.clone(),
        max_tokens: 40,
        ..ask()
    };
    let mut pieces = vec![String::new(); 6];
    let made = together
        .generate_all(&request, &mut |piece| {
            pieces[piece.sequence].push_str(piece.text);
            ControlFlow::Continue(())
        })
        .expect("six texts");
    let passes = model.take_passes();
    for (index, made) in made.iter().enumerate() {
        let seed = sample_seed(7, index);
        let sampling = SamplingOptions { seed, ..sampling.clone() };
        let request = Request { sampling, max_tokens: 40, ..ask() };
        let (alone, _) = write(&mut dice().0, &request);
        assert_eq!((&alone.text, &alone.tokens), (&made.text, &made.tokens));
        assert_eq!(alone.finish_reason, made.finish_reason);
        assert_eq!(pieces[index], made.text);
    }
    let distinct: std::collections::BTreeSet<_> =
        made.iter().map(|it| &it.text).collect();
    assert!(distinct.len() > 3, "{distinct:?}");
    // The prompt is read once, and a sequence that has ended is in no pass.
    assert_eq!(passes[0], [1]);
    for (n_before, pass) in passes[1..].iter().enumerate() {
        let lengths = made.iter().map(|it| it.tokens.len());
        let expected = lengths.filter(|&n| n > n_before).count();
        let is_cut = |it: &Generation| {
            it.finish_reason == FinishReason::Length
                && it.tokens.len() == n_before + 1
        };
        let n_cut = made.iter().filter(|it| is_cut(it)).count();
        assert_eq!(pass.len(), expected - n_cut, "pass {n_before}");
    }
}

#[test]
fn the_best_of_several_is_returned_first() {
    let sampling = SamplingOptions { seed: 3, ..SamplingOptions::default() };
    let search = |n, best_of| Request {
        search: Search::Sample { n, best_of },
        sampling: sampling.clone(),
        max_tokens: 60,
        logprobs: Some(0),
        ..ask()
    };
    let all = dice()
        .0
        .generate_all(&search(8, 8), &mut |_| ControlFlow::Continue(()))
        .expect("eight texts");
    let mut pieces = Vec::new();
    let best = dice()
        .0
        .generate_all(&search(3, 8), &mut |piece| {
            pieces.push((piece.sequence, piece.text.to_owned()));
            ControlFlow::Continue(())
        })
        .expect("three texts");
    let mean = |made: &Generation| {
        let steps = made.trace.steps.iter().chain(&made.trace.end);
        let logs: Vec<f64> = steps.filter_map(|step| step.before).collect();
        assert_eq!(logs.len(), made.trace.n_scored);
        let n = u32::try_from(logs.len()).expect("few");
        logs.iter().sum::<f64>() / f64::from(n)
    };
    let mut means: Vec<f64> = all.iter().map(mean).collect();
    means.sort_by(|a, b| b.total_cmp(a));
    assert_eq!(best.len(), 3);
    for (made, mean) in best.iter().zip(&means) {
        let score = made.trace.score.expect("a score");
        assert!((score - mean).abs() < 1e-9, "{score} and not {mean}");
    }
    // Text comes once it is known which are the best.
    let best: Vec<(usize, String)> = best
        .iter()
        .enumerate()
        .filter(|(_, made)| !made.text.is_empty())
        .map(|(index, made)| (index, made.text.clone()))
        .collect();
    assert_eq!(pieces, best);
}

// Records.

#[test]
fn each_token_is_recorded_before_and_after_the_mask() {
    // Wants `b`; the grammar wants `a` or `c`.
    let tokens: &[&[u8]] = &[b"?", b"a", b"b", b"c", END];
    let (mut generator, _) =
        generator(tokens, |_| vec![-30.0, 1.0, 3.0, 0.0, -30.0]);
    let request = Request {
        logprobs: Some(2),
        boundaries: maskwright::generate::Boundaries {
            forced: false,
            ..Default::default()
        },
        ..under(&generator, "(a|c)(a|b)")
    };
    let (made, _) = write(&mut generator, &request);
    assert_eq!(made.text, "ab");
    let [first, second] = &made.trace.steps[..] else { panic!("two steps") };
    let weights = [1.0f64, 3.0, 0.0].map(f64::exp);
    let total: f64 = weights.iter().sum();
    let near = |one: Option<f64>, other: f64| {
        assert!((one.expect("asked") - other).abs() < 1e-5, "{one:?} {other}");
    };
    near(first.before, (weights[0] / total).ln());
    near(first.after, (weights[0] / (weights[0] + weights[2])).ln());
    near(first.removed_mass, weights[1] / total);
    assert_eq!((first.n_allowed, first.origin), (Some(2), Origin::Chosen));
    let ids = |list: &[(maskwright::vocabulary::TokenId, f64)]| {
        list.iter().map(|one| one.0.0).collect::<Vec<_>>()
    };
    assert_eq!(ids(&first.likeliest), [2, 1]);
    assert_eq!(ids(&first.allowed), [1, 3]);
    assert_eq!(ids(&first.forbidden), [2, 0]);
    assert!(first.place.as_ref().is_some_and(|place| !place.is_empty()));
    near(second.removed_mass, weights[2] / total);
    // The end was not chosen, and is scored all the same.
    let end = made.trace.end.as_ref().expect("an end token");
    assert_eq!((end.token.0, end.origin), (4, Origin::Ended));
    near(end.after, 0.0);
    let sum = [first, second, end].iter().filter_map(|it| it.before).sum();
    near(made.trace.log_probability, sum);
    assert_eq!(made.trace.n_scored, 3);
}

#[test]
fn without_records_nothing_is_recorded() {
    let (mut generator, _) = says(&[b"a", END]);
    let (made, _) = write(&mut generator, &ask());
    assert!(made.trace.steps.is_empty() && made.trace.end.is_none());
    assert_eq!(made.trace.log_probability, None);
}

/// What is forced costs one pass, is marked, and has the log-probabilities
/// that it would have had one by one.
#[test]
fn forced_tokens_are_read_in_one_pass() {
    let tokens: &[&[u8]] =
        &[b"?", b"{", b"\"", b"name", b"\":", b"1", b"2", b"}", END];
    let rule = |read: &[u32]| {
        let n = u16::try_from(read.len()).expect("short");
        let mix = |token: u16| f32::from((token * 7 + n * 3) % 11) / 3.0;
        (0..9).map(mix).collect::<Vec<f32>>()
    };
    let run = |forced| {
        let (mut generator, model) = generator(tokens, rule);
        let request = Request {
            logprobs: Some(1),
            boundaries: maskwright::generate::Boundaries {
                forced,
                ..Default::default()
            },
            ..under(&generator, r#"\{"name":(1|2)\}"#)
        };
        let (made, _) = write(&mut generator, &request);
        (made, model.take_passes())
    };
    let (forced, passes) = run(true);
    let (stepped, more_passes) = run(false);
    assert_eq!(forced.text, stepped.text);
    assert_eq!(forced.tokens, stepped.tokens);
    assert_eq!((forced.n_forced, stepped.n_forced), (4, 0));
    assert!(passes.len() + 3 <= more_passes.len(), "{passes:?}");
    assert!(passes.iter().any(|pass| pass == &[4]), "{passes:?}");
    for (index, (one, other)) in
        forced.trace.steps.iter().zip(&stepped.trace.steps).enumerate()
    {
        let origin = if index < 4 { Origin::Forced } else { Origin::Chosen };
        assert_eq!(one.origin, origin, "step {index}");
        let other =
            maskwright::generate::TokenTrace { origin, ..other.clone() };
        assert_eq!(one, &other, "step {index}");
    }
    assert_eq!(forced.trace.log_probability, stepped.trace.log_probability);
}

/// A penalty sees what was forced: `1` was, so `2` is chosen.
#[test]
fn later_stages_see_forced_tokens() {
    let tokens: &[&[u8]] = &[b"?", b"a", b"1", b"2", END];
    for (frequency_penalty, text) in [(0.0, "a1a1a1"), (2.0, "a1a1a2")] {
        let (mut generator, _) =
            generator(tokens, |_| vec![-9.0, 0.0, 1.0, 0.5, 0.0]);
        let sampling =
            SamplingOptions { frequency_penalty, ..SamplingOptions::greedy() };
        let request = Request { sampling, ..under(&generator, "a1a1a(1|2)") };
        let (made, _) = write(&mut generator, &request);
        assert!(made.n_forced > 2, "{made:?}");
        assert_eq!(made.text, text);
    }
}

#[test]
fn a_plan_is_scored_where_scores_are_asked_for() {
    let (mut generator, _) = says(&[b"a", b"b"]);
    let request = Request {
        max_tokens: 4,
        logprobs: Some(0),
        ..under(&generator, "a*b{3}")
    };
    let (made, _) = write(&mut generator, &request);
    assert_eq!((made.text.as_str(), made.is_complete()), ("abbb", true));
    let steps = &made.trace.steps;
    assert_eq!(steps.len(), 4);
    assert_eq!(steps[1].origin, Origin::Planned);
    assert!(steps.iter().all(|step| step.before.is_some()));
    let quiet = Request { logprobs: None, ..request };
    let (other, _) = write(&mut generator, &quiet);
    assert_eq!(other.tokens, made.tokens);
}

#[test]
fn time_is_told_by_phase() {
    let (mut generator, _) = says(&[b"a", b"b", END]);
    let request =
        Request { logprobs: Some(1), ..under(&generator, "[ab]{2,9}") };
    let (made, _) = write(&mut generator, &request);
    let phases = made.trace.phases;
    for part in [phases.forward, phases.mask, phases.choice, phases.observe] {
        assert!(part > Duration::ZERO, "{phases:?}");
        assert!(part <= made.prompt_time + made.decode_time, "{phases:?}");
    }
}
