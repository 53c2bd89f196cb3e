//! From trees to a grammar: resolves names and references, and checks the
//! whole.

use std::{borrow::Cow, sync::Arc};

use maskwright_grammar_core::{
    automaton::{Atom, Automaton, RegexMachine},
    grammar::{Analysis, Class, ExprId, Grammar, GrammarBuilder, RuleId},
    regular::Limits,
    util::FxHashMap,
};

use crate::{
    ast::{Ast, Node, NodeId, Reference},
    error::{GbnfError, GbnfErrorKind, Places, Span, Warning, WarningKind},
};

/// The rule that a grammar starts with where another one refers to it.
const ROOT: &str = "root";

/// What a [`Reference`] leads to.
#[derive(Clone, Debug)]
pub enum Referent {
    /// A machine, whose texts stand there.
    Machine(Arc<dyn Automaton>),
    /// A grammar, whose rule `root` stands there. It may refer to others,
    /// and they to it.
    Grammar(Ast),
}

/// Finds what a grammar refers to.
pub trait Resolver {
    /// Returns what `reference` leads to. Asked once for equal references.
    ///
    /// # Errors
    ///
    /// Fails with a message for people when there is nothing of that name, or
    /// when what is there is refused.
    fn resolve(
        &self,
        reference: &Reference,
    ) -> Result<Referent, ReferentError>;
}

/// Why a reference leads nowhere.
#[derive(Clone, Debug)]
pub enum ReferentError {
    /// A message for people.
    Message(String),
    /// The grammar that was referred to is refused.
    Grammar(GbnfError),
}

/// Knows regular expressions, and no schema or other grammar.
#[derive(Clone, Copy, Debug, Default)]
pub struct RegexOnly;

impl Resolver for RegexOnly {
    fn resolve(
        &self,
        reference: &Reference,
    ) -> Result<Referent, ReferentError> {
        let message = match reference {
            Reference::Regex(regex) => {
                return RegexMachine::new(regex, Limits::default())
                    .map(|machine| Referent::Machine(Arc::new(machine)))
                    .map_err(|error| {
                        ReferentError::Message(error.to_string())
                    });
            }
            Reference::Json(_) => "there is no reader of JSON Schemas here; \
                                   compile the grammar through the crate \
                                   `maskwright`"
                .to_owned(),
            Reference::Grammar(name) => {
                format!("there is no grammar `{name}`")
            }
        };
        Err(ReferentError::Message(message))
    }
}

/// Turns a tree into a grammar whose texts are derived from `start_rule`,
/// with everything that it refers to.
///
/// # Errors
///
/// Fails when a name has no rule, when a reference leads nowhere, when there
/// is no `start_rule`, or when a rule derives nothing.
pub fn lower(
    ast: &Ast,
    start_rule: &str,
    resolver: &dyn Resolver,
) -> Result<(Grammar, Vec<Warning>), GbnfError> {
    let mut linker = Linker {
        builder: GrammarBuilder::new(),
        units: Vec::new(),
        referents: FxHashMap::default(),
        resolver,
    };
    linker.add(None, Cow::Borrowed(ast), start_rule)?;
    let mut next = 0;
    while next < linker.units.len() {
        linker.lower(next)?;
        next += 1;
    }
    let Linker { builder, units, .. } = linker;
    let grammar = builder
        .build(units[0].start)
        .map_err(|error| ast.error(Span::default(), error))?;
    let analysis = Analysis::new(&grammar);
    // The one to blame is a rule that needs itself, not its callers.
    let to_blame = grammar.rule_ids().find(|&rule| {
        !analysis.is_productive(grammar.rule(rule).body)
            && analysis.is_recursive(rule)
    });
    if let Some(rule) = to_blame {
        let unit = units.partition_point(|unit| unit.first_rule <= rule.0) - 1;
        let unit = &units[unit];
        let local = (rule.0 - unit.first_rule) as usize;
        let name = unit.ast.rules[local].name.clone();
        let kind = GbnfErrorKind::DerivesNothing { name };
        return Err(unit.error(unit.ast.rules[local].span, kind));
    }
    let warnings = units.iter().flat_map(Unit::unused).collect();
    Ok((grammar, warnings))
}

