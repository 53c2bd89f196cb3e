//! The masks of a grammar, made in advance.
//!
//! Masks are made when they are asked for, which is what most grammars want:
//! of what a schema allows, one text sees little. Where a grammar is known
//! long before it is used, [`CompiledGrammar::precompute`] goes through its
//! places from the start, nearest first, and makes the walks that the mask of
//! each takes. Masks are the same afterwards, only sooner there.
//!
//! # Places
//!
//! Two texts are at one place if the states of their frames are the same, from
//! the one that reads down to `DEPTH`; what lies deeper is the same for all
//! tokens but those that end so many frames. What frames remember is left out:
//! walks do not depend on it. A grammar may have more places than anyone
//! wants (a place for each number of items, for each beginning of a word), so
//! there is a limit.

use std::{
    mem,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use maskwright_grammar_core::{
    automaton::{
        AtomId, AutomatonError, Configuration, Stack, StateId, Symbol,
    },
    interrupt::Interrupt,
    util::FxHashSet,
};
use rayon::{
    ThreadPoolBuilder,
    iter::{IntoParallelRefIterator, ParallelIterator},
};

use crate::{
    batch::BatchError,
    compiled::CompiledGrammar,
    mask::{WalkStore, lock},
};

/// So many frames tell places apart.
const DEPTH: usize = 3;

/// How far masks are made in advance.
#[derive(Clone, Debug)]
pub struct PrecomputeOptions {
    /// How many places are gone to at most.
    pub max_places: usize,
    /// About how many bytes the walks may hold.
    pub max_bytes: usize,
    /// On how many threads; 0 is one a core.
    pub n_threads: usize,
    /// Until when.
    pub interrupt: Interrupt,
}

impl Default for PrecomputeOptions {
    /// 10,000 places, 64 MiB, all cores, however long it takes.
    fn default() -> PrecomputeOptions {
        PrecomputeOptions {
            max_places: 10_000,
            max_bytes: 64 << 20,
            n_threads: 0,
            interrupt: Interrupt::never(),
        }
    }
}

/// Why [`CompiledGrammar::precompute`] came to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PrecomputeEnd {
    /// There are no more places.
    Complete,
    /// There are more than [`PrecomputeOptions::max_places`].
    Places,
    /// The walks hold [`PrecomputeOptions::max_bytes`].
    Bytes,
    /// The interrupt came.
    Interrupted,
}

/// What [`CompiledGrammar::precompute`] has done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Precomputed {
    /// How many places it has gone to.
    pub n_places: usize,
    /// How many walks it has made.
    pub n_walks: usize,
    /// Why it ended.
    pub end: PrecomputeEnd,
}

/// The states of the upper frames of all stacks, in order.
pub(crate) type PlaceKey = Vec<[Option<StateId>; DEPTH]>;

/// What a thread works with.
struct Bench {
    store: WalkStore,
    blocks: Vec<usize>,
}

impl CompiledGrammar {
    /// Makes in advance the walks that masks take, from the start on until a
    /// limit is met.
    ///
    /// Matchers may go on meanwhile; what was made is there for them at the
    /// end, whatever that is.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use maskwright::grammar::Grammar;
    /// use maskwright::mask::TokenTrie;
    /// use maskwright::matcher::Matcher;
    /// use maskwright::precompute::{PrecomputeEnd, PrecomputeOptions};
    /// use maskwright::vocabulary::{TokenId, Vocabulary};
    ///
    /// let tokens = ["yes", "no", "y", "e", "s", "</s>"];
    /// let vocabulary = Vocabulary::from_tokens(tokens, [TokenId(5)])?;
    /// let trie = Arc::new(TokenTrie::new(Arc::new(vocabulary)));
    /// let compiled = Grammar::from_regex("yes|no")?.compile(&trie)?;
    /// let done = compiled.precompute(&PrecomputeOptions::default())?;
    /// assert_eq!(done.end, PrecomputeEnd::Complete);
    /// let mut matcher = Matcher::new(compiled)?;
    /// matcher.mask()?;
    /// assert!(matcher.mask_stats().is_hit());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails when a limit of the grammar is met, or the system gives no
    /// threads. What was made until then is kept.
    pub fn precompute(
        &self,
        options: &PrecomputeOptions,
    ) -> Result<Precomputed, PrecomputeError> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(options.n_threads)
            .thread_name(|index| format!("maskwright-ahead-{index}"))
            .build()
            .map_err(|error| BatchError::new(&error))?;
        let job = Job {
            grammar: self,
            options,
            benches: Mutex::default(),
            n_walks: AtomicUsize::new(0),
        };
        let result = pool.install(|| job.run());
        let Job { benches, n_walks, .. } = job;
        for bench in mem::take(&mut *lock(&benches)) {
            self.absorb(bench.store);
        }
        let (n_places, end) = result?;
        Ok(Precomputed { n_places, n_walks: n_walks.into_inner(), end })
    }
}

struct Job<'a> {
    grammar: &'a CompiledGrammar,
    options: &'a PrecomputeOptions,
    /// Those that no thread uses: each has walks of its own, so that threads
    /// need not wait for one another.
    benches: Mutex<Vec<Bench>>,
    n_walks: AtomicUsize,
}

