//! From schema text to a graph of checked nodes.
//!
//! Reading resolves every reference, checks the value of every keyword and
//! parses every regular expression of all nodes that can be reached, so that
//! later expansion, which is lazy, finds no fault of the schema any more.
//! Nothing is fetched: documents that references lead to are supplied.
//!
//! Definitions that no reference reaches are not looked at.

pub(crate) mod builder;
mod json;
mod meta;
mod pattern;
mod pool;
pub(crate) mod resources;
mod schema;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bumpalo::Bump;
use serde_json::Value;

pub(crate) use json::{Json, Object};
pub use json::{JsonError, read_json};
pub(crate) use pattern::language_matches;
pub use pattern::{Backreferences, Pattern, PatternError};
pub(crate) use pool::id;
pub use pool::{
    Constant, ConstantId, FormatId, NameId, NumberId, PatternId, Pool,
};
pub(crate) use schema::DynamicScope;
pub use schema::{
    JsonType, Keyword, Node, NodeId, NodeKind, NumberRule, ResourceId, Schema,
    TypeSet, Warning, WarningReason,
};

use crate::draft::Draft;
use crate::error::{ErrorKind, SchemaError};
use crate::format;
use crate::location::Location;
use builder::Builder;
use resources::{Dialect, Resources};

/// What `format` means.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum FormatPolicy {
    /// It is an annotation: it constrains nothing.
    #[default]
    Annotate,
    /// Known formats are enforced; others are warned about.
    AssertKnown,
    /// Known formats are enforced; others are errors.
    AssertAll,
}

/// How large a schema may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Bytes of the schema's text.
    pub max_bytes: usize,
    /// Nesting of arrays and objects in the schema's text.
    pub max_depth: usize,
    /// Schema nodes that can be reached.
    pub max_nodes: usize,
    /// Nesting of one typed formula.
    pub max_formula_depth: usize,
    /// Formulas in the arena of one schema.
    pub max_formulas: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_bytes: 16 << 20,
            max_depth: 512,
            max_nodes: 1_000_000,
            max_formula_depth: 512,
            max_formulas: 4_000_000,
        }
    }
}

/// How a schema is read.
#[derive(Clone, Debug)]
pub struct Options {
    /// The draft where `$schema` is absent or unknown. Without one, 2020-12
    /// is used and the spellings of older drafts are understood too.
    pub draft: Option<Draft>,
    /// Documents that references may lead to, by address. Those of the
    /// meta-schemas of all drafts are known without.
    pub documents: BTreeMap<String, Value>,
    /// What `format` means.
    pub format: FormatPolicy,
    /// The formats that are enforced, in every draft. A name without a
    /// [`format::language`] allows every string.
    pub known_formats: &'static [&'static str],
    /// What becomes of a backreference in a regular expression.
    pub backreferences: Backreferences,
    /// Whether a keyword that cannot be enforced is left out and listed
    /// ([`Schema::left_out`]) where it is an error otherwise: an expression
    /// that is not regular or over a limit, and a format that is not known
    /// where all are asked for. An invalid schema stays an error, and so does
    /// a reference that leads nowhere.
    ///
    /// What is left out constrains nothing; a pattern of `patternProperties`
    /// then takes every key and any value. Beneath `not`, and in the other
    /// branches of a `oneOf`, that forbids more rather than less.
    pub lenient: bool,
    /// How large the schema may be.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            draft: None,
            documents: BTreeMap::new(),
            format: FormatPolicy::default(),
            known_formats: format::KNOWN,
            backreferences: Backreferences::default(),
            lenient: false,
            limits: Limits::default(),
        }
    }
}

/// Reads a schema from its text.
///
/// # Errors
///
/// Fails where the text is no JSON, where a keyword has a value that the
/// draft does not allow, where a reference or a regular expression is wrong,
/// and where a limit is met. The error says where.
pub fn parse_str(
    text: &str,
    options: &Options,
) -> Result<(Schema, Pool), SchemaError> {
    let Limits { max_bytes, max_depth, .. } = options.limits;
    if text.len() > max_bytes {
        let (limit, value) = (max_bytes as u64, text.len() as u64);
        let which = "bytes of the schema";
        let place = Location::root();
        return Err(SchemaError::limit(which, limit, value, place));
    }
    // A tree takes about twice the room of its text.
    let bump = Bump::with_capacity(2 * text.len());
    let value = Json::read(text, max_depth, &bump).map_err(|error| {
        if error.too_deep {
            return too_deep(max_depth, Location::root());
        }
        let JsonError { message, offset, .. } = error;
        let kind = ErrorKind::InvalidJson { message, offset };
        SchemaError::new(kind, Location::root())
    })?;
    parse_checked(value, options, &bump)
}

/// Reads a schema from a JSON value.
///
/// # Errors
///
/// As [`parse_str`], the text aside.
pub fn parse_value(
    value: &Value,
    options: &Options,
) -> Result<(Schema, Pool), SchemaError> {
    check_depth(value, options.limits.max_depth, Location::root())?;
    let bump = Bump::new();
    let value = bump.alloc(Json::from_value(value, &bump));
    parse_checked(value, options, &bump)
}

fn parse_checked<'a>(
    value: &'a Json<'a>,
    options: &'a Options,
    bump: &'a Bump,
) -> Result<(Schema, Pool), SchemaError> {
    let mut documents = BTreeMap::new();
    for (address, document) in &options.documents {
        let place = Location { document: address.clone(), ..Location::root() };
        check_depth(document, options.limits.max_depth, place)?;
        let document = Json::from_value(document, bump);
        documents.insert(address.as_str(), &*bump.alloc(document));
    }
    if !value.is_object() && !value.is_boolean() {
        let expected = "an object or a boolean";
        let kind = ErrorKind::invalid("schema", expected, value);
        return Err(SchemaError::new(kind, Location::root()));
    }
    let mut default = Dialect::of(options.draft.unwrap_or_default());
    default.compatible = options.draft.is_none();
    let forced = options.draft.is_some();
    let mut resources = Resources::new(documents, default, forced, bump);
    let root = resources.load("", value)?;
    Builder::new(options, resources).build(root)
}

fn too_deep(limit: usize, place: Location) -> SchemaError {
    let limit = limit as u64;
    SchemaError::limit("nesting of the schema", limit, limit + 1, place)
}

/// Checks the nesting of a value, so that recursion on it is bounded.
fn check_depth(
    value: &Value,
    limit: usize,
    place: Location,
) -> Result<(), SchemaError> {
    let mut stack = vec![(value, 0)];
    while let Some((value, depth)) = stack.pop() {
        if depth > limit {
            return Err(too_deep(limit, place));
        }
        match value {
            Value::Array(items) => {
                stack.extend(items.iter().map(|item| (item, depth + 1)));
            }
            Value::Object(map) => {
                stack.extend(map.values().map(|value| (value, depth + 1)));
            }
            _ => {}
        }
    }
    Ok(())
}
