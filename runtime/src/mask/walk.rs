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

use std::{
    cell::OnceCell,
    rc::Rc,
    sync::{Arc, Mutex, OnceLock},
};

use maskwright_grammar_core::{
    automaton::{AutomatonError, Frame, Machine, Outcome, Resumed, StateId},
    interrupt,
};
use smallvec::SmallVec;

use super::{
    MaskStats,
    ends::EndTable,
    gap::Gap,
    index::{TokenTrie, lock},
    run::Run,
    set::TokenSet,
    store::{WalkKey, WalkStore},
    trie::{Trie, TrieRef},
    window::WindowTable,
};

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
    /// Where the frame ends.
    pub(crate) exits: Box<[Exit]>,
    /// Walks that are part of this one.
    pub(crate) parts: Box<[Part]>,
    /// Tokens that registers may refuse on the way; to be stepped exactly.
    pub(crate) guarded: Box<[u32]>,
}

/// Tokens that leave the frame of a walk.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) outcome: Outcome,
    /// What follows the end of the frame.
    pub(crate) at: TrieRef,
    /// Whether the frame ends as it was at the start of the token, so that
    /// its registers are known. Only kept of guarded outcomes.
    pub(crate) direct: bool,
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
    /// What the path pushes, if that is always the same.
    pub(crate) pushed: OnceLock<Option<Pushed>>,
}

/// The frames that a path pushes, whatever the registers of the walk's own.
#[derive(Debug)]
pub(crate) struct Pushed {
    /// How many bytes of the path the walk's own frame reads. The last of
    /// them is the call.
    pub(crate) n_own: usize,
    /// The frames above the walk's own; the last one is the callee.
    pub(crate) frames: Box<[Frame]>,
}

impl Entry {
    pub(crate) fn new(path: Box<[u8]>, at: TrieRef) -> Entry {
        Entry { path, at, pushed: OnceLock::new() }
    }
}

