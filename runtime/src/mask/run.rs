//! One walk in the making.
//!
//! A [`Run`] visits the nodes of a trie with the frames that a state makes of
//! them. Its buffers are kept from walk to walk: most walks are small, and
//! would spend their time on memory otherwise.

use std::sync::Arc;

use maskwright_grammar_core::{
    automaton::{AutomatonError, Hint, Outcome, Row, StateId, Step},
    interrupt,
    util::FxHashSet,
};
use smallvec::SmallVec;

use super::{
    classes::ClassTrie,
    ends::EndTable,
    held::{HeldTrie, RowCache},
    index::TokenTrie,
    scan::{ScanTable, is_simple},
    set::TokenSet,
    store::WalkKey,
    trie::{Trie, TrieRef},
    walk::{Entry, Exit, Part, Waiting, Walk, Walker},
    words::WordList,
};

/// Callees with at least so many nodes before them get a walk of their own.
const PART_SIZE: u32 = 32;
/// From so many nodes on, hints are worth their tables.
pub(super) const HINT_SIZE: u32 = 96;
/// From so many nodes on, it is worth asking whether a state loops.
pub(super) const LOOP_SIZE: u32 = 24;
/// From so many nodes on, it is worth having tables of simple states.
const SCAN_SIZE: u32 = 48;
/// States that read more bytes than this are worth a scan by classes.
const FEW_BYTES: u32 = 16;
/// Walks nest so deep; from there on, callees are walked through.
pub(super) const MAX_NESTING: u32 = 48;
/// How many nodes one walk may visit, over all stacks.
const MAX_STEPS: usize = 50_000_000;
/// After so many nodes, a walk asks whether it may go on.
const STEPS_TO_CHECK: usize = 4_096;
/// From so many nodes on, a place at which a frame ends is kept by itself:
/// to merge it would copy it.
pub(super) const MERGED_SIZE: u32 = 4_096;

/// A frame of this walk at a node.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Task {
    pub(super) state: StateId,
    /// The frames below that this walk pushed: an index in `Buffers::stacks`
    /// from 1 on, or [`BASE`].
    pub(super) stack: u32,
    /// An index in `Run::tries`.
    pub(super) trie: u32,
    pub(super) node: u32,
}

/// Nothing was pushed: this is the walk's own frame.
pub(super) const BASE: u32 = 0;

/// A trie that is being walked.
#[derive(Debug)]
struct Place {
    at: TrieRef,
    /// Where it was entered: a trie and a node of it after which white space
    /// and then this byte was read.
    entered: Option<(u32, u32, u8)>,
}

impl Place {
    fn new(at: &TrieRef, entered: Option<(u32, u32, u8)>) -> Place {
        Place { at: at.clone(), entered }
    }
}

/// Which walk a part is, where it may be merged with others.
#[derive(Clone, Copy, Debug)]
pub(super) struct MergeKey {
    pub(super) key: WalkKey,
    /// Whether the walk is kept for all grammars.
    pub(super) is_shared: bool,
}

/// What a run writes while it goes.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// Waiting states, each with what lies below it.
    stacks: Vec<(Waiting, u32)>,
    pub(super) tasks: Vec<Task>,
    /// Tasks that were made where there was a choice.
    seen: FxHashSet<Task>,
    pub(super) table: ScanTable,
    /// Accepted tokens: a trie, and a range of its tokens.
    accepted: Vec<(u32, u32, u32)>,
    pub(super) sets: Vec<Arc<TokenSet>>,
    /// More accepted tokens.
    pub(super) lists: Vec<u32>,
    /// Where the frame ends: a trie and a node.
    pub(super) exits: Vec<(Outcome, u32, u32)>,
    pub(super) parts: Vec<(Part, Option<MergeKey>)>,
    guarded: Vec<u32>,
}

impl Buffers {
    fn clear(&mut self) {
        self.stacks.clear();
        self.tasks.clear();
        self.seen.clear();
        self.table.clear();
        self.accepted.clear();
        self.sets.clear();
        self.lists.clear();
        self.exits.clear();
        self.parts.clear();
        self.guarded.clear();
    }
}

/// One walk in the making.
pub(super) struct Run<'w, 'a> {
    pub(super) walker: &'w mut Walker<'a>,
    pub(super) bottom: bool,
    /// Whether the vocabulary may be gone over by classes.
    by_classes: bool,
    tries: SmallVec<[Place; 1]>,
    n_steps: usize,
    /// When to look at the limits again.
    next_check: usize,
    rows: RowCache<'a>,
    pub(super) buffers: Buffers,
}

