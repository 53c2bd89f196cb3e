//! From a request to text: the loop over decode steps.

use std::{
    fmt,
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    chat::{ChatError, ChatTemplate, Message},
    run::Run,
    session::Session,
    toy,
};
use crate::{
    compiled::{BindError, CompiledGrammar},
    grammar::{Grammar, SchemaOptions},
    mask::TokenTrie,
    matcher::MatcherError,
    model::{LoadedModel, Model, ModelError, ModelTokenizer},
    pipeline::{PipelineError, SamplingOptions},
    vocabulary::{TokenId, Vocabulary},
};

/// Splits text into a model's tokens.
pub trait Encoder: fmt::Debug + Send + Sync {
    /// Splits `text`. Special tokens that are written in it become those
    /// tokens; with `add_special`, what the model expects around a plain text
    /// is added.
    ///
    /// # Errors
    ///
    /// Fails when the tokenizer does.
    fn encode(
        &self,
        text: &str,
        add_special: bool,
    ) -> Result<Vec<u32>, ModelError>;
}

impl Encoder for ModelTokenizer {
    fn encode(
        &self,
        text: &str,
        add_special: bool,
    ) -> Result<Vec<u32>, ModelError> {
        ModelTokenizer::encode(self, text, add_special)
    }
}

/// What is asked of the model before it writes.
#[derive(Clone, Debug)]
pub enum Prompt {
    /// A text to continue.
    Text(String),
    /// A conversation to answer, which the model's chat template renders.
    Chat(Vec<Message>),
}

/// One request.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is asked.
    pub prompt: Prompt,
    /// What the output must fit; nothing lets the model write freely.
    pub grammar: Option<Arc<CompiledGrammar>>,
    /// The greatest number of tokens in the output.
    pub max_tokens: usize,
    /// How each token is chosen.
    pub sampling: SamplingOptions,
    /// Whether an output under a grammar must be whole within `max_tokens`.
    ///
    /// Tokens after which it could not be finished any more are forbidden
    /// then, as those that the grammar forbids. If no text is short enough,
    /// that is an error before the model is asked. Only where no short text
    /// is found at all (see [`Planner`](crate::budget::Planner)) may the
    /// output still be cut off.
    pub finish_within_budget: bool,
}

/// Why the output ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FinishReason {
    /// The model ended it.
    Stop,
    /// The grammar allows nothing more.
    Grammar,
    /// The limit on tokens, or the model's context, was reached. Under a
    /// grammar the text is the beginning of a valid one, not a valid one.
    Length,
    /// The receiver of the text asked to stop.
    Cancelled,
}

impl FinishReason {
    /// Returns the name of the reason, for machines.
    pub fn name(self) -> &'static str {
        match self {
            FinishReason::Stop => "stop",
            FinishReason::Grammar => "grammar",
            FinishReason::Length => "length",
            FinishReason::Cancelled => "cancelled",
        }
    }
}

/// What came out of one request.
#[derive(Clone, Debug)]
pub struct Generation {
    /// The text.
    pub text: String,
    /// Its tokens, without the end token.
    pub tokens: Vec<TokenId>,
    /// How many of them had no alternative and were not sampled.
    pub n_forced: usize,
    /// How many tokens were drawn from fewer than the grammar allows, or not
    /// drawn at all, so that the output is finished in time.
    pub n_steered: usize,
    /// The number of tokens in the prompt.
    pub n_prompt: usize,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// The time until the logits after the prompt.
    pub prompt_time: Duration,
    /// The time from there to the end.
    pub decode_time: Duration,
    /// The part of both that was spent on finishing in time.
    pub plan_time: Duration,
}

impl Generation {
    /// Returns true if and only if the text is whole: under a grammar, it
    /// fits.
    pub fn is_complete(&self) -> bool {
        matches!(
            self.finish_reason,
            FinishReason::Stop | FinishReason::Grammar
        )
    }
}

/// A model, ready to write under a grammar.
///
/// It keeps what the model remembers of the last request, so that requests
/// with a common beginning pay for it once.
#[derive(Debug)]
pub struct Generator {
    pub(super) session: Session,
    pub(super) encoder: Arc<dyn Encoder>,
    pub(super) trie: Arc<TokenTrie>,
    chat: ChatTemplate,
}

impl Generator {
    /// Creates a generator from a model.
    ///
    /// # Errors
    ///
    /// Fails when the model's chat template cannot be read.
    pub fn new(loaded: LoadedModel) -> Result<Generator, GenerateError> {
        let LoadedModel { model, tokenizer, .. } = loaded;
        let chat = ChatTemplate::new(
            tokenizer.chat_template(),
            tokenizer.begin_text(),
            tokenizer.end_text(),
        )?;
        let vocabulary = Arc::clone(tokenizer.vocabulary());
        let generator =
            Generator::from_parts(model, tokenizer, vocabulary, chat);
        generator.trie.warm_up(&SchemaOptions::default());
        Ok(generator)
    }

    /// Creates a generator from parts of your own.
    pub fn from_parts(
        model: Arc<dyn Model>,
        encoder: Arc<dyn Encoder>,
        vocabulary: Arc<Vocabulary>,
        chat: ChatTemplate,
    ) -> Generator {
        let trie = Arc::new(TokenTrie::new(vocabulary));
        Generator { session: Session::new(model), encoder, trie, chat }
    }

