//! How expressions are written in GBNF, so that llama.cpp reads them too.
//!
//! Its escapes are fewer than ours (no `\-` and no `\^`), a sequence must
//! stay on its line, and `.` is not used at all.

use std::fmt::Write as _;

use maskwright_grammar_core::regular::{CharSet, MAX_CODE_POINT};

use super::expr::{Expr, Kind, RuleId};

/// How long a line may be before its alternatives stand on lines of their
/// own.
const MAX_LINE: usize = 79;

/// Writes what a rule derives.
pub(super) fn body(expr: &Expr, names: &dyn Fn(RuleId) -> String) -> String {
    let mut out = String::new();
    write_expr(expr, Place::Body, names, &mut out);
    let Kind::Choice(ways) = expr.kind() else { return out };
    if out.len() <= MAX_LINE {
        return out;
    }
    let mut out = String::new();
    for (index, way) in ways.iter().enumerate() {
        out.push_str(if index > 0 { " |\n  " } else { "\n  " });
        write_expr(way, Place::Way, names, &mut out);
    }
    out
}

/// What stands around an expression.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Place {
    Body,
    Way,
    Part,
    Repeated,
}

fn write_expr(
    expr: &Expr,
    place: Place,
    names: &dyn Fn(RuleId) -> String,
    out: &mut String,
) {
    match expr.kind() {
        Kind::Literal(text) if place == Place::Repeated => {
            // An operator would bind to it as a whole, but reads otherwise.
            let is_long = text.chars().nth(1).is_some();
            out.push_str(if is_long { "(" } else { "" });
            write_literal(text, out);
            out.push_str(if is_long { ")" } else { "" });
        }
        Kind::Literal(text) => write_literal(text, out),
        Kind::Class(set) => write_class(set, out),
        Kind::Rule(rule) => out.push_str(&names(*rule)),
        Kind::Seq(parts) if parts.is_empty() => {
            out.push_str(if place == Place::Repeated { "()" } else { "\"\"" });
        }
        Kind::Seq(parts) => {
            let bare = matches!(place, Place::Body | Place::Way);
            out.push_str(if bare { "" } else { "(" });
            write_parts(parts, names, out);
            out.push_str(if bare { "" } else { ")" });
        }
        // No text: a class that holds nothing cannot be written, and rules
        // without texts are taken out before.
        Kind::Choice(ways) => {
            let bare = place == Place::Body;
            out.push_str(if bare { "" } else { "(" });
            for (index, way) in ways.iter().enumerate() {
                out.push_str(if index > 0 { " | " } else { "" });
                write_expr(way, Place::Way, names, out);
            }
            out.push_str(if bare { "" } else { ")" });
        }
        Kind::Repeat { body, min, max } => {
            write_expr(body, Place::Repeated, names, out);
            write_bounds(*min, *max, out);
        }
    }
}

/// Writes a sequence, with texts that stand beside each other as one.
fn write_parts(
    parts: &[Expr],
    names: &dyn Fn(RuleId) -> String,
    out: &mut String,
) {
    let mut text = String::new();
    let mut is_first = true;
    let mut separate = |out: &mut String| {
        out.push_str(if is_first { "" } else { " " });
        is_first = false;
    };
    for part in parts {
        if let Kind::Literal(more) = part.kind() {
            text.push_str(more);
            continue;
        }
        if !text.is_empty() {
            separate(out);
            write_literal(&text, out);
            text.clear();
        }
        separate(out);
        write_expr(part, Place::Part, names, out);
    }
    if !text.is_empty() {
        separate(out);
        write_literal(&text, out);
    }
}

fn write_bounds(min: u32, max: Option<u32>, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = match (min, max) {
        (0, None) => write!(out, "*"),
        (1, None) => write!(out, "+"),
        (0, Some(1)) => write!(out, "?"),
        (_, None) => write!(out, "{{{min},}}"),
        (_, Some(max)) if max == min => write!(out, "{{{min}}}"),
        (_, Some(max)) => write!(out, "{{{min},{max}}}"),
    };
}

fn write_literal(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            ' '..='~' => out.push(c),
            c if c.is_alphanumeric() => out.push(c),
            c => write_escape(c, out),
        }
    }
    out.push('"');
}

fn write_class(set: &CharSet, out: &mut String) {
    let others = set.complement();
    let negated = set.contains(MAX_CODE_POINT) && !others.is_empty();
    let ranges = if negated { others.ranges() } else { set.ranges() };
    out.push_str(if negated { "[^" } else { "[" });
    let dash = u32::from('-');
    let mut is_first = !negated;
    for &(lo, hi) in ranges.iter().filter(|&&range| range != (dash, dash)) {
        write_member(lo, is_first, out);
        is_first = false;
        if hi > lo {
            out.push_str(if hi - lo > 1 { "-" } else { "" });
            write_member(hi, false, out);
        }
    }
    // At the end it is a character and no range.
    out.push_str(if ranges.contains(&(dash, dash)) { "-" } else { "" });
    out.push(']');
}

fn write_member(code: u32, is_first: bool, out: &mut String) {
    let Some(c) = char::from_u32(code) else { return };
    match c {
        '\\' | '[' | ']' => {
            out.push('\\');
            out.push(c);
        }
        '^' if !is_first => out.push(c),
        '-' | '^' => write_escape(c, out),
        ' '..='~' => out.push(c),
        _ => write_escape(c, out),
    }
}

fn write_escape(c: char, out: &mut String) {
    let code = u32::from(c);
    let _ = match c {
        '\t' => write!(out, "\\t"),
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        _ if code <= 0xFF => write!(out, "\\x{code:02X}"),
        _ if code <= 0xFFFF => write!(out, "\\u{code:04X}"),
        _ => write!(out, "\\U{code:08X}"),
    };
}
