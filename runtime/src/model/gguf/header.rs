//! The header of one GGUF file: metadata, and where the tensors lie.
//!
//! The file is untrusted. A count is compared with what is left of the file
//! before anything is allocated for it, so that the header takes no more than
//! a small multiple of the bytes that describe it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use super::block::BlockType;
use super::value::{Array, Value};

const MAGIC: [u8; 4] = *b"GGUF";
const VERSIONS: [u32; 2] = [2, 3];

/// What llama.cpp allows: a name and its terminator in 64 bytes.
const MAX_NAME_BYTES: usize = 63;
const MAX_DIMENSIONS: u32 = 4;
const DEFAULT_ALIGNMENT: u64 = 32;

/// How deep arrays may lie within arrays. No known file has any.
const MAX_DEPTH: usize = 8;

/// The least that an entry takes: a length, a type and a value of one byte.
const MIN_ENTRY_BYTES: u64 = 8 + 4 + 1;
/// The least that a tensor takes: a length, the number of dimensions, a type
/// and an offset.
const MIN_TENSOR_BYTES: u64 = 8 + 4 + 4 + 8;

/// What a header says.
pub(super) struct Header {
    pub(super) metadata: BTreeMap<String, Value>,
    pub(super) tensors: BTreeMap<String, TensorPlace>,
}

/// Where a tensor lies. Its bytes are inside of the file.
#[derive(Clone)]
pub(super) struct TensorPlace {
    pub(super) block: BlockType,
    /// The slowest dimension first, each at least one.
    pub(super) shape: Vec<usize>,
    /// From the beginning of the file.
    pub(super) start: u64,
    pub(super) n_bytes: usize,
}

/// Why a header cannot be read.
pub(super) enum Fault {
    Read(io::Error),
    Malformed(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Read(error)
    }
}

impl From<String> for Fault {
    fn from(what: String) -> Fault {
        Fault::Malformed(what)
    }
}

impl Header {
    /// Reads the header of a file that is `file_len` bytes long.
    pub(super) fn read(
        reader: &mut impl BufRead,
        file_len: u64,
    ) -> Result<Header, Fault> {
        let mut cursor = Cursor { reader, position: 0, file_len };
        read_version(&mut cursor)?;
        let n_tensors = cursor.count("tensors", MIN_TENSOR_BYTES)?;
        let n_entries = cursor.count("metadata entries", MIN_ENTRY_BYTES)?;
        let metadata = read_metadata(&mut cursor, n_entries)?;
        let alignment = alignment(&metadata)?;
        let mut infos = Vec::new();
        for index in 0..n_tensors {
            infos.push(TensorInfo::read(&mut cursor, index)?);
        }
        let data_start = cursor.position.next_multiple_of(alignment);
        let mut tensors = BTreeMap::new();
        let mut expected = 0;
        for info in infos {
            let name = info.name.clone();
            let place = info
                .place(expected, data_start, file_len)
                .map_err(|what| format!("tensor {name:?}: {what}"))?;
            let end = place.start - data_start + place.n_bytes as u64;
            expected = end.next_multiple_of(alignment);
            if tensors.insert(info.name, place).is_some() {
                return Err(format!("two tensors are named {name:?}").into());
            }
        }
        Ok(Header { metadata, tensors })
    }
}

fn read_version(cursor: &mut Cursor<'_, impl Read>) -> Result<(), Fault> {
    let magic = cursor.array::<4>("the magic number")?;
    if magic != MAGIC {
        let begins = magic.escape_ascii();
        let what = format!("not a GGUF file: it begins with \"{begins}\"");
        return Err(what.into());
    }
    let version = u32::from_le_bytes(cursor.array("the version")?);
    if VERSIONS.contains(&version) {
        return Ok(());
    }
    let what = if VERSIONS.contains(&version.swap_bytes()) {
        "the file is big-endian; convert the model for this machine".into()
    } else {
        format!("GGUF version {version} is not supported; supported: 2 and 3")
    };
    Err(Fault::Malformed(what))
}

