//! Grammars that were written to do harm, and what must become of each.
//!
//! A case is a grammar of one kind, with texts.

use std::fmt::Write as _;

/// What a case is made of.
#[derive(Clone, Debug)]
pub enum Source {
    /// The text of a JSON Schema.
    Schema(String),
    /// An expression in Rust's syntax.
    Regex(String),
    /// A grammar in GBNF.
    Gbnf(String),
    /// A list of choices.
    Choices(Vec<String>),
    /// The text of a file of tags.
    Tags(String),
}

/// What must become of a case.
#[derive(Clone, Debug)]
pub enum Answer {
    /// An error of this kind, at this place: a JSON pointer, an offset, or a
    /// line and a column. An empty place is not looked at.
    Refused(&'static str, String),
    /// It compiles, and accepts those of its texts that are marked.
    Judged(Vec<(String, bool)>),
}

/// One grammar.
#[derive(Clone, Debug)]
pub struct Case {
    /// What it is about.
    pub name: String,
    /// The grammar.
    pub source: Source,
    /// What must become of it.
    pub answer: Answer,
}

impl Case {
    fn refused(name: &str, source: Source, kind: &'static str) -> Case {
        Case::refused_at(name, source, kind, "")
    }

    fn refused_at(
        name: &str,
        source: Source,
        kind: &'static str,
        place: &str,
    ) -> Case {
        let answer = Answer::Refused(kind, place.to_owned());
        Case { name: name.to_owned(), source, answer }
    }

