//! What keys and values take, and what they may come to take.

use std::collections::BTreeSet;

use crate::model::{BLOCK_LEN, KvCache};

/// What the keys and values of an engine take, in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CacheUse {
    /// What is there now; what requests share is counted once.
    pub held: usize,
    /// What the running requests may come to need, at most.
    pub committed: usize,
    /// The limit, if there is one.
    pub limit: Option<usize>,
}

/// Adds up blocks, each once.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    blocks: BTreeSet<usize>,
    block_bytes: usize,
    n_more: usize,
}

impl Ledger {
    /// Enters a cache that may grow to `len` positions.
    pub(super) fn enter(&mut self, cache: &KvCache, len: usize) {
        let (ids, block_bytes) = cache.blocks();
        self.block_bytes = block_bytes;
        self.blocks.extend(ids);
        // A block that is not full is copied before it is written to if
        // another sequence holds it, too.
        let n_full = cache.len() / BLOCK_LEN;
        self.n_more += len.div_ceil(BLOCK_LEN).saturating_sub(n_full);
    }

    /// Returns the bytes of what is there.
    pub(super) fn held(&self) -> usize {
        self.blocks.len() * self.block_bytes
    }

    /// Returns the bytes of what is there and of what may come.
    pub(super) fn committed(&self) -> usize {
        (self.blocks.len() + self.n_more).saturating_mul(self.block_bytes)
    }
}
