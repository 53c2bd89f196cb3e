//! Matrix products with four- and eight-bit weights, for x86-64 with AVX2.
//!
//! The tensor library multiplies `Q4_1`, the type of the default model, one
//! element at a time on this processor, and has vector code for `Q8_0` only
//! when the whole program is compiled for a newer processor than the
//! baseline. This is the one file with `unsafe` code: two inner loops, chosen
//! when the program runs.
//!
//! PERF: `python3 bench/decode_speed/compare.py`; on the default model, one
//! thread, 1.6 times the tokens per second of the library's fastest way
//! (the weights widened to `Q8_0`) when decoding and 2.3 times when reading
//! a prompt: see the page beside that script.
//! Where the features are missing, that way is taken.
//!
//! # Arithmetic
//!
//! Inputs are rounded to eight bits in blocks of 32, as the library and
//! llama.cpp do. A row of weights meets a row of inputs in one order of
//! additions whatever else is computed, so that a row of a batch does not
//! depend on the others.
#![allow(unsafe_code, reason = "measured above; the loops load whole blocks")]
#![allow(
    clippy::cast_ptr_alignment,
    reason = "the loads are those for addresses of any alignment"
)]

use std::arch::x86_64::{
    __m128i, __m256, __m256i, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32,
    _mm_loadu_si128, _mm_movehdup_ps, _mm_movehl_ps, _mm_srli_epi16,
    _mm256_abs_epi8, _mm256_add_ps, _mm256_and_si256, _mm256_castps256_ps128,
    _mm256_cvtepi32_ps, _mm256_cvtph_ps, _mm256_extractf128_ps,
    _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_madd_epi16,
    _mm256_maddubs_epi16, _mm256_mul_ps, _mm256_set_m128i, _mm256_set1_epi8,
    _mm256_set1_epi16, _mm256_set1_ps, _mm256_setzero_ps, _mm256_sign_epi8,
    _mm256_storeu_ps,
};

use candle_core::quantized::{GgmlDType, QTensor};
use rayon::prelude::*;

use super::error::ModelError;

/// The weights that share a scale.
const BLOCK: usize = 32;

/// The blocks whose scales are converted at once.
const GROUP: usize = 8;

/// Multiplications below which a product stays on one thread.
const MIN_PARALLEL_WORK: usize = 1 << 18;

/// A matrix whose blocks lie as the inner loops read them: the quants of a
/// row in one piece, its scales beside them in groups of eight.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    quants: Quants,
    /// Half-precision bits; each row is padded with zeros to whole groups.
    scales: Vec<[u16; GROUP]>,
    /// What is added to every weight of a block; empty for `Q8_0`.
    mins: Vec<[u16; GROUP]>,
    n_in: usize,
    n_out: usize,
}

#[derive(Clone, Debug)]
enum Quants {
    /// Two weights a byte: entry `i` in the low half, `i + 16` in the high.
    Four(Vec<[u8; BLOCK / 2]>),
    Eight(Vec<[i8; BLOCK]>),
}

/// Rows of inputs, rounded to eight bits.
struct Inputs {
    quants: Vec<[i8; BLOCK]>,
    /// Padded as the scales of the weights are.
    scales: Vec<[f32; GROUP]>,
    /// The sum of each block.
    sums: Vec<[f32; GROUP]>,
    n_rows: usize,
}

impl Packed {
    /// Packs a matrix, unless its type or this processor is another one.
    pub(super) fn new(weight: &QTensor) -> Result<Option<Packed>, ModelError> {
        let is_able = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        let (n_out, n_in) = weight.shape().dims2()?;
        if !is_able || !n_in.is_multiple_of(BLOCK) || n_in == 0 {
            return Ok(None);
        }
        let bytes = weight.data()?;
        let n_blocks = n_in / BLOCK;
        match weight.dtype() {
            GgmlDType::Q4_1 => {
                let (blocks, _) = bytes.as_chunks::<20>();
                let quants = blocks
                    .iter()
                    .map(|block| std::array::from_fn(|i| block[4 + i]))
                    .collect();
                Ok(Some(Packed {
                    quants: Quants::Four(quants),
                    scales: halves(blocks, 0, n_blocks),
                    mins: halves(blocks, 2, n_blocks),
                    n_in,
                    n_out,
                }))
            }
            GgmlDType::Q8_0 => {
                let (blocks, _) = bytes.as_chunks::<34>();
                let quants = blocks
                    .iter()
                    .map(|block| {
                        std::array::from_fn(|i| block[2 + i].cast_signed())
                    })
                    .collect();
                Ok(Some(Packed {
                    quants: Quants::Eight(quants),
                    scales: halves(blocks, 0, n_blocks),
                    mins: Vec::new(),
                    n_in,
                    n_out,
                }))
            }
            _ => Ok(None),
        }
    }