fn read_metadata(
    cursor: &mut Cursor<'_, impl Read>,
    n_entries: u64,
) -> Result<BTreeMap<String, Value>, Fault> {
    let mut metadata = BTreeMap::new();
    for index in 0..n_entries {
        let key = cursor.name(&format!("metadata key {index}"))?;
        let value = cursor
            .u32(&key)
            .and_then(|kind| read_value(cursor, kind, &key))?;
        if metadata.contains_key(&key) {
            let what = format!("the metadata has {key:?} twice");
            return Err(what.into());
        }
        metadata.insert(key, value);
    }
    Ok(metadata)
}

/// Returns the alignment of tensors.
fn alignment(metadata: &BTreeMap<String, Value>) -> Result<u64, Fault> {
    const KEY: &str = "general.alignment";
    let Some(value) = metadata.get(KEY) else {
        return Ok(DEFAULT_ALIGNMENT);
    };
    match value.integer() {
        Some(alignment)
            if alignment.is_power_of_two()
                && u32::try_from(alignment).is_ok() =>
        {
            Ok(alignment)
        }
        _ => Err(format!(
            "{KEY} = {value:?} is not a power of two of at most 32 bits"
        )
        .into()),
    }
}

/// A tensor as the header describes it.
struct TensorInfo {
    name: String,
    block: BlockType,
    /// The fastest dimension first.
    dimensions: Vec<u64>,
    offset: u64,
}

impl TensorInfo {
    fn read(
        cursor: &mut Cursor<'_, impl Read>,
        index: u64,
    ) -> Result<TensorInfo, Fault> {
        let name = cursor.name(&format!("the name of tensor {index}"))?;
        if name.len() > MAX_NAME_BYTES {
            return Err(format!(
                "tensor name {name:?} has {} bytes, more than \
                 {MAX_NAME_BYTES}",
                name.len()
            )
            .into());
        }
        let n_dimensions = cursor.u32(&name)?;
        if n_dimensions > MAX_DIMENSIONS {
            return Err(format!(
                "tensor {name:?} has {n_dimensions} dimensions, more than \
                 {MAX_DIMENSIONS}"
            )
            .into());
        }
        let dimensions = (0..n_dimensions)
            .map(|_| cursor.u64(&name))
            .collect::<Result<Vec<u64>, Fault>>()?;
        let block = BlockType::by_id(cursor.u32(&name)?)
            .map_err(|what| format!("tensor {name:?}: {what}"))?;
        let offset = cursor.u64(&name)?;
        Ok(TensorInfo { name, block, dimensions, offset })
    }

    /// Checks where the tensor lies: right behind the one before it, and
    /// inside of the file.
    fn place(
        &self,
        expected: u64,
        data_start: u64,
        file_len: u64,
    ) -> Result<TensorPlace, String> {
        let dimensions = &self.dimensions;
        let n_values = dimensions
            .iter()
            .try_fold(1u64, |n, dimension| n.checked_mul(*dimension))
            .filter(|n_values| *n_values > 0)
            .ok_or_else(|| format!("impossible dimensions {dimensions:?}"))?;
        let row = dimensions.first().copied().unwrap_or(1);
        let block = self.block;
        let block_len = block.n_values as u64;
        if !row.is_multiple_of(block_len) {
            return Err(format!(
                "rows of {row} values are not whole blocks of {block_len} \
                 ({})",
                block.name
            ));
        }
        if self.offset != expected {
            return Err(format!(
                "it lies at offset {}, but the tensor before it ends at \
                 {expected}",
                self.offset
            ));
        }
        let n_bytes = (n_values / block_len)
            .checked_mul(block.n_bytes as u64)
            .ok_or_else(|| format!("impossible dimensions {dimensions:?}"))?;
        let start = data_start.saturating_add(expected);
        let end = start.saturating_add(n_bytes);
        if end > file_len {
            return Err(format!(
                "its bytes {start}..{end} run past the end of the file at \
                 {file_len}; is the file complete?"
            ));
        }
        let size = |n: u64| {
            usize::try_from(n).map_err(|_| format!("{n} is too much here"))
        };
        let shape = dimensions.iter().rev().map(|n| size(*n));
        Ok(TensorPlace {
            block,
            shape: shape.collect::<Result<_, _>>()?,
            start,
            n_bytes: size(n_bytes)?,
        })
    }
}

