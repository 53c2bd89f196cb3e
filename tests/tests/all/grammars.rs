//! Grammars of our own in GBNF, with texts that they hold and texts that they
//! do not: by bytes, in print, and token by token.

use std::{fs, path::Path};

use maskwright::{check::Checker, grammar::Grammar, matcher::Matcher};
use maskwright_tests::{
    vocabularies::{Random, pieces},
    walk::walk,
};
use serde::Deserialize;

/// A grammar with texts.
#[derive(Debug)]
struct Written {
    name: String,
    gbnf: String,
    texts: Texts,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Texts {
    accept: Vec<String>,
    reject: Vec<String>,
}

/// Reads every grammar in the folder; each has texts beside it.
fn written() -> Vec<Written> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/gbnf");
    let files = fs::read_dir(folder).expect("the grammars are there");
    let mut found: Vec<Written> = files
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "gbnf"))
        .map(|path| {
            let texts = path.with_extension("jsonl");
            let texts = fs::read_to_string(texts).expect("texts beside it");
            let name = path.file_stem().unwrap_or_default();
            Written {
                name: name.to_string_lossy().into_owned(),
                gbnf: fs::read_to_string(&path).expect("a readable grammar"),
                texts: serde_json::from_str(&texts).expect("accept, reject"),
            }
        })
        .collect();
    found.sort_by(|left, right| left.name.cmp(&right.name));
    assert!(found.len() >= 9, "{} grammars", found.len());
    found
}

fn compile(written: &Written) -> Grammar {
    let grammar = Grammar::from_gbnf(&written.gbnf)
        .unwrap_or_else(|error| panic!("{}: {error}", written.name));
    let warnings = grammar.warnings();
    assert!(warnings.is_empty(), "{}: {warnings:?}", written.name);
    grammar
}

#[test]
fn texts_are_accepted_and_refused() {
    let mut wrong = Vec::new();
    for written in written() {
        let ast = maskwright_gbnf::parse(&written.gbnf).expect("GBNF");
        let printed = Written { gbnf: ast.to_string(), ..written };
        let again = maskwright_gbnf::parse(&printed.gbnf).expect("GBNF");
        assert_eq!(ast, again, "{} in print", printed.name);
        let grammar = compile(&printed);
        let accept = printed.texts.accept.iter().map(|text| (text, true));
        let reject = printed.texts.reject.iter().map(|text| (text, false));
        for (text, expected) in accept.chain(reject) {
            let verdict = Checker::new(&grammar)
                .check(text.as_bytes())
                .expect("under the limits");
            if verdict.is_accepted() != expected {
                let name = &printed.name;
                wrong.push(format!("{name}: {text:?}: {verdict:?}"));
            }
        }
        assert!(printed.texts.accept.len() >= 3, "{}", printed.name);
        assert!(printed.texts.reject.len() >= 8, "{}", printed.name);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Along each text, and on random walks.
#[test]
fn masks_equal_brute_force() {
    for (seed, written) in (0..).zip(&written()) {
        let texts: Vec<&str> = written
            .texts
            .accept
            .iter()
            .map(String::as_str)
            .filter(|text| !text.is_empty())
            .collect();
        let trie = pieces(&texts, seed);
        let compiled = compile(written).compile(&trie).expect("no tokens");
        let mut matcher = Matcher::new(compiled).expect("a start");
        let check = |matcher: &Matcher, mask: &_| {
            let brute = matcher.brute_force_mask().expect("a mask");
            let place = matcher.describe();
            assert!(*mask == brute, "{} in {place}", written.name);
        };
        walk(&mut matcher, 150, &mut Random::new(seed), &mut |at, mask| {
            check(at, mask);
        });
        for text in &texts {
            matcher.reset().expect("the start");
            for byte in text.bytes() {
                let mask = matcher.mask().expect("a mask").clone();
                check(&matcher, &mask);
                let read = matcher.accept_bytes(&[byte]);
                assert!(read.is_ok(), "{}: {text}: {read:?}", written.name);
            }
            assert!(matcher.is_accepting().expect("under the limits"));
        }
    }
}
