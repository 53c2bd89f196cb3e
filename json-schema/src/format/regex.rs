//! `regex`: patterns by ECMA-262 with the flag `u`.
//!
//! Nesting is not regular, so there are two languages around the format: of
//! texts without anything special, which are patterns for certain, and of
//! texts of well-formed parts whose groups match to a depth of [`MAX_DEPTH`].

use maskwright_grammar_core::regular::{Limits, Regex};

use super::pattern;

/// How deep groups are told to match by the greater language.
const MAX_DEPTH: usize = 3;
/// The characters that mean something.
const SYNTAX: &str = r"\^$\\.*+?()\[\]{}|";

/// Texts that are patterns for certain.
pub(super) fn least() -> Regex {
    pattern(&format!("[^{SYNTAX}]*"))
}

/// Texts of the parts of patterns.
pub(super) fn most() -> Regex {
    let name = r"[\p{Alphabetic}_$][\p{Alphabetic}\p{N}_$]*";
    let hex = "[0-9A-Fa-f]";
    let property = r"[pP]\{[0-9A-Za-z_]+(?:=[0-9A-Za-z_]+)?\}";
    let point = format!(r"u\{{0*(?:10{hex}{{4}}|{hex}{{1,5}})\}}");
    let character = format!(
        r"[{SYNTAX}/dDsSwWtnvfr]|c[A-Za-z]|x{hex}{{2}}|u{hex}{{4}}|{point}"
    );
    let character = format!("{character}|{property}");
    let class = format!(r"\[\^?(?:[^\\\]]|\\(?:{character}|[0b\-]))*\]");
    let atom = pattern(&format!(
        r"[^{SYNTAX}]|\.|\\(?:{character}|0|[1-9][0-9]*|k<{name}>)|{class}"
    ));
    let quantifier = pattern(r"(?:(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??)?");
    let open = pattern(&format!(r"\((?:\?(?::|<{name}>))?"));
    let look = pattern(r"\(\?<?[=!]");
    let close = pattern(r"\)");
    let closed = Regex::concat(&[close.clone(), quantifier.clone()]);
    let flat = Regex::alternate(&[
        Regex::concat(&[atom, quantifier]),
        pattern(r"[\^$|]|\\[bB]"),
    ]);
    let any = [flat.clone(), open.clone(), look.clone(), closed.clone()];
    let mut body = Regex::alternate(&any).repeat(0, None);
    for _ in 0..MAX_DEPTH {
        let group =
            Regex::concat(&[open.clone(), body.clone(), closed.clone()]);
        let around = Regex::concat(&[look.clone(), body, close.clone()]);
        let term = Regex::alternate(&[flat.clone(), group, around]);
        body = term.repeat(0, None);
    }
    body
}

/// Whether a text is a pattern.
pub(super) fn check(text: &str) -> bool {
    Regex::check_ecma(text, &Limits::new()).is_ok()
}
