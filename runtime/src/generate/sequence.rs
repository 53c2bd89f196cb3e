//! One sequence of a request that is running.
//!
//! Three things happen in turn. [`Sequence::settle`] says whether the text is
//! at its end, and takes what needs no choice. [`Sequence::feed`] has the
//! model read all that was taken since, in one pass, for any number of
//! sequences. [`Sequence::draw`] (or a search of beams) takes one more token
//! with the logits that this gave.

use std::time::{Duration, Instant};

use super::{
    error::GenerateError,
    guide::{Ahead, Guide, MAX_FORCED, Shared},
    record::Taking,
    result::{FinishReason, Generation, Origin, Trace},
    session::Session,
    writer::Writer,
};
use crate::{
    interrupt::Interrupt,
    matcher::{Matcher, MatcherError},
    model::Want,
    pipeline::History,
    vocabulary::TokenId,
};

/// One sequence of a request that is running.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) session: Session,
    pub(super) history: History,
    pub(super) guide: Guide,
    pub(super) writer: Writer,
    pub(super) trace: Trace,
    pub(super) finish: Option<FinishReason>,
    n_forced: usize,
    pub(super) n_steered: usize,
    pub(super) n_yielded: usize,
    /// How many bytes of the first token of the output belong to the prompt.
    n_cut: usize,
    /// The tokens that were taken and that the model has not read; with each,
    /// what is to be recorded once the row before it is known.
    pending: Vec<(TokenId, Option<Taking>)>,
    /// How the end token is to be recorded once the last row is known.
    end: Option<Origin>,
}

/// What the model reads of one sequence in one pass.
#[derive(Debug)]
pub(super) struct Portion<'a> {
    pub(super) session: &'a mut Session,
    pub(super) tokens: Vec<u32>,
    pub(super) want: Want,
    /// The mask for what comes out of it, which is made meanwhile.
    pub(super) ahead: Option<Ahead<'a>>,
}

impl Portion<'_> {
    /// Has the model read several portions in one pass, and makes masks
    /// meanwhile.
    pub(super) fn feed(
        portions: &mut [Portion<'_>],
    ) -> Result<(), GenerateError> {
        let mut ahead = Vec::new();
        let mut batch: Vec<(&mut Session, &[u32], Want)> = Vec::new();
        for portion in portions {
            ahead.extend(portion.ahead.take());
            batch.push((portion.session, &portion.tokens, portion.want));
        }
        let (fed, ()) = rayon::join(
            || Session::append_each(&mut batch),
            || ahead.into_iter().for_each(Ahead::make),
        );
        Ok(fed?)
    }
}

impl Sequence {
    pub(super) fn new(
        session: Session,
        prompt: &[u32],
        guide: Guide,
        shared: &Shared<'_>,
    ) -> Sequence {
        let request = shared.request;
        let prompt: Vec<TokenId> =
            prompt.iter().map(|&token| TokenId(token)).collect();
        let stops = shared.stops.clone();
        Sequence {
            session,
            n_cut: 0,
            history: History::new(prompt),
            guide,
            writer: Writer::new(stops, request.stop.include, request.flush),
            trace: Trace::default(),
            finish: None,
            n_forced: 0,
            n_steered: 0,
            n_yielded: 0,
            pending: Vec::new(),
            end: None,
        }
    }

    /// Returns a sequence that goes its own way from here. It has no logits
    /// until it is fed.
    pub(super) fn branch(&self) -> Sequence {
        Sequence {
            session: self.session.branch(),
            history: self.history.clone(),
            guide: self.guide.clone(),
            writer: self.writer.clone(),
            trace: self.trace.clone(),
            pending: self.pending.clone(),
            ..*self
        }
    }

    /// Does what [`Sequence::branch`] does, with the logits.
    pub(super) fn branch_with_logits(&self) -> Sequence {
        Sequence { session: self.session.fork(), ..self.branch() }
    }

    /// Returns how many tokens may still be written.
    pub(super) fn n_left(&self, shared: &Shared<'_>) -> usize {
        shared.n_left(&self.history)
    }

