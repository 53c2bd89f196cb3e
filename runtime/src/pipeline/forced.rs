//! Forced tokens: the first of the output, or the last.

use super::{
    error::PipelineError,
    row::Row,
    stage::{Stage, StageKind, Step},
    tokens::check_known,
};
use crate::vocabulary::TokenId;

/// Makes some tokens the only ones at one place of the output, as far as the
/// grammar allows any of them.
///
/// Hugging Face transformers forces the begin token only where the sequence
/// has one token, which is the beginning of the output in models with a
/// separate decoder; here it is the beginning of the output in all.
#[derive(Clone, Debug)]
pub struct ForcedTokens {
    name: &'static str,
    tokens: Vec<TokenId>,
    position: usize,
}

impl ForcedTokens {
    /// Creates a stage that forces the first token of the output.
    pub fn begin(token: TokenId) -> ForcedTokens {
        ForcedTokens {
            name: "forced_begin_token",
            tokens: vec![token],
            position: 0,
        }
    }

    /// Creates a stage that forces one of these tokens as the last of an
    /// output of `n_output` tokens.
    ///
    /// # Errors
    ///
    /// Fails when there are no tokens, or the output is to have none.
    pub fn end(
        tokens: Vec<TokenId>,
        n_output: usize,
    ) -> Result<ForcedTokens, PipelineError> {
        let name = "forced_end_tokens";
        if tokens.is_empty() {
            return Err(PipelineError::EmptySequence { option: name });
        }
        match n_output.checked_sub(1) {
            Some(position) => Ok(ForcedTokens { name, tokens, position }),
            None => Err(PipelineError::OutOfRange {
                option: "max_new_tokens",
                given: 0.0,
                range: "at least 1 where the last token is forced",
            }),
        }
    }
}

impl Stage for ForcedTokens {
    fn name(&self) -> &'static str {
        self.name
    }

    fn kind(&self) -> StageKind {
        StageKind::Forbid
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        step: &Step<'_>,
    ) -> Result<(), PipelineError> {
        check_known(self.name, self.tokens.iter().copied(), row)?;
        if step.history.output().len() != self.position {
            return Ok(());
        }
        let is_allowed = |token: &&TokenId| {
            step.mask.is_none_or(|mask| mask.is_allowed(**token))
        };
        let tokens: Vec<TokenId> =
            self.tokens.iter().filter(is_allowed).copied().collect();
        if tokens.is_empty() {
            row.note_yield();
        } else {
            row.force(&tokens);
        }
        Ok(())
    }
}
