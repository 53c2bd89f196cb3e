//! What may be written: the one type behind every kind of grammar.
//!
//! A [`Grammar`] is immutable and cheap to clone; any number of matchers may
//! run over it at once. It knows bytes only: a vocabulary joins it in a
//! [`CompiledGrammar`].
//!
//! # Example
//!
//! ```
//! use maskwright::grammar::Grammar;
//!
//! let grammar = Grammar::from_regex("[0-9]{4}-[0-9]{2}")?;
//! assert!(grammar.accepts("2026-11")?);
//! assert!(!grammar.accepts("2026-1")?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod free_text;
mod linked;
mod tag_file;
mod tags;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use maskwright_gbnf::GbnfError;
pub use maskwright_grammar_core::automaton::AtomToken;
use maskwright_grammar_core::{
    automaton::{
        Automaton, AutomatonError, Recognizer, RegexMachine, RegexMachineError,
    },
    regular::Limits,
};
use maskwright_json_schema::Compiled;
pub use maskwright_json_schema::{
    Backreferences, Draft, Escapes, FormatPolicy, Numbers,
    Options as SchemaOptions, Order, SchemaError, TextPolicy, Whitespace,
};
use serde_json::Value;

pub use self::{
    linked::{GbnfOptions, NamedGrammar},
    tag_file::{TagFileError, Tool, ToolStyle},
    tags::{Marker, Reasoning, StructuralTags, Tag, TagError},
};
use crate::{
    compiled::{BindError, CompiledGrammar},
    mask::TokenTrie,
    saved::Origin,
};

/// A set of texts, as a lazily built automaton over bytes.
#[derive(Clone, Debug)]
pub struct Grammar {
    automaton: Arc<dyn Automaton>,
    warnings: Arc<[String]>,
    schema: Option<Arc<Compiled>>,
    /// What it was compiled from, if that is known.
    origin: Option<Arc<dyn Origin>>,
}

impl Grammar {
    /// Compiles a JSON Schema from its text.
    ///
    /// # Errors
    ///
    /// Fails when the text is no JSON, when the schema is invalid or uses
    /// what cannot be enforced, and when no value satisfies it. The error has
    /// the JSON pointer of the place.
    pub fn from_schema(
        schema: &str,
        options: &SchemaOptions,
    ) -> Result<Grammar, GrammarError> {
        maskwright_json_schema::compile(schema, options)
            .map(Grammar::from_compiled)
            .map_err(GrammarError::from)
    }

    /// Compiles a JSON Schema that was parsed already.
    ///
    /// # Errors
    ///
    /// As [`Grammar::from_schema`].
    pub fn from_schema_value(
        schema: &Value,
        options: &SchemaOptions,
    ) -> Result<Grammar, GrammarError> {
        maskwright_json_schema::compile_value(schema, options)
            .map(Grammar::from_compiled)
            .map_err(GrammarError::from)
    }

    fn from_compiled(compiled: Compiled) -> Grammar {
        Grammar {
            automaton: Arc::clone(&compiled.automaton),
            warnings: compiled.warnings.clone().into(),
            schema: Some(Arc::new(compiled)),
            origin: None,
        }
    }

    /// Compiles the grammar of any JSON value.
    ///
    /// # Errors
    ///
    /// Never for the options that exist; a limit may be added.
    pub fn json(options: &SchemaOptions) -> Result<Grammar, GrammarError> {
        Grammar::from_schema_value(&Value::Bool(true), options)
    }

    /// Compiles a regular expression in Rust's syntax, which must match the
    /// whole text.
    ///
    /// # Errors
    ///
    /// Fails when the expression does not parse; the error has the offset.
    pub fn from_regex(regex: &str) -> Result<Grammar, GrammarError> {
        let machine = RegexMachine::new(regex, Limits::default())?;
        Ok(Grammar::from_automaton(Arc::new(machine)))
    }

