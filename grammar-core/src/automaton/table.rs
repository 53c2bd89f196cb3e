//! An append-only table of interned states with lazily built rows.
//!
//! Reading takes no lock; interning a new key takes one. A row is built once
//! and never changes, so references to it stay good for as long as the table.

use std::{
    fmt,
    hash::Hash,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{AutomatonError, Row, StateId};
use crate::{interrupt, util::FxHashMap};

/// States that are interned by a key of the machine's own.
pub struct StateTable<K> {
    ids: Mutex<FxHashMap<K, u32>>,
    entries: boxcar::Vec<Entry<K>>,
    /// Or-ed into every id: [`StateId::SHARED_BIT`] in a shared machine.
    tag: u32,
    max_states: usize,
    /// The bytes of the rows that were built.
    row_bytes: AtomicUsize,
}

struct Entry<K> {
    key: K,
    row: OnceLock<Result<Row, AutomatonError>>,
}

impl<K: Clone + Eq + Hash> StateTable<K> {
    /// Creates a table that holds at most `max_states` states.
    pub fn new(max_states: usize) -> StateTable<K> {
        StateTable {
            ids: Mutex::new(with_room()),
            entries: boxcar::Vec::new(),
            tag: 0,
            max_states: max_states.min(StateId::SHARED_BIT as usize - 1),
            row_bytes: AtomicUsize::new(0),
        }
    }

    /// Creates a table whose ids carry [`StateId::SHARED_BIT`].
    pub fn new_shared(max_states: usize) -> StateTable<K> {
        StateTable { tag: StateId::SHARED_BIT, ..StateTable::new(max_states) }
    }

    /// Returns the state of `key`, which is new if it was not seen before.
    ///
    /// # Errors
    ///
    /// Fails when the table is full.
    pub fn intern(&self, key: K) -> Result<StateId, AutomatonError> {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&id) = ids.get(&key) {
            return Ok(StateId(id | self.tag));
        }
        // `max_states` is below 2^31, so the conversion cannot fail first.
        let (true, Ok(id)) =
            (ids.len() < self.max_states, u32::try_from(ids.len()))
        else {
            return Err(AutomatonError::Limit {
                name: "max_states",
                what: "the number of states",
                limit: self.max_states,
            });
        };
        // Pushes happen under the lock, so indices are given out in order.
        self.entries.push(Entry { key: key.clone(), row: OnceLock::new() });
        ids.insert(key, id);
        Ok(StateId(id | self.tag))
    }

    /// Returns the key of `state`.
    ///
    /// # Panics
    ///
    /// If `state` is not of this table.
    pub fn key(&self, state: StateId) -> &K {
        &self.entries[state.index()].key
    }

    /// Returns the row of `state`, which `build` makes the first time.
    ///
    /// `build` may intern states, but must not ask for the same row. Two
    /// threads that ask at once may both build it, and get the first one: to
    /// wait for one another, neither could be interrupted.
    ///
    /// # Errors
    ///
    /// Fails as `build` did when the row was first asked for. That it was
    /// interrupted is not remembered.
    pub fn row(
        &self,
        state: StateId,
        build: impl FnOnce(&K) -> Result<Row, AutomatonError>,
    ) -> Result<&Row, AutomatonError> {
        let entry = &self.entries[state.index()];
        if let Some(row) = entry.row.get() {
            return row.as_ref().map_err(Clone::clone);
        }
        interrupt::check()?;
        let row = build(&entry.key);
        interrupt::confirm()?;
        let row = entry.row.get_or_init(|| {
            let bytes = row.as_ref().map_or(0, Row::memory_usage);
            self.row_bytes.fetch_add(bytes, Ordering::Relaxed);
            row
        });
        row.as_ref().map_err(Clone::clone)
    }

    /// Returns about how many bytes the states and their rows hold, without
    /// what their keys point to.
    pub fn memory_usage(&self) -> usize {
        let per_state = size_of::<Entry<K>>() + size_of::<(K, u32)>();
        let rows = self.row_bytes.load(Ordering::Relaxed);
        self.len().max(USUAL) * per_state + rows
    }

    /// Returns the number of states.
    pub fn len(&self) -> usize {
        self.entries.count()
    }

    /// Returns true if and only if there are no states.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An empty map that need not grow for the states of a small grammar.
fn with_room<K>() -> FxHashMap<K, u32> {
    FxHashMap::with_capacity_and_hasher(USUAL, rustc_hash::FxBuildHasher)
}

/// How many states a grammar has at least, most of the time.
const USUAL: usize = 112;

impl<K> fmt::Debug for StateTable<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateTable")
            .field("states", &self.entries.count())
            .finish_non_exhaustive()
    }
}
