//! The cache on disk: checked files that appear whole or not at all.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::{env, process};

use sha2::{Digest, Sha256};

use super::{DownloadError, Progress};

/// The environment variable that overrides where downloads are kept.
pub const CACHE_DIR_VARIABLE: &str = "MASKWRIGHT_CACHE_DIR";

/// Returns the directory in which downloads are kept: what the environment
/// says, or `maskwright` in the user's cache directory.
///
/// # Errors
///
/// Fails when neither is known.
pub fn cache_dir() -> Result<PathBuf, DownloadError> {
    match env::var_os(CACHE_DIR_VARIABLE) {
        Some(directory) if !directory.is_empty() => Ok(directory.into()),
        _ => dirs::cache_dir()
            .map(|directory| directory.join("maskwright"))
            .ok_or(DownloadError::NoCacheDirectory),
    }
}

/// A file whose content is known beforehand.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownFile {
    pub(super) name: &'static str,
    pub(super) n_bytes: u64,
    /// The SHA-256 in lower-case hexadecimal.
    pub(super) sha256: &'static str,
}

impl KnownFile {
    /// Checks a file; on a difference, returns what differs.
    pub(super) fn check(&self, path: &Path) -> io::Result<Result<(), String>> {
        let mut file = File::open(path)?;
        let n_bytes = file.metadata()?.len();
        if n_bytes != self.n_bytes {
            return Ok(Err(self.wrong_size(n_bytes)));
        }
        let mut hasher = Sha256::new();
        copy(&mut file, |chunk| {
            hasher.update(chunk);
            Ok(())
        })?;
        Ok(self.check_digest(hasher))
    }

    fn check_digest(&self, hasher: Sha256) -> Result<(), String> {
        let found = to_hex(&hasher.finalize());
        if found == self.sha256 {
            return Ok(());
        }
        Err(format!("SHA-256 is {found}, expected {}", self.sha256))
    }

    fn wrong_size(&self, found: u64) -> String {
        format!("{found} bytes, expected {}", self.n_bytes)
    }

    /// Writes a stream beside `target` and renames it there, if it is what
    /// it should be. Otherwise nothing stays, and the reason is returned.
    pub(super) fn install(
        &self,
        source: &mut dyn Read,
        target: &Path,
    ) -> io::Result<Result<(), String>> {
        let mut partial = Partial::create(target)?;
        let mut hasher = Sha256::new();
        let mut n_bytes = 0;
        copy(source, |chunk| {
            hasher.update(chunk);
            n_bytes += chunk.len() as u64;
            if n_bytes > self.n_bytes {
                // Do not fill the disk with what is refused anyway.
                return Err(io::Error::other("longer than it should be"));
            }
            partial.file.write_all(chunk)
        })?;
        if n_bytes != self.n_bytes {
            return Ok(Err(self.wrong_size(n_bytes)));
        }
        if let Err(why) = self.check_digest(hasher) {
            return Ok(Err(why));
        }
        partial.file.sync_all()?;
        fs::rename(&partial.path, target)?;
        Ok(Ok(()))
    }
}

/// A file under way, with a name of its own, which goes when it is dropped.
struct Partial {
    path: PathBuf,
    file: File,
}

impl Partial {
    fn create(target: &Path) -> io::Result<Partial> {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.part", process::id()));
        let path = target.with_file_name(name);
        let file = File::create(&path)?;
        Ok(Partial { path, file })
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After a rename there is nothing to remove.
        let _ = fs::remove_file(&self.path);
    }
}

/// Passes a stream on in chunks.
fn copy(
    source: &mut dyn Read,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 17];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => take(&buffer[..n])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

/// Takes the lock on `target`, waiting for another process that holds it. It
/// is released when the returned file is dropped.
pub(super) fn lock(
    target: &Path,
    progress: &dyn Progress,
) -> io::Result<File> {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    let file = File::create(target.with_file_name(name))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            progress.note("waiting for another process to fetch the model");
            file.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::super::Silent;
    use super::*;

    const ABC: KnownFile = KnownFile {
        name: "abc",
        n_bytes: 3,
        sha256: "ba7816bf8f01cfea414140de5dae2223\
                 b00361a396177a9cb410ff61f20015ad",
    };

    #[test]
    fn only_the_right_content_is_installed() {
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join(ABC.name);
        for (content, reason) in [(&b"ab"[..], "2 bytes"), (b"abd", "SHA-256")]
        {
            let result = ABC.install(&mut &content[..], &target);
            let why = result.expect("written").expect_err("refused");
            assert!(why.contains(reason), "{why}");
            assert_eq!(entries(directory.path()), 0);
        }
        assert!(ABC.install(&mut &b"abcd"[..], &target).is_err());
        assert_eq!(entries(directory.path()), 0);
        ABC.install(&mut &b"abc"[..], &target)
            .expect("written")
            .expect("accepted");
        assert_eq!(fs::read(&target).expect("there"), b"abc");
        assert_eq!(entries(directory.path()), 1);
        ABC.check(&target).expect("readable").expect("right");
    }

    #[test]
    fn a_damaged_file_is_told_from_a_good_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join(ABC.name);
        assert!(ABC.check(&target).is_err());
        for damaged in [&b"ab"[..], b"abC", b"abcd", b""] {
            fs::write(&target, damaged).expect("written");
            assert!(ABC.check(&target).expect("readable").is_err());
        }
        // Installing replaces it.
        ABC.install(&mut &b"abc"[..], &target)
            .expect("written")
            .expect("accepted");
        assert!(ABC.check(&target).expect("readable").is_ok());
    }

    #[test]
    fn a_stream_that_breaks_off_leaves_nothing() {
        struct Breaks(bool);
        impl Read for Breaks {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                if std::mem::replace(&mut self.0, true) {
                    return Err(io::Error::other("connection lost"));
                }
                buffer[0] = b'a';
                Ok(1)
            }
        }
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join(ABC.name);
        assert!(ABC.install(&mut Breaks(false), &target).is_err());
        assert_eq!(entries(directory.path()), 0);
    }

    #[test]
    fn the_lock_is_exclusive_and_ends_with_its_holder() {
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join(ABC.name);
        let held = lock(&target, &Silent).expect("free");
        let other = File::create(directory.path().join("abc.lock"));
        let other = other.expect("there");
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        other.try_lock().expect("free again");
    }

    fn entries(directory: &Path) -> usize {
        directory.read_dir().expect("readable").count()
    }
}
