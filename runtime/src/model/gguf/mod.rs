//! A GGUF file: its metadata, and its tensors by name.
//!
//! Model files come from strangers. The header is read by code of our own
//! ([`header`]), because the tensor library's reader trusts what it says: it
//! divides by the alignment, multiplies dimensions unchecked and asserts
//! where bytes lie. Here every count and every offset is compared with the
//! length of the file first, and a lie is an error.

mod block;
mod header;
mod split;
#[cfg(test)]
mod tests;
mod value;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use candle_core::Device;
use candle_core::quantized::{QStorage, QTensor};

use super::error::ModelError;
use header::{Fault, Header, TensorPlace};

pub use block::BlockType;
pub(super) use split::parts_of;
pub use value::{Array, Value};

const WORD_BYTES: usize = size_of::<u64>();

/// An open GGUF file. The metadata is in memory, tensors are read on demand.
///
/// A model that is split into several files is opened by its first
/// (`name-00001-of-00003.gguf`) and is then as one.
pub struct Gguf {
    metadata: BTreeMap<String, Value>,
    /// The part that a tensor lies in, and where.
    tensors: BTreeMap<String, (usize, TensorPlace)>,
    /// At least one.
    parts: Vec<Part>,
    path: PathBuf,
}

struct Part {
    path: PathBuf,
    file: File,
}

impl Gguf {
    /// Opens a file and reads its metadata.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read, is not GGUF, or contradicts
    /// itself, and when a part of a split model is absent.
    pub fn open(path: &Path) -> Result<Gguf, ModelError> {
        let (part, header) = Part::open(path)?;
        let mut gguf = Gguf {
            metadata: header.metadata,
            tensors: BTreeMap::new(),
            parts: Vec::new(),
            path: path.to_owned(),
        };
        gguf.add(part, header.tensors)?;
        for path in split::other_parts(&gguf)? {
            let (part, header) = Part::open(&path)?;
            split::check_part(&gguf, gguf.parts.len(), &path, &header)?;
            gguf.add(part, header.tensors)?;
        }
        split::check_all(&gguf)?;
        Ok(gguf)
    }

    fn add(
        &mut self,
        part: Part,
        tensors: BTreeMap<String, TensorPlace>,
    ) -> Result<(), ModelError> {
        let index = self.parts.len();
        for (name, place) in tensors {
            if let Some((other, _)) = self.tensors.get(&name) {
                let other = self.parts.get(*other).map(|part| &part.path);
                let what = format!("tensor {name:?} is also in {other:?}");
                return Err(ModelError::malformed(&part.path, what));
            }
            self.tensors.insert(name, (index, place));
        }
        self.parts.push(part);
        Ok(())
    }

