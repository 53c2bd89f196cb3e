//! Walks: what a state makes of all the tokens below a place in a trie.
//!
//! A [`Walk`] starts with one frame in one state and knows nothing of the
//! frames below. It splits the tokens into those that stay within the frame
//! (or in frames that it pushes): they are allowed whatever lies below; and
//! those that leave it, which are kept by outcome as places in tries: what
//! follows the end of the frame, and the tokens that end there.
//!
//! Walks compose. A frame that is pushed on the way has a walk of its own
//! ([`Part`]), memoised like any other, and nothing of it is copied; where it
//! leaves, the caller's walk goes on from what resumes, once a mask asks.
//! Small callees are walked through instead, which is cheaper than a memo.

use std::sync::{Arc, Mutex};

use maskwright_grammar_core::{
    automaton::{AutomatonError, Hint, Machine, Outcome, Row, StateId, Step},
    util::FxHashSet,
};
use smallvec::SmallVec;

use super::{
    MaskStats, gap,
    index::{TokenTrie, lock},
    set::TokenSet,
    store::{WalkKey, WalkStore},
    trie::{Trie, TrieRef},
    window::{WindowTable, group_exits},
};

/// Callees with at least so many nodes before them get a walk of their own.
const PART_SIZE: u32 = 32;
/// From so many nodes on, hints are worth their tables.
const HINT_SIZE: u32 = 96;
/// From so many nodes on, it is worth asking whether a state loops.
const LOOP_SIZE: u32 = 24;
/// Walks nest so deep; from there on, callees are walked through.
const MAX_NESTING: u32 = 48;
/// How many nodes one walk may visit, over all stacks.
const MAX_STEPS: usize = 50_000_000;

/// What a state makes of the tokens below a place.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) state: StateId,
    /// Whether the state's frames have registers.
    pub(crate) registers: bool,
    /// Allowed whatever lies below.
    pub(crate) accepted: TokenSet,
    /// Allowed too; sets that several walks have in common.
    pub(crate) sets: Box<[Arc<TokenSet>]>,
    /// Where the frame ends, by outcome.
    pub(crate) exits: Box<[(Outcome, TrieRef)]>,
    /// Walks that are part of this one.
    pub(crate) parts: Box<[Part]>,
    /// Tokens that registers may refuse on the way; to be stepped exactly.
    pub(crate) guarded: Box<[u32]>,
}

/// A walk within a walk.
#[derive(Debug)]
pub(crate) struct Part {
    /// The waiting states between the outer walk's frame, which is the first
    /// of them, and this one's. None: it is the same frame.
    pub(crate) resumes: SmallVec<[Waiting; 2]>,
    pub(crate) walk: Arc<Walk>,
    /// Tokens of this part that are not allowed through it after all.
    pub(crate) cleared: Box<[u32]>,
    /// Set if the frame has registers.
    pub(crate) entry: Option<Entry>,
}

/// A frame that a walk leaves waiting. Its state may have no row.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Waiting {
    pub(crate) state: StateId,
    pub(crate) registers: bool,
}

/// How a frame with registers comes to be pushed.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The bytes from the start of the outer walk on. Bytes of a white space
    /// closure are represented by one.
    pub(crate) path: Box<[u8]>,
    /// Where the part's walk starts.
    pub(crate) at: TrieRef,
}

impl Walk {
    /// Returns about how many bytes of memory this walk holds by itself.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Walk>()
            + self.accepted.memory()
            + size_of_val(&*self.exits)
            + size_of_val(&*self.parts)
            + size_of_val(&*self.guarded)
    }
}

