//! Sequence bias: a constant added to the token that completes a sequence.

use super::{
    error::PipelineError,
    row::Row,
    stage::{Stage, StageKind, Step},
    tokens::check_known,
};
use crate::vocabulary::TokenId;

/// Adds a constant to the logit of the last token of each sequence wherever
/// the tokens before it stand at the end of prompt and output.
#[derive(Clone, Debug)]
pub struct SequenceBias {
    biases: Vec<(Vec<TokenId>, f32)>,
}

impl SequenceBias {
    /// Creates the stage. Biases on one token add up.
    ///
    /// # Errors
    ///
    /// Fails when a bias is not finite or a sequence is empty.
    pub fn new(
        biases: Vec<(Vec<TokenId>, f32)>,
    ) -> Result<SequenceBias, PipelineError> {
        let option = "sequence_bias";
        for (sequence, bias) in &biases {
            if sequence.is_empty() {
                return Err(PipelineError::EmptySequence { option });
            }
            if !bias.is_finite() {
                return Err(PipelineError::OutOfRange {
                    option,
                    given: f64::from(*bias),
                    range: "finite for every sequence",
                });
            }
        }
        Ok(SequenceBias { biases })
    }
}

impl Stage for SequenceBias {
    fn name(&self) -> &'static str {
        "sequence_bias"
    }

    fn kind(&self) -> StageKind {
        StageKind::Score
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        step: &Step<'_>,
    ) -> Result<(), PipelineError> {
        for (sequence, bias) in &self.biases {
            let Some((&last, rest)) = sequence.split_last() else { continue };
            check_known("sequence_bias", [last], row)?;
            if step.history.tokens().ends_with(rest) {
                row.edit(last, |logit| logit + bias);
            }
        }
        Ok(())
    }
}
