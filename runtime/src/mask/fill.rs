//! The mask of a configuration, put together from walks.
//!
//! A walk's own tokens are or-ed into the mask. Where it leaves its frame,
//! the frame below resumes, and its walk of what follows is looked up; that
//! may leave again. Everything is on an explicit stack of jobs, since frames
//! that can only end may lie arbitrarily deep.
//!
//! # Registers
//!
//! Walks ignore registers, so what they allow is at most too much. While the
//! frame of a walk is known, its watch says which paths could be refused, and
//! only these are followed, byte by byte; tokens beyond a refusal are then
//! stepped exactly. A frame becomes unknown when what it remembers depends on
//! the token itself (the key that the token ends); then all tokens that could
//! meet a refusal are stepped exactly. They are few: a token would have to
//! finish one key and begin another.

use std::{rc::Rc, sync::Arc};

use maskwright_grammar_core::{
    automaton::{
        AutomatonError, Configuration, Frame, Machine, Outcome, Stack,
        StateId, Step, Watch,
    },
    interrupt,
    util::FxHashSet,
};

use smallvec::SmallVec;

use super::{
    MaskStats,
    enter::Frames,
    refused::find_spellings,
    set::{contains, insert_all, remove},
    trie::TrieRef,
    walk::{Exit, Part, Walk, Walker},
};
use crate::vocabulary::TokenId;

/// From so many walks on, equal ones are looked for.
const MANY_JOBS: usize = 12;

/// So many tokens are stepped exactly for a mask that counts as known.
const MANY_CHECKS: usize = 256;

/// Fills one mask.
pub(crate) struct Filler<'a, 'b> {
    pub(super) machine: Machine<'a>,
    walker: Walker<'a>,
    blocks: &'b mut [usize],
    /// Whether `blocks` holds what was there before, and counts as empty.
    is_stale: bool,
    jobs: SmallVec<[Job; 8]>,
    /// Tokens to be stepped exactly: the mask may be wrong to allow them.
    checks: Vec<u32>,
    n_jobs: usize,
    n_scopes: u32,
    /// How many frames below the top were looked at.
    depth: u32,
    /// Whether to give up where a walk has to be made, and whether that was.
    only_known: bool,
    gave_up: bool,
    seen: FxHashSet<(usize, usize, u32)>,
}

/// What was done for a mask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filled {
    pub(crate) stats: MaskStats,
    /// How many walks it was put together from.
    pub(crate) n_walks: usize,
    /// How many frames below the top the mask depends on, if that is known.
    pub(crate) depth: Option<u32>,
}

/// What is still to be done for a mask. The last one is done first.
enum Job {
    /// Takes everything of a walk.
    Walk(Visit),
    /// Takes the rest of a walk after its parts with exceptions.
    Rest(Visit),
    /// Takes back the tokens that a part is wrong about.
    Clear { walk: Arc<Walk>, part: usize, keep: Vec<u32> },
}

/// A walk for a frame of which this much is known.
#[derive(Clone)]
pub(super) struct Visit {
    pub(super) walk: Arc<Walk>,
    /// The frame, unless its registers depend on the token.
    pub(super) frame: Option<Frame>,
    /// Whether the end of the frame may be refused, and was not looked at.
    checks_end: bool,
    /// Whether the frame is that of the configuration, as it is. Others may
    /// lack what frames above them read, which their end asks for.
    is_whole: bool,
    below: Below,
    /// Walks are only equal within the same scope of exceptions.
    scope: u32,
}

/// The frames below.
#[derive(Clone)]
enum Below {
    /// Those of the configuration, so many below its top.
    Real(Stack, u32),
    /// One that was pushed within the token.
    Pushed(Rc<Waiting>),
}

struct Waiting {
    state: StateId,
    frame: Option<Frame>,
    below: Below,
}

impl Below {
    fn is_bottom(&self) -> bool {
        match self {
            Below::Real(stack, _) => stack.edges().is_empty(),
            Below::Pushed(_) => false,
        }
    }

    fn identity(&self) -> usize {
        match self {
            Below::Real(stack, _) => stack.identity(),
            Below::Pushed(waiting) => Rc::as_ptr(waiting) as usize,
        }
    }
}

