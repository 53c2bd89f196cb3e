//! Arrays whose items are compared: `uniqueItems`, and where it is negated.
//!
//! Such an array remembers its items, in canonical form, in the registers of
//! its frame. The frames that read an item *record* its text: each state `s`
//! of theirs has a twin that does what `s` does and keeps the bytes. When an
//! item ends, its outcome is guarded: the array compares it with what it
//! remembers and goes on in the state after a new item, or in the one after
//! an item that repeats another, of which registers let one pass.
//!
//! # Where exactness ends
//!
//! A string or a number is given up as soon as only used values could come of
//! it. Containers are only compared at their end, so an array whose items
//! may be finitely many containers can lead into a dead end. So can one that
//! needs a repetition.

use std::{ops::RangeInclusive, sync::Arc};

use maskwright_grammar_core::{
    automaton::{
        Automaton, AutomatonError, Frame, Memory, Outcome, Resumed,
        RowBuilder, StateId, Step, Watch,
    },
    regular::{self, Language, WordCount},
};

use super::{
    Machine, StateKey, canonical, guard, prelude::Window, text::Spelling,
    values::QuestionId,
};
use crate::number::{Decimal, NumberFormula, NumberSpec};

/// How many ways to go on within a code point are tried.
const MAX_SPELLINGS: usize = 256;

/// What a frame reads whose text is recorded.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Kind {
    String,
    Number,
    Literal,
    Container,
}

impl Kind {
    fn of_first_byte(byte: u8) -> Kind {
        match byte {
            b'"' => Kind::String,
            b'[' | b'{' => Kind::Container,
            b'n' | b't' | b'f' => Kind::Literal,
            _ => Kind::Number,
        }
    }
}

/// With which items an array that compares them can go on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Ends {
    /// With all: there is none before.
    First,
    /// With those that differ from all before.
    New,
    /// With those that equal one before.
    Repeated,
    /// With both, but not always in the same way.
    Any,
}

/// A state whose frame keeps what it reads.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Recorded {
    /// The state that does the reading.
    pub(crate) inner: StateId,
    kind: Kind,
    /// Set for the frame of an item, not for those above it.
    item: Option<Ends>,
    /// Whether it is a string whose text is checked when it ends.
    pub(crate) checked: bool,
}

impl Recorded {
    /// Whether its frame is that of an item.
    pub(crate) fn is_item(self) -> bool {
        self.item.is_some()
    }

    /// The twin of another state.
    pub(crate) fn with_inner(self, inner: StateId) -> Recorded {
        Recorded { inner, ..self }
    }
}

/// A number that must not equal any of some others.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct NumberLeft {
    /// What it must satisfy: a number spec, or any integer.
    spec: Option<u32>,
    /// The canonical forms of the others.
    used: Box<[Arc<[u8]>]>,
}

impl Machine {
    /// Adds the calls of an item that is compared.
    pub(crate) fn item_calls(
        &self,
        question: QuestionId,
        ends: Ends,
        wait: &mut dyn FnMut(Option<u32>) -> Result<StateId, AutomatonError>,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        for answer in self.answers_of(question)? {
            let callee = self.item(answer.byte, answer.callee, ends)?;
            let resume = wait(answer.known)?;
            row.byte(answer.byte, Step::Call { resume, callee });
        }
        Ok(())
    }

    fn item(
        &self,
        byte: u8,
        callee: StateId,
        ends: Ends,
    ) -> Result<StateId, AutomatonError> {
        // A string of any content that must be new is like a key.
        if matches!(ends, Ends::First | Ends::New)
            && callee == self.prelude.string(Window::FREE)?
        {
            return self.prelude.key_at(Spelling::Between(()));
        }
        let kind = Kind::of_first_byte(byte);
        let (inner, checked) = match self.checked(callee) {
            Some(inner) => (inner, true),
            None => (self.counted(callee)?, false),
        };
        self.recorded(Recorded { inner, kind, item: Some(ends), checked })
    }

    /// A string whose text is checked when it ends.
    pub(crate) fn checked_string(
        &self,
        inner: StateId,
    ) -> Result<StateId, AutomatonError> {
        let (kind, item, checked) = (Kind::String, None, true);
        self.recorded(Recorded { inner, kind, item, checked })
    }

    /// The state that reads such a string, without the record.
    fn checked(&self, callee: StateId) -> Option<StateId> {
        if callee.is_shared() {
            return None;
        }
        match *self.table.key(callee) {
            StateKey::Recorded(Recorded { inner, checked: true, .. }) => {
                Some(inner)
            }
            _ => None,
        }
    }

