//! Inputs as deep as they are long: no pass goes down into them by recursion
//! that no bound ends.

use std::fmt::Write as _;

use maskwright::{
    compiled::CompiledGrammar,
    grammar::{Grammar, GrammarError, SchemaOptions, StructuralTags, Tool},
    matcher::Matcher,
    vocabulary::Vocabulary,
};
use maskwright_tests::{
    hostile::{chain_of_rules, nested},
    vocabularies::pieces,
};

use super::on_a_small_stack;

/// How deep: around each bound on nesting that there is, and far beyond.
const DEPTHS: &[usize] = &[60, 128, 249, 251, 511, 513, 1_000, 100_000];

fn schema(text: &str) -> Result<Grammar, GrammarError> {
    Grammar::from_schema(text, &SchemaOptions::widest())
}

/// Compiles, reads a text, makes a mask where it ends, and drops it all.
fn go_through(
    compile: impl FnOnce() -> Result<Grammar, GrammarError>,
    text: &str,
) {
    let grammar = match compile() {
        Ok(grammar) => grammar,
        Err(error) => {
            let kind = error.kind();
            assert_ne!(kind, "internal", "{error}");
            return;
        }
    };
    let trie = pieces(&[], 1);
    let automaton = std::sync::Arc::clone(grammar.automaton());
    let compiled = CompiledGrammar::new(automaton, trie).expect("no atoms");
    let matcher = Matcher::new(std::sync::Arc::new(compiled));
    let mut matcher = matcher.expect("a start");
    let bytes = text.as_bytes();
    // A byte a step, of which each may be taken back.
    let n_read = bytes
        .iter()
        .take_while(|&&byte| matcher.accept_bytes(&[byte]).is_ok())
        .count();
    assert_eq!(matcher.n_steps(), n_read);
    let fork = matcher.fork();
    let _ = matcher.mask();
    assert!(!matcher.describe().is_empty());
    matcher.rollback(n_read / 2).expect("as many were read");
    drop(fork);
}

