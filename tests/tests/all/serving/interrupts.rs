//! Work that is broken off, at any moment.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use maskwright::{
    compiler::{CompileError, Compiler, GrammarSource},
    grammar::SchemaOptions,
    interrupt::{CancelFlag, Interrupt},
    mask::TokenTrie,
    matcher::{Matcher, MatcherError},
};
use maskwright_grammar_core::automaton::AutomatonError;
use maskwright_tests::vocabularies::{Random, pieces, with_end};

use super::{compiled_cases, go_on};

fn is_interrupted(error: &MatcherError) -> bool {
    matches!(error, MatcherError::Automaton(AutomatonError::Interrupted(_)))
}

/// A mask that is broken off after any number of looks leaves everything as
/// it was: asked for again, it is what it would have been.
#[test]
fn masks_are_right_after_any_interrupt() {
    let mut n_interrupted = 0;
    for (seed, case, mut matcher) in compiled_cases() {
        let mut random = Random::new(seed);
        let plain = case.compile().expect("it was compiled before");
        let plain = plain.compile(matcher.grammar().token_trie());
        let mut plain = Matcher::new(plain.expect("no atoms")).expect("start");
        let n_words = matcher.grammar().vocabulary().n_logits().div_ceil(32);
        let (mut words, mut expected) = (vec![0; n_words], vec![0; n_words]);
        for _ in 0..6 {
            for _ in 0..8 {
                let interrupt = Interrupt::after_checks(random.below(16));
                match matcher.mask_into_within(&mut words, &interrupt) {
                    Ok(_) => break,
                    Err(error) => {
                        assert!(is_interrupted(&error), "{error}");
                        n_interrupted += 1;
                    }
                }
            }
            let forbids = matcher.mask_into(&mut words).expect("a mask");
            let plainly = plain.mask_into(&mut expected).expect("a mask");
            assert_eq!((&words, forbids), (&expected, plainly), "{case:?}");
            let exact = matcher.brute_force_mask().expect("a mask");
            assert_eq!(words, exact.words().collect::<Vec<_>>(), "{case:?}");
            let seed = random.below(1 << 20) as u64;
            go_on(&mut matcher, &mut Random::new(seed));
            go_on(&mut plain, &mut Random::new(seed));
        }
    }
    assert!(n_interrupted > 300, "{n_interrupted}");
}

/// What is derived of a vocabulary (its classes of bytes, unions of its
/// places) is not kept in part.
#[test]
fn tries_are_right_after_any_interrupt() {
    let schema = r#"{"type": "object", "properties": {
        "a": {"type": "string", "pattern": "^\\w+[0-9]*$"}},
        "additionalProperties": {"type": "array"}}"#;
    let source = GrammarSource::schema(schema);
    let words: Vec<Vec<u8>> = (0..4_000_u32)
        .map(|n| format!("{n:x}\",{}", n * 7_919).into_bytes())
        .chain((0..=u8::MAX).map(|byte| vec![byte]))
        .collect();
    let plain = with_end(words);
    let start = |trie: &Arc<TokenTrie>| {
        let compiled = source.compile().expect("valid").compile(trie);
        Matcher::new(compiled.expect("no atoms")).expect("a start")
    };
    let text = b"{ \"a\": \"ab1";
    let mut expected = start(&plain);
    let mut masks = vec![expected.mask().expect("a mask").clone()];
    for byte in text.chunks(1) {
        expected.accept_bytes(byte).expect("valid");
        masks.push(expected.mask().expect("a mask").clone());
    }
    let mut n_interrupted = 0;
    for n_checks in (0..150).step_by(21) {
        // Nothing is derived yet.
        let trie = TokenTrie::new(Arc::clone(plain.vocabulary()));
        let mut matcher = start(&Arc::new(trie));
        let mut words = vec![0; masks[0].n_words()];
        for (at, mask) in masks.iter().enumerate() {
            let interrupt = Interrupt::after_checks(n_checks);
            let result = matcher.mask_into_within(&mut words, &interrupt);
            n_interrupted += usize::from(result.is_err());
            assert_eq!(matcher.mask(), Ok(mask), "{n_checks}, {at}");
            if let Some(byte) = text.get(at..=at) {
                matcher.accept_bytes(byte).expect("valid");
            }
        }
    }
    assert!(n_interrupted > 8, "{n_interrupted}");
}

