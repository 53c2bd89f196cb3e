//! From a text to a value that fits a schema.
//!
//! [`extract`] asks a model for the value of a Rust type, under the schema
//! that the type has; [`extract_json`] does so for any schema and returns the
//! document. Both validate what came out with the `jsonschema` crate before
//! they hand it over: the masks make that a formality, and it stays a check
//! by somebody else.

use std::ops::ControlFlow;

use maskwright_json_schema::Options;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    generate::{
        FinishReason, GenerateError, Generation, Generator, Message, Prompt,
        Request, Role,
    },
    grammar::{Grammar, GrammarError},
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
    let grammar = Grammar::from_schema_value(schema, &options.schema)?;
    let request = Request {
        prompt: prompt(schema, text, options),
        grammar: Some(generator.compile(&grammar)?),
        max_tokens: options.max_tokens,
        sampling: options.sampling.clone(),
        finish_within_budget: options.finish_within_budget,
        ..Request::default()
    };
    let generation =
        generator.generate(&request, &mut |_| ControlFlow::Continue(()))?;
    let partly = grammar.schema().is_some_and(|it| !it.left_out.is_empty());
    finish(schema, generation, partly)
}

fn prompt(schema: &Value, text: &str, options: &ExtractOptions) -> Prompt {
    let question = format!("Schema: {schema}\n\nText: {text}\n\nJSON:");
    Prompt::Chat(vec![
        Message::new(Role::System, &options.instructions),
        Message::new(Role::User, question),
    ])
}

/// Parses and validates what was generated. `partly` says that the grammar
/// does not enforce all of the schema.
fn finish(
    schema: &Value,
    generation: Generation,
    partly: bool,
) -> Result<Extraction, ExtractError> {
    if generation.finish_reason == FinishReason::Length {
        return Err(ExtractError::CutOff {
            n_tokens: generation.tokens.len(),
            text: generation.text,
        });
    }
    let value: Value =
        serde_json::from_str(&generation.text).map_err(ExtractError::Parse)?;
    let validator = jsonschema::validator_for(schema)
        .map_err(|error| ExtractError::Validator(error.to_string()))?;
    if let Some(error) = validator.iter_errors(&value).next() {
        let location = error.instance_path().to_string();
        let message = error.to_string();
        return Err(if partly {
            ExtractError::NotEnforced { location, message }
        } else {
            ExtractError::Invalid { location, message }
        });
    }
    Ok(Extraction { text: generation.text.clone(), value, generation })
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
