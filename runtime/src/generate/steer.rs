//! Keeping a request within its limit on tokens.
//!
//! A [`Steering`] holds a plan: tokens that end the text and are no more than
//! the tokens left. Whatever is taken must leave such a plan. That cannot be
//! lost once it is there: the first token of the plan leaves the rest of the
//! plan, at least.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::error::GenerateError;
use crate::{
    budget::{Plan, Planner},
    matcher::{Matcher, MatcherError},
    vocabulary::TokenId,
};

/// How many tokens pass before a plan is searched for again where none was
/// found; twice as many each time.
const WAIT: usize = 8;

/// With this many tokens to spare beside twice the plan, the limit is far.
const FAR: usize = 32;

/// A plan that fits, kept up to date. Beams that went apart share what was
/// learned of the grammar.
#[derive(Clone, Debug)]
pub(super) struct Steering {
    planner: Arc<Mutex<Planner>>,
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
        let planner = Arc::new(Mutex::new(planner));
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
        // What a thread that panicked has learned of the grammar is so still.
        let planner = self.planner.lock();
        let mut planner = planner.unwrap_or_else(PoisonError::into_inner);
        let new = planner.plan(matcher)?.filter(fitting);
        drop(planner);
        self.time += started.elapsed();
        let Some(old) = &self.plan else {
            self.wait = self.next_wait;
            self.next_wait *= 2;
            return Ok(Verdict::Fits(new));
        };
        let new = new.or_else(|| old.after(token?).filter(fitting));
        Ok(new.map_or(Verdict::TooLong, |plan| Verdict::Fits(Some(plan))))
    }

    /// Whether the limit is near enough for tokens not to fit.
    pub(super) fn is_near(&self, n_left: usize) -> bool {
        let plan = self.plan.as_ref();
        plan.is_some_and(|plan| n_left < 2 * plan.n_tokens() + FAR)
    }

    /// Goes on with a plan that was judged.
    pub(super) fn set(&mut self, plan: Option<Plan>) {
        self.plan = plan;
    }
}