impl<'a, 'b> Filler<'a, 'b> {
    /// Creates a filler of `blocks`, whatever they hold.
    pub(crate) fn new(
        machine: Machine<'a>,
        walker: Walker<'a>,
        blocks: &'b mut [usize],
    ) -> Filler<'a, 'b> {
        Filler {
            machine,
            walker,
            blocks,
            is_stale: true,
            jobs: SmallVec::new(),
            checks: Vec::new(),
            n_jobs: 0,
            n_scopes: 0,
            depth: 0,
            only_known: false,
            gave_up: false,
            seen: FxHashSet::default(),
        }
    }

    /// Allows what may follow in `configuration` and lies below `root`.
    /// `is_viable` steps one token exactly.
    pub(crate) fn fill(
        mut self,
        configuration: &Configuration,
        root: &TrieRef,
        is_viable: impl FnMut(u32) -> Result<bool, AutomatonError>,
    ) -> Result<Filled, AutomatonError> {
        self.fill_walks(configuration, root)?;
        self.check(is_viable)
    }

    /// Does what [`Filler::fill`] does, but gives up and returns none where
    /// a walk would have to be made or many tokens stepped.
    pub(crate) fn fill_known(
        mut self,
        configuration: &Configuration,
        root: &TrieRef,
        is_viable: impl FnMut(u32) -> Result<bool, AutomatonError>,
    ) -> Result<Option<Filled>, AutomatonError> {
        self.only_known = true;
        self.fill_walks(configuration, root)?;
        if self.gave_up || self.checks.len() > MANY_CHECKS {
            return Ok(None);
        }
        self.check(is_viable).map(Some)
    }

    fn fill_walks(
        &mut self,
        configuration: &Configuration,
        root: &TrieRef,
    ) -> Result<(), AutomatonError> {
        for top in configuration.tops() {
            let frame = top.frame.clone();
            let state = frame.state;
            let below = Below::Real(top.below.clone(), 0);
            if self.only_known
                && !self.walker.is_ready(state, root, below.is_bottom())
            {
                self.gave_up = true;
                return Ok(());
            }
            self.start(state, Some(frame), below, root, 0)?;
            if let Some(Job::Walk(visit)) = self.jobs.last_mut() {
                visit.is_whole = true;
            }
            while let Some(job) = self.jobs.pop() {
                if self.gave_up {
                    return Ok(());
                }
                self.run(job)?;
            }
        }
        if self.is_stale {
            self.blocks.fill(0);
        }
        Ok(())
    }

    /// Steps what the mask may be wrong to allow.
    fn check(
        &mut self,
        mut is_viable: impl FnMut(u32) -> Result<bool, AutomatonError>,
    ) -> Result<Filled, AutomatonError> {
        self.checks.sort_unstable();
        self.checks.dedup();
        let mut checks = std::mem::take(&mut self.checks);
        checks.retain(|&token| contains(self.blocks, token));
        // Neighbours have most of their bytes in common.
        let vocabulary = self.walker.index.vocabulary();
        checks.sort_unstable_by_key(|&id| vocabulary.token_bytes(TokenId(id)));
        let mut stats = self.walker.stats();
        for token in checks {
            interrupt::check()?;
            stats.n_stepped += 1;
            if !is_viable(token)? {
                remove(self.blocks, token);
            }
        }
        // What steps a token exactly may look at any frame.
        let depth = (stats.n_stepped == 0).then_some(self.depth);
        Ok(Filled { stats, n_walks: self.n_jobs, depth })
    }

