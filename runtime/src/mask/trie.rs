//! Byte tries of tokens, flat and depth first.
//!
//! The nodes of a subtree are contiguous, and so are its tokens: skipping a
//! subtree is one assignment, and accepting one is one slice. The same type
//! serves for the vocabulary and for *merged* tries, the unions of several
//! subtrees that a walk leaves its frame with.
//!
//! Every node knows which bytes occur below it, and from which states of the
//! UTF-8 machine everything below it is well-formed. With that, a state that
//! loops on itself takes whole subtrees without looking at them.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU32, Ordering},
};

use maskwright_grammar_core::{
    automaton::HORIZON, interrupt, util::FxHashMap,
};

use crate::saved::{Reader, Writer};

/// After so many nodes, whoever builds a trie asks whether it may go on.
pub(super) const NODES_TO_CHECK: usize = 4_096;

/// Below this size, a trie has no summaries: looking is as fast.
const SUMMARY_SIZE: usize = 64;

/// From this size on, the children of each node are also kept side by side.
const KIDS_SIZE: usize = 512;

/// A byte trie with the tokens that end at each node.
#[derive(Debug)]
pub(crate) struct Trie {
    /// Tells this trie from every other one of the process.
    id: u32,
    /// Whether walks over this trie may be kept for all grammars.
    public: bool,
    nodes: Box<[TrieNode]>,
    /// The tokens of all nodes, in the order of the nodes.
    tokens: Box<[u32]>,
    /// What lies below each node, once that was asked for.
    summary: OnceLock<Summary>,
    /// The children of each node side by side, if this is a large trie.
    kids: Option<Kids>,
}

/// The children of all nodes, in the order of their bytes.
#[derive(Debug)]
struct Kids {
    /// Where those of each node begin, and one beyond.
    starts: Box<[u32]>,
    bytes: Box<[u8]>,
    nodes: Box<[u32]>,
    /// The child of the root on each byte.
    roots: Box<[u32; 256]>,
}

/// A node. A last one beyond the trie ends the tokens of the one before.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct TrieNode {
    /// The index after this node's subtree.
    pub(crate) end: u32,
    /// The index of the first token of this node.
    pub(crate) tokens: u32,
    /// The byte that leads to this node.
    pub(crate) byte: u8,
}

/// What is known of the subtree of each node.
#[derive(Debug)]
struct Summary {
    /// An index in `sets`, and the states of [`utf8_step`] from which
    /// everything below goes on.
    nodes: Box<[(u32, u8)]>,
    sets: Box<[ByteSet]>,
}

/// A set of bytes: each of the ASCII ones, and whether there are others.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct ByteSet {
    pub(crate) ascii: u128,
    pub(crate) other: bool,
}

/// The tokens at a node and the forest of its children.
#[derive(Clone, Debug)]
pub(crate) struct TrieRef {
    pub(crate) trie: Arc<Trie>,
    pub(crate) node: u32,
}

impl TrieRef {
    pub(crate) fn root(trie: &Arc<Trie>) -> TrieRef {
        TrieRef { trie: Arc::clone(trie), node: 0 }
    }

    /// Returns the tokens that end at the node itself.
    pub(crate) fn own_tokens(&self) -> &[u32] {
        self.trie.own_tokens(self.node)
    }

    /// Returns all tokens at the node and below.
    pub(crate) fn tokens(&self) -> &[u32] {
        self.trie.subtree_tokens(self.node)
    }

    /// Returns the number of nodes.
    pub(crate) fn size(&self) -> u32 {
        self.trie.size(self.node)
    }
}

impl Trie {
    /// Builds a trie of `tokens`, and returns beside it the tokens that are
    /// longer than [`HORIZON`].
    pub(crate) fn new<'a>(
        tokens: impl Iterator<Item = (u32, &'a [u8])>,
    ) -> (Trie, Vec<u32>) {
        let (mut short, mut long) = (Vec::new(), Vec::new());
        for (token, bytes) in tokens {
            if bytes.is_empty() {
                continue;
            }
            if bytes.len() > HORIZON as usize {
                long.push(token);
            } else {
                short.push((bytes, token));
            }
        }
        short.sort_unstable();
        let mut builder =
            TrieBuilder { public: true, ..TrieBuilder::default() };
        let mut path: Vec<u8> = Vec::new();
        builder.open(0);
        for (bytes, token) in short {
            let common =
                path.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            for _ in common..path.len() {
                builder.close();
            }
            path.truncate(common);
            for &byte in &bytes[common..] {
                builder.open(byte);
                path.push(byte);
            }
            builder.tokens.push(token);
        }
        for _ in 0..=path.len() {
            builder.close();
        }
        (builder.build(), long)
    }

