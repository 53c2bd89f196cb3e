//! Why a schema was refused: what, where, and the way out.

use std::fmt;

use maskwright_grammar_core::{interrupt::Interrupted, regular::point_at};

use crate::location::Location;
use crate::parse::Json;

/// A schema that cannot be compiled, with the place that is at fault.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SchemaError {
    kind: Box<ErrorKind>,
    location: Location,
}

/// The ways in which a schema is refused.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is not JSON, or has a member name twice.
    InvalidJson {
        /// What is wrong.
        message: String,
        /// The byte at which it is wrong.
        offset: usize,
    },
    /// A keyword has a value that the draft does not allow.
    InvalidKeyword {
        /// The keyword.
        keyword: String,
        /// What its value must be.
        expected: String,
        /// What is there instead.
        found: String,
    },
    /// A keyword that is known but cannot be enforced yet.
    UnsupportedKeyword {
        /// The keyword.
        keyword: String,
        /// The nearest thing that works.
        instead: String,
    },
    /// `$schema` names a dialect that is not known.
    UnknownDialect {
        /// The value of `$schema`.
        uri: String,
    },
    /// The meta-schema that `$schema` names needs a vocabulary that is not
    /// known.
    UnknownVocabulary {
        /// The vocabulary.
        uri: String,
    },
    /// A reference leads nowhere.
    UnresolvedRef {
        /// The reference as written.
        reference: String,
        /// Which part of it was not found.
        reason: String,
    },
    /// A schema applies itself to the same value.
    InPlaceCycle,
    /// A regular expression does not parse.
    InvalidRegex {
        /// The pattern.
        pattern: String,
        /// The byte at which it fails.
        offset: usize,
        /// What is wrong there.
        message: String,
    },
    /// A regular expression uses what cannot be decided here.
    UnsupportedRegex {
        /// The pattern.
        pattern: String,
        /// The byte at which it is.
        offset: usize,
        /// The feature.
        feature: String,
    },
    /// A format is not known and the policy asks for all of them.
    UnknownFormat {
        /// The format's name.
        format: String,
    },
    /// No JSON value satisfies the schema.
    Unsatisfiable {
        /// Which constraints clash.
        explanation: String,
    },
    /// The schema is larger than a limit allows.
    ResourceLimit {
        /// What was limited.
        which: &'static str,
        /// The limit.
        limit: u64,
        /// The value that was asked for; at least this much.
        value: u64,
    },
    /// The time for it ran out, or it was cancelled.
    Interrupted(Interrupted),
}

impl SchemaError {
    /// Creates an error about the given place.
    pub fn new(kind: ErrorKind, location: Location) -> SchemaError {
        SchemaError { kind: Box::new(kind), location }
    }

    /// Creates the error of a limit that was met.
    pub fn limit(
        which: &'static str,
        limit: u64,
        value: u64,
        location: Location,
    ) -> SchemaError {
        SchemaError::new(
            ErrorKind::ResourceLimit { which, limit, value },
            location,
        )
    }

    /// What is wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Where it is wrong.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// A stable name of the kind, for machines.
    pub fn kind_name(&self) -> &'static str {
        self.kind.name()
    }
}

impl ErrorKind {
    /// The kind of a keyword whose value is not what it must be.
    pub(crate) fn invalid(
        keyword: &str,
        expected: &str,
        value: &Json<'_>,
    ) -> ErrorKind {
        let keyword = keyword.to_owned();
        let expected = expected.to_owned();
        ErrorKind::InvalidKeyword { keyword, expected, found: show(*value) }
    }

    /// A stable name of the kind, for machines.
    pub fn name(&self) -> &'static str {
        match self {
            ErrorKind::InvalidJson { .. } => "invalid_json",
            ErrorKind::InvalidKeyword { .. } => "invalid_keyword",
            ErrorKind::UnsupportedKeyword { .. } => "unsupported_keyword",
            ErrorKind::UnknownDialect { .. } => "unknown_dialect",
            ErrorKind::UnknownVocabulary { .. } => "unknown_vocabulary",
            ErrorKind::UnresolvedRef { .. } => "unresolved_ref",
            ErrorKind::InPlaceCycle => "in_place_cycle",
            ErrorKind::InvalidRegex { .. } => "invalid_regex",
            ErrorKind::UnsupportedRegex { .. } => "unsupported_regex",
            ErrorKind::UnknownFormat { .. } => "unknown_format",
            ErrorKind::Unsatisfiable { .. } => "unsatisfiable",
            ErrorKind::ResourceLimit { .. } => "resource_limit",
            ErrorKind::Interrupted(_) => "interrupted",
        }
    }
}

/// How much of a value an error shows.
const MAX_SHOWN: usize = 40;

/// Says what a value is, in short.
fn show(value: Json<'_>) -> String {
    match value {
        Json::Array([]) => "an empty array".to_owned(),
        Json::Array(_) => "an array".to_owned(),
        Json::Object(_) => "an object".to_owned(),
        scalar => {
            let text = scalar.to_value().to_string();
            match text.char_indices().nth(MAX_SHOWN) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = &self.location;
        match &*self.kind {
            ErrorKind::InvalidJson { message, offset } => {
                write!(f, "invalid JSON at byte {offset}: {message}")
            }
            ErrorKind::InvalidKeyword { keyword, expected, found } => write!(
                f,
                "invalid `{keyword}` at {at}: expected {expected}, found \
                 {found}",
            ),
            ErrorKind::UnsupportedKeyword { keyword, instead } => write!(
                f,
                "`{keyword}` at {at} cannot be enforced yet; {instead}",
            ),
            ErrorKind::UnknownDialect { uri } => write!(
                f,
                "unknown dialect {uri:?} at {at}; name draft 4, 6, 7, \
                 2019-09 or 2020-12, force one with the draft option, or \
                 supply the meta-schema as a document",
            ),
            ErrorKind::UnknownVocabulary { uri } => write!(
                f,
                "the meta-schema that {at} names requires the vocabulary \
                 {uri:?}, which is not known; list it as not required \
                 (false) if it constrains nothing",
            ),
            ErrorKind::UnresolvedRef { reference, reason } => write!(
                f,
                "unresolved reference {reference:?} at {at}: {reason}",
            ),
            ErrorKind::InPlaceCycle => write!(
                f,
                "the schema at {at} applies itself to the same value; put \
                 the reference below a property or an item",
            ),
            ErrorKind::InvalidRegex { pattern, offset, message } => write!(
                f,
                "invalid regular expression {pattern:?} at {at}, byte \
                 {offset}: {message}{}",
                point_at(pattern, *offset),
            ),
            ErrorKind::UnsupportedRegex { pattern, offset, feature } => {
                write!(
                    f,
                    "unsupported regular expression {pattern:?} at {at}, byte \
                 {offset}: {feature}{}",
                    point_at(pattern, *offset),
                )
            }
            ErrorKind::UnknownFormat { format } => write!(
                f,
                "unknown format {format:?} at {at}; spell it as a pattern, \
                 or use the policy assert-known or annotate",
            ),
            ErrorKind::Unsatisfiable { explanation } => {
                write!(f, "no value satisfies {at}: {explanation}")
            }
            ErrorKind::ResourceLimit { which, limit, value } => write!(
                f,
                "{which} at {at}: {value} is over the limit of {limit}; \
                 raise the limit or simplify the schema",
            ),
            ErrorKind::Interrupted(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SchemaError {}
