//! The exact set of accepted lengths of every state of a finite automaton.
//!
//! The states with a word of length `k + 1` follow from those with a word of
//! length `k` alone, so the sequence of these sets runs into a cycle, and the
//! part up to there says everything.

use super::analysis::Graph;
use super::language::{Answer, StateId};
use crate::util::FxHashMap;

/// Bits that all sets of a table may take together.
const MAX_BITS: usize = 1 << 24;
/// Edges that may be followed to make a table.
const MAX_WORK: usize = 1 << 23;

/// For each length the set of states that have a word of that length.
#[derive(Debug)]
pub(super) struct LengthTable {
    states: Vec<StateId>,
    index: FxHashMap<StateId, usize>,
    /// Bit `state` of `levels[length]`.
    levels: Vec<Box<[u64]>>,
    /// The set after the last level is that at this length.
    cycle: usize,
}

impl LengthTable {
    /// Returns none if the table would be too large.
    pub(super) fn new(
        graph: &Graph,
        accepting: impl Fn(&StateId) -> bool,
    ) -> Option<LengthTable> {
        let n_states = graph.states.len();
        let n_edges: usize = graph.edges.iter().map(Vec::len).sum();
        let n_words = n_states.div_ceil(64);
        let max_levels = (MAX_BITS / (64 * n_words.max(1)))
            .min(MAX_WORK / (n_edges + n_states).max(1));
        let mut level: Box<[u64]> = vec![0; n_words].into();
        for (at, state) in graph.states.iter().enumerate() {
            level[at / 64] |= u64::from(accepting(state)) << (at % 64);
        }
        let mut seen: FxHashMap<Box<[u64]>, usize> = FxHashMap::default();
        let mut levels = Vec::new();
        let cycle = loop {
            if let Some(&cycle) = seen.get(&level) {
                break cycle;
            }
            if levels.len() >= max_levels {
                return None;
            }
            seen.insert(level.clone(), levels.len());
            let mut next: Box<[u64]> = vec![0; n_words].into();
            for (at, edges) in graph.edges.iter().enumerate() {
                let has = edges
                    .iter()
                    .any(|&to| level[to / 64] >> (to % 64) & 1 == 1);
                next[at / 64] |= u64::from(has) << (at % 64);
            }
            levels.push(std::mem::replace(&mut level, next));
        };
        let states = graph.states.clone();
        let index =
            states.iter().enumerate().map(|(at, &id)| (id, at)).collect();
        Some(LengthTable { states, index, levels, cycle })
    }

    pub(super) fn states(&self) -> &[StateId] {
        &self.states
    }

    /// Has `state` a word with a length in `least..=most`?
    pub(super) fn accepts(
        &self,
        state: StateId,
        least: u64,
        most: u64,
    ) -> Option<Answer> {
        let at = *self.index.get(&state)?;
        let has =
            |length: usize| self.levels[length][at / 64] >> (at % 64) & 1 == 1;
        let n_levels = self.levels.len();
        let limit = u64::try_from(n_levels).unwrap_or(u64::MAX);
        let clamp = |length: u64| usize::try_from(length.min(limit));
        let before = clamp(least).ok()?..clamp(most.saturating_add(1)).ok()?;
        if before.clone().any(has) {
            return Some(Answer::Yes);
        }
        if most < limit {
            return Some(Answer::No);
        }
        // Lengths from the end of the table on repeat the cycle.
        let from = least.max(limit);
        let period = limit - u64::try_from(self.cycle).ok()?;
        let n_lengths = (most - from).saturating_add(1).min(period);
        let found = (0..n_lengths).any(|offset| {
            let turn = (from - limit + offset) % period;
            usize::try_from(turn).is_ok_and(|turn| has(self.cycle + turn))
        });
        Some(if found { Answer::Yes } else { Answer::No })
    }
}
