//! What may come next in a sequence, and what becomes of what is taken: the
//! grammar, the limit on tokens, the end of the prompt that is spelled again,
//! and the tokenizer's own spelling.

use super::{
    context::Context,
    error::GenerateError,
    generator::Encoder,
    heal,
    request::Request,
    sample,
    steer::{Steering, Verdict},
    stop::StopSet,
};
use crate::{
    budget::Plan,
    interrupt::Interrupt,
    mask::{TokenMask, TokenTrie},
    matcher::Matcher,
    pipeline::History,
    vocabulary::{TokenId, Vocabulary},
};

use std::{sync::Arc, time::Duration};

/// How many tokens may follow before it is taken for granted that the
/// tokenizer itself would write one of them.
const FEW: usize = 64;

/// How many tokens are taken without a choice before the model is asked.
pub(super) const MAX_FORCED: usize = 64;

/// What all sequences of a request have in common.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub(super) request: &'a Request,
    pub(super) encoder: &'a dyn Encoder,
    pub(super) trie: &'a TokenTrie,
    pub(super) stops: Arc<StopSet>,
    /// Whether the sum of log-probabilities is asked for.
    pub(super) is_scored: bool,
    /// How many positions the model has.
    pub(super) context: usize,
}

impl Shared<'_> {
    pub(super) fn vocabulary(&self) -> &Vocabulary {
        self.trie.vocabulary()
    }

    /// Returns how many tokens may still be written after these.
    pub(super) fn n_left(&self, history: &History) -> usize {
        let n_output = history.output().len();
        let left = self.request.max_tokens.saturating_sub(n_output);
        let n_all = history.prompt().len() + n_output;
        left.min(self.context.saturating_sub(n_all))
    }
}

/// What a token that was to be taken came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Taken {
    /// It was taken.
    Yes,
    /// The text could not be finished within the limit.
    TooLong,
    /// The tokenizer would not have written it.
    NotCanonical,
}

/// What guides one sequence.
#[derive(Clone, Debug)]
pub(super) struct Guide {
    pub(super) matcher: Option<Matcher>,
    steering: Option<Steering>,
    /// What is still to be spelled of the prompt.
    tail: Vec<u8>,
    /// Whether this step takes what the tokenizer would not write.
    pub(super) is_lenient: bool,
    /// The next mask, if it was made ahead of its time and nothing was read
    /// since.
    ready: Option<TokenMask>,
}

impl Guide {
    /// Prepares the guide of a request whose prompt has these tokens.
    pub(super) fn new(
        request: &Request,
        tail: Vec<u8>,
        limit: usize,
    ) -> Result<Guide, GenerateError> {
        let matcher = request
            .grammar
            .as_ref()
            .map(|grammar| Matcher::new(Arc::clone(grammar)))
            .transpose()?;
        let mut guide = Guide {
            matcher,
            steering: None,
            tail,
            is_lenient: false,
            ready: None,
        };
        if let Some(matcher) = &mut guide.matcher
            && request.finish_within_budget
            && !is_finished(matcher)?
        {
            guide.steering = Some(Steering::new(matcher, limit)?);
        }
        Ok(guide)
    }

    /// Returns how many bytes of the prompt are still to be spelled.
    pub(super) fn n_tail(&self) -> usize {
        self.tail.len()
    }

    /// Whether the end of the prompt is still to be spelled.
    pub(super) fn is_healing(&self) -> bool {
        !self.tail.is_empty()
    }

    /// Returns the plan, if there is one.
    pub(super) fn plan(&self) -> Option<&Plan> {
        self.steering.as_ref().and_then(Steering::plan)
    }

    /// Returns the token that always fits.
    pub(super) fn first_of_plan(&self) -> Option<TokenId> {
        if self.is_healing() {
            return None;
        }
        self.plan()?.tokens().first().copied()
    }

    /// Whether the limit is near enough for tokens not to fit.
    pub(super) fn is_near(&self, n_left: usize) -> bool {
        self.steering.as_ref().is_some_and(|it| it.is_near(n_left))
    }

    /// Whether any token may be refused after all.
    pub(super) fn is_choosy(&self, shared: &Shared<'_>) -> bool {
        self.steering.is_some() || shared.request.boundaries.canonical
    }

    /// Returns the time that was spent on plans.
    pub(super) fn plan_time(&self) -> Duration {
        self.steering.as_ref().map_or(Duration::ZERO, |it| it.time)
    }

    /// Returns what the grammar is at, in words.
    pub(super) fn place(&self) -> Option<String> {
        if self.is_healing() {
            return Some("the end of the prompt".to_owned());
        }
        self.matcher.as_ref().map(Matcher::describe)
    }

