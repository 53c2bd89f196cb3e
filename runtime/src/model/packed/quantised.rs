//! Products with quantised weights.

use super::blocks::{BLOCK, Quants, Record};
use super::inputs::{Block, interleave, round, tiles};
use super::{Panels, store};
use crate::model::simd::{LANES, Portable, Simd};

/// A quantised matrix, sixteen rows at a time.
pub(super) struct Quantised<R> {
    /// The records of each sixteen rows in one piece; rows past the last are
    /// zeros.
    records: Vec<R>,
    n_in: usize,
}

impl<R: Record> Quantised<R> {
    /// Packs rows of `n_in` weights, or returns nothing if records do not
    /// fill the rows, or rows the bytes.
    pub(super) fn new(bytes: &[u8], n_in: usize) -> Option<Quantised<R>> {
        let n_columns = BLOCK * R::N_BLOCKS;
        let n_records = n_in / n_columns;
        let row_len = n_records * R::N_BYTES;
        if row_len == 0
            || !n_in.is_multiple_of(n_columns)
            || !bytes.len().is_multiple_of(row_len)
        {
            return None;
        }
        let n_panels = (bytes.len() / row_len).div_ceil(LANES);
        let mut records = vec![R::EMPTY; n_panels * n_records];
        for (panel, rows) in records
            .chunks_exact_mut(n_records)
            .zip(bytes.chunks(LANES * row_len))
        {
            for (lane, row) in rows.chunks_exact(row_len).enumerate() {
                let row = row.chunks_exact(R::N_BYTES);
                for (record, bytes) in panel.iter_mut().zip(row) {
                    record.put(lane, bytes);
                }
            }
        }
        Some(Quantised { records, n_in })
    }

    fn panel(&self, panel: usize) -> &[R] {
        let n_records = self.n_in / (BLOCK * R::N_BLOCKS);
        &self.records[panel * n_records..][..n_records]
    }
}

impl<R: Record> Panels for Quantised<R> {
    type Inputs = Vec<Block>;

    const GROUP: usize = 1;

    fn n_in(&self) -> usize {
        self.n_in
    }

    #[inline(always)]
    fn prepare<S: Simd>(&self, simd: S, rows: &[f32]) -> Vec<Block> {
        let offset =
            if R::Quants::BITS == 8 { S::EIGHT_BIT_OFFSET } else { R::OFFSET };
        interleave(simd, rows, self.n_in, |block| {
            round(block, offset, R::HAS_SPLIT_SCALES)
        })
    }

    #[inline(always)]
    fn multiply<S: Simd>(
        &self,
        simd: S,
        first: usize,
        inputs: &Vec<Block>,
        outs: &mut [&mut [f32]],
    ) {
        let n_blocks = self.n_in / BLOCK;
        let n_panels = outs.first().map_or(0, |out| out.len().div_ceil(LANES));
        for index in 0..n_panels {
            let panel = self.panel(first + index);
            for (start, width) in tiles(simd, outs.len()) {
                let inputs = &inputs[start * n_blocks..][..width * n_blocks];
                let outs = &mut outs[start..start + width];
                let column = index * LANES;
                match width {
                    8 => tile::<S, R, 8>(simd, panel, inputs, outs, column),
                    4 => tile::<S, R, 4>(simd, panel, inputs, outs, column),
                    2 => tile::<S, R, 2>(simd, panel, inputs, outs, column),
                    _ => tile::<S, R, 1>(simd, panel, inputs, outs, column),
                }
            }
        }
    }

    fn widen(&self, row: usize, out: &mut Vec<f32>) {
        let lane = row % LANES;
        for record in self.panel(row / LANES) {
            for block in 0..R::N_BLOCKS {
                let min = record.min(Portable, block).map(|min| min[lane]);
                let quants = record.quants(block);
                let halves = [
                    quants.unpack::<Portable, 0>(Portable),
                    quants.unpack::<Portable, 1>(Portable),
                ];
                for (half, lines) in halves.iter().enumerate() {
                    let scale = record.scale(Portable, block, half)[lane];
                    out.extend(lines.iter().flat_map(|line| line[lane]).map(
                        |quant| {
                            let weight = scale * centre::<R>(quant);
                            min.map_or(weight, |min| weight + min)
                        },
                    ));
                }
            }
        }
    }
}

