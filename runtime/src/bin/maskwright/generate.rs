//! `generate`: text under a grammar, or free.

use std::{
    io::{self, IsTerminal, Write},
    ops::ControlFlow,
    path::PathBuf,
};

use clap::Args;
use maskwright::{
    generate::{FinishReason, Message, Prompt, Request, Role},
    grammar::{Grammar, SchemaOptions},
};

use crate::{
    args::{GrammarArgs, read},
    extract::millis,
    fail::{Code, Fail},
    model::{ModelSelection, SamplingArgs},
};

/// Generates text under a grammar, or freely
#[derive(Args, Debug)]
pub(crate) struct GenerateArgs {
    #[command(flatten)]
    grammar: GrammarArgs,
    /// What the model is asked
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt_file")]
    prompt: Option<String>,
    /// A file with what the model is asked; `-` is standard input
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// What the model is told before
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Continues the prompt as it is, without the model's chat template
    #[arg(long, conflicts_with = "system")]
    raw: bool,
    /// The greatest number of tokens in the output
    #[arg(long, default_value_t = 256)]
    max_tokens: usize,
    /// Lets the output be cut off at that number; without this, it is
    /// finished in time wherever there is a grammar
    #[arg(long)]
    allow_cut_off: bool,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    model: ModelSelection,
    /// Prints JSON for machines, at the end
    #[arg(long)]
    json_output: bool,
}

pub(crate) fn run(args: &GenerateArgs) -> Result<(), Fail> {
    let grammar = args.grammar.compile(SchemaOptions::default())?;
    let sampling = args.sampling.options()?;
    let prompt = prompt(args)?;
    let mut generator = args.model.generator()?;
    let warnings = grammar.as_ref().map_or(&[][..], Grammar::warnings);
    let compiled = grammar
        .as_ref()
        .map(|grammar| generator.compile(grammar))
        .transpose()
        .map_err(|error| Fail::usage(error.to_string()))?;
    let constrained = compiled.is_some();
    let request = Request {
        prompt,
        grammar: compiled,
        max_tokens: args.max_tokens,
        sampling,
        finish_within_budget: !args.allow_cut_off,
    };
    let mut stdout = io::stdout().lock();
    let mut failed = None;
    let stream = !args.json_output;
    let generation = generator.generate(&request, &mut |text| {
        if !stream {
            return ControlFlow::Continue(());
        }
        let written =
            stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    if let Some(error) = failed {
        return Err(Fail::write(error));
    }
    if args.json_output {
        let output = serde_json::json!({
            "text": generation.text,
            "tokens": generation.tokens.iter().map(|t| t.0).collect::<Vec<_>>(),
            "finish_reason": generation.finish_reason.name(),
            "complete": generation.is_complete(),
            "prompt_tokens": generation.n_prompt,
            "output_tokens": generation.tokens.len(),
            "forced_tokens": generation.n_forced,
            "steered_tokens": generation.n_steered,
            "prompt_ms": millis(generation.prompt_time),
            "decode_ms": millis(generation.decode_time),
            "warnings": warnings,
        });
        writeln!(stdout, "{output}").map_err(Fail::write)?;
    } else if stdout.is_terminal() || !constrained {
        writeln!(stdout).map_err(Fail::write)?;
    }
    if constrained && generation.finish_reason == FinishReason::Length {
        return Err(Fail::new(
            Code::Length,
            format!(
                "the output was cut off after {} tokens: it is the beginning \
                 of a text that fits, not one that fits; raise --max-tokens, \
                 or bound the lengths in the grammar",
                generation.tokens.len()
            ),
        ));
    }
    Ok(())
}

fn prompt(args: &GenerateArgs) -> Result<Prompt, Fail> {
    let text = match (&args.prompt, &args.prompt_file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) => read(file)?,
        (None, None) if args.raw => {
            return Err(Fail::usage("--raw needs a prompt".to_owned()));
        }
        (None, None) => String::new(),
    };
    if args.raw {
        return Ok(Prompt::Text(text));
    }
    let system =
        args.system.iter().map(|text| Message::new(Role::System, text));
    let messages = system.chain([Message::new(Role::User, text)]);
    Ok(Prompt::Chat(messages.collect()))
}
