//! The command line.

use std::path::PathBuf;

use lexopt::prelude::*;

/// What `--help` prints.
pub const HELP: &str = "\
maskwright-bench maskbench [options]
  --every N         each Nth schema of the corpus
  --quick           the same as --every 20
  --corpus FILE...  MaskBench files (default: corpora/maskbench/*.jsonl below
                    $MASKWRIGHT_SHARED or ../shared)
  --tokenizer FILE  a tokenizer.json (default: Llama-3.1, fetched once)
  --end-token ID    the end token, where the file's tokens do not tell
  --width N         the width of the logits, where it is not their number
  --filter NAME     only schemas whose name contains NAME
  --engine NAME     only this engine: maskwright or llguidance
  --slowest N       also print the N slowest masks and compiles
  --places          also print what masks cost by kind of state
  --dump FILE       also write a line for each mask, tab-separated
  --failures N      also print N schemas each that did not compile or that
                    decided an instance otherwise than MaskBench says
  --no-memory       do not measure peak memory (each engine runs once more,
                    in a process of its own)
  --summary-json    end with one line of JSON
maskwright-bench grammars [--tokenizer FILE] [--filter NAME] [--engine NAME]
                    [--slowest N] [--dump FILE]
                    grammars in GBNF and in Lark, over long texts; --dump
                    writes them for xgrammar_grammars.py
maskwright-bench patterns [--tokenizer FILE]
                    hard regular expressions, along random texts";

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Print the help.
    Help,
    /// The comparison over MaskBench.
    MaskBench,
    /// Print the comparison of context-free grammars.
    Grammars,
    /// Print the comparison of regular expressions.
    Patterns,
    /// One engine alone, for its peak memory (started by `maskbench`).
    MemoryChild,
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
    /// Keep each Nth schema.
    pub every: usize,
    /// The corpus files; empty for the default.
    pub corpus: Vec<PathBuf>,
    /// The tokenizer file.
    pub tokenizer: Option<PathBuf>,
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
    /// Measure peak memory.
    pub memory: bool,
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

fn parse(mut parser: lexopt::Parser) -> Result<Options, lexopt::Error> {
    let mut options = Options {
        command: Command::Help,
        every: 1,
        corpus: Vec::new(),
        tokenizer: None,
        end_token: None,
        width: None,
        filter: None,
        engine: None,
        slowest: 0,
        failures: 0,
        places: false,
        dump: None,
        memory: true,
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
                    Some("grammars") => Command::Grammars,
                    Some("patterns") => Command::Patterns,
                    Some("memory-child") => Command::MemoryChild,
                    _ => return Err(Value(name).unexpected()),
                };
            }
            Long("every") => options.every = parser.value()?.parse()?,
            Long("quick") => options.every = 20,
            Long("corpus") => {
                let files = parser.values()?;
                options.corpus.extend(files.map(PathBuf::from));
            }
            Long("tokenizer") => {
                options.tokenizer = Some(parser.value()?.into());
            }
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
