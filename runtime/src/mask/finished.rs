//! Masks that are kept whole.
//!
//! A mask depends on the frame on top and on as many below as its walks
//! returned to: a handful however deep the text is nested. Masks that come
//! again are kept by these frames, and handed out as they are.

use std::{
    hash::{BuildHasher, Hash, Hasher},
    sync::Arc,
};

use maskwright_grammar_core::{
    automaton::{Configuration, Frame, Stack, StateId, Top},
    util::FxHashMap,
};
use rustc_hash::FxBuildHasher;

use super::{
    TokenMask,
    set::{copy_blocks, insert_all},
};

/// About how many bytes of masks a grammar keeps before it forgets them all.
const MAX_BYTES: usize = 64 << 20;
/// How many masks of one state above another are kept: registers may tell
/// any number of them apart.
const MAX_ALIKE: usize = 32;
/// Room for so many masks is made at once.
const USUAL: usize = 112;

/// A mask that is put together from so many walks is kept when it comes for
/// the second time; one of fewer later, since to keep it costs more than to
/// make it a few times.
const MANY_WALKS: usize = 8;
const FEW_WALKS_TIMES: u8 = 5;
/// Masks of so many tokens at most are kept as lists.
pub(crate) const MAX_LISTED: usize = 256;

/// Masks by the frames that they depend on.
#[derive(Debug, Default)]
pub(crate) struct FinishedMasks {
    /// By the state on top and the one below it.
    masks: FxHashMap<(StateId, Option<StateId>), Vec<Finished>>,
    /// How often masks came that are not kept, by a hash of their frames.
    seen: FxHashMap<u64, u8>,
    memory: usize,
}

#[derive(Debug)]
struct Finished {
    /// The frame on top, and those below it that were looked at.
    frames: Box<[Frame]>,
    depth: u32,
    /// Whether nothing lies below these.
    is_bottom: bool,
    /// Whether the text may end.
    is_accepting: bool,
    mask: KeptMask,
}

impl Finished {
    fn new(
        ground: Ground<'_>,
        depth: u32,
        mask: KeptMask,
    ) -> Option<Finished> {
        let mut frames = Vec::new();
        let is_bottom =
            ground.frames(depth, |frame| frames.push(frame.clone()))?;
        let is_accepting = ground.is_accepting;
        let frames = frames.into();
        Some(Finished { frames, depth, is_bottom, is_accepting, mask })
    }

    fn memory(&self) -> usize {
        size_of_val(&*self.frames) + self.mask.memory()
    }
}

/// A mask that is kept.
#[derive(Clone, Debug)]
pub(crate) enum KeptMask {
    /// Its tokens.
    Listed(Arc<[u32]>),
    Whole(Arc<TokenMask>),
}

impl KeptMask {
    pub(crate) fn new(blocks: &[usize], width: usize) -> KeptMask {
        let n_tokens: usize =
            blocks.iter().map(|block| block.count_ones() as usize).sum();
        let mask = TokenMask::from_blocks(width, blocks);
        if n_tokens > MAX_LISTED {
            return KeptMask::Whole(Arc::new(mask));
        }
        KeptMask::Listed(mask.tokens().map(|token| token.0).collect())
    }

    /// Makes `blocks` this mask.
    pub(crate) fn copy_into(&self, blocks: &mut [usize]) {
        match self {
            KeptMask::Listed(tokens) => {
                blocks.fill(0);
                insert_all(blocks, tokens);
            }
            KeptMask::Whole(mask) => {
                copy_blocks(blocks, mask.bits().as_slice());
            }
        }
    }

    fn memory(&self) -> usize {
        match self {
            KeptMask::Listed(tokens) => size_of_val(&**tokens),
            KeptMask::Whole(mask) => size_of_val(mask.bits().as_slice()),
        }
    }
}

/// What a mask depends on: the frames of a configuration down to a depth
/// below its top.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    configuration: &'a Configuration,
    is_accepting: bool,
}

