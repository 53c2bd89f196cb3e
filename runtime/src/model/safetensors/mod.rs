//! Safetensors files, read one tensor at a time.
//!
//! Mapping the files would want `unsafe`, and reading them whole would hold
//! the model twice; seeking does neither. The files are untrusted: what a
//! header claims is compared with the file before anything is allocated.

mod header;
mod index;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};

use super::error::ModelError;
use header::Place;

/// A tensor as it is stored: its type, its shape, its little-endian bytes.
pub(super) type Stored = (DType, Vec<usize>, Vec<u8>);

/// What the weights may be stored as.
const SUPPORTED: &str = "F32, F16, BF16";

/// The tensors of all safetensors files of a model.
pub(super) struct Safetensors {
    directory: PathBuf,
    files: Vec<(PathBuf, File)>,
    /// The file that a tensor lies in, and where.
    tensors: BTreeMap<String, (usize, Place)>,
}

impl Safetensors {
    /// Opens the safetensors files of a directory and reads the headers:
    /// those that `model.safetensors.index.json` names, or all files where
    /// there is no index.
    pub(super) fn open(directory: &Path) -> Result<Safetensors, ModelError> {
        let mut all = Safetensors {
            directory: directory.to_owned(),
            files: Vec::new(),
            tensors: BTreeMap::new(),
        };
        match index::read(directory)? {
            None => {
                for path in list(directory)? {
                    all.add(path)?;
                }
            }
            Some(index) => {
                for path in index.files() {
                    all.add(path)?;
                }
                index.check(|name| all.file_of(name))?;
            }
        }
        Ok(all)
    }

    /// Returns the files.
    pub(super) fn paths(&self) -> Vec<&Path> {
        self.files.iter().map(|(path, _)| path.as_path()).collect()
    }

    /// Returns the names of all tensors, in their order as texts.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Returns the shape of a tensor.
    pub(super) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|(_, place)| place.shape.as_slice())
    }

    /// Reads a tensor as `f32`, with the type that it is stored in.
    pub(super) fn tensor(
        &mut self,
        name: &str,
    ) -> Result<Option<(Tensor, DType)>, ModelError> {
        let Some((dtype, shape, bytes)) = self.tensor_bytes(name)? else {
            return Ok(None);
        };
        let tensor =
            Tensor::from_raw_buffer(&bytes, dtype, &shape, &Device::Cpu)?;
        Ok(Some((tensor.to_dtype(DType::F32)?, dtype)))
    }

    /// Reads a tensor as it is stored.
    ///
    /// # Errors
    ///
    /// Fails when the type is none that weights may have here, and when the
    /// file cannot be read.
    fn tensor_bytes(
        &mut self,
        name: &str,
    ) -> Result<Option<Stored>, ModelError> {
        let Some((file, place)) = self.tensors.get(name) else {
            return Ok(None);
        };
        let Some((path, file)) = self.files.get_mut(*file) else {
            return Ok(None);
        };
        let dtype = match place.dtype.as_str() {
            "F32" => DType::F32,
            "F16" => DType::F16,
            "BF16" => DType::BF16,
            other => {
                let what = format!(
                    "tensor {name:?} is of type {other}, which is not \
                     supported; supported: {SUPPORTED}"
                );
                return Err(ModelError::malformed(path.as_path(), what));
            }
        };
        let mut bytes = vec![0; place.n_bytes];
        file.seek(SeekFrom::Start(place.start))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(|error| ModelError::read(path.as_path(), error))?;
        Ok(Some((dtype, place.shape.clone(), bytes)))
    }

    fn file_of(&self, name: &str) -> Option<&Path> {
        let (file, _) = self.tensors.get(name)?;
        self.files.get(*file).map(|(path, _)| path.as_path())
    }

    fn add(&mut self, path: PathBuf) -> Result<(), ModelError> {
        let file = File::open(&path)
            .map_err(|error| ModelError::read(&path, error))?;
        for (name, place) in header::read(&path, &file)? {
            if let Some(other) = self.file_of(&name) {
                let what =
                    format!("tensor {name:?} is also in {}", other.display());
                return Err(ModelError::malformed(path, what));
            }
            self.tensors.insert(name, (self.files.len(), place));
        }
        self.files.push((path, file));
        Ok(())
    }
}

impl fmt::Debug for Safetensors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Safetensors")
            .field("directory", &self.directory)
            .field("files", &self.files.len())
            .field("tensors", &self.tensors.len())
            .finish()
    }
}

/// Lists the safetensors files of a directory, in name order.
fn list(directory: &Path) -> Result<Vec<PathBuf>, ModelError> {
    let read = |error| ModelError::read(directory, error);
    let mut files = Vec::new();
    for entry in directory.read_dir().map_err(read)? {
        let path = entry.map_err(read)?.path();
        if path.extension().is_some_and(|end| end == "safetensors") {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        let what = "no .safetensors file in this directory";
        return Err(ModelError::malformed(directory, what));
    }
    Ok(files)
}
