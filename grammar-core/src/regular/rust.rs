//! Rust regex syntax, matched against the whole text, with look-around.
//!
//! Parsing, flags, case folding and the Unicode tables are `regex-syntax`'s.
//! It has no look-around, so the four ways to open one are rewritten to
//! named groups before it sees the pattern, and those groups become
//! assertions again afterwards.

use std::sync::OnceLock;

use regex_syntax::ast::{self, Ast, ClassSetItem};
use regex_syntax::hir::{self, Hir, HirKind};

use super::class::CharSet;
use super::error::{PatternError, PatternErrorKind};
use super::limits::{LimitError, LimitKind, Limits};
use super::regex::{Op, Regex};

/// A Unicode class is charged as this many terms, since it is a table of
/// hundreds of ranges.
const CLASS_TERMS: usize = 16;

impl Regex {
    /// Parses Rust regex syntax with the default limits. The pattern must
    /// match the whole text.
    ///
    /// Look-ahead and look-behind are understood as well. Whether a
    /// quantifier is lazy makes no difference to what is matched.
    ///
    /// # Errors
    ///
    /// Fails when the pattern is not in the syntax or over a limit.
    pub fn rust(pattern: &str) -> Result<Regex, PatternError> {
        Regex::rust_with(pattern, &Limits::new())
    }

    /// Parses Rust regex syntax, as [`Regex::rust`].
    ///
    /// # Errors
    ///
    /// Fails when the pattern is not in the syntax or over a limit.
    pub fn rust_with(
        pattern: &str,
        limits: &Limits,
    ) -> Result<Regex, PatternError> {
        parse(pattern, limits).map_err(|error| error.within(pattern))
    }
}

fn parse(pattern: &str, limits: &Limits) -> Result<Regex, PatternError> {
    check_length(pattern, limits)?;
    let rewritten = Rewritten::new(pattern);
    let nest_limit = u32::try_from(limits.max_nesting());
    let ast = ast::parse::ParserBuilder::new()
        .nest_limit(nest_limit.unwrap_or(u32::MAX))
        .build()
        .parse(&rewritten.pattern)
        .map_err(|error| rewritten.parse_error(&error, limits))?;
    check_size(&ast, limits)?;
    let hir = hir::translate::TranslatorBuilder::new()
        .utf8(true)
        .build()
        .translate(&rewritten.pattern, &ast)
        .map_err(|error| {
            rewritten.error(error.span(), error.kind().to_string())
        })?;
    let emitter = Emitter { ops: Vec::new(), looks: &rewritten };
    hir::visit(&hir, emitter).map(Regex::from_ops)
}

pub(super) fn check_length(
    pattern: &str,
    limits: &Limits,
) -> Result<(), PatternError> {
    let limit = limits.max_pattern_bytes();
    if pattern.len() > limit {
        let error =
            LimitError::new(LimitKind::PatternBytes, limit, pattern.len());
        return Err(PatternError::limit(limit, error));
    }
    Ok(())
}

/// Counts the terms of a pattern before its Unicode classes are looked up.
fn check_size(ast: &Ast, limits: &Limits) -> Result<(), PatternError> {
    struct Counter {
        n_terms: usize,
    }
    impl ast::Visitor for Counter {
        type Output = usize;
        type Err = std::convert::Infallible;
        fn finish(self) -> Result<usize, Self::Err> {
            Ok(self.n_terms)
        }
        fn visit_pre(&mut self, ast: &Ast) -> Result<(), Self::Err> {
            self.n_terms += match ast {
                Ast::ClassPerl(_) | Ast::ClassUnicode(_) => CLASS_TERMS,
                _ => 1,
            };
            Ok(())
        }
        fn visit_class_set_item_pre(
            &mut self,
            item: &ClassSetItem,
        ) -> Result<(), Self::Err> {
            self.n_terms += match item {
                ClassSetItem::Perl(_) | ClassSetItem::Unicode(_) => {
                    CLASS_TERMS
                }
                _ => 1,
            };
            Ok(())
        }
    }
    let Ok(n_terms) = ast::visit(ast, Counter { n_terms: 0 });
    let limit = limits.max_terms();
    if n_terms > limit {
        let error = LimitError::new(LimitKind::Terms, limit, n_terms);
        return Err(PatternError::limit(0, error));
    }
    Ok(())
}