    /// Compiles a list of texts, one of which must be written.
    ///
    /// Where one choice begins another, the end of the text decides.
    ///
    /// # Errors
    ///
    /// Fails when there are no choices.
    pub fn from_choices<S: AsRef<str>>(
        choices: &[S],
    ) -> Result<Grammar, GrammarError> {
        let machine = RegexMachine::choices(choices, Limits::default())?;
        Ok(Grammar::from_automaton(Arc::new(machine)))
    }

    /// Compiles a list of texts, one of which must be written, in the
    /// spellings that the options admit.
    ///
    /// ```
    /// use maskwright::grammar::{ChoiceOptions, Grammar};
    ///
    /// let options = ChoiceOptions { leading_space: true };
    /// let grammar = Grammar::from_choices_with(&["yes", "no"], &options)?;
    /// assert!(grammar.accepts(" yes")? && grammar.accepts("yes")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Grammar::from_choices`].
    pub fn from_choices_with<S: AsRef<str>>(
        choices: &[S],
        options: &ChoiceOptions,
    ) -> Result<Grammar, GrammarError> {
        let choices = choices.iter().map(AsRef::as_ref);
        let spaced = choices.clone().filter(|choice| {
            options.leading_space && !choice.starts_with(' ')
        });
        let spaced: Vec<String> =
            spaced.map(|choice| format!(" {choice}")).collect();
        let all: Vec<&str> =
            choices.chain(spaced.iter().map(String::as_str)).collect();
        Grammar::from_choices(&all)
    }

    /// Compiles a grammar in GBNF, which starts at its rule `root`.
    ///
    /// # Errors
    ///
    /// Fails when the grammar does not parse or derives nothing; the error
    /// has line, column and caret.
    pub fn from_gbnf(gbnf: &str) -> Result<Grammar, GrammarError> {
        Grammar::from_gbnf_with(gbnf, &GbnfOptions::default())
    }

    /// Compiles a grammar in GBNF together with the grammars that it names.
    ///
    /// ```
    /// use maskwright::grammar::{GbnfOptions, Grammar, NamedGrammar};
    ///
    /// let call = r#"root ::= "call(" %json {"type": "integer"} ")""#;
    /// let mut options = GbnfOptions::default();
    /// let call = NamedGrammar::Gbnf(call.to_owned());
    /// options.grammars.insert("call".to_owned(), call);
    /// let text = "root ::= %grammar call (\";\" %grammar call)*";
    /// let grammar = Grammar::from_gbnf_with(text, &options)?;
    /// assert!(grammar.accepts("call(1);call(20)")?);
    /// assert!(!grammar.accepts("call(01)")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Grammar::from_gbnf`], and when a named grammar or an embedded
    /// schema is refused.
    pub fn from_gbnf_with(
        gbnf: &str,
        options: &GbnfOptions,
    ) -> Result<Grammar, GrammarError> {
        linked::compile(gbnf, options)
    }

    /// Compiles free text with structural tags in it.
    ///
    /// # Errors
    ///
    /// Fails when the tags and their triggers do not fit each other.
    pub fn from_tags(tags: &StructuralTags) -> Result<Grammar, GrammarError> {
        tags::compile(tags).map_err(GrammarError::from)
    }

    /// Returns the grammar of a section of reasoning and then a text of this
    /// one.
    ///
    /// ```
    /// use maskwright::grammar::{Grammar, Marker, Reasoning};
    ///
    /// let label = Grammar::from_choices(&["yes", "no"])?;
    /// let end = Marker::Text("</think>".to_owned());
    /// let grammar = label.after_reasoning(&Reasoning::until(end))?;
    /// assert!(grammar.accepts("1 < 2, and so </think>yes")?);
    /// assert!(!grammar.accepts("yes")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails when the end of the section is empty.
    pub fn after_reasoning(
        &self,
        reasoning: &Reasoning,
    ) -> Result<Grammar, GrammarError> {
        tags::after_reasoning(self, reasoning).map_err(GrammarError::from)
    }

    /// Wraps a machine of your own.
    pub fn from_automaton(automaton: Arc<dyn Automaton>) -> Grammar {
        let warnings = Arc::default();
        Grammar { automaton, warnings, schema: None, origin: None }
    }