impl<'w, 'a> Run<'w, 'a> {
    pub(super) fn new(
        walker: &'w mut Walker<'a>,
        at: &TrieRef,
        bottom: bool,
    ) -> Run<'w, 'a> {
        let place = Place::new(at, None);
        Run {
            rows: RowCache::new(walker.machine),
            buffers: walker.store.take_buffers(),
            walker,
            bottom,
            by_classes: true,
            tries: SmallVec::from_buf([place]),
            n_steps: 0,
            next_check: STEPS_TO_CHECK,
        }
    }

    /// Walks `state` from the place.
    pub(super) fn walk(
        mut self,
        state: StateId,
    ) -> Result<Walk, AutomatonError> {
        let row = self.walker.machine.row(state)?;
        let node = self.tries[0].at.node;
        let start = Task { state, stack: BASE, trie: 0, node };
        if !self.start_with_hint(start)? {
            self.arrive(start, true)?;
        }
        self.work_off()?;
        Ok(self.finish(state, row))
    }

    /// Walks `base` for its accepted tokens and the nodes at which it ends.
    pub(super) fn ends(
        mut self,
        base: StateId,
    ) -> Result<EndTable, AutomatonError> {
        // The nodes are those of the trie that was asked for.
        self.by_classes = false;
        let node = self.tries[0].at.node;
        let start = Task { state: base, stack: BASE, trie: 0, node };
        self.arrive(start, true)?;
        self.work_off()?;
        let exits = &self.buffers.exits;
        let ends = exits.iter().map(|&(_, _, node)| node).collect();
        let (accepted, at) = (self.accepted_set(), self.tries[0].at.clone());
        self.put_back();
        Ok(EndTable::new(accepted, &at, ends))
    }

    fn work_off(&mut self) -> Result<(), AutomatonError> {
        while let Some(task) = self.buffers.tasks.pop() {
            self.arrive(task, false)?;
        }
        Ok(())
    }

    fn accepted_set(&self) -> TokenSet {
        let ranges = self.buffers.accepted.iter();
        let slices = ranges.map(|&(trie, from, to)| {
            self.tries[trie as usize].at.trie.tokens(from, to)
        });
        let all = slices.chain([&*self.buffers.lists]);
        TokenSet::new(all, self.walker.index.n_blocks())
    }

    fn finish(mut self, state: StateId, row: &Row) -> Walk {
        let accepted = self.accepted_set();
        let exits = self.grouped_exits(row);
        self.merge_parts();
        let registers = row.registers;
        let buffers = &mut self.buffers;
        let walk = Walk {
            state,
            registers,
            accepted,
            sets: buffers.sets.drain(..).collect(),
            exits,
            parts: buffers.parts.drain(..).map(|(part, _)| part).collect(),
            guarded: Box::from(&*buffers.guarded),
        };
        self.put_back();
        walk
    }

    /// Gives the buffers back.
    fn put_back(mut self) {
        self.walker.stats.n_nodes += self.n_steps as u64;
        self.buffers.clear();
        self.walker.store.put_buffers(self.buffers);
    }

    /// Makes one place of all the places at which the frame ends alike, but
    /// for large ones. `row` is that of the state at the start.
    fn grouped_exits(&mut self, row: &Row) -> Box<[Exit]> {
        let exits = &mut self.buffers.exits;
        let tries = &self.tries;
        if exits.len() > 1 {
            exits.sort_unstable();
            exits.dedup();
        }
        let place = |&(_, trie, node): &(Outcome, u32, u32)| {
            (&tries[trie as usize].at.trie, node)
        };
        let start = &tries[0].at;
        let is_direct = |exit: &(Outcome, u32, u32)| {
            let &(outcome, trie, node) = exit;
            let byte = start.trie.node(node).byte;
            // Where the frame may also read the byte and then end, its
            // registers are not those of the start.
            outcome.is_guarded()
                && trie == 0
                && start.trie.child(start.node, byte) == Some(node)
                && row.steps(byte).all(|step| step == Step::Return(outcome))
        };
        let mut grouped: SmallVec<[Exit; 8]> = SmallVec::new();
        for run in exits.chunk_by(|a, b| a.0 == b.0) {
            let outcome = run[0].0;
            let mut small: SmallVec<[(&Arc<Trie>, u32); 8]> = SmallVec::new();
            for exit in run {
                let (trie, node) = place(exit);
                let direct = is_direct(exit);
                if run.len() == 1 || direct || trie.size(node) >= MERGED_SIZE {
                    let at = TrieRef { trie: Arc::clone(trie), node };
                    grouped.push(Exit { outcome, at, direct });
                } else {
                    small.push((trie, node));
                }
            }
            let at = match small[..] {
                [] => continue,
                [(trie, node)] => TrieRef { trie: Arc::clone(trie), node },
                _ => self.walker.union(&small),
            };
            grouped.push(Exit { outcome, at, direct: false });
        }
        grouped.into_iter().collect()
    }

