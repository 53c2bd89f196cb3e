//! The cache of compiled grammars.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use maskwright::{
    compiler::{CompileError, Compiler, GrammarSource},
    grammar::{GbnfOptions, Grammar, NamedGrammar},
    mask::TokenTrie,
    matcher::Matcher,
};
use maskwright_grammar_core::automaton::{
    Automaton, AutomatonError, Outcome, Resumed, Row, RowBuilder, StateId,
};
use maskwright_tests::vocabularies::{Random, pieces};

use super::go_on;

fn schema(name: &str) -> String {
    format!(
        r#"{{"type": "object", "properties": {{"{name}": {{"type":
        "string"}}}}, "required": ["{name}"]}}"#
    )
}

fn trie() -> Arc<TokenTrie> {
    pieces(&[r#"{"a": "b"}"#], 1)
}

#[test]
fn a_grammar_is_compiled_once_for_each_source_and_vocabulary() {
    let compiler = Compiler::new(1 << 30);
    let tries = [trie(), trie()];
    let sources = [
        GrammarSource::schema(schema("a")),
        GrammarSource::schema(schema("b")),
        GrammarSource::regex("a+"),
        GrammarSource::gbnf("root ::= \"a\"+"),
        GrammarSource::choices(["a", "b"]),
    ];
    let mut seen: Vec<usize> = Vec::new();
    for trie in &tries {
        for source in &sources {
            let one = compiler.compile(trie, source).expect("valid");
            let again = compiler.compile(trie, source).expect("valid");
            assert!(Arc::ptr_eq(&one.compiled, &again.compiled));
            assert!(Arc::ptr_eq(one.compiled.token_trie(), trie));
            seen.push(Arc::as_ptr(&one.compiled) as usize);
        }
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 10);
    let stats = compiler.stats();
    assert_eq!((stats.n_compiled, stats.n_hits, stats.n_kept), (10, 10, 10));
    compiler.clear();
    assert_eq!((compiler.stats().n_kept, compiler.memory_usage()), (0, 0));
}

#[test]
fn threads_wait_for_one_that_compiles() {
    let compiler = Compiler::new(1 << 30);
    let trie = trie();
    let names: Vec<String> = (0..40).map(|n| format!("name{n}")).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (compiler, trie, names) = (&compiler, &trie, &names);
            scope.spawn(move || {
                let mut random = Random::new(thread);
                for _ in 0..10 {
                    for name in names {
                        let source = GrammarSource::schema(schema(name));
                        let found = compiler.compile(trie, &source);
                        let found = found.expect("a valid schema");
                        let matcher = Matcher::new(found.compiled);
                        let mut matcher = matcher.expect("a start");
                        matcher.accept_bytes(b"{\"").expect("an object");
                        let name = name.as_bytes();
                        matcher.accept_bytes(name).expect("its grammar");
                        go_on(&mut matcher, &mut random);
                    }
                }
            });
        }
    });
    let stats = compiler.stats();
    assert_eq!(stats.n_compiled, 40);
    assert_eq!(stats.n_hits + stats.n_waits + 40, 4 * 10 * 40);
    assert_eq!(stats.n_evicted, 0);
}

#[test]
fn the_bound_holds_and_the_oldest_goes() {
    let trie = trie();
    let one = Compiler::new(1 << 30);
    one.compile(&trie, &GrammarSource::schema(schema("name0")))
        .expect("valid");
    let bound = 10 * one.memory_usage() + one.memory_usage() / 2;
    let compiler = Compiler::new(bound);
    let favourite = GrammarSource::schema(schema("name!"));
    let first = compiler.compile(&trie, &favourite).expect("valid");
    for n in 0..300 {
        let source = GrammarSource::schema(schema(&format!("name{n}")));
        compiler.compile(&trie, &source).expect("valid");
        assert!(compiler.memory_usage() <= bound, "after {n}");
        let again = compiler.compile(&trie, &favourite).expect("valid");
        assert!(Arc::ptr_eq(&first.compiled, &again.compiled));
    }
    let stats = compiler.stats();
    assert_eq!(stats.n_compiled, 301);
    assert!((5..=10).contains(&stats.n_kept), "{stats:?}");
    assert_eq!(stats.n_evicted, 301 - stats.n_kept as u64);
    // The last ones are there, the first ones are not.
    let hits = |n: u32| {
        let source = GrammarSource::schema(schema(&format!("name{n}")));
        let before = compiler.stats().n_hits;
        compiler.compile(&trie, &source).expect("valid");
        compiler.stats().n_hits - before
    };
    assert_eq!((hits(299), hits(298), hits(0)), (1, 1, 0));
}

