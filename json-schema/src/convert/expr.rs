//! Expressions of a grammar.
//!
//! They are made by functions that keep them short: what two alternatives
//! have in common is written once, and what is repeated is counted. None of
//! that changes the texts that are derived.
//!
//! Recursion is on the nesting of an expression, which whoever builds one
//! keeps within [`MAX_DEPTH`].

use std::sync::Arc;

use maskwright_grammar_core::{regular::CharSet, util::FxHashSet};

/// How deep an expression may nest before its parts become rules.
pub(super) const MAX_DEPTH: usize = 24;

/// A rule, by number.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct RuleId(pub(super) usize);

/// A shared, immutable expression.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Expr {
    node: Arc<Node>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Node {
    kind: Kind,
    size: usize,
    depth: usize,
    /// Whether some part is the name of a rule.
    names_rules: bool,
}

/// What an expression is.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum Kind {
    /// A text; not empty.
    Literal(Box<str>),
    /// One character of a set; at least two members.
    Class(CharSet),
    /// What a rule derives.
    Rule(RuleId),
    /// One after the other: none (the empty text) or at least two, none of
    /// them a sequence.
    Seq(Box<[Expr]>),
    /// Any of these: none (no text at all) or at least two.
    Choice(Box<[Expr]>),
    /// The same several times.
    Repeat {
        /// What is repeated.
        body: Expr,
        /// How often at least.
        min: u32,
        /// How often at most.
        max: Option<u32>,
    },
}

impl Expr {
    fn new(kind: Kind) -> Expr {
        let parts = match &kind {
            Kind::Literal(_) | Kind::Class(_) | Kind::Rule(_) => &[][..],
            Kind::Seq(parts) | Kind::Choice(parts) => parts,
            Kind::Repeat { body, .. } => std::slice::from_ref(body),
        };
        let size = 1 + parts.iter().map(Expr::size).sum::<usize>();
        let depth = parts.iter().map(|part| part.depth() + 1).max();
        let depth = depth.unwrap_or(0);
        let names_rules = matches!(kind, Kind::Rule(_))
            || parts.iter().any(|part| part.node.names_rules);
        Expr { node: Arc::new(Node { kind, size, depth, names_rules }) }
    }

    pub(super) fn kind(&self) -> &Kind {
        &self.node.kind
    }

    /// How many parts there are, all told.
    pub(super) fn size(&self) -> usize {
        self.node.size
    }

    /// How deep the parts nest.
    pub(super) fn depth(&self) -> usize {
        self.node.depth
    }

    /// Only the empty text.
    pub(super) fn empty() -> Expr {
        Expr::new(Kind::Seq([].into()))
    }