    /// Builds the union of several subtrees, which is public if all are.
    ///
    /// If it is interrupted, it is only a part of that: ask
    /// [`interrupt::confirm`] before it is kept.
    pub(crate) fn union(sources: &[(&Arc<Trie>, u32)]) -> Trie {
        let public = sources.iter().all(|(trie, _)| trie.is_public());
        let mut builder = TrieBuilder { public, ..TrieBuilder::default() };
        let mut group: Vec<(&Trie, u32)> =
            sources.iter().map(|&(trie, node)| (&**trie, node)).collect();
        builder.merge(&mut group, 0, 0);
        builder.build()
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn is_public(&self) -> bool {
        self.public
    }

    pub(crate) fn node(&self, node: u32) -> &TrieNode {
        &self.nodes[node as usize]
    }

    /// Returns the nodes, depth first, and one beyond them.
    pub(crate) fn nodes(&self) -> &[TrieNode] {
        &self.nodes
    }

    pub(crate) fn size(&self, node: u32) -> u32 {
        self.node(node).end - node
    }

    pub(crate) fn own_tokens(&self, node: u32) -> &[u32] {
        let start = self.node(node).tokens as usize;
        &self.tokens[start..self.node(node + 1).tokens as usize]
    }

    pub(crate) fn subtree_tokens(&self, node: u32) -> &[u32] {
        let node = self.node(node);
        let end = self.node(node.end).tokens as usize;
        &self.tokens[node.tokens as usize..end]
    }

    /// Returns the tokens of a range.
    pub(crate) fn tokens(&self, from: u32, to: u32) -> &[u32] {
        &self.tokens[from as usize..to as usize]
    }

    /// Returns the children of `node` and the bytes that lead to them, in
    /// the order of the bytes.
    pub(crate) fn children(&self, node: u32) -> Children<'_> {
        match &self.kids {
            Some(kids) => {
                let (bytes, nodes) = kids.of(node);
                Children::Listed { bytes: bytes.iter(), nodes: nodes.iter() }
            }
            None => Children::Linked {
                nodes: &self.nodes,
                next: node + 1,
                end: self.node(node).end,
            },
        }
    }

    /// Returns the child of `node` on `byte`.
    pub(crate) fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let Some(kids) = &self.kids else {
            return self
                .children(node)
                .take_while(|&(_, other)| other <= byte)
                .find(|&(_, other)| other == byte)
                .map(|(child, _)| child);
        };
        if node == 0 {
            let child = kids.roots[usize::from(byte)];
            return (child != 0).then_some(child);
        }
        let (bytes, nodes) = kids.of(node);
        let at = bytes.partition_point(|&other| other < byte);
        (bytes.get(at) == Some(&byte)).then(|| nodes[at])
    }

    /// Returns how many children of a node are sooner found one by one than
    /// by going through all.
    pub(crate) fn n_sooner_found(&self, node: u32) -> u32 {
        match (node, &self.kids) {
            (_, None) => 0,
            (0, Some(_)) => 48,
            (_, Some(kids)) => index(kids.of(node).0.len() / 8),
        }
    }

    /// Returns the bytes that occur below `node`, and whether everything
    /// there is well-formed UTF-8 (if need be cut off at the end) when `node`
    /// is at the start of a character. `None` where looking is as fast.
    pub(crate) fn below(&self, node: u32) -> Option<(ByteSet, bool)> {
        if self.nodes.len() <= SUMMARY_SIZE {
            return None;
        }
        let summary = self.summary.get_or_init(|| Summary::new(self));
        let (set, utf8) = summary.nodes[node as usize];
        Some((summary.sets[set as usize], utf8 & 1 != 0))
    }

    /// Returns the length of the longest token below `node`.
    pub(crate) fn longest(&self, node: u32) -> u32 {
        let mut above: Vec<u32> = Vec::new();
        let mut longest = 0;
        for below in node + 1..self.node(node).end {
            while above.last().is_some_and(|&end| end <= below) {
                above.pop();
            }
            above.push(self.node(below).end);
            longest = longest.max(above.len());
        }
        index(longest)
    }

    /// Returns the bytes that lead from `from` to `node` below it.
    pub(crate) fn path(&self, from: u32, node: u32) -> Vec<u8> {
        let mut path = Vec::new();
        let mut at = from;
        while at != node {
            let next = self.children(at).find(|&(child, _)| {
                (child..self.node(child).end).contains(&node)
            });
            let Some((child, byte)) = next else { break };
            path.push(byte);
            at = child;
        }
        path
    }

    /// Returns about how many bytes of memory this trie holds.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.tokens)
    }

    /// Returns true if both hold the same tokens at the same places.
    pub(crate) fn is_equal(&self, other: &Trie) -> bool {
        self.nodes == other.nodes && self.tokens == other.tokens
    }

    /// Returns a hash that equal tries share.
    pub(crate) fn content_hash(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        let mut hasher = rustc_hash::FxHasher::default();
        for node in &self.nodes {
            (node.end, node.byte).hash(&mut hasher);
        }
        self.tokens.hash(&mut hasher);
        hasher.finish()
    }
}