    /// Whether a waiting state is that of an array which compares the item.
    pub(crate) fn compares_items(
        &self,
        mut waiting: StateId,
    ) -> Result<bool, AutomatonError> {
        while !waiting.is_shared() {
            match *self.table.key(waiting) {
                StateKey::Recorded(Recorded { inner, .. }) => waiting = inner,
                StateKey::WaitItem { array, .. } => {
                    return Ok(self.array_info(array)?.ends.is_some());
                }
                _ => break,
            }
        }
        Ok(false)
    }

    /// The state of an item whose words can be counted, for one that reads a
    /// list of strings.
    fn counted(&self, callee: StateId) -> Result<StateId, AutomatonError> {
        if callee.is_shared() {
            return Ok(callee);
        }
        let StateKey::Listed { list, .. } = *self.table.key(callee) else {
            return Ok(callee);
        };
        let need = *self.parts.lists.get(list);
        self.string_start(self.parts.strings.intern(Box::new([need]))?)
    }

    pub(crate) fn recorded(
        &self,
        state: Recorded,
    ) -> Result<StateId, AutomatonError> {
        self.table.intern(StateKey::Recorded(state))
    }

    /// Builds the row of a recorded state: that of the inner one, among
    /// recorded states.
    pub(crate) fn build_recorded(
        &self,
        state: Recorded,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let inner = self.row(state.inner)?;
        let twin = |inner| self.recorded(Recorded { inner, ..state });
        let end = |outcome: Outcome| match state.item {
            Some(_) => Outcome(outcome.0 | Outcome::GUARDED_BIT),
            None => outcome,
        };
        for range in inner.ranges() {
            let step = match range.step {
                Step::Stay(to) => Step::Stay(twin(to)?),
                Step::Call { resume, callee } => Step::Call {
                    resume: twin(resume)?,
                    callee: self.part(range.lo, callee)?,
                },
                Step::Return(outcome) => Step::Return(end(outcome)),
            };
            row.range(range.lo, range.hi, step);
        }
        if let Some(outcome) = inner.finish {
            row.finish(end(outcome));
        }
        row.registers();
        Ok(())
    }

    /// The callee of a recorded state. Items keep what they read anyway, and
    /// so do keys, but for those that can only be declared names.
    fn part(
        &self,
        byte: u8,
        callee: StateId,
    ) -> Result<StateId, AutomatonError> {
        let is_closed_key = !callee.is_shared()
            && matches!(
                *self.table.key(callee),
                StateKey::Name { viable, .. }
                    if !self.parts.viables.get(viable).has_others()
            );
        if self.may_watch(callee) && !is_closed_key {
            return Ok(callee);
        }
        let kind = Kind::of_first_byte(byte);
        let (inner, checked) = (callee, false);
        self.recorded(Recorded { inner, kind, item: None, checked })
    }

    /// Where a waiting recorded state goes on.
    pub(crate) fn resume_recorded(
        &self,
        state: Recorded,
        outcome: Outcome,
    ) -> Result<Resumed, AutomatonError> {
        self.resume(state.inner, outcome)?
            .into_iter()
            .map(|inner| self.recorded(Recorded { inner, ..state }))
            .collect()
    }

    /// Creates the frame of a recorded callee.
    pub(crate) fn enter_recorded(
        &self,
        caller: &Frame,
        callee: StateId,
        state: Recorded,
    ) -> Frame {
        let inner = self.enter(caller, state.inner);
        let mut memory = Memory::default();
        if let Some(outer) = &caller.memory {
            // A container has members or items of its own to remember.
            if state.item.is_some() && state.kind != Kind::Container {
                memory.used = Arc::clone(&outer.used);
            }
            if let (Kind::Number | Kind::Literal, Some(&first)) =
                (state.kind, outer.text.last())
            {
                memory.partial.push(first);
            }
        }
        Frame { state: callee, memory: Some(Arc::new(memory)), ..inner }
    }

