//! Why a model could not be found.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// What one source answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Attempt {
    /// The source.
    pub source: String,
    /// What it said.
    pub said: String,
}

impl Attempt {
    pub(super) fn new(
        source: impl Into<String>,
        said: impl Into<String>,
    ) -> Attempt {
        // One line, whatever the source sent.
        let said: String = said.into();
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        Attempt { source: source.into(), said }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.said)
    }
}

/// A model that could not be found or fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownloadError {
    /// The path that was named is not there.
    #[error(
        "no model at {}; give a GGUF file, a directory with safetensors, \
         config.json and tokenizer.json, or a repository as owner/name",
        path.display()
    )]
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// There is no place for the cache.
    #[error(
        "the user's cache directory is not known; set {}",
        super::CACHE_DIR_VARIABLE
    )]
    NoCacheDirectory,
    /// The cache cannot be written.
    #[error("cannot use {} as a cache", path.display())]
    Cache {
        /// The file or the directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// No source has the model.
    #[error(
        "could not get the model {name} from any source ({}); give a local \
         file or directory instead",
        join(attempts)
    )]
    Sources {
        /// The model.
        name: String,
        /// What each source answered, in the order in which they were asked.
        attempts: Vec<Attempt>,
    },
    /// A repository is there, but has nothing that can be loaded.
    #[error("repository {name} cannot be used: {why}")]
    Repository {
        /// The repository.
        name: String,
        /// What is missing, and what there is.
        why: String,
    },
}

fn join(attempts: &[Attempt]) -> String {
    let attempts: Vec<String> =
        attempts.iter().map(Attempt::to_string).collect();
    attempts.join("; ")
}
