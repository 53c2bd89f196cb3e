//! Schemas that are converted to GBNF say the same as the schemas.

use std::{fs, path::Path};

use maskwright::{
    convert,
    grammar::{Grammar, Whitespace},
};
use maskwright_tests::{
    convert::{Sides, Tally},
    corpus::cases,
    maskbench::entries,
};
use serde::Deserialize;
use serde_json::Value;

/// A schema with texts that its grammar holds, and what it leaves out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Converted {
    name: String,
    schema: Value,
    #[serde(default)]
    formats: bool,
    accept: Vec<String>,
    reject: Vec<String>,
    #[serde(default)]
    left_out: Vec<String>,
}

fn converted() -> Vec<Converted> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata/convert/schemas.jsonl");
    let text = fs::read_to_string(file).expect("the cases are there");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a case a line"))
        .collect()
}

fn check(tally: &Tally) {
    assert!(tally.wrong.is_empty(), "{}", tally.wrong.join("\n"));
}

#[test]
fn grammars_hold_the_texts_that_are_listed() {
    let mut tally = Tally::default();
    let cases = converted();
    assert!(cases.len() >= 40, "{} schemas", cases.len());
    for case in &cases {
        let sides =
            Sides::new(&case.name, &case.schema, case.formats, &mut tally)
                .unwrap_or_else(|error| panic!("{}: {error}", case.name));
        for text in &case.accept {
            sides.expect(text, true, &mut tally);
        }
        for text in &case.reject {
            sides.expect(text, false, &mut tally);
        }
        let left_out: Vec<&str> =
            sides.gbnf.left_out.iter().map(|it| &*it.keyword).collect();
        if left_out != case.left_out {
            tally.wrong.push(format!("{}: {left_out:?}", case.name));
        }
        let heads = sides.gbnf.text.lines();
        let heads = heads.take_while(|line| line.starts_with("# left out: "));
        assert_eq!(heads.count(), left_out.len(), "{}", case.name);
    }
    check(&tally);
}

#[test]
fn schemas_and_their_grammars_take_each_others_texts() {
    let mut tally = Tally::default();
    for (seed, case) in (0..).zip(&converted()) {
        let sides =
            Sides::new(&case.name, &case.schema, case.formats, &mut tally)
                .expect("it converts");
        sides.write(12, 100 * seed, &mut tally);
        for text in &case.accept {
            if let Ok(instance) = serde_json::from_str(text) {
                sides.ask(&instance, 12, seed, &mut tally);
            }
        }
    }
    check(&tally);
    assert!(tally.n_ours > 400 && tally.n_derived > 400, "{tally:?}");
}

#[test]
fn the_corpus_is_converted() {
    let mut tally = Tally::default();
    for (seed, case) in (0..).zip(&cases()) {
        if case.kind != "schema" || case.error.is_some() {
            continue;
        }
        match Sides::new(&case.name, &case.input, case.formats, &mut tally) {
            Ok(sides) => {
                sides.write(4, 100 * seed, &mut tally);
                for text in case.accept.iter().chain(&case.reject) {
                    if let Ok(instance) = serde_json::from_str(text) {
                        sides.ask(&instance, 2, seed, &mut tally);
                    }
                }
            }
            Err(why) => tally.refused.push(format!("{}: {why}", case.name)),
        }
    }
    check(&tally);
    assert!(tally.refused.is_empty(), "{:?}", tally.refused);
    assert!(tally.n_schemas > 30, "{tally:?}");
}

#[test]
fn maskbench_is_converted() {
    let Some(entries) = entries(60) else { return };
    let mut tally = Tally::default();
    for (seed, entry) in (0..).zip(&entries) {
        match Sides::new(&entry.name, &entry.schema, true, &mut tally) {
            Ok(sides) => {
                sides.write(2, 100 * seed, &mut tally);
                for (instance, _) in entry.tests.iter().take(4) {
                    sides.ask(instance, 4, seed, &mut tally);
                }
            }
            Err(why) => tally.refused.push(format!("{}: {why}", entry.name)),
        }
    }
    check(&tally);
    let refused = tally.refused.join("\n");
    assert!(tally.n_schemas >= 55, "{refused}");
}

#[test]
fn white_space_is_as_asked() {
    let schema = r#"{
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"type": "integer"}},
            "b": {"type": "object", "properties": {"c": {"const": [1, 2]}},
                  "additionalProperties": false}
        },
        "additionalProperties": false
    }"#;
    let any = Whitespace::Any { max: 2 };
    let cases = [
        (Whitespace::Compact, r#"{"a":[1,2],"b":{"c":[1,2]}}"#, true),
        (Whitespace::Compact, r#"{"a":[1, 2]}"#, false),
        (Whitespace::Spaced, r#"{"a": [1, 2], "b": {"c": [1, 2]}}"#, true),
        (Whitespace::Spaced, r#"{"a":[]}"#, false),
        (any, "{ \"a\" : [\n 1 ,2\t],\"b\":{ \"c\":[1,2 ]\r\n}}", true),
        (any, "{}", true),
        (any, "{\"a\":[  ]}", true),
        (any, "{   \"a\":[]}", false),
        (any, " {}", false),
    ];
    for (whitespace, text, expected) in cases {
        let mut options = convert::options();
        options.text.whitespace = whitespace;
        let gbnf = convert::to_gbnf(schema, &options).expect("it converts");
        assert!(gbnf.is_exact());
        let grammar = Grammar::from_gbnf(&gbnf.text).expect("GBNF");
        let accepts = grammar.accepts(text).expect("under the limits");
        assert_eq!(accepts, expected, "{whitespace:?} {text}");
    }
}

/// llama.cpp reads less than we do: no `_` in names, no `\-` and no `\^`, no
/// count above 2,000, and a sequence stays on its line.
#[test]
fn grammars_keep_to_what_llama_cpp_reads() {
    let mut texts: Vec<String> = Vec::new();
    let mut options = convert::options();
    for case in converted() {
        options.parse.format = if case.formats {
            maskwright::grammar::FormatPolicy::AssertKnown
        } else {
            maskwright::grammar::FormatPolicy::Annotate
        };
        let gbnf = convert::value_to_gbnf(&case.schema, &options);
        texts.push(gbnf.expect("it converts").text);
    }
    for text in texts {
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, body) = line.split_once(" ::=").unwrap_or(("x", line));
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
            assert!(name.chars().all(is_plain), "{line}");
            assert!(!body.contains("\\-") && !body.contains("\\^"), "{line}");
            for count in body.split('{').skip(1) {
                let count: String =
                    count.chars().take_while(char::is_ascii_digit).collect();
                let count = count.parse().unwrap_or(0);
                assert!(count <= 2_000, "{line}");
            }
        }
    }
}

#[test]
fn what_a_grammar_is_not_written_for_is_an_error() {
    let mut options = convert::options();
    options.text.order = maskwright::grammar::Order::Any;
    let error = convert::to_gbnf("{}", &options).expect_err("no order");
    assert_eq!(
        error.to_string(),
        "a grammar cannot be written for `order` Any; take `schema`",
    );
    let options = convert::options();
    for schema in ["{", "false", r#"{"type": "strin"}"#] {
        assert!(convert::to_gbnf(schema, &options).is_err(), "{schema}");
    }
}