impl Job<'_> {
    /// Goes through all places, level by level.
    fn run(&self) -> Result<(usize, PrecomputeEnd), AutomatonError> {
        let start = self.options.interrupt.run(|| self.grammar.start());
        let Ok(start) = start else {
            return Ok((0, PrecomputeEnd::Interrupted));
        };
        let mut level = vec![start?];
        let mut seen = FxHashSet::default();
        seen.insert(key_of(&level[0]));
        let mut n_places = 0;
        while !level.is_empty() {
            let room = self.options.max_places - n_places;
            let is_cut = level.len() > room;
            level.truncate(room);
            let found: Vec<_> = level
                .par_iter()
                .map(|place| {
                    if self.memory() > self.options.max_bytes {
                        return Ok(None);
                    }
                    let work = || self.visit(place);
                    self.options.interrupt.run(work)?.map(Some)
                })
                .collect();
            let mut next = Vec::new();
            for found in found {
                let places = match found {
                    Ok(Some(places)) => places,
                    Ok(None) => return Ok((n_places, PrecomputeEnd::Bytes)),
                    Err(AutomatonError::Interrupted(_)) => {
                        return Ok((n_places, PrecomputeEnd::Interrupted));
                    }
                    Err(error) => return Err(error),
                };
                n_places += 1;
                let is_new =
                    |place: &Configuration| seen.insert(key_of(place));
                next.extend(places.into_iter().filter(is_new));
            }
            if is_cut {
                return Ok((n_places, PrecomputeEnd::Places));
            }
            level = next;
        }
        Ok((n_places, PrecomputeEnd::Complete))
    }

    /// About how many bytes the walks hold that no thread uses right now.
    fn memory(&self) -> usize {
        lock(&self.benches).iter().map(|bench| bench.store.memory()).sum()
    }

    /// Makes the mask of a place, and returns the places that follow.
    fn visit(
        &self,
        place: &Configuration,
    ) -> Result<Vec<Configuration>, AutomatonError> {
        let bench = lock(&self.benches).pop();
        let mut bench = bench.unwrap_or_else(|| Bench {
            store: self.grammar.store_snapshot(),
            blocks: vec![0; self.grammar.token_trie().n_blocks()],
        });
        let Bench { store, blocks } = &mut bench;
        let filled = self.grammar.fill_with(store, place, blocks);
        lock(&self.benches).push(bench);
        let n_walks = filled?.stats.n_walks as usize;
        self.n_walks.fetch_add(n_walks, Ordering::Relaxed);
        let after = places_after(self.grammar, place)?;
        Ok(after.into_iter().map(|(_, place)| place).collect())
    }
}

/// Returns what may follow a place, by one byte of each run of bytes that
/// all states read alike, and (without a byte) by each token that the grammar
/// names.
pub(crate) fn places_after(
    grammar: &CompiledGrammar,
    place: &Configuration,
) -> Result<Vec<(Option<u8>, Configuration)>, AutomatonError> {
    let machine = grammar.machine();
    let limits = grammar.limits();
    let reach = place.closure(machine, limits, true)?;
    let mut is_first = [false; 257];
    let mut atoms: Vec<(bool, AtomId)> = Vec::new();
    for top in reach.tops() {
        let state = top.frame.state;
        let row = machine.row(state)?;
        for range in row.ranges() {
            is_first[usize::from(range.lo)] = true;
            is_first[usize::from(range.hi) + 1] = true;
        }
        let here = row.atoms.iter();
        atoms.extend(here.map(|&(atom, _)| (state.is_shared(), atom)));
    }
    atoms.sort_unstable();
    atoms.dedup();
    let mut after = Vec::new();
    for byte in 0..=u8::MAX {
        if is_first[usize::from(byte)] {
            let symbol = Symbol::Byte(byte);
            after.push((Some(byte), reach.step(machine, limits, symbol)?));
        }
    }
    for atom in atoms {
        let stands_for =
            |state: StateId, other: AtomId| (state.is_shared(), other) == atom;
        let symbol = Symbol::Token(&stands_for);
        after.push((None, reach.step(machine, limits, symbol)?));
    }
    after.retain(|(_, place)| !place.tops().is_empty());
    Ok(after)
}

pub(crate) fn key_of(place: &Configuration) -> PlaceKey {
    let mut key = PlaceKey::new();
    for top in place.tops() {
        let mut frames = [None; DEPTH];
        frames[0] = Some(top.frame.state);
        add_below(&mut key, frames, 1, &top.below);
    }
    key.sort_unstable();
    key.dedup();
    key
}

/// Recursion is as deep as `DEPTH`.
fn add_below(
    key: &mut PlaceKey,
    frames: [Option<StateId>; DEPTH],
    at: usize,
    below: &Stack,
) {
    if at == DEPTH || below.has_bottom() {
        key.push(frames);
    }
    if at < DEPTH {
        for edge in below.edges() {
            let mut frames = frames;
            frames[at] = Some(edge.frame.state);
            add_below(key, frames, at + 1, &edge.below);
        }
    }
}

/// An error that occurs while masks are made in advance.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PrecomputeError {
    /// The grammar's machine met a limit.
    #[error(transparent)]
    Automaton(#[from] AutomatonError),
    /// The threads cannot be started.
    #[error(transparent)]
    Threads(#[from] BatchError),
}
