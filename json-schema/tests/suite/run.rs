//! Runs the official JSON-Schema-Test-Suite by bytes.
//!
//! Every spelling of an instance must get the verdict that the suite gives.

use std::path::Path;

use maskwright_grammar_core::automaton::Recognizer;
use maskwright_json_schema::{Compiled, Options, Whitespace, compile_value};
use serde_json::Value;

use crate::{cases::groups, lines::indented, spellings::spellings};

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
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Case {
    /// The file, from the folder `tests` on.
    pub(crate) file: String,
    /// What the group and the test are called.
    pub(crate) name: String,
    /// What became of it.
    pub(crate) outcome: Outcome,
}

/// Runs all tests whose file contains `filter`.
pub(crate) fn run(suite: &Path, filter: &str, base: &Options) -> Vec<Case> {
    let mut cases = Vec::new();
    for group in groups(suite, filter, base) {
        let compiled = compile_value(&group.schema, &group.options);
        for test in group.tests {
            let outcome = match &compiled {
                Ok(compiled) => {
                    let texts = texts(&test.data, base.text.whitespace);
                    judge(compiled, &texts, test.valid)
                }
                // Then no instance is valid.
                Err(error) if error.kind_name() == "unsatisfiable" => {
                    if test.valid { Outcome::Refused } else { Outcome::Right }
                }
                Err(error) => Outcome::NoSchema(error.to_string()),
            };
            let file = group.file.clone();
            cases.push(Case { file, name: test.name, outcome });
        }
    }
    cases
}

/// The texts of an instance that a policy allows.
fn texts(data: &Value, whitespace: Whitespace) -> Vec<String> {
    let texts = spellings(data);
    match whitespace {
        Whitespace::Indent { width } => {
            texts.iter().map(|text| indented(text, width)).collect()
        }
        _ => texts,
    }
}

fn judge(compiled: &Compiled, texts: &[String], valid: bool) -> Outcome {
    for text in texts {
        match accepts(compiled, text) {
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
