//! The output: a file that only ever grows by whole lines.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    process,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{document::Name, error::BatchError};
use crate::model::download::to_hex;

/// How old a line may become before it is on the disk for certain, if lines
/// keep coming: a power cut takes no more than the work of this time.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// What a line was made with: all that another line could be the result of.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RunId {
    schema: String,
    model: String,
    options: String,
}

impl RunId {
    /// Makes the id of a run from texts that tell its schema, its model and
    /// its options from all others.
    pub fn of(schema: &str, model: &str, options: &str) -> RunId {
        let [schema, model, options] = [schema, model, options].map(short);
        RunId { schema, model, options }
    }

    /// Returns what differs from `other`, in words.
    fn differences(&self, other: &RunId) -> String {
        let parts = [
            ("schema", self.schema == other.schema),
            ("model", self.model == other.model),
            ("options", self.options == other.options),
        ];
        let differing = parts.iter().filter(|(_, is_same)| !is_same);
        let names: Vec<&str> = differing.map(|&(name, _)| name).collect();
        names.join(" and ")
    }
}

/// The first 64 bits of the SHA-256: enough to tell what a user may confuse.
fn short(text: &str) -> String {
    to_hex(&Sha256::digest(text.as_bytes())[..8])
}

/// What became of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A value.
    Extracted(Extracted),
    /// None, and why.
    Failed(Problem),
    /// It was broken off, and has no line.
    Cancelled,
}

/// A value and how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Extracted {
    /// The value.
    pub value: Value,
    /// Why the text ended, if a model wrote it.
    pub finish_reason: Option<&'static str>,
    /// How many tokens the model read.
    pub n_prompt: usize,
    /// How many it wrote.
    pub n_output: usize,
    /// How long it took.
    pub time: Duration,
}

impl Extracted {
    /// Makes an outcome of a value, about which nothing else is known.
    pub fn new(value: Value) -> Extracted {
        Extracted {
            value,
            finish_reason: None,
            n_prompt: 0,
            n_output: 0,
            time: Duration::ZERO,
        }
    }
}

/// Why there is no value.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Problem {
    /// What kind of failure it is, for machines.
    pub kind: String,
    /// What is wrong, and the way out.
    pub message: String,
    /// What was written until then, where the text was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Problem {
    /// Makes a problem.
    pub fn new(kind: &str, message: impl Into<String>) -> Problem {
        Problem { kind: kind.to_owned(), message: message.into(), text: None }
    }
}

/// What is read again of a line.
#[derive(Deserialize)]
struct Head {
    run: RunId,
    file: Option<String>,
    id: Option<Value>,
    line: Option<u64>,
    error: Option<Problem>,
}

impl Head {
    fn name(&self) -> Option<Name> {
        match (&self.file, &self.id, self.line) {
            (Some(file), None, None) => Some(Name::File(file.clone())),
            (None, Some(id), None) => Some(Name::Id(id.to_string())),
            (None, None, Some(line)) => Some(Name::Line(line)),
            _ => None,
        }
    }
}

/// The output of a run, locked against other processes.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    run: RunId,
    /// Invariant: it stands at its end, at `len`.
    file: File,
    /// The bytes of all whole lines.
    len: u64,
    /// The documents that have a line, and what is wrong with them.
    lines: BTreeMap<Name, Option<Problem>>,
    /// How much of it is on the disk for certain, and since when.
    synced: u64,
    synced_at: Instant,
    pub(super) sync_every: Duration,
}

impl Journal {
    /// Opens the output of a run, or creates it. If its last line was torn,
    /// that line is cut off.
    ///
    /// # Errors
    ///
    /// Fails, and leaves the file as it is, when it cannot be opened, when
    /// another process has it, and when there is a line in it that does not
    /// belong to this run.
    pub fn open(path: &Path, run: RunId) -> Result<Journal, BatchError> {
        if fs::metadata(path).is_ok_and(|it| !it.is_file()) {
            return Err(BatchError::NotAFile { path: path.to_owned() });
        }
        let (file, path) = open_locked(path)?;
        let mut journal = Journal {
            path,
            run,
            file,
            len: 0,
            lines: BTreeMap::new(),
            synced: 0,
            synced_at: Instant::now(),
            sync_every: SYNC_EVERY,
        };
        journal.read()?;
        // It may be new, or hold what a killed process wrote.
        journal.sync()?;
        sync_directory(&journal.path);
        Ok(journal)
    }

