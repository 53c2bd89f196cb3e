//! The run over MaskBench: engines in turn, schema by schema.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;
use tokenizers::Tokenizer;

use crate::clock::Clock;
use crate::corpus::{self, Case, Selection};
use crate::engine::{Engine, LlGuidance, Maskwright};
use crate::measure::measure;
use crate::memory::{self, Handover};
use crate::options::Options;
use crate::places;
use crate::progress::Progress;
use crate::report::{self, Column};
use crate::slowest::{self, Tools};
use crate::tokenizer::{self, Shape};

/// The engines by the names of `--engine`.
const ENGINES: [&str; 2] = ["llguidance", "maskwright"];

fn load_engine(
    name: &str,
    path: &Path,
    shape: Shape,
) -> Result<Box<dyn Engine>, String> {
    let start = Instant::now();
    let engine: Box<dyn Engine> = match name {
        "maskwright" => Box::new(Maskwright::load(path, shape)?),
        "llguidance" => Box::new(LlGuidance::load(path, shape)?),
        _ => return Err(format!("no engine is named {name}")),
    };
    let time = start.elapsed().as_millis();
    eprintln!("{}: vocabulary loaded in {time} ms", engine.name());
    Ok(engine)
}

fn tokenizer_path(options: &Options) -> Result<PathBuf, String> {
    match &options.tokenizer {
        Some(path) => Ok(path.clone()),
        None => tokenizer::default_file(),
    }
}

/// Runs the comparison and prints its tables.
///
/// # Errors
///
/// What could not be read, loaded or started.
pub fn run(options: &Options) -> Result<(), String> {
    let files = if options.corpus.is_empty() {
        corpus::default_files()?
    } else {
        options.corpus.clone()
    };
    let selection =
        Selection { every: options.every, name: options.filter.clone() };
    let records = corpus::select(&files, &selection)?;
    let path = tokenizer_path(options)?;
    let (tokenizer, shape) =
        tokenizer::load(&path, options.end_token, options.width)?;
    let mut engines = Vec::new();
    for name in ENGINES {
        if options.engine.as_deref().is_none_or(|only| only == name) {
            engines.push((name, load_engine(name, &path, shape)?));
        }
    }
    if engines.is_empty() {
        return Err(format!("--engine is one of {}", ENGINES.join(", ")));
    }
    let clock = Clock::calibrated();
    eprintln!(
        "clocks cost {} ns (processor) and {} ns (wall), subtracted; \
         {} schemas, end token {}, {} logits",
        clock.cost.cpu,
        clock.cost.wall,
        records.len(),
        shape.end_token,
        shape.width
    );
    let setting = Setting { records, tokenizer, shape, clock };
    let mut handover =
        if options.memory { Some(Handover::create()?) } else { None };
    let mut columns = setting.measure_all(
        &engines,
        handover.as_mut(),
        options.with_places(),
    )?;
    if let Some(handover) = &mut handover {
        for ((name, _), column) in engines.iter().zip(&mut columns) {
            eprintln!("peak memory of {name}");
            let arguments = child_arguments(&path, shape);
            column.peak_rss_mb = Some(handover.peak_mb(name, &arguments)?);
        }
    }
    let find = |name: &str| {
        let at = engines.iter().position(|(found, _)| *found == name);
        at.map(|at| (&columns[at], &*engines[at].1))
    };
    let (ours, peer) = (find("maskwright"), find("llguidance"));
    println!("\n{}\n", setting.heading(&path));
    let summary = report::print(
        ours.map(|(column, _)| column),
        peer.map(|(column, _)| column),
        setting.records.len(),
    );
    setting.print_details(options, ours.or(peer), ours.and(peer))?;
    if options.summary_json {
        println!("\n{summary}");
    }
    Ok(())
}

/// What stays the same throughout a run.
struct Setting {
    records: Vec<Value>,
    tokenizer: Tokenizer,
    shape: Shape,
    clock: Clock,
}

