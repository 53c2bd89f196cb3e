//! The machine of a schema: frames over bytes, built lazily.
//!
//! Each value that a schema constrains is one frame; its parent asks it a
//! [`values::Question`] (a formula that it must satisfy, and goals whose
//! verdicts the parent wants) and goes on with the verdicts that it returns.
//! Whatever is not constrained runs in the shared [`prelude`].

mod algebra;
mod arrays;
mod canonical;
mod checked;
mod classes;
mod describe;
mod distinct;
mod ending;
mod exact;
mod general;
mod guard;
mod indent;
mod intern;
mod keys;
mod lists;
mod names;
mod needs;
mod objects;
mod policy;
mod prelude;
mod sites;
mod strings;
mod text;
mod values;

use std::sync::Arc;

use maskwright_grammar_core::{
    automaton::{
        Automaton, AutomatonError, Frame, Outcome, Resumed, Row, RowBuilder,
        StateId, StateTable, Step, Watch,
    },
    regular::Language,
};

pub use self::policy::{Escapes, Numbers, Order, TextPolicy, Whitespace};
use self::{
    algebra::Algebra,
    arrays::{Array, ArrayInfo, ArraySite},
    checked::OpenOutcome,
    distinct::{NumberLeft, Recorded},
    ending::{Ending, NumberEnd},
    indent::Indented,
    intern::Interner,
    keys::{KeyClass, Viable},
    lists::StringList,
    names::NameRange,
    objects::{Object, ObjectInfo, ObjectSite, Pending, PendingInfo},
    prelude::{NOTHING, Prelude, UNBOUNDED, Window, fill_window, gap_row},
    strings::{StringSpec, Tuple},
    text::{Edge, Spelling},
    values::{Question, QuestionId},
};
use crate::{
    error::SchemaError, formula::Formulas, number::NumberState,
    viability::Budgets,
};

/// How many states one machine may have.
const MAX_STATES: usize = 1 << 22;
/// How many of each part of states one machine may have.
const MAX_PARTS: usize = 1 << 22;

/// The key of a state.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum StateKey {
    /// The start of the text, whose value is asked a question.
    Root(QuestionId),
    /// Waiting for that value, or done with it.
    RootEnd,
    /// A place in an object.
    Object { object: u32, place: Place },
    /// An object that waits for a key.
    WaitKey { object: u32 },
    /// An object after a key, before its colon or its value.
    Member { pending: u32, place: Place },
    /// An object that waits for the value of a key. The verdicts are known
    /// before the value is read where its type alone decides.
    WaitValue { pending: u32, known: Option<u32> },
    /// A place in an array.
    Array { array: u32, place: Place },
    /// An array that waits for an item.
    WaitItem { array: u32, known: Option<u32> },
    /// Inside a key of a site without patterns.
    Name { site: u32, viable: u32, spelling: Spelling<NameRange> },
    /// Inside a key of a site with patterns.
    Pattern { site: u32, viable: u32, spelling: Spelling<u32> },
    /// Inside a string of a list.
    Listed { list: u32, spelling: Spelling<NameRange> },
    /// Inside a string that is asked something.
    String { spec: u32, spelling: Spelling<u32> },
    /// Inside a string of any content, a bound of which is far; its frame
    /// counts how far. `bounds` are those of the whole string.
    Window { bounds: Window, at: Window, spelling: Spelling<()> },
    /// Inside a number that is asked something.
    Number { spec: u32, state: NumberState },
    /// A place where up to `left` bytes of white space may stand.
    Gap { core: StateId, left: u32 },
    /// One space, and then a place.
    Space(StateId),
    /// Another state, whose frame keeps what it reads.
    Recorded(Recorded),
    /// A place in a container from where it ends soon.
    Ending(Ending),
    /// Another state, in a text of many lines.
    Indented(Indented),
}

/// The places in a container, and in a member.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Place {
    /// After the opening brace or bracket.
    Open,
    /// After a member or an item.
    After,
    /// Before a member or an item, after a comma; or before a value, after a
    /// colon.
    Before,
}

/// The machine of one schema under one policy.
#[derive(Debug)]
pub(crate) struct Machine {
    table: StateTable<StateKey>,
    start: StateId,
    prelude: Arc<Prelude>,
    /// The prelude again, as the runtime wants it.
    shared: Arc<dyn Automaton>,
    policy: TextPolicy,
    algebra: Algebra,
    parts: Parts,
}

