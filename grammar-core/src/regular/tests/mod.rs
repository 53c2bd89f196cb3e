//! Tests of the whole room.

mod differential;
mod ecma;
mod hostile;
mod laws;
mod look;

use super::*;

fn rust(pattern: &str) -> Language {
    let regex = Regex::rust(pattern).expect("the pattern is valid");
    Language::new(&regex, Limits::new()).expect("the pattern is small")
}

fn ecma(pattern: &str) -> Language {
    let regex = Regex::ecma(pattern).expect("the pattern is valid");
    Language::new(&regex, Limits::new()).expect("the pattern is small")
}

fn check(language: &Language, accept: &[&str], reject: &[&str]) {
    for text in accept {
        assert_eq!(language.is_match(text), Ok(true), "{text:?}");
    }
    for text in reject {
        assert_eq!(language.is_match(text), Ok(false), "{text:?}");
    }
}

#[test]
fn whole_match() {
    check(&rust("a|bc*"), &["a", "b", "bcc"], &["", "ab", "ac", "xa"]);
    check(&rust("(?i)straße"), &["straße", "STRAẞE"], &["strasse"]);
    check(
        &rust(r"(?=.*\d)(?=.*[a-z]).{4,}"),
        &["12a4", "a---1"],
        &["1234", "a1", "abcd"],
    );
    check(
        &rust(r"(?<=^)a(?<!b)b|\bfoo\b.*"),
        &["ab", "foo", "foo bar"],
        &["a", "foob"],
    );
}

#[test]
fn search() {
    check(&ecma("^(?!foo).*"), &["", "fo", "xfoo"], &["foo", "foobar"]);
    check(&ecma("b+"), &["b", "abc", "ab"], &["", "a"]);
    check(&ecma("^$|^a"), &["", "a", "ab"], &["b", "ba"]);
    check(&ecma(r"(?<=a(?=b))b$"), &["ab", "xab"], &["b", "abb", "bb"]);
}
