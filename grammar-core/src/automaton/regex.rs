//! The machine of a regular expression or a list of choices.
//!
//! It has one frame, which reads the whole text as UTF-8 and may finish
//! where the language accepts.
//!
//! # Counts
//!
//! A pattern that is nothing but one class with a count (`[a-z]{3,90000}`)
//! keeps the count in the frame's register, so that a text of any length
//! needs no more states than a token of [`HORIZON`] bytes can tell apart.
//! Where such a count ends a longer pattern, each position is a state, but
//! one whose mask is cut from that of the class without a count
//! ([`Hint::Window`]).

use std::sync::{Mutex, PoisonError};

use super::{
    Automaton, AutomatonError, Frame, HORIZON, Hint, Outcome, Resumed, Row,
    RowBuilder, StateId, StateTable, Step,
};
use crate::regular::{
    self, Answer, CharSet, Language, LanguageError, LimitError, LimitKind,
    Limits, PatternError, Regex, Utf8State,
};

/// The outcome of a text that matches.
const MATCH: Outcome = Outcome(0);

/// Counts up to this are left to states.
const MIN_WINDOW: u32 = 16;

/// Why no machine can be made of a pattern or a list of choices.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RegexMachineError {
    /// The pattern is refused.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The expression is refused.
    #[error(transparent)]
    Language(#[from] LanguageError),
    /// No text at all would be allowed.
    #[error(
        "no text matches the pattern; nothing could be generated, so change \
         the pattern"
    )]
    MatchesNothing,
    /// The list of choices is empty.
    #[error("the list of choices is empty; give at least one")]
    NoChoices,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Key {
    /// A place in the language.
    Whole(Utf8State),
    /// A place in the language of one class, any number of times.
    Base { base: u32, at: Utf8State },
    /// The same, with the numbers of characters that are still to be read:
    /// at least, and at most. Far bounds are clamped.
    Counted { at: Utf8State, least: u32, most: u32 },
}

/// One class with a count.
#[derive(Clone, Debug)]
struct Window {
    class: CharSet,
    least: u32,
    most: u32,
}

/// A regular language as a machine of one frame.
///
/// # Example
///
/// ```
/// use maskwright_grammar_core::automaton::RegexMachine;
/// use maskwright_grammar_core::regular::Limits;
///
/// let machine = RegexMachine::new(r"\d{4}-\d{2}", Limits::new())?;
/// assert!(machine.language().is_match("2026-11")?);
/// let labels = RegexMachine::choices(&["yes", "no"], Limits::new())?;
/// assert!(labels.language().is_match("no")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RegexMachine {
    language: Language,
    /// Set if the whole pattern is one class with a count.
    window: Option<Window>,
    /// The languages of classes without a count, which masks are cut from.
    bases: boxcar::Vec<Language>,
    base_ids: Mutex<Vec<(CharSet, u32)>>,
    table: StateTable<Key>,
    start: StateId,
}

impl RegexMachine {
    /// Creates the machine of a pattern in Rust regex syntax, which must
    /// match the whole text.
    ///
    /// # Errors
    ///
    /// Fails when the pattern is refused, or when no text matches it.
    pub fn new(
        pattern: &str,
        limits: Limits,
    ) -> Result<RegexMachine, RegexMachineError> {
        let regex = Regex::rust_with(pattern, &limits)?;
        RegexMachine::from_regex(&regex, limits)
    }

    /// Creates the machine of a list of texts, one of which must be written
    /// in full. Duplicates count once. Where one choice begins another, the
    /// end of the text decides.
    ///
    /// # Errors
    ///
    /// Fails when the list is empty.
    pub fn choices<S: AsRef<str>>(
        choices: &[S],
        limits: Limits,
    ) -> Result<RegexMachine, RegexMachineError> {
        if choices.is_empty() {
            return Err(RegexMachineError::NoChoices);
        }
        RegexMachine::from_regex(&Regex::literals(choices), limits)
    }

