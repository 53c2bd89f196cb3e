//! Masks: which tokens of a vocabulary may come next.
//!
//! What sets these masks apart is that nothing in them is computed twice: a
//! state's tokens are walked once, in a trie of the vocabulary, split into
//! those that stay within the state's frame and those that leave it, and what
//! leaves is composed with the frames below from walks that are memoised in
//! turn. See [`TokenTrie`] for what is kept with a vocabulary and
//! [`TokenMask`] for what comes out.

mod classes;
mod ends;
mod enter;
mod fill;
mod finished;
mod gap;
mod held;
mod hints;
mod index;
mod looping;
mod merge;
mod refused;
mod run;
mod scan;
mod set;
mod spell;
mod stats;
mod store;
pub(crate) mod token_mask;
mod trie;
mod unions;
mod walk;
mod window;
mod words;

pub(crate) use self::{
    fill::Filled,
    fill::Filler,
    finished::{FinishedMasks, Ground, KeptMask, MAX_LISTED},
    index::{SharedStore, lock},
    set::{copy_blocks, insert_all, remove},
    store::WalkStore,
    walk::Walker,
};
pub use self::{
    index::TokenTrie,
    stats::MaskStats,
    token_mask::{MaskError, TokenMask},
};
