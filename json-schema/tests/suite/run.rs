//! Runs the official JSON-Schema-Test-Suite by bytes.
//!
//! Every instance is written in several ways that all mean the same value:
//! as the suite has it, with its members in reverse and in a mixed order, and
//! with every character of strings and keys escaped. All must get the verdict
//! that the suite gives.
//!
//! Members come in any order; the suite's remotes are supplied as documents;
//! `format` is an annotation, but in `optional/format` it is enforced.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use maskwright_grammar_core::automaton::Recognizer;
use maskwright_json_schema::{
    Compiled, Draft, FormatPolicy, Options, compile_value,
    parse::{Limits, read_json},
};
use serde_json::{Map, Value};

/// The folders of the drafts that are run.
pub(crate) const DRAFTS: [(&str, Draft); 5] = [
    ("draft4", Draft::Draft4),
    ("draft6", Draft::Draft6),
    ("draft7", Draft::Draft7),
    ("draft2019-09", Draft::Draft201909),
    ("draft2020-12", Draft::Draft202012),
];

/// The parts of a draft's folder.
const PARTS: [&str; 3] = ["", "/optional", "/optional/format"];

/// Where the suite's remotes pretend to be.
const REMOTES: &str = "http://localhost:1234/";

/// What became of one test.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// Each spelling got the verdict of the suite.
    Right,
    /// A spelling of an invalid instance was accepted.
    Accepted,
    /// A spelling of a valid instance was refused.
    Refused,
    /// The schema does not compile.
    NoSchema(String),
    /// A limit was met.
    Failed(String),
}

/// One test of the suite.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The file, from the folder `tests` on.
    pub(crate) file: String,
    /// What the group and the test are called.
    pub(crate) name: String,
    /// What became of it.
    pub(crate) outcome: Outcome,
}

/// The folder of the suite, if it is there: below the folder that
/// `MASKWRIGHT_SHARED` names, or below `shared` beside the workspace.
pub(crate) fn folder() -> Option<PathBuf> {
    let shared = match std::env::var_os("MASKWRIGHT_SHARED") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
    };
    let suite = shared.join("corpora/json-schema-test-suite");
    suite.join("tests").is_dir().then_some(suite)
}

/// Runs all tests whose file contains `filter`.
pub(crate) fn run(suite: &Path, filter: &str) -> Vec<Case> {
    let documents = documents(&suite.join("remotes"));
    let mut cases = Vec::new();
    for (name, draft) in DRAFTS {
        let mut options = Options::widest();
        options.parse.draft = Some(draft);
        options.parse.documents.clone_from(&documents);
        for part in PARTS {
            let folder = format!("{name}{part}");
            for path in json_files(&suite.join("tests").join(&folder)) {
                let stem = path.file_name().unwrap_or_default();
                let file = format!("{folder}/{}", stem.to_string_lossy());
                if !file.contains(filter) {
                    continue;
                }
                options.parse.format = policy(part, &file);
                run_file(&read(&path), &file, &options, &mut cases);
            }
        }
    }
    cases
}

/// Formats are enforced where they are what is tested. Schemas with unknown
/// formats do not compile if all are to be enforced, so those are told to be
/// lenient.
fn policy(part: &str, file: &str) -> FormatPolicy {
    if part != "/optional/format" {
        FormatPolicy::Annotate
    } else if file.ends_with("/unknown.json") {
        FormatPolicy::AssertKnown
    } else {
        FormatPolicy::AssertAll
    }
}

fn run_file(
    groups: &Value,
    file: &str,
    options: &Options,
    cases: &mut Vec<Case>,
) {
    for group in groups.as_array().into_iter().flatten() {
        let compiled = compile_value(&group["schema"], options);
        for test in group["tests"].as_array().into_iter().flatten() {
            let valid = test["valid"] == Value::Bool(true);
            let outcome = match &compiled {
                Ok(compiled) => judge(compiled, &test["data"], valid),
                // Then no instance is valid.
                Err(error) if error.kind_name() == "unsatisfiable" => {
                    if valid { Outcome::Refused } else { Outcome::Right }
                }
                Err(error) => Outcome::NoSchema(error.to_string()),
            };
            let name = format!(
                "{} / {}",
                group["description"].as_str().unwrap_or_default(),
                test["description"].as_str().unwrap_or_default()
            );
            cases.push(Case { file: file.to_owned(), name, outcome });
        }
    }
}

