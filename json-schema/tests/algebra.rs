//! The algebra on parsed values against the official suite and MaskBench.
//!
//! Both corpora live outside the repository: in the directory that
//! `MASKWRIGHT_SHARED` names, or in `shared` beside the workspace. Without
//! them these tests say so and pass.

#![allow(clippy::print_stderr, reason = "tests say what they skip")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use maskwright_json_schema::draft::Draft;
use maskwright_json_schema::error::{ErrorKind, SchemaError};
use maskwright_json_schema::formula::{Formulas, Tracker};
use maskwright_json_schema::parse::{Limits, Options, parse_value, read_json};
use serde_json::Value;

fn corpora() -> Option<PathBuf> {
    let named = std::env::var_os("MASKWRIGHT_SHARED").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let path = named.unwrap_or(beside).join("corpora");
    path.is_dir().then_some(path)
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("a readable file");
    read_json(&text, 1_000).expect("JSON")
}

/// Every JSON file below a directory, sorted.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut stack = vec![directory.to_owned()];
    while let Some(directory) = stack.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                stack.push(path);
            } else if path.extension().is_some_and(|e| e == "json") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn remotes(suite: &Path) -> BTreeMap<String, Value> {
    let root = suite.join("remotes");
    let mut documents = BTreeMap::new();
    for path in files(&root) {
        let name = path.strip_prefix(&root).expect("below the root");
        let name = name.to_str().expect("UTF-8");
        let uri = format!("http://localhost:1234/{name}");
        documents.insert(uri, read(&path));
    }
    documents
}

fn formulas(
    schema: &Value,
    options: &Options,
) -> Result<Formulas, SchemaError> {
    let (schema, pool) = parse_value(schema, options)?;
    Ok(Formulas::new(Arc::new(schema), pool, Limits::default()))
}

/// The value with the members of every object in reverse.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(reversed).collect(),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .rev()
                .map(|(key, value)| (key.clone(), reversed(value)))
                .collect(),
        ),
        value => value.clone(),
    }
}

/// Tests that a validator without the format-assertion vocabulary and
/// without content assertions answers otherwise, by specification.
const EXPECTED: &[&str] = &["content.json", "format-assertion.json"];

#[test]
fn official_suite_is_decided_as_it_says() {
    let Some(corpora) = corpora() else {
        eprintln!("skipped: the official suite is not there");
        return;
    };
    let suite = corpora.join("json-schema-test-suite");
    let documents = remotes(&suite);
    let folders = [
        ("draft4", Draft::Draft4),
        ("draft6", Draft::Draft6),
        ("draft7", Draft::Draft7),
        ("draft2019-09", Draft::Draft201909),
        ("draft2020-12", Draft::Draft202012),
    ];
    let mut wrong = Vec::new();
    let mut total = 0;
    for (folder, draft) in folders {
        let options = Options {
            draft: Some(draft),
            documents: documents.clone(),
            ..Options::default()
        };
        let root = suite.join("tests").join(folder);
        for path in files(&root) {
            if path.parent().is_some_and(|p| p.ends_with("format")) {
                continue;
            }
            let file = path.file_name().and_then(|n| n.to_str());
            let file = file.expect("UTF-8");
            if EXPECTED.contains(&file) {
                continue;
            }
            run_file(&path, folder, &options, &mut wrong, &mut total);
        }
    }
    assert!(total > 4_000, "{total} tests");
    assert!(
        wrong.is_empty(),
        "{} of {total}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Meta-schemas are not bundled; a schema that refers to one is refused.
fn needs_meta_schema(error: &SchemaError) -> bool {
    matches!(error.kind(), ErrorKind::UnresolvedRef { reference, .. }
        if reference.contains("://json-schema.org/"))
}

fn run_file(
    path: &Path,
    folder: &str,
    options: &Options,
    wrong: &mut Vec<String>,
    total: &mut usize,
) {
    let file = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
    for group in read(path).as_array().expect("groups") {
        let name = &group["description"];
        let mut made = formulas(&group["schema"], options);
        for test in group["tests"].as_array().expect("tests") {
            *total += 1;
            let label =
                format!("{folder}/{file} {name} {}", test["description"]);
            let formulas = match &mut made {
                Ok(formulas) => formulas,
                Err(error) => {
                    if !needs_meta_schema(error) {
                        wrong.push(format!("{label}: {error}"));
                    }
                    continue;
                }
            };
            let want = test["valid"].as_bool();
            for data in [test["data"].clone(), reversed(&test["data"])] {
                let got = Tracker::new(formulas).validate(&data);
                if got.clone().ok() != want {
                    wrong.push(format!("{label}: {got:?}, want {want:?}"));
                }
            }
        }
    }
}

#[test]
fn maskbench_is_decided_as_it_says() {
    let Some(corpora) = corpora() else {
        eprintln!("skipped: MaskBench is not there");
        return;
    };
    let folder = corpora.join("maskbench");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let options = Options::default();
    let (mut wrong, mut total, mut refused) = (Vec::new(), 0, Vec::new());
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        for line in text.lines() {
            let case = read_json(line, 1_000).expect("JSON");
            let name = &case["name"];
            let mut made = match formulas(&case["schema"], &options) {
                Ok(made) => made,
                Err(error) => {
                    refused.push(format!("{name}: {error}"));
                    continue;
                }
            };
            let has_format = case["schema"].to_string().contains("\"format\"");
            for (index, test) in
                case["tests"].as_array().expect("tests").iter().enumerate()
            {
                total += 1;
                let want = test["valid"].as_bool() == Some(true);
                for data in [test["data"].clone(), reversed(&test["data"])] {
                    let got = Tracker::new(&mut made).validate(&data);
                    // A format that is not asserted may be why.
                    if got == Ok(true) && !want && has_format {
                        continue;
                    }
                    if got != Ok(want) {
                        wrong.push(format!("{name} test {index}: {got:?}"));
                    }
                }
            }
        }
    }
    eprintln!("{} refused:\n{}", refused.len(), refused.join("\n"));
    assert!(
        wrong.is_empty(),
        "{} of {total}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
