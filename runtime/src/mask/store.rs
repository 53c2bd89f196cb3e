//! The memory of walks.

use std::sync::Arc;

use maskwright_grammar_core::{
    automaton::{Row, StateId},
    util::FxHashMap,
};

use super::{
    ends::EndTable, looping::Loop, run::Buffers, trie::TrieRef,
    unions::Unions, walk::Walk, window::WindowTable,
};

/// Walks and what they are made of. Everything here may be dropped at any
/// moment: it is derived again when it is asked for.
#[derive(Debug, Default)]
pub(crate) struct WalkStore {
    walks: FxHashMap<WalkKey, Arc<Walk>>,
    unions: Unions,
    loops: FxHashMap<StateId, Loop>,
    windows: FxHashMap<WalkKey, Arc<WindowTable>>,
    ends: FxHashMap<WalkKey, Arc<EndTable>>,
    /// Buffers that no run uses.
    buffers: Vec<Buffers>,
    /// About how many bytes the walks hold.
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

    /// Returns the merged tries of this store.
    pub(crate) fn unions(&mut self) -> &mut Unions {
        &mut self.unions
    }

    /// Returns empty buffers.
    pub(crate) fn take_buffers(&mut self) -> Buffers {
        self.buffers.pop().unwrap_or_default()
    }

    /// Keeps buffers, which must be empty, for the next run.
    pub(crate) fn put_buffers(&mut self, buffers: Buffers) {
        self.buffers.push(buffers);
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
        self.memory + self.unions.memory()
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = WalkStore::default();
    }
}