/// What states are made of, interned.
#[derive(Debug)]
struct Parts {
    questions: Interner<Question, values::Answers>,
    /// The verdicts of goals, bit by bit; number 0 is "none".
    outcomes: Interner<u64>,
    open: Interner<OpenOutcome>,
    object_sites: Interner<QuestionId, ObjectSite>,
    objects: Interner<Object, ObjectInfo>,
    /// With the bits of the names, as rows hold them.
    viables: Interner<Viable, Arc<[u64]>>,
    pendings: Interner<Pending, PendingInfo>,
    array_sites: Interner<QuestionId, ArraySite>,
    arrays: Interner<Array, ArrayInfo>,
    /// The languages of keys, by site and what may come.
    keys: Interner<(u32, u32), Box<[Language]>>,
    tuples: Interner<Tuple, Box<[Edge<u32>]>>,
    lists: Interner<algebra::Typed, Option<StringList>>,
    strings: Sites<StringSpec>,
    numbers: Sites<crate::number::NumberSpec>,
    numbers_left: Interner<NumberLeft, crate::number::NumberSpec>,
    /// The same numbers with each answer to their goals.
    number_answers: Interner<u32, Box<[crate::number::NumberSpec]>>,
    number_ends: Interner<(u32, NumberState), Box<[NumberEnd]>>,
}

/// What is derived from the typed formulas of a question (need first).
type Sites<T> = Interner<Box<[algebra::Typed]>, T>;

impl Parts {
    fn new() -> Parts {
        let parts = Parts {
            questions: Interner::new(MAX_PARTS),
            outcomes: Interner::new(MAX_PARTS),
            open: Interner::new(MAX_PARTS),
            object_sites: Interner::new(MAX_PARTS),
            objects: Interner::new(MAX_PARTS),
            viables: Interner::new(MAX_PARTS),
            pendings: Interner::new(MAX_PARTS),
            array_sites: Interner::new(MAX_PARTS),
            arrays: Interner::new(MAX_PARTS),
            keys: Interner::new(MAX_PARTS),
            tuples: Interner::new(MAX_PARTS),
            lists: Interner::new(MAX_PARTS),
            strings: Interner::new(MAX_PARTS),
            numbers: Interner::new(MAX_PARTS),
            numbers_left: Interner::new(MAX_PARTS),
            number_answers: Interner::new(MAX_PARTS),
            number_ends: Interner::new(MAX_PARTS),
        };
        // Number 0 is "no verdict", which is what the prelude returns.
        parts.outcomes.intern(0).expect("an empty table has room");
        parts
    }
}

impl Machine {
    /// Creates the machine of a schema.
    pub(crate) fn new(
        formulas: Formulas,
        policy: TextPolicy,
        budgets: Budgets,
    ) -> Result<Machine, SchemaError> {
        let root = formulas.root();
        let prelude = Prelude::of(policy);
        let shared = Arc::clone(&prelude);
        let mut machine = Machine {
            table: StateTable::new(MAX_STATES),
            start: StateId(0),
            prelude,
            shared,
            policy,
            algebra: Algebra::new(formulas, budgets)?,
            parts: Parts::new(),
        };
        let question = machine.question(root, Box::default());
        machine.start = question
            .and_then(|question| {
                let root = machine.table.intern(StateKey::Root(question))?;
                machine.text_start(root)
            })
            .expect("empty tables have room");
        Ok(machine)
    }

    fn build_number(
        &self,
        spec: u32,
        state: &NumberState,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let number = self.number_spec(spec)?;
        for (byte, state) in number.live_bytes(state) {
            let next = self.table.intern(StateKey::Number { spec, state })?;
            row.byte(byte, Step::Stay(next));
        }
        if number.may_end(state) {
            let verdicts = number.verdicts(state);
            row.finish(Outcome(self.parts.outcomes.intern(verdicts)?));
        }
        Ok(())
    }

