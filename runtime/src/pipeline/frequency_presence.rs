//! OpenAI's frequency and presence penalties: output tokens lose a constant,
//! once a time or once.

use super::{
    error::PipelineError,
    row::Row,
    stage::{Stage, StageKind, Step},
};
use crate::vocabulary::TokenId;

/// Subtracts from the logit of each token of the output `frequency` times
/// its count, and `presence`. The prompt does not count, unless llama.cpp's
/// window is asked for.
#[derive(Clone, Copy, Debug)]
pub struct FrequencyPresencePenalty {
    frequency: f32,
    presence: f32,
    /// How many tokens at the end count, and whether those of the prompt do.
    window: Option<(usize, bool)>,
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
        Ok(FrequencyPresencePenalty { frequency, presence, window: None })
    }

    /// Counts only what is among the last `n` tokens, of the prompt too if
    /// `with_prompt`, as llama.cpp does.
    #[must_use]
    pub fn of_last(
        mut self,
        n: Option<usize>,
        with_prompt: bool,
    ) -> FrequencyPresencePenalty {
        self.window = n.map(|n| (n, with_prompt));
        self
    }

    fn penalize(self, row: &mut Row<'_>, token: TokenId, count: u32) {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a count of 16 million is already beyond any output"
        )]
        let count = count as f32;
        let penalty = self.frequency * count + self.presence;
        row.edit(token, |logit| logit - penalty);
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
        let history = step.history;
        if let Some((last_n, with_prompt)) = self.window {
            for (token, count) in history.counts_of_last(last_n, with_prompt) {
                self.penalize(row, token, count);
            }
        } else {
            for &(token, count) in history.output_counts() {
                self.penalize(row, token, count);
            }
        }
        Ok(())
    }
}
