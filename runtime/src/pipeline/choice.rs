//! The end of a step: one token is chosen.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};

use super::row::{Candidate, Row};
use crate::vocabulary::TokenId;

/// How a token is chosen from what the stages left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Choose {
    /// The strongest token, the one with the lowest id among equals.
    Greedy,
    /// One draw from the softmax. It depends on the seed and on the position
    /// in the output alone (and, where draws are refused, on how many were):
    /// not on what else is in a batch, nor on what was drawn before.
    Draw {
        /// The seed of the request.
        seed: u64,
    },
}

/// The token that a step chose.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// The token.
    pub token: TokenId,
    /// Its logit after all stages.
    pub logit: f32,
    /// What a stage learnt from it, for [`History::observe`].
    ///
    /// [`History::observe`]: super::History::observe
    pub memory: Option<f32>,
    /// The stages that yielded, a bit for each; [`Pipeline::yielded`] has
    /// their names.
    ///
    /// [`Pipeline::yielded`]: super::Pipeline::yielded
    pub(super) yielded: u64,
}

impl Choice {
    /// Returns true if and only if a stage gave up what it wanted to forbid,
    /// because nothing else would have been left.
    pub fn has_yielded(&self) -> bool {
        self.yielded != 0
    }
}

impl Choose {
    /// Chooses, or returns `None` when every token is forbidden.
    pub(super) fn choose(
        self,
        row: &Row<'_>,
        position: u64,
        attempt: u64,
    ) -> Option<Candidate> {
        match self {
            Choose::Greedy => row.greatest(),
            Choose::Draw { seed } => row.at_mass(
                row.mass() * uniform(Purpose::Token, seed, position, attempt),
            ),
        }
    }
}

/// What a random number decides. Numbers for different purposes are
/// independent of one another.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// Which token is drawn.
    Token = 0,
    /// Whether XTC is on.
    Xtc = 1,
    /// Which beams go on.
    #[cfg(feature = "generator")]
    Beams = 2,
}

/// Returns the number in [0, 1) that belongs to a seed, a position and an
/// attempt.
///
/// ChaCha is random access: every position has a stream of its own, so no
/// state is carried from step to step.
pub(super) fn uniform(
    purpose: Purpose,
    seed: u64,
    position: u64,
    attempt: u64,
) -> f64 {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8] = purpose as u8;
    let mut generator = ChaCha8Rng::from_seed(key);
    generator.set_stream(position);
    // A number takes two words of the stream.
    generator.set_word_pos(u128::from(attempt) * 2);
    let bits = generator.next_u64();
    // The upper 53 bits, as many as the mantissa holds; both parts are exact.
    let [high, low] = [bits >> 32, bits >> 11 & 0x1f_ffff]
        .map(|part| u32::try_from(part).unwrap_or(u32::MAX));
    (f64::from(high) + f64::from(low) / f64::from(1 << 21)) / 4_294_967_296.0
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the draw is exact or wrong")]
mod tests {
    use super::*;

    fn uniform(seed: u64, position: u64, attempt: u64) -> f64 {
        super::uniform(Purpose::Token, seed, position, attempt)
    }

    #[test]
    fn uniform_depends_on_seed_and_position_and_is_uniform() {
        assert_eq!(uniform(1, 2, 0), uniform(1, 2, 0));
        assert_ne!(uniform(1, 2, 0), uniform(1, 3, 0));
        assert_ne!(uniform(1, 2, 0), uniform(2, 2, 0));
        assert_ne!(uniform(1, 2, 0), uniform(1, 2, 1));
        assert_ne!(uniform(1, 2, 0), super::uniform(Purpose::Xtc, 1, 2, 0));
        let places = (0..100).flat_map(|s| (0..100).map(move |p| (s, p)));
        let drawn: Vec<f64> = places.map(|(s, p)| uniform(s, p, 0)).collect();
        for tenth in 0..10 {
            let bounds = f64::from(tenth) / 10.0..f64::from(tenth + 1) / 10.0;
            let count = drawn.iter().filter(|x| bounds.contains(x)).count();
            // Five standard deviations of a binomial count are 150.
            assert!(count.abs_diff(1000) < 150, "{count} in {bounds:?}");
        }
    }

    #[test]
    fn uniform_never_changes() {
        // A seed that a user wrote down must give the same text next year.
        assert_eq!(uniform(0, 0, 0), PINNED[0]);
        assert_eq!(uniform(42, 7, 0), PINNED[1]);
    }

    /// From another implementation of ChaCha8: the seed is the key's first
    /// eight bytes, the position the stream.
    const PINNED: [f64; 2] =
        [0.836_919_756_882_647_2, 0.185_679_389_544_405_1];
}
