//! The options of sampling that users set, with their ranges.

use super::{
    choice::Choose, error::PipelineError, order::Pipeline,
    temperature::GREEDY_BELOW,
};
use crate::vocabulary::TokenId;

/// The options of sampling, as users know them.
///
/// The default draws from the model's own distribution: temperature 1 and
/// everything else off.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingOptions {
    /// How much chance there is: at least 0. Below 0.00001 the strongest
    /// token is taken, without chance.
    pub temperature: f32,
    /// Keep this many of the strongest tokens; 0 keeps all.
    pub top_k: usize,
    /// Keep the strongest tokens that reach this probability: from 0 to 1;
    /// 1 keeps all.
    pub top_p: f32,
    /// Keep tokens this likely next to the likeliest: from 0 to 1; 0 keeps
    /// all.
    pub min_p: f32,
    /// Weaken what was seen by this factor: greater than 0; 1 is off.
    pub repetition_penalty: f32,
    /// Whether the repetition penalty counts the prompt as seen.
    pub repetition_with_prompt: bool,
    /// Subtracted once for each time a token is in the output: from -2 to 2.
    pub frequency_penalty: f32,
    /// Subtracted once if a token is in the output: from -2 to 2.
    pub presence_penalty: f32,
    /// Added to the logits of these tokens; finite.
    pub logit_bias: Vec<(TokenId, f32)>,
    /// The seed of the draws.
    pub seed: u64,
}

impl Default for SamplingOptions {
    fn default() -> SamplingOptions {
        SamplingOptions {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            repetition_with_prompt: true,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            logit_bias: Vec::new(),
            seed: 0,
        }
    }
}

impl SamplingOptions {
    /// Returns the options that take the strongest token at every step.
    pub fn greedy() -> SamplingOptions {
        SamplingOptions { temperature: 0.0, ..SamplingOptions::default() }
    }

    /// Returns true if and only if these options leave nothing to chance.
    pub fn is_greedy(&self) -> bool {
        self.temperature < GREEDY_BELOW
    }

    /// Returns the options that are set and have no effect, by name, for
    /// whoever wants to warn about them.
    pub fn ignored(&self) -> Vec<&'static str> {
        let set = [
            ("top_k", self.top_k != 0),
            ("top_p", self.top_p < 1.0),
            ("min_p", self.min_p > 0.0),
            ("seed", self.seed != 0),
        ];
        let is_greedy = self.is_greedy();
        set.into_iter()
            .filter(|&(_, is_set)| is_set && is_greedy)
            .map(|(option, _)| option)
            .collect()
    }

    /// Builds the pipeline with these options in the default order.
    ///
    /// # Errors
    ///
    /// Fails when an option is out of range, and says which and what the
    /// range is.
    pub fn build(&self) -> Result<Pipeline, PipelineError> {
        Pipeline::builder().options(self.clone()).build()
    }

    /// Returns how a token is chosen.
    ///
    /// # Errors
    ///
    /// Fails when the temperature is negative or not finite.
    pub(super) fn choose(&self) -> Result<Choose, PipelineError> {
        if !(self.temperature >= 0.0 && self.temperature.is_finite()) {
            return Err(PipelineError::OutOfRange {
                option: "temperature",
                given: f64::from(self.temperature),
                range: "at least 0 and finite; 0 is greedy",
            });
        }
        Ok(if self.is_greedy() {
            Choose::Greedy
        } else {
            Choose::Draw { seed: self.seed }
        })
    }
}
