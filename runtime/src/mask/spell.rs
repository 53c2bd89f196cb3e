//! Bytes in as few tokens as possible, and tokens that begin with bytes.

use super::index::TokenTrie;
use crate::vocabulary::TokenId;

impl TokenTrie {
    /// Returns true if and only if a text token begins with `bytes` and is
    /// longer.
    pub(crate) fn goes_on(&self, bytes: &[u8]) -> bool {
        let is_longer = |&token: &u32| {
            let spelled = self.vocabulary().raw_bytes(TokenId(token));
            spelled.len() > bytes.len() && spelled.starts_with(bytes)
        };
        let at = self.root();
        let mut node = Some(at.node);
        for &byte in bytes {
            node = node.and_then(|node| at.trie.child(node, byte));
            if node.is_none() {
                break;
            }
        }
        node.is_some_and(|node| at.trie.size(node) > 1)
            || self.long_tokens().iter().any(is_longer)
    }

    /// Returns the fewest text tokens that spell `bytes`; none if no tokens
    /// do. Tokens longer than a walk follows are not used.
    pub(crate) fn fewest_tokens(&self, bytes: &[u8]) -> Option<Vec<TokenId>> {
        let trie = &self.root().trie;
        // For each length, the fewest tokens that spell so much, and where
        // the last of them begins.
        let mut best: Vec<Option<(usize, usize, u32)>> =
            vec![None; bytes.len() + 1];
        best[0] = Some((0, 0, 0));
        for start in 0..bytes.len() {
            let Some((n_tokens, ..)) = best[start] else { continue };
            let mut node = 0;
            for (end, &byte) in (start + 1..).zip(&bytes[start..]) {
                let Some(child) = trie.child(node, byte) else { break };
                node = child;
                let Some(&token) = trie.own_tokens(node).first() else {
                    continue;
                };
                let known = &mut best[end];
                if known.is_none_or(|(fewest, ..)| n_tokens + 1 < fewest) {
                    *known = Some((n_tokens + 1, start, token));
                }
            }
        }
        let mut tokens = Vec::new();
        let mut at = bytes.len();
        while at > 0 {
            let (_, start, token) = best[at]?;
            tokens.push(TokenId(token));
            at = start;
        }
        tokens.reverse();
        Some(tokens)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::vocabulary::Vocabulary;

    #[test]
    fn bytes_are_spelled_in_the_fewest_tokens() {
        let tokens = ["a", "b", "aa", "aab", "baa", "end"];
        let vocabulary = Vocabulary::from_tokens(tokens, [TokenId(5)])
            .expect("a vocabulary");
        let trie = TokenTrie::new(Arc::new(vocabulary));
        for (bytes, tokens) in [
            ("", Some(vec![])),
            ("aabaa", Some(vec![2, 4])),
            ("aabaab", Some(vec![3, 3])),
            ("abba", Some(vec![0, 1, 1, 0])),
            ("abc", None),
            ("end", None),
        ] {
            let found = trie.fewest_tokens(bytes.as_bytes());
            let ids = found.map(|f| f.iter().map(|t| t.0).collect::<Vec<_>>());
            assert_eq!(
                ids.as_ref().map(Vec::len),
                tokens.as_ref().map(Vec::len)
            );
            if let Some(ids) = ids {
                let tokens = ["a", "b", "aa", "aab", "baa", "end"];
                let text: String =
                    ids.iter().map(|&id| tokens[id as usize]).collect();
                assert_eq!(text, bytes);
            }
        }
    }
}
