//! Keeping a request within its limit on tokens.
//!
//! A [`Steering`] holds a plan: tokens that end the text and are no more than
//! the tokens left. Whatever is taken must leave such a plan. That cannot be
//! lost once it is there: the first token of the plan leaves the rest of the
//! plan, at least.

use std::time::{Duration, Instant};

use super::generator::GenerateError;
use crate::{
    budget::{Plan, Planner},
    mask::TokenMask,
    matcher::{Matcher, MatcherError},
    vocabulary::TokenId,
};

/// How many tokens pass before a plan is searched for again where none was
/// found; twice as many each time.
const WAIT: usize = 8;

/// With this many tokens to spare beside twice the plan, the limit is far.
const FAR: usize = 32;

/// A plan that fits, kept up to date.
#[derive(Debug)]
pub(super) struct Steering {
    planner: Planner,
    /// Invariant: no more tokens than are left. `None` where none was found,
    /// which promises nothing.
    plan: Option<Plan>,
    /// How many tokens to wait until the next search for a first plan, and
    /// how many after that.
    wait: usize,
    next_wait: usize,
    /// The time that was spent on plans.
    pub(super) time: Duration,
}

/// What is to be said of tokens that could be taken.
#[derive(Debug)]
pub(super) enum Verdict {
    /// They leave this plan, or no promise was made.
    Fits(Option<Plan>),
    /// They leave too few tokens for the rest.
    TooLong,
}

impl Steering {
    /// Makes the first plan.
    ///
    /// # Errors
    ///
    /// Fails when the shortest text that is found needs more tokens than
    /// `limit`.
    pub(super) fn new(
        matcher: &Matcher,
        limit: usize,
    ) -> Result<Steering, GenerateError> {
        let started = Instant::now();
        let mut planner = Planner::new();
        let plan = planner.plan(matcher)?;
        if let Some(plan) = &plan
            && plan.n_tokens() > limit
        {
            let needed = plan.n_tokens();
            return Err(GenerateError::Budget { needed, limit });
        }
        let time = started.elapsed();
        Ok(Steering { planner, plan, wait: WAIT, next_wait: 2 * WAIT, time })
    }

    /// Returns the plan.
    pub(super) fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// Judges tokens that `matcher` has just read, after which `n_left` are
    /// left. `token` is the one that was read, if it was only one.
    pub(super) fn judge(
        &mut self,
        matcher: &Matcher,
        token: Option<TokenId>,
        n_left: usize,
    ) -> Result<Verdict, MatcherError> {
        if self.plan.is_none() && self.wait > 0 {
            self.wait -= 1;
            return Ok(Verdict::Fits(None));
        }
        let started = Instant::now();
        let fitting = |plan: &Plan| plan.n_tokens() <= n_left;
        let new = self.planner.plan(matcher)?.filter(fitting);
        self.time += started.elapsed();
        let Some(old) = &self.plan else {
            self.wait = self.next_wait;
            self.next_wait *= 2;
            return Ok(Verdict::Fits(new));
        };
        let new = new.or_else(|| old.after(token?).filter(fitting));
        Ok(new.map_or(Verdict::TooLong, |plan| Verdict::Fits(Some(plan))))
    }

    /// Goes on with a plan that was judged.
    pub(super) fn set(&mut self, plan: Option<Plan>) {
        self.plan = plan;
    }
}

/// Decides on the tokens of one step.
pub(super) struct Judge<'a> {
    matcher: &'a mut Matcher,
    steering: Option<&'a mut Steering>,
    /// How many tokens are left, the one of this step included.
    n_left: usize,
    /// Tokens that are known to fit.
    fitting: Vec<TokenId>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        matcher: &'a mut Matcher,
        steering: Option<&'a mut Steering>,
        n_left: usize,
    ) -> Judge<'a> {
        Judge { matcher, steering, n_left, fitting: Vec::new() }
    }

    /// Returns true if tokens are likely not to fit.
    pub(super) fn is_near(&self) -> bool {
        let plan = self.steering.as_ref().and_then(|s| s.plan());
        plan.is_some_and(|plan| self.n_left < 2 * plan.n_tokens() + FAR)
    }

    /// Reads `token`, and returns true if it fits. The matcher is as it was
    /// otherwise.
    pub(super) fn take(
        &mut self,
        token: TokenId,
    ) -> Result<bool, MatcherError> {
        self.matcher.accept(token)?;
        let Some(steering) = &mut self.steering else { return Ok(true) };
        let n_left = self.n_left.saturating_sub(1);
        match steering.judge(self.matcher, Some(token), n_left)? {
            Verdict::Fits(plan) => {
                steering.set(plan);
                Ok(true)
            }
            Verdict::TooLong => {
                self.matcher.rollback(1)?;
                Ok(false)
            }
        }
    }

    /// Takes those of `tokens` that do not fit out of `mask`, and returns
    /// true if there were any.
    pub(super) fn forbid(
        &mut self,
        tokens: impl Iterator<Item = TokenId>,
        mask: &mut TokenMask,
    ) -> Result<bool, MatcherError> {
        let mut found = false;
        let Some(steering) = &mut self.steering else { return Ok(false) };
        let n_left = self.n_left.saturating_sub(1);
        for token in tokens {
            let grammar = self.matcher.grammar();
            if grammar.vocabulary().is_end(token)
                || self.fitting.contains(&token)
            {
                continue;
            }
            self.matcher.accept(token)?;
            let verdict = steering.judge(self.matcher, Some(token), n_left);
            self.matcher.rollback(1)?;
            if let Verdict::Fits(_) = verdict? {
                self.fitting.push(token);
            } else {
                found = true;
                // A token that was drawn is in the mask's width.
                let _ = mask.forbid(token);
            }
        }
        Ok(found)
    }

    /// Returns the token that always fits.
    pub(super) fn first_of_plan(&self) -> Option<TokenId> {
        let plan = self.steering.as_ref()?.plan()?;
        plan.tokens().first().copied()
    }
}
