//! `[...]`: classes, and the order of the ends of their ranges.
//!
//! With `n` for a member that is no dash, `r` for a range that begins with
//! none and `y` for the end of a range, the members of a class are
//! `( -? n* r | --y )* -? n* -?`.
//!
//! Printable characters of ASCII are compared one by one. All others are
//! compared by the [`STARTS`] of the spans that they lie in: of two in one
//! span the order is not known, unless one is the last of it.

use maskwright_grammar_core::regular::{CharSet, MAX_CODE_POINT, Regex};

use super::{Bound, HEX, pattern};

/// Where spans begin. Those of escapes are these throughout, those of
/// characters from [`FIRST_WIDE`] on.
const STARTS: &[u32] = &[
    0, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x80, 0x100, 0x400, 0x440, 0x1000,
    0x4E00, 0x9F00, 0x1_0000,
];

/// The printable characters of ASCII begin here, and end before
/// [`FIRST_WIDE`].
const FIRST_PRINTABLE: u32 = 0x20;
const FIRST_WIDE: u32 = 0x80;

/// What has an escape of itself in a class.
const ESCAPED: &str = "^$\\.*+?()[]{}|/-";

/// The escapes of control characters, but for `\0`.
const CONTROL: &str = "[tnvfrb]|c[A-Za-z]";
const SETS: &str = "[dDsSwW]";

/// Classes with their brackets; `property` is what follows the backslash of
/// one.
pub(super) fn class(bound: Bound, property: &Regex) -> Regex {
    Parts::new(bound).class(property)
}

struct Parts {
    bound: Bound,
    dash: Regex,
    backslash: Regex,
    zero: Regex,
    /// A code point in two escapes.
    pair: Regex,
    /// Half of one.
    surrogate: Regex,
    /// For each span what follows the backslash of an escape of a code point
    /// that is sure not to be less than those of the span, or may be none of
    /// the lesser.
    escapes: Vec<Regex>,
}

impl Parts {
    fn new(bound: Bound) -> Parts {
        let lead = format!(r"\\u[dD][89ABab]{HEX}{{2}}");
        let trail = format!(r"\\u[dD][C-Fc-f]{HEX}{{2}}");
        let surrogate = match bound {
            // Behind the first half of a pair it is the second.
            Bound::Least => trail.clone(),
            Bound::Most => format!(r"\\u[dD][89A-Fa-f]{HEX}{{2}}"),
        };
        Parts {
            bound,
            dash: Regex::literal("-"),
            backslash: Regex::literal("\\"),
            zero: Regex::literal("\\0"),
            pair: pattern(&(lead + &trail)),
            surrogate: pattern(&surrogate),
            escapes: (0..STARTS.len())
                .map(|index| escapes(lower(bound, index), MAX_CODE_POINT))
                .collect(),
        }
    }

    fn class(&self, property: &Regex) -> Regex {
        let range = self.range();
        let from_dash =
            Regex::concat(&[self.dash.clone(), self.from(b'-'.into())]);
        let member = self.member(property);
        let members = member.repeat(0, None);
        let dash = self.dash.repeat(0, Some(1));
        let ranges = Regex::alternate(&[
            Regex::concat(&[dash.clone(), members.clone(), range]),
            from_dash,
        ]);
        let zero = self.zero.repeat(0, Some(1));
        Regex::concat(&[
            pattern(r"\[\^?"),
            ranges.repeat(0, None),
            dash.clone(),
            members,
            zero,
            dash,
            Regex::literal("]"),
        ])
    }

    /// A member that is no dash and no range.
    fn member(&self, property: &Regex) -> Regex {
        let escaped = Regex::alternate(&[
            escapes(0, MAX_CODE_POINT),
            pattern(&format!("{CONTROL}|{SETS}")),
            identities(0, MAX_CODE_POINT),
            property.clone(),
        ]);
        let zero = match self.bound {
            Bound::Least => pattern(r"\\0[^\\\]\-0-9]"),
            Bound::Most => self.zero.clone(),
        };
        Regex::alternate(&[
            Regex::class(characters(0, MAX_CODE_POINT).difference(&set("-"))),
            Regex::concat(&[self.backslash.clone(), escaped]),
            self.pair.clone(),
            self.surrogate.clone(),
            zero,
        ])
    }

    /// A range that begins with no dash.
    fn range(&self) -> Regex {
        let dash = &self.dash;
        let mut plain = vec![self.range_of_pair()];
        // What follows a backslash.
        let mut escaped = vec![Regex::concat(&[
            Regex::literal("0"),
            dash.clone(),
            self.any(),
        ])];
        for (index, &first) in STARTS.iter().enumerate() {
            let last = last(index);
            let end = self.to(lower(self.bound, index), index);
            let mut from = escapes(first, last);
            if first == 0 {
                from = from.or(&pattern(CONTROL));
            }
            escaped.push(Regex::concat(&[from, dash.clone(), end.clone()]));
            if !(FIRST_PRINTABLE..FIRST_WIDE).contains(&first) {
                let from = Regex::class(characters(first, last));
                plain.push(Regex::concat(&[from, dash.clone(), end]));
            }
        }
        for first in FIRST_PRINTABLE..FIRST_WIDE {
            let end = self.from(first);
            let itself = characters(first, first).difference(&set("-"));
            plain.push(Regex::concat(&[Regex::class(itself), end.clone()]));
            escaped.push(Regex::concat(&[identities(first, first), end]));
        }
        let escaped = Regex::alternate(&escaped);
        plain.push(Regex::concat(&[self.backslash.clone(), escaped]));
        Regex::alternate(&plain)
    }

