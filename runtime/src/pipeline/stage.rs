//! What a stage is, and what it may look at.

use std::{any::Any, fmt};

use super::{
    error::PipelineError,
    history::History,
    mask::MaskBits,
    row::{Candidate, Row},
};

/// One step of the way from logits to a token.
///
/// A stage is immutable and shared between sequences; whatever it needs to
/// know of one sequence is in the [`Step`].
pub trait Stage: Any + fmt::Debug + Send + Sync {
    /// Returns the name, unique within a pipeline, such as `top_k`.
    fn name(&self) -> &str;

    /// Returns what kind of change the stage makes.
    ///
    /// The order of a pipeline is checked by this. A stage that says less
    /// than it does can leave a step without any legal token.
    fn kind(&self) -> StageKind;

    /// Changes the row.
    ///
    /// # Errors
    ///
    /// Fails when the stage's parameters do not fit the row.
    fn apply(
        &self,
        row: &mut Row<'_>,
        step: &Step<'_>,
    ) -> Result<(), PipelineError>;

    /// Returns what the stage wants to remember of the token that was chosen
    /// from the row, as all stages left it.
    ///
    /// The stage finds it in [`History::memory`] at the next step. At most
    /// one stage of a pipeline can remember anything.
    fn learn(
        &self,
        row: &mut Row<'_>,
        chosen: Candidate,
        step: &Step<'_>,
    ) -> Option<f32> {
        let _ = (row, chosen, step);
        None
    }
}

/// What kind of change a stage makes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum StageKind {
    /// It forbids what the grammar forbids. A pipeline has exactly one.
    Mask,
    /// It forbids other tokens.
    Forbid,
    /// It changes logits and forbids nothing.
    Score,
    /// It scales all logits alike.
    Temperature,
    /// It keeps the strongest tokens, at least one, and drops the rest.
    Truncate,
}

impl StageKind {
    /// Returns true for the stages after which a token may be illegal for
    /// good.
    pub fn forbids(self) -> bool {
        matches!(self, StageKind::Mask | StageKind::Forbid)
    }

    /// Returns true for the stages that stand last. But for typical-p and
    /// XTC they never change which token is the strongest.
    pub fn is_for_sampling(self) -> bool {
        matches!(self, StageKind::Temperature | StageKind::Truncate)
    }
}

/// One step of one sequence: what the stages may look at.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The tokens so far.
    pub history: &'a History,
    /// How many tokens of output stand before the one to be chosen.
    ///
    /// A draw depends on the seed, this and `attempt` alone.
    pub position: u64,
    /// How many tokens were drawn for this position already and refused by
    /// whoever asked. Each draw is independent of those before, so that one
    /// which is kept has the law of the tokens that are not refused.
    pub attempt: u64,
    /// The tokens that the grammar allows; `None` without a grammar.
    pub mask: Option<MaskBits<'a>>,
}

impl<'a> Step<'a> {
    /// Creates the step after `history`, without a grammar.
    pub fn new(history: &'a History) -> Step<'a> {
        let position = history.output().len() as u64;
        Step { history, position, attempt: 0, mask: None }
    }

    /// Sets the tokens that the grammar allows.
    #[must_use]
    pub fn with_mask(mut self, mask: impl Into<MaskBits<'a>>) -> Step<'a> {
        self.mask = Some(mask.into());
        self
    }
}