/// A pattern whose look-around has been replaced by named groups.
struct Rewritten {
    pattern: String,
    /// How the names of those groups begin. No name in the pattern does.
    prefix: String,
    /// Offsets in the new pattern after which it is ahead of the old one,
    /// and by how many bytes in all.
    shifts: Vec<(usize, usize)>,
}

const OPENINGS: [(&str, &str); 4] = [
    ("(?=", "ahead"),
    ("(?!", "notahead"),
    ("(?<=", "behind"),
    ("(?<!", "notbehind"),
];

impl Rewritten {
    fn new(pattern: &str) -> Rewritten {
        let mut prefix = String::from("look");
        while pattern.contains(&prefix) {
            prefix.push('_');
        }
        let mut out = Rewritten {
            pattern: String::with_capacity(pattern.len()),
            prefix,
            shifts: Vec::new(),
        };
        if OPENINGS.iter().any(|(opening, _)| pattern.contains(opening)) {
            out.rewrite(pattern);
        } else {
            out.pattern.push_str(pattern);
        }
        out
    }

    fn rewrite(&mut self, pattern: &str) {
        let mut rest = pattern;
        let mut class_depth = 0usize;
        let mut n_added = 0;
        while let Some(first) = rest.chars().next() {
            let mut width = first.len_utf8();
            match first {
                '\\' => {
                    let escaped = rest[1..].chars().next();
                    width += escaped.map_or(0, char::len_utf8);
                }
                '[' => {
                    class_depth += 1;
                    // A bracket that closes nothing is a member.
                    let inside = &rest[1..];
                    let negated = usize::from(inside.starts_with('^'));
                    width += negated;
                    width += usize::from(inside[negated..].starts_with(']'));
                }
                ']' => class_depth = class_depth.saturating_sub(1),
                '(' if class_depth == 0 => {
                    let look = OPENINGS
                        .iter()
                        .find(|(opening, _)| rest.starts_with(opening));
                    if let Some((opening, kind)) = look {
                        let n_looks = self.shifts.len();
                        let group =
                            format!("(?P<{}{n_looks}{kind}>", self.prefix);
                        n_added += group.len() - opening.len();
                        self.pattern.push_str(&group);
                        self.shifts.push((self.pattern.len(), n_added));
                        rest = &rest[opening.len()..];
                        continue;
                    }
                }
                _ => {}
            }
            self.pattern.push_str(&rest[..width]);
            rest = &rest[width..];
        }
    }

    /// Returns `(behind, negative)` if a group of this name is one of ours.
    fn look(&self, name: &str) -> Option<(bool, bool)> {
        if self.shifts.is_empty() {
            return None;
        }
        let kind = name.strip_prefix(&self.prefix)?;
        let kind = kind.trim_start_matches(|c: char| c.is_ascii_digit());
        Some((kind.ends_with("behind"), kind.starts_with("not")))
    }

    fn original_offset(&self, offset: usize) -> usize {
        let passed = self.shifts.partition_point(|&(at, _)| at <= offset);
        match passed.checked_sub(1) {
            Some(last) => offset - self.shifts[last].1.min(offset),
            None => offset,
        }
    }

    fn error(&self, span: &ast::Span, message: String) -> PatternError {
        let offset = self.original_offset(span.start.offset);
        PatternError::new(PatternErrorKind::Syntax, offset, message)
    }

