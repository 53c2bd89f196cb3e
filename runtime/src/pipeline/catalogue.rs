//! The built-in stages by name, made from options.

use super::{
    bad_words::BadWords,
    cutoff::{EpsilonCutoff, EtaCutoff},
    dry::Dry,
    dynamic_temperature::DynamicTemperature,
    error::PipelineError,
    exponential_decay::ExponentialDecay,
    forced::ForcedTokens,
    frequency_presence::FrequencyPresencePenalty,
    logit_bias::LogitBias,
    mask::GrammarMask,
    min_p::MinP,
    min_tokens::MinTokens,
    mirostat::Mirostat,
    no_repeat_ngram::NoRepeatNgram,
    options::{SamplingOptions, differs},
    order::Rules,
    repetition::RepetitionPenalty,
    sequence_bias::SequenceBias,
    stage::Stage,
    temperature::Temperature,
    tokens::{AllowedTokens, SuppressTokens},
    top_k::TopK,
    top_n_sigma::TopNSigma,
    top_p::TopP,
    typical_p::TypicalP,
    xtc::Xtc,
};
use crate::vocabulary::TokenId;

/// A stage, nothing where the options turn it off, or what is wrong with
/// them.
pub(super) type Made = Result<Option<Box<dyn Stage>>, PipelineError>;

/// The names of the built-in stages.
pub(super) const NAMES: &[&str] = &[
    "mask",
    "logit_bias",
    "sequence_bias",
    "repetition_penalty",
    "frequency_presence_penalty",
    "dry",
    "no_repeat_ngram",
    "bad_words",
    "allowed_tokens",
    "suppress_tokens",
    "begin_suppress_tokens",
    "min_length",
    "min_new_tokens",
    "forced_begin_token",
    "forced_end_tokens",
    "exponential_decay",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "top_n_sigma",
    "epsilon_cutoff",
    "eta_cutoff",
    "xtc",
    "mirostat",
];

/// Returns the stage if it is on. Its range is checked even if it is not.
fn on<S: Stage + 'static>(
    is_on: bool,
    stage: Result<S, PipelineError>,
) -> Made {
    let stage = stage?;
    Ok(if is_on { Some(Box::new(stage)) } else { None })
}

/// Makes the built-in stage of this name; nothing for another name.
pub(super) fn make(
    name: &str,
    options: &SamplingOptions,
    rules: Rules,
) -> Option<Made> {
    Some(match name {
        "mask" => on(true, Ok(GrammarMask)),
        "logit_bias" | "sequence_bias" => bias(name, options, rules),
        "repetition_penalty" | "frequency_presence_penalty" | "dry" => {
            penalty(name, options, rules)
        }
        "no_repeat_ngram" => {
            let n = options.forbidden.no_repeat_ngram;
            on(n > 0, NoRepeatNgram::new(n.max(1)))
        }
        "bad_words" => bad_words(options, rules),
        "allowed_tokens" => match &options.forbidden.allowed {
            Some(tokens) => on(true, AllowedTokens::new(tokens)),
            None => Ok(None),
        },
        "suppress_tokens" => {
            let tokens = &options.forbidden.suppress;
            let is_on = !tokens.is_empty();
            on(is_on, Ok(SuppressTokens::new(tokens.clone())))
        }
        "begin_suppress_tokens" => {
            let tokens = &options.forbidden.begin_suppress;
            let is_on = !tokens.is_empty();
            on(is_on, Ok(SuppressTokens::at_begin(tokens.clone())))
        }
        "min_length" | "min_new_tokens" | "forced_begin_token"
        | "forced_end_tokens" | "exponential_decay" => length(name, options),
        "temperature" => temperature(options, rules),
        "mirostat" => match options.mirostat {
            Some(mirostat) => on(true, Mirostat::new(mirostat)),
            None => Ok(None),
        },
        _ => return truncation(name, options, rules),
    })
}

fn bias(name: &str, options: &SamplingOptions, rules: Rules) -> Made {
    if name == "sequence_bias" {
        let biases = &options.sequence_bias;
        return on(!biases.is_empty(), SequenceBias::new(biases.clone()));
    }
    let mut biases = options.logit_bias.clone();
    let is_on = !biases.is_empty();
    if let Some(bound) = rules.bias_bound {
        for (_, bias) in &mut biases {
            // Keeps what is not a number, for the check to find.
            *bias = bias.clamp(-bound, bound);
        }
    }
    on(is_on, LogitBias::new(biases))
}

