//! How each token is chosen, as the command line says it.

use std::io::{self, Write};

use clap::Args;
use maskwright::{
    model::{LoadedModel, ModelTokenizer},
    pipeline::{
        BadWords, Dry, EffectiveSampling, Order, SamplingWarning,
        SettingLayers, Settings,
    },
    vocabulary::TokenId,
};

use crate::fail::Fail;

/// How each token is chosen; `maskwright pipeline` shows what it does
///
/// Where a flag is absent, the model's own default holds, then that of the
/// order if one is chosen.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArgs {
    /// Order of the stages, with its engine's defaults: `hf`, `vllm`,
    /// `llama.cpp`, or names of stages between commas, `mask` among them
    #[arg(id = "sampling-order", long, value_name = "ORDER")]
    order: Option<String>,
    /// How much chance there is; 0 takes the likeliest token
    #[arg(long)]
    temperature: Option<f32>,
    /// By how much the temperature moves with the entropy; 0 is off
    #[arg(long, value_name = "RANGE")]
    dynamic_temperature_range: Option<f32>,
    /// The power of the entropy that moves the temperature [default: 1]
    #[arg(long, value_name = "POWER")]
    dynamic_temperature_exponent: Option<f32>,
    /// Keep this many of the likeliest tokens; 0 keeps all
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// Keep the likeliest tokens that reach this probability, from 0 to 1
    #[arg(long, value_name = "P")]
    top_p: Option<f32>,
    /// Keep tokens this likely next to the likeliest, from 0 to 1
    #[arg(long, value_name = "P")]
    min_p: Option<f32>,
    /// Keep what is about as surprising as expected, up to this probability
    #[arg(long, value_name = "P")]
    typical_p: Option<f32>,
    /// Keep logits within so many standard deviations of the greatest
    #[arg(long, value_name = "N")]
    top_n_sigma: Option<f32>,
    /// How often the top choices are left out, from 0 to 1
    #[arg(long, value_name = "P")]
    xtc_probability: Option<f32>,
    /// How likely a top choice is [default: 0.1]
    #[arg(long, value_name = "P")]
    xtc_threshold: Option<f32>,
    /// Drop tokens less likely than this
    #[arg(long, value_name = "P")]
    epsilon_cutoff: Option<f32>,
    /// The same, less strict where the entropy is high
    #[arg(long, value_name = "P")]
    eta_cutoff: Option<f32>,
    /// A feedback loop in place of the truncations: 0 (off), 1 or 2
    #[arg(long, value_name = "VERSION")]
    mirostat: Option<u8>,
    /// The surprise that mirostat holds, in bits [default: 5]
    #[arg(long, value_name = "BITS")]
    mirostat_tau: Option<f32>,
    /// How fast mirostat learns [default: 0.1]
    #[arg(long, value_name = "RATE")]
    mirostat_eta: Option<f32>,
    #[command(flatten)]
    penalties: PenaltyArgs,
    #[command(flatten)]
    tokens: TokenArgs,
    /// The seed of the draws [default: 0]
    #[arg(long)]
    seed: Option<u64>,
}

/// What was said weighs less.
#[derive(Args, Clone, Debug, Default)]
struct PenaltyArgs {
    /// Weaken what was seen by this factor; 1 is off
    #[arg(long, value_name = "FACTOR")]
    repetition_penalty: Option<f32>,
    /// Whether the repetition penalty counts the prompt [default: true]
    #[arg(long, value_name = "BOOL")]
    repetition_with_prompt: Option<bool>,
    /// Subtracted for each time a token is in the output, from -2 to 2
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    frequency_penalty: Option<f32>,
    /// Subtracted if a token is in the output, from -2 to 2
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    presence_penalty: Option<f32>,
    /// How many tokens at the end these penalties look at [default: all; 64
    /// in the order `llama.cpp`]
    #[arg(long, value_name = "N")]
    penalty_last_n: Option<usize>,
    /// Never complete a run of so many tokens that was there before
    #[arg(long, value_name = "N")]
    no_repeat_ngram_size: Option<usize>,
    /// What repetitions cost (DRY); 0 is off
    #[arg(long, value_name = "X")]
    dry_multiplier: Option<f32>,
    /// By what that grows with each token [default: 1.75]
    #[arg(long, value_name = "X")]
    dry_base: Option<f32>,
    /// How long a repetition is free [default: 2]
    #[arg(long, value_name = "N")]
    dry_allowed_length: Option<usize>,
    /// How many tokens at the end DRY looks at [default: all]
    #[arg(long, value_name = "N")]
    dry_last_n: Option<usize>,
    /// Tokens that repetitions do not reach back over, as one sequence
    #[arg(long, value_name = "IDS", value_parser = ids)]
    dry_sequence_breaker_ids: Vec<Ids>,
}

