//! The texts after which masks took long.

use std::{fmt, time::Duration};

use maskwright_grammar_core::{
    automaton::StateId,
    util::{FxHashMap, FxHashSet},
};

use super::{GrammarFileError, Writer};

/// A mask that took so long is worth a place in a file.
pub(crate) const DEAR: Duration = Duration::from_micros(20);
/// So many texts are kept.
const MAX_TEXTS: usize = 1_024;
/// How long all texts of a grammar together may be.
pub(crate) const MAX_NOTED: usize = 512 << 10;
/// So many texts are in a file.
pub(crate) const MAX_SAVED_TEXTS: usize = 16 << 10;
/// How long a text may be.
pub(crate) const MAX_TEXT: usize = 16 << 10;

/// What a grammar was compiled from, as whoever compiled it knows it.
pub(crate) trait Origin: fmt::Debug + Send + Sync {
    /// Writes everything that a grammar depends on.
    fn write(&self, out: &mut Writer) -> Result<(), GrammarFileError>;
}

/// The texts after which masks of a grammar took long.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// By a hash of the frames that the mask depends on.
    texts: FxHashMap<u64, Box<[u8]>>,
    /// The states on top after them: whatever lies below these, their masks
    /// take long where nothing is known.
    states: FxHashSet<StateId>,
    n_bytes: usize,
    /// How many texts a file has.
    n_saved: usize,
}

impl Notes {
    /// Returns whether masks of this state take long.
    pub(crate) fn has_state(&self, state: StateId) -> bool {
        self.states.contains(&state)
    }

    /// Adds a text that leads to `state`, and to the frames that `ground` is
    /// a hash of.
    pub(crate) fn add(&mut self, state: StateId, ground: u64, text: &[u8]) {
        let is_full = self.texts.len() >= MAX_TEXTS
            || self.n_bytes + text.len() > MAX_NOTED;
        if is_full || text.len() > MAX_TEXT {
            return;
        }
        self.states.insert(state);
        self.texts.entry(ground).or_insert_with(|| {
            self.n_bytes += text.len();
            text.into()
        });
    }

    /// Returns all texts, in order.
    pub(crate) fn texts(&self) -> Vec<Box<[u8]>> {
        let mut texts: Vec<_> = self.texts.values().cloned().collect();
        texts.sort_unstable();
        texts
    }

    /// Returns whether there are texts that no file has.
    pub(crate) fn is_new(&self) -> bool {
        self.texts.len() > self.n_saved
    }

    /// Returns how many texts there are.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Says that a file has so many of the texts.
    pub(crate) fn set_saved(&mut self, n_texts: usize) {
        self.n_saved = n_texts;
    }

    /// Returns about how many bytes this holds.
    pub(crate) fn memory(&self) -> usize {
        self.n_bytes
            + self.texts.capacity() * size_of::<(u64, Box<[u8]>)>()
            + self.states.capacity() * size_of::<StateId>()
    }
}
