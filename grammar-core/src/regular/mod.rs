//! Regular languages over code points, closed under all boolean operations.
//!
//! A [`Regex`] is an expression: what a pattern in one of two dialects
//! parses to, or what the combinators of [`Regex`] build. A [`Language`] is
//! the automaton of an expression. Its states are made when they are asked
//! for, each is a boolean formula over what may still follow, and that makes
//! intersection, complement, look-around and large counts exact without
//! costing anything before a text gets there.
//!
//! What sets it apart from a usual regex library: it answers what a text can
//! still become (which characters keep it alive, how short or long its
//! completions are), not where a match lies in it. To search texts for
//! matches, use a search engine instead.
//!
//! # Code points
//!
//! Everything here is in Unicode scalar values. Escapes, UTF-8 and tokens are
//! layers above; [`Utf8State`] is the plain one for UTF-8.

mod analysis;
mod anchors;
mod bytes;
mod class;
mod compact;
mod compile;
mod ecma;
mod error;
mod expand;
mod formula;
mod intern;
mod language;
mod lengths;
mod limits;
mod partition;
mod regex;
mod rust;
mod term;

#[cfg(test)]
mod tests;

pub use self::analysis::{Longest, Shortest, WordCount};
pub use self::bytes::{Utf8Range, Utf8State};
pub use self::class::{CharSet, MAX_CODE_POINT};
pub use self::ecma::Backtracker;
pub use self::error::{
    LanguageError, PatternError, PatternErrorKind, point_at,
};
pub use self::language::{Answer, Language, StateId, Transition};
pub use self::limits::{LimitError, LimitKind, Limits};
pub use self::regex::Regex;
