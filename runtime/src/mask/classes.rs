//! The vocabulary by classes of bytes.
//!
//! Most states that read text do the same on all small letters, on all large
//! ones, on all digits, and on all characters beyond ASCII. With each byte
//! replaced by one of its class, a vocabulary of 128,000 tokens has a tenth
//! of the nodes, and a scan in which all states are that *uniform* goes over
//! those. Behind the first quote (where a JSON string ends) and within
//! escapes, bytes stay what they are, so that what leaves a string is a place
//! like any other.
//!
//! Often it is only the state at the start of a token that is not uniform
//! (some word has begun); for these there is a second trie, in which the
//! first byte is what it is.
//!
//! Where a state does not do the same on all bytes of some class, the scan
//! goes on in the real trie below the nodes of that class: each node here
//! knows the real nodes that it stands for, its *members*.

use std::sync::{Arc, LazyLock};

use maskwright_grammar_core::interrupt;

use super::trie::{NODES_TO_CHECK, Trie, TrieRef, index};
use crate::saved::{Reader, Writer};

/// The trie of the tokens with their bytes replaced.
#[derive(Debug)]
pub(crate) struct ClassTrie {
    pub(crate) root: TrieRef,
    /// Whether the bytes that lead on from a node are classes.
    free: Box<[bool]>,
    /// Where the members of each node begin, and one beyond.
    starts: Box<[u32]>,
    members: Box<[u32]>,
}

/// What stands before a byte of a token.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Before {
    /// Nothing, and the first byte is no class.
    Start,
    /// Text: bytes are classes.
    Text,
    /// A backslash.
    Backslash,
    /// So many hexadecimal digits of an escape are to come.
    Hex(u8),
    /// A quote, somewhere.
    Quote,
}

impl Before {
    /// Returns what stands for `byte`, and what stands before the next one.
    fn read(self, byte: u8) -> (u8, Before) {
        match (self, byte) {
            (Before::Text, b'"') | (Before::Quote, _) => (byte, Before::Quote),
            (Before::Text, b'\\') => (byte, Before::Backslash),
            (Before::Text, _) => (CLASS_OF[usize::from(byte)], Before::Text),
            (Before::Start, _) => (byte, Before::Text.read(byte).1),
            (Before::Backslash, b'u') => (byte, Before::Hex(4)),
            (Before::Hex(n @ 2..), _) => (byte, Before::Hex(n - 1)),
            (Before::Backslash | Before::Hex(_), _) => (byte, Before::Text),
        }
    }
}

/// The bytes that one of them stands for: the first is the one. `C2`, `E2`,
/// `E3` and `EF` begin spaces and line separators, which many an expression
/// leaves out.
const CLASSES: [(u8, u8); 13] = [
    (b'a', b'z'),
    (b'A', b'Z'),
    (b'0', b'9'),
    (0x00, 0x08),
    (0x0E, 0x1F),
    (0x80, 0x8F),
    (0x90, 0x9F),
    (0xA0, 0xBF),
    (0xC0, 0xC1),
    (0xC3, 0xDF),
    (0xE4, 0xEC),
    (0xF1, 0xF3),
    (0xF5, 0xFF),
];

/// What stands for each byte.
static CLASS_OF: LazyLock<[u8; 256]> = LazyLock::new(|| {
    let mut of = [0; 256];
    for byte in 0..=u8::MAX {
        let mut classes = CLASSES.iter();
        let class = classes.find(|(lo, hi)| (*lo..=*hi).contains(&byte));
        of[usize::from(byte)] = class.map_or(byte, |(lo, _)| *lo);
    }
    of
});

/// Returns whether whoever goes through all nodes is interrupted.
fn must_stop(node: u32) -> bool {
    (node as usize).is_multiple_of(NODES_TO_CHECK)
        && interrupt::check().is_err()
}

/// Some of the classes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct ClassSet(u16);

/// Of each byte that stands for a class, that class.
static CLASS_AT: LazyLock<[ClassSet; 256]> = LazyLock::new(|| {
    let mut at = [ClassSet::default(); 256];
    for (index, &(first, _)) in CLASSES.iter().enumerate() {
        at[usize::from(first)] = ClassSet(1 << index);
    }
    at
});

