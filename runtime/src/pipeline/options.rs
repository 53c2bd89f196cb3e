//! The options of sampling that users set, with their ranges.

use std::fmt;

use super::{
    choice::Choose,
    error::PipelineError,
    mirostat::MirostatVersion,
    order::{Order, Rules},
    run::Pipeline,
    temperature::GREEDY_BELOW,
};
use crate::vocabulary::{TokenId, Vocabulary};

/// The options of sampling, as users know them.
///
/// The default draws from the model's own distribution: temperature 1 and
/// everything else off, whatever engines with such an order have as defaults
/// ([`Order::defaults`]).
///
/// What nearly everybody sets is here, one field each, though that makes them
/// many; the rest is in groups.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingOptions {
    /// The order of the stages.
    pub order: Order,
    /// How much chance there is: at least 0. Below 0.00001 the strongest
    /// token is taken, without chance.
    pub temperature: f32,
    /// How far the temperature moves with the entropy.
    pub dynamic_temperature: DynamicTemperatureOptions,
    /// Keep this many of the strongest tokens; 0 keeps all.
    pub top_k: usize,
    /// Keep the strongest tokens that reach this probability: from 0 to 1;
    /// 1 keeps all.
    pub top_p: f32,
    /// Keep tokens this likely next to the likeliest: from 0 to 1; 0 keeps
    /// all.
    pub min_p: f32,
    /// The other truncations.
    pub truncation: TruncationOptions,
    /// A feedback loop in place of the truncations.
    pub mirostat: Option<MirostatOptions>,
    /// Weaken what was seen by this factor: greater than 0; 1 is off.
    pub repetition_penalty: f32,
    /// Whether the repetition penalty counts the prompt as seen.
    pub repetition_with_prompt: bool,
    /// Subtracted once for each time a token is in the output: from -2 to 2.
    pub frequency_penalty: f32,
    /// Subtracted once if a token is in the output: from -2 to 2.
    pub presence_penalty: f32,
    /// How many tokens at the end the three penalties look at; 0 turns them
    /// off, nothing is all, or what the order has (64 in `llama.cpp`).
    pub penalty_last_n: Option<usize>,
    /// What repetitions cost by their length.
    pub dry: DryOptions,
    /// Added to the logits of these tokens; finite.
    pub logit_bias: Vec<(TokenId, f32)>,
    /// Added to the logit of the token that completes a sequence; finite.
    pub sequence_bias: Vec<(Vec<TokenId>, f32)>,
    /// What is forbidden besides what the grammar forbids.
    pub forbidden: ForbiddenTokens,
    /// How long the output is.
    pub length: LengthOptions,
    /// The seed of the draws.
    pub seed: u64,
}

/// How far the temperature moves with the entropy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DynamicTemperatureOptions {
    /// By how much the temperature may be lower or higher; 0 is off.
    pub range: f32,
    /// The power of the normalised entropy.
    pub exponent: f32,
}

impl Default for DynamicTemperatureOptions {
    fn default() -> DynamicTemperatureOptions {
        DynamicTemperatureOptions { range: 0.0, exponent: 1.0 }
    }
}

/// The less common truncations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TruncationOptions {
    /// Keep what is about as surprising as expected, up to this probability:
    /// greater than 0 and at most 1; 1 is off.
    pub typical_p: f32,
    /// Keep logits within so many standard deviations; 0 is off.
    pub top_n_sigma: f32,
    /// How often the top choices are left out: from 0 to 1; 0 is off.
    pub xtc_probability: f32,
    /// How likely a top choice is: from 0 to 1; above 0.5 it is off.
    pub xtc_threshold: f32,
    /// Drop tokens less likely than this: at least 0, less than 1; 0 is off.
    pub epsilon_cutoff: f32,
    /// The same, less strict where the entropy is high; 0 is off.
    pub eta_cutoff: f32,
}

impl Default for TruncationOptions {
    fn default() -> TruncationOptions {
        TruncationOptions {
            typical_p: 1.0,
            top_n_sigma: 0.0,
            xtc_probability: 0.0,
            xtc_threshold: 0.1,
            epsilon_cutoff: 0.0,
            eta_cutoff: 0.0,
        }
    }
}

/// The options of mirostat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MirostatOptions {
    /// Which mirostat.
    pub version: MirostatVersion,
    /// The surprise to hold, in bits; greater than 0.
    pub tau: f32,
    /// How fast to learn; at least 0.
    pub eta: f32,
}

impl MirostatOptions {
    /// Returns the options with llama.cpp's target, 5, and rate, 0.1.
    pub fn new(version: MirostatVersion) -> MirostatOptions {
        MirostatOptions { version, tau: 5.0, eta: 0.1 }
    }
}

