//! What is asked for: prompt, grammar, limits, search and the end.

use std::sync::Arc;

use super::{chat::Message, error::GenerateError, writer::Flush};
use crate::{
    compiled::CompiledGrammar, interrupt::Interrupt, pipeline::SamplingOptions,
};

/// What is asked of the model before it writes.
#[derive(Clone, Debug)]
pub enum Prompt {
    /// A text to continue.
    Text(String),
    /// A conversation to answer, which the model's chat template renders.
    Chat(Vec<Message>),
}

/// One request.
///
/// ```
/// use maskwright::generate::{Prompt, Request, Search};
///
/// let request = Request {
///     prompt: Prompt::Text("Once".to_owned()),
///     max_tokens: 40,
///     search: Search::Sample { n: 2, best_of: 4 },
///     ..Request::default()
/// };
/// assert!(request.ignored().is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct Request {
    /// What is asked.
    pub prompt: Prompt,
    /// What the output must fit; nothing lets the model write freely.
    pub grammar: Option<Arc<CompiledGrammar>>,
    /// The greatest number of tokens in the output; 256 by default.
    pub max_tokens: usize,
    /// How each token is chosen.
    pub sampling: SamplingOptions,
    /// Whether an output under a grammar must be whole within `max_tokens`,
    /// as it must by default.
    ///
    /// Tokens after which it could not be finished any more are forbidden
    /// then, as those that the grammar forbids. If no text is short enough,
    /// that is an error before the model is asked. Only where no short text
    /// is found at all (see [`Planner`](crate::budget::Planner)) may the
    /// output still be cut off.
    pub finish_within_budget: bool,
    /// How many sequences are written, and which are returned.
    pub search: Search,
    /// What ends the output, beside the model and the grammar.
    pub stop: Stop,
    /// When text is handed over.
    pub flush: Flush,
    /// How text and tokens meet.
    pub boundaries: Boundaries,
    /// Whether each token is recorded ([`Trace::steps`]) with its
    /// log-probabilities, and with how many alternatives. Nothing is recorded
    /// by default.
    ///
    /// [`Trace::steps`]: super::Trace::steps
    pub logprobs: Option<usize>,
    /// What may cancel the request: a flag that another thread sets, a limit
    /// on time, or both. It is looked at before and after each pass of the
    /// model, and while masks are made.
    pub interrupt: Option<Interrupt>,
}

impl Default for Request {
    fn default() -> Request {
        Request {
            prompt: Prompt::Text(String::new()),
            grammar: None,
            max_tokens: 256,
            sampling: SamplingOptions::default(),
            finish_within_budget: true,
            search: Search::default(),
            stop: Stop::default(),
            flush: Flush::default(),
            boundaries: Boundaries::default(),
            logprobs: None,
            interrupt: None,
        }
    }
}

/// How many sequences are written, and which are returned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Search {
    /// Independent sequences, drawn as [`Request::sampling`] says. The first
    /// has the request's seed, the others have seeds made of it
    /// ([`sample_seed`]); each is what it would be alone.
    Sample {
        /// How many are returned.
        n: usize,
        /// How many are written. If these are more, the ones with the
        /// greatest mean log-probability of their tokens are returned, best
        /// first; whole ones before those that were cut off.
        best_of: usize,
    },
    /// Beam search.
    Beams(Beams),
}

impl Default for Search {
    fn default() -> Search {
        Search::Sample { n: 1, best_of: 1 }
    }
}

/// Beam search: the strongest beginnings are all followed.
///
/// The score of a finished sequence is the sum of its tokens'
/// log-probabilities, the end token's included, over a penalty for its
/// length. As in Hugging Face's, the logarithm of the softmax comes first,
/// then bias, penalties and the mask; what the mask leaves is not normalised
/// again. So the score of a text is the same under every grammar that allows
/// it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beams {
    /// How many beginnings are followed; at least 1, and never fewer than
    /// `n`.
    pub width: usize,
    /// How many finished sequences are returned, best first; at least 1.
    /// There are fewer only where the grammar, bans or truncations leave
    /// fewer.
    pub n: usize,
    /// What the sum of log-probabilities is divided by.
    pub length_penalty: LengthPenalty,
    /// When the search ends.
    pub early_stopping: EarlyStopping,
    /// Whether the beginnings that go on are drawn, without replacement, from
    /// what temperature and truncations leave, and not the strongest ones.
    pub sampled: bool,
}

impl Default for Beams {
    fn default() -> Beams {
        Beams {
            width: 4,
            n: 1,
            length_penalty: LengthPenalty::default(),
            early_stopping: EarlyStopping::default(),
            sampled: false,
        }
    }
}

impl Beams {
    /// Returns how many beginnings are followed: as many as are asked for,
    /// and as many as sequences are, since fewer beams may all come to their
    /// ends before there are so many.
    pub fn followed(&self) -> usize {
        self.width.max(self.n)
    }
}

/// What the sum of the log-probabilities of a sequence is divided by; its
/// length counts the end token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LengthPenalty {
    /// The length to this power. Greater than 0 favours long sequences, less
    /// short ones.
    Power(f64),
    /// ((5 + length) / 6) to this power (Wu et al., 2016, "Google's Neural
    /// Machine Translation System", equation 14).
    Gnmt(f64),
}

impl Default for LengthPenalty {
    fn default() -> LengthPenalty {
        LengthPenalty::Power(1.0)
    }
}

impl LengthPenalty {
    /// Returns the score of a sequence of so many tokens.
    pub fn score(self, sum: f64, length: usize) -> f64 {
        let length = f64::from(u32::try_from(length).unwrap_or(u32::MAX));
        match self {
            LengthPenalty::Power(alpha) => sum / length.max(1.0).powf(alpha),
            LengthPenalty::Gnmt(alpha) => {
                sum / ((5.0 + length) / 6.0).powf(alpha)
            }
        }
    }

