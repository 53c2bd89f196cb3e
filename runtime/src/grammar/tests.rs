//! Tags with tokens, many tags, reasoning, and what is refused.

use std::sync::Arc;

use super::*;
use crate::{
    mask::TokenTrie,
    matcher::Matcher,
    vocabulary::{TokenId, Vocabulary},
};

const TOKENS: [&str; 10] =
    ["</s>", "<call>", "</think>", "<", "call>", "a", "1", "2", "12", "a<"];

fn trie() -> Arc<TokenTrie> {
    let vocabulary = Vocabulary::from_tokens(TOKENS, [TokenId(0)])
        .and_then(|vocabulary| {
            vocabulary.with_special_tokens([TokenId(1), TokenId(2)])
        })
        .expect("a vocabulary");
    Arc::new(TokenTrie::new(Arc::new(vocabulary)))
}

/// Reads `text`, token by token, and says what is allowed then.
fn allowed(grammar: &Grammar, text: &[&str]) -> Vec<&'static str> {
    let compiled = grammar.compile(&trie()).expect("the tokens are there");
    let mut matcher = Matcher::new(compiled).expect("a start");
    for token in text {
        let id = TOKENS.iter().position(|other| other == token);
        let id = TokenId::from_index(id.expect("a token"));
        let mask = matcher.mask().expect("a mask").clone();
        assert!(mask.is_allowed(id), "{token} of {text:?}");
        matcher.accept(id).expect("it is allowed");
    }
    let mask = matcher.mask().expect("a mask").clone();
    assert_eq!(mask, matcher.brute_force_mask().expect("a mask"));
    mask.tokens().map(|token| TOKENS[token.index()]).collect()
}

fn digits() -> Grammar {
    Grammar::from_regex("[0-9]{1,2}").expect("a pattern")
}

fn token(text: &str) -> Marker {
    Marker::Token(AtomToken::Text(text.to_owned()))
}

#[test]
fn a_special_token_is_a_trigger_and_its_spelling_is_text() {
    let tag = Tag {
        begin: vec![token("<call>"), Marker::Text("a".to_owned())],
        content: digits(),
        end: vec![token("</think>")],
    };
    let tags = StructuralTags { tags: vec![tag], ..Default::default() };
    let grammar = Grammar::from_tags(&tags).expect("tags");
    let all_text = ["</s>", "<call>", "<", "call>", "a", "1", "2", "12", "a<"];
    assert_eq!(allowed(&grammar, &[]), all_text);
    assert_eq!(allowed(&grammar, &["a<", "call>", "1"]), all_text);
    assert_eq!(allowed(&grammar, &["a", "<call>"]), ["a"]);
    let inside = ["<call>", "a", "1"];
    assert_eq!(allowed(&grammar, &inside), ["</think>", "1", "2"]);
    let after = ["<call>", "a", "12", "</think>", "12"];
    assert_eq!(allowed(&grammar, &after), all_text);
}

#[test]
fn a_token_that_the_vocabulary_lacks_is_an_error() {
    let reasoning = Reasoning::until(token("<lost>"));
    let grammar = digits().after_reasoning(&reasoning).expect("a grammar");
    let error = grammar.compile(&trie()).expect_err("there is none");
    assert!(error.to_string().contains("<lost>"), "{error}");
}

#[test]
fn reasoning_ends_at_a_token_or_a_text() {
    let until = Reasoning::until(token("</think>"));
    let grammar = digits().after_reasoning(&until).expect("a grammar");
    let free = ["</think>", "<", "call>", "a", "1", "2", "12", "a<"];
    assert_eq!(allowed(&grammar, &["a", "a<"]), free);
    assert_eq!(allowed(&grammar, &["12", "</think>"]), ["1", "2", "12"]);
    let mut until = Reasoning::until(Marker::Text("a<c".to_owned()));
    until.begin = Some(token("<call>"));
    let grammar = digits().after_reasoning(&until).expect("a grammar");
    assert_eq!(allowed(&grammar, &[]), ["<call>"]);
    // `call>` would go on behind the end of the section.
    let after = ["<call>", "a<"];
    assert_eq!(allowed(&grammar, &after), ["<", "a", "1", "2", "12", "a<"]);
    let empty = Reasoning::until(Marker::Text(String::new()));
    let error = digits().after_reasoning(&empty).expect_err("it is empty");
    assert_eq!(error.kind(), "invalid_tags");
}

