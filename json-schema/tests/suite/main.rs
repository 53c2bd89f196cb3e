//! The official JSON-Schema-Test-Suite against a committed list of what is
//! not right yet (`exceptions.txt`, each with its reason).
//!
//! The list is a ratchet: a test that goes wrong and is not listed fails, and
//! so does a listed one that has become right. Where the suite is not at
//! hand, the test says so and is over.

#![allow(clippy::print_stdout, reason = "tests say what they skip")]

mod cases;
#[path = "../common/lines.rs"]
mod lines;
mod run;
mod spellings;

use std::{collections::BTreeSet, path::Path};

use maskwright_json_schema::{Budgets, Options, Whitespace};
use run::{Case, Outcome};

/// Lines of `FILE | NAME | OUTCOME`, below lines `# REASON`.
const EXCEPTIONS: &str = include_str!("exceptions.txt");

/// The one file in which accepting an invalid instance may be an exception:
/// it tests assertions that the specification leaves to applications.
const MAY_ACCEPT: &str = "draft7/optional/content.json";

#[test]
fn only_the_listed_tests_are_not_right() {
    let Some(suite) = cases::folder() else {
        println!("skipped: there is no JSON-Schema-Test-Suite");
        return;
    };
    let mut wrong = BTreeSet::new();
    let cases = run::run(&suite, "", &Options::widest());
    for case in &cases {
        let what = match &case.outcome {
            Outcome::Right => continue,
            Outcome::Accepted => "accepted",
            Outcome::Refused => "refused",
            Outcome::NoSchema(_) => "no schema",
            Outcome::Failed(_) => "limit",
        };
        wrong.insert(format!("{} | {} | {what}", case.file, case.name));
    }
    let listed: BTreeSet<String> = exceptions().map(str::to_owned).collect();
    let new: Vec<&String> = wrong.difference(&listed).collect();
    let gone: Vec<&String> = listed.difference(&wrong).collect();
    assert!(new.is_empty(), "not right and not listed: {new:#?}");
    assert!(gone.is_empty(), "right and still listed: {gone:#?}");
    assert!(cases.len() > 5_000, "only {} tests were found", cases.len());
}

/// Viability only says what may still be finished; it decides no text.
#[test]
fn no_budget_of_steps_changes_a_verdict() {
    let Some(suite) = cases::folder() else {
        println!("skipped: there is no JSON-Schema-Test-Suite");
        return;
    };
    let outcomes = |options: &Options| sample(&suite, options);
    let expected = outcomes(&Options::widest());
    assert!(expected.len() > 500, "a sample of {}", expected.len());
    for steps in [1, 10, 100] {
        let budgets = Budgets { compile: steps, state: steps };
        let found = outcomes(&Options { budgets, ..Options::widest() });
        for (case, expected) in found.iter().zip(&expected) {
            assert_eq!(case, expected, "with {steps} steps");
        }
    }
}

#[test]
fn no_line_feed_changes_a_verdict() {
    let Some(suite) = cases::folder() else {
        println!("skipped: there is no JSON-Schema-Test-Suite");
        return;
    };
    let mut options = Options::widest();
    options.text.whitespace = Whitespace::Indent { width: 2 };
    let cases = sample(&suite, &options);
    assert!(cases.len() > 500, "a sample of {}", cases.len());
    let listed: BTreeSet<&str> = exceptions().collect();
    for Case { file, name, outcome } in cases {
        let is_listed = listed
            .iter()
            .any(|line| line.contains(&format!("{file} | {name}")));
        assert!(
            is_listed || outcome == Outcome::Right,
            "{file} | {name}: {outcome:?}",
        );
    }
}

fn sample(suite: &Path, options: &Options) -> Vec<Case> {
    SAMPLE.iter().flat_map(|file| run::run(suite, file, options)).collect()
}

/// Files in which much depends on what may still be finished. The command
/// runs all.
const SAMPLE: [&str; 12] = [
    "draft2020-12/allOf",
    "draft2020-12/anyOf",
    "draft2020-12/contains",
    "draft2020-12/dependentSchemas",
    "draft2020-12/dynamicRef",
    "draft2020-12/if-then-else",
    "draft2020-12/infinite-loop-detection",
    "draft2020-12/not",
    "draft2020-12/oneOf",
    "draft2020-12/unevaluated",
    "draft2020-12/uniqueItems",
    "draft2019-09/recursiveRef",
];

#[test]
fn every_exception_has_a_reason_and_refuses_too_much_rather_than_too_little() {
    let mut reason = false;
    for line in EXCEPTIONS.lines().filter(|line| !line.is_empty()) {
        reason |= line.starts_with("# ");
        assert!(reason, "no reason stands above {line:?}");
    }
    for line in exceptions() {
        let may_accept = line.starts_with(MAY_ACCEPT);
        assert!(!line.ends_with("| accepted") || may_accept, "{line}");
    }
}

fn exceptions() -> impl Iterator<Item = &'static str> {
    let lines = EXCEPTIONS.lines();
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}
