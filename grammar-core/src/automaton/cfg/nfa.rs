//! The nodes and edges of all rules, flat.

use crate::automaton::AtomId;

/// What an edge reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Label {
    /// Nothing.
    Empty,
    /// One byte of `lo..=hi`.
    Bytes { lo: u8, hi: u8 },
    /// One whole token.
    Atom(AtomId),
    /// A text of the callee, never the empty one.
    Call(Callee),
}

/// What is called.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Callee {
    /// A rule.
    Rule(u32),
    /// A counted repetition.
    Counter(u32),
    /// A machine that is embedded.
    Machine(u32),
}

/// An edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) label: Label,
    pub(super) to: u32,
}

/// At least `min` and at most `max` non-empty texts of a rule.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Counter {
    pub(super) rule: u32,
    pub(super) min: u32,
    pub(super) max: Option<u32>,
}

/// One automaton over bytes, tokens and calls for each rule.
///
/// Every rule has one first and one last node. No edge enters the first and
/// none leaves the last.
#[derive(Debug)]
pub(super) struct Nfa {
    /// Where each node's edges begin in `edges`, and one more.
    pub(super) offsets: Vec<u32>,
    pub(super) edges: Vec<Edge>,
    /// The rule of each node.
    pub(super) owner: Vec<u32>,
    /// The first node of each rule.
    pub(super) first: Vec<u32>,
    /// The last node of each rule.
    pub(super) last: Vec<u32>,
    pub(super) counters: Vec<Counter>,
}

impl Nfa {
    /// Returns about how many bytes this holds.
    pub(super) fn memory_usage(&self) -> usize {
        let numbers = self.offsets.len()
            + self.owner.len()
            + self.first.len()
            + self.last.len();
        numbers * size_of::<u32>()
            + size_of_val(&*self.edges)
            + size_of_val(&*self.counters)
    }

    pub(super) fn len(&self) -> usize {
        self.owner.len()
    }

    /// Returns the edges that leave `node`.
    pub(super) fn edges(&self, node: u32) -> &[Edge] {
        let node = node as usize;
        let (lo, hi) = (self.offsets[node], self.offsets[node + 1]);
        &self.edges[lo as usize..hi as usize]
    }

    /// Returns the rule that ends in `node`, if one does.
    pub(super) fn ends(&self, node: u32) -> Option<u32> {
        let owner = self.owner[node as usize];
        (self.last[owner as usize] == node).then_some(owner)
    }

    /// Sorts `edges` by the node that each one leaves.
    pub(super) fn set_edges(&mut self, edges: &[(u32, Edge)]) {
        let n = self.len();
        self.offsets.clear();
        self.offsets.resize(n + 1, 0);
        for (from, _) in edges {
            self.offsets[*from as usize + 1] += 1;
        }
        for node in 0..n {
            self.offsets[node + 1] += self.offsets[node];
        }
        let mut next = self.offsets.clone();
        let none = Edge { label: Label::Empty, to: 0 };
        self.edges.clear();
        self.edges.resize(edges.len(), none);
        for (from, edge) in edges {
            let slot = &mut next[*from as usize];
            self.edges[*slot as usize] = *edge;
            *slot += 1;
        }
    }
}