/// The options of DRY.
#[derive(Clone, Debug, PartialEq)]
pub struct DryOptions {
    /// What the shortest repetition costs; 0 is off.
    pub multiplier: f32,
    /// By what the cost grows with each token; at least 1.
    pub base: f32,
    /// Repetitions of so many tokens cost the multiplier, shorter ones
    /// nothing.
    pub allowed_length: usize,
    /// How many tokens at the end are looked at; nothing is all.
    pub last_n: Option<usize>,
    /// The sequences that repetitions do not reach back over.
    pub breakers: Vec<Vec<TokenId>>,
}

impl Default for DryOptions {
    fn default() -> DryOptions {
        DryOptions {
            multiplier: 0.0,
            base: 1.75,
            allowed_length: 2,
            last_n: None,
            breakers: Vec::new(),
        }
    }
}

/// What is forbidden besides what the grammar forbids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForbiddenTokens {
    /// Every token but these, if any are given.
    pub allowed: Option<Vec<TokenId>>,
    /// The completion of these sequences.
    pub bad_words: Vec<Vec<TokenId>>,
    /// These tokens.
    pub suppress: Vec<TokenId>,
    /// These tokens as the first of the output.
    pub begin_suppress: Vec<TokenId>,
    /// The repetition of so many tokens; 0 is off.
    pub no_repeat_ngram: usize,
}

/// How long the output is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LengthOptions {
    /// The tokens that end a text.
    pub end_tokens: Vec<TokenId>,
    /// No end before so many tokens of output.
    pub min_new_tokens: usize,
    /// No end before so many tokens of prompt and output.
    pub min_length: usize,
    /// From how many tokens of output on an end grows likelier, and by what
    /// factor.
    pub exponential_decay: Option<(usize, f32)>,
    /// The first token of the output.
    pub forced_begin: Option<TokenId>,
    /// The last token of the output, one of these; needs `max_new_tokens`.
    pub forced_end: Vec<TokenId>,
    /// How many tokens the output may have. Nothing but `forced_end` asks:
    /// who runs the steps ends them.
    pub max_new_tokens: Option<usize>,
}

impl Default for SamplingOptions {
    fn default() -> SamplingOptions {
        SamplingOptions {
            order: Order::default(),
            temperature: 1.0,
            dynamic_temperature: DynamicTemperatureOptions::default(),
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            truncation: TruncationOptions::default(),
            mirostat: None,
            repetition_penalty: 1.0,
            repetition_with_prompt: true,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            penalty_last_n: None,
            dry: DryOptions::default(),
            logit_bias: Vec::new(),
            sequence_bias: Vec::new(),
            forbidden: ForbiddenTokens::default(),
            length: LengthOptions::default(),
            seed: 0,
        }
    }
}

/// Something about the options that a user should know: one that has no
/// effect, or that is used with another value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SamplingWarning {
    /// The option, as users spell it.
    pub option: &'static str,
    /// What is to be known of it.
    pub message: String,
}

impl SamplingWarning {
    pub(super) fn new(
        option: &'static str,
        message: impl Into<String>,
    ) -> SamplingWarning {
        SamplingWarning { option, message: message.into() }
    }
}

impl fmt::Display for SamplingWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.option, self.message)
    }
}

