//! One face for a machine and the shared machine behind it.

use smallvec::SmallVec;

use super::{
    Automaton, AutomatonError, Frame, Outcome, Resumed, Row, StateId, Watch,
};

/// The frames in which a caller goes on. Usually one.
pub type Frames = SmallVec<[Frame; 1]>;

/// A machine that answers for its own states and for those of its shared
/// machine: every question goes to the owner of the state it is about.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    own: &'a dyn Automaton,
    shared: &'a dyn Automaton,
}

impl<'a> Machine<'a> {
    /// Creates the face of `automaton`.
    pub fn new(automaton: &'a dyn Automaton) -> Machine<'a> {
        let shared = match automaton.shared() {
            Some(shared) => &**shared,
            None => automaton,
        };
        Machine { own: automaton, shared }
    }

    /// Returns the machine that owns `state`.
    pub fn owner(self, state: StateId) -> &'a dyn Automaton {
        if state.is_shared() { self.shared } else { self.own }
    }

    /// Returns the state in which a text begins.
    pub fn start(self) -> StateId {
        self.own.start()
    }

    /// Returns what can happen in `state`.
    ///
    /// # Errors
    ///
    /// Fails as [`Automaton::row`] does.
    pub fn row(self, state: StateId) -> Result<&'a Row, AutomatonError> {
        self.owner(state).row(state)
    }

    /// Returns a state with fewer ways to the end of its frame.
    ///
    /// # Errors
    ///
    /// Fails as [`Automaton::ending`] does.
    pub fn ending(self, state: StateId) -> Result<StateId, AutomatonError> {
        self.owner(state).ending(state)
    }

    /// Returns where the waiting state goes on.
    ///
    /// # Errors
    ///
    /// Fails as [`Automaton::resume`] does.
    pub fn resume(
        self,
        waiting: StateId,
        outcome: Outcome,
    ) -> Result<Resumed, AutomatonError> {
        self.owner(waiting).resume(waiting, outcome)
    }

    /// Returns `frame` after it has read `byte` and moved to `to`; `row` is
    /// the row of its present state.
    ///
    /// # Errors
    ///
    /// Fails as [`Automaton::advance`] does.
    pub fn advance(
        self,
        frame: &Frame,
        row: &Row,
        byte: u8,
        to: StateId,
    ) -> Result<Frame, AutomatonError> {
        let mut frame = frame.clone();
        if row.registers {
            self.owner(frame.state).advance(&mut frame, byte, to)?;
        } else {
            frame.state = to;
        }
        Ok(frame)
    }

    /// Returns the frame of a call from `caller`.
    ///
    /// # Errors
    ///
    /// Fails as [`Automaton::row`] does.
    pub fn enter(
        self,
        caller: &Frame,
        callee: StateId,
    ) -> Result<Frame, AutomatonError> {
        Ok(if self.row(callee)?.registers {
            self.owner(caller.state).enter(caller, callee)
        } else {
            Frame::new(callee)
        })
    }

    /// Returns the frames in which `caller` goes on after `callee` has ended
    /// with `outcome`; none where the caller cannot, or may not, use it.
    ///
    /// # Errors
    ///
    /// Fails as [`Automaton::resume`] and [`Automaton::leave`] do.
    pub fn leave(
        self,
        caller: &Frame,
        callee: &Frame,
        outcome: Outcome,
    ) -> Result<Frames, AutomatonError> {
        let mut frames = Frames::new();
        for to in self.resume(caller.state, outcome)? {
            if outcome.is_guarded() || self.row(to)?.registers {
                let owner = self.owner(caller.state);
                frames.extend(owner.leave(caller, callee, outcome, to)?);
            } else {
                let mut frame = caller.clone();
                frame.state = to;
                frames.push(frame);
            }
        }
        Ok(frames)
    }

    /// Returns what registers say of `frame`, whose row is `row`.
    pub fn watch(self, frame: &Frame, row: &Row) -> Watch {
        if row.registers {
            self.owner(frame.state).watch(frame)
        } else {
            Watch::Clear
        }
    }
}
