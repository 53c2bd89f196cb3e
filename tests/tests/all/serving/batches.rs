//! Batches, against each matcher by itself.

use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use maskwright::{
    batch::{BatchMatcher, BatchRow, RowMask, RowResult},
    compiled::CompiledGrammar,
    mask::TokenTrie,
    matcher::{Matcher, MatcherError},
    vocabulary::TokenId,
};
use maskwright_grammar_core::automaton::{
    Automaton, AutomatonError, Outcome, Resumed, Row, RowBuilder, StateId,
    Step,
};
use maskwright_tests::{
    corpus::cases,
    vocabularies::{Random, pieces, with_end},
};

use super::go_on;

/// Matchers of all cases over one vocabulary, two of each grammar; and others
/// under the same grammars that know nothing.
fn matchers(seed: u64) -> (Vec<Matcher>, Vec<Matcher>, Arc<TokenTrie>) {
    let cases = cases();
    let texts: Vec<&str> = cases
        .iter()
        .filter_map(|case| case.accept.first())
        .map(String::as_str)
        .collect();
    let trie = pieces(&texts, seed);
    let (mut all, mut others) = (Vec::new(), Vec::new());
    for case in &cases {
        let Ok(grammar) = case.compile() else { continue };
        let [one, other] =
            [(); 2].map(|()| grammar.compile(&trie).expect("no atoms"));
        for _ in 0..2 {
            let new = |compiled: &Arc<CompiledGrammar>| {
                Matcher::new(Arc::clone(compiled)).expect("a start")
            };
            all.push(new(&one));
            others.push(new(&other));
        }
    }
    (all, others, trie)
}

fn fill(
    batch: &BatchMatcher,
    matchers: &mut [Matcher],
    words: &mut [u32],
    width: usize,
    deadline: Option<Instant>,
) -> Vec<RowResult> {
    let mut rows: Vec<BatchRow<'_>> = matchers
        .iter_mut()
        .zip(words.chunks_exact_mut(width))
        .map(|(matcher, words)| BatchRow::new(matcher, words))
        .collect();
    batch.fill(&mut rows, deadline)
}

#[test]
fn a_batch_makes_the_masks_of_its_matchers() {
    for n_threads in [1, 2, 3] {
        let batch = BatchMatcher::new(n_threads).expect("threads");
        assert_eq!(batch.n_threads(), n_threads);
        let (mut all, mut others, trie) = matchers(7);
        assert!(all.len() > 100, "{} sequences", all.len());
        let width = trie.vocabulary().n_logits().div_ceil(32);
        let mut random = Random::new(7);
        for step in 0..12 {
            let mut words = vec![u32::MAX; all.len() * width];
            let results = fill(&batch, &mut all, &mut words, width, None);
            for (index, result) in results.into_iter().enumerate() {
                let mut mask = vec![0; width];
                let forbids_any = others[index].mask_into(&mut mask);
                let forbids_any = forbids_any.expect("a mask");
                let place = all[index].describe();
                assert_eq!(result, Ok(RowMask::Done { forbids_any }));
                let row = &words[index * width..(index + 1) * width];
                assert_eq!(row, mask, "step {step} in {place}");
            }
            for (matcher, other) in all.iter_mut().zip(&mut others) {
                let mut same = random.clone();
                go_on(matcher, &mut random);
                go_on(other, &mut same);
            }
        }
    }
}

/// With a deadline in the past nothing is done; what was late is there when
/// it is asked for again.
#[test]
fn late_masks_are_asked_for_again() {
    let batch = BatchMatcher::new(2).expect("threads");
    let (mut all, mut others, trie) = matchers(8);
    let width = trie.vocabulary().n_logits().div_ceil(32);
    let mut words = vec![u32::MAX; all.len() * width];
    let past = Some(Instant::now());
    let results = fill(&batch, &mut all, &mut words, width, past);
    assert!(results.iter().all(|result| *result == Ok(RowMask::Late)));
    assert!(words.iter().all(|&word| word == 0));
    let mut n_late = 0;
    for _ in 0..1_000 {
        let soon = Some(Instant::now() + Duration::from_micros(200));
        let results = fill(&batch, &mut all, &mut words, width, soon);
        let late = Ok(RowMask::Late);
        let rows = words.chunks_exact(width);
        for ((result, other), row) in results.iter().zip(&mut others).zip(rows)
        {
            if *result == late {
                n_late += 1;
                assert!(row.iter().all(|&word| word == 0));
            } else {
                let mask = other.mask().expect("a mask");
                assert!(mask.words().eq(row.iter().copied()));
            }
        }
    }
    // How many were late depends on the machine. Without a deadline none is.
    let results = fill(&batch, &mut all, &mut words, width, None);
    let done = |result: &RowResult| matches!(result, Ok(RowMask::Done { .. }));
    assert!(results.iter().all(done), "{n_late} were late");
}