impl<'a> Ground<'a> {
    pub(crate) fn new(
        configuration: &'a Configuration,
        is_accepting: bool,
    ) -> Ground<'a> {
        Ground { configuration, is_accepting }
    }

    /// Calls `on` with the frames down to `depth`, and returns whether
    /// nothing lies below them. None if there are several ways down.
    fn frames(
        self,
        depth: u32,
        mut on: impl FnMut(&'a Frame),
    ) -> Option<bool> {
        let [top] = self.configuration.tops() else { return None };
        on(&top.frame);
        let mut below = &top.below;
        for _ in 0..depth {
            match below.edges() {
                [] => break,
                [edge] if !below.has_bottom() => {
                    on(&edge.frame);
                    below = &edge.below;
                }
                _ => return None,
            }
        }
        is_bottom(below)
    }

    pub(crate) fn hash(self, depth: u32) -> Option<u64> {
        let mut hasher = FxBuildHasher.build_hasher();
        let is_bottom = self.frames(depth, |frame| {
            (frame.state, frame.counts).hash(&mut hasher);
            if let Some(memory) = &frame.memory {
                memory.used.len().hash(&mut hasher);
                memory.partial.hash(&mut hasher);
                memory.text.len().hash(&mut hasher);
            }
        })?;
        (is_bottom, self.is_accepting).hash(&mut hasher);
        Some(hasher.finish())
    }

    fn is_of(self, finished: &Finished) -> bool {
        if finished.is_accepting != self.is_accepting {
            return false;
        }
        let mut frames = finished.frames.iter();
        let mut is_same = true;
        let is_bottom = self.frames(finished.depth, |frame| {
            let other = frames.next();
            is_same &= other.is_some_and(|other| other.is_same(frame));
        });
        is_same
            && frames.next().is_none()
            && is_bottom == Some(finished.is_bottom)
    }
}

/// Returns whether nothing lies below; none if that is open.
fn is_bottom(below: &Stack) -> Option<bool> {
    match (below.edges().is_empty(), below.has_bottom()) {
        (false, true) => None,
        (is_bottom, _) => Some(is_bottom),
    }
}

/// Returns the states by which the masks of a configuration are found.
fn key_of(top: &Top) -> (StateId, Option<StateId>) {
    let second = top.below.edges().first().map(|edge| edge.frame.state);
    (top.frame.state, second)
}

impl FinishedMasks {
    /// Returns the mask on this ground, if it is kept.
    pub(crate) fn get(&self, ground: Ground<'_>) -> Option<&KeptMask> {
        let [top] = ground.configuration.tops() else { return None };
        let known = self.masks.get(&key_of(top))?;
        let known = known.iter().find(|finished| ground.is_of(finished));
        known.map(|finished| &finished.mask)
    }

    /// Keeps a mask that was put together from `n_walks` walks and depends on
    /// `depth` frames below the top, if it came often enough.
    pub(crate) fn keep(
        &mut self,
        ground: Ground<'_>,
        depth: u32,
        n_walks: usize,
        (blocks, width): (&[usize], usize),
    ) {
        let ([top], Some(hash)) =
            (ground.configuration.tops(), ground.hash(depth))
        else {
            return;
        };
        if self.seen.capacity() == 0 {
            self.seen.reserve(USUAL);
        }
        let times = self.seen.entry(hash).or_insert(0);
        *times = times.saturating_add(1);
        let is_due =
            *times >= FEW_WALKS_TIMES || *times > 1 && n_walks >= MANY_WALKS;
        if !is_due {
            return;
        }
        let known = self.masks.entry(key_of(top)).or_default();
        if known.len() >= MAX_ALIKE {
            return;
        }
        let mask = KeptMask::new(blocks, width);
        let finished = Finished::new(ground, depth, mask);
        self.memory += finished.as_ref().map_or(0, Finished::memory);
        known.extend(finished);
        if self.memory > MAX_BYTES {
            *self = FinishedMasks::default();
        }
    }

    /// Keeps a mask that depends on `depth` frames below the top, unless one
    /// is kept on this ground or there is no room. Returns whether it did.
    pub(crate) fn put(
        &mut self,
        ground: Ground<'_>,
        depth: u32,
        mask: KeptMask,
    ) -> bool {
        let [top] = ground.configuration.tops() else { return false };
        let Some(finished) = Finished::new(ground, depth, mask) else {
            return false;
        };
        let memory = self.memory + finished.memory();
        let known = self.masks.entry(key_of(top)).or_default();
        let is_known = known.iter().any(|other| ground.is_of(other));
        if is_known || known.len() >= MAX_ALIKE || memory > MAX_BYTES {
            return false;
        }
        known.push(finished);
        self.memory = memory;
        true
    }

    /// Returns about how many bytes this holds.
    pub(crate) fn memory(&self) -> usize {
        self.memory + self.seen.capacity() * size_of::<(u64, u8)>()
    }
}
