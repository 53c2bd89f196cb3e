//! What is derived from a vocabulary alone.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use maskwright_grammar_core::{automaton::Automaton, interrupt};

use super::{
    classes::ClassTrie,
    gap::{self, Gap},
    store::WalkStore,
    trie::{Trie, TrieRef},
    unions::Unions,
};
use crate::{
    saved::{Reader, Writer},
    vocabulary::Vocabulary,
};

/// About how many bytes of merged tries a vocabulary keeps before it forgets
/// them all.
const MAX_UNION_BYTES: usize = 64 << 20;

/// The lengths in bytes that longer tokens are told apart by.
const LENGTHS: [u32; 17] =
    [16, 18, 20, 22, 24, 28, 32, 36, 40, 48, 56, 64, 80, 96, 128, 192, 256];

/// Smaller tries are scanned as they are.
const MIN_CLASSED: u32 = 300;

/// A vocabulary prepared for masks: its trie, and the walks of the machines
/// that many grammars share.
///
/// Make one for each vocabulary and compile all grammars with it. Dropping it
/// and making another changes time, never results.
pub struct TokenTrie {
    vocabulary: Arc<Vocabulary>,
    root: TrieRef,
    /// The same tokens by classes of bytes, once a walk asks for it.
    classes: Arc<[OnceLock<ClassTrie>; 2]>,
    /// The tokens that are longer than each of [`LENGTHS`], once a walk asks.
    longer: Arc<[OnceLock<TrieRef>; LENGTHS.len()]>,
    /// Tokens that are too long for walks; stepped one by one at each mask.
    long: Box<[u32]>,
    n_blocks: usize,
    /// Unions of its own places.
    unions: Mutex<Unions>,
    /// The walks of each shared machine. The machine is held, so that its
    /// address stays its own.
    shared: Mutex<Vec<(Arc<dyn Automaton>, SharedStore)>>,
}

/// The walks of one shared machine.
pub(crate) type SharedStore = Arc<Mutex<WalkStore>>;

impl TokenTrie {
    /// Builds the trie of a vocabulary's text tokens.
    pub fn new(vocabulary: Arc<Vocabulary>) -> TokenTrie {
        let tokens =
            vocabulary.text_tokens().map(|(token, bytes)| (token.0, bytes));
        let (trie, long) = Trie::new(tokens);
        let n_blocks = vocabulary.n_logits().div_ceil(usize::BITS as usize);
        trie.below(0);
        let root = TrieRef::root(&Arc::new(trie));
        TokenTrie {
            vocabulary,
            root,
            classes: Arc::default(),
            longer: Arc::default(),
            long: long.into(),
            n_blocks,
            unions: Mutex::default(),
            shared: Mutex::default(),
        }
    }

    /// Writes what is derived from the vocabulary alone.
    pub(crate) fn save(&self, out: &mut Writer) {
        self.root.trie.save(out);
        out.words(self.long.iter().copied());
        for kept in [false, true] {
            let classes = self.classes(kept);
            out.number(classes.is_some().into());
            if let Some(classes) = classes {
                classes.save(out);
            }
        }
    }

    /// Reads what [`TokenTrie::save`] wrote of `vocabulary`; none where that
    /// makes no sense.
    pub(crate) fn restore(
        vocabulary: Arc<Vocabulary>,
        from: &mut Reader<'_>,
    ) -> Option<TokenTrie> {
        let n_tokens = vocabulary.n_tokens().min(vocabulary.n_logits());
        let trie = Trie::restore(from, n_tokens)?;
        trie.below(0);
        let root = TrieRef::root(&Arc::new(trie));
        let long = from.words()?;
        if long.iter().any(|&token| token as usize >= n_tokens) {
            return None;
        }
        let classes = <[OnceLock<ClassTrie>; 2]>::default();
        for classes in &classes {
            if from.number()? != 0 {
                let made = ClassTrie::restore(from, &root, n_tokens)?;
                // It is new, and so empty.
                let _ = classes.set(made);
            }
        }
        let n_blocks = vocabulary.n_logits().div_ceil(usize::BITS as usize);
        Some(TokenTrie {
            vocabulary,
            root,
            classes: Arc::new(classes),
            longer: Arc::default(),
            long: long.into(),
            n_blocks,
            unions: Mutex::default(),
            shared: Mutex::default(),
        })
    }

