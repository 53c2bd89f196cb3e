//! The machine of unconstrained JSON, shared by every schema.
//!
//! Free strings, literals, unbounded numbers and any-value containers do not
//! depend on the schema that they stand in. They are one machine a policy,
//! so that what a runtime derives from its states (masks above all) is
//! computed once a vocabulary, not once a schema. Its states carry
//! [`StateId::SHARED_BIT`] and lead to states of its own only.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use maskwright_grammar_core::{
    automaton::{
        Automaton, AutomatonError, Frame, HORIZON, Hint, Outcome, Resumed,
        Row, RowBuilder, StateId, StateTable, Step, Watch,
    },
    util::FxHashMap,
};

use super::{
    guard,
    policy::{Escapes, Order, TextPolicy},
    text::{Edge, Speller, Spelling},
};
use crate::number::{NumberFormula, NumberSpec, NumberState};

/// How many states one prelude may hold. Numbers have a handful, strings a
/// window's worth for each pair of distances to their bounds.
const MAX_STATES: usize = 1 << 24;

/// The outcome of everything that was asked no question.
pub(crate) const NOTHING: Outcome = Outcome(0);
/// The outcome of a key that no name and no pattern of the object knows.
pub(crate) const OTHER_KEY: Outcome = Outcome(Outcome::GUARDED_BIT);
/// "No upper bound".
pub(crate) const UNBOUNDED: u32 = u32::MAX;

/// The bounds of a string, in code points still to be read.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Window {
    pub(crate) least: u32,
    pub(crate) most: u32,
}

impl Window {
    pub(crate) const FREE: Window = Window { least: 0, most: UNBOUNDED };

    /// Whether a bound is further away than a token can reach.
    pub(crate) fn is_far(self) -> bool {
        self.least > HORIZON || (self.most > HORIZON && self.most != UNBOUNDED)
    }

    /// The least and the greatest length, as languages count them.
    pub(crate) fn lengths(self) -> (u64, u64) {
        let most = match self.most {
            UNBOUNDED => u64::MAX,
            most => most.into(),
        };
        (self.least.into(), most)
    }

    /// The window after one more code point.
    pub(crate) fn after_one(self) -> Window {
        let most = match self.most {
            UNBOUNDED => UNBOUNDED,
            most => most.saturating_sub(1),
        };
        Window { least: self.least.saturating_sub(1), most }
    }

    /// The window as a state sees it: what is further than a token can reach
    /// is all alike.
    pub(crate) fn clamped(self) -> Window {
        let most = match self.most {
            UNBOUNDED => UNBOUNDED,
            most => most.min(HORIZON + 1),
        };
        Window { least: self.least.min(HORIZON + 1), most }
    }

    /// `next`, which comes after this window, but with the far bounds of this
    /// one: within one token they stay far.
    pub(crate) fn far_or(self, next: Window) -> Window {
        let far = |now, next| {
            if now > HORIZON { now } else { next }
        };
        Window {
            least: far(self.least, next.least),
            most: far(self.most, next.most),
        }
    }
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum StateKey {
    /// The start of a text that is any JSON value.
    Root,
    /// The same text, waiting for its value, or done.
    RootEnd,
    /// A string of any content.
    String { spelling: Spelling<()>, window: Window },
    /// A key of any content, which must not have been used before.
    Key(Spelling<()>),
    /// `true`, `false` or `null` from its byte `at` on.
    Literal { word: &'static str, at: u8 },
    /// Any number.
    Number(NumberState),
    /// Any integer.
    Integer(NumberState),
    /// The end of a number that has one only.
    End(Box<[u8]>),
    /// A place in a container.
    Place(Place),
    /// A place where up to `left` bytes of white space may stand.
    Gap { core: StateId, left: u32 },
    /// One space, and then a place.
    Space(StateId),
}

/// The places in a container of any content.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Place {
    ObjectOpen,
    AfterKey,
    BeforeValue,
    AfterMember,
    BeforeMember,
    ArrayOpen,
    AfterItem,
    BeforeItem,
}

/// The first bytes of a value, and the states after them.
type Starts = Box<[(u8, StateId)]>;

/// The shared machine of one policy.
#[derive(Debug)]
pub(crate) struct Prelude {
    root: StateId,
    table: StateTable<StateKey>,
    policy: TextPolicy,
    number: NumberSpec,
    integer: NumberSpec,
    /// The states after the first byte of a number, and of an integer.
    starts: [OnceLock<Starts>; 2],
}

impl Prelude {
    /// Returns the prelude of `policy`; the order of members makes no
    /// difference to it, nor does how far lines are indented.
    pub(crate) fn of(policy: TextPolicy) -> Arc<Prelude> {
        static PRELUDES: OnceLock<Mutex<FxHashMap<TextPolicy, Arc<Prelude>>>> =
            OnceLock::new();
        let policy = TextPolicy {
            order: Order::Any,
            whitespace: policy.whitespace.on_one_line(),
            ..policy
        };
        let preludes = PRELUDES.get_or_init(Mutex::default);
        let mut preludes =
            preludes.lock().unwrap_or_else(PoisonError::into_inner);
        let prelude = preludes.entry(policy).or_insert_with(|| {
            let spec = |need: &NumberFormula| {
                NumberSpec::new(need, &[], policy.numbers.policy())
            };
            let table = StateTable::new_shared(MAX_STATES);
            let root = table.intern(StateKey::Root);
            Arc::new(Prelude {
                root: root.expect("a table of one state is not full"),
                table,
                policy,
                number: spec(&NumberFormula::True),
                integer: spec(&NumberFormula::Integer),
                starts: [OnceLock::new(), OnceLock::new()],
            })
        });
        Arc::clone(prelude)
    }

