//! Stages that forbid tokens by their ids.

use super::{
    error::PipelineError,
    mask::MaskBits,
    row::Row,
    stage::{Stage, StageKind, Step},
};
use crate::vocabulary::TokenId;

/// Refuses a token that the row does not have.
pub(super) fn check_known(
    stage: &'static str,
    tokens: impl IntoIterator<Item = TokenId>,
    row: &Row<'_>,
) -> Result<(), PipelineError> {
    let n_logits = row.n_logits();
    match tokens.into_iter().find(|token| token.index() >= n_logits) {
        None => Ok(()),
        Some(token) => {
            Err(PipelineError::UnknownToken { stage, token, n_logits })
        }
    }
}

/// Forbids every token that is not listed.
#[derive(Clone, Debug)]
pub struct AllowedTokens {
    /// The greatest of them.
    last: TokenId,
    words: Vec<u64>,
}

impl AllowedTokens {
    /// Creates the stage.
    ///
    /// # Errors
    ///
    /// Fails when no token is listed.
    pub fn new(tokens: &[TokenId]) -> Result<AllowedTokens, PipelineError> {
        let last = tokens.iter().copied().max().ok_or(
            PipelineError::EmptySequence { option: "allowed_tokens" },
        )?;
        let mut words = vec![0; last.index() / 64 + 1];
        for token in tokens {
            words[token.index() / 64] |= 1_u64 << (token.index() % 64);
        }
        Ok(AllowedTokens { last, words })
    }
}

impl Stage for AllowedTokens {
    fn name(&self) -> &'static str {
        "allowed_tokens"
    }

    fn kind(&self) -> StageKind {
        StageKind::Forbid
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        _: &Step<'_>,
    ) -> Result<(), PipelineError> {
        check_known("allowed_tokens", [self.last], row)?;
        row.apply_mask(MaskBits::U64(&self.words));
        Ok(())
    }
}

/// Forbids the listed tokens, always or as the first of the output.
#[derive(Clone, Debug)]
pub struct SuppressTokens {
    tokens: Vec<TokenId>,
    only_first: bool,
}

impl SuppressTokens {
    /// Creates a stage that forbids these tokens everywhere.
    pub fn new(tokens: Vec<TokenId>) -> SuppressTokens {
        SuppressTokens { tokens, only_first: false }
    }

    /// Creates a stage that forbids these tokens at the beginning of the
    /// output.
    pub fn at_begin(tokens: Vec<TokenId>) -> SuppressTokens {
        SuppressTokens { tokens, only_first: true }
    }
}

impl Stage for SuppressTokens {
    fn name(&self) -> &'static str {
        if self.only_first {
            "begin_suppress_tokens"
        } else {
            "suppress_tokens"
        }
    }

    fn kind(&self) -> StageKind {
        StageKind::Forbid
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        step: &Step<'_>,
    ) -> Result<(), PipelineError> {
        let tokens = self.tokens.iter().copied();
        check_known(
            if self.only_first {
                "begin_suppress_tokens"
            } else {
                "suppress_tokens"
            },
            tokens.clone(),
            row,
        )?;
        if !self.only_first || step.position == 0 {
            tokens.for_each(|token| row.forbid(token));
        }
        Ok(())
    }
}
