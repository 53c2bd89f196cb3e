//! Texts on many lines, indented by depth: what Python's
//! `json.dumps(value, indent=n)` writes.
//!
//! Machine and prelude underneath write on one line, with a space after each
//! colon. Each state `s` of a container has a twin that does what `s` does
//! and knows how deep it is and where on a line: before a member or an item,
//! and before the end of a container that is not empty, the twin reads a line
//! feed and the spaces of that depth. What it calls for a container is the
//! twin, one deeper, of what `s` calls; keys and scalars stay as they are.
//!
//! Twins are outermost: what a frame records ([`super::distinct`]) is the
//! text without its lines, and the registers know nothing of them.
//!
//! Each depth has states of its own, made when a text comes there. That costs
//! nothing that its text does not cost too: a line at a depth has as many
//! spaces as there are states of it.

use maskwright_grammar_core::automaton::{
    Automaton, AutomatonError, ByteRange, Frame, Outcome, Resumed, RowBuilder,
    StateId, Step,
};

use super::{Machine, StateKey, policy::Whitespace};

/// A state of a container, or of the whole text, in a text of many lines.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Indented {
    /// The state that does everything but break lines.
    pub(crate) inner: StateId,
    /// How many containers are open, this one included.
    depth: u32,
    place: Place,
}

/// The places on lines.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Place {
    /// After the opening brace or bracket.
    Open,
    /// After a comma.
    Comma,
    /// On the line of a member or an item, so many spaces before it.
    Item(u32),
    /// On the line of the end of a container, so many spaces before it.
    Close(u32),
    /// Anywhere else: within a member, and after a member or an item.
    Within,
}

impl Machine {
    /// The state in which a text begins whose value is asked in `root`.
    pub(crate) fn text_start(
        &self,
        root: StateId,
    ) -> Result<StateId, AutomatonError> {
        match self.policy.whitespace {
            Whitespace::Indent { .. } => {
                let place = Place::Within;
                self.indented(Indented { inner: root, depth: 0, place })
            }
            _ => Ok(root),
        }
    }

    fn indented(&self, state: Indented) -> Result<StateId, AutomatonError> {
        self.table.intern(StateKey::Indented(state))
    }

    /// Builds the row of an indented state from that of the inner one.
    pub(crate) fn build_indented(
        &self,
        state: Indented,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let inner = self.row(state.inner)?;
        let is_end = |range: &ByteRange| matches!(range.step, Step::Return(_));
        let ends = inner.ranges().iter().any(is_end);
        let goes_on = !inner.ranges().iter().all(is_end);
        if let Some((byte, place)) = self.line_step(state, ends, goes_on) {
            let to = self.indented(Indented { place, ..state })?;
            row.byte(byte, Step::Stay(to));
        }
        for range in inner.ranges() {
            if state.place.shows(is_end(range)) {
                let step = self.indented_step(state, range)?;
                row.range(range.lo, range.hi, step);
            }
        }
        // Containers do not, but the whole text does.
        if let Some(outcome) = inner.finish {
            row.finish(outcome);
        }
        if inner.registers {
            row.registers();
        }
        Ok(())
    }

    /// The byte that leads to the next line, or on to its text, and what
    /// comes after it, if one may come here. `ends` and `goes_on` say whether
    /// the container may end, and whether anything else may come.
    fn line_step(
        &self,
        state: Indented,
        ends: bool,
        goes_on: bool,
    ) -> Option<(u8, Place)> {
        let spaces = |depth| match self.policy.whitespace {
            Whitespace::Indent { width } => {
                u32::from(width).saturating_mul(depth)
            }
            _ => 0,
        };
        match state.place {
            Place::Open if !goes_on => None,
            Place::Open | Place::Comma => {
                Some((b'\n', Place::Item(spaces(state.depth))))
            }
            Place::Within if ends => Some((
                b'\n',
                Place::Close(spaces(state.depth.saturating_sub(1))),
            )),
            Place::Item(left @ 1..) => Some((b' ', Place::Item(left - 1))),
            Place::Close(left @ 1..) => Some((b' ', Place::Close(left - 1))),
            Place::Within | Place::Item(0) | Place::Close(0) => None,
        }
    }

