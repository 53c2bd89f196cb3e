//! Goes through a grammar for the masks that are dear, and for short ways to
//! their places.
//!
//! A text that was noted is as long as the output that it is of, and whoever
//! reads the file has to read it. But most of it leads nowhere: after each
//! letter of a free string, after each item of an array, a text is where it
//! was before. So all texts go through one graph, whose nodes are what they
//! have led to, and each place is reached by the shortest way there is.
//!
//! Ways are read again when the file is loaded, at about `BYTE_COST` a byte.
//! What is not worth its way is left out, unless all masks are asked for.

use std::{
    collections::VecDeque,
    hash::{BuildHasher, Hash, Hasher},
    sync::Arc,
    time::{Duration, Instant},
};

use maskwright_grammar_core::{
    automaton::{AutomatonError, Configuration, StateId, Symbol},
    interrupt,
    util::{FxHashMap, FxHashSet},
};
use rustc_hash::FxBuildHasher;

use super::{
    grammar::SaveOptions,
    masks::MaskWriter,
    notes::{MAX_SAVED_TEXTS, MAX_TEXT},
};
use crate::{
    compiled::CompiledGrammar,
    mask::{FinishedMasks, Ground, KeptMask, TokenMask, WalkStore},
    precompute::{PrecomputeEnd, key_of, places_after},
};

/// About how long it takes to read a byte of a text where nothing is known.
const BYTE_COST: Duration = Duration::from_micros(1);
/// The graph has so many nodes at most.
const MAX_NODES: usize = 1 << 18;

/// A text that leads to a mask.
pub(super) struct SavedText {
    pub(super) text: Box<[u8]>,
    pub(super) depth: u32,
    /// Its number.
    pub(super) mask: usize,
}

/// Something that texts lead to.
struct Node {
    configuration: Configuration,
    edges: Vec<(u8, usize)>,
}

/// A mask that is dear.
struct Found {
    node: usize,
    depth: u32,
    /// Its number in `Collector::masks`.
    mask: usize,
    /// What it takes to make it.
    time: Duration,
}

