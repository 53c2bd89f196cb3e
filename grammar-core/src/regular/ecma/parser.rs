//! The pattern grammar: alternatives, groups, quantifiers, classes.

use std::collections::BTreeMap;

use super::Reading;
use super::backtrack::{Mark, Parsed};
use super::escape::{self, Escape};
use super::property::Properties;
use crate::regular::class::CharSet;
use crate::regular::error::{PatternError, PatternErrorKind};
use crate::regular::limits::{LimitError, LimitKind, Limits};
use crate::regular::regex::{Op, Regex};
use crate::regular::rust::ascii_word;

/// Parses a pattern to the expression that it matches somewhere in a text.
pub(super) fn parse(
    pattern: &str,
    limits: &Limits,
    reading: Reading,
) -> Result<Regex, PatternError> {
    let mut parser = Parser::new(pattern, limits, reading);
    parser.parse()?;
    Ok(Regex::from_ops(parser.ops))
}

/// Parses a pattern with its backreferences.
pub(super) fn parse_references(
    pattern: &str,
    limits: &Limits,
) -> Result<Parsed, PatternError> {
    let mut parser = Parser::new(pattern, limits, Reading::Referring);
    parser.parse()?;
    let Parser { ops, marks, n_groups, .. } = parser;
    Ok(Parsed { ops, marks, n_groups: group_number(n_groups) })
}

/// There are fewer groups than bytes of a pattern.
fn group_number(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A pattern and how far it has been read.
pub(super) struct Input<'p> {
    pub(super) text: &'p str,
    pub(super) at: usize,
    pub(super) reading: Reading,
}

impl<'p> Input<'p> {
    pub(super) fn rest(&self) -> &'p str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }
}

pub(super) fn syntax<T>(
    offset: usize,
    message: impl Into<String>,
) -> Result<T, PatternError> {
    Err(PatternError::new(PatternErrorKind::Syntax, offset, message))
}

pub(super) fn refuse<T>(
    kind: PatternErrorKind,
    offset: usize,
    message: impl Into<String>,
) -> Result<T, PatternError> {
    Err(PatternError::new(kind, offset, message))
}

#[derive(Clone, Copy)]
enum Kind {
    Group,
    /// A group that captures, and its number.
    Capture(u64),
    Look {
        behind: bool,
        negative: bool,
    },
}

/// An open group.
struct Frame {
    kind: Kind,
    opened_at: usize,
    /// Complete alternatives.
    n_alternatives: u32,
    /// Terms of the alternative that is being read.
    n_terms: u32,
}

impl Frame {
    fn new(kind: Kind, opened_at: usize) -> Frame {
        Frame { kind, opened_at, n_alternatives: 0, n_terms: 0 }
    }
}