impl Setting {
    fn case(&self, index: usize) -> Result<Case, String> {
        corpus::prepare(&self.records[index], &self.tokenizer)
    }

    /// The first engine of a schema finds colder processor caches than the
    /// second, so they take turns at being first.
    fn measure_all(
        &self,
        engines: &[(&str, Box<dyn Engine>)],
        mut handover: Option<&mut Handover>,
        with_places: bool,
    ) -> Result<Vec<Column>, String> {
        let mut words = vec![0; self.shape.words()];
        let mut columns: Vec<Column> = engines
            .iter()
            .map(|(_, engine)| Column {
                name: engine.name(),
                outcomes: Vec::new(),
                peak_rss_mb: None,
            })
            .collect();
        let progress = Progress::start(self.records.len());
        for index in 0..self.records.len() {
            let case = self.case(index)?;
            if let Some(handover) = &mut handover {
                handover.push(&case)?;
            }
            for turn in 0..engines.len() {
                let at = (index + turn) % engines.len();
                let (name, engine) = &engines[at];
                progress.at(index, name, &case.name);
                let outcome = measure(
                    &**engine,
                    &case,
                    &self.clock,
                    &mut words,
                    with_places,
                );
                columns[at].outcomes.push(outcome);
            }
        }
        progress.finish();
        Ok(columns)
    }

    fn print_details(
        &self,
        options: &Options,
        first: Option<(&Column, &dyn Engine)>,
        other: Option<(&Column, &dyn Engine)>,
    ) -> Result<(), String> {
        let Some((column, engine)) = first else { return Ok(()) };
        let tools = Tools {
            case: &|index| self.case(index),
            tokenizer: &self.tokenizer,
            clock: &self.clock,
            n_words: self.shape.words(),
        };
        if let Some(path) = &options.dump {
            let names: Vec<&str> = self
                .records
                .iter()
                .map(|record| record["name"].as_str().unwrap_or_default())
                .collect();
            let other = other.map(|(column, _)| column);
            places::dump(column, other, &names, path)?;
        }
        if options.places {
            places::print(column, other.map(|(column, _)| column));
        }
        if options.failures > 0 {
            slowest::print_failures(column, options.failures, &tools)?;
        }
        if options.slowest > 0 {
            let other = other.map(|(column, _)| column);
            slowest::print(column, other, options.slowest, engine, &tools)?;
        }
        Ok(())
    }

    fn heading(&self, path: &Path) -> String {
        format!(
            "MaskBench, {} schemas, {} ({} logits), one thread; processor \
             time of the thread unless it says wall, the clock's {} ns \
             subtracted.",
            self.records.len(),
            path.file_name().unwrap_or_default().to_string_lossy(),
            self.shape.width,
            self.clock.cost.cpu
        )
    }
}

fn child_arguments(path: &Path, shape: Shape) -> Vec<String> {
    vec![
        "--tokenizer".to_owned(),
        path.display().to_string(),
        "--end-token".to_owned(),
        shape.end_token.to_string(),
        "--width".to_owned(),
        shape.width.to_string(),
    ]
}

/// The process that a run starts to learn an engine's peak memory.
///
/// # Errors
///
/// Names the option that is missing or the file that cannot be read.
pub fn memory_child(options: &Options) -> Result<(), String> {
    let missing = |name: &str| format!("memory-child needs {name}");
    let name = options.engine.as_deref().ok_or(missing("--engine"))?;
    let path = options.tokenizer.as_deref().ok_or(missing("--tokenizer"))?;
    let prepared = options.prepared.as_deref().ok_or(missing("--prepared"))?;
    let end_token = options.end_token.ok_or(missing("--end-token"))?;
    let width = options.width.ok_or(missing("--width"))?;
    let shape = Shape { end_token, width };
    let engine = load_engine(name, path, shape)?;
    let mut words = vec![0; shape.words()];
    println!("{}", memory::child(&*engine, prepared, &mut words)?);
    Ok(())
}
