//! What ends the work on many documents, as opposed to on one of them.

use std::{io, path::PathBuf};

/// An error that ends the work on many documents.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The documents cannot be listed.
    #[error("{}: the documents cannot be read: {error}", path.display())]
    Input {
        /// The directory or file.
        path: PathBuf,
        /// What the operating system said.
        error: io::Error,
    },
    /// A file's name is not text, so that no line can name it.
    #[error(
        "{}: the name is not UTF-8, and a line of JSON cannot hold it; \
         rename the file, or move it away",
        path.display()
    )]
    FileName {
        /// The file.
        path: PathBuf,
    },
    /// Two documents have one name.
    #[error(
        "lines {first} and {second} of the input both have the id {id}; give \
         each an id of its own, or leave them out"
    )]
    DuplicateId {
        /// The id, as JSON.
        id: String,
        /// The line that has it first.
        first: usize,
        /// The line that has it again.
        second: usize,
    },
    /// The output cannot be opened or read.
    #[error("{}: the output cannot be opened: {error}", path.display())]
    Open {
        /// The output.
        path: PathBuf,
        /// What the operating system said.
        error: io::Error,
    },
    /// The output is a directory, a device or a pipe.
    #[error(
        "{}: the output must be a file, since it is read when the work is \
         resumed",
        path.display()
    )]
    NotAFile {
        /// The output.
        path: PathBuf,
    },
    /// Somebody else is at work on the output.
    #[error(
        "{}: another process is writing to it; wait for it, or name another \
         output",
        path.display()
    )]
    Busy {
        /// The output.
        path: PathBuf,
    },
    /// The output has a line that was not written here.
    #[error(
        "{}: line {line} is not the line of a document, so the file is left \
         as it is; name another output, or move the file away",
        path.display()
    )]
    NotOurs {
        /// The output.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
    },
    /// The output belongs to a run that was asked for something else.
    #[error(
        "{}: line {line} was made with other {what}, and lines of two kinds \
         are not mixed; name another output, or run as before",
        path.display()
    )]
    OtherRun {
        /// The output.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What differs: "schema", "model", "options", or several of these.
        what: String,
    },
    /// A line cannot be written.
    #[error(
        "{}: the line of {document} cannot be written: {error}; the \
         {n_lines} lines before it are whole, and the same command goes on \
         from there",
        path.display()
    )]
    Write {
        /// The output.
        path: PathBuf,
        /// The name of the document.
        document: String,
        /// How many lines are there.
        n_lines: usize,
        /// What the operating system said.
        error: io::Error,
    },
    /// Lines that were written may not be on the disk.
    #[error(
        "{}: the lines may not all be on the disk: {error}; the same command \
         goes on from those that are",
        path.display()
    )]
    Sync {
        /// The output.
        path: PathBuf,
        /// What the operating system said.
        error: io::Error,
    },
    /// The output cannot be written anew without the lines of failures.
    #[error(
        "{}: the lines of failures cannot be taken out: {error}; the file is \
         as it was",
        path.display()
    )]
    Rewrite {
        /// The output.
        path: PathBuf,
        /// What the operating system said.
        error: io::Error,
    },
}
