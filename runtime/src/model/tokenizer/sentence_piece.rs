//! SentencePiece vocabularies as merges.
//!
//! A GGUF file of this kind has scores and no merges. The encoder joins the
//! neighbours whose union scores highest, so the merges are every way to cut
//! a token into two others, best score first.

use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as Decoders;
use tokenizers::models::bpe::BPE;
use tokenizers::normalizers::{Prepend, Replace, Sequence};
use tokenizers::{DecoderWrapper, NormalizerWrapper, Tokenizer};

use super::gguf::{Pieces, failed};
use crate::model::error::ModelError;

/// The character that stands for a space.
const SPACE: &str = "\u{2581}";

/// Builds the encoder from pieces and their scores.
pub(super) fn build(
    pieces: &Pieces<'_>,
    scores: &[f32],
    add_space_prefix: bool,
) -> Result<Tokenizer, ModelError> {
    let unknown = pieces
        .of_type(super::gguf::token_type::UNKNOWN)
        .next()
        .map(|(_, text)| text.to_owned());
    let mut model = BPE::builder()
        .vocab_and_merges(pieces.ids(), merges(pieces, scores))
        .byte_fallback(true)
        .fuse_unk(true);
    if let Some(unknown) = unknown {
        model = model.unk_token(unknown);
    }
    let mut tokenizer = Tokenizer::new(model.build().map_err(failed)?);
    let mut steps = Vec::new();
    if add_space_prefix {
        steps.push(NormalizerWrapper::Prepend(Prepend::new(SPACE.into())));
    }
    let replace = Replace::new(" ", SPACE).map_err(failed)?;
    steps.push(NormalizerWrapper::Replace(replace));
    tokenizer.with_normalizer(Some(Sequence::new(steps))).map_err(failed)?;
    let back = Replace::new(SPACE, " ").map_err(failed)?;
    tokenizer.with_decoder(Some(Decoders::new(vec![
        DecoderWrapper::Replace(back),
        DecoderWrapper::ByteFallback(ByteFallback::new()),
        DecoderWrapper::Fuse(Fuse::new()),
    ])));
    Ok(tokenizer)
}

fn merges(pieces: &Pieces<'_>, scores: &[f32]) -> Vec<(String, String)> {
    let ids = pieces.ids();
    let mut found: Vec<(f32, u32, u32, &str, &str)> = Vec::new();
    for (index, text) in pieces.mergeable() {
        let score = scores.get(index).copied().unwrap_or(0.0);
        for (cut, _) in text.char_indices().skip(1) {
            let (left, right) = text.split_at(cut);
            if let (Some(l), Some(r)) = (ids.get(left), ids.get(right)) {
                found.push((score, *l, *r, left, right));
            }
        }
    }
    found
        .sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    found
        .into_iter()
        .map(|(_, _, _, left, right)| (left.to_owned(), right.to_owned()))
        .collect()
}
