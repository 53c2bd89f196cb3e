//! Vocabularies from `tokenizer.json`.
//!
//! The file is read directly: only the pieces and a few flags are kept, and
//! the merges, most of the file, are skipped over. Building an encoder to ask
//! it for its pieces costs several times as much.

use std::{borrow::Cow, fmt, fs, path::Path};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

use super::{
    encoding::{Encoding, SPACE_MARKER, byte_level},
    end_tokens,
    error::VocabularyError,
    table::{Builder, MAX_TOKENS, TokenKind, Vocabulary},
};

/// The name of the file in a model's directory.
const FILE_NAME: &str = "tokenizer.json";

impl Vocabulary {
    /// Reads a vocabulary from the contents of a `tokenizer.json`.
    ///
    /// Byte-level BPE, SentencePiece-style BPE and Unigram with or without
    /// byte fallback, and plain text vocabularies are understood; which one
    /// it is stands in the file's decoder, pre-tokenizer and normalizer.
    ///
    /// Added tokens flagged as special never match as text; other added
    /// tokens match as the text that they are written as, except `<unused0>`
    /// and its like. The end tokens are those of the
    /// [well-known](super::WELL_KNOWN_END_TOKENS) ones that the file has;
    /// [`with_end_tokens`](Self::with_end_tokens) replaces them.
    ///
    /// # Errors
    ///
    /// Fails when the contents are not a tokenizer, or one whose tokens have
    /// no fixed spelling (WordPiece, WordLevel).
    pub fn from_tokenizer_json(
        json: &[u8],
    ) -> Result<Vocabulary, VocabularyError> {
        let vocabulary = read(json)?;
        let end_tokens = end_tokens::well_known(&vocabulary);
        vocabulary.with_end_tokens(end_tokens)
    }

    /// Reads a vocabulary from a `tokenizer.json`, or from the directory of a
    /// model that holds one.
    ///
    /// In a directory, and beside a file named `tokenizer.json`, the end
    /// tokens are those that `generation_config.json` (or else
    /// `config.json`), `tokenizer_config.json` and `special_tokens_map.json`
    /// name, all together.
    ///
    /// # Errors
    ///
    /// Fails as [`from_tokenizer_json`](Self::from_tokenizer_json) does, when
    /// a file cannot be read, and when one of the other files names an end
    /// token that the tokenizer does not have.
    pub fn from_path(
        path: impl AsRef<Path>,
    ) -> Result<Vocabulary, VocabularyError> {
        let path = path.as_ref();
        let file =
            if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() };
        let json = fs::read(&file).map_err(|source| VocabularyError::Io {
            path: file.clone(),
            source,
        })?;
        let vocabulary = read(&json)?;
        let mut end_tokens = Vec::new();
        if file.file_name().is_some_and(|name| name == FILE_NAME) {
            let directory = file.parent().unwrap_or(Path::new(""));
            end_tokens = end_tokens::from_directory(&vocabulary, directory)?;
        }
        if end_tokens.is_empty() {
            end_tokens = end_tokens::well_known(&vocabulary);
        }
        vocabulary.with_end_tokens(end_tokens)
    }
}

/// The parts of `tokenizer.json` that say what tokens spell.
#[derive(Deserialize)]
struct TokenizerFile<'a> {
    #[serde(borrow)]
    added_tokens: Option<Vec<AddedToken<'a>>>,
    normalizer: Option<Value>,
    pre_tokenizer: Option<Value>,
    decoder: Option<Value>,
    #[serde(borrow)]
    model: Model<'a>,
}

#[derive(Deserialize)]
struct AddedToken<'a> {
    id: u64,
    #[serde(borrow)]
    content: Piece<'a>,
    #[serde(default)]
    special: bool,
}

#[derive(Deserialize)]
struct Model<'a> {
    /// Older files leave it out.
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(borrow)]
    vocab: Pieces<'a>,
    merges: Option<IgnoredAny>,
    unk_token: Option<String>,
    unk_id: Option<u64>,
    byte_fallback: Option<bool>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
}

/// The tokens of a model with their ids: an object from piece to id, or, for
/// Unigram, a list of pieces with scores.
struct Pieces<'a> {
    entries: Vec<(u64, Piece<'a>)>,
    is_list: bool,
}

/// A string that borrows from the file where it has no escapes.
#[derive(Clone, Debug)]
struct Piece<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Piece<'a> {
    fn deserialize<D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Self, D::Error> {
        struct PieceVisitor;

        impl<'de> Visitor<'de> for PieceVisitor {
            type Value = Piece<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the text of a token")
            }

            fn visit_borrowed_str<E>(
                self,
                text: &'de str,
            ) -> Result<Piece<'de>, E> {
                Ok(Piece(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Piece<'de>, E> {
                Ok(Piece(Cow::Owned(text.to_owned())))
            }

            fn visit_string<E>(self, text: String) -> Result<Piece<'de>, E> {
                Ok(Piece(Cow::Owned(text)))
            }
        }

        deserializer.deserialize_str(PieceVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Pieces<'a> {
    fn deserialize<D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Self, D::Error> {
        struct PiecesVisitor;

        impl<'de> Visitor<'de> for PiecesVisitor {
            type Value = Pieces<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tokens or a list of tokens")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Pieces<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some((piece, id)) = map.next_entry()? {
                    entries.push((id, piece));
                }
                Ok(Pieces { entries, is_list: false })
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> Result<Pieces<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some((piece, IgnoredAny)) = list.next_element()? {
                    entries.push((entries.len() as u64, piece));
                }
                Ok(Pieces { entries, is_list: true })
            }
        }

        deserializer.deserialize_any(PiecesVisitor)
    }
}

