//! Where a model's tensors come from, under one set of names.

use std::collections::BTreeSet;
use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{DType, Device, Tensor};

use super::error::ModelError;
use super::gguf::Gguf;
use super::linear::read;
use super::names::Name;
use super::safetensors::Safetensors;

/// What the names of a model's body and of its output begin with: in a plain
/// model, and in two forms of one that sees, too.
const PREFIXES: &[(&str, &str)] = &[
    ("model.", ""),
    ("model.language_model.", ""),
    ("language_model.model.", "language_model."),
];

/// The tensors of a model, with those that have been taken.
pub(super) struct Weights<'a> {
    source: Source<'a>,
    taken: BTreeSet<String>,
    /// The number formats of the matrices that were read.
    formats: BTreeSet<String>,
}

enum Source<'a> {
    Gguf(&'a mut Gguf),
    Safetensors { files: Safetensors, body: &'static str, head: &'static str },
}

impl<'a> Weights<'a> {
    pub(super) fn from_gguf(gguf: &'a mut Gguf) -> Weights<'a> {
        Weights::new(Source::Gguf(gguf))
    }

    pub(super) fn from_safetensors(files: Safetensors) -> Weights<'a> {
        let embedding = Name::Embedding.in_safetensors();
        let has = |(body, _): &&(&str, &str)| {
            files.shape(&format!("{body}{embedding}")).is_some()
        };
        let found = PREFIXES.iter().find(has).or(PREFIXES.first());
        let (body, head) = found.copied().unwrap_or_default();
        let source = Source::Safetensors { files, body, head };
        Weights::new(source)
    }

    fn new(source: Source<'a>) -> Weights<'a> {
        let (taken, formats) = (BTreeSet::new(), BTreeSet::new());
        Weights { source, taken, formats }
    }

    /// Returns the number formats of the matrices that were read.
    pub(super) fn formats(&self) -> String {
        let formats: Vec<&str> =
            self.formats.iter().map(String::as_str).collect();
        formats.join(", ")
    }

    /// Returns how the source calls a tensor.
    fn key(&self, name: Name) -> String {
        match &self.source {
            Source::Gguf(_) => name.in_gguf(),
            Source::Safetensors { body, head, .. } => {
                let prefix = if name == Name::Output { head } else { body };
                format!("{prefix}{}", name.in_safetensors())
            }
        }
    }

    /// Returns true if and only if the source has the tensor.
    pub(super) fn has(&self, name: Name) -> bool {
        let key = self.key(name);
        match &self.source {
            Source::Gguf(gguf) => gguf.has_tensor(&key),
            Source::Safetensors { files, .. } => files.shape(&key).is_some(),
        }
    }

    /// Says that a tensor may be there and is not needed.
    pub(super) fn ignore(&mut self, name: Name) {
        self.taken.insert(self.key(name));
    }

    /// Reads a matrix.
    pub(super) fn matrix(
        &mut self,
        name: Name,
        shape: [usize; 2],
    ) -> Result<Arc<QTensor>, ModelError> {
        let key = self.key(name);
        let tensor = match &mut self.source {
            Source::Gguf(gguf) => {
                check(&key, &shape, gguf.tensor_shape(&key).as_deref())?;
                gguf.tensor(&key, &Device::Cpu)?
            }
            Source::Safetensors { files, .. } => {
                let (tensor, dtype) = load(files, &key, &shape)?;
                // Numbers of 16 bits stay so.
                let dtype = match dtype {
                    DType::F16 => GgmlDType::F16,
                    DType::BF16 => GgmlDType::BF16,
                    _ => GgmlDType::F32,
                };
                QTensor::quantize(&tensor, dtype)?
            }
        };
        self.taken.insert(key);
        self.formats.insert(format!("{:?}", tensor.dtype()));
        Ok(Arc::new(tensor))
    }

    /// Reads a vector.
    pub(super) fn vector(
        &mut self,
        name: Name,
        len: usize,
    ) -> Result<Vec<f32>, ModelError> {
        let key = self.key(name);
        let tensor = match &mut self.source {
            Source::Gguf(gguf) => {
                check(&key, &[len], gguf.tensor_shape(&key).as_deref())?;
                let tensor = gguf.tensor(&key, &Device::Cpu)?;
                tensor.dequantize(&Device::Cpu)?
            }
            Source::Safetensors { files, .. } => load(files, &key, &[len])?.0,
        };
        self.taken.insert(key);
        read(&tensor, <[f32]>::to_vec)
    }

    /// Refuses a source with tensors that nobody took: what they are for
    /// would be missing from the result.
    pub(super) fn finish(self) -> Result<(), ModelError> {
        let names: Vec<&str> = match &self.source {
            Source::Gguf(gguf) => gguf.tensor_names().collect(),
            Source::Safetensors { files, .. } => files.names().collect(),
        };
        let is_left =
            |name: &&str| !self.taken.contains(*name) && !is_harmless(name);
        let mut left = names.into_iter().filter(is_left);
        match left.next() {
            None => Ok(()),
            Some(name) => Err(ModelError::UnusedTensors {
                name: name.to_owned(),
                n_more: left.count(),
            }),
        }
    }
}

/// Whether a tensor says what the configuration says, too, or belongs to a
/// part of the model that is not about text.
fn is_harmless(name: &str) -> bool {
    name.ends_with("rotary_emb.inv_freq")
        || matches!(
            name,
            "rope_freqs.weight"
                | "rope_factors_long.weight"
                | "rope_factors_short.weight"
        )
        || ["vision_tower.", "multi_modal_projector."].iter().any(|part| {
            let name = name.strip_prefix("model.").unwrap_or(name);
            name.starts_with(part)
        })
}

/// Reads a tensor as `f32`, and the type that it is stored in.
fn load(
    files: &mut Safetensors,
    key: &str,
    shape: &[usize],
) -> Result<(Tensor, DType), ModelError> {
    check(key, shape, files.shape(key))?;
    files.tensor(key)?.ok_or_else(|| absent(key, shape))
}

fn check(
    name: &str,
    expected: &[usize],
    found: Option<&[usize]>,
) -> Result<(), ModelError> {
    match found {
        Some(found) if found == expected => Ok(()),
        None => Err(absent(name, expected)),
        Some(found) => Err(ModelError::Tensor {
            name: name.to_owned(),
            expected: expected.to_vec(),
            found: format!("{found:?}"),
        }),
    }
}

fn absent(name: &str, expected: &[usize]) -> ModelError {
    ModelError::Tensor {
        name: name.to_owned(),
        expected: expected.to_vec(),
        found: "nothing".into(),
    }
}
