//! SentencePiece vocabularies: pieces with scores, and no merges.
//!
//! A text is its characters at first. Of all neighbours whose union is a
//! piece, those with the best score are joined, the leftmost of equals, until
//! nothing can be joined. What is no piece then is spelled in bytes.
//!
//! The road not taken is to list every way to cut a piece in two as a merge of
//! a byte-pair encoder: it takes a second for 262,144 pieces, and pieces of
//! equal score would be told apart by their halves.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::special::{Cutter, Part};
use crate::model::error::ModelError;

/// The character that stands for a space.
const SPACE: &str = "\u{2581}";

/// An encoder.
pub(super) struct SentencePiece {
    pieces: FxHashMap<String, Piece>,
    /// The token of each byte, where there is one.
    bytes: Vec<Option<u32>>,
    unknown: Option<u32>,
    /// The length of the longest piece, in bytes.
    max_len: usize,
    special: Cutter,
    /// Whether a text begins with a space that nobody wrote, and so does what
    /// follows a special token.
    adds_space: bool,
}

/// A piece as the encoder needs it.
#[derive(Clone, Copy)]
struct Piece {
    id: u32,
    score: f32,
}

/// What an encoder is made of.
pub(super) struct Parts<'a> {
    /// What characters may be joined to, with its score.
    pub(super) pieces: Vec<(u32, &'a str, f32)>,
    /// The tokens of single bytes.
    pub(super) bytes: Vec<(u8, u32)>,
    /// What stands for a character that cannot be spelled.
    pub(super) unknown: Option<u32>,
    pub(super) special: Cutter,
    pub(super) adds_space: bool,
}

impl SentencePiece {
    pub(super) fn new(parts: Parts<'_>) -> SentencePiece {
        let mut bytes = vec![None; 256];
        for (byte, id) in parts.bytes {
            if let Some(place) = bytes.get_mut(usize::from(byte)) {
                *place = Some(id);
            }
        }
        let texts = parts.pieces.iter().map(|(_, text, _)| text.len());
        SentencePiece {
            max_len: texts.max().unwrap_or(0),
            pieces: parts
                .pieces
                .into_iter()
                .map(|(id, text, score)| {
                    // Zero has no sign here.
                    (text.to_owned(), Piece { id, score: score + 0.0 })
                })
                .collect(),
            bytes,
            unknown: parts.unknown,
            special: parts.special,
            adds_space: parts.adds_space,
        }
    }

    /// Splits a text into tokens.
    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, ModelError> {
        let mut ids = Vec::new();
        let mut follows_special = true;
        for part in self.special.cut(text) {
            match part {
                Part::Token(id) => ids.push(id),
                Part::Text(text) => {
                    let begin = if self.adds_space && follows_special {
                        SPACE
                    } else {
                        ""
                    };
                    let text = format!("{begin}{}", text.replace(' ', SPACE));
                    self.encode_part(&text, &mut ids)?;
                }
            }
            follows_special = matches!(part, Part::Token(_));
        }
        Ok(ids)
    }

    fn encode_part(
        &self,
        text: &str,
        ids: &mut Vec<u32>,
    ) -> Result<(), ModelError> {
        let mut symbols = Symbols::new(text);
        let mut queue = BinaryHeap::new();
        for left in 0..symbols.all.len() {
            queue.extend(self.candidate(&symbols, Some(left)));
        }
        while let Some(candidate) = queue.pop() {
            if symbols.join(&candidate) {
                let before = symbols.before(candidate.left);
                queue.extend(self.candidate(&symbols, before));
                queue.extend(self.candidate(&symbols, Some(candidate.left)));
            }
        }
        for symbol in symbols.all.iter().filter(|symbol| symbol.len > 0) {
            let text = symbols.text_of(symbol.start, symbol.len);
            match self.pieces.get(text) {
                Some(piece) => ids.push(piece.id),
                None => self.spell(text, ids)?,
            }
        }
        Ok(())
    }

    /// Returns how the symbol at `left` would be joined with the one behind.
    fn candidate(
        &self,
        symbols: &Symbols<'_>,
        left: Option<usize>,
    ) -> Option<Candidate> {
        let left = left?;
        let symbol = symbols.all.get(left)?;
        let right = symbols.all.get(symbol.next)?;
        let len = symbol.len + right.len;
        if len > self.max_len {
            return None;
        }
        let piece = self.pieces.get(symbols.text_of(symbol.start, len))?;
        Some(Candidate { score: piece.score, left, len })
    }

    /// Writes a character that is no piece in bytes.
    fn spell(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), ModelError> {
        let token = |byte: &u8| self.bytes.get(usize::from(*byte)).copied();
        let bytes: Option<Vec<u32>> =
            text.as_bytes().iter().map(|byte| token(byte).flatten()).collect();
        match (bytes, self.unknown) {
            (Some(bytes), _) => ids.extend(bytes),
            (None, Some(unknown)) => ids.push(unknown),
            (None, None) => {
                return Err(ModelError::Tokenizer(format!(
                    "the vocabulary has no token for {text:?}, none for its \
                     bytes, and none for what is unknown"
                )));
            }
        }
        Ok(())
    }
}

