//! A grammar on its way: one thread compiles it, others wait.

use std::{
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

use maskwright_grammar_core::interrupt::{self, Interrupted};

use super::{Compilation, CompileError};
use crate::mask::lock;

/// How often who waits looks whether it is to break off.
const LOOK_AFTER: Duration = Duration::from_millis(1);

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
    /// The thread that compiled it did not come back, or had to break off.
    Lost,
}

impl Flight {
    /// Waits for the outcome; none if the thread that compiled it panicked
    /// or was interrupted.
    pub(super) fn wait(&self) -> Result<Option<Outcome>, Interrupted> {
        let mut state = lock(&self.state);
        loop {
            match &*state {
                State::Open => {}
                State::Done(outcome) => return Ok(Some(outcome.clone())),
                State::Lost => return Ok(None),
            }
            interrupt::check()?;
            state = if interrupt::is_active() {
                let waited = self.changed.wait_timeout(state, LOOK_AFTER);
                waited.unwrap_or_else(PoisonError::into_inner).0
            } else {
                let waited = self.changed.wait(state);
                waited.unwrap_or_else(PoisonError::into_inner)
            };
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
