//! The work itself: each document that has no line gets one.

use super::{
    document::{Document, Name},
    error::BatchError,
    journal::{Journal, Outcome, Problem},
};

/// What is going on.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The work begins.
    Start {
        /// How many documents there are.
        n_documents: usize,
        /// How many of them have a line already.
        n_before: usize,
    },
    /// A document is about to be read.
    Begin(&'a Name),
    /// A document has its line, or was cancelled.
    End {
        /// The document.
        name: &'a Name,
        /// What became of it.
        outcome: &'a Outcome,
        /// How many documents have a line.
        n_done: usize,
    },
}

/// What came of the work.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// How many documents there are.
    pub n_documents: usize,
    /// How many of them had a line before.
    pub n_before: usize,
    /// How many values were extracted now.
    pub n_extracted: usize,
    /// The documents without a value, those of earlier runs too.
    pub failures: Vec<Failure>,
    /// Whether the work was broken off.
    pub is_cancelled: bool,
}

impl Summary {
    /// Returns how many documents have a line.
    pub fn n_done(&self) -> usize {
        let new = self.failures.iter().filter(|it| !it.was_before).count();
        self.n_before + self.n_extracted + new
    }
}

/// A document without a value.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The document.
    pub name: Name,
    /// Why.
    pub problem: Problem,
    /// Whether it failed in an earlier run, and was not done again.
    pub was_before: bool,
}

/// Has each document extracted that has no line in `journal`, and writes its
/// line. `watch` is told what is going on.
///
/// A document that fails has a line that says why, and the rest goes on.
/// [`Outcome::Cancelled`] ends the work.
///
/// # Errors
///
/// Fails when a line cannot be written.
pub fn run(
    documents: &[Document],
    journal: &mut Journal,
    extract: &mut dyn FnMut(&str) -> Outcome,
    watch: &mut dyn FnMut(Event<'_>),
) -> Result<Summary, BatchError> {
    let is_done = |it: &&Document| journal.has(it.name());
    let n_before = documents.iter().filter(is_done).count();
    let n_documents = documents.len();
    let mut summary = Summary { n_documents, n_before, ..Summary::default() };
    summary.failures = failures_before(documents, journal);
    watch(Event::Start { n_documents, n_before });
    for document in documents {
        let name = document.name();
        if journal.has(name) {
            continue;
        }
        watch(Event::Begin(name));
        let outcome = match document.read() {
            Ok(text) => extract(&text),
            Err(problem) => Outcome::Failed(problem),
        };
        journal.write(name, &outcome)?;
        match &outcome {
            Outcome::Extracted(_) => summary.n_extracted += 1,
            Outcome::Failed(problem) => summary.failures.push(Failure {
                name: name.clone(),
                problem: problem.clone(),
                was_before: false,
            }),
            Outcome::Cancelled => summary.is_cancelled = true,
        }
        let n_done = summary.n_done();
        watch(Event::End { name, outcome: &outcome, n_done });
        if summary.is_cancelled {
            break;
        }
    }
    journal.sync()?;
    Ok(summary)
}

fn failures_before(documents: &[Document], journal: &Journal) -> Vec<Failure> {
    let failures: std::collections::BTreeMap<&Name, &Problem> =
        journal.failures().collect();
    let failed = |document: &Document| {
        let problem = failures.get(document.name())?;
        Some(Failure {
            name: document.name().clone(),
            problem: (*problem).clone(),
            was_before: true,
        })
    };
    documents.iter().filter_map(failed).collect()
}
