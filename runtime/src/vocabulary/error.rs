//! What can be wrong with a vocabulary.

use std::path::PathBuf;

/// An error that occurs when a vocabulary is read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VocabularyError {
    /// A file could not be read.
    #[error("cannot read the tokenizer file {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file is not JSON, or not the JSON that a tokenizer is.
    #[error(
        "{file} is not a tokenizer file; expected the tokenizer.json that \
         the tokenizers library writes, with its configuration beside it"
    )]
    Json {
        /// The file, by name.
        file: String,
        /// Where and why, with line and column.
        source: serde_json::Error,
    },
    /// The tokens of this kind of tokenizer have no fixed spelling.
    #[error(
        "the tokenizer's {part} cannot be reduced to bytes: {reason}; \
         byte-level BPE, SentencePiece-style BPE and Unigram can"
    )]
    Unsupported {
        /// The part of the tokenizer, such as `model WordPiece`.
        part: String,
        /// Why its tokens have no fixed spelling.
        reason: &'static str,
    },
    /// A token id is beyond what any vocabulary needs.
    #[error(
        "token id {id} is out of range; a vocabulary holds at most {limit} \
         tokens; is the file damaged?"
    )]
    TooManyTokens {
        /// The id that was asked for.
        id: u64,
        /// The number of tokens that a vocabulary can hold.
        limit: u32,
    },
    /// The spellings of all tokens together are too long.
    #[error(
        "the tokens spell {given} bytes in all; the limit is {limit}; is \
         the file damaged?"
    )]
    TooManyBytes {
        /// The length of all spellings together.
        given: usize,
        /// The most that a vocabulary can hold.
        limit: usize,
    },
    /// Two tokens of the tokenizer's model share one id.
    #[error(
        "token id {id} is given to both {first:?} and {second:?}; ids must \
         be unique"
    )]
    DuplicateId {
        /// The id.
        id: u32,
        /// The token that had it first.
        first: String,
        /// The token that wanted it too.
        second: String,
    },
    /// A token id that the vocabulary does not have.
    #[error(
        "{role} token {id} is not in the vocabulary of {n_tokens} tokens; \
         does it belong to another model?"
    )]
    UnknownToken {
        /// What the token was named for, such as `end`.
        role: &'static str,
        /// The id.
        id: u64,
        /// How many tokens the vocabulary has.
        n_tokens: usize,
    },
    /// A token, given by its text, that the vocabulary does not have.
    #[error(
        "{file} names the end token {text:?}, which the tokenizer does not \
         have; does the file belong to another model?"
    )]
    UnknownTokenText {
        /// The file that names it.
        file: String,
        /// The text.
        text: String,
    },
    /// The logits are narrower than the vocabulary's text tokens.
    #[error(
        "a row of {width} logits has no place for token {id} ({text:?}); \
         do the model and the tokenizer belong together?"
    )]
    NarrowLogits {
        /// The width that was asked for.
        width: usize,
        /// The first token that matters and has no place.
        id: u32,
        /// Its text.
        text: String,
    },
    /// A list that must be as long as the tokens is not.
    #[error(
        "{list} has {given} entries for {n_tokens} tokens; there must be \
         one each, or none at all"
    )]
    LengthMismatch {
        /// The metadata key.
        list: &'static str,
        /// How many entries it has.
        given: usize,
        /// How many tokens there are.
        n_tokens: usize,
    },
}