    /// The state after the opening quote of a string in `window`, which must
    /// not be far.
    pub(crate) fn string(
        &self,
        window: Window,
    ) -> Result<StateId, AutomatonError> {
        self.string_at(Spelling::Between(()), window)
    }

    pub(crate) fn string_at(
        &self,
        spelling: Spelling<()>,
        window: Window,
    ) -> Result<StateId, AutomatonError> {
        self.table.intern(StateKey::String { spelling, window })
    }

    /// The state inside a key of any content.
    pub(crate) fn key_at(
        &self,
        spelling: Spelling<()>,
    ) -> Result<StateId, AutomatonError> {
        self.table.intern(StateKey::Key(spelling))
    }

    /// The state after the first byte of a literal.
    pub(crate) fn literal(
        &self,
        word: &'static str,
    ) -> Result<StateId, AutomatonError> {
        self.table.intern(StateKey::Literal { word, at: 1 })
    }

    /// The state after the opening bracket of any array.
    pub(crate) fn array(&self) -> Result<StateId, AutomatonError> {
        self.gap(Place::ArrayOpen)
    }

    /// The state after the opening brace of any object.
    pub(crate) fn object(&self) -> Result<StateId, AutomatonError> {
        self.gap(Place::ObjectOpen)
    }

    /// The first bytes of any number (or integer) and the states after them.
    pub(crate) fn number(
        &self,
        integer: bool,
    ) -> Result<&[(u8, StateId)], AutomatonError> {
        let known = &self.starts[usize::from(integer)];
        if let Some(known) = known.get() {
            return Ok(known);
        }
        let (spec, key): (_, fn(NumberState) -> StateKey) = if integer {
            (&self.integer, StateKey::Integer)
        } else {
            (&self.number, StateKey::Number)
        };
        let starts: Result<Starts, AutomatonError> = spec
            .live_bytes(&spec.start())
            .into_iter()
            .map(|(byte, next)| Ok((byte, self.table.intern(key(next))?)))
            .collect();
        let starts = starts?;
        Ok(known.get_or_init(|| starts))
    }

    /// Whether a state is inside an integer.
    pub(crate) fn is_integer(&self, state: StateId) -> bool {
        matches!(self.table.key(state), StateKey::Integer(_))
    }

    /// A place before which white space may stand.
    fn gap(&self, place: Place) -> Result<StateId, AutomatonError> {
        let core = self.table.intern(StateKey::Place(place))?;
        match self.policy.whitespace.max() {
            0 => Ok(core),
            left => self.table.intern(StateKey::Gap { core, left }),
        }
    }

    /// A place after a comma or a colon.
    fn separated(
        &self,
        byte: u8,
        place: Place,
    ) -> Result<StateId, AutomatonError> {
        if self.policy.whitespace.is_spaced_after(byte) {
            let core = self.table.intern(StateKey::Place(place))?;
            self.table.intern(StateKey::Space(core))
        } else {
            self.gap(place)
        }
    }

