//! The decode step: from a row of logits to one token.
//!
//! A step has no learned parameters. It is a list of [`Stage`]s over a row of
//! logits and a choice at the end, and the order of the stages is part of the
//! algorithm: the same parameters in another order keep other tokens.
//!
//! # The law of the mask
//!
//! Everything that forbids stands before everything that truncates. If top-k
//! ran first and the one legal token were not among the k strongest, nothing
//! legal would be left. A [`Pipeline`] in another order cannot be made.
//!
//! # Example
//!
//! ```
//! use maskwright::pipeline::{History, SamplingOptions, Scratch, Step};
//! use maskwright::vocabulary::TokenId;
//!
//! let options = SamplingOptions { top_k: 1, ..SamplingOptions::default() };
//! let pipeline = options.build()?;
//! // The grammar allows token 1 alone; token 0 is far likelier.
//! let mut logits = [9.0, 1.0, 3.0];
//! let mask: &[u32] = &[0b010];
//! let history = History::default();
//! let step = Step::new(&history).with_mask(mask);
//! let choice = pipeline.choose(&mut logits, &step, &mut Scratch::new())?;
//! assert_eq!(choice.token, TokenId(1));
//! # Ok::<(), maskwright::pipeline::PipelineError>(())
//! ```
//!
//! # How it is fast
//!
//! Under a grammar few tokens are allowed most of the time. The mask then
//! turns the row into a list of candidates, and every later stage works on
//! that list alone. A row with many survivors stays a plain array of floats
//! that the compiler can vectorise over, until a truncation shortens it.
//!
//! # When not to use it
//!
//! An engine with a sampler of its own needs [`mask_logits`] and nothing
//! else, called before that sampler truncates anything.

mod bad_words;
mod builder;
mod catalogue;
mod choice;
mod cutoff;
mod dry;
mod dynamic_temperature;
mod effective;
mod error;
mod exponential_decay;
mod forced;
mod frequency_presence;
mod generation_config;
mod history;
mod logit_bias;
mod mask;
mod min_p;
mod min_tokens;
mod mirostat;
mod no_repeat_ngram;
mod observe;
mod options;
mod order;
mod repetition;
mod row;
mod run;
mod select;
mod sequence_bias;
mod settings;
mod softmax;
mod stage;
mod strongest;
mod temperature;
mod tokens;
mod top_k;
mod top_n_sigma;
mod top_p;
mod trace;
mod typical_p;
mod xtc;

#[cfg(test)]
mod tests;

pub use bad_words::BadWords;
pub use builder::PipelineBuilder;
pub use choice::{Choice, Choose};
pub use cutoff::{EpsilonCutoff, EtaCutoff};
pub use dry::Dry;
pub use dynamic_temperature::DynamicTemperature;
pub use effective::{
    EffectiveSampling, EffectiveSetting, SettingLayers, SettingSource,
};
pub use error::PipelineError;
pub use exponential_decay::ExponentialDecay;
pub use forced::ForcedTokens;
pub use frequency_presence::FrequencyPresencePenalty;
pub use generation_config::ModelDefaults;
pub use history::History;
pub use logit_bias::LogitBias;
pub use mask::{GrammarMask, Logit, MaskBits, MaskWord, mask_logits};
pub use min_p::MinP;
pub use min_tokens::MinTokens;
pub use mirostat::{Mirostat, MirostatVersion};
pub use no_repeat_ngram::NoRepeatNgram;
#[cfg(feature = "generator")]
pub(crate) use observe::uniform_at;
pub use observe::{Observation, observe};
pub use options::{
    DryOptions, DynamicTemperatureOptions, ForbiddenTokens, LengthOptions,
    MirostatOptions, SamplingOptions, SamplingWarning, TruncationOptions,
};
pub use order::Order;
pub use repetition::RepetitionPenalty;
pub use row::{Candidate, Row, Scratch};
pub use run::Pipeline;
pub use sequence_bias::SequenceBias;
pub use settings::Settings;
pub use softmax::log_sum_exp;
pub use stage::{Stage, StageKind, Step};
pub use temperature::Temperature;
pub use tokens::{AllowedTokens, SuppressTokens};
pub use top_k::TopK;
pub use top_n_sigma::TopNSigma;
pub use top_p::TopP;
pub use trace::{StageTrace, Survivor, Trace};
pub use typical_p::TypicalP;
pub use xtc::Xtc;