    /// Multiplies rows of inputs, and replaces `out` by rows of outputs.
    pub(super) fn forward(&self, rows: &[f32], out: &mut Vec<f32>) {
        let inputs = Inputs::new(rows, self.n_in);
        let n_rows = inputs.n_rows;
        out.clear();
        out.resize(self.n_out * n_rows, 0.0);
        if n_rows == 1 {
            self.multiply(&inputs, out);
            return;
        }
        // By output first, so that threads write apart; then turned over.
        let mut by_output = vec![0.0; out.len()];
        self.multiply(&inputs, &mut by_output);
        for (output, values) in by_output.chunks_exact(n_rows).enumerate() {
            for (row, value) in values.iter().enumerate() {
                out[row * self.n_out + output] = *value;
            }
        }
    }

    /// Fills `out` with the products of each output with each input row.
    fn multiply(&self, inputs: &Inputs, out: &mut [f32]) {
        let n_threads = rayon::current_num_threads();
        let work = self.n_in * out.len();
        if n_threads == 1 || work < MIN_PARALLEL_WORK {
            self.multiply_from(0, inputs, out);
            return;
        }
        let per_thread = self.n_out.div_ceil(n_threads);
        out.par_chunks_mut(per_thread * inputs.n_rows).enumerate().for_each(
            |(chunk, out)| {
                self.multiply_from(chunk * per_thread, inputs, out);
            },
        );
    }