    /// Moves a recorded frame, and keeps the byte.
    pub(crate) fn advance_recorded(
        &self,
        frame: &mut Frame,
        state: Recorded,
        byte: u8,
        to: StateId,
    ) -> Result<(), AutomatonError> {
        frame.state = to;
        if let StateKey::Recorded(next) = *self.table.key(to)
            && !state.inner.is_shared()
            && let StateKey::Window { .. } = *self.table.key(state.inner)
        {
            // Its bounds come nearer.
            let mut inner = frame.clone();
            inner.state = state.inner;
            self.advance(&mut inner, byte, next.inner)?;
            frame.counts = inner.counts;
            frame.state =
                self.recorded(Recorded { inner: inner.state, ..next })?;
        }
        let memory = Arc::make_mut(frame.memory.get_or_insert_default());
        if state.kind != Kind::Container {
            memory.partial.push(byte);
        } else if !byte.is_ascii_whitespace() {
            memory.text.push(byte);
        }
        Ok(())
    }

    /// Keeps the first byte of the item that an array is about to read.
    pub(crate) fn begin_item(frame: &mut Frame, byte: u8) {
        let memory = Arc::make_mut(frame.memory.get_or_insert_default());
        memory.text.clear();
        memory.text.push(byte);
    }

    /// Ends the callee of a recorded frame: its text is added.
    pub(crate) fn leave_recorded(
        &self,
        caller: &Frame,
        state: Recorded,
        callee: &Frame,
        outcome: Outcome,
        to: StateId,
    ) -> Result<Option<Frame>, AutomatonError> {
        let frame = if !state.inner.is_shared()
            && let StateKey::WaitItem { .. } = self.table.key(state.inner)
            && outcome.is_guarded()
        {
            self.leave_item(caller, callee, to)?
        } else {
            guard::leave(caller, callee, outcome, to)
        };
        let Some(mut frame) = frame else { return Ok(None) };
        let memory = Arc::make_mut(frame.memory.get_or_insert_default());
        push_rest(&mut memory.text, callee);
        Ok(Some(frame))
    }

    /// Ends an item: the array remembers it, if it is new. `None` if `to` is
    /// not the state after such an item.
    pub(crate) fn leave_item(
        &self,
        caller: &Frame,
        callee: &Frame,
        to: StateId,
    ) -> Result<Option<Frame>, AutomatonError> {
        let Some(form) = item_form(caller, callee) else { return Ok(None) };
        let mut frame = Frame { state: to, ..caller.clone() };
        let memory = Arc::make_mut(frame.memory.get_or_insert_default());
        let repeated = memory.used.iter().any(|used| **used == *form);
        if self.is_repeated(to) != repeated {
            return Ok(None);
        }
        if !repeated {
            Arc::make_mut(&mut memory.used).push(form.into());
            let Some(state) = self.after_items(to, &memory.used)? else {
                return Ok(None);
            };
            frame.state = state;
        }
        Ok(Some(frame))
    }

    /// The state of an array that has had these items, for the one after any
    /// items; none if the array cannot end then.
    fn after_items(
        &self,
        state: StateId,
        used: &[Arc<[u8]>],
    ) -> Result<Option<StateId>, AutomatonError> {
        let key = match *self.table.key(state) {
            StateKey::Recorded(recorded) => {
                let inner = self.after_items(recorded.inner, used)?;
                let twin = |inner| self.recorded(recorded.with_inner(inner));
                return inner.map(twin).transpose();
            }
            StateKey::Gap { core, left } => {
                let core = self.after_items(core, used)?;
                core.map(|core| StateKey::Gap { core, left })
            }
            StateKey::Space(core) => {
                self.after_items(core, used)?.map(StateKey::Space)
            }
            StateKey::Array { array, place } => {
                let noted = self.noted(array, used)?;
                noted.map(|array| StateKey::Array { array, place })
            }
            _ => return Ok(Some(state)),
        };
        key.map(|key| self.table.intern(key)).transpose()
    }

    /// Whether a state of an array comes after a repetition.
    fn is_repeated(&self, mut state: StateId) -> bool {
        loop {
            match *self.table.key(state) {
                StateKey::Recorded(Recorded { inner, .. }) => state = inner,
                StateKey::Gap { core, .. } | StateKey::Space(core) => {
                    state = core;
                }
                StateKey::Array { array, .. } => {
                    return self.parts.arrays.get(array).repeated;
                }
                _ => return false,
            }
        }
    }

