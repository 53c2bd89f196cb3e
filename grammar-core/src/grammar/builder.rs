//! Builds grammars: interns expressions and checks the whole.

use std::sync::Arc;

use super::{Class, Embedded, Expr, ExprId, Grammar, MachineId, Rule, RuleId};
use crate::{
    automaton::{Atom, AtomId, Automaton, AutomatonError, Machine},
    util::{FxHashMap, FxHashSet},
};

/// A choice with more parts than this is not spliced into a choice around it,
/// so that long chains of choices stay linear.
const MAX_SPLICE: usize = 8;

/// An error that occurs when a grammar is not one.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GrammarError {
    /// A rule was declared and never defined.
    #[error("rule `{name}` is declared but not defined; define it")]
    Undefined {
        /// The rule's name.
        name: String,
    },
    /// A repetition ends before it begins.
    #[error("repetition {{{min},{max}}} has its bounds in the wrong order")]
    Bounds {
        /// The lower bound.
        min: u32,
        /// The upper bound, which is below it.
        max: u32,
    },
    /// An id came from somewhere else.
    #[error("{what} {id} is not of this grammar, which has {len}")]
    Foreign {
        /// What the id names.
        what: &'static str,
        /// The id.
        id: u32,
        /// How many there are.
        len: usize,
    },
    /// A machine that is embedded fails at its start.
    #[error("{name} cannot be embedded: {error}")]
    Machine {
        /// What the machine is called.
        name: String,
        /// Why it fails.
        error: AutomatonError,
    },
    /// The grammar has more parts than ids.
    #[error("the grammar has more than {limit} {what}; simplify it")]
    TooLarge {
        /// What was counted.
        what: &'static str,
        /// How many there may be.
        limit: u32,
    },
}

/// Builds a [`Grammar`].
///
/// Rules are declared first and defined later, so that they can name each
/// other. Equal expressions get equal ids. Mistakes are kept and come out of
/// [`GrammarBuilder::build`].
///
/// ```
/// use maskwright_grammar_core::grammar::GrammarBuilder;
///
/// // root ::= "(" root ")" | ""
/// let mut builder = GrammarBuilder::new();
/// let root = builder.declare("root");
/// let open = builder.literal(b"(");
/// let inner = builder.rule(root);
/// let close = builder.literal(b")");
/// let nested = builder.concat([open, inner, close]);
/// let empty = builder.empty();
/// let body = builder.choice([nested, empty]);
/// builder.define(root, body);
/// let grammar = builder.build(root)?;
/// assert_eq!(grammar.to_string(), "root ::= \"(\" root \")\" | \"\"\n");
/// # Ok::<(), maskwright_grammar_core::grammar::GrammarError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct GrammarBuilder {
    rules: Vec<(String, Option<ExprId>)>,
    exprs: Vec<Expr>,
    ids: FxHashMap<Expr, ExprId>,
    atoms: Vec<Atom>,
    atom_ids: FxHashMap<Atom, AtomId>,
    machines: Vec<Embedded>,
    /// By the address of the machine, which the list keeps alive.
    machine_ids: FxHashMap<usize, MachineId>,
    error: Option<GrammarError>,
}

impl GrammarBuilder {
    /// Creates a builder of a grammar without rules.
    pub fn new() -> GrammarBuilder {
        GrammarBuilder::default()
    }

    /// Creates a builder that knows the atoms and the machines of `grammar`
    /// by the same ids.
    pub(crate) fn with_terminals_of(grammar: &Grammar) -> GrammarBuilder {
        let mut builder = GrammarBuilder::new();
        builder.machines.clone_from(&grammar.machines);
        for atom in &grammar.atoms {
            builder.atom(atom.clone());
        }
        builder
    }

    /// Adds a rule without a body.
    pub fn declare(&mut self, name: impl Into<String>) -> RuleId {
        let id = self.id(self.rules.len(), "rules");
        self.rules.push((name.into(), None));
        RuleId(id)
    }

    /// Gives `rule` its body. The last one given counts.
    pub fn define(&mut self, rule: RuleId, body: ExprId) {
        if let Some((_, slot)) = self.rules.get_mut(rule.index()) {
            *slot = Some(body);
        } else {
            self.foreign("rule", rule.0, self.rules.len());
        }
    }

    /// Returns the expression for the empty text.
    pub fn empty(&mut self) -> ExprId {
        self.intern(Expr::Empty)
    }

    /// Returns the expression for `bytes`.
    pub fn literal(&mut self, bytes: &[u8]) -> ExprId {
        if bytes.is_empty() {
            return self.empty();
        }
        self.intern(Expr::Literal(bytes.into()))
    }