/// Two neighbours that may be joined.
struct Candidate {
    score: f32,
    left: usize,
    /// The length of both, by which a candidate that is out of date is told.
    len: usize,
}

/// The best is the greatest.
impl Ord for Candidate {
    fn cmp(&self, other: &Candidate) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then(other.left.cmp(&self.left))
            .then(other.len.cmp(&self.len))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Candidate) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

/// A text in symbols, which are characters at first.
struct Symbols<'a> {
    text: &'a str,
    all: Vec<Symbol>,
}

struct Symbol {
    start: usize,
    /// Zero once it was joined to the one before it.
    len: usize,
    /// The neighbours; beyond the last index where there is none.
    before: usize,
    next: usize,
}

impl<'a> Symbols<'a> {
    fn new(text: &'a str) -> Symbols<'a> {
        let symbol =
            |(index, (start, character)): (usize, (usize, char))| Symbol {
                start,
                len: character.len_utf8(),
                before: index.wrapping_sub(1),
                next: index + 1,
            };
        let all = text.char_indices().enumerate().map(symbol).collect();
        Symbols { text, all }
    }

    fn text_of(&self, start: usize, len: usize) -> &'a str {
        self.text.get(start..start + len).unwrap_or_default()
    }

    fn before(&self, index: usize) -> Option<usize> {
        let before = self.all.get(index)?.before;
        (before < self.all.len()).then_some(before)
    }

    /// Joins two neighbours, unless one of them is no longer what it was.
    fn join(&mut self, candidate: &Candidate) -> bool {
        let Some(left) = self.all.get(candidate.left) else { return false };
        let (left_len, next) = (left.len, left.next);
        let Some(right) = self.all.get_mut(next) else { return false };
        if left_len == 0 || left_len + right.len != candidate.len {
            return false;
        }
        right.len = 0;
        let after = right.next;
        if let Some(left) = self.all.get_mut(candidate.left) {
            left.len = candidate.len;
            left.next = after;
        }
        if let Some(after) = self.all.get_mut(after) {
            after.before = candidate.left;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::special::Special;
    use super::*;

    fn encoder(adds_space: bool, with_bytes: bool) -> SentencePiece {
        let pieces =
            ["a", "b", "c", "ab", "bc", "abc", "\u{2581}", "\u{2581}a"];
        let scores = [-9.0, -9.0, -9.0, -2.0, -1.0, -3.0, -9.0, -4.0];
        let special = [
            Special { id: 20, text: "<s>", strips_right: false },
            Special { id: 21, text: "\n\n", strips_right: false },
        ];
        SentencePiece::new(Parts {
            pieces: (0..)
                .zip(pieces)
                .zip(scores)
                .map(|((id, text), score)| (id, text, score))
                .collect(),
            bytes: if with_bytes {
                (0..=255).map(|byte| (byte, 100 + u32::from(byte))).collect()
            } else {
                Vec::new()
            },
            unknown: None,
            special: Cutter::new(&special).expect("builds"),
            adds_space,
        })
    }

    #[test]
    fn the_best_score_is_joined_first() {
        let encoder = encoder(false, true);
        let encode = |text| encoder.encode(text).expect("encodes");
        assert!(encode("").is_empty());
        assert_eq!(encode("ab"), [3]);
        // "bc" scores more than "ab", and is joined to "abc" then.
        assert_eq!(encode("abcc"), [5, 2]);
        assert_eq!(encode("abb"), [3, 1]);
        assert_eq!(encode(" a"), [7]);
        assert_eq!(encode("a<s>a\n\nb"), [0, 20, 0, 21, 1]);
    }

    #[test]
    fn a_space_is_added_where_a_text_begins() {
        let encoder = encoder(true, true);
        let encode = |text| encoder.encode(text).expect("encodes");
        assert!(encode("").is_empty());
        assert_eq!(encode("a"), [7]);
        assert_eq!(encode("a<s>ab"), [7, 20, 6, 3]);
        assert_eq!(encode("<s>a"), [20, 7]);
    }

    #[test]
    fn what_is_no_piece_is_spelled_in_bytes() {
        let spelled = encoder(false, true).encode("a\u{e9}").expect("bytes");
        assert_eq!(spelled, [0, 100 + 0xc3, 100 + 0xa9]);
        let mut encoder = encoder(false, false);
        let error = encoder.encode("a\u{e9}").expect_err("no bytes");
        assert!(error.to_string().contains('\u{e9}'), "{error}");
        encoder.unknown = Some(30);
        assert_eq!(encoder.encode("a\u{e9}").expect("unknown"), [0, 30]);
    }

    /// Were it quadratic, this would take minutes.
    #[test]
    fn a_long_text_takes_no_long_time() {
        let text = "abc ab\u{e9}".repeat(1 << 16);
        let ids = encoder(true, true).encode(&text).expect("encodes");
        assert!(ids.len() > 1 << 18);
    }
}
