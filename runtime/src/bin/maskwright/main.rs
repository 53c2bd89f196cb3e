//! The `maskwright` command.

mod args;
mod batch;
mod check;
mod classify;
mod convert;
mod extract;
mod extract_many;
mod fail;
mod generate;
mod generated;
mod mask;
mod model;
mod pipeline;
mod sampling;
mod tags;
mod trace;

use std::{io::Write, process::ExitCode};

use clap::{Parser, Subcommand};

use crate::fail::Fail;

/// Makes a language model write what a grammar allows, and nothing else
#[derive(Debug, Parser)]
#[command(name = "maskwright", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Extract(Box<extract::ExtractArgs>),
    Classify(classify::ClassifyArgs),
    // Boxed, as it has far more options than the others.
    Generate(Box<generate::GenerateArgs>),
    Check(check::CheckArgs),
    Convert(convert::ConvertArgs),
    Mask(mask::MaskArgs),
    Pipeline(Box<pipeline::PipelineArgs>),
    Model(model::ModelArgs),
}

fn main() -> ExitCode {
    match run(&Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fail) => {
            // Nothing is left to do if even that cannot be written.
            let _ = writeln!(std::io::stderr(), "error: {fail}");
            ExitCode::from(fail.code() as u8)
        }
    }
}

fn run(command: &Command) -> Result<(), Fail> {
    match command {
        Command::Extract(args) => extract::run(args),
        Command::Classify(args) => classify::run(args),
        Command::Generate(args) => generate::run(args),
        Command::Check(args) => check::run(args),
        Command::Convert(args) => convert::run(args),
        Command::Mask(args) => mask::run(args),
        Command::Pipeline(args) => pipeline::run(args),
        Command::Model(args) => model::run(args),
    }
}
