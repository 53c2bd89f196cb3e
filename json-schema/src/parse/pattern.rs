//! A regular expression of a schema.

use maskwright_grammar_core::regular::{
    Backtracker, Language, LanguageError, Limits, PatternErrorKind, Regex,
};

use crate::format::Bound;

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

/// What becomes of a backreference (`(a|b)\1`), which makes an expression
/// irregular.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Backreferences {
    /// It is an error.
    #[default]
    Refuse,
    /// A string is checked when it ends, by backtracking. Nothing is accepted
    /// or refused wrongly, but a string may turn out to have no valid end. A
    /// string that takes too many steps counts as neither matching nor not.
    Check,
}

/// A regular expression by ECMA-262, searched for anywhere in a string.
#[derive(Clone, Debug)]
pub struct Pattern {
    source: Box<str>,
    /// The strings that may hold a match.
    regex: Regex,
    language: Language,
    /// What decides which of those do, if there are backreferences.
    matcher: Option<Backtracker>,
}

impl Pattern {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// Fails when the expression does not parse or is not regular.
    pub fn new(
        source: &str,
        backreferences: Backreferences,
    ) -> Result<Pattern, PatternError> {
        let regex = Regex::ecma(source).map(|regex| (regex, None));
        let regex = regex.or_else(|error| {
            let is_reference = error.kind() == PatternErrorKind::Backreference;
            if !is_reference || backreferences == Backreferences::Refuse {
                return Err(error);
            }
            let limits = Limits::new();
            let read = Regex::ecma_with_references(source, &limits)?;
            Ok((read.0, Some(read.1)))
        });
        let (regex, matcher) = regex.map_err(|error| {
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
        Ok(Pattern { source: source.into(), regex, language, matcher })
    }

    /// The expression as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The strings that hold a match, or that may where there are
    /// backreferences, as an expression to combine.
    pub fn regex(&self) -> &Regex {
        &self.regex
    }

    /// The same as an automaton.
    pub fn language(&self) -> &Language {
        &self.language
    }

    /// Whether a string holds a match.
    ///
    /// A string that needs more states than the automaton has room for is
    /// tried on one of its own.
    pub fn is_match(&self, text: &str) -> bool {
        self.holds(text, true)
    }

    /// Whether a string holds a match (`sign`), or holds none. Neither is so
    /// where backreferences take too many steps.
    pub fn holds(&self, text: &str, sign: bool) -> bool {
        let may_match = language_matches(&self.language, &self.regex, text);
        let matches = match &self.matcher {
            Some(matcher) if may_match => matcher.is_match(text),
            Some(_) | None => Some(may_match),
        };
        matches == Some(sign)
    }

    /// Whether the strings that hold a match are just those of the language.
    pub fn is_regular(&self) -> bool {
        self.matcher.is_none()
    }

    /// The strings that hold a match (`sign`), or that do not: those that do
    /// so for certain, or those that may.
    pub fn bound(&self, sign: bool, bound: Bound) -> Regex {
        match (sign, self.is_regular(), bound) {
            (true, true, _) | (true, false, Bound::Most) => self.regex.clone(),
            (false, true, _) | (false, false, Bound::Least) => {
                self.regex.not()
            }
            (true, false, Bound::Least) => Regex::empty(),
            (false, false, Bound::Most) => Regex::any_string(),
        }
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
