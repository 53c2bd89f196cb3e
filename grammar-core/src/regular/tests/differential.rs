//! Random expressions against matchers that work in other ways.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use regex_automata::meta;

use super::super::*;

/// A pattern without look-around that means the same in both dialects.
pub(super) fn pattern(depth: u32) -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        4 => prop::sample::select(vec!["a", "b", "c", "é", "😀"])
            .prop_map(String::from),
        2 => prop::sample::select(vec![
            "[ab]", "[^a]", "[a-c]", "[^b-é]", "[b😀]", "."
        ])
        .prop_map(String::from),
        1 => Just(String::new()),
    ];
    let nested = leaf.prop_recursive(depth, 24, 4, |inner| {
        let quantifier = prop::sample::select(vec![
            "*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}", "{0}", "*?",
            "{3,5}",
        ]);
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 1..4)
                .prop_map(|parts| parts.concat()),
            2 => prop::collection::vec(inner.clone(), 1..4)
                .prop_map(|parts| format!("(?:{})", parts.join("|"))),
            2 => (inner, quantifier)
                .prop_map(|(body, count)| format!("(?:{body}){count}")),
        ]
    });
    nested.boxed()
}

pub(super) fn text() -> impl Strategy<Value = String> {
    let letters = vec!['a', 'a', 'b', 'b', 'c', 'é', '😀', '\n', 'z'];
    prop::collection::vec(prop::sample::select(letters), 0..9)
        .prop_map(|letters| letters.into_iter().collect())
}

pub(super) fn runner(cases: u32) -> TestRunner {
    let config =
        Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
}

#[test]
fn plain_patterns_agree_with_regex_automata() {
    let strategy = (pattern(4), prop::collection::vec(text(), 12));
    let check = |(pattern, texts): (String, Vec<String>)| {
        let oracle = meta::Regex::new(&format!("^(?:{pattern})$"))
            .expect("the generator makes valid patterns");
        let regex = Regex::rust(&pattern).expect("it is valid here too");
        let language =
            Language::new(&regex, Limits::new()).expect("it is small");
        let search = meta::Regex::new(&pattern).expect("as above");
        let searching =
            Language::new(&regex.search(), Limits::new()).expect("as above");
        for text in &texts {
            prop_assert_eq!(
                language.is_match(text),
                Ok(oracle.is_match(text)),
                "{:?}",
                text
            );
            prop_assert_eq!(
                searching.is_match(text),
                Ok(search.is_match(text)),
                "search {:?}",
                text
            );
        }
        Ok(())
    };
    runner(400).run(&strategy, check).expect("both agree");
}
