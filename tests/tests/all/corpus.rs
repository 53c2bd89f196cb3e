//! Every case of the corpus, by bytes and token by token.

use maskwright::{check::Checker, matcher::Matcher};
use maskwright_tests::{
    corpus::{Case, cases},
    vocabularies::pieces,
};

#[test]
fn texts_are_accepted_and_refused_by_bytes() {
    let mut wrong = Vec::new();
    for case in cases() {
        let grammar = match (case.compile(), &case.error) {
            (Ok(grammar), None) => grammar,
            (Err(error), Some(kind)) if error.kind() == kind => continue,
            (result, expected) => {
                wrong.push(format!(
                    "{}: {:?}, expected {expected:?}",
                    case.name,
                    result.map(|_| "compiled"),
                ));
                continue;
            }
        };
        for (text, expected) in texts(&case) {
            let verdict = Checker::new(&grammar)
                .check(text.as_bytes())
                .expect("within limits");
            if verdict.is_accepted() != expected {
                wrong.push(format!("{}: {text:?}: {verdict:?}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Splits each text at random into tokens of a toy vocabulary: each must be
/// in the mask where the text is accepted, and an end token at the end.
#[test]
fn texts_are_accepted_and_refused_token_by_token() {
    let mut wrong = Vec::new();
    for (seed, case) in (0..).zip(cases()) {
        let Ok(grammar) = case.compile() else { continue };
        let all: Vec<&str> = case
            .accept
            .iter()
            .chain(&case.reject)
            .map(String::as_str)
            .collect();
        let trie = pieces(&all, seed);
        let compiled = grammar.compile(&trie).expect("no atoms");
        let vocabulary = trie.vocabulary();
        for (text, expected) in texts(&case) {
            let mut matcher = Matcher::new(compiled.clone()).expect("a start");
            let mut rest = text.as_bytes();
            let mut accepted = true;
            while !rest.is_empty() {
                // The longest token of the mask, so that tokens that end one
                // thing and begin another are taken.
                let mask = matcher.mask().expect("a mask");
                let token = mask
                    .tokens()
                    .filter_map(|token| {
                        let bytes = vocabulary.token_bytes(token)?;
                        rest.starts_with(bytes).then_some((bytes.len(), token))
                    })
                    .max();
                let Some((len, token)) = token else {
                    accepted = false;
                    break;
                };
                matcher.accept(token).expect("a token of the mask");
                rest = &rest[len..];
            }
            let end = vocabulary.end_tokens()[0];
            accepted =
                accepted && matcher.mask().expect("a mask").is_allowed(end);
            if accepted != expected {
                wrong.push(format!(
                    "{}: {text:?}: stopped in {}",
                    case.name,
                    matcher.describe()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn texts(case: &Case) -> impl Iterator<Item = (&str, bool)> {
    let accept = case.accept.iter().map(|text| (text.as_str(), true));
    let reject = case.reject.iter().map(|text| (text.as_str(), false));
    accept.chain(reject)
}
