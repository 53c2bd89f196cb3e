//! Finding a model's files: on disk, in the cache, or on the network.
//!
//! [`ModelSource::parse`] reads what a user wrote, and [`resolve`] turns it
//! into a path that [`load`](crate::model::load) takes. Only files whose
//! SHA-256 is known are fetched for the default model, they are written
//! beside their place and renamed into it, and a file in the cache is checked
//! each time: a half-written or damaged one is never used.
//!
//! Nothing is printed here; what goes on is told to a [`Progress`].

mod default_model;
mod error;
mod hub;
mod progress;
mod pypi;
mod source;
mod store;
#[cfg(feature = "cli")]
mod terminal;

pub use default_model::{DEFAULT_MODEL, cached_default_model};
pub use error::{Attempt, DownloadError};
pub use progress::{Progress, Silent};
pub use source::ModelSource;
pub(crate) use store::to_hex;
pub use store::{CACHE_DIR_VARIABLE, cache_dir};
#[cfg(feature = "cli")]
pub use terminal::TerminalProgress;

use std::path::PathBuf;

/// Finds the files of a model, and fetches them where they are not at hand.
///
/// # Errors
///
/// Fails when a path is not there, when a repository has nothing to load,
/// and when every source of the default model failed; the error says what
/// each source answered.
pub fn resolve(
    source: &ModelSource,
    progress: &dyn Progress,
) -> Result<PathBuf, DownloadError> {
    match source {
        ModelSource::Path(path) if path.exists() => Ok(path.clone()),
        ModelSource::Path(path) => {
            Err(DownloadError::NotFound { path: path.clone() })
        }
        ModelSource::Repository { name, file } => {
            hub::repository(name, file.as_deref(), progress)
        }
        ModelSource::Default => default_model::find(&cache_dir()?, progress),
    }
}
