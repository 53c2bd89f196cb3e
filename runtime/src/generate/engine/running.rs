//! One request that is running beside others.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{RequestId, memory::Ledger, prefixes::Prefixes};
use crate::{
    generate::{
        draw::Workspace,
        error::GenerateError,
        generator::{Generator, cancelled, is_ranked, pipelines},
        guide::{Guide, Shared},
        request::{Request, Search},
        result::{FinishReason, Generation},
        sample,
        sequence::{Portion, Sequence},
        session::Session,
        stop::StopSet,
    },
    model::{BLOCK_LEN, ModelError, Want},
    pipeline::Pipeline,
};

/// Text that is new, with the sequence that it belongs to.
pub(super) type Pieces = Vec<(usize, String)>;

/// A request that is running.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) id: RequestId,
    request: Request,
    stops: Arc<StopSet>,
    pipelines: Vec<Pipeline>,
    prompt: Vec<u32>,
    /// The greatest number of positions of each sequence.
    max_len: usize,
    started: Instant,
    stage: Stage,
    work: Workspace,
}

#[derive(Debug)]
enum Stage {
    /// The model reads the prompt.
    Reading {
        session: Session,
        guides: Vec<Guide>,
        /// How many tokens are being read.
        n_given: usize,
    },
    Writing {
        sequences: Vec<Sequence>,
        /// Which of them have been given something to read.
        hungry: Vec<bool>,
        prompt_time: Duration,
        is_first: bool,
    },
    /// It was cancelled before it wrote anything.
    Cancelled,
}

/// What is left of a request that has ended.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) sequences: Vec<Generation>,
    /// The last of the text.
    pub(super) pieces: Pieces,
    /// What the model remembers of the first sequence.
    pub(super) session: Session,
}

impl Running {
    /// Prepares a request.
    pub(super) fn new(
        id: RequestId,
        request: Request,
        generator: &Generator,
    ) -> Result<Running, GenerateError> {
        let started = Instant::now();
        let pipelines = pipelines(&request, generator.vocabulary())?;
        let (prompt, tail) = generator.prompt(&request)?;
        let model = generator.session.model();
        let context = model.context_length();
        let Some(room) = context.checked_sub(prompt.len()) else {
            let (limit, asked) = (context, prompt.len());
            return Err(ModelError::ContextFull { limit, asked }.into());
        };
        if prompt.is_empty() {
            return Err(ModelError::EmptyFeed.into());
        }
        let limit = request.max_tokens.min(room);
        let guides = sample::unless(request.interrupt.as_ref(), || {
            let guide = || Guide::new(&request, tail.clone(), limit);
            pipelines.iter().map(|_| guide()).collect::<Result<Vec<_>, _>>()
        })?;
        let stage = match guides {
            None => Stage::Cancelled,
            Some(guides) => Stage::Reading {
                session: Session::new(Arc::clone(model)),
                guides,
                n_given: 0,
            },
        };
        Ok(Running {
            id,
            stops: Arc::new(StopSet::new(&request.stop.strings)),
            request,
            pipelines,
            max_len: prompt.len() + limit,
            prompt,
            started,
            stage,
            work: Workspace::default(),
        })
    }

    pub(super) fn n_sequences(&self) -> usize {
        self.pipelines.len()
    }

    /// Begins with what the model remembers of another request that begins
    /// so, if there is one.
    pub(super) fn share(&mut self, others: &[Running], kept: &Prefixes) {
        let Stage::Reading { session, .. } = &mut self.stage else { return };
        let running = others.iter().filter_map(Running::first_session);
        let common = |it: &&Session| it.common_prefix(&self.prompt);
        let Some(best) = running.chain(kept.sessions()).max_by_key(common)
        else {
            return;
        };
        // The last token goes through the model in any case.
        let n_common = common(&best).min(self.prompt.len() - 1);
        if n_common > 0 {
            *session = best.branch();
            session.truncate(n_common);
        }
    }

    /// Gives back what it shares, to wait.
    pub(super) fn unshare(&mut self) {
        if let Stage::Reading { session, .. } = &mut self.stage {
            session.truncate(0);
        }
    }