    /// Creates the machine of an expression.
    ///
    /// # Errors
    ///
    /// Fails when the expression is refused, or when no text matches it.
    pub fn from_regex(
        regex: &Regex,
        limits: Limits,
    ) -> Result<RegexMachine, RegexMachineError> {
        let language = Language::new(regex, limits)?;
        if language.is_dead(language.start()) == Answer::Yes {
            return Err(RegexMachineError::MatchesNothing);
        }
        let start = language.start();
        let mut machine = RegexMachine {
            window: window(&language, start),
            language,
            bases: boxcar::Vec::new(),
            base_ids: Mutex::default(),
            // Each character has up to three states inside it, and a mask
            // looks a token ahead.
            table: StateTable::new(limits.max_states().saturating_mul(64)),
            start: StateId(0),
        };
        let key = match machine.window.clone() {
            Some(window) => {
                let base = machine.base(&window.class)?;
                let at = machine.bases[base as usize].start();
                machine.counted(Utf8State::At(at), window.least, window.most)
            }
            None => Key::Whole(Utf8State::At(start)),
        };
        machine.start =
            machine.table.intern(key).map_err(|_| too_few_states(limits))?;
        Ok(machine)
    }

    /// The language that is read.
    pub fn language(&self) -> &Language {
        &self.language
    }

    fn counted(&self, at: Utf8State, least: u32, most: u32) -> Key {
        let far = HORIZON + 1;
        let unbounded =
            self.window.as_ref().map(|window| window.most) == Some(u32::MAX);
        let most = if unbounded { u32::MAX } else { most.min(far) };
        Key::Counted { at, least: least.min(far), most }
    }

    /// Returns the number of the language of `class` without a count.
    fn base(&self, class: &CharSet) -> Result<u32, LanguageError> {
        let mut ids =
            self.base_ids.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, id)) = ids.iter().find(|(known, _)| known == class) {
            return Ok(*id);
        }
        let regex = Regex::class(class.clone()).repeat(0, None);
        let language = Language::new(&regex, *self.language.limits())?;
        let id = u32::try_from(self.bases.push(language)).unwrap_or(u32::MAX);
        ids.push((class.clone(), id));
        Ok(id)
    }

    fn build(&self, key: Key) -> Result<Row, AutomatonError> {
        match key {
            Key::Whole(at) => self.build_whole(at),
            Key::Base { base, at } => self.build_base(base, at),
            Key::Counted { at, least, most } => {
                self.build_counted(at, least, most)
            }
        }
    }

    fn build_whole(&self, at: Utf8State) -> Result<Row, AutomatonError> {
        let mut row = RowBuilder::new();
        for range in self.language.utf8_row(at).map_err(over_limit)? {
            let next = self.table.intern(Key::Whole(range.next))?;
            row.range(range.lo, range.hi, Step::Stay(next));
        }
        if self.language.is_utf8_accepting(at) {
            row.finish(MATCH);
        }
        if let Utf8State::At(state) = at
            && let Some(window) = window(&self.language, state)
        {
            let base = self.base(&window.class).map_err(refused)?;
            let at = Utf8State::At(self.bases[base as usize].start());
            let base = self.table.intern(Key::Base { base, at })?;
            row.hint(Hint::Window {
                base,
                least: window.least,
                most: window.most,
            });
        }
        Ok(row.build())
    }

    fn build_base(
        &self,
        base: u32,
        at: Utf8State,
    ) -> Result<Row, AutomatonError> {
        let language = &self.bases[base as usize];
        let mut row = RowBuilder::new();
        for range in language.utf8_row(at).map_err(over_limit)? {
            let next = Key::Base { base, at: range.next };
            row.range(
                range.lo,
                range.hi,
                Step::Stay(self.table.intern(next)?),
            );
        }
        if language.is_utf8_accepting(at) {
            row.finish(MATCH);
        }
        Ok(row.build())
    }

    fn build_counted(
        &self,
        at: Utf8State,
        least: u32,
        most: u32,
    ) -> Result<Row, AutomatonError> {
        // The class of the window is the first base.
        let language = &self.bases[0];
        let mut row = RowBuilder::new();
        row.registers();
        // Far bounds stay far until the register says otherwise.
        let less = |n: u32| if n > HORIZON { n } else { n.saturating_sub(1) };
        if most > 0 {
            for range in language.utf8_row(at).map_err(over_limit)? {
                let whole = matches!(range.next, Utf8State::At(_));
                let (least, most) = if whole {
                    (less(least), less(most))
                } else {
                    (least, most)
                };
                let next = Key::Counted { at: range.next, least, most };
                let next = self.table.intern(next)?;
                row.range(range.lo, range.hi, Step::Stay(next));
            }
        }
        if let Utf8State::At(_) = at {
            if least == 0 {
                row.finish(MATCH);
            }
            let base = self.table.intern(Key::Base { base: 0, at })?;
            row.hint(Hint::Window { base, least, most });
        }
        Ok(row.build())
    }
}

