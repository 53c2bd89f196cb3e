//! MaskBench's files: one schema a line with its instances, turned into the
//! schema's text and the token ids that every engine is driven with.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokenizers::Tokenizer;

use crate::spelling::spaced;

/// One schema with its instances.
#[derive(Debug)]
pub struct Case {
    /// MaskBench's name of the schema.
    pub name: String,
    /// The schema as JSON text.
    pub schema: String,
    /// The instances, in the file's order.
    pub tests: Vec<Instance>,
}

/// One instance as token ids.
#[derive(Debug)]
pub struct Instance {
    /// Whether the schema admits it, says MaskBench.
    pub valid: bool,
    /// The ids of the instance's text.
    pub tokens: Vec<u32>,
}

/// Which schemas of the corpus to run.
#[derive(Debug, Default)]
pub struct Selection {
    /// Keep each schema whose number, from 1, this divides.
    pub every: usize,
    /// Keep schemas whose name contains this.
    pub name: Option<String>,
}

/// The corpus files below the folder that `MASKWRIGHT_SHARED` names, or below
/// `shared` beside the repository.
///
/// # Errors
///
/// Says which folder could not be read or holds no corpus.
pub fn default_files() -> Result<Vec<PathBuf>, String> {
    let shared = std::env::var_os("MASKWRIGHT_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    );
    let folder = shared.join("corpora/maskbench");
    let entries = std::fs::read_dir(&folder).map_err(|error| {
        format!(
            "cannot read {}: {error} (set MASKWRIGHT_SHARED or pass --corpus)",
            folder.display()
        )
    })?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    files.sort();
    if files.is_empty() {
        return Err(format!("no .jsonl file in {}", folder.display()));
    }
    Ok(files)
}

/// The chosen lines of the files, undecoded.
///
/// # Errors
///
/// Names the file that could not be read or the line that is no JSON.
pub fn select(
    files: &[PathBuf],
    selection: &Selection,
) -> Result<Vec<Value>, String> {
    let mut chosen = Vec::new();
    let mut number = 0;
    for path in files {
        let failed = |what: &dyn std::fmt::Display| {
            format!("cannot read {}: {what}", path.display())
        };
        let file = File::open(path).map_err(|error| failed(&error))?;
        for line in BufReader::new(file).lines() {
            let line = line.map_err(|error| failed(&error))?;
            number += 1;
            if number % selection.every.max(1) != 0 {
                continue;
            }
            let record: Value =
                serde_json::from_str(&line).map_err(|error| failed(&error))?;
            let name = record["name"].as_str().unwrap_or_default();
            if selection.name.as_deref().is_none_or(|part| name.contains(part))
            {
                chosen.push(record);
            }
        }
    }
    Ok(chosen)
}

/// Spells and tokenises one record.
///
/// # Errors
///
/// Passes on what the tokenizer said.
pub fn prepare(record: &Value, tokenizer: &Tokenizer) -> Result<Case, String> {
    let name = record["name"].as_str().unwrap_or_default().to_owned();
    let mut tests = Vec::new();
    for test in record["tests"].as_array().into_iter().flatten() {
        let text = spaced(&test["data"], false);
        let encoding = tokenizer
            .encode_fast(text, false)
            .map_err(|error| format!("{name}: {error}"))?;
        tests.push(Instance {
            valid: test["valid"].as_bool().unwrap_or(false),
            tokens: encoding.get_ids().to_vec(),
        });
    }
    Ok(Case { name, schema: spaced(&record["schema"], true), tests })
}
