//! What a grammar is compiled from, and when two of these are the same.

use std::{
    hash::{Hash, Hasher},
    mem::discriminant,
    sync::Arc,
};

use maskwright_json_schema::parse;
use serde_json::Value;

use crate::grammar::{
    GbnfOptions, Grammar, GrammarError, NamedGrammar, SchemaOptions,
    StructuralTags, Tool, ToolStyle,
};
use crate::saved::{GrammarFileError, Origin, Writer};

/// What a grammar is compiled from, as servers are given it.
///
/// Two sources are the same if their texts and all their options are, to the
/// letter: a schema that is written with other white space is another source.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum GrammarSource {
    /// A JSON Schema.
    Schema {
        /// Its text.
        schema: String,
        /// How it is read, and how instances may be written.
        options: SchemaOptions,
    },
    /// A regular expression in Rust's syntax.
    Regex(String),
    /// A list of texts.
    Choices(Vec<String>),
    /// A grammar in GBNF.
    Gbnf {
        /// Its text.
        gbnf: String,
        /// What it is compiled with. Grammars in it that were compiled
        /// already are only the same if they are the same object.
        options: GbnfOptions,
    },
    /// Structural tags, as [`StructuralTags::from_json`] reads them.
    Tags {
        /// Their text.
        json: String,
        /// The options of the schemas in it.
        options: SchemaOptions,
    },
    /// Tools, as [`Tool::list_from_json`] reads them.
    Tools {
        /// Their text.
        json: String,
        /// How a call is written.
        style: ToolStyle,
        /// The options of the schemas in it.
        options: SchemaOptions,
    },
}

impl GrammarSource {
    /// Creates the source of a JSON Schema under the default options.
    pub fn schema(schema: impl Into<String>) -> GrammarSource {
        let options = SchemaOptions::default();
        GrammarSource::Schema { schema: schema.into(), options }
    }

    /// Creates the source of a regular expression.
    pub fn regex(regex: impl Into<String>) -> GrammarSource {
        GrammarSource::Regex(regex.into())
    }

    /// Creates the source of a list of texts.
    pub fn choices(
        choices: impl IntoIterator<Item: Into<String>>,
    ) -> GrammarSource {
        GrammarSource::Choices(choices.into_iter().map(Into::into).collect())
    }

    /// Creates the source of a grammar in GBNF that refers to no other.
    pub fn gbnf(gbnf: impl Into<String>) -> GrammarSource {
        let options = GbnfOptions::default();
        GrammarSource::Gbnf { gbnf: gbnf.into(), options }
    }

    /// Compiles the grammar, without any cache.
    ///
    /// # Errors
    ///
    /// Fails as the constructor of [`Grammar`] for this kind does.
    pub fn compile(&self) -> Result<Grammar, GrammarError> {
        GrammarSource::compile_shared(&Arc::new(self.clone()))
    }

    /// Does what [`GrammarSource::compile`] does. The grammar keeps the
    /// source, so that its masks can be saved.
    pub(super) fn compile_shared(
        self: &Arc<GrammarSource>,
    ) -> Result<Grammar, GrammarError> {
        let origin = Arc::clone(self);
        self.compile_alone().map(|grammar| grammar.with_origin(origin))
    }

    fn compile_alone(&self) -> Result<Grammar, GrammarError> {
        match self {
            GrammarSource::Schema { schema, options } => {
                Grammar::from_schema(schema, options)
            }
            GrammarSource::Regex(regex) => Grammar::from_regex(regex),
            GrammarSource::Choices(choices) => Grammar::from_choices(choices),
            GrammarSource::Gbnf { gbnf, options } => {
                Grammar::from_gbnf_with(gbnf, options)
            }
            GrammarSource::Tags { json, options } => {
                let tags = StructuralTags::from_json(json, options)?;
                Grammar::from_tags(&tags)
            }
            GrammarSource::Tools { json, style, options } => {
                let tools = Tool::list_from_json(json, options)?;
                let tags = StructuralTags::for_tools(&tools, *style)?;
                Grammar::from_tags(&tags)
            }
        }
    }