/// What the file says about one id.
#[derive(Clone, Debug)]
enum Slot<'a> {
    Hole,
    /// A piece of the model.
    Model(Piece<'a>),
    /// The piece that stands for whatever the model cannot spell.
    Unknown(Piece<'a>),
    Added {
        content: Piece<'a>,
        is_special: bool,
    },
}

/// Reads the tokens and leaves the end tokens open.
fn read(json: &[u8]) -> Result<Vocabulary, VocabularyError> {
    let file: TokenizerFile<'_> =
        serde_json::from_slice(json).map_err(|source| {
            VocabularyError::Json { file: FILE_NAME.to_owned(), source }
        })?;
    check_model(&file.model)?;
    let marks = find_marks(&file)?;
    let byte_fallback =
        marks.byte_fallback || file.model.byte_fallback.unwrap_or_default();
    let slots = slots_of(file)?;
    let encoding = if marks.byte_level {
        Encoding::ByteLevel
    } else if let Some(marker) = marks.space_marker {
        Encoding::Spaced { marker, byte_fallback }
    } else {
        infer_encoding(&slots, byte_fallback)
    };
    build(&slots, encoding)
}

fn build(
    slots: &[Slot<'_>],
    encoding: Encoding,
) -> Result<Vocabulary, VocabularyError> {
    let mut builder = Builder::with_capacity(slots.len());
    for slot in slots {
        match slot {
            Slot::Hole => builder.push(TokenKind::Unused, |_| {})?,
            Slot::Model(piece) => {
                builder.push(TokenKind::Text, |bytes| {
                    encoding.decode_into(&piece.0, bytes);
                })?;
            }
            Slot::Unknown(piece) => {
                builder.push(TokenKind::Special, |bytes| {
                    bytes.extend_from_slice(piece.0.as_bytes());
                })?;
                builder.name_last(&piece.0);
            }
            Slot::Added { content, is_special } => {
                let kind = if *is_special {
                    TokenKind::Special
                } else if is_unused_name(&content.0) {
                    TokenKind::Unused
                } else {
                    TokenKind::Text
                };
                builder.push(kind, |bytes| {
                    if kind == TokenKind::Text {
                        encoding.decode_added_into(&content.0, bytes);
                    } else {
                        bytes.extend_from_slice(content.0.as_bytes());
                    }
                })?;
                builder.name_last(&content.0);
            }
        }
    }
    Ok(builder.finish())
}

/// Returns true for the names that SentencePiece vocabularies give to ids
/// kept in reserve, such as `<unused49>`.
fn is_unused_name(text: &str) -> bool {
    text.strip_prefix("<unused")
        .and_then(|rest| rest.strip_suffix('>'))
        .is_some_and(|number| {
            !number.is_empty()
                && number.bytes().all(|digit| digit.is_ascii_digit())
        })
}

/// Refuses the models whose tokens have no fixed spelling.
fn check_model(model: &Model<'_>) -> Result<(), VocabularyError> {
    let kind = match &model.kind {
        Some(kind) => kind.as_str(),
        None if model.vocab.is_list => "Unigram",
        None if model.merges.is_some() => "BPE",
        None => "without a type",
    };
    let unsupported = |reason| {
        Err(VocabularyError::Unsupported {
            part: format!("model {kind}"),
            reason,
        })
    };
    match kind {
        "BPE" | "Unigram" => {}
        "WordPiece" | "WordLevel" => {
            return unsupported(
                "spaces between its tokens depend on their neighbours",
            );
        }
        _ => return unsupported("it is not a known kind of model"),
    }
    let is_set = |field: &Option<String>| {
        field.as_ref().is_some_and(|text| !text.is_empty())
    };
    if is_set(&model.continuing_subword_prefix) {
        return unsupported(
            "continuing_subword_prefix makes spaces depend on neighbours",
        );
    }
    if is_set(&model.end_of_word_suffix) {
        return unsupported(
            "end_of_word_suffix makes spaces depend on neighbours",
        );
    }
    Ok(())
}

/// Puts every token at its id; added tokens win over the model's.
fn slots_of(
    file: TokenizerFile<'_>,
) -> Result<Vec<Slot<'_>>, VocabularyError> {
    let Model { vocab, unk_token, unk_id, .. } = file.model;
    let mut slots = Vec::with_capacity(vocab.entries.len());
    for (id, piece) in vocab.entries {
        let is_unknown = unk_id == Some(id)
            || unk_token.as_deref().is_some_and(|unk| unk == piece.0);
        let slot = slot_at(&mut slots, id)?;
        if let Slot::Model(first) | Slot::Unknown(first) = slot {
            return Err(VocabularyError::DuplicateId {
                id: u32::try_from(id).unwrap_or(u32::MAX),
                first: first.0.clone().into_owned(),
                second: piece.0.into_owned(),
            });
        }
        *slot =
            if is_unknown { Slot::Unknown(piece) } else { Slot::Model(piece) };
    }
    for AddedToken { id, content, special } in
        file.added_tokens.unwrap_or_default()
    {
        *slot_at(&mut slots, id)? =
            Slot::Added { content, is_special: special };
    }
    Ok(slots)
}

/// Returns the place of `id`, growing the table up to it.
fn slot_at<'s, 'a>(
    slots: &'s mut Vec<Slot<'a>>,
    id: u64,
) -> Result<&'s mut Slot<'a>, VocabularyError> {
    let index = usize::try_from(id)
        .ok()
        .filter(|_| id < u64::from(MAX_TOKENS))
        .ok_or(VocabularyError::TooManyTokens { id, limit: MAX_TOKENS })?;
    if index >= slots.len() {
        slots.resize(index + 1, Slot::Hole);
    }
    Ok(&mut slots[index])
}

/// What the components of a tokenizer reveal about its alphabet.
#[derive(Debug, Default)]
struct Marks {
    byte_level: bool,
    space_marker: Option<char>,
    byte_fallback: bool,
}

/// Reads the alphabet off the decoder, or else the pre-tokenizer, or else
/// the normalizer.
fn find_marks(file: &TokenizerFile<'_>) -> Result<Marks, VocabularyError> {
    let mut all = Marks::default();
    let components = [&file.decoder, &file.pre_tokenizer, &file.normalizer];
    for (index, component) in components.into_iter().enumerate() {
        let Some(component) = component else { continue };
        let marks = marks_of(component, index == 0)?;
        all.byte_fallback |= marks.byte_fallback;
        if !all.byte_level && all.space_marker.is_none() {
            all.byte_level = marks.byte_level;
            all.space_marker = marks.space_marker;
        }
    }
    Ok(all)
}

/// Reads the marks of a component and of the components inside it.
fn marks_of(
    component: &Value,
    is_decoder: bool,
) -> Result<Marks, VocabularyError> {
    let mut marks = Marks::default();
    let mut open = vec![component];
    while let Some(component) = open.pop() {
        let kind = component["type"].as_str().unwrap_or_default();
        match kind {
            "Sequence" => {
                for list in ["decoders", "pretokenizers", "normalizers"] {
                    open.extend(
                        component[list].as_array().into_iter().flatten(),
                    );
                }
            }
            "ByteLevel" => marks.byte_level = true,
            "ByteFallback" => marks.byte_fallback = true,
            "Metaspace" => {
                let text = component["replacement"].as_str();
                marks.space_marker =
                    text.and_then(only_char).or(Some(SPACE_MARKER));
            }
            "Replace" => match space_marker_of(component) {
                Some(marker) => marks.space_marker = Some(marker),
                None if is_decoder => {
                    return Err(VocabularyError::Unsupported {
                        part: "decoder Replace".to_owned(),
                        reason: "it replaces more than a marker for spaces",
                    });
                }
                None => {}
            },
            "WordPiece" | "BPEDecoder" | "CTC" if is_decoder => {
                return Err(VocabularyError::Unsupported {
                    part: format!("decoder {kind}"),
                    reason: "what it prints for a token depends on the \
                             neighbours",
                });
            }
            _ => {}
        }
    }
    Ok(marks)
}

/// Returns the marker of a `Replace` between a space and one character.
fn space_marker_of(replace: &Value) -> Option<char> {
    let pattern = replace["pattern"]["String"].as_str()?;
    let content = replace["content"].as_str()?;
    match (pattern, content) {
        (" ", marker) | (marker, " ") => {
            only_char(marker).filter(|&marker| marker != ' ')
        }
        _ => None,
    }
}

fn only_char(text: &str) -> Option<char> {
    let mut characters = text.chars();
    let first = characters.next()?;
    characters.next().is_none().then_some(first)
}

/// Guesses the alphabet from the pieces, for a file that has no component
/// that reveals it.
///
/// Byte-level when every piece is written in that alphabet and one has its
/// space or newline; SentencePiece's when a piece starts with its marker.
fn infer_encoding(slots: &[Slot<'_>], byte_fallback: bool) -> Encoding {
    let pieces = || {
        slots.iter().filter_map(|slot| match slot {
            Slot::Model(piece) => Some(&*piece.0),
            Slot::Hole | Slot::Unknown(_) | Slot::Added { .. } => None,
        })
    };
    let is_byte_level = pieces().any(|piece| piece.contains(['Ġ', 'Ċ']))
        && pieces().flat_map(str::chars).all(|c| byte_level(c).is_some());
    if is_byte_level {
        Encoding::ByteLevel
    } else if pieces().any(|piece| piece.starts_with(SPACE_MARKER)) {
        Encoding::Spaced { marker: SPACE_MARKER, byte_fallback }
    } else {
        Encoding::Plain { byte_fallback }
    }
}
