//! The tokens of a sequence so far, with the counts that penalties need.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::choice::Choice;
use crate::vocabulary::TokenId;

/// Distinct tokens with how often they occur.
pub(super) type Counts = SmallVec<[(TokenId, u32); 64]>;

/// The tokens of a sequence so far.
///
/// Counts are kept as tokens come and go, so that a penalty costs what the
/// number of *distinct* tokens costs.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The prompt, then the output.
    tokens: Vec<TokenId>,
    n_prompt: usize,
    /// The distinct tokens of the prompt, in order of first occurrence.
    prompt_distinct: Vec<TokenId>,
    /// The distinct tokens of the output with their counts, in order of first
    /// occurrence; so whatever a truncation removes is at the end.
    output_counts: Vec<(TokenId, u32)>,
    places: BTreeMap<TokenId, Place>,
    /// What a stage remembers, each with the number of tokens of output from
    /// which on it holds; ascending.
    memory: Vec<(usize, f32)>,
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
        let tokens = prompt.into();
        let mut history =
            History { n_prompt: tokens.len(), tokens, ..History::default() };
        for &token in &history.tokens {
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
        self.tokens.push(token);
        let place = self.places.entry(token).or_default();
        if let Some(index) = place.in_output {
            self.output_counts[index].1 += 1;
        } else {
            place.in_output = Some(self.output_counts.len());
            self.output_counts.push((token, 1));
        }
    }

    /// Takes in what a stage learnt from the choice of the next token, to be
    /// called before that token is [pushed](Self::push).
    ///
    /// Only [`Mirostat`](super::Mirostat) among the built-in stages learns
    /// anything; without this call it keeps to its first bound.
    pub fn observe(&mut self, choice: &Choice) {
        let Some(value) = choice.memory else { return };
        let holds_from = self.n_output() + 1;
        self.memory.retain(|&(from, _)| from < holds_from);
        self.memory.push((holds_from, value));
    }

    /// Returns what a stage learnt last from the tokens that are here still.
    pub fn memory(&self) -> Option<f32> {
        let n_output = self.n_output();
        let mut known = self.memory.iter().rev();
        known.find(|&&(from, _)| from <= n_output).map(|&(_, value)| value)
    }

    /// Takes back all but the first `n_output` tokens of output.
    pub fn truncate(&mut self, n_output: usize) {
        while self.n_output() > n_output {
            let Some(token) = self.tokens.pop() else { break };
            let Some(place) = self.places.get_mut(&token) else { continue };
            let Some(index) = place.in_output else { continue };
            self.output_counts[index].1 -= 1;
            if self.output_counts[index].1 == 0 {
                self.output_counts.truncate(index);
                place.in_output = None;
            }
        }
        self.memory.retain(|&(from, _)| from <= n_output);
    }

    /// Returns the tokens of prompt and output.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Returns the tokens of the prompt.
    pub fn prompt(&self) -> &[TokenId] {
        &self.tokens[..self.n_prompt]
    }

    /// Returns the tokens of the output.
    pub fn output(&self) -> &[TokenId] {
        &self.tokens[self.n_prompt..]
    }

    fn n_output(&self) -> usize {
        self.tokens.len() - self.n_prompt
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

    /// Returns the distinct tokens among the last `n_last`, ascending, with
    /// how often they occur there.
    pub(super) fn counts_of_last(
        &self,
        n_last: usize,
        with_prompt: bool,
    ) -> Counts {
        let all = if with_prompt { &*self.tokens } else { self.output() };
        let start = all.len().saturating_sub(n_last);
        let mut sorted: SmallVec<[TokenId; 64]> =
            all[start..].iter().copied().collect();
        sorted.sort_unstable();
        let mut counts = Counts::new();
        for token in sorted {
            match counts.last_mut() {
                Some((last, count)) if *last == token => *count += 1,
                _ => counts.push((token, 1)),
            }
        }
        counts
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
        assert_eq!(history.tokens(), ids(&[5, 1, 5]));
    }

    #[test]
    fn windows_count_what_is_in_them() {
        let mut history = History::new(ids(&[5, 1, 5]));
        for token in ids(&[1, 2, 1]) {
            history.push(token);
        }
        let counts = |n_last, with_prompt| -> Vec<(u32, u32)> {
            let counts = history.counts_of_last(n_last, with_prompt);
            counts.iter().map(|&(token, count)| (token.0, count)).collect()
        };
        assert_eq!(counts(0, true), []);
        assert_eq!(counts(4, true), [(1, 2), (2, 1), (5, 1)]);
        assert_eq!(counts(4, false), [(1, 2), (2, 1)]);
        assert_eq!(counts(99, true), [(1, 3), (2, 1), (5, 2)]);
    }

    #[test]
    fn what_was_learnt_goes_with_the_tokens_that_taught_it() {
        let learnt = |value| Choice {
            token: TokenId(1),
            logit: 0.0,
            memory: Some(value),
            yielded: 0,
        };
        let mut history = History::default();
        history.observe(&learnt(9.0));
        // That choice was not kept, and another is.
        assert_eq!(history.memory(), None);
        history.observe(&learnt(1.0));
        history.push(TokenId(1));
        history.push(TokenId(2));
        assert_eq!(history.memory(), Some(1.0));
        history.observe(&learnt(2.0));
        history.push(TokenId(3));
        let fork = history.clone();
        assert_eq!(fork.memory(), Some(2.0));
        history.truncate(2);
        assert_eq!(history.memory(), Some(1.0));
        history.truncate(0);
        assert_eq!(history.memory(), None);
    }
}
