//! Rotary position embedding: each pair of a head's entries is turned by an
//! angle that grows with the position.

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
        }
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
    pub(super) fn new(
        pairing: Pairing,
        frequencies: &[f64],
        positions: impl Iterator<Item = usize>,
    ) -> Angles {
        let mut table = Vec::new();
        for position in positions {
            let angles = frequencies.iter().map(|f| f * position as f64);
            table.extend(angles.clone().map(|angle| angle.cos() as f32));
            table.extend(angles.map(|angle| angle.sin() as f32));
        }
        Angles { pairing, n_pairs: frequencies.len(), table }
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
        Rope { base: 500_000.0, n_dims: 64, pairing: Pairing::Halves, scaling }
    }

    #[test]
    fn turning_keeps_lengths_and_relative_angles() {
        for pairing in [Pairing::Neighbours, Pairing::Halves] {
            let frequencies = rope(Scaling::None).frequencies();
            let angles = Angles::new(pairing, &frequencies, 0..40);
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
