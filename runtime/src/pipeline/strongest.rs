//! The strongest token that a mask allows, found in one pass over a row that
//! is only read: what greedy decoding comes to where nothing but the mask
//! changes a row.

use super::{mask::MaskBits, row::Candidate};
use crate::vocabulary::TokenId;

/// How many logits are looked at together.
const BLOCK: usize = 64;

/// How many of them lie side by side in vector code.
const LANES: usize = 16;

/// Returns the strongest token that the mask allows, the one with the lowest
/// id among equals.
///
/// The answer is `None` when there is none, and when any logit is NaN or
/// positive infinity, be it one that the mask forbids: such a row has no
/// strongest token.
pub(super) fn strongest(
    logits: &[f32],
    mask: Option<MaskBits<'_>>,
) -> Option<Candidate> {
    let mut scan = Scan::new(mask);
    let (blocks, rest) = logits.as_chunks::<BLOCK>();
    for (index, block) in blocks.iter().enumerate() {
        scan.read(index, block);
    }
    let mut last = [f32::NEG_INFINITY; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    scan.read(blocks.len(), &last);
    let index = scan.block()?;
    let block = blocks.get(index).unwrap_or(&last);
    let allowed = scan.allowed(index);
    let is_it = |&place: &usize| {
        allowed >> place & 1 == 1 && block[place] >= scan.greatest
    };
    let place = (0..BLOCK).find(is_it)?;
    let token = TokenId::from_index(index * BLOCK + place);
    Some(Candidate { token, logit: block[place] })
}

/// What is known of the blocks that were read.
struct Scan<'a> {
    mask: Option<MaskBits<'a>>,
    /// The greatest logit that is allowed.
    greatest: f32,
    /// The first block that has it.
    found: Option<usize>,
    /// The greatest logit of all.
    top: f32,
    /// Not zero where a logit was NaN.
    n_nan: [u32; LANES],
}

impl<'a> Scan<'a> {
    fn new(mask: Option<MaskBits<'a>>) -> Scan<'a> {
        Scan {
            mask,
            greatest: f32::NEG_INFINITY,
            found: None,
            top: f32::NEG_INFINITY,
            n_nan: [0; LANES],
        }
    }

    /// Reads a block. The mask is asked only where the block has something
    /// greater than all before, which is rare after the first few.
    fn read(&mut self, index: usize, block: &[f32; BLOCK]) {
        let max = self.max(block);
        if max > self.greatest {
            self.top = greater(self.top, max);
            let max = match self.allowed(index) {
                0 => return,
                u64::MAX => max,
                allowed => max_allowed(block, allowed),
            };
            if max > self.greatest {
                self.greatest = max;
                self.found = Some(index);
            }
        }
    }

    /// Returns the greatest logit of a block, and notes what is NaN; next to
    /// NaN, others may be passed over.
    ///
    /// PERF: each logit is loaded once and compared twice, with its twin in
    /// the other half for NaN; counting what is at most `f32::MAX` made the
    /// pass a third longer.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the hot loop")]
    fn max(&mut self, block: &[f32; BLOCK]) -> f32 {
        let mut lanes = [f32::NEG_INFINITY; LANES];
        let (chunks, _) = block.as_chunks::<LANES>();
        let (front, back) = chunks.split_at(chunks.len() / 2);
        for (front, back) in front.iter().zip(back) {
            for lane in 0..LANES {
                let (a, b) = (front[lane], back[lane]);
                lanes[lane] = greater(lanes[lane], greater(a, b));
                self.n_nan[lane] |= u32::from(a.is_nan() | b.is_nan());
            }
        }
        max_of_lanes(lanes)
    }

    /// Returns the bits of a block's tokens.
    fn allowed(&self, index: usize) -> u64 {
        self.mask.map_or(u64::MAX, |mask| mask.sixty_four(index))
    }

    /// Returns the block in which the strongest token is.
    fn block(&self) -> Option<usize> {
        let is_good = self.n_nan == [0; LANES] && self.top < f32::INFINITY;
        self.found.filter(|_| is_good)
    }
}

/// Returns the greatest logit of a block whose bit is set.
fn max_allowed(block: &[f32; BLOCK], allowed: u64) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (chunks, _) = block.as_chunks::<LANES>();
    for (index, chunk) in chunks.iter().enumerate() {
        let allowed = allowed >> (index * LANES);
        for (lane, &logit) in chunk.iter().enumerate() {
            let is_allowed = allowed & (1 << lane) != 0;
            let logit = if is_allowed { logit } else { f32::NEG_INFINITY };
            lanes[lane] = greater(lanes[lane], logit);
        }
    }
    max_of_lanes(lanes)
}

