//! How a tokenizer file writes the bytes of a token.

/// The way in which the pieces of a tokenizer stand for bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Encoding {
    /// GPT-2's alphabet: each byte is one printable character, `Ġ` a space.
    ByteLevel,
    /// SentencePiece's: a marker stands for a space, the rest is UTF-8.
    Spaced {
        /// The character that stands for a space, `▁` nearly always.
        marker: char,
        /// Whether `<0x0A>` stands for one byte.
        byte_fallback: bool,
    },
    /// UTF-8 as it stands.
    Plain {
        /// Whether `<0x0A>` stands for one byte.
        byte_fallback: bool,
    },
}

/// The marker for a space that SentencePiece uses.
pub(super) const SPACE_MARKER: char = '\u{2581}';

/// Characters of the byte-level alphabet lie below this.
const ALPHABET_END: usize = 0x144;

/// The byte of each character of the byte-level alphabet, by code point.
///
/// Printable Latin-1 bytes stand for themselves; the other 68 bytes are
/// numbered upwards from U+0100.
static BYTE_OF_CHAR: [Option<u8>; ALPHABET_END] = byte_of_char();

#[expect(
    clippy::cast_possible_truncation,
    reason = "bytes count to 255; `try_from` is not const"
)]
const fn byte_of_char() -> [Option<u8>; ALPHABET_END] {
    let mut table = [None; ALPHABET_END];
    let mut moved = 0x100;
    let mut byte = 0_usize;
    while byte < 256 {
        let stays = matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
        if stays {
            table[byte] = Some(byte as u8);
        } else {
            table[moved] = Some(byte as u8);
            moved += 1;
        }
        byte += 1;
    }
    table
}

/// Returns the byte that a character of the byte-level alphabet stands for.
pub(super) fn byte_level(character: char) -> Option<u8> {
    BYTE_OF_CHAR.get(character as usize).copied().flatten()
}

impl Encoding {
    /// Appends the bytes that `piece` stands for.
    pub(super) fn decode_into(self, piece: &str, bytes: &mut Vec<u8>) {
        match self {
            Encoding::ByteLevel => decode_byte_level(piece, bytes),
            Encoding::Spaced { marker, byte_fallback } => {
                match fallback_byte(piece, byte_fallback) {
                    Some(byte) => bytes.push(byte),
                    None => decode_spaced(piece, marker, bytes),
                }
            }
            Encoding::Plain { byte_fallback } => {
                match fallback_byte(piece, byte_fallback) {
                    Some(byte) => bytes.push(byte),
                    None => bytes.extend_from_slice(piece.as_bytes()),
                }
            }
        }
    }

    /// Appends the bytes of a token that was added beside the model, which is
    /// written as text.
    ///
    /// The one exception is the space marker: Gemma adds `▁▁`, which stands
    /// for two spaces there as it does in the model.
    pub(super) fn decode_added_into(self, piece: &str, bytes: &mut Vec<u8>) {
        match self {
            Encoding::Spaced { marker, .. } => {
                decode_spaced(piece, marker, bytes);
            }
            Encoding::ByteLevel | Encoding::Plain { .. } => {
                bytes.extend_from_slice(piece.as_bytes());
            }
        }
    }
}

/// Decodes by the byte-level alphabet. A piece with a character outside it is
/// taken as UTF-8, whole, which is what the tokenizers' decoders do.
fn decode_byte_level(piece: &str, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    for character in piece.chars() {
        let Some(byte) = byte_level(character) else {
            bytes.truncate(start);
            bytes.extend_from_slice(piece.as_bytes());
            return;
        };
        bytes.push(byte);
    }
}

fn decode_spaced(piece: &str, marker: char, bytes: &mut Vec<u8>) {
    let mut parts = piece.split(marker);
    bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        bytes.push(b' ');
        bytes.extend_from_slice(part.as_bytes());
    }
}

/// Reads a byte written as `<0x0A>`.
pub(crate) fn parse_byte_piece(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    (digits.len() == 2 && is_hex)
        .then(|| u8::from_str_radix(digits, 16).ok())
        .flatten()
}

fn fallback_byte(piece: &str, byte_fallback: bool) -> Option<u8> {
    if byte_fallback { parse_byte_piece(piece) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(encoding: Encoding, piece: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        encoding.decode_into(piece, &mut bytes);
        bytes
    }

    #[test]
    fn byte_level_alphabet_is_a_bijection() {
        let mut seen = [false; 256];
        for code in 0..0x200_u32 {
            let character = char::from_u32(code).expect("below surrogates");
            if let Some(byte) = byte_level(character) {
                assert!(!seen[usize::from(byte)], "byte {byte} twice");
                seen[usize::from(byte)] = true;
            }
        }
        assert_eq!(seen, [true; 256]);
        assert_eq!(byte_level('Ġ'), Some(b' '));
        assert_eq!(byte_level('Ċ'), Some(b'\n'));
        assert_eq!(byte_level('ł'), Some(0xa0));
        assert_eq!(byte_level(' '), None);
    }

    #[test]
    fn byte_level_piece_outside_the_alphabet_is_text() {
        assert_eq!(decode(Encoding::ByteLevel, "Ġa"), b" a");
        assert_eq!(decode(Encoding::ByteLevel, "a b"), b"a b");
        assert_eq!(decode(Encoding::ByteLevel, "Ġ▁"), "Ġ▁".as_bytes());
    }

    #[test]
    fn byte_pieces_count_only_with_byte_fallback() {
        for (piece, byte) in [("<0x0A>", b'\n'), ("<0xff>", 0xff)] {
            let on = Encoding::Plain { byte_fallback: true };
            let off = Encoding::Plain { byte_fallback: false };
            assert_eq!(decode(on, piece), [byte]);
            assert_eq!(decode(off, piece), piece.as_bytes());
        }
        for piece in ["<0x+A>", "<0xAAA>", "<0x>", "<0xA>", "<0x0A", "x"] {
            assert_eq!(parse_byte_piece(piece), None, "{piece}");
        }
    }

    #[test]
    fn space_marker_is_a_space_wherever_it_stands() {
        let encoding =
            Encoding::Spaced { marker: SPACE_MARKER, byte_fallback: true };
        assert_eq!(decode(encoding, "▁"), b" ");
        assert_eq!(decode(encoding, "▁▁a▁"), b"  a ");
        assert_eq!(decode(encoding, ""), b"");
        assert_eq!(decode(encoding, "<0x20>"), b" ");
    }
}
