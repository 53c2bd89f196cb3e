//! A regular expression of a schema.

use maskwright_grammar_core::regular::{
    Language, LanguageError, Limits, PatternErrorKind, Regex,
};

/// Why a regular expression was refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PatternError {
    /// It does not parse.
    Invalid {
        /// The byte at which it fails.
        offset: usize,
        /// What is wrong there.
        message: String,
    },
    /// It is not regular.
    Unsupported {
        /// The byte at which it is.
        offset: usize,
        /// The feature.
        feature: String,
    },
    /// It is larger than a limit allows.
    TooLarge {
        /// The limit.
        limit: u64,
        /// What it would need.
        value: u64,
    },
}

/// A regular expression by ECMA-262, searched for anywhere in a string.
#[derive(Clone, Debug)]
pub struct Pattern {
    source: Box<str>,
    regex: Regex,
    language: Language,
}

impl Pattern {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// Fails when the expression does not parse or is not regular.
    pub fn new(source: &str) -> Result<Pattern, PatternError> {
        let regex = Regex::ecma(source).map_err(|error| {
            if let Some(limit) = error.limit_error() {
                return PatternError::TooLarge {
                    limit: limit.limit() as u64,
                    value: limit.given() as u64,
                };
            }
            let message = error.message().to_owned();
            match error.kind() {
                PatternErrorKind::Backreference
                | PatternErrorKind::Atomic
                | PatternErrorKind::Unsupported => {
                    let offset = error.offset();
                    PatternError::Unsupported { offset, feature: message }
                }
                _ => PatternError::Invalid { offset: error.offset(), message },
            }
        })?;
        let language = Language::new(&regex, Limits::new());
        let language = language.map_err(|error| match error {
            LanguageError::Limit(limit) => PatternError::TooLarge {
                limit: limit.limit() as u64,
                value: limit.given() as u64,
            },
            error => PatternError::Unsupported {
                offset: 0,
                feature: error.to_string(),
            },
        })?;
        Ok(Pattern { source: source.into(), regex, language })
    }

    /// The expression as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The strings that hold a match, as an expression to combine.
    pub fn regex(&self) -> &Regex {
        &self.regex
    }

    /// The strings that hold a match, as an automaton.
    pub fn language(&self) -> &Language {
        &self.language
    }

    /// Whether a string holds a match.
    ///
    /// A string that needs more states than the automaton has room for is
    /// tried on one of its own.
    pub fn is_match(&self, text: &str) -> bool {
        language_matches(&self.language, &self.regex, text)
    }
}

/// Whether a text is in a language, with a fresh automaton where the shared
/// one is full. A text that does not even fit there is refused, which errs
/// on the side of saying no to what cannot be checked.
pub(crate) fn language_matches(
    language: &Language,
    regex: &Regex,
    text: &str,
) -> bool {
    if let Ok(matches) = language.is_match(text) {
        return matches;
    }
    let limits = *language.limits();
    let room = limits.max_states().saturating_add(2 * text.len());
    Language::new(regex, limits.with_max_states(room))
        .is_ok_and(|fresh| fresh.is_match(text).unwrap_or(false))
}
