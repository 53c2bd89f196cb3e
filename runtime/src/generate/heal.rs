//! Token healing: the end of a prompt, spelled again.
//!
//! A prompt that ends within what the tokenizer would have made one token
//! leaves the model in a place that it has never seen in training: after
//! `http:` as a token of its own, `//` is unlikely. So the end of the prompt
//! is taken back to where a token could begin that reaches beyond it, and the
//! first tokens are those that spell it, and may go on.

use super::generator::Encoder;
use crate::{
    mask::{TokenMask, TokenTrie},
    matcher::{Matcher, MatcherError},
    model::ModelError,
};

/// A prompt whose end is to be spelled again.
#[derive(Debug)]
pub(super) struct Healing {
    /// The tokens that stay, at least one.
    pub(super) tokens: Vec<u32>,
    /// What they do not spell of the prompt.
    pub(super) tail: Vec<u8>,
}

/// Returns what is to be spelled again; none if no token could join the end
/// of the prompt with what follows, or nothing would be left.
pub(super) fn split(
    encoder: &dyn Encoder,
    trie: &TokenTrie,
    text: &str,
) -> Result<Option<Healing>, ModelError> {
    for (start, _) in text.char_indices() {
        if !trie.goes_on(&text.as_bytes()[start..]) {
            continue;
        }
        let tokens = encoder.encode(&text[..start], true)?;
        if !tokens.is_empty() {
            let tail = text.as_bytes()[start..].to_vec();
            return Ok(Some(Healing { tokens, tail }));
        }
    }
    Ok(None)
}

/// Returns the tokens that spell a beginning of `tail`, or all of it and then
/// what `matcher` may read; anything, where there is none.
pub(super) fn mask(
    trie: &TokenTrie,
    tail: &[u8],
    matcher: Option<&Matcher>,
) -> Result<TokenMask, MatcherError> {
    let vocabulary = trie.vocabulary();
    let mut mask = TokenMask::none(vocabulary.n_logits());
    let mut allow = |tokens: &[u32]| -> Result<(), MatcherError> {
        for &token in tokens {
            mask.allow(crate::vocabulary::TokenId(token))?;
        }
        Ok(())
    };
    let is_read = |rest: &[u8]| -> Result<bool, MatcherError> {
        let Some(matcher) = matcher else { return Ok(true) };
        let after =
            matcher.grammar().after_bytes(matcher.configuration(), rest)?;
        Ok(!after.is_dead())
    };
    for &token in trie.long_tokens() {
        let bytes = vocabulary.raw_bytes(crate::vocabulary::TokenId(token));
        let is_allowed = match bytes.strip_prefix(tail) {
            Some(rest) => is_read(rest)?,
            None => tail.starts_with(bytes),
        };
        if is_allowed {
            allow(&[token])?;
        }
    }
    let tokens = &trie.root().trie;
    let mut at = 0;
    for &byte in tail {
        let Some(child) = tokens.child(at, byte) else { return Ok(mask) };
        at = child;
        allow(tokens.own_tokens(at))?;
    }
    let Some(matcher) = matcher else {
        allow(tokens.subtree_tokens(at))?;
        return Ok(mask);
    };
    let grammar = matcher.grammar();
    let mut open = vec![(at, matcher.configuration().clone())];
    while let Some((node, before)) = open.pop() {
        for (child, byte) in tokens.children(node) {
            let after = grammar.after_bytes(&before, &[byte])?;
            if !after.is_dead() {
                allow(tokens.own_tokens(child))?;
                open.push((child, after));
            }
        }
    }
    Ok(mask)
}
