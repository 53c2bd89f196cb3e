//! Loading the vocabulary: time and memory, each engine in a process of its
//! own, several times.
//!
//! Ours is read from the tokenizer's file directly. The peer needs the
//! `tokenizers` crate for it, whose load is a row of its own. What the tables
//! call memory is what the process holds once a step is done, beyond what it
//! held when it began; the peak is that of the whole load.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use maskwright::mask::TokenTrie;
use serde_json::{Value, json};
use tokenizers::Tokenizer;

use crate::clock::process_nanos;
use crate::engine::{LlGuidance, environment, schema_options, vocabulary};
use crate::options::Options;
use crate::stats::{micros, short};
use crate::tokenizer::{self, Shape};

/// What is loaded, by the names of `--engine`.
const WHAT: [&str; 3] = ["maskwright", "llguidance", "tokenizers"];

/// How often each is loaded.
const N_ROUNDS: usize = 7;

/// Runs the command.
///
/// # Errors
///
/// What a process could not load.
pub fn run(options: &Options) -> Result<(), String> {
    let path = options.tokenizer_path()?;
    let (_, shape) = tokenizer::load(&path, options.end_token, options.width)?;
    println!(
        "Loading {} ({} logits): the median of {N_ROUNDS} processes; \
         processor time of all threads of the process, and the wall clock.\n",
        path.file_name().unwrap_or_default().to_string_lossy(),
        shape.width
    );
    println!("| | step | ms | ms, wall | MB held then |");
    println!("|:--|:--|--:|--:|--:|");
    let mut summary = json!({});
    for name in WHAT {
        if !options.wants(name) {
            continue;
        }
        let mut rounds = Vec::new();
        for _ in 0..N_ROUNDS {
            rounds.push(spawn(name, &path, shape)?);
        }
        summary[name] = print(name, &rounds);
    }
    if options.summary_json {
        println!("\n{summary}");
    }
    Ok(())
}

/// Loads once in a process of its own, and returns what that said.
fn spawn(name: &str, path: &Path, shape: Shape) -> Result<Value, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let output = Command::new(program)
        .arg("load-child")
        .args(["--engine", name])
        .arg("--tokenizer")
        .arg(path)
        .args(["--end-token", &shape.end_token.to_string()])
        .args(["--width", &shape.width.to_string()])
        .output()
        .map_err(|error| error.to_string())?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("loading {name}: {}: {}", output.status, said.trim())
    })
}

/// Prints the steps of what was loaded, and returns them for the JSON line.
fn print(name: &str, rounds: &[Value]) -> Value {
    let median = |read: &dyn Fn(&Value) -> Option<f64>| {
        let mut figures: Vec<f64> = rounds.iter().filter_map(read).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().unwrap_or(0.0)
    };
    let rounded = |figure: f64| (figure * 10.0).round() / 10.0;
    let (mut total, mut total_wall) = (0.0, 0.0);
    let mut steps = Vec::new();
    let first = rounds.first().and_then(|round| round["steps"].as_array());
    for (index, step) in first.into_iter().flatten().enumerate() {
        let what = step["what"].as_str().unwrap_or_default();
        let ms = median(&|round| round["steps"][index]["ms"].as_f64());
        let wall = median(&|round| round["steps"][index]["wall_ms"].as_f64());
        let held = median(&|round| round["steps"][index]["mb"].as_f64());
        println!(
            "| {name} | {what} | {} | {} | {} |",
            short(ms),
            short(wall),
            short(held)
        );
        total += ms;
        total_wall += wall;
        steps.push(json!({
            "what": what, "ms": rounded(ms), "wall_ms": rounded(wall),
            "mb": rounded(held)
        }));
    }
    let peak = median(&|round| round["peak_mb"].as_f64());
    println!(
        "| {name} | **together** | **{}** | **{}** | peak {} |",
        short(total),
        short(total_wall),
        short(peak)
    );
    json!({
        "total_ms": rounded(total), "total_wall_ms": rounded(total_wall),
        "peak_mb": rounded(peak), "steps": steps
    })
}

/// The process that a run starts: loads one thing and says what it took.
///
/// # Errors
///
/// Names the option that is missing or the file that cannot be read.
pub fn child(options: &Options) -> Result<(), String> {
    let missing = |name: &str| format!("load-child needs {name}");
    let name = options.engine.as_deref().ok_or(missing("--engine"))?;
    let path = options.tokenizer.as_deref().ok_or(missing("--tokenizer"))?;
    let end_token = options.end_token.ok_or(missing("--end-token"))?;
    let width = options.width.ok_or(missing("--width"))?;
    let shape = Shape { end_token, width };
    let mut steps = Steps { taken: Vec::new(), before: status_mb("VmRSS:") };
    match name {
        "maskwright" => {
            let vocabulary =
                steps.take("vocabulary", || vocabulary(path, shape))?;
            let tokens = steps.take("trie", || {
                Ok(Arc::new(TokenTrie::new(Arc::new(vocabulary))))
            })?;
            steps.take("warm_up: classes, prelude", || {
                tokens.warm_up(&schema_options());
                Ok(())
            })?;
        }
        "llguidance" => {
            let environment =
                steps.take("tokenizer, trie", || environment(path, shape))?;
            let factory =
                steps.take("slices", || LlGuidance::new(&environment))?;
            drop(factory);
        }
        "tokenizers" => {
            let tokenizer = steps.take("Tokenizer::from_file", || {
                Tokenizer::from_file(path).map_err(|error| error.to_string())
            })?;
            drop(tokenizer);
        }
        _ => return Err(format!("nothing to load is named {name}")),
    }
    let peak = status_mb("VmHWM:") - steps.before;
    println!("{}", json!({"steps": steps.taken, "peak_mb": peak}));
    Ok(())
}

/// What was loaded so far.
struct Steps {
    taken: Vec<Value>,
    /// Megabytes that the process held when it began.
    before: f64,
}

impl Steps {
    fn take<T>(
        &mut self,
        what: &str,
        load: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        let before = process_nanos();
        let start = Instant::now();
        let loaded = load()?;
        let wall_ms = start.elapsed().as_secs_f64() * 1000.0;
        let ms = micros(process_nanos() - before) / 1000.0;
        let mb = status_mb("VmRSS:") - self.before;
        self.taken.push(
            json!({"what": what, "ms": ms, "wall_ms": wall_ms, "mb": mb}),
        );
        Ok(loaded)
    }
}

/// A line of the process's status in megabytes; zero where the system has no
/// such file.
fn status_mb(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status");
    let status = status.unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    let kilobytes: f64 =
        number.and_then(|number| number.parse().ok()).unwrap_or(0.0);
    kilobytes / 1024.0
}