/// Makes walks, and keeps them.
#[derive(Debug)]
pub(crate) struct Walker<'a> {
    machine: Machine<'a>,
    index: &'a TokenTrie,
    store: &'a mut WalkStore,
    /// Where the walks of shared states are kept, if that is elsewhere.
    shared: Option<&'a Mutex<WalkStore>>,
    nesting: u32,
    stats: MaskStats,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(
        machine: Machine<'a>,
        index: &'a TokenTrie,
        store: &'a mut WalkStore,
        shared: Option<&'a Mutex<WalkStore>>,
    ) -> Walker<'a> {
        let stats = MaskStats::default();
        Walker { machine, index, store, shared, nesting: 0, stats }
    }

    /// Returns the walk of `state` at a place. At the `bottom` there is no
    /// caller: to end is to complete the text.
    pub(crate) fn walk(
        &mut self,
        state: StateId,
        at: &TrieRef,
        bottom: bool,
    ) -> Result<Arc<Walk>, AutomatonError> {
        let key = WalkKey::new(state, at, bottom);
        if let Some(walk) = self.store.walk(key) {
            self.stats.n_known += 1;
            return Ok(Arc::clone(walk));
        }
        let elsewhere =
            self.shared.filter(|_| state.is_shared() && at.trie.is_public());
        let walk = if let Some(shared) = elsewhere {
            self.elsewhere(shared, |walker| walker.walk(state, at, bottom))?
        } else {
            self.nesting += 1;
            let walk = Run::new(self, at, bottom).walk(state);
            self.nesting -= 1;
            self.stats.n_walks += 1;
            Arc::new(walk?)
        };
        let is_own = elsewhere.is_none();
        self.store.insert_walk(key, Arc::clone(&walk), is_own);
        Ok(walk)
    }

    /// Has something done by a walker over the store of shared states.
    fn elsewhere<R>(
        &mut self,
        shared: &Mutex<WalkStore>,
        work: impl FnOnce(&mut Walker<'_>) -> R,
    ) -> R {
        let mut walker = Walker {
            machine: self.machine,
            index: self.index,
            store: &mut lock(shared),
            shared: None,
            nesting: self.nesting,
            stats: self.stats,
        };
        let result = work(&mut walker);
        self.stats = walker.stats;
        result
    }

    /// Returns what was done so far.
    pub(crate) fn stats(&self) -> MaskStats {
        self.stats
    }

    /// Returns the table of the windows over `base`, if it can have one.
    fn window(
        &mut self,
        base: StateId,
        at: &TrieRef,
    ) -> Result<Option<Arc<WindowTable>>, AutomatonError> {
        let key = WalkKey::new(base, at, false);
        if let Some(table) = self.store.window(key) {
            return Ok(Some(table));
        }
        let elsewhere =
            self.shared.filter(|_| base.is_shared() && at.trie.is_public());
        let table = match elsewhere {
            Some(shared) => {
                self.elsewhere(shared, |walker| walker.window(base, at))?
            }
            None => WindowTable::new(
                self.machine,
                base,
                at,
                self.index.n_blocks(),
            )?
            .map(Arc::new),
        };
        if let Some(table) = &table {
            self.store.insert_window(key, Arc::clone(table));
        }
        Ok(table)
    }
}

/// A frame of this walk at a node.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Task {
    state: StateId,
    /// The frames below that this walk pushed: an index in `Run::stacks`,
    /// or [`BASE`].
    stack: u32,
    /// An index in `Run::tries`.
    trie: u32,
    node: u32,
}

/// Nothing was pushed: this is the walk's own frame.
const BASE: u32 = 0;

/// A trie that is being walked.
#[derive(Debug)]
struct Place {
    at: TrieRef,
    /// The bytes that lead there from the start.
    prefix: Vec<u8>,
}

/// One walk in the making.
struct Run<'w, 'a> {
    walker: &'w mut Walker<'a>,
    bottom: bool,
    tries: SmallVec<[Place; 1]>,
    /// Waiting states, each with what lies below it. The first is unused.
    stacks: Vec<(Waiting, u32)>,
    tasks: Vec<Task>,
    /// Tasks that were made where there was a choice.
    seen: FxHashSet<Task>,
    n_steps: usize,
    rows: RowCache<'a>,
    /// Accepted tokens: a trie, and a range of its tokens.
    accepted: Vec<(u32, u32, u32)>,
    sets: Vec<Arc<TokenSet>>,
    /// More accepted tokens.
    lists: Vec<u32>,
    exits: Vec<(Outcome, TrieRef)>,
    parts: Vec<Part>,
    guarded: Vec<u32>,
}

