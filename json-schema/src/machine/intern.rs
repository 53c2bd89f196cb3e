//! Equal things get equal numbers; reading takes no lock.

use std::{
    fmt,
    hash::{BuildHasher, Hash},
    sync::{Mutex, OnceLock, PoisonError},
};

use hashbrown::HashTable;
use maskwright_grammar_core::{automaton::AutomatonError, interrupt};
use rustc_hash::FxBuildHasher;

/// An append-only table of distinct values, each with what was derived from
/// it on first demand.
pub(crate) struct Interner<T, I = ()> {
    /// The hash of each value, and its number.
    ids: Mutex<HashTable<(u64, u32)>>,
    entries: boxcar::Vec<Entry<T, I>>,
    max: usize,
}

struct Entry<T, I> {
    value: T,
    derived: OnceLock<Result<I, AutomatonError>>,
}

impl<T: Eq + Hash, I> Interner<T, I> {
    /// Creates a table of at most `max` values.
    pub(crate) fn new(max: usize) -> Interner<T, I> {
        Interner { ids: Mutex::default(), entries: boxcar::Vec::new(), max }
    }

    /// Returns the number of `value`, which is new if it was not seen before.
    pub(crate) fn intern(&self, value: T) -> Result<u32, AutomatonError> {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = FxBuildHasher.hash_one(&value);
        let is_same = |&(other, id): &(u64, u32)| {
            other == hash && self.entries[id as usize].value == value
        };
        if let Some(&(_, id)) = ids.find(hash, is_same) {
            return Ok(id);
        }
        let (true, Ok(id)) = (ids.len() < self.max, u32::try_from(ids.len()))
        else {
            return Err(AutomatonError::Limit {
                name: "max_states",
                what: "the number of interned parts of states",
                limit: self.max,
            });
        };
        // Pushes happen under the lock, so numbers are given out in order.
        self.entries.push(Entry { value, derived: OnceLock::new() });
        ids.insert_unique(hash, (hash, id), |&(hash, _)| hash);
        Ok(id)
    }

    /// Returns the value of a number that this table gave out.
    pub(crate) fn get(&self, id: u32) -> &T {
        &self.entries[id as usize].value
    }

    /// Returns what `derive` makes of a value. The first result is kept, an
    /// error too, unless it was interrupted.
    ///
    /// `derive` must not ask for the same again.
    pub(crate) fn derived(
        &self,
        id: u32,
        derive: impl FnOnce(&T) -> Result<I, AutomatonError>,
    ) -> Result<&I, AutomatonError> {
        let entry = &self.entries[id as usize];
        if let Some(derived) = entry.derived.get() {
            return derived.as_ref().map_err(Clone::clone);
        }
        interrupt::check()?;
        let derived = derive(&entry.value);
        interrupt::confirm()?;
        let derived = entry.derived.get_or_init(|| derived);
        derived.as_ref().map_err(Clone::clone)
    }
}

impl<T, I> fmt::Debug for Interner<T, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Interner({})", self.entries.count())
    }
}