fn penalty(name: &str, options: &SamplingOptions, rules: Rules) -> Made {
    let is_bare = options.mirostat.is_some()
        && rules.bare_mirostat
        && !options.is_greedy();
    let last_n = options.penalty_last_n.or(rules.penalty_last_n);
    match name {
        "dry" => {
            let is_on = options.dry.multiplier > 0.0 && !is_bare;
            on(is_on, Dry::new(options.dry.clone()))
        }
        "repetition_penalty" => {
            let factor = options.repetition_penalty;
            let with_prompt = options.repetition_with_prompt;
            let stage = RepetitionPenalty::new(factor, with_prompt);
            on(
                differs(factor, 1.0) && !is_bare,
                stage.map(|stage| stage.of_last(last_n)),
            )
        }
        _ => {
            let frequency = options.frequency_penalty;
            let presence = options.presence_penalty;
            let is_on = differs(frequency, 0.0) || differs(presence, 0.0);
            let stage = FrequencyPresencePenalty::new(frequency, presence);
            let with_prompt = rules.frequency_with_prompt;
            on(
                is_on && !is_bare,
                stage.map(|stage| stage.of_last(last_n, with_prompt)),
            )
        }
    }
}

fn bad_words(options: &SamplingOptions, rules: Rules) -> Made {
    let mut words = options.forbidden.bad_words.clone();
    if rules.spare_ends {
        let ends = &options.length.end_tokens;
        let is_end =
            |word: &[TokenId]| matches!(word, [token] if ends.contains(token));
        words.retain(|word| !is_end(word));
    }
    let is_on = !words.is_empty();
    on(is_on, BadWords::new(words, rules.bad_words_with_prompt))
}

fn length(name: &str, options: &SamplingOptions) -> Made {
    let length = &options.length;
    let ends = || length.end_tokens.clone();
    match name {
        "min_length" => {
            let n = length.min_length;
            on(n > 0, MinTokens::of_all(n, ends()))
        }
        "min_new_tokens" => {
            let n = length.min_new_tokens;
            on(n > 0, MinTokens::of_output(n, ends()))
        }
        "forced_begin_token" => match length.forced_begin {
            Some(token) => on(true, Ok(ForcedTokens::begin(token))),
            None => Ok(None),
        },
        "forced_end_tokens" if length.forced_end.is_empty() => Ok(None),
        "forced_end_tokens" => {
            let n_output =
                length.max_new_tokens.ok_or(PipelineError::Incomplete {
                    option: "forced_end_tokens",
                    needs: "`max_new_tokens`",
                })?;
            on(true, ForcedTokens::end(length.forced_end.clone(), n_output))
        }
        _ => match length.exponential_decay {
            Some((start, factor)) => on(
                differs(factor, 1.0),
                ExponentialDecay::new(start, factor, ends()),
            ),
            None => Ok(None),
        },
    }
}

fn temperature(options: &SamplingOptions, rules: Rules) -> Made {
    let temperature = rules.temperature(options);
    let dynamic = options.dynamic_temperature;
    let moving =
        DynamicTemperature::new(temperature, dynamic.range, dynamic.exponent)?;
    let is_still = options.mirostat.is_some() && rules.bare_mirostat;
    if dynamic.range > 0.0 && !is_still {
        return on(true, Ok(moving));
    }
    on(differs(temperature, 1.0), Temperature::new(temperature))
}

fn truncation(
    name: &str,
    options: &SamplingOptions,
    rules: Rules,
) -> Option<Made> {
    let other = &options.truncation;
    let is_free = options.mirostat.is_none() || options.is_greedy();
    Some(match name {
        "top_k" => {
            let stage = TopK::new(options.top_k.max(1));
            let exactly = rules.exact_ties;
            on(
                options.top_k != 0 && is_free,
                stage.map(|s| if exactly { s.exactly() } else { s }),
            )
        }
        "top_p" => {
            on(options.top_p < 1.0 && is_free, TopP::new(options.top_p))
        }
        "min_p" => {
            on(options.min_p > 0.0 && is_free, MinP::new(options.min_p))
        }
        "typical_p" => {
            let stage = TypicalP::new(other.typical_p);
            let exactly = rules.exact_ties;
            on(
                other.typical_p < 1.0 && is_free,
                stage.map(|s| if exactly { s.exactly() } else { s }),
            )
        }
        "top_n_sigma" => on(
            other.top_n_sigma > 0.0 && is_free,
            TopNSigma::new(other.top_n_sigma),
        ),
        "epsilon_cutoff" => on(
            other.epsilon_cutoff > 0.0 && is_free,
            EpsilonCutoff::new(other.epsilon_cutoff),
        ),
        "eta_cutoff" => on(
            other.eta_cutoff > 0.0 && is_free,
            EtaCutoff::new(other.eta_cutoff),
        ),
        "xtc" => on(
            other.xtc_probability > 0.0 && is_free,
            Xtc::new(other.xtc_probability, other.xtc_threshold, options.seed),
        ),
        _ => return None,
    })
}

/// Returns the names of the stages that options turn on, besides the mask.
pub(super) fn stages_that_are_set(
    options: &SamplingOptions,
) -> Vec<&'static str> {
    let rules = Rules::of(&options.order);
    let is_set = |name: &&&'static str| {
        let made = make(name, options, rules);
        matches!(made, Some(Ok(Some(_)))) && **name != "mask"
    };
    NAMES.iter().filter(is_set).copied().collect()
}
