//! Tokens that are written whole in a text: they are cut out first, and the
//! rest is encoded by itself.

use aho_corasick::{AhoCorasick, Input, MatchKind};

use super::gguf::failed;
use crate::model::error::ModelError;

/// A token that is written whole.
pub(super) struct Special<'a> {
    pub(super) id: u32,
    pub(super) text: &'a str,
    /// Whether the white space behind it belongs to it.
    pub(super) strips_right: bool,
}

/// A part of a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Part<'a> {
    Text(&'a str),
    Token(u32),
}

/// Cuts texts at special tokens, the leftmost first, and the longest of those
/// that begin at one place.
pub(super) struct Cutter {
    automaton: AhoCorasick,
    /// The id and whether it strips, one a pattern.
    tokens: Vec<(u32, bool)>,
}

impl Cutter {
    pub(super) fn new(tokens: &[Special<'_>]) -> Result<Cutter, ModelError> {
        let texts = tokens.iter().map(|token| token.text);
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(texts)
            .map_err(failed)?;
        let tokens = tokens.iter().map(|token| (token.id, token.strips_right));
        Ok(Cutter { automaton, tokens: tokens.collect() })
    }

    /// Returns the parts of a text, without empty ones.
    pub(super) fn cut<'a>(&self, text: &'a str) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
        let mut from = 0;
        let mut push = |from: usize, to: usize, token: Option<u32>| {
            parts.extend(
                text.get(from..to)
                    .filter(|text| !text.is_empty())
                    .map(Part::Text),
            );
            parts.extend(token.map(Part::Token));
        };
        while let Some(found) =
            self.automaton.find(Input::new(text).range(from..))
        {
            let token = self.tokens.get(found.pattern().as_usize());
            push(from, found.start(), token.map(|(id, _)| *id));
            from = found.end();
            if token.is_some_and(|(_, strips_right)| *strips_right) {
                let rest = text.get(from..).unwrap_or_default();
                from += rest.len() - rest.trim_start_matches(is_space).len();
            }
        }
        push(from, text.len(), None);
        parts
    }
}

/// The white space of C.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t'..='\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<Part<'_>> {
        let token =
            |id, text, strips_right| Special { id, text, strips_right };
        Cutter::new(&[
            token(1, "<a>", false),
            token(2, "<ab>", false),
            token(3, "<s>", true),
            token(4, "  ", false),
        ])
        .expect("builds")
        .cut(text)
    }

    #[test]
    fn the_longest_token_wins_and_nothing_is_lost() {
        use Part::{Text, Token};
        assert_eq!(cut(""), []);
        assert_eq!(cut("x"), [Text("x")]);
        assert_eq!(cut("<a><ab>"), [Token(1), Token(2)]);
        assert_eq!(
            cut("x<ab>   y"),
            [Text("x"), Token(2), Token(4), Text(" y")]
        );
        assert_eq!(cut("<s> \n<a>\t"), [Token(3), Token(1), Text("\t")]);
        assert_eq!(cut("<s>  "), [Token(3)]);
    }
}
