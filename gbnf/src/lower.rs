//! From a tree to a grammar: resolves names and checks the whole.

use maskwright_grammar_core::{
    automaton::Atom,
    grammar::{Analysis, Class, ExprId, Grammar, GrammarBuilder, RuleId},
    util::FxHashMap,
};

use crate::{
    ast::{Ast, Node, NodeId, RuleNode},
    error::{GbnfError, GbnfErrorKind, Places, Span, Warning, WarningKind},
};

/// Turns a tree into a grammar whose texts are derived from `start_rule`.
///
/// # Errors
///
/// Fails when a name has no rule, when there is no `start_rule`, or when a
/// rule derives nothing.
pub fn lower(
    ast: &Ast,
    start_rule: &str,
) -> Result<(Grammar, Vec<Warning>), GbnfError> {
    let mut builder = GrammarBuilder::new();
    let mut rules: FxHashMap<&str, RuleId> = FxHashMap::default();
    for rule in &ast.rules {
        rules.insert(&rule.name, builder.declare(&rule.name));
    }
    let mut exprs: Vec<ExprId> = Vec::with_capacity(ast.nodes.len());
    for (i, node) in ast.nodes.iter().enumerate() {
        let span = ast.span(NodeId(i));
        exprs.push(expr(ast, node, span, &rules, &exprs, &mut builder)?);
    }
    for rule in &ast.rules {
        builder.define(rules[&*rule.name], exprs[rule.body.0]);
    }
    let Some(&root) = rules.get(start_rule) else {
        let name = start_rule.to_owned();
        let defined = ast.rules.iter().map(|rule| rule.name.clone()).collect();
        let kind = GbnfErrorKind::MissingRoot { name, defined };
        return Err(ast.error(Span::default(), kind));
    };
    let grammar = builder
        .build(root)
        .map_err(|error| ast.error(Span::default(), error))?;
    let analysis = Analysis::new(&grammar);
    // The one to blame is a rule that needs itself, not its callers.
    let to_blame = grammar.rule_ids().find(|&rule| {
        !analysis.is_productive(grammar.rule(rule).body)
            && analysis.is_recursive(rule)
    });
    if let Some(rule) = to_blame {
        let RuleNode { name, span, .. } = &ast.rules[rule.index()];
        let kind = GbnfErrorKind::DerivesNothing { name: name.clone() };
        return Err(ast.error(*span, kind));
    }
    let warnings = unused(ast, root, &rules);
    Ok((grammar, warnings))
}

fn expr(
    ast: &Ast,
    node: &Node,
    span: Span,
    rules: &FxHashMap<&str, RuleId>,
    exprs: &[ExprId],
    builder: &mut GrammarBuilder,
) -> Result<ExprId, GbnfError> {
    Ok(match node {
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
                return Err(ast.error(span, message));
            }
            builder.class(class)
        }
        Node::Any => builder.class(Class::any()),
        Node::Name(name) => match rules.get(&**name) {
            Some(&rule) => builder.rule(rule),
            None => return Err(undefined(ast, name, span)),
        },
        Node::Token { negated, token } => {
            builder.atom(Atom { token: token.clone(), negated: *negated })
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

fn undefined(ast: &Ast, name: &str, span: Span) -> GbnfError {
    let limit = name.len().div_ceil(3);
    let nearest = ast
        .rules
        .iter()
        .map(|rule| (distance(name, &rule.name, limit), &rule.name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name.clone());
    let name = name.to_owned();
    ast.error(span, GbnfErrorKind::UndefinedRule { name, nearest })
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

/// Returns a warning for each rule that `root` does not reach.
fn unused(
    ast: &Ast,
    root: RuleId,
    rules: &FxHashMap<&str, RuleId>,
) -> Vec<Warning> {
    let mut reached = vec![false; ast.rules.len()];
    let mut work = vec![root.index()];
    reached[root.index()] = true;
    let mut nodes: Vec<NodeId> = Vec::new();
    while let Some(rule) = work.pop() {
        nodes.push(ast.rules[rule].body);
        // A node belongs to one rule, so each is visited once.
        while let Some(node) = nodes.pop() {
            match ast.node(node) {
                Node::Name(name) => {
                    let Some(rule) = rules.get(&**name) else { continue };
                    let rule = rule.index();
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
                | Node::Token { .. } => {}
            }
        }
    }
    let places = Places::new(&ast.text);
    let unused = ast.rules.iter().zip(reached).filter(|(_, reached)| !reached);
    unused
        .map(|(rule, _)| {
            let (line, column) = places.of(rule.span);
            let kind = WarningKind::UnusedRule { name: rule.name.clone() };
            Warning { kind, line, column }
        })
        .collect()
}