    /// As [`Packed::multiply`], beginning with the output `first`.
    fn multiply_from(&self, first: usize, inputs: &Inputs, out: &mut [f32]) {
        // SAFETY: `new` makes a matrix only where the processor has the
        // features that these functions are compiled for.
        unsafe { self.multiply_from_avx2(first, inputs, out) }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    fn multiply_from_avx2(
        &self,
        first: usize,
        inputs: &Inputs,
        out: &mut [f32],
    ) {
        let n_blocks = self.n_in / BLOCK;
        let n_groups = n_blocks.div_ceil(GROUP);
        for (output, out) in (first..).zip(out.chunks_exact_mut(inputs.n_rows))
        {
            let blocks = output * n_blocks..(output + 1) * n_blocks;
            let groups = output * n_groups..(output + 1) * n_groups;
            let scales = &self.scales[groups.clone()];
            for (row, out) in out.iter_mut().enumerate() {
                let input = inputs.row(row, n_blocks, n_groups);
                *out = match &self.quants {
                    Quants::Four(quants) => dot_four(
                        &quants[blocks.clone()],
                        scales,
                        &self.mins[groups.clone()],
                        &input,
                    ),
                    Quants::Eight(quants) => {
                        dot_eight(&quants[blocks.clone()], scales, &input)
                    }
                };
            }
        }
    }

    /// Appends the weights of one row, widened.
    pub(super) fn widen_row(&self, row: usize, out: &mut Vec<f32>) {
        let n_blocks = self.n_in / BLOCK;
        let n_groups = n_blocks.div_ceil(GROUP);
        for block in 0..n_blocks {
            let group = row * n_groups + block / GROUP;
            let scale = widen(self.scales[group][block % GROUP]);
            let index = row * n_blocks + block;
            match &self.quants {
                Quants::Four(quants) => {
                    let min = widen(self.mins[group][block % GROUP]);
                    let low = quants[index].iter().map(|byte| byte & 15);
                    let high = quants[index].iter().map(|byte| byte >> 4);
                    out.extend(
                        low.chain(high)
                            .map(|quant| f32::from(quant) * scale + min),
                    );
                }
                Quants::Eight(quants) => {
                    out.extend(
                        quants[index].iter().map(|q| f32::from(*q) * scale),
                    );
                }
            }
        }
    }
}

/// Collects the half-precision number at `at` of each block, row by row.
fn halves<const N: usize>(
    blocks: &[[u8; N]],
    at: usize,
    n_blocks: usize,
) -> Vec<[u16; GROUP]> {
    let mut out = Vec::new();
    for row in blocks.chunks_exact(n_blocks) {
        for group in row.chunks(GROUP) {
            let mut bits = [0; GROUP];
            for (bits, block) in bits.iter_mut().zip(group) {
                *bits = u16::from_le_bytes([block[at], block[at + 1]]);
            }
            out.push(bits);
        }
    }
    out
}

/// Widens a half-precision number.
fn widen(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let exponent = u32::from(bits >> 10 & 31);
    let fraction = u32::from(bits & 0x3ff);
    match exponent {
        0 => {
            // Zero and subnormal numbers: multiples of 2^-24.
            let value = f32::from(bits & 0x3ff) * 2f32.powi(-24);
            if sign == 0 { value } else { -value }
        }
        31 => f32::from_bits(sign | 255 << 23 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

/// One row of inputs.
struct Input<'a> {
    quants: &'a [[i8; BLOCK]],
    scales: &'a [[f32; GROUP]],
    sums: &'a [[f32; GROUP]],
}

impl Inputs {
    fn new(rows: &[f32], n_in: usize) -> Inputs {
        let n_rows = rows.len() / n_in;
        let n_blocks = n_in / BLOCK;
        let mut inputs = Inputs {
            quants: Vec::with_capacity(n_rows * n_blocks),
            scales: Vec::new(),
            sums: Vec::new(),
            n_rows,
        };
        for row in rows.chunks_exact(n_in) {
            let (blocks, _) = row.as_chunks::<BLOCK>();
            for group in blocks.chunks(GROUP) {
                let mut scales = [0.0; GROUP];
                let mut sums = [0.0; GROUP];
                for ((block, scale), sum) in
                    group.iter().zip(&mut scales).zip(&mut sums)
                {
                    let quants;
                    (quants, *scale, *sum) = round(block);
                    inputs.quants.push(quants);
                }
                inputs.scales.push(scales);
                inputs.sums.push(sums);
            }
        }
        inputs
    }

    fn row(&self, row: usize, n_blocks: usize, n_groups: usize) -> Input<'_> {
        Input {
            quants: &self.quants[row * n_blocks..][..n_blocks],
            scales: &self.scales[row * n_groups..][..n_groups],
            sums: &self.sums[row * n_groups..][..n_groups],
        }
    }
}

/// Rounds a block to eight bits: the quants, their scale, and their sum times
/// the scale.
fn round(block: &[f32; BLOCK]) -> ([i8; BLOCK], f32, f32) {
    let max = block.iter().fold(0.0f32, |max, x| max.max(x.abs()));
    let scale = max / 127.0;
    let inverse = if max > 0.0 { 127.0 / max } else { 0.0 };
    let mut quants = [0i8; BLOCK];
    let mut sum = 0i32;
    for (quant, x) in quants.iter_mut().zip(block) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "at most 127 by construction, and a cast saturates"
        )]
        let rounded = (x * inverse).round_ties_even() as i32;
        sum += rounded;
        #[expect(clippy::cast_possible_truncation, reason = "as above")]
        let narrow = rounded as i8;
        *quant = narrow;
    }
    #[expect(clippy::cast_precision_loss, reason = "at most 32 * 127")]
    let sum = scale * sum as f32;
    (quants, scale, sum)
}

