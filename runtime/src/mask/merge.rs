//! Parts of a walk that are made one.
//!
//! A number may begin with any of ten digits, each a walk of its own, and any
//! value in twice as many ways. Where they all lead back to the same states,
//! one walk that has the tokens and the exits of all serves every mask.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{
    run::{MERGED_SIZE, Run},
    set::TokenSet,
    store::WalkKey,
    trie::{Trie, TrieRef},
    walk::{Exit, Part, Walk, Walker},
};

/// So many parts alike are made one.
const MIN_PARTS: usize = 4;

impl Run<'_, '_> {
    /// Makes one of the parts that end alike.
    pub(super) fn merge_parts(&mut self) {
        let n_mergeable = |keys: &[Option<(WalkKey, bool)>]| {
            keys.iter().filter(|key| key.is_some()).count()
        };
        while n_mergeable(&self.buffers.part_keys) >= MIN_PARTS {
            let first =
                self.buffers.part_keys.iter().position(Option::is_some);
            let Some(first) = first else { return };
            let mut keys: SmallVec<[WalkKey; 24]> = SmallVec::new();
            let mut group: SmallVec<[usize; 24]> = SmallVec::new();
            let mut are_shared = true;
            let parts = &self.buffers.parts;
            for (index, part) in parts.iter().enumerate().skip(first) {
                let key = &mut self.buffers.part_keys[index];
                if part.resumes == parts[first].resumes
                    && let Some((key, is_shared)) = key.take()
                {
                    are_shared &= is_shared;
                    keys.push(key);
                    group.push(index);
                }
            }
            if group.len() >= MIN_PARTS {
                self.merge_group(&group, &keys, are_shared);
            }
        }
    }

    fn merge_group(
        &mut self,
        group: &[usize],
        keys: &[WalkKey],
        are_shared: bool,
    ) {
        let parts = &mut self.buffers.parts;
        let walk = |&index: &usize| Arc::clone(&parts[index].walk);
        let walks: SmallVec<[Arc<Walk>; 24]> =
            group.iter().map(walk).collect();
        let resumes = parts[group[0]].resumes.clone();
        let walk = self.walker.merge(&walks, keys, are_shared);
        let merged =
            Part { resumes, walk, cleared: Box::default(), entry: None };
        let mut index = 0;
        self.buffers.parts.retain(|_| {
            index += 1;
            !group.contains(&(index - 1))
        });
        index = 0;
        self.buffers.part_keys.retain(|_| {
            index += 1;
            !group.contains(&(index - 1))
        });
        self.buffers.parts.push(merged);
        self.buffers.part_keys.push(None);
    }
}

impl Walk {
    /// Makes one of several plain walks.
    pub(super) fn merged(
        walks: &[Arc<Walk>],
        walker: &mut Walker<'_>,
    ) -> Walk {
        let mut sets: Vec<Arc<TokenSet>> = Vec::new();
        for set in walks.iter().flat_map(|walk| &walk.sets) {
            if !sets.iter().any(|known| Arc::ptr_eq(known, set)) {
                sets.push(Arc::clone(set));
            }
        }
        let accepted = walks.iter().map(|walk| &walk.accepted);
        let accepted = TokenSet::union(
            accepted.chain(sets.iter().map(|set| &**set)),
            walker.index.n_blocks(),
        );
        let mut exits: Vec<&Exit> =
            walks.iter().flat_map(|walk| &walk.exits).collect();
        exits.sort_by_key(|exit| exit.outcome);
        let mut grouped = Vec::new();
        for run in exits.chunk_by(|a, b| a.outcome == b.outcome) {
            let outcome = run[0].outcome;
            let (small, large): (Vec<&TrieRef>, Vec<&TrieRef>) = run
                .iter()
                .map(|exit| &exit.at)
                .partition(|at| at.size() < MERGED_SIZE);
            let small: SmallVec<[(&Arc<Trie>, u32); 24]> =
                small.iter().map(|at| (&at.trie, at.node)).collect();
            let small = match small[..] {
                [] => None,
                [(trie, node)] => {
                    Some(TrieRef { trie: Arc::clone(trie), node })
                }
                _ => Some(walker.union(&small)),
            };
            let places = large.into_iter().cloned().chain(small);
            grouped.extend(places.map(|at| Exit {
                outcome,
                at,
                direct: false,
            }));
        }
        Walk {
            state: walks[0].state,
            registers: false,
            accepted,
            sets: Box::default(),
            exits: grouped.into(),
            parts: Box::default(),
            guarded: Box::default(),
        }
    }
}
