//! Bad words: sequences of tokens that are never completed.

use super::{
    error::PipelineError,
    row::Row,
    stage::{Stage, StageKind, Step},
    tokens::check_known,
};
use crate::vocabulary::TokenId;

/// Forbids the last token of each sequence wherever the tokens before it
/// stand at the end of the text.
#[derive(Clone, Debug)]
pub struct BadWords {
    sequences: Vec<Vec<TokenId>>,
    with_prompt: bool,
}

impl BadWords {
    /// Creates the stage. A sequence may have begun in the prompt if
    /// `with_prompt` (as in Hugging Face transformers, not in vLLM).
    ///
    /// # Errors
    ///
    /// Fails when a sequence is empty.
    pub fn new(
        sequences: Vec<Vec<TokenId>>,
        with_prompt: bool,
    ) -> Result<BadWords, PipelineError> {
        if sequences.iter().any(Vec::is_empty) {
            return Err(PipelineError::EmptySequence {
                option: "bad_words_ids",
            });
        }
        Ok(BadWords { sequences, with_prompt })
    }

    /// Returns the sequences of tokens that spell a word: as `encode` splits
    /// it at the beginning of a text, and after a space where that changes
    /// the first token and not the number of tokens. The rule is vLLM's.
    ///
    /// # Errors
    ///
    /// Fails when `encode` does.
    pub fn spellings<E>(
        word: &str,
        mut encode: impl FnMut(&str) -> Result<Vec<TokenId>, E>,
    ) -> Result<Vec<Vec<TokenId>>, E> {
        let word = word.trim_start();
        let plain = encode(word)?;
        let spaced = encode(&format!(" {word}"))?;
        let is_other = plain.len() == spaced.len() && plain != spaced;
        let is_new = is_other && plain.first() != spaced.first();
        let mut spellings = vec![plain];
        if is_new {
            spellings.push(spaced);
        }
        spellings.retain(|tokens| !tokens.is_empty());
        Ok(spellings)
    }
}

impl Stage for BadWords {
    fn name(&self) -> &'static str {
        "bad_words"
    }

    fn kind(&self) -> StageKind {
        StageKind::Forbid
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        step: &Step<'_>,
    ) -> Result<(), PipelineError> {
        let before = if self.with_prompt {
            step.history.tokens()
        } else {
            step.history.output()
        };
        for sequence in &self.sequences {
            let Some((&last, rest)) = sequence.split_last() else { continue };
            check_known("bad_words", [last], row)?;
            if before.ends_with(rest) {
                row.forbid(last);
            }
        }
        Ok(())
    }
}
