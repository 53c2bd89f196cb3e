//! Maskwright and its peers over the same token ids, in one process, on one
//! thread. See `README.md` beside the manifest.

mod batch;
mod clock;
mod corpus;
mod depth;
mod engine;
#[cfg(feature = "generator")]
mod generator;
mod grammars;
mod load;
mod maskbench;
mod measure;
mod memory;
mod options;
mod patterns;
mod places;
mod progress;
mod report;
#[cfg(feature = "candle")]
mod sampling;
mod slowest;
mod spelling;
mod stats;
mod tokenizer;
mod warm;
mod xgrammar;

use std::process::ExitCode;

use crate::options::{Command, Options};

/// Grammar compilers recurse; the peer's own runner gives it as much.
const STACK_BYTES: usize = 512 << 20;

fn main() -> ExitCode {
    let worker = std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(run)
        .expect("a thread can be started");
    match worker.join() {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(message)) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
        Err(_) => ExitCode::FAILURE,
    }
}

fn run() -> Result<(), String> {
    let options = Options::from_command_line()?;
    match options.command {
        Command::Help => {
            println!("{}", options::HELP);
            Ok(())
        }
        Command::MaskBench => maskbench::run(&options),
        Command::Warm => warm::run(&options),
        Command::Depth => depth::run(&options),
        Command::Batch => batch::run(&options),
        Command::Load => load::run(&options),
        Command::Grammars => grammars::run(&options),
        Command::Patterns => patterns::run(&options),
        #[cfg(feature = "candle")]
        Command::Pipeline => sampling::run(),
        #[cfg(not(feature = "candle"))]
        Command::Pipeline => {
            Err("`pipeline` needs candle: build with --features candle"
                .to_owned())
        }
        #[cfg(feature = "generator")]
        Command::Generator => generator::run(&options),
        #[cfg(not(feature = "generator"))]
        Command::Generator => with_generator(),
        Command::LoadChild => load::child(&options),
        Command::MemoryChild => maskbench::memory_child(&options),
    }
}

/// Builds this program once more, with the bundled generator and candle, which
/// the other commands do without, and runs it in place of this one.
#[cfg(not(feature = "generator"))]
fn with_generator() -> Result<(), String> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    eprintln!("building with the generator (--features generator)");
    let status = std::process::Command::new("cargo")
        .args(["run", "--release", "--manifest-path", manifest])
        .args(["--features", "generator", "--"])
        .args(std::env::args_os().skip(1))
        .status()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err("`generator` failed".to_owned())
    }
}