    /// Whether the grammar allows nothing more.
    pub(super) fn is_finished(&mut self) -> Result<bool, GenerateError> {
        match &mut self.matcher {
            Some(matcher) if self.tail.is_empty() => is_finished(matcher),
            _ => Ok(false),
        }
    }

    /// Whether the plan leaves no token to spare.
    pub(super) fn is_planned(&self, n_left: usize) -> bool {
        !self.is_healing()
            && self.plan().is_some_and(|plan| plan.n_tokens() == n_left)
    }

    /// Returns what makes the next mask while the model computes the logits
    /// that it is for, unless there is none to make.
    pub(super) fn ahead<'a>(
        &'a mut self,
        interrupt: Option<&'a Interrupt>,
    ) -> Option<Ahead<'a>> {
        if self.ready.is_some() || self.is_healing() {
            return None;
        }
        let matcher = self.matcher.as_mut()?;
        Some(Ahead { matcher, ready: &mut self.ready, interrupt })
    }

    /// Returns the tokens that may come next; none without a grammar.
    pub(super) fn allowed(
        &mut self,
        shared: &Shared<'_>,
    ) -> Result<Option<TokenMask>, GenerateError> {
        if let Some(mask) = self.ready.take() {
            return Ok(Some(mask));
        }
        if self.is_healing() {
            let matcher = self.matcher.as_ref();
            return Ok(Some(heal::mask(shared.trie, &self.tail, matcher)?));
        }
        let Some(matcher) = &mut self.matcher else {
            if !shared.request.boundaries.canonical {
                return Ok(None);
            }
            // A mask to strike tokens from.
            let n_logits = shared.vocabulary().n_logits();
            let mut mask = TokenMask::none(n_logits);
            for token in (0..n_logits).map(TokenId::from_index) {
                // Every token within the width is in the mask.
                let _ = mask.allow(token);
            }
            return Ok(Some(mask));
        };
        Ok(Some(matcher.mask()?.clone()))
    }

    /// Reads `token`, unless it is an end token or must not be taken. All is
    /// as it was otherwise.
    pub(super) fn take(
        &mut self,
        shared: &Shared<'_>,
        history: &History,
        token: TokenId,
    ) -> Result<Taken, GenerateError> {
        self.read(shared, history, token, true)
    }

    /// Returns what [`Guide::take`] would, and reads nothing.
    pub(super) fn would_take(
        &mut self,
        shared: &Shared<'_>,
        history: &History,
        token: TokenId,
    ) -> Result<Taken, GenerateError> {
        let n_read = self.matcher.as_ref().map_or(0, Matcher::n_steps);
        let tail = self.tail.clone();
        let taken = self.read(shared, history, token, false);
        self.tail = tail;
        if let Some(matcher) = &mut self.matcher {
            matcher.rollback(matcher.n_steps() - n_read)?;
        }
        taken
    }

    fn read(
        &mut self,
        shared: &Shared<'_>,
        history: &History,
        token: TokenId,
        is_kept: bool,
    ) -> Result<Taken, GenerateError> {
        if shared.vocabulary().is_end(token) {
            return Ok(Taken::Yes);
        }
        self.ready = None;
        let is_healing = self.is_healing();
        let tail = self.tail.clone();
        let n_read = self.matcher.as_ref().map_or(0, Matcher::n_steps);
        if is_healing {
            let spelled = shared.vocabulary().raw_bytes(token);
            let Some(rest) = spelled.strip_prefix(&self.tail[..]) else {
                self.tail.drain(..spelled.len().min(self.tail.len()));
                return Ok(Taken::Yes);
            };
            let rest = rest.to_vec();
            self.tail.clear();
            if rest.is_empty() {
                return Ok(Taken::Yes);
            }
            if let Some(matcher) = &mut self.matcher {
                matcher.accept_bytes(&rest)?;
            }
        } else if let Some(matcher) = &mut self.matcher {
            matcher.accept(token)?;
        }
        let before = (!is_healing).then_some(token);
        let taken = self.judge(shared, history, token, before, is_kept);
        if !matches!(taken, Ok(Taken::Yes)) {
            self.tail = tail;
            if let Some(matcher) = &mut self.matcher {
                matcher.rollback(matcher.n_steps() - n_read)?;
            }
        }
        taken
    }

    fn judge(
        &mut self,
        shared: &Shared<'_>,
        history: &History,
        token: TokenId,
        planned: Option<TokenId>,
        is_kept: bool,
    ) -> Result<Taken, GenerateError> {
        if shared.request.boundaries.canonical
            && !self.is_lenient
            && planned.is_some()
            && !self.is_canonical(shared, history, token)?
        {
            return Ok(Taken::NotCanonical);
        }
        let (Some(steering), Some(matcher)) =
            (&mut self.steering, &self.matcher)
        else {
            return Ok(Taken::Yes);
        };
        let n_left = shared.n_left(history).saturating_sub(1);
        match steering.judge(matcher, planned, n_left)? {
            Verdict::TooLong => Ok(Taken::TooLong),
            Verdict::Fits(plan) => {
                if is_kept {
                    steering.set(plan);
                }
                Ok(Taken::Yes)
            }
        }
    }

    /// Whether the tokenizer would write `token`, which the matcher has read,
    /// and one of the tokens that may follow it.
    fn is_canonical(
        &mut self,
        shared: &Shared<'_>,
        history: &History,
        token: TokenId,
    ) -> Result<bool, GenerateError> {
        let vocabulary = shared.vocabulary();
        let mut context = Context::new(history, vocabulary);
        context.push(token, vocabulary);
        if !context.is_canonical(shared.encoder)? {
            return Ok(false);
        }
        let Some(matcher) = &mut self.matcher else { return Ok(true) };
        let mask = matcher.mask()?;
        if mask.n_allowed() > FEW {
            return Ok(true);
        }
        for next in mask.tokens() {
            if vocabulary.is_end(next) {
                return Ok(true);
            }
            let mut context = context.clone();
            context.push(next, vocabulary);
            if context.is_canonical(shared.encoder)? {
                return Ok(true);
            }
        }
        // The text may be at its end without an end token.
        Ok(matcher.is_accepting()?)
    }

    /// Returns tokens that have no alternative, and has read them.
    pub(super) fn take_forced(
        &mut self,
        shared: &Shared<'_>,
        history: &History,
    ) -> Result<Vec<TokenId>, GenerateError> {
        let Some(matcher) = &mut self.matcher else { return Ok(Vec::new()) };
        let is_on = shared.request.boundaries.forced;
        if !is_on || !self.tail.is_empty() || matcher.forced_bytes()?.len() < 2
        {
            return Ok(Vec::new());
        }
        let context = Context::new(history, shared.vocabulary());
        let tokenize = |text: &str| {
            let ids = shared.encoder.encode(text, false).ok()?;
            Some(ids.into_iter().map(TokenId).collect())
        };
        let mut tokens = matcher.forced_tokens(&context.bytes, tokenize)?;
        let n_left = shared.n_left(history);
        tokens.truncate(n_left.min(MAX_FORCED));
        if tokens.is_empty() {
            return Ok(tokens);
        }
        self.ready = None;
        for &token in &tokens {
            matcher.accept(token)?;
        }
        if let Some(steering) = &mut self.steering {
            let single = (tokens.len() == 1).then(|| tokens[0]);
            let n_left = n_left - tokens.len();
            match steering.judge(matcher, single, n_left)? {
                Verdict::Fits(plan) => steering.set(plan),
                Verdict::TooLong => {
                    matcher.rollback(tokens.len())?;
                    tokens.clear();
                }
            }
        }
        Ok(tokens)
    }

    /// Reads the first token of the plan, which is no end token.
    pub(super) fn follow(
        &mut self,
        token: TokenId,
    ) -> Result<(), GenerateError> {
        self.ready = None;
        if let Some(matcher) = &mut self.matcher {
            matcher.accept(token)?;
        }
        if let Some(steering) = &mut self.steering {
            let rest = steering.plan().and_then(|plan| plan.after(token));
            steering.set(rest);
        }
        Ok(())
    }
}

/// A mask that is made ahead of its time.
#[derive(Debug)]
pub(super) struct Ahead<'a> {
    matcher: &'a mut Matcher,
    ready: &'a mut Option<TokenMask>,
    interrupt: Option<&'a Interrupt>,
}

impl Ahead<'_> {
    /// Makes it, unless the interrupt breaks it off. Where it is not made,
    /// whoever asks for the mask is told why.
    pub(super) fn make(self) {
        let Ahead { matcher, ready, interrupt } = self;
        let made = sample::unless(interrupt, || Ok(matcher.mask()?.clone()));
        *ready = made.ok().flatten();
    }
}

/// Whether nothing but an end may follow.
fn is_finished(matcher: &mut Matcher) -> Result<bool, GenerateError> {
    if !matcher.is_accepting()? {
        return Ok(false);
    }
    let grammar = Arc::clone(matcher.grammar());
    let vocabulary = grammar.vocabulary();
    let mask = matcher.mask()?;
    Ok(mask.tokens().all(|token| vocabulary.is_end(token)))
}
