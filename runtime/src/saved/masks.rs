//! Masks in a file, each as briefly as it can be said: as a list of its
//! tokens, as what differs from a mask before it, or bit by bit.
//!
//! The masks of one grammar are alike: of the places in a pattern, most allow
//! the same tokens but for a few hundred. So differences are what a general
//! compression would find, and take a fraction of its time to read.

use std::sync::Arc;

use maskwright_grammar_core::util::FxHashMap;

use super::format::{Reader, Writer, checksum};
use crate::mask::{KeptMask, MAX_LISTED, TokenMask};

/// About how many bytes the masks of one file may hold in memory.
const MAX_BYTES: usize = 48 << 20;
/// So many masks before it are tried as what a mask differs from.
const MAX_BASES: usize = 16;

const LISTED: u64 = 0;
const DIFFERS: u64 = 1;
const WHOLE: u64 = 2;

/// Writes masks of one width.
#[derive(Debug, Default)]
pub(super) struct MaskWriter {
    /// What was written.
    out: Writer,
    /// The words of each mask.
    masks: Vec<Box<[u32]>>,
    /// Masks of many tokens.
    large: Vec<usize>,
    /// Masks that were written whole.
    whole: Vec<usize>,
    /// Masks by a checksum.
    known: FxHashMap<u64, Vec<usize>>,
}

impl MaskWriter {
    /// Returns how many masks there are.
    pub(super) fn len(&self) -> usize {
        self.masks.len()
    }

    /// Returns how many bytes were written.
    pub(super) fn n_bytes(&self) -> usize {
        self.out.bytes.len()
    }

    /// Adds a mask unless it is there, and returns its number. None if there
    /// are too many.
    pub(super) fn add(&mut self, mask: &TokenMask) -> Option<usize> {
        self.add_words(mask.words().collect())
    }

    /// Adds a mask of another writer, and returns its number here.
    pub(super) fn add_from(
        &mut self,
        other: &MaskWriter,
        mask: usize,
    ) -> usize {
        // Those of the other one are not too many.
        self.add_words(other.masks[mask].clone()).unwrap_or(0)
    }

    fn add_words(&mut self, words: Box<[u32]>) -> Option<usize> {
        let sum = checksum(bytemuck::cast_slice(&words));
        let known = self.known.entry(sum).or_default();
        let is_it = |index: &&usize| self.masks[**index] == words;
        if let Some(&index) = known.iter().find(is_it) {
            return Some(index);
        }
        let index = self.masks.len();
        if (index + 1) * size_of_val(&*words) > MAX_BYTES {
            return None;
        }
        known.push(index);
        self.write(&words);
        self.masks.push(words);
        Some(index)
    }

    fn write(&mut self, words: &[u32]) {
        let index = self.masks.len();
        let n_tokens: u32 = words.iter().map(|word| word.count_ones()).sum();
        let is_small = n_tokens as usize <= MAX_LISTED;
        let recent = self.large.iter().rev().take(MAX_BASES / 2);
        let bases = self.whole.iter().rev().take(MAX_BASES / 2);
        let differences = recent.chain(bases).map(|&base| {
            let pairs = words.iter().zip(&self.masks[base]);
            let n = pairs.map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
            (n, base)
        });
        // Small masks are lists in memory too, and no bases.
        let best = differences.min().filter(|&(n, _)| n < n_tokens);
        let best = best.filter(|_| !is_small);
        if !is_small {
            self.large.push(index);
        }
        let n_listed = best.map_or(n_tokens, |(n, _)| n);
        // A token of a list takes a byte or two.
        if !is_small && n_listed as usize * 3 / 2 >= size_of_val(words) {
            self.whole.push(index);
            self.out.small(WHOLE);
            for word in words {
                self.out.bytes.extend_from_slice(&word.to_le_bytes());
            }
            return;
        }
        let zeros = vec![0; words.len()];
        let base = if let Some((_, base)) = best {
            self.out.small(DIFFERS);
            self.out.small((index - base) as u64);
            &self.masks[base]
        } else {
            self.out.small(LISTED);
            &*zeros
        };
        self.out.small(u64::from(n_listed));
        let mut next = 0;
        for (at, (word, other)) in words.iter().zip(base).enumerate() {
            let mut bits = word ^ other;
            while bits != 0 {
                let token = at as u64 * 32 + u64::from(bits.trailing_zeros());
                bits &= bits - 1;
                self.out.small(token - next);
                next = token + 1;
            }
        }
    }

    /// Writes all masks, their number first.
    pub(super) fn finish(self, out: &mut Writer) {
        out.small(self.masks.len() as u64);
        out.bytes.extend_from_slice(&self.out.bytes);
    }
}

/// Reads what [`MaskWriter::finish`] wrote of masks that are `width` wide;
/// none where that makes no sense.
pub(super) fn read_masks(
    from: &mut Reader<'_>,
    width: usize,
) -> Option<Vec<KeptMask>> {
    let n_words = width.div_ceil(32);
    let n_masks = from.small_length()?;
    // No mask is said in less than a byte.
    if n_masks > from.rest.len()
        || n_masks.checked_mul(n_words * 4)? > MAX_BYTES
    {
        return None;
    }
    let mut masks: Vec<KeptMask> = Vec::with_capacity(n_masks);
    for index in 0..n_masks {
        let mask = match from.small()? {
            LISTED => {
                let tokens = read_list(from, width)?;
                if tokens.len() <= MAX_LISTED {
                    KeptMask::Listed(tokens.into())
                } else {
                    KeptMask::Whole(Arc::new(TokenMask::of(width, &tokens)))
                }
            }
            DIFFERS => {
                let back = from.small_length()?;
                let base = masks.get(index.checked_sub(back)?)?;
                let KeptMask::Whole(base) = base else { return None };
                let mut mask =
                    TokenMask::from_blocks(width, base.bits().as_slice());
                for token in read_list(from, width)? {
                    mask.toggle(token);
                }
                KeptMask::Whole(Arc::new(mask))
            }
            WHOLE => {
                let (words, _) = from.take(n_words * 4)?.as_chunks::<4>();
                let words = words.iter().map(|word| u32::from_le_bytes(*word));
                let mask = TokenMask::from_words(width, words)?;
                KeptMask::Whole(Arc::new(mask))
            }
            _ => return None,
        };
        masks.push(mask);
    }
    Some(masks)
}

/// Reads tokens in order, all of them below `width`.
fn read_list(from: &mut Reader<'_>, width: usize) -> Option<Vec<u32>> {
    let n_tokens = from.small_length()?;
    // No token is said in less than a byte.
    if n_tokens > from.rest.len().min(width) {
        return None;
    }
    let mut tokens = Vec::with_capacity(n_tokens);
    let mut next = 0_u64;
    for _ in 0..n_tokens {
        let token = next.checked_add(from.small()?)?;
        if token >= width as u64 {
            return None;
        }
        tokens.push(u32::try_from(token).ok()?);
        next = token + 1;
    }
    Some(tokens)
}