    /// Says whether the text is at its end, and takes what needs no choice:
    /// a plan that leaves no token to spare, and what the grammar forces if
    /// `is_forcing`.
    pub(super) fn settle(
        &mut self,
        shared: &Shared<'_>,
        is_forcing: bool,
    ) -> Result<(), GenerateError> {
        let started = Instant::now();
        let settled = self.settle_once(shared).and_then(|()| {
            if self.finish.is_some() || !is_forcing {
                return Ok(());
            }
            let n_read =
                self.guide.matcher.as_ref().map_or(0, Matcher::n_steps);
            let forced = self.guide.take_forced(shared, &self.history)?;
            if forced.is_empty() {
                return Ok(());
            }
            let masks = self.masks_since(shared, n_read)?;
            for (token, taking) in forced.into_iter().zip(masks) {
                if self.finish.is_none() {
                    self.n_forced += 1;
                    let taking = Taking { token, ..taking };
                    self.write(shared, token, Some(taking));
                }
            }
            if self.finish.is_some() {
                Ok(())
            } else {
                self.settle_once(shared)
            }
        });
        self.trace.phases.mask += started.elapsed();
        settled
    }

    fn settle_once(
        &mut self,
        shared: &Shared<'_>,
    ) -> Result<(), GenerateError> {
        if self.finish.is_some() {
            return Ok(());
        }
        let n_left = self.n_left(shared);
        if self.guide.is_finished()? {
            self.ends(shared, FinishReason::Grammar, Origin::Ended);
        } else if n_left == 0 {
            self.finish = Some(FinishReason::Length);
        } else if self.guide.is_planned(n_left) {
            self.follow(shared)?;
        }
        Ok(())
    }

    /// Notes an end that nobody chose.
    fn ends(
        &mut self,
        shared: &Shared<'_>,
        reason: FinishReason,
        origin: Origin,
    ) {
        self.finish = Some(reason);
        let has_end = !shared.vocabulary().end_tokens().is_empty();
        if shared.is_scored && has_end {
            self.end = Some(origin);
            if self.pending.is_empty() {
                self.record_end(shared);
            }
        }
    }

    /// Takes the plan. If nobody asks for scores that is all of it: the model
    /// is neither asked nor told, as it would have no say in any of it.
    fn follow(&mut self, shared: &Shared<'_>) -> Result<(), GenerateError> {
        let Some(plan) = self.guide.plan().cloned() else { return Ok(()) };
        let at_once =
            if shared.is_scored { MAX_FORCED } else { plan.n_tokens() };
        for &token in plan.tokens().iter().take(at_once) {
            self.n_steered += 1;
            if shared.vocabulary().is_end(token) {
                self.ends(shared, FinishReason::Stop, Origin::Planned);
                return Ok(());
            }
            let taking = self.taking(shared, token, Origin::Planned)?;
            self.guide.follow(token)?;
            self.write(shared, token, Some(taking));
            if self.finish.is_some() {
                return Ok(());
            }
        }
        if plan.n_tokens() <= at_once {
            self.ends(shared, FinishReason::Grammar, Origin::Ended);
        }
        Ok(())
    }

    /// Prepares the record of a token that is about to be taken.
    pub(super) fn taking(
        &mut self,
        shared: &Shared<'_>,
        token: TokenId,
        origin: Origin,
    ) -> Result<Taking, GenerateError> {
        let mut taking = Taking::new(token, origin);
        if shared.request.logprobs.is_some() {
            taking.mask = self.guide.allowed(shared)?;
            taking.place = self.guide.place();
        }
        Ok(taking)
    }

    /// Prepares the records of the tokens that the matcher has read since it
    /// had read `n_read`.
    fn masks_since(
        &mut self,
        shared: &Shared<'_>,
        n_read: usize,
    ) -> Result<Vec<Taking>, GenerateError> {
        let plain = Taking::new(TokenId(0), Origin::Forced);
        let Some(matcher) = &self.guide.matcher else { return Ok(Vec::new()) };
        let n_forced = matcher.n_steps() - n_read;
        if shared.request.logprobs.is_none() {
            return Ok(vec![plain; n_forced]);
        }
        let mut takings = Vec::new();
        for n_back in (1..=n_forced).rev() {
            let mut before = matcher.fork();
            before.rollback(n_back)?;
            takings.push(Taking {
                mask: Some(before.mask()?.clone()),
                place: Some(before.describe()),
                ..plain.clone()
            });
        }
        Ok(takings)
    }

