//! `extract` with many texts: a line of JSON for each, in a file that goes on
//! where it stopped.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal, Read, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::Instant,
};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use maskwright::{
    batch_extract::{
        BatchError, Document, Event, Extracted, Failure, Journal, Outcome,
        Problem, RunId, Summary, run as run_batch,
    },
    extract::{ExtractError, ExtractOptions, Extractor},
    generate::Generator,
    model::{LoadedModel, content_digest},
};
use serde_json::{Value, json};

use crate::{
    extract::ExtractArgs,
    fail::{Code, Fail},
    generate::on_ctrl_c,
};

/// How many failures are named at the end.
const MAX_NAMED: usize = 20;

/// Many texts, and where their documents go.
#[derive(Args, Clone, Debug)]
pub(crate) struct ManyArgs {
    /// A directory of texts: each of its files, by name; files in
    /// directories below it, and those whose names begin with a dot, are left
    /// out
    #[arg(long, value_name = "DIR", group = "source", requires = "output")]
    input_dir: Option<PathBuf>,
    /// A file of texts, JSON lines such as {"id": 1, "text": "…"}, where `id`
    /// may be left out; `-` is standard input
    #[arg(long, value_name = "FILE", group = "source", requires = "output")]
    input_jsonl: Option<PathBuf>,
    /// Where a line of JSON is written for each of the texts. If it is there
    /// already, texts that have a line are not done again
    #[arg(long, value_name = "FILE", conflicts_with = "input")]
    output: Option<PathBuf>,
    /// Does texts again that failed before
    #[arg(long, conflicts_with = "input")]
    retry_failed: bool,
}

/// Extracts a document from each of the texts.
pub(crate) fn run(
    args: &ExtractArgs,
    documents: &[Document],
    schema: &Value,
    options: &ExtractOptions,
    loaded: LoadedModel,
) -> Result<(), Fail> {
    let many = &args.many;
    let output = output(many)?;
    let digest = content_digest(&loaded.path).map_err(Fail::model)?;
    let id = RunId::of(&schema.to_string(), &digest, &format!("{options:?}"));
    let mut journal = Journal::open(output, id)?;
    if many.retry_failed {
        journal.forget_failures()?;
    }
    let mut generator = Generator::new(loaded).map_err(Fail::model)?;
    let extractor =
        Extractor::new(&generator, schema, options)?.interrupt(on_ctrl_c()?);
    let mut extract = |text: &str| one(&extractor, &mut generator, text);
    let mut progress = Progress::default();
    let summary =
        run_batch(documents, &mut journal, &mut extract, &mut |event| {
            progress.show(event);
        });
    progress.end();
    report(&summary?, output, args.json_output)
}

fn output(args: &ManyArgs) -> Result<&Path, Fail> {
    args.output
        .as_deref()
        .ok_or_else(|| Fail::usage("name an --output".to_owned()))
}

/// Reads the texts.
pub(crate) fn documents(args: &ExtractArgs) -> Result<Vec<Document>, Fail> {
    let args = &args.many;
    let output = output(args)?;
    if let Some(directory) = &args.input_dir {
        return Ok(Document::from_directory(directory, output)?);
    }
    let Some(file) = &args.input_jsonl else { return Ok(Vec::new()) };
    let bytes = if file == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    let bytes = bytes.map_err(|error| Fail::file(file, &error))?;
    Ok(Document::from_jsonl(&bytes)?)
}

/// Extracts from one text, which must never take the others with it.
fn one(
    extractor: &Extractor,
    generator: &mut Generator,
    text: &str,
) -> Outcome {
    let started = Instant::now();
    let made = catch_unwind(AssertUnwindSafe(|| {
        extractor.extract(generator, text.trim())
    }));
    match made {
        Ok(Ok(extraction)) => {
            let generation = &extraction.generation;
            Outcome::Extracted(Extracted {
                finish_reason: Some(generation.finish_reason.name()),
                n_prompt: generation.n_prompt,
                n_output: generation.tokens.len(),
                time: started.elapsed(),
                value: extraction.value,
            })
        }
        Ok(Err(ExtractError::Cancelled)) => Outcome::Cancelled,
        Ok(Err(error)) => Outcome::Failed(error.into()),
        Err(_) => {
            generator.forget();
            let message = "a defect of Maskwright; please report this text";
            Outcome::Failed(Problem::new("internal", message))
        }
    }
}

