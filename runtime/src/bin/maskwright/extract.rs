//! `extract`: one JSON document that fits a schema, out of a text; or one out
//! of each of many texts.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Args;
use maskwright::{
    batch_extract::Document,
    extract::{ExtractError, ExtractOptions, extract_json},
    generate::Generator,
    grammar::{Grammar, SchemaOptions},
    pipeline::Settings,
};
use serde_json::Value;

use crate::{
    args::{SchemaArgs, read},
    extract_many::{self, ManyArgs},
    fail::{Code, Fail},
    model::ModelSelection,
    sampling::{SamplingArgs, WordArgs, texts},
};

/// Extracts one JSON document that fits a schema from a text, or from each of
/// many
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("source").required(true))]
pub(crate) struct ExtractArgs {
    /// A file with a JSON Schema
    #[arg(long, value_name = "FILE")]
    schema: PathBuf,
    /// The text; `-` is standard input
    #[arg(long, value_name = "FILE", group = "source")]
    input: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) many: ManyArgs,
    /// The greatest number of tokens in a document
    #[arg(long, default_value_t = 512)]
    max_tokens: usize,
    /// Lets a document be cut off at that number, which is an error then;
    /// without this, it is finished in time
    #[arg(long)]
    allow_cut_off: bool,
    #[command(flatten)]
    options: SchemaArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    words: WordArgs,
    #[command(flatten)]
    pub(crate) model: ModelSelection,
    /// Prints JSON for machines: the document and how it came about, or with
    /// many texts what came of them
    #[arg(long)]
    pub(crate) json_output: bool,
}

pub(crate) fn run(args: &ExtractArgs) -> Result<(), Fail> {
    // What is wrong with the texts, the schema or the sampling is found before
    // a model is loaded.
    let work = match &args.input {
        Some(input) => Work::One(read(input)?),
        None => Work::Many(extract_many::documents(args)?),
    };
    let (schema_args, sampling_args) =
        args.options.split_order(&args.sampling)?;
    let (schema, schema_options, warnings) = prepare(args, &schema_args)?;
    sampling_args.check()?;
    let loaded = args.model.load()?;
    // An extraction is left to chance only if the user says so.
    let defaults = Settings {
        temperature: None,
        do_sample: None,
        ..loaded.defaults.settings.clone()
    };
    let sampling =
        sampling_args.effective(&args.words, &loaded, defaults, true)?;
    let options = ExtractOptions {
        max_tokens: args.max_tokens,
        sampling: sampling.options.clone(),
        finish_within_budget: !args.allow_cut_off,
        schema: schema_options,
        ..ExtractOptions::default()
    };
    let text = match work {
        Work::One(text) => text,
        Work::Many(documents) => {
            return extract_many::run(
                args, &documents, &schema, &options, loaded,
            );
        }
    };
    let mut generator = Generator::new(loaded).map_err(Fail::model)?;
    let extraction =
        extract_json(&mut generator, &schema, text.trim(), &options)?;
    let mut stdout = io::stdout().lock();
    if args.json_output {
        let generation = &extraction.generation;
        let output = serde_json::json!({
            "document": extraction.value,
            "text": extraction.text,
            "finish_reason": generation.finish_reason.name(),
            "prompt_tokens": generation.n_prompt,
            "output_tokens": generation.tokens.len(),
            "forced_tokens": generation.n_forced,
            "steered_tokens": generation.n_steered,
            "yielded_tokens": generation.n_yielded,
            "sampling": sampling.to_json(),
            "sampling_warnings": texts(&sampling.warnings),
            "prompt_ms": millis(generation.prompt_time),
            "decode_ms": millis(generation.decode_time),
            "warnings": warnings,
        });
        writeln!(stdout, "{output}").map_err(Fail::write)
    } else {
        writeln!(stdout, "{}", extraction.text).map_err(Fail::write)
    }
}

/// What is to be done.
enum Work {
    One(String),
    Many(Vec<Document>),
}

/// Reads the schema, and says what it does not enforce.
fn prepare(
    args: &ExtractArgs,
    schema_args: &SchemaArgs,
) -> Result<(Value, SchemaOptions, Vec<String>), Fail> {
    let source = read(&args.schema)?;
    let options =
        schema_args.over(SchemaOptions::default()).map_err(Fail::usage)?;
    let grammar = Grammar::from_schema(&source, &options)?;
    let mut stderr = io::stderr().lock();
    for warning in grammar.warnings() {
        writeln!(stderr, "warning: {warning}").map_err(Fail::write)?;
    }
    drop(stderr);
    let schema = serde_json::from_str(&source).map_err(|error| {
        Fail::new(Code::Grammar, format!("the schema is no JSON: {error}"))
    })?;
    Ok((schema, options, grammar.warnings().to_vec()))
}

pub(crate) fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl From<ExtractError> for Fail {
    fn from(error: ExtractError) -> Fail {
        match error {
            ExtractError::Grammar(error) => error.into(),
            ExtractError::Generate(error) => error.into(),
            ExtractError::Bind(error) => Fail::usage(error.to_string()),
            ExtractError::CutOff { .. } => {
                Fail::new(Code::Length, error.to_string())
            }
            ExtractError::Cancelled => {
                Fail::new(Code::Cancelled, error.to_string())
            }
            ExtractError::Validator(_) | ExtractError::NotEnforced { .. } => {
                Fail::new(Code::Grammar, error.to_string())
            }
            error => Fail::internal(error),
        }
    }
}
