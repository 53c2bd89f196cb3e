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
    /// The pattern with a caret below; empty until the pattern is known.
    pointer: String,
}

impl PatternError {
    pub(super) fn new(
        kind: PatternErrorKind,
        offset: usize,
        message: impl Into<String>,
    ) -> PatternError {
        let message = message.into();
        let (limit, pointer) = (None, String::new());
        PatternError { kind, offset, message, limit, pointer }
    }

    pub(super) fn limit(offset: usize, limit: LimitError) -> PatternError {
        PatternError {
            kind: PatternErrorKind::Limit,
            offset,
            message: limit.to_string(),
            limit: Some(limit),
            pointer: String::new(),
        }
    }

    /// Shows where in `pattern` the fault is.
    pub(super) fn within(mut self, pattern: &str) -> PatternError {
        self.pointer = point_at(pattern, self.offset);
        self
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
        let PatternError { offset, message, pointer, .. } = self;
        write!(f, "at byte {offset} of the pattern: {message}{pointer}")
    }
}

impl std::error::Error for PatternError {}

/// How many characters are shown before and after a caret.
const MAX_CONTEXT: usize = 40;

/// Shows the part of a pattern around a byte with a caret below that byte, in
/// three lines that each begin with a line feed. Control characters are shown
/// as dots.
pub fn point_at(pattern: &str, offset: usize) -> String {
    let at = pattern.floor_char_boundary(offset);
    let (before, after) = pattern.split_at(at);
    let skipped = before.chars().count().saturating_sub(MAX_CONTEXT);
    let dots = if skipped > 0 { "..." } else { "" };
    let show = |c: char| if c.is_control() { '.' } else { c };
    let before: String = before.chars().skip(skipped).map(show).collect();
    let after: String = after.chars().take(MAX_CONTEXT).map(show).collect();
    let indent = " ".repeat(dots.len() + before.chars().count());
    format!("\n  |\n  | {dots}{before}{after}\n  | {indent}^")
}

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
