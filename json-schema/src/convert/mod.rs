//! JSON Schema as GBNF: a context-free grammar of the same documents.
//!
//! [`to_gbnf`] prints a schema as a grammar that llama.cpp and
//! `maskwright-gbnf` read. Members come in the order in which the schema
//! declares them, strings have the escapes that they need, and numbers are
//! spelled without exponents where anything is asked of them: one text a
//! document, but for white space.
//!
//! Whatever a context-free grammar can hold is held, also where schemas meet
//! (`allOf`, `oneOf`, `not`, references): the formulas of
//! [`formula`](crate::formula) are derived member by member, as the machine
//! does while it reads. What it cannot hold is left out *towards the larger
//! language* and listed ([`Gbnf::left_out`]): items that must differ, keys
//! that must not come twice where any key may come, and conditions for which
//! the grammar would grow past its bounds. Every document that fits the
//! schema, written as above, is a text of the grammar; where nothing is
//! listed, every text of the grammar fits the schema.
//!
//! # Example
//!
//! ```
//! use maskwright_json_schema::{Options, convert};
//!
//! let schema = r#"{
//!     "type": "object",
//!     "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
//!     "required": ["name"],
//!     "additionalProperties": false
//! }"#;
//! let gbnf = convert::to_gbnf(schema, &convert::options())?;
//! assert!(gbnf.is_exact());
//! let root = gbnf.text.lines().next();
//! assert_eq!(
//!     root,
//!     Some(r#"root ::= "{\"name\":" string (",\"age\":" integer)? "}""#),
//! );
//! # Ok::<(), convert::ConvertError>(())
//! ```
//!
//! # When not to use it
//!
//! Maskwright itself takes the schema: it holds all of it, in any order. The
//! grammar is for engines that take no schema, or hold less of one.

mod arrays;
mod basics;
mod dfa;
mod expr;
mod graph;
mod left_out;
mod numbers;
mod objects;
mod print;
mod rules;
mod strings;
mod values;

use std::{
    fmt::{self, Write as _},
    sync::Arc,
};

use serde_json::Value;

use self::values::Converter;
use crate::{
    Options,
    error::SchemaError,
    format,
    formula::Formulas,
    machine::{Escapes, Numbers, Order, TextPolicy, Whitespace},
    parse::{self, Pool, Schema},
    viability::Viability,
};
pub use left_out::LeftOut;

/// The largest grammar, in bytes.
const MAX_BYTES: usize = 16 << 20;

/// A schema as a grammar.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Gbnf {
    /// The grammar, which starts at its rule `root`; comments at its head say
    /// what was left out.
    pub text: String,
    /// What the schema says and the grammar does not hold.
    pub left_out: Vec<LeftOut>,
    /// What was noticed about the schema itself, as
    /// [`Compiled::warnings`](crate::Compiled::warnings) has it.
    pub warnings: Vec<String>,
}

impl Gbnf {
    /// Whether every text of the grammar fits the schema.
    pub fn is_exact(&self) -> bool {
        self.left_out.is_empty()
    }
}

/// Why a schema was not converted.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The schema is at fault.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A grammar cannot follow one of the policies for texts.
    #[error(
        "a grammar cannot be written for `{option}` {given}; take {instead}"
    )]
    Policy {
        /// The policy.
        option: &'static str,
        /// What was asked for.
        given: String,
        /// What works.
        instead: &'static str,
    },
    /// The grammar would be larger than a limit.
    #[error(
        "{value} {which} of the grammar are over the limit of {limit}; \
         simplify the schema, or use it without converting it"
    )]
    TooLarge {
        /// What was limited.
        which: &'static str,
        /// The limit.
        limit: usize,
        /// The value that was met; at least this much.
        value: usize,
    },
}

/// What ends the conversion of a part of a schema.
#[derive(Debug)]
enum Trouble {
    /// It would need too many states; less of it may do.
    TooMany,
    /// There is no way on.
    Error(ConvertError),
}

impl From<ConvertError> for Trouble {
    fn from(error: ConvertError) -> Trouble {
        Trouble::Error(error)
    }
}

impl From<SchemaError> for Trouble {
    fn from(error: SchemaError) -> Trouble {
        Trouble::Error(error.into())
    }
}

/// The options with which a schema is converted by default: those of
/// generation, and no white space.
pub fn options() -> Options {
    let whitespace = Whitespace::Compact;
    let text = TextPolicy { whitespace, ..TextPolicy::default() };
    Options { text, ..Options::default() }
}

/// Converts a schema from its text.
///
/// # Errors
///
/// Fails as [`compile`](crate::compile) does; where the options ask for
/// spellings that a grammar is not written for; and where the grammar would
/// be too large.
pub fn to_gbnf(schema: &str, options: &Options) -> Result<Gbnf, ConvertError> {
    check_policy(&options.text)?;
    convert(parse::parse_str(schema, &options.parse)?, options)
}

/// Converts a schema that was parsed already.
///
/// # Errors
///
/// As [`to_gbnf`].
pub fn value_to_gbnf(
    schema: &Value,
    options: &Options,
) -> Result<Gbnf, ConvertError> {
    check_policy(&options.text)?;
    convert(parse::parse_value(schema, &options.parse)?, options)
}

fn check_policy(policy: &TextPolicy) -> Result<(), ConvertError> {
    let wrong = |option, given: &dyn fmt::Debug, instead| {
        let given = format!("{given:?}");
        Err(ConvertError::Policy { option, given, instead })
    };
    if policy.order != Order::Schema {
        return wrong("order", &policy.order, "`schema`");
    }
    if policy.escapes != Escapes::Needed {
        return wrong("escapes", &policy.escapes, "`needed`");
    }
    if policy.numbers != Numbers::Plain {
        return wrong("numbers", &policy.numbers, "`plain`");
    }
    if matches!(policy.whitespace, Whitespace::Indent { .. }) {
        let instead = "`compact`, `spaced` or `any`";
        return wrong("whitespace", &policy.whitespace, instead);
    }
    Ok(())
}

fn convert(
    (schema, pool): (Schema, Pool),
    options: &Options,
) -> Result<Gbnf, ConvertError> {
    crate::refuse_unsupported(&schema)?;
    let notes = schema.warnings().iter().map(ToString::to_string);
    let warnings: Vec<String> = notes.collect();
    let omitted: Vec<LeftOut> =
        schema.left_out().iter().map(LeftOut::of_error).collect();
    let limits = options.parse.limits;
    let mut formulas = Formulas::new(Arc::new(schema), pool, limits);
    let mut viability =
        Viability::new(options.budgets.compile).with_formats(format::language);
    formulas.check_cycles()?;
    viability.check_root(&mut formulas)?;
    let mut converter =
        Converter::new(formulas, viability, options.text.whitespace);
    for omission in omitted {
        converter.left_out.push(omission);
    }
    let (rules, left_out) = converter.run()?;
    let mut text = String::new();
    for omission in &left_out {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# left out: {omission}");
    }
    text.push_str(&rules);
    if text.len() > MAX_BYTES {
        let (limit, value) = (MAX_BYTES, text.len());
        return Err(ConvertError::TooLarge { which: "bytes", limit, value });
    }
    Ok(Gbnf { text, left_out, warnings })
}
