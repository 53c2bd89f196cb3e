//! From a [`Regex`] to the terms of a language.

use super::anchors::{drop_anchors, flat};
use super::class::CharSet;
use super::error::LanguageError;
use super::expand::Algebra;
use super::limits::{LimitError, LimitKind, Limits};
use super::regex::{Op, Regex};
use super::term::{EMPTY, EPSILON, Node, NodeId, UNBOUNDED};

/// An alternation with this many literals or more keeps them as a list.
const MIN_WORDS: usize = 4;

/// An operand: literals are kept as text, since an alternation of many
/// becomes one node.
#[derive(Clone)]
enum Operand {
    Node(NodeId),
    Literal(String),
}

/// Interns a whole expression and returns its root.
pub(super) fn compile(
    regex: &Regex,
    limits: &Limits,
    algebra: &mut Algebra,
) -> Result<NodeId, LanguageError> {
    let n_terms = regex.ops().iter().map(op_size).sum();
    if n_terms > limits.max_terms() {
        let limit = limits.max_terms();
        return Err(LimitError::new(LimitKind::Terms, limit, n_terms).into());
    }
    let mut repeated = Repeated::of(regex.ops());
    let mut compiler = Compiler { algebra, stack: Vec::new() };
    for (at, op) in regex.ops().iter().enumerate() {
        match *op {
            Op::Again(back) => compiler.stack.extend(repeated.get(at, back)),
            _ => compiler.apply(op),
        }
        repeated.note(at, compiler.stack.last());
    }
    let root = compiler.pop();
    let root = compiler.node(root);
    check_inner(root, algebra)?;
    Ok(drop_anchors(&mut algebra.terms, root))
}

/// Lists are charged for elsewhere: nothing walks them as a whole.
fn op_size(op: &Op) -> usize {
    match op {
        Op::Literal(text) => text.len().max(1),
        Op::Words(_)
        | Op::Class(_)
        | Op::Concat(_)
        | Op::Alternate(_)
        | Op::Repeat { .. }
        | Op::Intersect(_)
        | Op::Complement
        | Op::Look { .. }
        | Op::Start
        | Op::End
        | Op::Boundary { .. }
        | Op::Again(_)
        | Op::Part(_) => 1,
    }
}

/// The operands that are used again.
struct Repeated {
    /// The operations that make them, in order.
    at: Vec<usize>,
    /// What the first of those have made.
    made: Vec<Operand>,
}

impl Repeated {
    fn of(ops: &[Op]) -> Repeated {
        let again = ops.iter().enumerate().filter_map(|(at, op)| match *op {
            Op::Again(back) => at.checked_sub(back as usize),
            _ => None,
        });
        let mut at: Vec<usize> = again.collect();
        at.sort_unstable();
        at.dedup();
        Repeated { made: Vec::with_capacity(at.len()), at }
    }

    fn get(&self, at: usize, back: u32) -> Option<Operand> {
        let made_at = at.checked_sub(back as usize)?;
        let index = self.at.binary_search(&made_at).ok()?;
        self.made.get(index).cloned()
    }

    /// Keeps what an operation has made, if it is used again. To be called
    /// after each, in order.
    fn note(&mut self, at: usize, operand: Option<&Operand>) {
        if self.at.get(self.made.len()) == Some(&at) {
            let empty = Operand::Node(EMPTY);
            self.made.push(operand.cloned().unwrap_or(empty));
        }
    }
}

struct Compiler<'a> {
    algebra: &'a mut Algebra,
    stack: Vec<Operand>,
}

