//! From a file or a directory to a model.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Model;
use super::config::Config;
use super::defaults;
use super::error::ModelError;
use super::gguf::Gguf;
use super::llama::Llama;
use super::safetensors::Safetensors;
use super::tokenizer::ModelTokenizer;
use super::weights::Weights;
use crate::pipeline::ModelDefaults;

/// A model with where it came from.
#[derive(Clone, Debug)]
pub struct LoadedModel {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Its tokenizer, with the vocabulary as wide as the logits.
    pub tokenizer: Arc<ModelTokenizer>,
    /// What it comes with for sampling: its `generation_config.json`, or the
    /// keys `general.sampling.*` of its GGUF file.
    pub defaults: ModelDefaults,
    /// The GGUF file or the directory.
    pub path: PathBuf,
}

/// Loads a model from a GGUF file, or from a directory of safetensors with
/// `config.json` and `tokenizer.json`.
///
/// # Errors
///
/// Fails when a file is absent or malformed, and when the architecture or
/// one of its options is not supported; the error names it.
pub fn load(path: &Path) -> Result<LoadedModel, ModelError> {
    if path.is_dir() { load_directory(path) } else { load_gguf(path) }
}

fn load_gguf(path: &Path) -> Result<LoadedModel, ModelError> {
    let mut gguf = Gguf::open(path)?;
    let config = Config::from_gguf(&mut gguf)?;
    let tokenizer = ModelTokenizer::from_gguf(&gguf, config.vocab_size)?;
    let defaults = defaults::from_gguf(&gguf);
    let model = Llama::load(config, Weights::Gguf(&mut gguf))?;
    Ok(LoadedModel {
        model: Arc::new(model),
        tokenizer: Arc::new(tokenizer),
        defaults,
        path: path.to_owned(),
    })
}

fn load_directory(path: &Path) -> Result<LoadedModel, ModelError> {
    let config_path = path.join("config.json");
    let text = fs::read_to_string(&config_path)
        .map_err(|error| ModelError::read(&config_path, error))?;
    let config = Config::from_json(&config_path, &text)?;
    let tokenizer = ModelTokenizer::from_directory(path, config.vocab_size)?;
    let files = Safetensors::open(path)?;
    let defaults = defaults::from_directory(path)?;
    let model = Llama::load(config, Weights::Safetensors(files))?;
    Ok(LoadedModel {
        model: Arc::new(model),
        tokenizer: Arc::new(tokenizer),
        defaults,
        path: path.to_owned(),
    })
}
