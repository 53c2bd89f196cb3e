//! From a grammar to nodes and edges.
//!
//! A call of a rule that may be empty is bypassed by an empty edge, so that
//! from here on every call means a non-empty text. Literals that stand beside
//! each other in a choice become one trie. Repetitions with large bounds
//! become counters: `x{m,n}` is `x` and then a call of a counter that reads
//! `m-1` to `n-1` more, so that a counter is never called before its caller
//! has read something.

use regex_syntax::utf8::{Utf8Range, Utf8Sequences};

use super::{
    CfgLimits,
    nfa::{Callee, Counter, Edge, Label, Nfa},
};
use crate::{
    automaton::AutomatonError,
    grammar::{Analysis, Class, Expr, ExprId, Grammar},
    interrupt,
    util::FxHashMap,
};

/// Builds the automata of all rules of `grammar`.
///
/// # Errors
///
/// Fails when there are more nodes than `limits` allow.
pub(super) fn build(
    grammar: &Grammar,
    analysis: &Analysis,
    limits: &CfgLimits,
) -> Result<(Nfa, Vec<String>), AutomatonError> {
    let rules = grammar.rules();
    let mut builder = Builder {
        grammar,
        analysis,
        sizes: sizes(grammar, limits.max_unrolled),
        limits,
        edges: Vec::new(),
        owner: Vec::new(),
        bodies: rules.iter().map(|rule| rule.body).collect(),
        names: rules.iter().map(|rule| rule.name.clone()).collect(),
        repeated: FxHashMap::default(),
        counters: Vec::new(),
        counter_ids: FxHashMap::default(),
        rule: 0,
        todo: Vec::new(),
        suffixes: FxHashMap::default(),
    };
    let (mut first, mut last) = (Vec::new(), Vec::new());
    // Repetitions append rules while this runs.
    while let Some(&body) = builder.bodies.get(first.len()) {
        interrupt::check()?;
        builder.rule = id(first.len());
        let (from, to) = (builder.node()?, builder.node()?);
        first.push(from);
        last.push(to);
        builder.todo.push((body, from, to));
        while let Some((expr, from, to)) = builder.todo.pop() {
            builder.expr(expr, from, to)?;
        }
    }
    let mut nfa = Nfa {
        offsets: Vec::new(),
        edges: Vec::new(),
        owner: builder.owner,
        first,
        last,
        counters: builder.counters,
    };
    nfa.set_edges(&builder.edges);
    Ok((nfa, builder.names))
}

struct Builder<'g> {
    grammar: &'g Grammar,
    analysis: &'g Analysis,
    /// How many positions each expression needs.
    sizes: Vec<u32>,
    limits: &'g CfgLimits,
    edges: Vec<(u32, Edge)>,
    owner: Vec<u32>,
    /// The body of each rule, with those appended that are repeated.
    bodies: Vec<ExprId>,
    names: Vec<String>,
    /// The appended rule of each repeated expression.
    repeated: FxHashMap<ExprId, u32>,
    counters: Vec<Counter>,
    counter_ids: FxHashMap<Counter, u32>,
    /// The rule that is being built.
    rule: u32,
    /// Expressions that still have to be put between two nodes.
    todo: Vec<(ExprId, u32, u32)>,
    /// Shared ends of UTF-8 sequences: what is read, and up to which node.
    suffixes: FxHashMap<(Utf8Key, u32), u32>,
}

/// The bounds of one range of bytes.
type Utf8Key = (u8, u8);

