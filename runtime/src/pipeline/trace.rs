//! What each stage did to a row.

use std::cmp::Ordering;

use super::{
    choice::Choice,
    error::PipelineError,
    row::{Candidate, Row, Scratch},
    run::{Observer, Pipeline},
    stage::Step,
};
use crate::vocabulary::TokenId;

/// What each stage of one step did, and what was chosen.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The row as the model gave it, named `logits`, then as each stage left
    /// it; only as far as the run came if it failed.
    pub stages: Vec<StageTrace>,
    /// The choice, or why there is none.
    pub outcome: Result<Choice, PipelineError>,
}

/// A row as a stage left it.
#[derive(Clone, Debug)]
pub struct StageTrace {
    /// The name of the stage.
    pub stage: String,
    /// The tokens that were left, the likeliest first, among equals the one
    /// with the lowest id.
    pub survivors: Vec<Survivor>,
}

/// A token that was left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Survivor {
    /// The token.
    pub token: TokenId,
    /// Its logit.
    pub logit: f32,
    /// Its probability among all that were left.
    pub probability: f64,
}

struct Recorder(Vec<StageTrace>);

impl Observer for Recorder {
    fn after(&mut self, stage: &str, row: &Row<'_>) {
        let stage = stage.to_owned();
        let survivors = rank(row.survivors());
        self.0.push(StageTrace { stage, survivors });
    }
}

/// Sorts tokens by their strength and computes their probabilities.
fn rank(mut candidates: Vec<Candidate>) -> Vec<Survivor> {
    // Zero and minus zero tie.
    candidates.sort_by(|a, b| {
        b.logit.partial_cmp(&a.logit).unwrap_or(Ordering::Equal)
    });
    let max = candidates.first().map_or(0.0, |one| f64::from(one.logit));
    let weight = |one: &Candidate| (f64::from(one.logit) - max).exp();
    let total: f64 = candidates.iter().map(weight).sum();
    candidates
        .iter()
        .map(|one| Survivor {
            token: one.token,
            logit: one.logit,
            probability: weight(one) / total,
        })
        .collect()
}

impl Pipeline {
    /// Does what [`choose`](Self::choose) does, by the same way, and writes
    /// down what each stage leaves.
    ///
    /// What a stage forbids unless nothing else is left counts as forbidden;
    /// should it yield, the tokens are back after the next stage that samples.
    pub fn trace(
        &self,
        logits: &mut [f32],
        step: &Step<'_>,
        scratch: &mut Scratch,
    ) -> Trace {
        let mut recorder = Recorder(Vec::new());
        let outcome =
            self.choose_watched(logits, step, scratch, &mut recorder);
        Trace { stages: recorder.0, outcome }
    }
}