    fn alpha(self) -> f64 {
        let (LengthPenalty::Power(alpha) | LengthPenalty::Gnmt(alpha)) = self;
        alpha
    }
}

/// When a beam search ends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum EarlyStopping {
    /// As soon as there are as many finished sequences as the width.
    Yes,
    /// When, besides, no beginning has a better score already than the worst
    /// of them, at its present length: a good guess, and the default.
    #[default]
    No,
    /// When no beginning can come to a better score at any length within the
    /// limit.
    Never,
}

/// What ends the output, beside the model and the grammar.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Stop {
    /// Texts that end the output as soon as one is complete in it, wherever
    /// its tokens begin and end. The one that is complete first counts, and
    /// of those the longest.
    pub strings: Vec<String>,
    /// Whether the one that ended the output is part of the text.
    pub include: bool,
}

/// How text and tokens meet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Boundaries {
    /// Whether the end of a prompt that is a text is taken back as far as the
    /// tokenizer could have joined it with what follows, and spelled again by
    /// the first tokens (token healing). Off by default.
    pub heal: bool,
    /// Whether only tokens are taken that the tokenizer itself would have
    /// made of the text. Off by default: every spelling of a legal text is
    /// legal.
    ///
    /// Where the grammar leaves no such token, the step takes one of the
    /// others, and [`Trace::n_not_canonical`] counts it.
    ///
    /// [`Trace::n_not_canonical`]: super::Trace::n_not_canonical
    pub canonical: bool,
    /// Whether what the grammar forces is taken without being chosen, as the
    /// tokenizer would write it, and read by the model in one pass. On by
    /// default.
    pub forced: bool,
}

impl Default for Boundaries {
    fn default() -> Boundaries {
        Boundaries { heal: false, canonical: false, forced: true }
    }
}

/// Returns the seed of one of several samples. The first has the seed of the
/// request.
pub fn sample_seed(seed: u64, index: usize) -> u64 {
    if index == 0 {
        return seed;
    }
    // SplitMix64 (Steele et al., 2014).
    let step = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(index as u64);
    let mut mixed = seed.wrapping_add(step);
    for (shift, factor) in
        [(30, 0xbf58_476d_1ce4_e5b9), (27, 0x94d0_49bb_1331_11eb)]
    {
        mixed = (mixed ^ mixed >> shift).wrapping_mul(factor);
    }
    mixed ^ mixed >> 31
}

impl Request {
    /// Returns how many sequences are drawn, or one for a search with beams.
    pub(super) fn n_sequences(&self) -> usize {
        match self.search {
            Search::Sample { n, best_of } => n.max(best_of),
            Search::Beams(_) => 1,
        }
    }

    /// Returns what is set and has no effect, as sentences for whoever wants
    /// to warn about it. What sampling ignores is told by
    /// [`SamplingOptions::warnings`].
    pub fn ignored(&self) -> Vec<String> {
        let mut ignored = Vec::new();
        let mut warn = |text: &str| ignored.push(text.to_owned());
        if self.boundaries.heal && matches!(self.prompt, Prompt::Chat(_)) {
            warn(
                "token healing has no effect on a conversation, whose end \
                 the chat template writes",
            );
        }
        match self.search {
            Search::Sample { n, best_of }
                if n.max(best_of) > 1 && self.sampling.is_greedy() =>
            {
                warn(
                    "all sequences are the same at temperature 0; raise the \
                     temperature, or search with beams",
                );
            }
            Search::Beams(beams)
                if !beams.sampled && !self.sampling.is_greedy() =>
            {
                warn(
                    "temperature, truncations and seed have no effect in a \
                     beam search that does not draw",
                );
            }
            Search::Beams(beams)
                if beams.sampled && self.sampling.is_greedy() =>
            {
                warn("a beam search draws nothing at temperature 0");
            }
            Search::Sample { .. } | Search::Beams(_) => {}
        }
        if let Search::Beams(beams) = self.search
            && beams.width < beams.n
        {
            let (width, n) = (beams.width, beams.n);
            warn(&format!(
                "{width} beams are too few to find {n} sequences for \
                 certain, so {n} are followed"
            ));
        }
        if self.stop.include && self.stop.strings.is_empty() {
            warn("there is no stop string to include");
        }
        if self.grammar.is_none() && !self.boundaries.forced {
            warn("without a grammar nothing is forced");
        }
        ignored
    }

    /// Checks the ranges of what only a generator uses.
    pub(super) fn check(&self) -> Result<(), GenerateError> {
        if let Some(index) =
            self.stop.strings.iter().position(String::is_empty)
        {
            return Err(GenerateError::EmptyStop { index });
        }
        match self.search {
            Search::Sample { n, best_of } => {
                at_least("n", n, 1, "at least 1")?;
                at_least("best_of", best_of, n, "at least n")
            }
            Search::Beams(beams) => {
                at_least("beams", beams.width, 1, "at least 1")?;
                at_least("n", beams.n, 1, "at least 1")?;
                let alpha = beams.length_penalty.alpha();
                if alpha.is_finite() {
                    return Ok(());
                }
                Err(GenerateError::OutOfRange {
                    option: "length_penalty",
                    given: alpha.to_string(),
                    range: "finite; 0 is off",
                })
            }
        }
    }
}

fn at_least(
    option: &'static str,
    given: usize,
    least: usize,
    range: &'static str,
) -> Result<(), GenerateError> {
    if given >= least {
        return Ok(());
    }
    let given = given.to_string();
    Err(GenerateError::OutOfRange { option, given, range })
}