/// Tokens by their ids.
#[derive(Args, Clone, Debug, Default)]
struct TokenArgs {
    /// Added to the logit of a token
    #[arg(long, value_name = "ID=X", value_parser = token_bias)]
    logit_bias: Vec<(TokenId, f32)>,
    /// Added to the logit of the last of some tokens after the others
    #[arg(long, value_name = "IDS=X", value_parser = sequence_bias)]
    sequence_bias: Vec<(Ids, f32)>,
    /// The only tokens that may come, such as `3,10-19`
    #[arg(long, value_name = "IDS", value_parser = ids)]
    allowed_tokens: Option<Ids>,
    /// Tokens that are never completed as a sequence
    #[arg(long, value_name = "IDS", value_parser = ids)]
    bad_words_ids: Vec<Ids>,
    /// Tokens that may not come
    #[arg(long, value_name = "IDS", value_parser = ids)]
    suppress_tokens: Option<Ids>,
    /// Tokens that may not come first
    #[arg(long, value_name = "IDS", value_parser = ids)]
    begin_suppress_tokens: Option<Ids>,
    /// The tokens that end a text [default: the model's]
    #[arg(long, value_name = "IDS", value_parser = ids)]
    end_tokens: Option<Ids>,
    /// No end before so many tokens of output, unless nothing else fits
    #[arg(long, value_name = "N")]
    min_new_tokens: Option<usize>,
    /// The same for prompt and output together
    #[arg(long, value_name = "N")]
    min_length: Option<usize>,
    /// From how many tokens on an end grows likelier, and by what factor
    #[arg(long, value_name = "N,FACTOR", value_parser = decay)]
    exponential_decay_length_penalty: Option<(usize, f32)>,
    /// The first token of the output
    #[arg(long, value_name = "ID")]
    forced_begin_token: Option<u32>,
    /// The last token of the output at the limit on tokens, one of these
    #[arg(long, value_name = "IDS", value_parser = ids)]
    forced_end_tokens: Option<Ids>,
}

/// A list of tokens that is one value.
#[derive(Clone, Debug)]
pub(crate) struct Ids(pub(crate) Vec<TokenId>);

/// Reads ids and ranges of ids between commas.
pub(crate) fn ids(text: &str) -> Result<Ids, String> {
    /// As many tokens as any vocabulary has.
    const MOST: u32 = 1 << 23;
    let id = |text: &str| -> Result<u32, String> {
        match text.trim().parse() {
            Ok(id) if id < MOST => Ok(id),
            Ok(id) => Err(format!("{id} is no token; ids are below {MOST}")),
            Err(_) => Err(format!(
                "{text:?} is no token id; write ids such as 3,10-19"
            )),
        }
    };
    let mut ids = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        ids.extend((id(first)?..=id(last)?).map(TokenId));
    }
    Ok(Ids(ids))
}

fn sequence_bias(text: &str) -> Result<(Ids, f32), String> {
    let (tokens, bias) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} is not of the form IDS=X"))?;
    let bias = bias.trim().parse().map_err(|_| {
        format!("{bias:?} is no number, in a bias of the form IDS=X")
    })?;
    Ok((ids(tokens)?, bias))
}

fn token_bias(text: &str) -> Result<(TokenId, f32), String> {
    let (Ids(tokens), bias) = sequence_bias(text)?;
    match tokens[..] {
        [token] => Ok((token, bias)),
        _ => Err(format!("{text:?} names not just one token; write ID=X")),
    }
}

