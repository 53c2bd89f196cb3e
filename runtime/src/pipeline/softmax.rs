//! Exponentials over a row, written so that the compiler vectorises them.

/// How many partial sums run side by side; also the grain of every loop here.
const LANES: usize = 16;

/// Returns e to the power of `x`, for `x` at most zero.
///
/// The relative error is below 3e-7 down to -87, below which the answer is
/// zero: next to the strongest token such a probability cannot be drawn.
///
/// PERF: the standard library's exponential is a call per element. This one
/// is straight-line arithmetic that LLVM turns into vector code.
pub(super) fn exp(x: f32) -> f32 {
    /// Adding it rounds to an integer, which then lies in the low bits.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    const FACTORIALS: [f32; 8] = [
        1.0 / 5040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        1.0 / 2.0,
        1.0,
        1.0,
    ];
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let exponent = shifted - ROUND;
    let rest = x - exponent * LN_2_HIGH - exponent * LN_2_LOW;
    let mut sum = 0.0;
    for factor in FACTORIALS {
        sum = sum * rest + factor;
    }
    let biased = shifted.to_bits().wrapping_sub(ROUND.to_bits() - 127);
    let scale = f32::from_bits(biased << 23);
    if x < -87.0 { 0.0 } else { sum * scale }
}

/// Returns the greatest value, or minus infinity for none. NaN is passed
/// over.
pub(super) fn max(values: &[f32]) -> f32 {
    let greater = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = greater(*lane, value);
        }
    }
    lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, greater)
}

/// Returns where the greatest value is first; none if there is no value above
/// minus infinity. NaN is passed over.
pub(super) fn first_greatest(values: &[f32]) -> Option<usize> {
    /// What is searched one by one once it is known to have the greatest.
    const BLOCK: usize = 1_024;
    let mut greatest = f32::NEG_INFINITY;
    let mut found = None;
    for (index, block) in values.chunks(BLOCK).enumerate() {
        let max = max(block);
        if max > greatest {
            greatest = max;
            found = Some(index * BLOCK);
        }
    }
    let start = found?;
    let place = values[start..].iter().position(|&v| v >= greatest);
    place.map(|place| start + place)
}

/// Returns true if and only if no value is NaN or positive infinity.
pub(super) fn all_good(values: &[f32]) -> bool {
    // PERF: as wide as the values, so that a comparison's bits stay in place.
    let mut n_good = [0_u32; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, &value) in n_good.iter_mut().zip(chunk) {
            *lane += u32::from(value <= f32::MAX);
        }
    }
    let n_good: u64 = n_good.iter().map(|&lane| u64::from(lane)).sum();
    n_good == (chunks.len() * LANES) as u64
        && rest.iter().all(|&v| v <= f32::MAX)
}

/// Returns the sum of e to the power of each value less `max`.
pub(super) fn mass(values: &[f32], max: f32) -> f64 {
    /// Weights are made a block at a time and then summed: as one loop, the
    /// compiler unrolls it and finds no vectors.
    const BLOCK: usize = 256;
    let mut weights = [0.0; BLOCK];
    let mut lanes = [0.0_f64; LANES];
    for block in values.chunks(BLOCK) {
        let weights = &mut weights[..block.len()];
        for (weight, &value) in weights.iter_mut().zip(block) {
            *weight = exp(value - max);
        }
        for chunk in weights.chunks(LANES) {
            for (lane, &weight) in lanes.iter_mut().zip(chunk) {
                *lane += f64::from(weight);
            }
        }
    }
    lanes.into_iter().sum()
}

/// Returns the sum of the weights, e to the power of each value less `max`,
/// and the sum of each weight times its exponent.
pub(super) fn moments(values: &[f32], max: f32) -> (f64, f64) {
    let mut mass = [0.0_f64; LANES];
    let mut moment = [0.0_f64; LANES];
    for chunk in values.chunks(LANES) {
        let lanes = mass.iter_mut().zip(&mut moment);
        for ((mass, moment), &value) in lanes.zip(chunk) {
            let weight = exp(value - max);
            // Nothing times minus infinity is nothing here.
            let exponent = (value - max).max(-128.0);
            *mass += f64::from(weight);
            *moment += f64::from(weight * exponent);
        }
    }
    (mass.into_iter().sum(), moment.into_iter().sum())
}

/// Returns the logarithm of the sum of the exponentials of a row, so that a
/// token's log-probability is its logit less this.
///
/// The answer for a row with no finite logit is minus infinity.
pub fn log_sum_exp(logits: &[f32]) -> f64 {
    let max = max(logits);
    if max == f32::NEG_INFINITY {
        return f64::NEG_INFINITY;
    }
    f64::from(max) + mass(logits, max).ln()
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "some answers are exact")]
mod tests {
    use super::*;

    #[test]
    fn the_first_greatest_is_found_in_every_block() {
        assert_eq!(first_greatest(&[]), None);
        let none = [f32::NEG_INFINITY; 3_000];
        assert_eq!(first_greatest(&none), None);
        for places in [&[0][..], &[1_023], &[1_024, 1_025], &[7, 2_999]] {
            let mut values = none;
            values[5] = -9.0;
            for &place in places {
                values[place] = 2.5;
            }
            assert_eq!(first_greatest(&values), Some(places[0]));
            values[places[0]] = f32::NAN;
            let next = places.get(1).copied().unwrap_or(5);
            assert_eq!(first_greatest(&values), Some(next));
        }
    }

    #[test]
    fn one_bad_value_is_found_anywhere() {
        for bad in [f32::NAN, -f32::NAN, f32::INFINITY] {
            for place in 0..50 {
                let mut values = [f32::NEG_INFINITY; 50];
                assert!(all_good(&values));
                values[place] = bad;
                assert!(!all_good(&values));
            }
        }
    }

    #[test]
    fn exp_is_close_to_the_exact_one() {
        let mut x = 0.0_f32;
        while x > -87.0 {
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact).abs() / exact;
            assert!(error < 3e-7, "exp({x}) is off by {error}");
            x -= 0.001_37;
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-87.5), 0.0);
        assert_eq!(exp(f32::MIN), 0.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
    }

    #[test]
    fn reductions_agree_with_plain_loops_at_every_length() {
        for length in 0..70_u16 {
            let values: Vec<f32> =
                (0..length).map(|i| f32::from(i * 37 % 23) - 11.0).collect();
            let greatest =
                values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(max(&values), greatest);
            let exact: f64 =
                values.iter().map(|&v| f64::from(v).exp()).sum::<f64>().ln();
            let close = log_sum_exp(&values);
            assert!(close == exact || (close - exact).abs() < 1e-6);
            assert!(all_good(&values));
            for bad in [f32::NAN, f32::INFINITY] {
                for place in 0..values.len() {
                    let mut values = values.clone();
                    values[place] = bad;
                    assert!(!all_good(&values));
                }
            }
        }
    }
}
