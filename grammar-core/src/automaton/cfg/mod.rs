//! Machines for context-free grammars.
//!
//! A [`CfgMachine`] takes any [`Grammar`]: ambiguous, nullable, recursive on
//! any side. Its frames are lazily determinised sets of positions.
//!
//! # Construction
//!
//! 1. Each rule becomes an automaton whose edges read a byte, a token, or a
//!    text of another rule (`build`). Calls of what may be empty are bypassed,
//!    so that every call means a non-empty text.
//! 2. What leads nowhere is trimmed (`trim`), so that every state that is
//!    handed out is viable in its frame.
//! 3. A frame reads one rule, its goal, and with it every rule that the goal
//!    can begin with: its left corners (`corner`). When one of these has been
//!    read, the frame goes on wherever it was called at the frame's very
//!    beginning. Hence a frame always begins with a byte or a token, calls
//!    without bytes do not chain, and left recursion of every kind costs no
//!    stack and needs no special case.
//! 4. A call whose end is the end of the caller takes the caller's frame over
//!    (`rows`), so that right recursion costs no stack either.
//! 5. Repetitions with large bounds are counters (`count`): a frame per
//!    counter, whose state is the count near the bounds and only "far" away
//!    from them, where the frame's register has it.
//!
//! 6. A machine of another kind may stand in a rule (`embed`). It is called
//!    like a rule, by frames whose first byte it decides.
//!
//! A frame has one goal, so all outcomes are alike, and a caller's waiting
//! state is the state in which it goes on; only a counter's is not, since it
//! has to count first.
//!
//! # The road not taken
//!
//! One machine per strongly connected component of left calls, its outcome
//! being the members that ended, has fewer states. It pays for unit chains at
//! run time and makes more configurations at once.

mod build;
mod corner;
mod count;
mod embed;
mod nfa;
mod rows;
mod trim;

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use self::{
    corner::{Corner, Scratch},
    count::Class,
    embed::{Inner, Machines},
    nfa::Nfa,
};
use super::{
    Atom, Automaton, AutomatonError, Frame, Outcome, Resumed, Row, StateId,
    StateTable, Watch,
};
use crate::grammar::{Analysis, Grammar};

/// The outcome of every frame: its goal was read.
const DONE: Outcome = Outcome(0);

/// How large a machine may grow.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CfgLimits {
    /// How many positions the rules may have together.
    pub max_nodes: usize,
    /// How many states may be made while the machine runs.
    pub max_states: usize,
    /// A repetition that takes more positions than this when it is written
    /// out is counted instead. Changes time, never results.
    pub max_unrolled: u32,
}

impl Default for CfgLimits {
    fn default() -> CfgLimits {
        CfgLimits { max_nodes: 1 << 24, max_states: 1 << 24, max_unrolled: 64 }
    }
}

/// A lazily built pushdown automaton for a [`Grammar`].
pub struct CfgMachine {
    nfa: Nfa,
    /// The name of each rule; the rules that were made for repetitions have
    /// the name of the rule that they are in.
    names: Vec<String>,
    atoms: Vec<Atom>,
    machines: Machines,
    /// The left corners of each goal, found when they are needed: for all
    /// goals at once they can be quadratic.
    corners: Vec<OnceLock<Corner>>,
    table: StateTable<Key>,
    scratch: Mutex<Vec<Scratch>>,
    start: StateId,
    /// Whether the empty text is in the language.
    is_nullable: bool,
}

/// A state.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Key {
    /// The first state of a text: that of the root, which alone may also be
    /// empty.
    Root(u32),
    /// A frame that has read nothing of its goal yet.
    Start(u32),
    /// A frame that has read something of its goal and is at these nodes
    /// (sorted).
    Set { goal: u32, nodes: Arc<[u32]> },
    /// A frame of a counter, between two texts that it counts.
    Count { id: u32, class: Class },
    /// The same frame while what it counts is read; not counted yet.
    Wait { id: u32, class: Class },
    /// A frame of an embedded machine that has read nothing yet.
    Enter(u32),
    /// A state of an embedded machine.
    Inner { id: u32, state: StateId },
}

