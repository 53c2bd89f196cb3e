//! `classify`: one label of several.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Args;
use maskwright::classify::{ClassifyError, ClassifyOptions, classify_with};

use crate::{
    args::read,
    fail::{Code, Fail},
    model::ModelSelection,
};

/// Says which label fits a text, by the probability of whole labels
#[derive(Args, Debug)]
pub(crate) struct ClassifyArgs {
    /// The labels, separated by commas
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', required = true)]
    choices: Vec<String>,
    /// A file with the text; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    input: Option<PathBuf>,
    /// The text
    #[arg(required_unless_present = "input")]
    text: Option<String>,
    /// Prints the probability of each label
    #[arg(long)]
    scores: bool,
    /// Counts a label with a space before it as the label, too
    #[arg(long)]
    leading_space: bool,
    #[command(flatten)]
    model: ModelSelection,
    /// Prints JSON for machines
    #[arg(long)]
    json_output: bool,
}

pub(crate) fn run(args: &ClassifyArgs) -> Result<(), Fail> {
    let text = match (&args.input, &args.text) {
        (Some(file), _) => read(file)?,
        (None, text) => text.clone().unwrap_or_default(),
    };
    let mut generator = args.model.generator()?;
    let options = ClassifyOptions { leading_space: args.leading_space };
    let choices = &args.choices;
    let scores =
        classify_with(&mut generator, choices, text.trim(), &options)?;
    let Some(best) = scores.first() else {
        return Err(ClassifyError::NoLabels.into());
    };
    let mut stdout = io::stdout().lock();
    if args.json_output {
        let all: Vec<_> = scores
            .iter()
            .map(|score| {
                serde_json::json!({
                    "label": score.label,
                    "probability": score.probability,
                    "log_probability": score.log_probability,
                })
            })
            .collect();
        let output = serde_json::json!({ "label": best.label, "scores": all });
        return writeln!(stdout, "{output}").map_err(Fail::write);
    }
    if !args.scores {
        return writeln!(stdout, "{}", best.label).map_err(Fail::write);
    }
    for score in &scores {
        writeln!(stdout, "{:.6} {}", score.probability, score.label)
            .map_err(Fail::write)?;
    }
    Ok(())
}

impl From<ClassifyError> for Fail {
    fn from(error: ClassifyError) -> Fail {
        match error {
            ClassifyError::Generate(error) => error.into(),
            error => Fail::new(Code::Grammar, error.to_string()),
        }
    }
}