impl ClassSet {
    /// Returns the classes on whose bytes a table of 256 steps does not do
    /// the same.
    pub(super) fn mixed<T: PartialEq>(steps: &[T; 256]) -> ClassSet {
        let mut mixed = 0;
        for (index, &(lo, hi)) in CLASSES.iter().enumerate() {
            let class = &steps[usize::from(lo)..=usize::from(hi)];
            let is_mixed = class[1..].iter().any(|step| *step != class[0]);
            mixed |= u16::from(is_mixed) << index;
        }
        ClassSet(mixed)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether letters or digits are among the classes.
    pub(super) fn holds_letters(self) -> bool {
        [b'a', b'A', b'0'].iter().any(|&first| self.holds(first))
    }

    /// Whether a byte stands for one of the classes.
    pub(super) fn holds(self, byte: u8) -> bool {
        self.0 != 0 && self.0 & CLASS_AT[usize::from(byte)].0 != 0
    }
}

impl ClassTrie {
    /// Builds the trie by classes of a whole vocabulary, all bytes but the
    /// first replaced if that is `kept`.
    ///
    /// If it is interrupted, it is only a part of that: ask
    /// [`interrupt::confirm`] before it is kept.
    pub(crate) fn new(real: &TrieRef, kept: bool) -> ClassTrie {
        let start = if kept { Before::Start } else { Before::Text };
        let trie = &real.trie;
        // The real nodes in depth-first order, with their paths replaced.
        let mut all: Vec<u8> = Vec::new();
        let mut tokens: Vec<(u32, usize, usize)> = Vec::new();
        let mut path: Vec<(u8, Before, u32)> = Vec::new();
        let size = real.size();
        for node in 1..size {
            if must_stop(node) {
                break;
            }
            let at = trie.node(node);
            while path.last().is_some_and(|&(_, _, end)| end <= node) {
                path.pop();
            }
            let before = path.last().map_or(start, |&(_, before, _)| before);
            let (byte, next) = before.read(at.byte);
            path.push((byte, next, at.end));
            let own = trie.own_tokens(node);
            if !own.is_empty() {
                let from = all.len();
                all.extend(path.iter().map(|&(byte, _, _)| byte));
                let to = all.len();
                tokens.extend(own.iter().map(|&token| (token, from, to)));
            }
        }
        let tokens = tokens.iter();
        let (class_trie, _) =
            Trie::new(tokens.map(|&(token, lo, hi)| (token, &all[lo..hi])));
        class_trie.below(0);
        let root = TrieRef::root(&Arc::new(class_trie));
        let mut classes = ClassTrie {
            free: vec![true; root.size() as usize].into(),
            starts: Box::default(),
            members: Box::default(),
            root,
        };
        classes.free[0] = !kept;
        classes.find_members(trie, size, start);
        classes
    }

    /// Writes all of it.
    pub(crate) fn save(&self, out: &mut Writer) {
        self.root.trie.save(out);
        let free: Vec<u8> = self.free.iter().map(|&is| is.into()).collect();
        out.list(&free);
        out.words(self.starts.iter().copied());
        out.words(self.members.iter().copied());
    }

    /// Reads what [`ClassTrie::save`] wrote of the tokens of `real`; none
    /// where that makes no sense.
    pub(crate) fn restore(
        from: &mut Reader<'_>,
        real: &TrieRef,
        n_tokens: usize,
    ) -> Option<ClassTrie> {
        let trie = Trie::restore(from, n_tokens)?;
        trie.below(0);
        let root = TrieRef::root(&Arc::new(trie));
        let size = root.size() as usize;
        let free: Box<[bool]> =
            from.list()?.iter().map(|&is| is != 0).collect();
        let (starts, members) = (from.words()?, from.words()?);
        let is_sane = free.len() == size
            && starts.len() == size + 1
            && starts.is_sorted()
            && starts.last().is_some_and(|&n| n as usize == members.len())
            && members.iter().all(|&member| member < real.size());
        let (starts, members) = (starts.into(), members.into());
        is_sane.then_some(ClassTrie { root, free, starts, members })
    }