    /// Creates a generator over single bytes with a model that has learned
    /// nothing, for examples and tests.
    pub fn toy() -> Generator {
        toy::generator()
    }

    /// Returns the vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.trie.vocabulary()
    }

    /// Brings a grammar and this model's vocabulary together.
    ///
    /// # Errors
    ///
    /// Fails when the grammar names a token that the vocabulary lacks.
    pub fn compile(
        &self,
        grammar: &Grammar,
    ) -> Result<Arc<CompiledGrammar>, BindError> {
        grammar.compile(&self.trie)
    }

    /// Returns the tokens of a prompt.
    ///
    /// # Errors
    ///
    /// Fails when the chat template refuses the messages, and when the
    /// tokenizer fails.
    pub fn encode(&self, prompt: &Prompt) -> Result<Vec<u32>, GenerateError> {
        Ok(match prompt {
            Prompt::Text(text) => self.encoder.encode(text, true)?,
            Prompt::Chat(messages) => {
                self.encoder.encode(&self.chat.render(messages)?, false)?
            }
        })
    }

    /// Writes. `on_text` receives the text as it comes, in whole characters,
    /// and may ask to stop.
    ///
    /// # Errors
    ///
    /// Fails when the prompt does not fit the model, when the output cannot
    /// be finished within the limit on tokens and must be, when an option is
    /// out of range, and when the model or the grammar fails. What fails is
    /// never passed off as the end of the output.
    pub fn generate(
        &mut self,
        request: &Request,
        on_text: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<Generation, GenerateError> {
        let started = Instant::now();
        let pipeline = request.sampling.build()?;
        let prompt = self.encode(&request.prompt)?;
        let mut run = Run::new(self, request, &prompt)?;
        run.generator.session.feed(&prompt)?;
        let prompt_time = started.elapsed();
        let finish_reason = loop {
            let finish_reason = run.step(&pipeline)?;
            if run.emit(on_text).is_break() {
                break FinishReason::Cancelled;
            }
            if let Some(finish_reason) = finish_reason {
                break finish_reason;
            }
        };
        run.finish(on_text);
        Ok(Generation {
            text: std::mem::take(&mut run.text),
            tokens: run.history.output().to_vec(),
            n_forced: run.n_forced,
            n_steered: run.n_steered,
            n_prompt: prompt.len(),
            finish_reason,
            prompt_time,
            decode_time: started.elapsed().saturating_sub(prompt_time),
            plan_time: run.steering.map_or(Duration::ZERO, |s| s.time),
        })
    }

    /// Returns, for each text, the natural logarithm of the probability that
    /// the model answers the prompt with it and then ends: all tokens of the
    /// text, as the tokenizer splits it, and any of the end tokens.
    ///
    /// # Errors
    ///
    /// Fails when the prompt or a text does not fit the model, and when the
    /// model fails.
    pub fn log_probabilities<S: AsRef<str>>(
        &mut self,
        prompt: &Prompt,
        texts: &[S],
    ) -> Result<Vec<f64>, GenerateError> {
        let prompt = self.encode(prompt)?;
        let first = self.session.feed(&prompt)?.to_vec();
        let ends = self.vocabulary().end_tokens();
        let ends: Vec<u32> = ends.iter().map(|token| token.0).collect();
        texts
            .iter()
            .map(|text| {
                let tokens = self.encoder.encode(text.as_ref(), false)?;
                self.session.truncate(prompt.len());
                let mut sum = 0.0;
                let mut row = first.clone();
                for &token in &tokens {
                    sum += log_probability(&row, &[token]);
                    row.clear();
                    row.extend_from_slice(self.session.append(&[token])?);
                }
                Ok(sum + log_probability(&row, &ends))
            })
            .collect()
    }
}

/// The logarithm of the probability that one of `tokens` comes next.
fn log_probability(row: &[f32], tokens: &[u32]) -> f64 {
    let chosen: Vec<f32> = tokens
        .iter()
        .filter_map(|&token| row.get(token as usize).copied())
        .collect();
    if chosen.is_empty() {
        return f64::NEG_INFINITY;
    }
    crate::pipeline::log_sum_exp(&chosen) - crate::pipeline::log_sum_exp(row)
}

/// An error that occurs while a request is running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// The model or its tokenizer failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The chat template failed.
    #[error(transparent)]
    Chat(#[from] ChatError),
    /// The grammar and the vocabulary do not fit together.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The matcher failed.
    #[error(transparent)]
    Matcher(#[from] MatcherError),
    /// A step of the pipeline failed.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// No text of the grammar that is short enough was found.
    #[error(
        "the shortest output that was found needs {needed} tokens, and \
         {limit} are allowed or fit the model; raise the limit on tokens, \
         shorten the prompt, or allow the output to be cut off"
    )]
    Budget {
        /// How many tokens the shortest text that was found needs.
        needed: usize,
        /// The limit, or the room that the prompt leaves.
        limit: usize,
    },
    /// The model gave no logits to choose from.
    #[error("the model gave no logits after the last token")]
    NoLogits,
}
