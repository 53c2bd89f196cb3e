//! Temperature: how much the differences between logits count.

use super::{
    error::PipelineError,
    row::Row,
    stage::{Stage, StageKind, Step},
};

/// Below this a temperature means greedy decoding: the division would only
/// overflow. The bound is vLLM's.
pub(super) const GREEDY_BELOW: f32 = 1e-5;

/// Divides every logit by the temperature.
#[derive(Clone, Copy, Debug)]
pub struct Temperature {
    temperature: f32,
}

impl Temperature {
    /// Creates the stage.
    ///
    /// # Errors
    ///
    /// Fails when the temperature is less than 0.00001 or not finite. Zero
    /// means greedy decoding, which is no division but a
    /// [`Choose::Greedy`](super::Choose).
    pub fn new(temperature: f32) -> Result<Temperature, PipelineError> {
        if temperature >= GREEDY_BELOW && temperature.is_finite() {
            return Ok(Temperature { temperature });
        }
        Err(PipelineError::OutOfRange {
            option: "temperature",
            given: f64::from(temperature),
            range: "at least 0.00001 and finite for a stage of its own",
        })
    }
}

impl Stage for Temperature {
    fn name(&self) -> &'static str {
        "temperature"
    }

    fn kind(&self) -> StageKind {
        StageKind::Temperature
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        _: &Step<'_>,
    ) -> Result<(), PipelineError> {
        row.edit_all(|logit| logit / self.temperature);
        Ok(())
    }
}
