//! Expressions that are small to write and huge to unroll.

use super::super::*;
use super::{check, ecma, rust};

#[test]
fn large_counts_cost_nothing_up_front() {
    for pattern in [
        r"(?:\p{L}{500}){500}",
        ".*[01]{0,1}1[01]{24}",
        ".{0,1000000000}",
        "(?:a{1000}b?){1000}",
        "((a?){1000}){1000}",
        "(.*a){25}",
    ] {
        let language = rust(pattern);
        assert_eq!(language.n_states(), 1, "{pattern}");
        assert_eq!(language.is_dead(language.start()), Answer::No);
        assert_eq!(language.n_states(), 1, "{pattern}");
    }
    let language = rust(r"(?:\p{L}{500}){500}");
    let start = language.start();
    assert_eq!(language.shortest(start), Shortest::Exactly(250_000));
    assert_eq!(language.longest(start), Longest::Finite(250_000));
    assert_eq!(language.accepts_length(start, 0, 249_999), Answer::No);
}

#[test]
fn states_are_made_along_the_text_only() {
    let language = rust(".*[01]{0,1}1[01]{24}");
    let text = "0101101110010".repeat(40);
    let decides = text.as_bytes()[text.len() - 25] == b'1';
    assert_eq!(language.is_match(&text), Ok(decides));
    let last = format!("{text}1{}", "0".repeat(24));
    assert_eq!(language.is_match(&last), Ok(true));
    assert!(language.n_states() < 2 * last.len(), "{}", language.n_states());
}

#[test]
fn counts_that_overlap_are_joined() {
    // One of these has 127 * 63 ways to count a text, which join to 127.
    let language = ecma(
        r"^(?!.*://)(?=.{1,255}$)((.{1,63}\.){1,127}(?![0-9]*$)[a-z0-9-]+\.?)$",
    );
    let long = format!("{}a", "a1.".repeat(60));
    check(
        &language,
        &["a.b", &long],
        &["a", "a.1", "http://a.b", &"a.".repeat(128)],
    );
}

#[test]
fn long_chains_and_deep_groups_are_no_recursion() {
    let language = rust(&"a?".repeat(10_000));
    assert_eq!(language.is_match(&"a".repeat(100)), Ok(true));
    let language = rust(&"(?:a?|b?)".repeat(2_000));
    assert_eq!(language.is_match(&"ab".repeat(50)), Ok(true));
    let deep = format!("{}a{}", "(?:".repeat(120), ")*".repeat(120));
    check(&rust(&deep), &["", "aaa"], &["b"]);
    let looks = format!("{}a{}", "(?=".repeat(200), ")".repeat(200));
    check(&ecma(&looks), &["xa"], &["x"]);
}

#[test]
fn limits_are_errors_that_name_themselves() {
    let limits = Limits::new();
    let long = "|".repeat(1_000_000);
    let deep = format!("{}{}", "(".repeat(300), ")".repeat(300));
    for parse in [Regex::rust, Regex::ecma] {
        for (pattern, kind) in
            [(&long, LimitKind::PatternBytes), (&deep, LimitKind::Nesting)]
        {
            let error = parse(pattern).expect_err("it is over a limit");
            let limit = error.limit_error().expect("it is a limit");
            assert_eq!(limit.kind(), kind);
            assert!(limit.given() > limit.limit());
        }
    }
    let many = Regex::literal(&"a".repeat(70_000));
    match Language::new(&many, limits) {
        Err(LanguageError::Limit(error)) => {
            assert_eq!(error.kind(), LimitKind::Terms);
            assert_eq!((error.limit(), error.given()), (65_536, 70_000));
        }
        other => panic!("{other:?}"),
    }
    let few = limits.with_max_states(5);
    let regex = Regex::rust("a{10}").expect("it is valid");
    let language = Language::new(&regex, few).expect("it is small");
    let error = language.is_match("aaaaaaaaaa").expect_err("five states");
    assert_eq!((error.kind(), error.limit()), (LimitKind::States, 5));
    assert_eq!(language.is_match("aa"), Ok(false));
}

#[test]
fn a_spent_budget_is_unknown_and_not_a_guess() {
    let limits = Limits::new().with_search_budget(3);
    // Dead, but only after the whole count has been looked at.
    let regex = Regex::rust("(?:ab|cd){50}").expect("it is valid");
    let odd = Regex::rust("(?s)(?:.){99}|(?:.){101}").expect("it is valid");
    let language = Language::new(&regex.and(&odd), limits).expect("small");
    let start = language.start();
    assert_eq!(language.is_dead(start), Answer::Unknown);
    assert_eq!(language.longest(start), Longest::Unknown);
    assert_eq!(language.count_words(start, 9), WordCount::Unknown);
    let language = Language::new(&regex.and(&odd), Limits::new());
    let language = language.expect("it is small");
    assert_eq!(language.is_dead(language.start()), Answer::Yes);
    assert_eq!(language.shortest(language.start()), Shortest::Never);
}

