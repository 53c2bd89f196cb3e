//! The interface between a grammar's machine and whoever runs it.
//!
//! A grammar is a pushdown automaton over bytes, built lazily. A
//! *configuration* is a stack of [`Frame`]s; each frame is one interned
//! [`StateId`] plus a few registers. A front end brings its own machine by
//! implementing [`Automaton`]: it hands out one [`Row`] a state and says how
//! a caller goes on once its callee has ended. Everything else (membership of
//! a byte string, the tokens of a mask) is computed from rows alone, so that
//! masks and commits cannot disagree.
//!
//! # What a row says
//!
//! On a byte, a state *stays* in its frame, *calls* (pushes a frame that has
//! read the byte already) or *returns* (pops, having read the byte). Without
//! a byte it may *finish* (pop, leaving the next byte unread; a number in
//! JSON does) or call ([`Row::calls`], for grammars whose callee decides
//! which bytes it wants). Several steps at once are several configurations.
//!
//! # The contract
//!
//! * **Every state is viable**: from each state that a machine hands out,
//!   some bytes lead to a finish or a return that its caller can use. That
//!   is what makes a mask exact: a token is allowed when it ends in a state.
//!   A state without any byte, call or atom is alive only through its finish.
//! * **Rows are state-level.** They ignore registers. Where registers forbid
//!   something (a key that was used already), the machine says so in
//!   [`Automaton::leave`] and [`Automaton::watch`], which only ever *remove*.
//!   A machine whose rows allow too little is wrong; one whose rows allow
//!   too much must take it back there.
//! * **Counters are exact near their bounds.** A state that is further than
//!   [`HORIZON`] units from a bound may ignore that bound, since no token is
//!   longer (longer ones are stepped one by one); [`Automaton::advance`] and
//!   [`Automaton::leave`] move the frame to the near state in time.

pub mod cfg;
mod completion;
mod machine;
mod recognizer;
mod regex;
mod row;
mod stack;
mod table;

use std::{fmt, sync::Arc};

use smallvec::SmallVec;

pub use self::{
    completion::{Completions, Effort},
    machine::{Frames, Machine},
    recognizer::{Configuration, Recognizer, StackLimits, Symbol, Top},
    regex::{RegexMachine, RegexMachineError},
    row::{ByteRange, Call, Hint, Row, RowBuilder, Step, Words},
    stack::{Edge, Stack},
    table::StateTable,
};
use crate::interrupt::Interrupted;

/// The number of bytes up to which one token may count towards a counter
/// that its state sees only as "far from every bound".
///
/// Tokens that are longer than this are never looked up in a walk; they are
/// stepped from the configuration itself, registers included.
pub const HORIZON: u32 = 256;

/// A state of one machine.
///
/// Ids with [`StateId::SHARED_BIT`] belong to the machine that
/// [`Automaton::shared`] returns: what is derived from such a state may be
/// kept for every grammar that shares the same machine.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StateId(pub u32);

impl StateId {
    /// The bit that marks the states of the shared machine.
    pub const SHARED_BIT: u32 = 1 << 31;

    /// Returns true if and only if this state belongs to the shared machine.
    pub const fn is_shared(self) -> bool {
        self.0 & StateId::SHARED_BIT != 0
    }

    /// Returns the index of this state in its own machine's table.
    pub const fn index(self) -> usize {
        (self.0 & !StateId::SHARED_BIT) as usize
    }
}

/// What a frame reports to the frame below when it ends: which of the things
/// that it was asked to recognise it did recognise.
///
/// Its meaning is private to the machine: bits, or an interned id.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Outcome(pub u32);

impl Outcome {
    /// The bit that marks an outcome after which [`Automaton::leave`] may
    /// refuse on account of registers (the key was used already).
    pub const GUARDED_BIT: u32 = 1 << 31;

    /// Returns true if and only if registers decide whether this return may
    /// happen.
    pub const fn is_guarded(self) -> bool {
        self.0 & Outcome::GUARDED_BIT != 0
    }
}

/// A symbol of the alphabet beside the 256 bytes: one whole token, which the
/// runtime binds to token ids when grammar meets vocabulary.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Atom {
    /// Which token this is.
    pub token: AtomToken,
    /// Whether this atom stands for every token but that one.
    pub negated: bool,
}