    /// Returns the expression for one code point of `class`.
    pub fn class(&mut self, class: Class) -> ExprId {
        if let Some(single) = class.single() {
            return self.literal(single.to_string().as_bytes());
        }
        self.intern(Expr::Class(class))
    }

    /// Returns the expression for the token `atom`.
    pub fn atom(&mut self, atom: Atom) -> ExprId {
        let known = self.atom_ids.get(&atom).copied();
        let id = known.unwrap_or_else(|| {
            let id = AtomId(self.id(self.atoms.len(), "tokens"));
            self.atom_ids.insert(atom.clone(), id);
            self.atoms.push(atom);
            id
        });
        self.intern(Expr::Atom(id))
    }

    /// Returns the expression for the token that `atom` stands for already.
    pub(crate) fn known_atom(&mut self, atom: AtomId) -> ExprId {
        if atom.0 as usize >= self.atoms.len() {
            self.foreign("token", atom.0, self.atoms.len());
            return self.empty();
        }
        self.intern(Expr::Atom(atom))
    }

    /// Returns the expression for what `rule` derives.
    pub fn rule(&mut self, rule: RuleId) -> ExprId {
        if rule.index() >= self.rules.len() {
            self.foreign("rule", rule.0, self.rules.len());
            return self.empty();
        }
        self.intern(Expr::Rule(rule))
    }

    /// Returns the expression for a text of `automaton`, which people call
    /// `name`.
    pub fn machine(
        &mut self,
        name: impl Into<String>,
        automaton: &Arc<dyn Automaton>,
    ) -> ExprId {
        let address = Arc::as_ptr(automaton).addr();
        let known = self.machine_ids.get(&address).copied();
        let id = known.unwrap_or_else(|| {
            MachineId(self.id(self.machines.len(), "machines"))
        });
        if known.is_none() {
            self.machine_ids.insert(address, id);
            let machine = Machine::new(&**automaton);
            let (name, automaton) = (name.into(), Arc::clone(automaton));
            let (is_nullable, is_open) = match machine.row(machine.start()) {
                Ok(row) => (row.finish.is_some(), row.is_open()),
                Err(error) => {
                    let name = name.clone();
                    let error = GrammarError::Machine { name, error };
                    self.error.get_or_insert(error);
                    (true, false)
                }
            };
            let embedded = Embedded { name, automaton, is_nullable, is_open };
            self.machines.push(embedded);
        }
        self.intern(Expr::Machine(id))
    }

    /// Returns the expression for a text of the machine that has this id
    /// already.
    pub(crate) fn known_machine(&mut self, machine: MachineId) -> ExprId {
        if machine.index() >= self.machines.len() {
            self.foreign("machine", machine.0, self.machines.len());
            return self.empty();
        }
        self.intern(Expr::Machine(machine))
    }

    /// Returns the expression for `parts`, one after the other.
    pub fn concat(
        &mut self,
        parts: impl IntoIterator<Item = ExprId>,
    ) -> ExprId {
        let mut kept: Vec<ExprId> = Vec::new();
        // Neighbouring literals, joined.
        let mut literal: Vec<u8> = Vec::new();
        for part in parts {
            match self.get(part) {
                Expr::Empty => {}
                Expr::Literal(bytes) => literal.extend_from_slice(bytes),
                Expr::Class(_)
                | Expr::Atom(_)
                | Expr::Machine(_)
                | Expr::Rule(_)
                | Expr::Concat(_)
                | Expr::Choice(_)
                | Expr::Repeat { .. } => {
                    if !literal.is_empty() {
                        let bytes = std::mem::take(&mut literal);
                        kept.push(self.literal(&bytes));
                    }
                    kept.push(part);
                }
            }
        }
        if !literal.is_empty() {
            kept.push(self.literal(&literal));
        }
        match *kept {
            [] => self.empty(),
            [only] => only,
            _ => self.intern(Expr::Concat(kept.into())),
        }
    }

    /// Returns the expression for any of `parts`. Equal parts are merged;
    /// with no part, nothing can be derived.
    pub fn choice(
        &mut self,
        parts: impl IntoIterator<Item = ExprId>,
    ) -> ExprId {
        let mut seen = FxHashSet::default();
        let mut kept: Vec<ExprId> = Vec::new();
        for part in parts {
            match self.get(part) {
                Expr::Choice(inner) if inner.len() <= MAX_SPLICE => {
                    let inner = inner.iter().copied();
                    kept.extend(inner.filter(|&part| seen.insert(part)));
                }
                _ if seen.insert(part) => kept.push(part),
                _ => {}
            }
        }
        match *kept {
            [] => self.class(Class::new([])),
            [only] => only,
            _ => self.intern(Expr::Choice(kept.into())),
        }
    }

