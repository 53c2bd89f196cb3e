//! What a model comes with for sampling: `generation_config.json` beside its
//! weights, or keys of its GGUF file.

use std::fs;
use std::io;
use std::path::Path;

use super::error::ModelError;
use super::gguf::Gguf;
use crate::pipeline::{ModelDefaults, SamplingWarning, Settings};

/// The file of a directory.
const FILE: &str = "generation_config.json";

/// Reads the file of a directory; a directory without it says nothing.
///
/// # Errors
///
/// Fails when the file is there and cannot be read.
pub(super) fn from_directory(
    directory: &Path,
) -> Result<ModelDefaults, ModelError> {
    let path = directory.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(ModelDefaults::default());
        }
        Err(error) => return Err(ModelError::read(&path, error)),
    };
    ModelDefaults::from_generation_config(&text)
        .map_err(|error| ModelError::malformed(&path, error.to_string()))
}

/// Reads the keys `general.sampling.*`, which are llama.cpp's.
///
/// A value of another type than its key has is a warning.
pub(super) fn from_gguf(gguf: &Gguf) -> ModelDefaults {
    let mut reader = Reader { gguf, warnings: Vec::new() };
    let settings = Settings {
        temperature: reader.float("general.sampling.temp"),
        top_k: reader.integer("general.sampling.top_k"),
        top_p: reader.float("general.sampling.top_p"),
        min_p: reader.float("general.sampling.min_p"),
        xtc_probability: reader.float("general.sampling.xtc_probability"),
        xtc_threshold: reader.float("general.sampling.xtc_threshold"),
        penalty_last_n: reader.integer("general.sampling.penalty_last_n"),
        repetition_penalty: reader.float("general.sampling.penalty_repeat"),
        mirostat: reader.integer("general.sampling.mirostat"),
        mirostat_tau: reader.float("general.sampling.mirostat_tau"),
        mirostat_eta: reader.float("general.sampling.mirostat_eta"),
        ..Settings::default()
    };
    let order = "general.sampling.sequence";
    if gguf.get(order).is_some() {
        let message = "of the model, an order of stages, is not applied";
        reader.warn(order, message);
    }
    ModelDefaults { settings, warnings: reader.warnings }
}

struct Reader<'a> {
    gguf: &'a Gguf,
    warnings: Vec<SamplingWarning>,
}

impl Reader<'_> {
    fn warn(&mut self, option: &'static str, message: &str) {
        let message = message.to_owned();
        self.warnings.push(SamplingWarning { option, message });
    }

    fn float(&mut self, key: &'static str) -> Option<f32> {
        let Ok(value) = self.gguf.float(key) else {
            self.warn(key, "of the model is not a float");
            return None;
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "rounding to the precision of options"
        )]
        let rounded = value? as f32;
        Some(rounded)
    }

    fn integer<T: TryFrom<u64>>(&mut self, key: &'static str) -> Option<T> {
        let Ok(value) = self.gguf.integer(key) else {
            self.warn(key, "of the model is no whole number from 0 up");
            return None;
        };
        let converted = T::try_from(value?).ok();
        if converted.is_none() {
            self.warn(key, "of the model is too great");
        }
        converted
    }
}