/// Loads the half-precision numbers of a group, widened.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn load_halves(bits: &[u16; GROUP]) -> __m256 {
    // SAFETY: the array is 16 bytes, which is what the load reads.
    let bits = unsafe { _mm_loadu_si128(bits.as_ptr().cast::<__m128i>()) };
    _mm256_cvtph_ps(bits)
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn load_floats(values: &[f32; GROUP]) -> __m256 {
    // SAFETY: the array is 32 bytes, which is what the load reads.
    unsafe { _mm256_loadu_ps(values.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn load_block(block: &[i8; BLOCK]) -> __m256i {
    // SAFETY: the array is 32 bytes, which is what the load reads.
    unsafe { _mm256_loadu_si256(block.as_ptr().cast::<__m256i>()) }
}

/// Unpacks 32 four-bit numbers into bytes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn load_nibbles(block: &[u8; BLOCK / 2]) -> __m256i {
    // SAFETY: the array is 16 bytes, which is what the load reads.
    let bytes = unsafe { _mm_loadu_si128(block.as_ptr().cast::<__m128i>()) };
    let both = _mm256_set_m128i(_mm_srli_epi16::<4>(bytes), bytes);
    _mm256_and_si256(both, _mm256_set1_epi8(15))
}

/// Multiplies unsigned by signed bytes and adds neighbours up to eight sums.
///
/// Neighbouring products are added in 16 bits first: at most 127 · 127 · 2,
/// which fits.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn multiply_bytes(unsigned: __m256i, signed: __m256i) -> __m256 {
    let pairs = _mm256_maddubs_epi16(unsigned, signed);
    let sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    _mm256_cvtepi32_ps(sums)
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn sum_lanes(lanes: __m256) -> f32 {
    let low = _mm256_castps256_ps128(lanes);
    let four = _mm_add_ps(low, _mm256_extractf128_ps::<1>(lanes));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}

/// Stores the products of two groups of scales.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn scale_products(a: __m256, b: __m256) -> [f32; GROUP] {
    let mut out = [0.0; GROUP];
    // SAFETY: the array is 32 bytes, which is what the store writes.
    unsafe { _mm256_storeu_ps(out.as_mut_ptr(), _mm256_mul_ps(a, b)) };
    out
}

/// The product of a row of `Q4_1` weights with a row of inputs.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn dot_four(
    quants: &[[u8; BLOCK / 2]],
    scales: &[[u16; GROUP]],
    mins: &[[u16; GROUP]],
    input: &Input<'_>,
) -> f32 {
    let mut even = _mm256_setzero_ps();
    let mut odd = _mm256_setzero_ps();
    let mut offset = _mm256_setzero_ps();
    let weights = quants.chunks(GROUP).zip(scales.iter().zip(mins));
    let inputs =
        input.quants.chunks(GROUP).zip(input.scales.iter().zip(input.sums));
    for ((quants, (scale, min)), (xs, (x_scale, x_sum))) in weights.zip(inputs)
    {
        let scales = scale_products(load_halves(scale), load_floats(x_scale));
        offset = _mm256_fmadd_ps(load_halves(min), load_floats(x_sum), offset);
        for ((block, x), scale) in quants.iter().zip(xs).zip(scales) {
            let sums = multiply_bytes(load_nibbles(block), load_block(x));
            let next = _mm256_fmadd_ps(sums, _mm256_set1_ps(scale), even);
            // Two sums take turns, so that one addition need not wait for
            // the one before.
            (even, odd) = (odd, next);
        }
    }
    sum_lanes(_mm256_add_ps(_mm256_add_ps(even, odd), offset))
}

