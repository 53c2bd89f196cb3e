//! `regex`: patterns by ECMA-262 with the flag `u`.
//!
//! Nesting is not regular, so there are two languages around the format: of
//! patterns whose groups are at most [`MAX_DEPTH`] deep and that have nothing
//! which depends on something else (ends of ranges, names, references), and
//! of texts of well-formed parts whose groups match to that depth.

use maskwright_grammar_core::regular::{Limits, Regex};

use super::pattern;

/// How deep groups are told to match.
const MAX_DEPTH: usize = 3;
/// The characters that mean something.
const SYNTAX: &str = r"\^$\\.*+?()\[\]{}|";
const HEX: &str = "[0-9A-Fa-f]";

/// Texts that are patterns for certain.
pub(super) fn least() -> Regex {
    let character = character(&format!(r"0{{0,2}}{HEX}{{1,5}}"));
    let class = format!(r"\[\^?(?:[^\\\]\-]|\\(?:{character}|[b\-]))*\]");
    Parts {
        atom: pattern(&format!(r"[^{SYNTAX}]|\.|\\(?:{character})|{class}")),
        quantifier: pattern(r"(?:(?:[*+?]|\{[0-9]{1,9},?\})\??)?"),
        open: pattern(r"\((?:\?:)?"),
    }
    .nested(false)
}

/// Texts of the parts of patterns.
pub(super) fn most() -> Regex {
    let name = r"[\p{Alphabetic}_$][\p{Alphabetic}\p{N}_$]*";
    let property = r"[pP]\{[0-9A-Za-z_]+(?:=[0-9A-Za-z_]+)?\}";
    let points = format!(r"0*(?:10{HEX}{{4}}|{HEX}{{1,5}})");
    let character = format!("{}|{property}", character(&points));
    let class = format!(r"\[\^?(?:[^\\\]]|\\(?:{character}|[0b\-]))*\]");
    Parts {
        atom: pattern(&format!(
            r"[^{SYNTAX}]|\.|\\(?:{character}|0|[1-9][0-9]*|k<{name}>)|{class}"
        )),
        quantifier: pattern(r"(?:(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??)?"),
        open: pattern(&format!(r"\((?:\?(?::|<{name}>))?")),
    }
    .nested(true)
}

/// What follows the backslash of an escape of one character or of a set;
/// `points` are the numbers that may stand in braces.
fn character(points: &str) -> String {
    let fixed = format!("c[A-Za-z]|x{HEX}{{2}}|u{HEX}{{4}}");
    format!(r"[{SYNTAX}/dDsSwWtnvfr]|{fixed}|u\{{{points}\}}")
}

/// What a pattern is made of.
struct Parts {
    /// What can be repeated, but for groups.
    atom: Regex,
    quantifier: Regex,
    /// The beginnings of groups that can be repeated.
    open: Regex,
}

impl Parts {
    /// Patterns whose groups match to a depth of [`MAX_DEPTH`]. Deeper ones
    /// need not match if there is `more`, and else there are none.
    fn nested(self, more: bool) -> Regex {
        let Parts { atom, quantifier, open } = self;
        let look = pattern(r"\(\?<?[=!]");
        let close = pattern(r"\)");
        let closed = Regex::concat(&[close.clone(), quantifier.clone()]);
        let flat = Regex::alternate(&[
            Regex::concat(&[atom, quantifier]),
            pattern(r"[\^$|]|\\[bB]"),
        ]);
        let mut body = if more {
            let any =
                [flat.clone(), open.clone(), look.clone(), closed.clone()];
            Regex::alternate(&any).repeat(0, None)
        } else {
            flat.clone().repeat(0, None)
        };
        for _ in 0..MAX_DEPTH {
            let group =
                Regex::concat(&[open.clone(), body.clone(), closed.clone()]);
            let around = Regex::concat(&[look.clone(), body, close.clone()]);
            let term = Regex::alternate(&[flat.clone(), group, around]);
            body = term.repeat(0, None);
        }
        body
    }
}

/// Whether a text is a pattern.
pub(super) fn check(text: &str) -> bool {
    Regex::check_ecma(text, &Limits::new()).is_ok()
}
