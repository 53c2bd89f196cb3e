//! One token of a sequence, chosen by the pipeline.
//!
//! # The order of things where tokens are refused
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
//!
//! Tokens that the tokenizer would not write are refused in the same way, if
//! that is asked for. There need not be any other: then the step does without
//! this rule, and is counted.

use std::time::Instant;

use super::{
    error::GenerateError,
    guide::{Shared, Taken},
    result::Origin,
    sequence::Sequence,
};
use crate::{
    mask::TokenMask,
    pipeline::{Choice, Pipeline, PipelineError, Scratch, Step},
    vocabulary::TokenId,
};

/// How many draws of one step are refused before the plan is followed.
const MAX_REFUSED: u64 = 64;

/// How many tokens that a truncation keeps are judged before a draw.
const MAX_JUDGED: usize = 256;

/// Memory that steps use again and again.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    pub(super) row: Vec<f32>,
    pub(super) scratch: Scratch,
    /// The bits of a mask, as devices read them.
    words: Vec<u32>,
}

/// What was learned in one step about the tokens of its row.
#[derive(Debug, Default)]
struct Trial {
    /// Tokens that are known to be taken.
    fitting: Vec<TokenId>,
    /// What the pipeline made of the row, if the token is its choice.
    choice: Option<Choice>,
    is_steered: bool,
    n_not_canonical: u64,
}

impl Trial {
    /// Returns true if a token was taken, and strikes it from the mask
    /// otherwise.
    fn note(
        &mut self,
        taken: Taken,
        token: TokenId,
        mask: &mut Option<TokenMask>,
    ) -> bool {
        match taken {
            Taken::Yes => return true,
            Taken::TooLong => self.is_steered = true,
            Taken::NotCanonical => self.n_not_canonical += 1,
        }
        if let Some(mask) = mask {
            // A token that was drawn is in the mask's width.
            let _ = mask.forbid(token);
        }
        false
    }
}

impl Sequence {
    /// Chooses the next token and takes it, unless there is nothing to choose
    /// any more.
    pub(super) fn draw(
        &mut self,
        shared: &Shared<'_>,
        pipeline: &Pipeline,
        work: &mut Workspace,
    ) -> Result<(), GenerateError> {
        if self.guide.is_planned(self.n_left(shared)) {
            return Ok(());
        }
        let started = Instant::now();
        let mut taking = self.taking(shared, TokenId(0), Origin::Chosen)?;
        let mask = match &taking.mask {
            Some(mask) => Some(mask.clone()),
            None => self.guide.allowed(shared)?,
        };
        self.trace.phases.mask += started.elapsed();
        let started = Instant::now();
        // Scores are computed from whole rows.
        let may_stay = !shared.is_scored && pipeline.reach().is_some();
        let n_tail = self.guide.n_tail();
        let (token, trial) = self.choose(shared, pipeline, work, mask)?;
        if let Some(choice) = &trial.choice {
            self.history.observe(choice);
            self.n_yielded += usize::from(choice.has_yielded());
        }
        self.session.leave_on_device(may_stay);
        self.trace.phases.choice += started.elapsed();
        taking.token = token;
        if trial.is_steered {
            self.n_steered += 1;
            taking.origin = Origin::Steered;
        }
        self.trace.n_not_canonical += usize::from(self.guide.is_lenient);
        self.guide.is_lenient = false;
        if shared.is_scored {
            // The row was used up.
            work.row.clear();
            work.row.extend_from_slice(self.logits()?);
        }
        let row = shared.is_scored.then_some(&work.row[..]);
        self.write_chosen(shared, taking, row, n_tail);
        Ok(())
    }

    pub(super) fn logits(&self) -> Result<&[f32], GenerateError> {
        self.session.logits().ok_or(GenerateError::NoLogits)
    }

