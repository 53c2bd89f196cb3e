//! Rows of inputs as the products read them.
//!
//! Rows are taken in tiles of 8, 4, 2 or 1. Within a tile the rows alternate
//! from column to column (or block to block), so that one pointer runs
//! through a tile as one runs through the weights.

use super::blocks::BLOCK;
use crate::model::simd::Simd;

/// A block of inputs, rounded to eight bits.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
pub(super) struct Block {
    /// Never -128.
    pub(super) quants: [[i8; 4]; 8],
    pub(super) scale: f32,
    /// The sum of the quants, times the scale.
    pub(super) sum: f32,
    /// What the dot products with weights begin at, so that the offset of
    /// the weights' quants drops out: for the two halves of the block where
    /// their scales differ, or else for the whole in the first place.
    pub(super) starts: [i32; 2],
}

/// Added to a float of moderate size, it leaves the nearest integer, ties to
/// even, in the low bits.
const ROUNDER: f32 = 12_582_912.0;

/// Rounds a block to eight bits. `offset` is what the weights' quants are
/// too large by. Numbers that are not finite make the scale infinite or not
/// a number, and so all that comes of it.
#[inline(always)]
pub(super) fn round(
    block: &[f32; BLOCK],
    offset: i32,
    has_split_scales: bool,
) -> Block {
    // As bits, what is not a number is greater than all numbers.
    let max = block.iter().fold(0, |max, x| max.max(x.abs().to_bits()));
    let max = f32::from_bits(max);
    // Below that the quotient overflows, and nothing is left of the product
    // with a weight.
    let is_zero = max < 127.0 * f32::MIN_POSITIVE;
    let scale = if is_zero { 0.0 } else { max / 127.0 };
    let inverse = if is_zero { 0.0 } else { 127.0 / max };
    let mut quants = [0; BLOCK];
    let mut sums = [0; 2];
    let (halves, _) = block.as_chunks::<{ BLOCK / 2 }>();
    let (out, _) = quants.as_chunks_mut::<{ BLOCK / 2 }>();
    for ((half, out), sum) in halves.iter().zip(out).zip(&mut sums) {
        for (x, quant) in half.iter().zip(out) {
            let bits = (x * inverse + ROUNDER).to_bits();
            let rounded = bits.wrapping_sub(ROUNDER.to_bits()).cast_signed();
            #[expect(
                clippy::cast_possible_truncation,
                reason = "at most 127, unless the scale is not finite"
            )]
            let narrow = rounded as i8;
            *quant = narrow;
            *sum += i32::from(narrow);
        }
    }
    let sum = sums[0] + sums[1];
    let (quants, _) = quants.as_chunks::<4>();
    Block {
        quants: std::array::from_fn(|i| quants[i]),
        scale,
        #[expect(clippy::cast_precision_loss, reason = "at most 32 · 128")]
        sum: scale * sum as f32,
        starts: if has_split_scales {
            sums.map(|sum| -offset * sum)
        } else {
            [-offset * sum, 0]
        },
    }
}

/// Splits a number of rows into tiles, and returns where each begins.
pub(super) fn tiles<S: Simd>(
    _: S,
    n_rows: usize,
) -> impl Iterator<Item = (usize, usize)> + Clone {
    let mut start = 0;
    std::iter::from_fn(move || {
        let left = n_rows - start;
        let width = [8, 4, 2, 1]
            .into_iter()
            .find(|width| *width <= S::TILE && *width <= left)?;
        start += width;
        Some((start - width, width))
    })
}

/// Puts rows of `n_in` numbers into tiles, a `unit` of each row at a time.
#[inline(always)]
pub(super) fn interleave<S: Simd, const N: usize, T: Copy + Default>(
    simd: S,
    rows: &[f32],
    n_in: usize,
    mut unit: impl FnMut(&[f32; N]) -> T,
) -> Vec<T> {
    let n_units = n_in / N;
    let n_rows = rows.len() / n_in;
    let mut out = vec![T::default(); n_rows * n_units];
    for (start, width) in tiles(simd, n_rows) {
        let tile = &mut out[start * n_units..][..width * n_units];
        for (row, values) in
            rows[start * n_in..].chunks_exact(n_in).take(width).enumerate()
        {
            let (units, _) = values.as_chunks::<N>();
            let targets = tile.iter_mut().skip(row).step_by(width);
            for (target, values) in targets.zip(units) {
                *target = unit(values);
            }
        }
    }
    out
}