    /// What registers say of the frame of an item.
    pub(crate) fn watch_recorded(
        &self,
        frame: &Frame,
        state: Recorded,
    ) -> Watch {
        if state.checked {
            let is_dead = state.item == Some(Ends::New)
                && self.watch_string(frame, state.inner) == Watch::Dead;
            return if is_dead { Watch::Dead } else { Watch::AtEnd };
        }
        let (Some(ends), Some(memory)) = (state.item, &frame.memory) else {
            return Watch::Clear;
        };
        match (ends, state.kind) {
            (Ends::First, _) => Watch::Clear,
            (Ends::Any, _) | (_, Kind::Container) => Watch::AtEnd,
            (_, Kind::Literal) => watch_literal(memory, ends),
            (Ends::New, Kind::String) => self.watch_string(frame, state.inner),
            (Ends::New, Kind::Number) => {
                self.watch_number(memory, state.inner)
            }
            (Ends::Repeated, Kind::String) => {
                if guard::candidates(frame) == 0 {
                    Watch::Dead
                } else {
                    Watch::Watching
                }
            }
            (Ends::Repeated, Kind::Number) => {
                let mut used = memory.used.iter();
                if used.any(|form| canonical::number_text(form).is_some()) {
                    Watch::AtEnd
                } else {
                    Watch::Dead
                }
            }
        }
    }

    /// The bytes on which a frame of an item that is watched goes on being
    /// watched.
    pub(crate) fn watched_bytes_recorded(
        frame: &Frame,
        state: Recorded,
    ) -> [u64; 4] {
        match (state.item, state.kind) {
            (Some(Ends::First | Ends::New), Kind::String) => {
                guard::watched_bytes(frame)
            }
            _ => [u64::MAX; 4],
        }
    }

    fn watch_string(&self, frame: &Frame, inner: StateId) -> Watch {
        if guard::candidates(frame) == 0 {
            return Watch::Clear;
        }
        let Ok(row) = self.row(inner) else { return Watch::Watching };
        if let [range] = row.ranges()
            && (range.lo, range.hi) == (b'"', b'"')
        {
            // It can only end now.
            let used = guard::is_used(frame);
            return if used { Watch::Dead } else { Watch::Clear };
        }
        if inner.is_shared() {
            return Watch::Watching;
        }
        let &StateKey::String { spec, spelling } = self.table.key(inner)
        else {
            return Watch::Watching;
        };
        let Spelling::Between(tuple) = spelling else {
            return self.watch_within(frame);
        };
        let Ok(spec) = self.string_spec(spec) else { return Watch::Watching };
        let tuple = self.parts.tuples.get(tuple);
        match (spec.languages.first(), tuple.states[0]) {
            (Some(language), Some(need)) => {
                watch_language(frame, language, need, tuple.left)
            }
            _ => Watch::Watching,
        }
    }

    /// Whether every code point that the one being spelled may become leads
    /// to words that are all used.
    pub(crate) fn watch_within(&self, frame: &Frame) -> Watch {
        let mut pending = vec![frame.clone()];
        for _ in 0..MAX_SPELLINGS {
            let Some(frame) = pending.pop() else { return Watch::Dead };
            let Ok(row) = self.row(frame.state) else { break };
            for range in row.ranges() {
                let Step::Stay(to) = range.step else {
                    return Watch::Watching;
                };
                for byte in range.lo..=range.hi {
                    let mut next = frame.clone();
                    if self.advance(&mut next, byte, to).is_err() {
                        return Watch::Watching;
                    }
                    if self.is_within(next.state) {
                        pending.push(next);
                    } else if self.watch(&next) != Watch::Dead {
                        return Watch::Watching;
                    }
                }
            }
        }
        Watch::Watching
    }

    /// Whether a state is inside the spelling of a code point.
    fn is_within(&self, state: StateId) -> bool {
        if state.is_shared() {
            return false;
        }
        match *self.table.key(state) {
            StateKey::Recorded(Recorded { inner, .. }) => {
                self.is_within(inner)
            }
            StateKey::String { spelling, .. }
            | StateKey::Pattern { spelling, .. } => {
                !matches!(spelling, Spelling::Between(_))
            }
            _ => false,
        }
    }

    fn watch_number(&self, memory: &Memory, inner: StateId) -> Watch {
        let numbers = || {
            let used = memory.used.iter();
            used.filter(|form| canonical::number_text(form).is_some())
        };
        if numbers().next().is_none() {
            return Watch::Clear;
        }
        let spec = if inner.is_shared() {
            if !self.prelude.is_integer(inner) {
                // A number of any kind is given up only where it is zero.
                let zero = canonical::number(b"0");
                let is_used = numbers().any(|form| **form == *zero);
                let stays_zero = is_used && is_zero(&memory.partial);
                return if stays_zero { Watch::Dead } else { Watch::AtEnd };
            }
            None
        } else if let StateKey::Number { spec, .. } = self.table.key(inner) {
            Some(*spec)
        } else {
            return Watch::Watching;
        };
        let used = numbers().cloned().collect();
        let left = self.parts.numbers_left.intern(NumberLeft { spec, used });
        let left = left.and_then(|id| {
            let left = |left: &_| Ok(self.number_left(left));
            self.parts.numbers_left.derived(id, left)
        });
        let Ok(left) = left else { return Watch::Watching };
        let mut state = left.start();
        for &byte in &memory.partial {
            match left.step(&state, byte) {
                Some(next) => state = next,
                None => return Watch::Dead,
            }
        }
        Watch::Watching
    }

