//! Min-p (Nguyen et al., 2024): keep what is likely next to the likeliest.

use super::{
    error::PipelineError,
    row::Row,
    stage::{Stage, StageKind, Step},
};

/// Keeps the tokens at least `p` times as likely as the likeliest one.
#[derive(Clone, Copy, Debug)]
pub struct MinP {
    p: f32,
}

impl MinP {
    /// Creates the stage.
    ///
    /// # Errors
    ///
    /// Fails when `p` is not from 0 to 1.
    pub fn new(p: f32) -> Result<MinP, PipelineError> {
        if (0.0..=1.0).contains(&p) {
            return Ok(MinP { p });
        }
        Err(PipelineError::OutOfRange {
            option: "min_p",
            given: f64::from(p),
            range: "from 0 to 1; 0 turns it off",
        })
    }
}

impl Stage for MinP {
    fn name(&self) -> &'static str {
        "min_p"
    }

    fn kind(&self) -> StageKind {
        StageKind::Truncate
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        _: &Step<'_>,
    ) -> Result<(), PipelineError> {
        // A ratio of probabilities is a difference of logits, so there is no
        // softmax to compute.
        row.keep_at_least_near(f64::from(row.max()) + f64::from(self.p).ln());
        Ok(())
    }
}