#[test]
fn a_row_fails_by_itself() {
    let trie =
        with_end(["a", "b"].map(|text| text.as_bytes().to_vec()).into());
    let grammar = maskwright::grammar::Grammar::from_regex("ab*");
    let compiled = grammar.expect("valid").compile(&trie).expect("no atoms");
    let mut all: Vec<Matcher> = (0..3)
        .map(|_| Matcher::new(Arc::clone(&compiled)).expect("a start"))
        .collect();
    let end = [TokenId(0), TokenId(2)];
    assert_eq!(all[1].try_accept(&end), Ok(2));
    let batch = BatchMatcher::new(2).expect("threads");
    let mut words = [0; 3];
    let results = fill(&batch, &mut all, &mut words, 1, None);
    let done = Ok(RowMask::Done { forbids_any: true });
    let finished = Err(MatcherError::Finished);
    assert_eq!(results, [done.clone(), finished, done]);
    assert_eq!((words[0], words[2]), (1, 1));
    // A row that is too narrow, in the pool too.
    compiled.clear_cache();
    let mut narrow = [BatchRow::new(&mut all[0], &mut [])];
    let results = batch.fill(&mut narrow, None);
    assert!(matches!(results[0], Err(MatcherError::Mask(_))), "{results:?}");
}

/// Texts of `a`, after a first one at which the machine waits for the gate,
/// or breaks.
#[derive(Debug)]
struct Gated {
    row: Row,
    gate: Arc<Gate>,
    breaks: bool,
}

#[derive(Debug, Default)]
struct Gate {
    is_open: Mutex<bool>,
    changed: Condvar,
    was_reached: AtomicBool,
}

impl Gate {
    fn pass(&self) {
        self.was_reached.store(true, Ordering::Relaxed);
        let mut is_open = self.is_open.lock().expect("no panic");
        while !*is_open {
            is_open = self.changed.wait(is_open).expect("no panic");
        }
    }

    fn open(&self) {
        *self.is_open.lock().expect("no panic") = true;
        self.changed.notify_all();
    }
}

impl Automaton for Gated {
    fn start(&self) -> StateId {
        StateId(0)
    }

    fn row(&self, state: StateId) -> Result<&Row, AutomatonError> {
        if state == StateId(1) {
            // The start is asked about by every matcher that is made.
            assert!(!self.breaks, "a machine that breaks");
            self.gate.pass();
        }
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
        "gated".to_owned()
    }
}

fn gated(trie: &Arc<TokenTrie>, gate: &Arc<Gate>, breaks: bool) -> Matcher {
    let mut row = RowBuilder::new();
    row.byte(b'a', Step::Stay(StateId(1)));
    row.finish(Outcome(0));
    let machine = Gated { row: row.build(), gate: Arc::clone(gate), breaks };
    let compiled = CompiledGrammar::new(Arc::new(machine), Arc::clone(trie));
    let compiled = compiled.expect("no atoms");
    Matcher::new(Arc::new(compiled)).expect("a start")
}

#[test]
fn one_that_takes_long_holds_nobody_up_and_is_not_lost() {
    let texts = ["a", "aa"].map(|text| text.as_bytes().to_vec());
    let trie = with_end(texts.into());
    let shut = Arc::new(Gate::default());
    let open = Arc::new(Gate::default());
    open.open();
    let mut all = [gated(&trie, &shut, false), gated(&trie, &open, false)];
    let batch = BatchMatcher::new(2).expect("threads");
    let mut words = [0; 2];
    let late = Ok(RowMask::Late);
    let done = Ok(RowMask::Done { forbids_any: false });
    for _ in 0..2 {
        // The second time, the first one is still at it.
        let soon = Some(Instant::now() + Duration::from_secs(2));
        let results = fill(&batch, &mut all, &mut words, 1, soon);
        assert_eq!(results, [late.clone(), done.clone()]);
        assert_eq!(words, [0, 0b111]);
    }
    assert!(shut.was_reached.load(Ordering::Relaxed));
    shut.open();
    let results = fill(&batch, &mut all, &mut words, 1, None);
    assert_eq!(results, [done.clone(), done]);
    assert_eq!(words, [0b111, 0b111]);
}

#[test]
fn a_machine_that_breaks_breaks_its_own_rows() {
    let texts = ["a", "aa"].map(|text| text.as_bytes().to_vec());
    let trie = with_end(texts.into());
    let open = Arc::new(Gate::default());
    open.open();
    let mut all = [gated(&trie, &open, true), gated(&trie, &open, false)];
    let batch = BatchMatcher::new(2).expect("threads");
    let mut words = [0; 2];
    let done = Ok(RowMask::Done { forbids_any: false });
    for _ in 0..3 {
        let soon = Some(Instant::now() + Duration::from_mins(1));
        let results = fill(&batch, &mut all, &mut words, 1, soon);
        let broken = Err(MatcherError::Panicked);
        assert_eq!(results, [broken, done.clone()]);
        assert_eq!(words, [0, 0b111]);
    }
}