    /// Sets what the grammar was compiled from.
    pub(crate) fn with_origin(mut self, origin: Arc<dyn Origin>) -> Grammar {
        self.origin = Some(origin);
        self
    }

    /// Brings this grammar and a vocabulary together.
    ///
    /// # Errors
    ///
    /// Fails when the grammar names a token that the vocabulary lacks.
    pub fn compile(
        &self,
        tokens: &Arc<TokenTrie>,
    ) -> Result<Arc<CompiledGrammar>, BindError> {
        let automaton = Arc::clone(&self.automaton);
        let compiled = CompiledGrammar::new(automaton, Arc::clone(tokens))?;
        Ok(Arc::new(compiled.with_origin(self.origin.clone())))
    }

    /// Returns the machine.
    pub fn automaton(&self) -> &Arc<dyn Automaton> {
        &self.automaton
    }

    /// Returns what was noticed while compiling: keywords that are only
    /// annotations, rules that are not used.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns what a JSON Schema says about itself: each warning with its
    /// keyword, place and reason, and how many of the states are inexact.
    /// `None` for every other kind of grammar.
    pub fn schema(&self) -> Option<&Compiled> {
        self.schema.as_deref()
    }

    /// Returns true if and only if `text` is in this grammar.
    ///
    /// # Errors
    ///
    /// Fails when a limit is met.
    pub fn accepts(&self, text: &str) -> Result<bool, AutomatonError> {
        // What a checker says of a refusal takes longer than the verdict.
        let mut recognizer = Recognizer::new(Arc::clone(&self.automaton))?;
        Ok(recognizer.push_bytes(text.as_bytes())?
            && recognizer.is_accepting()?)
    }
}

/// How choices may be written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ChoiceOptions {
    /// Whether a space may stand before a choice that does not begin with
    /// one. Off by default: the text is then one of the choices, byte for
    /// byte. To a model ` yes` and `yes` are different tokens, and after a
    /// prompt that ends without a space it mostly means the first.
    pub leading_space: bool,
}

/// An error that occurs when a grammar cannot be compiled.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrammarError {
    /// The JSON Schema is at fault.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The regular expression, or the list of choices, is at fault.
    #[error(transparent)]
    Regex(#[from] RegexMachineError),
    /// The GBNF grammar is at fault.
    #[error(transparent)]
    Gbnf(#[from] GbnfError),
    /// The structural tags, or the section of reasoning, are at fault.
    #[error(transparent)]
    Tags(#[from] TagError),
    /// A file of tags or tools is at fault.
    #[error(transparent)]
    TagFile(#[from] TagFileError),
}

impl GrammarError {
    /// Returns a stable name of the kind, for machines.
    pub fn kind(&self) -> &'static str {
        match self {
            GrammarError::Schema(error) => error.kind_name(),
            GrammarError::Regex(RegexMachineError::Pattern(_)) => {
                "invalid_regex"
            }
            GrammarError::Regex(RegexMachineError::NoChoices) => "no_choices",
            GrammarError::Regex(RegexMachineError::MatchesNothing) => {
                "unsatisfiable"
            }
            GrammarError::Regex(_)
            | GrammarError::Tags(TagError::Machine(_)) => "resource_limit",
            GrammarError::Gbnf(_) => "invalid_gbnf",
            GrammarError::TagFile(TagFileError::Grammar { error, .. }) => {
                error.kind()
            }
            GrammarError::Tags(_) | GrammarError::TagFile(_) => "invalid_tags",
        }
    }

    /// Returns where the error is: a JSON pointer, a byte offset, or a line
    /// and a column.
    pub fn location(&self) -> Option<String> {
        match self {
            GrammarError::Schema(error) => Some(error.location().address()),
            GrammarError::Regex(RegexMachineError::Pattern(error)) => {
                Some(error.offset().to_string())
            }
            GrammarError::Regex(_)
            | GrammarError::Tags(_)
            | GrammarError::TagFile(_) => None,
            GrammarError::Gbnf(error) => {
                Some(format!("{}:{}", error.line(), error.column()))
            }
        }
    }
}
