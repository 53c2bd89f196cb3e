//! The tokenizer of a GGUF file, rebuilt from its metadata.

use std::sync::Arc;

use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::{AddedToken, Tokenizer};

use super::pre_tokenizer::Rule;
use super::sentence_piece::{Parts, SentencePiece};
use super::special::{Cutter, Special};
use super::{
    DEFAULT_TEMPLATE, Encoder, ModelTokenizer, Templates, with_width,
};
use crate::model::error::ModelError;
use crate::model::gguf::Gguf;
use crate::vocabulary::{GgufTokenizer, Vocabulary, parse_byte_piece};

/// The numbers of `tokenizer.ggml.token_type` that the encoder looks at.
mod token_type {
    pub(super) const NORMAL: u64 = 1;
    pub(super) const UNKNOWN: u64 = 2;
    pub(super) const CONTROL: u64 = 3;
    pub(super) const USER_DEFINED: u64 = 4;
    pub(super) const BYTE: u64 = 6;
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

    /// Returns true if and only if there is a token of this id.
    fn has(&self, id: u32) -> bool {
        usize::try_from(id).is_ok_and(|id| id < self.texts.len())
    }

    /// Returns the id of each token.
    fn ids(&self) -> Vocab {
        (0..).zip(&self.texts).map(|(id, s)| ((*s).to_owned(), id)).collect()
    }

    /// Returns the tokens that are written whole in a text.
    fn special(&self) -> impl Iterator<Item = (u32, &'a str)> {
        use token_type::{CONTROL, UNKNOWN, USER_DEFINED};
        self.of_types(&[CONTROL, UNKNOWN, USER_DEFINED])
            .filter(|(_, text)| !text.is_empty())
    }

