//! Context-free grammars: the same grammar in GBNF and in the peer's Lark
//! dialect, over one long text each.
//!
//! A text is read once, from a cold start: what its masks have in common is
//! built on the way, as it would be for a user. The first and the last tenth
//! are compared, to see whether a token costs more the longer the text is.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokenizers::Tokenizer;

use crate::clock::{Clock, Span};
use crate::engine::{Engine, LlGuidance, Maskwright, Source};
use crate::options::Options;
use crate::stats::{Distribution, micros, short};
use crate::tokenizer::{self, Shape};

/// The grammars, in files of these names.
const GRAMMARS: [&str; 5] =
    ["arithmetic", "json", "clike", "sql", "ambiguous"];

/// How many tokens of a text are read.
const N_TOKENS: usize = 10_000;

/// How long an engine may take for a text.
const PATIENCE: Duration = Duration::from_secs(20);

/// The state of a mask is kept where it took more nanoseconds.
const SLOW: u64 = 100_000;

/// A grammar, for each engine, and a text.
struct Grammar {
    name: &'static str,
    gbnf: String,
    lark: String,
    tokens: Vec<u32>,
}

impl Grammar {
    fn read(
        name: &'static str,
        tokenizer: &Tokenizer,
    ) -> Result<Grammar, String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("grammars");
        let file = |end: &str| folder.join(format!("{name}.{end}"));
        let text = if file("txt").exists() {
            read(&file("txt"))?
        } else {
            // One token, again and again.
            "a".to_owned()
        };
        let encoding = tokenizer
            .encode_fast(text, false)
            .map_err(|error| format!("{name}: {error}"))?;
        let mut tokens = encoding.get_ids().to_vec();
        if let [only] = *tokens {
            tokens = vec![only; N_TOKENS];
        }
        tokens.truncate(N_TOKENS);
        let gbnf = read(&file("gbnf"))?;
        let lark = read(&file("lark"))?;
        Ok(Grammar { name, gbnf, lark, tokens })
    }
}

fn read(file: &PathBuf) -> Result<String, String> {
    std::fs::read_to_string(file)
        .map_err(|error| format!("{}: {error}", file.display()))
}

/// Runs the comparison and prints a table.
///
/// # Errors
///
/// What could not be read or loaded.
pub fn run(options: &Options) -> Result<(), String> {
    let path = options.tokenizer_path()?;
    let (tokenizer, shape) =
        tokenizer::load(&path, options.end_token, options.width)?;
    let mut grammars = Vec::new();
    for name in GRAMMARS {
        let filter = options.filter.as_deref();
        if filter.is_none_or(|part| name.contains(part)) {
            grammars.push(Grammar::read(name, &tokenizer)?);
        }
    }
    if let Some(path) = &options.dump {
        dump(&grammars, shape, path)?;
    }
    let ours = Maskwright::load(&path, shape)?.reading(Source::Grammar);
    let peer = LlGuidance::load(&path, shape)?.reading(Source::Grammar);
    let clock = Clock::calibrated();
    let mut words = vec![0; shape.words()];
    println!(
        "| grammar | engine | tokens | mask avg | p50 | p99 | max | accept \
         avg | first tenth | last tenth | compile + first mask |"
    );
    println!("|:--|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for (turn, grammar) in grammars.iter().enumerate() {
        let mut figures = [None, None];
        for index in [turn % 2, 1 - turn % 2] {
            let (engine, source): (&dyn Engine, _) = match index {
                0 => (&ours, &grammar.gbnf),
                _ => (&peer, &grammar.lark),
            };
            let name = ["maskwright", "llguidance"][index];
            if options.wants(name) {
                match measure(engine, source, grammar, &clock, &mut words) {
                    Ok(run) => figures[index] = Some(run.print(options)),
                    Err(error) => {
                        let (grammar, name) = (grammar.name, engine.name());
                        println!("| {grammar} | {name} | refused: {error} |");
                    }
                }
            }
        }
        if let [Some(a), Some(b)] = figures {
            let [avg, p50, p99] =
                [0, 1, 2].map(|index| short(b[index] / a[index]));
            println!("| | ratio | | {avg} | {p50} | {p99} | | | | | |");
        }
    }
    Ok(())
}

