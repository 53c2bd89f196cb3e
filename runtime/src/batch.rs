//! Masks of many sequences at once.
//!
//! A [`BatchMatcher`] is a standing pool of threads that makes the masks of
//! one decode step of a batch, each under a grammar of its own. Most masks of
//! a step are put together from what is known already and take a microsecond:
//! these are made on the calling thread, where handing them to another one
//! would cost more than it saves. What is left, which is new and may take
//! milliseconds, is shared by the calling thread and the pool, a grammar a task,
//! and so are rows whose last mask was new.
//!
//! A step may have a deadline, say the moment at which the logits arrive.
//! Masks that are not finished by then are reported as late, and asked for
//! again when the caller likes. What was begun goes on in the background, so
//! that the next call finds it done or nearly so.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use std::time::{Duration, Instant};
//!
//! use maskwright::batch::{BatchMatcher, BatchRow, RowMask};
//! use maskwright::compiler::{Compiler, GrammarSource};
//! use maskwright::mask::TokenTrie;
//! use maskwright::matcher::Matcher;
//! use maskwright::vocabulary::{TokenId, Vocabulary};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tokens = ["yes", "no", "n", "o", "1", "2", "</s>"];
//! let vocabulary = Vocabulary::from_tokens(tokens, [TokenId(6)])?;
//! let trie = Arc::new(TokenTrie::new(Arc::new(vocabulary)));
//! let width = trie.vocabulary().n_logits().div_ceil(32);
//!
//! // Once a process: the cache of grammars, and the pool.
//! let compiler = Compiler::new(256 << 20);
//! let batch = BatchMatcher::new(2)?;
//!
//! // Once a request: a matcher. Equal sources are compiled once.
//! let sources = [
//!     GrammarSource::choices(["yes", "no"]),
//!     GrammarSource::regex("[12]+"),
//!     GrammarSource::choices(["yes", "no"]),
//! ];
//! let mut matchers = Vec::new();
//! for source in &sources {
//!     let compiled = compiler.compile(&trie, source)?.compiled;
//!     matchers.push(Matcher::new(compiled)?);
//! }
//! assert_eq!(compiler.stats().n_compiled, 2);
//!
//! // Once a step: a row of the bitmask a sequence.
//! let mut bitmask = vec![0_i32; matchers.len() * width];
//! while matchers.iter().any(|matcher| !matcher.is_terminated()) {
//!     let mut rows = Vec::new();
//!     for (matcher, words) in
//!         matchers.iter_mut().zip(bitmask.chunks_exact_mut(width))
//!     {
//!         if !matcher.is_terminated() {
//!             rows.push(BatchRow::new_i32(matcher, words));
//!         }
//!     }
//!     // The model runs in the meantime; its logits are due by then.
//!     let deadline = Instant::now() + Duration::from_secs(10);
//!     let mut results = batch.fill(&mut rows, Some(deadline));
//!     for (row, result) in rows.iter_mut().zip(&mut results) {
//!         if matches!(result, Ok(RowMask::Late)) {
//!             // The logits are there: now wait for it.
//!             let again = std::slice::from_mut(row);
//!             *result = batch.fill(again, None).remove(0);
//!         }
//!     }
//!     // Here the engine applies the masks and draws; let this one take the
//!     // last token that may come.
//!     for (row, result) in rows.iter_mut().zip(results) {
//!         let RowMask::Done { .. } = result? else { continue };
//!         let index = (0..width).rfind(|&index| row.words()[index] != 0);
//!         let index = index.expect("a grammar is never stuck");
//!         let token = index * 32 + row.words()[index].ilog2() as usize;
//!         row.matcher().accept(TokenId::from_index(token))?;
//!     }
//! }
//! # Ok(())
//! # }
//! ```

use std::{
    fmt, iter,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    time::Instant,
};

use maskwright_grammar_core::{
    automaton::{AutomatonError, Configuration},
    util::FxHashMap,
};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use crate::{
    compiled::CompiledGrammar,
    mask::{MaskStats, TokenMask, lock},
    matcher::{Matcher, MatcherError},
};

/// A sequence of a batch, and where its mask is to be written.
#[derive(Debug)]
pub struct BatchRow<'a> {
    matcher: &'a mut Matcher,
    words: &'a mut [u32],
}

impl<'a> BatchRow<'a> {
    /// Creates a row; `words` has the layout of [`Matcher::mask_into`].
    pub fn new(
        matcher: &'a mut Matcher,
        words: &'a mut [u32],
    ) -> BatchRow<'a> {
        BatchRow { matcher, words }
    }

    /// Creates a row of signed words, which hold the same bits.
    pub fn new_i32(
        matcher: &'a mut Matcher,
        words: &'a mut [i32],
    ) -> BatchRow<'a> {
        BatchRow { matcher, words: bytemuck::cast_slice_mut(words) }
    }

    /// Returns the matcher.
    pub fn matcher(&mut self) -> &mut Matcher {
        self.matcher
    }

    /// Returns the words of the mask.
    pub fn words(&self) -> &[u32] {
        self.words
    }
}

