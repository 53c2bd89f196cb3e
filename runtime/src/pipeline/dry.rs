//! DRY, "don't repeat yourself" (p-e-w, text-generation-webui #5677, 2024):
//! the longer a repetition would get, the more it costs.

use std::{collections::BTreeMap, ops::Range};

use super::{
    error::PipelineError,
    options::DryOptions,
    row::Row,
    stage::{Stage, StageKind, Step},
};
use crate::vocabulary::{TokenId, Vocabulary};

/// Subtracts multiplier·base^(n - allowed length) from the logit of each
/// token that would prolong to n + 1 tokens a repetition of what stands n
/// tokens long at the end of the text.
///
/// A repetition does not reach back over a sequence breaker, and a breaker of
/// one token is never penalised.
#[derive(Clone, Debug)]
pub struct Dry {
    options: DryOptions,
}

/// What a logit falls to at least: the stage forbids nothing.
const LEAST: f64 = -1e30;

/// The natural logarithm of the greatest `f32`: where powers end.
const MAX_LN: f64 = 88.722_839_1;

/// How many tokens of a breaker are looked at.
const MAX_TAIL: usize = 20;

impl Dry {
    /// Creates the stage.
    ///
    /// # Errors
    ///
    /// Fails when an option is out of range, or a breaker is empty.
    pub fn new(options: DryOptions) -> Result<Dry, PipelineError> {
        let DryOptions { multiplier, base, .. } = options;
        let out_of_range = |option, given, range| {
            let given = f64::from(given);
            Err(PipelineError::OutOfRange { option, given, range })
        };
        if !(multiplier >= 0.0 && multiplier.is_finite()) {
            let range = "at least 0 and finite; 0 turns it off";
            return out_of_range("dry_multiplier", multiplier, range);
        }
        if !(base >= 1.0 && base.is_finite()) {
            return out_of_range("dry_base", base, "at least 1 and finite");
        }
        if options.breakers.iter().any(Vec::is_empty) {
            let option = "dry_sequence_breakers";
            return Err(PipelineError::EmptySequence { option });
        }
        Ok(Dry { options })
    }

    /// Returns the sequences of tokens in which a text occurs, for
    /// [`DryOptions::breakers`]: every token that contains it, and every
    /// token that ends in a part of it, followed by the rest as `encode`
    /// splits it.
    ///
    /// # Errors
    ///
    /// Fails when `encode` does.
    pub fn breakers<E>(
        text: &str,
        vocabulary: &Vocabulary,
        mut encode: impl FnMut(&str) -> Result<Vec<TokenId>, E>,
    ) -> Result<Vec<Vec<TokenId>>, E> {
        let mut tails: BTreeMap<usize, Vec<TokenId>> = BTreeMap::new();
        for (end, _) in text.char_indices().skip(1) {
            let mut tail = encode(&text[end..])?;
            tail.truncate(MAX_TAIL);
            tails.insert(end, tail);
        }
        let mut breakers = Vec::new();
        let contains = |bytes: &[u8]| {
            !text.is_empty()
                && bytes.windows(text.len()).any(|w| w == text.as_bytes())
        };
        for (token, bytes) in vocabulary.text_tokens() {
            if contains(bytes) {
                breakers.push(vec![token]);
                continue;
            }
            for (&end, tail) in &tails {
                if bytes.ends_with(&text.as_bytes()[..end]) {
                    let sequence = [&[token], tail.as_slice()].concat();
                    breakers.push(sequence);
                }
            }
        }
        Ok(breakers)
    }

    /// Returns how long a repetition can be: the number of tokens after the
    /// last breaker.
    fn reach(&self, tokens: &[TokenId]) -> usize {
        for start in (0..tokens.len()).rev() {
            let rest = &tokens[start..];
            let breakers = self.options.breakers.iter();
            let longest = breakers
                .filter(|breaker| rest.starts_with(breaker))
                .map(Vec::len)
                .max();
            if let Some(length) = longest {
                return rest.len() - length;
            }
        }
        tokens.len()
    }

    fn is_breaker(&self, token: TokenId) -> bool {
        self.options.breakers.iter().any(|breaker| *breaker == [token])
    }

    /// Returns each token that would prolong a repetition, with the length of
    /// the longest one.
    fn repetitions(&self, tokens: &[TokenId]) -> BTreeMap<TokenId, usize> {
        let mut longest = BTreeMap::new();
        let allowed = self.options.allowed_length;
        let reach = self.reach(tokens);
        if tokens.len() <= allowed || reach < allowed {
            return longest;
        }
        let common = common_suffixes(tokens);
        // Nothing is no repetition, even of a length of 0: what stands at the
        // very beginning follows nothing.
        for (end, &length) in common.iter().enumerate().skip(1) {
            let length = length.min(reach);
            if length >= allowed
                && let Some(&next) = tokens.get(end)
            {
                let best = longest.entry(next).or_insert(length);
                *best = length.max(*best);
            }
        }
        longest
    }
}

