//! Dynamic temperature (kalomaze, koboldcpp, 2023): the surer the model, the
//! lower the temperature.

use super::{
    error::PipelineError,
    row::Row,
    stage::{Stage, StageKind, Step},
    temperature::GREEDY_BELOW,
};

/// Divides every logit by a temperature between `temperature - range` and
/// `temperature + range`, which grows with the entropy H of what is left:
/// low + (high - low)·(H / ln n)^exponent for n tokens.
///
/// It stands where [`Temperature`](super::Temperature) stands and has its
/// name. The rule is llama.cpp's.
#[derive(Clone, Copy, Debug)]
pub struct DynamicTemperature {
    low: f64,
    high: f64,
    exponent: f64,
}

impl DynamicTemperature {
    /// Creates the stage.
    ///
    /// # Errors
    ///
    /// Fails when the temperature is less than 0.00001, the range or the
    /// exponent less than 0, or one of them not finite.
    pub fn new(
        temperature: f32,
        range: f32,
        exponent: f32,
    ) -> Result<DynamicTemperature, PipelineError> {
        let checks = [
            ("temperature", temperature, GREEDY_BELOW, "at least 0.00001"),
            ("dynamic_temperature_range", range, 0.0, "at least 0"),
            ("dynamic_temperature_exponent", exponent, 0.0, "at least 0"),
        ];
        for (option, given, least, range) in checks {
            if !(given >= least && given.is_finite()) {
                let given = f64::from(given);
                return Err(PipelineError::OutOfRange {
                    option,
                    given,
                    range,
                });
            }
        }
        let [temperature, range] = [temperature, range].map(f64::from);
        Ok(DynamicTemperature {
            low: (temperature - range).max(0.0),
            high: temperature + range,
            exponent: f64::from(exponent),
        })
    }
}

impl Stage for DynamicTemperature {
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
        let n_left = row.n_left();
        if n_left < 2 {
            return Ok(());
        }
        let (_, entropy) = row.mass_and_entropy();
        #[expect(
            clippy::cast_precision_loss,
            reason = "no vocabulary has that many tokens"
        )]
        let share = (entropy / (n_left as f64).ln()).clamp(0.0, 1.0);
        let temperature =
            self.low + (self.high - self.low) * share.powf(self.exponent);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "rounding to a logit's precision"
        )]
        let temperature = temperature as f32;
        if temperature < GREEDY_BELOW {
            let max = row.max();
            row.keep_at_least(max);
            row.keep_ties(max, 1);
        } else {
            row.edit_all(|logit| logit / temperature);
        }
        Ok(())
    }
}
