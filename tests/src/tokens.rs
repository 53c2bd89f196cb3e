//! Texts as tokens, and what masks say of them on the way.

use std::{collections::BTreeMap, sync::Arc};

use maskwright::{
    compiled::CompiledGrammar,
    matcher::Matcher,
    vocabulary::{TokenId, Vocabulary},
};

use crate::vocabularies::Random;

/// How a text is split where more than one token fits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Split {
    /// The longest token.
    Longest,
    /// Any of them, drawn from this seed.
    Random(u64),
}

/// Splits texts into the tokens of a vocabulary.
#[derive(Clone, Debug)]
pub struct Splitter {
    by_bytes: BTreeMap<Vec<u8>, TokenId>,
    longest: usize,
}

impl Splitter {
    /// Takes the tokens that a text may consist of.
    pub fn new(vocabulary: &Vocabulary) -> Splitter {
        let by_bytes: BTreeMap<Vec<u8>, TokenId> = vocabulary
            .text_tokens()
            .map(|(token, bytes)| (bytes.to_vec(), token))
            .collect();
        let longest = by_bytes.keys().map(Vec::len).max().unwrap_or(0);
        Splitter { by_bytes, longest }
    }

    /// Splits a text.
    ///
    /// # Panics
    ///
    /// If the vocabulary lacks one of its bytes.
    pub fn split(&self, text: &str, how: Split) -> Vec<TokenId> {
        let mut random = Random::new(match how {
            Split::Longest => 0,
            Split::Random(seed) => seed,
        });
        let mut rest = text.as_bytes();
        let mut tokens = Vec::new();
        while !rest.is_empty() {
            let fitting: Vec<(usize, TokenId)> =
                (1..=self.longest.min(rest.len()))
                    .filter_map(|len| {
                        Some((len, *self.by_bytes.get(&rest[..len])?))
                    })
                    .collect();
            let (len, token) = match how {
                Split::Longest => *fitting.last().expect("a byte's token"),
                Split::Random(_) => *random.pick(&fitting),
            };
            tokens.push(token);
            rest = &rest[len..];
        }
        tokens
    }
}

/// Whether every token was in the mask before it, and an end token in the
/// last one.
///
/// # Errors
///
/// Says which limit was met, or that a token of a mask is not accepted.
pub fn accepts_tokens(
    grammar: &Arc<CompiledGrammar>,
    tokens: &[TokenId],
) -> Result<bool, String> {
    let mut matcher = Matcher::new(Arc::clone(grammar))
        .map_err(|error| error.to_string())?;
    for &token in tokens {
        let mask = matcher.mask().map_err(|error| error.to_string())?;
        if !mask.is_allowed(token) {
            return Ok(false);
        }
        matcher.accept(token).map_err(|error| error.to_string())?;
    }
    let ends = grammar.vocabulary().end_tokens();
    let mask = matcher.mask().map_err(|error| error.to_string())?;
    Ok(ends.iter().all(|&end| mask.is_allowed(end)))
}
