//! `regex`: patterns by ECMA-262 with the flag `u`.
//!
//! Nesting is not regular, so there are two languages around the format: of
//! patterns whose groups are at most [`MAX_DEPTH`] deep and that have little
//! which depends on something else (one name, references to what is added for
//! them, no ends of ranges whose order is not known), and of texts of
//! well-formed parts whose groups match to that depth.
//!
//! What is in order is known of most counts ([`count`](mod@count)) and ranges
//! ([`class`](mod@class)), so that few patterns lie between the two.

mod class;
mod count;

#[cfg(test)]
mod tests;

use maskwright_grammar_core::regular::{Limits, Regex};

use super::{Bound, pattern};

/// How deep groups are told to match.
const MAX_DEPTH: usize = 8;
/// The characters that mean something.
const SYNTAX: &str = r"\^$\\.*+?()\[\]{}|";
const HEX: &str = "[0-9A-Fa-f]";

/// How many groups numbers refer to in what is certain.
const N_GROUPS: u32 = 99;
/// A name of a group.
const NAME: &str = r"[\p{Alphabetic}_$][\p{Alphabetic}\p{N}_$]*";

/// Texts that are patterns for certain.
pub(super) fn least() -> Regex {
    Parts::new(Bound::Least, r"\((?:\?:)?").least()
}

/// Texts of the parts of patterns.
pub(super) fn most() -> Regex {
    let open = format!(r"\((?:\?(?::|<{NAME}>))?");
    let mut parts = Parts::new(Bound::Most, &open);
    let reference = format!(r"\\(?:0|[1-9][0-9]*|k<{NAME}>)");
    parts.atom = parts.atom.or(&pattern(&reference));
    parts.most()
}

/// One character that is no digit, or one of a set.
fn atom(bound: Bound) -> Regex {
    let properties = Regex::ecma_properties();
    let property = Regex::concat(&[
        pattern(r"[pP]\{"),
        Regex::literals(properties),
        pattern(r"\}"),
    ]);
    let fixed = format!("c[A-Za-z]|x{HEX}{{2}}|u{HEX}{{4}}");
    let points = format!(r"0*(?:10{HEX}{{4}}|{HEX}{{1,5}})");
    let escaped = format!(r"[{SYNTAX}/dDsSwWtnvfr]|{fixed}|u\{{{points}\}}");
    Regex::alternate(&[
        pattern(&format!(r"[^{SYNTAX}0-9]|\.|\\(?:{escaped})")),
        Regex::concat(&[Regex::literal("\\"), property.clone()]),
        class::class(bound, &property),
    ])
}

/// What a pattern is made of.
struct Parts {
    /// What can be repeated, but for digits and groups.
    atom: Regex,
    quantifier: Regex,
    /// The beginnings of groups that can be repeated.
    open: Regex,
}

impl Parts {
    fn new(bound: Bound, open: &str) -> Parts {
        let count = count::count(bound);
        Parts {
            atom: atom(bound).compact(),
            quantifier: pattern(&format!(r"(?:[*+?]|{count})\??")).compact(),
            open: pattern(open),
        }
    }

    fn shared(&self, build: impl FnOnce(Terms) -> Regex) -> Regex {
        let parts = [&self.atom, &self.quantifier, &self.open];
        Regex::sharing(&parts.map(Clone::clone), |[atom, once, open]| {
            build(Terms::new(&atom, once, open))
        })
    }

    /// Patterns whose groups match to a depth of [`MAX_DEPTH`].
    fn least(&self) -> Regex {
        self.shared(|terms| {
            let mut inner = terms.clone();
            for _ in 1..MAX_DEPTH {
                inner = terms.around(&inner.pattern());
            }
            let within = inner.pattern();
            let outer = terms.around(&within);
            let pattern = outer.pattern();
            let more = outer.referring(&pattern);
            let more = more.or(&terms.naming(within, &pattern));
            Regex::concat(&[pattern, more.repeat(0, Some(1))])
        })
    }

