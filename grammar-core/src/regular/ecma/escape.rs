//! What may follow a backslash.

use std::sync::OnceLock;

use super::Reading;
use super::parser::{Input, refuse, syntax};
use super::property::Properties;
use crate::regular::class::{CharSet, MAX_CODE_POINT};
use crate::regular::error::{PatternError, PatternErrorKind};
use crate::regular::rust::ascii_word;

/// A member or several of a class.
pub(super) enum Escape {
    /// One code point, which may be a lone surrogate and then matches
    /// nothing.
    Character(u32),
    Set(CharSet),
}

impl Escape {
    pub(super) fn into_set(self) -> CharSet {
        match self {
            Escape::Character(point) => CharSet::new([(point, point)]),
            Escape::Set(set) => set,
        }
    }

    pub(super) fn add_to(&self, ranges: &mut Vec<(u32, u32)>) {
        match self {
            Escape::Character(point) => ranges.push((*point, *point)),
            Escape::Set(set) => ranges.extend_from_slice(set.ranges()),
        }
    }
}

/// `.`: all but the line terminators.
pub(super) fn dot() -> CharSet {
    static DOT: OnceLock<CharSet> = OnceLock::new();
    let make = || {
        CharSet::new([(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)])
            .complement()
    };
    DOT.get_or_init(make).clone()
}

/// `\s`: white space and line terminators.
fn space() -> CharSet {
    static SPACE: OnceLock<CharSet> = OnceLock::new();
    let make = || {
        CharSet::new([
            (0x09, 0x0D),
            (0x20, 0x20),
            (0xA0, 0xA0),
            (0x1680, 0x1680),
            (0x2000, 0x200A),
            (0x2028, 0x2029),
            (0x202F, 0x202F),
            (0x205F, 0x205F),
            (0x3000, 0x3000),
            (0xFEFF, 0xFEFF),
        ])
    };
    SPACE.get_or_init(make).clone()
}

fn digit() -> CharSet {
    CharSet::new([(0x30, 0x39)])
}

/// Reads an escape, backslash included. `at` is where it begins.
pub(super) fn read(
    input: &mut Input<'_>,
    properties: &mut Properties,
    in_class: bool,
    at: usize,
) -> Result<Escape, PatternError> {
    input.next();
    let Some(letter) = input.next() else {
        return syntax(
            at,
            "the pattern ends in a backslash; write `\\\\` to mean the \
             character",
        );
    };
    let set = |set| Ok(Escape::Set(set));
    let point = |point| Ok(Escape::Character(point));
    match letter {
        'd' => set(digit()),
        'D' => set(digit().complement()),
        's' => set(space()),
        'S' => set(space().complement()),
        'w' => set(ascii_word()),
        'W' => set(ascii_word().complement()),
        'p' => properties.read(input, at).and_then(set),
        'P' => {
            properties.read(input, at).map(|it| it.complement()).and_then(set)
        }
        't' => point(0x09),
        'n' => point(0x0A),
        'v' => point(0x0B),
        'f' => point(0x0C),
        'r' => point(0x0D),
        'b' if in_class => point(0x08),
        'c' => match input.next() {
            Some(letter) if letter.is_ascii_alphabetic() => {
                point(u32::from(letter) % 32)
            }
            _ => syntax(at, "`\\c` must be followed by a letter"),
        },
        'x' => match hex(input, 2) {
            Some(value) => point(value),
            None => {
                syntax(at, "`\\x` must be followed by two hexadecimal digits")
            }
        },
        'u' => unicode(input, at).and_then(point),
        '0' => match input.peek() {
            Some(next) if next.is_ascii_digit() => syntax(
                at,
                "octal escapes are not in ECMA-262; use `\\x` and two \
                 hexadecimal digits",
            ),
            _ => point(0),
        },
        '1'..='9' if in_class => syntax(
            at,
            format!("`\\{letter}` is no escape of a class; use `\\x`"),
        ),
        '1'..='9' => backreference(at, &format!("\\{letter}")),
        'k' if !in_class && input.rest().starts_with('<') => {
            let rest = input.rest();
            let end = rest.find('>').map_or(rest.len(), |end| end + 1);
            backreference(at, &format!("\\k{}", &rest[..end]))
        }
        _ if letter.is_ascii_alphanumeric() => unknown(at, letter),
        _ if input.reading == Reading::Strict
            && !is_escaped(letter, in_class) =>
        {
            unknown(at, letter)
        }
        _ => point(u32::from(letter)),
    }
}

/// Whether a character that is no letter or digit has an escape with `u`.
fn is_escaped(character: char, in_class: bool) -> bool {
    "^$\\.*+?()[]{}|/".contains(character) || in_class && character == '-'
}

fn backreference<T>(at: usize, name: &str) -> Result<T, PatternError> {
    refuse(
        PatternErrorKind::Backreference,
        at,
        format!(
            "the backreference `{name}` makes the pattern irregular; write \
             the alternatives out"
        ),
    )
}

fn unknown<T>(at: usize, letter: char) -> Result<T, PatternError> {
    let way_out = match letter {
        'A' => "use `^`",
        'Z' | 'z' => "use `$`",
        'h' => "use `[ \\t]`",
        'a' => "use `\\x07`",
        'e' => "use `\\x1B`",
        'Q' | 'E' => "escape each character",
        _ => "remove the backslash to mean the character",
    };
    syntax(at, format!("`\\{letter}` is no escape of ECMA-262; {way_out}"))
}

/// Reads exactly `n_digits` hexadecimal digits.
fn hex(input: &mut Input<'_>, n_digits: usize) -> Option<u32> {
    let digits = input.rest().get(..n_digits)?;
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    input.at += n_digits;
    u32::from_str_radix(digits, 16).ok()
}

/// Reads what follows `\u`: four digits, a surrogate pair, or braces.
fn unicode(input: &mut Input<'_>, at: usize) -> Result<u32, PatternError> {
    if input.eat("{") {
        let rest = input.rest();
        let value = rest.find('}').and_then(|end| {
            let digits = &rest[..end];
            let all_hex = digits.bytes().all(|c| c.is_ascii_hexdigit());
            let value = u32::from_str_radix(digits, 16).ok()?;
            input.at += end + 1;
            (all_hex && value <= MAX_CODE_POINT).then_some(value)
        });
        return match value {
            Some(value) => Ok(value),
            None => syntax(
                at,
                "`\\u{` must be followed by the hexadecimal number of a \
                 code point, at most 10FFFF, and `}`",
            ),
        };
    }
    let Some(lead) = hex(input, 4) else {
        return syntax(
            at,
            "`\\u` must be followed by four hexadecimal digits or by braces",
        );
    };
    if !(0xD800..0xDC00).contains(&lead) {
        return Ok(lead);
    }
    let before = input.at;
    if input.eat("\\u")
        && let Some(trail) = hex(input, 4)
        && (0xDC00..0xE000).contains(&trail)
    {
        return Ok(0x1_0000 + ((lead - 0xD800) << 10) + (trail - 0xDC00));
    }
    input.at = before;
    Ok(lead)
}
