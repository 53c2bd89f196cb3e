//! Matrix products with weights of any type that models come in.
//!
//! The tensor library multiplies several of these types one element at a
//! time on processors of the kind that programs are built for, and its
//! products for some depend on how many rows are multiplied at once. These
//! do neither: every type runs through the vectors of `simd`.
//!
//! # Arithmetic
//!
//! Where weights are quantised, inputs are rounded to eight bits in blocks
//! of 32. A row of weights lies in a lane of its own, and meets a row of
//! inputs in one order of additions whatever else is computed. So what comes
//! of a row has the same bits alone, in a batch, and on any number of
//! threads.

mod blocks;
mod floats;
mod inputs;
mod quantised;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QTensor};
use rayon::prelude::*;

use self::blocks::{
    Centred, Eight, Five, Four, Shifted, SuperCentred, SuperShifted,
};
use self::floats::{Bf16, F16, F32, Floats};
use self::quantised::Quantised;
use super::error::ModelError;
use super::simd::{LANES, Simd, Version, with_simd};

/// Multiplications below which a product stays on one thread.
const MIN_PARALLEL_WORK: usize = 1 << 18;

/// The pieces of work for each thread, so that one which is held up leaves
/// some of its own to the others.
const TASKS_PER_THREAD: usize = 4;

/// Inputs that are multiplied at once: what stays in a cache while the
/// weights pass by.
const MAX_INPUTS: usize = 1 << 17;

/// A matrix in the order in which products read it.
#[derive(Clone)]
pub(super) struct Packed {
    matrix: Arc<dyn Product>,
    n_in: usize,
    n_out: usize,
}

impl Packed {
    /// Packs a matrix, unless its type has no product here.
    pub(super) fn new(weight: &QTensor) -> Result<Option<Packed>, ModelError> {
        let (n_out, n_in) = weight.shape().dims2()?;
        let dtype = weight.dtype();
        let matrix = pack(dtype, &weight.data()?, n_in);
        Ok(matrix.map(|matrix| Packed { matrix, n_in, n_out }))
    }

    /// Multiplies rows of inputs, and replaces `out` by rows of outputs.
    pub(super) fn forward(&self, rows: &[f32], out: &mut Vec<f32>) {
        self.forward_by(Version::best(), rows, out);
    }

    fn forward_by(&self, version: Version, rows: &[f32], out: &mut Vec<f32>) {
        out.clear();
        out.resize(rows.len() / self.n_in * self.n_out, 0.0);
        let n_rows = (MAX_INPUTS / self.n_in).next_multiple_of(8).max(8);
        for (rows, out) in rows
            .chunks(n_rows * self.n_in)
            .zip(out.chunks_mut(n_rows * self.n_out))
        {
            self.matrix.multiply_rows(version, rows, out, self.n_out);
        }
    }

    /// Appends the weights of one row, widened.
    pub(super) fn widen_row(&self, row: usize, out: &mut Vec<f32>) {
        self.matrix.widen_row(row, out);
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packed")
            .field("n_in", &self.n_in)
            .field("n_out", &self.n_out)
            .finish_non_exhaustive()
    }
}

fn pack(
    dtype: GgmlDType,
    bytes: &[u8],
    n_in: usize,
) -> Option<Arc<dyn Product>> {
    fn product<P: Panels + 'static>(
        matrix: Option<P>,
    ) -> Option<Arc<dyn Product>> {
        Some(Arc::new(matrix?))
    }
    match dtype {
        GgmlDType::F32 => product(Floats::<F32>::new(bytes, n_in)),
        GgmlDType::F16 => product(Floats::<F16>::new(bytes, n_in)),
        GgmlDType::BF16 => product(Floats::<Bf16>::new(bytes, n_in)),
        GgmlDType::Q4_0 => {
            product(Quantised::<Centred<Four>>::new(bytes, n_in))
        }
        GgmlDType::Q4_1 => {
            product(Quantised::<Shifted<Four>>::new(bytes, n_in))
        }
        GgmlDType::Q5_0 => {
            product(Quantised::<Centred<Five>>::new(bytes, n_in))
        }
        GgmlDType::Q5_1 => {
            product(Quantised::<Shifted<Five>>::new(bytes, n_in))
        }
        GgmlDType::Q8_0 => {
            product(Quantised::<Centred<Eight>>::new(bytes, n_in))
        }
        GgmlDType::Q4K => {
            product(Quantised::<SuperShifted<Four>>::new(bytes, n_in))
        }
        GgmlDType::Q5K => {
            product(Quantised::<SuperShifted<Five>>::new(bytes, n_in))
        }
        GgmlDType::Q6K => product(Quantised::<SuperCentred>::new(bytes, n_in)),
        _ => None,
    }
}

