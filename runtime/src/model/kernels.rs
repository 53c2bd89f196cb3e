//! The loops between the matrix products, over plain slices.
//!
//! Each works on one row and adds in a fixed order, so that a row's result
//! does not depend on what else is in the batch. They are written for the
//! auto-vectoriser, fixed-width lanes and no early exits, and compiled for
//! each of the processors that `simd` tells apart. Results go into slices: what
//! `Vec::extend` is given runs in a function of the standard library, which is
//! compiled for the oldest processor.

use super::simd::{LANES, Simd, Version, with_simd};

pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    with_simd!(Version::best(), simd => dot_by(simd, a, b))
}

#[inline(always)]
fn dot_by<S: Simd>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    let mut sums = simd.splat(0.0);
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        sums = simd.fma(simd.load(a), simd.load(b), sums);
    }
    let mut lanes = simd.store(sums);
    let mut width = LANES / 2;
    while width > 0 {
        let (low, high) = lanes.split_at_mut(width);
        for (low, high) in low.iter_mut().zip(high) {
            *low += *high;
        }
        width /= 2;
    }
    let rest = a_rest.iter().zip(b_rest);
    rest.fold(lanes[0], |sum, (a, b)| simd.mul_add(*a, *b, sum))
}

/// Adds `weight * source` to `sum`.
pub(super) fn add_scaled(sum: &mut [f32], weight: f32, source: &[f32]) {
    with_simd!(Version::best(), simd => {
        for (sum, x) in sum.iter_mut().zip(source) {
            *sum = simd.mul_add(weight, *x, *sum);
        }
    });
}

/// Adds `source` to `sum`.
pub(super) fn add(sum: &mut [f32], source: &[f32]) {
    for (sum, x) in sum.iter_mut().zip(source) {
        *sum += x;
    }
}

/// Divides each row by its root mean square and scales it by `weight`.
pub(super) fn rms_norm(
    rows: &[f32],
    weight: &[f32],
    epsilon: f32,
    out: &mut Vec<f32>,
) {
    out.clear();
    out.resize(rows.len(), 0.0);
    with_simd!(Version::best(), simd => {
        let outs = out.chunks_exact_mut(weight.len());
        for (row, out) in rows.chunks_exact(weight.len()).zip(outs) {
            let scale = rms_scale(dot_by(simd, row, row), row.len(), epsilon);
            for ((out, x), w) in out.iter_mut().zip(row).zip(weight) {
                *out = x * scale * w;
            }
        }
    });
}

/// Divides each row of `weight.len()` entries by its root mean square and
/// scales it by `weight`, in place.
pub(super) fn rms_norm_in_place(
    rows: &mut [f32],
    weight: &[f32],
    epsilon: f32,
) {
    with_simd!(Version::best(), simd => {
        for row in rows.chunks_exact_mut(weight.len()) {
            let scale = rms_scale(dot_by(simd, row, row), row.len(), epsilon);
            for (x, w) in row.iter_mut().zip(weight) {
                *x = *x * scale * w;
            }
        }
    });
}

/// What a row of `len` entries is multiplied by, whose squares have this sum.
#[inline]
fn rms_scale(squares: f32, len: usize, epsilon: f32) -> f32 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "model dimensions are far below 2^24"
    )]
    let mean = squares / len as f32;
    1.0 / (mean + epsilon).sqrt()
}

/// Turns scores into weights that sum to one.
pub(super) fn softmax(scores: &mut [f32]) {
    with_simd!(Version::best(), simd => softmax_by(simd, scores));
}

#[inline(always)]
fn softmax_by<S: Simd>(simd: S, scores: &mut [f32]) {
    let max = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for score in scores.iter_mut() {
        *score = exp(simd, *score - max);
    }
    let scale = 1.0 / sum(scores);
    for score in scores {
        *score *= scale;
    }
}

#[inline(always)]
fn sum(values: &[f32]) -> f32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0f32; LANES];
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += x;
        }
    }
    lanes.iter().chain(rest).sum()
}

/// The gate of SwiGLU: `silu(gate) * up`, for rows that hold the gate's half
/// first.
pub(super) fn swiglu(gate_up: &[f32], width: usize, out: &mut Vec<f32>) {
    out.clear();
    out.resize(gate_up.len() / 2, 0.0);
    with_simd!(Version::best(), simd => {
        let outs = out.chunks_exact_mut(width);
        for (row, out) in gate_up.chunks_exact(2 * width).zip(outs) {
            let (gate, up) = row.split_at(width);
            for ((out, g), u) in out.iter_mut().zip(gate).zip(up) {
                *out = g / (1.0 + exp(simd, -g)) * u;
            }
        }
    });
}

/// The gate of GeGLU: `gelu(gate) * up`, as [`swiglu`], with the formula
/// `gelu(x) = x / (1 + e^-2u)`, `u = sqrt(2 / π) (x + 0.044715 x³)`.
pub(super) fn geglu(gate_up: &[f32], width: usize, out: &mut Vec<f32>) {
    const TWICE_ROOT: f32 = 1.595_769;
    out.clear();
    out.resize(gate_up.len() / 2, 0.0);
    with_simd!(Version::best(), simd => {
        let outs = out.chunks_exact_mut(width);
        for (row, out) in gate_up.chunks_exact(2 * width).zip(outs) {
            let (gate, up) = row.split_at(width);
            for ((out, g), u) in out.iter_mut().zip(gate).zip(up) {
                let inner = g * (0.044_715 * g * g + 1.0);
                *out = g / (1.0 + exp(simd, -TWICE_ROOT * inner)) * u;
            }
        }
    });
}

