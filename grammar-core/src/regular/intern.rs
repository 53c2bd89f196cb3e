//! Hash-consing: equal values get equal, dense ids.

use std::hash::{BuildHasher, Hash};
use std::ops::Index;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// A table that keeps each distinct value once.
#[derive(Debug)]
pub(super) struct Interner<T> {
    values: Vec<T>,
    /// The hash of each value, and its id.
    ids: HashTable<(u64, u32)>,
}

impl<T: Eq + Hash> Interner<T> {
    pub(super) fn new() -> Interner<T> {
        Interner { values: Vec::new(), ids: HashTable::new() }
    }

    /// Returns the id of `value` and whether it is new.
    ///
    /// Ids saturate at `u32::MAX`; the limits of a language stop its growth
    /// long before.
    pub(super) fn intern(&mut self, value: T) -> (u32, bool) {
        let hash = FxBuildHasher.hash_one(&value);
        let values = &self.values;
        let found = self.ids.find(hash, |&(other, id)| {
            other == hash && values[id as usize] == value
        });
        if let Some(&(_, id)) = found {
            return (id, false);
        }
        let id = u32::try_from(values.len()).unwrap_or(u32::MAX);
        self.values.push(value);
        self.ids.insert_unique(hash, (hash, id), |&(hash, _)| hash);
        (id, true)
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

impl<T> Index<u32> for Interner<T> {
    type Output = T;

    fn index(&self, id: u32) -> &T {
        &self.values[id as usize]
    }
}