impl<'w, 'a> Run<'w, 'a> {
    fn new(
        walker: &'w mut Walker<'a>,
        at: &TrieRef,
        bottom: bool,
    ) -> Run<'w, 'a> {
        let place = Place { at: at.clone(), prefix: Vec::new() };
        Run {
            rows: RowCache::new(walker.machine),
            walker,
            bottom,
            tries: SmallVec::from_buf([place]),
            stacks: vec![(
                Waiting { state: StateId(0), registers: false },
                BASE,
            )],
            tasks: Vec::new(),
            seen: FxHashSet::default(),
            n_steps: 0,
            accepted: Vec::new(),
            sets: Vec::new(),
            lists: Vec::new(),
            exits: Vec::new(),
            parts: Vec::new(),
            guarded: Vec::new(),
        }
    }

    fn walk(mut self, state: StateId) -> Result<Walk, AutomatonError> {
        let registers = self.rows.get(state)?.registers;
        let node = self.tries[0].at.node;
        let start = Task { state, stack: BASE, trie: 0, node };
        if !self.start_with_hint(start)? {
            self.arrive(start, true)?;
        }
        while let Some(task) = self.tasks.pop() {
            self.arrive(task, false)?;
        }
        Ok(self.finish(state, registers))
    }

    fn finish(self, state: StateId, registers: bool) -> Walk {
        self.walker.stats.n_nodes += self.n_steps as u64;
        let mut slices: Vec<&[u32]> = Vec::with_capacity(self.accepted.len());
        for &(trie, from, to) in &self.accepted {
            slices.push(self.tries[trie as usize].at.trie.tokens(from, to));
        }
        slices.push(&self.lists);
        let accepted = TokenSet::new(&slices, self.walker.index.n_blocks());
        let store = &mut *self.walker.store;
        let exits = group_exits(self.exits, |places| store.union(places));
        Walk {
            state,
            registers,
            accepted,
            sets: self.sets.into(),
            exits: exits.into(),
            parts: self.parts.into(),
            guarded: self.guarded.into(),
        }
    }

    fn trie(&self, task: Task) -> &Arc<Trie> {
        &self.tries[task.trie as usize].at.trie
    }

    fn place(&self, task: Task) -> TrieRef {
        TrieRef { trie: Arc::clone(self.trie(task)), node: task.node }
    }

    /// Answers the start of a walk from what a hint knows, if that is all.
    fn start_with_hint(&mut self, task: Task) -> Result<bool, AutomatonError> {
        if self.trie(task).size(task.node) < HINT_SIZE
            || self.walker.nesting >= MAX_NESTING
        {
            return Ok(false);
        }
        match &self.rows.get(task.state)?.hint {
            Hint::Except { base, .. } => {
                let base = *base;
                self.start_except(task, base)?;
                Ok(true)
            }
            &Hint::Window { base, least, most } => {
                self.start_window(task, base, least, most)
            }
            Hint::None | Hint::Gap { .. } => Ok(false),
        }
    }

    /// Takes the walk of `base`, and walks only where the state differs.
    fn start_except(
        &mut self,
        task: Task,
        base: StateId,
    ) -> Result<(), AutomatonError> {
        let at = self.place(task);
        let walk = self.walker.walk(base, &at, self.bottom)?;
        let mut cleared = Vec::new();
        let mut alike = vec![(task, base)];
        while let Some((task, base)) = alike.pop() {
            let row = self.rows.get(task.state)?;
            let Hint::Except { bytes, .. } = &row.hint else { continue };
            let base_row = self.rows.get(base)?;
            let trie = Arc::clone(self.trie(task));
            for &byte in bytes {
                let Some(node) = trie.child(task.node, byte) else {
                    continue;
                };
                let child = Task { node, ..task };
                if let (Some(Step::Stay(to)), Some(Step::Stay(base_to))) =
                    (only_step(row, byte), only_step(base_row, byte))
                    && self.is_alike(to, base_to)?
                {
                    alike.push((Task { state: to, ..child }, base_to));
                    continue;
                }
                cleared.extend_from_slice(trie.subtree_tokens(node));
                self.read(task, row, byte, node)?;
            }
        }
        self.parts.push(Part {
            resumes: SmallVec::new(),
            walk,
            cleared: cleared.into(),
            entry: None,
        });
        Ok(())
    }