/// Reads forwards, and knows how much is left.
struct Cursor<'a, R> {
    reader: &'a mut R,
    position: u64,
    file_len: u64,
}

impl<R: Read> Cursor<'_, R> {
    fn left(&self) -> u64 {
        self.file_len.saturating_sub(self.position)
    }

    /// Fails unless `n` times `size` bytes are left for `what`.
    fn need(&self, n: u64, size: u64, what: &str) -> Result<u64, Fault> {
        match n.checked_mul(size) {
            Some(n_bytes) if n_bytes <= self.left() => Ok(n_bytes),
            _ => Err(format!(
                "{what}: {n} times {size} bytes are claimed at byte {}, and \
                 {} are left",
                self.position,
                self.left()
            )
            .into()),
        }
    }

    fn bytes(&mut self, n: u64, what: &str) -> Result<Vec<u8>, Fault> {
        let n_bytes = self.need(n, 1, what)?;
        let n_bytes = usize::try_from(n_bytes)
            .map_err(|error| format!("{what}: {error}"))?;
        let mut bytes = vec![0; n_bytes];
        self.reader.read_exact(&mut bytes)?;
        self.position += n;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Fault> {
        self.need(N as u64, 1, what)?;
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes)?;
        self.position += N as u64;
        Ok(bytes)
    }

    fn u32(&mut self, what: &str) -> Result<u32, Fault> {
        self.array(what).map(u32::from_le_bytes)
    }

    fn u64(&mut self, what: &str) -> Result<u64, Fault> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// Reads how many things of at least `size` bytes follow.
    fn count(&mut self, what: &str, size: u64) -> Result<u64, Fault> {
        let n = self.u64(what)?;
        self.need(n, size, what)?;
        Ok(n)
    }

    fn string(&mut self, what: &str) -> Result<Vec<u8>, Fault> {
        let n = self.count(what, 1)?;
        self.bytes(n, what)
    }

    /// Reads a string that must be UTF-8, and something.
    fn name(&mut self, what: &str) -> Result<String, Fault> {
        match String::from_utf8(self.string(what)?) {
            Ok(name) if !name.is_empty() => Ok(name),
            Ok(_) => Err(format!("{what} is empty").into()),
            Err(_) => Err(format!("{what} is not UTF-8").into()),
        }
    }
}

/// The numbers that a file gives to types of values.
mod kind {
    pub(super) const U8: u32 = 0;
    pub(super) const I8: u32 = 1;
    pub(super) const U16: u32 = 2;
    pub(super) const I16: u32 = 3;
    pub(super) const U32: u32 = 4;
    pub(super) const I32: u32 = 5;
    pub(super) const F32: u32 = 6;
    pub(super) const BOOL: u32 = 7;
    pub(super) const STRING: u32 = 8;
    pub(super) const ARRAY: u32 = 9;
    pub(super) const U64: u32 = 10;
    pub(super) const I64: u32 = 11;
    pub(super) const F64: u32 = 12;
}