    fn number_left(&self, left: &NumberLeft) -> NumberSpec {
        let need = match left.spec {
            None => NumberFormula::Integer,
            Some(spec) => {
                let need = self.parts.numbers.get(spec)[0];
                self.algebra.lock().number_formula(need)
            }
        };
        let used: Vec<Decimal> = left
            .used
            .iter()
            .filter_map(|form| canonical::number_text(form)?.parse().ok())
            .collect();
        let others = NumberFormula::Not(Box::new(NumberFormula::In(used)));
        let need = NumberFormula::And(vec![need, others]);
        NumberSpec::new(&need, &[], self.policy.numbers.policy())
    }
}

/// The canonical form of the item that `callee` has read; `caller` has its
/// first byte.
fn item_form(caller: &Frame, callee: &Frame) -> Option<Vec<u8>> {
    let first = *caller.memory.as_ref()?.text.last()?;
    let memory = callee.memory.as_ref()?;
    Some(match Kind::of_first_byte(first) {
        Kind::String => canonical::string(&memory.partial),
        Kind::Number => canonical::number(&memory.partial),
        Kind::Literal => canonical::literal(first),
        Kind::Container => {
            let mut text = vec![first];
            push_rest(&mut text, callee);
            canonical::value(&text)
        }
    })
}

/// Adds the text of a value whose first byte is there already.
fn push_rest(text: &mut Vec<u8>, callee: &Frame) {
    let Some(&first) = text.last() else { return };
    let memory = callee.memory.as_deref();
    let partial = memory.map_or(&[][..], |memory| &memory.partial);
    match first {
        b'"' => {
            text.extend_from_slice(partial);
            text.push(b'"');
        }
        b'n' => text.extend_from_slice(b"ull"),
        b't' => text.extend_from_slice(b"rue"),
        b'f' => text.extend_from_slice(b"alse"),
        b'[' | b'{' => {
            if let Some(memory) = memory {
                text.extend_from_slice(&memory.text);
            }
            text.push(if first == b'[' { b']' } else { b'}' });
        }
        _ => text.extend_from_slice(partial.get(1..).unwrap_or_default()),
    }
}

fn watch_literal(memory: &Memory, ends: Ends) -> Watch {
    let Some(&first) = memory.partial.first() else { return Watch::AtEnd };
    let form = canonical::literal(first);
    let repeats = memory.used.iter().any(|used| **used == *form);
    if repeats == (ends == Ends::Repeated) {
        Watch::AtEnd
    } else {
        Watch::Dead
    }
}

/// Whether the words that complete the one being read within a window are
/// all used.
pub(crate) fn watch_language(
    frame: &Frame,
    language: &Language,
    state: regular::StateId,
    window: Window,
) -> Watch {
    let (least, most) = window.lengths();
    let used = guard::completions(frame)
        .filter(|rest| accepts(language, state, rest, least..=most))
        .count() as u64;
    match language.count_words_within(state, least, most, used + 1) {
        WordCount::Exactly(n) if n <= used => Watch::Dead,
        _ => Watch::Watching,
    }
}

fn accepts(
    language: &Language,
    mut state: regular::StateId,
    rest: &[u8],
    lengths: RangeInclusive<u64>,
) -> bool {
    let Ok(rest) = std::str::from_utf8(rest) else { return false };
    if !lengths.contains(&(rest.chars().count() as u64)) {
        return false;
    }
    for character in rest.chars() {
        match language.step(state, character) {
            Ok(Some(next)) => state = next,
            _ => return false,
        }
    }
    language.is_accepting(state)
}

/// Whether the text of a number that has begun can only be zero.
fn is_zero(text: &[u8]) -> bool {
    let mut mantissa = text.iter();
    mantissa.any(|byte| matches!(byte, b'e' | b'E'))
        && text
            .iter()
            .take_while(|byte| !matches!(byte, b'e' | b'E'))
            .all(|byte| matches!(byte, b'-' | b'0' | b'.'))
}