impl Kids {
    fn new(trie: &Trie) -> Kids {
        let size = trie.nodes.len() - 1;
        let mut kids = Kids {
            starts: Box::default(),
            bytes: Box::default(),
            nodes: Box::default(),
            roots: Box::new([0; 256]),
        };
        let mut starts = Vec::with_capacity(size + 1);
        let (mut bytes, mut nodes) =
            (Vec::with_capacity(size), Vec::with_capacity(size));
        for node in 0..size {
            starts.push(index(nodes.len()));
            for (child, byte) in trie.children(index(node)) {
                bytes.push(byte);
                nodes.push(child);
                if node == 0 {
                    kids.roots[usize::from(byte)] = child;
                }
            }
        }
        starts.push(index(nodes.len()));
        kids.starts = starts.into();
        kids.bytes = bytes.into();
        kids.nodes = nodes.into();
        kids
    }

    fn of(&self, node: u32) -> (&[u8], &[u32]) {
        let node = node as usize;
        let range = self.starts[node] as usize..self.starts[node + 1] as usize;
        (&self.bytes[range.clone()], &self.nodes[range])
    }
}

/// The children of a node.
#[derive(Debug)]
pub(crate) enum Children<'a> {
    /// Each one begins where the one before ends.
    Linked { nodes: &'a [TrieNode], next: u32, end: u32 },
    /// Side by side.
    Listed {
        bytes: std::slice::Iter<'a, u8>,
        nodes: std::slice::Iter<'a, u32>,
    },
}

impl Iterator for Children<'_> {
    type Item = (u32, u8);

    fn next(&mut self) -> Option<(u32, u8)> {
        match self {
            Children::Linked { nodes, next, end } => {
                if next >= end {
                    return None;
                }
                let child = *next;
                let node = &nodes[child as usize];
                *next = node.end;
                Some((child, node.byte))
            }
            Children::Listed { bytes, nodes } => {
                Some((*nodes.next()?, *bytes.next()?))
            }
        }
    }
}

/// Nodes and tokens, appended depth first.
#[derive(Default)]
struct TrieBuilder {
    nodes: Vec<TrieNode>,
    tokens: Vec<u32>,
    /// The nodes whose subtrees are not complete yet.
    open: Vec<usize>,
    public: bool,
    is_interrupted: bool,
}

impl TrieBuilder {
    fn open(&mut self, byte: u8) {
        self.open.push(self.nodes.len());
        let tokens = index(self.tokens.len());
        self.nodes.push(TrieNode { end: 0, tokens, byte });
    }

    fn close(&mut self) {
        if let Some(node) = self.open.pop() {
            self.nodes[node].end = index(self.nodes.len());
        }
    }

    /// Appends the union of `group[from..]`, which lies under `byte`.
    ///
    /// Recursion is as deep as a token is long, which [`HORIZON`] bounds.
    fn merge(&mut self, group: &mut Vec<(&Trie, u32)>, from: usize, byte: u8) {
        self.open(byte);
        if self.nodes.len().is_multiple_of(NODES_TO_CHECK) {
            self.is_interrupted |= interrupt::check().is_err();
        }
        if self.is_interrupted {
            return self.close();
        }
        let to = group.len();
        for &(trie, node) in &group[from..] {
            self.tokens.extend_from_slice(trie.own_tokens(node));
        }
        let first = self.nodes.last().map_or(0, |node| node.tokens as usize);
        self.tokens[first..].sort_unstable();
        let mut children = Vec::new();
        for &(trie, node) in &group[from..] {
            children.extend(
                trie.children(node).map(|(child, byte)| (byte, trie, child)),
            );
        }
        children.sort_by_key(|&(byte, _, _)| byte);
        for run in children.chunk_by(|a, b| a.0 == b.0) {
            group.truncate(to);
            group.extend(run.iter().map(|&(_, trie, node)| (trie, node)));
            self.merge(group, to, run[0].0);
        }
        group.truncate(to);
        self.close();
    }

