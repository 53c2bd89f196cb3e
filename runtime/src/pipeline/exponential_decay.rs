//! Exponential decay of length: past a length, an end grows likelier with
//! every token.

use super::{
    error::PipelineError,
    row::Row,
    stage::{Stage, StageKind, Step},
};
use crate::vocabulary::TokenId;

/// Adds to the logit z of each end token |z|·(factor^n - 1), where n is by
/// how many tokens the output is longer than `start`.
#[derive(Clone, Debug)]
pub struct ExponentialDecay {
    start: usize,
    factor: f32,
    ends: Vec<TokenId>,
}

/// What a logit grows to at most, so that later stages do not overflow.
const GREATEST: f64 = 1e30;

impl ExponentialDecay {
    /// Creates the stage.
    ///
    /// # Errors
    ///
    /// Fails when the factor is not positive and finite, and when there are
    /// no end tokens.
    pub fn new(
        start: usize,
        factor: f32,
        ends: Vec<TokenId>,
    ) -> Result<ExponentialDecay, PipelineError> {
        let option = "exponential_decay_length_penalty";
        if !(factor > 0.0 && factor.is_finite()) {
            return Err(PipelineError::OutOfRange {
                option,
                given: f64::from(factor),
                range: "greater than 0 and finite; 1 turns it off",
            });
        }
        if ends.is_empty() {
            let needs = "the ids of the end tokens";
            return Err(PipelineError::Incomplete { option, needs });
        }
        Ok(ExponentialDecay { start, factor, ends })
    }
}

impl Stage for ExponentialDecay {
    fn name(&self) -> &'static str {
        "exponential_decay"
    }

    fn kind(&self) -> StageKind {
        StageKind::Score
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        step: &Step<'_>,
    ) -> Result<(), PipelineError> {
        let n_output = step.history.output().len();
        let n_beyond = n_output.saturating_sub(self.start);
        if n_beyond == 0 {
            return Ok(());
        }
        let power = i32::try_from(n_beyond).unwrap_or(i32::MAX);
        let growth = f64::from(self.factor).powi(power) - 1.0;
        for &end in &self.ends {
            row.edit(end, |logit| {
                let logit = f64::from(logit);
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "rounding to a logit's precision"
                )]
                let grown =
                    (logit + logit.abs() * growth).min(GREATEST) as f32;
                grown
            });
        }
        Ok(())
    }
}
