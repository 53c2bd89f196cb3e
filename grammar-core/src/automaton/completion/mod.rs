//! The shortest way to end a text.
//!
//! [`Completions::shortest`] returns bytes after which a configuration
//! accepts: what is left to write if nothing more is to be said. It asks
//! rows only, so that it works for every [`Automaton`](super::Automaton),
//! and looks no further into a lazy machine than the bytes that it needs.
//!
//! # How it searches
//!
//! The unit is an *entry*: a state in which some frame begins (or is now).
//! From each entry the states of its frame are settled in the order of their
//! distance in bytes, as in Dijkstra's algorithm. A call makes the callee an
//! entry of its own; each way in which that ends is a longer step of every
//! caller, at once or whenever it is found, so that a recursive frame needs
//! nothing special. All entries advance in one order, by the bytes that lead
//! to them from the configuration: the first text found is short, and after
//! as many more steps as it takes it is known to be the shortest. The frames
//! of the stack are entered one below the other in the same order. Where
//! nothing is found by that order for long, the search begins again with the
//! few ways that [`Automaton::ending`](super::Automaton::ending) names; and in
//! the end, what was reached last goes first.
//!
//! What was found of an entry does not depend on the stack it was found for,
//! and is kept: the configuration after the next byte has most of it in
//! common with the one before.
//!
//! # Registers
//!
//! Rows do not see registers. What was found is therefore always stepped
//! through the configuration; where registers refuse it, or where a counter
//! is so far from its bound that rows show no way to the end, a search over
//! exact configurations goes on from there. What comes out is always
//! accepted. It is the shortest wherever registers do not interfere and the
//! effort sufficed.
//!
//! Atoms (whole tokens) are not used: where nothing but an atom leads to the
//! end, no completion is found.

mod exact;
mod search;
#[cfg(test)]
mod tests;

use self::search::Search;
use super::{
    AutomatonError, Configuration, Machine, Outcome, Row, StackLimits,
    StateId, Symbol,
};
use crate::util::FxHashMap;

/// How long to search. No number changes what is true of a result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Effort {
    /// How many states may be settled before any text is found, and as many
    /// again where registers interfere.
    pub find: usize,
    /// How many more may be settled to find the shortest.
    pub improve: usize,
    /// How many configurations may be looked at where registers interfere.
    pub exact: usize,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { find: 1 << 16, improve: 1 << 10, exact: 1 << 9 }
    }
}

impl Effort {
    /// How many states are settled by their distance at most, before anything
    /// bolder is tried.
    fn patience(self) -> usize {
        self.find / 16
    }
}

/// How many states are kept from one search to the next.
const MAX_ITEMS: usize = 1 << 18;

/// A distance in bytes.
type Bytes = u32;

/// Searches for completions of the configurations of one machine, and keeps
/// what it learns.
///
/// A result depends on the machine, the configuration and the searches
/// before; with equal ones before, it is the same.
#[derive(Debug)]
pub struct Completions {
    effort: Effort,
    entries: Vec<Entry>,
    /// The entry that begins in each state.
    by_state: FxHashMap<StateId, u32>,
    /// The item of each state of an entry's frame.
    items: FxHashMap<(u32, StateId), u32>,
    /// Which search this is; tells what belongs to earlier ones.
    round: u32,
    /// How many states may still be settled.
    n_left: usize,
    /// After how many of them without a text the search becomes bold. What
    /// was in vain for one configuration mostly is for the next.
    patience: usize,
    /// Whether only some ways are looked at ([`Automaton::ending`]).
    is_straight: bool,
    /// What was learned where all of them were too many.
    straight: Option<Box<Completions>>,
}

/// What is known of the ways from one state to the end of its frame.
#[derive(Debug)]
struct Entry {
    /// The states of the frame that were reached.
    items: Vec<Item>,
    /// The items to settle: distance and index. May hold what is stale.
    open: std::collections::BinaryHeap<std::cmp::Reverse<(Bytes, u32)>>,
    /// The best way to each outcome.
    ends: Vec<End>,
    calls: Vec<CallSite>,
    /// Who calls: an entry, and the index of its call.
    callers: Vec<(u32, u32)>,
    /// The search in which `start` was set.
    round: u32,
    /// The bytes that lead here from the configuration of that search.
    start: Bytes,
}

/// A state of a frame, and the best known way to it.
#[derive(Clone, Copy, Debug)]
struct Item {
    state: StateId,
    distance: Bytes,
    how: How,
    /// Whether its row was looked at with this distance.
    settled: bool,
    /// Its calls, once its row was looked at.
    calls: Option<(u32, u32)>,
}

/// The last step of a way.
#[derive(Clone, Copy, Debug)]
enum How {
    /// The frame begins here.
    Start,
    /// By a byte.
    Byte { from: u32, byte: u8 },
    /// By a call, whose callee ended.
    Call { call: u32, end: u32 },
}

