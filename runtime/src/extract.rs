//! From a text to a value that fits a schema.
//!
//! [`extract`] asks a model for the value of a Rust type, under the schema
//! that the type has; [`extract_json`] does so for any schema and returns the
//! document. Both validate what came out with the `jsonschema` crate before
//! they hand it over: the masks make that a formality, and it stays a check
//! by somebody else. An [`Extractor`] does what `extract_json` does for many
//! texts, and prepares the schema once.

use std::{ops::ControlFlow, sync::Arc};

use maskwright_json_schema::Options;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    batch_extract::Problem,
    compiled::CompiledGrammar,
    generate::{
        FinishReason, GenerateError, Generation, Generator, Message, Prompt,
        Request, Role,
    },
    grammar::{Grammar, GrammarError},
    interrupt::Interrupt,
    model::ModelError,
    pipeline::SamplingOptions,
};

/// How a value is extracted.
#[derive(Clone, Debug)]
pub struct ExtractOptions {
    /// What the model is told before it is shown the schema and the text.
    pub instructions: String,
    /// The greatest number of tokens in the document.
    pub max_tokens: usize,
    /// How each token is chosen; greedy by default.
    pub sampling: SamplingOptions,
    /// Whether the document must be whole within `max_tokens`, as it is by
    /// default ([`Request::finish_within_budget`]).
    pub finish_within_budget: bool,
    /// How the schema is read and the document may be written.
    pub schema: Options,
}

impl Default for ExtractOptions {
    fn default() -> ExtractOptions {
        ExtractOptions {
            instructions: "You read a text and answer with one JSON \
                           document that fits the given JSON schema. Take \
                           every value from the text."
                .to_owned(),
            max_tokens: 512,
            sampling: SamplingOptions::greedy(),
            finish_within_budget: true,
            schema: Options::default(),
        }
    }
}

/// A document that was extracted.
#[derive(Clone, Debug)]
pub struct Extraction {
    /// The document as the model wrote it.
    pub text: String,
    /// The same, parsed; members in the order in which they were written.
    pub value: Value,
    /// How it came about.
    pub generation: Generation,
}

/// Extracts the value of a type from `text`.
///
/// # Errors
///
/// Fails when the type's schema cannot be enforced, when the model fails, and
/// when the document does not fit within the limit on tokens.
pub fn extract<T: JsonSchema + DeserializeOwned>(
    generator: &mut Generator,
    text: &str,
) -> Result<T, ExtractError> {
    let schema = schemars::schema_for!(T);
    let options = ExtractOptions::default();
    let schema = schema.to_value();
    let extraction = extract_json(generator, &schema, text, &options)?;
    serde_json::from_str(&extraction.text).map_err(ExtractError::Parse)
}

/// Extracts a document that fits `schema` from `text`.
///
/// # Errors
///
/// As [`extract`].
pub fn extract_json(
    generator: &mut Generator,
    schema: &Value,
    text: &str,
    options: &ExtractOptions,
) -> Result<Extraction, ExtractError> {
    Extractor::new(generator, schema, options)?.extract(generator, text)
}

/// A schema that is ready for one generator, to extract documents from any
/// number of texts.
#[derive(Clone, Debug)]
pub struct Extractor {
    schema: Value,
    grammar: Arc<CompiledGrammar>,
    validator: Arc<jsonschema::Validator>,
    /// Whether the grammar does not enforce all of the schema.
    is_partial: bool,
    options: ExtractOptions,
    interrupt: Option<Interrupt>,
}

impl Extractor {
    /// Prepares a schema for `generator`.
    ///
    /// # Errors
    ///
    /// Fails when the schema cannot be enforced, and when the validator does
    /// not accept it.
    pub fn new(
        generator: &Generator,
        schema: &Value,
        options: &ExtractOptions,
    ) -> Result<Extractor, ExtractError> {
        let grammar = Grammar::from_schema_value(schema, &options.schema)?;
        let validator = jsonschema::validator_for(schema)
            .map_err(|error| ExtractError::Validator(error.to_string()))?;
        Ok(Extractor {
            schema: schema.clone(),
            grammar: generator.compile(&grammar)?,
            validator: Arc::new(validator),
            is_partial: grammar
                .schema()
                .is_some_and(|it| !it.left_out.is_empty()),
            options: options.clone(),
            interrupt: None,
        })
    }

    /// Sets what may break off the work on a text
    /// ([`ExtractError::Cancelled`]).
    #[must_use]
    pub fn interrupt(self, interrupt: Interrupt) -> Extractor {
        Extractor { interrupt: Some(interrupt), ..self }
    }

