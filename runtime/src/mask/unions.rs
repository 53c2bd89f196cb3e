//! Merged tries, and the white space closures of places.

use std::sync::Arc;

use maskwright_grammar_core::{interrupt, util::FxHashMap};
use smallvec::SmallVec;

use super::{
    gap::{self, Gap},
    store::add_new,
    trie::{Trie, TrieRef},
};

/// Tries and closures that were made of places, and may be dropped at any
/// moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unions {
    /// Merged tries by a hash of their content.
    tries: FxHashMap<u64, SmallVec<[Arc<Trie>; 1]>>,
    /// The same by the places that were merged.
    merged: FxHashMap<Box<[(u32, u32)]>, Arc<Trie>>,
    /// By trie, node and how much space may follow; `u32::MAX` is "all that
    /// there is".
    gaps: FxHashMap<(u32, u32, u32), Arc<Gap>>,
    /// The longest run of white space below a place.
    longest: FxHashMap<(u32, u32), u32>,
    /// About how many bytes all of this holds.
    memory: usize,
}

impl Unions {
    /// Returns the union of several places.
    pub(crate) fn union(&mut self, places: &[(&Arc<Trie>, u32)]) -> Arc<Trie> {
        match self.known_union(places) {
            Some(known) => known,
            None => self.insert_union(places, Trie::union(places)),
        }
    }

    /// Returns the union of several places, if it was made before.
    pub(crate) fn known_union(
        &self,
        places: &[(&Arc<Trie>, u32)],
    ) -> Option<Arc<Trie>> {
        self.merged.get(&key_of(places)[..]).map(Arc::clone)
    }

    /// Keeps `union`, which is that of `places`, unless it is known or was
    /// interrupted.
    pub(crate) fn insert_union(
        &mut self,
        places: &[(&Arc<Trie>, u32)],
        union: Trie,
    ) -> Arc<Trie> {
        let key = key_of(places);
        if let Some(known) = self.merged.get(&key[..]) {
            return Arc::clone(known);
        }
        if interrupt::confirm().is_err() {
            return Arc::new(union);
        }
        let union = self.intern(union);
        self.memory += size_of_val(&key[..]) + size_of::<usize>();
        self.merged.insert(Box::from(&key[..]), Arc::clone(&union));
        union
    }

    /// Returns the trie with the content of `trie`.
    fn intern(&mut self, trie: Trie) -> Arc<Trie> {
        let tries = self.tries.entry(trie.content_hash()).or_default();
        if let Some(known) = tries.iter().find(|other| other.is_equal(&trie)) {
            return Arc::clone(known);
        }
        self.memory += trie.memory();
        let trie = Arc::new(trie);
        tries.push(Arc::clone(&trie));
        trie
    }

    /// Returns the white space closure at a place, up to `left` bytes of it.
    pub(crate) fn gap(
        &mut self,
        at: &TrieRef,
        left: u32,
        n_blocks: usize,
    ) -> Arc<Gap> {
        if let Some(known) = self.known_gap(at, left) {
            return known;
        }
        let place = (at.trie.id(), at.node);
        let longest =
            *self.longest.entry(place).or_insert_with(|| gap::longest(at));
        let gap = Gap::new(at, left.min(longest), n_blocks);
        self.insert_gap(at, left, longest, gap)
    }

    /// Returns the white space closure at a place, if it was made before.
    pub(crate) fn known_gap(
        &self,
        at: &TrieRef,
        left: u32,
    ) -> Option<Arc<Gap>> {
        let place = (at.trie.id(), at.node);
        let left = left.min(*self.longest.get(&place)?);
        self.gaps.get(&(place.0, place.1, left)).map(Arc::clone)
    }

    /// Keeps the white space closure at a place, unless it is known or was
    /// interrupted.
    /// `longest` is the longest run of white space there.
    pub(crate) fn insert_gap(
        &mut self,
        at: &TrieRef,
        left: u32,
        longest: u32,
        gap: Gap,
    ) -> Arc<Gap> {
        if interrupt::confirm().is_err() {
            return Arc::new(gap);
        }
        let place = (at.trie.id(), at.node);
        self.longest.insert(place, longest);
        let key = (place.0, place.1, left.min(longest));
        let gap = self.gaps.entry(key).or_insert_with(|| {
            self.memory += gap.memory();
            Arc::new(gap)
        });
        Arc::clone(gap)
    }

    /// Adds what `other` has of other places.
    pub(crate) fn absorb(&mut self, other: Unions) {
        let Unions { tries, merged, gaps, longest, memory } = other;
        let own = self.merged.len() + self.gaps.len();
        let share = memory / (merged.len() + gaps.len()).max(1);
        add_new(&mut self.tries, tries);
        add_new(&mut self.merged, merged);
        add_new(&mut self.gaps, gaps);
        add_new(&mut self.longest, longest);
        let n_new = self.merged.len() + self.gaps.len() - own;
        self.memory += share * n_new;
    }

    /// Returns about how many bytes of memory this holds.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }
}

fn key_of(places: &[(&Arc<Trie>, u32)]) -> SmallVec<[(u32, u32); 16]> {
    places.iter().map(|(trie, node)| (trie.id(), *node)).collect()
}