    /// Adds the walk of a frame at a place.
    fn start(
        &mut self,
        state: StateId,
        frame: Option<Frame>,
        below: Below,
        at: &TrieRef,
        scope: u32,
    ) -> Result<(), AutomatonError> {
        let bottom = below.is_bottom();
        let walk = match self.walker.known(state, at, bottom) {
            Some(walk) => walk,
            None if self.ends_here(state, at)? => return Ok(()),
            None if self.only_known => {
                let Some(walk) = self.walker.ready(state, at, bottom) else {
                    self.gave_up = true;
                    return Ok(());
                };
                walk
            }
            None => self.walker.walk(state, at, bottom)?,
        };
        let watch = self.look(&walk, frame.as_ref(), &below, at)?;
        if watch == Watch::Dead {
            return Ok(());
        }
        let checks_end = watch == Watch::AtEnd;
        self.n_jobs += 1;
        if self.n_jobs >= MANY_JOBS {
            // The walk is held by its store and the stack by the
            // configuration; what was pushed is not, and is told apart by
            // being alive as long as the job. So only real ones are equal.
            if let Below::Real(..) = below
                && !walk.registers
            {
                let walk = Arc::as_ptr(&walk) as usize;
                if !self.seen.insert((walk, below.identity(), scope)) {
                    return Ok(());
                }
            }
        }
        let is_whole = false;
        let visit = Visit { walk, frame, checks_end, is_whole, below, scope };
        self.jobs.push(Job::Walk(visit));
        Ok(())
    }

    /// Takes the tokens that end at a place after which a state reads nothing
    /// that any token has. Returns false where that is not so simple.
    fn ends_here(
        &mut self,
        state: StateId,
        at: &TrieRef,
    ) -> Result<bool, AutomatonError> {
        let own = at.own_tokens();
        let row = self.machine.row(state)?;
        let is_simple = row.calls.is_empty()
            && row.finish.is_none()
            && (own.is_empty()
                || !row.registers
                || !self.machine.owner(state).may_watch(state));
        let reads = |(_, byte): (u32, u8)| row.is_live(byte);
        if !is_simple || at.trie.children(at.node).any(reads) {
            return Ok(false);
        }
        if row.is_open() && !own.is_empty() {
            if self.is_stale {
                self.is_stale = false;
                self.blocks.fill(0);
            }
            insert_all(self.blocks, own);
        }
        Ok(true)
    }

    /// Looks at the registers of a frame.
    fn look(
        &mut self,
        walk: &Walk,
        frame: Option<&Frame>,
        below: &Below,
        at: &TrieRef,
    ) -> Result<Watch, AutomatonError> {
        if !walk.registers {
            return Ok(Watch::Clear);
        }
        let Some(frame) = frame else {
            if self.machine.owner(walk.state).may_watch(walk.state) {
                self.checks.extend_from_slice(at.tokens());
            }
            return Ok(Watch::Clear);
        };
        let watch = self.machine.owner(frame.state).watch(frame);
        if watch == Watch::Watching {
            self.scan(frame, below, at)?;
        }
        Ok(watch)
    }

    fn run(&mut self, job: Job) -> Result<(), AutomatonError> {
        interrupt::check()?;
        match job {
            Job::Walk(visit) => self.visit(&visit),
            Job::Rest(visit) => self.rest(&visit),
            Job::Clear { walk, part, keep } => {
                for &token in &walk.parts[part].cleared {
                    remove(self.blocks, token);
                }
                insert_all(self.blocks, &keep);
                Ok(())
            }
        }
    }

    /// Does the parts with exceptions, then the rest.
    fn visit(&mut self, visit: &Visit) -> Result<(), AutomatonError> {
        let walk = Arc::clone(&visit.walk);
        // A walk has one part with exceptions at most: its own base.
        let mut parts = walk.parts.iter().enumerate();
        let Some((index, part)) =
            parts.find(|(_, part)| !part.cleared.is_empty())
        else {
            return self.rest(visit);
        };
        self.jobs.push(Job::Rest(visit.clone()));
        let allowed = |token: &u32| contains(self.blocks, *token);
        let keep = if self.is_stale {
            Vec::new()
        } else {
            part.cleared.iter().copied().filter(allowed).collect()
        };
        let walk = Arc::clone(&visit.walk);
        self.jobs.push(Job::Clear { walk, part: index, keep });
        self.n_scopes += 1;
        let scope = self.n_scopes;
        self.part(part, visit, scope)
    }

