//! XGrammar as a column: a runner in Python over the cases that this process
//! has prepared, which writes a line of results a schema.
//!
//! It runs after the engines of this process, not in turn with them. Its
//! compiler makes the masks of a grammar when it compiles, without a cache
//! that outlives the schema, and each test has a new matcher.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::clock::Span;
use crate::measure::{Compiled, Outcome, Pass, TestRun};
use crate::options::Options;
use crate::report::Column;
use crate::tokenizer::Shape;

/// Prints the version if everything that the runner needs is there.
const PROBE: &str = "import importlib.metadata, numpy, tvm_ffi, xgrammar; \
                     print(importlib.metadata.version('xgrammar'))";

/// Runs XGrammar over `prepared`. None if Python cannot import it, after a
/// line that says how to install it.
///
/// # Errors
///
/// What the runner said before it failed.
pub fn column(
    prepared: &Path,
    tokenizer: &Path,
    shape: Shape,
    options: &Options,
) -> Result<Option<Column>, String> {
    let python = options.python.clone().unwrap_or_else(default_python);
    let Some(version) = version(&python) else {
        println!(
            "XGrammar is left out: {} cannot import it. Install it with \
             `python3 -m venv v && v/bin/pip install xgrammar==0.2.9 \
             apache-tvm-ffi numpy` and pass `--python v/bin/python`.",
            python.display()
        );
        return Ok(None);
    };
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("xgrammar_maskbench.py");
    let mut child = Command::new(&python)
        .arg(&script)
        .arg(tokenizer)
        .arg(prepared)
        .args(["--end-token", &shape.end_token.to_string()])
        .args(["--width", &shape.width.to_string()])
        .args(["--patience", &options.patience.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", python.display()))?;
    let stdout = child.stdout.take().ok_or("the runner has no output")?;
    let mut outcomes = Vec::new();
    let mut peak_rss_mb = None;
    for line in BufReader::new(stdout).lines() {
        let line = line.map_err(|error| error.to_string())?;
        let result: Value = serde_json::from_str(&line)
            .map_err(|error| format!("a line of the runner: {error}"))?;
        match result["peak_rss_mb"].as_f64() {
            Some(peak) => peak_rss_mb = Some(peak),
            None => outcomes.push(outcome(&result)),
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("{}: {status}", script.display()));
    }
    let name = format!("XGrammar {version}");
    let main = Pass::Schema;
    Ok(Some(Column { name, main, outcomes, peak_rss_mb }))
}

fn default_python() -> PathBuf {
    std::env::var_os("PYTHON").map_or("python3".into(), PathBuf::from)
}

fn version(python: &Path) -> Option<String> {
    let output = Command::new(python).args(["-c", PROBE]).output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| version.trim().to_owned())
}

/// Reads a line of results. Its times are those of all tests in a row.
fn outcome(result: &Value) -> Outcome {
    if let Some(error) = result["compile_error"].as_str() {
        return Err(error.to_owned());
    }
    let number = |name: &str| result[name].as_u64().unwrap_or(0);
    let first_mask = Span {
        cpu: number("first_mask_cpu_ns"),
        wall: number("first_mask_ns"),
    };
    let compile =
        Span { cpu: number("compile_cpu_ns"), wall: number("compile_ns") };
    let mut masks = spans(result, "mask_cpu_ns", "mask_ns").into_iter();
    let mut accepts =
        spans(result, "consume_cpu_ns", "consume_ns").into_iter();
    let tests = result["tests"].as_array().into_iter().flatten();
    let tests = tests.map(|test| {
        let count = |index: usize| {
            let count = test[index].as_u64().unwrap_or(0);
            usize::try_from(count).unwrap_or(usize::MAX)
        };
        let (n_accepted, n_tokens) = (count(3), count(4));
        let is_true = |index: usize| test[index] == Value::Bool(true);
        // The mask that refused a token is one more.
        let n_masks = n_tokens.min(n_accepted.saturating_add(1));
        TestRun {
            valid: is_true(0),
            accepted: is_true(1) && is_true(2),
            error: test[5].as_str().map(str::to_owned),
            masks: masks.by_ref().take(n_masks).collect(),
            accepts: accepts.by_ref().take(n_accepted).collect(),
            places: Vec::new(),
        }
    });
    let tests = tests.collect();
    Ok(Compiled::of_one_pass(compile, first_mask, Pass::Schema, tests))
}

fn spans(result: &Value, cpu: &str, wall: &str) -> Vec<Span> {
    let numbers = |name: &str| {
        let list = result[name].as_array().into_iter().flatten();
        list.map(|number| number.as_u64().unwrap_or(0)).collect::<Vec<_>>()
    };
    let pairs = numbers(cpu).into_iter().zip(numbers(wall));
    pairs.map(|(cpu, wall)| Span { cpu, wall }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_dealt_to_the_tests() {
        let line = json!({
            "id": "a", "compile_ns": 5, "compile_cpu_ns": 4,
            "first_mask_ns": 3, "first_mask_cpu_ns": 2,
            "mask_ns": [1, 2, 3], "mask_cpu_ns": [1, 2, 3],
            "consume_ns": [7, 8], "consume_cpu_ns": [7, 8],
            "tests": [
                [true, true, true, 1, 1, null],
                [false, false, false, 1, 9, null],
            ],
        });
        let compiled = outcome(&line).expect("it compiled");
        assert_eq!(compiled.to_first_mask().cpu, 6);
        let tests = compiled.tests();
        assert!(tests[0].accepted && !tests[1].accepted);
        assert_eq!(tests[0].masks.len(), 1);
        let cpu: Vec<u64> = tests[1].masks.iter().map(|s| s.cpu).collect();
        assert_eq!(cpu, [2, 3]);
        assert_eq!(tests[1].accepts[0].cpu, 8);
        assert!(outcome(&json!({"compile_error": "too hard"})).is_err());
    }
}
