//! `convert`: a JSON Schema as a grammar for other engines.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Args;
use maskwright::convert::{self, ConvertError, Gbnf};

use crate::{
    args::{SchemaArgs, read},
    fail::{Code, Fail},
};

/// Prints a JSON Schema as a grammar, and what that cannot hold
#[derive(Args, Debug)]
pub(crate) struct ConvertArgs {
    /// A file with a JSON Schema; `-` is standard input
    #[arg(long, value_name = "FILE")]
    schema: PathBuf,
    /// The notation: `gbnf`
    #[arg(long, value_name = "NOTATION", default_value = "gbnf")]
    to: String,
    #[command(flatten)]
    options: SchemaArgs,
    /// Fails where the grammar cannot hold all of the schema
    #[arg(long)]
    strict: bool,
    /// Prints JSON for machines
    #[arg(long)]
    json_output: bool,
}

pub(crate) fn run(args: &ConvertArgs) -> Result<(), Fail> {
    if args.to != "gbnf" {
        let given = &args.to;
        return Err(Fail::usage(format!(
            "`to` is gbnf, and {given:?} was given"
        )));
    }
    let options =
        args.options.over(convert::options()).map_err(Fail::usage)?;
    let schema = read(&args.schema)?;
    let gbnf =
        convert::to_gbnf(&schema, &options).map_err(|error| fail(&error))?;
    if args.strict && !gbnf.is_exact() {
        return Err(refused(&gbnf));
    }
    let mut stderr = io::stderr().lock();
    for warning in &gbnf.warnings {
        writeln!(stderr, "warning: {warning}").map_err(Fail::write)?;
    }
    for omission in &gbnf.left_out {
        writeln!(stderr, "left out: {omission}").map_err(Fail::write)?;
    }
    let mut stdout = io::stdout().lock();
    if args.json_output {
        return writeln!(stdout, "{}", json(&gbnf)).map_err(Fail::write);
    }
    stdout.write_all(gbnf.text.as_bytes()).map_err(Fail::write)
}

fn fail(error: &ConvertError) -> Fail {
    match error {
        ConvertError::Policy { .. } => Fail::usage(error.to_string()),
        _ => Fail::new(Code::Grammar, error.to_string()),
    }
}

/// The error of what `--strict` refuses.
fn refused(gbnf: &Gbnf) -> Fail {
    let places: Vec<String> =
        gbnf.left_out.iter().map(ToString::to_string).collect();
    let places = places.join("; ");
    let message = format!(
        "a grammar cannot hold all of the schema: {places}; without \
         `--strict` that is left out"
    );
    Fail::new(Code::Grammar, message)
}

fn json(gbnf: &Gbnf) -> serde_json::Value {
    let left_out: Vec<_> = gbnf
        .left_out
        .iter()
        .map(|omission| {
            serde_json::json!({
                "keyword": omission.keyword,
                "location": omission.pointer(),
                "reason": omission.reason,
            })
        })
        .collect();
    serde_json::json!({
        "gbnf": gbnf.text,
        "left_out": left_out,
        "exact": gbnf.is_exact(),
        "warnings": gbnf.warnings,
    })
}