/// A grammar whose compilation was broken off is compiled when it is asked
/// for again, and accepts the same.
#[test]
fn grammars_are_right_after_any_interrupt() {
    let compiler = Compiler::new(1 << 30);
    let trie = pieces(&[r#"{"a": "b"}"#], 1);
    let sources = [
        GrammarSource::schema(
            r#"{"type": "object", "properties": {
                "a": {"anyOf": [{"type": "integer"}, {"pattern": "^x+y$"}]},
                "b": {"allOf": [{"minimum": 3}, {"not": {"const": 4}}]}},
                "required": ["a", "b"], "minProperties": 2}"#,
        ),
        GrammarSource::schema(r#"{"allOf": [{"const": 1}, {"const": 2}]}"#),
        GrammarSource::gbnf("root ::= (a | \"b\" root)+\na ::= \"a\"{2,5}"),
        GrammarSource::regex("(a|b)*ab{3,}"),
    ];
    let mut n_interrupted = 0;
    for source in &sources {
        for n_checks in 0..60 {
            let interrupt = Interrupt::after_checks(n_checks);
            match compiler.compile_within(&trie, source, &interrupt) {
                Err(CompileError::Interrupted(error)) => {
                    assert!(error.to_string().contains("cancelled after"));
                    n_interrupted += 1;
                }
                Ok(_) | Err(_) => break,
            }
        }
        let kept = compiler.compile(&trie, source);
        let plain = source.compile().map(|grammar| grammar.compile(&trie));
        match (kept, plain) {
            (Ok(kept), Ok(plain)) => {
                let plain = plain.expect("no atoms");
                let matchers = [kept.compiled, plain];
                let [mut kept, mut plain] = matchers
                    .map(|compiled| Matcher::new(compiled).expect("a start"));
                assert_eq!(kept.mask(), plain.mask());
            }
            (Err(kept), Err(plain)) => {
                assert_eq!(kept.to_string(), plain.to_string());
            }
            (kept, plain) => panic!("{kept:?}, {plain:?}"),
        }
    }
    assert!(n_interrupted > 20, "{n_interrupted}");
}

/// A schema that takes long to refuse: more pigeons than holes.
fn pigeons(n: usize) -> GrammarSource {
    let name = |pigeon: usize, hole: usize| format!("p{pigeon}h{hole}");
    let sits = |pigeon, hole, sits: bool| {
        let name = name(pigeon, hole);
        format!(
            r#"{{"required": ["{name}"],
                "properties": {{"{name}": {{"const": {sits}}}}}}}"#
        )
    };
    let any = |options: Vec<String>| {
        format!(r#"{{"anyOf": [{}]}}"#, options.join(","))
    };
    let mut clauses = Vec::new();
    for pigeon in 0..n {
        clauses.push(any((0..n - 1).map(|h| sits(pigeon, h, true)).collect()));
        for other in 0..pigeon {
            for hole in 0..n - 1 {
                let one_not = [pigeon, other].map(|p| sits(p, hole, false));
                clauses.push(any(one_not.into()));
            }
        }
    }
    let mut options = SchemaOptions::default();
    options.budgets.compile = u64::MAX;
    options.parse.limits.max_formulas = usize::MAX >> 8;
    let clauses = clauses.join(",");
    let schema = format!(r#"{{"type": "object", "allOf": [{clauses}]}}"#);
    GrammarSource::Schema { schema, options }
}

#[test]
fn another_thread_cancels() {
    let compiler = Arc::new(Compiler::new(1 << 30));
    let trie = pieces(&[r#"{"a": "b"}"#], 1);
    let source = pigeons(9);
    let flag = CancelFlag::new();
    let cancelled = thread::scope(|scope| {
        let setter = scope.spawn(|| {
            thread::sleep(Duration::from_millis(30));
            flag.cancel();
            Instant::now()
        });
        let interrupt = Interrupt::on(&flag);
        let result = compiler.compile_within(&trie, &source, &interrupt);
        let end = Instant::now();
        assert!(
            matches!(result, Err(CompileError::Interrupted(_))),
            "{result:?}"
        );
        end.saturating_duration_since(setter.join().expect("no panic"))
    });
    // Some milliseconds, unless the machine is busy.
    assert!(cancelled < Duration::from_secs(2), "{cancelled:?}");
    assert_eq!(compiler.stats().n_kept, 0);
    let interrupt = Interrupt::after(Duration::from_millis(20));
    let error = compiler
        .compile_within(&trie, &source, &interrupt)
        .expect_err("it takes longer");
    assert!(error.to_string().contains("at the limit of 20.0ms"), "{error}");
}

/// Who waits for a compilation of somebody else that is broken off makes it
/// himself, and who waits may be interrupted too.
#[test]
fn those_who_wait_are_not_cancelled_with_the_first() {
    let compiler = Compiler::new(1 << 30);
    let trie = pieces(&[r#"{"a": "b"}"#], 1);
    let source = pigeons(9);
    let first = CancelFlag::new();
    let interrupt = Interrupt::on(&first);
    thread::scope(|scope| {
        let leader = scope.spawn(|| {
            compiler.compile_within(&trie, &source, &interrupt).map(|_| ())
        });
        while compiler.stats().n_compiled == 0 {
            thread::yield_now();
        }
        let brief = Interrupt::after(Duration::from_millis(20));
        let waiter = compiler.compile_within(&trie, &source, &brief);
        assert!(matches!(waiter, Err(CompileError::Interrupted(_))));
        assert_eq!(compiler.stats().n_compiled, 1, "it only waited");
        first.cancel();
        let result = leader.join().expect("no panic");
        assert!(matches!(result, Err(CompileError::Interrupted(_))));
    });
    let brief = Interrupt::after(Duration::from_millis(20));
    let again = compiler.compile_within(&trie, &source, &brief);
    assert!(matches!(again, Err(CompileError::Interrupted(_))));
    assert_eq!(compiler.stats().n_compiled, 2);
}
