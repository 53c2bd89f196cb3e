//! The stages, run over a row.

use std::any::Any;

use super::{
    choice::{Choice, Choose},
    error::PipelineError,
    mask::GrammarMask,
    row::{Row, Scratch},
    stage::{Stage, StageKind, Step},
    strongest::strongest,
    temperature::Temperature,
    top_k::TopK,
};
use crate::vocabulary::TokenId;

/// A decode step: stages in a lawful order, and a choice.
///
/// It is immutable and can be shared by any number of sequences and threads.
#[derive(Debug)]
pub struct Pipeline {
    stages: Vec<Box<dyn Stage>>,
    /// How many stages stand before the first that only sampling has.
    n_scoring: usize,
    choose: Choose,
}

/// How much of a row a pipeline looks at: the strongest tokens that the mask
/// allows, and no others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(
    not(feature = "generator"),
    allow(dead_code, reason = "the generator asks")
)]
pub(crate) struct Reach {
    k: usize,
    /// Whether logits are divided first, which may make some tie.
    is_scaled: bool,
}

#[cfg_attr(
    not(feature = "generator"),
    allow(dead_code, reason = "the generator asks")
)]
impl Reach {
    /// How many more are asked for where some may come to tie.
    const N_SPARE: usize = 32;

    /// Returns how many of the strongest tokens to ask for.
    pub(crate) fn n_asked(self) -> usize {
        if self.is_scaled { self.k + Self::N_SPARE } else { self.k }
    }

    /// Returns true if and only if a row that holds just the `n` strongest
    /// tokens gives what the whole row gives.
    pub(crate) fn is_enough(self, n: usize, row: &[f32]) -> bool {
        if n < self.n_asked() || !self.is_scaled {
            return true;
        }
        let mut found: Vec<f32> =
            row.iter().copied().filter(|x| *x > f32::NEG_INFINITY).collect();
        found.sort_unstable_by(|a, b| b.total_cmp(a));
        let (last, least) = (found.get(self.k - 1), found.last());
        // What is further apart than this does not round to one number.
        let is_apart = |(last, least): (&f32, &f32)| {
            last - least > last.abs().max(least.abs()) * 1e-6
        };
        last.zip(least).is_some_and(is_apart)
    }
}

/// What is told of a run while it goes on.
pub(super) trait Observer {
    /// The row is as the model gave it, or as the stage of this name left it.
    fn after(&mut self, stage: &str, row: &Row<'_>);
}

/// Tells nobody, at no cost.
pub(super) struct Nobody;

impl Observer for Nobody {
    fn after(&mut self, _: &str, _: &Row<'_>) {}
}

impl Pipeline {
    pub(super) fn new(
        stages: Vec<Box<dyn Stage>>,
        n_scoring: usize,
        choose: Choose,
    ) -> Pipeline {
        Pipeline { stages, n_scoring, choose }
    }

    /// Returns the names of the stages in the order in which they run.
    pub fn stage_names(&self) -> impl Iterator<Item = &str> {
        self.stages.iter().map(|stage| stage.name())
    }

    /// Returns the names of the stages that yielded: they would have
    /// forbidden all that was left, or what the grammar asks for.
    pub fn yielded(&self, choice: &Choice) -> Vec<&str> {
        let has_yielded =
            |index: usize| index < 64 && choice.yielded >> index & 1 == 1;
        let names = self.stage_names().enumerate();
        names
            .filter(|&(index, _)| has_yielded(index))
            .map(|(_, name)| name)
            .collect()
    }

    /// Returns true if and only if a stage drops tokens that the grammar
    /// allows: which ones depends on all that it allows.
    pub fn truncates(&self) -> bool {
        let mut stages = self.stages.iter();
        stages.any(|stage| stage.kind() == StageKind::Truncate)
    }

    /// Returns how much of a row this pipeline looks at; none if all of it.
    #[cfg_attr(
        not(feature = "generator"),
        allow(dead_code, reason = "the generator asks")
    )]
    pub(crate) fn reach(&self) -> Option<Reach> {
        let mut stages = self.stages.iter().map(|it| -> &dyn Any { &**it });
        let mut is_scaled = false;
        if !stages.next()?.is::<GrammarMask>() {
            return None;
        }
        for stage in stages {
            if let Some(top_k) = stage.downcast_ref::<TopK>() {
                return Some(Reach { k: top_k.k(), is_scaled });
            }
            if !stage.is::<Temperature>() {
                return None;
            }
            is_scaled = true;
        }
        let is_greedy = self.choose == Choose::Greedy;
        is_greedy.then_some(Reach { k: 1, is_scaled })
    }