/// Returns the count that a state is, if it is large enough to matter.
fn window(language: &Language, state: regular::StateId) -> Option<Window> {
    let (class, least, most) = language.window(state)?;
    let most = most.unwrap_or(u32::MAX);
    let counts = least > 0 || most < u32::MAX;
    let large = least > MIN_WINDOW || (most > MIN_WINDOW && most < u32::MAX);
    (counts && large).then_some(Window { class, least, most })
}

impl Automaton for RegexMachine {
    fn start(&self) -> StateId {
        self.start
    }

    fn row(&self, state: StateId) -> Result<&Row, AutomatonError> {
        self.table.row(state, |key| self.build(*key))
    }

    fn resume(
        &self,
        _resume: StateId,
        _outcome: Outcome,
    ) -> Result<Resumed, AutomatonError> {
        // There are no calls.
        Ok(Resumed::new())
    }

    fn enter(&self, _caller: &Frame, callee: StateId) -> Frame {
        Frame::new(callee)
    }

    /// Counts the character that `byte` completes, if it does. The register
    /// holds the number of characters that were read.
    fn advance(
        &self,
        frame: &mut Frame,
        _byte: u8,
        to: StateId,
    ) -> Result<(), AutomatonError> {
        frame.state = to;
        if let (Key::Counted { at: at @ Utf8State::At(_), .. }, Some(window)) =
            (*self.table.key(to), &self.window)
        {
            let n_read = frame.counts[0].saturating_add(1);
            frame.counts[0] = n_read;
            let least = window.least.saturating_sub(n_read);
            let most = window.most.saturating_sub(n_read);
            frame.state = self.table.intern(self.counted(at, least, most))?;
        }
        Ok(())
    }

    fn may_watch(&self, _state: StateId) -> bool {
        false
    }

    fn exact(&self, state: StateId) -> bool {
        let sure = |state| self.language.is_dead(state) != Answer::Unknown;
        match *self.table.key(state) {
            Key::Whole(Utf8State::At(state)) => sure(state),
            Key::Whole(Utf8State::Uniform { next, .. }) => sure(next),
            Key::Whole(at @ Utf8State::Inside { .. }) => {
                self.language.utf8_row(at).is_ok_and(|row| {
                    row.iter().any(|range| match range.next {
                        Utf8State::At(next)
                        | Utf8State::Uniform { next, .. } => sure(next),
                        // A place inside a place: its language state decides.
                        Utf8State::Inside { state, .. } => sure(state),
                    })
                })
            }
            Key::Base { .. } | Key::Counted { .. } => true,
        }
    }

    fn describe(&self, state: StateId) -> String {
        match *self.table.key(state) {
            Key::Whole(Utf8State::At(state))
                if self.language.is_accepting(state) =>
            {
                "at a place where the pattern may end".to_owned()
            }
            Key::Whole(Utf8State::At(_)) | Key::Base { .. } => {
                "inside the pattern".to_owned()
            }
            Key::Whole(_) => "inside a character of several bytes".to_owned(),
            Key::Counted { least, most, .. } => {
                let bound = |n: u32| match n {
                    u32::MAX => "any number of".to_owned(),
                    n if n > HORIZON => format!("over {HORIZON}"),
                    n => n.to_string(),
                };
                format!(
                    "inside a run of characters, of which at least {} and \
                     at most {} are to come",
                    bound(least),
                    bound(most)
                )
            }
        }
    }
}

fn too_few_states(limits: Limits) -> RegexMachineError {
    LanguageError::from(LimitError::new(
        LimitKind::States,
        limits.max_states(),
        1,
    ))
    .into()
}

fn over_limit(error: LimitError) -> AutomatonError {
    let (name, what) = match error.kind() {
        LimitKind::States => ("max_states", "the states of a pattern"),
        LimitKind::Terms => ("max_terms", "the terms of a pattern"),
        LimitKind::Nesting => ("max_nesting", "the nesting of a pattern"),
        LimitKind::Arena => ("max_arena", "the memory of a pattern"),
        LimitKind::PatternBytes => {
            ("max_pattern_bytes", "the length of a pattern")
        }
    };
    AutomatonError::Limit { name, what, limit: error.limit() }
}

fn refused(error: LanguageError) -> AutomatonError {
    match error {
        LanguageError::Limit(error) => over_limit(error),
        LanguageError::AssertionInside => {
            AutomatonError::Grammar { message: error.to_string() }
        }
    }
}