    fn build(&self, key: &StateKey) -> Result<Row, AutomatonError> {
        let mut row = RowBuilder::new();
        match *key {
            StateKey::Root(question) => {
                let end = self.table.intern(StateKey::RootEnd)?;
                self.calls(question, &mut |_| Ok(end), &mut row)?;
            }
            StateKey::RootEnd => {
                row.finish(NOTHING);
            }
            StateKey::Object { object, place } => {
                self.build_object(object, place, &mut row)?;
            }
            StateKey::Member { pending, place } => {
                self.build_member(pending, place, &mut row)?;
            }
            StateKey::Array { array, place } => {
                self.build_array(array, place, &mut row)?;
            }
            // Nothing can be read while a callee is running.
            StateKey::WaitKey { .. }
            | StateKey::WaitValue { .. }
            | StateKey::WaitItem { .. } => {}
            StateKey::Name { site, viable, spelling } => {
                return self.build_name(site, viable, spelling);
            }
            StateKey::Pattern { site, viable, spelling } => {
                return self.build_pattern(site, viable, spelling);
            }
            StateKey::Listed { list, spelling } => {
                self.build_listed(list, spelling, &mut row)?;
            }
            StateKey::String { spec, spelling } => {
                self.build_string(spec, spelling, &mut row)?;
            }
            StateKey::Window { bounds, at, spelling } => {
                self.build_window(bounds, at, spelling, &mut row)?;
            }
            StateKey::Number { spec, ref state } => {
                self.build_number(spec, state, &mut row)?;
            }
            StateKey::Gap { core, left } => {
                let more = match left {
                    1 => core,
                    UNBOUNDED => self.table.intern(key.clone())?,
                    left => {
                        let left = left - 1;
                        self.table.intern(StateKey::Gap { core, left })?
                    }
                };
                gap_row(self.row(core)?, core, left, more, &mut row);
            }
            StateKey::Space(then) => {
                row.byte(b' ', Step::Stay(then));
                if self.row(then)?.registers {
                    row.registers();
                }
            }
            StateKey::Recorded(state) => {
                self.build_recorded(state, &mut row)?;
            }
            StateKey::Ending(ending) => self.build_ending(ending, &mut row)?,
            StateKey::Indented(state) => {
                self.build_indented(state, &mut row)?;
            }
        }
        Ok(row.build())
    }

    fn build_object(
        &self,
        object: u32,
        place: Place,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let info = self.object_info(object)?;
        let site = self.parts.objects.get(object).site;
        if self.object_site(site)?.is_open() {
            row.registers();
        }
        if place != Place::Before
            && let Some(outcome) = info.close
        {
            row.byte(b'}', Step::Return(Outcome(outcome)));
        }
        let Some(viable) = info.viable else {
            return Ok(());
        };
        if place == Place::After {
            let before = StateKey::Object { object, place: Place::Before };
            row.byte(b',', Step::Stay(self.separated(b',', before)?));
        } else {
            self.call_key(object, viable, row)?;
        }
        Ok(())
    }

    /// Adds the call of one of the keys that may come in an object.
    fn call_key(
        &self,
        object: u32,
        viable: u32,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let site = self.parts.objects.get(object).site;
        let resume = self.table.intern(StateKey::WaitKey { object })?;
        let callee = self.key_start(site, viable)?;
        row.byte(b'"', Step::Call { resume, callee });
        Ok(())
    }

    fn build_member(
        &self,
        pending: u32,
        place: Place,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let object = self.parts.pendings.get(pending).object;
        let site = self.parts.objects.get(object).site;
        if self.object_site(site)?.is_open() {
            row.registers();
        }
        if place == Place::After {
            let before = StateKey::Member { pending, place: Place::Before };
            row.byte(b':', Step::Stay(self.separated(b':', before)?));
            return Ok(());
        }
        let question = self.pending_info(pending)?.question;
        let mut wait =
            |known| self.table.intern(StateKey::WaitValue { pending, known });
        self.calls(question, &mut wait, row)
    }

    fn build_array(
        &self,
        array: u32,
        place: Place,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let info = self.array_info(array)?;
        if self.compares(array)? {
            row.registers();
        }
        if place != Place::Before
            && let Some(outcome) = info.close
        {
            row.byte(b']', Step::Return(Outcome(outcome)));
        }
        let Some(question) = info.question else {
            return Ok(());
        };
        if place == Place::After {
            let before = StateKey::Array { array, place: Place::Before };
            row.byte(b',', Step::Stay(self.separated(b',', before)?));
            return Ok(());
        }
        let mut wait =
            |known| self.table.intern(StateKey::WaitItem { array, known });
        match info.ends {
            None => self.calls(question, &mut wait, row),
            Some(ends) => self.item_calls(question, ends, &mut wait, row),
        }
    }

    fn build_window(
        &self,
        bounds: Window,
        at: Window,
        spelling: Spelling<()>,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let mut intern = |spelling, next: Window| {
            let at = at.far_or(next);
            self.table.intern(StateKey::Window { bounds, at, spelling })
        };
        let escapes = self.policy.escapes;
        fill_window(spelling, at, escapes, NOTHING, &mut intern, row)?;
        row.registers();
        if spelling == Spelling::Between(()) {
            row.hint(maskwright_grammar_core::automaton::Hint::Window {
                base: self.prelude.string(Window::FREE)?,
                least: at.least,
                most: at.most,
            });
        }
        Ok(())
    }

