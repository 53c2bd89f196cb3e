//! `idn-hostname`: names of hosts in Unicode (RFC 5890 to 5893).
//!
//! The code points of RFC 5892, its contextual rules and the Bidi rule of
//! RFC 5893 are regular and are here. Normalization, Punycode and its length
//! are not; `check` in [`super::host`] looks into those.

use maskwright_grammar_core::regular::Regex;

use super::pattern;

/// What separates labels.
const DOT: &str = ".\\u{3002}\\u{FF0E}\\u{FF61}";

/// The greatest length of a label with other than ASCII characters, whose
/// Punycode begins with `xn--` and takes three digits for the first of them.
const MAX_UNICODE_LABEL: u32 = 57;

/// The greatest length of a name that is short enough for certain, as the
/// Punycode of its labels is then: no code point takes more than eight digits.
/// Longer ones are not counted here, which would take too many states.
const MAX_SURE_NAME: u32 = 7;

/// Names of labels that need no A-label to be understood.
pub(super) fn decoded() -> Regex {
    hostname(&labels(&format!("{{1,{MAX_UNICODE_LABEL}}}"), false))
}

/// Names that are valid for certain: short ones without marks, which are in
/// normalization form C.
pub(super) fn least() -> Regex {
    let marks = pattern("(?s:.*\\p{M}.*)");
    let short = Regex::length(0, Some(MAX_SURE_NAME));
    let names = hostname(&labels("+", false));
    Regex::intersect(&[names, marks.not(), short])
}

/// Names whose labels may be A-labels. Those that are not ASCII may be of any
/// length here: to count while so much else is told apart takes too many
/// states.
pub(super) fn most() -> Regex {
    hostname(&labels("+", true))
}

/// The rules stand beside each other, so that each is an expression about
/// the whole name.
fn hostname(labels: &Regex) -> Regex {
    let text = "(?s:.*)";
    let before = format!("(?s:.*[{DOT}])?");
    let after = format!("(?:[{DOT}]{text})?");
    let kana = "\\p{Hiragana}\\p{Katakana}\\p{Han}";
    let lonely_dot = pattern(&format!(
        "{before}[^{DOT}{kana}]*\\u{{30FB}}[^{DOT}{kana}]*{after}"
    ));
    let (arabic, extended) = ("[\\u{660}-\\u{669}]", "[\\u{6F0}-\\u{6F9}]");
    let mixed_digits = pattern(&format!(
        "{text}(?:{arabic}[^{DOT}]*{extended}|\
         {extended}[^{DOT}]*{arabic}){text}"
    ));
    Regex::intersect(&[
        labels.clone(),
        lonely_dot.not(),
        mixed_digits.not(),
        bidi(),
    ])
}

/// Labels of characters that may stand where they stand, so many (a
/// quantifier) in labels that are not ASCII.
fn labels(count: &str, with_a_labels: bool) -> Regex {
    let valid = format!(
        "[[[\\p{{Ll}}\\p{{Lo}}\\p{{Nd}}\\p{{Lm}}\\p{{Mn}}\\p{{Mc}}]--[{}]]\
         \\-\\u{{6FD}}\\u{{6FE}}\\u{{F0B}}\\u{{13A0}}-\\u{{13F5}}\\u{{3007}}\
         \\u{{30FB}}\\u{{660}}-\\u{{669}}\\u{{6F0}}-\\u{{6F9}}]",
        class(UNSTABLE),
    );
    let transparent = "[\\p{Mn}\\p{Me}]*";
    let joiner = format!(
        "(?<=[{virama}])[\\u{{200C}}\\u{{200D}}]|\
         (?<=[{left}]{transparent})\\u{{200C}}(?={transparent}[{right}])",
        virama = class(VIRAMA),
        left = class(JOINS_LEFT),
        right = class(JOINS_RIGHT),
    );
    let in_context = "(?<=l)\\u{B7}(?=l)|\\u{375}(?=\\p{Greek})|\
        (?<=\\p{Hebrew})[\\u{5F3}\\u{5F4}]";
    let character = format!("(?:{valid}|{in_context}|{joiner})");
    let label = format!(
        "(?!-|\\p{{M}}|..--)\
         (?:[0-9A-Za-z-]{{1,63}}|{character}{count})\
         (?<!-)"
    );
    let label = if with_a_labels {
        format!("(?:{label}|[xX][nN]--[0-9A-Za-z-]{{1,59}}(?<!-))")
    } else {
        label
    };
    pattern(&format!("(?:{label})(?:[{DOT}](?:{label}))*"))
}

/// The Bidi rule: a name with letters that are written from right to left
/// has only labels of one direction each.
fn bidi() -> Regex {
    let arabic = "\\u{660}-\\u{669}\\u{10D30}-\\u{10D39}";
    let digit = "0-9\\u{6F0}-\\u{6F9}";
    let mark = "\\p{Mn}\\p{Me}";
    let neutral = "\\-\\u{B7}\\u{2B9}\\u{2BA}\\u{2C6}-\\u{2CF}\\u{2EC}\
        \\u{375}\\u{200C}\\u{200D}\\u{2E2F}\\u{30FB}\\u{A67F}\
        \\u{A717}-\\u{A71F}\\u{A788}";
    let right = format!(
        "[\\u{{5BE}}-\\u{{8FF}}\\u{{FB1D}}-\\u{{FDFF}}\\u{{FE70}}-\\u{{FEFC}}\
         \\u{{10800}}-\\u{{10FFF}}\\u{{1E800}}-\\u{{1EFFF}}\
         --[{mark}{arabic}{digit}]]"
    );
    let left = format!("[^{right}{arabic}{digit}{mark}{neutral}{DOT}]");
    let not_right = format!("[^{right}{arabic}{DOT}]");
    let label = format!(
        "(?:{left}(?:{not_right}*[{left}{digit}])?|\
         {right}(?:[{right}{digit}{mark}{neutral}]*[{right}{digit}])?|\
         {right}(?:[{right}{arabic}{mark}{neutral}]*[{right}{arabic}])?)\
         [{mark}]*"
    );
    let one_direction = pattern(&format!("{label}(?:[{DOT}]{label})*"));
    let some_right = pattern(&format!("(?s:.*)[{right}{arabic}](?s:.*)"));
    one_direction.or(&some_right.not())
}

