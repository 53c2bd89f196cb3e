//! Minimum lengths: no end before so many tokens.

use super::{
    error::PipelineError,
    row::Row,
    stage::{Stage, StageKind, Step},
};
use crate::vocabulary::TokenId;

/// Forbids the end tokens until the text is long enough, unless nothing but
/// an end is possible: a grammar that is through is not held up.
#[derive(Clone, Debug)]
pub struct MinTokens {
    n_tokens: usize,
    ends: Vec<TokenId>,
    with_prompt: bool,
}

impl MinTokens {
    /// Creates a stage that asks for this many tokens of output.
    ///
    /// # Errors
    ///
    /// Fails when there are no end tokens to forbid.
    pub fn of_output(
        n_tokens: usize,
        ends: Vec<TokenId>,
    ) -> Result<MinTokens, PipelineError> {
        MinTokens { n_tokens, ends, with_prompt: false }.checked()
    }

    /// Creates a stage that asks for this many tokens of prompt and output
    /// together.
    ///
    /// # Errors
    ///
    /// Fails when there are no end tokens to forbid.
    pub fn of_all(
        n_tokens: usize,
        ends: Vec<TokenId>,
    ) -> Result<MinTokens, PipelineError> {
        MinTokens { n_tokens, ends, with_prompt: true }.checked()
    }

    fn checked(self) -> Result<MinTokens, PipelineError> {
        if self.n_tokens > 0 && self.ends.is_empty() {
            let option = self.name();
            let needs = "the ids of the end tokens";
            return Err(PipelineError::Incomplete { option, needs });
        }
        Ok(self)
    }

    fn name(&self) -> &'static str {
        if self.with_prompt { "min_length" } else { "min_new_tokens" }
    }
}

impl Stage for MinTokens {
    fn name(&self) -> &'static str {
        self.name()
    }

    fn kind(&self) -> StageKind {
        StageKind::Forbid
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        step: &Step<'_>,
    ) -> Result<(), PipelineError> {
        let history = step.history;
        let n_tokens = if self.with_prompt {
            history.tokens().len()
        } else {
            history.output().len()
        };
        if n_tokens < self.n_tokens {
            self.ends.iter().for_each(|&end| row.forbid_softly(end));
        }
        Ok(())
    }
}