impl Compiler<'_> {
    fn pop(&mut self) -> Operand {
        // Postfix order guarantees an operand; an empty stack means that
        // the expression had none, which is the empty string.
        self.stack.pop().unwrap_or(Operand::Node(EPSILON))
    }

    fn pop_node(&mut self) -> NodeId {
        let operand = self.pop();
        self.node(operand)
    }

    fn pop_many(&mut self, n: u32) -> Vec<Operand> {
        let at = self.stack.len().saturating_sub(n as usize);
        self.stack.split_off(at)
    }

    fn push(&mut self, node: NodeId) {
        self.stack.push(Operand::Node(node));
    }

    fn node(&mut self, operand: Operand) -> NodeId {
        match operand {
            Operand::Node(node) => node,
            Operand::Literal(text) => self.literal(&text),
        }
    }

    fn literal(&mut self, text: &str) -> NodeId {
        let mut node = EPSILON;
        for character in text.chars().rev() {
            let first = self.class(CharSet::single(character));
            node = self.algebra.terms.cat(first, node);
        }
        node
    }

    fn class(&mut self, set: CharSet) -> NodeId {
        if set.is_empty() {
            return EMPTY;
        }
        let class = self.algebra.terms.class(set);
        self.algebra.terms.node(Node::Class(class))
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Class(set) => {
                if let Some(character) = set.as_single() {
                    self.stack.push(Operand::Literal(character.into()));
                } else {
                    let node = self.class(set.clone());
                    self.push(node);
                }
            }
            Op::Literal(text) => {
                self.stack.push(Operand::Literal(text.to_string()));
            }
            Op::Words(words) => {
                let node = self.words(words.clone());
                self.push(node);
            }
            Op::Concat(n) => self.concat(*n),
            Op::Alternate(n) => self.alternate(*n),
            Op::Repeat { min, max } => {
                let body = self.pop_node();
                let max = max.unwrap_or(UNBOUNDED);
                let node = if *min > max {
                    EMPTY
                } else {
                    self.algebra.terms.repeat(body, *min, max)
                };
                self.push(node);
            }
            Op::Intersect(n) => {
                let parts = self.pop_many(*n);
                let parts: Vec<NodeId> =
                    parts.into_iter().map(|part| self.node(part)).collect();
                let node = self.algebra.terms.intersect(&parts);
                self.push(node);
            }
            Op::Complement => {
                let body = self.pop_node();
                let node = self.algebra.terms.complement(body);
                self.push(node);
            }
            Op::Look { behind, negative } => {
                let node = self.look(*behind, *negative);
                self.push(node);
            }
            Op::Start => {
                let node = self.algebra.terms.node(Node::Start);
                self.push(node);
            }
            Op::End => {
                let node = self.algebra.terms.node(Node::End);
                self.push(node);
            }
            Op::Boundary { word, negative } => {
                let word = self.algebra.terms.class(word.clone());
                self.algebra.context_classes.push(word);
                let node = Node::Boundary { word, negative: *negative };
                let node = self.algebra.terms.node(node);
                self.push(node);
            }
            // Put on the stack by the caller, who knows the operands.
            Op::Again(_) => {}
            // Only in what is not an expression yet.
            Op::Part(_) => self.push(EMPTY),
        }
    }

    fn concat(&mut self, n: u32) {
        let parts = self.pop_many(n);
        if parts.iter().all(|part| matches!(part, Operand::Literal(_))) {
            let text = parts.into_iter().filter_map(|part| match part {
                Operand::Literal(text) => Some(text),
                Operand::Node(_) => None,
            });
            let text = text.collect();
            self.stack.push(Operand::Literal(text));
            return;
        }
        let mut node = EPSILON;
        for part in parts.into_iter().rev() {
            node = match part {
                // Character by character keeps the list nested to the right.
                Operand::Literal(text) => {
                    text.chars().rev().fold(node, |rest, character| {
                        let first = self.class(CharSet::single(character));
                        self.algebra.terms.cat(first, rest)
                    })
                }
                Operand::Node(part) => {
                    flat(&mut self.algebra.terms, part, node)
                }
            };
        }
        self.push(node);
    }

    fn alternate(&mut self, n: u32) {
        let parts = self.pop_many(n);
        let n_literals = parts
            .iter()
            .filter(|part| matches!(part, Operand::Literal(_)))
            .count();
        if n_literals < MIN_WORDS {
            let parts: Vec<NodeId> =
                parts.into_iter().map(|part| self.node(part)).collect();
            let node = self.algebra.terms.alternate(&parts);
            self.push(node);
            return;
        }
        let mut words: Vec<Box<str>> = Vec::with_capacity(n_literals);
        let mut nodes = Vec::new();
        for part in parts {
            match part {
                Operand::Node(node) => nodes.push(node),
                Operand::Literal(text) if text.chars().nth(1).is_none() => {
                    // Single characters join into a class.
                    nodes.push(self.literal(&text));
                }
                Operand::Literal(text) => words.push(text.into()),
            }
        }
        words.sort_unstable();
        words.dedup();
        nodes.push(self.words(words.into()));
        let node = self.algebra.terms.alternate(&nodes);
        self.push(node);
    }

    fn words(&mut self, words: std::sync::Arc<[Box<str>]>) -> NodeId {
        let n_words = u32::try_from(words.len()).unwrap_or(u32::MAX);
        let list = self.algebra.terms.lists.intern(words).0;
        self.algebra.terms.words(list, 0, n_words, 0)
    }

    fn look(&mut self, behind: bool, negative: bool) -> NodeId {
        let body = self.pop_node();
        let always = match body {
            EMPTY => Some(negative),
            EPSILON => Some(!negative),
            _ => None,
        };
        if let Some(always) = always {
            return if always { EPSILON } else { EMPTY };
        }
        let node = match self.algebra.terms.nodes[body] {
            Node::Class(class) if behind => {
                self.algebra.context_classes.push(class);
                Node::Previous { class, negative }
            }
            _ if behind => {
                let behinds = &mut self.algebra.behinds;
                let known = behinds.iter().position(|&known| known == body);
                let index = known.unwrap_or_else(|| {
                    behinds.push(body);
                    behinds.len() - 1
                });
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                Node::Behind { index, negative }
            }
            _ => Node::Ahead { body, negative },
        };
        self.algebra.terms.node(node)
    }
}

/// Refuses an intersection or complement that looks at what comes before
/// it, unless it is the whole expression or an operand of one that is.
fn check_inner(root: NodeId, algebra: &Algebra) -> Result<(), LanguageError> {
    let terms = &algebra.terms;
    let mut seen = vec![[false; 2]; terms.nodes.len()];
    let mut stack: Vec<(NodeId, bool)> = vec![(root, true)];
    stack.extend(algebra.behinds.iter().map(|&body| (body, false)));
    while let Some((node, whole)) = stack.pop() {
        let seen = &mut seen[node as usize][usize::from(whole)];
        if std::mem::replace(seen, true) {
            continue;
        }
        match &terms.nodes[node] {
            Node::And(_) | Node::Not(_)
                if !whole && terms.node_info(node).context =>
            {
                return Err(LanguageError::AssertionInside);
            }
            Node::And(parts) | Node::Alt(parts) => {
                stack.extend(parts.iter().map(|&part| (part, whole)));
            }
            // An alternative of nothing is kept as a repetition.
            Node::Rep { body: inner, min: 0, max: 1 } | Node::Not(inner) => {
                stack.push((*inner, whole));
            }
            Node::Cat(first, second) => {
                stack.extend([(*first, false), (*second, false)]);
            }
            Node::Rep { body, .. } | Node::Ahead { body, .. } => {
                stack.push((*body, false));
            }
            Node::Empty
            | Node::Epsilon
            | Node::Class(_)
            | Node::Words { .. }
            | Node::Start
            | Node::End
            | Node::Boundary { .. }
            | Node::Previous { .. }
            | Node::Behind { .. } => {}
        }
    }
    Ok(())
}