/// Subtracts the offset of a quant.
fn centre<R: Record>(quant: u8) -> f32 {
    if R::Quants::BITS == 8 {
        f32::from(quant.cast_signed())
    } else {
        #[expect(clippy::cast_precision_loss, reason = "six bits")]
        let centred = (i32::from(quant) - R::OFFSET) as f32;
        centred
    }
}

/// Multiplies sixteen rows of weights by a tile of inputs.
///
/// In each lane, block after block: the products of quants are added as
/// integers, scaled, and added to the sum; then the offset of the block is.
/// That order is the same in tiles of any width.
#[inline(always)]
fn tile<S: Simd, R: Record, const WIDTH: usize>(
    simd: S,
    panel: &[R],
    inputs: &[Block],
    outs: &mut [&mut [f32]],
    column: usize,
) {
    let (inputs, _) = inputs.as_chunks::<WIDTH>();
    let mut sums = [simd.splat(0.0); WIDTH];
    for (record, inputs) in panel.iter().zip(inputs.chunks(R::N_BLOCKS)) {
        for (block, inputs) in inputs.iter().enumerate() {
            let quants = record.quants(block);
            let mut dots = start(simd, inputs, 0);
            add_half::<S, R, 0, WIDTH>(simd, quants, inputs, &mut dots);
            if R::HAS_SPLIT_SCALES {
                let scale = record.scale(simd, block, 0);
                add_scaled(simd, scale, inputs, dots, &mut sums);
                dots = start(simd, inputs, 1);
            }
            add_half::<S, R, 1, WIDTH>(simd, quants, inputs, &mut dots);
            let scale = record.scale(simd, block, 1);
            add_scaled(simd, scale, inputs, dots, &mut sums);
            if let Some(min) = record.min(simd, block) {
                for (sum, input) in sums.iter_mut().zip(inputs) {
                    *sum = simd.fma(min, simd.splat(input.sum), *sum);
                }
            }
        }
    }
    for (out, sum) in outs.iter_mut().zip(sums) {
        store(out, column, simd.store(sum));
    }
}

#[inline(always)]
fn start<S: Simd, const WIDTH: usize>(
    simd: S,
    inputs: &[Block; WIDTH],
    place: usize,
) -> [S::Ints; WIDTH] {
    std::array::from_fn(|i| simd.splat_int(inputs[i].starts[place]))
}

#[inline(always)]
fn add_half<S: Simd, R: Record, const HALF: usize, const WIDTH: usize>(
    simd: S,
    quants: &R::Quants,
    inputs: &[Block; WIDTH],
    dots: &mut [S::Ints; WIDTH],
) {
    let weights = quants.unpack::<S, HALF>(simd);
    for (dot, input) in dots.iter_mut().zip(inputs) {
        let (halves, _) = input.quants.as_chunks::<4>();
        let inputs = &halves[HALF];
        *dot = match R::Quants::BITS {
            4 => simd.dot::<4>(*dot, weights, inputs),
            5 => simd.dot::<5>(*dot, weights, inputs),
            6 => simd.dot::<6>(*dot, weights, inputs),
            _ => simd.dot::<8>(*dot, weights, inputs),
        };
    }
}

#[inline(always)]
fn add_scaled<S: Simd, const WIDTH: usize>(
    simd: S,
    scale: S::Floats,
    inputs: &[Block; WIDTH],
    dots: [S::Ints; WIDTH],
    sums: &mut [S::Floats; WIDTH],
) {
    for ((sum, input), dot) in sums.iter_mut().zip(inputs).zip(dots) {
        let scale = simd.mul(scale, simd.splat(input.scale));
        *sum = simd.fma(simd.to_floats(dot), scale, *sum);
    }
}
