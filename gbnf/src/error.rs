//! Errors and warnings, with the place in the text that they are about.

use std::{error::Error, fmt, fmt::Write as _};

use maskwright_grammar_core::{
    automaton::AutomatonError, grammar::GrammarError,
};

/// How many characters of a line are shown before and after a caret.
const MAX_CONTEXT: usize = 40;
/// How many carets are shown at most.
const MAX_CARETS: usize = 40;

/// A part of a text, in bytes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// Creates the span of the bytes `start..end`.
    pub const fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// Returns the line and the column of this span's start in `text`.
    pub(crate) fn place(self, text: &str) -> (usize, usize) {
        Places::new(text).of(self)
    }
}

/// Where the lines of a text begin.
pub(crate) struct Places<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Places<'a> {
    pub(crate) fn new(text: &'a str) -> Places<'a> {
        let bytes = text.as_bytes();
        let ends = bytes.iter().enumerate().filter(|&(i, &byte)| {
            let is_crlf = byte == b'\r' && bytes.get(i + 1) == Some(&b'\n');
            byte == b'\n' || byte == b'\r' && !is_crlf
        });
        let starts = std::iter::once(0).chain(ends.map(|(i, _)| i + 1));
        Places { text, starts: starts.collect() }
    }

    /// Returns the line and the column of the start of `span`, both counted
    /// from 1; columns are characters.
    pub(crate) fn of(&self, span: Span) -> (usize, usize) {
        let at = span.start.min(self.text.len());
        let line = self.starts.partition_point(|&start| start <= at);
        let start = self.starts[line - 1];
        // Bytes that begin a character.
        let column = self.text.as_bytes()[start..at]
            .iter()
            .filter(|&&byte| byte & 0xC0 != 0x80);
        (line, column.count() + 1)
    }
}

/// What is wrong with a grammar.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GbnfErrorKind {
    /// The text is not GBNF.
    #[error("{0}")]
    Syntax(String),
    /// Groups and operators are nested too deeply.
    #[error(
        "nesting is deeper than the limit of {limit}; \
         give the inner part a rule of its own"
    )]
    NestingTooDeep {
        /// The limit.
        limit: usize,
    },
    /// A name has no rule.
    #[error("undefined rule `{name}`{}", did_you_mean(.nearest.as_deref()))]
    UndefinedRule {
        /// The name.
        name: String,
        /// The defined name that is most like it, if one is.
        nearest: Option<String>,
    },
    /// A rule is defined twice.
    #[error(
        "rule `{name}` is defined twice, first at line {line}, column \
         {column}; rename one, or join them with `|`"
    )]
    RedefinedRule {
        /// The rule's name.
        name: String,
        /// The line of the first definition.
        line: usize,
        /// The column of the first definition.
        column: usize,
    },
    /// The rule to start with is not there.
    #[error("there is no rule `{name}` to start with; {}", listed(.defined))]
    MissingRoot {
        /// The name of the rule that was asked for.
        name: String,
        /// The rules that there are.
        defined: Vec<String>,
    },
    /// A rule derives no text, not even the empty one.
    #[error(
        "rule `{name}` derives nothing: every alternative needs the rule \
         itself again; give it one that ends"
    )]
    DerivesNothing {
        /// The rule's name.
        name: String,
    },
    /// The bounds of a repetition are in the wrong order.
    #[error(
        "repetition {{{min},{max}}} asks for at least {min} and at most \
         {max}; write {{{max},{min}}}"
    )]
    Bounds {
        /// The lower bound.
        min: u32,
        /// The upper bound, which is below it.
        max: u32,
    },
    /// A number is too large.
    #[error("{what} {value} is larger than the limit of {limit}")]
    TooLarge {
        /// What the number is.
        what: &'static str,
        /// The number as it was written.
        value: String,
        /// The limit.
        limit: u32,
    },
    /// What a reference names or holds is refused.
    #[error("{0}")]
    Reference(String),
    /// The grammar could not be built.
    #[error("the grammar cannot be built")]
    Grammar(#[source] GrammarError),
    /// The machine could not be built.
    #[error("the machine cannot be built")]
    Machine(#[source] AutomatonError),
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest
        .map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

fn listed(names: &[String]) -> String {
    const MAX_LISTED: usize = 20;
    if names.is_empty() {
        return "the grammar has no rules".to_owned();
    }
    let mut text = "the grammar has ".to_owned();
    for (i, name) in names.iter().take(MAX_LISTED).enumerate() {
        text.push_str(if i == 0 { "`" } else { ", `" });
        text.push_str(name);
        text.push('`');
    }
    if let Some(more) = names.len().checked_sub(MAX_LISTED + 1) {
        let _ = write!(text, " and {} more", more + 1);
    }
    text
}

impl From<GrammarError> for GbnfErrorKind {
    fn from(error: GrammarError) -> GbnfErrorKind {
        GbnfErrorKind::Grammar(error)
    }
}

impl From<AutomatonError> for GbnfErrorKind {
    fn from(error: AutomatonError) -> GbnfErrorKind {
        GbnfErrorKind::Machine(error)
    }
}

impl From<String> for GbnfErrorKind {
    fn from(message: String) -> GbnfErrorKind {
        GbnfErrorKind::Syntax(message)
    }
}

impl From<&str> for GbnfErrorKind {
    fn from(message: &str) -> GbnfErrorKind {
        GbnfErrorKind::Syntax(message.to_owned())
    }
}

/// An error in a grammar, and its place.
///
/// It prints as one line of what and where, then the line of the grammar with
/// carets below.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GbnfError {
    // Boxed: results are returned all over the parser.
    inner: Box<Located>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Located {
    kind: GbnfErrorKind,
    span: Span,
    line: usize,
    column: usize,
    snippet: String,
    grammar: Option<String>,
}

impl GbnfError {
    pub(crate) fn new(
        text: &str,
        span: Span,
        kind: impl Into<GbnfErrorKind>,
    ) -> GbnfError {
        let (line, column) = span.place(text);
        let snippet = snippet(text, span, line);
        let kind = kind.into();
        let grammar = None;
        let inner = Located { kind, span, line, column, snippet, grammar };
        GbnfError { inner: Box::new(inner) }
    }

    /// Says in which of several grammars the error is.
    pub(crate) fn within(mut self, grammar: Option<&str>) -> GbnfError {
        self.inner.grammar = grammar.map(str::to_owned);
        self
    }

    /// Returns the name of the grammar that the error is in, if it is one
    /// that the grammar at hand refers to.
    pub fn grammar(&self) -> Option<&str> {
        self.inner.grammar.as_deref()
    }

    /// Returns what is wrong.
    pub fn kind(&self) -> &GbnfErrorKind {
        &self.inner.kind
    }

    /// Returns the part of the grammar that the error is about.
    pub fn span(&self) -> Span {
        self.inner.span
    }

    /// Returns the line, counted from 1.
    pub fn line(&self) -> usize {
        self.inner.line
    }

    /// Returns the column in characters, counted from 1.
    pub fn column(&self) -> usize {
        self.inner.column
    }

    /// Returns what is wrong and where, without the line of the grammar.
    pub fn message(&self) -> String {
        let Located { kind, line, column, grammar, .. } = &*self.inner;
        let within = within(grammar.as_deref());
        format!("{within}line {line}, column {column}: {kind}")
    }
}

impl fmt::Display for GbnfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.message(), self.inner.snippet)
    }
}

