//! What is said about sampling, and by whom: the user, the model, an order.
//!
//! [`Settings`] are [`SamplingOptions`] in which anything may be left unsaid,
//! flat and under the names that users write. [`SettingLayers`] puts several
//! of them on top of one another and says what came of it.

use serde::{Deserialize, Serialize};

use super::{
    mirostat::MirostatVersion,
    options::{MirostatOptions, SamplingOptions},
    order::Order,
};
use crate::vocabulary::TokenId;

/// Declares the settings once, and all that goes over each of them.
///
/// There are many, since this is the flat list that users know.
macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        /// What somebody says about sampling; nothing where they say nothing.
        ///
        /// Read from JSON it refuses names that there are not.
        #[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Settings {
            $(
                $(#[$doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $name: Option<$type>,
            )*
        }

        impl Settings {
            /// Returns these settings, and those of `other` where these say
            /// nothing.
            #[must_use]
            pub fn over(self, other: &Settings) -> Settings {
                Settings { $($name: self.$name.or(other.$name.clone()),)* }
            }

            /// Returns what is said, by name, as JSON.
            pub fn said(&self) -> Vec<(&'static str, serde_json::Value)> {
                let mut said = Vec::new();
                $(
                    if let Some(value) = &self.$name {
                        // Numbers and lists of them are always JSON.
                        let value = serde_json::to_value(value);
                        said.push((stringify!($name), value.unwrap_or_default()));
                    }
                )*
                said
            }

            /// Takes back what is said under a name, and returns it.
            pub(super) fn take(&mut self, name: &str) -> Option<serde_json::Value> {
                match name {
                    $(stringify!($name) => {
                        let value = self.$name.take()?;
                        serde_json::to_value(value).ok()
                    })*
                    _ => None,
                }
            }
        }
    };
}

settings! {
    /// [`SamplingOptions::temperature`].
    temperature: f32,
    /// Whether there is chance at all; without it, the temperature is 0.
    do_sample: bool,
    /// How far the temperature may move.
    dynamic_temperature_range: f32,
    /// The power of the normalised entropy.
    dynamic_temperature_exponent: f32,
    /// [`SamplingOptions::top_k`].
    top_k: usize,
    /// [`SamplingOptions::top_p`].
    top_p: f32,
    /// [`SamplingOptions::min_p`].
    min_p: f32,
    /// See [`TypicalP`](super::TypicalP).
    typical_p: f32,
    /// See [`TopNSigma`](super::TopNSigma).
    top_n_sigma: f32,
    /// How often the top choices are left out.
    xtc_probability: f32,
    /// How likely a top choice is.
    xtc_threshold: f32,
    /// See [`EpsilonCutoff`](super::EpsilonCutoff).
    epsilon_cutoff: f32,
    /// See [`EtaCutoff`](super::EtaCutoff).
    eta_cutoff: f32,
    /// 0, 1 or 2; see [`Mirostat`](super::Mirostat).
    mirostat: u8,
    /// The surprise to hold, in bits.
    mirostat_tau: f32,
    /// How fast mirostat learns.
    mirostat_eta: f32,
    /// [`SamplingOptions::repetition_penalty`].
    repetition_penalty: f32,
    /// [`SamplingOptions::repetition_with_prompt`].
    repetition_with_prompt: bool,
    /// [`SamplingOptions::frequency_penalty`].
    frequency_penalty: f32,
    /// [`SamplingOptions::presence_penalty`].
    presence_penalty: f32,
    /// [`SamplingOptions::penalty_last_n`].
    penalty_last_n: usize,
    /// What the shortest repetition costs; see [`Dry`](super::Dry).
    dry_multiplier: f32,
    /// By what the cost grows with each token.
    dry_base: f32,
    /// How long a repetition costs nothing.
    dry_allowed_length: usize,
    /// How many tokens at the end DRY looks at.
    dry_last_n: usize,
    /// The sequences that repetitions do not reach back over.
    dry_sequence_breakers: Vec<Vec<TokenId>>,
    /// [`SamplingOptions::logit_bias`].
    logit_bias: Vec<(TokenId, f32)>,
    /// [`SamplingOptions::sequence_bias`].
    sequence_bias: Vec<(Vec<TokenId>, f32)>,
    /// The only tokens that are allowed.
    allowed_tokens: Vec<TokenId>,
    /// Sequences that are never completed.
    bad_words_ids: Vec<Vec<TokenId>>,
    /// Tokens that are forbidden.
    suppress_tokens: Vec<TokenId>,
    /// Tokens that are forbidden as the first of the output.
    begin_suppress_tokens: Vec<TokenId>,
    /// See [`NoRepeatNgram`](super::NoRepeatNgram).
    no_repeat_ngram_size: usize,
    /// The tokens that end a text.
    end_tokens: Vec<TokenId>,
    /// No end before so many tokens of output.
    min_new_tokens: usize,
    /// No end before so many tokens of prompt and output.
    min_length: usize,
    /// From where on an end grows likelier, and by what factor.
    exponential_decay_length_penalty: (usize, f32),
    /// The first token of the output.
    forced_begin_token: TokenId,
    /// The last token of the output, one of these.
    forced_end_tokens: Vec<TokenId>,
    /// How many tokens the output may have.
    max_new_tokens: usize,
    /// The seed of the draws.
    seed: u64,
}