    fn parse_error(
        &self,
        error: &ast::Error,
        limits: &Limits,
    ) -> PatternError {
        let offset = self.original_offset(error.span().start.offset);
        match error.kind() {
            ast::ErrorKind::NestLimitExceeded(_) => {
                let limit = limits.max_nesting();
                let error =
                    LimitError::new(LimitKind::Nesting, limit, limit + 1);
                PatternError::limit(offset, error)
            }
            ast::ErrorKind::UnsupportedBackreference => backreference(offset),
            kind => {
                let span = error.span();
                let after = self.pattern.get(span.start.offset..);
                let (kind, message) = named(kind, after.unwrap_or_default());
                PatternError::new(kind, offset, message)
            }
        }
    }
}

/// Names what an error is about that the parser knows as something else.
fn named(kind: &ast::ErrorKind, rest: &str) -> (PatternErrorKind, String) {
    use PatternErrorKind::{Atomic, Backreference, Syntax};
    let (named, message) = match kind {
        ast::ErrorKind::FlagUnrecognized if rest.starts_with('>') => (
            Atomic,
            "atomic groups `(?>...)` are not supported; use `(?:...)`",
        ),
        ast::ErrorKind::FlagUnrecognized if rest.starts_with('(') => (
            Atomic,
            "conditional groups are not supported; write both cases out",
        ),
        ast::ErrorKind::FlagUnrecognized if rest.starts_with('=') => {
            (Backreference, NOT_REGULAR)
        }
        ast::ErrorKind::EscapeUnrecognized if rest.starts_with("\\k") => {
            (Backreference, NOT_REGULAR)
        }
        _ => return (Syntax, kind.to_string()),
    };
    (named, message.to_owned())
}

const NOT_REGULAR: &str =
    "backreferences are not regular; write the alternatives out";

fn backreference(offset: usize) -> PatternError {
    PatternError::new(PatternErrorKind::Backreference, offset, NOT_REGULAR)
}

/// Turns the nodes of an expression into postfix operations.
struct Emitter<'a> {
    ops: Vec<Op>,
    looks: &'a Rewritten,
}

impl hir::Visitor for Emitter<'_> {
    type Output = Vec<Op>;
    type Err = PatternError;

    fn finish(self) -> Result<Vec<Op>, PatternError> {
        Ok(self.ops)
    }

    fn visit_post(&mut self, hir: &Hir) -> Result<(), PatternError> {
        match hir.kind() {
            HirKind::Empty => self.ops.push(Op::Concat(0)),
            HirKind::Literal(literal) => {
                let text = String::from_utf8_lossy(&literal.0);
                self.ops.push(Op::Literal(text.into()));
            }
            HirKind::Class(class) => {
                self.ops.push(Op::Class(char_set(class)));
            }
            HirKind::Look(look) => self.look(*look),
            HirKind::Repetition(repetition) => {
                let (min, max) = (repetition.min, repetition.max);
                self.ops.push(Op::Repeat { min, max });
            }
            HirKind::Capture(capture) => {
                let name = capture.name.as_deref();
                let look = name.and_then(|name| self.looks.look(name));
                if let Some((behind, negative)) = look {
                    self.ops.push(Op::Look { behind, negative });
                }
            }
            HirKind::Concat(parts) => self.ops.push(Op::Concat(n(parts))),
            HirKind::Alternation(parts) => {
                self.ops.push(Op::Alternate(n(parts)));
            }
        }
        Ok(())
    }
}

fn n(parts: &[Hir]) -> u32 {
    u32::try_from(parts.len()).unwrap_or(u32::MAX)
}

fn char_set(class: &hir::Class) -> CharSet {
    match class {
        hir::Class::Unicode(class) => class
            .iter()
            .map(|range| (range.start().into(), range.end().into()))
            .collect(),
        hir::Class::Bytes(class) => class
            .iter()
            .map(|range| (range.start().into(), range.end().into()))
            .collect(),
    }
}