    fn build(&self, key: &StateKey) -> Result<Row, AutomatonError> {
        let mut row = RowBuilder::new();
        match *key {
            StateKey::Root => {
                let end = self.table.intern(StateKey::RootEnd)?;
                self.any_value(end, &mut row)?;
            }
            StateKey::RootEnd => {
                row.finish(NOTHING);
            }
            StateKey::String { spelling, window } => {
                self.build_string(spelling, window, &mut row)?;
            }
            StateKey::Key(spelling) => {
                let mut intern = |next, _| self.key_at(next);
                let policy = self.policy;
                fill_window(
                    spelling,
                    Window::FREE,
                    policy.escapes,
                    OTHER_KEY,
                    &mut intern,
                    &mut row,
                )?;
                row.registers();
            }
            StateKey::Literal { word, at } => {
                let rest = &word.as_bytes()[usize::from(at)..];
                let step = if rest.len() == 1 {
                    Step::Return(NOTHING)
                } else {
                    let next = StateKey::Literal { word, at: at + 1 };
                    Step::Stay(self.table.intern(next)?)
                };
                row.byte(rest[0], step);
            }
            StateKey::Number(ref state) => {
                self.build_number(
                    &self.number,
                    state,
                    StateKey::Number,
                    &mut row,
                )?;
            }
            StateKey::Integer(ref state) => {
                self.build_number(
                    &self.integer,
                    state,
                    StateKey::Integer,
                    &mut row,
                )?;
            }
            StateKey::End(ref left) => match left.split_first() {
                Some((&first, rest)) => {
                    let next = StateKey::End(rest.into());
                    row.byte(first, Step::Stay(self.table.intern(next)?));
                }
                None => {
                    row.finish(NOTHING);
                }
            },
            StateKey::Place(place) => self.build_place(place, &mut row)?,
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
        }
        Ok(row.build())
    }

    fn build_string(
        &self,
        spelling: Spelling<()>,
        window: Window,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        fill_window(
            spelling,
            window,
            self.policy.escapes,
            NOTHING,
            &mut |next, window| self.string_at(next, window),
            row,
        )?;
        if window != Window::FREE && spelling == Spelling::Between(()) {
            row.hint(Hint::Window {
                base: self.string(Window::FREE)?,
                least: window.least,
                most: window.most,
            });
        }
        Ok(())
    }

    fn build_number(
        &self,
        spec: &NumberSpec,
        state: &NumberState,
        key: fn(NumberState) -> StateKey,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        for (byte, next) in spec.live_bytes(state) {
            row.byte(byte, Step::Stay(self.table.intern(key(next))?));
        }
        if spec.may_end(state) {
            row.finish(NOTHING);
        }
        Ok(())
    }

    fn build_place(
        &self,
        place: Place,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        match place {
            Place::ObjectOpen => {
                row.byte(b'}', Step::Return(NOTHING)).registers();
                self.member(row)
            }
            Place::BeforeMember => {
                row.registers();
                self.member(row)
            }
            Place::AfterKey => {
                let next = self.separated(b':', Place::BeforeValue)?;
                row.byte(b':', Step::Stay(next)).registers();
                Ok(())
            }
            Place::BeforeValue => {
                row.registers();
                self.any_value(self.gap(Place::AfterMember)?, row)
            }
            Place::AfterMember => {
                let next = self.separated(b',', Place::BeforeMember)?;
                row.byte(b',', Step::Stay(next));
                row.byte(b'}', Step::Return(NOTHING)).registers();
                Ok(())
            }
            Place::ArrayOpen => {
                row.byte(b']', Step::Return(NOTHING));
                self.any_value(self.gap(Place::AfterItem)?, row)
            }
            Place::AfterItem => {
                let next = self.separated(b',', Place::BeforeItem)?;
                row.byte(b',', Step::Stay(next));
                row.byte(b']', Step::Return(NOTHING));
                Ok(())
            }
            Place::BeforeItem => {
                self.any_value(self.gap(Place::AfterItem)?, row)
            }
        }
    }

    fn member(&self, row: &mut RowBuilder) -> Result<(), AutomatonError> {
        let resume = self.gap(Place::AfterKey)?;
        let callee = self.key_at(Spelling::Between(()))?;
        row.byte(b'"', Step::Call { resume, callee });
        Ok(())
    }

    /// Adds the calls of any value, after which the caller is in `resume`.
    pub(crate) fn any_value(
        &self,
        resume: StateId,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let mut call = |byte, callee| {
            row.byte(byte, Step::Call { resume, callee });
        };
        call(b'"', self.string(Window::FREE)?);
        call(b'{', self.object()?);
        call(b'[', self.array()?);
        call(b't', self.literal("true")?);
        call(b'f', self.literal("false")?);
        call(b'n', self.literal("null")?);
        for &(byte, callee) in self.number(false)? {
            call(byte, callee);
        }
        Ok(())
    }
}

impl Automaton for Prelude {
    fn start(&self) -> StateId {
        self.root
    }

    fn row(&self, state: StateId) -> Result<&Row, AutomatonError> {
        self.table.row(state, |key| self.build(key))
    }

    /// A caller waits in the very state in which it goes on.
    fn resume(
        &self,
        resume: StateId,
        _: Outcome,
    ) -> Result<Resumed, AutomatonError> {
        Ok(Resumed::from([resume]))
    }

    fn enter(&self, caller: &Frame, callee: StateId) -> Frame {
        match self.table.key(callee) {
            StateKey::Key(_) => guard::enter_key(caller, callee),
            _ => Frame::new(callee),
        }
    }

