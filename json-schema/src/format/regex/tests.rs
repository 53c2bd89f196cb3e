//! The law between the two languages and the check, on texts like patterns.

use maskwright_grammar_core::regular::{Answer, Language, Limits};
use proptest::{
    collection::vec,
    prelude::*,
    sample::select,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use super::{check, least, most};

/// What patterns and classes are made of, and what breaks them.
const PIECES: &[&str] = &[
    "a",
    "z",
    "Z",
    "0",
    "5",
    "9",
    "-",
    "-",
    "-",
    "[",
    "[",
    "]",
    "]",
    "[^",
    "^",
    "$",
    ".",
    "|",
    "(",
    "(?:",
    "(?=",
    "(?<!",
    ")",
    "*",
    "+?",
    "?",
    "{",
    "}",
    ",",
    "{1,2}",
    "{12,",
    "{2,1}",
    "12",
    "120",
    " ",
    "~",
    "/",
    "!",
    "\n",
    "\t",
    "\u{e9}",
    "\u{ff}",
    "\u{430}",
    "\u{44f}",
    "\u{4e00}",
    "\u{9fa5}",
    "\u{1f600}",
    "\u{10ffff}",
    "\\",
    "\\\\",
    "\\]",
    "\\[",
    "\\-",
    "\\.",
    "\\/",
    "\\d",
    "\\W",
    "\\b",
    "\\B",
    "\\n",
    "\\t",
    "\\0",
    "\\cA",
    "\\x1f",
    "\\x41",
    "\\x7E",
    "\\xe9",
    "\\u0041",
    "\\u00ff",
    "\\u0430",
    "\\u4E00",
    "\\uFFFF",
    "\\uD83D",
    "\\uDE00",
    "\\uD83D\\uDE00",
    "\\u{61}",
    "\\u{000}",
    "\\u{10FFFF}",
    "\\u{1F600}",
    "\\p{L}",
    "\\P{Script=Greek}",
    "\\p{sc=Grek}",
    "\\p{l}",
    "\\1",
    "(?<n>",
    "\\k<n>",
];

fn runner(cases: u32) -> TestRunner {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let config = Config { failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(Config { cases, ..config }, rng)
}

struct Bounds {
    least: Language,
    most: Language,
}

impl Bounds {
    fn new() -> Bounds {
        let [least, most] = [least(), most()]
            .map(|regex| Language::new(&regex, Limits::new()).expect("small"));
        Bounds { least, most }
    }

    fn state_is_live(language: &Language, text: &str) -> bool {
        let mut state = language.start();
        for character in text.chars() {
            match language.step(state, character).expect("in limits") {
                Some(next) => state = next,
                None => return false,
            }
        }
        language.is_dead(state) == Answer::No
    }

    /// Checks the law, and returns whether the two agree.
    fn hold(&self, text: &str) -> bool {
        let is_pattern = check(text);
        let least = self.least.is_match(text).expect("in limits");
        let most = self.most.is_match(text).expect("in limits");
        assert!(least <= is_pattern, "refused, but certain: {text:?}");
        assert!(is_pattern <= most, "accepted, but impossible: {text:?}");
        least == most
    }
}

#[test]
fn patterns_lie_between_the_two_languages() {
    let bounds = Bounds::new();
    let pieces = vec(select(PIECES), 0..9).prop_map(|it| it.concat());
    let class =
        vec(select(PIECES), 1..7).prop_map(|it| format!("[{}]", it.concat()));
    let range = (select(PIECES), select(PIECES), select(PIECES))
        .prop_map(|(a, b, c)| format!("[{a}{b}-{c}]"));
    let numbers =
        (0..3000_u32, 0..3000_u32, 0..5_u32).prop_map(|(a, b, close)| {
            let (a, b) = (a >> (2 * close), b >> close);
            format!("x{{{a},{b}}}")
        });
    let texts = prop_oneof![pieces, class, range, numbers];
    let mut n_decided = 0;
    let mut n_all = 0;
    runner(20_000)
        .run(&texts, |text| {
            bounds.hold(&text);
            Ok(())
        })
        .expect("the law holds");
    for a in PIECES {
        for b in PIECES {
            n_all += 1;
            n_decided += u32::from(bounds.hold(&format!("[{a}-{b}]")));
        }
    }
    assert!(n_decided * 10 > n_all * 9, "{n_decided} of {n_all}");
}

#[test]
fn ends_of_printable_ranges_are_compared() {
    let bounds = Bounds::new();
    let written = |character: char| match character {
        '\\' | ']' | '-' | '^' => format!("\\{character}"),
        _ => character.to_string(),
    };
    for first in ' '..='~' {
        for last in ' '..='~' {
            let text = format!("[x{}-{}]", written(first), written(last));
            assert!(bounds.hold(&text), "{text}");
            assert_eq!(check(&text), first <= last, "{text}");
        }
    }
}

#[test]
fn counts_are_compared() {
    let bounds = Bounds::new();
    for first in 0..=130 {
        for last in 0..=130 {
            let text = format!("a{{{first},{last}}}?");
            let decided = bounds.hold(&text);
            assert!(decided || first >= 100 && last >= 100, "{text}");
        }
    }
    for (text, decided) in [
        ("a{007,12}", true),
        ("a{12,007}", true),
        ("a{00,0}", true),
        ("a{100,255}", true),
        ("a{200,255}", true),
        ("a{255,100}", true),
        ("a{1000,1024}", true),
        ("a{1024,1048}", false),
        ("a{5000,1048}", true),
        ("a{99999,100000}", true),
        ("a{100000,99999}", true),
        ("a{4294967294}", false),
        ("a{4294967295}", false),
        ("a{4300000000}", true),
        ("a{3999999999,4000000000}", true),
        ("a{4294967295,4294967296}", false),
        ("a{5000000000,6000000000}", true),
        ("a{99999999999}", true),
        ("a{1,99999999999999999999999}", true),
    ] {
        assert_eq!(bounds.hold(text), decided, "{text}");
    }
}

#[test]
fn what_has_begun_can_be_completed_for_certain() {
    let bounds = Bounds::new();
    for text in [
        r"^[a-zA-Z0-9_]{3,16}$",
        r"^/api/(.*)$",
        r"((((((((a))))))))",
        r"[\0-\x1F\x7f-\u00ff\u{1F600}]\p{Script=Greek}\P{Lu}",
        r"[--/][+--][---][\]-a][ -~][^\]\[-`][\d-]",
        "[\u{e0}-\u{ff}\u{430}-\u{450}\u{4e00}-\u{9fa5}]{100,255}",
        r"(?=a)(?<!b)(?:c|\uD83D\uDE00)\.\/\cA\x41",
        r"[\uD83D\uDE00-]{1024}?",
        r"[\t\n -\]][\.-\/]",
        r"(?:\0)\0a\0{2}\0",
        r"a(?<name>b)c",
    ] {
        for (end, _) in text.char_indices() {
            let text = &text[..end];
            assert!(Bounds::state_is_live(&bounds.least, text), "{text}");
            assert!(Bounds::state_is_live(&bounds.most, text), "{text}");
        }
        assert!(bounds.hold(text) && check(text), "{text}");
    }
    // Known at the end only.
    for text in [r"(a)\1b\12*", r"\k<a>b*", r"((a)(b))\3\n"] {
        for (end, _) in text.char_indices() {
            let text = &text[..end];
            assert!(Bounds::state_is_live(&bounds.least, text), "{text}");
        }
        bounds.hold(text);
    }
}

#[test]
fn what_cannot_be_completed_is_refused_at_once() {
    let bounds = Bounds::new();
    for text in [
        "[z-a",
        "[a-\\d",
        "[\\d-a",
        "[\\]-\\[",
        "[a--",
        "[--+",
        "[\u{e9}-a",
        "[\u{9fa5}-\u{4e00}",
        "[\\u4e00-\\u00e",
        "[\\x41-\\t",
        "a{2,1}",
        "a{20,3}",
        "a{300,200}",
        "a{99999999999",
        "\\p{Foo",
        "\\p{Script=Gx",
        "[\\-z-\\.",
    ] {
        assert!(!Bounds::state_is_live(&bounds.most, text), "{text}");
    }
}