/// What reading a text took.
struct Run<'a> {
    grammar: &'a str,
    engine: &'a str,
    first: Span,
    masks: Vec<Span>,
    accepts: Vec<Span>,
    /// Why the text was not read to its end.
    stopped: Option<String>,
    /// The slowest masks: time, index and state.
    slowest: Vec<(u64, usize, String)>,
}

/// Reads the text of `grammar`, whose source for this engine is `source`.
fn measure<'a>(
    engine: &'a dyn Engine,
    source: &str,
    grammar: &'a Grammar,
    clock: &Clock,
    words: &mut [u32],
) -> Result<Run<'a>, String> {
    engine.prepare();
    let (sequence, compile) = clock.time(|| engine.open(source));
    let mut sequence = sequence?;
    let prototype = sequence.prototype();
    let (first, first_mask) = clock.time(|| sequence.mask_into(words));
    first?;
    let mut sequence = prototype.start()?;
    let mut run = Run {
        grammar: grammar.name,
        engine: engine.name(),
        first: compile.plus(first_mask),
        masks: Vec::new(),
        accepts: Vec::new(),
        stopped: None,
        slowest: Vec::new(),
    };
    let started = Instant::now();
    for (index, &token) in grammar.tokens.iter().enumerate() {
        let (result, span) = clock.time(|| sequence.mask_into(words));
        result?;
        run.masks.push(span);
        if span.cpu > SLOW {
            run.slowest.push((span.cpu, index, sequence.describe()));
        }
        let word = words[token as usize / 32];
        if word >> (token % 32) & 1 == 0 {
            run.stopped = Some("the next one refused".to_owned());
            break;
        }
        let (result, span) = clock.time(|| sequence.accept(token));
        result?;
        run.accepts.push(span);
        if started.elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            run.stopped = Some(format!("stopped after {seconds} s"));
            break;
        }
    }
    Ok(run)
}

impl Run<'_> {
    /// Prints a line, and returns average, p50 and p99 of the masks.
    fn print(&self, options: &Options) -> [f64; 3] {
        let masks = |from: usize, to: usize| {
            let spans = self.masks[from..to].iter();
            Distribution::new(spans.map(|span| span.cpu)).figures()
        };
        let n = self.masks.len();
        let all = masks(0, n);
        let at = |wanted: &str| {
            let found = all.iter().find(|(name, _)| *name == wanted);
            found.map_or(0.0, |(_, figure)| *figure)
        };
        let tenth = (n / 10).max(1);
        let accepts = self.accepts.iter().map(|span| span.cpu);
        let stopped = self.stopped.as_ref();
        println!(
            "| {} | {} | {n}{} | {} | {} | {} | {} | {} | {} | {} | {} |",
            self.grammar,
            self.engine,
            stopped.map_or_else(String::new, |why| format!(" ({why})")),
            short(at("avg")),
            short(at("p50")),
            short(at("p99")),
            short(at("max")),
            short(Distribution::new(accepts).figures()[0].1),
            short(masks(0, tenth)[0].1),
            short(masks(n - tenth, n)[0].1),
            short(micros(self.first.cpu)),
        );
        let mut slowest: Vec<_> = self.slowest.iter().collect();
        slowest.sort_by_key(|(time, ..)| std::cmp::Reverse(time));
        for (time, index, state) in slowest.iter().take(options.slowest) {
            println!("{} µs, mask {index}: {state}", short(micros(*time)));
        }
        [at("avg"), at("p50"), at("p99")]
    }
}

/// Writes what an engine outside this process needs, a line of JSON a
/// grammar.
fn dump(
    grammars: &[Grammar],
    shape: Shape,
    path: &Path,
) -> Result<(), String> {
    let lines: Vec<String> = grammars
        .iter()
        .map(|grammar| {
            serde_json::json!({
                "name": grammar.name,
                "ebnf": grammar.gbnf,
                "tokens": grammar.tokens,
                "width": shape.width,
                "end_token": shape.end_token,
            })
            .to_string()
        })
        .collect();
    std::fs::write(path, lines.join("\n") + "\n")
        .map_err(|error| format!("{}: {error}", path.display()))
}
