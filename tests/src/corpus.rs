//! Cases: a grammar, texts that it holds, and texts that it does not.

use std::{
    fs,
    path::{Path, PathBuf},
};

use maskwright::grammar::{
    FormatPolicy, Grammar, GrammarError, SchemaOptions, StructuralTags,
};
use serde::Deserialize;
use serde_json::Value;

/// A grammar and texts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What the case is about.
    pub name: String,
    /// What kind of grammar `input` is: `schema`, `regex`, `gbnf`, `choices`,
    /// `tags`.
    pub kind: String,
    /// The grammar.
    pub input: Value,
    /// Texts that the grammar holds.
    #[serde(default)]
    pub accept: Vec<String>,
    /// Texts that it does not.
    #[serde(default)]
    pub reject: Vec<String>,
    /// The kind of the error with which the grammar is refused.
    pub error: Option<String>,
    /// Whether known formats are enforced, whatever the options.
    #[serde(default)]
    pub formats: bool,
}

impl Case {
    /// Compiles the grammar, allowing every text of an instance.
    ///
    /// # Errors
    ///
    /// Fails when the grammar is refused.
    pub fn compile(&self) -> Result<Grammar, GrammarError> {
        self.compile_with(&SchemaOptions::widest())
    }

    /// Compiles the grammar; `options` count if it is a schema.
    ///
    /// # Errors
    ///
    /// Fails when the grammar is refused.
    ///
    /// # Panics
    ///
    /// If the case has a kind that is not known.
    pub fn compile_with(
        &self,
        options: &SchemaOptions,
    ) -> Result<Grammar, GrammarError> {
        let mut options = options.clone();
        if self.formats {
            options.parse.format = FormatPolicy::AssertKnown;
        }
        let text = || self.input.as_str().expect("the grammar is a string");
        match &*self.kind {
            "schema" => Grammar::from_schema_value(&self.input, &options),
            "regex" => Grammar::from_regex(text()),
            "gbnf" => Grammar::from_gbnf(text()),
            "choices" => {
                let choices = self.input.as_array().expect("a list");
                let choices: Vec<&str> =
                    choices.iter().filter_map(Value::as_str).collect();
                Grammar::from_choices(&choices)
            }
            "tags" => {
                let tags = self.input.to_string();
                let tags = StructuralTags::from_json(&tags, &options)?;
                Grammar::from_tags(&tags)
            }
            kind => panic!("case {:?} is of kind {kind:?}", self.name),
        }
    }
}

/// Reads every case of the project's own corpus.
///
/// # Panics
///
/// If a line cannot be read.
pub fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the corpus is beside this file")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    files.sort();
    files.iter().flat_map(|file| read_cases(file)).collect()
}

fn read_cases(file: &Path) -> Vec<Case> {
    let text = fs::read_to_string(file).expect("a readable corpus file");
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| {
            serde_json::from_str(line).unwrap_or_else(|error| {
                panic!("{}:{number}: {error}", file.display())
            })
        })
        .collect()
}

/// Finds a file or a folder of the shared corpora, which not every machine
/// has. Says what is skipped where it is absent.
pub fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("MASKWRIGHT_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    );
    let found = root.join(path);
    if found.exists() {
        return Some(found);
    }
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    {
        eprintln!("skipped: {} is not there", found.display());
    }
    None
}
