//! A grammar that has met a vocabulary.
//!
//! A [`CompiledGrammar`] is immutable and shared: every sequence that is
//! decoded with it has a [`Matcher`](crate::matcher::Matcher) of its own. It
//! holds the grammar's machine, the vocabulary, and the walks that masks are
//! put together from, which grow as they are needed and may be dropped at any
//! moment.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError},
    thread,
    time::{Duration, Instant},
};

use maskwright_grammar_core::{
    automaton::{
        Atom, AtomId, AtomToken, Automaton, AutomatonError, Configuration,
        Machine, StackLimits, StateId, Symbol,
    },
    interrupt::{self, Interrupted},
};

use crate::{
    mask::{
        Filled, Filler, Ground, KeptMask, MaskStats, SharedStore, TokenMask,
        TokenTrie, WalkStore, Walker, copy_blocks, insert_all, lock, remove,
    },
    saved::{DEAR, GrammarFileError, Notes, Origin, Place, Writer},
    steps::Steps,
    vocabulary::{TokenId, TokenKind, Vocabulary},
};

/// About how many bytes of walks a grammar, or a machine that many share,
/// keeps before it forgets them all.
const MAX_CACHE_BYTES: usize = 256 << 20;

/// A grammar bound to a vocabulary.
pub struct CompiledGrammar {
    automaton: Arc<dyn Automaton>,
    tokens: Arc<TokenTrie>,
    own_atoms: Box<[BoundAtom]>,
    shared_atoms: Box<[BoundAtom]>,
    limits: StackLimits,
    /// Held while a mask is put together.
    store: Mutex<WalkStore>,
    /// The walks of the shared machine, kept with the vocabulary.
    shared: Option<SharedStore>,
    /// What it was compiled from, if that is known.
    origin: Option<Arc<dyn Origin>>,
    /// The texts after which masks took long, once they are asked for.
    notes: OnceLock<Mutex<Notes>>,
}

/// An atom whose token is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct BoundAtom {
    token: TokenId,
    negated: bool,
}

impl CompiledGrammar {
    /// Binds `automaton` to the vocabulary of `tokens`.
    ///
    /// # Errors
    ///
    /// Fails when the grammar names a token that the vocabulary does not
    /// have.
    pub fn new(
        automaton: Arc<dyn Automaton>,
        tokens: Arc<TokenTrie>,
    ) -> Result<CompiledGrammar, BindError> {
        let bind = |atoms: &[Atom]| -> Result<Box<[BoundAtom]>, BindError> {
            let vocabulary = tokens.vocabulary();
            atoms.iter().map(|atom| bind_atom(atom, vocabulary)).collect()
        };
        let own_atoms = bind(automaton.atoms())?;
        let shared_atoms = match automaton.shared() {
            Some(shared) => bind(shared.atoms())?,
            None => Box::default(),
        };
        let shared =
            automaton.shared().map(|shared| tokens.shared_store(shared));
        Ok(CompiledGrammar {
            automaton,
            tokens,
            own_atoms,
            shared_atoms,
            limits: StackLimits::default(),
            store: Mutex::default(),
            shared,
            origin: None,
            notes: OnceLock::new(),
        })
    }

    /// Sets what the grammar was compiled from.
    #[must_use]
    pub(crate) fn with_origin(
        mut self,
        origin: Option<Arc<dyn Origin>>,
    ) -> CompiledGrammar {
        self.origin = origin;
        self
    }

    /// Sets how large the stacks of a matcher may grow.
    #[must_use]
    pub fn with_limits(mut self, limits: StackLimits) -> CompiledGrammar {
        self.limits = limits;
        self
    }

    /// Returns the machine.
    pub fn automaton(&self) -> &Arc<dyn Automaton> {
        &self.automaton
    }

