//! Samples of the long runs that the examples `walks`, `verdicts` and
//! `suite_tokens` make.

use maskwright_grammar_core::automaton::Completions;
use maskwright_json_schema::{Budgets, Draft};
use maskwright_tests::{
    corpus::cases,
    maskbench::entries,
    subject::{Subject, policy, widest},
    suite::{Score, Suite},
    verdicts::{self, Tally, compare, smaller},
    vocabularies::pieces,
    walks::{Plan, Report, mutate_entry, walk_schema},
};

const PLAN: Plan = Plan {
    n_documents: 4,
    n_tokens: 24,
    seed: 1,
    formats: false,
    budgets: Budgets { compile: 20_000, state: 2_000 },
};

fn check(report: &Report) {
    let failures: Vec<String> =
        report.failures.iter().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn what_is_drawn_from_the_corpus_is_valid() {
    let mut report = Report::default();
    for case in cases() {
        if case.kind == "schema" && case.error.is_none() {
            let text = case.input.to_string();
            let mut texts: Vec<&str> =
                case.accept.iter().map(String::as_str).collect();
            texts.push(&text);
            let tokens = pieces(&texts, 1);
            walk_schema(&case.name, &case.input, &tokens, &PLAN, &mut report);
        }
    }
    check(&report);
    assert!(report.n_documents > 100, "{report}");
}

#[test]
fn what_is_drawn_from_maskbench_is_valid() {
    let Some(entries) = entries(40) else { return };
    let mut report = Report::default();
    for entry in &entries {
        let tokens = pieces(&[&entry.schema.to_string()], 1);
        walk_schema(&entry.name, &entry.schema, &tokens, &PLAN, &mut report);
    }
    check(&report);
    assert!(report.n_documents > 100, "{report}");
}

#[test]
fn nearly_instances_of_maskbench_get_the_verdict_of_the_judge() {
    let Some(entries) = entries(120) else { return };
    let mut report = Report::default();
    let plan = Plan { n_documents: 8, ..PLAN };
    for entry in &entries {
        mutate_entry(entry, &plan, &mut report);
    }
    check(&report);
    assert!(report.n_valid > 100, "{report}");
}

#[test]
fn random_schemas_get_the_verdicts_of_the_judge() {
    let tokens = verdicts::pieces();
    let mut tally = Tally::default();
    for seed in 0..120 {
        compare(&tokens, seed, &mut tally);
    }
    let mismatches: Vec<String> = tally
        .mismatches
        .iter()
        .take(5)
        .map(|mismatch| smaller(mismatch).to_string())
        .collect();
    assert!(mismatches.is_empty(), "{}", mismatches.join("\n"));
    assert!(tally.n_valid > 1000, "{tally}");
}

/// A few files of the suite; the command runs all.
#[test]
fn the_suite_is_right_token_by_token() {
    let mut score = Score::default();
    for filter in [
        "draft2020-12/unevaluatedProperties",
        "draft7/uniqueItems",
        "draft4/properties",
        "draft2020-12/optional/format/idn-hostname",
    ] {
        let tokens = pieces(&["\"foo\":1,\"bar\":\"baz\"", "[[1],true]"], 3);
        let Some(suite) = Suite::read(filter, tokens) else { return };
        for number in 0..suite.n_schemas() {
            suite.run(number, &mut score);
        }
    }
    assert!(score.wrong.is_empty(), "{}", score.wrong.join("\n"));
    assert!(score.n_right > 150, "{score:?}");
}

/// Viability only says what may still be finished; it decides no text.
#[test]
fn no_budget_of_steps_changes_a_verdict_of_the_corpus() {
    for steps in [1, 10, 100] {
        for case in cases() {
            if case.kind != "schema" || case.error.is_some() {
                continue;
            }
            let mut options = maskwright::grammar::SchemaOptions::widest();
            options.budgets = Budgets { compile: steps, state: steps };
            let grammar = case.compile_with(&options).expect("a grammar");
            let accepted = case.accept.iter().map(|text| (text, true));
            let refused = case.reject.iter().map(|text| (text, false));
            for (text, expected) in accepted.chain(refused) {
                let verdict = grammar.accepts(text).expect("no limit");
                let name = &case.name;
                assert_eq!(verdict, expected, "{name}, {steps}: {text}");
            }
        }
    }
}

/// Nor one of a random schema.
#[test]
fn no_budget_of_steps_changes_a_verdict_of_a_random_schema() {
    use maskwright_tests::{schemas, vocabularies::Random};
    let mut n_verdicts = 0;
    for seed in 0..60 {
        let random = &mut Random::new(seed);
        let drawn = schemas::schema(3, random);
        let mut options = widest(drawn.draft, policy(false));
        let Ok(full) = Subject::new(&drawn.schema, &options) else { continue };
        for steps in [1, 10, 100] {
            options.budgets = Budgets { compile: steps, state: steps };
            let short = Subject::new(&drawn.schema, &options)
                .expect("the same schema compiles");
            for _ in 0..10 {
                let text = schemas::document(2, random).to_string();
                let (Ok(expected), Ok(found)) =
                    (full.accepts(&text), short.accepts(&text))
                else {
                    continue;
                };
                assert_eq!(found, expected, "{steps}: {text} {drawn:?}");
                n_verdicts += 1;
            }
        }
    }
    assert!(n_verdicts > 1000, "{n_verdicts}");
}

/// A zero behind a number does not make another of it; another digit does.
#[test]
fn a_number_that_repeats_another_so_far_is_completed() {
    let schema = serde_json::json!({"uniqueItems": true});
    let options = widest(Draft::Draft202012, policy(false));
    let subject = Subject::new(&schema, &options).expect("a schema");
    for prefix in ["[3.14,3.14", "[0,0.", "[1,1.0"] {
        let completions = &mut Completions::new();
        let found = subject.completed(prefix.as_bytes(), completions);
        let (n_read, ending) = found.expect("no limit");
        assert_eq!(n_read, prefix.len(), "{prefix}");
        let ending = ending.expect("a completion");
        let text = format!("{prefix}{}", ending.escape_ascii());
        assert_eq!(subject.accepts(&text), Ok(true), "{text}");
    }
}
