//! A directory with the files of grammars, for any number of processes.
//!
//! A file is called after what its grammar was compiled from, and says so
//! inside; it is written as a whole or not at all. Files that were not used
//! for the longest time are removed when there are too many, whoever has
//! written them.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::{
    compiled::CompiledGrammar,
    precompute::PrecomputeEnd,
    saved::{GrammarFileError, Loaded, SaveOptions, checksum, write},
};

/// What the names of the files end in.
const EXTENSION: &str = "masks";
/// What the names of files end in that are being written.
const PART: &str = "part";
/// A file that was begun so long ago is not finished any more.
const ABANDONED: Duration = Duration::from_hours(1);

/// A directory with the files of grammars.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// How many bytes all files together may have.
    max_bytes: u64,
}

/// A file of the directory.
struct Entry {
    used: SystemTime,
    path: PathBuf,
    n_bytes: u64,
}

impl Directory {
    pub(super) fn new(path: PathBuf, max_bytes: u64) -> Directory {
        Directory { path, max_bytes }
    }

    /// Returns the file of a grammar.
    fn file(
        &self,
        compiled: &CompiledGrammar,
    ) -> Result<PathBuf, GrammarFileError> {
        let number = checksum(&compiled.origin_bytes()?);
        Ok(self.path.join(format!("{number:016x}.{EXTENSION}")))
    }

    /// Loads what is there of a grammar; none if nothing is.
    pub(super) fn load(
        &self,
        compiled: &CompiledGrammar,
    ) -> Result<Option<Loaded>, GrammarFileError> {
        let file = self.file(compiled)?;
        match compiled.load(&file) {
            Ok(loaded) => {
                // That it was used is worth nothing where it cannot be said.
                let _ = touch(&file);
                Ok(Some(loaded))
            }
            Err(GrammarFileError::Io { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes the file of a grammar, with what is there already: another
    /// process may have seen other texts. Returns false, and leaves the file
    /// as it is, if the interrupt came.
    pub(super) fn save(
        &self,
        compiled: &CompiledGrammar,
        options: &SaveOptions,
    ) -> Result<bool, GrammarFileError> {
        let file = self.file(compiled)?;
        fs::create_dir_all(&self.path)
            .map_err(|source| GrammarFileError::io(&self.path, source))?;
        // What cannot be used is replaced.
        let _ = compiled.load(&file);
        let n_texts = compiled.n_texts();
        let (bytes, report) = compiled.to_bytes(options)?;
        if report.end == PrecomputeEnd::Interrupted {
            return Ok(false);
        }
        write(&file, &bytes)
            .map_err(|source| GrammarFileError::io(&file, source))?;
        compiled.set_saved(n_texts);
        Ok(true)
    }

    /// Removes files until few enough are left, and returns how many those
    /// were and how many bytes are left.
    pub(super) fn trim(&self) -> Result<(usize, u64), GrammarFileError> {
        let entries = self
            .entries()
            .map_err(|source| GrammarFileError::io(&self.path, source));
        let mut entries = entries?;
        entries.sort_by_key(|entry| entry.used);
        let mut left: u64 = entries.iter().map(|entry| entry.n_bytes).sum();
        let mut n_removed = 0;
        for entry in entries {
            if left <= self.max_bytes {
                break;
            }
            // Another process may have been sooner.
            if remove(&entry.path)
                .map_err(|source| GrammarFileError::io(&entry.path, source))?
            {
                n_removed += 1;
            }
            left -= entry.n_bytes;
        }
        Ok((n_removed, left))
    }

    /// Returns our files. What was never finished is removed.
    fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let folder = match fs::read_dir(&self.path) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(entries);
            }
            Err(error) => return Err(error),
        };
        for entry in folder {
            let path = entry?.path();
            // It may be gone by now.
            let Ok(metadata) = fs::metadata(&path) else { continue };
            if !metadata.is_file() || !is_ours(&path) {
                continue;
            }
            let used = metadata.modified()?;
            if path.extension().is_some_and(|end| end == PART) {
                if used.elapsed().is_ok_and(|age| age > ABANDONED) {
                    remove(&path)?;
                }
                continue;
            }
            let n_bytes = metadata.len();
            entries.push(Entry { used, path, n_bytes });
        }
        Ok(entries)
    }
}

/// Returns whether a file is called as ours are: sixteen digits, and what
/// follows.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some((digits, rest)) = name.split_once('.') else { return false };
    let is_file = rest == EXTENSION;
    let is_part = rest.starts_with(EXTENSION) && rest.ends_with(PART);
    digits.len() == 16
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && (is_file || is_part)
}

/// Removes a file, and returns whether it was there.
fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Says that a file was used now.
fn touch(path: &Path) -> io::Result<()> {
    fs::File::options()
        .append(true)
        .open(path)?
        .set_modified(SystemTime::now())
}