    fn judged(
        name: &str,
        source: Source,
        accepted: &[&str],
        refused: &[&str],
    ) -> Case {
        let accepted = accepted.iter().map(|&text| (text.to_owned(), true));
        let refused = refused.iter().map(|&text| (text.to_owned(), false));
        let answer = Answer::Judged(accepted.chain(refused).collect());
        Case { name: name.to_owned(), source, answer }
    }
}

fn schema(text: impl Into<String>) -> Source {
    Source::Schema(text.into())
}

fn regex(text: impl Into<String>) -> Source {
    Source::Regex(text.into())
}

fn gbnf(text: impl Into<String>) -> Source {
    Source::Gbnf(text.into())
}

fn tags(text: impl Into<String>) -> Source {
    Source::Tags(text.into())
}

fn choices(texts: &[&str]) -> Source {
    Source::Choices(texts.iter().map(|&text| text.to_owned()).collect())
}

/// Writes `inner` with `n` pairs of brackets around it.
pub fn nested(before: &str, inner: &str, after: &str, n: usize) -> String {
    [before.repeat(n), inner.to_owned(), after.repeat(n)].concat()
}

/// Writes what `write` makes of each number below `n`, one after the other.
fn written(n: usize, separator: &str, write: fn(usize) -> String) -> String {
    let parts: Vec<String> = (0..n).map(write).collect();
    parts.join(separator)
}

/// Writes an expression that looks ahead for each letter.
fn looks_ahead() -> String {
    let looks = (b'a'..=b'z').map(|byte| format!("(?=.*{})", byte as char));
    looks.collect()
}

/// Returns all cases: those that other engines have failed at, and more of
/// their kinds.
pub fn cases() -> Vec<Case> {
    let mut cases = gbnf_of_record();
    cases.extend(regex_of_record());
    cases.extend(schemas_of_record());
    cases.extend(tags_and_choices_of_record());
    cases.extend(more_gbnf());
    cases.extend(more_regex());
    cases.extend(invalid_schemas());
    cases.extend(large_schemas());
    cases.extend(numbers());
    cases.extend(more_tags_and_choices());
    cases
}

/// Rules that each are the next one, and a last one that is `x`.
pub fn chain_of_rules(n: usize) -> String {
    let mut text = "root ::= r0\n".to_owned();
    for rule in 0..n {
        let _ = writeln!(text, "r{rule} ::= r{}", rule + 1);
    }
    let _ = writeln!(text, "r{n} ::= \"x\"");
    text
}

fn gbnf_of_record() -> Vec<Case> {
    let invalid = |name: &str, text: &str, place: &str| {
        Case::refused_at(name, gbnf(text), "invalid_gbnf", place)
    };
    let deep = format!("root ::= {}", nested("(", "a", ")", 60_000));
    let many_a = "a".repeat(2_000);
    vec![
        invalid("60,000 groups", &deep, "1:1010"),
        Case::judged(
            "5,000 rules in a chain",
            gbnf(chain_of_rules(5_000)),
            &["x"],
            &["", "xx"],
        ),
        Case::judged(
            "200,000 rules in a chain",
            gbnf(chain_of_rules(200_000)),
            &["x"],
            &["y"],
        ),
        Case::judged(
            "hidden left recursion",
            gbnf("root ::= ws root \"y\" | \"z\"\nws ::= \" \"*"),
            &["z", "zy", " zy", "   zyyy"],
            &["yy", " z", "  zy z"],
        ),
        invalid("{9,1}", r#"root ::= "a"{9,1}"#, "1:13"),
        invalid("{5,0}", r#"root ::= "a"{5,0}"#, "1:13"),
        Case::judged(
            "stars of stars",
            gbnf(r#"root ::= (("a"*)*)*"#),
            &["", &many_a],
            &["b"],
        ),
        Case::judged(
            "nothing but empty alternatives",
            gbnf(r#"root ::= ("" | root "")"#),
            &[""],
            &["a"],
        ),
        Case::judged(
            "as ambiguous as can be",
            gbnf("root ::= s\ns ::= s s | \"a\""),
            &[&many_a],
            &["", "ab"],
        ),
        invalid(r"\UFFFFFFFF", r#"root ::= "\UFFFFFFFF""#, "1:11"),
        invalid(r"\uD800", r#"root ::= "\uD800""#, "1:11"),
        invalid("[z-a]", "root ::= [z-a]", "1:11"),
        invalid("[]", "root ::= []", "1:10"),
        invalid("[^]", "root ::= [^]", "1:10"),
        invalid("<[2^32]>", "root ::= <[4294967296]>", "1:12"),
    ]
}

fn regex_of_record() -> Vec<Case> {
    let (many_a, many_ab) = ("a".repeat(2_000), "ab".repeat(500));
    let a_then_b = format!("{many_a}b");
    let invalid = |text: &str, place: &str| {
        Case::refused_at(text, regex(text), "invalid_regex", place)
    };
    vec![
        Case::judged(
            "(a|a)*b",
            regex("(a|a)*b"),
            &["b", &a_then_b],
            &[&many_a, &many_ab],
        ),
        Case::judged(
            "(a*)*b",
            regex("(a*)*b"),
            &["b", &a_then_b],
            &[&many_a, &many_ab],
        ),
        Case::judged(
            "(.*a){25}",
            regex("(.*a){25}"),
            &[&many_a],
            &[&"a".repeat(24), &many_ab],
        ),
        Case::judged(
            "250,000 letters",
            regex(r"(?:\p{L}{500}){500}"),
            &[],
            &[&many_a, "1"],
        ),
        Case::refused_at(
            "10,000 large classes",
            regex(r"[\p{L}--\p{Lu}]".repeat(10_000)),
            "invalid_regex",
            "65536",
        ),
        Case::refused_at(
            "a class too often",
            regex(r"[\p{L}--\p{Lu}]".repeat(4_300)),
            "invalid_regex",
            "0",
        ),
        // Rust's syntax has repetitions of repetitions.
        Case::judged("foo**", regex("foo**"), &["fo", "fooo"], &["f"]),
        invalid("foo**(", "5"),
        invalid("(", "0"),
        invalid("[", "0"),
        invalid("a{99999999999}", "2"),
        invalid("\\", "0"),
        Case::refused_at(
            "a megabyte of bars",
            regex("|".repeat(1 << 20)),
            "invalid_regex",
            "65536",
        ),
    ]
}

/// `oneOf` of two objects that are `oneOf` of two objects again.
fn nested_one_of(depth: usize) -> String {
    let mut text = r#"{"type": "integer"}"#.to_owned();
    for _ in 0..depth {
        let branch = |name: &str, inner: &str| {
            format!(
                r#"{{"type": "object", "properties": {{"{name}": {inner}}},
                    "required": ["{name}"]}}"#
            )
        };
        let (a, b) = (branch("a", r##"{"$ref": "#/$defs/s"}"##), text);
        let b = branch("b", &b);
        text = format!(r#"{{"oneOf": [{a}, {b}]}}"#);
    }
    format!(r#"{{"$defs": {{"s": {{"type": "string"}}}}, "oneOf": [{text}]}}"#)
}

/// Levels of definitions, each of which joins two of the level below.
fn levels(depth: usize, keyword: &str, last: [&str; 2]) -> String {
    let mut defs = String::new();
    for level in 0..depth {
        let next = level + 1;
        let [a, b] = ["a", "b"]
            .map(|name| format!(r##"{{"$ref": "#/$defs/{name}{next}"}}"##));
        let _ = write!(
            defs,
            r#""a{level}": {{"{keyword}": [{a}, {b}]}},
               "b{level}": {{"{keyword}": [{b}, {{"allOf": [{a}, {b}]}}]}},"#
        );
    }
    let [a, b] = last;
    format!(
        r##"{{"$ref": "#/$defs/a0",
            "$defs": {{{defs} "a{depth}": {a}, "b{depth}": {b}}}}}"##
    )
}

fn schemas_of_record() -> Vec<Case> {
    let invalid = |text: &str, place: &str| {
        Case::refused_at(text, schema(text), "invalid_keyword", place)
    };
    let pattern = |n: usize| {
        let [first, second] = [n % 26, (n * 7 + 3) % 26].map(|letter| {
            char::from(b'a' + u8::try_from(letter).unwrap_or_default())
        });
        format!(r#"{{"pattern": "{first}.*{second}"}}"#)
    };
    let patterns: Vec<String> = (0..30).map(pattern).collect();
    let letters = ('a'..='z').collect::<String>().repeat(2);
    let long = r#"{"type": "string", "minLength": 100000,
        "maxLength": 100001}"#;
    let long: Vec<String> =
        (0..50).map(|n| format!(r#""p{n}": {long}"#)).collect();
    let first = format!(r#"{{"p0": "{}""#, "a".repeat(100_000));
    vec![
        Case::judged(
            "14 levels of oneOf",
            schema(nested_one_of(14)),
            &[r#"{"a": "x"}"#, r#"{"b": {"b": {"a": "x"}}}"#],
            &["1", r#"{"a": 1}"#, r#"{"b": {"b": 1}}"#],
        ),
        Case::judged(
            "30 patterns at once",
            schema(format!(
                r#"{{"type": "string", "allOf": [{}],
                    "not": {{"pattern": "zz"}}}}"#,
                patterns.join(",")
            )),
            &[&format!("\"{letters}\"")],
            &["\"abc\"", &format!("\"{letters}zz\"")],
        ),
        Case::judged(
            "counters of 100,000",
            schema(format!(
                r#"{{"type": "object", "properties": {{{}}},
                    "required": ["p0"]}}"#,
                long.join(",")
            )),
            &[&format!("{first}}}")],
            &[
                r#"{"p0": "a"}"#,
                &format!(r#"{first}, "p1": "a"}}"#),
                &format!("{}aa\"}}", &first[..first.len() - 1]),
            ],
        ),
        Case::judged(
            "a length of 20",
            schema(r#"{"type": "string", "maxLength": 20}"#),
            &[&format!("\"{}\"", "a".repeat(20))],
            &[&format!("\"{}\"", "a".repeat(21))],
        ),
        invalid(r#"{"properties": {"foo": "bar"}}"#, "/properties/foo"),
        invalid(r#"{"type": ["x"]}"#, "/type/0"),
        invalid(r#"{"required": [1]}"#, "/required/0"),
        invalid(r#"{"minItems": -1}"#, "/minItems"),
        invalid(r#"{"pattern": 5}"#, "/pattern"),
        invalid(r#"{"items": [[]]}"#, "/items/0"),
        // What no value satisfies is no invalid schema.
        Case::refused(
            "an empty enum",
            schema(r#"{"enum": []}"#),
            "unsatisfiable",
        ),
        // This one is valid: whatever is no array satisfies it.
        Case::judged(
            "10^30 items",
            schema(r#"{"minItems": 1e30}"#),
            &["1", "{}"],
            &["[]", "[1]"],
        ),
        Case::judged(
            "foo** in ECMA-262",
            schema(r#"{"pattern": "fo*"}"#),
            &["1", "\"f\""],
            &["\"o\""],
        ),
        Case::refused_at(
            "nothing to repeat",
            schema(r#"{"patternProperties": {"foo**": {}}}"#),
            "invalid_regex",
            "/patternProperties/foo**",
        ),
    ]
}

fn tags_and_choices_of_record() -> Vec<Case> {
    let tag = |n: usize| {
        format!(
            r#"{{"begin": "<t{n}>", "regex": "[0-9]+", "end": "</t{n}>"}}"#
        )
    };
    let all: Vec<String> = (0..10_000).map(tag).collect();
    let all = all.join(",");
    let triggers = written(10_000, ",", |n| format!("\"<t{n}>\""));
    let called = "some <t77>12</t77> ".repeat(100);
    let strings = r#""schema": {"type": "string"}"#;
    let lines: Vec<String> =
        (0..10_000).map(|n| format!("{n:05}{}", "x".repeat(1_000))).collect();
    let (one, part) = (lines[77].clone(), lines[77][..1_000].to_owned());
    vec![
        Case::judged(
            "a trigger that begins another",
            tags(
                r#"{"triggers": ["<a", "<ab"], "tags": [
                    {"begin": "<a>", "choices": ["1"], "end": "</a>"},
                    {"begin": "<ab>", "choices": ["2"], "end": "</ab>"}]}"#,
            ),
            &["<a>1</a> <ab>2</ab>", "<"],
            &["<a>2</a>", "<ab>1</ab>", "<ac>", "<a"],
        ),
        Case::judged(
            "a trigger that ends another",
            tags(
                r#"{"triggers": ["x<a", "<a"], "tags": [
                    {"begin": "x<a>", "choices": ["1"], "end": "</a>"},
                    {"begin": "<a>", "choices": ["2"], "end": "</a>"}]}"#,
            ),
            &["x<a>1</a>", "y<a>2</a>"],
            &["y<a>1</a>", "x<a"],
        ),
        Case::refused(
            "an empty trigger",
            tags(
                r#"{"triggers": [""], "tags": [
                    {"begin": "<a>", "choices": ["1"], "end": ""}]}"#,
            ),
            "invalid_tags",
        ),
        Case::refused(
            "an empty tag",
            tags(
                r#"{"triggers": ["<a>"], "tags": [
                    {"begin": "", "choices": ["1"], "end": ""}]}"#,
            ),
            "invalid_tags",
        ),
        Case::judged(
            "a tag in a string in a tag",
            tags(format!(
                r#"{{"triggers": ["<a>"], "tags": [
                    {{"begin": "<a>", {strings}, "end": "</a>"}}]}}"#
            )),
            &["<a>\"<a></a>\"</a> and", "\"<a>\"b\"</a>\""],
            &["<a>\"</a>", "<a>\"<a>1</a>"],
        ),
        Case::judged(
            "10,000 tags",
            tags(format!(r#"{{"triggers": ["<t"], "tags": [{all}]}}"#)),
            &[&called, ""],
            &["<t77>12</t78>", "<t10000>1</t10000>"],
        ),
        Case::judged(
            "10,000 triggers",
            tags(format!(r#"{{"triggers": [{triggers}], "tags": [{all}]}}"#)),
            &[&called, "<t", "<t10000"],
            &["<t77>12</t78>", "<t77>"],
        ),
        Case::refused("no choice", choices(&[]), "no_choices"),
        Case::judged("an empty choice", choices(&[""]), &[""], &["a"]),
        Case::judged("a choice twice", choices(&["a", "a"]), &["a"], &["aa"]),
        Case::judged(
            "10,000 long choices",
            Source::Choices(lines),
            &[&one],
            &[&part, "x"],
        ),
        Case::judged(
            "a choice that begins another",
            choices(&["A", "AB"]),
            &["A", "AB"],
            &["", "B", "ABB"],
        ),
    ]
}

fn more_gbnf() -> Vec<Case> {
    let invalid = |name: &str, text: &str, place: &str| {
        Case::refused_at(name, gbnf(text), "invalid_gbnf", place)
    };
    let name = "n".repeat(1 << 20);
    let bars = format!("root ::= \"a\"{}", "|".repeat(1 << 20));
    let pairs = (0..30).fold("root ::= r0\n".to_owned(), |text, rule| {
        let next = rule + 1;
        format!("{text}r{rule} ::= r{next} r{next}\n")
    });
    let pairs = format!("{pairs}r30 ::= \"a\"?\n");
    vec![
        invalid("no rule", "", "1:1"),
        invalid("no root", "a ::= \"b\"", "1:1"),
        invalid("only itself", "root ::= root", "1:1"),
        invalid("two that need each other", "root ::= a\na ::= root", "1:1"),
        invalid("a name without a rule", "root ::= a", "1:10"),
        invalid("a rule twice", "root ::= \"a\"\nroot ::= \"b\"", "2:1"),
        invalid("a literal without an end", "root ::= \"a", "1:10"),
        invalid("a group without an end", "root ::= (\"a\"", "1:10"),
        invalid("an end without a group", "root ::= \"a\")", "1:13"),
        invalid("a token without an end", "root ::= <a", "1:10"),
        invalid("two definitions", "root ::= \"a\" ::= \"b\"", "1:14"),
        invalid("2^32 times", r#"root ::= "a"{4294967296}"#, "1:14"),
        invalid("a star alone", "root ::= *", "1:10"),
        invalid("a schema that is none", "root ::= %json {\"a\"", "1:16"),
        invalid(
            "a schema that is wrong",
            r#"root ::= "b" | %json {"type": ["x"]}"#,
            "1:16",
        ),
        invalid("an expression that is none", "root ::= %regex /(/", "1:10"),
        invalid("a grammar that is none", "root ::= %grammar a", "1:10"),
        invalid("a NUL between rules", "root ::= \"a\"\n\0", "2:1"),
        Case::judged(
            "2^32 - 1 times",
            gbnf(r#"root ::= "a"{0,4294967295} "b""#),
            &["b", "aaab"],
            &["a"],
        ),
        Case::judged(
            "a count of counts",
            gbnf(r#"root ::= ("a"{0,1000}){0,1000} "b""#),
            &["b", "aaab"],
            &["a"],
        ),
        Case::judged("a megabyte of bars", gbnf(bars), &["", "a"], &["b"]),
        Case::judged(
            "a name of a megabyte",
            gbnf(format!("root ::= {name}\n{name} ::= \"a\"")),
            &["a"],
            &[""],
        ),
        Case::judged(
            "100,000 alternatives",
            gbnf(format!(
                "root ::= {}",
                written(100_000, " | ", |n| format!("\"a{n}\""))
            )),
            &["a77777"],
            &["a", "a100000"],
        ),
        Case::judged("2^30 ways", gbnf(pairs), &["", "aaa"], &["b"]),
        Case::judged(
            "rules that are left recursive through one another",
            gbnf("root ::= a\na ::= b? a \"x\" | c\nb ::= a?\nc ::= b \"y\""),
            &["y", "yx", "yxx"],
            &["x", ""],
        ),
        Case::judged(
            "every character",
            gbnf(r"root ::= [\x00-\U0010FFFF]"),
            &["a", "\0", "\u{10FFFF}"],
            &["", "aa"],
        ),
    ]
}

fn more_regex() -> Vec<Case> {
    let invalid = |text: &str, place: &str| {
        Case::refused_at(text, regex(text), "invalid_regex", place)
    };
    let nested_twice = nested("(", "a", ")", 300);
    let looks = looks_ahead();
    let all: String = ('a'..='z').rev().collect();
    vec![
        invalid("a{2,1}", "1"),
        invalid("(?P<n>a)(?P<n>b)", "12"),
        invalid(r"\p{Nope}", "0"),
        invalid("[z-a]", "1"),
        invalid("(?x", "3"),
        invalid("x{4294967296}", "2"),
        invalid("*", "0"),
        invalid("a)", "1"),
        invalid(r"(a)\1", "3"),
        Case::refused("300 groups", regex(nested_twice), "invalid_regex"),
        Case::refused(
            "nothing at all",
            regex(r"[^\x00-\x{10FFFF}]"),
            "unsatisfiable",
        ),
        Case::judged("an empty expression", regex(""), &[""], &["a"]),
        Case::judged(
            "10,000 flags",
            regex(format!("{}a", "(?i)".repeat(10_000))),
            &["a", "A"],
            &["b"],
        ),
        Case::judged(
            "26 looks ahead",
            regex(format!("(?s){looks}.*")),
            &[&all],
            &[&all[1..], ""],
        ),
        Case::judged(
            "empty rounds of counts",
            regex("(?:a{0,1000}){0,1000}b"),
            &["b", "aaab"],
            &["a", "ba"],
        ),
        Case::judged(
            "a billion of anything",
            regex("(?s).{0,1000000000}b"),
            &["b", "aab"],
            &["a"],
        ),
    ]
}

fn invalid_schemas() -> Vec<Case> {
    let at = |text: &str, kind: &'static str, place: &str| {
        Case::refused_at(text, schema(text), kind, place)
    };
    let keyword = |text: &str, place: &str| at(text, "invalid_keyword", place);
    vec![
        keyword(r#"{"allOf": []}"#, "/allOf"),
        keyword(r#"{"anyOf": {}}"#, "/anyOf"),
        keyword(r#"{"properties": []}"#, "/properties"),
        keyword(r#"{"multipleOf": 0}"#, "/multipleOf"),
        keyword(r#"{"minLength": 1.5}"#, "/minLength"),
        keyword(r#"{"maxLength": "9"}"#, "/maxLength"),
        keyword(r#"{"required": "a"}"#, "/required"),
        keyword(r#"{"uniqueItems": 1}"#, "/uniqueItems"),
        keyword(r#"{"enum": 1}"#, "/enum"),
        keyword(r#"{"not": 1}"#, "/not"),
        keyword(r#"{"$ref": 1}"#, "/$ref"),
        keyword(r#"{"$defs": 1, "$ref": "x:y"}"#, "/$defs"),
        keyword(r#"{"format": {}}"#, "/format"),
        at(r##"{"$ref": "#/a"}"##, "unresolved_ref", "/$ref"),
        at(r#"{"$ref": "http://x.y/z"}"#, "unresolved_ref", "/$ref"),
        at(r##"{"$ref": "#"}"##, "in_place_cycle", ""),
        at(r#"{"$schema": "http://x.y"}"#, "unknown_dialect", "/$schema"),
        at(r#"{"pattern": "("}"#, "invalid_regex", "/pattern"),
        at(r#"{"pattern": "(a)\\1"}"#, "unsupported_regex", "/pattern"),
        at("false", "unsatisfiable", ""),
        at(r#"{"not": {}}"#, "unsatisfiable", ""),
        at(
            r##"{"type": "array", "items": {"$ref": "#"}, "minItems": 1}"##,
            "unsatisfiable",
            "",
        ),
        at(
            r#"{"type": "object", "propertyNames": false,
                "minProperties": 1}"#,
            "unsatisfiable",
            "",
        ),
        at(
            r#"{"type": "array", "items": {"enum": [1, 2]},
                "uniqueItems": true, "minItems": 1000000}"#,
            "unsatisfiable",
            "",
        ),
        Case::refused(
            "200 times the same in oneOf",
            schema(format!(
                r#"{{"oneOf": [{}]}}"#,
                written(200, ",", |_| r#"{"type": "integer"}"#.to_owned())
            )),
            "unsatisfiable",
        ),
    ]
}

fn large_schemas() -> Vec<Case> {
    let names = |n| written(n, ",", |n| format!("\"p{n}\""));
    let members =
        |n| written(n, ",", |n| format!("\"p{n}\": {{\"type\": \"null\"}}"));
    let full = written(2_000, ",", |n| format!("\"p{n}\": null"));
    let strings = r#"{"type": "string"}"#;
    vec![
        Case::judged(
            "an enum of 100,000",
            schema(format!(r#"{{"enum": [{}]}}"#, names(100_000))),
            &["\"p77777\""],
            &["\"p\"", "\"p100000\""],
        ),
        Case::judged(
            "2,000 members that are required",
            schema(format!(
                r#"{{"type": "object", "properties": {{{}}},
                    "required": [{}]}}"#,
                members(2_000),
                names(2_000)
            )),
            &[&format!("{{{full}}}")],
            &["{}", r#"{"p7": 1}"#],
        ),
        Case::judged(
            "10,000 branches",
            schema(format!(
                r#"{{"anyOf": [{}]}}"#,
                written(10_000, ",", |n| format!(r#"{{"const": {n}}}"#))
            )),
            &["77"],
            &["10000", "\"a\""],
        ),
        Case::judged(
            "allOf that doubles",
            schema(levels(40, "allOf", [strings, strings])),
            &["\"a\""],
            &["1"],
        ),
        Case::judged(
            "anyOf that doubles",
            schema(levels(40, "anyOf", [strings, r#"{"type": "null"}"#])),
            &["\"a\"", "null"],
            &["1"],
        ),
        Case::judged(
            "a chain of 20,000 references",
            schema(format!(
                r##"{{"$ref": "#/$defs/p0", "$defs": {{{},
                    "p20000": {strings}}}}}"##,
                written(20_000, ",", |n| format!(
                    r##""p{n}": {{"$ref": "#/$defs/p{}"}}"##,
                    n + 1
                ))
            )),
            &["\"a\""],
            &["1"],
        ),
        Case::judged(
            "counts of counts in a pattern",
            schema(
                r#"{"type": "string",
                    "pattern": "^(?:(?:a{0,65535}){0,65535}){0,65535}$"}"#,
            ),
            &["\"\"", "\"aaa\""],
            &["\"b\""],
        ),
        Case::judged(
            "26 looks ahead in a pattern",
            schema(format!(
                r#"{{"type": "string", "pattern": "^{}"}}"#,
                looks_ahead()
            )),
            &["\"zyxwvutsrqponmlkjihgfedcba\""],
            &["\"abc\""],
        ),
        Case::judged(
            "1,000 dependencies in a ring",
            schema(format!(
                r#"{{"type": "object", "dependentRequired": {{{}}}}}"#,
                written(1_000, ",", |n| format!(
                    r#""p{n}": ["p{}"]"#,
                    (n + 1) % 1_000
                ))
            )),
            &["{}", r#"{"q": 1}"#],
            &[r#"{"p0": 1}"#],
        ),
    ]
}

/// Numbers that are short to write and long to hold.
fn numbers() -> Vec<Case> {
    let large = "1e999999999";
    let judged = |text: &str, accepted: &[&str], refused: &[&str]| {
        Case::judged(text, schema(text), accepted, refused)
    };
    vec![
        judged(r#"{"type": "integer"}"#, &[large, "1e5"], &["1e-999999999"]),
        judged(r#"{"minimum": 1e999999999}"#, &["1e1000000000"], &["7"]),
        judged(r#"{"multipleOf": 1e-999999999}"#, &["0"], &[]),
        judged(r#"{"multipleOf": 0.01}"#, &[large, "0.07"], &["0.001"]),
        judged(r#"{"const": 1e999999999}"#, &[large], &["1e99"]),
        judged(
            r#"{"type": "array", "uniqueItems": true}"#,
            &["[1e999999999, 1e999999998]"],
            &["[1e999999999, 10e999999998]"],
        ),
        judged(
            r#"{"type": "number", "multipleOf": 3e-9, "minimum": 1e9,
                "maximum": 1e999999999}"#,
            &["1000000002"],
            &["1"],
        ),
    ]
}

fn more_tags_and_choices() -> Vec<Case> {
    let invalid = |text: &str| Case::refused(text, tags(text), "invalid_tags");
    let one = r#"{"begin": "<a>", "choices": ["1"], "end": "</a>"}"#;
    vec![
        invalid("{}"),
        invalid(r#"{"tags": 1}"#),
        invalid(r#"{"tags": [{"begin": "<a>", "end": ""}]}"#),
        invalid(&format!(r#"{{"triggers": ["b"], "tags": [{one}]}}"#)),
        invalid(&format!(r#"{{"tags": [{one}], "no_such_thing": 1}}"#)),
        invalid(&format!(
            r#"{{"triggers": ["<a>"], "tags": [{one}], "at_least": 3,
                "at_most": 2}}"#
        )),
        Case::refused(
            "a tag whose schema is wrong",
            tags(
                r#"{"triggers": ["<a>"], "tags": [
                    {"begin": "<a>", "schema": {"type": 1}, "end": "b"}]}"#,
            ),
            "invalid_keyword",
        ),
        Case::judged(
            "a choice with a NUL",
            choices(&["a\0b", "\u{FFFF}"]),
            &["a\0b", "\u{FFFF}"],
            &["a", "\0"],
        ),
        Case::judged(
            "100,000 choices",
            Source::Choices((0..100_000).map(|n| format!("c{n}")).collect()),
            &["c0", "c99999"],
            &["c", "c100000"],
        ),
    ]
}