    /// Chooses the next token.
    ///
    /// The logits are used up: what they are afterwards is unspecified.
    ///
    /// # Errors
    ///
    /// Fails when a logit is NaN or positive infinity, when every token is
    /// forbidden, and when the mask or an option does not fit the row. No
    /// token is ever drawn from an empty set.
    pub fn choose(
        &self,
        logits: &mut [f32],
        step: &Step<'_>,
        scratch: &mut Scratch,
    ) -> Result<Choice, PipelineError> {
        if let Some(choice) = self.choose_by_mask_alone(logits, step) {
            return Ok(choice);
        }
        self.choose_watched(logits, step, scratch, &mut Nobody)
    }

    /// Does what the stages do in one pass, where they are greedy and only
    /// the mask. It leaves what is wrong with a row for them to say.
    fn choose_by_mask_alone(
        &self,
        logits: &[f32],
        step: &Step<'_>,
    ) -> Option<Choice> {
        let [stage] = &*self.stages else { return None };
        let stage: &dyn Any = &**stage;
        if self.choose != Choose::Greedy || !stage.is::<GrammarMask>() {
            return None;
        }
        if let Some(mask) = step.mask {
            mask.check_width(logits.len()).ok()?;
        }
        let chosen = strongest(logits, step.mask)?;
        let (token, logit) = (chosen.token, chosen.logit);
        Some(Choice { token, logit, memory: None, yielded: 0 })
    }

    /// Does what [`choose`](Self::choose) does, telling of each stage.
    pub(super) fn choose_watched(
        &self,
        logits: &mut [f32],
        step: &Step<'_>,
        scratch: &mut Scratch,
        observer: &mut impl Observer,
    ) -> Result<Choice, PipelineError> {
        let mut row = self.run(logits, step, scratch, observer)?;
        let chosen = self
            .choose
            .choose(&row, step.position, step.attempt)
            .ok_or_else(|| no_token_left(&row, step))?;
        let mut learners = self.stages.iter();
        let memory =
            learners.find_map(|stage| stage.learn(&mut row, chosen, step));
        Ok(Choice {
            token: chosen.token,
            logit: chosen.logit,
            memory,
            yielded: row.yielded(),
        })
    }

    /// Returns the tokens that the stages leave, by ascending id, with the
    /// probabilities with which they would be drawn.
    ///
    /// # Errors
    ///
    /// Fails as [`choose`](Self::choose) does.
    pub fn probabilities(
        &self,
        logits: &mut [f32],
        step: &Step<'_>,
        scratch: &mut Scratch,
    ) -> Result<Vec<(TokenId, f64)>, PipelineError> {
        let mut row = self.run(logits, step, scratch, &mut Nobody)?;
        let max = f64::from(row.max());
        let candidates = row.candidates();
        let weight = |logit: f32| (f64::from(logit) - max).exp();
        let total: f64 = candidates.iter().map(|one| weight(one.logit)).sum();
        let probability = |logit| weight(logit) / total;
        Ok(candidates
            .iter()
            .map(|one| (one.token, probability(one.logit)))
            .collect())
    }

    /// Runs the stages and checks what they are given and what they leave.
    pub(super) fn run<'r>(
        &self,
        logits: &'r mut [f32],
        step: &Step<'_>,
        scratch: &'r mut Scratch,
        observer: &mut impl Observer,
    ) -> Result<Row<'r>, PipelineError> {
        let mut row = Row::new(logits, scratch);
        check_finite(&row, "as the model gave it")?;
        observer.after("logits", &row);
        let (scoring, sampling) = self.stages.split_at(self.n_scoring);
        let mut places = 0..;
        for (stage, place) in scoring.iter().zip(&mut places) {
            row.enter(place);
            stage.apply(&mut row, step)?;
            observer.after(stage.name(), &row);
        }
        row.settle();
        // The mask alone makes nothing worse.
        if scoring.len() > 1 {
            check_finite(&row, "after the penalties")?;
        }
        if !row.is_any_left() {
            return Err(no_token_left(&row, step));
        }
        for (stage, place) in sampling.iter().zip(places) {
            row.enter(place);
            stage.apply(&mut row, step)?;
            observer.after(stage.name(), &row);
        }
        if !sampling.is_empty() {
            check_finite(&row, "after temperature and truncation")?;
        }
        Ok(row)
    }
}

fn check_finite(
    row: &Row<'_>,
    place: &'static str,
) -> Result<(), PipelineError> {
    match row.find_bad() {
        None => Ok(()),
        Some(bad) => Err(PipelineError::BadLogit {
            token: bad.token,
            value: bad.logit,
            place,
        }),
    }
}

fn no_token_left(row: &Row<'_>, step: &Step<'_>) -> PipelineError {
    let allowed = match step.mask {
        None => {
            "there is no grammar, and every logit is minus infinity or its \
             token forbidden"
                .to_owned()
        }
        Some(mask) => match mask.n_allowed() {
            0 => "the grammar allows no token".to_owned(),
            n => format!(
                "the grammar allows {n} tokens, whose logits are minus \
                 infinity or which another stage forbids"
            ),
        },
    };
    PipelineError::NoTokenLeft {
        position: step.position,
        allowed,
        n_logits: row.n_logits(),
    }
}