    fn rest(&mut self, visit: &Visit) -> Result<(), AutomatonError> {
        let walk = &*visit.walk;
        for set in [&walk.accepted]
            .into_iter()
            .chain(walk.sets.iter().map(|set| &**set))
        {
            if self.is_stale {
                self.is_stale = false;
                set.copy_into(self.blocks);
            } else {
                set.union_into(self.blocks);
            }
        }
        self.checks.extend_from_slice(&walk.guarded);
        for part in &walk.parts {
            if part.cleared.is_empty() {
                self.part(part, visit, visit.scope)?;
            }
        }
        for exit in &walk.exits {
            self.leave(visit, exit)?;
        }
        Ok(())
    }

    /// Adds the walk of a part.
    fn part(
        &mut self,
        part: &Part,
        visit: &Visit,
        scope: u32,
    ) -> Result<(), AutomatonError> {
        let walk = Arc::clone(&part.walk);
        if part.resumes.is_empty() {
            let visit = Visit { walk, scope, ..visit.clone() };
            self.jobs.push(Job::Walk(visit));
            return Ok(());
        }
        let mut frames = match &part.entry {
            Some(entry) => self.enter(visit, entry, part.resumes.len())?,
            None => None,
        };
        let callee = frames.as_mut().and_then(Frames::pop);
        let mut below = visit.below.clone();
        for (index, resume) in part.resumes.iter().enumerate() {
            let frame = match &frames {
                Some(_) if index == 0 && visit.frame.is_none() => None,
                Some(frames) => Some(frames[index].clone()),
                None => blank_frame(resume.state, resume.registers),
            };
            let state = resume.state;
            below = Below::Pushed(Rc::new(Waiting { state, frame, below }));
        }
        let mut checks_end = false;
        let frame = match (&part.entry, callee) {
            (Some(entry), None) => {
                self.checks.extend_from_slice(entry.at.tokens());
                None
            }
            (Some(entry), Some(callee)) => {
                let watch =
                    self.look(&walk, Some(&callee), &below, &entry.at)?;
                if watch == Watch::Dead {
                    return Ok(());
                }
                checks_end = watch == Watch::AtEnd;
                Some(callee)
            }
            (None, _) => blank_frame(walk.state, walk.registers),
        };
        let is_whole = false;
        let visit = Visit { walk, frame, checks_end, is_whole, below, scope };
        self.jobs.push(Job::Walk(visit));
        Ok(())
    }

    /// Ends the frame of a visit, and goes on with the frames below.
    fn leave(
        &mut self,
        visit: &Visit,
        exit: &Exit,
    ) -> Result<(), AutomatonError> {
        match &visit.below {
            Below::Real(stack, depth) => {
                let depth = depth + 1;
                self.depth = self.depth.max(depth);
                if stack.has_bottom() {
                    if self.is_stale {
                        self.is_stale = false;
                        self.blocks.fill(0);
                    }
                    insert_all(self.blocks, exit.at.own_tokens());
                }
                for edge in stack.edges() {
                    let caller = (edge.frame.state, Some(&edge.frame));
                    let below = Below::Real(edge.below.clone(), depth);
                    self.resume(visit, caller, &below, exit)?;
                }
                Ok(())
            }
            Below::Pushed(waiting) => {
                let caller = (waiting.state, waiting.frame.as_ref());
                self.resume(visit, caller, &waiting.below, exit)
            }
        }
    }

    fn resume(
        &mut self,
        visit: &Visit,
        (state, caller): (StateId, Option<&Frame>),
        below: &Below,
        exit: &Exit,
    ) -> Result<(), AutomatonError> {
        let &Exit { outcome, ref at, direct } = exit;
        let is_guarded = outcome.is_guarded() && visit.walk.registers;
        // Otherwise it was read into before it ended, or is not known at all.
        let is_known = direct && (visit.is_whole || !visit.checks_end);
        let depends = is_guarded && !(is_known && visit.frame.is_some());
        if depends && (visit.frame.is_none() || visit.checks_end)
            || outcome.is_guarded() && caller.is_none()
        {
            self.checks.extend_from_slice(at.tokens());
        }
        for to in self.walker.resume(state, outcome)? {
            let needs =
                outcome.is_guarded() || self.machine.row(to)?.registers;
            let frame = match (caller, &visit.frame) {
                _ if !needs => Some(Frame::new(to)),
                (Some(caller), callee) if !depends => {
                    let blank = Frame::new(visit.walk.state);
                    let callee = callee.as_ref().unwrap_or(&blank);
                    let owner = self.machine.owner(state);
                    let Some(frame) =
                        owner.leave(caller, callee, outcome, to)?
                    else {
                        continue;
                    };
                    Some(frame)
                }
                _ => None,
            };
            let to = frame.as_ref().map_or(to, |frame| frame.state);
            self.start(to, frame, below.clone(), at, visit.scope)?;
        }
        Ok(())
    }

