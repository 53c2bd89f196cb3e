//! Builds the rows of states.

use std::collections::BTreeMap;

use super::{
    CfgMachine, DONE, Key,
    count::Class,
    nfa::{Callee, Label},
};
use crate::{
    automaton::{
        AtomId, AutomatonError, Call, Row, RowBuilder, StateId, Step,
    },
    util::FxHashMap,
};

/// Where a frame goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Target {
    /// It has read all of its goal and can read no more.
    Done,
    State(StateId),
}

impl Target {
    fn step(self) -> Step {
        match self {
            Target::Done => Step::Return(DONE),
            Target::State(state) => Step::Stay(state),
        }
    }

    /// Returns the call after which a frame goes here.
    fn call(self, callee: StateId) -> Step {
        match self {
            // The last call of a frame takes the frame over.
            Target::Done => Step::Stay(callee),
            Target::State(resume) => Step::Call { resume, callee },
        }
    }
}

/// What the nodes of a state do, by what they read.
#[derive(Default)]
struct Moves {
    bytes: Vec<(u8, u8, u32)>,
    atoms: BTreeMap<AtomId, Vec<u32>>,
    calls: BTreeMap<Callee, Vec<u32>>,
}

impl CfgMachine {
    /// Builds the row of a frame that has read nothing of its goal yet.
    pub(super) fn start_row(&self, goal: u32) -> Result<Row, AutomatonError> {
        let mut builder = RowBuilder::new();
        let moves = self.moves(&self.corner(goal).start);
        self.add_moves(goal, &moves, &mut builder)?;
        for (&callee, seeds) in &moves.calls {
            // What the rules that begin here read is there already.
            if matches!(callee, Callee::Machine(_)) {
                self.add_call(goal, callee, seeds, &mut builder)?;
            }
        }
        Ok(builder.build())
    }

    /// Builds the row of a frame that is at these nodes.
    pub(super) fn set_row(
        &self,
        goal: u32,
        nodes: &[u32],
    ) -> Result<Row, AutomatonError> {
        let mut builder = RowBuilder::new();
        if nodes.contains(&self.nfa.last[goal as usize]) {
            builder.finish(DONE);
        }
        let moves = self.moves(nodes);
        self.add_moves(goal, &moves, &mut builder)?;
        for (&callee, seeds) in &moves.calls {
            self.add_call(goal, callee, seeds, &mut builder)?;
        }
        Ok(builder.build())
    }

    /// Builds the row of a frame that has counted to `class`.
    pub(super) fn count_row(
        &self,
        id: u32,
        class: Class,
    ) -> Result<Row, AutomatonError> {
        let counter = self.nfa.counters[id as usize];
        let mut builder = RowBuilder::new();
        if counter.accepts(class) {
            builder.finish(DONE);
        }
        if counter.has_register() {
            builder.registers();
        }
        let callee = self.table.intern(Key::Start(counter.rule))?;
        let row = self.state_row(callee)?;
        if !row.calls.is_empty() {
            let resume = if counter.is_last(class) {
                self.end(counter.rule)?
            } else {
                self.table.intern(Key::Wait { id, class })?
            };
            builder.call(Call { resume, callee });
            return Ok(builder.build());
        }
        if counter.is_last(class) {
            add_row(row, Target::Done, Target::Done, &mut builder);
            return Ok(builder.build());
        }
        let wait = self.table.intern(Key::Wait { id, class })?;
        let class = counter.next(class);
        let next = self.table.intern(Key::Count { id, class })?;
        let (wait, next) = (Target::State(wait), Target::State(next));
        add_row(row, wait, next, &mut builder);
        let mut row = builder.build();
        for (_, step) in &mut row.atoms {
            // A token moves no register, but the end of a frame does.
            if *step == next.step() {
                *step = wait.call(self.end(counter.rule)?);
            }
        }
        Ok(row)
    }

    fn moves(&self, nodes: &[u32]) -> Moves {
        let mut moves = Moves::default();
        for &node in nodes {
            for edge in self.nfa.edges(node) {
                match edge.label {
                    Label::Empty => {}
                    Label::Bytes { lo, hi } => {
                        moves.bytes.push((lo, hi, edge.to));
                    }
                    Label::Atom(atom) => {
                        moves.atoms.entry(atom).or_default().push(edge.to);
                    }
                    Label::Call(callee) => {
                        moves.calls.entry(callee).or_default().push(edge.to);
                    }
                }
            }
        }
        moves
    }

    /// Adds what reads a byte or a token within the frame.
    fn add_moves(
        &self,
        goal: u32,
        moves: &Moves,
        builder: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let mut targets: FxHashMap<Vec<u32>, Target> = FxHashMap::default();
        for (lo, hi, seeds) in split(&moves.bytes) {
            let target = if let Some(&target) = targets.get(&seeds) {
                target
            } else {
                let target = self.target(goal, &seeds)?;
                targets.insert(seeds, target);
                target
            };
            builder.range(lo, hi, target.step());
        }
        for (&atom, seeds) in &moves.atoms {
            builder.atom(atom, self.target(goal, seeds)?.step());
        }
        Ok(())
    }

