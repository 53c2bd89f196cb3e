//! `check`: is a text in the grammar, and if not, where did it leave it?

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use maskwright::{
    check::{Checker, TokenChecker, Verdict},
    grammar::SchemaOptions,
};

use crate::{
    args::{GrammarArgs, read},
    batch,
    fail::{Code, Fail},
};

/// Checks a text against a grammar
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    grammar: GrammarArgs,
    /// The text to check; `-` is standard input
    #[arg(required_unless_present = "batch", value_name = "FILE")]
    instance: Option<PathBuf>,
    /// Checks JSON lines of grammars and texts, and answers in JSON lines
    #[arg(long, value_name = "FILE", conflicts_with_all = ["grammar", "instance"])]
    batch: Option<PathBuf>,
    /// Checks token by token through the masks, as this tokenizer.json splits
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// Takes a final line feed as part of the text
    #[arg(long)]
    exact: bool,
    /// Prints JSON for machines
    #[arg(long)]
    json_output: bool,
}

pub(crate) fn run(args: &CheckArgs) -> Result<(), Fail> {
    let tokens = args
        .tokenizer
        .as_ref()
        .map(|file| {
            TokenChecker::from_file(file)
                .map_err(|error| Fail::new(Code::File, error.to_string()))
        })
        .transpose()?;
    let stdout = io::stdout();
    if let Some(file) = &args.batch {
        let mut input = open(file)?;
        return batch::run(&mut *input, &mut stdout.lock(), tokens.as_ref());
    }
    let grammar = args.grammar.require(SchemaOptions::widest())?;
    let Some(file) = &args.instance else {
        return Err(Fail::usage("name the file to check".to_owned()));
    };
    let text = read(file)?;
    let mut text = text.as_str();
    if !args.exact {
        // What an editor or `echo` puts at the end of a file.
        text = text.strip_suffix('\n').unwrap_or(text);
        text = text.strip_suffix('\r').unwrap_or(text);
    }
    let verdict = match &tokens {
        Some(tokens) => tokens.check(&grammar, text),
        None => {
            Checker::new(&grammar).check(text.as_bytes()).map_err(Into::into)
        }
    }
    .map_err(Fail::internal)?;
    let mut stdout = stdout.lock();
    if args.json_output {
        let stopped = verdict.stopped_at().map(|offset| {
            serde_json::json!({
                "offset": offset,
                "incomplete": verdict.is_incomplete(),
                "allowed": show_bytes(verdict.allowed()),
                "expected": verdict.expected(),
            })
        });
        let value = serde_json::json!({
            "accepted": verdict.is_accepted(),
            "stopped": stopped,
            "warnings": grammar.warnings(),
        });
        writeln!(stdout, "{value}").map_err(Fail::write)?;
    } else if verdict.is_accepted() {
        writeln!(stdout, "accepted").map_err(Fail::write)?;
    }
    if verdict.is_accepted() {
        return Ok(());
    }
    Err(Fail::new(Code::Refused, explain(text, &verdict)))
}

fn open(file: &Path) -> Result<Box<dyn BufRead>, Fail> {
    if file == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file_ = File::open(file).map_err(|error| Fail::file(file, &error))?;
    Ok(Box::new(BufReader::new(file_)))
}

/// Says where the text left the grammar and what was allowed there.
fn explain(text: &str, verdict: &Verdict) -> String {
    let offset = verdict.stopped_at().unwrap_or_default();
    let before = text.as_bytes().get(..offset).unwrap_or_default();
    let line = before.split(|&byte| byte == b'\n').count();
    let column = before.iter().rev().take_while(|&&b| b != b'\n').count() + 1;
    let place = format!("byte {offset} (line {line}, column {column})");
    let allowed = show_bytes(verdict.allowed());
    let allowed = if allowed.is_empty() {
        "only the end of the text".to_owned()
    } else {
        allowed
    };
    let expected = verdict.expected();
    if verdict.is_incomplete() {
        format!(
            "the text ends at {place} before it is complete; {expected}; \
             allowed next: {allowed}",
        )
    } else {
        format!(
            "the text leaves the grammar at {place}; {expected}; allowed \
             there: {allowed}",
        )
    }
}

/// Shows bytes as characters, and runs of them as ranges.
pub(crate) fn show_bytes(bytes: &[u8]) -> String {
    let mut parts = Vec::new();
    let mut rest = bytes;
    while let Some((&first, _)) = rest.split_first() {
        let run = (0..)
            .zip(rest)
            .take_while(|&(index, &byte)| usize::from(byte - first) == index)
            .count();
        let last = rest[run - 1];
        match run {
            1 => parts.push(show_byte(first)),
            2 => parts.extend([show_byte(first), show_byte(last)]),
            _ => {
                parts.push(format!(
                    "{}-{}",
                    show_byte(first),
                    show_byte(last)
                ));
            }
        }
        rest = &rest[run..];
    }
    parts.join(" ")
}

fn show_byte(byte: u8) -> String {
    match byte {
        b' ' => "' '".to_owned(),
        _ => byte.escape_ascii().to_string(),
    }
}