    /// Returns about how many bytes this holds.
    pub(super) fn memory(&self) -> usize {
        let documents = |options: &SchemaOptions| {
            options.parse.documents.values().map(memory_of).sum::<usize>()
        };
        size_of::<GrammarSource>()
            + match self {
                GrammarSource::Schema { schema: text, options }
                | GrammarSource::Tags { json: text, options }
                | GrammarSource::Tools { json: text, options, .. } => {
                    text.len() + documents(options)
                }
                GrammarSource::Regex(text) => text.len(),
                GrammarSource::Choices(texts) => texts
                    .iter()
                    .map(|text| text.len() + size_of::<String>())
                    .sum(),
                GrammarSource::Gbnf { gbnf, options } => {
                    let named = options.grammars.iter();
                    let named = named.map(|(name, grammar)| {
                        let of_text = match grammar {
                            NamedGrammar::Gbnf(text) => text.len(),
                            NamedGrammar::Grammar(_) => 0,
                        };
                        size_of::<NamedGrammar>() + name.len() + of_text
                    });
                    gbnf.len()
                        + documents(&options.schema)
                        + named.sum::<usize>()
                }
            }
    }
}

/// Two sources write the same if and only if they are the same.
impl Origin for GrammarSource {
    fn write(&self, out: &mut Writer) -> Result<(), GrammarFileError> {
        let mut head = |kind: &str, text: &str| {
            out.list(kind.as_bytes());
            out.list(text.as_bytes());
        };
        match self {
            GrammarSource::Schema { schema, options } => {
                head("schema", schema);
                write_options(options, out);
            }
            GrammarSource::Regex(regex) => head("regex", regex),
            GrammarSource::Choices(texts) => {
                head("choices", "");
                for text in texts {
                    out.list(text.as_bytes());
                }
            }
            GrammarSource::Gbnf { gbnf, options } => {
                head("gbnf", gbnf);
                let GbnfOptions { start_rule, schema, grammars } = options;
                out.list(start_rule.as_bytes());
                write_options(schema, out);
                for (name, grammar) in grammars {
                    let NamedGrammar::Gbnf(text) = grammar else {
                        let name = name.clone();
                        return Err(GrammarFileError::Reference { name });
                    };
                    out.list(name.as_bytes());
                    out.list(text.as_bytes());
                }
            }
            GrammarSource::Tags { json, options } => {
                head("tags", json);
                write_options(options, out);
            }
            GrammarSource::Tools { json, style, options } => {
                head("tools", json);
                out.list(format!("{style:?}").as_bytes());
                write_options(options, out);
            }
        }
        Ok(())
    }
}

/// Writes every option. Those that are plain values are written as they
/// describe themselves: with all their fields.
fn write_options(options: &SchemaOptions, out: &mut Writer) {
    let SchemaOptions { text, parse, budgets } = options;
    let parse::Options {
        draft,
        documents,
        format,
        known_formats,
        backreferences,
        lenient,
        limits,
    } = parse;
    let plain = (
        text,
        budgets,
        draft,
        format,
        known_formats,
        backreferences,
        lenient,
        limits,
    );
    out.list(format!("{plain:?}").as_bytes());
    out.number(documents.len() as u64);
    for (address, document) in documents {
        out.list(address.as_bytes());
        out.list(document.to_string().as_bytes());
    }
}

/// Hashes kind and text: the hash is an index, equality decides.
impl Hash for GrammarSource {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        discriminant(self).hash(hasher);
        match self {
            GrammarSource::Schema { schema: text, .. }
            | GrammarSource::Regex(text)
            | GrammarSource::Gbnf { gbnf: text, .. }
            | GrammarSource::Tags { json: text, .. }
            | GrammarSource::Tools { json: text, .. } => text.hash(hasher),
            GrammarSource::Choices(texts) => texts.hash(hasher),
        }
    }
}

impl PartialEq for GrammarSource {
    fn eq(&self, other: &GrammarSource) -> bool {
        use GrammarSource::{Choices, Gbnf, Regex, Schema, Tags, Tools};
        match (self, other) {
            (
                Schema { schema: text, options },
                Schema { schema: other, options: others },
            )
            | (
                Tags { json: text, options },
                Tags { json: other, options: others },
            ) => text == other && same_options(options, others),
            (
                Tools { json: text, style, options },
                Tools { json: other, style: other_style, options: others },
            ) => {
                text == other
                    && style == other_style
                    && same_options(options, others)
            }
            (Regex(text), Regex(other)) => text == other,
            (Choices(texts), Choices(others)) => texts == others,
            (
                Gbnf { gbnf: text, options },
                Gbnf { gbnf: other, options: others },
            ) => text == other && same_gbnf_options(options, others),
            _ => false,
        }
    }
}

impl Eq for GrammarSource {}

