//! Strings of a list: the members of an `enum`.
//!
//! They are read as the names of an object are: a state is a range of the
//! sorted list.

use std::sync::Arc;

use maskwright_grammar_core::automaton::{
    AutomatonError, Hint, RowBuilder, StateId, Words,
};

use super::{
    Machine, StateKey,
    algebra::Typed,
    names::{NameRange, Names},
    prelude::NOTHING,
    text::{Speller, Spelling},
};

/// The strings that may be written.
#[derive(Debug)]
pub(crate) struct StringList {
    names: Names,
    /// The same as they are usually spelled, if none must be escaped.
    spelled: Option<Arc<Words>>,
    /// All of them, as rows hold it.
    all: Arc<[u64]>,
}

impl Machine {
    /// The state after the opening quote of a string that satisfies `need`,
    /// if that is a list.
    pub(crate) fn list_start(
        &self,
        need: Typed,
    ) -> Result<Option<StateId>, AutomatonError> {
        let list = self.parts.lists.intern(need)?;
        let Some(StringList { names, .. }) = self.list(list)? else {
            return Ok(None);
        };
        let spelling = Spelling::Between(names.all());
        let state = StateKey::Listed { list, spelling };
        self.table.intern(state).map(Some)
    }

    fn list(&self, list: u32) -> Result<Option<&StringList>, AutomatonError> {
        let list = self.parts.lists.derived(list, |&need| {
            Ok(self.algebra.listed(need).map(|texts| {
                let texts: Vec<&str> =
                    texts.iter().map(String::as_str).collect();
                let (names, _) = Names::new(&texts);
                let spelled = names.spelled(self.policy.escapes, |_| NOTHING);
                let words = names.len().div_ceil(64) as usize;
                let all = vec![u64::MAX; words].into();
                StringList { names, spelled, all }
            }))
        })?;
        Ok(list.as_ref())
    }

    pub(crate) fn build_listed(
        &self,
        list: u32,
        spelling: Spelling<NameRange>,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let Some(StringList { names, spelled, all }) = self.list(list)? else {
            return Ok(());
        };
        let mut edges = Vec::new();
        if let Some(range) = spelling.from() {
            names.edges(range, &mut edges);
        }
        let mut close = None;
        if let Spelling::Between(range) = spelling {
            close = names.whole(range).map(|_| NOTHING);
            if let Some(words) = spelled {
                row.hint(Hint::Words {
                    words: Arc::clone(words),
                    lo: range.lo,
                    hi: range.hi,
                    read: names.n_bytes(range),
                    allowed: Arc::clone(all),
                    base: None,
                });
            }
        }
        Speller {
            edges: &edges,
            escapes: self.policy.escapes,
            close,
            intern: &mut |spelling| {
                self.table.intern(StateKey::Listed { list, spelling })
            },
        }
        .fill(spelling, row)
    }
}
