//! Prints how many tests of the official JSON-Schema-Test-Suite are right,
//! by draft, keyword and format, and each that is not.
//!
//! ```sh
//! cargo run --release -p maskwright-json-schema --example suite -- \
//!     [--budget STEPS] [--indent N] [FILTER]
//! ```
//!
//! `FILTER` is a part of a file's path, such as `draft7/optional/format`. The
//! suite is looked for below the folder that `MASKWRIGHT_SHARED` names.
//! `--budget` says how many steps a question of viability may take: no number
//! may change the table. `--indent` writes the instances on many lines.

#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::{collections::BTreeMap, fmt::Write as _};

#[path = "../tests/suite/cases.rs"]
mod cases;
#[path = "../tests/common/lines.rs"]
mod lines;
#[path = "../tests/suite/run.rs"]
mod run;
#[path = "../tests/suite/spellings.rs"]
mod spellings;

use cases::DRAFTS;
use maskwright_json_schema::{Budgets, Options, Whitespace};
use run::{Case, Outcome};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut filter = String::new();
    let mut options = Options::widest();
    while let Some(argument) = arguments.next() {
        if argument == "--budget" {
            let steps = arguments.next().and_then(|text| text.parse().ok());
            let steps = steps.expect("--budget takes a number of steps");
            options.budgets = Budgets { compile: steps, state: steps };
        } else if argument == "--indent" {
            let width = arguments.next().and_then(|text| text.parse().ok());
            let width = width.expect("--indent takes a number of spaces");
            options.text.whitespace = Whitespace::Indent { width };
        } else {
            filter = argument;
        }
    }
    let Some(suite) = cases::folder() else {
        println!("the suite is not there; see the example's documentation");
        return;
    };
    let cases = run::run(&suite, &filter, &options);
    for case in &cases {
        let what = match &case.outcome {
            Outcome::Right => continue,
            Outcome::Accepted => "WRONGLY ACCEPTED".to_owned(),
            Outcome::Refused => "wrongly refused".to_owned(),
            Outcome::NoSchema(error) => format!("no schema: {error}"),
            Outcome::Failed(error) => format!("limit: {error}"),
        };
        println!("{} | {} | {what}", case.file, case.name);
    }
    for (folder, part) in [
        ("required", ""),
        ("optional", "optional/"),
        ("format", "optional/format/"),
    ] {
        println!("\n{folder}: right of all, by draft");
        table(&cases, part);
    }
}

/// Right and all, by draft.
type Row = [(usize, usize); DRAFTS.len()];

fn table(cases: &[Case], part: &str) {
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut total = Row::default();
    for case in cases {
        for (column, (draft, _)) in DRAFTS.iter().enumerate() {
            let Some(name) = case
                .file
                .strip_prefix(draft)
                .and_then(|rest| rest.strip_prefix('/'))
                .and_then(|rest| rest.strip_prefix(part))
                .and_then(|rest| rest.strip_suffix(".json"))
                .filter(|name| !name.contains('/'))
            else {
                continue;
            };
            let row = rows.entry(name).or_default();
            for cell in [&mut row[column], &mut total[column]] {
                cell.0 += usize::from(case.outcome == Outcome::Right);
                cell.1 += 1;
            }
        }
    }
    let heads: Vec<&str> = DRAFTS.iter().map(|(name, _)| *name).collect();
    println!("{:28}{}", "", columns(heads));
    for (name, row) in &rows {
        println!("{name:28}{}", columns(row.map(score)));
    }
    println!("{:28}{}", "all", columns(total.map(score)));
}

fn score((right, all): (usize, usize)) -> String {
    if all == 0 { String::new() } else { format!("{right}/{all}") }
}

fn columns(cells: impl IntoIterator<Item = impl ToString>) -> String {
    let mut line = String::new();
    for cell in cells {
        write!(line, "{:>14}", cell.to_string())
            .expect("strings take everything");
    }
    line
}