/// Puts each value that is said in its place.
macro_rules! put {
    ($from:expr => $($name:ident: $($place:ident).+,)*) => {
        $(if let Some(value) = $from.$name.clone() {
            $($place).+ = value;
        })*
    };
}

impl Settings {
    /// Returns the options in which everything that is unsaid is at its
    /// default.
    pub fn options(&self, order: Order) -> SamplingOptions {
        let mut options = SamplingOptions { order, ..Default::default() };
        let SamplingOptions { dynamic_temperature, truncation, .. } =
            &mut options;
        put! { self =>
            dynamic_temperature_range: dynamic_temperature.range,
            dynamic_temperature_exponent: dynamic_temperature.exponent,
            typical_p: truncation.typical_p,
            top_n_sigma: truncation.top_n_sigma,
            xtc_probability: truncation.xtc_probability,
            xtc_threshold: truncation.xtc_threshold,
            epsilon_cutoff: truncation.epsilon_cutoff,
            eta_cutoff: truncation.eta_cutoff,
        }
        put! { self =>
            temperature: options.temperature,
            top_k: options.top_k,
            top_p: options.top_p,
            min_p: options.min_p,
            repetition_penalty: options.repetition_penalty,
            repetition_with_prompt: options.repetition_with_prompt,
            frequency_penalty: options.frequency_penalty,
            presence_penalty: options.presence_penalty,
            dry_multiplier: options.dry.multiplier,
            dry_base: options.dry.base,
            dry_allowed_length: options.dry.allowed_length,
            dry_sequence_breakers: options.dry.breakers,
            logit_bias: options.logit_bias,
            sequence_bias: options.sequence_bias,
            bad_words_ids: options.forbidden.bad_words,
            suppress_tokens: options.forbidden.suppress,
            begin_suppress_tokens: options.forbidden.begin_suppress,
            no_repeat_ngram_size: options.forbidden.no_repeat_ngram,
            end_tokens: options.length.end_tokens,
            min_new_tokens: options.length.min_new_tokens,
            min_length: options.length.min_length,
            forced_end_tokens: options.length.forced_end,
            seed: options.seed,
        }
        options.penalty_last_n = self.penalty_last_n;
        options.dry.last_n = self.dry_last_n;
        options.forbidden.allowed.clone_from(&self.allowed_tokens);
        options.length.exponential_decay =
            self.exponential_decay_length_penalty;
        options.length.forced_begin = self.forced_begin_token;
        options.length.max_new_tokens = self.max_new_tokens;
        options.mirostat = self.mirostat_options();
        if self.do_sample == Some(false) {
            options.temperature = 0.0;
        }
        options
    }

    /// Mirostat, if it is on. What is neither 0, 1 nor 2 is refused by
    /// [`SettingLayers::resolve`].
    fn mirostat_options(&self) -> Option<MirostatOptions> {
        let version = match self.mirostat {
            Some(1) => MirostatVersion::V1,
            Some(2) => MirostatVersion::V2,
            _ => return None,
        };
        let mut options = MirostatOptions::new(version);
        put! { self =>
            mirostat_tau: options.tau,
            mirostat_eta: options.eta,
        }
        Some(options)
    }
}
