//! Regular expressions as values.
//!
//! A [`Regex`] denotes a set of strings over Unicode scalar values. It is
//! kept as a list of operations in postfix order, so that nothing here
//! recurses on the depth of an expression: not parsing, not combining, not
//! dropping.

use std::sync::Arc;

use super::class::CharSet;

/// One postfix operation.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum Op {
    Class(CharSet),
    Literal(Arc<str>),
    /// One word of a sorted list without duplicates.
    Words(Arc<[Box<str>]>),
    Concat(u32),
    Alternate(u32),
    Repeat {
        min: u32,
        max: Option<u32>,
    },
    Intersect(u32),
    Complement,
    Look {
        behind: bool,
        negative: bool,
    },
    Start,
    End,
    Boundary {
        word: CharSet,
        negative: bool,
    },
    /// The operand that was made by the operation so many places before.
    Again(u32),
    /// What an expression that is under way will have here.
    Part(usize),
}

impl Op {
    /// How many operands it is applied to.
    pub(super) fn n_operands(&self) -> usize {
        match *self {
            Op::Class(_)
            | Op::Literal(_)
            | Op::Words(_)
            | Op::Start
            | Op::End
            | Op::Boundary { .. }
            | Op::Again(_)
            | Op::Part(_) => 0,
            Op::Repeat { .. } | Op::Complement | Op::Look { .. } => 1,
            Op::Concat(n) | Op::Alternate(n) | Op::Intersect(n) => n as usize,
        }
    }
}

/// A regular expression: literals, classes, concatenation, alternation,
/// counted repetition, look-around, intersection and complement.
///
/// It is built by the parsers ([`Regex::rust`], [`Regex::ecma`]) or by the
/// functions below, and made into a [`Language`](super::Language) to be
/// asked anything. Cloning is cheap.
///
/// # Example
///
/// ```
/// use maskwright_grammar_core::regular::{Language, Limits, Regex};
///
/// let key = Regex::rust("[a-z]+")?.and(&Regex::literals(["if"]).not());
/// let language = Language::new(&key, Limits::new())?;
/// assert!(language.is_match("iff")?);
/// assert!(!language.is_match("if")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Regex {
    ops: Arc<[Op]>,
}

impl Regex {
    pub(super) fn from_ops(ops: Vec<Op>) -> Regex {
        Regex { ops: ops.into() }
    }

    pub(super) fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// No string at all.
    pub fn empty() -> Regex {
        Regex::from_ops(vec![Op::Alternate(0)])
    }

    /// Only the empty string.
    pub fn epsilon() -> Regex {
        Regex::from_ops(vec![Op::Concat(0)])
    }

    /// Every string.
    pub fn any_string() -> Regex {
        Regex::class(CharSet::any()).repeat(0, None)
    }

    /// One character of a set.
    pub fn class(set: CharSet) -> Regex {
        Regex::from_ops(vec![Op::Class(set)])
    }

    /// Exactly this text.
    pub fn literal(text: &str) -> Regex {
        Regex::from_ops(vec![Op::Literal(text.into())])
    }

    /// One of these texts. Thousands cost little more than sorting them.
    pub fn literals<S: AsRef<str>>(
        texts: impl IntoIterator<Item = S>,
    ) -> Regex {
        let mut words: Vec<Box<str>> =
            texts.into_iter().map(|text| text.as_ref().into()).collect();
        words.sort_unstable();
        words.dedup();
        Regex::from_ops(vec![Op::Words(words.into())])
    }

    /// These expressions, one after the other.
    pub fn concat(parts: &[Regex]) -> Regex {
        Regex::combine(parts, Op::Concat)
    }

    /// Any of these expressions.
    pub fn alternate(parts: &[Regex]) -> Regex {
        Regex::combine(parts, Op::Alternate)
    }

    /// All of these expressions at once.
    pub fn intersect(parts: &[Regex]) -> Regex {
        Regex::combine(parts, Op::Intersect)
    }

    /// Strings that are in both.
    #[must_use]
    pub fn and(&self, other: &Regex) -> Regex {
        Regex::intersect(&[self.clone(), other.clone()])
    }

    /// Strings that are in either.
    #[must_use]
    pub fn or(&self, other: &Regex) -> Regex {
        Regex::alternate(&[self.clone(), other.clone()])
    }

    /// Strings that are not in this.
    #[must_use]
    pub fn not(&self) -> Regex {
        self.with(Op::Complement)
    }

    /// Between `min` and `max` times this. The count is kept as a number:
    /// `repeat(0, Some(1_000_000_000))` costs what `repeat(0, Some(2))` does.
    #[must_use]
    pub fn repeat(&self, min: u32, max: Option<u32>) -> Regex {
        self.with(Op::Repeat { min, max })
    }

    /// Strings of any characters with a length in `min..=max` code points.
    pub fn length(min: u32, max: Option<u32>) -> Regex {
        Regex::class(CharSet::any()).repeat(min, max)
    }

    /// Strings that hold this somewhere: the meaning of a pattern in JSON
    /// Schema.
    #[must_use]
    pub fn search(&self) -> Regex {
        let any = Regex::any_string();
        Regex::concat(&[any.clone(), self.clone(), any])
    }

    fn combine(parts: &[Regex], op: fn(u32) -> Op) -> Regex {
        let n_ops: usize = parts.iter().map(|part| part.ops.len()).sum();
        let mut ops = Vec::with_capacity(n_ops + 1);
        for part in parts {
            ops.extend_from_slice(&part.ops);
        }
        // More parts than `u32::MAX` do not fit in memory.
        ops.push(op(u32::try_from(parts.len()).unwrap_or(u32::MAX)));
        Regex::from_ops(ops)
    }

    fn with(&self, op: Op) -> Regex {
        let mut ops = Vec::with_capacity(self.ops.len() + 1);
        ops.extend_from_slice(&self.ops);
        ops.push(op);
        Regex::from_ops(ops)
    }
}