/// How an [`Atom`] names its token.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum AtomToken {
    /// By id.
    Id(u32),
    /// By the vocabulary's own spelling, brackets included.
    Text(String),
}

/// The index of an [`Atom`] in [`Automaton::atoms`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct AtomId(pub u32);

/// One frame of a stack: a state and its registers.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The state.
    pub state: StateId,
    /// How far this frame is from the bounds that its state sees only as
    /// "far" (code points to read at least, and at most; likewise items).
    /// Only machines whose rows have [`Row::registers`] look at it.
    pub counts: [u32; 2],
    /// What the frame remembers beyond its state, if anything.
    pub memory: Option<Arc<Memory>>,
}

impl Frame {
    /// Creates a frame in `state` whose registers are empty.
    pub const fn new(state: StateId) -> Frame {
        Frame { state, counts: [0; 2], memory: None }
    }

    /// Returns true if and only if both are in one state, with the same
    /// registers.
    pub fn is_same(&self, other: &Frame) -> bool {
        self.state == other.state
            && self.counts == other.counts
            && match (&self.memory, &other.memory) {
                (None, None) => true,
                (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
                _ => false,
            }
    }
}

/// The words that may not come again in a frame, and the word being read.
///
/// An object's frame keeps its used keys here; the frame that reads a key
/// shares them and adds the (decoded) key so far. An array whose items must
/// differ does the same with its items.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Memory {
    /// The words used up so far, in the order of their use.
    pub used: Arc<Vec<Arc<[u8]>>>,
    /// The word that is being read.
    pub partial: Vec<u8>,
    /// The text of a container so far, where that has to be known when the
    /// container ends. A frame below adds the text of one above it when that
    /// ends, also if the outcome is not guarded; so between these moments,
    /// nothing but the end of a frame may depend on it.
    pub text: Vec<u8>,
}

/// What registers say of a frame that its row calls viable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Watch {
    /// Nothing that can follow within this frame is affected by registers.
    Clear,
    /// Something that can follow may be refused: look again after each byte.
    Watching,
    /// Only the end of this frame may be refused, by a guarded outcome. What
    /// the frame reads on the way changes nothing about that.
    AtEnd,
    /// Nothing but refused words could follow: the frame is dead.
    Dead,
}

/// Where a caller goes on once its callee has ended. Usually one state; none
/// if the caller cannot use the outcome.
pub type Resumed = SmallVec<[StateId; 1]>;

/// A lazily built pushdown automaton over bytes.
///
/// Implementations grow behind interior mutability; a row that was returned
/// once never changes.
pub trait Automaton: fmt::Debug + Send + Sync {
    /// Returns the state in which a text begins.
    fn start(&self) -> StateId;

    /// Returns what can happen in `state`.
    ///
    /// # Errors
    ///
    /// Fails when building the row exceeds a limit. The machine is then as
    /// it was.
    fn row(&self, state: StateId) -> Result<&Row, AutomatonError>;

    /// Returns where the waiting frame `resume` goes on after its callee has
    /// ended with `outcome`.
    ///
    /// # Errors
    ///
    /// Fails when building the resumed states exceeds a limit.
    fn resume(
        &self,
        resume: StateId,
        outcome: Outcome,
    ) -> Result<Resumed, AutomatonError>;

    /// Returns the machine that owns the states with
    /// [`StateId::SHARED_BIT`], if there is one. Its states lead to states of
    /// its own only.
    fn shared(&self) -> Option<&Arc<dyn Automaton>> {
        None
    }

    /// Returns the atoms of this grammar.
    fn atoms(&self) -> &[Atom] {
        &[]
    }

    /// Creates the frame of a call from `caller`, registers included.
    /// Called only where the row of the callee has [`Row::registers`].
    fn enter(&self, caller: &Frame, callee: StateId) -> Frame {
        let _ = caller;
        Frame::new(callee)
    }

    /// Returns true only if [`Automaton::enter`] makes the same frame of
    /// `callee` whatever the registers of the caller.
    fn enters_alike(&self, callee: StateId) -> bool {
        let _ = callee;
        false
    }

