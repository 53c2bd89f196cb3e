//! `json-pointer` (RFC 6901), `relative-json-pointer` and `uuid` (RFC 4122).

use maskwright_grammar_core::regular::Regex;

use super::pattern;

const POINTER: &str = "(?:/(?:[^/~]|~[01])*)*";

pub(super) fn json() -> Regex {
    pattern(POINTER)
}

pub(super) fn relative() -> Regex {
    pattern(&format!("(?:0|[1-9][0-9]*)(?:\\#|{POINTER})"))
}

pub(super) fn uuid() -> Regex {
    let hex = "[0-9A-Fa-f]";
    pattern(&format!(
        "{hex}{{8}}-{hex}{{4}}-{hex}{{4}}-{hex}{{4}}-{hex}{{12}}"
    ))
}
