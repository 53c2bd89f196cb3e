//! Sets of stacks that share what they have in common.
//!
//! A [`Stack`] is the part of a configuration below its top frame. It is
//! immutable and shared, so that a snapshot is one reference count, and in
//! general it stands for a *set* of stacks, read from the top: each
//! [`Edge`] is one frame that may be next, with the set of stacks below it.
//! Deterministic machines only ever have one edge.
//!
//! Merging equal frames keeps ambiguous grammars polynomial. It has fuel:
//! when that is spent, both edges are kept, which costs time but leaves the
//! set as it is. Correctness never depends on merging.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Frame;

/// How many edges one union may merge before it keeps both.
const MERGE_FUEL: u32 = 64;

/// The frames below a top frame: a set of stacks, usually of one.
#[derive(Clone, Debug, Default)]
pub struct Stack(Option<Arc<Node>>);

/// One frame of a stack set, and what may lie below it.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The waiting frame.
    pub frame: Frame,
    /// The frames below it.
    pub below: Stack,
}

#[derive(Debug)]
struct Node {
    edges: SmallVec<[Edge; 1]>,
    /// Whether the empty stack is in the set.
    bottom: bool,
    /// The largest number of frames of any stack in the set.
    depth: usize,
    /// Equal for equal sets that were built in the same order.
    hash: u64,
}

impl Stack {
    /// Creates the set that holds the empty stack only.
    pub const fn empty() -> Stack {
        Stack(None)
    }

    /// Returns the stacks of `self` with `frame` on top.
    #[must_use]
    pub fn push(&self, frame: Frame) -> Stack {
        let edge = Edge { frame, below: self.clone() };
        Stack::from_edges(SmallVec::from_buf([edge]), false)
    }

    /// Returns the frames that may be on top.
    pub fn edges(&self) -> &[Edge] {
        self.0.as_ref().map_or(&[], |node| &node.edges)
    }

    /// Returns true if and only if the empty stack is in the set.
    pub fn has_bottom(&self) -> bool {
        self.0.as_ref().is_none_or(|node| node.bottom)
    }

    /// Returns the largest number of frames of any stack in the set.
    pub fn depth(&self) -> usize {
        self.0.as_ref().map_or(0, |node| node.depth)
    }

    /// Returns true if and only if both are the same object.
    pub fn is_same(&self, other: &Stack) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Returns a number that tells this object from every other that is
    /// alive.
    pub fn identity(&self) -> usize {
        self.0.as_ref().map_or(0, |node| Arc::as_ptr(node) as usize)
    }

    /// Returns a hash that is equal for stacks that are
    /// [equal](Stack::is_equal).
    pub fn content_hash(&self) -> u64 {
        self.0.as_ref().map_or(0, |node| node.hash)
    }

    /// Returns true if both hold the same stacks in the same order.
    pub fn is_equal(&self, other: &Stack) -> bool {
        let mut pending = vec![(self, other)];
        while let Some((a, b)) = pending.pop() {
            if a.is_same(b) {
                continue;
            }
            let (Some(x), Some(y)) = (&a.0, &b.0) else { return false };
            if x.hash != y.hash
                || x.depth != y.depth
                || x.bottom != y.bottom
                || x.edges.len() != y.edges.len()
            {
                return false;
            }
            for (e, f) in x.edges.iter().zip(&y.edges) {
                if !e.frame.is_same(&f.frame) {
                    return false;
                }
                pending.push((&e.below, &f.below));
            }
        }
        true
    }

    /// Returns the union of both sets.
    #[must_use]
    pub fn union(&self, other: &Stack) -> Stack {
        let mut fuel = MERGE_FUEL;
        self.union_with(other, &mut fuel)
    }