    /// A place before which white space may stand.
    fn gap(&self, place: StateKey) -> Result<StateId, AutomatonError> {
        let core = self.table.intern(place)?;
        match self.policy.whitespace.max() {
            0 => Ok(core),
            left => self.table.intern(StateKey::Gap { core, left }),
        }
    }

    /// A place after a comma or a colon.
    fn separated(
        &self,
        byte: u8,
        place: StateKey,
    ) -> Result<StateId, AutomatonError> {
        if self.policy.whitespace.is_spaced_after(byte) {
            let core = self.table.intern(place)?;
            self.table.intern(StateKey::Space(core))
        } else {
            self.gap(place)
        }
    }

    /// The verdicts of a callee: those that its type decided, or those that
    /// it returned.
    fn verdicts(&self, known: Option<u32>, outcome: Outcome) -> u64 {
        let returned = outcome.0 & !Outcome::GUARDED_BIT;
        *self.parts.outcomes.get(known.unwrap_or(returned))
    }
}

impl Automaton for Machine {
    fn start(&self) -> StateId {
        self.start
    }

    fn row(&self, state: StateId) -> Result<&Row, AutomatonError> {
        if state.is_shared() {
            return self.prelude.row(state);
        }
        self.table.row(state, |key| self.build(key))
    }

    fn resume(
        &self,
        resume: StateId,
        outcome: Outcome,
    ) -> Result<Resumed, AutomatonError> {
        if resume.is_shared() {
            return self.prelude.resume(resume, outcome);
        }
        if let Some(states) = self.resume_open(resume, outcome)? {
            return Ok(states);
        }
        let next = match *self.table.key(resume) {
            StateKey::WaitKey { object } => {
                let key = KeyClass::of_outcome(outcome);
                let pending =
                    self.parts.pendings.intern(Pending { object, key })?;
                Some(StateKey::Member { pending, place: Place::After })
            }
            StateKey::WaitValue { pending, known } => {
                let verdicts = self.verdicts(known, outcome);
                self.object_after(pending, verdicts)?.map(|object| {
                    StateKey::Object { object, place: Place::After }
                })
            }
            StateKey::WaitItem { array, known } => {
                let verdicts = self.verdicts(known, outcome);
                let arrays = self.arrays_after(array, verdicts)?;
                let after = |array| {
                    self.gap(StateKey::Array { array, place: Place::After })
                };
                return arrays.into_iter().map(after).collect();
            }
            StateKey::Recorded(state) => {
                return self.resume_recorded(state, outcome);
            }
            StateKey::Indented(state) => {
                return self.resume_indented(state, outcome);
            }
            _ => return Ok(Resumed::from([resume])),
        };
        let state = next.map(|key| self.gap(key)).transpose()?;
        Ok(state.into_iter().collect())
    }

    fn shared(&self) -> Option<&Arc<dyn Automaton>> {
        Some(&self.shared)
    }

    fn enter(&self, caller: &Frame, callee: StateId) -> Frame {
        if callee.is_shared() {
            return self.prelude.enter(caller, callee);
        }
        match *self.table.key(callee) {
            StateKey::Name { .. } | StateKey::Pattern { .. } => {
                guard::enter_key(caller, callee)
            }
            StateKey::Window { bounds, .. } => Frame {
                counts: [bounds.least, bounds.most],
                ..Frame::new(callee)
            },
            StateKey::Recorded(state) => {
                self.enter_recorded(caller, callee, state)
            }
            StateKey::Indented(state) => {
                Frame { state: callee, ..self.enter(caller, state.inner) }
            }
            _ => Frame::new(callee),
        }
    }

    fn enters_alike(&self, callee: StateId) -> bool {
        if callee.is_shared() {
            return self.prelude.enters_alike(callee);
        }
        match *self.table.key(callee) {
            StateKey::Name { .. }
            | StateKey::Pattern { .. }
            | StateKey::Recorded(_) => false,
            StateKey::Indented(state) => self.enters_alike(state.inner),
            _ => true,
        }
    }

