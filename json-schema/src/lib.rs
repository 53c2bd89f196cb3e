//! JSON Schema as a lazily built pushdown automaton.
//!
//! [`compile`] turns a schema into a machine over bytes ([`Automaton`]) that
//! accepts just the texts of the schema's instances. What sets it apart: the
//! schema is neither rewritten nor approximated. It stays a boolean formula
//! ([`formula`]) that is derived by one member or item at a time, so that
//! `allOf`, `anyOf`, `oneOf`, `not`, references and recursion mean what the
//! specification says, beside each other and in any order.
//!
//! A keyword is enforced, or it is an annotation by name, or the schema is
//! refused with the keyword and its JSON pointer. Nothing is dropped
//! silently: [`keywords::support`] is the table.
//!
//! # Example
//!
//! ```
//! use maskwright_grammar_core::automaton::Recognizer;
//! use maskwright_json_schema::{Options, compile};
//!
//! let schema = r#"{"type": "integer", "minimum": 10}"#;
//! let compiled = compile(schema, &Options::default())?;
//! let mut recognizer = Recognizer::new(compiled.automaton)?;
//! assert!(recognizer.push_bytes(b"12")?);
//! assert!(recognizer.is_accepting()?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Keywords
//!
#![doc = include_str!("../KEYWORDS.md")]
//!
//! Where neither the schema nor the options name a draft, 2020-12 is meant
//! and what it spells anew may be spelled as before: arrays in `items`,
//! `additionalItems`, a boolean `exclusiveMinimum`.
//!
//! # When not to use it
//!
//! To validate a value that is at hand, use a validator (the `jsonschema`
//! crate): it says everything that is wrong. This crate says what may come
//! next.
#![forbid(unsafe_code)]

pub mod convert;
pub mod draft;
pub mod error;
pub mod format;
pub mod formula;
pub mod keywords;
pub mod location;
mod machine;
pub mod number;
pub mod parse;
mod reference;
pub mod viability;

use std::sync::Arc;

use maskwright_grammar_core::automaton::Automaton;
use serde_json::Value;

pub use crate::{
    draft::Draft,
    error::{ErrorKind, SchemaError},
    machine::{Escapes, Numbers, Order, TextPolicy, Whitespace},
    parse::{Backreferences, FormatPolicy, Warning, WarningReason},
    viability::Budgets,
};
use crate::{
    formula::Formulas,
    keywords::Support,
    location::Location,
    machine::Machine,
    parse::{Pool, Schema},
};

/// How a schema is read, and how its instances may be written. The default is
/// for generation: known formats are enforced.
#[derive(Clone, Debug)]
pub struct Options {
    /// How instances may be written.
    pub text: TextPolicy,
    /// How the schema is read.
    pub parse: parse::Options,
    /// How long to search for what can still be finished.
    pub budgets: Budgets,
}

impl Default for Options {
    fn default() -> Options {
        let format = FormatPolicy::AssertKnown;
        Options {
            text: TextPolicy::default(),
            parse: parse::Options { format, ..parse::Options::default() },
            budgets: Budgets::default(),
        }
    }
}

impl Options {
    /// Returns the options that allow every text of an instance, with
    /// `format` as an annotation: what checking takes.
    pub fn widest() -> Options {
        Options {
            text: TextPolicy::widest(),
            parse: parse::Options::default(),
            budgets: Budgets::default(),
        }
    }
}

/// A schema that was compiled.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The machine over bytes.
    pub automaton: Arc<dyn Automaton>,
    /// What was noticed: keywords that are only annotations here, or were
    /// left out.
    pub warnings: Vec<String>,
    /// The same, with the keyword, its place and the reason apart; what was
    /// left out aside.
    pub notes: Vec<Warning>,
    /// What cannot be enforced and was left out, as the errors that it is
    /// without [`lenient`](parse::Options::lenient).
    pub left_out: Vec<SchemaError>,
    machine: Arc<Machine>,
}

/// How much of a schema's machine there is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stats {
    /// The states that were made so far; those that schemas share aside.
    pub n_states: usize,
    /// Those of them in which something was taken to be possible without
    /// knowing: a search ran out of its budget or met a cap, or a string of
    /// a format that is not regular has come where only a check at its end
    /// tells.
    pub n_inexact: usize,
}

impl Compiled {
    /// Counts the states that were made so far. What they allow is decided
    /// for this where nobody has asked for it yet.
    pub fn stats(&self) -> Stats {
        self.machine.stats()
    }

    /// The keywords of the schema that are no keywords of its draft, which
    /// therefore constrain nothing.
    pub fn unknown_keywords(&self) -> impl Iterator<Item = &Warning> {
        let unknown = WarningReason::UnknownKeyword;
        self.notes.iter().filter(move |note| note.reason == unknown)
    }
}

/// Compiles a schema from its text.
///
/// # Errors
///
/// Fails when the text is no JSON, when the schema is invalid or uses what
/// cannot be enforced, and when no value satisfies it.
pub fn compile(
    schema: &str,
    options: &Options,
) -> Result<Compiled, SchemaError> {
    build(parse::parse_str(schema, &options.parse)?, options)
}

/// Compiles a schema that was parsed already.
///
/// # Errors
///
/// As [`compile`], the text aside.
pub fn compile_value(
    schema: &Value,
    options: &Options,
) -> Result<Compiled, SchemaError> {
    build(parse::parse_value(schema, &options.parse)?, options)
}

fn build(
    (schema, pool): (Schema, Pool),
    options: &Options,
) -> Result<Compiled, SchemaError> {
    refuse_unsupported(&schema)?;
    let notes = schema.warnings().to_vec();
    let left_out = schema.left_out().to_vec();
    let omitted = left_out.iter().map(|error| format!("left out: {error}"));
    let warnings =
        notes.iter().map(ToString::to_string).chain(omitted).collect();
    let formulas = Formulas::new(Arc::new(schema), pool, options.parse.limits);
    let machine =
        Arc::new(Machine::new(formulas, options.text, options.budgets)?);
    let automaton = Arc::clone(&machine) as Arc<dyn Automaton>;
    Ok(Compiled { automaton, warnings, notes, left_out, machine })
}

/// Refuses keywords that are understood but cannot be enforced yet.
fn refuse_unsupported(schema: &Schema) -> Result<(), SchemaError> {
    for keyword in schema.used_keywords() {
        if let Some(Support::NotYet(instead)) = keywords::support(keyword) {
            let keyword = keyword.to_owned();
            let location = schema.first_use(&keyword);
            let instead = instead.to_owned();
            let kind = ErrorKind::UnsupportedKeyword { keyword, instead };
            let location = location.unwrap_or_else(Location::root);
            return Err(SchemaError::new(kind, location));
        }
    }
    Ok(())
}