    /// Whether another request would share more of this prompt if it waited
    /// for the model to have read it.
    pub(super) fn leads(&self, other: &Running) -> bool {
        let n_shared = other.first_session().map_or(0, |it| it.tokens().len());
        let pairs = self.prompt.iter().zip(&other.prompt);
        let n_common = pairs.take_while(|(a, b)| a == b).count();
        self.is_reading() && n_common >= n_shared + 1 + BLOCK_LEN
    }

    fn first_session(&self) -> Option<&Session> {
        match &self.stage {
            Stage::Reading { session, .. } => Some(session),
            Stage::Writing { sequences, .. } => {
                sequences.first().map(|one| &one.session)
            }
            Stage::Cancelled => None,
        }
    }

    /// Returns the bytes that the request needs at most if it shares nothing.
    pub(super) fn needed_alone(&self) -> usize {
        let Some(session) = self.first_session() else { return 0 };
        let mut ledger = Ledger::default();
        let empty = Session::new(Arc::clone(session.model()));
        for _ in 0..self.n_sequences() {
            ledger.enter(empty.cache(), self.max_len);
        }
        ledger.committed()
    }

    /// Enters what the request holds and may come to hold.
    pub(super) fn enter(&self, ledger: &mut Ledger) {
        match &self.stage {
            Stage::Reading { session, .. } => {
                for _ in 0..self.n_sequences() {
                    ledger.enter(session.cache(), self.max_len);
                }
            }
            Stage::Writing { sequences, .. } => {
                for one in sequences {
                    let is_going_on = one.finish.is_none();
                    let len = if is_going_on { self.max_len } else { 0 };
                    ledger.enter(one.session.cache(), len);
                }
            }
            Stage::Cancelled => {}
        }
    }

    /// Takes a token for each sequence that has logits, and what needs no
    /// choice, and returns the text that is new.
    pub(super) fn advance(
        &mut self,
        generator: &Generator,
    ) -> Result<Pieces, GenerateError> {
        let shared = shared(&self.request, &self.stops, generator);
        let Stage::Writing { sequences, is_first, .. } = &mut self.stage
        else {
            let go_on = sample::unless_interrupted(&shared, || Ok(()))?;
            if go_on.is_none() {
                self.stage = Stage::Cancelled;
            }
            return Ok(Pieces::new());
        };
        let is_first = std::mem::take(is_first);
        let (pipelines, work) = (&self.pipelines, &mut self.work);
        let taken =
            sample::take(sequences, pipelines, &shared, work, is_first)?;
        if taken.is_none() {
            self.cancel();
            return Ok(Pieces::new());
        }
        Ok(if self.is_streamed() { self.pieces(false) } else { Vec::new() })
    }

    fn is_streamed(&self) -> bool {
        match self.request.search {
            Search::Sample { n, best_of } => best_of <= n,
            Search::Beams(_) => false,
        }
    }

    fn pieces(&mut self, is_last: bool) -> Pieces {
        let Stage::Writing { sequences, .. } = &mut self.stage else {
            return Pieces::new();
        };
        let piece = |(index, one): (usize, &mut Sequence)| {
            Some((index, one.writer.piece(is_last)?.to_owned()))
        };
        sequences.iter_mut().enumerate().filter_map(piece).collect()
    }

    pub(super) fn is_reading(&self) -> bool {
        matches!(self.stage, Stage::Reading { .. })
    }

