//! `mask`: the tokens that are allowed after a prefix.

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
};

use clap::Args;
use maskwright::{
    grammar::SchemaOptions,
    mask::TokenTrie,
    matcher::Matcher,
    vocabulary::{TokenId, Vocabulary},
};

use crate::{
    args::GrammarArgs,
    fail::{Code, Fail},
    model::ModelSelection,
};

/// Shows the tokens that are allowed after a prefix
#[derive(Args, Debug)]
pub(crate) struct MaskArgs {
    #[command(flatten)]
    grammar: GrammarArgs,
    /// The text before
    #[arg(long, value_name = "TEXT", default_value = "")]
    prefix: String,
    /// How many of the tokens are shown
    #[arg(long, value_name = "N", default_value_t = 40)]
    sample: usize,
    /// The vocabulary of this tokenizer.json (or the directory it is in)
    /// instead of the model's
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    tokenizer: Option<PathBuf>,
    #[command(flatten)]
    model: ModelSelection,
    /// Prints JSON for machines, with every allowed token
    #[arg(long)]
    json_output: bool,
}

pub(crate) fn run(args: &MaskArgs) -> Result<(), Fail> {
    let grammar = args.grammar.require(SchemaOptions::default())?;
    let vocabulary = match &args.tokenizer {
        Some(file) => Vocabulary::from_path(file)
            .map(Arc::new)
            .map_err(|error| Fail::new(Code::File, error.to_string()))?,
        None => Arc::clone(args.model.load()?.tokenizer.vocabulary()),
    };
    let trie = Arc::new(TokenTrie::new(Arc::clone(&vocabulary)));
    let compiled = grammar
        .compile(&trie)
        .map_err(|error| Fail::usage(error.to_string()))?;
    let mut matcher = Matcher::new(compiled).map_err(Fail::internal)?;
    matcher
        .accept_bytes(args.prefix.as_bytes())
        .map_err(|error| Fail::new(Code::Refused, error.to_string()))?;
    let place = matcher.describe();
    let mask = matcher.mask().map_err(Fail::internal)?;
    let mut stdout = io::stdout().lock();
    if args.json_output {
        let tokens: Vec<_> = mask
            .tokens()
            .map(|token| {
                serde_json::json!({
                    "id": token.0,
                    "text": show(&vocabulary, token),
                    "end": vocabulary.is_end(token),
                })
            })
            .collect();
        let output = serde_json::json!({
            "allowed": mask.n_allowed(),
            "of": mask.len(),
            "place": place,
            "tokens": tokens,
            "warnings": grammar.warnings(),
        });
        return writeln!(stdout, "{output}").map_err(Fail::write);
    }
    writeln!(
        stdout,
        "{} of {} tokens are allowed, {place}",
        mask.n_allowed(),
        mask.len()
    )
    .map_err(Fail::write)?;
    let step = (mask.n_allowed() / args.sample.max(1)).max(1);
    for token in mask.tokens().step_by(step).take(args.sample) {
        let end = if vocabulary.is_end(token) { "  (end)" } else { "" };
        let text = show(&vocabulary, token);
        writeln!(stdout, "{:>7}  {text}{end}", token.0)
            .map_err(Fail::write)?;
    }
    Ok(())
}

fn show(vocabulary: &Vocabulary, token: TokenId) -> String {
    match vocabulary.token_bytes(token) {
        Some(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
        None => vocabulary.text(token).to_string(),
    }
}