    /// A range that begins with a code point in two escapes, or with half of
    /// one.
    fn range_of_pair(&self) -> Regex {
        let (from, to) = match self.bound {
            Bound::Least => {
                (&self.pair, self.to(MAX_CODE_POINT, STARTS.len() - 1))
            }
            Bound::Most => (&self.surrogate, self.any()),
        };
        Regex::concat(&[from.clone(), self.dash.clone(), to])
    }

    /// A dash and the end of a range that begins with a printable character.
    fn from(&self, first: u32) -> Regex {
        let span = STARTS.partition_point(|&start| start <= first) - 1;
        Regex::concat(&[self.dash.clone(), self.to(first, span)])
    }

    fn any(&self) -> Regex {
        self.to(0, 0)
    }

    /// The end of a range that begins in a span: a character not less than
    /// `first`, or an escape.
    fn to(&self, first: u32, span: usize) -> Regex {
        let mut escaped =
            vec![self.escapes[span].clone(), identities(first, 0x7F)];
        if first == 0 {
            escaped.push(pattern(CONTROL));
        }
        let escaped = Regex::alternate(&escaped);
        let mut all = vec![
            Regex::class(characters(first, MAX_CODE_POINT)),
            Regex::concat(&[self.backslash.clone(), escaped]),
        ];
        if self.bound == Bound::Most {
            all.extend([self.pair.clone(), self.surrogate.clone()]);
            if first == 0 {
                all.push(self.zero.clone());
            }
        } else if STARTS[span] < 0x1_0000 {
            all.push(self.pair.clone());
        }
        Regex::alternate(&all)
    }
}

/// The last code point of a span.
fn last(span: usize) -> u32 {
    STARTS.get(span + 1).map_or(MAX_CODE_POINT, |next| next - 1)
}

/// The least end of ranges that begin in a span.
fn lower(bound: Bound, span: usize) -> u32 {
    match bound {
        Bound::Least => last(span),
        Bound::Most => STARTS[span],
    }
}

fn set(characters: &str) -> CharSet {
    let points = characters.chars().map(u32::from);
    CharSet::new(points.map(|point| (point, point)))
}

/// The characters of a span that stand for themselves.
fn characters(first: u32, last: u32) -> CharSet {
    CharSet::new([(first, last)]).difference(&set("\\]"))
}

/// What follows the backslash of an escape of a character of a span, which
/// is that character.
fn identities(first: u32, last: u32) -> Regex {
    let span = CharSet::new([(first, last)]);
    Regex::class(set(ESCAPED).intersection(&span))
}

/// What follows the backslash of an escape of a code point of a span by its
/// number, but for surrogates in four digits.
fn escapes(first: u32, last: u32) -> Regex {
    let mut all = Vec::new();
    let mut add = |before: &Regex, span: (u32, u32), width, after: &str| {
        let (low, high) = (first.max(span.0), last.min(span.1));
        if low <= high {
            let digits = digits(low, high, width);
            let after = Regex::literal(after);
            all.push(Regex::concat(&[before.clone(), digits, after]));
        }
    };
    add(&Regex::literal("x"), (0, 0xFF), 2, "");
    let four = Regex::literal("u");
    add(&four, (0, 0xD7FF), 4, "");
    add(&four, (0xE000, 0xFFFF), 4, "");
    let zeros = Regex::literal("0").repeat(0, None);
    let braces = Regex::concat(&[Regex::literal("u{"), zeros]);
    add(&braces, (0, 0xF), 1, "}");
    for width in 2..=6 {
        let span = (1 << (4 * (width - 1)), (1 << (4 * width)) - 1);
        add(&braces, span, width, "}");
    }
    Regex::alternate(&all)
}

/// The hexadecimal numbers of a span in just so many digits, which are
/// enough.
fn digits(first: u32, last: u32, width: u32) -> Regex {
    let Some(rest) = width.checked_sub(1) else { return Regex::epsilon() };
    let mask = (1 << (4 * rest)) - 1;
    let (mut low, mut high) = (first >> (4 * rest), last >> (4 * rest));
    let then = |low, high, rest| Regex::concat(&[digit(low, high), rest]);
    if low == high {
        return then(low, low, digits(first & mask, last & mask, rest));
    }
    let mut all = Vec::new();
    if first & mask != 0 {
        all.push(then(low, low, digits(first & mask, mask, rest)));
        low += 1;
    }
    if last & mask != mask {
        all.push(then(high, high, digits(0, last & mask, rest)));
        high -= 1;
    }
    if low <= high {
        let rest = digit(0, 0xF).repeat(rest, Some(rest));
        all.push(then(low, high, rest));
    }
    Regex::alternate(&all)
}

/// A hexadecimal digit of a span.
fn digit(first: u32, last: u32) -> Regex {
    let digits =
        (first..=last).filter_map(|value| char::from_digit(value, 16));
    let both = digits.flat_map(|it| [it, it.to_ascii_uppercase()]);
    let points = both.map(|it| (u32::from(it), u32::from(it)));
    Regex::class(CharSet::new(points))
}