#[test]
fn a_trigger_that_begins_another_stands_for_both() {
    let tags = StructuralTags {
        triggers: vec!["<f".into(), "<fn=".into(), "f>".into()],
        tags: vec![
            Tag::text("<f>", digits(), "!"),
            Tag::text("<fn=x>", digits(), "!"),
            Tag::text("f>", digits(), "?"),
        ],
        ..Default::default()
    };
    let grammar = Grammar::from_tags(&tags).expect("tags");
    for (text, accepted) in [
        ("<f>1!<fn=x>2!f>3?f<", true),
        ("<fn", false),
        ("<fa", false),
        ("xf>1!", false),
        ("< f >", true),
    ] {
        assert_eq!(grammar.accepts(text).ok(), Some(accepted), "{text}");
    }
}

#[test]
fn ten_thousand_tags_are_one_grammar() {
    let content = digits();
    let tag = |i: u32| Tag::text(format!("<f{i}>"), content.clone(), "</f>");
    let mut tags = StructuralTags {
        triggers: vec!["<f".to_owned()],
        tags: (0..10_000).map(tag).collect(),
        at_most: Some(3),
        ..Default::default()
    };
    let grammar = Grammar::from_tags(&tags).expect("tags");
    assert!(grammar.accepts("a<f77>12</f>b<f9999>1</f>").expect("small"));
    assert!(!grammar.accepts("<f10000>1</f>").expect("small"));
    // Without triggers, every beginning is one.
    tags.triggers.clear();
    let grammar = Grammar::from_tags(&tags).expect("tags");
    assert!(grammar.accepts("<f10000><f9999>1</f><f").expect("small"));
}

