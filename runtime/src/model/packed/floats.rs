//! Products with weights that are floats.

use super::inputs::{interleave, tiles};
use super::{Panels, store};
use crate::model::simd::{LANES, Portable, Simd};

/// One column of sixteen rows of weights.
pub(super) trait Column: Copy + Send + Sync + 'static {
    const N_BYTES: usize;
    const EMPTY: Self;

    /// Puts what a file has for one row into its lane.
    fn put(&mut self, lane: usize, bytes: &[u8]);

    fn load<S: Simd>(&self, simd: S) -> S::Floats;
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct F32([f32; LANES]);

#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct F16([u16; LANES]);

#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Bf16([u16; LANES]);

impl Column for F32 {
    const N_BYTES: usize = 4;
    const EMPTY: F32 = F32([0.0; LANES]);

    fn put(&mut self, lane: usize, bytes: &[u8]) {
        let (floats, _) = bytes.as_chunks::<4>();
        self.0[lane] = f32::from_le_bytes(floats[0]);
    }

    #[inline(always)]
    fn load<S: Simd>(&self, simd: S) -> S::Floats {
        simd.load(&self.0)
    }
}

impl Column for F16 {
    const N_BYTES: usize = 2;
    const EMPTY: F16 = F16([0; LANES]);

    fn put(&mut self, lane: usize, bytes: &[u8]) {
        self.0[lane] = u16::from_le_bytes([bytes[0], bytes[1]]);
    }

    #[inline(always)]
    fn load<S: Simd>(&self, simd: S) -> S::Floats {
        simd.load_f16(&self.0)
    }
}

impl Column for Bf16 {
    const N_BYTES: usize = 2;
    const EMPTY: Bf16 = Bf16([0; LANES]);

    fn put(&mut self, lane: usize, bytes: &[u8]) {
        self.0[lane] = u16::from_le_bytes([bytes[0], bytes[1]]);
    }

    #[inline(always)]
    fn load<S: Simd>(&self, simd: S) -> S::Floats {
        simd.load_bf16(&self.0)
    }
}

/// A matrix of floats, sixteen rows at a time.
pub(super) struct Floats<C> {
    /// The columns of each sixteen rows in one piece; rows past the last are
    /// zeros.
    columns: Vec<C>,
    n_in: usize,
}

impl<C: Column> Floats<C> {
    /// Packs rows of `n_in` weights, or returns nothing if rows do not fill
    /// the bytes.
    pub(super) fn new(bytes: &[u8], n_in: usize) -> Option<Floats<C>> {
        let row_len = n_in * C::N_BYTES;
        if row_len == 0 || !bytes.len().is_multiple_of(row_len) {
            return None;
        }
        let n_panels = (bytes.len() / row_len).div_ceil(LANES);
        let mut columns = vec![C::EMPTY; n_panels * n_in];
        for (panel, rows) in
            columns.chunks_exact_mut(n_in).zip(bytes.chunks(LANES * row_len))
        {
            for (lane, row) in rows.chunks_exact(row_len).enumerate() {
                let row = row.chunks_exact(C::N_BYTES);
                for (column, bytes) in panel.iter_mut().zip(row) {
                    column.put(lane, bytes);
                }
            }
        }
        Some(Floats { columns, n_in })
    }

    #[inline(always)]
    fn panel(&self, panel: usize) -> &[C] {
        &self.columns[panel * self.n_in..][..self.n_in]
    }

    /// Multiplies `DEPTH` panels by a tile of inputs.
    ///
    /// In each lane, product after product is added to the sum in the order
    /// of the columns, in tiles of any shape. More sums side by side keep
    /// the processor busy while each waits for its last addition.
    #[inline(always)]
    fn tile<S: Simd, const WIDTH: usize, const DEPTH: usize>(
        &self,
        simd: S,
        panel: usize,
        inputs: &[f32],
        outs: &mut [&mut [f32]],
        column: usize,
    ) {
        let (inputs, _) = inputs.as_chunks::<WIDTH>();
        let inputs = &inputs[..self.n_in];
        let panels: [&[C]; DEPTH] =
            std::array::from_fn(|i| self.panel(panel + i));
        let mut sums = [[simd.splat(0.0); DEPTH]; WIDTH];
        for (index, inputs) in inputs.iter().enumerate() {
            let weights = panels.map(|panel| panel[index].load(simd));
            for (sums, input) in sums.iter_mut().zip(inputs) {
                let input = simd.splat(*input);
                for (sum, weights) in sums.iter_mut().zip(weights) {
                    *sum = simd.fma(weights, input, *sum);
                }
            }
        }
        for (out, sums) in outs.iter_mut().zip(sums) {
            for (i, sum) in sums.into_iter().enumerate() {
                store(out, column + i * LANES, simd.store(sum));
            }
        }
    }
}

impl<C: Column> Panels for Floats<C> {
    type Inputs = Vec<f32>;

    const GROUP: usize = 4;

    fn n_in(&self) -> usize {
        self.n_in
    }

    #[inline(always)]
    fn prepare<S: Simd>(&self, simd: S, rows: &[f32]) -> Vec<f32> {
        interleave(simd, rows, self.n_in, |[x]| *x)
    }

    #[inline(always)]
    fn multiply<S: Simd>(
        &self,
        simd: S,
        first: usize,
        inputs: &Vec<f32>,
        outs: &mut [&mut [f32]],
    ) {
        let n_panels = outs.first().map_or(0, |out| out.len().div_ceil(LANES));
        let mut index = 0;
        while index < n_panels {
            let is_group = index + Self::GROUP <= n_panels;
            let depth = if is_group { Self::GROUP } else { 1 };
            for (start, width) in tiles(simd, outs.len()) {
                let inputs = &inputs[start * self.n_in..][..width * self.n_in];
                let outs = &mut outs[start..start + width];
                macro_rules! tile {
                    ($width:literal, $depth:literal) => {
                        for i in (0..depth).step_by($depth) {
                            self.tile::<S, $width, $depth>(
                                simd,
                                first + index + i,
                                inputs,
                                outs,
                                (index + i) * LANES,
                            )
                        }
                    };
                }
                match (width, is_group) {
                    (8, true) => tile!(8, 2),
                    (4, true) if S::TILE == 8 => tile!(4, 2),
                    (2, true) => tile!(2, 2),
                    (1, true) => tile!(1, 4),
                    (8, false) => tile!(8, 1),
                    (4, _) => tile!(4, 1),
                    (2, false) => tile!(2, 1),
                    _ => tile!(1, 1),
                }
            }
            index += depth;
        }
    }

    fn widen(&self, row: usize, out: &mut Vec<f32>) {
        let columns = self.panel(row / LANES).iter();
        out.extend(columns.map(|column| column.load(Portable)[row % LANES]));
    }
}