/// A bar on a terminal, a line for each document elsewhere.
#[derive(Default)]
struct Progress {
    bar: Option<ProgressBar>,
    n_documents: usize,
}

impl Progress {
    fn show(&mut self, event: Event<'_>) {
        match event {
            Event::Start { n_documents, n_before } => {
                self.n_documents = n_documents;
                if io::stderr().is_terminal() {
                    self.bar = Some(bar(n_documents, n_before));
                } else if n_before > 0 {
                    say(&format!("{n_before} of {n_documents} are done"));
                }
            }
            Event::Begin(name) => {
                if let Some(bar) = &self.bar {
                    bar.set_message(name.to_string());
                }
            }
            Event::End { name, outcome, n_done } => {
                let line = match outcome {
                    Outcome::Extracted(it) => format!(
                        "{name}: {} tokens, {:.1} s",
                        it.n_output,
                        it.time.as_secs_f64()
                    ),
                    Outcome::Failed(problem) => {
                        format!("{name}: error: {}", problem.message)
                    }
                    Outcome::Cancelled => return,
                };
                let n_documents = self.n_documents;
                match &self.bar {
                    None => say(&format!("{n_done}/{n_documents} {line}")),
                    Some(bar) => {
                        bar.set_position(n_done as u64);
                        if matches!(outcome, Outcome::Failed(_)) {
                            bar.suspend(|| say(&line));
                        }
                    }
                }
            }
        }
    }

    fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn bar(n_documents: usize, n_before: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(
        Some(n_documents as u64),
        ProgressDrawTarget::stderr(),
    );
    let template = "[{bar:30}] {pos}/{len} {eta} {wide_msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_position(n_before as u64);
    // What was done before took no time now.
    bar.reset_eta();
    bar
}

/// Writes a line. A closed stream must not end the work.
fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Says what came of the work; what failed is the command's failure.
fn report(
    summary: &Summary,
    output: &Path,
    is_json: bool,
) -> Result<(), Fail> {
    let output = output.display();
    let (n_done, n_documents) = (summary.n_done(), summary.n_documents);
    let n_failed = summary.failures.len();
    let mut kinds = BTreeMap::new();
    for failure in &summary.failures {
        *kinds.entry(&*failure.problem.kind).or_insert(0_usize) += 1;
    }
    if is_json {
        let line = json!({
            "documents": n_documents,
            "done": n_done,
            "done_before": summary.n_before,
            "extracted": summary.n_extracted,
            "failed": n_failed,
            "failed_by_kind": kinds,
            "cancelled": summary.is_cancelled,
        });
        writeln!(io::stdout(), "{line}").map_err(Fail::write)?;
    }
    for failure in summary.failures.iter().take(MAX_NAMED) {
        let Failure { name, problem, was_before } = failure;
        let when = if *was_before { " (before)" } else { "" };
        say(&format!("failed{when}: {name}: {}", problem.message));
    }
    if n_failed > MAX_NAMED {
        say(&format!("failed: {} more", n_failed - MAX_NAMED));
    }
    let kinds = kinds.iter().map(|(kind, n)| format!("{n} {kind}"));
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    if summary.is_cancelled {
        return Err(Fail::new(
            Code::Cancelled,
            format!(
                "cancelled: {n_done} of {n_documents} documents have a line \
                 in {output}; the same command goes on from there"
            ),
        ));
    }
    if n_failed > 0 {
        return Err(Fail::new(
            Code::Documents,
            format!(
                "{n_failed} of {n_documents} documents failed ({kinds}); \
                 their lines in {output} say why, and --retry-failed does \
                 them again"
            ),
        ));
    }
    say(&format!("{n_documents} documents are in {output}"));
    Ok(())
}

impl From<BatchError> for Fail {
    fn from(error: BatchError) -> Fail {
        let code = match error {
            BatchError::DuplicateId { .. } | BatchError::FileName { .. } => {
                Code::Usage
            }
            _ => Code::File,
        };
        Fail::new(code, error.to_string())
    }
}