    fn enters_alike(&self, callee: StateId) -> bool {
        !matches!(self.table.key(callee), StateKey::Key(_))
    }

    fn advance(
        &self,
        frame: &mut Frame,
        byte: u8,
        to: StateId,
    ) -> Result<(), AutomatonError> {
        if let StateKey::Key(_) = self.table.key(frame.state) {
            guard::advance_key(frame, byte);
        }
        frame.state = to;
        Ok(())
    }

    fn leave(
        &self,
        caller: &Frame,
        callee: &Frame,
        outcome: Outcome,
        to: StateId,
    ) -> Result<Option<Frame>, AutomatonError> {
        Ok(guard::leave(caller, callee, outcome, to))
    }

    fn watch(&self, frame: &Frame) -> Watch {
        match self.table.key(frame.state) {
            StateKey::Key(_) => guard::watch_key(frame),
            _ => Watch::Clear,
        }
    }

    fn watched_bytes(&self, frame: &Frame) -> [u64; 4] {
        guard::watched_bytes(frame)
    }

    fn refused_words(&self, frame: &Frame, on: &mut dyn FnMut(&[u8])) -> bool {
        guard::refused_words(frame, on)
    }

    fn may_watch(&self, state: StateId) -> bool {
        matches!(self.table.key(state), StateKey::Key(_))
    }

    fn ending(&self, state: StateId) -> Result<StateId, AutomatonError> {
        let left = match self.table.key(state) {
            StateKey::Number(number) => {
                self.number.shortest_completion(number)
            }
            StateKey::Integer(number) => {
                self.integer.shortest_completion(number)
            }
            _ => None,
        };
        match left {
            Some(left) => self.table.intern(StateKey::End(left.into())),
            None => Ok(state),
        }
    }

    fn memory_usage(&self) -> usize {
        self.table.memory_usage()
    }

    fn describe(&self, state: StateId) -> String {
        match self.table.key(state) {
            StateKey::Root => "any JSON value".to_owned(),
            StateKey::RootEnd => "the text".to_owned(),
            StateKey::String { window, .. } if *window == Window::FREE => {
                "inside a string".to_owned()
            }
            StateKey::String { window, .. } => format!(
                "inside a string, at least {} characters from its end",
                window.least,
            ),
            StateKey::Key(_) => "inside a key".to_owned(),
            StateKey::Literal { word, .. } => format!("inside `{word}`"),
            StateKey::Number(_) | StateKey::End(_) => {
                "inside a number".to_owned()
            }
            StateKey::Integer(_) => "inside an integer".to_owned(),
            StateKey::Place(place) => place.describe().to_owned(),
            StateKey::Gap { core, .. } | StateKey::Space(core) => {
                self.describe(*core)
            }
        }
    }
}

impl Place {
    fn describe(self) -> &'static str {
        match self {
            Place::ObjectOpen => "after the opening brace of an object",
            Place::AfterKey => "an object, after a key",
            Place::BeforeValue => "an object, before a value",
            Place::AfterMember => "an object, after a member",
            Place::BeforeMember => "an object, before a key",
            Place::ArrayOpen => "after the opening bracket of an array",
            Place::AfterItem => "an array, after an item",
            Place::BeforeItem => "an array, before an item",
        }
    }
}

/// Fills the row of a string of any content in `window`, whose end returns
/// `outcome`.
pub(crate) fn fill_window(
    spelling: Spelling<()>,
    window: Window,
    escapes: Escapes,
    outcome: Outcome,
    intern: &mut dyn FnMut(
        Spelling<()>,
        Window,
    ) -> Result<StateId, AutomatonError>,
    row: &mut RowBuilder,
) -> Result<(), AutomatonError> {
    let every = [Edge { lo: 0, hi: 0x10_FFFF, to: () }];
    let edges: &[_] = if window.most == 0 { &[] } else { &every };
    let mut intern = |next| match next {
        Spelling::Between(()) => intern(next, window.after_one()),
        _ => intern(next, window),
    };
    Speller {
        edges,
        escapes,
        close: (window.least == 0).then_some(outcome),
        intern: &mut intern,
    }
    .fill(spelling, row)
}

/// Fills the row of a place before which white space may stand: the row of
/// `core`, and `more` after one byte of white space.
pub(crate) fn gap_row(
    core_row: &Row,
    core: StateId,
    left: u32,
    more: StateId,
    row: &mut RowBuilder,
) {
    for range in core_row.ranges() {
        row.range(range.lo, range.hi, range.step);
    }
    for byte in [b' ', b'\t', b'\n', b'\r'] {
        row.byte(byte, Step::Stay(more));
    }
    if let Some(outcome) = core_row.finish {
        row.finish(outcome);
    }
    if core_row.registers {
        row.registers();
    }
    row.hint(Hint::Gap { core, left });
}