/// See the [module documentation](self).
pub(super) struct Collector<'a> {
    grammar: &'a CompiledGrammar,
    options: &'a SaveOptions,
    /// Nothing of the grammar's own is known here, so that every mask takes
    /// the time that it takes after a start.
    store: WalkStore,
    nodes: Vec<Node>,
    /// Nodes by a hash.
    known: FxHashMap<u64, Vec<usize>>,
    /// The nodes whose masks are looked at, in order, and whether they were
    /// noted.
    targets: Vec<(usize, bool)>,
    /// The grounds of the masks.
    finished: FinishedMasks,
    /// States whose masks are dear, whatever lies below, and how dear.
    states: FxHashMap<StateId, Duration>,
    mask: TokenMask,
    masks: MaskWriter,
    found: Vec<Found>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(
        grammar: &'a CompiledGrammar,
        options: &'a SaveOptions,
    ) -> Collector<'a> {
        Collector {
            grammar,
            options,
            store: WalkStore::default(),
            nodes: Vec::new(),
            known: FxHashMap::default(),
            targets: Vec::new(),
            finished: FinishedMasks::default(),
            states: FxHashMap::default(),
            mask: TokenMask::none(grammar.vocabulary().n_logits()),
            masks: MaskWriter::default(),
            found: Vec::new(),
        }
    }

    /// Returns how many places were gone to.
    pub(super) fn n_places(&self) -> usize {
        self.targets.len()
    }

    /// Finds the masks that are dear.
    pub(super) fn collect(&mut self) -> Result<PrecomputeEnd, AutomatonError> {
        let start = self.grammar.start()?;
        let start = self.intern(start);
        for text in self.grammar.noted_texts() {
            if let Some(node) = self.follow(start, &text)? {
                self.targets.push((node, true));
            }
        }
        let end = self.spread(start)?;
        for at in 0..self.targets.len() {
            if self.masks.n_bytes() >= self.options.max_bytes {
                self.targets.truncate(at);
                return Ok(PrecomputeEnd::Bytes);
            }
            let (node, is_noted) = self.targets[at];
            self.visit(node, is_noted)?;
        }
        Ok(end)
    }

    /// Returns the node of a configuration, which is made if there is none.
    fn intern(&mut self, configuration: Configuration) -> usize {
        let known = self.known.entry(hash_of(&configuration)).or_default();
        let is_it = |node: &&usize| {
            is_same(&self.nodes[**node].configuration, &configuration)
        };
        if let Some(&node) = known.iter().find(is_it) {
            return node;
        }
        let node = self.nodes.len();
        known.push(node);
        self.nodes.push(Node { configuration, edges: Vec::new() });
        node
    }

    /// Returns the node after a text; none if there are too many.
    fn follow(
        &mut self,
        start: usize,
        text: &[u8],
    ) -> Result<Option<usize>, AutomatonError> {
        let (machine, limits) =
            (self.grammar.machine(), self.grammar.limits());
        let mut node = start;
        for &byte in text {
            let edges = &self.nodes[node].edges;
            let edge = edges.iter().find(|edge| edge.0 == byte);
            node = if let Some(&(_, to)) = edge {
                to
            } else {
                let here = &self.nodes[node].configuration;
                let next = here.step(machine, limits, Symbol::Byte(byte))?;
                interrupt::confirm()?;
                if next.is_dead() || self.nodes.len() >= MAX_NODES {
                    return Ok(None);
                }
                let to = self.intern(next);
                self.nodes[node].edges.push((byte, to));
                to
            };
        }
        Ok(Some(node))
    }

    /// Goes to the places that are nearest to the start.
    fn spread(
        &mut self,
        start: usize,
    ) -> Result<PrecomputeEnd, AutomatonError> {
        let mut seen = FxHashSet::default();
        seen.insert(key_of(&self.nodes[start].configuration));
        let mut pending = VecDeque::from([start]);
        let mut n_left = self.options.max_places;
        let mut is_cut = false;
        while let Some(node) = pending.pop_front() {
            if n_left == 0 || self.nodes.len() >= MAX_NODES {
                return Ok(PrecomputeEnd::Places);
            }
            n_left -= 1;
            self.targets.push((node, false));
            let place = &self.nodes[node].configuration;
            let after = places_after(self.grammar, place)?;
            interrupt::confirm()?;
            for (byte, after) in after {
                let Some(byte) = byte else { continue };
                let is_new = seen.insert(key_of(&after));
                if is_new && pending.len() >= n_left {
                    is_cut = true;
                } else if is_new {
                    let to = self.intern(after);
                    self.nodes[node].edges.push((byte, to));
                    pending.push_back(to);
                }
            }
        }
        let all = PrecomputeEnd::Complete;
        Ok(if is_cut { PrecomputeEnd::Places } else { all })
    }

    /// Adds the mask of a place if it is dear.
    fn visit(
        &mut self,
        node: usize,
        is_noted: bool,
    ) -> Result<(), AutomatonError> {
        let place = &self.nodes[node].configuration;
        let [top] = place.tops() else { return Ok(()) };
        let state = top.frame.state;
        let grammar = self.grammar;
        let is_accepting = grammar.is_accepting(place)?;
        let ground = Ground::new(place, is_accepting);
        if self.finished.get(ground).is_some() {
            return Ok(());
        }
        let start = Instant::now();
        let blocks = self.mask.blocks_mut();
        let filled = grammar.fill_with(&mut self.store, place, blocks)?;
        let mut time = start.elapsed();
        if time >= self.options.min_time && !state.is_shared() {
            let known = self.states.entry(state).or_default();
            *known = time.max(*known);
        }
        time = time.max(self.states.get(&state).copied().unwrap_or_default());
        let is_dear = is_noted || time >= self.options.min_time;
        let Some(depth) = filled.depth.filter(|_| is_dear) else {
            return Ok(());
        };
        grammar.fill_rest(place, is_accepting, blocks)?;
        interrupt::confirm()?;
        // Here it only says which grounds there are.
        let none = KeptMask::Listed(Arc::default());
        if self.finished.put(ground, depth, none)
            && let Some(mask) = self.masks.add(&self.mask)
        {
            self.found.push(Found { node, depth, mask, time });
        }
        Ok(())
    }

    /// Returns the masks that are worth their ways, and these in order.
    pub(super) fn finish(mut self) -> (Vec<SavedText>, MaskWriter) {
        let ways = Ways::new(&self.nodes);
        let worth = ways.worth(&self.found);
        if self.options.min_time > Duration::ZERO {
            self.found.retain(|found| ways.is_worth(found.node, &worth));
        }
        self.found.truncate(MAX_SAVED_TEXTS);
        let mut masks = MaskWriter::default();
        let mut texts: Vec<SavedText> = Vec::new();
        for Found { node, depth, mask, .. } in &self.found {
            let text = ways.text(*node);
            if text.len() <= MAX_TEXT {
                texts.push(SavedText { text, depth: *depth, mask: *mask });
            }
        }
        texts.sort_unstable_by(|a, b| a.text.cmp(&b.text));
        for text in &mut texts {
            text.mask = masks.add_from(&self.masks, text.mask);
        }
        (texts, masks)
    }
}