    /// No text at all.
    pub(super) fn never() -> Expr {
        Expr::new(Kind::Choice([].into()))
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self.kind(), Kind::Seq(parts) if parts.is_empty())
    }

    pub(super) fn is_never(&self) -> bool {
        matches!(self.kind(), Kind::Choice(parts) if parts.is_empty())
    }

    /// Exactly this text.
    pub(super) fn literal(text: &str) -> Expr {
        if text.is_empty() {
            return Expr::empty();
        }
        Expr::new(Kind::Literal(text.into()))
    }

    /// One character of a set.
    pub(super) fn class(set: CharSet) -> Expr {
        if set.is_empty() {
            return Expr::never();
        }
        match set.as_single() {
            Some(c) => Expr::literal(c.encode_utf8(&mut [0; 4])),
            None => Expr::new(Kind::Class(set)),
        }
    }

    /// The characters that this derives, if each text is one character.
    fn as_set(&self) -> Option<CharSet> {
        match self.kind() {
            Kind::Class(set) => Some(set.clone()),
            Kind::Literal(text) => {
                let mut chars = text.chars();
                let first = chars.next()?;
                chars.next().is_none().then(|| CharSet::single(first))
            }
            _ => None,
        }
    }

    /// What a rule derives.
    pub(super) fn rule(rule: RuleId) -> Expr {
        Expr::new(Kind::Rule(rule))
    }

    /// The parts of a sequence; an expression that is none is its only part.
    fn items(&self) -> &[Expr] {
        match self.kind() {
            Kind::Seq(parts) => parts,
            _ => std::slice::from_ref(self),
        }
    }

    /// One after the other.
    pub(super) fn seq(parts: impl IntoIterator<Item = Expr>) -> Expr {
        let mut items = Vec::new();
        for part in parts {
            if part.is_never() {
                return part;
            }
            for item in part.items() {
                push_item(&mut items, item.clone());
            }
        }
        match items.len() {
            1 => items.remove(0),
            _ => Expr::new(Kind::Seq(items.into())),
        }
    }

    /// Any of these texts, which are told apart as wholes: a list of
    /// thousands costs no more than looking each up.
    pub(super) fn words(words: impl IntoIterator<Item = Expr>) -> Expr {
        let mut seen = FxHashSet::default();
        let is_new = |word: &Expr| seen.insert(word.clone());
        let mut words: Vec<Expr> = words.into_iter().filter(is_new).collect();
        match words.len() {
            1 => words.remove(0),
            _ => Expr::new(Kind::Choice(words.into())),
        }
    }

    /// Any of these.
    pub(super) fn choice(parts: impl IntoIterator<Item = Expr>) -> Expr {
        let mut ways = Vec::new();
        let mut may_be_empty = false;
        for part in parts {
            let flat: &[Expr] = match part.kind() {
                Kind::Choice(parts) => parts,
                _ => std::slice::from_ref(&part),
            };
            for way in flat {
                match way.kind() {
                    Kind::Seq(parts) if parts.is_empty() => {
                        may_be_empty = true;
                    }
                    Kind::Repeat { body, min: 0, max: Some(1) } => {
                        may_be_empty = true;
                        add_way(&mut ways, body.clone());
                    }
                    _ => add_way(&mut ways, way.clone()),
                }
            }
        }
        let choice = match ways.len() {
            1 => ways.remove(0),
            _ => Expr::new(Kind::Choice(ways.into())),
        };
        if may_be_empty { Expr::optional(choice) } else { choice }
    }

    /// This, or nothing.
    pub(super) fn optional(body: Expr) -> Expr {
        match body.kind() {
            Kind::Seq(parts) if parts.is_empty() => body,
            Kind::Choice(parts) if parts.is_empty() => Expr::empty(),
            Kind::Repeat { min: 0, .. } => body,
            Kind::Repeat { body, min: 1, max } => {
                Expr::repeat(body.clone(), 0, *max)
            }
            _ => Expr::repeat(body, 0, Some(1)),
        }
    }

    /// This any number of times.
    pub(super) fn star(body: Expr) -> Expr {
        match body.kind() {
            Kind::Repeat { body, min: 0 | 1, .. } => {
                Expr::repeat(body.clone(), 0, None)
            }
            _ => Expr::repeat(body, 0, None),
        }
    }

    /// This several times.
    pub(super) fn repeat(body: Expr, min: u32, max: Option<u32>) -> Expr {
        if max.is_some_and(|max| max < min) {
            return Expr::never();
        }
        if body.is_empty() || max == Some(0) {
            return Expr::empty();
        }
        if body.is_never() {
            return if min == 0 { Expr::empty() } else { body };
        }
        if (min, max) == (1, Some(1)) {
            return body;
        }
        Expr::new(Kind::Repeat { body, min, max })
    }

    /// The expression with others in the place of some rules.
    pub(super) fn replaced(
        &self,
        with: &dyn Fn(RuleId) -> Option<Expr>,
    ) -> Expr {
        if !self.node.names_rules {
            return self.clone();
        }
        match self.kind() {
            Kind::Literal(_) | Kind::Class(_) => self.clone(),
            Kind::Rule(rule) => with(*rule).unwrap_or_else(|| self.clone()),
            Kind::Seq(parts) => {
                Expr::seq(parts.iter().map(|part| part.replaced(with)))
            }
            Kind::Choice(parts) => {
                Expr::choice(parts.iter().map(|part| part.replaced(with)))
            }
            Kind::Repeat { body, min, max } => {
                Expr::repeat(body.replaced(with), *min, *max)
            }
        }
    }

    /// Adds the rules that are named, in the order of the text.
    pub(super) fn push_rules(&self, out: &mut Vec<RuleId>) {
        match self.kind() {
            Kind::Literal(_) | Kind::Class(_) => {}
            Kind::Rule(rule) => out.push(*rule),
            Kind::Seq(parts) | Kind::Choice(parts) => {
                parts.iter().for_each(|part| part.push_rules(out));
            }
            Kind::Repeat { body, .. } => body.push_rules(out),
        }
    }
}

