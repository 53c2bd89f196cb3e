//! The command line.

use std::path::PathBuf;

use lexopt::prelude::*;
use serde_json::Value as Record;

use crate::corpus::{self, Selection};
use crate::tokenizer;

/// What `--help` prints.
pub const HELP: &str = "\
maskwright-bench COMMAND [options]

maskbench           masks and compiles over MaskBench, beside the peers
warm                states of the same documents with everything known
depth               flatness in the depth of nesting and the length of output
batch               64 sequences on a pool of threads
load                the vocabulary: time and memory
grammars            context-free grammars in GBNF and in Lark, long texts
patterns            hard regular expressions, along random texts
pipeline            a row of logits to a token, beside candle's
                    LogitsProcessor (needs --features candle)
generator           the bundled generator: tokens per second, alone, in
                    batches, under grammars, and beside llama.cpp

  --tokenizer FILE  a tokenizer.json (default: Llama-3.1, fetched once)
  --end-token ID    the end token, where the file's tokens do not tell
  --width N         the width of the logits, where it is not their number
  --engine NAME     only this engine: maskwright or llguidance (not batch)
  --summary-json    end with one line of JSON (not grammars, patterns)

maskbench, warm, batch:
  --every N         each Nth schema of the corpus (maskbench: all; warm: each
                    20th; batch: each 64th)
  --quick           the same as --every 20
  --corpus FILE...  MaskBench files (default: corpora/maskbench/*.jsonl below
                    $MASKWRIGHT_SHARED or ../shared)
  --filter NAME     only schemas whose name contains NAME (also: grammars)

maskbench:
  --slowest N       also print the N slowest masks and compiles, with their
                    states (also: warm, batch, grammars)
  --main-only       only the passes of the main columns: no cold tests and no
                    shared caches
  --places          also print what masks cost by kind of state
  --dump FILE       also write a line for each mask, tab-separated (grammars:
                    the work, for xgrammar_grammars.py)
  --failures N      also print N schemas each that did not compile or that
                    decided an instance otherwise than MaskBench says
  --no-memory       do not measure peak memory (each engine runs once more,
                    in a process of its own)
  --xgrammar        add a column for XGrammar, if Python can import it
  --python FILE     that Python (default: $PYTHON, or python3)
  --patience N      give XGrammar N seconds a schema (default: 20)

generator:
  --model MODEL     a GGUF file, a directory or a repository (default: the
                    model of the command)
  --python FILE     the Python that has llama-cpp-python, if there is one
  --engine NAME     leave llama.cpp out: maskwright";

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Print the help.
    Help,
    /// The comparison over MaskBench.
    MaskBench,
    /// Known states.
    Warm,
    /// Deep nesting and long outputs.
    Depth,
    /// Many sequences on a pool.
    Batch,
    /// The vocabulary.
    Load,
    /// Print the comparison of context-free grammars.
    Grammars,
    /// Print the comparison of regular expressions.
    Patterns,
    /// A row of logits to a token.
    Pipeline,
    /// The bundled generator.
    Generator,
    /// One engine alone, for its peak memory (started by `maskbench`).
    MemoryChild,
    /// One engine's load (started by `load`).
    LoadChild,
}

/// The command line, read.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub struct Options {
    /// What to run.
    pub command: Command,
    /// Keep each Nth schema; each command has a default.
    pub every: Option<usize>,
    /// The corpus files; empty for the default.
    pub corpus: Vec<PathBuf>,
    /// The tokenizer file.
    pub tokenizer: Option<PathBuf>,
    /// The model of `generator`.
    pub model: Option<String>,
    /// The end token.
    pub end_token: Option<u32>,
    /// The width of the logits.
    pub width: Option<u32>,
    /// Part of the schemas' names.
    pub filter: Option<String>,
    /// Only this engine.
    pub engine: Option<String>,
    /// How many slow masks and compiles to print.
    pub slowest: usize,
    /// How many failures of each kind to print.
    pub failures: usize,
    /// Print costs by kind of state.
    pub places: bool,
    /// Where to write a line for each mask.
    pub dump: Option<PathBuf>,
    /// Only the passes of the main columns.
    pub main_only: bool,
    /// Measure peak memory.
    pub memory: bool,
    /// Add a column for XGrammar.
    pub xgrammar: bool,
    /// The Python that has XGrammar.
    pub python: Option<PathBuf>,
    /// Seconds that XGrammar gets for a schema.
    pub patience: u64,
    /// End with a line of JSON.
    pub summary_json: bool,
    /// The prepared file of a memory child.
    pub prepared: Option<PathBuf>,
}

impl Options {
    /// Whether the state of every mask is wanted.
    pub fn with_places(&self) -> bool {
        self.places || self.dump.is_some()
    }

    /// The tokenizer's file: the one that was named, or the default.
    ///
    /// # Errors
    ///
    /// Says why the default could not be fetched.
    pub fn tokenizer_path(&self) -> Result<PathBuf, String> {
        match &self.tokenizer {
            Some(path) => Ok(path.clone()),
            None => tokenizer::default_file(),
        }
    }

    /// The chosen schemas of the corpus: each Nth, by default each of
    /// `every`.
    ///
    /// # Errors
    ///
    /// Says what could not be read.
    pub fn records(&self, every: usize) -> Result<Vec<Record>, String> {
        let files = if self.corpus.is_empty() {
            corpus::default_files()?
        } else {
            self.corpus.clone()
        };
        let every = self.every.unwrap_or(every);
        let selection = Selection { every, name: self.filter.clone() };
        corpus::select(&files, &selection)
    }

    /// Whether `--engine` leaves this one in.
    pub fn wants(&self, engine: &str) -> bool {
        self.engine.as_deref().is_none_or(|only| only == engine)
    }

    /// Reads the process's arguments.
    ///
    /// # Errors
    ///
    /// Names the argument that is not understood.
    pub fn from_command_line() -> Result<Options, String> {
        parse(lexopt::Parser::from_env()).map_err(|error| {
            format!("{error} (maskwright-bench --help lists the options)")
        })
    }
}

#[allow(clippy::too_many_lines, reason = "a line an option")]
fn parse(mut parser: lexopt::Parser) -> Result<Options, lexopt::Error> {
    let mut options = Options {
        command: Command::Help,
        every: None,
        corpus: Vec::new(),
        tokenizer: None,
        model: None,
        end_token: None,
        width: None,
        filter: None,
        engine: None,
        slowest: 0,
        failures: 0,
        places: false,
        dump: None,
        main_only: false,
        memory: true,
        xgrammar: false,
        python: None,
        patience: 20,
        summary_json: false,
        prepared: None,
    };
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => {
                options.command = Command::Help;
                return Ok(options);
            }
            Value(name) if options.command == Command::Help => {
                options.command = match name.to_str() {
                    Some("maskbench") => Command::MaskBench,
                    Some("warm") => Command::Warm,
                    Some("depth") => Command::Depth,
                    Some("batch") => Command::Batch,
                    Some("load") => Command::Load,
                    Some("grammars") => Command::Grammars,
                    Some("patterns") => Command::Patterns,
                    Some("pipeline") => Command::Pipeline,
                    Some("generator") => Command::Generator,
                    Some("memory-child") => Command::MemoryChild,
                    Some("load-child") => Command::LoadChild,
                    _ => return Err(Value(name).unexpected()),
                };
            }
            Long("every") => options.every = Some(parser.value()?.parse()?),
            Long("quick") => options.every = Some(20),
            Long("corpus") => {
                let files = parser.values()?;
                options.corpus.extend(files.map(PathBuf::from));
            }
            Long("tokenizer") => {
                options.tokenizer = Some(parser.value()?.into());
            }
            Long("model") => options.model = Some(parser.value()?.string()?),
            Long("end-token") => {
                options.end_token = Some(parser.value()?.parse()?);
            }
            Long("width") => options.width = Some(parser.value()?.parse()?),
            Long("filter") => {
                options.filter = Some(parser.value()?.string()?);
            }
            Long("engine") => {
                options.engine = Some(parser.value()?.string()?);
            }
            Long("slowest") => options.slowest = parser.value()?.parse()?,
            Long("failures") => options.failures = parser.value()?.parse()?,
            Long("places") => options.places = true,
            Long("dump") => options.dump = Some(parser.value()?.into()),
            Long("main-only") => options.main_only = true,
            Long("xgrammar") => options.xgrammar = true,
            Long("python") => options.python = Some(parser.value()?.into()),
            Long("patience") => options.patience = parser.value()?.parse()?,
            Long("no-memory") => options.memory = false,
            Long("summary-json") => options.summary_json = true,
            Long("prepared") => {
                options.prepared = Some(parser.value()?.into());
            }
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(options)
}