#[test]
fn files_are_refused_with_what_is_wrong() {
    let options = SchemaOptions::default();
    for (file, message) in [
        (r#"{"tags": []}"#, "there are no tags"),
        (r#"{"tags": [{"begin": "", "end": "", "json": true}]}"#, "empty"),
        (r#"{"tags": [{"begin": "a", "end": ""}]}"#, "exactly one of"),
        (r#"{"tags": [{"begin": "a", "end": "", "regex": "("}]}"#, "tag 0"),
        (r#"{"tags": 1}"#, "line 1 column 10"),
        (r#"{"tags": [], "trigger": []}"#, "unknown field `trigger`"),
        (
            r#"{"triggers": ["b"],
                "tags": [{"begin": "ab", "end": "", "json": true}]}"#,
            "none of the triggers",
        ),
        (
            r#"{"at_least": 2, "at_most": 1,
                "tags": [{"begin": "a", "end": "", "json": true}]}"#,
            "at least 2 and at most 1",
        ),
    ] {
        let grammar = StructuralTags::from_json(file, &options)
            .map_err(GrammarError::from)
            .and_then(|tags| Grammar::from_tags(&tags));
        let error = grammar.expect_err(file);
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn tools_are_read_as_servers_are_given_them() {
    let options = SchemaOptions::default();
    let list = r#"[
        {"type": "function", "function": {"name": "a", "description": "d",
         "parameters": {"type": "object", "required": ["n"]}}},
        {"name": "q\"", "input_schema": {"const": {"x": 1}}},
        {"name": "none"}]"#;
    let tools = Tool::list_from_json(list, &options).expect("tools");
    let calls = |style| {
        StructuralTags::for_tools(&tools, style)
            .map_err(GrammarError::from)
            .and_then(|tags| Grammar::from_tags(&tags))
            .expect("tags")
    };
    let hermes = calls(ToolStyle::Hermes);
    let call = |name: &str, arguments: &str| {
        format!(
            "So: <tool_call>\n{{\"name\": {name}, \"arguments\": \
             {arguments}}}\n</tool_call>"
        )
    };
    for (name, arguments, accepted) in [
        ("\"a\"", r#"{"n":0}"#, true),
        ("\"a\"", "{}", false),
        (r#""q\"""#, r#"{"x":1}"#, true),
        ("\"none\"", "{}", true),
        ("\"b\"", "{}", false),
    ] {
        let text = call(name, arguments);
        assert_eq!(hermes.accepts(&text).ok(), Some(accepted), "{text}");
    }
    let function = calls(ToolStyle::Function);
    let text = "<function=a>{\"n\":1}</function>";
    assert!(function.accepts(text).expect("small"));
    let twice = [tools[0].clone(), tools[0].clone()];
    let error = StructuralTags::for_tools(&twice, ToolStyle::Hermes);
    assert!(matches!(error, Err(TagFileError::SameName { .. })));
}

#[test]
fn grammars_call_one_another() {
    let mut options = GbnfOptions::default();
    let gbnf = |text: &str| NamedGrammar::Gbnf(text.to_owned());
    let even = r#"root ::= "" | "a" %grammar odd"#;
    let odd = r#"root ::= "b" %grammar even | one
one ::= %grammar digits "#;
    options.grammars.insert("even".to_owned(), gbnf(even));
    options.grammars.insert("odd".to_owned(), gbnf(odd));
    let digits = NamedGrammar::Grammar(digits());
    options.grammars.insert("digits".to_owned(), digits);
    let text = r#"root ::= (%grammar even ";")+"#;
    let grammar = Grammar::from_gbnf_with(text, &options).expect("GBNF");
    for (text, accepted) in
        [("abab;", true), (";a12;", true), ("aba;", false), ("", false)]
    {
        assert_eq!(grammar.accepts(text).ok(), Some(accepted), "{text}");
    }
    options.grammars.insert("odd".to_owned(), gbnf("root ::= (\n"));
    let error = Grammar::from_gbnf_with(text, &options).expect_err("a group");
    let message = error.to_string();
    assert!(message.starts_with("grammar `odd`, line 1"), "{message}");
}

/// Each policy has a shared machine of its own; a grammar can share one.
#[test]
fn schemas_of_two_policies_stand_in_one_grammar() {
    let schema = r#"{"type": "object", "properties": {"a": true},
                     "additionalProperties": {"type": "string"}}"#;
    let mut options = GbnfOptions::default();
    let widest = SchemaOptions::widest();
    let mut compact = SchemaOptions::default();
    compact.text.whitespace = Whitespace::Compact;
    for (name, policy) in [("widest", &widest), ("compact", &compact)] {
        let grammar = Grammar::from_schema(schema, policy).expect("valid");
        let named = NamedGrammar::Grammar(grammar);
        options.grammars.insert(name.to_owned(), named);
    }
    let text = r#"root ::= %grammar compact "/" %grammar widest"#;
    let grammar = Grammar::from_gbnf_with(text, &options).expect("GBNF");
    for (text, accepted) in [
        (r#"{"a":[1],"b":"x"}/{ "a" : {} , "\u0062" : "y" }"#, true),
        (r#"{"b": "x"}/{}"#, false),
        (r#"{"b":"x","b":"y"}/{}"#, false),
        (r#"{}/{"c":"x","c":"y"}"#, false),
    ] {
        assert_eq!(grammar.accepts(text).ok(), Some(accepted), "{text}");
    }
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
    let more = ["{\"", "\":\"", "\"}/{", "}/{\"", "\",\"", "b\":", "\" :"];
    let more = more.iter().map(|token| token.as_bytes().to_vec());
    let tokens: Vec<Vec<u8>> =
        bytes.chain(more).chain([b"</s>".to_vec()]).collect();
    let end = TokenId::from_index(tokens.len() - 1);
    let vocabulary = Vocabulary::from_tokens(tokens, [end]);
    let trie = TokenTrie::new(Arc::new(vocabulary.expect("a vocabulary")));
    let compiled = grammar.compile(&Arc::new(trie)).expect("no atoms");
    let mut matcher = Matcher::new(compiled).expect("a start");
    for byte in r#"{"a":[1],"b":"x"}/{ "a" : {} , "c" : "y" }"#.bytes() {
        let mask = matcher.mask().expect("a mask").clone();
        let brute = matcher.brute_force_mask().expect("a mask");
        assert_eq!(mask, brute, "in {}", matcher.describe());
        matcher.accept_bytes(&[byte]).expect("it is allowed");
    }
}