    fn advance(
        &self,
        frame: &mut Frame,
        byte: u8,
        to: StateId,
    ) -> Result<(), AutomatonError> {
        if frame.state.is_shared() {
            return self.prelude.advance(frame, byte, to);
        }
        match *self.table.key(frame.state) {
            StateKey::Name { .. } | StateKey::Pattern { .. } => {
                guard::advance_key(frame, byte);
            }
            StateKey::Recorded(state) => {
                return self.advance_recorded(frame, state, byte, to);
            }
            StateKey::Indented(state) => {
                return self.advance_indented(frame, state, byte, to);
            }
            _ => {}
        }
        frame.state = to;
        if !to.is_shared()
            && let StateKey::Window {
                bounds,
                spelling: spelling @ Spelling::Between(()),
                ..
            } = *self.table.key(to)
        {
            let [least, most] = frame.counts;
            let left = Window { least, most }.after_one();
            frame.counts = [left.least, left.most];
            let at = left.clamped();
            frame.state = if at.is_far() {
                self.table.intern(StateKey::Window { bounds, at, spelling })?
            } else {
                self.prelude.string(at)?
            };
        }
        if !to.is_shared()
            && let StateKey::WaitItem { .. } = self.table.key(to)
        {
            Machine::begin_item(frame, byte);
        }
        Ok(())
    }

    fn leave(
        &self,
        caller: &Frame,
        callee: &Frame,
        outcome: Outcome,
        to: StateId,
    ) -> Result<Option<Frame>, AutomatonError> {
        if let StateKey::Indented(state) = *self.table.key(caller.state) {
            return self.leave_indented(caller, state, callee, outcome, to);
        }
        let given = outcome;
        let Some(mut outcome) = self.decide(callee, given)? else {
            return Ok(None);
        };
        if outcome != given {
            if !self.resume(caller.state, outcome)?.contains(&to) {
                return Ok(None);
            }
            if self.compares_items(caller.state)? {
                outcome.0 |= Outcome::GUARDED_BIT;
            }
        }
        Ok(match *self.table.key(caller.state) {
            StateKey::WaitItem { .. } if outcome.is_guarded() => {
                self.leave_item(caller, callee, to)?
            }
            StateKey::Recorded(state) => {
                self.leave_recorded(caller, state, callee, outcome, to)?
            }
            _ => guard::leave(caller, callee, outcome, to),
        })
    }

    fn watch(&self, frame: &Frame) -> Watch {
        if frame.state.is_shared() {
            return self.prelude.watch(frame);
        }
        match *self.table.key(frame.state) {
            StateKey::Name { .. } => guard::watch_key(frame),
            StateKey::Pattern { site, viable, spelling } => {
                self.watch_pattern(frame, site, viable, spelling)
            }
            StateKey::Recorded(state) => self.watch_recorded(frame, state),
            StateKey::Indented(state) => self.watch(&state.inner_frame(frame)),
            _ => Watch::Clear,
        }
    }

    fn watched_bytes(&self, frame: &Frame) -> [u64; 4] {
        if frame.state.is_shared() {
            return self.prelude.watched_bytes(frame);
        }
        match *self.table.key(frame.state) {
            StateKey::Name { .. } | StateKey::Pattern { .. } => {
                guard::watched_bytes(frame)
            }
            StateKey::Recorded(state) => {
                Machine::watched_bytes_recorded(frame, state)
            }
            StateKey::Indented(state) => {
                self.watched_bytes(&state.inner_frame(frame))
            }
            _ => [u64::MAX; 4],
        }
    }

    fn refused_words(&self, frame: &Frame, on: &mut dyn FnMut(&[u8])) -> bool {
        if frame.state.is_shared() {
            return self.prelude.refused_words(frame, on);
        }
        match *self.table.key(frame.state) {
            StateKey::Name { .. } => guard::refused_words(frame, on),
            StateKey::Indented(state) => {
                self.refused_words(&state.inner_frame(frame), on)
            }
            _ => false,
        }
    }

    fn may_watch(&self, state: StateId) -> bool {
        if state.is_shared() {
            return self.prelude.may_watch(state);
        }
        match self.table.key(state) {
            StateKey::Name { .. } | StateKey::Pattern { .. } => true,
            StateKey::Recorded(state) => state.is_item() || state.checked,
            StateKey::Indented(state) => self.may_watch(state.inner),
            _ => false,
        }
    }

    fn ending(&self, state: StateId) -> Result<StateId, AutomatonError> {
        if state.is_shared() {
            self.prelude.ending(state)
        } else {
            self.ending_of(state)
        }
    }

    fn exact(&self, state: StateId) -> bool {
        self.is_exact(state).unwrap_or(false)
    }

    fn memory_usage(&self) -> usize {
        size_of::<Machine>()
            + self.table.memory_usage()
            + self.algebra.memory_usage()
    }

    fn describe(&self, state: StateId) -> String {
        self.describe_state(state)
    }
}
