//! Repetition penalty (Keskar et al., CTRL, 2019): what was seen weighs less.

use super::{
    error::PipelineError,
    row::Row,
    stage::{Stage, StageKind, Step},
};
use crate::vocabulary::TokenId;

/// Divides the positive logits of seen tokens by a factor and multiplies the
/// negative ones by it: dividing those would reward repetition.
#[derive(Clone, Copy, Debug)]
pub struct RepetitionPenalty {
    factor: f32,
    with_prompt: bool,
    last_n: Option<usize>,
}

impl RepetitionPenalty {
    /// Creates the stage. Tokens of the prompt count as seen if
    /// `with_prompt`.
    ///
    /// # Errors
    ///
    /// Fails when the factor is not positive and finite.
    pub fn new(
        factor: f32,
        with_prompt: bool,
    ) -> Result<RepetitionPenalty, PipelineError> {
        if factor > 0.0 && factor.is_finite() {
            return Ok(RepetitionPenalty {
                factor,
                with_prompt,
                last_n: None,
            });
        }
        Err(PipelineError::OutOfRange {
            option: "repetition_penalty",
            given: f64::from(factor),
            range: "greater than 0 and finite; 1 turns it off",
        })
    }

    /// Counts only what is among the last `n` tokens as seen.
    #[must_use]
    pub fn of_last(mut self, n: Option<usize>) -> RepetitionPenalty {
        self.last_n = n;
        self
    }

    fn penalize(self, row: &mut Row<'_>, token: TokenId) {
        row.edit(token, |logit| {
            if logit > 0.0 { logit / self.factor } else { logit * self.factor }
        });
    }
}

impl Stage for RepetitionPenalty {
    fn name(&self) -> &'static str {
        "repetition_penalty"
    }

    fn kind(&self) -> StageKind {
        StageKind::Score
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        step: &Step<'_>,
    ) -> Result<(), PipelineError> {
        let history = step.history;
        if let Some(last_n) = self.last_n {
            for (token, _) in history.counts_of_last(last_n, self.with_prompt)
            {
                self.penalize(row, token);
            }
        } else if self.with_prompt {
            for token in history.distinct() {
                self.penalize(row, token);
            }
        } else {
            for &(token, _) in history.output_counts() {
                self.penalize(row, token);
            }
        }
        Ok(())
    }
}
