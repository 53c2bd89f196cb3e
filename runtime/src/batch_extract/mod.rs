//! Many documents, one after the other, with an output that survives.
//!
//! [`run`] has each [`Document`] extracted and writes one line of JSON for it
//! into a [`Journal`], a file that only ever grows by whole lines. Whatever
//! ends the work (Ctrl-C, a kill, a full disk), the same call goes on from
//! there: what has a line is not done again, and a last line that was torn in
//! the middle is cut off first. When all is done there is exactly one line a
//! document.
//!
//! How a text is extracted is a closure, so nothing here knows a model.
//!
//! # Example
//!
//! ```
//! use maskwright::batch_extract::{
//!     Document, Extracted, Journal, Outcome, RunId, run,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let documents = Document::from_jsonl(br#"
//!     {"id": "a", "text": "two words"}
//!     {"id": "b", "text": "and three more"}
//! "#)?;
//! let mut extract = |text: &str| {
//!     let value = text.split(' ').count().into();
//!     Outcome::Extracted(Extracted::new(value))
//! };
//! let path = folder.path().join("out.jsonl");
//! let id = RunId::of("words", "no model", "no options");
//! let mut journal = Journal::open(&path, id.clone())?;
//! let summary = run(&documents, &mut journal, &mut extract, &mut |_| ())?;
//! assert_eq!(summary.n_extracted, 2);
//! drop(journal);
//!
//! // A second time there is nothing to do.
//! let mut journal = Journal::open(&path, id)?;
//! let summary = run(&documents, &mut journal, &mut extract, &mut |_| ())?;
//! assert_eq!((summary.n_before, summary.n_extracted), (2, 0));
//! # Ok(())
//! # }
//! ```
//!
//! # What a line is
//!
//! ```json
//! {"run": {"schema": "0f…", "model": "4c…", "options": "9a…"},
//!  "file": "a.txt", "value": {"stars": 5}, "finish_reason": "grammar",
//!  "prompt_tokens": 200, "output_tokens": 12, "ms": 840}
//! ```
//!
//! or, with `error` in place of `value`,
//!
//! ```json
//! {"run": {…}, "file": "b.txt",
//!  "error": {"kind": "not_utf8", "message": "…"}}
//! ```
//!
//! `run` says what the line was made with; lines of different runs are never
//! mixed in one file, and a file that has other lines is left as it is.
//!
//! # The road not taken
//!
//! A header would say once what `run` says on every line. But then a reader
//! of JSON lines meets a line that is no document, and lines that were
//! copied elsewhere have lost where they came from. A file beside the output
//! can be lost, or left behind by an older output of the same name.

mod document;
mod error;
mod journal;
mod run;

#[cfg(test)]
mod tests;

pub use document::{Document, MAX_BYTES, Name};
pub use error::BatchError;
pub use journal::{Extracted, Journal, Outcome, Problem, RunId};
pub use run::{Event, Failure, Summary, run};
