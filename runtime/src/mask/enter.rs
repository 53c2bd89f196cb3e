//! The frames that a path pushes.
//!
//! Where a walk leaves to a part of it, frames were pushed on the way. They
//! are replayed from the frame of the mask, or known once where nothing of
//! them depends on its registers.

use maskwright_grammar_core::automaton::{AutomatonError, Frame, Step};
use smallvec::SmallVec;

use super::{
    fill::{Filler, Visit},
    walk::{Entry, Pushed},
};

/// The frames that are waiting between a visit and a part, and the callee.
pub(super) type Frames = SmallVec<[Frame; 3]>;

impl Filler<'_, '_> {
    /// Returns the waiting frames and the callee of an entry, if they are
    /// known. Without the frame of the visit, the first one is a blank.
    pub(super) fn enter(
        &self,
        visit: &Visit,
        entry: &Entry,
        n_waiting: usize,
    ) -> Result<Option<Frames>, AutomatonError> {
        let blank = Frame::new(visit.walk.state);
        let own = visit.frame.as_ref().unwrap_or(&blank);
        let pushed = if let Some(pushed) = entry.pushed.get() {
            pushed
        } else {
            let pushed = self.pushed(&blank, entry, n_waiting)?;
            entry.pushed.get_or_init(|| pushed)
        };
        let Some(Pushed { n_own, frames }) = pushed else {
            return match &visit.frame {
                Some(frame) => self.replay(frame, &entry.path, n_waiting),
                None => Ok(None),
            };
        };
        // What is pushed is known: only the frame of the visit is followed.
        let mut own = own.clone();
        for &byte in &entry.path[..*n_own] {
            let row = self.machine.row(own.state)?;
            let Some(step) = row.step(byte) else { return Ok(None) };
            let (Step::Stay(to) | Step::Call { resume: to, .. }) = step else {
                return Ok(None);
            };
            own = self.machine.advance(&own, row, byte, to)?;
        }
        let frames = frames.iter().cloned();
        Ok(Some([own].into_iter().chain(frames).collect()))
    }

    /// Returns what an entry pushes, if that depends on no register of the
    /// walk's own frame.
    fn pushed(
        &self,
        blank: &Frame,
        entry: &Entry,
        n_waiting: usize,
    ) -> Result<Option<Pushed>, AutomatonError> {
        let Some(mut frames) = self.replay(blank, &entry.path, n_waiting)?
        else {
            return Ok(None);
        };
        let mut state = blank.state;
        for (index, &byte) in entry.path.iter().enumerate() {
            match self.machine.row(state)?.step(byte) {
                Some(Step::Stay(to)) => state = to,
                Some(Step::Call { callee, .. }) => {
                    let owner = self.machine.owner(blank.state);
                    let n_own = index + 1;
                    // The first frame above must be the one of this call.
                    let rest = &entry.path[n_own..];
                    let is_alike = owner.enters_alike(callee)
                        && self
                            .replay(&Frame::new(callee), rest, n_waiting - 1)?
                            .is_some();
                    return Ok(is_alike.then(|| {
                        frames.remove(0);
                        let frames = frames.into_vec().into();
                        Pushed { n_own, frames }
                    }));
                }
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Follows bytes from a frame. Returns the waiting frames and the callee,
    /// unless there is a choice on the way or the frame itself ends.
    fn replay(
        &self,
        frame: &Frame,
        path: &[u8],
        n_waiting: usize,
    ) -> Result<Option<Frames>, AutomatonError> {
        let mut frames = Frames::new();
        frames.push(frame.clone());
        for &byte in path {
            let Some(top) = frames.pop() else { return Ok(None) };
            let row = self.machine.row(top.state)?;
            if !row.is_deterministic() || !row.calls.is_empty() {
                return Ok(None);
            }
            match row.step(byte) {
                Some(Step::Stay(to)) => {
                    let frame = self.machine.advance(&top, row, byte, to)?;
                    frames.push(frame);
                }
                Some(Step::Call { resume, callee }) => {
                    let caller =
                        self.machine.advance(&top, row, byte, resume)?;
                    let callee = self.machine.enter(&caller, callee)?;
                    frames.extend([caller, callee]);
                }
                Some(Step::Return(outcome)) => {
                    let Some(caller) = frames.pop() else { return Ok(None) };
                    let resumed =
                        self.machine.leave(&caller, &top, outcome)?;
                    let [frame] = &resumed[..] else { return Ok(None) };
                    frames.push(frame.clone());
                }
                None => return Ok(None),
            }
        }
        Ok((frames.len() == n_waiting + 1).then_some(frames))
    }
}
