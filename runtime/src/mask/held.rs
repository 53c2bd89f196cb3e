//! What a run holds while it goes: tries, and the rows it looked at last.

use std::{ops::Deref, rc::Rc, sync::Arc};

use maskwright_grammar_core::automaton::{
    AutomatonError, Machine, Row, StateId,
};

use super::trie::{Trie, TrieRef};

/// A trie that is held while a node is read.
pub(super) enum HeldTrie {
    /// The vocabulary's. That it is held is not counted at the trie, which
    /// other threads hold too: the count would go from core to core at each
    /// node.
    Root(Rc<TrieRef>),
    Other(Arc<Trie>),
}

impl Deref for HeldTrie {
    type Target = Trie;

    fn deref(&self) -> &Trie {
        match self {
            HeldTrie::Root(root) => &root.trie,
            HeldTrie::Other(trie) => trie,
        }
    }
}

/// The rows that a walk looked at last: asking the machine is a call through
/// a table and a search in another.
pub(super) struct RowCache<'a> {
    machine: Machine<'a>,
    rows: [Option<(StateId, &'a Row)>; RowCache::SIZE],
}

impl<'a> RowCache<'a> {
    const SIZE: usize = 16;

    pub(super) fn new(machine: Machine<'a>) -> RowCache<'a> {
        RowCache { machine, rows: [None; RowCache::SIZE] }
    }

    pub(super) fn get(
        &mut self,
        state: StateId,
    ) -> Result<&'a Row, AutomatonError> {
        let slot = &mut self.rows[state.0 as usize % RowCache::SIZE];
        if let &mut Some((known, row)) = slot
            && known == state
        {
            return Ok(row);
        }
        let row = self.machine.row(state)?;
        *slot = Some((state, row));
        Ok(row)
    }
}
