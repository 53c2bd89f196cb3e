//! Tokens that must come next, as the model's tokenizer would write them.
//!
//! [`Matcher::forced_bytes`] says which bytes have no alternative. To feed
//! them to a model, they have to be split into tokens where the model is used
//! to it, which depends on the text before them, and at their end on what
//! follows, which is not known yet. [`Matcher::forced_tokens`] returns what is
//! certain.
//!
//! # Which tokens are certain
//!
//! Let `known` be the text so far with the forced bytes. Of whatever text
//! begins with it, some token covers the end of `known`; say that it begins
//! at `start`. Then `known[start..]` is the beginning of a longer token, and
//! the tokens before it are those of `known[..start]`: byte-pair encoding,
//! Unigram and longest match are *closed under prefixes*, they split the text
//! before one of their boundaries as if nothing followed. So the tokens that
//! are common to `known` and to all its prefixes before such a beginning are
//! certain.
//!
//! What splits a text into words first is closed too, but for runs of white
//! space, whose split depends on what follows the run; so white space at the
//! end is not counted as known. As a net below that, what is certain must
//! also come out before a few [`PROBES`].
//!
//! The road not taken: to hold back what some token of the vocabulary could
//! straddle. That asks nothing of the tokenizer, and returns next to nothing:
//! `"name` is a token of most vocabularies, though none of their tokenizers
//! ever writes it after `{`.

use super::{Matcher, MatcherError};
use crate::{mask::TokenTrie, vocabulary::TokenId};

/// Texts that may follow: words, numbers, white space, punctuation, what is
/// put before a contraction, what joins the letter before it.
const PROBES: [&str; 9] =
    ["a", "1", " ", "\n", "\"", "'s", "\u{301}", "\u{338}", "é"];

impl Matcher {
    /// Returns tokens that must come next, as `tokenize` would write them
    /// after `before` whatever follows them. They spell
    /// [`Matcher::forced_bytes`] or a beginning of these.
    ///
    /// `before` is the text that the model has read, from any place on at
    /// which its tokenizer begins afresh: the prompt's beginning, or that of
    /// the last message. `tokenize` splits a text as the model's tokenizer
    /// does, without tokens that it would put around a text; none says that
    /// it cannot. It is called a dozen times, on texts that begin with
    /// `before`, and not at all where nothing is forced.
    ///
    /// No token is returned that is not certain; often that is none. That is
    /// so in particular when the tokenizer would have joined the last token
    /// of `before` with what is forced.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use maskwright::grammar::Grammar;
    /// use maskwright::mask::TokenTrie;
    /// use maskwright::matcher::Matcher;
    /// use maskwright::vocabulary::{TokenId, Vocabulary};
    ///
    /// let tokens = ["{", "\"", "name", "n", "\":", "\": ", "1", "</s>"];
    /// // A tokenizer that takes the longest token each time.
    /// let tokenize = |text: &str| {
    ///     let (mut ids, mut rest) = (Vec::new(), text);
    ///     while !rest.is_empty() {
    ///         let fits = |&id: &usize| rest.starts_with(tokens[id]);
    ///         let id = (0..7).filter(fits).max_by_key(|&id| tokens[id].len())?;
    ///         rest = &rest[tokens[id].len()..];
    ///         ids.push(TokenId::from_index(id));
    ///     }
    ///     Some(ids)
    /// };
    /// let vocabulary = Vocabulary::from_tokens(tokens, [TokenId(7)])?;
    /// let trie = Arc::new(TokenTrie::new(Arc::new(vocabulary)));
    /// let grammar = Grammar::from_regex(r#"\{"name": ?1\}?"#)?;
    /// let mut matcher = Matcher::new(grammar.compile(&trie)?)?;
    /// assert_eq!(matcher.forced_bytes()?, b"{\"name\":");
    /// // A space may follow, and would be in the same token as the colon.
    /// let forced = matcher.forced_tokens("", tokenize)?;
    /// assert_eq!(forced, [TokenId(0), TokenId(1), TokenId(2)]);
    /// assert_eq!(matcher.try_accept(&forced)?, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails when a limit of the grammar is met.
    pub fn forced_tokens(
        &self,
        before: impl AsRef<[u8]>,
        mut tokenize: impl FnMut(&str) -> Option<Vec<TokenId>>,
    ) -> Result<Vec<TokenId>, MatcherError> {
        let forced = self.forced_bytes()?;
        if forced.is_empty() {
            return Ok(Vec::new());
        }
        let before = before.as_ref();
        let bytes = [before, &forced].concat();
        let certain = Forced {
            tokens: self.grammar.token_trie(),
            n_before: before.len(),
        };
        let mut found =
            certain.find(&bytes, &mut tokenize).unwrap_or_default();
        // A tokenizer that is not that of this vocabulary forces nothing.
        found.truncate(self.validate_draft(&found)?);
        Ok(found)
    }
}