    /// Returns true if `state` is `base` but for exceptions.
    fn is_alike(
        &mut self,
        state: StateId,
        base: StateId,
    ) -> Result<bool, AutomatonError> {
        let row = self.rows.get(state)?;
        Ok(matches!(row.hint, Hint::Except { base: other, .. }
            if other == base))
    }

    fn start_window(
        &mut self,
        task: Task,
        base: StateId,
        least: u32,
        most: u32,
    ) -> Result<bool, AutomatonError> {
        let at = self.place(task);
        let Some(table) = self.walker.window(base, &at)? else {
            return Ok(false);
        };
        let (set, lists) = table.accepted(most);
        self.sets.push(Arc::clone(set));
        for list in lists {
            self.lists.extend_from_slice(list);
        }
        for (outcome, at) in &*table.exits(least, most) {
            if self.bottom {
                self.lists.extend_from_slice(at.own_tokens());
            } else {
                self.exits.push((*outcome, at.clone()));
            }
        }
        Ok(true)
    }

    /// Does everything for one frame at one node.
    fn arrive(
        &mut self,
        task: Task,
        is_start: bool,
    ) -> Result<(), AutomatonError> {
        self.n_steps += 1;
        if self.n_steps > MAX_STEPS {
            return Err(AutomatonError::Limit {
                name: "max_walk_steps",
                what: "the number of steps for one mask",
                limit: MAX_STEPS,
            });
        }
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
                Hint::Except { .. } | Hint::Window { .. }
                    if !is_start && self.walker.nesting < MAX_NESTING =>
                {
                    return self.part(task, row);
                }
                _ => {}
            }
        }
        self.read_children(task, row)
    }

    /// Accepts everything below if the state stays on all of it.
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
        let trie = Arc::clone(self.trie(task));
        let machine = self.walker.machine;
        let at = (task.state, row);
        let looping = self.walker.store.looping(task.state, row);
        if !looping.takes(machine, at, &trie, task.node)? {
            return Ok(false);
        }
        self.accept(task, task.node + size);
        Ok(true)
    }

    /// Reads every byte that has a child.
    fn read_children(
        &mut self,
        task: Task,
        row: &'a Row,
    ) -> Result<(), AutomatonError> {
        let trie = Arc::clone(self.trie(task));
        if trie.is_indexed(task.node) {
            for range in row.ranges() {
                for byte in range.lo..=range.hi {
                    if let Some(child) = trie.child(task.node, byte) {
                        self.take(task, child, range.step)?;
                    }
                }
            }
            return Ok(());
        }
        for (child, info) in trie.children(task.node) {
            if row.is_live(info.byte) {
                self.read(task, row, info.byte, child)?;
            }
        }
        Ok(())
    }

    fn read(
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
    fn take(
        &mut self,
        task: Task,
        child: u32,
        step: Step,
    ) -> Result<(), AutomatonError> {
        let task = Task { node: child, ..task };
        match step {
            Step::Stay(state) => {
                let task = Task { state, ..task };
                if self.trie(task).size(child) == 1 {
                    return self.arrive(task, false);
                }
                self.tasks.push(task);
                Ok(())
            }
            Step::Call { resume, callee } => self.call(task, resume, callee),
            Step::Return(outcome) => self.end(task, outcome),
        }
    }

    fn accept(&mut self, task: Task, to: u32) {
        let trie = &self.tries[task.trie as usize].at.trie;
        let from = trie.node(task.node).tokens;
        let to = trie.node(to).tokens;
        if from == to {
            return;
        }
        if let Some(last) = self.accepted.last_mut()
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
        self.accepted.push((task.trie, from, to));
    }

    /// Has everything at and below a node stepped exactly.
    fn guard(&mut self, task: Task) {
        let trie = &self.tries[task.trie as usize].at.trie;
        self.guarded.extend_from_slice(trie.subtree_tokens(task.node));
    }

    /// Ends the frame of `task`, which is at the node.
    fn end(
        &mut self,
        task: Task,
        outcome: Outcome,
    ) -> Result<(), AutomatonError> {
        if task.stack == BASE {
            if self.bottom {
                self.accept(task, task.node + 1);
            } else {
                let at = self.place(task);
                self.exits.push((outcome, at));
            }
            return Ok(());
        }
        if outcome.is_guarded() {
            self.guard(task);
        }
        let (waiting, stack) = self.stacks[task.stack as usize];
        for state in self.walker.machine.resume(waiting.state, outcome)? {
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
        if self.seen.insert(task) {
            self.tasks.push(task);
        }
    }

    fn push(&mut self, resume: Waiting, below: u32) -> u32 {
        let known = self
            .stacks
            .iter()
            .skip(1)
            .position(|&stack| stack == (resume, below));
        let index = known.map_or(self.stacks.len(), |index| index + 1);
        if known.is_none() {
            self.stacks.push((resume, below));
        }
        u32::try_from(index).expect("fewer stacks than steps")
    }

    /// Has the frame of `task` walked on its own.
    fn part(&mut self, task: Task, row: &Row) -> Result<(), AutomatonError> {
        let at = self.place(task);
        let bottom = self.bottom && task.stack == BASE;
        let walk = self.walker.walk(task.state, &at, bottom)?;
        let mut resumes = SmallVec::new();
        let mut stack = task.stack;
        while stack != BASE {
            let (resume, below) = self.stacks[stack as usize];
            resumes.push(resume);
            stack = below;
        }
        resumes.reverse();
        let is_pushed = task.stack != BASE;
        let entry = (row.registers && is_pushed)
            .then(|| Entry { path: self.path(task).into(), at });
        let cleared = Box::default();
        self.parts.push(Part { resumes, walk, cleared, entry });
        Ok(())
    }

    /// Returns the bytes from the start to the node of `task`.
    fn path(&self, task: Task) -> Vec<u8> {
        let place = &self.tries[task.trie as usize];
        let mut path = place.prefix.clone();
        path.extend(place.at.trie.path(place.at.node, task.node));
        path
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
        let index = self.walker.index;
        let gap = if at.trie.id() == index.root().trie.id() {
            index.gap(at.node, left.min(index.longest_space()))
        } else {
            let left = left.min(gap::longest(&at));
            self.walker.store.gap(&at, left, index.n_blocks())
        };
        if !gap.blank.is_empty() {
            self.sets.push(Arc::clone(&gap.blank));
            if row.registers && task.stack != BASE {
                self.guard(task);
            }
        }
        for (byte, at) in &gap.next {
            if !row.is_live(*byte) {
                continue;
            }
            let mut prefix = self.path(task);
            prefix.extend([b' ', *byte]);
            let trie = u32::try_from(self.tries.len())
                .expect("at most one place for each byte and node");
            self.tries.push(Place { at: at.clone(), prefix });
            let core = Task { state: core, trie, ..task };
            self.read(core, row, *byte, at.node)?;
        }
        Ok(())
    }
}

/// The one step of `row` on `byte`, if there is just one.
fn only_step(row: &Row, byte: u8) -> Option<Step> {
    if !row.is_live(byte) {
        return None;
    }
    let mut steps = row.steps(byte);
    let step = steps.next();
    if steps.next().is_some() { None } else { step }
}

/// The rows that a walk looked at last: asking the machine is a call through
/// a table and a search in another.
struct RowCache<'a> {
    machine: Machine<'a>,
    rows: [Option<(StateId, &'a Row)>; RowCache::SIZE],
}

impl<'a> RowCache<'a> {
    const SIZE: usize = 16;

    fn new(machine: Machine<'a>) -> RowCache<'a> {
        RowCache { machine, rows: [None; RowCache::SIZE] }
    }

    fn get(&mut self, state: StateId) -> Result<&'a Row, AutomatonError> {
        let slot = &mut self.rows[state.0 as usize % RowCache::SIZE];
        if let &mut Some((known, row)) = slot
            && known == state
        {
            return Ok(row);
        }
        let row = self.machine.row(state)?;
        *slot = Some((state, row));
        Ok(row)
    }
}