fn decay(text: &str) -> Result<(usize, f32), String> {
    let parts = text.split_once(',');
    let parsed = parts.and_then(|(start, factor)| {
        Some((start.trim().parse().ok()?, factor.trim().parse().ok()?))
    });
    parsed.ok_or_else(|| format!("{text:?} is not of the form N,FACTOR"))
}

impl SamplingArgs {
    /// Puts together what the user, the model and the command say, and tells
    /// the user what is in effect. `model` are the model's defaults as far as
    /// the command follows them.
    pub(crate) fn effective(
        &self,
        words: &WordArgs,
        loaded: &LoadedModel,
        model: Settings,
        has_grammar: bool,
    ) -> Result<EffectiveSampling, Fail> {
        let command = greedy();
        let mut layers =
            SettingLayers { model, command, has_grammar, ..self.layers() };
        words.add_to(&mut layers, &loaded.tokenizer)?;
        let mut sampling = layers
            .resolve()
            .map_err(|error| Fail::usage(error.to_string()))?;
        sampling.warnings.extend(loaded.defaults.warnings.iter().cloned());
        report(&sampling)?;
        Ok(sampling)
    }

    /// Sets the order of the stages, which may be said once.
    pub(crate) fn set_order(&mut self, order: String) -> Result<(), Fail> {
        if let Some(known) = &self.order {
            return Err(Fail::usage(format!(
                "the order of the stages is given twice, as {known:?} and \
                 {order:?}; orders of members are `schema` and `any`"
            )));
        }
        self.order = Some(order);
        Ok(())
    }

    /// Returns what the user says.
    pub(crate) fn layers(&self) -> SettingLayers {
        let order = self.order.as_deref().map(|order| {
            let Ok(order) = order.parse::<Order>();
            order
        });
        SettingLayers { user: self.settings(), order, ..Default::default() }
    }

    /// Fails where something is out of range.
    pub(crate) fn check(&self) -> Result<(), Fail> {
        let resolved = self.layers().resolve();
        resolved.map(drop).map_err(|error| Fail::usage(error.to_string()))
    }

    fn settings(&self) -> Settings {
        let all = |ids: &Option<Ids>| ids.as_ref().map(|ids| ids.0.clone());
        let some =
            |list: Vec<Vec<TokenId>>| (!list.is_empty()).then_some(list);
        let sequences = |list: &[Ids]| {
            some(list.iter().map(|ids| ids.0.clone()).collect())
        };
        let PenaltyArgs { dry_sequence_breaker_ids, .. } = &self.penalties;
        let penalties = &self.penalties;
        let tokens = &self.tokens;
        let sequence_bias: Vec<_> = tokens
            .sequence_bias
            .iter()
            .map(|(ids, bias)| (ids.0.clone(), *bias))
            .collect();
        Settings {
            temperature: self.temperature,
            do_sample: None,
            dynamic_temperature_range: self.dynamic_temperature_range,
            dynamic_temperature_exponent: self.dynamic_temperature_exponent,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            typical_p: self.typical_p,
            top_n_sigma: self.top_n_sigma,
            xtc_probability: self.xtc_probability,
            xtc_threshold: self.xtc_threshold,
            epsilon_cutoff: self.epsilon_cutoff,
            eta_cutoff: self.eta_cutoff,
            mirostat: self.mirostat,
            mirostat_tau: self.mirostat_tau,
            mirostat_eta: self.mirostat_eta,
            repetition_penalty: penalties.repetition_penalty,
            repetition_with_prompt: penalties.repetition_with_prompt,
            frequency_penalty: penalties.frequency_penalty,
            presence_penalty: penalties.presence_penalty,
            penalty_last_n: penalties.penalty_last_n,
            dry_multiplier: penalties.dry_multiplier,
            dry_base: penalties.dry_base,
            dry_allowed_length: penalties.dry_allowed_length,
            dry_last_n: penalties.dry_last_n,
            dry_sequence_breakers: sequences(dry_sequence_breaker_ids),
            logit_bias: Some(tokens.logit_bias.clone())
                .filter(|biases| !biases.is_empty()),
            sequence_bias: Some(sequence_bias)
                .filter(|biases| !biases.is_empty()),
            allowed_tokens: all(&tokens.allowed_tokens),
            bad_words_ids: sequences(&tokens.bad_words_ids),
            suppress_tokens: all(&tokens.suppress_tokens),
            begin_suppress_tokens: all(&tokens.begin_suppress_tokens),
            no_repeat_ngram_size: penalties.no_repeat_ngram_size,
            end_tokens: all(&tokens.end_tokens),
            min_new_tokens: tokens.min_new_tokens,
            min_length: tokens.min_length,
            exponential_decay_length_penalty: tokens
                .exponential_decay_length_penalty,
            forced_begin_token: tokens.forced_begin_token.map(TokenId),
            forced_end_tokens: all(&tokens.forced_end_tokens),
            max_new_tokens: None,
            seed: self.seed,
        }
    }
}