    /// Goes through both tries at once.
    fn find_members(&mut self, real: &Trie, size: u32, start: Before) {
        let mine = Arc::clone(&self.root.trie);
        // Of each real node above: its end, what stands for it, and what
        // comes before the next byte.
        let mut path: Vec<(u32, u32, Before)> = vec![(size, 0, start)];
        let mut pairs: Vec<(u32, u32)> = vec![(0, 0)];
        for node in 1..size {
            if must_stop(node) {
                break;
            }
            let at = real.node(node);
            while path.len() > 1
                && path.last().is_some_and(|&(end, _, _)| end <= node)
            {
                path.pop();
            }
            let Some(&(_, above, before)) = path.last() else { break };
            let (byte, next) = before.read(at.byte);
            // Every node has a token at or below it.
            let Some(here) = mine.child(above, byte) else { continue };
            self.free[here as usize] = next == Before::Text;
            pairs.push((here, node));
            path.push((at.end, here, next));
        }
        pairs.sort_unstable();
        let mut starts = Vec::with_capacity(self.free.len() + 1);
        let mut members = Vec::with_capacity(pairs.len());
        for (here, node) in pairs {
            while starts.len() <= here as usize {
                starts.push(index(members.len()));
            }
            members.push(node);
        }
        starts.resize(self.free.len() + 1, index(members.len()));
        self.starts = starts.into();
        self.members = members.into();
    }

    /// Returns true if the bytes that lead on from a node are classes.
    pub(super) fn is_free(&self, node: u32) -> bool {
        self.free[node as usize]
    }

    /// Returns the real nodes that a node stands for.
    pub(super) fn members(&self, node: u32) -> &[u32] {
        let node = node as usize;
        let (from, to) = (self.starts[node], self.starts[node + 1]);
        &self.members[from as usize..to as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_real_node_is_the_member_of_one_node() {
        let tokens = [
            "ab", "cd", "c", "A1", "é", "ü", "\\n", "\\u00e9x", "x\",\"y",
            "y\",\"y", "a\\\"b", "z\"a", "zz\"b",
        ];
        let tokens = (0..).zip(tokens.iter().map(|token| token.as_bytes()));
        let real = TrieRef::root(&Arc::new(Trie::new(tokens).0));
        for kept in [false, true] {
            check(&real, &ClassTrie::new(&real, kept), kept);
        }
    }

    fn check(real: &TrieRef, classes: &ClassTrie, kept: bool) {
        let root = &classes.root;
        assert!(root.size() < real.size());
        let mut seen = vec![0; real.size() as usize];
        for node in 0..root.size() {
            let members = classes.members(node);
            let mut own: Vec<u32> = members
                .iter()
                .flat_map(|&real_node| real.trie.own_tokens(real_node))
                .copied()
                .collect();
            own.sort_unstable();
            assert_eq!(own, root.trie.own_tokens(node));
            for &member in members {
                seen[member as usize] += 1;
                let path = real.trie.path(0, member);
                let mut before =
                    if kept { Before::Start } else { Before::Text };
                let replaced: Vec<u8> = path
                    .iter()
                    .map(|&byte| {
                        let (byte, next) = before.read(byte);
                        before = next;
                        byte
                    })
                    .collect();
                assert_eq!(replaced, root.trie.path(0, node));
                assert_eq!(before == Before::Text, classes.is_free(node));
            }
        }
        assert!(seen.iter().all(|&n| n == 1), "{seen:?}");
    }

    #[test]
    fn classes_do_not_overlap_and_keep_what_json_means() {
        for byte in 0..=u8::MAX {
            let class = CLASS_OF[usize::from(byte)];
            assert_eq!(CLASS_OF[usize::from(class)], class);
        }
        for byte in *b"\"\\{}[]:, \t\n\r-+._/" {
            assert_eq!(CLASS_OF[usize::from(byte)], byte);
        }
    }
}