/// Walks grow with use, and count.
#[test]
fn what_masks_need_is_counted() {
    let trie = trie();
    let compiler = Compiler::new(1 << 30);
    let source = GrammarSource::regex("([a-z]{1,30} ?)+[0-9]*é?");
    let found = compiler.compile(&trie, &source).expect("valid");
    let before = compiler.memory_usage();
    let mut matcher = Matcher::new(found.compiled).expect("a start");
    let mut random = Random::new(3);
    for _ in 0..100 {
        go_on(&mut matcher, &mut random);
    }
    assert_eq!(compiler.memory_usage(), before);
    compiler.trim();
    assert!(compiler.memory_usage() > before);
    // One that has grown over the bound goes, and lives on in its matcher.
    let small = Compiler::new(before + 1);
    let found = small.compile(&trie, &source).expect("valid");
    let mut other = Matcher::new(found.compiled).expect("a start");
    for _ in 0..100 {
        go_on(&mut other, &mut random);
    }
    assert_eq!(small.stats().n_kept, 1);
    small.trim();
    assert_eq!((small.stats().n_kept, small.memory_usage()), (0, 0));
    go_on(&mut other, &mut random);
}

#[test]
fn one_that_is_too_large_is_not_kept() {
    let compiler = Compiler::new(10);
    let source = GrammarSource::regex("a");
    for n in 1..3 {
        let found = compiler.compile(&trie(), &source).expect("valid");
        Matcher::new(found.compiled).expect("it works all the same");
        let stats = compiler.stats();
        assert_eq!((stats.n_kept, stats.n_compiled), (0, n));
    }
}

#[test]
fn errors_reach_all_and_are_not_kept() {
    let compiler = Compiler::new(1 << 30);
    let trie = trie();
    let broken = GrammarSource::regex("(");
    let unbound = GrammarSource::gbnf("root ::= <no-such-token>");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let error = compiler.compile(&trie, &broken);
                assert!(matches!(error, Err(CompileError::Grammar(_))));
                let error = compiler.compile(&trie, &unbound);
                assert!(matches!(error, Err(CompileError::Bind(_))));
            });
        }
    });
    let stats = compiler.stats();
    assert_eq!((stats.n_kept, compiler.memory_usage()), (0, 0));
    let valid = GrammarSource::regex("a");
    compiler.compile(&trie, &valid).expect("it is usable");
}

/// A machine that breaks when it is first asked, and reads nothing.
#[derive(Debug, Default)]
struct Breaks {
    row: Row,
    has_broken: AtomicBool,
}

impl Automaton for Breaks {
    fn start(&self) -> StateId {
        StateId(0)
    }

    fn row(&self, _: StateId) -> Result<&Row, AutomatonError> {
        let is_whole = self.has_broken.swap(true, Ordering::Relaxed);
        assert!(is_whole, "a machine that breaks");
        Ok(&self.row)
    }

    fn resume(
        &self,
        _: StateId,
        _: Outcome,
    ) -> Result<Resumed, AutomatonError> {
        Ok(Resumed::new())
    }

    fn describe(&self, _: StateId) -> String {
        "broken".to_owned()
    }
}

#[test]
fn a_panic_leaves_the_cache_usable() {
    let mut row = RowBuilder::new();
    row.finish(Outcome(0));
    let machine = Breaks { row: row.build(), ..Breaks::default() };
    let mut options = GbnfOptions::default();
    let named = Grammar::from_automaton(Arc::new(machine));
    let named = NamedGrammar::Grammar(named);
    options.grammars.insert("machine".to_owned(), named);
    let gbnf = "root ::= \"a\" %grammar machine".to_owned();
    let source = GrammarSource::Gbnf { gbnf, options };
    let compiler = Compiler::new(1 << 30);
    let trie = trie();
    let compile = || compiler.compile(&trie, &source);
    // One of them breaks; those who wait for it go on by themselves.
    let n_broken: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| catch_unwind(AssertUnwindSafe(compile))))
            .collect();
        threads
            .into_iter()
            .map(|thread| match thread.join().expect("it was caught") {
                Ok(found) => {
                    let compiled = found.expect("valid").compiled;
                    let matcher = Matcher::new(compiled).expect("a start");
                    let bytes = matcher.forced_bytes();
                    assert_eq!(bytes, Ok(b"a".to_vec()));
                    0
                }
                Err(_) => 1,
            })
            .sum()
    });
    assert_eq!(n_broken, 1);
    let stats = compiler.stats();
    assert_eq!((stats.n_kept, stats.n_compiled), (1, 2));
}
