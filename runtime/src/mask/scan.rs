//! Simple states, numbered and tabulated for one walk.
//!
//! Most nodes of a trie are visited in states that only read: no call, no
//! end without a byte, one step a byte. These get a table of 256 steps each,
//! so that a walk costs a look-up a node.

use maskwright_grammar_core::{
    automaton::{AutomatonError, Hint, Machine, Outcome, Row, StateId, Step},
    util::FxHashMap,
};
use smallvec::SmallVec;

use super::{
    classes::{ClassSet, ClassTrie},
    looping::Loop,
    run::{HINT_SIZE, LOOP_SIZE, MAX_NESTING, Run, Task},
    trie::Trie,
};

/// A step of a table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Code(u16);

impl Code {
    /// No step.
    pub(super) const DEAD: Code = Code(0);
    /// The frame returns.
    pub(super) const RETURN: Code = Code(1);
    /// Anything else than a step to a numbered state.
    pub(super) const OTHER: Code = Code(2);
    const FIRST: u16 = 3;

    /// Returns the number of the state that the step leads to.
    pub(super) fn number(self) -> Option<u16> {
        self.0.checked_sub(Code::FIRST)
    }
}

/// The numbered states of one walk.
#[derive(Debug, Default)]
pub(super) struct ScanTable {
    numbers: FxHashMap<StateId, u16>,
    states: Vec<(StateId, Kind)>,
    /// 256 steps a state, for those that were visited.
    codes: Vec<[Code; 256]>,
    /// The numbers of those states.
    visited: Vec<u16>,
    /// The classes on whose bytes each table differs, once asked.
    mixed: Vec<Option<ClassSet>>,
}

/// What is known of a numbered state.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Unvisited,
    Simple(Simple),
    /// To be walked one step at a time.
    Other,
}

/// What a walk asks of a simple state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Simple {
    /// Its steps are `codes` at this index.
    pub(super) codes: u32,
    /// How the frame may end without a byte, if there is one below it.
    pub(super) finish: Option<Outcome>,
    has_hint: bool,
    looping: Loop,
}

/// Whether a row only reads, or ends without a byte.
pub(super) fn is_simple(row: &Row) -> bool {
    row.is_deterministic()
        && row.is_open()
        && row.calls.is_empty()
        && row.atoms.is_empty()
        && !matches!(
            row.hint,
            Hint::Gap { .. } | Hint::Words { base: None, .. }
        )
}

impl ScanTable {
    /// Forgets all states.
    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.states.clear();
        self.codes.clear();
        self.visited.clear();
        self.mixed.clear();
    }

    /// Returns the number of a state; none if there are too many.
    pub(super) fn number(&mut self, state: StateId) -> Option<u16> {
        if let Some(&number) = self.numbers.get(&state) {
            return Some(number);
        }
        let number = u16::try_from(self.states.len()).ok()?;
        if number > u16::MAX - Code::FIRST {
            return None;
        }
        self.numbers.insert(state, number);
        self.states.push((state, Kind::Unvisited));
        Some(number)
    }

    pub(super) fn state(&self, number: u16) -> StateId {
        self.states[usize::from(number)].0
    }

    /// Returns true if the state was not looked at yet: its row is wanted.
    fn is_unvisited(&self, number: u16) -> bool {
        matches!(self.states[usize::from(number)].1, Kind::Unvisited)
    }

    /// Tabulates the row of a state. At the `bottom`, to end without a byte
    /// changes nothing about what follows.
    fn visit(&mut self, number: u16, row: &Row, bottom: bool) {
        let kind = if is_simple(row) {
            let mut codes = [Code::DEAD; 256];
            for range in row.ranges() {
                let code = match range.step {
                    Step::Return(_) => Code::RETURN,
                    Step::Call { .. } => Code::OTHER,
                    Step::Stay(to) => {
                        self.number(to).map_or(Code::OTHER, |number| {
                            Code(number + Code::FIRST)
                        })
                    }
                };
                let (lo, hi) = (usize::from(range.lo), usize::from(range.hi));
                codes[lo..=hi].fill(code);
            }
            self.codes.push(codes);
            self.visited.push(number);
            self.mixed.push(None);
            let codes = u32::try_from(self.codes.len() - 1)
                .expect("no more tables than numbers");
            let finish = row.finish.filter(|_| !bottom);
            let looping = if finish.is_some() {
                Loop::never()
            } else {
                Loop::new(self.state(number), row)
            };
            Kind::Simple(Simple {
                codes,
                finish,
                // Bounds are followed like everything else within a token.
                has_hint: !matches!(
                    row.hint,
                    Hint::None | Hint::Alike { .. } | Hint::Window { .. }
                ),
                looping,
            })
        } else {
            Kind::Other
        };
        self.states[usize::from(number)].1 = kind;
    }

    /// Returns what is known of a visited state, if it is simple.
    pub(super) fn simple(&mut self, number: u16) -> Option<&mut Simple> {
        match &mut self.states[usize::from(number)].1 {
            Kind::Simple(simple) => Some(simple),
            Kind::Unvisited | Kind::Other => None,
        }
    }

    /// Returns the classes on whose bytes a table does not do the same.
    pub(super) fn mixed(&mut self, codes: u32) -> ClassSet {
        let codes = codes as usize;
        let table = &self.codes[codes];
        *self.mixed[codes].get_or_insert_with(|| ClassSet::mixed(table))
    }

    /// Returns the step on `byte` in the table `codes`.
    pub(super) fn step(&self, codes: u32, byte: u8) -> Code {
        self.codes[codes as usize][usize::from(byte)]
    }
}