/// Adds a part to a sequence, and counts it where it repeats the last one.
fn push_item(items: &mut Vec<Expr>, item: Expr) {
    let (body, min, max) = bounds(&item);
    if let Some(last) = items.last() {
        let (last_body, last_min, last_max) = bounds(last);
        // Two texts beside each other are one text.
        let is_text = matches!(item.kind(), Kind::Literal(_));
        if last_body == body && !(is_text && last == &item) {
            let max = last_max.zip(max).map(|(a, b)| a.saturating_add(b));
            let min = last_min.saturating_add(min);
            items.pop();
            items.push(Expr::repeat(body, min, max));
            return;
        }
    }
    // What stands once before its own repetition.
    if let Kind::Repeat { body, min, max } = item.kind()
        && let Kind::Seq(parts) = body.kind()
        && items.ends_with(parts)
    {
        items.truncate(items.len() - parts.len());
        let max = max.map(|max| max.saturating_add(1));
        let more = Expr::repeat(body.clone(), min.saturating_add(1), max);
        return push_item(items, more);
    }
    items.push(item);
}

fn bounds(expr: &Expr) -> (Expr, u32, Option<u32>) {
    match expr.kind() {
        Kind::Repeat { body, min, max } => (body.clone(), *min, *max),
        _ => (expr.clone(), 1, Some(1)),
    }
}

/// Adds an alternative, joined with another one where they begin or end
/// alike.
fn add_way(ways: &mut Vec<Expr>, way: Expr) {
    if ways.contains(&way) {
        return;
    }
    if let Some(set) = way.as_set() {
        for other in ways.iter_mut() {
            if let Some(more) = other.as_set() {
                *other = Expr::class(more.union(&set));
                return;
            }
        }
    }
    for index in (0..ways.len()).rev() {
        if let Some(joined) = joined(&ways[index], &way) {
            ways[index] = joined;
            return;
        }
    }
    ways.push(way);
}

/// Two alternatives with what they have in common written once.
fn joined(one: &Expr, other: &Expr) -> Option<Expr> {
    let (left, right) = (one.items(), other.items());
    let pairs = left.iter().rev().zip(right.iter().rev());
    let n_same = pairs.take_while(|(a, b)| a == b).count();
    if n_same > 0 {
        let (left, tail) = left.split_at(left.len() - n_same);
        let right = &right[..right.len() - n_same];
        let heads = [left, right].map(|head| Expr::seq(head.to_vec()));
        let head = Expr::choice(heads);
        return Some(Expr::seq([head, Expr::seq(tail.to_vec())]));
    }
    let pairs = left.iter().zip(right);
    let n_same = pairs.take_while(|(a, b)| a == b).count();
    if n_same > 0 {
        let (head, left) = left.split_at(n_same);
        let tails = [left, &right[n_same..]];
        let tails = tails.map(|tail| Expr::seq(tail.to_vec()));
        let tail = Expr::choice(tails);
        return Some(Expr::seq([Expr::seq(head.to_vec()), tail]));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(text: &str) -> Expr {
        Expr::class(text.chars().map(|c| (c.into(), c.into())).collect())
    }

    #[test]
    fn what_repeats_is_counted() {
        let digit = class("01");
        let two = Expr::seq([digit.clone(), digit.clone()]);
        assert_eq!(two, Expr::repeat(digit.clone(), 2, Some(2)));
        let more = Expr::seq([two, Expr::star(digit.clone())]);
        assert_eq!(more, Expr::repeat(digit.clone(), 2, None));
        let comma = Expr::literal(",");
        let item = Expr::seq([comma, digit]);
        let mut tail = Expr::empty();
        for n in 1..5 {
            tail = Expr::optional(Expr::seq([item.clone(), tail]));
            let counted = Expr::repeat(item.clone(), 0, Some(n));
            assert_eq!(tail, counted);
        }
        let again = Expr::seq([item.clone(), Expr::star(item.clone())]);
        assert_eq!(again, Expr::repeat(item, 1, None));
    }

    #[test]
    fn what_alternatives_have_in_common_is_written_once() {
        let [a, b, c] = ["a", "b", "c"].map(Expr::literal);
        let one = Expr::seq([a.clone(), c.clone()]);
        let other = Expr::seq([b.clone(), c.clone()]);
        let both = Expr::choice([one.clone(), other]);
        assert_eq!(both, Expr::seq([Expr::choice([a.clone(), b]), c.clone()]));
        assert_eq!(
            Expr::choice([one, c.clone()]),
            Expr::seq([Expr::optional(a), c]),
        );
        assert_eq!(Expr::choice([class("a"), class("b")]), class("ab"));
        assert!(Expr::seq([class("a"), Expr::never()]).is_never());
    }
}
