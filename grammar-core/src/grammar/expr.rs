//! The arena: grammars, rules and expressions.

use std::sync::Arc;

use super::Class;
use crate::automaton::{Atom, AtomId, Automaton};

/// The index of a rule in its grammar.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RuleId(pub u32);

impl RuleId {
    /// Returns this id as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The index of an expression in its grammar's arena.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ExprId(pub u32);

impl ExprId {
    /// Returns this id as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The index of an [`Embedded`] machine in its grammar.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct MachineId(pub u32);

impl MachineId {
    /// Returns this id as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A machine of another kind (a JSON Schema, a regular expression) whose
/// texts stand in the texts of a grammar.
#[derive(Clone, Debug)]
pub struct Embedded {
    /// What people call it.
    pub name: String,
    /// The machine.
    pub automaton: Arc<dyn Automaton>,
    /// Whether the empty text is one of its texts.
    pub is_nullable: bool,
    /// Whether any other text is.
    pub is_open: bool,
}

/// What a rule or a part of a rule derives.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Expr {
    /// The empty text.
    Empty,
    /// These bytes; never empty.
    Literal(Box<[u8]>),
    /// One code point of the class. The empty class derives nothing.
    Class(Class),
    /// One whole token.
    Atom(AtomId),
    /// What the rule derives.
    Rule(RuleId),
    /// A text of the machine.
    Machine(MachineId),
    /// One after the other; at least two.
    Concat(Box<[ExprId]>),
    /// Any of these; at least two, no two equal.
    Choice(Box<[ExprId]>),
    /// At least `min` and at most `max` times, one after the other.
    Repeat {
        /// What is repeated.
        body: ExprId,
        /// How often at least.
        min: u32,
        /// How often at most; `None` is any number of times.
        max: Option<u32>,
    },
}

impl Expr {
    /// Returns the parts of this expression.
    pub fn parts(&self) -> &[ExprId] {
        match self {
            Expr::Concat(parts) | Expr::Choice(parts) => parts,
            Expr::Repeat { body, .. } => std::slice::from_ref(body),
            Expr::Empty
            | Expr::Literal(_)
            | Expr::Class(_)
            | Expr::Atom(_)
            | Expr::Rule(_)
            | Expr::Machine(_) => &[],
        }
    }
}

/// A named rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rule {
    /// The name, for people. Two rules may have the same.
    pub name: String,
    /// What the rule derives.
    pub body: ExprId,
}

/// A context-free grammar.
#[derive(Clone, Debug)]
pub struct Grammar {
    pub(super) rules: Vec<Rule>,
    /// Invariant: the parts of an expression come before it, and all ids are
    /// in range.
    pub(super) exprs: Vec<Expr>,
    pub(super) atoms: Vec<Atom>,
    pub(super) machines: Vec<Embedded>,
    pub(super) root: RuleId,
}

impl Grammar {
    /// Returns the rule that a text is derived from.
    pub fn root(&self) -> RuleId {
        self.root
    }

    /// Returns the rules, in the order of their ids.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns one rule.
    ///
    /// # Panics
    ///
    /// If `rule` is not of this grammar.
    pub fn rule(&self, rule: RuleId) -> &Rule {
        &self.rules[rule.index()]
    }

    /// Returns the arena. The parts of an expression come before it.
    pub fn exprs(&self) -> &[Expr] {
        &self.exprs
    }

    /// Returns one expression.
    ///
    /// # Panics
    ///
    /// If `expr` is not of this grammar.
    pub fn expr(&self, expr: ExprId) -> &Expr {
        &self.exprs[expr.index()]
    }

    /// Returns the tokens that this grammar names.
    pub fn atoms(&self) -> &[Atom] {
        &self.atoms
    }

    /// Returns the machines that are embedded.
    pub fn machines(&self) -> &[Embedded] {
        &self.machines
    }

    /// Returns one of the machines.
    ///
    /// # Panics
    ///
    /// If `machine` is not of this grammar.
    pub fn machine(&self, machine: MachineId) -> &Embedded {
        &self.machines[machine.index()]
    }

    /// Returns the ids of all rules.
    pub fn rule_ids(&self) -> impl Iterator<Item = RuleId> + use<> {
        // The builder counts rules in `u32`.
        (0..u32::try_from(self.rules.len()).unwrap_or(u32::MAX)).map(RuleId)
    }

    /// Returns every expression that is below `roots` and for which `fresh`
    /// returns true the first time it is met, parts first.
    pub(crate) fn below(
        &self,
        roots: impl IntoIterator<Item = ExprId>,
        mut fresh: impl FnMut(ExprId) -> bool,
    ) -> Vec<ExprId> {
        let mut found: Vec<ExprId> =
            roots.into_iter().filter(|&expr| fresh(expr)).collect();
        let mut next = 0;
        while let Some(&expr) = found.get(next) {
            next += 1;
            let parts = self.expr(expr).parts();
            found.extend(parts.iter().copied().filter(|&part| fresh(part)));
        }
        found.sort_unstable();
        found
    }

    /// Returns, for each rule, which rules its body names (sorted).
    pub(crate) fn calls(&self) -> Vec<Vec<u32>> {
        let mut seen = vec![u32::MAX; self.exprs.len()];
        let mut calls = Vec::with_capacity(self.rules.len());
        for (id, rule) in self.rule_ids().zip(&self.rules) {
            let below = self.below([rule.body], |expr| {
                std::mem::replace(&mut seen[expr.index()], id.0) != id.0
            });
            let mut called: Vec<u32> = below
                .into_iter()
                .filter_map(|expr| match self.expr(expr) {
                    Expr::Rule(rule) => Some(rule.0),
                    Expr::Empty
                    | Expr::Literal(_)
                    | Expr::Class(_)
                    | Expr::Atom(_)
                    | Expr::Machine(_)
                    | Expr::Concat(_)
                    | Expr::Choice(_)
                    | Expr::Repeat { .. } => None,
                })
                .collect();
            called.sort_unstable();
            calls.push(called);
        }
        calls
    }
}