impl Walk {
    /// Whether nothing about this walk depends on registers, nor is left to
    /// other walks.
    pub(crate) fn is_plain(&self) -> bool {
        !self.registers
            && self.parts.is_empty()
            && self.guarded.is_empty()
            && self.exits.iter().all(|exit| !exit.outcome.is_guarded())
    }

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
    pub(super) machine: Machine<'a>,
    pub(super) index: &'a TokenTrie,
    pub(super) store: &'a mut WalkStore,
    /// Where the walks of shared states are kept, if that is elsewhere.
    shared: Option<&'a Mutex<WalkStore>>,
    pub(super) nesting: u32,
    pub(super) stats: MaskStats,
    /// The vocabulary's trie, once it is held.
    root: OnceCell<Rc<TrieRef>>,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(
        machine: Machine<'a>,
        index: &'a TokenTrie,
        store: &'a mut WalkStore,
        shared: Option<&'a Mutex<WalkStore>>,
    ) -> Walker<'a> {
        let stats = MaskStats::default();
        let root = OnceCell::new();
        Walker { machine, index, store, shared, nesting: 0, stats, root }
    }

    /// Returns where the waiting `state` goes on after `outcome`.
    pub(crate) fn resume(
        &mut self,
        state: StateId,
        outcome: Outcome,
    ) -> Result<Resumed, AutomatonError> {
        if let Some(known) = self.store.resumed(state, outcome) {
            return Ok(known.clone());
        }
        let resumed = self.machine.resume(state, outcome)?;
        interrupt::confirm()?;
        self.store.insert_resumed(state, outcome, resumed.clone());
        Ok(resumed)
    }

    /// Returns the walk of `state` at a place, if it is known.
    pub(crate) fn known(
        &mut self,
        state: StateId,
        at: &TrieRef,
        bottom: bool,
    ) -> Option<Arc<Walk>> {
        let walk = self.store.walk(WalkKey::new(state, at, bottom))?;
        self.stats.n_known += 1;
        Some(Arc::clone(walk))
    }

    /// Returns the walk of `state` at a place if it is known here or where
    /// shared states have theirs, and nobody has to be waited for.
    pub(crate) fn ready(
        &mut self,
        state: StateId,
        at: &TrieRef,
        bottom: bool,
    ) -> Option<Arc<Walk>> {
        if let Some(walk) = self.known(state, at, bottom) {
            return Some(walk);
        }
        if !(state.is_shared() && at.trie.is_public()) {
            return None;
        }
        let key = WalkKey::new(state, at, bottom);
        let walk = match self.shared?.try_lock() {
            Ok(shared) => Arc::clone(shared.walk(key)?),
            Err(_) => return None,
        };
        self.stats.n_known += 1;
        self.store.insert_walk(key, Arc::clone(&walk), false);
        Some(walk)
    }

    /// Returns true if [`Walker::ready`] would find a walk. No row is asked
    /// for: to make one may be most of what a new mask takes.
    pub(crate) fn is_ready(
        &self,
        state: StateId,
        at: &TrieRef,
        bottom: bool,
    ) -> bool {
        let key = WalkKey::new(state, at, bottom);
        let is_elsewhere = || {
            let shared = self.shared.filter(|_| state.is_shared());
            let shared = shared.map(Mutex::try_lock);
            matches!(shared, Some(Ok(shared)) if shared.walk(key).is_some())
        };
        self.store.walk(key).is_some() || is_elsewhere()
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
        let elsewhere = self.elsewhere(state, at);
        let known = elsewhere
            .and_then(|shared| lock(shared).walk(key).map(Arc::clone));
        let walk = if let Some(walk) = known {
            self.stats.n_known += 1;
            walk
        } else {
            interrupt::check()?;
            self.nesting += 1;
            let walk = Run::new(self, at, bottom).walk(state);
            self.nesting -= 1;
            self.stats.n_walks += 1;
            let walk = Arc::new(walk?);
            interrupt::confirm()?;
            match elsewhere {
                Some(shared) => lock(shared).keep_walk(key, walk),
                None => walk,
            }
        };
        let is_own = elsewhere.is_none();
        self.store.insert_walk(key, Arc::clone(&walk), is_own);
        Ok(walk)
    }

    /// Returns the store of shared states, if what is derived of `state` at a
    /// place belongs there. It is locked for look-ups only: nobody waits for
    /// a walk that somebody else makes, though both may make the same one.
    fn elsewhere(
        &self,
        state: StateId,
        at: &TrieRef,
    ) -> Option<&'a Mutex<WalkStore>> {
        self.shared.filter(|_| state.is_shared() && at.trie.is_public())
    }

    /// Returns the vocabulary's trie, held by this walker.
    pub(super) fn held_root(&self) -> Rc<TrieRef> {
        let root = || Rc::new(self.index.root().clone());
        Rc::clone(self.root.get_or_init(root))
    }

    /// Returns what was done so far.
    pub(crate) fn stats(&self) -> MaskStats {
        self.stats
    }

    /// Returns the table of the windows over `base`, if it can have one.
    pub(super) fn window(
        &mut self,
        base: StateId,
        at: &TrieRef,
    ) -> Result<Option<Arc<WindowTable>>, AutomatonError> {
        let key = WalkKey::new(base, at, false);
        if let Some(table) = self.store.window(key) {
            return Ok(Some(table));
        }
        let elsewhere = self.elsewhere(base, at);
        let known = elsewhere.and_then(|shared| lock(shared).window(key));
        if let Some(table) = known {
            self.store.insert_window(key, Arc::clone(&table));
            return Ok(Some(table));
        }
        let n_blocks = self.index.n_blocks();
        let table = WindowTable::new(self.machine, base, at, n_blocks)?;
        interrupt::confirm()?;
        let Some(table) = table.map(Arc::new) else { return Ok(None) };
        if let Some(store) = elsewhere {
            lock(store).insert_window(key, Arc::clone(&table));
        }
        self.store.insert_window(key, Arc::clone(&table));
        Ok(Some(table))
    }

    /// Returns the paths that end `base`, which must be simple and lead to
    /// simple states within its frame only.
    pub(super) fn ends(
        &mut self,
        base: StateId,
        at: &TrieRef,
    ) -> Result<Arc<EndTable>, AutomatonError> {
        let key = WalkKey::new(base, at, false);
        if let Some(table) = self.store.ends(key) {
            return Ok(table);
        }
        let elsewhere = self.elsewhere(base, at);
        let known = elsewhere.and_then(|shared| lock(shared).ends(key));
        let table = if let Some(table) = known {
            table
        } else {
            let table = Run::new(self, at, false).ends(base)?;
            interrupt::confirm()?;
            let table = Arc::new(table);
            if let Some(store) = elsewhere {
                lock(store).insert_ends(key, Arc::clone(&table));
            }
            table
        };
        self.store.insert_ends(key, Arc::clone(&table));
        Ok(table)
    }

    /// Returns the union of several places.
    pub(super) fn union(&mut self, places: &[(&Arc<Trie>, u32)]) -> TrieRef {
        let union = if places.iter().all(|(trie, _)| trie.is_public()) {
            self.index.union(places)
        } else {
            self.store.unions().union(places)
        };
        TrieRef::root(&union)
    }

    /// Returns several plain walks as one. `keys` are theirs if all are of
    /// shared states.
    pub(super) fn merge(
        &mut self,
        walks: &[Arc<Walk>],
        keys: &[WalkKey],
        are_shared: bool,
    ) -> Arc<Walk> {
        if !are_shared {
            return Arc::new(Walk::merged(walks, self));
        }
        if let Some(known) = self.store.merged(keys) {
            return known;
        }
        let shared = self.shared;
        let known = shared.and_then(|shared| lock(shared).merged(keys));
        let merged = known.unwrap_or_else(|| {
            let merged = Arc::new(Walk::merged(walks, self));
            if let Some(shared) = shared
                && interrupt::confirm().is_ok()
            {
                lock(shared).insert_merged(keys, Arc::clone(&merged));
            }
            merged
        });
        if interrupt::confirm().is_ok() {
            self.store.insert_merged(keys, Arc::clone(&merged));
        }
        merged
    }

    /// Returns the white space closure at a place.
    pub(super) fn gap(&mut self, at: &TrieRef, left: u32) -> Arc<Gap> {
        let n_blocks = self.index.n_blocks();
        if at.trie.is_public() {
            self.index.gap(at, left)
        } else {
            self.store.unions().gap(at, left, n_blocks)
        }
    }
}
