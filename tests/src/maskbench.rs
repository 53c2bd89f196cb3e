//! The schemas of MaskBench and their instances, where they are at hand.

use std::{fs, path::PathBuf, sync::Arc};

use maskwright::mask::TokenTrie;
use serde_json::Value;

use crate::{corpus::shared, vocabularies::pieces};

/// A schema and its instances.
#[derive(Clone, Debug)]
pub struct Entry {
    /// MaskBench's name of it.
    pub name: String,
    /// The schema.
    pub schema: Value,
    /// The instances, and whether each is valid.
    pub tests: Vec<(Value, bool)>,
}

impl Entry {
    /// A toy vocabulary of pieces of the schema and of its valid instances.
    pub fn pieces(&self, seed: u64) -> Arc<TokenTrie> {
        let valid = self.tests.iter().filter(|(_, is_valid)| *is_valid);
        let mut texts: Vec<String> =
            valid.take(3).map(|(value, _)| value.to_string()).collect();
        texts.push(self.schema.to_string());
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        pieces(&texts, seed)
    }
}

/// Reads `n` schemas that are spread evenly over the whole, or all of them if
/// there are no more; nothing if the corpus is not there.
///
/// # Panics
///
/// If a file cannot be read or holds what is no JSON.
pub fn entries(n: usize) -> Option<Vec<Entry>> {
    let folder = shared("corpora/maskbench")?;
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a readable folder")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    files.sort();
    let texts: Vec<String> = files
        .iter()
        .map(|file| fs::read_to_string(file).expect("a readable file"))
        .collect();
    let lines: Vec<&str> =
        texts.iter().flat_map(|text| text.lines()).collect();
    let n = n.min(lines.len());
    let chosen = (0..n).map(|index| lines[index * lines.len() / n]);
    Some(chosen.map(read).collect())
}

fn read(line: &str) -> Entry {
    let mut value: Value = serde_json::from_str(line).expect("JSON lines");
    let tests = value["tests"].as_array().into_iter().flatten();
    let tests = tests
        .map(|test| (test["data"].clone(), test["valid"] == true))
        .collect();
    let name = value["name"].as_str().unwrap_or_default().to_owned();
    Entry { name, schema: value["schema"].take(), tests }
}
