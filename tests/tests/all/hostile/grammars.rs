//! Grammars from strangers: each is refused with a place, or compiled and
//! then right about its texts.

use maskwright::grammar::{Grammar, SchemaOptions, StructuralTags};
use maskwright_tests::hostile::{Answer, Case, Source, cases};

use super::on_a_small_stack;

/// The kind of an error, and where it is.
type Refusal = (String, String);

fn compile(source: &Source) -> Result<Grammar, Refusal> {
    let options = SchemaOptions::widest();
    let grammar = match source {
        Source::Schema(text) => Grammar::from_schema(text, &options),
        Source::Regex(text) => Grammar::from_regex(text),
        Source::Gbnf(text) => Grammar::from_gbnf(text),
        Source::Choices(texts) => Grammar::from_choices(texts),
        Source::Tags(text) => StructuralTags::from_json(text, &options)
            .map_err(Into::into)
            .and_then(|tags| Grammar::from_tags(&tags)),
    };
    grammar.map_err(|error| {
        assert!(!error.to_string().is_empty());
        (error.kind().to_owned(), error.location().unwrap_or_default())
    })
}

/// Says what is wrong with the answer to a case.
fn wrong(case: &Case) -> Option<String> {
    let name = &case.name;
    match (compile(&case.source), &case.answer) {
        (Err((kind, place)), Answer::Refused(expected, at)) => {
            let is_there = at.is_empty() || *at == place;
            let is_right = kind == *expected && is_there;
            (!is_right).then(|| format!("{name}: {kind} at {place:?}"))
        }
        (Err(refusal), Answer::Judged(_)) => {
            Some(format!("{name}: {refusal:?}"))
        }
        (Ok(_), Answer::Refused(..)) => Some(format!("{name}: compiled")),
        (Ok(grammar), Answer::Judged(texts)) => {
            let wrong = texts.iter().find(|(text, is_accepted)| {
                grammar.accepts(text).ok() != Some(*is_accepted)
            });
            wrong.map(|(text, _)| {
                let end = text.chars().take(60).collect::<String>();
                let answer = grammar.accepts(text);
                format!("{name}: {answer:?} for {end:?}")
            })
        }
    }
}

#[test]
fn hostile_grammars_have_their_answers() {
    let wrong = on_a_small_stack(|| {
        cases().iter().filter_map(wrong).collect::<Vec<_>>()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is no JSON, or is JSON that means two things, is no schema.
#[test]
fn texts_that_are_no_schemas() {
    let texts = [
        "",
        "{",
        "{} {}",
        "\u{FEFF}{}",
        "{\"type\": \"null\", \"type\": \"string\"}",
        "{\"const\": \"\\ud800\"}",
        "{\"const\": \"\0\"}",
        "{\"const\": 01}",
        "{\"const\": 1.}",
        "{'const': 1}",
        "{\"const\": NaN}",
        "[",
        "nul",
    ];
    for text in texts {
        let source = Source::Schema(text.to_owned());
        let (kind, _) = compile(&source).expect_err(text);
        assert_eq!(kind, "invalid_json", "{text}");
    }
    for text in ["1", "[]", "null", "\"a\""] {
        let source = Source::Schema(text.to_owned());
        let (kind, _) = compile(&source).expect_err(text);
        assert_eq!(kind, "invalid_keyword", "{text}");
    }
    let source = Source::Schema(" ".repeat((16 << 20) + 1));
    let (kind, _) = compile(&source).expect_err("more than 16 MiB");
    assert_eq!(kind, "resource_limit");
}
