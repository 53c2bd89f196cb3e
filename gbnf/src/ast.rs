//! The tree of a grammar, as it was written.

use std::fmt;

use maskwright_grammar_core::automaton::AtomToken;

use crate::error::{GbnfError, GbnfErrorKind, Span};

/// The index of a node in its [`Ast`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeId(pub(crate) usize);

/// A grammar of another kind, named or written out in a rule.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Reference {
    /// `%json` and a JSON Schema, as it was written.
    Json(String),
    /// `%regex` and a regular expression, without the slashes around it.
    Regex(String),
    /// `%grammar` and the name of a grammar that the caller supplies.
    Grammar(String),
}

/// A part of a rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Node {
    /// `""`, `()`, or an alternative without anything.
    Empty,
    /// `"..."`, not empty.
    Literal(String),
    /// `[...]` or `[^...]`.
    Class {
        /// Whether the class is of all other code points.
        negated: bool,
        /// The first and the last code point of each range, as written.
        ranges: Vec<(char, char)>,
    },
    /// `.`
    Any,
    /// The name of a rule.
    Name(String),
    /// `<text>`, `<[123]>`, or either behind `!`.
    Token {
        /// Whether it is any token but this.
        negated: bool,
        /// The token.
        token: AtomToken,
    },
    /// `%json`, `%regex` or `%grammar`.
    Reference(Reference),
    /// One after the other; at least two.
    Sequence(Vec<NodeId>),
    /// Any of these; at least two.
    Choice(Vec<NodeId>),
    /// `*`, `+`, `?` or braces behind something.
    Repeat {
        /// What is repeated.
        body: NodeId,
        /// How often at least.
        min: u32,
        /// How often at most.
        max: Option<u32>,
    },
}

/// A rule.
#[derive(Clone, Debug)]
pub struct RuleNode {
    /// The name.
    pub name: String,
    /// Where the name is.
    pub span: Span,
    /// What stands behind `::=`.
    pub body: NodeId,
}

/// A grammar as it was written.
///
/// The nodes live in one arena, parts before wholes. Two trees are equal if
/// they say the same in the same way, wherever it is in their texts. A tree
/// prints as a grammar that parses to an equal tree.
#[derive(Clone, Debug)]
pub struct Ast {
    pub(crate) text: String,
    pub(crate) rules: Vec<RuleNode>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) spans: Vec<Span>,
}

impl Ast {
    /// Returns the rules, in their order.
    pub fn rules(&self) -> &[RuleNode] {
        &self.rules
    }

    /// Returns one node.
    ///
    /// # Panics
    ///
    /// If `node` is of another tree.
    pub fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node.0]
    }

    /// Returns where one node is.
    ///
    /// # Panics
    ///
    /// If `node` is of another tree.
    pub fn span(&self, node: NodeId) -> Span {
        self.spans[node.0]
    }

    /// Returns the text that this tree was parsed from.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn error(
        &self,
        span: Span,
        kind: impl Into<GbnfErrorKind>,
    ) -> GbnfError {
        GbnfError::new(&self.text, span, kind)
    }
}

impl Eq for Ast {}

impl PartialEq for Ast {
    fn eq(&self, other: &Ast) -> bool {
        fn said(rule: &RuleNode) -> (&str, NodeId) {
            (&rule.name, rule.body)
        }
        self.nodes == other.nodes
            && self.rules.iter().map(said).eq(other.rules.iter().map(said))
    }
}

/// What is still to be printed.
enum Piece {
    Text(&'static str),
    Node(NodeId, Place),
    Bounds(u32, Option<u32>),
}

/// What stands around a node.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Place {
    Body,
    Alternative,
    Part,
    Repeated,
}

impl fmt::Display for Ast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rule in &self.rules {
            write!(f, "{} ::= ", rule.name)?;
            let mut todo = vec![Piece::Node(rule.body, Place::Body)];
            while let Some(piece) = todo.pop() {
                match piece {
                    Piece::Text(text) => f.write_str(text)?,
                    Piece::Bounds(min, max) => write_bounds(f, min, max)?,
                    Piece::Node(node, place) => {
                        self.write_node(f, node, place, &mut todo)?;
                    }
                }
            }
            f.write_str("\n")?;
        }
        Ok(())
    }
}