impl CfgMachine {
    /// Creates the machine of `grammar`.
    ///
    /// # Errors
    ///
    /// Fails when the grammar derives nothing at all, or when it has more
    /// positions than `limits` allow.
    pub fn new(
        grammar: &Grammar,
        limits: &CfgLimits,
    ) -> Result<CfgMachine, AutomatonError> {
        let analysis = Analysis::new(grammar);
        let root = grammar.rule(grammar.root());
        if !analysis.is_productive(root.body) {
            let message = format!(
                "rule `{}` derives nothing; give it an alternative that ends",
                root.name,
            );
            return Err(AutomatonError::Grammar { message });
        }
        let (mut nfa, names) = build::build(grammar, &analysis, limits)?;
        trim::trim(&mut nfa);
        let (machines, atoms) = Machines::new(grammar);
        let table = StateTable::new(limits.max_states);
        let start = table.intern(Key::Root(grammar.root().0))?;
        Ok(CfgMachine {
            corners: names.iter().map(|_| OnceLock::new()).collect(),
            atoms,
            machines,
            scratch: Mutex::default(),
            is_nullable: analysis.is_nullable(root.body),
            nfa,
            names,
            table,
            start,
        })
    }

    /// Returns how many states were made so far.
    pub fn n_states(&self) -> usize {
        self.table.len()
    }

    fn corner(&self, goal: u32) -> &Corner {
        self.corners[goal as usize].get_or_init(|| {
            self.with_scratch(|scratch| Corner::new(&self.nfa, goal, scratch))
        })
    }

    fn close(&self, goal: u32, seeds: &[u32]) -> Vec<u32> {
        let corner = self.corner(goal);
        self.with_scratch(|scratch| {
            corner.close(&self.nfa, goal, seeds, scratch)
        })
    }

    /// Lends a scratch; one is made for each thread that needs one at once.
    fn with_scratch<T>(&self, use_it: impl FnOnce(&mut Scratch) -> T) -> T {
        let pool =
            || self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = pool().pop().unwrap_or_default();
        let result = use_it(&mut scratch);
        pool().push(scratch);
        result
    }

    fn state_row(&self, state: StateId) -> Result<&Row, AutomatonError> {
        self.table.row(state, |key| match key {
            Key::Root(goal) => {
                let mut row = self.start_row(*goal)?;
                row.finish = self.is_nullable.then_some(DONE);
                Ok(row)
            }
            Key::Start(goal) => self.start_row(*goal),
            Key::Set { goal, nodes } => self.set_row(*goal, nodes),
            Key::Count { id, class } => self.count_row(*id, *class),
            Key::Wait { .. } => Ok(Row::default()),
            Key::Enter(id) => {
                let state = self.machines.get(*id).start();
                let mut row = self.inner_row(Inner { id: *id, state })?;
                // A call reads something.
                row.finish = None;
                Ok(row)
            }
            &Key::Inner { id, state } => self.inner_row(Inner { id, state }),
        })
    }

    /// Counts one more in `frame`, whose state becomes `to`, a state of the
    /// counter `id`, or the one that knows the count better.
    fn count_up(
        &self,
        frame: &mut Frame,
        id: u32,
        to: StateId,
    ) -> Result<(), AutomatonError> {
        let counter = self.nfa.counters[id as usize];
        frame.state = to;
        if counter.has_register() {
            frame.counts[0] = counter.succ(frame.counts[0]);
            let class = counter.class(frame.counts[0]);
            frame.state = self.table.intern(Key::Count { id, class })?;
        }
        Ok(())
    }
}

impl Automaton for CfgMachine {
    fn start(&self) -> StateId {
        self.start
    }

    fn row(&self, state: StateId) -> Result<&Row, AutomatonError> {
        self.state_row(state)
    }

    fn resume(
        &self,
        resume: StateId,
        outcome: Outcome,
    ) -> Result<Resumed, AutomatonError> {
        let to = match self.table.key(resume) {
            &Key::Wait { id, class } => {
                let class = self.nfa.counters[id as usize].next(class);
                self.table.intern(Key::Count { id, class })?
            }
            &Key::Inner { id, state } => {
                return self.inner_resume(Inner { id, state }, outcome);
            }
            Key::Root(_)
            | Key::Start(_)
            | Key::Set { .. }
            | Key::Count { .. }
            | Key::Enter(_) => resume,
        };
        Ok([to].into_iter().collect())
    }

    fn shared(&self) -> Option<&Arc<dyn Automaton>> {
        self.machines.shared.as_ref()
    }

    fn atoms(&self) -> &[Atom] {
        &self.atoms
    }

    fn enter(&self, caller: &Frame, callee: StateId) -> Frame {
        if let Some(inner) = self.inner(caller.state) {
            return self.inner_enter(inner, caller, callee);
        }
        let mut frame = Frame::new(callee);
        if let Key::Count { class: Class::Exact(count), .. } =
            self.table.key(callee)
        {
            frame.counts[0] = *count;
        }
        frame
    }

    fn enters_alike(&self, callee: StateId) -> bool {
        if callee.is_shared() {
            let shared = self.machines.shared.as_ref();
            return shared.is_some_and(|shared| shared.enters_alike(callee));
        }
        match self.inner(callee) {
            Some(inner) => self.owner(inner).enters_alike(inner.state),
            None => true,
        }
    }

