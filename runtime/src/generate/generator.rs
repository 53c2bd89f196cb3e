//! A model that is ready to write: from a request to what came out.

use std::{
    fmt,
    ops::ControlFlow,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use super::{
    beam,
    chat::ChatTemplate,
    error::GenerateError,
    fingerprint::{Fingerprint, options_digest},
    guide::{Guide, Shared},
    heal::{self, Healing},
    request::{Prompt, Request, Search, sample_seed},
    result::{FinishReason, Generation, Piece},
    sample::{self, Receiver},
    sequence::Sequence,
    session::{CHUNK, Session},
    stop::StopSet,
    toy,
};
use crate::{
    compiled::{BindError, CompiledGrammar},
    grammar::{Grammar, SchemaOptions},
    mask::TokenTrie,
    model::{LoadedModel, Model, ModelError, ModelTokenizer, content_digest},
    pipeline::{Pipeline, SamplingOptions, TruncationOptions},
    vocabulary::Vocabulary,
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
    /// Where the model came from.
    path: Option<PathBuf>,
    /// The digest of what lies there, once it was asked for.
    digest: OnceLock<String>,
}

impl Generator {
    /// Creates a generator from a model.
    ///
    /// # Errors
    ///
    /// Fails when the model's chat template cannot be read.
    pub fn new(loaded: LoadedModel) -> Result<Generator, GenerateError> {
        let LoadedModel { model, tokenizer, path, .. } = loaded;
        let chat = ChatTemplate::new(
            tokenizer.chat_template(),
            tokenizer.begin_text(),
            tokenizer.end_text(),
        )?;
        let vocabulary = Arc::clone(tokenizer.vocabulary());
        let generator = Generator {
            path: Some(path),
            ..Generator::from_parts(model, tokenizer, vocabulary, chat)
        };
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
        Generator {
            session: Session::new(model),
            encoder,
            trie,
            chat,
            path: None,
            digest: OnceLock::new(),
        }
    }

    /// Creates a generator over single bytes with a model that has learned
    /// nothing, for examples and tests.
    pub fn toy() -> Generator {
        toy::generator()
    }

    /// Returns what a result of this request depends on beside prompt, grammar
    /// and seed. The first call reads the model's files once more, for their
    /// digest.
    ///
    /// # Errors
    ///
    /// Fails when a file cannot be read any more.
    pub fn fingerprint(
        &self,
        request: &Request,
    ) -> Result<Fingerprint, ModelError> {
        if let (Some(path), None) = (&self.path, self.digest.get()) {
            // Another thread may have been faster; it has read the same.
            let _ = self.digest.set(content_digest(path)?);
        }
        Ok(Fingerprint {
            model: self.digest.get().cloned(),
            computation: self.session.model().describe(),
            version: env!("CARGO_PKG_VERSION"),
            options: options_digest(request),
        })
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

    /// Writes, and returns the first of the sequences. `on_text` receives its
    /// text as it comes, in whole characters, and may ask to stop; it is not
    /// called again then. Where sequences have to be ranked first, all of the
    /// text comes at the end.
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
        let mut receive = |piece: Piece<'_>| match piece.sequence {
            0 => on_text(piece.text),
            _ => ControlFlow::Continue(()),
        };
        let all = self.generate_all(request, &mut receive)?;
        all.into_iter().next().ok_or(GenerateError::NoLogits)
    }

    /// Writes, and returns all sequences that were asked for: at least one,
    /// and fewer than asked for only where a search with beams finds no more.
    ///
    /// # Errors
    ///
    /// As [`Generator::generate`].
    pub fn generate_all(
        &mut self,
        request: &Request,
        on_piece: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>,
    ) -> Result<Vec<Generation>, GenerateError> {
        let started = Instant::now();
        request.check()?;
        let pipelines = pipelines(request, self.vocabulary())?;
        let (prompt, tail) = self.prompt(request)?;
        let encoder = Arc::clone(&self.encoder);
        let trie = Arc::clone(&self.trie);
        let shared = Shared {
            request,
            encoder: &*encoder,
            trie: &trie,
            stops: Arc::new(StopSet::new(&request.stop.strings)),
            is_scored: request.logprobs.is_some() || is_ranked(request),
            context: self.session.model().context_length(),
        };
        let Some(sequences) =
            self.start(&shared, &prompt, &tail, &pipelines)?
        else {
            return Ok(vec![cancelled(prompt.len(), started.elapsed())]);
        };
        let prompt_time = started.elapsed();
        let mut receiver = Once { on_piece, has_stopped: false };
        let mut receive = |piece: Piece<'_>| receiver.receive(piece);
        let sequences =
            self.run(sequences, &pipelines, &shared, &mut receive)?;
        let decode_time = started.elapsed().saturating_sub(prompt_time);
        let end = |sequence: Sequence| {
            sequence.into_generation(&shared, prompt_time, decode_time)
        };
        Ok(sequences.into_iter().map(end).collect())
    }

    /// Returns the tokens of the prompt that are fed, and what is to be
    /// spelled again of its end.
    pub(super) fn prompt(
        &self,
        request: &Request,
    ) -> Result<(Vec<u32>, Vec<u8>), GenerateError> {
        if request.boundaries.heal
            && let Prompt::Text(text) = &request.prompt
            && let Some(Healing { tokens, tail }) =
                heal::split(&*self.encoder, &self.trie, text)?
        {
            return Ok((tokens, tail));
        }
        Ok((self.encode(&request.prompt)?, Vec::new()))
    }

    /// Has the model read the prompt, and returns the sequences that begin
    /// with it; none if the request was interrupted.
    fn start(
        &mut self,
        shared: &Shared<'_>,
        prompt: &[u32],
        tail: &[u8],
        pipelines: &[Pipeline],
    ) -> Result<Option<Vec<Sequence>>, GenerateError> {
        let request = shared.request;
        let limit = match shared.context.checked_sub(prompt.len()) {
            Some(room) => request.max_tokens.min(room),
            // That the prompt does not fit is said by the session.
            None => usize::MAX,
        };
        let guides = sample::unless_interrupted(shared, || {
            // Each plans for itself, so that it is what it would be alone.
            let guide = || Guide::new(request, tail.to_vec(), limit);
            pipelines.iter().map(|_| guide()).collect::<Result<Vec<_>, _>>()
        })?;
        let Some(guides) = guides else { return Ok(None) };
        if !self.feed(shared, prompt)? {
            return Ok(None);
        }
        let sequence =
            |guide| Sequence::new(self.session.fork(), prompt, guide, shared);
        Ok(Some(guides.into_iter().map(sequence).collect()))
    }

    /// Has the model read the prompt, and returns false if that was broken
    /// off. What was read until then is kept.
    fn feed(
        &mut self,
        shared: &Shared<'_>,
        prompt: &[u32],
    ) -> Result<bool, GenerateError> {
        let mut end = self.session.common_prefix(prompt);
        if shared.request.interrupt.is_none() || prompt.len() > shared.context
        {
            end = prompt.len();
        }
        loop {
            end = prompt.len().min(end.saturating_add(CHUNK));
            let go_on = sample::unless_interrupted(shared, || Ok(()))?;
            if go_on.is_none() {
                return Ok(false);
            }
            self.session.feed(&prompt[..end])?;
            if end == prompt.len() {
                return Ok(true);
            }
        }
    }

    /// Runs the search that was asked for, hands over all text, and returns
    /// the sequences in order.
    fn run(
        &mut self,
        mut sequences: Vec<Sequence>,
        pipelines: &[Pipeline],
        shared: &Shared<'_>,
        receive: &mut Receiver<'_>,
    ) -> Result<Vec<Sequence>, GenerateError> {
        match shared.request.search {
            Search::Sample { n, best_of } => {
                let is_streamed = best_of <= n;
                sample::run(
                    &mut sequences,
                    pipelines,
                    shared,
                    is_streamed,
                    receive,
                )?;
                if !is_streamed {
                    sample::rank(&mut sequences, shared);
                    sequences.truncate(n);
                }
            }
            Search::Beams(mut beams) => {
                beams.sampled &= !shared.request.sampling.is_greedy();
                beams.width = beams.followed();
                let first = sequences.swap_remove(0);
                sequences = beam::run(first, beams, &pipelines[0], shared)?;
            }
        }
        for (index, sequence) in sequences.iter_mut().enumerate() {
            sequence.writer.finish();
            if let Some(text) = sequence.writer.piece(true) {
                // There is nothing left to stop.
                let _ = receive(Piece { sequence: index, text });
            }
        }
        // What the next request may go on from.
        if let Some(first) = sequences.first_mut()
            && !first.session.tokens().is_empty()
        {
            std::mem::swap(&mut self.session, &mut first.session);
        }
        Ok(sequences)
    }

    /// Forgets what the model remembers of the last request, and gives the
    /// memory back.
    pub fn forget(&mut self) {
        self.session.truncate(0);
    }

    /// Returns the bytes of what the model remembers of the last request.
    pub fn memory_usage(&self) -> usize {
        self.session.memory_usage()
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

/// Whether sequences are ranked by their log-probabilities.
pub(super) fn is_ranked(request: &Request) -> bool {
    match request.search {
        Search::Sample { n, best_of } => best_of > n,
        Search::Beams(_) => true,
    }
}

/// Returns a pipeline for each of the sequences that are drawn, or one for a
/// search with beams.
pub(super) fn pipelines(
    request: &Request,
    vocabulary: &Vocabulary,
) -> Result<Vec<Pipeline>, GenerateError> {
    let mut sampling = request.sampling.clone();
    sampling.length.max_new_tokens.get_or_insert(request.max_tokens);
    // What is out of range is so even where it has no effect.
    let own = sampling.build_for(vocabulary)?;
    if let Search::Beams(beams) = request.search
        && !beams.sampled
    {
        let greedy = SamplingOptions {
            temperature: 0.0,
            truncation: TruncationOptions::default(),
            ..sampling
        };
        return Ok(vec![greedy.build_for(vocabulary)?]);
    }
    let mut pipelines = vec![own];
    for index in 1..request.n_sequences() {
        let seed = sample_seed(sampling.seed, index);
        let sampling = SamplingOptions { seed, ..sampling.clone() };
        pipelines.push(sampling.build_for(vocabulary)?);
    }
    Ok(pipelines)
}

/// What comes out of a request that was cancelled before it began.
pub(super) fn cancelled(n_prompt: usize, prompt_time: Duration) -> Generation {
    Generation {
        text: String::new(),
        tokens: Vec::new(),
        n_forced: 0,
        n_steered: 0,
        n_yielded: 0,
        n_prompt,
        finish_reason: FinishReason::Cancelled,
        stop_string: None,
        prompt_time,
        decode_time: Duration::ZERO,
        plan_time: Duration::ZERO,
        trace: super::result::Trace::default(),
        is_whole: false,
    }
}

/// A receiver that is not called again once it has asked to stop.
struct Once<'a> {
    on_piece: &'a mut dyn FnMut(Piece<'_>) -> ControlFlow<()>,
    has_stopped: bool,
}

impl Once<'_> {
    fn receive(&mut self, piece: Piece<'_>) -> ControlFlow<()> {
        if self.has_stopped {
            return ControlFlow::Break(());
        }
        let flow = (self.on_piece)(piece);
        self.has_stopped = flow.is_break();
        flow
    }
}
