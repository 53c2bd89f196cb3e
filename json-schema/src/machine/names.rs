//! The declared names of an object, as ranges of one sorted list.
//!
//! The names that begin with what was read so far are neighbours, so a state
//! inside a key is a range and a depth; no trie is built.

use std::sync::Arc;

use maskwright_grammar_core::automaton::{Outcome, Words};

use super::{policy::Escapes, text::Edge};

/// The names of one object, sorted by code point.
#[derive(Debug)]
pub(crate) struct Names {
    /// Sorted, without duplicates.
    sorted: Box<[Box<[char]>]>,
}

/// The names that begin with the `depth` code points that were read.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct NameRange {
    pub(crate) lo: u32,
    pub(crate) hi: u32,
    pub(crate) depth: u32,
}

impl NameRange {
    /// No name.
    pub(crate) const NONE: NameRange = NameRange { lo: 0, hi: 0, depth: 0 };

    pub(crate) fn is_none(self) -> bool {
        self.lo >= self.hi
    }
}

impl Names {
    /// Sorts `names`, and returns with them the position that each has now.
    pub(crate) fn new(names: &[&str]) -> (Names, Vec<u32>) {
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by_key(|&index| names[index]);
        let mut positions = vec![0; names.len()];
        for (position, &index) in (0..).zip(&order) {
            positions[index] = position;
        }
        let sorted = order.iter().map(|&index| names[index].chars().collect());
        (Names { sorted: sorted.collect() }, positions)
    }

    /// The names as they are spelled without escapes, each with its closing
    /// quotation mark and its outcome by position. `None` if one of them
    /// must be escaped.
    pub(crate) fn spelled(
        &self,
        escapes: Escapes,
        outcome: impl Fn(u32) -> Outcome,
    ) -> Option<Arc<Words>> {
        let plain = |letter: char| {
            letter >= ' '
                && !matches!(letter, '"' | '\\')
                && (letter.is_ascii() || escapes != Escapes::Ascii)
        };
        let spell = |(position, name): (u32, &Box<[char]>)| {
            let mut bytes: String = name.iter().collect();
            bytes.push('"');
            (bytes.into_bytes().into(), outcome(position))
        };
        if !self.sorted.iter().all(|name| name.iter().all(|&c| plain(c))) {
            return None;
        }
        let words = (0..).zip(&self.sorted).map(spell).collect();
        Some(Arc::new(Words { words, escape: b'\\' }))
    }

    /// How many bytes of UTF-8 were read of the names in `range`.
    pub(crate) fn n_bytes(&self, range: NameRange) -> u32 {
        let name = &self.sorted[range.lo as usize][..range.depth as usize];
        let n: usize = name.iter().map(|letter| letter.len_utf8()).sum();
        u32::try_from(n).unwrap_or(u32::MAX)
    }

    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.sorted.len()).unwrap_or(u32::MAX)
    }

    /// All names, before anything was read.
    pub(crate) fn all(&self) -> NameRange {
        NameRange { lo: 0, hi: self.len(), depth: 0 }
    }

    /// The name at a position of the sorted list.
    pub(crate) fn text(&self, position: u32) -> String {
        self.sorted[position as usize].iter().collect()
    }

    /// The position of the name that is read whole in `range`, if one is.
    pub(crate) fn whole(&self, range: NameRange) -> Option<u32> {
        // The shortest of the names with a common prefix is sorted first.
        let first = self.sorted.get(range.lo as usize)?;
        (!range.is_none() && first.len() == range.depth as usize)
            .then_some(range.lo)
    }

    /// The code points that may follow in `range`, each with the names that
    /// are left; in order, one edge a code point.
    pub(crate) fn edges(
        &self,
        range: NameRange,
        edges: &mut Vec<Edge<NameRange>>,
    ) {
        let depth = range.depth as usize;
        let mut lo = range.lo;
        if self.whole(range).is_some() {
            lo += 1;
        }
        while lo < range.hi {
            let code = self.sorted[lo as usize][depth];
            let rest = &self.sorted[lo as usize..range.hi as usize];
            let same = rest.partition_point(|name| name[depth] <= code);
            let hi = lo + u32::try_from(same).unwrap_or(u32::MAX);
            edges.push(Edge {
                lo: code.into(),
                hi: code.into(),
                to: NameRange { lo, hi, depth: range.depth + 1 },
            });
            lo = hi;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_ends_at_each_name_and_nowhere_else() {
        let words = ["name", "n", "id", "nämlich", "name2", ""];
        let (names, positions) = Names::new(&words);
        for (word, position) in words.iter().zip(positions) {
            let mut range = names.all();
            for code in word.chars() {
                let mut edges = Vec::new();
                names.edges(range, &mut edges);
                let edge =
                    edges.iter().find(|edge| edge.lo == u32::from(code));
                range = edge.expect("the name leads on").to;
            }
            assert_eq!(names.whole(range), Some(position), "{word}");
            assert_eq!(names.text(position), *word);
        }
        let mut edges = Vec::new();
        names.edges(names.all(), &mut edges);
        assert_eq!(edges.len(), 2, "i and n");
    }
}