    /// Returns up to `n` tokens of the prompt that the model reads next.
    pub(super) fn chunk(&mut self, n: usize) -> Option<Portion<'_>> {
        let Stage::Reading { session, n_given, .. } = &mut self.stage else {
            return None;
        };
        let rest = self.prompt.get(session.tokens().len()..)?;
        let tokens = rest[..n.min(rest.len())].to_vec();
        *n_given = tokens.len();
        if tokens.is_empty() {
            return None;
        }
        let is_last = tokens.len() == rest.len();
        let want = if is_last { Want::Last } else { Want::Nothing };
        Some(Portion { session, tokens, want, ahead: None })
    }

    /// Returns what the model reads next of each sequence.
    pub(super) fn portions(&mut self) -> Vec<Portion<'_>> {
        let Stage::Writing { sequences, hungry, .. } = &mut self.stage else {
            return Vec::new();
        };
        *hungry = sequences.iter().map(Sequence::is_hungry).collect();
        let interrupt = self.request.interrupt.as_ref();
        sequences
            .iter_mut()
            .zip(hungry)
            .filter(|(_, is_hungry)| **is_hungry)
            .map(|(one, _)| one.portion(interrupt))
            .collect()
    }

    /// Notes that the model has read what it was given.
    pub(super) fn fed(&mut self, generator: &Generator, time: Duration) {
        let shared = shared(&self.request, &self.stops, generator);
        match &mut self.stage {
            Stage::Reading { session, guides, n_given } => {
                if std::mem::take(n_given) == 0
                    || session.tokens().len() < self.prompt.len()
                {
                    return;
                }
                let sequences: Vec<Sequence> = std::mem::take(guides)
                    .into_iter()
                    .map(|guide| {
                        let session = session.fork();
                        Sequence::new(session, &self.prompt, guide, &shared)
                    })
                    .collect();
                self.stage = Stage::Writing {
                    hungry: vec![false; sequences.len()],
                    sequences,
                    prompt_time: self.started.elapsed(),
                    is_first: true,
                };
            }
            Stage::Writing { sequences, hungry, .. } => {
                for (one, is_hungry) in sequences.iter_mut().zip(hungry) {
                    if std::mem::take(is_hungry) {
                        one.fed(&shared, time);
                    }
                }
                // The first is what later requests may begin with.
                for one in sequences.iter_mut().skip(1) {
                    if one.finish.is_some() {
                        one.release();
                    }
                }
            }
            Stage::Cancelled => {}
        }
    }

    /// Ends the request here.
    pub(super) fn cancel(&mut self) {
        match &mut self.stage {
            Stage::Writing { sequences, .. } => {
                for one in sequences {
                    one.finish.get_or_insert(FinishReason::Cancelled);
                    one.release();
                }
            }
            stage => *stage = Stage::Cancelled,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        match &self.stage {
            Stage::Reading { .. } => false,
            Stage::Writing { sequences, .. } => {
                sequences.iter().all(|one| one.finish.is_some())
            }
            Stage::Cancelled => true,
        }
    }

    /// Returns what came of it.
    pub(super) fn finish(mut self, generator: &Generator) -> Finished {
        let session = Session::new(Arc::clone(generator.session.model()));
        let elapsed = self.started.elapsed();
        let shared = shared(&self.request, &self.stops, generator);
        let Stage::Writing { sequences, prompt_time, .. } = &mut self.stage
        else {
            let made = cancelled(self.prompt.len(), elapsed);
            let (sequences, pieces) = (vec![made], Pieces::new());
            return Finished { sequences, pieces, session };
        };
        let prompt_time = *prompt_time;
        if let Search::Sample { n, best_of } = self.request.search
            && best_of > n
        {
            sample::rank(sequences, &shared);
            sequences.truncate(n);
        }
        for one in &mut *sequences {
            one.writer.finish();
        }
        drop(shared);
        let pieces = self.pieces(true);
        let shared = self::shared(&self.request, &self.stops, generator);
        let Stage::Writing { mut sequences, .. } = self.stage else {
            return Finished { sequences: Vec::new(), pieces, session };
        };
        let session = match sequences.first_mut() {
            Some(first) => std::mem::replace(&mut first.session, session),
            None => session,
        };
        let decode_time = elapsed.saturating_sub(prompt_time);
        let end = |one: Sequence| {
            one.into_generation(&shared, prompt_time, decode_time)
        };
        let sequences = sequences.into_iter().map(end).collect();
        Finished { sequences, pieces, session }
    }
}

/// Returns what all sequences of a request have in common.
fn shared<'a>(
    request: &'a Request,
    stops: &Arc<StopSet>,
    generator: &'a Generator,
) -> Shared<'a> {
    Shared {
        request,
        encoder: &*generator.encoder,
        trie: &generator.trie,
        stops: Arc::clone(stops),
        is_scored: request.logprobs.is_some() || is_ranked(request),
        context: generator.session.model().context_length(),
    }
}
