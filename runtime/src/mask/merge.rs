//! Parts of a walk that are made one.
//!
//! A number may begin with any of ten digits, each a walk of its own, and any
//! value in twice as many ways. Where they all lead back to the same states,
//! one walk that has the tokens and the exits of all serves every mask.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{
    run::{MERGED_SIZE, MergeKey, Run},
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
        let n_mergeable = |parts: &[(Part, Option<MergeKey>)]| {
            parts.iter().filter(|(_, key)| key.is_some()).count()
        };
        while n_mergeable(&self.buffers.parts) >= MIN_PARTS {
            let parts = &mut self.buffers.parts;
            let first = parts.iter().find(|(_, key)| key.is_some());
            let Some((first, _)) = first else { return };
            let resumes = first.resumes.clone();
            let mut keys: SmallVec<[WalkKey; 24]> = SmallVec::new();
            let mut walks: SmallVec<[Arc<Walk>; 24]> = SmallVec::new();
            let mut are_shared = true;
            let is_alike = |(part, key): &(Part, Option<MergeKey>)| {
                key.filter(|_| part.resumes == resumes)
            };
            for part in &*parts {
                if let Some(MergeKey { key, is_shared }) = is_alike(part) {
                    are_shared &= is_shared;
                    keys.push(key);
                    walks.push(Arc::clone(&part.0.walk));
                }
            }
            if keys.len() < MIN_PARTS {
                for part in parts {
                    if is_alike(part).is_some() {
                        part.1 = None;
                    }
                }
                continue;
            }
            parts.retain(|part| is_alike(part).is_none());
            let walk = self.walker.merge(&walks, &keys, are_shared);
            let cleared = Box::default();
            let merged = Part { resumes, walk, cleared, entry: None };
            self.buffers.parts.push((merged, None));
        }
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