/// Texts that become tokens once there is a model.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct WordArgs {
    /// A text that is never written, with and without a space before it
    #[arg(long = "bad-word", value_name = "TEXT")]
    bad_words: Vec<String>,
    /// A text that repetitions do not reach back over (DRY) [default: line
    /// feed, `:`, `"` and `*`]
    #[arg(long = "dry-sequence-breaker", value_name = "TEXT")]
    breakers: Vec<String>,
}

/// llama.cpp's.
const BREAKERS: &[&str] = &["\n", ":", "\"", "*"];

impl WordArgs {
    /// Adds the tokens of the texts to what the user says.
    pub(crate) fn add_to(
        &self,
        layers: &mut SettingLayers,
        tokenizer: &ModelTokenizer,
    ) -> Result<(), Fail> {
        let encode = |text: &str| -> Result<Vec<TokenId>, Fail> {
            let ids = tokenizer.encode(text, false).map_err(Fail::model)?;
            Ok(ids.into_iter().map(TokenId).collect())
        };
        let user = &mut layers.user;
        for word in &self.bad_words {
            let spellings = BadWords::spellings(word, encode)?;
            user.bad_words_ids.get_or_insert_default().extend(spellings);
        }
        let has_dry = user.dry_multiplier.is_some_and(|it| it > 0.0);
        let by_default = if has_dry && user.dry_sequence_breakers.is_none() {
            BREAKERS
        } else {
            &[]
        };
        let given: Vec<&str> = if self.breakers.is_empty() {
            by_default.to_vec()
        } else {
            self.breakers.iter().map(String::as_str).collect()
        };
        for text in given {
            let vocabulary = tokenizer.vocabulary();
            let breakers = Dry::breakers(text, vocabulary, encode)?;
            let all = user.dry_sequence_breakers.get_or_insert_default();
            all.extend(breakers);
        }
        Ok(())
    }
}

/// What holds where nobody says anything: nothing is left to chance.
fn greedy() -> Settings {
    Settings { temperature: Some(0.0), ..Settings::default() }
}

/// Says on standard error how tokens are chosen, and what to know of it.
pub(crate) fn report(sampling: &EffectiveSampling) -> Result<(), Fail> {
    let mut stderr = io::stderr().lock();
    for warning in &sampling.warnings {
        writeln!(stderr, "warning: {warning}").map_err(Fail::write)?;
    }
    writeln!(stderr, "sampling: {sampling}").map_err(Fail::write)
}

/// Returns the warnings as texts, for machines.
pub(crate) fn texts(warnings: &[SamplingWarning]) -> Vec<String> {
    warnings.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_lists_of_numbers_and_ranges() {
        let read = |text| -> Result<Vec<u32>, String> {
            let Ids(tokens) = ids(text)?;
            Ok(tokens.into_iter().map(|token| token.0).collect())
        };
        assert_eq!(read("3, 10-12,7"), Ok(vec![3, 10, 11, 12, 7]));
        for bad in ["", "3,", "a", "-1", "99999999999", "0-4294967295"] {
            assert!(read(bad).is_err(), "{bad:?} is read");
        }
        let (Ids(tokens), bias) = sequence_bias("1,2=-0.5").expect("a bias");
        assert_eq!((tokens, bias), (vec![TokenId(1), TokenId(2)], -0.5));
        assert!(token_bias("1,2=1").is_err());
        assert_eq!(decay("10,1.5"), Ok((10, 1.5)));
        assert!(decay("10").is_err());
    }
}
