//! The machine of a regular expression or a list of choices.
//!
//! It has one frame, which reads the whole text as UTF-8 and may finish
//! where the language accepts.
//!
//! # Counts
//!
//! A pattern that ends in one class with a large count (`id-[a-z]{3,90000}`)
//! keeps that count in the frame's registers, so that a text of any length
//! needs no more states than a token of [`HORIZON`] bytes can tell apart, and
//! masks are cut from that of the class without a count ([`Hint::Window`]).
//! A count that something follows is left to states, one a position.

use std::sync::{Mutex, PoisonError};

use super::{
    Automaton, AutomatonError, Frame, HORIZON, Hint, Outcome, Resumed, Row,
    RowBuilder, StateId, StateTable, Step,
};
use crate::interrupt;
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
    Counted { base: u32, at: Utf8State, least: u32, most: u32 },
}

/// One class with a count.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Window {
    /// The number of the language of the class without a count.
    base: u32,
    least: u32,
    most: u32,
}

impl Window {
    /// The bounds after some more characters.
    fn after(self, n_read: u32) -> Window {
        let most = match self.most {
            u32::MAX => u32::MAX,
            most => most.saturating_sub(n_read),
        };
        Window { least: self.least.saturating_sub(n_read), most, ..self }
    }

    /// The bounds as a state sees them: what is further than a token can
    /// reach is all alike.
    fn key(self, at: Utf8State) -> Key {
        let far = HORIZON + 1;
        let most = match self.most {
            u32::MAX => u32::MAX,
            most => most.min(far),
        };
        let Window { base, least, .. } = self;
        Key::Counted { base, at, least: least.min(far), most }
    }
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
    /// Whether frames have registers: how many characters of a window were
    /// read, and one more than the number of the window.
    registers: bool,
    windows: Mutex<Vec<Window>>,
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
        let start = Key::Whole(Utf8State::At(language.start()));
        // Each character has up to three states inside it, and a mask looks
        // a token ahead.
        let table = StateTable::new(limits.max_states().saturating_mul(64));
        let start = table.intern(start).map_err(|_| too_few_states(limits))?;
        Ok(RegexMachine {
            registers: language.counts_classes(MIN_WINDOW),
            language,
            windows: Mutex::default(),
            bases: boxcar::Vec::new(),
            base_ids: Mutex::default(),
            table,
            start,
        })
    }

    /// The language that is read.
    pub fn language(&self) -> &Language {
        &self.language
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
            Key::Counted { base, at, least, most } => {
                self.build_counted(Window { base, least, most }, at)
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
        if self.registers {
            row.registers();
        }
        if let Utf8State::At(state) = at
            && let Some(window) = self.window(state)?
        {
            let at = Utf8State::At(self.bases[window.base as usize].start());
            let base = Key::Base { base: window.base, at };
            row.hint(Hint::Window {
                base: self.table.intern(base)?,
                least: window.least,
                most: window.most,
            });
        }
        Ok(row.build())
    }

    /// Returns the count that a state is, if it is large enough to matter.
    fn window(
        &self,
        state: regular::StateId,
    ) -> Result<Option<Window>, AutomatonError> {
        if !self.registers {
            return Ok(None);
        }
        let Some((class, least, most)) = self.language.window(state) else {
            return Ok(None);
        };
        let most = most.unwrap_or(u32::MAX);
        let is_large = |n: u32| n > MIN_WINDOW && n < u32::MAX;
        if !is_large(least) && !is_large(most) {
            return Ok(None);
        }
        let base = self.base(&class).map_err(refused)?;
        Ok(Some(Window { base, least, most }))
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
        window: Window,
        at: Utf8State,
    ) -> Result<Row, AutomatonError> {
        let Window { base, least, most } = window;
        let mut row = RowBuilder::new();
        row.registers();
        // Far bounds stay far until the registers say otherwise.
        let less = |n: u32| if n > HORIZON { n } else { n.saturating_sub(1) };
        if most > 0 {
            let language = &self.bases[base as usize];
            for range in language.utf8_row(at).map_err(over_limit)? {
                let (least, most) = match range.next {
                    Utf8State::At(_) => (less(least), less(most)),
                    _ => (least, most),
                };
                let at = range.next;
                let next = Key::Counted { base, at, least, most };
                let next = self.table.intern(next)?;
                row.range(range.lo, range.hi, Step::Stay(next));
            }
        }
        if let Utf8State::At(_) = at {
            if least == 0 {
                row.finish(MATCH);
            }
            let base = self.table.intern(Key::Base { base, at })?;
            row.hint(Hint::Window { base, least, most });
        }
        Ok(row.build())
    }

    /// Begins to count where a window begins.
    fn enter_window(
        &self,
        frame: &mut Frame,
        window: Window,
    ) -> Result<(), AutomatonError> {
        let mut windows =
            self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let known = windows.iter().position(|known| *known == window);
        let index = known.unwrap_or_else(|| {
            windows.push(window);
            windows.len() - 1
        });
        drop(windows);
        let number = u32::try_from(index).unwrap_or(u32::MAX - 1) + 1;
        frame.counts = [0, number];
        let at = Utf8State::At(self.bases[window.base as usize].start());
        frame.state = self.table.intern(window.key(at))?;
        Ok(())
    }

    /// Returns the window that a frame counts in.
    fn window_of(&self, frame: &Frame) -> Option<Window> {
        let index = frame.counts[1].checked_sub(1)?;
        let windows =
            self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        windows.get(index as usize).copied()
    }
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

    /// Begins a window, or counts the character that `byte` completes.
    fn advance(
        &self,
        frame: &mut Frame,
        _byte: u8,
        to: StateId,
    ) -> Result<(), AutomatonError> {
        frame.state = to;
        match *self.table.key(to) {
            Key::Whole(Utf8State::At(state)) => {
                if let Some(window) = self.window(state)? {
                    self.enter_window(frame, window)?;
                }
            }
            Key::Counted { at: at @ Utf8State::At(_), .. } => {
                if let Some(window) = self.window_of(frame) {
                    frame.counts[0] = frame.counts[0].saturating_add(1);
                    let key = window.after(frame.counts[0]).key(at);
                    frame.state = self.table.intern(key)?;
                }
            }
            Key::Whole(_) | Key::Base { .. } | Key::Counted { .. } => {}
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

    fn memory_usage(&self) -> usize {
        let bases = self.bases.iter().map(|(_, base)| base.memory_usage());
        size_of::<RegexMachine>()
            + self.table.memory_usage()
            + self.language.memory_usage()
            + bases.sum::<usize>()
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
    if let Err(error) = interrupt::confirm() {
        return AutomatonError::Interrupted(error);
    }
    let (name, what) = match error.kind() {
        LimitKind::States => ("max_states", "the states of a pattern"),
        LimitKind::Terms => ("max_terms", "the terms of a pattern"),
        LimitKind::Nesting => ("max_nesting", "the nesting of a pattern"),
        LimitKind::Arena => ("max_arena", "the memory of a pattern"),
        LimitKind::PatternBytes => {
            ("max_pattern_bytes", "the length of a pattern")
        }
        LimitKind::Time => ("time", "the milliseconds for a pattern"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::automaton::Recognizer;
    use std::sync::Arc;

    fn pattern(pattern: &str) -> Arc<RegexMachine> {
        let machine = RegexMachine::new(pattern, Limits::new());
        Arc::new(machine.expect("the pattern is valid"))
    }

    /// Whether each beginning of the text is alive, and whether it may end
    /// after the last one.
    fn run(machine: &Arc<RegexMachine>, text: &[u8]) -> (usize, bool) {
        let machine = Arc::clone(machine) as Arc<dyn Automaton>;
        let mut recognizer =
            Recognizer::new(machine).expect("within the limits");
        for (index, &byte) in text.iter().enumerate() {
            if !recognizer.push_byte(byte).expect("within the limits") {
                return (index, false);
            }
        }
        let accepts = recognizer.is_accepting().expect("within the limits");
        (text.len(), accepts)
    }

    #[test]
    fn the_whole_text_must_match() {
        let machine = pattern("a(?:é|b)+");
        assert_eq!(run(&machine, "aéb".as_bytes()), (4, true));
        assert_eq!(run(&machine, b"a"), (1, false));
        assert_eq!(run(&machine, "aè".as_bytes()), (2, false));
        assert_eq!(run(&machine, b"abx"), (2, false));
        assert_eq!(run(&machine, b"a\xC3"), (2, false));
        assert_eq!(run(&machine, b"a\xC4"), (1, false));
    }

    #[test]
    fn the_end_decides_between_a_choice_and_a_longer_one() {
        let choices = ["ja", "jawohl", "nein", "ja"];
        let machine = RegexMachine::choices(&choices, Limits::new());
        let machine = Arc::new(machine.expect("the list is not empty"));
        assert_eq!(run(&machine, b"ja"), (2, true));
        assert_eq!(run(&machine, b"jaw"), (3, false));
        assert_eq!(run(&machine, b"jawohl"), (6, true));
        assert_eq!(run(&machine, b"jawohlx"), (6, false));
        assert_eq!(run(&machine, b"x"), (0, false));
        let words = machine.language().enumerate(10).expect("three words");
        assert_eq!(words, ["ja", "nein", "jawohl"]);
    }

    #[test]
    fn nothing_to_choose_from_is_an_error() {
        let empty: [&str; 0] = [];
        let error = RegexMachine::choices(&empty, Limits::new());
        assert_eq!(error.err(), Some(RegexMachineError::NoChoices));
        let error = RegexMachine::new("a(?!b)b", Limits::new());
        assert_eq!(error.err(), Some(RegexMachineError::MatchesNothing));
    }

    #[test]
    fn large_counts_are_exact_and_need_few_states() {
        for (prefix, least, most) in
            [("", 0, 700), ("id-", 300, 301), ("é", 2, 20), ("", 290, 290)]
        {
            let machine =
                pattern(&format!("{prefix}[aé😀]{{{least},{most}}}"));
            let mut text = String::from(prefix);
            for (n, letter) in (0..=most + 1).zip("aé😀".chars().cycle()) {
                let (read, accepts) = run(&machine, text.as_bytes());
                assert_eq!(accepts, (least..=most).contains(&n), "{n}");
                assert_eq!(read == text.len(), n <= most, "{n}");
                text.push(letter);
            }
        }
        let machine = pattern("x[^y]{0,1000000000}");
        let text = format!("x{}", "é".repeat(30_000));
        assert_eq!(run(&machine, text.as_bytes()), (60_001, true));
        assert!(machine.table.len() < 100, "{}", machine.table.len());
    }
}
