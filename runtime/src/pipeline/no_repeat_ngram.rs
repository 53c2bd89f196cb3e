//! No repeated n-grams (Paulus et al., 2017): what was said is not said again.

use super::{
    error::PipelineError,
    row::Row,
    stage::{Stage, StageKind, Step},
};

/// Forbids the tokens that would complete an n-gram of prompt and output,
/// unless nothing else is possible: the grammar never yields, this does.
#[derive(Clone, Copy, Debug)]
pub struct NoRepeatNgram {
    n: usize,
}

impl NoRepeatNgram {
    /// Creates the stage.
    ///
    /// # Errors
    ///
    /// Fails when `n` is zero.
    pub fn new(n: usize) -> Result<NoRepeatNgram, PipelineError> {
        if n > 0 {
            return Ok(NoRepeatNgram { n });
        }
        Err(PipelineError::OutOfRange {
            option: "no_repeat_ngram_size",
            given: 0.0,
            range: "at least 1 for a stage of its own",
        })
    }
}

impl Stage for NoRepeatNgram {
    fn name(&self) -> &'static str {
        "no_repeat_ngram"
    }

    fn kind(&self) -> StageKind {
        StageKind::Forbid
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        step: &Step<'_>,
    ) -> Result<(), PipelineError> {
        let tokens = step.history.tokens();
        if tokens.len() < self.n {
            return Ok(());
        }
        let prefix = &tokens[tokens.len() - (self.n - 1)..];
        for window in tokens.windows(self.n) {
            if let Some((&last, rest)) = window.split_last()
                && rest == prefix
            {
                row.forbid_softly(last);
            }
        }
        Ok(())
    }
}
