//! OpenAI's frequency and presence penalties: output tokens lose a constant,
//! once a time or once.

use super::{
    error::PipelineError,
    row::Row,
    stage::{Stage, StageKind, Step},
};

/// Subtracts from the logit of each token of the output `frequency` times
/// its count, and `presence`. The prompt does not count.
#[derive(Clone, Copy, Debug)]
pub struct FrequencyPresencePenalty {
    frequency: f32,
    presence: f32,
}

impl FrequencyPresencePenalty {
    /// Creates the stage.
    ///
    /// # Errors
    ///
    /// Fails when a penalty is not from -2 to 2.
    pub fn new(
        frequency: f32,
        presence: f32,
    ) -> Result<FrequencyPresencePenalty, PipelineError> {
        for (option, given) in
            [("frequency_penalty", frequency), ("presence_penalty", presence)]
        {
            if !(-2.0..=2.0).contains(&given) {
                return Err(PipelineError::OutOfRange {
                    option,
                    given: f64::from(given),
                    range: "from -2 to 2; 0 turns it off",
                });
            }
        }
        Ok(FrequencyPresencePenalty { frequency, presence })
    }
}

impl Stage for FrequencyPresencePenalty {
    fn name(&self) -> &'static str {
        "frequency_presence_penalty"
    }

    fn kind(&self) -> StageKind {
        StageKind::Score
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        step: &Step<'_>,
    ) -> Result<(), PipelineError> {
        for &(token, count) in step.history.output_counts() {
            #[expect(
                clippy::cast_precision_loss,
                reason = "a count of 16 million is already beyond any output"
            )]
            let count = count as f32;
            let penalty = self.frequency * count + self.presence;
            row.edit(token, |logit| logit - penalty);
        }
        Ok(())
    }
}
