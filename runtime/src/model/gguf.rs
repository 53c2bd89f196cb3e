//! A GGUF file: its metadata, and its tensors by name.

use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use candle_core::Device;
use candle_core::quantized::QTensor;
use candle_core::quantized::gguf_file::{Content, Value};

use super::error::ModelError;

/// An open GGUF file. The metadata is in memory, tensors are read on demand.
pub struct Gguf {
    path: PathBuf,
    content: Content,
    reader: BufReader<File>,
}

impl Gguf {
    /// Opens a file and reads its metadata.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read or is not GGUF.
    pub fn open(path: &Path) -> Result<Gguf, ModelError> {
        let file =
            File::open(path).map_err(|error| ModelError::read(path, error))?;
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let content = Content::read(&mut reader).map_err(|error| {
            ModelError::malformed(path, format!("not a GGUF file: {error}"))
        })?;
        Ok(Gguf { path: path.to_owned(), content, reader })
    }

    /// Returns where the file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the value of a metadata key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.content.metadata.get(key)
    }

    /// Returns a text, or `None` where the key is absent.
    ///
    /// # Errors
    ///
    /// Fails when the value is not a text. So do the other getters for
    /// their types.
    pub fn text(&self, key: &str) -> Result<Option<&str>, ModelError> {
        self.typed(key, "a string", |value| match value {
            Value::String(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns a non-negative integer of any width.
    ///
    /// # Errors
    ///
    /// Fails when the value is not one.
    pub fn integer(&self, key: &str) -> Result<Option<u64>, ModelError> {
        self.typed(key, "a non-negative integer", integer)
    }

    /// Returns a number as a float.
    ///
    /// # Errors
    ///
    /// Fails when the value is not a float.
    pub fn float(&self, key: &str) -> Result<Option<f64>, ModelError> {
        self.typed(key, "a float", |value| match value {
            Value::F32(x) => Some(f64::from(*x)),
            Value::F64(x) => Some(*x),
            _ => None,
        })
    }

    /// Returns a truth value.
    ///
    /// # Errors
    ///
    /// Fails when the value is not one.
    pub fn flag(&self, key: &str) -> Result<Option<bool>, ModelError> {
        self.typed(key, "a boolean", |value| match value {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        })
    }

    /// Returns an array of texts.
    ///
    /// # Errors
    ///
    /// Fails when the value is not one.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<&str>>, ModelError> {
        self.array(key, "an array of strings", |value| match value {
            Value::String(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns an array of non-negative integers.
    ///
    /// # Errors
    ///
    /// Fails when the value is not one.
    pub fn integers(&self, key: &str) -> Result<Option<Vec<u64>>, ModelError> {
        self.array(key, "an array of non-negative integers", integer)
    }

    /// Returns an array of floats.
    ///
    /// # Errors
    ///
    /// Fails when the value is not one.
    pub fn floats(&self, key: &str) -> Result<Option<Vec<f32>>, ModelError> {
        self.array(key, "an array of floats", |value| match value {
            Value::F32(x) => Some(*x),
            _ => None,
        })
    }

    /// Returns the keys of the metadata.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.content.metadata.keys().map(String::as_str)
    }

    /// Returns the names of the tensors.
    pub fn tensor_names(&self) -> impl Iterator<Item = &str> {
        self.content.tensor_infos.keys().map(String::as_str)
    }

    /// Returns true if and only if the file has a tensor of this name.
    pub fn has_tensor(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    /// Reads a tensor onto a device.
    ///
    /// # Errors
    ///
    /// Fails when the file has none of this name or is too short.
    pub fn tensor(
        &mut self,
        name: &str,
        device: &Device,
    ) -> Result<QTensor, ModelError> {
        let Some(info) = self.content.tensor_infos.get(name) else {
            return Err(ModelError::malformed(
                &self.path,
                format!("no tensor {name:?}"),
            ));
        };
        info.read(&mut self.reader, self.content.tensor_data_offset, device)
            .map_err(|error| {
                let what = format!("cannot read tensor {name:?}: {error}");
                ModelError::malformed(&self.path, what)
            })
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        convert: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, ModelError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        convert(value)
            .map(Some)
            .ok_or_else(|| ModelError::Metadata { key: key.into(), expected })
    }

    fn array<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        convert: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<Vec<T>>, ModelError> {
        self.typed(key, expected, |value| match value {
            Value::Array(values) => values.iter().map(&convert).collect(),
            _ => None,
        })
    }
}

impl fmt::Debug for Gguf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gguf")
            .field("path", &self.path)
            .field("metadata", &self.content.metadata.len())
            .field("tensors", &self.content.tensor_infos.len())
            .finish_non_exhaustive()
    }
}

/// Reads an integer of any width, unless it is negative.
fn integer(value: &Value) -> Option<u64> {
    match value {
        Value::U8(x) => Some(u64::from(*x)),
        Value::U16(x) => Some(u64::from(*x)),
        Value::U32(x) => Some(u64::from(*x)),
        Value::U64(x) => Some(*x),
        Value::I8(x) => u64::try_from(*x).ok(),
        Value::I16(x) => u64::try_from(*x).ok(),
        Value::I32(x) => u64::try_from(*x).ok(),
        Value::I64(x) => u64::try_from(*x).ok(),
        _ => None,
    }
}