    /// Returns the vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.tokens.vocabulary()
    }

    /// Returns the vocabulary's trie.
    pub fn token_trie(&self) -> &Arc<TokenTrie> {
        &self.tokens
    }

    /// Has matchers that are made from now on keep their text as far as
    /// 16 KiB, and this grammar those texts after which a mask took long:
    /// [`CompiledGrammar::save`] writes these masks to a file. That takes a
    /// look at the clock a mask that is not kept whole. A grammar that masks
    /// were loaded to remembers texts from then on.
    pub fn remember_texts(&self) {
        self.notes.get_or_init(Mutex::default);
    }

    /// Returns about how many bytes the grammar's own walks hold.
    pub fn cache_bytes(&self) -> usize {
        lock(&self.store).memory()
    }

    /// Returns about how many bytes the grammar holds for itself, walks and
    /// machine. What it shares with others is not counted: the vocabulary,
    /// and the machine that all schemas have in common.
    pub fn memory_usage(&self) -> usize {
        let notes = self.notes.get().map_or(0, |notes| lock(notes).memory());
        self.cache_bytes() + self.automaton.memory_usage() + notes
    }

    /// The same without waiting for a mask that is being made: none if one
    /// is.
    pub(crate) fn try_memory_usage(&self) -> Option<usize> {
        let store = self.try_lock_store()?;
        Some(store.memory() + self.automaton.memory_usage())
    }

    /// Forgets the grammar's own walks. They are made again when they are
    /// needed; no result changes.
    pub fn clear_cache(&self) {
        lock(&self.store).clear();
    }

    pub(crate) fn machine(&self) -> Machine<'_> {
        Machine::new(&*self.automaton)
    }

    pub(crate) fn limits(&self) -> StackLimits {
        self.limits
    }

    pub(crate) fn start(&self) -> Result<Configuration, AutomatonError> {
        Configuration::start(self.machine(), self.limits)
    }

    /// Makes `blocks`, one bit a token, the tokens that may follow
    /// `configuration`.
    pub(crate) fn fill(
        &self,
        configuration: &Configuration,
        blocks: &mut [usize],
    ) -> Result<MaskStats, AutomatonError> {
        let (whole, stats) = self.whole_or_fill(configuration, blocks)?;
        if let Some(mask) = whole {
            copy_blocks(blocks, mask.bits().as_slice());
        }
        Ok(stats)
    }

    /// Returns the mask of `configuration` if it is kept whole, and `blocks`
    /// holds anything; otherwise does what [`CompiledGrammar::fill`] does.
    pub(crate) fn whole_or_fill(
        &self,
        configuration: &Configuration,
        blocks: &mut [usize],
    ) -> Result<(Option<Arc<TokenMask>>, MaskStats), AutomatonError> {
        let accepting = self.is_accepting(configuration)?;
        let mut store = self.lock_store()?;
        let ground = Ground::new(configuration, accepting);
        match store.finished().get(ground) {
            Some(KeptMask::Whole(mask)) => {
                return Ok((Some(Arc::clone(mask)), MaskStats::known()));
            }
            Some(mask) => {
                mask.copy_into(blocks);
                return Ok((None, MaskStats::known()));
            }
            None => {}
        }
        self.forget_if_full(&mut store);
        let start = self.notes.get().map(|_| Instant::now());
        let mut filled = self.fill_with(&mut store, configuration, blocks)?;
        self.fill_rest(configuration, accepting, blocks)?;
        self.keep(&mut store, ground, filled, blocks);
        if let Some(start) = start {
            let took_long = start.elapsed() >= DEAR;
            filled.stats.dear_depth = filled
                .depth
                .filter(|_| self.is_dear(configuration, took_long));
        }
        Ok((None, filled.stats))
    }

    /// Returns whether the mask of `configuration` is one to be noted.
    fn is_dear(&self, configuration: &Configuration, took_long: bool) -> bool {
        let ([top], Some(notes)) = (configuration.tops(), self.notes.get())
        else {
            return false;
        };
        self.keeps_masks()
            && (took_long || lock(notes).has_state(top.frame.state))
    }

    /// Returns whether texts are noted.
    pub(crate) fn remembers(&self) -> bool {
        self.keeps_masks() && self.notes.get().is_some()
    }

    /// Notes that the mask after `text`, which has led to `configuration` and
    /// depends on `depth` frames below its top, is dear.
    pub(crate) fn note(
        &self,
        configuration: &Configuration,
        depth: u32,
        text: &[u8],
    ) -> Result<(), AutomatonError> {
        let accepting = self.is_accepting(configuration)?;
        let hash = Ground::new(configuration, accepting).hash(depth);
        if let ([top], Some(hash), Some(notes)) =
            (configuration.tops(), hash, self.notes.get())
        {
            lock(notes).add(top.frame.state, hash, text);
        }
        Ok(())
    }

    /// Returns the texts that were noted.
    pub(crate) fn noted_texts(&self) -> Vec<Box<[u8]>> {
        self.notes.get().map_or(Vec::new(), |notes| lock(notes).texts())
    }

    /// Returns whether texts were noted that are in no file.
    pub(crate) fn has_new_texts(&self) -> bool {
        self.notes.get().is_some_and(|notes| lock(notes).is_new())
    }

    /// Returns how many texts were noted.
    pub(crate) fn n_texts(&self) -> usize {
        self.notes.get().map_or(0, |notes| lock(notes).len())
    }

    /// Says that a file has so many of the texts.
    pub(crate) fn set_saved(&self, n_texts: usize) {
        if let Some(notes) = self.notes.get() {
            lock(notes).set_saved(n_texts);
        }
    }

    /// Returns everything that masks of this grammar depend on, as bytes.
    pub(crate) fn origin_bytes(&self) -> Result<Vec<u8>, GrammarFileError> {
        let origin = self.origin.as_ref().ok_or(GrammarFileError::NoSource)?;
        let mut out = Writer::default();
        out.number(self.vocabulary().fingerprint());
        let StackLimits { max_configurations, max_depth } = self.limits;
        out.number(max_configurations as u64);
        out.number(max_depth as u64);
        origin.write(&mut out)?;
        Ok(out.into_bytes())
    }

    /// Keeps the masks of places, and returns of how many it did not have
    /// them.
    pub(crate) fn put_places(
        &self,
        places: &[Place],
        masks: &[KeptMask],
    ) -> usize {
        let mut n_put = 0;
        let mut store = lock(&self.store);
        for place in places {
            let ground = Ground::new(&place.configuration, place.is_accepting);
            let mask = masks[place.mask].clone();
            n_put +=
                usize::from(store.finished().put(ground, place.depth, mask));
        }
        drop(store);
        let mut notes = lock(self.notes.get_or_init(Mutex::default));
        let is_new = notes.is_new();
        for Place { configuration, is_accepting, depth, text, .. } in places {
            let ground = Ground::new(configuration, *is_accepting);
            if let ([top], Some(hash), Some(text)) =
                (configuration.tops(), ground.hash(*depth), text)
            {
                notes.add(top.frame.state, hash, text);
            }
        }
        if !is_new {
            let n_texts = notes.len();
            notes.set_saved(n_texts);
        }
        n_put
    }

    /// Makes `blocks` the tokens that walks allow, which are kept in `store`.
    pub(crate) fn fill_with(
        &self,
        store: &mut WalkStore,
        configuration: &Configuration,
        blocks: &mut [usize],
    ) -> Result<Filled, AutomatonError> {
        let walker = self.walker(store);
        let mut steps = Steps::new(self, configuration);
        Filler::new(self.machine(), walker, blocks).fill(
            configuration,
            self.tokens.root(),
            |token| steps.reads(TokenId(token)),
        )
    }

    /// Returns a store that knows what that of this grammar knows.
    pub(crate) fn store_snapshot(&self) -> WalkStore {
        lock(&self.store).snapshot()
    }

    /// Adds what another store of walks of this grammar knows.
    pub(crate) fn absorb(&self, other: WalkStore) {
        lock(&self.store).absorb(other);
    }

    /// Does what [`CompiledGrammar::fill`] does if no walk has to be made
    /// for it and nobody else is at it. Otherwise returns none, and `blocks`
    /// holds anything.
    pub(crate) fn fill_known(
        &self,
        configuration: &Configuration,
        blocks: &mut [usize],
    ) -> Result<Option<MaskStats>, AutomatonError> {
        let accepting = self.is_accepting(configuration)?;
        let Some(mut store) = self.try_lock_store() else { return Ok(None) };
        let ground = Ground::new(configuration, accepting);
        if let Some(mask) = store.finished().get(ground) {
            mask.copy_into(blocks);
            return Ok(Some(MaskStats::known()));
        }
        let walker = self.walker(&mut store);
        let mut steps = Steps::new(self, configuration);
        let filled = Filler::new(self.machine(), walker, blocks).fill_known(
            configuration,
            self.tokens.root(),
            |token| steps.reads(TokenId(token)),
        )?;
        let Some(filled) = filled else { return Ok(None) };
        self.fill_rest(configuration, accepting, blocks)?;
        self.keep(&mut store, ground, filled, blocks);
        Ok(Some(filled.stats))
    }

    fn walker<'a>(&'a self, store: &'a mut WalkStore) -> Walker<'a> {
        let shared = self.shared.as_deref();
        Walker::new(self.machine(), &self.tokens, store, shared)
    }

    pub(crate) fn is_accepting(
        &self,
        configuration: &Configuration,
    ) -> Result<bool, AutomatonError> {
        configuration.is_accepting(self.machine(), self.limits)
    }

    /// Keeps a mask whole if it comes again and depends on few frames only.
    fn keep(
        &self,
        store: &mut WalkStore,
        ground: Ground<'_>,
        filled: Filled,
        blocks: &[usize],
    ) {
        let Some(depth) = filled.depth.filter(|_| self.keeps_masks()) else {
            return;
        };
        let mask = (blocks, self.vocabulary().n_logits());
        store.finished().keep(ground, depth, filled.n_walks, mask);
    }

    /// Returns whether masks are made of walks alone, so that they can be
    /// kept.
    pub(crate) fn keeps_masks(&self) -> bool {
        self.tokens.long_tokens().is_empty()
            && self.own_atoms.is_empty()
            && self.shared_atoms.is_empty()
    }

    /// Takes the lock of the walks if nobody else has it.
    fn try_lock_store(&self) -> Option<MutexGuard<'_, WalkStore>> {
        match self.store.try_lock() {
            Ok(store) => Some(store),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Takes the lock of the walks. Who waits for it may be interrupted.
    fn lock_store(&self) -> Result<MutexGuard<'_, WalkStore>, Interrupted> {
        while interrupt::is_active() {
            if let Some(store) = self.try_lock_store() {
                return Ok(store);
            }
            interrupt::check()?;
            thread::sleep(Duration::from_micros(100));
        }
        Ok(lock(&self.store))
    }

    fn forget_if_full(&self, store: &mut WalkStore) {
        if store.memory() > MAX_CACHE_BYTES {
            store.clear();
        }
        if let Some(shared) = &self.shared {
            let mut shared = lock(shared);
            if shared.memory() > MAX_CACHE_BYTES {
                shared.clear();
            }
        }
    }

    /// Adds to a mask what is no part of walks: tokens that are too long,
    /// tokens by name, and the end.
    pub(crate) fn fill_rest(
        &self,
        configuration: &Configuration,
        accepting: bool,
        blocks: &mut [usize],
    ) -> Result<(), AutomatonError> {
        let mut steps = Steps::new(self, configuration);
        for &token in self.tokens.long_tokens() {
            if steps.reads(TokenId(token))? {
                insert_all(blocks, &[token]);
            }
        }
        if !(self.own_atoms.is_empty() && self.shared_atoms.is_empty()) {
            self.fill_atoms(configuration, blocks)?;
        }
        let width = self.vocabulary().n_logits();
        for &token in self.vocabulary().end_tokens() {
            if token.index() >= width {
                continue;
            }
            if accepting {
                insert_all(blocks, &[token.0]);
            } else {
                remove(blocks, token.0);
            }
        }
        Ok(())
    }

    /// Returns the configuration after a token, which is dead if the token is
    /// refused. End tokens are no part of a text, and are refused here.
    pub(crate) fn after(
        &self,
        configuration: &Configuration,
        token: TokenId,
    ) -> Result<Configuration, AutomatonError> {
        let machine = self.machine();
        let mut after = Configuration::default();
        if let Some(bytes) = self.vocabulary().token_bytes(token)
            && !bytes.is_empty()
        {
            after = self.after_bytes(configuration, bytes)?;
        }
        if self.stands_for_atom(token) {
            let stands_for = |state: StateId, atom: AtomId| {
                self.atom(state, atom)
                    .is_some_and(|bound| self.is_match(bound, token))
            };
            let symbol = Symbol::Token(&stands_for);
            let more = configuration.step(machine, self.limits, symbol)?;
            after.extend(more, self.limits)?;
        }
        Ok(after)
    }

    /// Returns the configuration after `bytes`, which is dead if they are
    /// refused.
    pub(crate) fn after_bytes(
        &self,
        configuration: &Configuration,
        bytes: &[u8],
    ) -> Result<Configuration, AutomatonError> {
        let mut after = configuration.clone();
        for &byte in bytes {
            after = self.after_byte(&after, byte)?;
            if after.is_dead() {
                break;
            }
        }
        Ok(after)
    }

    /// Returns the configuration after one byte, which is dead if that is
    /// refused.
    pub(crate) fn after_byte(
        &self,
        configuration: &Configuration,
        byte: u8,
    ) -> Result<Configuration, AutomatonError> {
        let symbol = Symbol::Byte(byte);
        configuration.step(self.machine(), self.limits, symbol)
    }

    /// Allows the tokens of atoms.
    fn fill_atoms(
        &self,
        configuration: &Configuration,
        blocks: &mut [usize],
    ) -> Result<(), AutomatonError> {
        let machine = self.machine();
        let mut here: Vec<(bool, AtomId)> = Vec::new();
        let reach = configuration.closure(machine, self.limits, true)?;
        for top in reach.tops() {
            let state = top.frame.state;
            let row = machine.row(state)?;
            here.extend(
                row.atoms.iter().map(|&(atom, _)| (state.is_shared(), atom)),
            );
        }
        here.sort_unstable();
        here.dedup();
        for (is_shared, atom) in here {
            let stands_for = |state: StateId, other: AtomId| {
                (state.is_shared(), other) == (is_shared, atom)
            };
            let symbol = Symbol::Token(&stands_for);
            if reach.step(machine, self.limits, symbol)?.is_dead() {
                continue;
            }
            let atoms = self.atoms(is_shared);
            let Some(&bound) = atoms.get(atom.0 as usize) else { continue };
            if bound.negated {
                for index in 0..self.vocabulary().n_tokens() {
                    let token = TokenId::from_index(index);
                    if self.is_match(bound, token) {
                        insert_all(blocks, &[token.0]);
                    }
                }
            } else {
                insert_all(blocks, &[bound.token.0]);
            }
        }
        Ok(())
    }

    /// Returns true if any atom may come next.
    pub(crate) fn may_read_atom(
        &self,
        configuration: &Configuration,
    ) -> Result<bool, AutomatonError> {
        if self.own_atoms.is_empty() && self.shared_atoms.is_empty() {
            return Ok(false);
        }
        let machine = self.machine();
        let symbol = Symbol::Token(&|_, _| true);
        let after = configuration.step(machine, self.limits, symbol)?;
        Ok(!after.is_dead())
    }

    fn atoms(&self, is_shared: bool) -> &[BoundAtom] {
        if is_shared { &self.shared_atoms } else { &self.own_atoms }
    }

    fn atom(&self, state: StateId, atom: AtomId) -> Option<BoundAtom> {
        self.atoms(state.is_shared()).get(atom.0 as usize).copied()
    }

    /// Returns true if any atom of the grammar stands for `token`.
    fn stands_for_atom(&self, token: TokenId) -> bool {
        self.own_atoms
            .iter()
            .chain(&self.shared_atoms)
            .any(|&bound| self.is_match(bound, token))
    }

    /// Returns true if and only if the atom stands for `token`. End tokens
    /// are decided by acceptance alone, and what is no token is not matched.
    fn is_match(&self, bound: BoundAtom, token: TokenId) -> bool {
        let vocabulary = self.vocabulary();
        (bound.token == token) != bound.negated
            && !vocabulary.is_end(token)
            && matches!(
                vocabulary.kind(token),
                TokenKind::Text | TokenKind::Special
            )
    }
}

