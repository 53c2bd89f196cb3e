//! The memory of walks.

use std::{hash::Hash, sync::Arc};

use maskwright_grammar_core::{
    automaton::{Outcome, Resumed, Row, StateId},
    util::FxHashMap,
};

use rustc_hash::FxBuildHasher;

use super::{
    ends::EndTable, finished::FinishedMasks, looping::Loop, run::Buffers,
    trie::TrieRef, unions::Unions, walk::Walk, window::WindowTable,
};

/// Walks and what they are made of. Everything here may be dropped at any
/// moment: it is derived again when it is asked for.
#[derive(Debug)]
pub(crate) struct WalkStore {
    walks: FxHashMap<WalkKey, Arc<Walk>>,
    /// Walks of shared states that were made one, by the first of them.
    merged: FxHashMap<Box<[WalkKey]>, Arc<Walk>>,
    unions: Unions,
    loops: FxHashMap<StateId, Loop>,
    /// Where waiting states go on.
    resumed: FxHashMap<(StateId, Outcome), Resumed>,
    windows: FxHashMap<WalkKey, Arc<WindowTable>>,
    ends: FxHashMap<WalkKey, Arc<EndTable>>,
    /// Masks of whole configurations.
    finished: FinishedMasks,
    /// Buffers that no run uses.
    buffers: Vec<Buffers>,
    /// About how many bytes the walks hold.
    memory: usize,
}

/// A store grows to so many walks without moving them: a text of a usual
/// grammar needs as many.
const USUAL: usize = 112;

impl Default for WalkStore {
    fn default() -> WalkStore {
        let hasher = FxBuildHasher;
        WalkStore {
            walks: FxHashMap::with_capacity_and_hasher(USUAL, hasher),
            merged: FxHashMap::default(),
            unions: Unions::default(),
            loops: FxHashMap::default(),
            resumed: FxHashMap::with_capacity_and_hasher(USUAL / 2, hasher),
            windows: FxHashMap::default(),
            ends: FxHashMap::default(),
            finished: FinishedMasks::default(),
            buffers: Vec::new(),
            memory: 0,
        }
    }
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

/// Adds the entries whose keys are new.
pub(super) fn add_new<K: Eq + Hash, V>(
    map: &mut FxHashMap<K, V>,
    more: FxHashMap<K, V>,
) {
    for (key, value) in more {
        map.entry(key).or_insert(value);
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

    /// Returns what several walks were made, if they were.
    pub(crate) fn merged(&self, keys: &[WalkKey]) -> Option<Arc<Walk>> {
        self.merged.get(keys).map(Arc::clone)
    }

    pub(crate) fn insert_merged(&mut self, keys: &[WalkKey], walk: Arc<Walk>) {
        self.memory += walk.memory() + size_of_val(keys);
        self.merged.insert(keys.into(), walk);
    }

    /// Keeps a walk, and returns the one that is kept: another thread may
    /// have been sooner.
    pub(crate) fn keep_walk(
        &mut self,
        key: WalkKey,
        walk: Arc<Walk>,
    ) -> Arc<Walk> {
        if let Some(known) = self.walk(key) {
            return Arc::clone(known);
        }
        self.insert_walk(key, Arc::clone(&walk), true);
        walk
    }

    /// Returns the merged tries of this store.
    pub(crate) fn unions(&mut self) -> &mut Unions {
        &mut self.unions
    }

    /// Returns the masks that are kept whole.
    pub(crate) fn finished(&mut self) -> &mut FinishedMasks {
        &mut self.finished
    }

    /// Returns empty buffers.
    pub(crate) fn take_buffers(&mut self) -> Buffers {
        self.buffers.pop().unwrap_or_default()
    }

    /// Keeps buffers, which must be empty, for the next run.
    pub(crate) fn put_buffers(&mut self, buffers: Buffers) {
        self.buffers.push(buffers);
    }

    /// Returns where the waiting `state` goes on after `outcome`, if that was
    /// asked before.
    pub(crate) fn resumed(
        &self,
        state: StateId,
        outcome: Outcome,
    ) -> Option<&Resumed> {
        self.resumed.get(&(state, outcome))
    }

    pub(crate) fn insert_resumed(
        &mut self,
        state: StateId,
        outcome: Outcome,
        resumed: Resumed,
    ) {
        self.memory += size_of::<(StateId, Outcome, Resumed)>();
        self.resumed.insert((state, outcome), resumed);
    }

    /// Returns what is known of the loops of `state`.
    pub(crate) fn looping(&mut self, state: StateId, row: &Row) -> &mut Loop {
        self.loops.entry(state).or_insert_with(|| Loop::new(state, row))
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

    pub(crate) fn ends(&self, key: WalkKey) -> Option<Arc<EndTable>> {
        self.ends.get(&key).map(Arc::clone)
    }

    pub(crate) fn insert_ends(&mut self, key: WalkKey, table: Arc<EndTable>) {
        self.memory += table.memory();
        self.ends.insert(key, table);
    }

    /// Returns about how many bytes of memory this holds.
    pub(crate) fn memory(&self) -> usize {
        self.memory + self.unions.memory() + self.finished.memory()
    }

    /// Returns a store that knows the same.
    pub(crate) fn snapshot(&self) -> WalkStore {
        WalkStore {
            walks: self.walks.clone(),
            merged: self.merged.clone(),
            unions: self.unions.clone(),
            loops: self.loops.clone(),
            resumed: self.resumed.clone(),
            windows: self.windows.clone(),
            ends: self.ends.clone(),
            finished: FinishedMasks::default(),
            buffers: Vec::new(),
            memory: self.memory,
        }
    }

    /// Adds what another store of the same machine knows. Of what both know,
    /// this one's is kept; each is as good.
    pub(crate) fn absorb(&mut self, other: WalkStore) {
        let own = self.walks.len();
        let share = other.memory / other.walks.len().max(1);
        add_new(&mut self.walks, other.walks);
        self.memory += share * (self.walks.len() - own);
        self.unions.absorb(other.unions);
        add_new(&mut self.merged, other.merged);
        add_new(&mut self.loops, other.loops);
        add_new(&mut self.resumed, other.resumed);
        add_new(&mut self.windows, other.windows);
        add_new(&mut self.ends, other.ends);
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = WalkStore::default();
    }
}