fn read_value(
    cursor: &mut Cursor<'_, impl Read>,
    kind: u32,
    key: &str,
) -> Result<Value, Fault> {
    Ok(match kind {
        kind::U8 => Value::U8(u8::from_le_bytes(cursor.array(key)?)),
        kind::I8 => Value::I8(i8::from_le_bytes(cursor.array(key)?)),
        kind::U16 => Value::U16(u16::from_le_bytes(cursor.array(key)?)),
        kind::I16 => Value::I16(i16::from_le_bytes(cursor.array(key)?)),
        kind::U32 => Value::U32(u32::from_le_bytes(cursor.array(key)?)),
        kind::I32 => Value::I32(i32::from_le_bytes(cursor.array(key)?)),
        kind::U64 => Value::U64(u64::from_le_bytes(cursor.array(key)?)),
        kind::I64 => Value::I64(i64::from_le_bytes(cursor.array(key)?)),
        kind::F32 => Value::F32(f32::from_le_bytes(cursor.array(key)?)),
        kind::F64 => Value::F64(f64::from_le_bytes(cursor.array(key)?)),
        kind::BOOL => Value::Bool(boolean(cursor.array(key)?, key)?),
        kind::STRING => match String::from_utf8(cursor.string(key)?) {
            Ok(text) => Value::String(text),
            Err(error) => Value::Bytes(error.into_bytes()),
        },
        kind::ARRAY => Value::Array(read_array(cursor, key, 1)?),
        other => {
            return Err(format!("{key:?} has unknown type {other}").into());
        }
    })
}

/// Reads an array. The recursion is bounded by [`MAX_DEPTH`].
fn read_array(
    cursor: &mut Cursor<'_, impl Read>,
    key: &str,
    depth: usize,
) -> Result<Array, Fault> {
    if depth > MAX_DEPTH {
        return Err(format!(
            "{key:?} has arrays in arrays more than {MAX_DEPTH} deep"
        )
        .into());
    }
    let kind = cursor.u32(key)?;
    Ok(match kind {
        kind::U8 => Array::U8(numbers(cursor, key, u8::from_le_bytes)?),
        kind::I8 => Array::I8(numbers(cursor, key, i8::from_le_bytes)?),
        kind::U16 => Array::U16(numbers(cursor, key, u16::from_le_bytes)?),
        kind::I16 => Array::I16(numbers(cursor, key, i16::from_le_bytes)?),
        kind::U32 => Array::U32(numbers(cursor, key, u32::from_le_bytes)?),
        kind::I32 => Array::I32(numbers(cursor, key, i32::from_le_bytes)?),
        kind::U64 => Array::U64(numbers(cursor, key, u64::from_le_bytes)?),
        kind::I64 => Array::I64(numbers(cursor, key, i64::from_le_bytes)?),
        kind::F32 => Array::F32(numbers(cursor, key, f32::from_le_bytes)?),
        kind::F64 => Array::F64(numbers(cursor, key, f64::from_le_bytes)?),
        kind::BOOL => Array::Bool(
            numbers(cursor, key, |byte: [u8; 1]| byte)?
                .into_iter()
                .map(|byte| boolean(byte, key))
                .collect::<Result<_, _>>()?,
        ),
        kind::STRING => {
            let mut strings = Vec::new();
            for _ in 0..cursor.count(key, 8)? {
                strings.push(cursor.string(key)?);
            }
            texts(strings)
        }
        kind::ARRAY => {
            let mut arrays = Vec::new();
            for _ in 0..cursor.count(key, 4 + 8)? {
                arrays.push(read_array(cursor, key, depth + 1)?);
            }
            Array::Array(arrays)
        }
        other => {
            return Err(format!(
                "{key:?} is an array of unknown type {other}"
            )
            .into());
        }
    })
}

fn numbers<T, const N: usize>(
    cursor: &mut Cursor<'_, impl Read>,
    key: &str,
    convert: impl Fn([u8; N]) -> T,
) -> Result<Vec<T>, Fault> {
    let n = cursor.count(key, N as u64)?;
    let bytes = cursor.bytes(n * N as u64, key)?;
    let (chunks, _) = bytes.as_chunks::<N>();
    Ok(chunks.iter().map(|chunk| convert(*chunk)).collect())
}

/// Makes texts of strings, if all of them are.
fn texts(strings: Vec<Vec<u8>>) -> Array {
    if strings.iter().any(|string| std::str::from_utf8(string).is_err()) {
        return Array::Bytes(strings);
    }
    let texts = strings.into_iter().filter_map(|s| String::from_utf8(s).ok());
    Array::String(texts.collect())
}

fn boolean([byte]: [u8; 1], key: &str) -> Result<bool, Fault> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        other => {
            Err(format!("{key:?} is a boolean with value {other}").into())
        }
    }
}