    /// Adds a call after which the frame goes on at `seeds`.
    fn add_call(
        &self,
        goal: u32,
        callee: Callee,
        seeds: &[u32],
        builder: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let nodes = self.close(goal, seeds);
        let target = self.target_of(goal, nodes)?;
        match callee {
            Callee::Rule(rule) => {
                let start = self.table.intern(Key::Start(rule))?;
                let row = self.state_row(start)?;
                if rule == goal && target == self.again(goal)? {
                    // What follows is what follows the goal itself: begin
                    // again in the same frame.
                    for range in row.ranges() {
                        builder.range(range.lo, range.hi, range.step);
                    }
                    for &(atom, step) in &row.atoms {
                        builder.atom(atom, step);
                    }
                    for &call in &row.calls {
                        builder.call(call);
                    }
                    return Ok(());
                }
                if !row.calls.is_empty() {
                    let resume = self.waiting(goal, target)?;
                    builder.call(Call { resume, callee: start });
                    return Ok(());
                }
                add_row(row, target, target, builder);
            }
            Callee::Counter(id) => {
                let counter = self.nfa.counters[id as usize];
                let class = counter.class(0);
                let start = self.table.intern(Key::Count { id, class })?;
                let row = self.state_row(start)?;
                let is_flat = row
                    .ranges()
                    .iter()
                    .all(|range| !matches!(range.step, Step::Call { .. }));
                let is_flat = is_flat && row.calls.is_empty();
                let resume = self.waiting(goal, target)?;
                if is_flat && row.atoms.is_empty() {
                    // Never a jump: a new frame has a register of its own.
                    let target = Target::State(resume);
                    add_row(row, target, target, builder);
                } else {
                    builder.call(Call { resume, callee: start });
                }
            }
            Callee::Machine(id) => {
                let resume = self.waiting(goal, target)?;
                let callee = self.table.intern(Key::Enter(id))?;
                builder.call(Call { resume, callee });
            }
        }
        Ok(())
    }

    /// Returns the state in which a frame waits that goes to `target` then.
    fn waiting(
        &self,
        goal: u32,
        target: Target,
    ) -> Result<StateId, AutomatonError> {
        match target {
            Target::State(resume) => Ok(resume),
            Target::Done => self.end(goal),
        }
    }

    /// Returns where a frame is once it has read its goal.
    fn again(&self, goal: u32) -> Result<Target, AutomatonError> {
        self.target(goal, &[self.nfa.last[goal as usize]])
    }

    /// Returns the state of a frame that has read its goal and can read no
    /// more.
    fn end(&self, goal: u32) -> Result<StateId, AutomatonError> {
        let nodes = [self.nfa.last[goal as usize]].into();
        self.table.intern(Key::Set { goal, nodes })
    }

    fn target(
        &self,
        goal: u32,
        seeds: &[u32],
    ) -> Result<Target, AutomatonError> {
        self.target_of(goal, self.close(goal, seeds))
    }

    fn target_of(
        &self,
        goal: u32,
        nodes: Vec<u32>,
    ) -> Result<Target, AutomatonError> {
        if nodes == [self.nfa.last[goal as usize]] {
            return Ok(Target::Done);
        }
        let nodes = nodes.into();
        Ok(Target::State(self.table.intern(Key::Set { goal, nodes })?))
    }
}

/// Adds what `row`, of a callee's first state, does. The caller is at
/// `wait` while the callee reads on, and at `next` if it has ended.
fn add_row(row: &Row, wait: Target, next: Target, builder: &mut RowBuilder) {
    let through = |step: Step| match step {
        Step::Return(_) => next.step(),
        Step::Stay(callee) => wait.call(callee),
        Step::Call { .. } => {
            debug_assert!(false, "a first state reads within its frame");
            step
        }
    };
    for range in row.ranges() {
        builder.range(range.lo, range.hi, through(range.step));
    }
    for &(atom, step) in &row.atoms {
        builder.atom(atom, through(step));
    }
}

/// Cuts overlapping ranges into disjoint ones, each with everything (sorted)
/// that its bytes lead to.
fn split(edges: &[(u8, u8, u32)]) -> Vec<(u8, u8, Vec<u32>)> {
    let mut cuts = [false; 257];
    for &(lo, hi, _) in edges {
        cuts[usize::from(lo)] = true;
        cuts[usize::from(hi) + 1] = true;
    }
    let mut parts: Vec<(u8, u8, Vec<u32>)> = Vec::new();
    // The part of each byte.
    let mut part_of = [0_usize; 256];
    for byte in 0..=u8::MAX {
        match parts.last_mut() {
            Some(part) if !cuts[usize::from(byte)] => part.1 = byte,
            _ => parts.push((byte, byte, Vec::new())),
        }
        part_of[usize::from(byte)] = parts.len() - 1;
    }
    for &(lo, hi, to) in edges {
        let (first, last) =
            (part_of[usize::from(lo)], part_of[usize::from(hi)]);
        for part in &mut parts[first..=last] {
            part.2.push(to);
        }
    }
    parts.retain_mut(|(_, _, seeds)| {
        seeds.sort_unstable();
        seeds.dedup();
        !seeds.is_empty()
    });
    parts
}
