//! A grammar on its way: one thread compiles it, others wait.

use std::sync::{Condvar, Mutex, PoisonError};

use super::{Compilation, CompileError};
use crate::mask::lock;

/// What comes of a compilation.
type Outcome = Result<Compilation, CompileError>;

#[derive(Debug, Default)]
pub(super) struct Flight {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Open,
    Done(Outcome),
    /// The thread that compiled it did not come back.
    Lost,
}

impl Flight {
    /// Waits for the outcome; none if the thread that compiled it panicked.
    pub(super) fn wait(&self) -> Option<Outcome> {
        let mut state = lock(&self.state);
        loop {
            match &*state {
                State::Open => {}
                State::Done(outcome) => return Some(outcome.clone()),
                State::Lost => return None,
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn finish(&self, outcome: Outcome) {
        *lock(&self.state) = State::Done(outcome);
        self.changed.notify_all();
    }

    /// Says that nothing will come, unless it has.
    pub(super) fn give_up(&self) {
        let mut state = lock(&self.state);
        if matches!(*state, State::Open) {
            *state = State::Lost;
        }
        self.changed.notify_all();
    }
}