    fn build(mut self) -> Trie {
        self.open(0);
        self.close();
        Trie::of(self.nodes, self.tokens, self.public)
    }
}

impl Trie {
    /// Creates the trie of these nodes, one beyond them included.
    fn of(nodes: Vec<TrieNode>, tokens: Vec<u32>, public: bool) -> Trie {
        static NEXT_ID: AtomicU32 = AtomicU32::new(0);
        let size = nodes.len() - 1;
        let trie = Trie {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            public,
            nodes: nodes.into(),
            tokens: tokens.into(),
            summary: OnceLock::new(),
            kids: None,
        };
        if size >= KIDS_SIZE { trie.with_kids() } else { trie }
    }

    /// Writes the nodes and the tokens.
    pub(crate) fn save(&self, out: &mut Writer) {
        out.words(self.nodes.iter().map(|node| node.end));
        out.words(self.nodes.iter().map(|node| node.tokens));
        let bytes: Vec<u8> = self.nodes.iter().map(|node| node.byte).collect();
        out.list(&bytes);
        out.words(self.tokens.iter().copied());
    }

    /// Reads what [`Trie::save`] wrote; none where that is no trie of tokens
    /// below `n_tokens`. It is public, as what is saved must be.
    pub(crate) fn restore(
        from: &mut Reader<'_>,
        n_tokens: usize,
    ) -> Option<Trie> {
        let (ends, starts) = (from.words()?, from.words()?);
        let bytes = from.list()?;
        let tokens = from.words()?;
        let n_all = u32::try_from(tokens.len()).ok()?;
        let size = u32::try_from(ends.len().checked_sub(1)?).ok()?;
        let is_sane = starts.len() == ends.len()
            && bytes.len() == ends.len()
            && starts.is_sorted()
            && starts.last() == Some(&n_all)
            && tokens.iter().all(|&token| (token as usize) < n_tokens)
            && size > 0
            && ends[0] == size;
        if !is_sane {
            return None;
        }
        // The ends of the nodes above; a token is as long as they are many.
        let mut above: Vec<u32> = Vec::new();
        for (node, &end) in (0..size).zip(&ends) {
            while above.last().is_some_and(|&end| end <= node) {
                above.pop();
            }
            let within = above.last().copied().unwrap_or(size);
            let depth = above.len();
            if end <= node || end > within || depth > HORIZON as usize {
                return None;
            }
            above.push(end);
        }
        let nodes =
            ends.iter().zip(&starts).zip(bytes).map(
                |((&end, &tokens), &byte)| TrieNode { end, tokens, byte },
            );
        Some(Trie::of(nodes.collect(), tokens, true))
    }

    fn with_kids(mut self) -> Trie {
        self.kids = Some(Kids::new(&self));
        self
    }
}

impl Summary {
    /// Goes from the last node to the first, so that children come before
    /// their parents.
    fn new(trie: &Trie) -> Summary {
        let mut ids: FxHashMap<ByteSet, u32> = FxHashMap::default();
        let mut sets: Vec<ByteSet> = Vec::new();
        let size = trie.nodes.len() - 1;
        let mut nodes = vec![(0, 0); size];
        for node in (0..size).rev() {
            let mut set = ByteSet::default();
            let mut utf8 = u8::MAX;
            for (child, byte) in trie.children(index(node)) {
                let (below, goes_on) = nodes[child as usize];
                let below: ByteSet = sets[below as usize];
                set.ascii |= below.ascii;
                set.other |= below.other;
                set.insert(byte);
                utf8 &= utf8_before(byte, goes_on);
            }
            let below = *ids.entry(set).or_insert_with(|| {
                sets.push(set);
                index(sets.len() - 1)
            });
            nodes[node] = (below, utf8);
        }
        Summary { nodes: nodes.into(), sets: sets.into() }
    }
}

/// Returns the states from which `byte` leads into one of `after`.
fn utf8_before(byte: u8, after: u8) -> u8 {
    let mut before = 0;
    for state in 0..UTF8_STATES {
        let goes_on =
            utf8_step(state, byte).is_some_and(|next| after >> next & 1 != 0);
        before |= u8::from(goes_on) << state;
    }
    before
}

