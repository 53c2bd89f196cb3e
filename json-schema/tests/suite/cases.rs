//! What the official JSON-Schema-Test-Suite has, and how each schema is to be
//! compiled.
//!
//! Members come in any order; the suite's remotes are supplied as documents;
//! `format` is an annotation, but in `optional/format` it is enforced.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use maskwright_json_schema::{
    Draft, FormatPolicy, Options,
    parse::{Limits, read_json},
};
use serde_json::Value;

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

/// A schema and its tests.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The file, from the folder `tests` on.
    pub(crate) file: String,
    /// The schema.
    pub(crate) schema: Value,
    /// How to compile it.
    pub(crate) options: Arc<Options>,
    /// The tests.
    pub(crate) tests: Vec<Test>,
}

/// An instance and its verdict.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    /// What the group and the test are called.
    pub(crate) name: String,
    /// The instance.
    pub(crate) data: Value,
    /// Whether it is valid.
    pub(crate) valid: bool,
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

/// Reads all groups whose file contains `filter`; `base` says what no draft
/// and no folder does.
pub(crate) fn groups(
    suite: &Path,
    filter: &str,
    base: &Options,
) -> Vec<Group> {
    let documents = documents(&suite.join("remotes"));
    let mut groups = Vec::new();
    for (name, draft) in DRAFTS {
        let mut options = base.clone();
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
                let options = Arc::new(options.clone());
                for group in read(&path).as_array().into_iter().flatten() {
                    groups.push(read_group(&file, group, &options));
                }
            }
        }
    }
    groups
}

fn read_group(file: &str, group: &Value, options: &Arc<Options>) -> Group {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = text(&group["description"]);
    let tests = group["tests"].as_array().into_iter().flatten();
    let tests = tests.map(|test| Test {
        name: format!("{of} / {}", text(&test["description"])),
        data: test["data"].clone(),
        valid: test["valid"] == Value::Bool(true),
    });
    Group {
        file: file.to_owned(),
        schema: group["schema"].clone(),
        options: Arc::clone(options),
        tests: tests.collect(),
    }
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
