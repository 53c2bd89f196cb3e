//! Logit bias: a constant added to the logits of some tokens.

use super::{
    error::PipelineError,
    row::Row,
    stage::{Stage, StageKind, Step},
};
use crate::vocabulary::TokenId;

/// Adds a constant to the logit of each listed token.
#[derive(Clone, Debug)]
pub struct LogitBias {
    biases: Vec<(TokenId, f32)>,
}

impl LogitBias {
    /// Creates the stage. Two biases on one token add up.
    ///
    /// # Errors
    ///
    /// Fails when a bias is not finite.
    pub fn new(
        biases: Vec<(TokenId, f32)>,
    ) -> Result<LogitBias, PipelineError> {
        match biases.iter().find(|(_, bias)| !bias.is_finite()) {
            None => Ok(LogitBias { biases }),
            Some(&(_, bias)) => Err(PipelineError::OutOfRange {
                option: "logit_bias",
                given: f64::from(bias),
                range: "finite for every token",
            }),
        }
    }
}

impl Stage for LogitBias {
    fn name(&self) -> &'static str {
        "logit_bias"
    }

    fn kind(&self) -> StageKind {
        StageKind::Score
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        _: &Step<'_>,
    ) -> Result<(), PipelineError> {
        for &(token, bias) in &self.biases {
            if token.index() >= row.n_logits() {
                return Err(PipelineError::UnknownToken {
                    stage: "logit_bias",
                    token,
                    n_logits: row.n_logits(),
                });
            }
            row.edit(token, |logit| logit + bias);
        }
        Ok(())
    }
}
