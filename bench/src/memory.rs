//! Peak memory, one engine in a process of its own, which makes the engine's
//! main pass and no other.
//!
//! The parent hands the child the schemas with their token ids, so that the
//! child holds nothing but the engine and one schema at a time. The high-water
//! mark is reset once the vocabulary is loaded: what loading needed for a
//! moment is not counted, what it keeps is.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::clock::{Clock, Span};
use crate::corpus::{Case, Instance};
use crate::engine::Engine;
use crate::measure::{Plan, measure};

/// The cases on their way to the child.
#[derive(Debug)]
pub struct Handover {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Handover {
    /// Opens a file in the temporary folder.
    ///
    /// # Errors
    ///
    /// Names the file that could not be created.
    pub fn create() -> Result<Handover, String> {
        let name = format!("maskwright-bench-{}.jsonl", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = File::create(&path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Handover { path, file: BufWriter::new(file) })
    }

    /// The file, with every case that was pushed so far.
    ///
    /// # Errors
    ///
    /// What the file system said.
    pub fn path(&mut self) -> Result<&Path, String> {
        self.file.flush().map_err(|error| error.to_string())?;
        Ok(&self.path)
    }

    /// Appends a case.
    ///
    /// # Errors
    ///
    /// What the file system said.
    pub fn push(&mut self, case: &Case) -> Result<(), String> {
        let tests: Vec<Value> = case
            .tests
            .iter()
            .map(|test| json!([test.valid, test.tokens]))
            .collect();
        let line =
            json!({"name": case.name, "schema": case.schema, "tests": tests});
        writeln!(self.file, "{line}").map_err(|error| error.to_string())
    }

    /// Runs this program again for `engine` alone and reads its peak in MB.
    ///
    /// # Errors
    ///
    /// What the child said or failed to say.
    pub fn peak_mb(
        &mut self,
        engine: &str,
        arguments: &[String],
    ) -> Result<f64, String> {
        self.file.flush().map_err(|error| error.to_string())?;
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let output = Command::new(program)
            .arg("memory-child")
            .args(["--engine", engine])
            .arg("--prepared")
            .arg(&self.path)
            .args(arguments)
            .stderr(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let kilobytes: f64 = text
            .trim()
            .parse()
            .map_err(|_| format!("memory of {engine}: {}", output.status))?;
        Ok(kilobytes / 1024.0)
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The child's work: every case, then the high-water mark in kilobytes.
///
/// # Errors
///
/// Names what could not be read.
pub fn child(
    engine: &dyn Engine,
    prepared: &Path,
    words: &mut [u32],
) -> Result<u64, String> {
    // Only Linux has the file; elsewhere loading is counted too.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let clock = Clock { cost: Span::default() };
    let passes = [engine.main_pass()];
    let plan = Plan { clock: &clock, passes: &passes, with_places: false };
    let file = File::open(prepared).map_err(|error| error.to_string())?;
    for line in BufReader::new(file).lines() {
        let line = line.map_err(|error| error.to_string())?;
        let case = read_case(&line)?;
        let _ = measure(engine, &case, &plan, words);
    }
    high_water_mark()
}

fn read_case(line: &str) -> Result<Case, String> {
    let record: Value =
        serde_json::from_str(line).map_err(|error| error.to_string())?;
    let mut tests = Vec::new();
    for test in record["tests"].as_array().into_iter().flatten() {
        let ids = test[1].as_array().into_iter().flatten();
        let tokens = ids
            .filter_map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok()))
            .collect();
        tests.push(Instance { valid: test[0] == json!(true), tokens });
    }
    let text = |key: &str| record[key].as_str().unwrap_or("").to_owned();
    Ok(Case { name: text("name"), schema: text("schema"), tests })
}

fn high_water_mark() -> Result<u64, String> {
    let status = std::fs::read_to_string("/proc/self/status")
        .map_err(|error| format!("/proc/self/status: {error}"))?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| "no VmHWM in /proc/self/status".to_owned())
}
