//! What can go wrong in a decode step, and while one is put together.

use crate::vocabulary::TokenId;

/// An error that occurs when a pipeline is built or run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PipelineError {
    /// An option is out of range.
    #[error("{option} is {given}; it must be {range}")]
    OutOfRange {
        /// The option, as users spell it.
        option: &'static str,
        /// The value.
        given: f64,
        /// The range, in words.
        range: &'static str,
    },
    /// A stage that forbids tokens would run after one that truncates or
    /// scales.
    #[error(
        "stage {late} forbids tokens and stands after {early}, which \
         {does}: no legal token may be left by then; put {late} first"
    )]
    MaskAfterTruncation {
        /// The stage that truncates or scales.
        early: String,
        /// What it does, in words.
        does: &'static str,
        /// The stage that forbids.
        late: String,
    },
    /// An order names a stage that there is not.
    #[error("there is no stage {name:?}; the built-in ones are {known}")]
    UnknownStage {
        /// The name.
        name: String,
        /// The names of the built-in stages.
        known: String,
    },
    /// An option needs another one.
    #[error("{option} needs {needs}, which is not given")]
    Incomplete {
        /// The option.
        option: &'static str,
        /// What it needs, in words.
        needs: &'static str,
    },
    /// A sequence of tokens is empty.
    #[error("{option} has an empty sequence; give each at least one token")]
    EmptySequence {
        /// The option.
        option: &'static str,
    },
    /// A list of stages has no grammar mask, or more than one.
    #[error(
        "the pipeline has {given} grammar masks; it must have one, or the \
         grammar would not be enforced"
    )]
    MaskCount {
        /// How many there are.
        given: usize,
    },
    /// Two stages have one name.
    #[error(
        "two stages are named {name}; names must be unique, and only stages \
         other than the mask can be replaced"
    )]
    DuplicateStage {
        /// The name.
        name: String,
    },
    /// A logit is not a number or is positive infinity.
    #[error(
        "the logit of token {token} is {value} {place}; logits must be \
         finite or minus infinity; is the model damaged, or does it overflow \
         its number type?"
    )]
    BadLogit {
        /// The first such token.
        token: TokenId,
        /// Its logit.
        value: f32,
        /// Where it was seen.
        place: &'static str,
    },
    /// Every token is forbidden.
    #[error(
        "no token is left at position {position}: {allowed}; the row has \
         {n_logits} logits"
    )]
    NoTokenLeft {
        /// How many tokens stand before this one in the output.
        position: u64,
        /// What the mask allowed, in words.
        allowed: String,
        /// The width of the row.
        n_logits: usize,
    },
    /// The mask and the row differ in width.
    #[error(
        "a mask of {given} words cannot cover {n_logits} logits, which take \
         {expected}; set the vocabulary's width to that of the logits"
    )]
    MaskWidth {
        /// How many words the mask has.
        given: usize,
        /// How many words it should have.
        expected: usize,
        /// The width of the row.
        n_logits: usize,
    },
    /// An option names a token that the row does not have.
    #[error(
        "{stage} names token {token}; the row has {n_logits} logits; does \
         the token belong to another model?"
    )]
    UnknownToken {
        /// The stage.
        stage: &'static str,
        /// The token.
        token: TokenId,
        /// The width of the row.
        n_logits: usize,
    },
}
