//! Left corners: what a frame can begin with, and what follows once a rule
//! that began with the frame has ended.

use super::nfa::{Callee, Label, Nfa};
use crate::util::{FxHashMap, FxHashSet};

/// The left corners of one goal.
///
/// The members are the rules that the goal can reach by calls that come
/// before anything is read. A frame runs them all at once, so that it begins
/// with reading and never with a call, however the rules recurse.
#[derive(Debug)]
pub(super) struct Corner {
    /// The nodes of the members' beginnings that read something themselves.
    pub(super) start: Box<[u32]>,
    /// Where the members' left calls of a rule go on.
    after: FxHashMap<u32, Vec<u32>>,
}

impl Corner {
    /// Finds the left corners of the rule `goal`.
    pub(super) fn new(nfa: &Nfa, goal: u32, scratch: &mut Scratch) -> Corner {
        let mut start = Vec::new();
        let mut after: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        let mut members = FxHashSet::default();
        members.insert(goal);
        scratch.begin(nfa.len());
        scratch.push(nfa.first[goal as usize]);
        while let Some(node) = scratch.pop() {
            let mut reads = false;
            for edge in nfa.edges(node) {
                match edge.label {
                    Label::Empty => scratch.push(edge.to),
                    Label::Bytes { .. }
                    | Label::Atom(_)
                    | Label::Call(Callee::Machine(_)) => reads = true,
                    Label::Call(Callee::Rule(rule)) => {
                        after.entry(rule).or_default().push(edge.to);
                        if members.insert(rule) {
                            scratch.push(nfa.first[rule as usize]);
                        }
                    }
                    Label::Call(Callee::Counter(_)) => {
                        debug_assert!(false, "a counter is never called left");
                    }
                }
            }
            if reads {
                start.push(node);
            }
        }
        start.sort_unstable();
        Corner { start: start.into(), after }
    }

    /// Returns every node that `seeds` lead to without reading, in a frame
    /// with the goal `goal` that has read something: those that read, those
    /// that call, and the goal's last node.
    pub(super) fn close(
        &self,
        nfa: &Nfa,
        goal: u32,
        seeds: &[u32],
        scratch: &mut Scratch,
    ) -> Vec<u32> {
        let mut nodes = Vec::new();
        scratch.begin(nfa.len());
        for &seed in seeds {
            scratch.push(seed);
        }
        while let Some(node) = scratch.pop() {
            let mut keep = false;
            for edge in nfa.edges(node) {
                if edge.label == Label::Empty {
                    scratch.push(edge.to);
                } else {
                    keep = true;
                }
            }
            if let Some(rule) = nfa.ends(node) {
                keep |= rule == goal;
                for &next in self.after.get(&rule).into_iter().flatten() {
                    scratch.push(next);
                }
            }
            if keep {
                nodes.push(node);
            }
        }
        nodes.sort_unstable();
        nodes
    }
}

/// A stack of nodes that takes each node once.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// The round in which each node was pushed last.
    marks: Vec<u32>,
    round: u32,
    stack: Vec<u32>,
}

impl Scratch {
    fn begin(&mut self, n: usize) {
        self.marks.resize(n, 0);
        self.stack.clear();
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.marks.fill(0);
            self.round = 1;
        }
    }

    fn push(&mut self, node: u32) {
        let mark = &mut self.marks[node as usize];
        if *mark != self.round {
            *mark = self.round;
            self.stack.push(node);
        }
    }

    fn pop(&mut self) -> Option<u32> {
        self.stack.pop()
    }
}