    /// Follows a frame along all paths on which registers may refuse, and
    /// has what lies behind a refusal stepped exactly.
    fn scan(
        &mut self,
        frame: &Frame,
        below: &Below,
        at: &TrieRef,
    ) -> Result<(), AutomatonError> {
        let trie = &at.trie;
        let first = self.checks.len();
        let owner = self.machine.owner(frame.state);
        let is_all = owner.refused_words(frame, &mut |word| {
            find_spellings(trie, at.node, word, &mut self.checks);
        });
        if is_all {
            return Ok(());
        }
        self.checks.truncate(first);
        let mut pending = vec![(frame.clone(), at.node)];
        while let Some((frame, node)) = pending.pop() {
            let row = self.machine.row(frame.state)?;
            if !row.calls.is_empty() {
                self.checks.extend_from_slice(trie.subtree_tokens(node));
                continue;
            }
            if let Some(outcome) = row.finish
                && self.is_refused(&frame, below, outcome)?
            {
                // Nothing but what the frame itself reads may follow.
                for (child, byte) in trie.children(node) {
                    if !row.is_live(byte) {
                        let tokens = trie.subtree_tokens(child);
                        self.checks.extend_from_slice(tokens);
                    }
                }
            }
            let watched =
                self.machine.owner(frame.state).watched_bytes(&frame);
            for (child, byte) in trie.children(node) {
                let bit = watched[usize::from(byte >> 6)] >> (byte & 63) & 1;
                if bit == 0 || !row.is_live(byte) {
                    continue;
                }
                let next = match row.step(byte) {
                    _ if !row.is_deterministic() => None,
                    Some(Step::Stay(to)) => {
                        Some(self.machine.advance(&frame, row, byte, to)?)
                    }
                    Some(Step::Return(outcome))
                        if !self.is_refused(&frame, below, outcome)? =>
                    {
                        continue;
                    }
                    _ => None,
                };
                let watch = match &next {
                    None => Watch::Dead,
                    Some(next) => {
                        let row = self.machine.row(next.state)?;
                        self.machine.watch(next, row)
                    }
                };
                match (watch, next) {
                    (Watch::Watching, Some(next)) => {
                        pending.push((next, child));
                    }
                    (Watch::Clear, _) => {}
                    _ => {
                        let tokens = trie.subtree_tokens(child);
                        self.checks.extend_from_slice(tokens);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns true if any frame below may refuse the outcome.
    fn is_refused(
        &mut self,
        frame: &Frame,
        below: &Below,
        outcome: Outcome,
    ) -> Result<bool, AutomatonError> {
        if !outcome.is_guarded() {
            return Ok(false);
        }
        let machine = self.machine;
        let refuses = |caller: &Frame| -> Result<bool, AutomatonError> {
            let all = machine.resume(caller.state, outcome)?.len();
            let left = machine.leave(caller, frame, outcome)?.len();
            Ok(left < all)
        };
        match below {
            Below::Real(stack, depth) => {
                self.depth = self.depth.max(depth + 1);
                for edge in stack.edges() {
                    if refuses(&edge.frame)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Below::Pushed(waiting) => match &waiting.frame {
                Some(caller) => refuses(caller),
                None => Ok(true),
            },
        }
    }
}

/// Returns a frame in `state`, unless it would have registers.
fn blank_frame(state: StateId, registers: bool) -> Option<Frame> {
    (!registers).then(|| Frame::new(state))
}
