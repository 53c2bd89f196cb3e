//! Rotary position embedding: each pair of a head's entries is turned by an
//! angle that grows with the position.

use super::error::ModelError;

/// How positions turn the entries of queries and keys.
#[derive(Clone, Debug)]
pub(super) struct Rope {
    /// The base of the frequencies.
    pub(super) base: f64,
    /// The leading entries of a head that are turned; an even number.
    pub(super) n_dims: usize,
    /// Which entries form a pair.
    pub(super) pairing: Pairing,
    /// How the frequencies were stretched for long contexts.
    pub(super) scaling: Scaling,
    /// What turned entries are multiplied by.
    pub(super) magnitude: f32,
}

/// Which entries of a head form a pair.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Pairing {
    /// Entries `2i` and `2i + 1`: GGUF files of the llama architecture, whose
    /// converter reorders the rows of the weights for it.
    Neighbours,
    /// Entries `i` and `i + n / 2`: safetensors.
    Halves,
}

/// How the frequencies were stretched for long contexts.
#[derive(Clone, Debug)]
pub(super) enum Scaling {
    /// Not at all.
    None,
    /// All by one factor.
    Linear {
        /// What the frequencies are divided by.
        factor: f64,
    },
    /// Llama 3: low frequencies by the factor, high ones not, and a ramp
    /// between the two.
    Llama3 {
        /// What low frequencies are divided by.
        factor: f64,
        /// Wavelengths above `original_length / low` are low frequencies.
        low: f64,
        /// Wavelengths below `original_length / high` are high frequencies.
        high: f64,
        /// The context length before it was stretched.
        original_length: f64,
    },
    /// YaRN ([Peng et al. 2023](https://arxiv.org/abs/2309.00071)): pairs
    /// that turn seldom by the factor, pairs that turn often not, and a ramp
    /// over the pairs between the two.
    Yarn {
        /// What low frequencies are divided by.
        factor: f64,
        /// The turns in `original_length` positions of the first pair that
        /// is not stretched.
        fast: f64,
        /// Those of the last pair that is stretched whole.
        slow: f64,
        /// The context length before it was stretched.
        original_length: f64,
        /// Whether the ramp begins and ends at whole pairs.
        is_truncated: bool,
    },
    /// Each frequency by its own factor.
    Factors(Vec<f32>),
}

#[expect(
    clippy::cast_precision_loss,
    reason = "dimensions and positions are far below 2^52"
)]
impl Rope {
    /// Returns the angle per position of each pair.
    pub(super) fn frequencies(&self) -> Vec<f64> {
        (0..self.n_dims / 2)
            .map(|pair| {
                let exponent = 2.0 * pair as f64 / self.n_dims as f64;
                self.scale(pair, self.base.powf(-exponent))
            })
            .collect()
    }

    /// Refuses what has no frequencies.
    pub(super) fn check(&self) -> Result<(), ModelError> {
        let n_pairs = self.n_dims / 2;
        match &self.scaling {
            Scaling::Factors(factors) if factors.len() != n_pairs => {
                return Err(ModelError::Option {
                    option: "rope factors".into(),
                    value: format!("{} numbers", factors.len()),
                    way_out: format!("{n_pairs} are, one for each pair"),
                });
            }
            _ => {}
        }
        let all = self.frequencies();
        if all.iter().all(|x| x.is_finite()) && self.magnitude.is_finite() {
            return Ok(());
        }
        Err(ModelError::Option {
            option: "rope".into(),
            value: format!("{self:?}"),
            way_out: "its frequencies must be finite".into(),
        })
    }

    fn scale(&self, pair: usize, frequency: f64) -> f64 {
        match &self.scaling {
            Scaling::None => frequency,
            Scaling::Linear { factor } => frequency / factor,
            Scaling::Factors(factors) => {
                frequency / factors.get(pair).copied().map_or(1.0, f64::from)
            }
            Scaling::Llama3 { factor, low, high, original_length } => {
                let turns =
                    original_length * frequency / std::f64::consts::TAU;
                let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                frequency * (kept + (1.0 - kept) / factor)
            }
            Scaling::Yarn {
                factor,
                fast,
                slow,
                original_length,
                is_truncated,
            } => {
                let pair_of = |turns: f64| {
                    let wavelength = original_length / turns;
                    self.n_dims as f64
                        * (wavelength / std::f64::consts::TAU).ln()
                        / (2.0 * self.base.ln())
                };
                let (mut low, mut high) = (pair_of(*fast), pair_of(*slow));
                if *is_truncated {
                    (low, high) = (low.floor(), high.ceil());
                }
                low = low.max(0.0);
                high = high.min(self.n_dims as f64 - 1.0);
                // A ramp over nothing is a step.
                high = high.max(low + 0.001);
                let stretched =
                    ((pair as f64 - low) / (high - low)).clamp(0.0, 1.0);
                frequency * (stretched / factor + 1.0 - stretched)
            }
        }
    }
}

/// Returns what LongRoPE multiplies turned entries by where the file does not
/// say ([Ding et al. 2024](https://arxiv.org/abs/2402.13753)).
pub(super) fn longrope_magnitude(factor: f64, original: f64) -> f64 {
    if factor <= 1.0 {
        1.0
    } else {
        (1.0 + factor.ln() / original.ln()).sqrt()
    }
}

