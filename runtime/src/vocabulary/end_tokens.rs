//! Which tokens end the output: what the files beside a tokenizer say, and
//! what is well known.
//!
//! A model's own files come first, all of them together: a chat model often
//! names one end token for its turns in one file and another for documents in
//! a second. Only when none of them says anything does the table of
//! [`WELL_KNOWN_END_TOKENS`] decide.

use std::{io::ErrorKind, path::Path};

use serde_json::Value;

use super::{
    error::VocabularyError,
    table::{TokenId, Vocabulary},
};

/// Spellings of end tokens, used where a tokenizer comes without any file
/// that names its own.
///
/// Only tokens that the tokenizer keeps whole count: a piece of ordinary text
/// that happens to read `</s>` stays text.
pub const WELL_KNOWN_END_TOKENS: &[&str] = &[
    "<|im_end|>",            // ChatML: Qwen, SmolLM2, Yi
    "<|endoftext|>",         // GPT-2, Qwen, Phi, OLMo
    "<|eot_id|>",            // Llama 3, end of turn
    "<|eom_id|>",            // Llama 3, end of message
    "<|end_of_text|>",       // Llama 3 and Granite, end of document
    "<|eot|>",               // Llama 4
    "</s>",                  // Llama 2, Mistral, T5
    "<eos>",                 // Gemma
    "<end_of_turn>",         // Gemma
    "<|end|>",               // Phi 3
    "<|return|>",            // gpt-oss
    "<|END_OF_TURN_TOKEN|>", // Command R
    "<|EOT|>",               // DeepSeek Coder
    "<｜end▁of▁sentence｜>", // DeepSeek
    "<|eos|>",               // various
    "[EOS]",                 // various
];

/// Files that give end tokens as ids, under `eos_token_id`.
///
/// The model's configuration is asked only when there is no generation
/// configuration, which corrects it.
const ID_FILES: &[&str] = &["generation_config.json", "config.json"];

/// Files that give the end token as text, under `eos_token`.
const TEXT_FILES: &[&str] =
    &["tokenizer_config.json", "special_tokens_map.json"];

/// Returns the well-known end tokens that `vocabulary` keeps whole.
pub(super) fn well_known(vocabulary: &Vocabulary) -> Vec<TokenId> {
    WELL_KNOWN_END_TOKENS
        .iter()
        .filter_map(|text| vocabulary.id_of_special(text))
        .collect()
}

/// Returns the end tokens that the files in `directory` name, if any do.
pub(super) fn from_directory(
    vocabulary: &Vocabulary,
    directory: &Path,
) -> Result<Vec<TokenId>, VocabularyError> {
    let mut end_tokens = Vec::new();
    for name in ID_FILES {
        if let Some(config) = read_config(directory, name)? {
            ids_of(&config["eos_token_id"], &mut end_tokens);
        }
        if !end_tokens.is_empty() {
            break;
        }
    }
    for name in TEXT_FILES {
        let Some(config) = read_config(directory, name)? else { continue };
        let Some(text) = text_of(&config["eos_token"]) else { continue };
        let token = find(vocabulary, text).ok_or_else(|| {
            VocabularyError::UnknownTokenText {
                file: (*name).to_owned(),
                text: text.to_owned(),
            }
        })?;
        end_tokens.push(token);
    }
    Ok(end_tokens)
}

/// Reads a JSON file that may be absent.
fn read_config(
    directory: &Path,
    name: &str,
) -> Result<Option<Value>, VocabularyError> {
    let path = directory.join(name);
    let json = match std::fs::read(&path) {
        Ok(json) => json,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(VocabularyError::Io { path, source }),
    };
    serde_json::from_slice(&json).map(Some).map_err(|source| {
        VocabularyError::Json { file: name.to_owned(), source }
    })
}

/// Reads one id or a list of them. Ids too large for a token id become the
/// largest one, which no vocabulary has, so that they are refused by name.
fn ids_of(value: &Value, end_tokens: &mut Vec<TokenId>) {
    let ids = match value {
        Value::Array(ids) => ids.as_slice(),
        single => std::slice::from_ref(single),
    };
    let ids = ids.iter().filter_map(Value::as_u64);
    end_tokens
        .extend(ids.map(|id| TokenId(u32::try_from(id).unwrap_or(u32::MAX))));
}

/// Reads a token given as text or as an object with its `content`.
fn text_of(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value["content"].as_str())
}

/// Finds a token by its printed form, the ones kept whole first.
fn find(vocabulary: &Vocabulary, text: &str) -> Option<TokenId> {
    vocabulary.id_of_special(text).or_else(|| {
        (0..vocabulary.n_tokens())
            .map(TokenId::from_index)
            .find(|&token| vocabulary.raw_bytes(token) == text.as_bytes())
    })
}