    /// Patterns whose groups match to that depth, but deeper ones need not.
    fn most(&self) -> Regex {
        self.shared(|terms| {
            let Terms { any, open, look, closed, .. } = terms.clone();
            let all = Regex::alternate(&[any, open, look, closed]);
            let mut body = all.repeat(0, None);
            for _ in 0..MAX_DEPTH {
                body = terms.around(&body).any.repeat(0, None).compact();
            }
            body
        })
    }
}

/// The terms of patterns to some depth, and what is made of them.
#[derive(Clone)]
struct Terms {
    any: Regex,
    /// Those that do not begin with a digit.
    no_digit: Regex,
    once: Regex,
    open: Regex,
    look: Regex,
    close: Regex,
    /// The end of a group that can be repeated.
    closed: Regex,
}

impl Terms {
    /// Without groups; `once` is one quantifier.
    fn new(atom: &Regex, once: Regex, open: Regex) -> Terms {
        let maybe = once.repeat(0, Some(1));
        let then =
            |first: &Regex| Regex::concat(&[first.clone(), maybe.clone()]);
        let no_digit = then(atom).or(&pattern(r"[\^$|]|\\[bB]"));
        let close = pattern(r"\)");
        Terms {
            any: no_digit.or(&then(&pattern("[0-9]"))),
            no_digit,
            open,
            look: pattern(r"\(\?<?[=!]"),
            closed: then(&close),
            close,
            once,
        }
    }

    /// These, and groups around `body`.
    fn around(&self, body: &Regex) -> Terms {
        let around = |before: &Regex, after: &Regex| {
            Regex::concat(&[before.clone(), body.clone(), after.clone()])
        };
        let groups = around(&self.look, &self.close)
            .or(&around(&self.open, &self.closed));
        Terms {
            any: self.any.or(&groups),
            no_digit: self.no_digit.or(&groups),
            ..self.clone()
        }
    }

    /// Any number of terms, and of `\0`, which no digit may follow: it would
    /// be octal.
    fn pattern(&self) -> Regex {
        let zero = Regex::literal("\\0");
        let zeros = zero.repeat(1, None);
        let zeros = Regex::concat(&[zeros, self.no_digit.clone()]);
        let repeated = Regex::concat(&[zero.clone(), self.once.clone()]);
        let term = Regex::alternate(&[self.any.clone(), zeros, repeated]);
        let rest = zero.repeat(0, None);
        Regex::concat(&[term.repeat(0, None), rest]).compact()
    }

    /// References, each with a pattern after it, and what they refer to:
    /// empty groups at the end. None is within a group, where it would be
    /// followed in two ways throughout.
    fn referring(&self, pattern_after: &Regex) -> Regex {
        let after =
            |first: Regex| Regex::concat(&[first, pattern_after.clone()]);
        // No digit may follow, which would be one of the number.
        let number = Regex::concat(&[
            pattern(r"\\[1-9][0-9]?"),
            Regex::alternate(&[
                Regex::epsilon(),
                after(self.once.clone()),
                after(self.no_digit.clone()),
            ]),
        ]);
        let names = ('a'..='z').chain('A'..='Z').chain(['_', '$']);
        let groups: Vec<Regex> = names
            .map(|name| Regex::literal(&format!("(?<{name}>)")))
            .collect();
        let maybe = self.once.repeat(0, Some(1));
        let named =
            after(Regex::concat(&[pattern(r"\\k<[A-Za-z_$]>"), maybe]));
        Regex::concat(&[
            number.or(&named).repeat(1, None),
            Regex::literal("()").repeat(N_GROUPS, Some(N_GROUPS)),
            Regex::concat(&groups),
        ])
    }

    /// One group with a name, which no other may have.
    fn naming(&self, body: Regex, pattern_after: &Regex) -> Regex {
        Regex::concat(&[
            pattern(&format!(r"\(\?<{NAME}>")),
            body,
            self.closed.clone(),
            pattern_after.clone(),
        ])
    }
}

/// Whether a text is a pattern.
pub(super) fn check(text: &str) -> bool {
    Regex::check_ecma(text, &Limits::new()).is_ok()
}
