//! Anchors at the ends of an expression, dropped before it is derived.
//!
//! A whole expression is read from the start of the text to its end, so `^`
//! at its start and `$` at its end say nothing, and neither do the `.*` that
//! a search puts around them. Without them most patterns are *plain*
//! ([`Info`](super::term::Info)), and then their lengths are known without a
//! search.

use super::term::{EMPTY, EPSILON, Node, NodeId, Terms};

/// How deep alternatives are looked into.
const MAX_DEPTH: u32 = 6;
/// How many alternatives may be told apart.
const MAX_ALTERNATIVES: usize = 64;

/// Returns an expression of the same texts as `root`, which is a whole one.
pub(super) fn drop_anchors(terms: &mut Terms, root: NodeId) -> NodeId {
    whole(terms, root, 0)
}

fn whole(terms: &mut Terms, node: NodeId, depth: u32) -> NodeId {
    if depth > MAX_DEPTH || terms.node_info(node).plain {
        return node;
    }
    match terms.nodes[node].clone() {
        Node::Start | Node::End => EPSILON,
        Node::And(parts) => {
            let parts = all(terms, &parts, depth);
            terms.intersect(&parts)
        }
        Node::Alt(parts) => {
            let parts = all(terms, &parts, depth);
            terms.alternate(&parts)
        }
        Node::Not(inner) => {
            let inner = whole(terms, inner, depth + 1);
            terms.complement(inner)
        }
        Node::Rep { body, min: 0, max: 1 } => {
            let body = whole(terms, body, depth + 1);
            terms.repeat(body, 0, 1)
        }
        Node::Cat(..) => sequence(terms, node, depth),
        Node::Empty
        | Node::Epsilon
        | Node::Class(_)
        | Node::Words { .. }
        | Node::Rep { .. }
        | Node::Boundary { .. }
        | Node::Previous { .. }
        | Node::Ahead { .. }
        | Node::Behind { .. } => node,
    }
}

fn all(terms: &mut Terms, parts: &[NodeId], depth: u32) -> Vec<NodeId> {
    parts.iter().map(|&part| whole(terms, part, depth + 1)).collect()
}

fn sequence(terms: &mut Terms, node: NodeId, depth: u32) -> NodeId {
    let mut parts = Vec::new();
    let mut at = node;
    while let Node::Cat(first, rest) = terms.nodes[at] {
        parts.push(first);
        at = rest;
    }
    parts.push(at);
    // What stands before the start of the text, or behind its end, is empty.
    while let Some(at) = first_assertion(terms, &parts)
        && matches!(terms.nodes[parts[at]], Node::Start)
    {
        if !are_nullable(terms, &parts[..at]) {
            return EMPTY;
        }
        parts.drain(..=at);
    }
    while let Some(at) = last_assertion(terms, &parts)
        && matches!(terms.nodes[parts[at]], Node::End)
    {
        if !are_nullable(terms, &parts[at + 1..]) {
            return EMPTY;
        }
        parts.truncate(at);
    }
    let Some(at) = first_assertion(terms, &parts) else {
        return concat(terms, &parts);
    };
    // An alternative that is anchored, between others: each by itself.
    let alternatives = match terms.nodes[parts[at]].clone() {
        Node::Alt(alternatives) if alternatives.len() <= MAX_ALTERNATIVES => {
            alternatives.to_vec()
        }
        Node::Rep { body, min: 0, max: 1 } => vec![EPSILON, body],
        _ => return concat(terms, &parts),
    };
    let before = concat(terms, &parts[..at]);
    let after = concat(terms, &parts[at + 1..]);
    let mut apart = Vec::with_capacity(alternatives.len());
    for alternative in alternatives {
        let middle = flat(terms, alternative, after);
        let one = flat(terms, before, middle);
        let one = whole(terms, one, depth + 1);
        if !terms.node_info(one).plain && one != EMPTY {
            return concat(terms, &parts);
        }
        apart.push(one);
    }
    terms.alternate(&apart)
}

fn first_assertion(terms: &Terms, parts: &[NodeId]) -> Option<usize> {
    parts.iter().position(|&part| !terms.node_info(part).plain)
}

fn last_assertion(terms: &Terms, parts: &[NodeId]) -> Option<usize> {
    parts.iter().rposition(|&part| !terms.node_info(part).plain)
}

fn are_nullable(terms: &Terms, parts: &[NodeId]) -> bool {
    parts.iter().all(|&part| terms.node_info(part).is_nullable())
}

fn concat(terms: &mut Terms, parts: &[NodeId]) -> NodeId {
    let parts = parts.iter().rev();
    parts.fold(EPSILON, |rest, &part| flat(terms, part, rest))
}

/// Concatenates, nested to the right whatever the first part is.
pub(super) fn flat(
    terms: &mut Terms,
    first: NodeId,
    second: NodeId,
) -> NodeId {
    let mut parts = Vec::new();
    let mut at = first;
    while let Node::Cat(head, tail) = terms.nodes[at] {
        parts.push(head);
        at = tail;
    }
    let node = terms.cat(at, second);
    parts.iter().rev().fold(node, |rest, &part| terms.cat(part, rest))
}
