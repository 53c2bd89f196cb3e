//! An append-only table of interned states with lazily built rows.
//!
//! Reading takes no lock; interning a new key takes one. A row is built once
//! and never changes, so references to it stay good for as long as the table.

use std::{
    fmt,
    hash::{BuildHasher, Hash},
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use super::{AutomatonError, Row, StateId};
use crate::interrupt;

/// States that are interned by a key of the machine's own.
pub struct StateTable<K> {
    /// The hash of each key, and its index.
    ids: Mutex<HashTable<(u64, u32)>>,
    entries: boxcar::Vec<Entry<K>>,
    /// Or-ed into every id: [`StateId::SHARED_BIT`] in a shared machine.
    tag: u32,
    max_states: usize,
    /// The bytes of the rows that were built.
    row_bytes: AtomicUsize,
}

struct Entry<K> {
    key: K,
    /// Boxed, since most states are never asked for their rows.
    row: OnceLock<Result<Box<Row>, Box<AutomatonError>>>,
}

impl<K: Eq + Hash> StateTable<K> {
    /// Creates a table that holds at most `max_states` states.
    pub fn new(max_states: usize) -> StateTable<K> {
        StateTable {
            ids: Mutex::new(HashTable::with_capacity(USUAL)),
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
        let hash = FxBuildHasher.hash_one(&key);
        let is_same = |&(other, id): &(u64, u32)| {
            other == hash && self.entries[id as usize].key == key
        };
        if let Some(&(_, id)) = ids.find(hash, is_same) {
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
        self.entries.push(Entry { key, row: OnceLock::new() });
        ids.insert_unique(hash, (hash, id), |&(hash, _)| hash);
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
        let row = if let Some(row) = entry.row.get() {
            row
        } else {
            interrupt::check()?;
            let row = build(&entry.key);
            interrupt::confirm()?;
            entry.row.get_or_init(|| {
                let row = row.map_err(Box::new)?;
                let bytes = size_of::<Row>() + row.memory_usage();
                self.row_bytes.fetch_add(bytes, Ordering::Relaxed);
                Ok(Box::new(row))
            })
        };
        match row {
            Ok(row) => Ok(row),
            Err(error) => Err((**error).clone()),
        }
    }

    /// Returns about how many bytes the states and their rows hold, without
    /// what their keys point to.
    pub fn memory_usage(&self) -> usize {
        let per_state = size_of::<Entry<K>>() + size_of::<(u64, u32)>();
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

/// How many states a grammar has at least, most of the time.
const USUAL: usize = 112;

impl<K> fmt::Debug for StateTable<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateTable")
            .field("states", &self.entries.count())
            .finish_non_exhaustive()
    }
}