struct Forced<'a> {
    tokens: &'a TokenTrie,
    /// How many bytes were there before the forced ones.
    n_before: usize,
}

impl Forced<'_> {
    /// Returns the tokens that are certain; none where there cannot be any.
    fn find(
        &self,
        bytes: &[u8],
        tokenize: &mut dyn FnMut(&str) -> Option<Vec<TokenId>>,
    ) -> Option<Vec<TokenId>> {
        let (known, starts) = self.known(bytes)?;
        let mut certain = tokenize(known)?;
        let begin =
            self.boundary(&certain, &known.as_bytes()[self.n_before..])?;
        let mut keep = |other: &[TokenId]| {
            let pairs = certain.iter().zip(other);
            let n_common = pairs.take_while(|(a, b)| a == b).count();
            certain.truncate(n_common);
            (n_common > begin).then_some(())
        };
        for start in starts {
            keep(&tokenize(&known[..start])?)?;
        }
        for probe in PROBES {
            if let Some(other) = tokenize(&format!("{known}{probe}")) {
                keep(&other)?;
            }
        }
        Some(certain.split_off(begin))
    }

    /// Returns the text that is known, and where a token may begin that
    /// covers its end and more.
    fn known<'t>(&self, bytes: &'t [u8]) -> Option<(&'t str, Vec<usize>)> {
        let mut known = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            // The last character is not complete.
            Err(error) if error.error_len().is_none() => {
                std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
            }
            Err(_) => return None,
        };
        loop {
            known = known.trim_end();
            if known.len() <= self.n_before {
                return None;
            }
            let is_start = |&start: &usize| self.goes_on(&known[start..]);
            let starts = known.char_indices().map(|(start, _)| start);
            // Where a token may begin within a character, the text before
            // is no text: that character is not known.
            let broken = known.char_indices().rfind(|&(start, c)| {
                (1..c.len_utf8()).any(|at| {
                    self.tokens.goes_on(&known.as_bytes()[start + at..])
                })
            });
            match broken {
                Some((start, _)) => known = &known[..start],
                None => {
                    return Some((known, starts.filter(is_start).collect()));
                }
            }
        }
    }

    /// Whether a token begins with `text` and is longer.
    fn goes_on(&self, text: &str) -> bool {
        self.tokens.vocabulary().has_longer_name(text)
            || self.tokens.goes_on(text.as_bytes())
    }

    /// Returns the index of the first token of `rest`, in which the tokens
    /// end; none if no token begins there.
    fn boundary(&self, tokens: &[TokenId], rest: &[u8]) -> Option<usize> {
        let mut left = rest;
        let mut begin = tokens.len();
        while !left.is_empty() {
            begin = begin.checked_sub(1)?;
            let token = tokens[begin];
            let spelled = self.tokens.vocabulary().token_bytes(token)?;
            left = left.strip_suffix(spelled)?;
        }
        Some(begin)
    }
}