/// Every field is named, so that a new one is not forgotten.
fn same_options(one: &SchemaOptions, other: &SchemaOptions) -> bool {
    let SchemaOptions { text, parse, budgets } = one;
    let parse::Options {
        draft,
        documents,
        format,
        known_formats,
        backreferences,
        lenient,
        limits,
    } = parse;
    *text == other.text
        && *budgets == other.budgets
        && *draft == other.parse.draft
        && *format == other.parse.format
        && *known_formats == other.parse.known_formats
        && *backreferences == other.parse.backreferences
        && *lenient == other.parse.lenient
        && *limits == other.parse.limits
        && documents.len() == other.parse.documents.len()
        && documents
            .iter()
            .zip(&other.parse.documents)
            .all(|(a, b)| a.0 == b.0 && same_value(a.1, b.1))
}

fn same_gbnf_options(one: &GbnfOptions, other: &GbnfOptions) -> bool {
    let GbnfOptions { start_rule, schema, grammars } = one;
    *start_rule == other.start_rule
        && same_options(schema, &other.schema)
        && grammars.len() == other.grammars.len()
        && grammars.iter().zip(&other.grammars).all(|(a, b)| {
            let same = match (a.1, b.1) {
                (NamedGrammar::Gbnf(text), NamedGrammar::Gbnf(other)) => {
                    text == other
                }
                (NamedGrammar::Grammar(a), NamedGrammar::Grammar(b)) => {
                    Arc::ptr_eq(a.automaton(), b.automaton())
                }
                _ => false,
            };
            a.0 == b.0 && same
        })
}

/// Whether two values are the same with their members in the same order,
/// which matters to a grammar.
fn same_value(one: &Value, other: &Value) -> bool {
    let mut pending = vec![(one, other)];
    while let Some(pair) = pending.pop() {
        match pair {
            (Value::Array(a), Value::Array(b)) => {
                if a.len() != b.len() {
                    return false;
                }
                pending.extend(a.iter().zip(b));
            }
            (Value::Object(a), Value::Object(b)) => {
                if !a.keys().eq(b.keys()) {
                    return false;
                }
                pending.extend(a.values().zip(b.values()));
            }
            (a, b) if a != b => return false,
            _ => {}
        }
    }
    true
}

/// About how many bytes a value holds.
fn memory_of(value: &Value) -> usize {
    let mut bytes = 0;
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        bytes += size_of::<Value>();
        match value {
            Value::String(text) => bytes += text.len(),
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => {
                bytes += members.keys().map(String::len).sum::<usize>();
                pending.extend(members.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Whitespace;

    fn with(change: impl FnOnce(&mut SchemaOptions)) -> GrammarSource {
        let mut options = SchemaOptions::default();
        change(&mut options);
        GrammarSource::Schema { schema: "{}".to_owned(), options }
    }

    fn document(text: &str) -> GrammarSource {
        let value = serde_json::from_str(text).expect("JSON");
        with(|options| {
            options.parse.documents.insert("urn:x".to_owned(), value);
        })
    }

    #[test]
    fn sources_are_the_same_to_the_letter() {
        let sources = [
            GrammarSource::schema("{}"),
            GrammarSource::schema("{ }"),
            GrammarSource::regex("{}"),
            GrammarSource::regex("a"),
            GrammarSource::gbnf("a"),
            GrammarSource::choices(["a"]),
            GrammarSource::choices(["a", "b"]),
            with(|options| {
                options.text.whitespace = Whitespace::Any { max: 3 }
            }),
            with(|options| options.parse.lenient = true),
            with(|options| options.budgets.state += 1),
            with(|options| options.parse.limits.max_depth += 1),
            document(r#"{"properties": {"a": {}, "b": {}}}"#),
            document(r#"{"properties": {"b": {}, "a": {}}}"#),
            document(r#"{"minimum": 1.0}"#),
            document(r#"{"minimum": 1}"#),
        ];
        for (index, source) in sources.iter().enumerate() {
            for (other_index, other) in sources.iter().enumerate() {
                assert_eq!(
                    source == &other.clone(),
                    index == other_index,
                    "{source:?} and {other:?}",
                );
            }
        }
    }

    #[test]
    fn compiled_grammars_are_the_same_if_they_are_one() {
        let with = |grammar: &Grammar| {
            let mut options = GbnfOptions::default();
            let grammar = NamedGrammar::Grammar(grammar.clone());
            options.grammars.insert("x".to_owned(), grammar);
            let gbnf = "root ::= %grammar x".to_owned();
            GrammarSource::Gbnf { gbnf, options }
        };
        let [one, other] =
            ["a", "a"].map(|text| Grammar::from_regex(text).expect("valid"));
        assert_eq!(with(&one), with(&one));
        assert_ne!(with(&one), with(&other));
    }
}