/// A place from which an entry calls.
#[derive(Clone, Copy, Debug)]
struct CallSite {
    from: u32,
    byte: Option<u8>,
    resume: StateId,
    callee: u32,
}

/// The best known way to one outcome.
#[derive(Clone, Copy, Debug)]
struct End {
    outcome: Outcome,
    distance: Bytes,
    item: u32,
    byte: Option<u8>,
}

impl Default for Completions {
    fn default() -> Completions {
        Completions::new()
    }
}

impl Completions {
    /// Creates a search that knows nothing.
    pub fn new() -> Completions {
        Completions {
            effort: Effort::default(),
            entries: Vec::new(),
            by_state: FxHashMap::default(),
            items: FxHashMap::default(),
            round: 0,
            n_left: 0,
            patience: Effort::default().patience(),
            is_straight: false,
            straight: None,
        }
    }

    /// Sets how long to search.
    #[must_use]
    pub fn with_effort(mut self, effort: Effort) -> Completions {
        self.effort = effort;
        self.patience = effort.patience();
        self
    }

    /// Returns the shortest bytes after which `configuration` accepts; none
    /// if none were found.
    ///
    /// All calls must be about the same machine.
    ///
    /// # Errors
    ///
    /// Fails when the machine cannot build a row, or a limit is met.
    pub fn shortest(
        &mut self,
        machine: Machine<'_>,
        limits: StackLimits,
        configuration: &Configuration,
    ) -> Result<Option<Vec<u8>>, AutomatonError> {
        if configuration.is_complete() {
            return Ok(Some(Vec::new()));
        }
        self.refill();
        let found = self.by_rows(machine, configuration)?;
        if let Some(bytes) = &found
            && try_bytes(machine, limits, configuration, bytes)?.accepted
        {
            return Ok(found);
        }
        self.refill();
        exact::search(self, machine, limits, configuration)
    }

    /// Allows as many steps as the effort says.
    fn refill(&mut self) {
        self.n_left = self.effort.find;
        if let Some(straight) = &mut self.straight {
            straight.n_left = self.effort.find;
        }
    }

    /// Searches by rows alone.
    fn by_rows(
        &mut self,
        machine: Machine<'_>,
        configuration: &Configuration,
    ) -> Result<Option<Vec<u8>>, AutomatonError> {
        if self.items.len() > MAX_ITEMS {
            let (n_left, is_straight) = (self.n_left, self.is_straight);
            *self = Completions::new().with_effort(self.effort);
            (self.n_left, self.is_straight) = (n_left, is_straight);
        }
        self.round += 1;
        Search::new(self, machine).run(configuration)
    }

    /// Searches again where that looked at some ways only.
    fn straight(
        &mut self,
        machine: Machine<'_>,
        configuration: &Configuration,
    ) -> Result<Option<Vec<u8>>, AutomatonError> {
        if self.is_straight {
            return Ok(None);
        }
        let effort = self.effort;
        let straight = self.straight.get_or_insert_with(|| {
            let fresh = Completions::new().with_effort(effort);
            let n_left = effort.find;
            Box::new(Completions { is_straight: true, n_left, ..fresh })
        });
        straight.by_rows(machine, configuration)
    }
}

/// What became of bytes.
struct Trial {
    /// Whether the text may end after them.
    accepted: bool,
    /// How many were read.
    n_read: usize,
    /// The configuration after those.
    after: Configuration,
}

/// Steps `bytes` until one is refused.
fn try_bytes(
    machine: Machine<'_>,
    limits: StackLimits,
    configuration: &Configuration,
    bytes: &[u8],
) -> Result<Trial, AutomatonError> {
    let mut after = configuration.clone();
    for (n_read, &byte) in bytes.iter().enumerate() {
        let next = after.step(machine, limits, Symbol::Byte(byte))?;
        if next.is_dead() {
            return Ok(Trial { accepted: false, n_read, after });
        }
        after = next;
    }
    let accepted = after.is_accepting(machine, limits)?;
    Ok(Trial { accepted, n_read: bytes.len(), after })
}

/// Returns a byte of `lo..=hi`, one that reads well if there is one: a small
/// letter, else the first that is visible.
fn pleasant(lo: u8, hi: u8) -> u8 {
    [b'a'..=b'z', b'!'..=b'~', b' '..=b' ']
        .into_iter()
        .map(|range| (lo.max(*range.start()), hi.min(*range.end())))
        .find(|(first, last)| first <= last)
        .map_or(lo, |(first, _)| first)
}

/// Returns the row whose steps may begin a shortest way: white space where it
/// is optional does not.
fn useful_row<'a>(
    machine: Machine<'a>,
    row: &'a Row,
) -> Result<&'a Row, AutomatonError> {
    match row.hint {
        super::Hint::Gap { core, .. } => machine.row(core),
        _ => Ok(row),
    }
}