impl Ast {
    fn write_node(
        &self,
        f: &mut fmt::Formatter<'_>,
        node: NodeId,
        place: Place,
        todo: &mut Vec<Piece>,
    ) -> fmt::Result {
        let mut list = |parts: &[NodeId], separator, inner, bare: bool| {
            todo.extend((!bare).then_some(Piece::Text(")")));
            for (i, &part) in parts.iter().enumerate().rev() {
                todo.push(Piece::Node(part, inner));
                todo.extend((i > 0).then_some(Piece::Text(separator)));
            }
            todo.extend((!bare).then_some(Piece::Text("(")));
        };
        match self.node(node) {
            // `""` may carry no operator.
            Node::Empty if place == Place::Repeated => f.write_str("()"),
            Node::Empty => f.write_str("\"\""),
            Node::Literal(text) => {
                f.write_str("\"")?;
                text.chars().try_for_each(|c| write_char(f, c, '"'))?;
                f.write_str("\"")
            }
            Node::Class { negated, ranges } => {
                write_class(f, *negated, ranges)
            }
            Node::Any => f.write_str("."),
            Node::Name(name) => f.write_str(name),
            Node::Token { negated, token } => {
                f.write_str(if *negated { "!" } else { "" })?;
                match token {
                    AtomToken::Id(id) => write!(f, "<[{id}]>"),
                    AtomToken::Text(text) => f.write_str(text),
                }
            }
            Node::Reference(reference) => write!(f, "{reference}"),
            Node::Sequence(parts) => {
                let bare = matches!(place, Place::Body | Place::Alternative);
                list(parts, " ", Place::Part, bare);
                Ok(())
            }
            Node::Choice(parts) => {
                list(parts, " | ", Place::Alternative, place == Place::Body);
                Ok(())
            }
            Node::Repeat { body, min, max } => {
                todo.push(Piece::Bounds(*min, *max));
                todo.push(Piece::Node(*body, Place::Repeated));
                Ok(())
            }
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Json(schema) => write!(f, "%json {schema}"),
            Reference::Regex(regex) => write!(f, "%regex /{regex}/"),
            Reference::Grammar(name) => write!(f, "%grammar {name}"),
        }
    }
}

fn write_bounds(
    f: &mut fmt::Formatter<'_>,
    min: u32,
    max: Option<u32>,
) -> fmt::Result {
    match (min, max) {
        (0, None) => f.write_str("*"),
        (1, None) => f.write_str("+"),
        (0, Some(1)) => f.write_str("?"),
        (_, None) => write!(f, "{{{min},}}"),
        (_, Some(max)) if max == min => write!(f, "{{{min}}}"),
        (_, Some(max)) => write!(f, "{{{min},{max}}}"),
    }
}

fn write_class(
    f: &mut fmt::Formatter<'_>,
    negated: bool,
    ranges: &[(char, char)],
) -> fmt::Result {
    f.write_str(if negated { "[^" } else { "[" })?;
    for &(lo, hi) in ranges {
        write_char(f, lo, ']')?;
        if lo < hi {
            f.write_str("-")?;
            write_char(f, hi, ']')?;
        }
    }
    f.write_str("]")
}

/// Writes `c` inside a literal or a class that ends with `end`.
fn write_char(f: &mut fmt::Formatter<'_>, c: char, end: char) -> fmt::Result {
    match c {
        '\t' => f.write_str("\\t"),
        '\r' => f.write_str("\\r"),
        '\n' => f.write_str("\\n"),
        '\\' => f.write_str("\\\\"),
        '"' if end == '"' => f.write_str("\\\""),
        '[' | ']' | '^' | '-' if end == ']' => write!(f, "\\{c}"),
        ' '..='~' => write!(f, "{c}"),
        c if u32::from(c) <= 0xFF => write!(f, "\\x{:02X}", u32::from(c)),
        c if c.is_alphanumeric() => write!(f, "{c}"),
        c if u32::from(c) <= 0xFFFF => write!(f, "\\u{:04X}", u32::from(c)),
        c => write!(f, "\\U{:08X}", u32::from(c)),
    }
}
