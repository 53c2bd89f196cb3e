//! XTC, "exclude top choices" (p-e-w, text-generation-webui #6335, 2024):
//! now and then, the obvious is left out.

use super::{
    choice::{Purpose, uniform},
    error::PipelineError,
    row::Row,
    softmax,
    stage::{Stage, StageKind, Step},
};

/// With a probability, drops all tokens at least as likely as the threshold
/// but the least likely of them.
///
/// Whether it does depends on the seed and the position alone, and on chance
/// independent of the draw's.
#[derive(Clone, Copy, Debug)]
pub struct Xtc {
    probability: f32,
    threshold: f32,
    seed: u64,
}

impl Xtc {
    /// Creates the stage.
    ///
    /// # Errors
    ///
    /// Fails when the probability or the threshold is not from 0 to 1.
    pub fn new(
        probability: f32,
        threshold: f32,
        seed: u64,
    ) -> Result<Xtc, PipelineError> {
        let checks = [
            ("xtc_probability", probability, "from 0 to 1; 0 turns it off"),
            ("xtc_threshold", threshold, "from 0 to 1; above 0.5 it is off"),
        ];
        for (option, given, range) in checks {
            if !(0.0..=1.0).contains(&given) {
                let given = f64::from(given);
                return Err(PipelineError::OutOfRange {
                    option,
                    given,
                    range,
                });
            }
        }
        Ok(Xtc { probability, threshold, seed })
    }
}

impl Stage for Xtc {
    fn name(&self) -> &'static str {
        "xtc"
    }

    fn kind(&self) -> StageKind {
        StageKind::Truncate
    }

    #[expect(clippy::float_cmp, reason = "a tie is exact")]
    fn apply(
        &self,
        row: &mut Row<'_>,
        step: &Step<'_>,
    ) -> Result<(), PipelineError> {
        // Two tokens cannot both be likelier than one half.
        if self.probability <= 0.0 || self.threshold > 0.5 {
            return Ok(());
        }
        // The same at every attempt of a position: what is refused is
        // drawn again from the same distribution.
        let chance = uniform(Purpose::Xtc, self.seed, step.position, 0);
        if chance > f64::from(self.probability) {
            return Ok(());
        }
        let max = row.max();
        let mass = row.mass();
        let least = mass * f64::from(self.threshold);
        let is_top =
            |logit: f32| f64::from(softmax::exp(logit - max)) >= least;
        let mut n_top = 0_usize;
        let mut weakest = f32::INFINITY;
        let mut n_weakest = 0_usize;
        row.visit(|one| {
            if one.logit > f32::NEG_INFINITY && is_top(one.logit) {
                n_top += 1;
                if one.logit < weakest {
                    (weakest, n_weakest) = (one.logit, 0);
                }
                n_weakest += usize::from(one.logit == weakest);
            }
            true
        });
        if n_top < 2 {
            return Ok(());
        }
        // Of several that are weakest, the last stands for them.
        row.retain(|one| {
            if one.logit == weakest {
                n_weakest -= 1;
                return n_weakest == 0;
            }
            one.logit < weakest
        });
        Ok(())
    }
}