impl Emitter<'_> {
    fn assert(&mut self, set: CharSet, behind: bool, negative: bool) {
        self.ops.push(Op::Class(set));
        self.ops.push(Op::Look { behind, negative });
    }

    fn look(&mut self, look: hir::Look) {
        use hir::Look;
        let (lf, cr) = (CharSet::single('\n'), CharSet::single('\r'));
        let boundary =
            |word: CharSet, negative| Op::Boundary { word, negative };
        match look {
            Look::Start => self.ops.push(Op::Start),
            Look::End => self.ops.push(Op::End),
            Look::StartLF => {
                self.ops.push(Op::Start);
                self.assert(lf, true, false);
                self.ops.push(Op::Alternate(2));
            }
            Look::EndLF => {
                self.ops.push(Op::End);
                self.assert(lf, false, false);
                self.ops.push(Op::Alternate(2));
            }
            // Between `\r` and `\n` no line starts or ends.
            Look::StartCRLF => {
                self.ops.push(Op::Start);
                self.assert(lf.clone(), true, false);
                self.assert(cr, true, false);
                self.assert(lf, false, true);
                self.ops.push(Op::Concat(2));
                self.ops.push(Op::Alternate(3));
            }
            Look::EndCRLF => {
                self.ops.push(Op::End);
                self.assert(cr.clone(), false, false);
                self.assert(cr, true, true);
                self.assert(lf, false, false);
                self.ops.push(Op::Concat(2));
                self.ops.push(Op::Alternate(3));
            }
            Look::WordAscii => self.ops.push(boundary(ascii_word(), false)),
            Look::WordAsciiNegate => {
                self.ops.push(boundary(ascii_word(), true));
            }
            Look::WordUnicode => {
                self.ops.push(boundary(unicode_word(), false));
            }
            Look::WordUnicodeNegate => {
                self.ops.push(boundary(unicode_word(), true));
            }
            Look::WordStartAscii => self.word_edge(&ascii_word(), true, true),
            Look::WordEndAscii => self.word_edge(&ascii_word(), false, true),
            Look::WordStartUnicode => {
                self.word_edge(&unicode_word(), true, true);
            }
            Look::WordEndUnicode => {
                self.word_edge(&unicode_word(), false, true);
            }
            Look::WordStartHalfAscii => {
                self.word_edge(&ascii_word(), true, false);
            }
            Look::WordEndHalfAscii => {
                self.word_edge(&ascii_word(), false, false);
            }
            Look::WordStartHalfUnicode => {
                self.word_edge(&unicode_word(), true, false);
            }
            Look::WordEndHalfUnicode => {
                self.word_edge(&unicode_word(), false, false);
            }
        }
    }

    /// A start has no word character before it and, unless it is half, one
    /// after it; an end is its mirror image.
    fn word_edge(&mut self, word: &CharSet, start: bool, whole: bool) {
        self.assert(word.clone(), start, true);
        if whole {
            self.assert(word.clone(), !start, false);
            self.ops.push(Op::Concat(2));
        }
    }
}

/// The word characters of ASCII, which are also those of ECMA-262.
pub(super) fn ascii_word() -> CharSet {
    static WORD: OnceLock<CharSet> = OnceLock::new();
    let make = || {
        CharSet::new([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
    };
    WORD.get_or_init(make).clone()
}

fn unicode_word() -> CharSet {
    static WORD: OnceLock<CharSet> = OnceLock::new();
    WORD.get_or_init(|| table(r"\w").unwrap_or_else(ascii_word)).clone()
}

/// Looks a class up in the Unicode tables. `syntax` is one class escape.
pub(super) fn table(syntax: &str) -> Option<CharSet> {
    let hir = regex_syntax::parse(syntax).ok()?;
    match hir.kind() {
        HirKind::Class(class) => Some(char_set(class)),
        // A class of one character becomes a literal.
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            text.chars().next().map(CharSet::single)
        }
        _ => None,
    }
}
