//! From a file or a directory to a model.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::Device;

use super::Model;
use super::compute_device::{ComputeDevice, available};
use super::config::Config;
use super::defaults;
use super::device::DeviceTransformer;
use super::error::ModelError;
use super::gguf::Gguf;
use super::memory::MemoryPlan;
use super::safetensors::Safetensors;
use super::tokenizer::ModelTokenizer;
use super::transformer::Transformer;
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
    /// What the configuration says that nothing here looks at, if anything:
    /// it may change the result, or be a remark of the program that wrote
    /// the file.
    pub warnings: Vec<String>,
    /// What it takes in memory.
    pub plan: MemoryPlan,
}

/// How a model is loaded.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// The number of positions that a sequence may have, at most what the
    /// model was made for, which is also the default. A model whose rotary
    /// embedding has other factors for long contexts (Phi-3's LongRoPE) has
    /// the shorter context by default and takes the long factors if more is
    /// asked for.
    pub context_length: Option<usize>,
    /// How many bytes weights, keys and values may take; what the machine or
    /// the container has to spare if nothing is said. A model that needs more
    /// is refused before its weights are read.
    pub memory: Option<u64>,
    /// What computes.
    pub device: ComputeDevice,
}

/// Loads a model from a GGUF file, or from a directory of safetensors with
/// `config.json` and `tokenizer.json`.
///
/// # Errors
///
/// Fails when a file is absent or malformed, and when the architecture or
/// one of its options is not supported; the error names it.
pub fn load(path: &Path) -> Result<LoadedModel, ModelError> {
    load_with(path, &LoadOptions::default())
}

/// Does what [`load`] does, with options.
///
/// # Errors
///
/// As [`load`], and when the context asked for is longer than the model's.
pub fn load_with(
    path: &Path,
    options: &LoadOptions,
) -> Result<LoadedModel, ModelError> {
    load_on(path, options, options.device.open()?)
}

/// Loads a model on a device, or for the processor's own body.
pub(super) fn load_on(
    path: &Path,
    options: &LoadOptions,
    device: Option<Device>,
) -> Result<LoadedModel, ModelError> {
    if path.is_dir() {
        load_directory(path, options, device)
    } else {
        load_gguf(path, options, device)
    }
}

fn build(
    config: Config,
    weights: Weights<'_>,
    device: Option<Device>,
) -> Result<Arc<dyn Model>, ModelError> {
    Ok(match device {
        None => Arc::new(Transformer::load(config, weights)?),
        Some(device) => {
            Arc::new(DeviceTransformer::load(config, weights, device)?)
        }
    })
}

fn load_gguf(
    path: &Path,
    options: &LoadOptions,
    device: Option<Device>,
) -> Result<LoadedModel, ModelError> {
    let mut gguf = Gguf::open(path)?;
    let asked = options.context_length;
    let config = Config::from_gguf(&mut gguf, asked)?;
    let files = super::gguf::parts_of(path);
    let limit = options.memory.or_else(|| available(device.as_ref()));
    let plan = MemoryPlan::new(&files, &config, asked, limit)?;
    plan.check()?;
    let tokenizer = ModelTokenizer::from_gguf(&gguf, config.vocab_size)?;
    let defaults = defaults::from_gguf(&gguf);
    let warnings = warnings(&config);
    let model = build(config, Weights::from_gguf(&mut gguf), device)?;
    Ok(LoadedModel {
        model,
        tokenizer: Arc::new(tokenizer),
        defaults,
        path: path.to_owned(),
        warnings,
        plan,
    })
}

fn load_directory(
    path: &Path,
    options: &LoadOptions,
    device: Option<Device>,
) -> Result<LoadedModel, ModelError> {
    let config_path = path.join("config.json");
    let text = fs::read_to_string(&config_path)
        .map_err(|error| ModelError::read(&config_path, error))?;
    let asked = options.context_length;
    let config = Config::from_json(&config_path, &text, asked)?;
    let files = Safetensors::open(path)?;
    let limit = options.memory.or_else(|| available(device.as_ref()));
    let plan = MemoryPlan::new(&files.paths(), &config, asked, limit)?;
    plan.check()?;
    let tokenizer = ModelTokenizer::from_directory(path, config.vocab_size)?;
    let defaults = defaults::from_directory(path)?;
    let warnings = warnings(&config);
    let model = build(config, Weights::from_safetensors(files), device)?;
    Ok(LoadedModel {
        model,
        tokenizer: Arc::new(tokenizer),
        defaults,
        path: path.to_owned(),
        warnings,
        plan,
    })
}

fn warnings(config: &Config) -> Vec<String> {
    let warning = |key: &String| {
        format!("the model's configuration has {key:?}, which is not known")
    };
    config.unknown.iter().map(warning).collect()
}
