//! From a request to text: the loop over decode steps.

use std::{
    fmt,
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    chat::{ChatError, ChatTemplate, Message},
    detokenise::Detokeniser,
    session::Session,
    toy,
};
use crate::{
    compiled::{BindError, CompiledGrammar},
    grammar::Grammar,
    mask::TokenTrie,
    matcher::{Matcher, MatcherError},
    model::{LoadedModel, Model, ModelError, ModelTokenizer},
    pipeline::{History, PipelineError, SamplingOptions, Scratch, Step},
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
    /// The number of tokens in the prompt.
    pub n_prompt: usize,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// The time until the logits after the prompt.
    pub prompt_time: Duration,
    /// The time from there to the end.
    pub decode_time: Duration,
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
    session: Session,
    encoder: Arc<dyn Encoder>,
    trie: Arc<TokenTrie>,
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
        Ok(Generator::from_parts(model, tokenizer, vocabulary, chat))
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
    /// Fails when the prompt does not fit the model, when an option is out of
    /// range, and when the model or the grammar fails. What fails is never
    /// passed off as the end of the output.
    pub fn generate(
        &mut self,
        request: &Request,
        on_text: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<Generation, GenerateError> {
        let started = Instant::now();
        let pipeline = request.sampling.build()?;
        let prompt = self.encode(&request.prompt)?;
        self.session.feed(&prompt)?;
        let prompt_time = started.elapsed();
        let matcher = request
            .grammar
            .as_ref()
            .map(|grammar| Matcher::new(Arc::clone(grammar)))
            .transpose()?;
        let mut run = Run {
            generator: self,
            matcher,
            history: History::new(token_ids(&prompt)),
            detokeniser: Detokeniser::new(),
            text: String::new(),
            n_forced: 0,
            n_emitted: 0,
        };
        let mut scratch = Scratch::new();
        let mut row = Vec::new();
        let finish_reason = loop {
            if run.is_finished()? {
                break FinishReason::Grammar;
            }
            let n_left = request.max_tokens.saturating_sub(run.n_output());
            if n_left == 0 || run.generator.session.remaining() == 0 {
                break FinishReason::Length;
            }
            if !run.take_forced(n_left)? {
                let token = run.sample(&pipeline, &mut row, &mut scratch)?;
                if run.generator.vocabulary().is_end(token) {
                    break FinishReason::Stop;
                }
                run.take(&[token], n_left)?;
            }
            if run.emit(on_text).is_break() {
                break FinishReason::Cancelled;
            }
        };
        run.finish(on_text);
        Ok(Generation {
            text: std::mem::take(&mut run.text),
            tokens: run.history.output().to_vec(),
            n_forced: run.n_forced,
            n_prompt: prompt.len(),
            finish_reason,
            prompt_time,
            decode_time: started.elapsed().saturating_sub(prompt_time),
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

fn token_ids(tokens: &[u32]) -> Vec<TokenId> {
    tokens.iter().map(|&token| TokenId(token)).collect()
}

/// One request that is running.
struct Run<'a> {
    generator: &'a mut Generator,
    matcher: Option<Matcher>,
    history: History,
    detokeniser: Detokeniser,
    text: String,
    n_forced: usize,
    /// How many bytes of `text` the receiver has.
    n_emitted: usize,
}

impl Run<'_> {
    fn n_output(&self) -> usize {
        self.history.output().len()
    }

    /// Whether the grammar allows nothing more.
    fn is_finished(&mut self) -> Result<bool, GenerateError> {
        let Some(matcher) = &mut self.matcher else { return Ok(false) };
        if !matcher.is_accepting()? {
            return Ok(false);
        }
        let vocabulary = self.generator.vocabulary();
        let mask = matcher.mask()?;
        Ok(mask.tokens().all(|token| vocabulary.is_end(token)))
    }

    /// Takes tokens that have no alternative, without asking the model.
    ///
    /// Forced bytes are split as the tokenizer splits them, and the last
    /// token of the split is left out: what comes after could join it.
    fn take_forced(&mut self, n_left: usize) -> Result<bool, GenerateError> {
        let Some(matcher) = &mut self.matcher else { return Ok(false) };
        let bytes = matcher.forced_bytes()?;
        if bytes.len() < 2 {
            return Ok(false);
        }
        let Ok(text) = std::str::from_utf8(&bytes) else {
            return Ok(false);
        };
        let mut tokens =
            token_ids(&self.generator.encoder.encode(text, false)?);
        tokens.pop();
        let spelled: Option<Vec<&[u8]>> = tokens
            .iter()
            .map(|&token| self.generator.vocabulary().token_bytes(token))
            .collect();
        let is_prefix = spelled
            .is_some_and(|spelled| bytes.starts_with(&spelled.concat()));
        if tokens.is_empty() || !is_prefix {
            return Ok(false);
        }
        self.n_forced += tokens.len().min(n_left);
        self.take(&tokens, n_left)?;
        Ok(true)
    }

    /// Chooses the next token.
    fn sample(
        &mut self,
        pipeline: &crate::pipeline::Pipeline,
        row: &mut Vec<f32>,
        scratch: &mut Scratch,
    ) -> Result<TokenId, GenerateError> {
        row.clear();
        let logits = self.generator.session.logits();
        row.extend_from_slice(logits.ok_or(GenerateError::NoLogits)?);
        let mut step = Step::new(&self.history);
        step.position = self.n_output() as u64;
        if let Some(matcher) = &mut self.matcher {
            step = step.with_mask(matcher.mask()?.bits().as_slice());
        }
        Ok(pipeline.choose(row, &step, scratch)?.token)
    }

    /// Takes at most `n_left` tokens into the output.
    fn take(
        &mut self,
        tokens: &[TokenId],
        n_left: usize,
    ) -> Result<(), GenerateError> {
        let session = &mut self.generator.session;
        let n = tokens.len().min(n_left).min(session.remaining());
        let tokens = &tokens[..n];
        for &token in tokens {
            if let Some(matcher) = &mut self.matcher {
                matcher.accept(token)?;
            }
            self.history.push(token);
            let bytes = self.generator.trie.vocabulary().token_bytes(token);
            self.detokeniser.push(bytes.unwrap_or_default(), &mut self.text);
        }
        let ids: Vec<u32> = tokens.iter().map(|token| token.0).collect();
        self.generator.session.append(&ids)?;
        Ok(())
    }

    fn emit(
        &mut self,
        on_text: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let new = &self.text[self.n_emitted..];
        if new.is_empty() {
            return ControlFlow::Continue(());
        }
        let flow = on_text(new);
        self.n_emitted = self.text.len();
        flow
    }

    /// Hands over what is left.
    fn finish(&mut self, on_text: &mut dyn FnMut(&str) -> ControlFlow<()>) {
        self.detokeniser.finish(&mut self.text);
        let _ = self.emit(on_text);
    }
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
    /// The model gave no logits to choose from.
    #[error("the model gave no logits after the last token")]
    NoLogits,
}
