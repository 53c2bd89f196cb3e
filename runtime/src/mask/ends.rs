//! Where a state ends that reads whatever another one reads.
//!
//! A pattern that is searched for, or a key of any kind, reads every text
//! that a string of any content reads; only its end is its own. Of the
//! vocabulary, the paths on which the other one ends are kept, and only these
//! are followed.

use std::sync::Arc;

use super::{
    set::TokenSet,
    trie::{TrieRef, index},
};

/// The tokens within a frame, and the paths that end it.
#[derive(Debug)]
pub(crate) struct EndTable {
    /// The tokens after which the frame is still there.
    pub(crate) accepted: Arc<TokenSet>,
    /// The paths, as a trie of their own, depth first.
    pub(crate) nodes: Box<[EndNode]>,
    /// The length of the longest path.
    pub(crate) longest: u32,
}

/// A node on a path that ends the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndNode {
    /// The index after this node's subtree.
    pub(crate) end: u32,
    /// The same node of the vocabulary's trie.
    pub(crate) node: u32,
    /// The byte that leads here.
    pub(crate) byte: u8,
}

impl EndTable {
    /// Keeps the paths from `at` to the nodes `ends` below it.
    pub(crate) fn new(
        accepted: TokenSet,
        at: &TrieRef,
        mut ends: Vec<u32>,
    ) -> EndTable {
        ends.sort_unstable();
        ends.dedup();
        let mut nodes: Vec<EndNode> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        let mut longest = 0;
        // Depth first, a child after the subtree of the one before: the last
        // in the list is the next to be looked at.
        let mut pending = vec![(at.node, 0_usize)];
        while let Some((node, depth)) = pending.pop() {
            let info = at.trie.node(node);
            for done in open.drain(depth.min(open.len())..) {
                let end = nodes.len();
                nodes[done].end = index(end);
            }
            open.push(nodes.len());
            nodes.push(EndNode { end: 0, node, byte: info.byte });
            longest = longest.max(depth);
            let first = pending.len();
            for (child, _) in at.trie.children(node) {
                let next = ends.partition_point(|&end| end < child);
                let last = at.trie.node(child).end;
                if ends.get(next).is_some_and(|&end| end < last) {
                    pending.push((child, depth + 1));
                }
            }
            pending[first..].reverse();
        }
        for done in open {
            nodes[done].end = index(nodes.len());
        }
        EndTable {
            accepted: Arc::new(accepted),
            nodes: nodes.into(),
            longest: index(longest),
        }
    }

    /// Returns about how many bytes of memory this holds.
    pub(crate) fn memory(&self) -> usize {
        self.accepted.memory() + size_of_val(&*self.nodes)
    }
}
