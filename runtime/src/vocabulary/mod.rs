//! Vocabularies: what each token of a model spells, in bytes.
//!
//! Grammars are written in characters and models speak tokens; they meet in
//! bytes. A [`Vocabulary`] reduces every kind of tokenizer to one table from
//! token id to byte string, so nothing behind it knows whether `Ġ`, `▁` or
//! `<0x0A>` stood in the file. The pieces are read from the tokenizer's own
//! data, never from `decode()` of a single token, which drops leading spaces
//! and half characters.
//!
//! Three kinds of token never match as text, whatever their printed form:
//! *special* tokens (`<|im_start|>`), tokens without a spelling (holes,
//! unused and empty ones, padding up to the width of the logits), and *end
//! tokens*. The end tokens are a set; which of them a model emits is its own
//! affair.
//!
//! # Example
//!
//! ```
//! use maskwright::vocabulary::{TokenId, Vocabulary};
//!
//! let vocabulary =
//!     Vocabulary::from_tokens(["a", "ab", "<end>"], [TokenId(2)])?;
//! assert_eq!(vocabulary.token_bytes(TokenId(1)), Some(&b"ab"[..]));
//! // An end token is a signal, not text.
//! assert_eq!(vocabulary.token_bytes(TokenId(2)), None);
//! # Ok::<(), maskwright::vocabulary::VocabularyError>(())
//! ```
//!
//! # When not to use it
//!
//! A vocabulary spells tokens; it does not split text into them. Encoding
//! needs the merges and the pre-tokenizer, which are not read here.

mod encoding;
mod end_tokens;
mod error;
mod gguf;
mod table;
mod tokenizer_json;

#[cfg(test)]
mod tests;

#[cfg(feature = "generator")]
pub(crate) use encoding::parse_byte_piece;
pub use end_tokens::WELL_KNOWN_END_TOKENS;
pub use error::VocabularyError;
pub use gguf::GgufTokenizer;
pub use table::{TokenId, TokenKind, Vocabulary};