/// The shortest ways to all nodes, as a tree.
struct Ways {
    /// From where each node is reached, and how.
    from: Vec<Option<(usize, u8)>>,
    /// The nodes, nearest first.
    order: Vec<usize>,
}

impl Ways {
    fn new(nodes: &[Node]) -> Ways {
        let mut from = vec![None; nodes.len()];
        let mut order = Vec::new();
        if !nodes.is_empty() {
            order.push(0);
        }
        let mut at = 0;
        while let Some(&node) = order.get(at) {
            at += 1;
            for &(byte, to) in &nodes[node].edges {
                if to != 0 && from[to].is_none() {
                    from[to] = Some((node, byte));
                    order.push(to);
                }
            }
        }
        Ways { from, order }
    }

    /// Returns of each node the time that is saved if it, and what is worth
    /// it behind it, is in the file, less the time for the byte before it.
    fn worth(&self, found: &[Found]) -> Vec<i64> {
        let nanoseconds = |time: Duration| {
            i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
        };
        let mut worth = vec![-nanoseconds(BYTE_COST); self.from.len()];
        for found in found {
            let worth = &mut worth[found.node];
            *worth = worth.saturating_add(nanoseconds(found.time));
        }
        for &node in self.order.iter().rev() {
            if let Some((from, _)) = self.from[node]
                && worth[node] > 0
            {
                worth[from] = worth[from].saturating_add(worth[node]);
            }
        }
        worth
    }

    /// Returns whether a node and all before it are worth their bytes.
    fn is_worth(&self, mut node: usize, worth: &[i64]) -> bool {
        while let Some((from, _)) = self.from[node] {
            if worth[node] <= 0 {
                return false;
            }
            node = from;
        }
        true
    }

    fn text(&self, mut node: usize) -> Box<[u8]> {
        let mut text = Vec::new();
        while let Some((from, byte)) = self.from[node] {
            text.push(byte);
            node = from;
        }
        text.reverse();
        text.into()
    }
}

fn hash_of(configuration: &Configuration) -> u64 {
    let mut hasher = FxBuildHasher.build_hasher();
    configuration.is_complete().hash(&mut hasher);
    for top in configuration.tops() {
        let frame = (top.frame.state, top.frame.counts);
        (frame, top.below.content_hash()).hash(&mut hasher);
    }
    hasher.finish()
}

fn is_same(one: &Configuration, other: &Configuration) -> bool {
    one.is_complete() == other.is_complete()
        && one.tops().len() == other.tops().len()
        && one.tops().iter().zip(other.tops()).all(|(a, b)| {
            a.frame.is_same(&b.frame) && a.below.is_equal(&b.below)
        })
}