/// One of the grammars that are put together.
struct Unit<'a> {
    /// The name by which the others refer to it; the first has none.
    name: Option<String>,
    ast: Cow<'a, Ast>,
    rules: FxHashMap<String, RuleId>,
    /// The id of its first rule; the others follow.
    first_rule: u32,
    start: RuleId,
}

struct Linker<'a> {
    builder: GrammarBuilder,
    units: Vec<Unit<'a>>,
    /// What each reference leads to.
    referents: FxHashMap<Reference, ExprId>,
    resolver: &'a dyn Resolver,
}

impl<'a> Linker<'a> {
    /// Adds a grammar and declares its rules.
    fn add(
        &mut self,
        name: Option<&str>,
        ast: Cow<'a, Ast>,
        start_rule: &str,
    ) -> Result<RuleId, GbnfError> {
        let mut rules: FxHashMap<String, RuleId> = FxHashMap::default();
        for rule in &ast.rules {
            let full = match name {
                Some(unit) => format!("{unit}:{}", rule.name),
                None => rule.name.clone(),
            };
            rules.insert(rule.name.clone(), self.builder.declare(full));
        }
        let Some(&start) = rules.get(start_rule) else {
            let defined =
                ast.rules.iter().map(|rule| rule.name.clone()).collect();
            let start = start_rule.to_owned();
            let kind = GbnfErrorKind::MissingRoot { name: start, defined };
            return Err(ast.error(Span::default(), kind).within(name));
        };
        let first_rule = rules[&ast.rules[0].name].0;
        let name = name.map(str::to_owned);
        self.units.push(Unit { name, ast, rules, first_rule, start });
        Ok(start)
    }

    /// Defines the rules of a grammar.
    fn lower(&mut self, unit: usize) -> Result<(), GbnfError> {
        let n = self.units[unit].ast.nodes.len();
        let mut exprs: Vec<ExprId> = Vec::with_capacity(n);
        for i in 0..n {
            let expr = self.expr(unit, NodeId(i), &exprs)?;
            exprs.push(expr);
        }
        let Unit { ast, rules, .. } = &self.units[unit];
        for rule in &ast.rules {
            self.builder.define(rules[&rule.name], exprs[rule.body.0]);
        }
        Ok(())
    }

    fn expr(
        &mut self,
        unit: usize,
        node: NodeId,
        exprs: &[ExprId],
    ) -> Result<ExprId, GbnfError> {
        let builder = &mut self.builder;
        let Unit { ast, rules, .. } = &self.units[unit];
        let span = ast.span(node);
        Ok(match ast.node(node) {
            Node::Empty => builder.empty(),
            Node::Literal(text) => builder.literal(text.as_bytes()),
            Node::Class { negated, ranges } => {
                let ranges = ranges.iter();
                let class = Class::new(
                    ranges.map(|&(lo, hi)| (u32::from(lo), u32::from(hi))),
                );
                let class = if *negated { class.negate() } else { class };
                if class.is_empty() {
                    let message = "this class excludes every character";
                    return Err(self.units[unit].error(span, message));
                }
                builder.class(class)
            }
            Node::Any => builder.class(Class::any()),
            Node::Name(name) => match rules.get(&**name) {
                Some(&rule) => builder.rule(rule),
                None => return Err(self.units[unit].undefined(name, span)),
            },
            Node::Token { negated, token } => {
                builder.atom(Atom { token: token.clone(), negated: *negated })
            }
            Node::Reference(reference) => {
                let reference = reference.clone();
                return self.reference(unit, reference, span);
            }
            Node::Sequence(parts) => {
                builder.concat(parts.iter().map(|part| exprs[part.0]))
            }
            Node::Choice(parts) => {
                builder.choice(parts.iter().map(|part| exprs[part.0]))
            }
            Node::Repeat { body, min, max } => {
                builder.repeat(exprs[body.0], *min, *max)
            }
        })
    }

