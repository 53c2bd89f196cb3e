//! The keys of a `config.json`, taken out one by one, so that what nobody
//! asked for is known at the end.

use std::path::Path;

use serde_json::{Map, Value};

use super::missing;
use crate::model::error::ModelError;

/// Keys without influence on what is computed here.
const HARMLESS: &[&str] = &[
    "_attn_implementation",
    "_name_or_path",
    "_sliding_window_pattern",
    "architectures",
    "attention_dropout",
    "attn_implementation",
    "auto_map",
    "boi_token_index",
    "bos_token_id",
    "cache_implementation",
    "dtype",
    "embd_pdrop",
    "eoi_token_index",
    "eos_token_id",
    "image_token_index",
    "initializer_range",
    "is_llama_config",
    "max_window_layers",
    "mm_tokens_per_image",
    "model_type",
    "output_attentions",
    "output_hidden_states",
    "pad_token_id",
    "resid_pdrop",
    "return_dict",
    "task_specific_params",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
    "unsloth_fixed",
    "unsloth_version",
    "use_cache",
    "vision_config",
];

/// The keys of an object that have not been taken yet.
pub(super) struct Keys {
    /// Where the object lies, with a dot at the end unless it is the file.
    prefix: String,
    map: Map<String, Value>,
}

impl Keys {
    /// Parses a file.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Keys, ModelError> {
        let map = serde_json::from_str(text)
            .map_err(|error| ModelError::malformed(path, error))?;
        Ok(Keys { prefix: String::new(), map })
    }

    /// Returns an object without keys.
    pub(super) fn empty() -> Keys {
        Keys { prefix: String::new(), map: Map::new() }
    }

    /// Takes a number of things.
    pub(super) fn size(
        &mut self,
        key: &str,
    ) -> Result<Option<usize>, ModelError> {
        self.typed(key, "a non-negative integer", |value| {
            usize::try_from(value.as_u64()?).ok()
        })
    }

    /// Takes a number of things that must be there.
    pub(super) fn need_size(
        &mut self,
        key: &str,
    ) -> Result<usize, ModelError> {
        let value = self.size(key)?;
        value.ok_or_else(|| self.missing(key, "a non-negative integer"))
    }

    pub(super) fn float(
        &mut self,
        key: &str,
    ) -> Result<Option<f64>, ModelError> {
        self.typed(key, "a number", Value::as_f64)
    }

    pub(super) fn need_float(&mut self, key: &str) -> Result<f64, ModelError> {
        let value = self.float(key)?;
        value.ok_or_else(|| self.missing(key, "a number"))
    }

    /// Takes a truth value; one that is absent is false.
    pub(super) fn flag(&mut self, key: &str) -> Result<bool, ModelError> {
        let value = self.typed(key, "true or false", Value::as_bool)?;
        Ok(value.unwrap_or(false))
    }

    pub(super) fn text(
        &mut self,
        key: &str,
    ) -> Result<Option<String>, ModelError> {
        self.typed(key, "a string", |value| value.as_str().map(str::to_owned))
    }

    pub(super) fn texts(
        &mut self,
        key: &str,
    ) -> Result<Option<Vec<String>>, ModelError> {
        self.typed(key, "an array of strings", |value| {
            let texts = value.as_array()?.iter();
            texts.map(|text| text.as_str().map(str::to_owned)).collect()
        })
    }

    /// Takes numbers that must be there.
    pub(super) fn need_floats(
        &mut self,
        key: &str,
    ) -> Result<Vec<f64>, ModelError> {
        let floats = self.typed(key, "an array of numbers", |value| {
            value.as_array()?.iter().map(Value::as_f64).collect()
        })?;
        floats.ok_or_else(|| self.missing(key, "an array of numbers"))
    }

    pub(super) fn object(
        &mut self,
        key: &str,
    ) -> Result<Option<Keys>, ModelError> {
        let prefix = format!("{}{key}.", self.prefix);
        self.typed(key, "an object", |value| match value {
            Value::Object(map) => Some(Keys { prefix, map: map.clone() }),
            _ => None,
        })
    }

    /// Takes a key over from another object unless it is here.
    pub(super) fn or_from(&mut self, other: &mut Keys, key: &str) {
        if let Some(value) = other.map.remove(key) {
            self.map.entry(key).or_insert(value);
        }
    }

    /// Returns true if and only if the key is there and was not taken.
    pub(super) fn has(&self, key: &str) -> bool {
        self.map.get(key).is_some_and(|value| !value.is_null())
    }

    /// Returns true if and only if the key is there, with null or a value.
    pub(super) fn is_given(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// Returns the keys that nobody took and that may matter.
    pub(super) fn unknown(self) -> impl Iterator<Item = String> {
        let Keys { prefix, map } = self;
        map.into_iter()
            .filter(|(key, value)| {
                !value.is_null() && !HARMLESS.contains(&key.as_str())
            })
            .map(move |(key, _)| format!("{prefix}{key}"))
    }

    /// Names a key of this object that is not there.
    pub(super) fn missing(
        &self,
        key: &str,
        expected: &'static str,
    ) -> ModelError {
        missing(&format!("{}{key}", self.prefix), expected)
    }

    fn typed<T>(
        &mut self,
        key: &str,
        expected: &'static str,
        convert: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, ModelError> {
        match self.map.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match convert(&value) {
                Some(value) => Ok(Some(value)),
                None => Err(self.missing(key, expected)),
            },
        }
    }
}
