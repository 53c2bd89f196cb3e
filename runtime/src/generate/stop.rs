//! Finding the first of several texts in a text that comes in pieces.
//!
//! A [`StopSet`] is the automaton of Aho and Corasick (1975). Its state is the
//! longest suffix of the text so far with which one of the texts begins, which
//! is just what must be held back. Reading a byte takes constant time on
//! average, whatever the texts and their number.
//!
//! The text that ends first is found, and of those that end at one byte the
//! longest: so what is found does not depend on how the text was cut into
//! pieces.

use std::collections::VecDeque;

/// Texts to be found, as an automaton.
#[derive(Debug)]
pub(super) struct StopSet {
    nodes: Vec<Node>,
}

/// A beginning of one or more of the texts.
#[derive(Debug, Default)]
struct Node {
    /// The next bytes, ascending, and where they lead.
    children: Vec<(u8, usize)>,
    /// The longest proper suffix that is a node, too.
    suffix: usize,
    /// How many bytes it has.
    depth: usize,
    /// The index and the length of the longest text that is a suffix of it.
    found: Option<(usize, usize)>,
}

impl StopSet {
    /// The state in which nothing was read.
    pub(super) const START: usize = 0;

    /// Builds the automaton. Empty texts are never found.
    pub(super) fn new(texts: &[impl AsRef<str>]) -> StopSet {
        let mut set = StopSet { nodes: vec![Node::default()] };
        for (index, text) in texts.iter().enumerate() {
            let text = text.as_ref().as_bytes();
            let mut at = StopSet::START;
            for &byte in text {
                at = set.grow(at, byte);
            }
            if at != StopSet::START {
                set.nodes[at].found.get_or_insert((index, text.len()));
            }
        }
        set.link();
        set
    }

    fn grow(&mut self, at: usize, byte: u8) -> usize {
        let children = &self.nodes[at].children;
        match children.binary_search_by_key(&byte, |child| child.0) {
            Ok(place) => children[place].1,
            Err(place) => {
                let new = self.nodes.len();
                self.nodes[at].children.insert(place, (byte, new));
                let depth = self.nodes[at].depth + 1;
                self.nodes.push(Node { depth, ..Node::default() });
                new
            }
        }
    }

    /// Finds the suffixes, shorter nodes before longer ones.
    fn link(&mut self) {
        let mut waiting = VecDeque::from([StopSet::START]);
        while let Some(at) = waiting.pop_front() {
            for place in 0..self.nodes[at].children.len() {
                let (byte, child) = self.nodes[at].children[place];
                if at != StopSet::START {
                    let suffix = self.step(self.nodes[at].suffix, byte);
                    self.nodes[child].suffix = suffix;
                    let shorter = self.nodes[suffix].found;
                    let found = &mut self.nodes[child].found;
                    *found = found.or(shorter);
                }
                waiting.push_back(child);
            }
        }
    }

    /// Returns the state after a byte.
    pub(super) fn step(&self, mut state: usize, byte: u8) -> usize {
        loop {
            let node = &self.nodes[state];
            let place =
                node.children.binary_search_by_key(&byte, |child| child.0);
            match place {
                Ok(place) => return node.children[place].1,
                Err(_) if state == StopSet::START => return state,
                Err(_) => state = node.suffix,
            }
        }
    }

    /// Returns how many bytes at the end of the text could begin one of the
    /// texts.
    pub(super) fn held_back(&self, state: usize) -> usize {
        self.nodes[state].depth
    }

    /// Returns the index and the length of the text that ends here, if any.
    pub(super) fn found(&self, state: usize) -> Option<(usize, usize)> {
        self.nodes[state].found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text that ends first, the longest of those, by looking everywhere.
    fn slowly(texts: &[String], text: &str) -> Option<(usize, usize)> {
        (1..=text.len()).find_map(|end| {
            let ends = |stop: &&String| {
                !stop.is_empty()
                    && text.as_bytes()[..end].ends_with(stop.as_bytes())
            };
            let found = texts.iter().filter(ends).max_by_key(|s| s.len())?;
            Some((end, found.len()))
        })
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_looking_everywhere_finds(
            texts in prop::collection::vec("[abé]{0,4}", 0..5),
            text in "[abé]{0,40}",
        ) {
            let set = StopSet::new(&texts);
            let mut state = StopSet::START;
            let mut found = None;
            for (index, &byte) in text.as_bytes().iter().enumerate() {
                state = set.step(state, byte);
                let read = &text.as_bytes()[..=index];
                let held = (0..=read.len()).rev().find(|&n| {
                    let end = &read[read.len() - n..];
                    texts.iter().any(|t| t.as_bytes().starts_with(end))
                });
                prop_assert_eq!(set.held_back(state), held.unwrap_or(0));
                if let Some((_, length)) = set.found(state) {
                    found = Some((index + 1, length));
                    break;
                }
            }
            prop_assert_eq!(found, slowly(&texts, &text));
        }
    }

    #[test]
    fn reading_is_linear_where_every_suffix_could_begin_one() {
        let stop = "a".repeat(2_000) + "b";
        let set = StopSet::new(&[stop]);
        let mut state = StopSet::START;
        for _ in 0..1_000_000 {
            state = set.step(state, b'a');
        }
        assert_eq!(set.held_back(state), 2_000);
    }
}
