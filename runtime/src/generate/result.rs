//! What comes out of a request.

use std::{iter::Sum, ops::Add, time::Duration};

use crate::vocabulary::TokenId;

/// Why the output ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FinishReason {
    /// The model ended it.
    Stop,
    /// One of the stop strings was complete.
    StopString,
    /// The grammar allows nothing more.
    Grammar,
    /// The limit on tokens, or the model's context, was reached. Under a
    /// grammar the text is the beginning of a valid one, not a valid one.
    Length,
    /// The receiver of the text asked to stop, or the request was
    /// interrupted.
    Cancelled,
}

impl FinishReason {
    /// Returns the name of the reason, for machines.
    pub fn name(self) -> &'static str {
        match self {
            FinishReason::Stop => "stop",
            FinishReason::StopString => "stop_string",
            FinishReason::Grammar => "grammar",
            FinishReason::Length => "length",
            FinishReason::Cancelled => "cancelled",
        }
    }
}

/// What came out of one request, or one of the sequences that did.
#[derive(Clone, Debug)]
pub struct Generation {
    /// The text.
    pub text: String,
    /// Its tokens, without the end token. With a stop string, all tokens that
    /// were taken: they spell more than the text. After healing, the first
    /// one may begin with the end of the prompt, which is not in the text.
    pub tokens: Vec<TokenId>,
    /// How many of them had no alternative and were not sampled.
    pub n_forced: usize,
    /// How many tokens were drawn from fewer than the grammar allows, or not
    /// drawn at all, so that the output is finished in time.
    pub n_steered: usize,
    /// How many tokens a stage of the pipeline wanted to forbid and could
    /// not, since nothing else was left: a repeated n-gram, or an end before
    /// the minimum length.
    pub n_yielded: usize,
    /// The number of tokens in the prompt.
    pub n_prompt: usize,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// The index of the stop string that ended it.
    pub stop_string: Option<usize>,
    /// The time until the logits after the prompt.
    pub prompt_time: Duration,
    /// The time from there to the end.
    pub decode_time: Duration,
    /// The part of both that was spent on finishing in time.
    pub plan_time: Duration,
    /// How it came about.
    pub trace: Trace,
    pub(super) is_whole: bool,
}

impl Generation {
    /// Returns true if and only if the text is whole: under a grammar, it
    /// fits. A text that a stop string ended is whole if it would be with
    /// nothing behind it.
    pub fn is_complete(&self) -> bool {
        self.is_whole
    }
}

/// How an output came about.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// A record for each of the tokens, in order, if
    /// [`Request::logprobs`](super::Request::logprobs) asked for it.
    pub steps: Vec<TokenTrace>,
    /// The record of the end token, if one was chosen or had no alternative,
    /// and records were asked for.
    pub end: Option<TokenTrace>,
    /// The sum of the tokens' log-probabilities as the model has them, the
    /// end token's included where the model ended the text or would have had
    /// to. None where it was not asked: see [`Trace::n_scored`].
    pub log_probability: Option<f64>,
    /// How many tokens that sum is of.
    pub n_scored: usize,
    /// What the search ranked this sequence by, if it ranked any.
    pub score: Option<f64>,
    /// How many tokens at the beginning spelled nothing but the end of the
    /// prompt again. They count as tokens of the prompt.
    pub n_healed: usize,
    /// How many tokens the tokenizer itself would not have made of the text,
    /// where it was asked for such tokens only.
    pub n_not_canonical: usize,
    /// What the time was spent on.
    pub phases: Phases,
    /// The log-probabilities that were summed up.
    pub(super) logs: Vec<f64>,
}

/// One token of an output, with what the model and the grammar thought of it.
///
/// Log-probabilities are natural logarithms of the model's own distribution,
/// at temperature 1 and without penalties.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenTrace {
    /// The token.
    pub token: TokenId,
    /// How it came into the output.
    pub origin: Origin,
    /// Its log-probability before the mask. None for a token that the model
    /// was not asked about.
    pub before: Option<f64>,
    /// Its log-probability among what the mask allows.
    pub after: Option<f64>,
    /// How much of the model's probability was on forbidden tokens.
    pub removed_mass: Option<f64>,
    /// How many tokens the mask allowed.
    pub n_allowed: Option<usize>,
    /// The likeliest tokens before the mask, with their log-probabilities.
    pub likeliest: Vec<(TokenId, f64)>,
    /// The likeliest among the allowed ones, with their log-probabilities
    /// among these.
    pub allowed: Vec<(TokenId, f64)>,
    /// The likeliest of the forbidden ones, with their log-probabilities
    /// before the mask.
    pub forbidden: Vec<(TokenId, f64)>,
    /// What was being read, in words, before the token; none without a
    /// grammar.
    pub place: Option<String>,
}

/// How a token came into the output.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Origin {
    /// It was chosen from what the mask allows.
    Chosen,
    /// It was chosen from fewer tokens, so that the output can be finished in
    /// time.
    Steered,
    /// It belongs to a plan that ends the output in time.
    Planned,
    /// It had no alternative, as the tokenizer writes it.
    Forced,
    /// It is the end of the text, and the grammar allowed nothing else.
    Ended,
}

impl Origin {
    /// Returns the name, for machines.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Chosen => "chosen",
            Origin::Steered => "steered",
            Origin::Planned => "planned",
            Origin::Forced => "forced",
            Origin::Ended => "ended",
        }
    }
}

/// What the time was spent on. A pass of the model over several sequences
/// counts as a whole for each of them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Phases {
    /// Passes of the model, but for the prompt's.
    pub forward: Duration,
    /// Masks, and what is forced.
    pub mask: Duration,
    /// The stages and the choice.
    pub choice: Duration,
    /// Records and scores.
    pub observe: Duration,
}

impl Add for Phases {
    type Output = Phases;

    fn add(self, other: Phases) -> Phases {
        Phases {
            forward: self.forward + other.forward,
            mask: self.mask + other.mask,
            choice: self.choice + other.choice,
            observe: self.observe + other.observe,
        }
    }
}

impl Sum for Phases {
    fn sum<I: Iterator<Item = Phases>>(phases: I) -> Phases {
        phases.fold(Phases::default(), Phases::add)
    }
}

/// A piece of the text of one of the sequences.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Piece<'a> {
    /// Which of the sequences that are returned.
    pub sequence: usize,
    /// The text.
    pub text: &'a str,
}