    /// Returns the tokens of some types, with their ids.
    fn of_types(
        &self,
        wanted: &[u64],
    ) -> impl Iterator<Item = (u32, &'a str)> {
        (0..)
            .zip(self.texts.iter().zip(&self.types))
            .filter(move |(_, (_, kind))| wanted.contains(kind))
            .map(|(id, (text, _))| (id, *text))
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
    let (encoder, adds_begin, defaults) = match model {
        "gpt2" => {
            let (encoder, adds_begin) = byte_level(gguf, &pieces)?;
            (Encoder::Library(Box::new(encoder)), adds_begin, [None, None])
        }
        "llama" => {
            let encoder = sentence_piece(gguf, &pieces)?;
            // What SentencePiece takes where nothing else is said.
            let default = |id: u32| pieces.has(id).then_some(id);
            let defaults = [default(1), default(2)];
            (Encoder::SentencePiece(Arc::new(encoder)), true, defaults)
        }
        other => {
            return Err(ModelError::Tokenizer(format!(
                "tokenizer.ggml.model = {other:?} is not supported; \
                 supported: gpt2 (byte-level BPE), llama (SentencePiece)"
            )));
        }
    };
    let [begin, end] = defaults;
    let begin = token_id(gguf, &pieces, "bos")?.or(begin);
    let end = token_id(gguf, &pieces, "eos")?.or(end);
    let added = |kind: &str, default: bool, id: Option<u32>| {
        let key = format!("tokenizer.ggml.add_{kind}_token");
        match (gguf.flag(&key)?.unwrap_or(default), id) {
            (true, None) => Err(ModelError::Tokenizer(format!(
                "the {kind} token is to be added, but \
                 tokenizer.ggml.{kind}_token_id is not set"
            ))),
            (is_added, id) => Ok(id.filter(|_| is_added)),
        }
    };
    let text_of = |id: Option<u32>| {
        id.and_then(|id| pieces.texts.get(usize::try_from(id).ok()?))
            .map(|text| (*text).to_owned())
            .unwrap_or_default()
    };
    let vocabulary = vocabulary(gguf, model, &pieces)?;
    Ok(ModelTokenizer {
        encoder,
        vocabulary: with_width(vocabulary, n_logits)?,
        prefix: added("bos", adds_begin, begin)?,
        suffix: added("eos", false, end)?,
        begin_text: text_of(begin),
        end_text: text_of(end),
        templates: templates(gguf)?,
    })
}

/// The chat template is at one key, and others are at keys below it.
fn templates(gguf: &Gguf) -> Result<Templates, ModelError> {
    const KEY: &str = "tokenizer.chat_template";
    let mut templates = Templates::new();
    for key in gguf.keys() {
        let name = match key.strip_prefix(KEY) {
            Some("") => DEFAULT_TEMPLATE,
            Some(rest) => match rest.strip_prefix('.') {
                Some(name) => name,
                None => continue,
            },
            None => continue,
        };
        if let Some(text) = gguf.text(key)? {
            templates.insert(name.to_owned(), text.to_owned());
        }
    }
    Ok(templates)
}

/// SentencePiece, with what its family does otherwise.
fn sentence_piece(
    gguf: &Gguf,
    pieces: &Pieces<'_>,
) -> Result<SentencePiece, ModelError> {
    const SCORES: &str = "tokenizer.ggml.scores";
    let scores = need(gguf.floats(SCORES)?, SCORES)?;
    if scores.len() != pieces.texts.len() {
        return Err(ModelError::Tokenizer(format!(
            "{} tokens, but {} scores",
            pieces.texts.len(),
            scores.len()
        )));
    }
    let name = gguf.text("general.name")?.unwrap_or("").to_lowercase();
    let is_phi_3 = name.contains("phi-3") || name.contains("phi3");
    let special: Vec<Special<'_>> = pieces
        .special()
        .map(|(id, text)| Special {
            id,
            text,
            // Files do not say it; llama.cpp goes by the name, too.
            strips_right: is_phi_3
                && !matches!(text, "<unk>" | "<s>" | "<|endoftext|>"),
        })
        .collect();
    let bytes = pieces
        .of_types(&[token_type::BYTE])
        .filter_map(|(id, text)| Some((parse_byte_piece(text)?, id)));
    let is_joined = |kind: &u64| *kind != token_type::BYTE;
    let joined = (0..)
        .zip(pieces.texts.iter().zip(&pieces.types).zip(&scores))
        .filter(|(_, ((_, kind), _))| is_joined(kind))
        .map(|(id, ((text, _), score))| (id, *text, *score));
    Ok(SentencePiece::new(Parts {
        pieces: joined.collect(),
        bytes: bytes.collect(),
        unknown: pieces
            .of_types(&[token_type::UNKNOWN])
            .next()
            .map(|(id, _)| id),
        special: Cutter::new(&special)?,
        adds_space: gguf
            .flag("tokenizer.ggml.add_space_prefix")?
            .unwrap_or(true),
    }))
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
    add_special(&mut tokenizer, pieces)?;
    Ok((tokenizer, rule.adds_begin))
}

/// Tells the library which tokens are written whole in a text.
fn add_special(
    tokenizer: &mut Tokenizer,
    pieces: &Pieces<'_>,
) -> Result<(), ModelError> {
    let added = |kinds: &[u64], special: bool| {
        pieces
            .of_types(kinds)
            .filter(|(_, text)| !text.is_empty())
            .map(move |(_, text)| {
                AddedToken::from(text, special).normalized(false)
            })
            .collect::<Vec<_>>()
    };
    let named = [token_type::CONTROL, token_type::UNKNOWN];
    tokenizer.add_special_tokens(added(&named, true)).map_err(failed)?;
    tokenizer
        .add_tokens(added(&[token_type::USER_DEFINED], false))
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
        end_tokens.extend(token_id(gguf, pieces, name)?);
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

fn token_id(
    gguf: &Gguf,
    pieces: &Pieces<'_>,
    name: &str,
) -> Result<Option<u32>, ModelError> {
    let key = format!("tokenizer.ggml.{name}_token_id");
    let Some(id) = gguf.integer(&key)? else { return Ok(None) };
    match u32::try_from(id).ok().filter(|id| pieces.has(*id)) {
        Some(id) => Ok(Some(id)),
        None => Err(ModelError::Tokenizer(format!(
            "{key} = {id} is not among the {} tokens",
            pieces.texts.len()
        ))),
    }
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

#[cfg(test)]
mod tests {
    use candle_core::quantized::gguf_file::{Value, write};

    use super::*;

    type Entries = Vec<(&'static str, Value)>;

    fn texts(texts: &[&str]) -> Value {
        let text = |text: &&str| Value::String((*text).to_owned());
        Value::Array(texts.iter().map(text).collect())
    }

    /// A SentencePiece vocabulary: `<s>` is 1, `</s>` 2, `<|end|>` 3.
    fn pieces() -> Entries {
        let types = [2, 3, 3, 3, 4, 1, 1, 1, 5];
        let scores = [0.0, 0.0, 0.0, 0.0, 0.0, -1.0, -2.0, -3.0, -4.0f32];
        vec![
            ("tokenizer.ggml.model", Value::String("llama".into())),
            (
                "tokenizer.ggml.tokens",
                texts(&[
                    "<unk>",
                    "<s>",
                    "</s>",
                    "<|end|>",
                    "\n\n",
                    "\u{2581}a",
                    "a",
                    "\u{2581}",
                    "b",
                ]),
            ),
            (
                "tokenizer.ggml.token_type",
                Value::Array(types.map(Value::I32).to_vec()),
            ),
            (
                "tokenizer.ggml.scores",
                Value::Array(scores.map(Value::F32).to_vec()),
            ),
        ]
    }

    fn build_from(
        entries: &[(&str, Value)],
        more: &[(&str, Value)],
    ) -> Result<ModelTokenizer, ModelError> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("m.gguf");
        let mut file = std::fs::File::create(&path).expect("a file");
        let entries: Vec<(&str, &Value)> = entries
            .iter()
            .filter(|(key, _)| more.iter().all(|(other, _)| other != key))
            .chain(more)
            .map(|(key, value)| (*key, value))
            .collect();
        write(&mut file, &entries, &[]).expect("written");
        build(&Gguf::open(&path).expect("valid"), 9)
    }

    fn encode(more: &[(&str, Value)], text: &str) -> Vec<u32> {
        build_from(&pieces(), more)
            .and_then(|tokenizer| tokenizer.encode(text, true))
            .expect("encodes")
    }

    #[test]
    fn what_the_file_says_is_added() {
        let flag = |key, value| (key, Value::Bool(value));
        let begins = "tokenizer.ggml.add_bos_token";
        let ends = "tokenizer.ggml.add_eos_token";
        let space = "tokenizer.ggml.add_space_prefix";
        assert_eq!(encode(&[], "a"), [1, 5]);
        assert_eq!(encode(&[], "a\n\na"), [1, 5, 4, 5]);
        assert_eq!(encode(&[flag(ends, true)], "a"), [1, 5, 2]);
        assert_eq!(encode(&[flag(begins, false)], "a"), [5]);
        assert_eq!(encode(&[flag(space, false)], "a a"), [1, 6, 5]);
        let tokenizer =
            build_from(&pieces(), &[flag(ends, true)]).expect("builds");
        assert_eq!(tokenizer.encode("a", false).expect("encodes"), [5]);
        assert_eq!(tokenizer.begin_text(), "<s>");
    }

    #[test]
    fn every_chat_template_is_known_by_its_name() {
        let text = |text: &str| Value::String(text.into());
        let tokenizer = build_from(
            &pieces(),
            &[
                ("tokenizer.chat_template", text("a")),
                ("tokenizer.chat_template.tool_use", text("b")),
                ("tokenizer.chat_templates", texts(&["tool_use"])),
            ],
        )
        .expect("builds");
        assert_eq!(tokenizer.chat_template(), Some("a"));
        assert_eq!(tokenizer.chat_template_named("tool_use"), Some("b"));
        assert_eq!(tokenizer.chat_template_named("rag"), None);
    }

    #[test]
    fn tokens_of_phi_3_take_the_white_space_behind_them() {
        let text = "a<|end|>\n a<s> a";
        assert_eq!(encode(&[], text), [1, 5, 3, 7, 0, 5, 1, 7, 5]);
        let name = ("general.name", Value::String("Phi-3 mini".into()));
        assert_eq!(encode(&[name], text), [1, 5, 3, 5, 1, 7, 5]);
    }

    #[test]
    fn what_is_not_supported_or_contradicts_itself_is_an_error() {
        let number = |key, id| (key, Value::U32(id));
        let text = |key, text: &str| (key, Value::String(text.into()));
        for (more, expected) in [
            (vec![text("tokenizer.ggml.model", "t5")], "\"t5\""),
            (vec![text("tokenizer.ggml.model", "bert")], "\"bert\""),
            (vec![number("tokenizer.ggml.bos_token_id", 9)], "9 is not"),
            (
                vec![(
                    "tokenizer.ggml.scores",
                    Value::Array(vec![Value::F32(0.0)]),
                )],
                "9 tokens, but 1 scores",
            ),
            (
                vec![(
                    "tokenizer.ggml.token_type",
                    Value::Array(vec![Value::I32(1)]),
                )],
                "9 tokens, but 1 token types",
            ),
            (
                vec![
                    text("tokenizer.ggml.model", "gpt2"),
                    text("tokenizer.ggml.pre", "smollm"),
                    ("tokenizer.ggml.merges", texts(&[])),
                    ("tokenizer.ggml.add_bos_token", Value::Bool(true)),
                ],
                "tokenizer.ggml.bos_token_id is not set",
            ),
        ] {
            let error = build_from(&pieces(), &more).expect_err("refused");
            let found = error.to_string();
            assert!(found.contains(expected), "{found:?}");
        }
    }
}
