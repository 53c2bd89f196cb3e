//! Models that are split into several files.
//!
//! The parts are named `name-00001-of-00003.gguf`, and each says which one it
//! is (`split.no`, from zero) and of how many (`split.count`). The metadata is
//! that of the first.

use std::path::{Path, PathBuf};

use super::Gguf;
use super::header::Header;
use super::value::Value;
use crate::model::error::ModelError;

const NUMBER: &str = "split.no";
const COUNT: &str = "split.count";
const TENSORS: &str = "split.tensors.count";

/// Returns the files behind the first one, none for a model in one file.
pub(super) fn other_parts(first: &Gguf) -> Result<Vec<PathBuf>, ModelError> {
    let count = first.integer(COUNT)?.unwrap_or(1);
    if count <= 1 {
        return Ok(Vec::new());
    }
    let malformed = |what: String| ModelError::malformed(first.path(), what);
    let number = first.integer(NUMBER)?.unwrap_or(0);
    if number != 0 {
        return Err(malformed(format!(
            "this is part {} of {count}; open the first part",
            number.saturating_add(1)
        )));
    }
    let Some(paths) = named_parts(first.path())
        .filter(|paths| u64::try_from(paths.len()) == Ok(count))
    else {
        return Err(malformed(format!(
            "the model is split into {count} files, so this one's name must \
             end with -00001-of-{count:05}.gguf"
        )));
    };
    if let Some(absent) = paths.iter().find(|path| !path.exists()) {
        let what = format!(
            "the model is split into {count} files, and {} is not there",
            absent.display()
        );
        return Err(malformed(what));
    }
    Ok(paths.into_iter().skip(1).collect())
}

/// Checks that a file is part `index`, counted from zero, of the model.
pub(super) fn check_part(
    first: &Gguf,
    index: usize,
    path: &Path,
    header: &Header,
) -> Result<(), ModelError> {
    let says = |key| header.metadata.get(key).and_then(Value::integer);
    let count = first.integer(COUNT)?;
    let (found, expected) = (says(NUMBER), u64::try_from(index).ok());
    if found == expected && says(COUNT) == count {
        return Ok(());
    }
    let what = format!(
        "expected {NUMBER} = {expected:?} and {COUNT} = {count:?}, found \
         {found:?} and {:?}",
        says(COUNT)
    );
    Err(ModelError::malformed(path, what))
}

/// Checks that all parts together have as many tensors as they should.
pub(super) fn check_all(gguf: &Gguf) -> Result<(), ModelError> {
    let n_found = gguf.tensors.len();
    match gguf.integer(TENSORS)? {
        Some(n) if usize::try_from(n) != Ok(n_found) => {
            let what = format!(
                "{TENSORS} = {n}, but {n_found} tensors are in the file and \
                 its parts"
            );
            Err(ModelError::malformed(gguf.path(), what))
        }
        _ => Ok(()),
    }
}

/// Returns all files of the model whose first file this is, as far as names
/// tell; the file alone where it does not look like a first part.
pub(in crate::model) fn parts_of(path: &Path) -> Vec<PathBuf> {
    named_parts(path).unwrap_or_else(|| vec![path.to_owned()])
}

/// Reads the number of parts from a name, and names all of them.
fn named_parts(path: &Path) -> Option<Vec<PathBuf>> {
    let name = path.file_name()?.to_str()?;
    let (rest, count) = name.strip_suffix(".gguf")?.rsplit_once("-of-")?;
    let stem = rest.strip_suffix("-00001")?;
    let is_number = count.len() == 5 && count.bytes().all(is_digit);
    let n_parts = count.parse().ok().filter(|n| is_number && *n > 0)?;
    let part = |index: u32| {
        path.with_file_name(format!("{stem}-{index:05}-of-{count}.gguf"))
    };
    Some((1..=n_parts).map(part).collect())
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_parts_of_a_model() {
        let names = |path: &str| -> Vec<String> {
            parts_of(Path::new(path))
                .iter()
                .map(|part| part.display().to_string())
                .collect()
        };
        assert_eq!(
            names("d/a-b-00001-of-00003.gguf"),
            [
                "d/a-b-00001-of-00003.gguf",
                "d/a-b-00002-of-00003.gguf",
                "d/a-b-00003-of-00003.gguf",
            ],
        );
        for alone in [
            "a.gguf",
            "a-00002-of-00003.gguf",
            "a-00001-of-3.gguf",
            "a-00001-of-+0003.gguf",
            "a-00001-of-00000.gguf",
            "a-00001-of-00003.bin",
        ] {
            assert_eq!(names(alone), [alone]);
        }
    }
}
