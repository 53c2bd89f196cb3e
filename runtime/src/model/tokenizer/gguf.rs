//! The tokenizer of a GGUF file, rebuilt from its metadata.

use tokenizers::decoders::byte_level::ByteLevel;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::{AddedToken, Tokenizer};

use super::pre_tokenizer::Rule;
use super::{ModelTokenizer, sentence_piece, with_width};
use crate::model::error::ModelError;
use crate::model::gguf::Gguf;
use crate::vocabulary::{GgufTokenizer, Vocabulary};

/// The numbers of `tokenizer.ggml.token_type` that the encoder looks at.
pub(super) mod token_type {
    pub(in super::super) const NORMAL: u64 = 1;
    pub(in super::super) const UNKNOWN: u64 = 2;
    pub(in super::super) const CONTROL: u64 = 3;
    pub(in super::super) const USER_DEFINED: u64 = 4;
}

/// The token table of a file.
pub(super) struct Pieces<'a> {
    texts: Vec<&'a str>,
    /// As long as `texts`.
    types: Vec<u64>,
}

impl<'a> Pieces<'a> {
    fn read(gguf: &'a Gguf) -> Result<Pieces<'a>, ModelError> {
        let texts = need(
            gguf.texts("tokenizer.ggml.tokens")?,
            "tokenizer.ggml.tokens",
        )?;
        let types = gguf
            .integers("tokenizer.ggml.token_type")?
            .unwrap_or_else(|| vec![token_type::NORMAL; texts.len()]);
        if types.len() != texts.len() || u32::try_from(texts.len()).is_err() {
            return Err(ModelError::Tokenizer(format!(
                "{} tokens, but {} token types",
                texts.len(),
                types.len()
            )));
        }
        Ok(Pieces { texts, types })
    }

    /// Returns the id of each token.
    pub(super) fn ids(&self) -> Vocab {
        (0..).zip(&self.texts).map(|(id, s)| ((*s).to_owned(), id)).collect()
    }

    /// Returns the tokens of one type.
    pub(super) fn of_type(
        &self,
        wanted: u64,
    ) -> impl Iterator<Item = (usize, &'a str)> {
        self.texts
            .iter()
            .zip(&self.types)
            .enumerate()
            .filter(move |(_, (_, kind))| **kind == wanted)
            .map(|(index, (text, _))| (index, *text))
    }

    /// Returns the tokens that merging can arrive at.
    pub(super) fn mergeable(&self) -> impl Iterator<Item = (usize, &'a str)> {
        self.of_type(token_type::NORMAL)
    }
}

/// Builds the tokenizer.
pub(super) fn build(
    gguf: &Gguf,
    n_logits: usize,
) -> Result<ModelTokenizer, ModelError> {
    let model =
        need(gguf.text("tokenizer.ggml.model")?, "tokenizer.ggml.model")?;
    let pieces = Pieces::read(gguf)?;
    let (mut tokenizer, adds_begin) = match model {
        "gpt2" => byte_level(gguf, &pieces)?,
        "llama" => {
            let scores = need(
                gguf.floats("tokenizer.ggml.scores")?,
                "tokenizer.ggml.scores",
            )?;
            let add_space =
                gguf.flag("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
            (sentence_piece::build(&pieces, &scores, add_space)?, true)
        }
        other => {
            return Err(ModelError::Tokenizer(format!(
                "tokenizer.ggml.model = {other:?} is not supported; \
                 supported: gpt2 (byte-level BPE), llama (SentencePiece)"
            )));
        }
    };
    add_special(&mut tokenizer, &pieces)?;
    let begin = token_id(gguf, "bos")?;
    let end = token_id(gguf, "eos")?;
    let adds_begin =
        gguf.flag("tokenizer.ggml.add_bos_token")?.unwrap_or(adds_begin);
    let text_of = |id: Option<u32>| {
        id.and_then(|id| pieces.texts.get(usize::try_from(id).ok()?))
            .map(|text| (*text).to_owned())
            .unwrap_or_default()
    };
    let vocabulary = vocabulary(gguf, model, &pieces)?;
    Ok(ModelTokenizer {
        tokenizer,
        vocabulary: with_width(vocabulary, n_logits)?,
        prefix: begin.filter(|_| adds_begin),
        begin_text: text_of(begin),
        end_text: text_of(end),
        chat_template: gguf
            .text("tokenizer.chat_template")?
            .map(str::to_owned),
    })
}

/// Byte-level BPE; also returns whether it adds the begin token by default.
fn byte_level(
    gguf: &Gguf,
    pieces: &Pieces<'_>,
) -> Result<(Tokenizer, bool), ModelError> {
    let name = gguf.text("tokenizer.ggml.pre")?.unwrap_or("default");
    let rule = Rule::by_name(name)?;
    let merges =
        need(gguf.texts("tokenizer.ggml.merges")?, "tokenizer.ggml.merges")?;
    let merges = merges
        .into_iter()
        .map(|merge| match merge.split_once(' ') {
            Some((left, right)) => Ok((left.to_owned(), right.to_owned())),
            None => Err(ModelError::Tokenizer(format!(
                "merge {merge:?} is not two tokens"
            ))),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let model = BPE::builder()
        .vocab_and_merges(pieces.ids(), merges)
        .ignore_merges(rule.whole_words)
        .build()
        .map_err(failed)?;
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_pre_tokenizer(Some(rule.build()?));
    tokenizer.with_decoder(Some(ByteLevel::default()));
    Ok((tokenizer, rule.adds_begin))
}

/// Tells the encoder which tokens are written whole in a text.
fn add_special(
    tokenizer: &mut Tokenizer,
    pieces: &Pieces<'_>,
) -> Result<(), ModelError> {
    let added = |kind: u64, special: bool| {
        pieces
            .of_type(kind)
            .filter(|(_, text)| !text.is_empty())
            .map(move |(_, text)| {
                AddedToken::from(text, special).normalized(false)
            })
            .collect::<Vec<_>>()
    };
    tokenizer
        .add_special_tokens(added(token_type::CONTROL, true))
        .map_err(failed)?;
    tokenizer
        .add_tokens(added(token_type::USER_DEFINED, false))
        .map_err(failed)?;
    Ok(())
}

fn vocabulary(
    gguf: &Gguf,
    model: &str,
    pieces: &Pieces<'_>,
) -> Result<Vocabulary, ModelError> {
    let mut end_tokens = Vec::new();
    for name in ["eos", "eot", "eom"] {
        end_tokens.extend(token_id(gguf, name)?);
    }
    end_tokens.sort_unstable();
    end_tokens.dedup();
    let data = GgufTokenizer {
        model: model.to_owned(),
        tokens: pieces.texts.iter().map(|text| (*text).to_owned()).collect(),
        token_types: pieces
            .types
            .iter()
            .map(|kind| i32::try_from(*kind).unwrap_or(0))
            .collect(),
        end_tokens,
    };
    Ok(Vocabulary::from_gguf_metadata(&data)?)
}

fn token_id(gguf: &Gguf, name: &str) -> Result<Option<u32>, ModelError> {
    let key = format!("tokenizer.ggml.{name}_token_id");
    Ok(gguf.integer(&key)?.and_then(|id| u32::try_from(id).ok()))
}

fn need<T>(value: Option<T>, key: &str) -> Result<T, ModelError> {
    value.ok_or_else(|| ModelError::Metadata {
        key: key.into(),
        expected: "what a tokenizer needs",
    })
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers hand over errors and messages"
)]
pub(super) fn failed(error: impl ToString) -> ModelError {
    ModelError::Tokenizer(error.to_string())
}
