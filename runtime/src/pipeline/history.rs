//! The tokens of a sequence so far, with the counts that penalties need.

use std::collections::BTreeMap;

use crate::vocabulary::TokenId;

/// The tokens of a sequence so far.
///
/// Counts are kept as tokens come and go, so that a penalty costs what the
/// number of *distinct* tokens costs.
#[derive(Clone, Debug, Default)]
pub struct History {
    prompt: Vec<TokenId>,
    output: Vec<TokenId>,
    /// The distinct tokens of the prompt, in order of first occurrence.
    prompt_distinct: Vec<TokenId>,
    /// The distinct tokens of the output with their counts, in order of first
    /// occurrence; so whatever a truncation removes is at the end.
    output_counts: Vec<(TokenId, u32)>,
    places: BTreeMap<TokenId, Place>,
}

/// Where a token has been seen.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    in_prompt: bool,
    /// Its index in `output_counts`.
    in_output: Option<usize>,
}

impl History {
    /// Creates the history of a sequence that begins with `prompt`.
    pub fn new(prompt: impl Into<Vec<TokenId>>) -> History {
        let mut history =
            History { prompt: prompt.into(), ..History::default() };
        for &token in &history.prompt {
            let place = history.places.entry(token).or_default();
            if !place.in_prompt {
                place.in_prompt = true;
                history.prompt_distinct.push(token);
            }
        }
        history
    }

    /// Appends a token of output.
    pub fn push(&mut self, token: TokenId) {
        self.output.push(token);
        let place = self.places.entry(token).or_default();
        if let Some(index) = place.in_output {
            self.output_counts[index].1 += 1;
        } else {
            place.in_output = Some(self.output_counts.len());
            self.output_counts.push((token, 1));
        }
    }

    /// Takes back all but the first `n_output` tokens of output.
    pub fn truncate(&mut self, n_output: usize) {
        while self.output.len() > n_output {
            let Some(token) = self.output.pop() else { break };
            let Some(place) = self.places.get_mut(&token) else { continue };
            let Some(index) = place.in_output else { continue };
            self.output_counts[index].1 -= 1;
            if self.output_counts[index].1 == 0 {
                self.output_counts.truncate(index);
                place.in_output = None;
            }
        }
    }

    /// Returns the tokens of the prompt.
    pub fn prompt(&self) -> &[TokenId] {
        &self.prompt
    }

    /// Returns the tokens of the output.
    pub fn output(&self) -> &[TokenId] {
        &self.output
    }

    /// Returns each distinct token of the output with how often it occurs.
    pub fn output_counts(&self) -> &[(TokenId, u32)] {
        &self.output_counts
    }

    /// Returns each distinct token of prompt and output, once.
    pub fn distinct(&self) -> impl Iterator<Item = TokenId> {
        let only_in_output = self
            .output_counts
            .iter()
            .map(|&(token, _)| token)
            .filter(|token| !self.is_in_prompt(*token));
        self.prompt_distinct.iter().copied().chain(only_in_output)
    }

    fn is_in_prompt(&self, token: TokenId) -> bool {
        self.places.get(&token).is_some_and(|place| place.in_prompt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(tokens: &[u32]) -> Vec<TokenId> {
        tokens.iter().copied().map(TokenId).collect()
    }

    #[test]
    fn counts_follow_pushes_and_truncations() {
        let mut history = History::new(ids(&[5, 1, 5]));
        for token in ids(&[1, 2, 1, 3, 2]) {
            history.push(token);
        }
        let counts = |history: &History| -> Vec<(u32, u32)> {
            let counts = history.output_counts().iter();
            counts.map(|&(token, count)| (token.0, count)).collect()
        };
        assert_eq!(counts(&history), [(1, 2), (2, 2), (3, 1)]);
        assert_eq!(history.distinct().collect::<Vec<_>>(), ids(&[5, 1, 2, 3]));
        history.truncate(9);
        assert_eq!(history.output(), ids(&[1, 2, 1, 3, 2]));
        history.truncate(3);
        assert_eq!(counts(&history), [(1, 2), (2, 1)]);
        history.push(TokenId(3));
        history.truncate(1);
        assert_eq!(counts(&history), [(1, 1)]);
        history.truncate(0);
        assert_eq!(counts(&history), []);
        assert_eq!(history.distinct().collect::<Vec<_>>(), ids(&[5, 1]));
        assert_eq!(history.prompt(), ids(&[5, 1, 5]));
    }
}