    /// Returns a trie of the same vocabulary that knows what this one knows
    /// now, and learns on its own from here on.
    #[must_use]
    pub fn snapshot(&self) -> TokenTrie {
        let copy = |(automaton, store): &(Arc<dyn Automaton>, SharedStore)| {
            let store = lock(store).snapshot();
            (Arc::clone(automaton), Arc::new(Mutex::new(store)))
        };
        TokenTrie {
            vocabulary: Arc::clone(&self.vocabulary),
            root: self.root.clone(),
            classes: Arc::clone(&self.classes),
            longer: Arc::clone(&self.longer),
            long: self.long.clone(),
            n_blocks: self.n_blocks,
            unions: Mutex::new(lock(&self.unions).clone()),
            shared: Mutex::new(lock(&self.shared).iter().map(copy).collect()),
        }
    }

    /// Returns the vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Returns the number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.root.size() as usize
    }

    pub(crate) fn root(&self) -> &TrieRef {
        &self.root
    }

    /// Returns the tokens by classes of bytes, if there are enough of them;
    /// the first byte of each is what it is if that is `kept`. None if they
    /// have to be made and that is interrupted.
    pub(crate) fn classes(&self, kept: bool) -> Option<&ClassTrie> {
        if self.root.size() < MIN_CLASSED {
            return None;
        }
        let classes = &self.classes[usize::from(kept)];
        if let Some(known) = classes.get() {
            return Some(known);
        }
        // Not made within `get_or_init`, where others could not be
        // interrupted while they wait.
        let made = ClassTrie::new(&self.root, kept);
        interrupt::confirm().ok()?;
        Some(classes.get_or_init(|| made))
    }

    /// Returns a trie of the tokens that are longer than some length of at
    /// most so many `bytes`; none if that is shorter than any length that is
    /// told apart.
    pub(crate) fn longer(&self, bytes: u32) -> Option<&TrieRef> {
        let at = LENGTHS.partition_point(|&length| length <= bytes);
        let at = at.checked_sub(1)?;
        let is_longer = |bytes: &[u8]| bytes.len() > LENGTHS[at] as usize;
        Some(self.longer[at].get_or_init(|| {
            let tokens = self.vocabulary.text_tokens();
            let tokens = tokens.filter(|(_, bytes)| is_longer(bytes));
            let (trie, _) = Trie::new(tokens.map(|(id, it)| (id.0, it)));
            TrieRef::root(&Arc::new(trie))
        }))
    }

    pub(crate) fn long_tokens(&self) -> &[u32] {
        &self.long
    }

    pub(crate) fn n_blocks(&self) -> usize {
        self.n_blocks
    }

    /// Returns the union of several places of tries that are public.
    pub(crate) fn union(&self, places: &[(&Arc<Trie>, u32)]) -> Arc<Trie> {
        let known = lock(&self.unions).known_union(places);
        known.unwrap_or_else(|| {
            // Made without the lock: it may take long, and other threads
            // have others to make.
            let union = Trie::union(places);
            lock(&self.unions).insert_union(places, union)
        })
    }

    /// Returns the white space closure at a place of a trie that is public.
    pub(crate) fn gap(&self, at: &TrieRef, left: u32) -> Arc<Gap> {
        let known = {
            let mut unions = lock(&self.unions);
            if unions.memory() > MAX_UNION_BYTES {
                *unions = Unions::default();
            }
            unions.known_gap(at, left)
        };
        known.unwrap_or_else(|| {
            // Made without the lock, as unions are.
            let longest = gap::longest(at);
            let gap = Gap::new(at, left.min(longest), self.n_blocks);
            lock(&self.unions).insert_gap(at, left, longest, gap)
        })
    }

    /// Returns where the walks of the shared machine `automaton` are kept.
    pub(crate) fn shared_store(
        &self,
        automaton: &Arc<dyn Automaton>,
    ) -> SharedStore {
        let mut stores = lock(&self.shared);
        let known = stores.iter().find(|(other, _)| {
            std::ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(automaton))
        });
        if let Some((_, store)) = known {
            return Arc::clone(store);
        }
        let store = SharedStore::default();
        stores.push((Arc::clone(automaton), Arc::clone(&store)));
        store
    }
}

impl fmt::Debug for TokenTrie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenTrie")
            .field("nodes", &self.n_nodes())
            .field("long_tokens", &self.long.len())
            .finish_non_exhaustive()
    }
}

/// Locks a cache. One that was left by a panic is still a cache: entries are
/// whole before they are inserted.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