fn max_of_lanes(mut lanes: [f32; LANES]) -> f32 {
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            lanes[lane] = greater(lanes[lane], lanes[lane + width]);
        }
    }
    lanes[0]
}

/// Returns the greater of two numbers, in one instruction.
fn greater(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: f32 = f32::NEG_INFINITY;

    /// Finds it as its definition reads.
    fn slowly(logits: &[f32], is_allowed: impl Fn(usize) -> bool) -> usize {
        let mut found = usize::MAX;
        for (place, &logit) in logits.iter().enumerate() {
            let best = logits.get(found).copied().unwrap_or(NONE);
            if is_allowed(place) && logit > best {
                found = place;
            }
        }
        found
    }

    /// Returns the strongest token under each of these sets of tokens, in
    /// all kinds of words, which must agree.
    fn check(logits: &[f32], name: &str, is_allowed: fn(usize) -> bool) {
        let mut u32s = vec![0_u32; logits.len().div_ceil(32)];
        let mut u64s = vec![0_u64; logits.len().div_ceil(64)];
        let mut usizes =
            vec![0_usize; logits.len().div_ceil(usize::BITS as usize)];
        for place in (0..logits.len()).filter(|&place| is_allowed(place)) {
            u32s[place / 32] |= 1 << (place % 32);
            u64s[place / 64] |= 1 << (place % 64);
            let bits = usize::BITS as usize;
            usizes[place / bits] |= 1 << (place % bits);
        }
        let expected = slowly(logits, is_allowed);
        let expected = logits.get(expected).map(|&logit| Candidate {
            token: TokenId::from_index(expected),
            logit,
        });
        for mask in [
            MaskBits::from(&*u32s),
            MaskBits::from(&*u64s),
            MaskBits::from(&*usizes),
        ] {
            let found = strongest(logits, Some(mask));
            assert_eq!(found, expected, "{name}, {logits:?}");
        }
    }

    #[test]
    fn every_width_and_mask_agrees_with_a_plain_loop() {
        let widths = (0..=130).chain([191, 192, 193, 511, 1_000]);
        for n_logits in widths {
            let rising = |place: usize| {
                f32::from(u16::try_from(place % 1_009).unwrap_or(0))
            };
            let rows: [Vec<f32>; 5] = [
                (0..n_logits).map(rising).collect(),
                (0..n_logits).map(|place| -rising(place)).collect(),
                (0..n_logits).map(|place| rising(place * 37 % 23)).collect(),
                vec![NONE; n_logits],
                // Zero and minus zero tie.
                (0..n_logits)
                    .map(|place| if place % 2 == 0 { -0.0 } else { 0.0 })
                    .collect(),
            ];
            for row in &rows {
                check(row, "all", |_| true);
                check(row, "none", |_| false);
                check(row, "one in three", |place| place % 3 == 1);
                check(row, "whole words", |place| place / 64 % 2 == 1);
                check(row, "the last of a word", |place| place % 32 == 31);
                let expected = slowly(row, |_| true);
                let found = strongest(row, None);
                let found = found.map_or(usize::MAX, |it| it.token.index());
                assert_eq!(found, expected, "no mask, {row:?}");
            }
        }
    }

    #[test]
    fn a_row_with_a_bad_logit_anywhere_has_none() {
        for n_logits in [1, 63, 64, 65, 200] {
            for bad in [f32::NAN, -f32::NAN, f32::INFINITY] {
                for place in 0..n_logits {
                    let mut row = vec![1.0; n_logits];
                    row[place] = bad;
                    assert_eq!(strongest(&row, None), None);
                    // Even where the mask would have hidden it.
                    let mut words = vec![u64::MAX; n_logits.div_ceil(64)];
                    words[place / 64] &= !(1 << (place % 64));
                    let mask = Some(MaskBits::from(&*words));
                    assert_eq!(strongest(&row, mask), None);
                }
            }
        }
    }
}
