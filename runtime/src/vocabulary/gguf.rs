//! Vocabularies from the metadata of a GGUF file.

use super::{
    encoding::{Encoding, SPACE_MARKER, parse_byte_piece},
    end_tokens,
    error::VocabularyError,
    table::{Builder, TokenId, TokenKind, Vocabulary},
};

/// What a GGUF file says about its tokenizer, as read from its metadata.
///
/// This is plain data: whoever parses GGUF files fills it, so that a
/// vocabulary depends on no parser.
#[derive(Clone, Debug, Default)]
pub struct GgufTokenizer {
    /// `tokenizer.ggml.model`: `gpt2` for byte-level BPE, `llama` or `t5` for
    /// SentencePiece.
    pub model: String,
    /// `tokenizer.ggml.tokens`, in id order.
    pub tokens: Vec<String>,
    /// `tokenizer.ggml.token_type`, one a token. Where the file has none,
    /// leave it empty: every token then counts as normal.
    pub token_types: Vec<i32>,
    /// `tokenizer.ggml.eos_token_id`, `eot_token_id` and `eom_token_id`, as
    /// far as the file has them. When empty, the
    /// [well-known](super::WELL_KNOWN_END_TOKENS) spellings decide.
    pub end_tokens: Vec<u32>,
}

/// The numbers of `tokenizer.ggml.token_type`.
mod token_type {
    pub(super) const NORMAL: i32 = 1;
    pub(super) const UNKNOWN: i32 = 2;
    pub(super) const CONTROL: i32 = 3;
    pub(super) const USER_DEFINED: i32 = 4;
    pub(super) const UNUSED: i32 = 5;
    pub(super) const BYTE: i32 = 6;
}

impl Vocabulary {
    /// Creates a vocabulary from the tokenizer metadata of a GGUF file.
    ///
    /// Control tokens and the unknown token are special, unused tokens match
    /// nothing, and tokens defined by the user are taken as text.
    ///
    /// # Errors
    ///
    /// Fails when the tokenizer's tokens have no fixed spelling (WordPiece),
    /// when the lists differ in length, and when an end token is not in the
    /// vocabulary.
    pub fn from_gguf_metadata(
        tokenizer: &GgufTokenizer,
    ) -> Result<Vocabulary, VocabularyError> {
        let encoding = encoding_of(&tokenizer.model)?;
        let n_tokens = tokenizer.tokens.len();
        let n_types = tokenizer.token_types.len();
        if n_types != 0 && n_types != n_tokens {
            return Err(VocabularyError::LengthMismatch {
                list: "tokenizer.ggml.token_type",
                given: n_types,
                n_tokens,
            });
        }
        let mut builder = Builder::with_capacity(n_tokens);
        for (index, piece) in tokenizer.tokens.iter().enumerate() {
            let token_type = tokenizer
                .token_types
                .get(index)
                .copied()
                .unwrap_or(token_type::NORMAL);
            push(&mut builder, encoding, piece, token_type)?;
        }
        let vocabulary = builder.finish();
        let mut end_tokens: Vec<TokenId> =
            tokenizer.end_tokens.iter().map(|&id| TokenId(id)).collect();
        if end_tokens.is_empty() {
            end_tokens = end_tokens::well_known(&vocabulary);
        }
        vocabulary.with_end_tokens(end_tokens)
    }
}

fn encoding_of(model: &str) -> Result<Encoding, VocabularyError> {
    match model {
        "gpt2" => Ok(Encoding::ByteLevel),
        "llama" | "t5" => {
            Ok(Encoding::Spaced { marker: SPACE_MARKER, byte_fallback: false })
        }
        other => Err(VocabularyError::Unsupported {
            part: format!("tokenizer.ggml.model {other:?}"),
            reason: "only gpt2, llama and t5 are known to have tokens with \
                     a fixed spelling",
        }),
    }
}

fn push(
    builder: &mut Builder,
    encoding: Encoding,
    piece: &str,
    token_type: i32,
) -> Result<(), VocabularyError> {
    let as_text = |bytes: &mut Vec<u8>| bytes.extend(piece.as_bytes());
    let is_kept_whole = match token_type {
        token_type::UNKNOWN | token_type::CONTROL => {
            builder.push(TokenKind::Special, as_text)?;
            true
        }
        token_type::UNUSED => {
            builder.push(TokenKind::Unused, as_text)?;
            true
        }
        token_type::USER_DEFINED => {
            builder.push(TokenKind::Text, |bytes| {
                encoding.decode_added_into(piece, bytes);
            })?;
            true
        }
        token_type::BYTE => {
            let byte = parse_byte_piece(piece);
            builder.push(TokenKind::Text, |bytes| match byte {
                Some(byte) => bytes.push(byte),
                None => encoding.decode_into(piece, bytes),
            })?;
            false
        }
        _ => {
            builder.push(TokenKind::Text, |bytes| {
                encoding.decode_into(piece, bytes);
            })?;
            false
        }
    };
    if is_kept_whole {
        builder.name_last(piece);
    }
    Ok(())
}
