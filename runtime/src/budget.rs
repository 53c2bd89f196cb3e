//! How few tokens end a text.
//!
//! A [`Plan`] is a list of tokens after which the text of a [`Matcher`] is
//! complete and ended. An engine that has a limit on tokens keeps a plan that
//! fits in what is left: it makes a plan after each token that it would like
//! to take, and takes another one if that plan no longer fits. The first
//! token of the plan before always leaves one that does, so that this never
//! comes to a dead end, and no output is cut off.
//!
//! Plans are made from the grammar's shortest completion in bytes, spelled in
//! as few tokens as the vocabulary allows. That is an upper bound of the
//! fewest tokens (longer bytes may be fewer tokens), and each plan is true.
//!
//! # Example
//!
//! ```
//! # use std::sync::Arc;
//! use maskwright::budget::Planner;
//! use maskwright::grammar::Grammar;
//! use maskwright::mask::TokenTrie;
//! use maskwright::matcher::Matcher;
//! use maskwright::vocabulary::{TokenId, Vocabulary};
//!
//! let tokens = ["a", "(", ")", "))", "</s>"];
//! let vocabulary = Vocabulary::from_tokens(tokens, [TokenId(4)])?;
//! let trie = Arc::new(TokenTrie::new(Arc::new(vocabulary)));
//! let grammar = Grammar::from_gbnf(r#"root ::= "a" | "(" root ")""#)?;
//! let mut matcher = Matcher::new(grammar.compile(&trie)?)?;
//! matcher.accept_bytes(b"(((")?;
//!
//! let plan = Planner::new().plan(&matcher)?.expect("a way to the end");
//! let tokens: Vec<u32> = plan.tokens().iter().map(|t| t.0).collect();
//! // Nothing may follow the last bracket, so no end token is needed.
//! assert_eq!(tokens, [0, 2, 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use maskwright_grammar_core::automaton::{Completions, Effort};

use crate::{
    matcher::{Matcher, MatcherError},
    vocabulary::TokenId,
};

/// Tokens after which a text is complete and ended.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Plan {
    tokens: Vec<TokenId>,
}

impl Plan {
    /// Returns the tokens. The last is an end token if the text could go on
    /// without it.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Returns how many tokens there are.
    pub fn n_tokens(&self) -> usize {
        self.tokens.len()
    }

    /// Returns what is left once `token` was taken, if the plan begins so.
    #[must_use]
    pub fn after(&self, token: TokenId) -> Option<Plan> {
        let (first, rest) = self.tokens.split_first()?;
        (*first == token).then(|| Plan { tokens: rest.to_vec() })
    }
}

/// Makes plans for one text, and keeps what it learns of the grammar.
///
/// What it plans depends on what it was asked before, so a text that shall
/// come out the same again has a planner of its own.
#[derive(Debug)]
pub struct Planner {
    completions: Completions,
}

impl Default for Planner {
    fn default() -> Planner {
        Planner::new()
    }
}

impl Planner {
    /// Creates a planner that knows nothing.
    pub fn new() -> Planner {
        // A plan need not be the shortest, and is made for each token.
        let effort = Effort { improve: 1 << 7, ..Effort::default() };
        Planner::with_effort(effort)
    }

    /// Creates a planner that searches as long as `effort` says.
    pub fn with_effort(effort: Effort) -> Planner {
        Planner { completions: Completions::new().with_effort(effort) }
    }

    /// Returns a way to end the text; none if none is found.
    ///
    /// All calls must be about the same grammar.
    ///
    /// # Errors
    ///
    /// Fails when an end token was accepted already, or a limit of the
    /// grammar is met.
    pub fn plan(
        &mut self,
        matcher: &Matcher,
    ) -> Result<Option<Plan>, MatcherError> {
        if matcher.is_terminated() {
            return Err(MatcherError::Finished);
        }
        let grammar = matcher.grammar();
        let (machine, limits) = (grammar.machine(), grammar.limits());
        let configuration = matcher.configuration();
        let bytes =
            self.completions.shortest(machine, limits, configuration)?;
        let Some(bytes) = bytes else { return Ok(None) };
        let Some(mut tokens) = grammar.token_trie().fewest_tokens(&bytes)
        else {
            return Ok(None);
        };
        let after = grammar.after_bytes(configuration, &bytes)?;
        if !after.tops().is_empty() {
            // It may go on, so something must say that it does not.
            let Some(&end) = grammar.vocabulary().end_tokens().first() else {
                return Ok(None);
            };
            tokens.push(end);
        }
        Ok(Some(Plan { tokens }))
    }
}