    /// Extracts a document from `text` with the generator that this was made
    /// for.
    ///
    /// # Errors
    ///
    /// Fails when the text does not fit the model, when the model fails, when
    /// the document does not fit within the limit on tokens, and when the
    /// work is interrupted.
    pub fn extract(
        &self,
        generator: &mut Generator,
        text: &str,
    ) -> Result<Extraction, ExtractError> {
        let request = Request {
            prompt: prompt(&self.schema, text, &self.options),
            grammar: Some(Arc::clone(&self.grammar)),
            max_tokens: self.options.max_tokens,
            sampling: self.options.sampling.clone(),
            finish_within_budget: self.options.finish_within_budget,
            interrupt: self.interrupt.clone(),
            ..Request::default()
        };
        let generation = generator
            .generate(&request, &mut |_| ControlFlow::Continue(()))?;
        self.finish(generation)
    }

    /// Parses and validates what was generated.
    fn finish(
        &self,
        generation: Generation,
    ) -> Result<Extraction, ExtractError> {
        if generation.finish_reason == FinishReason::Cancelled {
            return Err(ExtractError::Cancelled);
        }
        if generation.finish_reason == FinishReason::Length {
            return Err(ExtractError::CutOff {
                n_tokens: generation.tokens.len(),
                text: generation.text,
            });
        }
        let value: Value = serde_json::from_str(&generation.text)
            .map_err(ExtractError::Parse)?;
        if let Some(error) = self.validator.iter_errors(&value).next() {
            let location = error.instance_path().to_string();
            let message = error.to_string();
            return Err(if self.is_partial {
                ExtractError::NotEnforced { location, message }
            } else {
                ExtractError::Invalid { location, message }
            });
        }
        Ok(Extraction { text: generation.text.clone(), value, generation })
    }
}

fn prompt(schema: &Value, text: &str, options: &ExtractOptions) -> Prompt {
    let question = format!("Schema: {schema}\n\nText: {text}\n\nJSON:");
    Prompt::Chat(vec![
        Message::new(Role::System, &options.instructions),
        Message::new(Role::User, question),
    ])
}

/// An error that occurs while a value is extracted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// The schema is at fault.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
    /// The model, or what it runs on, failed.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The grammar and the vocabulary do not fit together.
    #[error(transparent)]
    Bind(#[from] crate::compiled::BindError),
    /// The document was not finished within the limit on tokens.
    #[error(
        "the document was cut off after {n_tokens} tokens; raise the limit \
         on tokens, or bound the lengths in the schema"
    )]
    CutOff {
        /// How many tokens were written.
        n_tokens: usize,
        /// What was written: the beginning of a document.
        text: String,
    },
    /// The work was interrupted.
    #[error("the document was broken off before it was finished")]
    Cancelled,
    /// The document does not parse as JSON, or not as the type.
    #[error("what was extracted does not fit the type")]
    Parse(#[source] serde_json::Error),
    /// The validator does not accept the schema.
    #[error("the schema cannot be validated against: {0}")]
    Validator(String),
    /// The validator does not accept the document, and part of the schema
    /// was left out because it cannot be enforced.
    #[error(
        "the document is not valid at {location:?}: {message}; what \
         cannot be enforced was left out"
    )]
    NotEnforced {
        /// The JSON pointer of the place.
        location: String,
        /// What the validator says.
        message: String,
    },
    /// The validator does not accept the document: a defect of Maskwright,
    /// or of the validator.
    #[error(
        "the validator refuses the document at {location:?}: {message}; \
         please report this"
    )]
    Invalid {
        /// The JSON pointer of the place.
        location: String,
        /// What the validator says.
        message: String,
    },
}

impl ExtractError {
    /// Returns the kind of the error, for machines.
    pub fn kind(&self) -> &'static str {
        match self {
            ExtractError::Grammar(_) => "grammar",
            ExtractError::Bind(_) => "bind",
            ExtractError::Generate(GenerateError::Model(
                ModelError::ContextFull { .. },
            )) => "too_long",
            ExtractError::Generate(GenerateError::Budget { .. }) => "no_room",
            ExtractError::Generate(_) => "model",
            ExtractError::CutOff { .. } => "cut_off",
            ExtractError::Cancelled => "cancelled",
            ExtractError::Parse(_) => "parse",
            ExtractError::Validator(_) => "validator",
            ExtractError::NotEnforced { .. } => "not_enforced",
            ExtractError::Invalid { .. } => "invalid",
        }
    }
}

impl From<ExtractError> for Problem {
    fn from(error: ExtractError) -> Problem {
        let mut problem = Problem::new(error.kind(), error.to_string());
        if let ExtractError::CutOff { text, .. } = error {
            problem.text = Some(text);
        }
        problem
    }
}