/// Returns true when an option differs from the value that turns it off.
#[expect(clippy::float_cmp, reason = "only the exact value turns it off")]
pub(super) fn differs(value: f32, neutral: f32) -> bool {
    value != neutral
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

    /// Returns true where truncations matter though nothing is left to
    /// chance: llama.cpp takes the strongest token that they leave, and these
    /// two may drop the strongest of all.
    pub(super) fn truncates_greedily(&self) -> bool {
        let other = &self.truncation;
        self.is_greedy()
            && self.order == Order::LlamaCpp
            && self.mirostat.is_none()
            && (other.typical_p < 1.0 || other.xtc_probability > 0.0)
    }

    /// Returns what is set and has no effect, or another one than it says,
    /// for whoever wants to warn about it.
    pub fn warnings(&self) -> Vec<SamplingWarning> {
        let mut warnings = self.ignored();
        warnings.extend(self.surprises());
        warnings
    }

    /// What is set and has no effect because of something else that is set.
    pub(super) fn ignored(&self) -> Vec<SamplingWarning> {
        let mut warnings = Vec::new();
        let mut ignore = |options: &[(&'static str, bool)], why: &str| {
            for &(option, _) in options.iter().filter(|(_, is_set)| *is_set) {
                let message = format!("has no effect {why}");
                warnings.push(SamplingWarning::new(option, message));
            }
        };
        let truncations = self.truncations();
        let penalties = self.penalties();
        let xtc = self.truncation.xtc_probability > 0.0;
        let range = self.dynamic_temperature.range;
        let dynamic = ("dynamic_temperature_range", range > 0.0);
        if self.is_greedy() {
            let why = "at temperature 0";
            let truncates = self.truncates_greedily();
            if !truncates {
                ignore(&truncations, why);
            }
            ignore(&[dynamic], why);
            ignore(&[("mirostat", self.mirostat.is_some())], why);
            let is_drawn = truncates && xtc;
            ignore(&[("seed", self.seed != 0 && !is_drawn)], why);
        } else if self.mirostat.is_some() {
            ignore(&truncations, "with mirostat, which stands in its place");
            if self.order == Order::LlamaCpp {
                let why = "with mirostat in the order of llama.cpp";
                ignore(&penalties, why);
                ignore(&[dynamic], why);
            }
        } else if xtc && self.truncation.xtc_threshold > 0.5 {
            let why = "with a threshold above 0.5, which no two tokens reach";
            ignore(&[("xtc_probability", true)], why);
        }
        let has_penalty = penalties[..3].iter().any(|(_, is_set)| *is_set);
        if self.penalty_last_n == Some(0) {
            ignore(&penalties[..3], "over a window of 0 tokens");
        } else if self.penalty_last_n.is_some() {
            let why = "without a penalty";
            ignore(&[("penalty_last_n", !has_penalty)], why);
        }
        warnings
    }

    /// What the order does otherwise, or not at all.
    pub(super) fn surprises(&self) -> Vec<SamplingWarning> {
        let mut warnings = self.adjustments(Rules::of(&self.order));
        warnings.extend(self.unlisted());
        warnings
    }

    /// Checks the range of every option, and the order.
    ///
    /// Options that need the end tokens pass without them: a vocabulary may
    /// still give them.
    pub(super) fn check(&self) -> Result<(), PipelineError> {
        let mut options = self.clone();
        if options.length.end_tokens.is_empty() {
            options.length.end_tokens.push(TokenId(0));
        }
        options.build().map(drop)
    }

    fn truncations(&self) -> [(&'static str, bool); 8] {
        let other = &self.truncation;
        [
            ("top_k", self.top_k != 0),
            ("top_p", self.top_p < 1.0),
            ("min_p", self.min_p > 0.0),
            ("typical_p", other.typical_p < 1.0),
            ("top_n_sigma", other.top_n_sigma > 0.0),
            ("xtc_probability", other.xtc_probability > 0.0),
            ("epsilon_cutoff", other.epsilon_cutoff > 0.0),
            ("eta_cutoff", other.eta_cutoff > 0.0),
        ]
    }

    /// The penalties; the first three have a window in common.
    fn penalties(&self) -> [(&'static str, bool); 4] {
        [
            ("repetition_penalty", differs(self.repetition_penalty, 1.0)),
            ("frequency_penalty", differs(self.frequency_penalty, 0.0)),
            ("presence_penalty", differs(self.presence_penalty, 0.0)),
            ("dry_multiplier", self.dry.multiplier > 0.0),
        ]
    }

    /// What an order uses another value for than is set.
    fn adjustments(&self, rules: Rules) -> Vec<SamplingWarning> {
        let mut warnings = Vec::new();
        let temperature = rules.temperature(self);
        if !self.is_greedy() && differs(temperature, self.temperature) {
            warnings.push(SamplingWarning::new(
                "temperature",
                format!("is raised to {temperature}, as vLLM does"),
            ));
        }
        if let Some(bound) = rules.bias_bound
            && self.logit_bias.iter().any(|(_, bias)| bias.abs() > bound)
        {
            let message =
                format!("is held between -{bound} and {bound}, as in vLLM");
            warnings.push(SamplingWarning::new("logit_bias", message));
        }
        let ends = &self.length.end_tokens;
        let is_end = |word: &Vec<TokenId>| matches!(word[..], [token] if ends.contains(&token));
        if rules.spare_ends && self.forbidden.bad_words.iter().any(is_end) {
            warnings.push(SamplingWarning::new(
                "bad_words_ids",
                "has an end token, which is left out, as in transformers",
            ));
        }
        warnings
    }

    /// What is set although the user's own order has no stage for it.
    fn unlisted(&self) -> Vec<SamplingWarning> {
        let Order::Custom(names) = &self.order else { return Vec::new() };
        let set = super::catalogue::stages_that_are_set(self);
        set.into_iter()
            .filter(|name| !names.iter().any(|listed| listed == name))
            .map(|name| {
                let message = "has no effect: the order does not list it";
                SamplingWarning::new(name, message)
            })
            .collect()
    }

    /// Builds the pipeline with these options in their order.
    ///
    /// # Errors
    ///
    /// Fails when an option is out of range, and says which and what the
    /// range is, and when the order is unlawful.
    pub fn build(&self) -> Result<Pipeline, PipelineError> {
        Pipeline::builder().options(self.clone()).build()
    }

    /// Does what [`build`](Self::build) does, with the end tokens of a
    /// vocabulary where the options name none.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn build_for(
        &self,
        vocabulary: &Vocabulary,
    ) -> Result<Pipeline, PipelineError> {
        let mut options = self.clone();
        if options.length.end_tokens.is_empty() {
            options.length.end_tokens = vocabulary.end_tokens().to_vec();
        }
        options.build()
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