    fn reference(
        &mut self,
        unit: usize,
        reference: Reference,
        span: Span,
    ) -> Result<ExprId, GbnfError> {
        if let Some(&known) = self.referents.get(&reference) {
            return Ok(known);
        }
        let referent = match self.resolver.resolve(&reference) {
            Ok(referent) => referent,
            Err(ReferentError::Message(message)) => {
                let kind = GbnfErrorKind::Reference(message);
                return Err(self.units[unit].error(span, kind));
            }
            Err(ReferentError::Grammar(error)) => {
                return Err(error.within(Some(reference.name())));
            }
        };
        let expr = match referent {
            Referent::Machine(machine) => {
                self.builder.machine(reference.name(), &machine)
            }
            Referent::Grammar(ast) => {
                let ast = Cow::Owned(ast);
                let start = self.add(Some(reference.name()), ast, ROOT)?;
                self.builder.rule(start)
            }
        };
        self.referents.insert(reference, expr);
        Ok(expr)
    }
}

impl Reference {
    /// Returns what people call it.
    fn name(&self) -> &str {
        match self {
            Reference::Json(_) => "json",
            Reference::Regex(_) => "regex",
            Reference::Grammar(name) => name,
        }
    }
}

impl Unit<'_> {
    fn error(&self, span: Span, kind: impl Into<GbnfErrorKind>) -> GbnfError {
        self.ast.error(span, kind).within(self.name.as_deref())
    }

    fn undefined(&self, name: &str, span: Span) -> GbnfError {
        let limit = name.len().div_ceil(3);
        let rules = self.ast.rules.iter();
        let nearest = rules
            .map(|rule| (distance(name, &rule.name, limit), &rule.name))
            .filter(|(distance, _)| *distance <= limit)
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, name)| name.clone());
        let name = name.to_owned();
        self.error(span, GbnfErrorKind::UndefinedRule { name, nearest })
    }

    /// Returns a warning for each rule that the start rule does not reach.
    fn unused(&self) -> Vec<Warning> {
        let Unit { ast, first_rule, .. } = self;
        let local = |rule: RuleId| (rule.0 - first_rule) as usize;
        let mut reached = vec![false; ast.rules.len()];
        let mut work = vec![local(self.start)];
        reached[local(self.start)] = true;
        let mut nodes: Vec<NodeId> = Vec::new();
        while let Some(rule) = work.pop() {
            nodes.push(ast.rules[rule].body);
            // A node belongs to one rule, so each is visited once.
            while let Some(node) = nodes.pop() {
                match ast.node(node) {
                    Node::Name(name) => {
                        let Some(&rule) = self.rules.get(name) else {
                            continue;
                        };
                        let rule = local(rule);
                        if !std::mem::replace(&mut reached[rule], true) {
                            work.push(rule);
                        }
                    }
                    Node::Sequence(parts) | Node::Choice(parts) => {
                        nodes.extend(parts);
                    }
                    Node::Repeat { body, .. } => nodes.push(*body),
                    Node::Empty
                    | Node::Literal(_)
                    | Node::Class { .. }
                    | Node::Any
                    | Node::Token { .. }
                    | Node::Reference(_) => {}
                }
            }
        }
        let places = Places::new(&ast.text);
        let unused =
            ast.rules.iter().zip(reached).filter(|(_, reached)| !reached);
        unused
            .map(|(rule, _)| {
                let (line, column) = places.of(rule.span);
                let kind = WarningKind::UnusedRule { name: rule.name.clone() };
                Warning { kind, line, column, grammar: self.name.clone() }
            })
            .collect()
    }
}

/// Returns how many characters must be put in, left out or changed to turn
/// one name into the other, or more than `limit`.
fn distance(from: &str, to: &str, limit: usize) -> usize {
    // Names are ASCII. Very long ones are typed by nobody.
    if from.len().abs_diff(to.len()) > limit || from.len() > 100 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, from) in from.bytes().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, to) in to.bytes().enumerate() {
            let change = corner + usize::from(!from.eq_ignore_ascii_case(&to));
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[to.len()]
}
