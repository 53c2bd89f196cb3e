//! From tokens to a tree, without recursion.

use maskwright_grammar_core::util::FxHashMap;

use crate::{
    ast::{Ast, Node, NodeId, RuleNode},
    error::{GbnfError, GbnfErrorKind, Span},
    token::{Kind, Lexer, Token},
};

/// How deeply groups and operators may be nested.
pub const MAX_DEPTH: usize = 1000;

/// Parses a grammar.
///
/// # Errors
///
/// Fails when the text is not GBNF, when groups and operators are nested more
/// than [`MAX_DEPTH`] deep, or when a rule is defined twice. Names without a
/// rule are [`lower`](crate::lower())'s to find.
pub fn parse(text: &str) -> Result<Ast, GbnfError> {
    let mut parser = Parser {
        ast: Ast {
            text: text.to_owned(),
            rules: Vec::new(),
            nodes: Vec::new(),
            spans: Vec::new(),
        },
        depths: Vec::new(),
        lexer: Lexer::new(text),
        peeked: None,
    };
    let mut defined: FxHashMap<String, Span> = FxHashMap::default();
    while let Some(rule) = parser.rule()? {
        if let Some(first) = defined.insert(rule.name.clone(), rule.span) {
            let (line, column) = first.place(text);
            let (name, span) = (rule.name, rule.span);
            let kind = GbnfErrorKind::RedefinedRule { name, line, column };
            return Err(GbnfError::new(text, span, kind));
        }
        parser.ast.rules.push(rule);
    }
    Ok(parser.ast)
}

struct Parser<'a> {
    ast: Ast,
    /// How deep each node is.
    depths: Vec<usize>,
    lexer: Lexer<'a>,
    peeked: Option<Token>,
}

/// A group that is being read, or the body of a rule.
#[derive(Default)]
struct Group {
    /// Where the group begins.
    open: Span,
    alternatives: Vec<NodeId>,
    sequence: Vec<NodeId>,
    /// Whether the last of the sequence was written `""`.
    is_empty_literal: bool,
}