    /// Returns where the file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the value of a metadata key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.metadata.get(key)
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
        self.typed(key, "a non-negative integer", Value::integer)
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
        self.array(key, "an array of strings", |array| match array {
            Array::String(texts) => {
                Some(texts.iter().map(String::as_str).collect())
            }
            _ => None,
        })
    }

    /// Returns an array of non-negative integers.
    ///
    /// # Errors
    ///
    /// Fails when the value is not one.
    pub fn integers(&self, key: &str) -> Result<Option<Vec<u64>>, ModelError> {
        let expected = "an array of non-negative integers";
        self.array(key, expected, Array::integers)
    }

    /// Returns an array of floats.
    ///
    /// # Errors
    ///
    /// Fails when the value is not one.
    pub fn floats(&self, key: &str) -> Result<Option<Vec<f32>>, ModelError> {
        self.array(key, "an array of floats", |array| match array {
            Array::F32(values) => Some(values.clone()),
            _ => None,
        })
    }

    /// Returns the keys of the metadata, in their order as texts.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.metadata.keys().map(String::as_str)
    }

    /// Returns the names of all tensors, in their order as texts.
    pub fn tensor_names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Returns true if and only if the file has a tensor of this name.
    pub fn has_tensor(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Returns the shape of a tensor, the slowest dimension first.
    pub fn tensor_shape(&self, name: &str) -> Option<Vec<usize>> {
        self.tensors.get(name).map(|(_, place)| place.shape.clone())
    }

    /// Returns the number format of a tensor.
    pub fn tensor_dtype(&self, name: &str) -> Option<BlockType> {
        self.tensors.get(name).map(|(_, place)| place.block)
    }

    /// Reads a tensor onto a device.
    ///
    /// # Errors
    ///
    /// Fails when the file has none of this name, when nothing here computes
    /// with its number format, and when it cannot be read.
    pub fn tensor(
        &mut self,
        name: &str,
        device: &Device,
    ) -> Result<QTensor, ModelError> {
        let malformed =
            |path: &Path, what: String| ModelError::malformed(path, what);
        let Some((part, place)) = self.tensors.get(name) else {
            return Err(malformed(&self.path, format!("no tensor {name:?}")));
        };
        let Some(part) = self.parts.get_mut(*part) else {
            return Err(malformed(&self.path, format!("no tensor {name:?}")));
        };
        let Some(dtype) = place.block.dtype else {
            let what = format!(
                "tensor {name:?} is of type {}, which is not supported; \
                 supported: {}",
                place.block.name,
                BlockType::supported()
            );
            return Err(malformed(&part.path, what));
        };
        let words = part.read(place)?;
        let bytes: &[u8] = bytemuck::cast_slice(&words);
        let data = Cow::Borrowed(&bytes[..place.n_bytes]);
        QStorage::from_data(data, device, dtype)
            .and_then(|data| QTensor::new(data, place.shape.as_slice()))
            .map_err(|error| {
                let what = format!("cannot read tensor {name:?}: {error}");
                malformed(&part.path, what)
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

    /// An empty array has no type to speak of.
    fn array<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        convert: impl Fn(&'a Array) -> Option<Vec<T>>,
    ) -> Result<Option<Vec<T>>, ModelError> {
        self.typed(key, expected, |value| match value {
            Value::Array(array) if array.is_empty() => Some(Vec::new()),
            Value::Array(array) => convert(array),
            _ => None,
        })
    }
}

impl Part {
    fn open(path: &Path) -> Result<(Part, Header), ModelError> {
        let read = |error| ModelError::read(path, error);
        let file = File::open(path).map_err(read)?;
        let file_len = file.metadata().map_err(read)?.len();
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let header =
            Header::read(&mut reader, file_len).map_err(
                |fault| match fault {
                    Fault::Read(error) => ModelError::read(path, error),
                    Fault::Malformed(what) => {
                        ModelError::malformed(path, what)
                    }
                },
            )?;
        let file = reader.into_inner();
        Ok((Part { path: path.to_owned(), file }, header))
    }

    /// Reads the bytes of a tensor, and zeros up to a whole word.
    ///
    /// Words and not bytes, because the tensor library asserts that blocks
    /// are aligned as their fields want.
    fn read(&mut self, place: &TensorPlace) -> Result<Vec<u64>, ModelError> {
        let n_bytes = place.n_bytes;
        let n_words = n_bytes.div_ceil(WORD_BYTES);
        let mut words: Vec<u64> = Vec::new();
        words
            .try_reserve_exact(n_words)
            .map_err(|error| ModelError::malformed(&self.path, error))?;
        words.resize(n_words, 0);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        self.file
            .seek(SeekFrom::Start(place.start))
            .and_then(|_| self.file.read_exact(&mut bytes[..n_bytes]))
            .map_err(|error| ModelError::read(&self.path, error))?;
        Ok(words)
    }
}

impl fmt::Debug for Gguf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gguf")
            .field("path", &self.path)
            .field("metadata", &self.metadata.len())
            .field("tensors", &self.tensors.len())
            .field("parts", &self.parts.len())
            .finish()
    }
}