/// What became of a row.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RowMask {
    /// The mask was written.
    Done {
        /// Whether any token is forbidden.
        forbids_any: bool,
    },
    /// The mask was not finished by the deadline, and its words are zero.
    /// Ask again.
    Late,
}

/// What became of a row, or why it has no mask.
pub type RowResult = Result<RowMask, MatcherError>;

/// A standing pool of threads that makes the masks of batches.
///
/// See the [module documentation](self). Any number of threads may use one
/// at once.
pub struct BatchMatcher {
    pool: ThreadPool,
}

/// Up to so many rows are looked at on the calling thread in any case: to wake
/// another one takes longer than to put a few masks together.
const FEW_ROWS: usize = 3;

/// Rows, with their places, by grammar: who shares one would wait for it on
/// another thread.
type Groups<'r, 'a> = FxHashMap<usize, Vec<(usize, &'r mut BatchRow<'a>)>>;

/// The rows of one grammar that are new, and where they go on.
type Cold = (Arc<CompiledGrammar>, Vec<(usize, Configuration)>);

/// A mask that the pool has made, and its row.
type Made = (usize, Result<(TokenMask, MaskStats), AutomatonError>);

impl BatchMatcher {
    /// Starts a pool of `n_threads` threads; 0 is one a core.
    ///
    /// # Errors
    ///
    /// Fails when the system gives no threads.
    pub fn new(n_threads: usize) -> Result<BatchMatcher, BatchError> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(n_threads)
            .thread_name(|index| format!("maskwright-{index}"))
            // The rows of a task that panics say so; see `collect`.
            .panic_handler(|_| {})
            .build()
            .map_err(|error| BatchError::new(&error))?;
        Ok(BatchMatcher { pool })
    }

    /// Returns how many threads the pool has.
    pub fn n_threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Makes the masks of `rows`, and returns what became of each.
    ///
    /// Without a deadline, no row is [`RowMask::Late`]. With one, this
    /// returns soon after it, but a mask that is put together from what is
    /// known is not broken off.
    ///
    /// # Errors
    ///
    /// A row fails as [`Matcher::mask_into`] does, and on account of no other
    /// row.
    pub fn fill(
        &self,
        rows: &mut [BatchRow<'_>],
        deadline: Option<Instant>,
    ) -> Vec<RowResult> {
        match deadline {
            Some(at) => self.fill_until(rows, at),
            None => self.fill_all(rows),
        }
    }

    /// Makes all masks. Those that are likely to be known are made here, the
    /// others on the pool meanwhile, and then here as well.
    fn fill_all(&self, rows: &mut [BatchRow<'_>]) -> Vec<RowResult> {
        let mut results: Vec<RowResult> =
            rows.iter().map(|_| Ok(RowMask::Late)).collect();
        let is_new = |row: &&BatchRow<'_>| !was_known(row.matcher);
        let n_new = rows.iter().filter(is_new).count();
        let mut near = Vec::new();
        let mut far = Groups::default();
        for (index, row) in rows.iter_mut().enumerate() {
            if n_new <= FEW_ROWS || was_known(row.matcher) {
                near.push((index, row));
            } else {
                far.entry(grammar_of(row)).or_default().push((index, row));
            }
        }
        let n_far = far.len();
        let queue = Mutex::new(far.into_values().collect::<Vec<_>>());
        let made = Mutex::new(Vec::new());
        let work = || {
            let next = || lock(&queue).pop();
            for (index, row) in iter::from_fn(next).flatten() {
                let result = fill_here(row);
                lock(&made).push((index, result));
            }
        };
        // Others may take as long to wake as a step takes; this thread is
        // awake, so it takes its share.
        let n_others = self.n_threads() - 1;
        self.pool.in_place_scope(|scope| {
            for _ in 0..n_far.min(n_others) {
                scope.spawn(|_| work());
            }
            let mut far = Groups::default();
            for (index, row) in near {
                let known = row.matcher.known_mask_into(row.words);
                match known.transpose() {
                    None => {
                        let group = far.entry(grammar_of(row)).or_default();
                        group.push((index, row));
                    }
                    Some(result) => {
                        results[index] = result
                            .map(|forbids_any| RowMask::Done { forbids_any });
                    }
                }
            }
            let n_more = far.len().saturating_sub(1);
            lock(&queue).extend(far.into_values());
            for _ in 0..n_more.min(n_others.saturating_sub(n_far)) {
                scope.spawn(|_| work());
            }
            work();
        });
        for (index, result) in lock(&made).drain(..) {
            results[index] = result;
        }
        results
    }

    /// Makes the masks that are finished at `deadline`.
    fn fill_until(
        &self,
        rows: &mut [BatchRow<'_>],
        deadline: Instant,
    ) -> Vec<RowResult> {
        let mut results = Vec::with_capacity(rows.len());
        let mut cold: Vec<Cold> = Vec::new();
        let mut groups: FxHashMap<usize, usize> = FxHashMap::default();
        for (index, row) in rows.iter_mut().enumerate() {
            if Instant::now() >= deadline {
                row.words.fill(0);
                results.push(Ok(RowMask::Late));
                continue;
            }
            let known = row.matcher.known_mask_into(row.words);
            results.push(match known {
                Ok(Some(forbids_any)) => Ok(RowMask::Done { forbids_any }),
                Ok(None) => {
                    let grammar = row.matcher.grammar();
                    let id = Arc::as_ptr(grammar) as usize;
                    let group = *groups.entry(id).or_insert_with(|| {
                        cold.push((Arc::clone(grammar), Vec::new()));
                        cold.len() - 1
                    });
                    let configuration = row.matcher.configuration().clone();
                    cold[group].1.push((index, configuration));
                    Ok(RowMask::Late)
                }
                Err(error) => Err(error),
            });
        }
        if !cold.is_empty() {
            self.fill_cold(cold, rows, deadline, &mut results);
        }
        results
    }

    /// Has the pool make the masks of `cold`.
    fn fill_cold(
        &self,
        cold: Vec<Cold>,
        rows: &mut [BatchRow<'_>],
        deadline: Instant,
        results: &mut [RowResult],
    ) {
        let mut open: Vec<usize> = cold
            .iter()
            .flat_map(|(_, group)| group.iter().map(|&(index, _)| index))
            .collect();
        open.sort_unstable();
        for &index in &open {
            rows[index].words.fill(0);
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = mpsc::channel();
        for group in cold {
            let sender = sender.clone();
            let is_over = Arc::clone(&is_over);
            self.pool.spawn(move || make(group, &is_over, &sender));
        }
        drop(sender);
        let n_open = open.len();
        for _ in 0..n_open {
            match receive(&receiver, deadline) {
                Ok((index, made)) => {
                    results[index] = finish(&mut rows[index], made);
                    if let Ok(at) = open.binary_search(&index) {
                        open.remove(at);
                    }
                }
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    for index in open {
                        results[index] = Err(MatcherError::Panicked);
                    }
                    break;
                }
            }
        }
        is_over.store(true, Ordering::Relaxed);
    }
}

/// Makes the masks of a group, until nobody waits for them.
fn make((grammar, group): Cold, is_over: &AtomicBool, sender: &Sender<Made>) {
    for (index, configuration) in group {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let mut mask = TokenMask::none(grammar.vocabulary().n_logits());
        let stats = grammar.fill(&configuration, mask.blocks_mut());
        // If nobody waits any more, the walks that were made are kept.
        let _ = sender.send((index, stats.map(|stats| (mask, stats))));
    }
}

fn receive(
    receiver: &Receiver<Made>,
    deadline: Instant,
) -> Result<Made, RecvTimeoutError> {
    let left = deadline.saturating_duration_since(Instant::now());
    receiver.recv_timeout(left)
}

fn finish(
    row: &mut BatchRow<'_>,
    made: Result<(TokenMask, MaskStats), AutomatonError>,
) -> RowResult {
    let (mask, stats) = made?;
    mask.copy_into(row.words)?;
    row.matcher.set_stats(stats);
    let forbids_any = mask.n_allowed() < mask.len();
    Ok(RowMask::Done { forbids_any })
}

/// Says which grammar a row has.
fn grammar_of(row: &BatchRow<'_>) -> usize {
    Arc::as_ptr(row.matcher.grammar()) as usize
}

/// Whether the last mask of a matcher took nothing new.
fn was_known(matcher: &Matcher) -> bool {
    let stats = matcher.mask_stats();
    stats.is_hit() && stats.n_known > 0
}

/// Makes a mask on the thread that asks. Who panics fails alone.
fn fill_here(row: &mut BatchRow<'_>) -> RowResult {
    let fill = AssertUnwindSafe(|| row.matcher.mask_into(row.words));
    let forbids_any =
        catch_unwind(fill).unwrap_or(Err(MatcherError::Panicked))?;
    Ok(RowMask::Done { forbids_any })
}

impl fmt::Debug for BatchMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchMatcher")
            .field("n_threads", &self.n_threads())
            .finish()
    }
}

/// An error that occurs when a pool cannot be started.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the threads of a pool of masks cannot be started: {message}")]
pub struct BatchError {
    message: String,
}

impl BatchError {
    pub(crate) fn new(error: &ThreadPoolBuildError) -> BatchError {
        BatchError { message: error.to_string() }
    }
}