impl Parser<'_> {
    fn next(&mut self) -> Result<Token, GbnfError> {
        match self.peeked.take() {
            Some(token) => Ok(token),
            None => self.lexer.next(),
        }
    }

    fn peek(&mut self) -> Result<&Token, GbnfError> {
        let token = self.next()?;
        Ok(self.peeked.insert(token))
    }

    /// Takes every newline that comes next.
    fn skip_newlines(&mut self) -> Result<(), GbnfError> {
        while self.peek()?.kind == Kind::Newline {
            self.peeked = None;
        }
        Ok(())
    }

    fn error(&self, span: Span, kind: impl Into<GbnfErrorKind>) -> GbnfError {
        self.ast.error(span, kind)
    }

    /// Reads a rule, if there is one more.
    fn rule(&mut self) -> Result<Option<RuleNode>, GbnfError> {
        self.skip_newlines()?;
        let token = self.next()?;
        let span = token.span;
        let name = match token.kind {
            Kind::End => return Ok(None),
            Kind::Name(name) => name,
            _ => {
                let message = "expected a rule, as in `name ::= ...`; what \
                               a rule derives may go on in the next line \
                               inside `( )` or behind `|`";
                return Err(self.error(span, message));
            }
        };
        let define = self.next()?;
        if define.kind != Kind::Define {
            let message = format!("expected `::=` behind the name `{name}`");
            return Err(self.error(define.span, message));
        }
        self.skip_newlines()?;
        let body = self.body()?;
        Ok(Some(RuleNode { name, span, body }))
    }

    /// Reads what a rule derives, and the end of its line.
    fn body(&mut self) -> Result<NodeId, GbnfError> {
        let mut groups: Vec<Group> = Vec::new();
        let mut group = Group::default();
        loop {
            let Token { kind, span } = self.next()?;
            let is_nested = !groups.is_empty();
            match kind {
                Kind::Open => {
                    if groups.len() >= MAX_DEPTH {
                        return Err(self.too_deep(span));
                    }
                    let inner = Group { open: span, ..Group::default() };
                    groups.push(std::mem::replace(&mut group, inner));
                }
                Kind::Close => {
                    let Some(outer) = groups.pop() else {
                        let message = "`)` without its `(`";
                        return Err(self.error(span, message));
                    };
                    let inner = std::mem::replace(&mut group, outer);
                    let whole = Span::new(inner.open.start, span.end);
                    let node = self.close(inner, whole)?;
                    group.sequence.push(node);
                    group.is_empty_literal = false;
                }
                Kind::Bar => {
                    self.end_alternative(&mut group, span)?;
                    self.skip_newlines()?;
                }
                Kind::Repeat { min, max } => {
                    self.repeat(&mut group, min, max, span)?;
                }
                Kind::Newline if is_nested => {}
                Kind::Newline => {
                    self.skip_newlines()?;
                    if self.peek()?.kind != Kind::Bar {
                        return self.close(group, span);
                    }
                }
                Kind::End if is_nested => {
                    let message = "this group never ends; close it with `)`";
                    return Err(self.error(group.open, message));
                }
                Kind::End => return self.close(group, span),
                Kind::Define => {
                    return Err(self.misplaced_define(&group, is_nested, span));
                }
                kind => self.item(&mut group, kind, span)?,
            }
        }
    }

    /// Reads one terminal or name.
    fn item(
        &mut self,
        group: &mut Group,
        kind: Kind,
        span: Span,
    ) -> Result<(), GbnfError> {
        group.is_empty_literal = false;
        let node = match kind {
            Kind::Name(name) => Node::Name(name),
            Kind::Literal(text) if text.is_empty() => {
                group.is_empty_literal = true;
                Node::Empty
            }
            Kind::Literal(text) => Node::Literal(text),
            Kind::Class { negated, ranges } => Node::Class { negated, ranges },
            Kind::Any => Node::Any,
            Kind::Token { negated, token } => Node::Token { negated, token },
            Kind::Reference(reference) => Node::Reference(reference),
            Kind::Define
            | Kind::Bar
            | Kind::Open
            | Kind::Close
            | Kind::Repeat { .. }
            | Kind::Newline
            | Kind::End => return Ok(()),
        };
        let node = self.add(node, span)?;
        group.sequence.push(node);
        Ok(())
    }

    /// Puts an operator behind the last of the sequence.
    fn repeat(
        &mut self,
        group: &mut Group,
        min: u32,
        max: Option<u32>,
        span: Span,
    ) -> Result<(), GbnfError> {
        if group.is_empty_literal {
            let message = "the empty literal `\"\"` cannot be repeated; \
                           remove the operator";
            return Err(self.error(span, message));
        }
        let Some(body) = group.sequence.pop() else {
            let message = "nothing to repeat stands before this operator";
            return Err(self.error(span, message));
        };
        let whole = Span::new(self.ast.span(body).start, span.end);
        let node = self.add(Node::Repeat { body, min, max }, whole)?;
        group.sequence.push(node);
        Ok(())
    }

    fn end_alternative(
        &mut self,
        group: &mut Group,
        at: Span,
    ) -> Result<(), GbnfError> {
        group.is_empty_literal = false;
        let sequence = std::mem::take(&mut group.sequence);
        let node = match *sequence {
            [] => self.add(Node::Empty, Span::new(at.start, at.start))?,
            [only] => only,
            [first, .., last] => {
                let span = Span::new(
                    self.ast.span(first).start,
                    self.ast.span(last).end,
                );
                self.add(Node::Sequence(sequence), span)?
            }
        };
        group.alternatives.push(node);
        Ok(())
    }

    fn close(
        &mut self,
        mut group: Group,
        span: Span,
    ) -> Result<NodeId, GbnfError> {
        let end = Span::new(span.end, span.end);
        self.end_alternative(&mut group, end)?;
        match *group.alternatives {
            [only] => Ok(only),
            _ => self.add(Node::Choice(group.alternatives), span),
        }
    }

    fn add(&mut self, node: Node, span: Span) -> Result<NodeId, GbnfError> {
        let depth = |id: &NodeId| self.depths[id.0];
        let inner = match &node {
            Node::Sequence(parts) | Node::Choice(parts) => {
                parts.iter().map(depth).max()
            }
            Node::Repeat { body, .. } => Some(depth(body)),
            Node::Empty
            | Node::Literal(_)
            | Node::Class { .. }
            | Node::Any
            | Node::Name(_)
            | Node::Token { .. }
            | Node::Reference(_) => None,
        };
        let depth = inner.map_or(0, |depth| depth + 1);
        // A group is up to three deep: its choice, a sequence, an operator.
        if depth > 3 * MAX_DEPTH {
            return Err(self.too_deep(span));
        }
        let id = NodeId(self.ast.nodes.len());
        self.ast.nodes.push(node);
        self.ast.spans.push(span);
        self.depths.push(depth);
        Ok(id)
    }

    fn too_deep(&self, span: Span) -> GbnfError {
        let limit = MAX_DEPTH;
        self.error(span, GbnfErrorKind::NestingTooDeep { limit })
    }

    /// Explains a `::=` inside what a rule derives.
    fn misplaced_define(
        &self,
        group: &Group,
        is_nested: bool,
        span: Span,
    ) -> GbnfError {
        if is_nested {
            let (line, column) = group.open.place(&self.ast.text);
            let message = format!(
                "`::=` inside a group; close the group that was opened at \
                 line {line}, column {column} with `)`"
            );
            return self.error(span, message);
        }
        let message = "`::=` inside a rule; begin each rule on a line of \
                       its own, and write `\"\"` for a rule or an \
                       alternative without anything";
        self.error(span, message)
    }
}