    /// Returns whether a document has a line.
    pub fn has(&self, name: &Name) -> bool {
        self.lines.contains_key(name)
    }

    /// Returns how many documents have a line.
    pub fn n_lines(&self) -> usize {
        self.lines.len()
    }

    /// Returns the documents whose line is that of a failure.
    pub fn failures(&self) -> impl Iterator<Item = (&Name, &Problem)> {
        self.lines.iter().filter_map(|(name, problem)| {
            problem.as_ref().map(|problem| (name, problem))
        })
    }

    /// Returns how many bytes are on the disk for certain.
    pub fn n_synced(&self) -> u64 {
        self.synced
    }

    /// Writes the line of a document. A document that was cancelled has none.
    ///
    /// It waits for the disk once a second, so that a power cut takes the work
    /// of one second at most.
    ///
    /// # Errors
    ///
    /// Fails when the line cannot be written as a whole; nothing of it stays
    /// in the file then. Fails, too, when the lines cannot be brought onto the
    /// disk.
    pub fn write(
        &mut self,
        name: &Name,
        outcome: &Outcome,
    ) -> Result<(), BatchError> {
        let Some(mut line) = self.line(name, outcome) else { return Ok(()) };
        line.push('\n');
        // One call, so that only the operating system can tear it.
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // If this fails too, the next run does it.
            let _ = self.file.set_len(self.len);
            let _ = self.file.seek(SeekFrom::Start(self.len));
            // The lines before it are to last; what is wrong is known.
            let _ = self.sync();
            return Err(BatchError::Write {
                path: self.path.clone(),
                document: name.to_string(),
                n_lines: self.lines.len(),
                error,
            });
        }
        self.len += line.len() as u64;
        let problem = match outcome {
            Outcome::Failed(problem) => Some(problem.clone()),
            Outcome::Extracted(_) | Outcome::Cancelled => None,
        };
        self.lines.insert(name.clone(), problem);
        if self.synced_at.elapsed() >= self.sync_every {
            self.sync()?;
        }
        Ok(())
    }

    /// Takes out the lines of failures, so that their documents are done
    /// again, and returns how many these are. The file is replaced as a whole
    /// or not at all.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be written anew.
    pub fn forget_failures(&mut self) -> Result<usize, BatchError> {
        let n_failed = self.failures().count();
        if n_failed == 0 {
            return Ok(0);
        }
        self.rewrite().map_err(|error| BatchError::Rewrite {
            path: self.path.clone(),
            error,
        })?;
        self.lines.retain(|_, problem| problem.is_none());
        Ok(n_failed)
    }

    /// Waits until all lines are on the disk.
    ///
    /// # Errors
    ///
    /// Fails when the operating system says that they are not.
    pub fn sync(&mut self) -> Result<(), BatchError> {
        let synced = self.file.sync_data();
        self.synced_at = Instant::now();
        if let Err(error) = synced {
            let path = self.path.clone();
            return Err(BatchError::Sync { path, error });
        }
        self.synced = self.len;
        Ok(())
    }

    /// Returns the line of a document, which begins with [`Journal::start`].
    fn line(&self, name: &Name, outcome: &Outcome) -> Option<String> {
        let mut line = json!({ "run": self.run });
        match name {
            Name::File(file) => line["file"] = json!(file),
            Name::Id(id) => {
                line["id"] = serde_json::from_str(id).unwrap_or_default();
            }
            Name::Line(number) => line["line"] = json!(number),
        }
        match outcome {
            Outcome::Extracted(it) => {
                line["value"] = it.value.clone();
                line["finish_reason"] = json!(it.finish_reason);
                line["prompt_tokens"] = json!(it.n_prompt);
                line["output_tokens"] = json!(it.n_output);
                let ms = u64::try_from(it.time.as_millis());
                line["ms"] = json!(ms.unwrap_or(u64::MAX));
            }
            Outcome::Failed(problem) => line["error"] = json!(problem),
            Outcome::Cancelled => return None,
        }
        Some(line.to_string())
    }

    /// Returns what each line begins with.
    fn start(&self) -> String {
        let mut start = json!({ "run": self.run }).to_string();
        start.pop();
        start
    }

    /// Reads the lines that are there, and cuts off a torn one.
    fn read(&mut self) -> Result<(), BatchError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| BatchError::Open { path, error }
        };
        let not_ours =
            |line| BatchError::NotOurs { path: self.path.clone(), line };
        let mut reader = BufReader::new(&self.file);
        let start = reader.fill_buf().map_err(failed(&self.path))?;
        // A file of one huge line must not be read for nothing.
        if !is_beginning(start, b"{\"run\":{\"schema\":\"") {
            return Err(not_ours(1));
        }
        let mut line = Vec::new();
        let mut lines = BTreeMap::new();
        let mut len = 0;
        for number in 1.. {
            line.clear();
            let n_read = reader
                .read_until(b'\n', &mut line)
                .map_err(failed(&self.path))?;
            let Some(whole) = line.strip_suffix(b"\n") else {
                let is_torn = is_beginning(&line, self.start().as_bytes());
                if n_read > 0 && !is_torn {
                    return Err(not_ours(number));
                }
                break;
            };
            let (name, problem) = self.check(whole, number)?;
            lines.insert(name, problem);
            len += n_read as u64;
        }
        self.lines = lines;
        self.len = len;
        // Not in any case: a file that is whole is not touched.
        if !line.is_empty() {
            self.file.set_len(len).map_err(failed(&self.path))?;
        }
        self.file.seek(SeekFrom::Start(len)).map_err(failed(&self.path))?;
        Ok(())
    }

    fn check(
        &self,
        line: &[u8],
        number: usize,
    ) -> Result<(Name, Option<Problem>), BatchError> {
        let path = &self.path;
        let head = serde_json::from_slice::<Head>(line).ok();
        let named = head.and_then(|head| Some((head.name()?, head)));
        let Some((name, head)) = named else {
            let path = path.clone();
            return Err(BatchError::NotOurs { path, line: number });
        };
        if head.run != self.run {
            let what = self.run.differences(&head.run);
            let path = path.clone();
            return Err(BatchError::OtherRun { path, line: number, what });
        }
        Ok((name, head.error))
    }

    /// Writes the lines that are no failures into a new file, which takes the
    /// place of this one.
    fn rewrite(&mut self) -> io::Result<()> {
        let mut name = std::ffi::OsString::from(".");
        name.push(self.path.file_name().unwrap_or_default());
        name.push(format!(".{}.part", process::id()));
        let part = self.path.with_file_name(name);
        let written = self.write_kept(&part);
        let renamed = written.and_then(|file_and_len| {
            fs::rename(&part, &self.path).map(|()| file_and_len)
        });
        if renamed.is_err() {
            // It may not even be there.
            let _ = fs::remove_file(&part);
            // What was read moved the file's position.
            self.file.seek(SeekFrom::Start(self.len))?;
        }
        (self.file, self.len) = renamed?;
        self.synced = self.len;
        sync_directory(&self.path);
        Ok(())
    }

    fn write_kept(&mut self, part: &Path) -> io::Result<(File, u64)> {
        self.file.seek(SeekFrom::Start(0))?;
        let mut reader = BufReader::new(&self.file);
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create_new(true).open(part)?;
        file.set_permissions(self.file.metadata()?.permissions())?;
        // Locked before it has the name that others look for.
        file.lock()?;
        let mut writer = BufWriter::new(&file);
        let mut line = Vec::new();
        let mut len = 0;
        while reader.read_until(b'\n', &mut line)? > 0 {
            let head: Head = serde_json::from_slice(&line)?;
            if head.error.is_none() {
                writer.write_all(&line)?;
                len += line.len() as u64;
            }
            line.clear();
        }
        writer.flush()?;
        drop(writer);
        file.sync_all()?;
        Ok((file, len))
    }
}

/// Brings the name of a file onto the disk.
#[cfg(unix)]
fn sync_directory(path: &Path) {
    let directory = path.parent().unwrap_or(Path::new("/"));
    // Not every file system can, and none need say so: the lines are there.
    let _ = File::open(directory).and_then(|it| it.sync_all());
}

/// Elsewhere a directory cannot be opened.
#[cfg(not(unix))]
fn sync_directory(_: &Path) {}

/// Returns true if one of the two is the beginning of the other.
fn is_beginning(a: &[u8], b: &[u8]) -> bool {
    a.iter().zip(b).all(|(a, b)| a == b)
}

/// Opens a file for reading and writing, creates it if need be, and locks it.
/// Returns its real path, too: a link to it must not be replaced by a file.
fn open_locked(path: &Path) -> Result<(File, PathBuf), BatchError> {
    let failed = |error| BatchError::Open { path: path.to_owned(), error };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(BatchError::Busy { path: path.to_owned() });
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    let path = fs::canonicalize(path).map_err(failed)?;
    Ok((file, path))
}