/// Returns, for each proper prefix by its length, how long a suffix it has in
/// common with the whole. The text is read once (the Z algorithm, from the
/// end).
fn common_suffixes(tokens: &[TokenId]) -> Vec<usize> {
    let n_tokens = tokens.len();
    let from_end = |index: usize| tokens[n_tokens - 1 - index];
    // By distance from the end.
    let mut common = vec![0; n_tokens];
    let mut known: Range<usize> = 0..0;
    for distance in 1..n_tokens {
        let mut length = 0;
        if distance < known.end {
            let twin: usize = common[distance - known.start];
            length = twin.min(known.end - distance);
        }
        while distance + length < n_tokens
            && from_end(length) == from_end(distance + length)
        {
            length += 1;
        }
        common[distance] = length;
        if distance + length > known.end {
            known = distance..distance + length;
        }
    }
    common.reverse();
    // Now by the index of the last token; prefixes by length come one later,
    // and the empty one has nothing in common.
    common.pop();
    common.insert(0, 0);
    common
}

impl Stage for Dry {
    fn name(&self) -> &'static str {
        "dry"
    }

    fn kind(&self) -> StageKind {
        StageKind::Score
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        step: &Step<'_>,
    ) -> Result<(), PipelineError> {
        let options = &self.options;
        let all = step.history.tokens();
        let n_last = options.last_n.unwrap_or(all.len());
        let tokens = &all[all.len().saturating_sub(n_last)..];
        let base = f64::from(options.base);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whole powers below the greatest float"
        )]
        let max_power = if options.base > 1.000_001 {
            (MAX_LN / base.ln()) as i32
        } else {
            i32::MAX
        };
        for (token, length) in self.repetitions(tokens) {
            if self.is_breaker(token) {
                continue;
            }
            let power = i32::try_from(length - options.allowed_length)
                .unwrap_or(i32::MAX)
                .min(max_power);
            let penalty = f64::from(options.multiplier) * base.powi(power);
            row.edit(token, |logit| {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "rounding to a logit's precision"
                )]
                let lowered = (f64::from(logit) - penalty).max(LEAST) as f32;
                lowered
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<TokenId> {
        text.bytes().map(|byte| TokenId(u32::from(byte))).collect()
    }

    fn dry(breakers: &[&str]) -> Dry {
        Dry::new(DryOptions {
            multiplier: 1.0,
            breakers: breakers.iter().map(|text| ids(text)).collect(),
            ..DryOptions::default()
        })
        .expect("in range")
    }

    #[test]
    fn common_suffixes_equal_comparing() {
        let mut seed = 5_u32;
        for length in 0..200_usize {
            let text: String = (0..length % 40)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(12_345);
                    if (seed >> 16).is_multiple_of(4) { 'b' } else { 'a' }
                })
                .collect();
            let tokens = ids(&text);
            let expected: Vec<usize> = (0..tokens.len())
                .map(|end| {
                    let pairs =
                        tokens[..end].iter().rev().zip(tokens.iter().rev());
                    pairs.take_while(|(a, b)| a == b).count()
                })
                .collect();
            let found = common_suffixes(&tokens);
            assert_eq!(found[..tokens.len()], expected, "{text}");
        }
    }

    #[test]
    fn repetitions_of_the_known_example() {
        // a b c recurs, and c after it would make it four.
        let found = dry(&[]).repetitions(&ids("abccbcyabc"));
        let expected =
            [(TokenId(u32::from(b'c')), 3), (TokenId(u32::from(b'y')), 2)];
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn with_no_length_allowed_whatever_followed_a_token_is_repeated() {
        let mut dry = dry(&[]);
        dry.options.allowed_length = 0;
        let found = dry.repetitions(&ids("abcb"));
        let expected =
            [(TokenId(u32::from(b'b')), 0), (TokenId(u32::from(b'c')), 1)];
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn breakers_cut_repetitions_short() {
        assert_eq!(dry(&["\n"]).reach(&ids("ab\nabc")), 3);
        assert_eq!(dry(&["\n", "bc"]).reach(&ids("ab\nabc")), 0);
        assert_eq!(dry(&[]).reach(&ids("abc")), 3);
        let found = dry(&["\n"]).repetitions(&ids("xy\nabcd\nab"));
        let expected = [(TokenId(u32::from(b'c')), 2)];
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
    }
}
