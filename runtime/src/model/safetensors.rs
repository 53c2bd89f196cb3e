//! Safetensors files, read one tensor at a time.
//!
//! The format is a length, a JSON header of names, types, shapes and offsets,
//! and the data. Mapping the file would want `unsafe`, and reading it whole
//! would hold the model twice; seeking does neither.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use serde::Deserialize;

use super::error::ModelError;

/// The format's own bound on the header.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// The tensors of all safetensors files of a model.
pub(super) struct Safetensors {
    files: Vec<(PathBuf, File)>,
    tensors: BTreeMap<String, Place>,
}

/// Where a tensor lies.
struct Place {
    file: usize,
    dtype: DType,
    shape: Vec<usize>,
    start: u64,
    n_bytes: usize,
}

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (u64, u64),
}

impl Safetensors {
    /// Opens every safetensors file of a directory and reads the headers.
    pub(super) fn open(directory: &Path) -> Result<Safetensors, ModelError> {
        let mut all =
            Safetensors { files: Vec::new(), tensors: BTreeMap::new() };
        for path in list(directory)? {
            all.add(path)?;
        }
        Ok(all)
    }

    /// Returns the shape of a tensor.
    pub(super) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|place| place.shape.as_slice())
    }

    /// Returns the names of the tensors.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Reads a tensor as `f32`.
    pub(super) fn tensor(
        &mut self,
        name: &str,
    ) -> Result<Option<Tensor>, ModelError> {
        let Some(place) = self.tensors.get(name) else { return Ok(None) };
        let Some((path, file)) = self.files.get_mut(place.file) else {
            return Ok(None);
        };
        let mut bytes = vec![0; place.n_bytes];
        file.seek(SeekFrom::Start(place.start))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(|error| ModelError::read(path.as_path(), error))?;
        let tensor = Tensor::from_raw_buffer(
            &bytes,
            place.dtype,
            &place.shape,
            &Device::Cpu,
        )?;
        Ok(Some(tensor.to_dtype(DType::F32)?))
    }

    fn add(&mut self, path: PathBuf) -> Result<(), ModelError> {
        let read = |error| ModelError::read(path.as_path(), error);
        let malformed =
            |what: String| ModelError::malformed(path.as_path(), what);
        let mut file = File::open(&path).map_err(read)?;
        let file_len = file.metadata().map_err(read)?.len();
        let mut prefix = [0; 8];
        file.read_exact(&mut prefix).map_err(read)?;
        let n_header = u64::from_le_bytes(prefix);
        if n_header > MAX_HEADER_BYTES.min(file_len.saturating_sub(8)) {
            return Err(malformed(format!(
                "the header claims {n_header} bytes"
            )));
        }
        let mut header = Vec::new();
        (&mut file).take(n_header).read_to_end(&mut header).map_err(read)?;
        let header: BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(&header)
                .map_err(|error| malformed(error.to_string()))?;
        let data_start = 8 + n_header;
        for (name, entry) in header {
            if name == "__metadata__" {
                continue;
            }
            let entry: Entry = serde_json::from_value(entry)
                .map_err(|error| malformed(format!("{name:?}: {error}")))?;
            let place = entry
                .place(self.files.len(), data_start, file_len)
                .map_err(|what| malformed(format!("{name:?}: {what}")))?;
            self.tensors.insert(name, place);
        }
        self.files.push((path, file));
        Ok(())
    }
}

impl Entry {
    fn place(
        self,
        file: usize,
        data_start: u64,
        file_len: u64,
    ) -> Result<Place, String> {
        let dtype = match self.dtype.as_str() {
            "F32" => DType::F32,
            "F16" => DType::F16,
            "BF16" => DType::BF16,
            "F64" => DType::F64,
            other => {
                return Err(format!(
                    "type {other} is not supported; supported: F32, F16, \
                     BF16, F64"
                ));
            }
        };
        let n_bytes = self
            .shape
            .iter()
            .try_fold(dtype.size_in_bytes(), |n, dim| n.checked_mul(*dim));
        let (begin, end) = self.data_offsets;
        let is_inside = end <= file_len.saturating_sub(data_start);
        match n_bytes {
            Some(n_bytes)
                if is_inside
                    && end.checked_sub(begin)
                        == u64::try_from(n_bytes).ok() =>
            {
                let start = data_start + begin;
                Ok(Place { file, dtype, shape: self.shape, start, n_bytes })
            }
            _ => Err(format!(
                "offsets {begin}..{end} do not fit its shape and the file"
            )),
        }
    }
}

impl fmt::Debug for Safetensors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Safetensors")
            .field("files", &self.files)
            .field("tensors", &self.tensors.len())
            .finish()
    }
}

/// Lists the safetensors files of a directory, in name order.
fn list(directory: &Path) -> Result<Vec<PathBuf>, ModelError> {
    let entries = directory
        .read_dir()
        .map_err(|error| ModelError::read(directory, error))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension().is_some_and(|end| end == "safetensors")
        })
        .collect();
    files.sort();
    if files.is_empty() {
        let what = "no .safetensors file in this directory";
        return Err(ModelError::malformed(directory, what));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(header: &str, data: &[u8]) -> Result<Safetensors, ModelError> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        std::fs::write(directory.path().join("m.safetensors"), bytes)
            .expect("a temporary file");
        Safetensors::open(directory.path())
    }

    #[test]
    fn reads_what_the_header_describes() {
        let data: Vec<u8> =
            [1.0f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let header = r#"{"__metadata__": {"format": "pt"},
            "w": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}}"#;
        let mut file = open(header, &data).expect("valid");
        assert_eq!(file.shape("w"), Some(&[1, 2][..]));
        let tensor = file.tensor("w").expect("readable").expect("present");
        assert_eq!(tensor.to_vec2::<f32>().expect("2d"), [[1.0, -2.0]]);
        assert!(file.tensor("v").expect("readable").is_none());
    }

    #[test]
    fn a_header_that_lies_is_an_error() {
        for header in [
            "{",
            r#"{"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}"#,
            r#"{"w": {"dtype": "F32", "shape": [9], "data_offsets": [0,36]}}"#,
            r#"{"w": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}}"#,
            r#"{"w": {"dtype": "I4", "shape": [1], "data_offsets": [0, 1]}}"#,
            r#"{"w": {"dtype": "F32", "shape": [9999999999999, 9999999999],
                "data_offsets": [0, 8]}}"#,
        ] {
            assert!(open(header, &[0; 8]).is_err(), "{header}");
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("m.safetensors");
        std::fs::write(path, u64::MAX.to_le_bytes()).expect("a file");
        assert!(Safetensors::open(directory.path()).is_err());
    }
}
