//! Why a pattern was refused, and where.

use std::fmt;

use super::limits::LimitError;

/// What kind of fault a pattern has.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum PatternErrorKind {
    /// The text is not in the dialect.
    Syntax,
    /// A backreference: the language is not regular.
    Backreference,
    /// An atomic group, a possessive quantifier or a conditional.
    Atomic,
    /// A construct of another dialect, or one that is not supported.
    Unsupported,
    /// A Unicode property that is unknown or that the tables lack.
    Property,
    /// A limit was met.
    Limit,
}

/// A pattern that is refused: what, where, and the way out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PatternError {
    kind: PatternErrorKind,
    offset: usize,
    message: String,
    limit: Option<LimitError>,
}

impl PatternError {
    pub(super) fn new(
        kind: PatternErrorKind,
        offset: usize,
        message: impl Into<String>,
    ) -> PatternError {
        PatternError { kind, offset, message: message.into(), limit: None }
    }

    pub(super) fn limit(offset: usize, limit: LimitError) -> PatternError {
        PatternError {
            kind: PatternErrorKind::Limit,
            offset,
            message: limit.to_string(),
            limit: Some(limit),
        }
    }

    /// What kind of fault it is.
    pub fn kind(&self) -> PatternErrorKind {
        self.kind
    }

    /// The byte offset in the pattern where the fault begins.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// What is wrong and what to do, without the offset.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The limit that was met, if that is the fault.
    pub fn limit_error(&self) -> Option<&LimitError> {
        self.limit.as_ref()
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {} of the pattern: {}", self.offset, self.message)
    }
}

impl std::error::Error for PatternError {}

/// A regular expression that no language could be made from.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LanguageError {
    /// A limit was met.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// An intersection or complement that is only a part of a
    /// concatenation, a repetition or a look-around holds an assertion
    /// about what comes before it.
    #[error(
        "an intersection or complement inside a larger expression holds an \
         anchor, a word boundary or a lookbehind, which would look outside \
         of it; put the assertion beside it instead"
    )]
    AssertionInside,
}
