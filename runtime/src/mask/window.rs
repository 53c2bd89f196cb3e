//! Lengths: all windows over one base state, from one walk of the base.

use std::sync::{Arc, Mutex};

use maskwright_grammar_core::{
    automaton::{AutomatonError, Machine, Outcome, StateId, Step},
    util::FxHashMap,
};

use super::{
    index::lock,
    set::{TokenSet, insert_all},
    trie::{Trie, TrieRef},
};

/// Up to so many units, the cumulated sets are made in advance. Few tokens
/// are longer; those are listed.
const CUMULATED: usize = 48;

/// The tokens below a place, by how many units of a base state they need.
#[derive(Debug)]
pub(crate) struct WindowTable {
    /// The tokens that need exactly so many units.
    need: Box<[Box<[u32]>]>,
    /// The tokens that need at most so many units.
    cumulated: Box<[Arc<TokenSet>]>,
    /// All tokens.
    all: Arc<TokenSet>,
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
        let cumulated = cumulate(&need, n_blocks);
        let all = need.iter().map(|tokens| &**tokens);
        let all = match cumulated.last() {
            Some(last) if cumulated.len() == need.len() => Arc::clone(last),
            _ => Arc::new(TokenSet::new(all, n_blocks)),
        };
        Ok(Some(WindowTable {
            cumulated,
            all,
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
        let most = most as usize;
        if most + 1 >= self.need.len() {
            return (&self.all, &[]);
        }
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
            group_exits(within)
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
    let mut sets: Vec<Arc<TokenSet>> = Vec::new();
    for end in 1..=need.len().min(CUMULATED + 1) {
        let before = sets.last().map(|set| &**set);
        let set = if let Some(TokenSet::Dense(blocks)) = before {
            let mut blocks = blocks.clone();
            insert_all(&mut blocks, &need[end - 1]);
            TokenSet::Dense(blocks)
        } else {
            let slices = need[..end].iter().map(|tokens| &**tokens);
            TokenSet::new(slices, n_blocks)
        };
        sets.push(Arc::new(set));
    }
    sets.into()
}

/// Makes one place of all the places at which the frame ends alike.
fn group_exits(mut exits: Vec<(Outcome, TrieRef)>) -> Exits {
    let key =
        |exit: &(Outcome, TrieRef)| (exit.0, exit.1.trie.id(), exit.1.node);
    exits.sort_unstable_by_key(key);
    exits.dedup_by_key(|exit| key(exit));
    let mut grouped = Vec::new();
    for run in exits.chunk_by(|a, b| a.0 == b.0) {
        let at = match run {
            [(_, only)] => only.clone(),
            _ => {
                let places: Vec<(&Arc<Trie>, u32)> =
                    run.iter().map(|(_, at)| (&at.trie, at.node)).collect();
                TrieRef::root(&Arc::new(Trie::union(&places)))
            }
        };
        grouped.push((run[0].0, at));
    }
    grouped.into()
}
