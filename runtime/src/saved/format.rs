//! What all files of ours have in common: a head, checksums, numbers and
//! lists, and how they are written.
//!
//! Little-endian: what the file begins with, the version of the format, this
//! crate's version, a checksum of what it was made of, then the length and
//! the checksum of the rest.

use std::{
    fs, io,
    path::Path,
    process,
    sync::atomic::{AtomicU32, Ordering},
};

/// A kind of files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    /// What such a file begins with.
    pub(super) magic: [u8; 8],
    /// The version of the format, and of what is in it.
    pub(super) version: u32,
}

impl Format {
    /// Returns a file. `source` is a number of whatever it was made of.
    pub(super) fn seal(self, source: u64, body: Writer) -> Vec<u8> {
        let body = body.bytes;
        let mut out = Writer::default();
        out.bytes.reserve(body.len() + 128);
        out.bytes.extend_from_slice(&self.magic);
        out.number(u64::from(self.version));
        out.list(env!("CARGO_PKG_VERSION").as_bytes());
        out.number(source);
        out.number(body.len() as u64);
        out.number(checksum(&body));
        out.bytes.extend_from_slice(&body);
        out.bytes
    }

    /// Returns what is in a file.
    pub(super) fn open(
        self,
        bytes: &[u8],
        source: u64,
    ) -> Result<Reader<'_>, SavedError> {
        let Some(rest) = bytes.strip_prefix(&self.magic) else {
            return Err(SavedError::Unknown);
        };
        let mut head = Reader { rest };
        let given = head.number().ok_or(SavedError::Damaged)?;
        let by = head.list().ok_or(SavedError::Damaged)?;
        let own = env!("CARGO_PKG_VERSION");
        if given != u64::from(self.version) || by != own.as_bytes() {
            return Err(SavedError::Version {
                given,
                by: String::from_utf8_lossy(by).into_owned(),
                expected: self.version,
            });
        }
        let numbers = [(); 3].map(|()| head.number());
        let [Some(made_of), Some(length), Some(sum)] = numbers else {
            return Err(SavedError::Damaged);
        };
        if made_of != source {
            return Err(SavedError::Source);
        }
        let body = head.rest;
        if body.len() as u64 != length || checksum(body) != sum {
            return Err(SavedError::Damaged);
        }
        Ok(Reader { rest: body })
    }
}

/// Writes a file as a whole or not at all: under another name first.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{number}.part", process::id()));
    let part = path.with_file_name(name);
    let result =
        fs::write(&part, bytes).and_then(|()| fs::rename(&part, path));
    if result.is_err() {
        // It may not even be there.
        let _ = fs::remove_file(&part);
    }
    result
}

/// A checksum that is the same everywhere.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mut sum = bytes.len() as u64;
    for word in words.iter().chain([&last]) {
        sum = (sum ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
        sum ^= sum >> 29;
    }
    sum
}

/// Numbers and lists, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    pub(super) bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// Writes a number that is small as a rule in few bytes.
    pub(crate) fn small(&mut self, mut number: u64) {
        while let Ok(low) = u8::try_from(number & 0x7F)
            && number >= 0x80
        {
            self.bytes.push(low | 0x80);
            number >>= 7;
        }
        self.bytes.push(number.to_le_bytes()[0]);
    }

    /// Writes a list that is short as a rule.
    pub(crate) fn short_list(&mut self, bytes: &[u8]) {
        self.small(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn list(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn words(&mut self, words: impl ExactSizeIterator<Item = u32>) {
        self.number(words.len() as u64);
        for word in words {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
    }
}

/// Reads what a [`Writer`] wrote; none where there is too little.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// Reads what [`Writer::small`] wrote.
    pub(crate) fn small(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            let low = u64::from(byte & 0x7F);
            // The tenth byte has room for one bit.
            if low << shift >> shift != low {
                return None;
            }
            number |= low << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Reads what [`Writer::small`] wrote of an index or a length.
    pub(crate) fn small_length(&mut self) -> Option<usize> {
        usize::try_from(self.small()?).ok()
    }

    /// Reads what [`Writer::short_list`] wrote.
    pub(crate) fn short_list(&mut self) -> Option<&'a [u8]> {
        let length = self.small_length()?;
        self.take(length)
    }

    pub(crate) fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub(crate) fn list(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    pub(crate) fn words(&mut self) -> Option<Vec<u32>> {
        let length = self.length()?.checked_mul(4)?;
        let (words, _) = self.take(length)?.as_chunks::<4>();
        Some(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }
}

/// Why a file is not used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    /// It is no such file.
    #[error(
        "the file is not one that Maskwright saved for this; make it again"
    )]
    Unknown,
    /// It was made by another version.
    #[error(
        "the file was saved in version {given} of the format by Maskwright \
         {by}, and this one reads version {expected} by {own}; make it again",
        own = env!("CARGO_PKG_VERSION")
    )]
    Version {
        /// The version of the format.
        given: u64,
        /// The version of Maskwright.
        by: String,
        /// The version of the format that can be read.
        expected: u32,
    },
    /// It was made of something else: another tokenizer or width, another
    /// grammar, or other options.
    #[error("the file was saved of something else; make it again")]
    Source,
    /// It is cut off, or was changed.
    #[error("the saved file is damaged; make it again")]
    Damaged,
}