/// The product of a row of `Q8_0` weights with a row of inputs.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn dot_eight(
    quants: &[[i8; BLOCK]],
    scales: &[[u16; GROUP]],
    input: &Input<'_>,
) -> f32 {
    let mut even = _mm256_setzero_ps();
    let mut odd = _mm256_setzero_ps();
    let weights = quants.chunks(GROUP).zip(scales);
    let inputs = input.quants.chunks(GROUP).zip(input.scales);
    for ((quants, scale), (xs, x_scale)) in weights.zip(inputs) {
        let scales = scale_products(load_halves(scale), load_floats(x_scale));
        for ((block, x), scale) in quants.iter().zip(xs).zip(scales) {
            let block = load_block(block);
            // The sign of each weight moves to its input.
            let x = _mm256_sign_epi8(load_block(x), block);
            let sums = multiply_bytes(_mm256_abs_epi8(block), x);
            let next = _mm256_fmadd_ps(sums, _mm256_set1_ps(scale), even);
            (even, odd) = (odd, next);
        }
    }
    sum_lanes(_mm256_add_ps(even, odd))
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};

    use super::*;

    fn values(n: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let high = u16::try_from(state >> 16).expect("16 bits");
            f32::from(high) / 32_768.0 - 1.0
        })
        .take(n)
        .collect()
    }

    fn weight(n_out: usize, n_in: usize, dtype: GgmlDType) -> QTensor {
        let values = values(n_out * n_in, 7);
        let tensor = Tensor::from_vec(values, (n_out, n_in), &Device::Cpu);
        QTensor::quantize(&tensor.expect("a tensor"), dtype)
            .expect("blocks fit")
    }

    fn widened(weight: &QTensor) -> Vec<Vec<f32>> {
        weight
            .dequantize(&Device::Cpu)
            .and_then(|tensor| tensor.to_vec2())
            .expect("a matrix")
    }

    /// The safe twin: the same rounded numbers, added in `f64`.
    fn twin(weight: &[f32], input: &[f32]) -> f64 {
        let (blocks, _) = input.as_chunks::<BLOCK>();
        let rounded = blocks.iter().flat_map(|block| {
            let (quants, scale, _) = round(block);
            quants.map(|quant| f64::from(quant) * f64::from(scale))
        });
        weight.iter().zip(rounded).map(|(w, x)| f64::from(*w) * x).sum()
    }

    const TYPES: [GgmlDType; 2] = [GgmlDType::Q4_1, GgmlDType::Q8_0];

    #[test]
    fn products_agree_with_the_safe_twin() {
        for dtype in TYPES {
            for (n_out, n_in, n_rows) in
                [(1, 32, 1), (5, 576, 1), (9, 256, 3), (70, 1536, 4)]
            {
                let weight = weight(n_out, n_in, dtype);
                let Some(packed) = Packed::new(&weight).expect("packs") else {
                    return;
                };
                let inputs = values(n_rows * n_in, 3);
                let mut out = vec![9.0];
                packed.forward(&inputs, &mut out);
                assert_eq!(out.len(), n_rows * n_out);
                let rows = widened(&weight);
                for (out, input) in out.chunks(n_out).zip(inputs.chunks(n_in))
                {
                    for (out, row) in out.iter().zip(&rows) {
                        let expected = twin(row, input);
                        let error = (f64::from(*out) - expected).abs();
                        assert!(error < 1e-3, "{dtype:?} {n_in}: {error}");
                    }
                }
            }
        }
    }

    #[test]
    fn rows_do_not_depend_on_each_other() {
        for dtype in TYPES {
            let weight = weight(40, 576, dtype);
            let Some(packed) = Packed::new(&weight).expect("packs") else {
                return;
            };
            let inputs = values(6 * 576, 5);
            let (mut all, mut one) = (Vec::new(), Vec::new());
            packed.forward(&inputs, &mut all);
            for (all, input) in all.chunks(40).zip(inputs.chunks(576)) {
                packed.forward(input, &mut one);
                assert_eq!(all, one);
            }
        }
    }

    #[test]
    fn rows_widen_as_the_library_widens_them() {
        for dtype in TYPES {
            let weight = weight(3, 320, dtype);
            let Some(packed) = Packed::new(&weight).expect("packs") else {
                return;
            };
            for (index, expected) in widened(&weight).iter().enumerate() {
                let mut row = Vec::new();
                packed.widen_row(index, &mut row);
                assert_eq!(row, *expected, "{dtype:?}");
            }
        }
    }

    #[test]
    fn half_precision_numbers_are_widened() {
        for (bits, value) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x0001, 5.960_464_5e-8),
            (0x83ff, -6.097_555e-5),
            (0x7bff, 65_504.0),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(widen(bits).to_bits(), f32::to_bits(value), "{bits:x}");
        }
        assert_eq!(widen(0x8000).to_bits(), (-0.0f32).to_bits());
        assert!(widen(0x7e00).is_nan());
    }
}