    /// Recursion is as deep as there is fuel.
    fn union_with(&self, other: &Stack, fuel: &mut u32) -> Stack {
        if self.is_equal(other) {
            return self.clone();
        }
        let mut edges: SmallVec<[Edge; 1]> = self.edges().into();
        for edge in other.edges() {
            let same = edges
                .iter_mut()
                .filter(|mine| mine.frame.is_same(&edge.frame));
            let mut twin = None;
            let mut known = false;
            for mine in same {
                known |= mine.below.is_equal(&edge.below);
                twin = twin.or(Some(mine));
            }
            match twin {
                _ if known => {}
                Some(twin) if *fuel > 0 => {
                    *fuel -= 1;
                    twin.below = twin.below.union_with(&edge.below, fuel);
                }
                _ => edges.push(edge.clone()),
            }
        }
        let bottom = self.has_bottom() || other.has_bottom();
        Stack::from_edges(edges, bottom)
    }

    fn from_edges(edges: SmallVec<[Edge; 1]>, bottom: bool) -> Stack {
        let mut depth = 0;
        let mut hash = u64::from(bottom);
        for edge in &edges {
            depth = depth.max(edge.below.depth() + 1);
            let below = edge.below.0.as_ref().map_or(1, |node| node.hash);
            hash = mix(mix(hash, hash_frame(&edge.frame)), below);
        }
        Stack(Some(Arc::new(Node { edges, bottom, depth, hash })))
    }
}

/// Drops from the top, not by recursion: stacks are as deep as texts.
impl Drop for Node {
    fn drop(&mut self) {
        let mut pending: Vec<Arc<Node>> = Vec::new();
        let mut edges = std::mem::take(&mut self.edges);
        loop {
            pending.extend(edges.drain(..).filter_map(|edge| edge.below.0));
            let Some(node) = pending.pop() else { return };
            if let Some(mut node) = Arc::into_inner(node) {
                edges = std::mem::take(&mut node.edges);
            }
        }
    }
}

fn hash_frame(frame: &Frame) -> u64 {
    let counts = u64::from(frame.counts[0]) << 32 | u64::from(frame.counts[1]);
    let used = match &frame.memory {
        Some(memory) => memory.used.len() * 2 + 1,
        None => 0,
    };
    mix(mix(u64::from(frame.state.0), counts), used as u64)
}

fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::automaton::StateId;

    fn stack(states: &[u32]) -> Stack {
        states.iter().fold(Stack::empty(), |stack, &state| {
            stack.push(Frame::new(StateId(state)))
        })
    }

    /// Every stack of a set, bottom first.
    fn stacks(stack: &Stack) -> Vec<Vec<u32>> {
        let mut all = Vec::new();
        if stack.has_bottom() {
            all.push(Vec::new());
        }
        for edge in stack.edges() {
            for mut states in stacks(&edge.below) {
                states.push(edge.frame.state.0);
                all.push(states);
            }
        }
        all.sort();
        all
    }

    #[test]
    fn a_union_holds_the_stacks_of_both() {
        let union = stack(&[1, 2, 3])
            .union(&stack(&[1, 4, 3]))
            .union(&Stack::empty())
            .union(&stack(&[3]));
        assert_eq!(
            stacks(&union),
            [vec![], vec![1, 2, 3], vec![1, 4, 3], vec![3]]
        );
        assert_eq!(union.edges().len(), 1);
        assert!(union.is_equal(&union.union(&stack(&[1, 2, 3]))));
    }

    #[test]
    fn equal_stacks_are_equal_however_they_were_made() {
        assert!(stack(&[1, 2]).is_equal(&stack(&[1, 2])));
        assert!(!stack(&[1, 2]).is_equal(&stack(&[2, 2])));
        assert!(!stack(&[1]).is_equal(&stack(&[1, 1])));
    }

    #[test]
    fn unions_without_fuel_keep_both() {
        let mut long: Vec<u32> = (0..200).collect();
        let a = stack(&long);
        long[0] = 900;
        let union = a.union(&stack(&long));
        assert_eq!(stacks(&union).len(), 2);
        assert_eq!(union.depth(), 200);
    }

    #[test]
    fn a_deep_stack_is_dropped_without_recursion() {
        let mut deep = Stack::empty();
        for state in 0..1_000_000 {
            deep = deep.push(Frame::new(StateId(state)));
        }
        assert_eq!(deep.depth(), 1_000_000);
        drop(deep);
    }
}
