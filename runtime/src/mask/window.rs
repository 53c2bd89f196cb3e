//! Lengths: all windows over one base state, from one walk of the base.

use std::sync::{Arc, Mutex};

use maskwright_grammar_core::{
    automaton::{AutomatonError, Machine, Outcome, StateId, Step},
    util::FxHashMap,
};

use super::{
    index::lock,
    set::TokenSet,
    trie::{Trie, TrieRef},
};

/// Up to so many units, the cumulated sets are made in advance. Few tokens
/// are longer; those are listed.
const CUMULATED: usize = 16;

/// The tokens below a place, by how many units of a base state they need.
#[derive(Debug)]
pub(crate) struct WindowTable {
    /// The tokens that need exactly so many units.
    need: Box<[Box<[u32]>]>,
    /// The tokens that need at most so many units.
    cumulated: Box<[Arc<TokenSet>]>,
    /// Where the frame ends, after how many units.
    exits: Box<[(Outcome, u32, TrieRef)]>,
    /// The exits of each window that was asked for.
    windows: Mutex<FxHashMap<(u32, u32), Exits>>,
}

/// The ends of a frame, one place an outcome.
pub(crate) type Exits = Arc<[(Outcome, TrieRef)]>;

impl WindowTable {
    /// Walks `base` below `at`. `None` if it does what windows cannot cut.
    pub(crate) fn new(
        machine: Machine<'_>,
        base: StateId,
        at: &TrieRef,
        n_blocks: usize,
    ) -> Result<Option<WindowTable>, AutomatonError> {
        let trie = &at.trie;
        let mut need: Vec<Vec<u32>> = Vec::new();
        let mut exits = Vec::new();
        let mut pending = vec![(base, at.node, 0_u32)];
        while let Some((state, node, units)) = pending.pop() {
            let row = machine.row(state)?;
            let is_whole = state == base;
            if !row.calls.is_empty()
                || row.registers
                || !is_whole && row.finish.is_some()
            {
                return Ok(None);
            }
            let needed = units as usize + usize::from(!is_whole);
            if need.len() <= needed {
                need.resize_with(needed + 1, Vec::new);
            }
            need[needed].extend_from_slice(trie.own_tokens(node));
            let exit = |node| TrieRef { trie: Arc::clone(trie), node };
            if let Some(outcome) = row.finish {
                exits.push((outcome, units, exit(node)));
            }
            for (child, info) in trie.children(node) {
                if !row.is_live(info.byte) {
                    continue;
                }
                for step in row.steps(info.byte) {
                    match step {
                        Step::Stay(to) => {
                            let units = units + u32::from(to == base);
                            pending.push((to, child, units));
                        }
                        Step::Return(outcome) => {
                            if !is_whole {
                                return Ok(None);
                            }
                            exits.push((outcome, units, exit(child)));
                        }
                        Step::Call { .. } => return Ok(None),
                    }
                }
            }
        }
        Ok(Some(WindowTable {
            cumulated: cumulate(&need, n_blocks),
            need: need.into_iter().map(Vec::into_boxed_slice).collect(),
            exits: exits.into(),
            windows: Mutex::default(),
        }))
    }

    /// Returns the tokens that need at most `most` units: a set, and lists.
    pub(crate) fn accepted(
        &self,
        most: u32,
    ) -> (&Arc<TokenSet>, &[Box<[u32]>]) {
        let most = (most as usize).min(self.need.len() - 1);
        let at = most.min(self.cumulated.len() - 1);
        (&self.cumulated[at], &self.need[at + 1..=most])
    }

    /// Returns the ends after at least `least` and at most `most` units.
    pub(crate) fn exits(&self, least: u32, most: u32) -> Exits {
        let longest = self.exits.iter().map(|exit| exit.1).max().unwrap_or(0);
        let key = (least.min(longest + 1), most.min(longest));
        let mut windows = lock(&self.windows);
        let exits = windows.entry(key).or_insert_with(|| {
            let within = self
                .exits
                .iter()
                .filter(|exit| (least..=most).contains(&exit.1))
                .map(|(outcome, _, at)| (*outcome, at.clone()))
                .collect();
            group_exits(within, |trie| Arc::new(trie)).into()
        });
        Arc::clone(exits)
    }

    /// Returns about how many bytes of memory this table holds.
    pub(crate) fn memory(&self) -> usize {
        let need: usize =
            self.need.iter().map(|tokens| size_of_val(&**tokens)).sum();
        let sets: usize = self.cumulated.iter().map(|set| set.memory()).sum();
        need + sets + size_of_val(&*self.exits)
    }
}

fn cumulate(need: &[Vec<u32>], n_blocks: usize) -> Box<[Arc<TokenSet>]> {
    (1..=need.len().min(CUMULATED + 1))
        .map(|end| {
            let slices: Vec<&[u32]> =
                need[..end].iter().map(|tokens| &**tokens).collect();
            Arc::new(TokenSet::new(&slices, n_blocks))
        })
        .collect()
}

/// Makes one place of all the places at which the frame ends alike.
pub(crate) fn group_exits(
    mut exits: Vec<(Outcome, TrieRef)>,
    mut intern: impl FnMut(Trie) -> Arc<Trie>,
) -> Vec<(Outcome, TrieRef)> {
    if exits.len() < 2 {
        return exits;
    }
    let key =
        |exit: &(Outcome, TrieRef)| (exit.0, exit.1.trie.id(), exit.1.node);
    exits.sort_unstable_by_key(key);
    exits.dedup_by_key(|exit| key(exit));
    let mut grouped = Vec::new();
    for run in exits.chunk_by(|a, b| a.0 == b.0) {
        let at = if let [(_, only)] = run {
            only.clone()
        } else {
            let refs: Vec<TrieRef> =
                run.iter().map(|(_, at)| at.clone()).collect();
            let public = refs.iter().all(|at| at.trie.is_public());
            TrieRef::root(&intern(Trie::merge(&refs, public)))
        };
        grouped.push((run[0].0, at));
    }
    grouped
}