#[test]
fn thousands_of_literals_are_cheap() {
    let words: Vec<String> =
        (0..5_000).map(|n| format!("word-{}-{n}", n % 97)).collect();
    let language = Language::new(&Regex::literals(&words), Limits::new())
        .expect("lists are cheap");
    for word in words.iter().step_by(61) {
        assert_eq!(language.is_match(word), Ok(true), "{word}");
        assert_eq!(language.is_match(&word[1..]), Ok(false), "{word}");
    }
    // Sharing starts where the words are the same.
    assert_eq!(language.enumerate(4_999), None);
    let pattern = words[..2_000].join("|");
    check(&rust(&pattern), &["word-1-1"], &["word-1", "word-1-3"]);
}

#[test]
fn an_assertion_inside_an_intersection_needs_the_whole_text() {
    let anchored = Regex::ecma("^a$").expect("it is valid");
    let both = anchored.and(&Regex::ecma("a").expect("it is valid"));
    assert!(Language::new(&both, Limits::new()).is_ok());
    let inside = Regex::concat(&[both, Regex::literal("b")]);
    let error = Language::new(&inside, Limits::new()).err();
    assert_eq!(error, Some(LanguageError::AssertionInside));
}

#[test]
fn the_shared_cases_hold() {
    check(
        &rust(
            r"((25[0-5]|(2[0-4]|1\d|[1-9]|)\d)\.){3}(25[0-5]|(2[0-4]|1\d|[1-9]|)\d)",
        ),
        &["10.0.255.1"],
        &["256.0.0.1", "1.2.3"],
    );
    check(
        &rust("[а-я]+[一-龥]?[😀-😎]?"),
        &["привет", "я中", "я😀"],
        &["я中中", "A"],
    );
    check(&rust("(a|())b"), &["b", "ab"], &["aab"]);
    check(&rust("[\u{0}-\u{2e7f}]+"), &["abc\n", "é"], &["中"]);
    check(&rust(r"1(\.5)?"), &["1", "1.5"], &["1.", "1.6", "15"]);
    let error = Regex::rust("foo**(").expect_err("a group is open");
    assert_eq!(error.offset(), 5);
}

#[test]
fn offsets_of_rewritten_look_around_are_those_of_the_pattern() {
    let pattern = "(?=a)(?<!b)é(";
    let error = Regex::rust(pattern).expect_err("a group is open");
    assert_eq!(error.offset(), pattern.len() - 1);
    check(&rust("[(?=]+"), &["(?="], &["a"]);
    check(&rust(r"\(?=a"), &["=a", "(=a"], &["a"]);
    check(&rust("[]](?=b)b"), &["]b"], &["b"]);
}

#[test]
fn never_dies_is_found_for_searches() {
    for pattern in ["a", "a+b", "(?=.*x)y", r"\bfoo\b"] {
        let language = ecma(pattern);
        let start = language.start();
        assert_eq!(language.never_dies(start), Answer::Yes, "{pattern}");
    }
    for pattern in ["^a", "a$|^b$", "^[^x]*$"] {
        let language = ecma(pattern);
        let dies = language.never_dies(language.start());
        let expected =
            if pattern == "a$|^b$" { Answer::Yes } else { Answer::No };
        assert_eq!(dies, expected, "{pattern}");
    }
}

/// The bound on the length is that of the first part whatever has become of
/// the others, and leads through every text of that length.
#[test]
fn a_long_part_does_not_hide_the_others() {
    let parts = [
        "^.{60}$",
        "ab1",
        "b12",
        "bc1",
        "c12",
        "ca1",
        "a12",
        r"^\w*$",
        r"\d\d",
        "[b|c]",
        "1.*2",
        "[aA][12].*[zZ]",
    ];
    let parts = parts.map(|it| Regex::ecma(it).expect("it is valid"));
    let all = Regex::intersect(&parts);
    let language = Language::new(&all, Limits::new()).expect("small");
    assert_eq!(language.is_dead(language.start()), Answer::No);
    // The way that is short is not put off until the other was given up.
    assert!(language.n_states() < 600, "{} states", language.n_states());
    let none = all.and(&Regex::ecma("^[^b]*$").expect("it is valid"));
    let language = Language::new(&none, Limits::new()).expect("small");
    assert_ne!(language.is_dead(language.start()), Answer::No);
}
