//! What tells one model from another: the content of its files.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use super::{ModelError, download::to_hex, gguf::parts_of};

/// Returns a digest of a model's files: the GGUF file with its further parts
/// if it is split, or those of a directory that [`load`](super::load) reads or that say how the model is used (JSON
/// and safetensors), with their names.
///
/// # Errors
///
/// Fails when a file cannot be read.
pub fn content_digest(path: &Path) -> Result<String, ModelError> {
    let mut hasher = Sha256::new();
    let files = files(path).map_err(|error| ModelError::read(path, error))?;
    for file in files {
        let name = file.file_name().unwrap_or_default();
        if file != path {
            hasher.update(name.as_encoded_bytes());
            hasher.update([0]);
        }
        add(&file, &mut hasher)
            .map_err(|error| ModelError::read(&file, error))?;
    }
    Ok(to_hex(&hasher.finalize()))
}

fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        let mut parts = parts_of(path);
        parts.retain(|part| part == path || part.is_file());
        return Ok(parts);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let file = entry?.path();
        let extension = file.extension().and_then(|it| it.to_str());
        let is_read = matches!(extension, Some("json" | "safetensors"));
        if is_read && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// Adds a file, its length first, so that two files are not one longer one.
fn add(path: &Path, hasher: &mut Sha256) -> io::Result<()> {
    let mut file = File::open(path)?;
    hasher.update(file.metadata()?.len().to_le_bytes());
    let mut buffer = vec![0; 1 << 17];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => hasher.update(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_split_model_counts() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path =
            |n| directory.path().join(format!("m-0000{n}-of-00002.gguf"));
        fs::write(path(1), "a").expect("a file");
        let digest = || content_digest(&path(1)).expect("readable");
        let alone = digest();
        fs::write(path(2), "b").expect("a file");
        let whole = digest();
        fs::write(path(2), "c").expect("a file");
        assert!(alone != whole && whole != digest());
    }
}
