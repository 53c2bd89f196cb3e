//! Machines of other kinds within the machine of a grammar.
//!
//! A state of an embedded machine is a state of ours ([`Key::Inner`]), and a
//! frame of ours in such a state has the registers that the machine knows.
//! Whatever is asked about it, the machine answers, with its own states
//! behind ours. Only the states of one shared machine keep their numbers, so
//! that what is known of them for a whole vocabulary stays known: that of the
//! first embedded machine which has one.
//!
//! How a frame of an embedded machine ends tells its caller nothing: each of
//! its outcomes is a text of the machine.

use std::{collections::BTreeMap, sync::Arc};

use super::{CfgMachine, Key};
use crate::{
    automaton::{
        Atom, AtomId, Automaton, AutomatonError, Frame, Machine, Outcome,
        Resumed, Row, StateId,
    },
    grammar::{Embedded, Grammar},
};

/// The machines that are embedded.
#[derive(Debug)]
pub(super) struct Machines {
    list: Box<[Embedded]>,
    /// The first atom of each machine among those of the grammar.
    first_atoms: Box<[u32]>,
    pub(super) shared: Option<Arc<dyn Automaton>>,
}

impl Machines {
    /// Returns about how many bytes the machines hold.
    pub(super) fn memory_usage(&self) -> usize {
        let machines = self.list.iter();
        machines.map(|machine| machine.automaton.memory_usage()).sum()
    }

    /// Returns the machines of `grammar`, and the atoms of all together.
    pub(super) fn new(grammar: &Grammar) -> (Machines, Vec<Atom>) {
        let mut atoms = grammar.atoms().to_vec();
        let mut first_atoms = Vec::new();
        for machine in grammar.machines() {
            // There are no more atoms than tokens of texts in memory.
            let first = u32::try_from(atoms.len()).unwrap_or(u32::MAX);
            first_atoms.push(first);
            atoms.extend_from_slice(machine.automaton.atoms());
        }
        let mut machines = grammar.machines().iter();
        let shared =
            machines.find_map(|machine| machine.automaton.shared().cloned());
        let machines = Machines {
            list: grammar.machines().into(),
            first_atoms: first_atoms.into(),
            shared,
        };
        (machines, atoms)
    }

    /// Returns one of the machines.
    pub(super) fn get(&self, id: u32) -> Machine<'_> {
        Machine::new(&*self.list[id as usize].automaton)
    }

    pub(super) fn name(&self, id: u32) -> &str {
        &self.list[id as usize].name
    }

    /// Whether the shared states of a machine are those of ours.
    fn shares(&self, id: u32) -> bool {
        let theirs = self.list[id as usize].automaton.shared();
        match (theirs, &self.shared) {
            (Some(theirs), Some(ours)) => Arc::ptr_eq(theirs, ours),
            _ => false,
        }
    }
}

/// A machine and one of its states.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inner {
    pub(super) id: u32,
    pub(super) state: StateId,
}

impl CfgMachine {
    /// Returns our state for that of an embedded machine.
    pub(super) fn outer(
        &self,
        id: u32,
        state: StateId,
    ) -> Result<StateId, AutomatonError> {
        if state.is_shared() && self.machines.shares(id) {
            return Ok(state);
        }
        self.table.intern(Key::Inner { id, state })
    }

    /// Returns the state of an embedded machine that one of ours is.
    pub(super) fn inner(&self, state: StateId) -> Option<Inner> {
        if state.is_shared() {
            return None;
        }
        match *self.table.key(state) {
            Key::Inner { id, state } => Some(Inner { id, state }),
            Key::Enter(id) => {
                Some(Inner { id, state: self.machines.get(id).start() })
            }
            Key::Root(_)
            | Key::Start(_)
            | Key::Set { .. }
            | Key::Count { .. }
            | Key::Wait { .. } => None,
        }
    }

    /// Returns the machine that answers for a state of an embedded one.
    pub(super) fn owner(&self, Inner { id, state }: Inner) -> &dyn Automaton {
        self.machines.get(id).owner(state)
    }

    /// Returns what the machine `id` calls a state of ours that is one of
    /// its own, or one of the shared machine's.
    fn inner_state(&self, state: StateId) -> StateId {
        self.inner(state).map_or(state, |inner| inner.state)
    }

    fn inner_frame(&self, frame: &Frame) -> Frame {
        Frame { state: self.inner_state(frame.state), ..frame.clone() }
    }

    /// Builds the row of a state of an embedded machine.
    pub(super) fn inner_row(
        &self,
        Inner { id, state }: Inner,
    ) -> Result<Row, AutomatonError> {
        let row = self.machines.get(id).row(state)?;
        // A row names few states, many times.
        let mut known: BTreeMap<StateId, StateId> = BTreeMap::new();
        let mut row = row.map_states(|state| {
            if let Some(&outer) = known.get(&state) {
                return Ok(outer);
            }
            let outer = self.outer(id, state)?;
            known.insert(state, outer);
            Ok::<_, AutomatonError>(outer)
        })?;
        let first = self.machines.first_atoms[id as usize];
        for (AtomId(atom), _) in &mut row.atoms {
            *atom = atom.saturating_add(first);
        }
        Ok(row)
    }

    pub(super) fn inner_resume(
        &self,
        Inner { id, state }: Inner,
        outcome: Outcome,
    ) -> Result<Resumed, AutomatonError> {
        let resumed = self.machines.get(id).resume(state, outcome)?;
        resumed.into_iter().map(|state| self.outer(id, state)).collect()
    }

    pub(super) fn inner_enter(
        &self,
        inner: Inner,
        caller: &Frame,
        callee: StateId,
    ) -> Frame {
        let caller = Frame { state: inner.state, ..caller.clone() };
        // A machine that enters a frame in a state keeps to the state.
        let entered = self.inner_state(callee);
        let frame = self.owner(inner).enter(&caller, entered);
        Frame { state: callee, ..frame }
    }

    pub(super) fn inner_advance(
        &self,
        inner: Inner,
        frame: &mut Frame,
        byte: u8,
        to: StateId,
    ) -> Result<(), AutomatonError> {
        let mut moved = Frame { state: inner.state, ..frame.clone() };
        let to = self.inner_state(to);
        self.owner(inner).advance(&mut moved, byte, to)?;
        moved.state = self.outer(inner.id, moved.state)?;
        *frame = moved;
        Ok(())
    }

    pub(super) fn inner_leave(
        &self,
        inner: Inner,
        caller: &Frame,
        callee: &Frame,
        outcome: Outcome,
        to: StateId,
    ) -> Result<Option<Frame>, AutomatonError> {
        let caller = Frame { state: inner.state, ..caller.clone() };
        let callee = self.inner_frame(callee);
        let to = self.inner_state(to);
        let machine = self.owner(inner);
        let left = machine.leave(&caller, &callee, outcome, to)?;
        left.map(|frame| {
            let state = self.outer(inner.id, frame.state)?;
            Ok(Frame { state, ..frame })
        })
        .transpose()
    }

    /// Asks the machine that a frame of ours is in, if it is in one.
    pub(super) fn ask<T>(
        &self,
        frame: &Frame,
        ask: impl FnOnce(&dyn Automaton, &Frame) -> T,
    ) -> Option<T> {
        let inner = self.inner(frame.state)?;
        let frame = Frame { state: inner.state, ..frame.clone() };
        Some(ask(self.owner(inner), &frame))
    }
}
