//! The documents: the files of a directory, or the lines of a file.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;

use super::{error::BatchError, journal::Problem};

/// How long a document may be, in bytes. No model has the context for it, and
/// a file of any size must not fill the memory.
pub const MAX_BYTES: u64 = 16 << 20;

/// What a document is called; no two of a run have one name.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Name {
    /// The name of a file in a directory.
    File(String),
    /// The id of a line of JSON lines, as JSON: a string or a number.
    Id(String),
    /// The number of a line of JSON lines that has no id, from 1.
    Line(u64),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::File(name) => f.write_str(&name.escape_debug().to_string()),
            Name::Id(id) => write!(f, "id {id}"),
            Name::Line(line) => write!(f, "line {line}"),
        }
    }
}

/// A text that is waiting to be read.
#[derive(Clone, Debug)]
pub struct Document {
    name: Name,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    File(PathBuf),
    Text(String),
    /// A line that says no text.
    Bad(Problem),
}

/// A line of JSON lines.
#[derive(Deserialize)]
struct InputLine {
    text: String,
    id: Option<Value>,
}

impl Document {
    /// Lists the files of a directory by name, byte by byte. Directories in
    /// it, names that begin with a dot, and the file `output` are left out.
    ///
    /// # Errors
    ///
    /// Fails when the directory cannot be read, and when the name of a file
    /// is not UTF-8.
    pub fn from_directory(
        directory: &Path,
        output: &Path,
    ) -> Result<Vec<Document>, BatchError> {
        let failed =
            |error| BatchError::Input { path: directory.to_owned(), error };
        // There need not be an output yet.
        let output = fs::canonicalize(output).ok();
        let mut documents = Vec::new();
        for entry in fs::read_dir(directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().unwrap_or_default();
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            // What cannot be looked at stays, and fails when it is its turn.
            if fs::metadata(&path).is_ok_and(|it| !it.is_file()) {
                continue;
            }
            if output.is_some() && fs::canonicalize(&path).ok() == output {
                continue;
            }
            let Some(name) = name.to_str() else {
                return Err(BatchError::FileName { path });
            };
            let name = Name::File(name.to_owned());
            documents.push(Document { name, source: Source::File(path) });
        }
        documents.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(documents)
    }

    /// Takes the documents from JSON lines: objects with a `text` and, if
    /// they like, an `id`, which is a string or a number. Lines that are none
    /// are documents that fail; blank lines are passed over.
    ///
    /// # Errors
    ///
    /// Fails when two lines have one id.
    pub fn from_jsonl(lines: &[u8]) -> Result<Vec<Document>, BatchError> {
        let mut documents = Vec::new();
        let mut first_lines = BTreeMap::new();
        for (line, number) in lines.split(|&byte| byte == b'\n').zip(1..) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let document = Document::from_line(line, number as u64);
            if let Name::Id(id) = &document.name
                && let Some(first) = first_lines.insert(id.clone(), number)
            {
                let id = id.clone();
                let second = number;
                return Err(BatchError::DuplicateId { id, first, second });
            }
            documents.push(document);
        }
        Ok(documents)
    }

    fn from_line(line: &[u8], number: u64) -> Document {
        let name = Name::Line(number);
        let bad =
            |message: String| Source::Bad(Problem::new("bad_line", message));
        let line: InputLine = match serde_json::from_slice(line) {
            Ok(line) => line,
            Err(error) => {
                let source = bad(format!("the line cannot be read: {error}"));
                return Document { name, source };
            }
        };
        let source = Source::Text(line.text);
        match line.id {
            None => Document { name, source },
            Some(id @ (Value::String(_) | Value::Number(_))) => {
                Document { name: Name::Id(id.to_string()), source }
            }
            Some(id) => {
                let source =
                    bad(format!("an id is a string or a number, not {id}"));
                Document { name, source }
            }
        }
    }

    /// Returns what the document is called.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Reads the text.
    pub(super) fn read(&self) -> Result<Cow<'_, str>, Problem> {
        let path = match &self.source {
            Source::Text(text) => return Ok(Cow::Borrowed(text)),
            Source::Bad(problem) => return Err(problem.clone()),
            Source::File(path) => path,
        };
        let bytes = read_file(path).map_err(|error| {
            let kind = match error.kind() {
                io::ErrorKind::FileTooLarge => "too_long",
                _ => "unreadable",
            };
            Problem::new(kind, format!("the file cannot be read: {error}"))
        })?;
        String::from_utf8(bytes).map(Cow::Owned).map_err(|error| {
            let offset = error.utf8_error().valid_up_to();
            let message =
                format!("the text is not UTF-8 at byte {offset}; convert it");
            Problem::new("not_utf8", message)
        })
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!(
            "it has more than {MAX_BYTES} bytes, which is the limit; split it"
        );
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}
