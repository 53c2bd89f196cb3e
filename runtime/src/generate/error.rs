//! What can go wrong while a request is running.

use super::chat::ChatError;
use crate::{
    compiled::BindError, matcher::MatcherError, model::ModelError,
    pipeline::PipelineError,
};

/// An error that occurs while a request is running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// The model or its tokenizer failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The chat template failed.
    #[error(transparent)]
    Chat(#[from] ChatError),
    /// The grammar and the vocabulary do not fit together.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The matcher failed.
    #[error(transparent)]
    Matcher(#[from] MatcherError),
    /// A step of the pipeline failed.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// No text of the grammar that is short enough was found.
    #[error(
        "the shortest output that was found needs {needed} tokens, and \
         {limit} are allowed or fit the model; raise the limit on tokens, \
         shorten the prompt, or allow the output to be cut off"
    )]
    Budget {
        /// How many tokens the shortest text that was found needs.
        needed: usize,
        /// The limit, or the room that the prompt leaves.
        limit: usize,
    },
    /// The model gave no logits to choose from.
    #[error("the model gave no logits after the last token")]
    NoLogits,
    /// Every beam came to where nothing may follow.
    #[error(
        "every beam came to where no token is left; search with more beams, \
         or without truncations"
    )]
    NoBeam,
    /// An option of the request is out of range.
    #[error("{option} is {given}; it must be {range}")]
    OutOfRange {
        /// The option.
        option: &'static str,
        /// The value.
        given: String,
        /// The range, in words.
        range: &'static str,
    },
    /// A stop string is the empty text, which every text contains.
    #[error("stop string {index} is empty; leave it out, or name a text")]
    EmptyStop {
        /// Its place among the stop strings.
        index: usize,
    },
}
