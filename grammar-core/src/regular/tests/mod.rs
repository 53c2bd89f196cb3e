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

#[test]
fn what_is_shared_means_what_is_copied() {
    let nested = |[word, open]: [Regex; 2], depth| {
        let close = Regex::literal(")");
        let mut body = word.clone();
        for _ in 0..depth {
            let group = [open.clone(), body.clone(), close.clone()];
            let other = [Regex::literal("<"), body, Regex::literal(">")];
            let both = [Regex::concat(&group), Regex::concat(&other)];
            body = Regex::alternate(&both).or(&word).repeat(0, None);
        }
        body
    };
    let parts = ["ab|c", r"\((?:\?:)?"];
    let parts = parts.map(|it| Regex::rust(it).expect("it is valid"));
    let copied = nested(parts.clone(), 4);
    let shared = Regex::sharing(&parts, |parts| nested(parts, 4));
    assert!(shared.ops().len() * 3 < copied.ops().len());
    // Within others, and shared once more.
    let twice = Regex::sharing(&[shared], |[it]| it.or(&it));
    let differ = Regex::concat(&[Regex::literal("x"), copied])
        .and(&Regex::concat(&[Regex::literal("x"), twice.clone()]).not());
    let language = Language::new(&differ, Limits::new()).expect("small");
    assert_eq!(language.is_dead(language.start()), Answer::Yes);
    let language = Language::new(&twice, Limits::new()).expect("small");
    check(&language, &["", "(<(ab)>c)", "(?:c)"], &["(((((c)))))", "(ab"]);
    let deep = Regex::sharing(&parts, |parts| nested(parts, 10));
    let language = Language::new(&deep, Limits::new()).expect("small");
    let text = format!("{}c{}", "<(".repeat(5), ")>".repeat(5));
    check(&language, &[&text], &[&format!("<{text}>")]);
}
