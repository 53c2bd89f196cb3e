//! Text from the bytes of tokens, as they come.

use std::str;

/// Joins the bytes of tokens into text, and gives out whole characters only.
///
/// A token may hold half a character; its bytes wait for the rest. The pieces
/// joined are, byte for byte, what decoding all bytes at once (with U+FFFD for
/// what is not UTF-8) gives.
///
/// ```
/// use maskwright::generate::Detokeniser;
///
/// let mut detokeniser = Detokeniser::new();
/// let mut text = String::new();
/// // "ở" is three bytes, here in two tokens.
/// for token in [&b"ph\xe1\xbb"[..], b"\x9f!"] {
///     detokeniser.push(token, &mut text);
/// }
/// detokeniser.finish(&mut text);
/// assert_eq!(text, "phở!");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Detokeniser {
    /// The beginning of one character: at most three bytes between calls.
    pending: Vec<u8>,
}

impl Detokeniser {
    /// Creates a detokeniser at the beginning of a text.
    pub fn new() -> Detokeniser {
        Detokeniser::default()
    }

    /// Takes the bytes of one token and appends the characters that are now
    /// whole.
    pub fn push(&mut self, bytes: &[u8], text: &mut String) {
        self.pending.extend_from_slice(bytes);
        let mut rest = self.pending.as_slice();
        loop {
            match str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    self.pending.clear();
                    return;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    let Some(len) = error.error_len() else {
                        self.pending = after.to_vec();
                        return;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &after[len..];
                }
            }
        }
    }

    /// Returns the bytes that wait for the rest of their character.
    pub fn pending(&self) -> &[u8] {
        &self.pending
    }

    /// Ends the text: half a character becomes U+FFFD.
    pub fn finish(&mut self, text: &mut String) {
        text.push_str(&String::from_utf8_lossy(&self.pending));
        self.pending.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn joined(tokens: &[Vec<u8>]) -> String {
        let mut detokeniser = Detokeniser::new();
        let mut text = String::new();
        for token in tokens {
            let before = text.len();
            detokeniser.push(token, &mut text);
            assert!(text.is_char_boundary(before));
            assert!(detokeniser.pending().len() < 4);
        }
        detokeniser.finish(&mut text);
        text
    }

    proptest! {
        #[test]
        fn pieces_joined_equal_the_whole(
            tokens in prop::collection::vec(
                prop::collection::vec(
                    prop_oneof![
                        any::<u8>(),
                        prop::sample::select(
                            &[0xe1, 0xbb, 0x9f, 0xf0, 0x9f, 0x98, 0x80, b'a']
                                [..],
                        ),
                    ],
                    0..5,
                ),
                0..20,
            )
        ) {
            let whole = tokens.concat();
            prop_assert_eq!(joined(&tokens), String::from_utf8_lossy(&whole));
        }

        #[test]
        fn text_cut_anywhere_comes_out_whole(text in ".*", cut in 1usize..4) {
            let tokens: Vec<Vec<u8>> =
                text.as_bytes().chunks(cut).map(<[u8]>::to_vec).collect();
            prop_assert_eq!(joined(&tokens), text);
        }
    }

    #[test]
    fn a_whole_character_does_not_wait() {
        let mut detokeniser = Detokeniser::new();
        let mut text = String::new();
        detokeniser.push("é".as_bytes(), &mut text);
        assert_eq!(text, "é");
        assert!(detokeniser.pending().is_empty());
    }
}