impl Error for GbnfError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.inner.kind.source()
    }
}

/// Names a grammar before a place in it.
fn within(grammar: Option<&str>) -> String {
    grammar
        .map_or_else(String::new, |grammar| format!("grammar `{grammar}`, "))
}

/// Shows the line of `span`, or the part of it around the span, with carets.
fn snippet(text: &str, span: Span, line_number: usize) -> String {
    let is_end = |c: char| c == '\n' || c == '\r';
    let at = span.start.min(text.len());
    let before = &text[..at];
    let start = before.rfind(is_end).map_or(0, |end| end + 1);
    let before = &text[start..at];
    let after = text[at..].split(is_end).next().unwrap_or("");
    let skipped = before.chars().count().saturating_sub(MAX_CONTEXT);
    let shown_before: String = before.chars().skip(skipped).collect();
    let shown_after: String = after.chars().take(MAX_CONTEXT).collect();
    let dots = if skipped > 0 { "..." } else { "" };
    let width = span.end.saturating_sub(at).min(after.len());
    let n_carets = after
        .char_indices()
        .take_while(|(i, _)| *i < width)
        .count()
        .clamp(1, MAX_CARETS);
    let gutter = line_number.to_string();
    let blank = " ".repeat(gutter.len());
    // Tabs stay tabs, so that the carets stand where the text does.
    let indent: String = dots
        .chars()
        .chain(shown_before.chars())
        .map(|c| if c == '\t' { '\t' } else { ' ' })
        .collect();
    let carets = "^".repeat(n_carets);
    format!(
        "{blank} |\n\
         {gutter} | {dots}{shown_before}{shown_after}\n\
         {blank} | {indent}{carets}"
    )
}

/// Something that is probably a mistake.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    /// What it is.
    pub kind: WarningKind,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The name of the grammar that it is in, if it is one that the grammar
    /// at hand refers to.
    pub grammar: Option<String>,
}

/// What a warning is about.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WarningKind {
    /// The start rule does not reach a rule.
    #[error("rule `{name}` is never used")]
    UnusedRule {
        /// The rule's name.
        name: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Warning { kind, line, column, grammar } = self;
        let within = within(grammar.as_deref());
        write!(f, "{within}line {line}, column {column}: {kind}")
    }
}
