//! The memory of walks.

use std::sync::Arc;

use maskwright_grammar_core::{
    automaton::{Row, StateId},
    util::FxHashMap,
};

use super::{
    gap::Gap,
    looping::Loop,
    trie::{Trie, TrieRef},
    walk::Walk,
    window::WindowTable,
};

/// Walks and what they are made of. Everything here may be dropped at any
/// moment: it is derived again when it is asked for.
#[derive(Debug, Default)]
pub(crate) struct WalkStore {
    walks: FxHashMap<WalkKey, Arc<Walk>>,
    /// Merged tries by a hash of their content.
    tries: FxHashMap<u64, Vec<Arc<Trie>>>,
    /// The same by the places that were merged.
    unions: FxHashMap<Box<[(u32, u32)]>, Arc<Trie>>,
    loops: FxHashMap<StateId, Loop>,
    gaps: FxHashMap<(u32, u32, u32), Arc<Gap>>,
    windows: FxHashMap<WalkKey, Arc<WindowTable>>,
    /// About how many bytes the walks and tries hold.
    memory: usize,
}

/// A state, a place in a trie, and whether nothing lies below the frame.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct WalkKey {
    pub(crate) state: StateId,
    pub(crate) trie: u32,
    /// The node, and [`WalkKey::BOTTOM`].
    node: u32,
}

impl WalkKey {
    const BOTTOM: u32 = 1 << 31;

    pub(crate) fn new(state: StateId, at: &TrieRef, bottom: bool) -> WalkKey {
        let flag = if bottom { WalkKey::BOTTOM } else { 0 };
        WalkKey { state, trie: at.trie.id(), node: at.node | flag }
    }
}

impl WalkStore {
    pub(crate) fn walk(&self, key: WalkKey) -> Option<&Arc<Walk>> {
        self.walks.get(&key)
    }

    pub(crate) fn insert_walk(
        &mut self,
        key: WalkKey,
        walk: Arc<Walk>,
        is_own: bool,
    ) {
        if is_own {
            self.memory += walk.memory();
        }
        self.memory += size_of::<WalkKey>() + size_of::<usize>();
        self.walks.insert(key, walk);
    }

    /// Returns the union of several places.
    pub(crate) fn union(&mut self, places: &[TrieRef]) -> Arc<Trie> {
        let key: Box<[(u32, u32)]> =
            places.iter().map(|at| (at.trie.id(), at.node)).collect();
        if let Some(known) = self.unions.get(&key) {
            return Arc::clone(known);
        }
        let union = self.intern(Trie::union(places));
        self.memory += size_of_val(&*key) + size_of::<usize>();
        self.unions.insert(key, Arc::clone(&union));
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

    /// Returns what is known of the loops of `state`.
    pub(crate) fn looping(&mut self, state: StateId, row: &Row) -> &mut Loop {
        self.loops.entry(state).or_insert_with(|| Loop::new(state, row))
    }

    /// Returns the white space closure at a place in a merged trie.
    pub(crate) fn gap(
        &mut self,
        at: &TrieRef,
        left: u32,
        n_blocks: usize,
    ) -> Arc<Gap> {
        let key = (at.trie.id(), at.node, left);
        let gap = self
            .gaps
            .entry(key)
            .or_insert_with(|| Arc::new(Gap::new(at, left, n_blocks)));
        Arc::clone(gap)
    }

    pub(crate) fn window(&self, key: WalkKey) -> Option<Arc<WindowTable>> {
        self.windows.get(&key).map(Arc::clone)
    }

    pub(crate) fn insert_window(
        &mut self,
        key: WalkKey,
        table: Arc<WindowTable>,
    ) {
        self.memory += table.memory();
        self.windows.insert(key, table);
    }

    /// Returns about how many bytes of memory this holds.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = WalkStore::default();
    }
}