fn judge(compiled: &Compiled, data: &Value, valid: bool) -> Outcome {
    for text in spellings(data) {
        match accepts(compiled, &text) {
            Ok(accepted) if accepted == valid => {}
            Ok(true) => return Outcome::Accepted,
            Ok(false) => return Outcome::Refused,
            Err(error) => return Outcome::Failed(error),
        }
    }
    Outcome::Right
}

fn accepts(compiled: &Compiled, text: &str) -> Result<bool, String> {
    let run = || {
        let mut recognizer = Recognizer::new(compiled.automaton.clone())?;
        Ok(recognizer.push_bytes(text.as_bytes())?
            && recognizer.is_accepting()?)
    };
    run().map_err(
        |error: maskwright_grammar_core::automaton::AutomatonError| {
            error.to_string()
        },
    )
}

/// The order in which members are written.
#[derive(Clone, Copy)]
enum Members {
    Written,
    Reversed,
    Mixed,
}

/// The texts of a value that are tried; each once.
fn spellings(data: &Value) -> Vec<String> {
    let ways = [
        (Members::Written, false),
        (Members::Reversed, false),
        (Members::Mixed, false),
        (Members::Written, true),
    ];
    let mut texts: Vec<String> = Vec::with_capacity(ways.len());
    for (members, escaped) in ways {
        let mut text = String::new();
        write_value(&mut text, data, members, escaped);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// Writes a value without white space. The suite's values nest little.
fn write_value(
    out: &mut String,
    value: &Value,
    members: Members,
    escaped: bool,
) {
    match value {
        Value::String(text) => write_string(out, text, escaped),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                out.push(if index == 0 { '[' } else { ',' });
                write_value(out, item, members, escaped);
            }
            out.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Value::Object(map) => {
            for (index, (key, value)) in
                ordered(map, members).into_iter().enumerate()
            {
                out.push(if index == 0 { '{' } else { ',' });
                write_string(out, key, escaped);
                out.push(':');
                write_value(out, value, members, escaped);
            }
            out.push_str(if map.is_empty() { "{}" } else { "}" });
        }
        plain => out.push_str(&plain.to_string()),
    }
}

fn ordered(
    map: &Map<String, Value>,
    members: Members,
) -> Vec<(&String, &Value)> {
    let mut all: Vec<(&String, &Value)> = map.iter().collect();
    match members {
        Members::Written => {}
        Members::Reversed => all.reverse(),
        // Every second member, and then the others.
        Members::Mixed => {
            let odd = all.iter().skip(1).step_by(2);
            let even = all.iter().step_by(2);
            all = odd.chain(even).copied().collect();
        }
    }
    all
}

fn write_string(out: &mut String, text: &str, escaped: bool) {
    if !escaped {
        out.push_str(&Value::from(text).to_string());
        return;
    }
    out.push('"');
    for unit in text.encode_utf16() {
        write!(out, "\\u{unit:04X}").expect("strings take everything");
    }
    out.push('"');
}

fn documents(folder: &Path) -> BTreeMap<String, Value> {
    let mut documents = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(&inner).expect("a folder of the suite") {
            let path = entry.expect("a folder that can be listed").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).expect("it is in there");
            let name = name.to_string_lossy().replace('\\', "/");
            documents.insert(format!("{REMOTES}{name}"), read(&path));
        }
    }
    documents
}

fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of the suite");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a folder that can be listed").path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    files
}

/// Reads a file with numbers as they are written.
fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("a readable file");
    read_json(text.trim_start_matches('\u{feff}'), Limits::default().max_depth)
        .unwrap_or_else(|error| panic!("{}: {error:?}", path.display()))
}