    /// Returns the expression for `body`, at least `min` and at most `max`
    /// times.
    pub fn repeat(
        &mut self,
        body: ExprId,
        min: u32,
        max: Option<u32>,
    ) -> ExprId {
        if let Some(max) = max.filter(|&max| max < min) {
            self.error.get_or_insert(GrammarError::Bounds { min, max });
            return body;
        }
        let inner = self.get(body);
        // (x*){m,n} and (x*)* are x*, but (x*){0,0} is empty.
        let absorbs = matches!(inner, Expr::Repeat { min: 0, max: None, .. });
        match (min, max) {
            (_, Some(0)) => self.empty(),
            (1, Some(1)) => body,
            _ if *inner == Expr::Empty || absorbs => body,
            (0, Some(1)) => {
                let empty = self.empty();
                self.choice([body, empty])
            }
            _ => self.intern(Expr::Repeat { body, min, max }),
        }
    }

    /// Builds the grammar whose texts are derived from `root`.
    ///
    /// # Errors
    ///
    /// Fails with the first mistake: a rule without a body, bounds in the
    /// wrong order, an id of another grammar, or more parts than ids.
    pub fn build(self, root: RuleId) -> Result<Grammar, GrammarError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if root.index() >= self.rules.len() {
            let (what, len) = ("rule", self.rules.len());
            return Err(GrammarError::Foreign { what, id: root.0, len });
        }
        let rules = self.rules.into_iter().map(|(name, body)| match body {
            Some(body) => Ok(Rule { name, body }),
            None => Err(GrammarError::Undefined { name }),
        });
        Ok(Grammar {
            rules: rules.collect::<Result<_, _>>()?,
            exprs: self.exprs,
            atoms: self.atoms,
            machines: self.machines,
            root,
        })
    }

    /// Returns the expression `id`, or the empty one if it is foreign.
    fn get(&mut self, id: ExprId) -> &Expr {
        if id.index() >= self.exprs.len() {
            self.foreign("expression", id.0, self.exprs.len());
            return &Expr::Empty;
        }
        &self.exprs[id.index()]
    }

    fn intern(&mut self, expr: Expr) -> ExprId {
        if let Some(&id) = self.ids.get(&expr) {
            return id;
        }
        let id = ExprId(self.id(self.exprs.len(), "expressions"));
        self.exprs.push(expr.clone());
        self.ids.insert(expr, id);
        id
    }

    fn id(&mut self, index: usize, what: &'static str) -> u32 {
        u32::try_from(index).unwrap_or_else(|_| {
            let error = GrammarError::TooLarge { what, limit: u32::MAX };
            self.error.get_or_insert(error);
            0
        })
    }

    fn foreign(&mut self, what: &'static str, id: u32, len: usize) {
        self.error.get_or_insert(GrammarError::Foreign { what, id, len });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_alternatives_merge_and_literals_join() {
        let mut builder = GrammarBuilder::new();
        let root = builder.declare("root");
        let (a, b) = (builder.literal(b"a"), builder.literal(b"b"));
        let ab = builder.concat([a, b]);
        assert_eq!(ab, builder.literal(b"ab"));
        assert_eq!(builder.choice([ab, ab]), ab);
        let empty = builder.empty();
        assert_eq!(builder.repeat(empty, 3, None), empty);
        let star = builder.repeat(ab, 0, None);
        assert_eq!(builder.repeat(star, 0, None), star);
        builder.define(root, star);
        assert!(builder.build(root).is_ok());
    }

    #[test]
    fn mistakes_come_out_of_build() {
        let mut builder = GrammarBuilder::new();
        let root = builder.declare("root");
        let error = builder.clone().build(root).err();
        let name = "root".to_owned();
        assert_eq!(error, Some(GrammarError::Undefined { name }));
        let a = builder.literal(b"a");
        let body = builder.repeat(a, 9, Some(1));
        builder.define(root, body);
        let error = builder.build(root).err();
        assert_eq!(error, Some(GrammarError::Bounds { min: 9, max: 1 }));
        let mut builder = GrammarBuilder::new();
        let root = builder.declare("root");
        let body = builder.concat([ExprId(77), ExprId(78)]);
        builder.define(root, body);
        assert!(matches!(
            builder.build(root),
            Err(GrammarError::Foreign { id: 77, .. })
        ));
    }
}
