//! What the model remembers of requests that have ended.

use std::collections::VecDeque;

use super::memory::Ledger;
use crate::generate::session::Session;

/// Sequences of requests that have ended, the oldest first.
#[derive(Debug)]
pub(super) struct Prefixes {
    sessions: VecDeque<Session>,
    max: usize,
}

impl Prefixes {
    /// Creates a memory of at most `max` sequences.
    pub(super) fn new(max: usize) -> Prefixes {
        Prefixes { sessions: VecDeque::new(), max }
    }

    /// Keeps a sequence, and forgets those that it begins as, and the oldest
    /// if there are too many.
    pub(super) fn keep(&mut self, session: Session) {
        if session.tokens().is_empty() || self.max == 0 {
            return;
        }
        self.sessions
            .retain(|old| !session.tokens().starts_with(old.tokens()));
        self.sessions.push_back(session);
        if self.sessions.len() > self.max {
            self.forget_oldest();
        }
    }

    pub(super) fn forget_oldest(&mut self) {
        self.sessions.pop_front();
    }

    pub(super) fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.sessions.iter()
    }

    pub(super) fn enter(&self, ledger: &mut Ledger) {
        for session in &self.sessions {
            ledger.enter(session.cache(), 0);
        }
    }
}