    pub(super) fn trie(&self, task: Task) -> &Arc<Trie> {
        &self.tries[task.trie as usize].at.trie
    }

    /// Returns the trie of a task, to be held while the run goes on.
    pub(super) fn held_trie(&self, task: Task) -> HeldTrie {
        let trie = self.trie(task);
        if trie.id() == self.walker.index.root().trie.id() {
            HeldTrie::Root(self.walker.held_root())
        } else {
            HeldTrie::Other(Arc::clone(trie))
        }
    }

    pub(super) fn place(&self, task: Task) -> TrieRef {
        TrieRef { trie: Arc::clone(self.trie(task)), node: task.node }
    }

    /// Returns the vocabulary by classes, if a task is at its root, with the
    /// first byte of each token what it is if that is `kept`.
    pub(super) fn classes_at(
        &self,
        task: Task,
        kept: bool,
    ) -> Option<&'a ClassTrie> {
        let index: &'a TokenTrie = self.walker.index;
        if self.by_classes && self.is_root(task) {
            index.classes(kept)
        } else {
            None
        }
    }

    /// Whether a task is at the root of the vocabulary.
    pub(super) fn is_root(&self, task: Task) -> bool {
        let root = &self.walker.index.root().trie;
        task.node == 0 && self.trie(task).id() == root.id()
    }

    /// Adds a trie to walk in.
    pub(super) fn add_place(
        &mut self,
        at: &TrieRef,
        entered: Option<(u32, u32, u8)>,
    ) -> u32 {
        let trie = u32::try_from(self.tries.len())
            .expect("at most one place for each byte and node");
        self.tries.push(Place::new(at, entered));
        trie
    }

    /// Ends the frame of the walk at a place of any trie.
    pub(super) fn exit(&mut self, outcome: Outcome, at: &TrieRef) {
        let trie = self.add_place(at, None);
        self.buffers.exits.push((outcome, trie, at.node));
    }

    /// Does everything for one frame at one node.
    pub(super) fn arrive(
        &mut self,
        task: Task,
        is_start: bool,
    ) -> Result<(), AutomatonError> {
        self.n_steps += 1;
        self.check_steps()?;
        let row = self.rows.get(task.state)?;
        let size = self.trie(task).size(task.node);
        if row.registers && task.stack != BASE {
            self.guard(task);
        }
        if row.is_open() {
            self.accept(task, task.node + 1);
        }
        // Where no token goes on, a frame that may go on has accepted all
        // that its end could.
        if let Some(outcome) = row.finish
            && (size > 1 || !row.is_open())
        {
            self.end(task, outcome)?;
        }
        if size == 1 || !row.is_open() {
            return Ok(());
        }
        if size >= LOOP_SIZE && self.take_subtree(task, row, size)? {
            return Ok(());
        }
        for call in &row.calls {
            self.call(task, call.resume, call.callee)?;
        }
        if size >= HINT_SIZE {
            match row.hint {
                // Where the frame may end or call, it may after any space.
                Hint::Gap { core, left }
                    if left > 0
                        && row.calls.is_empty()
                        && (row.finish.is_none()
                            || self.bottom && task.stack == BASE) =>
                {
                    return self.skip_space(task, core, left);
                }
                Hint::Except { .. }
                | Hint::Ends { .. }
                | Hint::Words { base: Some(_), .. }
                    if !is_start && self.walker.nesting < MAX_NESTING =>
                {
                    return self.part(task, row);
                }
                _ => {}
            }
        }
        if let Some((list, None)) = WordList::of(&row.hint) {
            return self.read_words(task, list);
        }
        if size >= SCAN_SIZE
            && task.stack == BASE
            && is_simple(row)
            && (!self.is_sparse(task, row)
                || self.is_root(task) && row.n_live() > FEW_BYTES)
        {
            return self.scan(task, row);
        }
        self.read_children(task, row)
    }

    pub(super) fn add_steps(&mut self, n_steps: usize) {
        self.n_steps += n_steps;
    }

    pub(super) fn row(
        &mut self,
        state: StateId,
    ) -> Result<&'a Row, AutomatonError> {
        self.rows.get(state)
    }

    pub(super) fn check_steps(&mut self) -> Result<(), AutomatonError> {
        if self.n_steps > self.next_check {
            self.next_check = self.n_steps + STEPS_TO_CHECK;
            self.check_limits()?;
        }
        Ok(())
    }

    fn check_limits(&self) -> Result<(), AutomatonError> {
        interrupt::check()?;
        if self.n_steps > MAX_STEPS {
            return Err(AutomatonError::Limit {
                name: "max_walk_steps",
                what: "the number of steps for one mask",
                limit: MAX_STEPS,
            });
        }
        Ok(())
    }

    /// Accepts every token below if the state stays on all of it.
    fn take_subtree(
        &mut self,
        task: Task,
        row: &'a Row,
        size: u32,
    ) -> Result<bool, AutomatonError> {
        let ends_here = row.finish.is_some();
        if ends_here && !(self.bottom && task.stack == BASE) {
            return Ok(false);
        }
        let trie = self.held_trie(task);
        let machine = self.walker.machine;
        let looping = self.walker.store.looping(task.state, row);
        if !looping.takes(machine, task.state, &trie, task.node)? {
            return Ok(false);
        }
        self.accept(task, task.node + size);
        Ok(true)
    }

    /// Whether a row reads so few bytes that their nodes are looked up.
    fn is_sparse(&self, task: Task, row: &Row) -> bool {
        let n_found = self.trie(task).n_sooner_found(task.node);
        n_found > 0 && row.n_live() <= n_found
    }

    /// Reads every byte that has a child.
    pub(super) fn read_children(
        &mut self,
        task: Task,
        row: &'a Row,
    ) -> Result<(), AutomatonError> {
        let trie = self.held_trie(task);
        if self.is_sparse(task, row) {
            for range in row.ranges() {
                for byte in range.lo..=range.hi {
                    if let Some(child) = trie.child(task.node, byte) {
                        self.take(task, child, range.step)?;
                    }
                }
            }
            return Ok(());
        }
        for (child, byte) in trie.children(task.node) {
            if row.is_live(byte) {
                self.read(task, row, byte, child)?;
            }
        }
        Ok(())
    }

    pub(super) fn read(
        &mut self,
        task: Task,
        row: &'a Row,
        byte: u8,
        child: u32,
    ) -> Result<(), AutomatonError> {
        if row.is_deterministic() {
            if let Some(step) = row.step(byte) {
                self.take(task, child, step)?;
            }
            return Ok(());
        }
        for step in row.steps(byte) {
            self.take(task, child, step)?;
        }
        Ok(())
    }

    /// Takes a step from `task` to its `child`.
    pub(super) fn take(
        &mut self,
        task: Task,
        child: u32,
        step: Step,
    ) -> Result<(), AutomatonError> {
        let task = Task { node: child, ..task };
        match step {
            Step::Stay(state) => {
                let before = task.state;
                let task = Task { state, ..task };
                if self.trie(task).size(child) == 1 {
                    // Every state is viable, so the token may end here. What
                    // the state does next does not matter.
                    if task.stack != BASE && self.rows.get(before)?.registers {
                        self.guard(task);
                    }
                    self.add_steps(1);
                    self.accept(task, child + 1);
                    return Ok(());
                }
                self.buffers.tasks.push(task);
                Ok(())
            }
            Step::Call { resume, callee } => self.call(task, resume, callee),
            Step::Return(outcome) => self.end(task, outcome),
        }
    }

    pub(super) fn accept(&mut self, task: Task, to: u32) {
        let trie = &self.tries[task.trie as usize].at.trie;
        let from = trie.node(task.node).tokens;
        let to = trie.node(to).tokens;
        self.accept_range(task, (from, to));
    }

    /// Accepts a range of the tokens of a trie.
    pub(super) fn accept_range(&mut self, task: Task, (from, to): (u32, u32)) {
        if from == to {
            return;
        }
        if let Some(last) = self.buffers.accepted.last_mut()
            && last.0 == task.trie
        {
            if last.2 == from {
                last.2 = to;
                return;
            }
            if last.1 == to {
                last.1 = from;
                return;
            }
        }
        self.buffers.accepted.push((task.trie, from, to));
    }

    /// Has everything at and below a node stepped exactly.
    fn guard(&mut self, task: Task) {
        let trie = &self.tries[task.trie as usize].at.trie;
        self.buffers.guarded.extend_from_slice(trie.subtree_tokens(task.node));
    }

    /// Ends the frame of `task`, which is at the node.
    pub(super) fn end(
        &mut self,
        task: Task,
        outcome: Outcome,
    ) -> Result<(), AutomatonError> {
        if task.stack == BASE {
            if self.bottom {
                self.accept(task, task.node + 1);
            } else {
                let exit = (outcome, task.trie, task.node);
                self.buffers.exits.push(exit);
            }
            return Ok(());
        }
        if outcome.is_guarded() {
            self.guard(task);
        }
        let (waiting, stack) = self.waiting(task.stack);
        for state in self.walker.resume(waiting.state, outcome)? {
            self.add(Task { state, stack, ..task });
        }
        Ok(())
    }

    /// Pushes a frame above the one of `task`, which waits at the node.
    fn call(
        &mut self,
        task: Task,
        resume: StateId,
        callee: StateId,
    ) -> Result<(), AutomatonError> {
        let row = self.rows.get(callee)?;
        let registers = self.rows.get(task.state)?.registers;
        let resume = Waiting { state: resume, registers };
        let stack = self.push(resume, task.stack);
        let task = Task { state: callee, stack, ..task };
        let size = self.trie(task).size(task.node);
        if (row.registers || size >= PART_SIZE)
            && self.walker.nesting < MAX_NESTING
        {
            return self.part(task, row);
        }
        self.add(task);
        Ok(())
    }

    /// Adds a task that may have been added before.
    fn add(&mut self, task: Task) {
        if self.buffers.seen.insert(task) {
            self.buffers.tasks.push(task);
        }
    }

    /// Returns the waiting state of a stack, and the stack below.
    fn waiting(&self, stack: u32) -> (Waiting, u32) {
        self.buffers.stacks[stack as usize - 1]
    }

    fn push(&mut self, resume: Waiting, below: u32) -> u32 {
        let stacks = &mut self.buffers.stacks;
        let known = stacks.iter().position(|&stack| stack == (resume, below));
        let index = known.unwrap_or_else(|| {
            stacks.push((resume, below));
            stacks.len() - 1
        });
        u32::try_from(index + 1).expect("fewer stacks than steps")
    }

    /// Has the frame of `task` walked on its own.
    fn part(&mut self, task: Task, row: &Row) -> Result<(), AutomatonError> {
        let at = self.place(task);
        let bottom = self.bottom && task.stack == BASE;
        let walk = self.walker.walk(task.state, &at, bottom)?;
        let key = WalkKey::new(task.state, &at, bottom);
        let is_shared = task.state.is_shared() && at.trie.is_public();
        let mut resumes = SmallVec::new();
        let mut stack = task.stack;
        while stack != BASE {
            let (resume, below) = self.waiting(stack);
            resumes.push(resume);
            stack = below;
        }
        resumes.reverse();
        let is_pushed = task.stack != BASE;
        let entry = (row.registers && is_pushed)
            .then(|| Entry::new(self.path(task).into(), at));
        let is_mergeable = entry.is_none() && is_pushed && walk.is_plain();
        let cleared = Box::default();
        let key = is_mergeable.then_some(MergeKey { key, is_shared });
        let part = Part { resumes, walk, cleared, entry };
        self.buffers.parts.push((part, key));
        Ok(())
    }

    /// Returns the bytes from the start to the node of `task`. White space
    /// that was skipped is one space.
    fn path(&self, task: Task) -> Vec<u8> {
        let (mut trie, mut node) = (task.trie, task.node);
        let mut pieces = Vec::new();
        loop {
            let place = &self.tries[trie as usize];
            pieces.push(place.at.trie.path(place.at.node, node));
            let Some((from, at, byte)) = place.entered else { break };
            pieces.push(vec![b' ', byte]);
            (trie, node) = (from, at);
        }
        pieces.reverse();
        pieces.concat()
    }

    /// Goes over white space in one step.
    fn skip_space(
        &mut self,
        task: Task,
        core: StateId,
        left: u32,
    ) -> Result<(), AutomatonError> {
        let row = self.rows.get(core)?;
        self.read_children(Task { state: core, ..task }, row)?;
        let at = self.place(task);
        let gap = self.walker.gap(&at, left);
        if !gap.blank.is_empty() {
            self.buffers.sets.push(Arc::clone(&gap.blank));
            if row.registers && task.stack != BASE {
                self.guard(task);
            }
        }
        for (byte, at) in &gap.next {
            if !row.is_live(*byte) {
                continue;
            }
            let entered = Some((task.trie, task.node, *byte));
            let trie = self.add_place(at, entered);
            let core = Task { state: core, trie, ..task };
            self.read(core, row, *byte, at.node)?;
        }
        Ok(())
    }
}