    /// Takes a token that the guide has read into the output. `taking` is
    /// there if the row before it is not known, or has not been looked at.
    fn write(
        &mut self,
        shared: &Shared<'_>,
        token: TokenId,
        taking: Option<Taking>,
    ) {
        let mut taking = taking.filter(|_| shared.is_scored);
        if self.pending.is_empty()
            && let Some(taking) = taking.take()
        {
            let row = self.session.logits();
            let record = taking.record(&mut self.trace, shared, row);
            self.trace.steps.extend(record);
        }
        self.history.push(token);
        self.pending.push((token, taking));
        let spelled = shared.vocabulary().token_bytes(token);
        if self.writer.push(spelled.unwrap_or_default()) {
            self.finish = Some(FinishReason::StopString);
        }
    }

    /// Takes a token that was chosen from the present logits and that the
    /// guide has read, `n_tail` bytes of which belong to the prompt.
    pub(super) fn write_chosen(
        &mut self,
        shared: &Shared<'_>,
        taking: Taking,
        row: Option<&[f32]>,
        n_tail: usize,
    ) {
        let started = Instant::now();
        let token = taking.token;
        let record = taking.record(&mut self.trace, shared, row);
        self.trace.phases.observe += started.elapsed();
        if shared.vocabulary().is_end(token) {
            self.trace.end = record;
            self.finish = Some(FinishReason::Stop);
            return;
        }
        let spelled = shared.vocabulary().token_bytes(token);
        let spelled = spelled.unwrap_or_default();
        self.pending.push((token, None));
        if n_tail >= spelled.len() && n_tail > 0 {
            // It spells the prompt's end, and belongs to the prompt.
            let mut prompt = self.history.prompt().to_vec();
            prompt.push(token);
            self.history = History::new(prompt);
            self.trace.n_healed += 1;
            return;
        }
        self.trace.steps.extend(record);
        self.history.push(token);
        self.n_cut += n_tail;
        if self.writer.push(&spelled[n_tail..]) {
            self.finish = Some(FinishReason::StopString);
        }
    }

    /// Whether the model has to read on.
    pub(super) fn is_hungry(&self) -> bool {
        let is_asked = || {
            self.end.is_some()
                || self.pending.iter().any(|one| one.1.is_some())
        };
        !self.pending.is_empty() && (self.finish.is_none() || is_asked())
    }

    /// Gives back what the model remembers of the sequence.
    pub(super) fn release(&mut self) {
        self.session = Session::new(self.session.model().clone());
        self.pending.clear();
    }

