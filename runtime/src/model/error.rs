//! What can go wrong between a model's file and its logits.

use std::io;
use std::path::PathBuf;

use super::compute_device::ComputeDevice;
use super::memory::MemoryPlan;

/// The architectures that [`load`](crate::model::load) builds, by the name
/// that files give them.
pub const SUPPORTED_ARCHITECTURES: &[&str] =
    &["llama", "mistral", "qwen2", "qwen3", "gemma3", "gemma3_text", "phi3"];

/// A model that cannot be loaded, or a forward pass that cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A file cannot be opened or read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file is not what its name or place promises.
    #[error("{}: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The weights are of an architecture that has no code here.
    #[error(
        "model architecture {found:?} is not supported; supported: {}",
        SUPPORTED_ARCHITECTURES.join(", ")
    )]
    Architecture {
        /// The architecture that the file names.
        found: String,
    },
    /// The architecture is supported, but not with this option.
    #[error("model option {option} = {value} is not supported; {way_out}")]
    Option {
        /// The key in the file's configuration.
        option: String,
        /// Its value.
        value: String,
        /// What would be supported.
        way_out: String,
    },
    /// A key that the architecture needs is absent or has the wrong type.
    #[error("model metadata {key:?} is missing or is not {expected}")]
    Metadata {
        /// The key.
        key: String,
        /// The type that was expected.
        expected: &'static str,
    },
    /// A tensor is absent or has another shape than the configuration says.
    #[error("tensor {name:?}: expected shape {expected:?}, found {found}")]
    Tensor {
        /// The tensor's name in the file.
        name: String,
        /// The shape that the configuration asks for.
        expected: Vec<usize>,
        /// The shape found, or "nothing".
        found: String,
    },
    /// The file has tensors that the architecture does not know: what they do
    /// would be missing from the result.
    #[error(
        "tensor {name:?}{} is not used by this architecture as it is built \
         here; leaving it out would change the result",
        and_more(*n_more)
    )]
    UnusedTensors {
        /// The first of them.
        name: String,
        /// How many more there are.
        n_more: usize,
    },
    /// The sequence would not fit in the model's context.
    #[error(
        "the model's context holds {limit} tokens, and {asked} are asked \
         for; shorten the prompt or lower the token limit"
    )]
    ContextFull {
        /// The context length of the model.
        limit: usize,
        /// The length that the sequence would have.
        asked: usize,
    },
    /// The model would not fit in memory.
    #[error(
        "the model needs {} bytes for its weights and {} for the keys and \
         values of {} tokens, and {available} are free; take a smaller or a \
         more strongly quantised model, or ask for a shorter context",
        plan.weights, plan.cache(), plan.n_tokens
    )]
    Memory {
        /// What it would take.
        plan: MemoryPlan,
        /// What there is, in bytes.
        available: u64,
    },
    /// The device cannot be used.
    #[error(
        "device {device} cannot be used; builds with `--features cuda` or \
         `--features metal` know such devices, and `cpu` is always there"
    )]
    Device {
        /// The device that was asked for.
        device: ComputeDevice,
        /// What the tensor library said.
        source: candle_core::Error,
    },
    /// The keys and values of a request would not fit in memory.
    #[error(
        "the request may need {needed} bytes for keys and values, and {limit} \
         are allowed; lower its limit on tokens or its number of sequences, \
         shorten the prompt, or raise the limit"
    )]
    CacheFull {
        /// What the request may come to need, in bytes.
        needed: usize,
        /// What all requests may take together, in bytes.
        limit: usize,
    },
    /// A token id that the model has no row for.
    #[error("token id {token} is outside of the model's vocabulary of {size}")]
    UnknownToken {
        /// The token id.
        token: u32,
        /// The number of rows.
        size: usize,
    },
    /// A row of a batch without tokens has no logits.
    #[error("a batch row has no tokens to feed")]
    EmptyFeed,
    /// A cache that was made for another model.
    #[error("the key-value cache was made for another model")]
    ForeignCache,
    /// The tokenizer cannot be built.
    #[error("tokenizer: {0}")]
    Tokenizer(String),
    /// The tokenizer's tokens make no vocabulary.
    #[error("the model's vocabulary cannot be read")]
    Vocabulary(#[from] crate::vocabulary::VocabularyError),
    /// The tensor library failed.
    #[error("the tensor library failed")]
    Compute(#[from] candle_core::Error),
}

impl ModelError {
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers hand over errors and messages"
    )]
    pub(crate) fn malformed(
        path: impl Into<PathBuf>,
        what: impl ToString,
    ) -> ModelError {
        ModelError::Malformed { path: path.into(), what: what.to_string() }
    }

    pub(crate) fn read(
        path: impl Into<PathBuf>,
        source: io::Error,
    ) -> ModelError {
        ModelError::Read { path: path.into(), source }
    }
}

fn and_more(n_more: usize) -> String {
    match n_more {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    }
}