struct Parser<'p> {
    input: Input<'p>,
    limits: &'p Limits,
    ops: Vec<Op>,
    /// Never empty until the pattern ends.
    stack: Vec<Frame>,
    /// The names of groups, and their numbers.
    names: Vec<(&'p str, u64)>,
    /// The number of groups that capture.
    n_groups: u64,
    /// Where groups are referred to: the place, the operation, the group.
    /// Empty where references are refused.
    references: Vec<(usize, usize, Reference<'p>)>,
    /// What some of the operations are besides.
    marks: BTreeMap<usize, Mark>,
    properties: Properties,
}

/// What a backreference refers to.
#[derive(Clone, Copy)]
enum Reference<'p> {
    Number(u64),
    Name(&'p str),
}

impl<'p> Parser<'p> {
    fn new(
        pattern: &'p str,
        limits: &'p Limits,
        reading: Reading,
    ) -> Parser<'p> {
        Parser {
            input: Input { text: pattern, at: 0, reading },
            limits,
            ops: Vec::new(),
            stack: vec![Frame::new(Kind::Group, 0)],
            names: Vec::new(),
            n_groups: 0,
            references: Vec::new(),
            marks: BTreeMap::new(),
            properties: Properties::default(),
        }
    }

    fn parse(&mut self) -> Result<(), PatternError> {
        while let Some(first) = self.input.peek() {
            self.term(first)?;
            let (limit, given) = (self.limits.max_terms(), self.ops.len());
            if given > limit {
                let error = LimitError::new(LimitKind::Terms, limit, given);
                return Err(PatternError::limit(self.input.at, error));
            }
        }
        self.check_references()?;
        self.finish()
    }

    /// Reads a backreference, backslash included, if one comes.
    fn reference(&mut self) -> Result<bool, PatternError> {
        let at = self.input.at;
        if self.input.eat("\\k<") {
            let name = self.name(at)?;
            let op = self.ops.len();
            self.references.push((at, op, Reference::Name(name)));
            return Ok(true);
        }
        let digits = self.input.rest().strip_prefix('\\');
        if !digits
            .is_some_and(|rest| rest.starts_with(|c| c > '0' && c <= '9'))
        {
            return Ok(false);
        }
        self.input.next();
        let number = self.number().unwrap_or_default();
        let op = self.ops.len();
        self.references.push((at, op, Reference::Number(number)));
        Ok(true)
    }

    /// Finds the groups of all references.
    fn check_references(&mut self) -> Result<(), PatternError> {
        for &(at, op, reference) in &self.references {
            match reference {
                Reference::Number(number) if number > self.n_groups => {
                    let n_groups = self.n_groups;
                    return syntax(
                        at,
                        format!(
                            "the backreference `\\{number}` refers to no group: \
                             there are {n_groups}"
                        ),
                    );
                }
                Reference::Number(number) => {
                    let mark = Mark::Reference(group_number(number));
                    self.marks.insert(op, mark);
                }
                Reference::Name(name) => {
                    let mut names = self.names.iter();
                    let found = names.find(|(other, _)| *other == name);
                    let Some(&(_, number)) = found else {
                        return syntax(
                            at,
                            format!(
                                "the backreference `\\k<{name}>` refers to no \
                                 group"
                            ),
                        );
                    };
                    let mark = Mark::Reference(group_number(number));
                    self.marks.insert(op, mark);
                }
            }
        }
        Ok(())
    }

    fn term(&mut self, first: char) -> Result<(), PatternError> {
        let at = self.input.at;
        match first {
            '|' => {
                self.input.next();
                self.close_alternative();
            }
            '(' => return self.open_group(at),
            ')' => return self.close_group(at),
            '^' => {
                self.input.next();
                self.push_assertion(Op::Start)?;
            }
            '$' => {
                self.input.next();
                self.push_assertion(Op::End)?;
            }
            '[' => {
                let set = self.class()?;
                self.push_atom(Op::Class(set))?;
            }
            '.' => {
                self.input.next();
                self.push_atom(Op::Class(escape::dot()))?;
            }
            '\\' => self.escape_term(at)?,
            '*' | '+' | '?' => {
                return syntax(
                    at,
                    format!(
                        "the quantifier `{first}` has nothing to repeat; \
                         escape it as `\\{first}` to mean the character"
                    ),
                );
            }
            '{' | '}' | ']' => self.lone(first, at)?,
            _ => {
                self.input.next();
                self.push_atom(Op::Class(CharSet::single(first)))?;
            }
        }
        Ok(())
    }

    /// Reads a brace or bracket that belongs to nothing.
    fn lone(&mut self, first: char, at: usize) -> Result<(), PatternError> {
        if self.input.reading.is_lenient() {
            match Braces::of(self.input.rest()) {
                Braces::Text => {
                    self.input.next();
                    return self.push_atom(Op::Class(CharSet::single(first)));
                }
                Braces::Count => {
                    return syntax(
                        at,
                        "this count has nothing to repeat; escape its brace \
                         as `\\{` to mean the character",
                    );
                }
                Braces::NoLeast => return no_least(at),
            }
        }
        syntax(
            at,
            format!(
                "a lone `{first}` is not allowed; escape it as `\\{first}` to \
                 mean the character"
            ),
        )
    }

    /// Whether a `{` comes next that is a character.
    fn brace_is_text(&self) -> bool {
        self.input.reading.is_lenient()
            && Braces::of(self.input.rest()) == Braces::Text
    }

    fn frame(&mut self) -> &mut Frame {
        self.stack.last_mut().expect("the outermost frame is never popped")
    }

    fn close_alternative(&mut self) {
        let frame = self.frame();
        let n_terms = std::mem::take(&mut frame.n_terms);
        frame.n_alternatives += 1;
        self.ops.push(Op::Concat(n_terms));
    }

    fn push_atom(&mut self, op: Op) -> Result<(), PatternError> {
        self.ops.push(op);
        self.frame().n_terms += 1;
        self.quantifier()
    }

    fn push_assertion(&mut self, op: Op) -> Result<(), PatternError> {
        self.ops.push(op);
        self.frame().n_terms += 1;
        self.no_quantifier()
    }

    fn open_group(&mut self, at: usize) -> Result<(), PatternError> {
        self.input.next();
        let look = |behind, negative| Kind::Look { behind, negative };
        let kind = if self.input.eat("?:") {
            Kind::Group
        } else if self.input.eat("?=") {
            look(false, false)
        } else if self.input.eat("?!") {
            look(false, true)
        } else if self.input.eat("?<=") {
            look(true, false)
        } else if self.input.eat("?<!") {
            look(true, true)
        } else if self.input.eat("?<") {
            self.group_name(at)?;
            Kind::Capture(self.n_groups)
        } else if self.input.rest().starts_with('?') {
            return unknown_group(self.input.rest(), at);
        } else {
            self.n_groups += 1;
            Kind::Capture(self.n_groups)
        };
        let limit = self.limits.max_nesting();
        if self.stack.len() > limit {
            let depth = self.stack.len();
            let error = LimitError::new(LimitKind::Nesting, limit, depth);
            return Err(PatternError::limit(at, error));
        }
        self.stack.push(Frame::new(kind, at));
        Ok(())
    }

    fn group_name(&mut self, at: usize) -> Result<(), PatternError> {
        let name = self.name(at)?;
        if self.names.iter().any(|(other, _)| *other == name) {
            return syntax(
                at,
                format!("the group name `{name}` is used twice; rename one"),
            );
        }
        self.n_groups += 1;
        self.names.push((name, self.n_groups));
        Ok(())
    }

    /// Reads the name of a group and the `>` after it.
    fn name(&mut self, at: usize) -> Result<&'p str, PatternError> {
        let rest = self.input.rest();
        let Some(end) = rest.find('>') else {
            return syntax(at, "the name of this group has no closing `>`");
        };
        let name = &rest[..end];
        let is_start = |c: char| c.is_alphabetic() || c == '_' || c == '$';
        let is_part = |c: char| is_start(c) || c.is_alphanumeric();
        if !name.starts_with(is_start) || !name.chars().all(is_part) {
            return syntax(
                at,
                format!(
                    "`{name}` is not a group name; use letters, digits, `_` \
                     and `$`, and begin with no digit"
                ),
            );
        }
        self.input.at += end + 1;
        Ok(name)
    }

    fn close_group(&mut self, at: usize) -> Result<(), PatternError> {
        if self.stack.len() == 1 {
            return syntax(
                at,
                "this `)` closes no group; escape it as `\\)` to mean the \
                 character",
            );
        }
        self.input.next();
        self.close_alternative();
        let frame = self.stack.pop().expect("there are two frames or more");
        self.ops.push(Op::Alternate(frame.n_alternatives));
        match frame.kind {
            Kind::Group | Kind::Capture(_) => {
                if let Kind::Capture(number) = frame.kind {
                    let mark = Mark::Capture(group_number(number));
                    self.marks.insert(self.ops.len() - 1, mark);
                }
                self.frame().n_terms += 1;
                self.quantifier()
            }
            Kind::Look { behind, negative } => {
                self.push_assertion(Op::Look { behind, negative })
            }
        }
    }

    fn finish(&mut self) -> Result<(), PatternError> {
        if self.stack.len() > 1 {
            let at = self.frame().opened_at;
            return syntax(
                at,
                "this group is not closed; add `)`, or escape it as `\\(` to \
                 mean the character",
            );
        }
        self.close_alternative();
        let n_alternatives = self.frame().n_alternatives;
        self.ops.push(Op::Alternate(n_alternatives));
        Ok(())
    }

    /// Reads the quantifier after an atom, if there is one.
    fn quantifier(&mut self) -> Result<(), PatternError> {
        let at = self.input.at;
        let (min, max) = match self.input.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') if !self.brace_is_text() => {
                let (min, max) = self.counts(at)?;
                self.ops.push(Op::Repeat { min, max });
                return self.after_quantifier();
            }
            _ => return Ok(()),
        };
        self.input.next();
        self.ops.push(Op::Repeat { min, max });
        self.after_quantifier()
    }

    /// A `?` makes a quantifier lazy, which matches the same texts.
    fn after_quantifier(&mut self) -> Result<(), PatternError> {
        if self.input.eat("?") {
            self.marks.insert(self.ops.len() - 1, Mark::Lazy);
        }
        let at = self.input.at;
        match self.input.peek() {
            Some('+') => refuse(
                PatternErrorKind::Atomic,
                at,
                "possessive quantifiers are not in ECMA-262; remove the `+`",
            ),
            Some('{') if self.brace_is_text() => Ok(()),
            Some(next @ ('*' | '?' | '{')) => syntax(
                at,
                format!(
                    "the quantifier `{next}` follows another one; put what \
                     it repeats in a group"
                ),
            ),
            _ => Ok(()),
        }
    }

    fn no_quantifier(&mut self) -> Result<(), PatternError> {
        match self.input.peek() {
            Some('{') if self.brace_is_text() => Ok(()),
            Some(next @ ('*' | '+' | '?' | '{')) => syntax(
                self.input.at,
                format!(
                    "the quantifier `{next}` follows an assertion; remove it"
                ),
            ),
            _ => Ok(()),
        }
    }

    /// Reads `{m}`, `{m,}` or `{m,n}`.
    fn counts(
        &mut self,
        at: usize,
    ) -> Result<(u32, Option<u32>), PatternError> {
        self.input.next();
        if self.input.reading.is_lenient()
            && self.input.rest().starts_with(',')
        {
            return no_least(at);
        }
        let Some(min) = self.number() else {
            return syntax(
                at,
                "a lone `{` is not allowed; escape it as `\\{` to mean the \
                 character",
            );
        };
        let max = if self.input.eat(",") {
            if self.input.rest().starts_with('}') {
                None
            } else {
                match self.number() {
                    Some(max) => Some(max),
                    None => return syntax(at, "this count is not a number"),
                }
            }
        } else {
            Some(min)
        };
        if !self.input.eat("}") {
            return syntax(at, "this count has no closing `}`");
        }
        if max.is_some_and(|max| max < min) {
            return syntax(
                at,
                "the numbers of this count are out of order; the smaller \
                 one comes first",
            );
        }
        let limit = u64::from(u32::MAX - 1);
        if min > limit {
            return refuse(
                PatternErrorKind::Limit,
                at,
                format!("the count {min} is over the limit of {limit}"),
            );
        }
        // No text reaches an upper bound over the limit.
        let max = max.filter(|&max| max <= limit);
        let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX - 1);
        Ok((narrow(min), max.map(narrow)))
    }

    /// Reads digits. Values that are too large saturate.
    fn number(&mut self) -> Option<u64> {
        let rest = self.input.rest();
        let width = rest.bytes().take_while(u8::is_ascii_digit).count();
        let digits = &rest[..width];
        self.input.at += width;
        if digits.is_empty() {
            return None;
        }
        Some(digits.parse().unwrap_or(u64::MAX))
    }

    fn escape_term(&mut self, at: usize) -> Result<(), PatternError> {
        let boundary =
            |negative| Op::Boundary { word: ascii_word(), negative };
        if self.input.eat("\\b") {
            return self.push_assertion(boundary(false));
        }
        if self.input.eat("\\B") {
            return self.push_assertion(boundary(true));
        }
        if self.input.reading.has_references() && self.reference()? {
            return self.push_atom(Op::Class(CharSet::empty()));
        }
        let escape =
            escape::read(&mut self.input, &mut self.properties, false, at)?;
        self.push_atom(Op::Class(escape.into_set()))
    }

    /// Reads a class with its brackets.
    fn class(&mut self) -> Result<CharSet, PatternError> {
        let opened_at = self.input.at;
        self.input.next();
        let negated = self.input.eat("^");
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        loop {
            if self.input.eat("]") {
                break;
            }
            let at = self.input.at;
            let first = self.class_atom(opened_at)?;
            let is_range = self.input.rest().starts_with('-')
                && !self.input.rest().starts_with("-]");
            if !is_range {
                first.add_to(&mut ranges);
                continue;
            }
            self.input.next();
            let last = self.class_atom(opened_at)?;
            let (Escape::Character(lo), Escape::Character(hi)) =
                (&first, &last)
            else {
                if self.input.reading == Reading::Strict {
                    return syntax(
                        at,
                        "a class escape is no end of a range; escape the \
                         hyphen as `\\-` to mean the character",
                    );
                }
                first.add_to(&mut ranges);
                ranges.push((u32::from('-'), u32::from('-')));
                last.add_to(&mut ranges);
                continue;
            };
            if lo > hi {
                return syntax(
                    at,
                    "the ends of this range are out of order; the smaller \
                     one comes first",
                );
            }
            ranges.push((*lo, *hi));
        }
        let set = CharSet::new(ranges);
        Ok(if negated { set.complement() } else { set })
    }

    fn class_atom(
        &mut self,
        opened_at: usize,
    ) -> Result<Escape, PatternError> {
        let at = self.input.at;
        match self.input.peek() {
            None => syntax(
                opened_at,
                "this class is not closed; add `]`, or escape it as `\\[` to \
                 mean the character",
            ),
            Some('\\') => {
                escape::read(&mut self.input, &mut self.properties, true, at)
            }
            Some(character) => {
                self.input.next();
                Ok(Escape::Character(u32::from(character)))
            }
        }
    }
}

