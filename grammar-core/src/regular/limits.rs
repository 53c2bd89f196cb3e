//! What a regular language may cost, and the error of one that costs more.

use std::{fmt, time::Duration};

use crate::interrupt::Interrupted;

/// Bounds on the size of a pattern and of the machine made from it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    max_pattern_bytes: usize,
    max_terms: usize,
    max_nesting: usize,
    max_states: usize,
    max_arena: usize,
    search_budget: usize,
}

impl Limits {
    /// The default limits: 64 KiB of pattern, 65,536 terms, groups nested
    /// 250 deep, 100,000 states, 16,777,216 words of terms and rows in all, and
    /// 2,000 states looked at to answer one question.
    pub const fn new() -> Limits {
        Limits {
            max_pattern_bytes: 1 << 16,
            max_terms: 1 << 16,
            max_nesting: 250,
            max_states: 100_000,
            max_arena: 1 << 24,
            search_budget: 2_000,
        }
    }

    /// Sets the greatest length of a pattern's text in bytes.
    #[must_use]
    pub const fn with_max_pattern_bytes(mut self, bytes: usize) -> Limits {
        self.max_pattern_bytes = bytes;
        self
    }

    /// Sets how many terms one pattern, and the formula of one state, may
    /// have.
    #[must_use]
    pub const fn with_max_terms(mut self, terms: usize) -> Limits {
        self.max_terms = terms;
        self
    }

    /// Sets how deep groups and look-around may nest. Values over 250 act
    /// as 250: what they nest in is followed by recursion, which has to fit
    /// on the stack of a small thread.
    #[must_use]
    pub const fn with_max_nesting(mut self, depth: usize) -> Limits {
        self.max_nesting = if depth > 250 { 250 } else { depth };
        self
    }

    /// Sets how many states one language may have made at a time.
    #[must_use]
    pub const fn with_max_states(mut self, states: usize) -> Limits {
        self.max_states = states;
        self
    }

    /// Sets how many words of four bytes the terms and rows of all states
    /// together may take.
    #[must_use]
    pub const fn with_max_arena(mut self, words: usize) -> Limits {
        self.max_arena = words;
        self
    }

    /// Sets how many states a question such as
    /// [`is_dead`](super::Language::is_dead) may look at before it answers
    /// that it does not know.
    #[must_use]
    pub const fn with_search_budget(mut self, states: usize) -> Limits {
        self.search_budget = states;
        self
    }

    /// The greatest length of a pattern's text in bytes.
    pub const fn max_pattern_bytes(&self) -> usize {
        self.max_pattern_bytes
    }

    /// The greatest number of terms in a pattern or in one state.
    pub const fn max_terms(&self) -> usize {
        self.max_terms
    }

    /// The greatest nesting of groups.
    pub const fn max_nesting(&self) -> usize {
        self.max_nesting
    }

    /// The greatest number of states.
    pub const fn max_states(&self) -> usize {
        self.max_states
    }

    /// The greatest number of words that all terms and rows may take.
    pub const fn max_arena(&self) -> usize {
        self.max_arena
    }

    /// The number of states that one question may look at.
    pub const fn search_budget(&self) -> usize {
        self.search_budget
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::new()
    }
}

/// Which bound of [`Limits`] was met.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum LimitKind {
    /// `max_pattern_bytes`: the text of the pattern is too long.
    PatternBytes,
    /// `max_terms`: a pattern, or the formula of a state, is too large.
    Terms,
    /// `max_nesting`: groups or look-around nest too deep.
    Nesting,
    /// `max_states`: the text so far has asked for too many states.
    States,
    /// `max_arena`: the states take too much memory.
    Arena,
    /// An [`Interrupt`](crate::interrupt::Interrupt) came; in milliseconds,
    /// and a limit of zero if it was cancelled.
    Time,
}

/// A bound of [`Limits`] was met: which one, its value, what was asked.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct LimitError {
    kind: LimitKind,
    limit: usize,
    given: usize,
}

impl LimitError {
    pub(crate) fn new(
        kind: LimitKind,
        limit: usize,
        given: usize,
    ) -> LimitError {
        LimitError { kind, limit, given }
    }

    pub(crate) fn interrupted(error: Interrupted) -> LimitError {
        let millis = |time: Duration| {
            usize::try_from(time.as_millis()).unwrap_or(usize::MAX)
        };
        let limit = error.limit().map_or(0, millis);
        LimitError::new(LimitKind::Time, limit, millis(error.elapsed()))
    }

    /// Which limit was met.
    pub fn kind(&self) -> LimitKind {
        self.kind
    }

    /// The value of the limit.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// What was asked for, at least.
    pub fn given(&self) -> usize {
        self.given
    }
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LimitError { kind, limit, given } = self;
        match kind {
            LimitKind::PatternBytes => write!(
                f,
                "the pattern is {given} bytes long, over the limit of \
                 {limit} (max_pattern_bytes); shorten it or raise the limit"
            ),
            LimitKind::Terms => write!(
                f,
                "the regular expression needs {given} terms at once, over \
                 the limit of {limit} (max_terms); simplify it or raise the \
                 limit"
            ),
            LimitKind::Nesting => write!(
                f,
                "groups or look-around nest {given} deep, over the limit of \
                 {limit} (max_nesting); flatten the pattern"
            ),
            LimitKind::States => write!(
                f,
                "the regular expression needs {given} states, over the \
                 limit of {limit} (max_states); simplify it or raise the \
                 limit"
            ),
            LimitKind::Time => write!(
                f,
                "broken off after {given} ms, at the limit of {limit} ms; \
                 allow more time, or ask again: what was finished is kept"
            ),
            LimitKind::Arena => write!(
                f,
                "the states of the regular expression need {given} words \
                 of memory, over the limit of {limit} (max_arena); simplify it \
                 or raise the limit"
            ),
        }
    }
}

impl std::error::Error for LimitError {}