impl fmt::Debug for CompiledGrammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledGrammar")
            .field("automaton", &self.automaton)
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}

fn bind_atom(
    atom: &Atom,
    vocabulary: &Vocabulary,
) -> Result<BoundAtom, BindError> {
    let negated = atom.negated;
    let token = match &atom.token {
        AtomToken::Id(id) => {
            let token = TokenId(*id);
            if token.index() >= vocabulary.n_tokens() {
                return Err(BindError::NoSuchId {
                    token,
                    n_tokens: vocabulary.n_tokens(),
                });
            }
            token
        }
        AtomToken::Text(text) => find_text(text, vocabulary)
            .ok_or_else(|| BindError::NoSuchText { text: text.clone() })?,
    };
    Ok(BoundAtom { token, negated })
}

/// Returns the token with this spelling: a special one, else a text token.
fn find_text(text: &str, vocabulary: &Vocabulary) -> Option<TokenId> {
    vocabulary.id_of_special(text).or_else(|| {
        vocabulary
            .text_tokens()
            .find(|(_, bytes)| *bytes == text.as_bytes())
            .map(|(token, _)| token)
    })
}

/// An error that occurs when a grammar and a vocabulary do not belong
/// together.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The grammar names a token by an id that is none.
    #[error(
        "the grammar names token {}, and the vocabulary has {n_tokens} \
         tokens; name a token of this vocabulary",
        token.0
    )]
    NoSuchId {
        /// The token.
        token: TokenId,
        /// How many tokens there are.
        n_tokens: usize,
    },
    /// The grammar names a token by a spelling that is none.
    #[error(
        "the grammar names the token {text:?}, which the vocabulary does not \
         have; write it as text, or name a token of this vocabulary"
    )]
    NoSuchText {
        /// The spelling.
        text: String,
    },
}
