//! One request that is running: a step at a time.
//!
//! # The order of things under a budget
//!
//! Where the text must be finished within the limit, the tokens after which
//! it could not be are forbidden as those that the grammar forbids: before
//! temperature and truncation. They are found by drawing. A token that is
//! drawn and leaves no plan that fits (see [`super::steer`]) is forbidden,
//! and another is drawn from the same row, independently: what is kept has
//! the law of the tokens that may be kept. Truncation looks at all tokens
//! that are allowed, so near the limit those that it keeps are judged before
//! the draw, until none of them has to go. When exactly the plan is left, or
//! the draw was refused very often, the plan is followed.

use std::ops::ControlFlow;

use super::{
    detokenise::Detokeniser,
    generator::{FinishReason, GenerateError, Generator, Request},
    steer::{Judge, Steering, Verdict},
};
use crate::{
    budget::Plan,
    matcher::Matcher,
    pipeline::{History, Pipeline, PipelineError, Scratch, Step},
    vocabulary::TokenId,
};

/// How many draws of one step are refused before the plan is followed.
const MAX_REFUSED: u64 = 64;

/// How many tokens that a truncation keeps are judged before a draw.
const MAX_JUDGED: usize = 256;

/// One request that is running.
pub(super) struct Run<'a> {
    pub(super) generator: &'a mut Generator,
    pub(super) history: History,
    pub(super) text: String,
    pub(super) n_forced: usize,
    pub(super) n_steered: usize,
    pub(super) steering: Option<Steering>,
    matcher: Option<Matcher>,
    max_tokens: usize,
    detokeniser: Detokeniser,
    /// How many bytes of `text` the receiver has.
    n_emitted: usize,
    row: Vec<f32>,
    scratch: Scratch,
}

/// What one step of the model came to.
enum Drawn {
    /// A token that the matcher has read.
    Token(TokenId),
    End,
}

