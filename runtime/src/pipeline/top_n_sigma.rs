//! Top-nσ (Tang et al., 2024): keep what stands out of the noise of logits.

use super::{
    error::PipelineError,
    row::Row,
    stage::{Stage, StageKind, Step},
};

/// Keeps the tokens whose logit is at most `n` standard deviations below the
/// greatest. Forbidden tokens are no part of the deviation.
#[derive(Clone, Copy, Debug)]
pub struct TopNSigma {
    n: f32,
}

impl TopNSigma {
    /// Creates the stage.
    ///
    /// # Errors
    ///
    /// Fails when `n` is negative or not finite.
    pub fn new(n: f32) -> Result<TopNSigma, PipelineError> {
        if n >= 0.0 && n.is_finite() {
            return Ok(TopNSigma { n });
        }
        Err(PipelineError::OutOfRange {
            option: "top_n_sigma",
            given: f64::from(n),
            range: "at least 0 and finite; 0 turns it off",
        })
    }
}

impl Stage for TopNSigma {
    fn name(&self) -> &'static str {
        "top_n_sigma"
    }

    fn kind(&self) -> StageKind {
        StageKind::Truncate
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        _: &Step<'_>,
    ) -> Result<(), PipelineError> {
        if self.n <= 0.0 {
            return Ok(());
        }
        let max = row.max();
        let (values, _) = row.values();
        let left = || {
            let finite = values.iter().filter(|v| **v > f32::NEG_INFINITY);
            finite.map(|&value| f64::from(value))
        };
        let (count, sum) =
            left().fold((0.0, 0.0), |(n, sum), value| (n + 1.0, sum + value));
        if count < 2.0 {
            return Ok(());
        }
        let mean = sum / count;
        let squares: f64 = left().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / count).sqrt();
        let bound = f64::from(max) - f64::from(self.n) * deviation;
        row.keep_at_least_near(bound);
        Ok(())
    }
}