/// The sines and cosines of the positions of one forward pass.
#[derive(Debug)]
pub(super) struct Angles {
    pairing: Pairing,
    n_pairs: usize,
    /// For each position the cosines of all pairs, then the sines.
    table: Vec<f32>,
}

impl Angles {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "angles are computed wide and stored narrow; positions are \
                  far below 2^52"
    )]
    /// Computes them, with the frequencies of `rope`.
    pub(super) fn new(
        rope: &Rope,
        frequencies: &[f64],
        positions: impl Iterator<Item = usize>,
    ) -> Angles {
        let magnitude = f64::from(rope.magnitude);
        let mut table = Vec::new();
        for position in positions {
            let angles = frequencies.iter().map(|f| f * position as f64);
            let cosines = angles.clone().map(f64::cos);
            table.extend(cosines.map(|x| (x * magnitude) as f32));
            table.extend(angles.map(|x| (x.sin() * magnitude) as f32));
        }
        Angles { pairing: rope.pairing, n_pairs: frequencies.len(), table }
    }

    /// Returns the cosines of all positions, and the sines.
    pub(super) fn split(&self) -> (Vec<f32>, Vec<f32>) {
        let n = self.n_pairs.max(1);
        let halves = |from| {
            let rows = self.table.chunks_exact(n).skip(from).step_by(2);
            rows.flatten().copied().collect()
        };
        (halves(0), halves(1))
    }

    /// Turns each head of a row by the angles of the row's position.
    pub(super) fn turn(&self, row: usize, heads: &mut [f32], head_dim: usize) {
        let start = row * 2 * self.n_pairs;
        let (cosines, sines) =
            self.table[start..start + 2 * self.n_pairs].split_at(self.n_pairs);
        for head in heads.chunks_exact_mut(head_dim) {
            match self.pairing {
                Pairing::Neighbours => {
                    let (pairs, _) = head.as_chunks_mut::<2>();
                    for (([a, b], cos), sin) in
                        pairs.iter_mut().zip(cosines).zip(sines)
                    {
                        (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
                    }
                }
                Pairing::Halves => {
                    let (first, second) =
                        head[..2 * self.n_pairs].split_at_mut(self.n_pairs);
                    for (((a, b), cos), sin) in
                        first.iter_mut().zip(second).zip(cosines).zip(sines)
                    {
                        (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rope(scaling: Scaling) -> Rope {
        Rope {
            base: 500_000.0,
            n_dims: 64,
            pairing: Pairing::Halves,
            scaling,
            magnitude: 1.0,
        }
    }

    #[test]
    fn turning_keeps_lengths_and_relative_angles() {
        for pairing in [Pairing::Neighbours, Pairing::Halves] {
            let rope = Rope { pairing, ..rope(Scaling::None) };
            let angles = Angles::new(&rope, &rope.frequencies(), 0..40);
            let head: Vec<f32> = (0..64u8).map(f32::from).collect();
            let product = |a: usize, b: usize| {
                let (mut x, mut y) = (head.clone(), head.clone());
                angles.turn(a, &mut x, 64);
                angles.turn(b, &mut y, 64);
                x.iter().zip(&y).map(|(x, y)| x * y).sum::<f32>()
            };
            let relative = |a, b| (product(5, 0) / product(a, b) - 1.0).abs();
            assert!(relative(35, 30) < 1e-4);
            assert!((product(7, 7) / product(0, 0) - 1.0).abs() < 1e-5);
            assert!((product(30, 0) / product(0, 0) - 1.0).abs() > 1e-2);
        }
    }

    #[test]
    fn llama_3_scaling_divides_low_frequencies_only() {
        let plain = rope(Scaling::None).frequencies();
        let scaled = rope(Scaling::Llama3 {
            factor: 32.0,
            low: 1.0,
            high: 4.0,
            original_length: 8192.0,
        })
        .frequencies();
        let ratio: Vec<f64> =
            plain.iter().zip(&scaled).map(|(p, s)| p / s).collect();
        assert!((ratio[0] - 1.0).abs() < 1e-12);
        assert!((ratio[31] - 32.0).abs() < 1e-9);
        assert!(ratio.windows(2).all(|pair| pair[0] <= pair[1] + 1e-9));
        // Position 17 lies on the ramp: 2.387 turns in 8192 positions.
        let turns: f64 = 8192.0 * plain[17] / std::f64::consts::TAU;
        let kept = (turns - 1.0) / 3.0;
        assert!((0.0..1.0).contains(&kept), "{turns}");
        let expected = 1.0 / (kept + (1.0 - kept) / 32.0);
        assert!((ratio[17] - expected).abs() < 1e-9);
    }

    #[test]
    fn factors_and_linear_scaling_divide() {
        let plain = rope(Scaling::None).frequencies();
        let linear = rope(Scaling::Linear { factor: 4.0 }).frequencies();
        let factors = rope(Scaling::Factors(vec![4.0; 32])).frequencies();
        for ((p, l), f) in plain.iter().zip(&linear).zip(&factors) {
            assert!((p / l - 4.0).abs() < 1e-12);
            assert!((p / f - 4.0).abs() < 1e-12);
        }
    }
}
