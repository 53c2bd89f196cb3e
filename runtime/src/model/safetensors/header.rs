//! The header of one file: a length, then JSON with the name, the type, the
//! shape and the offsets of each tensor.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::model::error::ModelError;

/// The format's own bound on the header.
const MAX_HEADER_BYTES: u64 = 100_000_000;

const LENGTH_BYTES: u64 = 8;

/// Where a tensor lies. Its bytes are inside of the file.
pub(super) struct Place {
    /// As the header spells it.
    pub(super) dtype: String,
    pub(super) shape: Vec<usize>,
    /// From the beginning of the file.
    pub(super) start: u64,
    pub(super) n_bytes: usize,
}

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (u64, u64),
}

/// The entries, in the order in which the header has them.
struct Entries(Vec<(String, Entry)>);

/// Reads the header of a file.
///
/// As the format's own library does, this wants the tensors to fill the rest
/// of the file, one behind the other.
pub(super) fn read(
    path: &Path,
    mut file: &File,
) -> Result<Vec<(String, Place)>, ModelError> {
    let read = |error| ModelError::read(path, error);
    let malformed = |what: String| ModelError::malformed(path, what);
    let file_len = file.metadata().map_err(read)?.len();
    let mut prefix = [0; 8];
    file.read_exact(&mut prefix).map_err(read)?;
    let n_header = u64::from_le_bytes(prefix);
    let left = file_len.saturating_sub(LENGTH_BYTES);
    if n_header > MAX_HEADER_BYTES.min(left) {
        return Err(malformed(format!(
            "the header claims {n_header} bytes, of {left} in the file and \
             at most {MAX_HEADER_BYTES}"
        )));
    }
    let mut header = Vec::new();
    file.take(n_header).read_to_end(&mut header).map_err(read)?;
    let Entries(mut entries) = serde_json::from_slice(&header)
        .map_err(|error| malformed(format!("the header: {error}")))?;
    entries.sort_by_key(|(_, entry)| entry.data_offsets);
    let data_start = LENGTH_BYTES + n_header;
    let mut places: Vec<(String, Place)> = Vec::new();
    let mut expected = 0;
    for (name, entry) in entries {
        let (_, end) = entry.data_offsets;
        let place = entry
            .place(expected, data_start, file_len)
            .map_err(|what| malformed(format!("tensor {name:?}: {what}")))?;
        expected = end;
        places.push((name, place));
    }
    if data_start + expected != file_len {
        return Err(malformed(format!(
            "{} bytes behind the last tensor",
            file_len - data_start - expected
        )));
    }
    check_names(&places).map_err(malformed)?;
    Ok(places)
}

fn check_names(places: &[(String, Place)]) -> Result<(), String> {
    let mut names: Vec<&str> =
        places.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(format!("two tensors are named {:?}", pair[0])),
    }
}

impl Entry {
    /// Checks where the tensor lies: right behind the one before it, inside
    /// of the file, and on as many bytes as its shape needs.
    fn place(
        self,
        expected: u64,
        data_start: u64,
        file_len: u64,
    ) -> Result<Place, String> {
        let (begin, end) = self.data_offsets;
        let n_left = file_len.saturating_sub(data_start);
        let n_bytes = end
            .checked_sub(begin)
            .filter(|_| end <= n_left)
            .and_then(|n_bytes| usize::try_from(n_bytes).ok())
            .ok_or_else(|| {
                format!("offsets {begin}..{end} are not in 0..{n_left}")
            })?;
        if begin != expected {
            return Err(format!(
                "it begins at offset {begin}, but the tensor before it ends \
                 at {expected}"
            ));
        }
        if let Some(size) = size_of(&self.dtype) {
            let n_needed = self
                .shape
                .iter()
                .try_fold(size, |n, dimension| n.checked_mul(*dimension));
            if n_needed != Some(n_bytes) {
                return Err(format!(
                    "offsets {begin}..{end} do not fit shape {:?} of {}",
                    self.shape, self.dtype
                ));
            }
            if !begin.is_multiple_of(size as u64) {
                return Err(format!(
                    "offset {begin} is not aligned for {}",
                    self.dtype
                ));
            }
        }
        Ok(Place {
            dtype: self.dtype,
            shape: self.shape,
            start: data_start + begin,
            n_bytes,
        })
    }
}

/// Returns how many bytes a value takes, or `None` for types that are not
/// known here, or take less than one. They are refused when they are read.
fn size_of(dtype: &str) -> Option<usize> {
    Some(match dtype {
        "BOOL" | "U8" | "I8" | "F8_E4M3" | "F8_E5M2" | "F8_E8M0" => 1,
        "U16" | "I16" | "F16" | "BF16" => 2,
        "U32" | "I32" | "F32" => 4,
        "U64" | "I64" | "F64" | "C64" => 8,
        _ => return None,
    })
}

/// A map of entries that keeps what comes twice, which a map would hide.
impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Entries, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with an entry for each tensor")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        entries.push((name, map.next_value()?));
                    }
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}