    /// Chooses a token that the guide takes.
    fn choose(
        &mut self,
        shared: &Shared<'_>,
        pipeline: &Pipeline,
        work: &mut Workspace,
        mut mask: Option<TokenMask>,
    ) -> Result<(TokenId, Trial), GenerateError> {
        let mut trial = Trial::default();
        let mut attempt = 0;
        loop {
            let chosen = self.propose(
                shared, pipeline, work, &mut mask, &mut trial, attempt,
            );
            let planned =
                self.guide.first_of_plan().filter(|_| trial.is_steered);
            let is_stuck = trial.n_not_canonical > 0 && !self.guide.is_lenient;
            let token = match chosen {
                Ok(None) => continue,
                Ok(Some(_)) if attempt >= MAX_REFUSED && is_stuck => {
                    self.guide.is_lenient = true;
                    mask = self.guide.allowed(shared)?;
                    continue;
                }
                Ok(Some(choice)) => {
                    trial.choice = Some(choice);
                    planned
                        .filter(|_| attempt >= MAX_REFUSED)
                        .unwrap_or(choice.token)
                }
                Err(GenerateError::Pipeline(
                    error @ PipelineError::NoTokenLeft { .. },
                )) => match planned {
                    _ if is_stuck => {
                        self.guide.is_lenient = true;
                        mask = self.guide.allowed(shared)?;
                        continue;
                    }
                    // Of what fits, the model gives nothing a chance.
                    Some(token) => token,
                    None => return Err(error.into()),
                },
                Err(error) => return Err(error),
            };
            let taken = self.guide.take(shared, &self.history, token)?;
            if trial.note(taken, token, &mut mask) {
                trial.choice =
                    trial.choice.filter(|choice| choice.token == token);
                return Ok((token, trial));
            }
            trial.choice = None;
            attempt += 1;
        }
    }

    /// Proposes a token; none if the mask has lost some, and the truncation
    /// has to look at it again.
    fn propose(
        &mut self,
        shared: &Shared<'_>,
        pipeline: &Pipeline,
        work: &mut Workspace,
        mask: &mut Option<TokenMask>,
        trial: &mut Trial,
        attempt: u64,
    ) -> Result<Option<Choice>, GenerateError> {
        let n_left = self.n_left(shared);
        let is_choosy = self.guide.is_near(n_left)
            || shared.request.boundaries.canonical && !self.guide.is_lenient;
        if pipeline.truncates() && is_choosy {
            let kept = {
                self.fill_row(shared, pipeline, work, mask.as_ref())?;
                let step = self.step(mask.as_ref(), attempt);
                let Workspace { row, scratch, .. } = work;
                pipeline.probabilities(row, &step, scratch)?
            };
            if kept.len() <= MAX_JUDGED {
                let mut has_lost = false;
                for (token, _) in kept {
                    if trial.fitting.contains(&token) {
                        continue;
                    }
                    let taken =
                        self.guide.would_take(shared, &self.history, token)?;
                    if trial.note(taken, token, mask) {
                        trial.fitting.push(token);
                    } else {
                        has_lost = true;
                    }
                }
                if has_lost {
                    return Ok(None);
                }
            }
        }
        self.fill_row(shared, pipeline, work, mask.as_ref())?;
        let step = self.step(mask.as_ref(), attempt);
        let Workspace { row, scratch, .. } = work;
        Ok(Some(pipeline.choose(row, &step, scratch)?))
    }

    /// Fills the row with the logits, or, where they are on a device, with as
    /// many of the strongest as the pipeline looks at.
    fn fill_row(
        &mut self,
        shared: &Shared<'_>,
        pipeline: &Pipeline,
        work: &mut Workspace,
        mask: Option<&TokenMask>,
    ) -> Result<(), GenerateError> {
        let Workspace { row, words, .. } = work;
        if self.session.is_on_device()
            && let Some(reach) = pipeline.reach()
        {
            words.clear();
            if let Some(mask) = mask {
                words.extend(mask.words());
            } else {
                let n_words = shared.vocabulary().n_logits().div_ceil(32);
                words.resize(n_words, u32::MAX);
            }
            let n_asked = reach.n_asked();
            if let Some(n) = self.session.strongest(words, n_asked, row)?
                && reach.is_enough(n, row)
            {
                return Ok(());
            }
        }
        self.session.fetch()?;
        row.clear();
        row.extend_from_slice(self.logits()?);
        Ok(())
    }

    /// Returns what the stages may look at.
    pub(super) fn step<'a>(
        &'a self,
        mask: Option<&'a TokenMask>,
        attempt: u64,
    ) -> Step<'a> {
        let mut step = Step::new(&self.history);
        step.attempt = attempt;
        if self.guide.is_healing() {
            // Positions that no output has.
            step.position = u64::MAX - self.trace.n_healed as u64;
        }
        match mask {
            Some(mask) => step.with_mask(mask.bits().as_slice()),
            None => step,
        }
    }
}