/// The exponential function for `f32`, within three units in the last place.
///
/// PERF: the standard library's is a call for each element and is not
/// vectorised; this is range reduction by powers of two and a polynomial,
/// as many elements at a time as a vector has. Results that a float cannot
/// hold become zero and infinity.
#[inline(always)]
#[expect(
    clippy::many_single_char_names,
    reason = "x, n, r, p and y are the names in every text on the subject"
)]
fn exp<S: Simd>(simd: S, x: f32) -> f32 {
    /// Added to a float of moderate size, it leaves the nearest integer in
    /// the low bits.
    const ROUNDER: f32 = 12_582_912.0;
    // Beyond these the result is 0 or infinite anyway; a bit of slack keeps
    // the exponent that is assembled below within its eight bits.
    let clamped = x.clamp(-87.336_54, 88.722_83);
    let shifted = simd.mul_add(clamped, std::f32::consts::LOG2_E, ROUNDER);
    let n = shifted - ROUNDER;
    // ln 2 in two parts, so that the reduction is exact to the last bit.
    let r = simd.mul_add(n, -0.693_359_4, clamped);
    let r = simd.mul_add(n, 2.121_944_4e-4, r);
    let mut p = 1.987_569_1e-4;
    for coefficient in
        [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5]
    {
        p = simd.mul_add(p, r, coefficient);
    }
    let y = simd.mul_add(p, r * r, r) + 1.0;
    // Two steps: 2^128 alone is not a float, but the product may be one.
    let n = shifted.to_bits().wrapping_sub(ROUNDER.to_bits()).cast_signed();
    let half = n >> 1;
    let scale =
        |n: i32| f32::from_bits((n.wrapping_add(127) << 23).cast_unsigned());
    let y = y * scale(half) * scale(n.wrapping_sub(half));
    if x < -87.336_54 {
        0.0
    } else if x > 88.722_83 {
        f32::INFINITY
    } else if x.is_nan() {
        x
    } else {
        y
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(n: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        (0..n)
            .map(|_| {
                state =
                    state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                f32::from(u16::try_from(state >> 16).expect("16 bits"))
                    / 32_768.0
                    - 1.0
            })
            .collect()
    }

    #[test]
    fn dot_agrees_with_the_exact_sum_at_every_width() {
        for n in 0..70 {
            let (a, b) = (values(n, 1), values(n, 2));
            let exact: f64 = a
                .iter()
                .zip(&b)
                .map(|(a, b)| f64::from(*a) * f64::from(*b))
                .sum();
            for version in Version::all() {
                let got = with_simd!(version, simd => dot_by(simd, &a, &b));
                let error = (f64::from(got) - exact).abs();
                assert!(error < 1e-5, "{version:?} {n}");
            }
        }
    }

    #[test]
    fn exp_stays_within_three_units_of_the_last_place() {
        for version in Version::all() {
            let exp = |x| with_simd!(version, simd => exp(simd, x));
            let mut x = -90.0f32;
            while x < 89.0 {
                let exact = f64::from(x).exp();
                let got = exp(x);
                if x < -87.336_54 {
                    assert_eq!(got.to_bits(), 0);
                } else if x < 88.722_83 {
                    let unit = exact * f64::from(f32::EPSILON);
                    let error = (f64::from(got) - exact).abs() / unit;
                    assert!(error < 3.0, "exp({x}) is off by {error} units");
                }
                x += 0.001_7;
            }
            assert_eq!(exp(f32::NEG_INFINITY).to_bits(), 0);
            assert!(exp(100.0).is_infinite());
            assert!(exp(f32::NAN).is_nan());
            assert_eq!(exp(0.0).to_bits(), 1.0f32.to_bits());
        }
    }

    #[test]
    fn softmax_sums_to_one_and_keeps_the_order() {
        let before = values(100, 3);
        for version in Version::all() {
            let mut scores = before.clone();
            with_simd!(version, simd => softmax_by(simd, &mut scores));
            assert!((scores.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            for (i, a) in before.iter().enumerate() {
                for (j, b) in before.iter().enumerate() {
                    assert!(a <= b || scores[i] >= scores[j]);
                }
            }
        }
    }

    #[test]
    fn rms_norm_gives_rows_of_unit_mean_square() {
        let rows = values(64, 4);
        let mut out = Vec::new();
        rms_norm(&rows, &[1.0; 32], 0.0, &mut out);
        for row in out.chunks(32) {
            let mean = row.iter().map(|x| x * x).sum::<f32>() / 32.0;
            assert!((mean - 1.0).abs() < 1e-5);
        }
    }

    #[test]
    fn geglu_gates_by_the_formula_with_the_hyperbolic_tangent() {
        let gates = values(64, 5);
        let row: Vec<f32> =
            gates.iter().map(|g| 6.0 * g).chain([1.0; 64]).collect();
        let mut out = Vec::new();
        geglu(&row, 64, &mut out);
        for (x, y) in row.iter().zip(out) {
            let x = f64::from(*x);
            let u = (2.0 / std::f64::consts::PI).sqrt()
                * (x + 0.044_715 * x.powi(3));
            let expected = 0.5 * x * (1.0 + u.tanh());
            assert!((f64::from(y) - expected).abs() < 1e-6, "{x}");
        }
    }

    #[test]
    fn swiglu_gates_the_second_half_by_the_first() {
        let mut out = Vec::new();
        swiglu(&[0.0, 2.0, 3.0, 5.0], 2, &mut out);
        let silu = 2.0 / (1.0 + (-2.0f32).exp());
        assert!(out[0].abs() < 1e-6);
        assert!((out[1] - silu * 5.0).abs() < 1e-5);
    }
}
