//! Language models: weights, key-value caches and logits.
//!
//! A [`Model`] maps tokens to logits and keeps nothing: what it remembers of
//! a sequence is a [`KvCache`], a value that the caller holds, cuts back and
//! forks. [`load`] builds one from a GGUF file or from a directory of
//! safetensors, and [`download::resolve`] finds the files.
//!
//! Grammars are unknown here. So is sampling: a forward pass ends at the
//! logits.

mod cache;
mod compute_device;
mod config;
mod defaults;
mod device;
mod digest;
pub mod download;
mod error;
mod gguf;
#[allow(
    clippy::inline_always,
    reason = "what is not inlined into a function for a vector extension is \
              compiled without it"
)]
mod kernels;
mod layers;
mod linear;
mod load;
mod logits;
mod memory;
mod names;
#[allow(
    clippy::inline_always,
    reason = "what is not inlined into a function for a vector extension is \
              compiled without it"
)]
mod packed;
mod rope;
mod safetensors;
#[allow(
    clippy::inline_always,
    reason = "what is not inlined into a function for a vector extension is \
              compiled without it"
)]
mod simd;
mod tokenizer;
mod transformer;
mod weights;

#[cfg(test)]
mod reference_tests;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod transformer_tests;

pub use cache::{BLOCK_LEN, KvCache, KvLayout};
pub use compute_device::ComputeDevice;
pub use digest::content_digest;
pub(crate) use download::to_hex;
pub use error::{ModelError, SUPPORTED_ARCHITECTURES};
pub use gguf::{
    Array as GgufArray, BlockType as GgufBlockType, Gguf, Value as GgufValue,
};
pub use load::{LoadOptions, LoadedModel, load, load_with};
pub use logits::{Logits, Want};
pub use memory::MemoryPlan;
pub use tokenizer::ModelTokenizer;

use std::fmt::Debug;

/// The new tokens of one sequence in a batch.
#[derive(Debug)]
pub struct Feed<'a> {
    /// The tokens, at least one.
    pub tokens: &'a [u32],
    /// What the model remembers of the tokens before them. The forward pass
    /// appends to it.
    pub cache: &'a mut KvCache,
    /// Which logits to compute.
    pub want: Want,
}

impl Feed<'_> {
    /// Returns how many rows of logits are wanted, those of the last tokens.
    pub fn n_rows(&self) -> usize {
        match self.want {
            Want::Nothing => 0,
            Want::Last => 1,
            Want::All => self.tokens.len(),
        }
    }
}

/// Maps tokens to logits.
///
/// A model is immutable and shared; what changes lies in the caches.
pub trait Model: Debug + Send + Sync {
    /// Returns the width of a row of logits.
    fn vocab_size(&self) -> usize;

    /// Returns the number of positions that a sequence may have.
    fn context_length(&self) -> usize;

    /// Returns in words what computes with what: the processor's vectors, and
    /// the number formats of the weights. Two models that differ in it may
    /// differ in the last bits of their logits.
    fn describe(&self) -> String {
        "unknown".to_owned()
    }

    /// Returns an empty cache for one sequence.
    fn new_cache(&self) -> KvCache;

    /// Feeds tokens to any number of sequences at once, and replaces `logits`
    /// by the rows that were asked for.
    ///
    /// # Errors
    ///
    /// Fails when a sequence would outgrow the context, when a token is
    /// unknown, when a feed is empty, and when the computation fails. The
    /// caches are then as long as before.
    fn forward(
        &self,
        batch: &mut [Feed<'_>],
        logits: &mut Logits,
    ) -> Result<(), ModelError>;
}