    /// What an indented state does where the inner one does what `range`
    /// says.
    fn indented_step(
        &self,
        state: Indented,
        range: &ByteRange,
    ) -> Result<Step, AutomatonError> {
        let twin = |inner, place| {
            self.indented(Indented { inner, depth: state.depth, place })
        };
        Ok(match (range.lo, range.step) {
            (b',', Step::Stay(to)) => Step::Stay(twin(to, Place::Comma)?),
            (_, Step::Stay(to)) => Step::Stay(twin(to, Place::Within)?),
            (first, Step::Call { resume, callee }) => {
                let resume = twin(resume, Place::Within)?;
                let callee = match first {
                    b'{' | b'[' => self.indented(Indented {
                        inner: callee,
                        depth: state.depth.saturating_add(1),
                        place: Place::Open,
                    })?,
                    _ => callee,
                };
                Step::Call { resume, callee }
            }
            (_, Step::Return(outcome)) => Step::Return(outcome),
        })
    }

    /// Where a waiting indented state goes on.
    pub(crate) fn resume_indented(
        &self,
        state: Indented,
        outcome: Outcome,
    ) -> Result<Resumed, AutomatonError> {
        self.resume(state.inner, outcome)?
            .into_iter()
            .map(|inner| self.indented(Indented { inner, ..state }))
            .collect()
    }

    /// Moves an indented frame. Of white space, the registers learn nothing.
    pub(crate) fn advance_indented(
        &self,
        frame: &mut Frame,
        state: Indented,
        byte: u8,
        to: StateId,
    ) -> Result<(), AutomatonError> {
        if !byte.is_ascii_whitespace()
            && let StateKey::Indented(next) = *self.table.key(to)
        {
            frame.state = state.inner;
            self.advance(frame, byte, next.inner)?;
        }
        frame.state = to;
        Ok(())
    }

    /// Ends the callee of an indented frame.
    pub(crate) fn leave_indented(
        &self,
        caller: &Frame,
        state: Indented,
        callee: &Frame,
        outcome: Outcome,
        to: StateId,
    ) -> Result<Option<Frame>, AutomatonError> {
        let StateKey::Indented(next) = *self.table.key(to) else {
            return Ok(None);
        };
        let caller = state.inner_frame(caller);
        let left = if state.inner.is_shared() {
            self.prelude.leave(&caller, callee, outcome, next.inner)
        } else {
            self.leave(&caller, callee, outcome, next.inner)
        };
        let Some(mut frame) = left? else { return Ok(None) };
        // Registers may have led elsewhere.
        frame.state =
            self.indented(Indented { inner: frame.state, ..next })?;
        Ok(Some(frame))
    }

    /// An indented state with fewer ways to the end of its frame.
    pub(crate) fn ending_indented(
        &self,
        state: Indented,
    ) -> Result<StateId, AutomatonError> {
        let inner = self.ending(state.inner)?;
        self.indented(Indented { inner, ..state })
    }
}

impl Place {
    /// Whether the inner state's steps are steps of the twin here: those that
    /// end a container (`is_end`), or the others.
    fn shows(self, is_end: bool) -> bool {
        match self {
            Place::Open | Place::Close(0) => is_end,
            Place::Within | Place::Item(0) => !is_end,
            Place::Comma | Place::Item(_) | Place::Close(_) => false,
        }
    }
}

impl Indented {
    /// The frame of the inner state, for one of this state.
    pub(crate) fn inner_frame(self, frame: &Frame) -> Frame {
        Frame { state: self.inner, ..frame.clone() }
    }
}
