//! The dialect of JSON Schema: what each construct matches, and what is
//! refused.

use super::super::*;
use super::{check, ecma};

#[test]
fn escapes_have_the_sets_of_the_standard() {
    check(&ecma(r"^\d$"), &["0", "9"], &["a", "\u{7d0}", "\u{660}"]);
    check(&ecma(r"^\D$"), &["a", "\u{660}"], &["0"]);
    check(&ecma(r"^\w$"), &["a", "_", "Z", "0"], &["é", "-"]);
    check(&ecma(r"^\W$"), &["é", "-"], &["_"]);
    let spaces =
        ["\u{9}", "\u{b}", "\u{a0}", "\u{feff}", "\u{2029}", "\u{2003}"];
    check(&ecma(r"^\s$"), &spaces, &["\u{180e}", "\u{1}", "x"]);
    check(&ecma(r"^\S$"), &["\u{180e}", "x"], &spaces);
    check(&ecma(r"^\cC$"), &["\u{3}"], &[r"\cC"]);
    check(&ecma(r"^\x41\u0042\u{43}$"), &["ABC"], &["abc"]);
    check(&ecma(r"^\t\n\v\f\r\0$"), &["\t\n\u{b}\u{c}\r\0"], &[""]);
    check(&ecma(r"^[\b]$"), &["\u{8}"], &["b"]);
    check(&ecma(r#"^\-\_\.\"\/\@$"#), &["-_.\"/@"], &["-_x\"/@"]);
}

#[test]
fn code_points_are_whole() {
    check(&ecma("^🐲*$"), &["", "🐲", "🐲🐲"], &["🐉"]);
    check(&ecma(r"^\ud83d\udc32$"), &["🐲"], &["🐉"]);
    check(&ecma("^.$"), &["🐲"], &["\n", "\r", "\u{2028}", "\u{2029}"]);
    check(&ecma("^[^]$"), &["\n", "🐲"], &["", "ab"]);
    check(&ecma("[]|a"), &["a"], &["", "b"]);
    // A lone surrogate is no text.
    check(&ecma(r"^(?:\ud83d|a)$"), &["a"], &["🐲"]);
}

#[test]
fn properties_are_those_of_unicode() {
    check(&ecma(r"^\p{Lu}\P{Lu}$"), &["Éa", "A1"], &["AB", "aa"]);
    check(&ecma(r"^\p{Letter}$"), &["é", "中"], &["1"]);
    check(&ecma(r"^\p{Script=Greek}$"), &["α"], &["a"]);
    check(&ecma(r"^\p{scx=Hira}$"), &["あ"], &["a"]);
    check(&ecma(r"^\p{gc=Nd}\p{ASCII}$"), &["٣a"], &["aa"]);
    check(&ecma(r"^[\p{Nd}\p{White_Space}-]+$"), &["٣ -"], &["a"]);
    check(&ecma(r"^\p{Emoji_Presentation}$"), &["🐲"], &["1"]);
    check(&ecma(r"^\p{Any}\P{Any}?$"), &["x"], &["", "xx"]);
}

#[test]
fn groups_and_quantifiers() {
    check(&ecma("^(?<year>a)(?:b)?(c)*?$"), &["a", "abcc"], &["b", "abb"]);
    check(&ecma("^a{2,3}?b{2}c{1,}$"), &["aabbc", "aaabbcc"], &["abbc"]);
    check(&ecma(r"^[\w-.]+$"), &["a-.b"], &["a/b"]);
    check(&ecma("^[a-]+$"), &["a-"], &["b"]);
    check(&ecma("^[-a]+$"), &["-a"], &["b"]);
    check(&ecma(r"\bfoo\b"), &["a foo b", "foo"], &["food", "afoo"]);
    check(&ecma(r"^a\Bb$"), &["ab"], &["a b"]);
    check(&ecma("(?<!a)b(?!c)"), &["b", "xb", "abb"], &["ab", "bc", "abc"]);
    check(&ecma("a|^b$|"), &["", "x"], &[]);
    check(&ecma("^((?!ab).)*$"), &["", "a", "ba"], &["ab", "aab"]);
}

#[test]
fn what_is_refused_says_where_and_why() {
    use PatternErrorKind::{
        Atomic, Backreference, Limit, Property, Syntax, Unsupported,
    };
    let cases = [
        (r"(a)\1", 3, Backreference, "`\\1`"),
        (r"(?<x>a)\k<x>", 7, Backreference, "`\\k<x>`"),
        ("a(?>b)", 1, Atomic, "atomic"),
        ("a++", 2, Atomic, "possessive"),
        ("x(?i)a", 1, Unsupported, "flags"),
        ("(?P<a>b)", 0, Unsupported, "(?<name>"),
        ("a**", 2, Syntax, "follows another"),
        ("*a", 0, Syntax, "nothing to repeat"),
        ("^*", 1, Syntax, "follows an assertion"),
        ("(?=a)*", 5, Syntax, "follows an assertion"),
        ("é(", 2, Syntax, "not closed"),
        ("é)", 2, Syntax, "closes no group"),
        ("[a", 0, Syntax, "not closed"),
        ("[b-a]", 1, Syntax, "out of order"),
        ("a{2,1}", 1, Syntax, "out of order"),
        ("a{,3}", 1, Syntax, "`{0,n}`"),
        ("{,3}", 0, Syntax, "`{0,n}`"),
        ("{3}", 0, Syntax, "nothing to repeat"),
        ("a|{3,}", 2, Syntax, "nothing to repeat"),
        ("a{2}{3}", 4, Syntax, "follows another"),
        ("^{2}", 1, Syntax, "follows an assertion"),
        (r"\q", 0, Syntax, "`\\q`"),
        (r"a\Z", 1, Syntax, "use `$`"),
        (r"a\", 1, Syntax, "backslash"),
        (r"\u12", 0, Syntax, "four hexadecimal"),
        (r"\u{110000}", 0, Syntax, "10FFFF"),
        (r"\01", 0, Syntax, "octal"),
        (r"\p{Greek}", 0, Property, "Script=Greek"),
        (r"\p{lu}", 0, Property, "`lu`"),
        (r"\pL", 0, Property, "braces"),
        ("(?<a>x)(?<a>y)", 7, Syntax, "used twice"),
        ("a{99999999999}", 1, Limit, "4294967294"),
    ];
    for (pattern, offset, kind, needle) in cases {
        let Err(error) = Regex::ecma(pattern) else {
            panic!("{pattern} was accepted");
        };
        assert_eq!(error.offset(), offset, "{pattern}: {error}");
        assert_eq!(error.kind(), kind, "{pattern}: {error}");
        assert!(error.message().contains(needle), "{pattern}: {error}");
    }
}

#[test]
fn lone_brackets_are_characters_as_in_annex_b() {
    check(&ecma("^]a{2}}+$"), &["]aa}", "]aa}}"], &["aa}", "]aa"]);
    check(&ecma("^{model}$"), &["{model}"], &["model"]);
    check(&ecma("^a{$"), &["a{"], &["a"]);
    check(&ecma("^a+{b}{2}$"), &["a{b}}", "aa{b}}"], &["a{b}", "a{bb}"]);
    check(&ecma("^x{a,3}{,}{2,b}$"), &["x{a,3}{,}{2,b}"], &["x", "xxx"]);
    check(&ecma("^a{2}{$"), &["aa{"], &["aa"]);
    check(&ecma("^({|}|])*$"), &["", "{]}"], &["a"]);
    check(&ecma("^{{1,2}$"), &["{", "{{"], &["", "{{{"]);
    check(&ecma("^[^]]$"), &["a]", "\n]"], &["a", "a]]"]);
}

/// Patterns by the letter of ECMA-262 with the flag `u`.
const STRICT: &[&str] = &[
    "",
    "abc",
    "^[a-zA-Z0-9_]{3,16}$",
    r"^\d{4}-\d{2}-\d{2}$",
    r"([abc])+\s+$",
    "(?<name>x)",
    r"(?<n>a)\k<n>",
    "(?<=a+)b",
    "(?<!a)b(?=c)(?!d)",
    "[]",
    "[^]",
    r"\cA",
    r"(a)(b)\2\1",
    r"((((a))))*?",
    r"[\w.-]+@[\w.-]+\.[a-z]{2,}",
    r"^\/api\/(.*)$",
    r"[а-яА-Я]",
    r"[\u4e00-\u9fa5]",
    r"[\x00-\x1f]",
    r"[+--]|[--/]|[a-]|[-a]|[--]|[-]",
    r"\p{L}\P{Lu}\p{Script=Greek}",
    r"\u{1F600}\0\x41\u00e9",
    "a{0,0}b{2,10}c{99,100}?",
    "(?<year>\\d)(?<month>\\d)(?<day>\\d)",
    r"[\[\]\\^$.\-]",
    r"[\n-~]",
    "||",
    r"\1(a)",
    r"\k<n>(?<n>a)",
    r"a\/b[\-]\]",
    "()",
];

/// Texts that are none.
const NOT_STRICT: &[&str] = &[
    "*",
    "+a",
    "?",
    "\\",
    "a\\",
    "^(abc]",
    "(",
    "a)",
    "[a",
    "[\\]",
    "(a[)]",
    r"\a",
    "((a)",
    "(a))",
    "(?P<name>x)",
    "(?P<n>a)(?P=n)",
    "(?#comment)a",
    "(?i)abc",
    "a**",
    "a{2}{3}",
    "^*",
    r"\b+",
    "(?=a)*",
    "(?<=a)?",
    "a{2,1}",
    "a{10,9}",
    "{",
    "a{",
    "a{,2}",
    "]",
    "}",
    "[z-a]",
    r"[\d-z]",
    r"[a-\d]",
    "[a--]",
    r"[\x41-\x40]",
    r"\1",
    r"(a)\2",
    r"\k<n>",
    r"[(?<n>]\k<n>",
    r"\((?:a)\1",
    "(?<n>a)(?<n>b)",
    "(?<1>a)",
    r"\p{Foo}",
    r"\00",
    r"[\00]",
    r"\x4",
    r"\u{110000}",
    r"\-",
    r"\c1",
];

#[test]
fn syntax_is_checked_by_the_letter() {
    let limits = Limits::new();
    for text in STRICT {
        let checked = Regex::check_ecma(text, &limits);
        assert!(checked.is_ok(), "{text}: {checked:?}");
    }
    for text in NOT_STRICT {
        assert!(Regex::check_ecma(text, &limits).is_err(), "{text}");
    }
}
