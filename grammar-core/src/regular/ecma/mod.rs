//! ECMA-262 regular expressions with the `u` flag, as JSON Schema uses them.
//!
//! The parser keeps its groups on a stack of its own, so nesting costs no
//! recursion. Two readings differ in what they do beyond the standard. The
//! lenient one accepts what strict `u` refuses but real patterns are full of,
//! where it has only one meaning:
//!
//! - an escaped punctuation character (`\-`, `\_`, `\"`) is that character;
//! - a `-` beside a class escape inside a class (`[\w-.]`) is a hyphen;
//! - a lone `]` or `}`, and a `{` that begins no count, are characters, as in
//!   Annex B. `{,3}` stays an error: there it is text, elsewhere a count.
//!
//! All else that ECMA-262 calls an error is one in either.

mod backtrack;
mod escape;
mod parser;
mod property;

pub use self::backtrack::Backtracker;
use super::error::PatternError;
use super::limits::Limits;
use super::regex::Regex;

/// How much is accepted beyond the standard.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Reading {
    /// Nothing.
    Strict,
    /// What has only one meaning.
    Lenient,
    /// The same, and backreferences are read.
    Referring,
}

impl Reading {
    fn is_lenient(self) -> bool {
        self != Reading::Strict
    }

    fn has_references(self) -> bool {
        self != Reading::Lenient
    }
}

impl Regex {
    /// Parses an ECMA-262 pattern with the `u` flag and the default limits.
    ///
    /// The expression accepts the texts that hold a match anywhere, as
    /// `pattern` in JSON Schema does, unless the pattern is anchored.
    ///
    /// # Errors
    ///
    /// Fails when the pattern is not in the syntax, over a limit, or not
    /// regular (a backreference).
    pub fn ecma(pattern: &str) -> Result<Regex, PatternError> {
        Regex::ecma_with(pattern, &Limits::new())
    }

    /// Parses an ECMA-262 pattern, as [`Regex::ecma`].
    ///
    /// # Errors
    ///
    /// Fails when the pattern is not in the syntax, over a limit, or not
    /// regular (a backreference).
    pub fn ecma_with(
        pattern: &str,
        limits: &Limits,
    ) -> Result<Regex, PatternError> {
        read(pattern, limits, Reading::Lenient).map(|regex| regex.search())
    }

    /// Parses an ECMA-262 pattern that may have backreferences, which
    /// [`Regex::ecma`] refuses: the texts that may hold a match, as an
    /// expression, and a matcher that decides which do.
    ///
    /// # Errors
    ///
    /// Fails when the pattern is not in the syntax, or over a limit.
    pub fn ecma_with_references(
        pattern: &str,
        limits: &Limits,
    ) -> Result<(Regex, Backtracker), PatternError> {
        let parsed = super::rust::check_length(pattern, limits)
            .and_then(|()| parser::parse_references(pattern, limits))
            .map_err(|error| error.within(pattern))?;
        Ok((parsed.most().search(), Backtracker::new(&parsed)))
    }

    /// Checks that a pattern is in the syntax of ECMA-262 with the `u` flag,
    /// by the letter and backreferences included.
    ///
    /// # Errors
    ///
    /// Fails when the pattern is not in the syntax, or over a limit.
    pub fn check_ecma(
        pattern: &str,
        limits: &Limits,
    ) -> Result<(), PatternError> {
        read(pattern, limits, Reading::Strict).map(|_| ())
    }

    /// The Unicode properties that ECMA-262 patterns may name here: all that
    /// may stand in the braces after `\p`.
    pub fn ecma_properties() -> impl Iterator<Item = String> {
        property::all()
    }
}

fn read(
    pattern: &str,
    limits: &Limits,
    reading: Reading,
) -> Result<Regex, PatternError> {
    super::rust::check_length(pattern, limits)
        .and_then(|()| parser::parse(pattern, limits, reading))
        .map_err(|error| error.within(pattern))
}