impl<'a> Run<'a> {
    /// Prepares a request whose prompt has these tokens.
    pub(super) fn new(
        generator: &'a mut Generator,
        request: &Request,
        prompt: &[u32],
    ) -> Result<Run<'a>, GenerateError> {
        let matcher = request
            .grammar
            .as_ref()
            .map(|grammar| Matcher::new(grammar.clone()))
            .transpose()?;
        let context = generator.session.model().context_length();
        let limit = match context.checked_sub(prompt.len()) {
            Some(room) => request.max_tokens.min(room),
            // That the prompt does not fit is said by the session.
            None => usize::MAX,
        };
        let steering = match &matcher {
            Some(matcher) if request.finish_within_budget => {
                Some(Steering::new(matcher, limit)?)
            }
            _ => None,
        };
        let prompt: Vec<TokenId> =
            prompt.iter().map(|&token| TokenId(token)).collect();
        Ok(Run {
            generator,
            history: History::new(prompt),
            text: String::new(),
            n_forced: 0,
            n_steered: 0,
            steering,
            matcher,
            max_tokens: request.max_tokens,
            detokeniser: Detokeniser::new(),
            n_emitted: 0,
            row: Vec::new(),
            scratch: Scratch::new(),
        })
    }

    /// Takes one or more tokens, or says why there are no more.
    pub(super) fn step(
        &mut self,
        pipeline: &Pipeline,
    ) -> Result<Option<FinishReason>, GenerateError> {
        if self.is_finished()? {
            return Ok(Some(FinishReason::Grammar));
        }
        let n_left = self.n_left();
        if n_left == 0 {
            return Ok(Some(FinishReason::Length));
        }
        let plan = self.steering.as_ref().and_then(Steering::plan);
        if let Some(plan) = plan
            && plan.n_tokens() == n_left
        {
            let plan = plan.clone();
            return self.follow(&plan).map(Some);
        }
        if self.take_forced(n_left)? {
            return Ok(None);
        }
        match self.draw(pipeline, n_left)? {
            Drawn::End => Ok(Some(FinishReason::Stop)),
            Drawn::Token(token) => {
                self.write(&[token]);
                self.generator.session.append(&[token.0])?;
                Ok(None)
            }
        }
    }

    fn n_output(&self) -> usize {
        self.history.output().len()
    }

    fn n_left(&self) -> usize {
        let left = self.max_tokens.saturating_sub(self.n_output());
        left.min(self.generator.session.remaining())
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

    /// Writes the whole plan. The model is not asked, nor told: it would
    /// have no say in any of it.
    fn follow(&mut self, plan: &Plan) -> Result<FinishReason, GenerateError> {
        self.n_steered += plan.n_tokens();
        for &token in plan.tokens() {
            if self.generator.vocabulary().is_end(token) {
                return Ok(FinishReason::Stop);
            }
            if let Some(matcher) = &mut self.matcher {
                matcher.accept(token)?;
            }
            self.write(&[token]);
        }
        Ok(FinishReason::Grammar)
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
        let mut ids = self.generator.encoder.encode(text, false)?;
        ids.pop();
        let vocabulary = self.generator.trie.vocabulary();
        let spelled: Option<Vec<&[u8]>> = ids
            .iter()
            .map(|&id| vocabulary.token_bytes(TokenId(id)))
            .collect();
        let is_prefix = spelled
            .is_some_and(|spelled| bytes.starts_with(&spelled.concat()));
        ids.truncate(n_left);
        if ids.is_empty() || !is_prefix {
            return Ok(false);
        }
        let tokens: Vec<TokenId> = ids.iter().map(|&id| TokenId(id)).collect();
        for &token in &tokens {
            matcher.accept(token)?;
        }
        if let Some(steering) = &mut self.steering {
            let n_left = n_left - tokens.len();
            let single = (tokens.len() == 1).then(|| tokens[0]);
            match steering.judge(matcher, single, n_left)? {
                Verdict::Fits(plan) => steering.set(plan),
                Verdict::TooLong => {
                    matcher.rollback(tokens.len())?;
                    return Ok(false);
                }
            }
        }
        self.n_forced += tokens.len();
        self.write(&tokens);
        self.generator.session.append(&ids)?;
        Ok(true)
    }

    /// Chooses the next token; the matcher has read it then, unless it is an
    /// end token.
    fn draw(
        &mut self,
        pipeline: &Pipeline,
        n_left: usize,
    ) -> Result<Drawn, GenerateError> {
        let logits = self.generator.session.logits();
        let logits = logits.ok_or(GenerateError::NoLogits)?;
        let row = &mut self.row;
        let mut step = Step::new(&self.history);
        let Some(matcher) = &mut self.matcher else {
            row.clear();
            row.extend_from_slice(logits);
            let token = pipeline.choose(row, &step, &mut self.scratch)?.token;
            let is_end = self.generator.trie.vocabulary().is_end(token);
            return Ok(if is_end { Drawn::End } else { Drawn::Token(token) });
        };
        let mut mask = matcher.mask()?.clone();
        let steering = self.steering.as_mut();
        let mut judge = Judge::new(matcher, steering, n_left);
        let mut is_steered = false;
        loop {
            row.clear();
            row.extend_from_slice(logits);
            if pipeline.truncates() && judge.is_near() {
                let allowed = step.with_mask(mask.bits().as_slice());
                let kept = pipeline.probabilities(
                    row,
                    &allowed,
                    &mut self.scratch,
                )?;
                let kept = kept.iter().map(|&(token, _)| token);
                if kept.len() <= MAX_JUDGED && judge.forbid(kept, &mut mask)? {
                    is_steered = true;
                    continue;
                }
                row.clear();
                row.extend_from_slice(logits);
            }
            let allowed = step.with_mask(mask.bits().as_slice());
            let planned = judge.first_of_plan().filter(|_| is_steered);
            let token = match planned {
                Some(token) if step.attempt >= MAX_REFUSED => token,
                _ => match pipeline.choose(row, &allowed, &mut self.scratch) {
                    Ok(choice) => choice.token,
                    Err(error) => match (error, planned) {
                        // Of what fits, the model gives nothing a chance.
                        (PipelineError::NoTokenLeft { .. }, Some(token)) => {
                            token
                        }
                        (error, _) => return Err(error.into()),
                    },
                },
            };
            let is_end = self.generator.trie.vocabulary().is_end(token);
            if is_end || judge.take(token)? {
                self.n_steered += usize::from(is_steered);
                return Ok(if is_end {
                    Drawn::End
                } else {
                    Drawn::Token(token)
                });
            }
            is_steered = true;
            let _ = mask.forbid(token);
            step.attempt += 1;
        }
    }

    /// Takes tokens into the output.
    fn write(&mut self, tokens: &[TokenId]) {
        for &token in tokens {
            self.history.push(token);
            let bytes = self.generator.trie.vocabulary().token_bytes(token);
            self.detokeniser.push(bytes.unwrap_or_default(), &mut self.text);
        }
    }

    /// Hands over the text that is new.
    pub(super) fn emit(
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
    pub(super) fn finish(
        &mut self,
        on_text: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) {
        self.detokeniser.finish(&mut self.text);
        let _ = self.emit(on_text);
    }
}