impl ByteSet {
    fn insert(&mut self, byte: u8) {
        if byte < 0x80 {
            self.ascii |= 1 << byte;
        } else {
            self.other = true;
        }
    }
}

/// How many states [`utf8_step`] has. State 0 is between characters.
pub(crate) const UTF8_STATES: u8 = 8;

/// The UTF-8 machine: 0 between characters, 1 to 3 with that many
/// continuation bytes to come, 4 after `E0`, 5 after `ED`, 6 after `F0`, 7
/// after `F4`.
pub(crate) fn utf8_step(state: u8, byte: u8) -> Option<u8> {
    match (state, byte) {
        (0, 0..=0x7f) | (1, 0x80..=0xbf) => Some(0),
        (0, 0xc2..=0xdf)
        | (2, 0x80..=0xbf)
        | (4, 0xa0..=0xbf)
        | (5, 0x80..=0x9f) => Some(1),
        (0, 0xe0) => Some(4),
        (0, 0xed) => Some(5),
        (0, 0xe1..=0xef)
        | (3, 0x80..=0xbf)
        | (6, 0x90..=0xbf)
        | (7, 0x80..=0x8f) => Some(2),
        (0, 0xf0) => Some(6),
        (0, 0xf4) => Some(7),
        (0, 0xf1..=0xf3) => Some(3),
        _ => None,
    }
}

/// Vocabularies have fewer than 2^24 bytes in all in practice, and fewer than
/// 2^32 by the vocabulary's own check.
pub(super) fn index(len: usize) -> u32 {
    u32::try_from(len).expect("a vocabulary has fewer than 2^32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trie(tokens: &[&str]) -> Arc<Trie> {
        let tokens = (0..).zip(tokens.iter().map(|token| token.as_bytes()));
        Arc::new(Trie::new(tokens).0)
    }

    /// Every token with its path.
    fn spelled(at: &TrieRef) -> Vec<(String, u32)> {
        let mut all = Vec::new();
        for node in at.node..at.trie.node(at.node).end {
            let path = at.trie.path(at.node, node);
            let path = String::from_utf8(path).expect("text");
            for &token in at.trie.own_tokens(node) {
                all.push((path.clone(), token));
            }
        }
        all
    }

    fn pairs(list: &[(&str, u32)]) -> Vec<(String, u32)> {
        list.iter().map(|&(text, token)| (text.to_owned(), token)).collect()
    }

    #[test]
    fn a_trie_spells_its_tokens() {
        let trie = trie(&["b", "ab", "", "a", "ab", "abc"]);
        assert_eq!(
            spelled(&TrieRef::root(&trie)),
            pairs(&[("a", 3), ("ab", 1), ("ab", 4), ("abc", 5), ("b", 0)]),
        );
        let a = trie.child(0, b'a').expect("a child");
        assert_eq!(trie.subtree_tokens(a), [3, 1, 4, 5]);
        assert_eq!(trie.child(0, b'c'), None);
    }

    #[test]
    fn a_merged_trie_is_the_union() {
        let trie = trie(&["xa", "ya", "yab", "x", "zq"]);
        let at = |byte| (&trie, trie.child(0, byte).expect("a child"));
        let merged = Arc::new(Trie::union(&[at(b'x'), at(b'y')]));
        assert_eq!(
            spelled(&TrieRef::root(&merged)),
            pairs(&[("", 3), ("a", 0), ("a", 1), ("ab", 2)]),
        );
    }

    #[test]
    fn long_tokens_are_set_aside() {
        let long = "x".repeat(HORIZON as usize + 1);
        let tokens = [(0, long.as_bytes()), (1, &long.as_bytes()[1..])];
        let (trie, long) = Trie::new(tokens.into_iter());
        assert_eq!((trie.subtree_tokens(0), &*long), (&[1][..], &[0][..]));
    }

    #[test]
    fn summaries_say_what_is_below() {
        let many: Vec<String> =
            ('a'..='z').map(|c| format!("{c}\u{e9}{c}\u{20ac}")).collect();
        let mut many: Vec<&[u8]> = many.iter().map(String::as_bytes).collect();
        many.push(b"0\xff");
        let trie = Trie::new((0..).zip(many)).0;
        let a = trie.child(0, b'a').expect("a child");
        let zero = trie.child(0, b'0').expect("a child");
        let (below, is_utf8) = trie.below(a).expect("a large trie");
        assert_eq!((below.ascii, below.other), (1 << b'a', true));
        assert!(is_utf8);
        assert!(!trie.below(zero).expect("a large trie").1);
    }
}