/// What a `{`, `}` or `]` that stands alone is, by Annex B.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Braces {
    /// A character.
    Text,
    /// `{m}`, `{m,}` or `{m,n}`.
    Count,
    /// `{,n}`, a character there and a count in other dialects.
    NoLeast,
}

impl Braces {
    fn of(rest: &str) -> Braces {
        let Some(inner) = rest.strip_prefix('{') else { return Braces::Text };
        let is_digit = |c: char| c.is_ascii_digit();
        let after = inner.trim_start_matches(is_digit);
        let has_least = after.len() < inner.len();
        let (after, has_comma, has_most) = match after.strip_prefix(',') {
            Some(most) => {
                let after = most.trim_start_matches(is_digit);
                (after, true, after.len() < most.len())
            }
            None => (after, false, false),
        };
        match (after.starts_with('}'), has_least) {
            (true, true) => Braces::Count,
            (true, false) if has_comma && has_most => Braces::NoLeast,
            _ => Braces::Text,
        }
    }
}

fn no_least<T>(at: usize) -> Result<T, PatternError> {
    syntax(
        at,
        "a count without its smaller number is not in ECMA-262; write it as \
         `{0,n}`",
    )
}

fn unknown_group(rest: &str, at: usize) -> Result<(), PatternError> {
    if rest.starts_with("?>") {
        return refuse(
            PatternErrorKind::Atomic,
            at,
            "atomic groups `(?>...)` are not in ECMA-262; use `(?:...)`",
        );
    }
    if rest.starts_with("?P<") {
        return refuse(
            PatternErrorKind::Unsupported,
            at,
            "`(?P<name>...)` is not in ECMA-262; use `(?<name>...)`",
        );
    }
    if rest.starts_with("?(") {
        return refuse(
            PatternErrorKind::Atomic,
            at,
            "conditional groups are not in ECMA-262; write both cases out",
        );
    }
    if rest.starts_with("?#") {
        return refuse(
            PatternErrorKind::Unsupported,
            at,
            "comments `(?#...)` are not in ECMA-262; remove it",
        );
    }
    let is_flag = |c: char| c.is_ascii_alphabetic() || c == '-' || c == '^';
    if rest[1..].starts_with(is_flag) {
        return refuse(
            PatternErrorKind::Unsupported,
            at,
            "flags inside a pattern, such as `(?i)`, are not supported; \
             write both cases out, as in `[aA]`",
        );
    }
    syntax(at, "`(?` begins no group of ECMA-262; escape one of the two")
}
