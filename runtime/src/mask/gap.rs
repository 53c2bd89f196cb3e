//! White space, once for all states.
//!
//! A place where white space may stand accepts hundreds of nodes of a usual
//! vocabulary, and what may follow is the same for every amount of it. The
//! closure holds the tokens that are white space only, and for each byte that
//! may follow some, the union of what comes after it.

use std::sync::Arc;

use super::{
    set::TokenSet,
    trie::{Trie, TrieRef},
};

/// What lies below a node through 1 to `left` bytes of white space.
#[derive(Debug)]
pub(crate) struct Gap {
    /// The tokens that are white space only.
    pub(crate) blank: Arc<TokenSet>,
    /// What follows each byte that is not white space, sorted by byte.
    pub(crate) next: Box<[(u8, TrieRef)]>,
}

impl Gap {
    pub(crate) fn new(at: &TrieRef, left: u32, n_blocks: usize) -> Gap {
        let trie = &at.trie;
        let mut blank = Vec::new();
        let mut next: Vec<(u8, u32)> = Vec::new();
        let mut pending = vec![(at.node, 0)];
        while let Some((node, depth)) = pending.pop() {
            for (child, info) in trie.children(node) {
                if is_space(info.byte) {
                    if depth < left {
                        blank.push(trie.own_tokens(child));
                        pending.push((child, depth + 1));
                    }
                } else if depth > 0 {
                    next.push((info.byte, child));
                }
            }
        }
        next.sort_unstable();
        let next = next
            .chunk_by(|a, b| a.0 == b.0)
            .map(|run| (run[0].0, union(trie, run)))
            .collect();
        Gap {
            blank: Arc::new(TokenSet::new(blank.into_iter(), n_blocks)),
            next,
        }
    }
}

impl Gap {
    /// Returns about how many bytes of memory this holds.
    pub(crate) fn memory(&self) -> usize {
        let merged = self.next.iter().map(|(_, at)| match at.node {
            0 => at.trie.memory(),
            _ => 0,
        });
        self.blank.memory() + merged.sum::<usize>()
    }
}

/// Returns the longest run of white space below a node.
pub(crate) fn longest(at: &TrieRef) -> u32 {
    let mut longest = 0;
    let mut pending = vec![(at.node, 0)];
    while let Some((node, depth)) = pending.pop() {
        longest = longest.max(depth);
        for (child, info) in at.trie.children(node) {
            if is_space(info.byte) {
                pending.push((child, depth + 1));
            }
        }
    }
    longest
}

fn union(trie: &Arc<Trie>, run: &[(u8, u32)]) -> TrieRef {
    if let [(_, node)] = *run {
        return TrieRef { trie: Arc::clone(trie), node };
    }
    let places: Vec<(&Arc<Trie>, u32)> =
        run.iter().map(|&(_, node)| (trie, node)).collect();
    TrieRef::root(&Arc::new(Trie::union(&places)))
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