impl Builder<'_> {
    fn node(&mut self) -> Result<u32, AutomatonError> {
        let limit = self.limits.max_nodes;
        if self.owner.len() >= limit {
            return Err(AutomatonError::Limit {
                name: "max_nodes",
                what: "the number of positions of the grammar",
                limit,
            });
        }
        self.owner.push(self.rule);
        Ok(id(self.owner.len() - 1))
    }

    fn edge(&mut self, from: u32, label: Label, to: u32) {
        self.edges.push((from, Edge { label, to }));
    }

    fn skip(&mut self, from: u32, to: u32) {
        self.edge(from, Label::Empty, to);
    }

    /// Puts `expr` between two nodes. Adds no edge into `from` and none out
    /// of `to`.
    fn expr(
        &mut self,
        expr: ExprId,
        from: u32,
        to: u32,
    ) -> Result<(), AutomatonError> {
        match self.grammar.expr(expr) {
            Expr::Empty => self.skip(from, to),
            Expr::Literal(bytes) => self.literal(bytes, from, to)?,
            Expr::Class(class) => self.class(class, from, to)?,
            Expr::Atom(atom) => self.edge(from, Label::Atom(*atom), to),
            Expr::Rule(rule) => {
                let callee = Callee::Rule(rule.0);
                self.edge(from, Label::Call(callee), to);
                let body = self.grammar.rule(*rule).body;
                if self.analysis.is_nullable(body) {
                    self.skip(from, to);
                }
            }
            Expr::Machine(machine) => {
                let callee = Callee::Machine(machine.0);
                let machine = self.grammar.machine(*machine);
                if machine.is_open {
                    self.edge(from, Label::Call(callee), to);
                }
                if machine.is_nullable {
                    self.skip(from, to);
                }
            }
            Expr::Concat(parts) => {
                let mut from = from;
                for (i, &part) in parts.iter().enumerate() {
                    let is_last = i + 1 == parts.len();
                    let next = if is_last { to } else { self.node()? };
                    self.todo.push((part, from, next));
                    from = next;
                }
            }
            Expr::Choice(parts) => self.choice(parts, from, to)?,
            Expr::Repeat { body, min, max } => {
                self.repeat(*body, *min, *max, from, to)?;
            }
        }
        Ok(())
    }

    fn literal(
        &mut self,
        bytes: &[u8],
        mut from: u32,
        to: u32,
    ) -> Result<(), AutomatonError> {
        for (i, &byte) in bytes.iter().enumerate() {
            let is_last = i + 1 == bytes.len();
            let next = if is_last { to } else { self.node()? };
            self.edge(from, Label::Bytes { lo: byte, hi: byte }, next);
            from = next;
        }
        Ok(())
    }

    /// Spells the code points of `class`, with shared ends.
    fn class(
        &mut self,
        class: &Class,
        from: u32,
        to: u32,
    ) -> Result<(), AutomatonError> {
        self.suffixes.clear();
        for &(lo, hi) in class.ranges() {
            let (Some(lo), Some(hi)) =
                (char::from_u32(lo), char::from_u32(hi))
            else {
                continue;
            };
            for sequence in Utf8Sequences::new(lo, hi) {
                let Some((first, rest)) = sequence.as_slice().split_first()
                else {
                    continue;
                };
                let mut next = to;
                for range in rest.iter().rev() {
                    next = self.suffix(*range, next)?;
                }
                let (lo, hi) = (first.start, first.end);
                self.edge(from, Label::Bytes { lo, hi }, next);
            }
        }
        Ok(())
    }

    fn suffix(
        &mut self,
        range: Utf8Range,
        to: u32,
    ) -> Result<u32, AutomatonError> {
        let (lo, hi) = (range.start, range.end);
        if let Some(&node) = self.suffixes.get(&((lo, hi), to)) {
            return Ok(node);
        }
        let node = self.node()?;
        self.edge(node, Label::Bytes { lo, hi }, to);
        self.suffixes.insert(((lo, hi), to), node);
        Ok(node)
    }

    fn choice(
        &mut self,
        parts: &[ExprId],
        from: u32,
        to: u32,
    ) -> Result<(), AutomatonError> {
        let mut literals: Vec<&[u8]> = Vec::new();
        for &part in parts {
            if let Expr::Literal(bytes) = self.grammar.expr(part) {
                literals.push(bytes);
            } else {
                self.todo.push((part, from, to));
            }
        }
        literals.sort_unstable();
        self.trie(&literals, from, to)
    }

    /// Puts a trie of sorted literals between two nodes.
    fn trie(
        &mut self,
        literals: &[&[u8]],
        from: u32,
        to: u32,
    ) -> Result<(), AutomatonError> {
        // The nodes along the literal before, and that literal.
        let mut path = vec![from];
        let mut before: &[u8] = &[];
        for &literal in literals {
            let Some((last, stem)) = literal.split_last() else {
                continue;
            };
            let common =
                stem.iter().zip(before).take_while(|(a, b)| a == b).count();
            path.truncate(common + 1);
            let mut at = path[path.len() - 1];
            for &byte in &stem[path.len() - 1..] {
                let next = self.node()?;
                self.edge(at, Label::Bytes { lo: byte, hi: byte }, next);
                path.push(next);
                at = next;
            }
            self.edge(at, Label::Bytes { lo: *last, hi: *last }, to);
            before = stem;
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        body: ExprId,
        min: u32,
        max: Option<u32>,
        from: u32,
        to: u32,
    ) -> Result<(), AutomatonError> {
        let times = max.unwrap_or(min);
        let size = self.sizes[body.index()].saturating_mul(times);
        if times > 1 && size > self.limits.max_unrolled {
            return self.counted(body, min, max, from, to);
        }
        let mut at = from;
        if let Some(max) = max {
            for done in 0..max {
                if done >= min {
                    self.skip(at, to);
                }
                let is_last = done + 1 == max;
                let next = if is_last { to } else { self.node()? };
                self.todo.push((body, at, next));
                at = next;
            }
            return Ok(());
        }
        for _ in 1..min {
            let next = self.node()?;
            self.todo.push((body, at, next));
            at = next;
        }
        // The loop needs a node of its own, and so does its way back.
        let (head, tail) = (self.node()?, self.node()?);
        self.skip(at, head);
        self.todo.push((body, head, tail));
        self.skip(tail, head);
        self.skip(tail, to);
        if min == 0 {
            self.skip(at, to);
        }
        Ok(())
    }

    /// Puts `body`, then a counter of the rest, between two nodes.
    fn counted(
        &mut self,
        body: ExprId,
        min: u32,
        max: Option<u32>,
        from: u32,
        to: u32,
    ) -> Result<(), AutomatonError> {
        let rule = self.repeated_rule(body);
        let is_nullable = self.analysis.is_nullable(body);
        if min == 0 || is_nullable {
            self.skip(from, to);
        }
        let min = if is_nullable { 0 } else { min.saturating_sub(1) };
        let max = max.map(|max| max - 1);
        let one = self.node()?;
        self.edge(from, Label::Call(Callee::Rule(rule)), one);
        let counter = Counter { rule, min, max };
        let next = id(self.counters.len());
        let counter_id =
            *self.counter_ids.entry(counter).or_insert_with(|| {
                self.counters.push(counter);
                next
            });
        self.edge(one, Label::Call(Callee::Counter(counter_id)), to);
        if min == 0 {
            self.skip(one, to);
        }
        Ok(())
    }

    /// Returns the rule whose non-empty texts `body` derives.
    fn repeated_rule(&mut self, body: ExprId) -> u32 {
        if let Expr::Rule(rule) = self.grammar.expr(body) {
            return rule.0;
        }
        if let Some(&rule) = self.repeated.get(&body) {
            return rule;
        }
        let rule = id(self.bodies.len());
        let name = self.names[self.rule as usize].clone();
        self.bodies.push(body);
        self.names.push(name);
        self.repeated.insert(body, rule);
        rule
    }
}

/// Returns how many positions each expression of `grammar` needs.
fn sizes(grammar: &Grammar, max_unrolled: u32) -> Vec<u32> {
    let mut sizes: Vec<u32> = Vec::with_capacity(grammar.exprs().len());
    for expr in grammar.exprs() {
        let parts = expr.parts().iter().map(|part| sizes[part.index()]);
        let size = match expr {
            Expr::Empty => 0,
            Expr::Literal(bytes) => id(bytes.len()),
            Expr::Class(_)
            | Expr::Atom(_)
            | Expr::Rule(_)
            | Expr::Machine(_) => 1,
            Expr::Concat(_) | Expr::Choice(_) => {
                parts.fold(0, u32::saturating_add)
            }
            Expr::Repeat { body, min, max } => {
                let times = max.unwrap_or(*min).max(1);
                let size = sizes[body.index()].saturating_mul(times);
                // A counter is two calls.
                if size > max_unrolled && times > 1 { 2 } else { size }
            }
        };
        sizes.push(size);
    }
    sizes
}

/// Indices fit: `max_nodes` bounds them.
fn id(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