    /// Moves `frame`, which read `byte`, to the state `to` of its row and
    /// updates its registers. Called only where the row of the frame's state
    /// has [`Row::registers`].
    ///
    /// # Errors
    ///
    /// Fails when building the new state exceeds a limit.
    fn advance(
        &self,
        frame: &mut Frame,
        byte: u8,
        to: StateId,
    ) -> Result<(), AutomatonError> {
        let _ = byte;
        frame.state = to;
        Ok(())
    }

    /// Moves the waiting frame `caller` to the state `to` (one of what
    /// [`Automaton::resume`] returned) after `callee` has ended with
    /// `outcome`, and updates its registers. `None` if registers refuse,
    /// which only a guarded outcome may lead to. Of an outcome that is not
    /// guarded, the result does not depend on the callee's registers.
    /// Called only where the row of the caller's resumed state has
    /// [`Row::registers`] or the outcome is guarded.
    ///
    /// # Errors
    ///
    /// Fails when building the new state exceeds a limit.
    fn leave(
        &self,
        caller: &Frame,
        callee: &Frame,
        outcome: Outcome,
        to: StateId,
    ) -> Result<Option<Frame>, AutomatonError> {
        let _ = (callee, outcome);
        Ok(Some(Frame {
            state: to,
            counts: caller.counts,
            memory: caller.memory.clone(),
        }))
    }

    /// Returns what registers say of `frame`. Called only where the row of
    /// the frame's state has [`Row::registers`].
    fn watch(&self, frame: &Frame) -> Watch {
        let _ = frame;
        Watch::Clear
    }

    /// Returns the bytes that a frame which [`Automaton::watch`] calls
    /// [`Watch::Watching`] may read into anything but [`Watch::Clear`], or on
    /// which it may end refused. All bytes is always right, and slow: each of
    /// them is tried for each mask.
    fn watched_bytes(&self, frame: &Frame) -> [u64; 4] {
        let _ = frame;
        [u64::MAX; 4]
    }

    /// Calls `on` with each word that a frame which [`Automaton::watch`]
    /// calls [`Watch::Watching`] may not end as, without what it has read
    /// already. It reads a JSON string: a character of a word stands for
    /// itself or is escaped, and a quotation mark ends the string. Returns
    /// false where that is not all that registers refuse in this frame, or
    /// where the frame is within a character; what `on` was told by then
    /// does not matter.
    fn refused_words(&self, frame: &Frame, on: &mut dyn FnMut(&[u8])) -> bool {
        let _ = (frame, on);
        false
    }

    /// Returns false only if [`Automaton::watch`] is [`Watch::Clear`] for a
    /// frame in `state`, whatever its registers. True is always right, and
    /// slow where a frame with unknown registers comes into this state:
    /// everything that follows it in one token is then stepped exactly.
    fn may_watch(&self, state: StateId) -> bool {
        let _ = state;
        true
    }

    /// Returns a state from which some of the ways lead to the end of its
    /// frame that do from `state`, where these are so many (members in any
    /// order, say) that a search had better look at some: those that come to
    /// an end soon. Each of its ways is one from `state`, and returns the
    /// same.
    ///
    /// # Errors
    ///
    /// Fails when building the state exceeds a limit.
    fn ending(&self, state: StateId) -> Result<StateId, AutomatonError> {
        Ok(state)
    }

    /// Returns whether viability was decided exactly for `state`, and not
    /// assumed because a search ran out of its budget.
    fn exact(&self, state: StateId) -> bool {
        let _ = state;
        true
    }

    /// Returns about how many bytes the machine holds for itself, which grow
    /// as it is used; the shared machine is not counted. It is what caches of
    /// grammars are bounded by: zero is a machine that does not count.
    fn memory_usage(&self) -> usize {
        0
    }

    /// Describes `state` for people: what is being read here.
    fn describe(&self, state: StateId) -> String;
}

/// An error that occurs when a machine cannot build a state.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AutomatonError {
    /// A limit was met.
    #[error(
        "{what} reached the limit of {limit}; raise the limit `{name}` or \
         simplify the grammar"
    )]
    Limit {
        /// The name of the limit, as in the options.
        name: &'static str,
        /// What was counted.
        what: &'static str,
        /// The limit's value.
        limit: usize,
    },
    /// The time for it ran out, or it was cancelled.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// A part of the grammar that is read lazily turned out to be unusable.
    #[error("{message}")]
    Grammar {
        /// What is wrong, where, and the way out.
        message: String,
    },
}