/// The inside of a class from code points and ranges in hexadecimal.
fn class(ranges: &str) -> String {
    let range = |range: &str| match range.split_once('-') {
        Some((lo, hi)) => format!("\\u{{{lo}}}-\\u{{{hi}}}"),
        None => format!("\\u{{{range}}}"),
    };
    ranges.split_whitespace().map(range).collect()
}

/// Letters, marks and digits that RFC 5892 does not allow: unstable under
/// NFKC and case folding, ignorable, old Hangul, or by exception.
const UNSTABLE: &str = "\
    aa-ba 133 140 149 17f 1c6-1cc 1f3 2b0-2b8 2e0-2e4 340-341 343-345 34f \
    374 37a 3d0-3d6 3f0-3f2 3f5 587 640 660-669 675-678 6f0-6f9 7fa \
    958-95f 9dc-9df a33 a36 a59-a5b a5e b5c-b5d e33 eb3 edc-edd f43 f4d \
    f52 f57 f5c f69 f73 f75-f79 f81 f93 f9d fa2 fa7 fac fb9 10fc 1100-11ff \
    13f8-13fd 17b4-17b5 180b-180f 1c80-1c88 1d2c-1d2e 1d30-1d3a 1d3c-1d4d \
    1d4f-1d6a 1d78 1d9b-1dbf 1e9a-1e9b 1f71 1f73 1f75 1f77 1f79 1f7b \
    1f7d-1fa7 1fb2-1fb4 1fb7-1fc4 1fc7 1fd3 1fe3 1ff2-1ff4 1ff7-2149 \
    2c7c-2c7d 2d6f 302e-303b 309f 30ff 3131-318e a69c-a69d a770 a7f2-a7f4 \
    a7f8-a7f9 a960-a97c ab5c-ab5f ab69-abbf d7b0-d7ff f900-fa0d fa10 fa12 \
    fa15-fa1e fa20 fa22 fa25-fa26 fa2a-fb1d fb1f-fe0f fe70-fe72 fe74-ffdc \
    10781-107ba 1d165-1d7ff 1ee00-1fbf9 2f800-2fa1d e0100-e01ef";

/// Characters of combining class Virama.
const VIRAMA: &str = "\
    94d 9cd a4d acd b4d bcd c4d ccd d3b-d3c d4d dca e3a eba f84 1039-103a \
    1714-1715 1734 17d2 1a60 1b44 1baa-1bab 1bf2-1bf3 2d7f a806 a82c a8c4 \
    a953 a9c0 aaf6 abed 10a3f 11046 11070 1107f 110b9 11133-11134 111c0 \
    11235 112ea 1134d 11442 114c2 115bf 1163f 116b6 1172b 11839 \
    1193d-1193e 119e0 11a34 11a47 11a99 11c3f 11d44-11d45 11d97";

/// Characters of joining type L or D.
const JOINS_LEFT: &str = "\
    620 626 628 62a-62e 633-647 649-64a 66e-66f 679-687 69a-6bf 6c1-6c2 \
    6cc 6ce 6d0-6d1 6fa-6fc 6ff 712-714 71a-71d 71f-727 729 72b 72d-72e \
    74e-758 75c-76a 76d-770 772 775-777 77a-77f 7ca-7ea 841-845 848 \
    84a-853 855 860 862-865 868 886 889-88d 88f 8a0-8a9 8af-8b0 8b3-8b8 \
    8ba-8c8 1820-1878 1887-18a8 18aa a840-a872 10ac0-10ac4 10acd \
    10ad3-10adc 10ade-10ae0 10b80 10b82 10b86-10b88 10b8a-10b8b 10b8d \
    10b90 10d00-10d21 10d23 10ec3-10ec4 10ec6-10ec7 10f30-10f32 \
    10f34-10f44 10f70-10f73 10f76-10f81 10fb0 10fb2-10fb3 10fb8 \
    10fbb-10fbc 10fbe-10fbf 10fc1 10fc4 1e922-1e943";

/// Characters of joining type R or D.
const JOINS_RIGHT: &str = "\
    620 622-64a 66e-66f 671-673 679-6d5 6ee-6fc 6ff-710 712-72f 74d-77f \
    7ca-7ea 840-858 860 862-865 867-882 886 889-88f 8a0-8ac 8ae-8c8 \
    1820-1878 1887-18a8 18aa a840-a871 10ac0-10ac5 10ac7-10aca 10ace-10ad6 \
    10ad8-10ae1 10ae4 10b80-10b91 10d01-10d23 10ec2-10ec4 10ec6-10ec7 \
    10f30-10f44 10f70-10f81 10fb0 10fb2-10fb6 10fb8-10fbf 10fc1-10fc4 \
    1e922-1e943";