    fn advance(
        &self,
        frame: &mut Frame,
        byte: u8,
        to: StateId,
    ) -> Result<(), AutomatonError> {
        if let Some(inner) = self.inner(frame.state) {
            return self.inner_advance(inner, frame, byte, to);
        }
        match self.table.key(to) {
            Key::Count { id, .. } => self.count_up(frame, *id, to),
            Key::Root(_)
            | Key::Start(_)
            | Key::Set { .. }
            | Key::Wait { .. }
            | Key::Enter(_)
            | Key::Inner { .. } => {
                frame.state = to;
                Ok(())
            }
        }
    }

    fn leave(
        &self,
        caller: &Frame,
        callee: &Frame,
        outcome: Outcome,
        to: StateId,
    ) -> Result<Option<Frame>, AutomatonError> {
        if let Some(inner) = self.inner(caller.state) {
            return self.inner_leave(inner, caller, callee, outcome, to);
        }
        let mut frame = Frame { state: to, ..caller.clone() };
        if let Key::Count { id, .. } = self.table.key(to) {
            self.count_up(&mut frame, *id, to)?;
        }
        Ok(Some(frame))
    }

    fn watch(&self, frame: &Frame) -> Watch {
        self.ask(frame, |machine, frame| machine.watch(frame))
            .unwrap_or(Watch::Clear)
    }

    fn watched_bytes(&self, frame: &Frame) -> [u64; 4] {
        self.ask(frame, |machine, frame| machine.watched_bytes(frame))
            .unwrap_or([u64::MAX; 4])
    }

    fn refused_words(&self, frame: &Frame, on: &mut dyn FnMut(&[u8])) -> bool {
        let known = self.ask(frame, |machine, frame| {
            machine.refused_words(frame, &mut *on)
        });
        known.unwrap_or(false)
    }

    fn may_watch(&self, state: StateId) -> bool {
        self.inner(state)
            .is_some_and(|inner| self.owner(inner).may_watch(inner.state))
    }

    fn ending(&self, state: StateId) -> Result<StateId, AutomatonError> {
        let &Key::Inner { id, state: inner } = self.table.key(state) else {
            return Ok(state);
        };
        let ending = self.machines.get(id).ending(inner)?;
        if ending == inner { Ok(state) } else { self.outer(id, ending) }
    }

    fn exact(&self, state: StateId) -> bool {
        self.inner(state)
            .is_none_or(|inner| self.owner(inner).exact(inner.state))
    }

    fn memory_usage(&self) -> usize {
        let names = self.names.iter().map(String::len);
        size_of::<CfgMachine>()
            + self.table.memory_usage()
            + self.nfa.memory_usage()
            + self.machines.memory_usage()
            + size_of_val(&*self.corners)
            + size_of_val(&*self.names)
            + names.sum::<usize>()
    }

    fn describe(&self, state: StateId) -> String {
        let name = |rule: u32| &self.names[rule as usize];
        match self.table.key(state) {
            Key::Root(goal) | Key::Start(goal) => {
                format!("at the start of rule `{}`", name(*goal))
            }
            Key::Set { goal, nodes } => {
                let mut rules: Vec<&String> = Vec::new();
                for &node in &**nodes {
                    let rule = name(self.nfa.owner[node as usize]);
                    if !rules.contains(&rule) && rules.len() < 4 {
                        rules.push(rule);
                    }
                }
                rules.retain(|rule| *rule != name(*goal));
                let mut text = format!("in rule `{}`", name(*goal));
                for rule in rules {
                    text.extend([", `", rule, "`"]);
                }
                text
            }
            Key::Enter(id) => {
                format!("before `%{}`", self.machines.name(*id))
            }
            &Key::Inner { id, state } => {
                let machine = self.owner(Inner { id, state });
                let name = self.machines.name(id);
                format!("{} in `%{name}`", machine.describe(state))
            }
            Key::Count { id, class } | Key::Wait { id, class } => {
                let counter = self.nfa.counters[*id as usize];
                let what = name(counter.rule);
                match class {
                    Class::Exact(count) => {
                        let count = count.saturating_add(1);
                        format!("after {count} repetitions in `{what}`")
                    }
                    Class::Below | Class::Enough => {
                        format!("in a repetition in `{what}`")
                    }
                }
            }
        }
    }
}

impl fmt::Debug for CfgMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CfgMachine")
            .field("n_rules", &self.names.len())
            .field("n_nodes", &self.nfa.len())
            .field("n_states", &self.table.len())
            .finish_non_exhaustive()
    }
}
