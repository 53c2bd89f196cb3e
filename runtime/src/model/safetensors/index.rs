//! The index of a model whose weights lie in several files.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::model::error::ModelError;

const FILE: &str = "model.safetensors.index.json";

/// Which file of a directory holds which tensor.
pub(super) struct Index {
    directory: PathBuf,
    file_of: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Contents {
    weight_map: BTreeMap<String, String>,
}

/// Reads the index of a directory, if there is one.
pub(super) fn read(directory: &Path) -> Result<Option<Index>, ModelError> {
    let path = directory.join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(error) => return Err(ModelError::read(path, error)),
    };
    let contents: Contents = serde_json::from_str(&text)
        .map_err(|error| ModelError::malformed(&path, error))?;
    let file_of = contents.weight_map;
    if file_of.is_empty() {
        return Err(ModelError::malformed(path, "it names no tensor"));
    }
    for (tensor, file) in &file_of {
        // The index is a stranger's, and must not point elsewhere.
        if Path::new(file).file_name() != Some(file.as_ref()) {
            let what = format!(
                "tensor {tensor:?} is said to be in {file:?}, which is not \
                 the name of a file of this directory"
            );
            return Err(ModelError::malformed(path, what));
        }
    }
    Ok(Some(Index { directory: directory.to_owned(), file_of }))
}

impl Index {
    /// Returns the files that it names, each once, in name order.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = self
            .file_of
            .values()
            .map(|file| self.directory.join(file))
            .collect();
        files.sort();
        files.dedup();
        files
    }

    /// Checks that every tensor is where the index says.
    pub(super) fn check<'a>(
        &self,
        found_in: impl Fn(&str) -> Option<&'a Path>,
    ) -> Result<(), ModelError> {
        for (tensor, file) in &self.file_of {
            let expected = self.directory.join(file);
            let what = match found_in(tensor) {
                Some(found) if found == expected => continue,
                Some(found) => format!(
                    "tensor {tensor:?} is in {}, not in {file}",
                    found.display()
                ),
                None => format!("tensor {tensor:?} is not in {file}"),
            };
            return Err(ModelError::malformed(
                self.directory.join(FILE),
                what,
            ));
        }
        Ok(())
    }
}
