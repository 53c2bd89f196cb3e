//! The run over MaskBench: engines in turn, schema by schema.

use std::path::Path;

use serde_json::Value;
use tokenizers::Tokenizer;

use crate::clock::Clock;
use crate::corpus::{self, Case};
use crate::engine::{self, Engine};
use crate::measure::{ORDERS, Plan, measure};
use crate::memory::{self, Handover};
use crate::options::Options;
use crate::places;
use crate::progress::Progress;
use crate::report::{self, Column, Columns};
use crate::slowest::{self, Tools};
use crate::tokenizer::{self, Shape};
use crate::xgrammar;

/// Runs the comparison and prints its tables.
///
/// # Errors
///
/// What could not be read, loaded or started.
pub fn run(options: &Options) -> Result<(), String> {
    let records = options.records(1)?;
    let path = options.tokenizer_path()?;
    let (tokenizer, shape) =
        tokenizer::load(&path, options.end_token, options.width)?;
    let engines = engine::load_wanted(options, &path, shape)?;
    if engines.is_empty() {
        return Err(format!(
            "--engine is one of {}",
            engine::NAMES.join(", ")
        ));
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
    let is_handed_over = options.memory || options.xgrammar;
    let mut handover =
        if is_handed_over { Some(Handover::create()?) } else { None };
    let mut columns =
        setting.measure_all(&engines, handover.as_mut(), options)?;
    let xgrammar = match &mut handover {
        Some(handover) if options.xgrammar => {
            xgrammar::column(handover.path()?, &path, shape, options)?
        }
        _ => None,
    };
    if let Some(handover) = handover.as_mut().filter(|_| options.memory) {
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
    let columns = Columns {
        ours: ours.map(|(column, _)| column),
        peer: peer.map(|(column, _)| column),
        xgrammar: xgrammar.as_ref(),
    };
    let summary = report::print(columns, setting.records.len());
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
        options: &Options,
    ) -> Result<Vec<Column>, String> {
        let mut words = vec![0; self.shape.words()];
        let mut columns: Vec<Column> = engines
            .iter()
            .map(|(_, engine)| Column {
                name: engine.name().to_owned(),
                main: engine.main_pass(),
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
                let main = [engine.main_pass()];
                let plan = Plan {
                    clock: &self.clock,
                    passes: if options.main_only {
                        &main
                    } else {
                        &ORDERS[index % ORDERS.len()]
                    },
                    with_places: options.with_places(),
                };
                let outcome = measure(&**engine, &case, &plan, &mut words);
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
             subtracted.\n\nCaches are empty at each schema. *Maskwright*: \
             the tests of a schema are matchers of one compiled grammar, \
             as a user's requests would be, so that later ones find the \
             walks of earlier ones. *Maskwright, each test cold*: a grammar \
             compiled anew for each test, which finds nothing. *llguidance*: \
             a cold copy (`deep_clone`) for each test, as in its own \
             benchmark. Tables below it have both engines share.",
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
    let engine = engine::load(name, path, shape)?;
    let mut words = vec![0; shape.words()];
    println!("{}", memory::child(&*engine, prepared, &mut words)?);
    Ok(())
}