/// What a matrix of any type can do.
trait Product: Send + Sync {
    /// Fills rows of `n_out` entries.
    fn multiply_rows(
        &self,
        version: Version,
        rows: &[f32],
        out: &mut [f32],
        n_out: usize,
    );

    fn widen_row(&self, row: usize, out: &mut Vec<f32>);
}

/// A matrix of one type: panels of sixteen rows.
trait Panels: Send + Sync {
    type Inputs: Send + Sync;

    /// The panels that are best multiplied together.
    const GROUP: usize;

    fn n_in(&self) -> usize;

    /// Brings rows of inputs into the form that products read.
    fn prepare<S: Simd>(&self, simd: S, rows: &[f32]) -> Self::Inputs;

    /// Fills a strip of each output row. The strips begin with the first row
    /// of the panel `first`.
    fn multiply<S: Simd>(
        &self,
        simd: S,
        first: usize,
        inputs: &Self::Inputs,
        outs: &mut [&mut [f32]],
    );

    /// Appends the weights of one row.
    fn widen(&self, row: usize, out: &mut Vec<f32>);
}

impl<P: Panels> Product for P {
    fn multiply_rows(
        &self,
        version: Version,
        rows: &[f32],
        out: &mut [f32],
        n_out: usize,
    ) {
        let inputs = with_simd!(version, simd => self.prepare(simd, rows));
        let n_threads = rayon::current_num_threads();
        let is_parallel =
            n_threads > 1 && self.n_in() * out.len() >= MIN_PARALLEL_WORK;
        let n_tasks =
            if is_parallel { n_threads * TASKS_PER_THREAD } else { 1 };
        let n_panels = n_out
            .div_ceil(LANES)
            .div_ceil(n_tasks)
            .next_multiple_of(P::GROUP)
            .max(1);
        let multiply = |task: usize, outs: &mut [&mut [f32]]| {
            let first = task * n_panels;
            with_simd!(version, simd => {
                self.multiply(simd, first, &inputs, outs);
            });
        };
        let mut tasks = strips(out, n_out, n_panels * LANES);
        if is_parallel {
            tasks
                .par_iter_mut()
                .enumerate()
                .for_each(|(task, outs)| multiply(task, outs));
        } else {
            for (task, outs) in tasks.iter_mut().enumerate() {
                multiply(task, outs);
            }
        }
    }

    fn widen_row(&self, row: usize, out: &mut Vec<f32>) {
        self.widen(row, out);
    }
}

/// Cuts rows into strips of `width` columns.
fn strips(
    out: &mut [f32],
    n_out: usize,
    width: usize,
) -> Vec<Vec<&mut [f32]>> {
    let n_rows = out.len() / n_out;
    let mut strips: Vec<_> =
        std::iter::repeat_with(|| Vec::with_capacity(n_rows))
            .take(n_out.div_ceil(width))
            .collect();
    for row in out.chunks_exact_mut(n_out) {
        for (strip, part) in strips.iter_mut().zip(row.chunks_mut(width)) {
            strip.push(part);
        }
    }
    strips
}

/// Writes what a panel gives for one row of inputs, up to the end of the row.
#[inline(always)]
fn store(out: &mut [f32], column: usize, values: [f32; LANES]) {
    let out = &mut out[column..];
    if let Some(out) = out.first_chunk_mut() {
        *out = values;
    } else {
        let n = out.len();
        out.copy_from_slice(&values[..n]);
    }
}
