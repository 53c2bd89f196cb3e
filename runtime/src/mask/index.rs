//! What is derived from a vocabulary alone.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use maskwright_grammar_core::{automaton::Automaton, util::FxHashMap};

use super::{
    gap::{self, Gap},
    store::WalkStore,
    trie::{Trie, TrieRef},
};
use crate::vocabulary::Vocabulary;

/// A vocabulary prepared for masks: its trie, and the walks of the machines
/// that many grammars share.
///
/// Make one for each vocabulary and compile all grammars with it. Dropping it
/// and making another changes time, never results.
pub struct TokenTrie {
    vocabulary: Arc<Vocabulary>,
    root: TrieRef,
    /// Tokens that are too long for walks; stepped one by one at each mask.
    long: Box<[u32]>,
    n_blocks: usize,
    /// The longest run of white space at the start of a token.
    longest_space: u32,
    /// White space closures of the vocabulary's own trie.
    gaps: Mutex<FxHashMap<(u32, u32), Arc<Gap>>>,
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
            longest_space: gap::longest(&root),
            root,
            long: long.into(),
            n_blocks,
            gaps: Mutex::default(),
            shared: Mutex::default(),
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

    pub(crate) fn long_tokens(&self) -> &[u32] {
        &self.long
    }

    pub(crate) fn n_blocks(&self) -> usize {
        self.n_blocks
    }

    pub(crate) fn longest_space(&self) -> u32 {
        self.longest_space
    }

    /// Returns the white space closure below `node` of the vocabulary's trie.
    pub(crate) fn gap(&self, node: u32, left: u32) -> Arc<Gap> {
        let mut gaps = lock(&self.gaps);
        let at = TrieRef { trie: Arc::clone(&self.root.trie), node };
        let gap = gaps
            .entry((node, left))
            .or_insert_with(|| Arc::new(Gap::new(&at, left, self.n_blocks)));
        Arc::clone(gap)
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
