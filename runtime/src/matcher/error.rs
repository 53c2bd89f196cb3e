//! What can go wrong while a sequence is read.

use maskwright_grammar_core::automaton::AutomatonError;

use crate::{mask::MaskError, vocabulary::TokenId};

/// An error that occurs when a matcher is asked for what it cannot do. The
/// matcher is as it was.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MatcherError {
    /// A token is not in the vocabulary.
    #[error(
        "token {} is not in the vocabulary of {n_tokens} tokens; is the \
         model's vocabulary another one, or did it pick padding?",
        token.0
    )]
    TokenOutOfRange {
        /// The token.
        token: TokenId,
        /// How many tokens there are.
        n_tokens: usize,
    },
    /// The text does not go on with a token.
    #[error(
        "token {} ({text:?}) is not allowed in {place}; choose among the \
         tokens of the mask",
        token.0
    )]
    TokenRefused {
        /// The token.
        token: TokenId,
        /// Its text.
        text: String,
        /// What is being read.
        place: String,
    },
    /// A token that spells no text was given where the grammar names none.
    #[error(
        "token {} ({text:?}) spells no text, and the grammar does not name \
         it here; choose among the tokens of the mask",
        token.0
    )]
    NotText {
        /// The token.
        token: TokenId,
        /// Its printed form.
        text: String,
    },
    /// An end token was given where the text may not end.
    #[error(
        "the text may not end in {place}, so end token {} is not allowed; \
         choose among the tokens of the mask",
        token.0
    )]
    NotAccepting {
        /// The end token.
        token: TokenId,
        /// What is being read.
        place: String,
    },
    /// The text does not go on with a byte.
    #[error(
        "byte {} at offset {offset} is not allowed in {place}",
        byte.escape_ascii()
    )]
    ByteRefused {
        /// The byte.
        byte: u8,
        /// Where it is in what was given.
        offset: usize,
        /// What is being read.
        place: String,
    },
    /// An end token was accepted before.
    #[error(
        "the text has ended: an end token was accepted; roll back or reset \
         the matcher to go on"
    )]
    Finished,
    /// More was to be taken back than was read.
    #[error(
        "cannot take back {n_steps} steps: {n_read} were read since the start"
    )]
    Rollback {
        /// How many steps were to be taken back.
        n_steps: usize,
        /// How many there were.
        n_read: usize,
    },
    /// A node of a draft tree does not stand behind its parent.
    #[error(
        "node {node} of the draft has node {parent} as its parent; put every \
         parent before its children"
    )]
    DraftOrder {
        /// The index of the node.
        node: usize,
        /// The index of its parent.
        parent: usize,
    },
    /// The room for the masks of a draft has the wrong size.
    #[error(
        "the masks of {n_nodes} nodes and the root are {n_rows} rows of \
         {n_words} words of 32 bits, and room was given for {given} words; \
         make it exactly as large",
        n_rows = n_nodes + 1
    )]
    DraftRoom {
        /// How many nodes the draft has.
        n_nodes: usize,
        /// How many words a row has.
        n_words: usize,
        /// How many words there was room for.
        given: usize,
    },
    /// The thread that was to make a mask of a batch panicked.
    #[error(
        "the thread that made this mask panicked, which is a defect of \
         Maskwright or of a machine of your own; end this sequence, and \
         report it"
    )]
    Panicked,
    /// The grammar's machine met a limit.
    #[error(transparent)]
    Automaton(#[from] AutomatonError),
    /// The mask does not fit where it was to be written.
    #[error(transparent)]
    Mask(#[from] MaskError),
}