impl<'a> Run<'_, 'a> {
    /// Reads all below a node in a simple state of the walk's own frame, as
    /// far as states are simple.
    pub(super) fn scan(
        &mut self,
        task: Task,
        row: &'a Row,
    ) -> Result<(), AutomatonError> {
        let Some(start) = self.buffers.table.number(task.state) else {
            return self.read_children(task, row);
        };
        let codes = self.codes(start)?;
        let kept = !self.buffers.table.mixed(codes).is_empty();
        if let Some(classes) = self.classes_at(task, kept) {
            let trie = self.add_place(&classes.root, None);
            return self.scan_all(Task { trie, ..task }, codes, Some(classes));
        }
        self.scan_all(task, codes, None)
    }

    /// Reads all below a node, in the trie by classes if that is where it is:
    /// there, what a state does not do alike on each class it does in the
    /// real trie.
    fn scan_all(
        &mut self,
        task: Task,
        mut codes: u32,
        classes: Option<&ClassTrie>,
    ) -> Result<(), AutomatonError> {
        let trie = self.held_trie(task);
        let nodes = trie.nodes();
        let mut above: SmallVec<[(u32, ClassSet, u32); 24]> = SmallVec::new();
        // At the root either bytes are kept or the state is uniform.
        let mut mixed = ClassSet::default();
        let mut end = nodes[task.node as usize].end;
        let last = end;
        let mut index = task.node + 1;
        let mut accepted = (0, 0);
        let nested = self.walker.nesting >= MAX_NESTING;
        let mut n_steps = 0;
        while index < last {
            while index >= end {
                let below = (codes, mixed, last);
                (codes, mixed, end) = above.pop().unwrap_or(below);
            }
            let node = &nodes[index as usize];
            n_steps += 1;
            if mixed.holds(node.byte)
                && let Some(classes) = classes
            {
                let row = self.row_of(codes)?;
                self.read_members(task, row, classes, index)?;
                index = node.end;
                continue;
            }
            let code = self.buffers.table.step(codes, node.byte);
            let Some(number) = code.number() else {
                if code != Code::DEAD {
                    let row = self.row_of(codes)?;
                    let at = (index, node.byte);
                    self.read_classed(task, row, classes, at, code)?;
                }
                index = node.end;
                continue;
            };
            let size = node.end - index;
            let mut to = nodes[index as usize + 1].tokens;
            let from = node.tokens;
            let mut next = index + 1;
            if size > 1 {
                self.look_at(number)?;
                let state = self.buffers.table.state(number);
                let machine = self.walker.machine;
                let simple = self.buffers.table.simple(number).copied();
                let is_free = classes.is_some_and(|it| it.is_free(index));
                let Some(simple) = simple.filter(|it| {
                    (!it.has_hint || size < HINT_SIZE || nested)
                        && (!is_free || it.finish.is_none())
                }) else {
                    self.leave_scan(task, state, classes, index);
                    index = node.end;
                    continue;
                };
                if let Some(outcome) = simple.finish {
                    let exit = (outcome, task.trie, index);
                    self.buffers.exits.push(exit);
                }
                // One that loops on what stands for a class may not on others.
                let below = match classes {
                    Some(_) => self.buffers.table.mixed(simple.codes),
                    None => ClassSet::default(),
                };
                if simple.finish.is_none()
                    && size >= LOOP_SIZE
                    && below.is_empty()
                    && self.takes(number, machine, state, &trie, index)?
                {
                    to = nodes[node.end as usize].tokens;
                    next = node.end;
                } else {
                    above.push((codes, mixed, end));
                    (codes, end) = (simple.codes, node.end);
                    mixed = if is_free { below } else { ClassSet::default() };
                }
            }
            if from == accepted.1 {
                accepted.1 = to;
            } else {
                self.accept_range(task, accepted);
                accepted = (from, to);
            }
            index = next;
        }
        self.accept_range(task, accepted);
        self.add_steps(n_steps);
        self.check_steps()
    }

    /// Takes a step that does not only read, at a node that `byte` leads to.
    pub(super) fn read_classed(
        &mut self,
        task: Task,
        row: &'a Row,
        classes: Option<&ClassTrie>,
        (node, byte): (u32, u8),
        code: Code,
    ) -> Result<(), AutomatonError> {
        let Some(classes) = classes else {
            return self.read(task, row, byte, node);
        };
        // What leaves the frame is a place of real bytes. One that stands for
        // itself is that of the real trie: registers may know how it is come
        // by.
        if code == Code::RETURN
            && !classes.is_free(node)
            && classes.members(node).len() > 1
        {
            return self.read(task, row, byte, node);
        }
        self.read_members(task, row, classes, node)
    }

    /// Takes the steps to all the real nodes that a node stands for.
    pub(super) fn read_members(
        &mut self,
        task: Task,
        row: &'a Row,
        classes: &ClassTrie,
        node: u32,
    ) -> Result<(), AutomatonError> {
        let task = Task { trie: 0, ..task };
        let trie = self.held_trie(task);
        for &member in classes.members(node) {
            let byte = trie.node(member).byte;
            self.read(task, row, byte, member)?;
        }
        Ok(())
    }

    /// Goes on at a node one step at a time, in the real trie.
    pub(super) fn leave_scan(
        &mut self,
        task: Task,
        state: StateId,
        classes: Option<&ClassTrie>,
        node: u32,
    ) {
        match classes {
            None => self.buffers.tasks.push(Task { state, node, ..task }),
            Some(classes) => {
                let members = classes.members(node).iter();
                self.buffers.tasks.extend(members.map(|&node| Task {
                    state,
                    node,
                    trie: 0,
                    ..task
                }));
            }
        }
    }

    /// Whether a state stays on everything below a node.
    fn takes(
        &mut self,
        number: u16,
        machine: Machine<'_>,
        state: StateId,
        trie: &Trie,
        node: u32,
    ) -> Result<bool, AutomatonError> {
        match self.buffers.table.simple(number) {
            Some(simple) => simple.looping.takes(machine, state, trie, node),
            None => Ok(false),
        }
    }

    /// Tabulates a state that was not looked at yet.
    pub(super) fn look_at(
        &mut self,
        number: u16,
    ) -> Result<(), AutomatonError> {
        if self.buffers.table.is_unvisited(number) {
            let row = self.row(self.buffers.table.state(number))?;
            let bottom = self.bottom;
            self.buffers.table.visit(number, row, bottom);
        }
        Ok(())
    }

    /// Returns the row of a table.
    pub(super) fn row_of(
        &mut self,
        codes: u32,
    ) -> Result<&'a Row, AutomatonError> {
        let number = self.buffers.table.visited[codes as usize];
        self.row(self.buffers.table.state(number))
    }
}