/// Schemas that nest in their text. `{}` stands for what is inside.
const NESTED: &[(&str, &str)] = &[
    (r#"{"not":{}}"#, "1"),
    (r#"{"allOf":[{"minimum":1},{}]}"#, "1"),
    (r#"{"anyOf":[{"type":"string"},{}]}"#, "1"),
    (r#"{"oneOf":[{"type":"string"},{}]}"#, "1"),
    (r#"{"not":{"allOf":[{"type":"object"},{}]}}"#, "1"),
    (r#"{"if":{},"then":{"minimum":1},"else":{"maximum":7}}"#, "1"),
    (r#"{"if":{"minimum":1},"then":{}}"#, "1"),
    (r#"{"type":"array","items":{},"minItems":1}"#, "["),
    (r#"{"type":"array","prefixItems":[{}]}"#, "["),
    (r#"{"type":"array","contains":{}}"#, "["),
    (r#"{"type":"array","uniqueItems":true,"items":{}}"#, "["),
    (r#"{"type":"array","unevaluatedItems":{}}"#, "["),
    (r#"{"properties":{"a":{}},"required":["a"]}"#, "{\"a\":"),
    (r#"{"minProperties":1,"additionalProperties":{}}"#, "{\"a\":"),
    (r#"{"patternProperties":{"^a":{}}}"#, "{\"a\":"),
    (r#"{"propertyNames":{}}"#, "{\"a\":"),
    (r#"{"dependentSchemas":{"a":{}}}"#, "{\"a\":"),
    (r#"{"unevaluatedProperties":{}}"#, "{\"a\":"),
    (r#"{"$defs":{"a":{}}}"#, "1"),
];

#[test]
#[ignore = "it takes gigabytes, and why is not known yet"]
fn nested_schemas() {
    on_a_small_stack(|| {
        for &(around, text) in NESTED {
            let (before, after) = around.split_once("{}").expect("a place");
            for &depth in DEPTHS {
                let whole = r#"{"type":"integer"}"#;
                let whole = nested(before, whole, after, depth);
                go_through(|| schema(&whole), &text.repeat(depth));
            }
        }
    });
}

#[test]
fn nested_values_in_schemas() {
    on_a_small_stack(|| {
        for &depth in DEPTHS {
            for (before, after) in [("[", "]"), ("{\"a\":", "}")] {
                let value = nested(before, "1", after, depth);
                for (before, after) in
                    [("{\"const\":", "}"), ("{\"enum\":[1,", "]}")]
                {
                    let whole = format!("{before}{value}{after}");
                    go_through(|| schema(&whole), &value);
                }
            }
        }
    });
}

/// The same by reference, where no text is deep.
#[test]
#[ignore = "it takes gigabytes, and why is not known yet"]
fn chains_of_references() {
    on_a_small_stack(|| {
        for &(around, text) in NESTED {
            let (before, after) = around.split_once("{}").expect("a place");
            for depth in [60, 600, 20_000] {
                let link = |n: usize| {
                    let next = n + 1;
                    format!(
                        r##""d{n}":{before}{{"$ref":"#/$defs/d{next}"}}{after}"##
                    )
                };
                let links: Vec<String> = (0..depth).map(link).collect();
                let links = links.join(",");
                let whole = format!(
                    r##"{{"$ref":"#/$defs/d0","$defs":{{{links},
                        "d{depth}":{{"type":"integer"}}}}}}"##
                );
                go_through(|| schema(&whole), &text.repeat(depth.min(2_000)));
            }
        }
    });
}

#[test]
fn deep_instances() {
    on_a_small_stack(|| {
        let schemas = [
            "{}",
            r##"{"type":"array","items":{"$ref":"#"}}"##,
            r##"{"items":{"$ref":"#"},"contains":{"type":"array"}}"##,
            r##"{"items":{"not":{"items":{"not":{"$ref":"#"}}}}}"##,
            r#"{"uniqueItems":true}"#,
        ];
        for text in schemas {
            go_through(|| schema(text), &"[".repeat(100_000));
        }
        go_through(|| schema("{}"), &"{\"a\":".repeat(100_000));
        // Two items that differ in their depth alone.
        let (one, other) = (nested("[", "", "]", 3_000), "[".repeat(3_001));
        let unique = r#"{"uniqueItems":true}"#;
        go_through(|| schema(unique), &format!("[{one},{other}"));
    });
}

#[test]
#[ignore = "it takes gigabytes, and why is not known yet"]
fn nested_expressions() {
    let groups = [
        ("(", ")"),
        ("(?:", ")*"),
        ("(a|", ")"),
        ("(?=", ")"),
        ("(?:b|(?=a)", ")"),
        ("(?:b(?!a)|", ")*"),
        ("(?<=", ")"),
        ("(?<!", ")"),
        ("[", "]"),
        ("a", "?"),
        ("", "*"),
        ("\\b", ""),
        ("(\\b|c)", ""),
        ("(?=a|b)", ""),
        ("^", "$"),
        ("a|", ""),
        ("ab?", ""),
    ];
    on_a_small_stack(move || {
        for (before, after) in groups {
            for &depth in DEPTHS {
                let pattern = nested(before, "a", after, depth);
                let text = "ab".repeat(depth.min(500));
                go_through(|| Grammar::from_regex(&pattern), &text);
                let pattern = serde_json::Value::from(pattern);
                let whole = format!(r#"{{"pattern":{pattern}}}"#);
                go_through(|| schema(&whole), &format!("\"{text}"));
                // The pattern as what has the format of one.
                let whole = r#"{"format":"regex"}"#;
                let mut options = SchemaOptions::default();
                options.parse.lenient = true;
                let compile = || Grammar::from_schema(whole, &options);
                go_through(compile, &pattern.to_string());
            }
        }
    });
}

#[test]
fn nested_gbnf() {
    on_a_small_stack(|| {
        for (before, after) in
            [("(", ")"), ("(", ")*"), ("", "*"), ("(\"b\" | ", ")?")]
        {
            for &depth in DEPTHS {
                let body = nested(before, "\"a\"", after, depth);
                let text = format!("root ::= {body}");
                go_through(|| Grammar::from_gbnf(&text), "aaa");
            }
        }
        let text = format!("root ::= %json {}", "{\"not\":".repeat(100_000));
        go_through(|| Grammar::from_gbnf(&text), "");
        let call = "root ::= %json {}";
        go_through(|| Grammar::from_gbnf(call), &"[".repeat(100_000));
    });
}

#[test]
fn chains_of_rules() {
    let links: &[fn(usize, usize) -> String] = &[
        |next, _| format!("r{next}"),
        |next, _| format!("r{next} \"b\" | \"c\""),
        |next, _| format!("\"b\" r{next} | \"c\""),
        |next, _| format!("\"b\" r{next} \"d\" | \"c\""),
        |next, _| format!("r{next}*"),
        |next, end| format!("r{next} | r{}", next * 7 % end),
        |next, _| format!("\"x\" r{next} | r{} \"y\"", next - 1),
    ];
    on_a_small_stack(move || {
        for link in links {
            for depth in [60, 600, 20_000] {
                let mut text = "root ::= r0\n".to_owned();
                for rule in 0..depth {
                    let body = link(rule + 1, depth);
                    let _ = writeln!(text, "r{rule} ::= {body}");
                }
                let _ = writeln!(text, "r{depth} ::= \"a\"");
                go_through(|| Grammar::from_gbnf(&text), "bbb");
            }
        }
        let text = chain_of_rules(100_000);
        go_through(|| Grammar::from_gbnf(&text), "x");
        let deep = "(".repeat(100_000);
        for text in [
            "root ::= \"(\" root \")\" | \"a\"",
            "root ::= \"(\" root \")\" | \"(\" root \"]\" | \"a\"",
        ] {
            go_through(|| Grammar::from_gbnf(text), &deep);
        }
    });
}

/// What is read by `serde_json`, which refuses at a depth of 128.
#[test]
fn nested_files() {
    on_a_small_stack(|| {
        let options = SchemaOptions::default();
        for &depth in DEPTHS {
            for (before, after) in [("[", "]"), ("{\"tags\":", "}")] {
                let text = nested(before, "1", after, depth);
                assert!(StructuralTags::from_json(&text, &options).is_err());
                assert!(Tool::list_from_json(&text, &options).is_err());
                let bytes = text.as_bytes();
                assert!(Vocabulary::from_tokenizer_json(bytes).is_err());
                let text = format!(r#"{{"decoder":{text},"model":{{}}}}"#);
                let bytes = text.as_bytes();
                assert!(Vocabulary::from_tokenizer_json(bytes).is_err());
            }
            let schema = nested(r#"{"not":"#, "true", "}", depth);
            let text = format!(
                r#"{{"triggers":["<"],"tags":[
                    {{"begin":"<","schema":{schema},"end":">"}}]}}"#
            );
            // One way or the other.
            let _ = StructuralTags::from_json(&text, &options);
        }
    });
}