    /// Returns what the model has to read next of a sequence that is hungry.
    pub(super) fn portion<'a>(
        &'a mut self,
        interrupt: Option<&'a Interrupt>,
    ) -> Portion<'a> {
        let tokens = self.pending.iter().map(|&(token, _)| token.0).collect();
        let is_asked = self.pending.iter().any(|one| one.1.is_some());
        let is_going_on = self.finish.is_none();
        Portion {
            session: &mut self.session,
            tokens,
            want: if is_asked { Want::All } else { Want::Last },
            ahead: self.guide.ahead(interrupt).filter(|_| is_going_on),
        }
    }

    /// Notes that the model has read the last portion.
    pub(super) fn fed(&mut self, shared: &Shared<'_>, time: Duration) {
        self.trace.phases.forward += time;
        self.record_pending(shared);
    }

    /// Has the model read what each sequence took, in one pass.
    pub(super) fn feed(
        sequences: &mut [&mut Sequence],
        shared: &Shared<'_>,
    ) -> Result<(), GenerateError> {
        if sequences.is_empty() {
            return Ok(());
        }
        let started = Instant::now();
        let interrupt = shared.request.interrupt.as_ref();
        let portions = sequences.iter_mut().map(|one| one.portion(interrupt));
        Portion::feed(&mut portions.collect::<Vec<_>>())?;
        let time = started.elapsed();
        for one in sequences {
            one.fed(shared, time);
        }
        Ok(())
    }

    /// Records what the rows of the last pass tell.
    fn record_pending(&mut self, shared: &Shared<'_>) {
        let started = Instant::now();
        let pending = std::mem::take(&mut self.pending);
        let rows: Vec<&[f32]> = self.session.rows().collect();
        // The row after the token before.
        let at = |index: usize| rows.get(index.checked_sub(1)?).copied();
        for (index, (_, taking)) in pending.into_iter().enumerate() {
            if let Some(taking) = taking {
                let record = taking.record(&mut self.trace, shared, at(index));
                self.trace.steps.extend(record);
            }
        }
        self.record_end(shared);
        self.trace.phases.observe += started.elapsed();
    }

    /// Records the likeliest end token, where the text ends by itself.
    fn record_end(&mut self, shared: &Shared<'_>) {
        let Some(origin) = self.end.take() else { return };
        let ends = shared.vocabulary().end_tokens().iter().copied();
        let row = self.session.logits().unwrap_or_default();
        let logit = |token: &TokenId| row.get(token.index()).copied();
        let order = |a: &TokenId, b: &TokenId| {
            let [a, b] = [a, b].map(|it| logit(it).unwrap_or(f32::MIN));
            a.total_cmp(&b)
        };
        // The first of equal ones.
        let Some(token) = ends.rev().max_by(order) else { return };
        let mut taking = Taking::new(token, origin);
        if shared.request.logprobs.is_some() {
            // A mask that cannot be made is only missing from the record.
            taking.mask = self.guide.allowed(shared).ok().flatten();
            taking.place = self.guide.place();
        }
        let row = self.session.logits();
        self.trace.end = taking.record(&mut self.trace, shared, row);
    }

    /// Whether the text is whole.
    pub(super) fn is_whole(&self, shared: &Shared<'_>) -> bool {
        match self.finish {
            Some(FinishReason::Stop | FinishReason::Grammar) => true,
            Some(FinishReason::StopString) => {
                self.fits_when_cut(shared).unwrap_or(false)
            }
            _ => false,
        }
    }

    /// Whether the text that a stop string has cut fits the grammar.
    fn fits_when_cut(
        &self,
        shared: &Shared<'_>,
    ) -> Result<bool, MatcherError> {
        let Some(grammar) = &shared.request.grammar else { return Ok(true) };
        let mut matcher = Matcher::new(grammar.clone())?;
        let mut rest = self.writer.text().as_bytes();
        let vocabulary = shared.vocabulary();
        let mut n_cut = self.n_cut;
        for &token in self.history.output() {
            let spelled = vocabulary.token_bytes(token).unwrap_or_default();
            let own = &spelled[std::mem::take(&mut n_cut)..];
            if own.len() == spelled.len()
                && let Some(after) = rest.strip_prefix(spelled)
            {
                matcher.accept(token)?;
                rest = after;
            } else {
                let (read, after) = rest.split_at(own.len().min(rest.len()));
                matcher.accept_bytes(read)?;
                rest = after;
            }
            if rest.is_empty() {
                break;
            }
        }
        matcher.is_accepting()
    }

    /// Ends the sequence.
    pub(super) fn into_generation(
        mut self,
        shared: &Shared<'_>,
        prompt_time: Duration,
        decode_time: Duration,
    ) -> Generation {
        let is_whole = self.is_whole(shared);
        Generation {
            tokens: self.history.output().to_vec(),
            n_forced: self.n_forced,
            n_steered: self.n_steered,
            n_yielded: self.n_yielded,
            n_prompt: self.history.prompt().len(),
            finish_reason: self.finish.unwrap_or(FinishReason::Cancelled),
            stop_string: self.writer.stopped_by(),
            prompt_time,
            decode_time,
            plan_time: self.guide.plan_time(),
            trace: std::mem::take(&mut self.trace),
            is_whole,
            text: self.writer.take_text(),
        }
    }
}
