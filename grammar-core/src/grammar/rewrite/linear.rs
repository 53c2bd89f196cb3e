//! Turns rules that call themselves only last, or only first, into loops.
//!
//! `a ::= x a | y` is `x* y`, and `a ::= a x | y` is `y x*`: neither needs a
//! stack.

use super::copy;
use crate::grammar::{Expr, ExprId, Grammar, GrammarBuilder, RuleId};

/// Replaces each rule that is directly right-linear or left-linear in itself
/// by a loop.
#[must_use]
pub fn linear(grammar: &Grammar) -> Grammar {
    let mut builder = GrammarBuilder::with_terminals_of(grammar);
    for rule in grammar.rules() {
        builder.declare(rule.name.clone());
    }
    let mut copies: Vec<ExprId> = Vec::with_capacity(grammar.exprs().len());
    for expr in grammar.exprs() {
        let copied = copy(expr, &mut builder, &copies);
        copies.push(copied);
    }
    let mut mentions = vec![u32::MAX; grammar.exprs().len()];
    let calls = grammar.calls();
    for (id, rule) in grammar.rule_ids().zip(grammar.rules()) {
        let mut body = None;
        if calls[id.index()].binary_search(&id.0).is_ok() {
            mark(grammar, id, &mut mentions);
            let mentions_rule = |expr: ExprId| mentions[expr.index()] == id.0;
            body = Split::new(grammar, id, rule.body, mentions_rule)
                .map(|split| split.build(&mut builder, &copies));
        }
        builder.define(id, body.unwrap_or(copies[rule.body.index()]));
    }
    // All rules were declared and defined, in order.
    builder.build(grammar.root()).unwrap_or_else(|_| grammar.clone())
}

/// Marks every expression below the body of `rule` that names it.
fn mark(grammar: &Grammar, rule: RuleId, mentions: &mut [u32]) {
    let mut seen = crate::util::FxHashSet::default();
    let body = grammar.rule(rule).body;
    for id in grammar.below([body], |expr| seen.insert(expr)) {
        let expr = grammar.expr(id);
        let mut parts = expr.parts().iter();
        if *expr == Expr::Rule(rule)
            || parts.any(|part| mentions[part.index()] == rule.0)
        {
            mentions[id.index()] = rule.0;
        }
    }
}

/// The alternatives of a rule that is linear in itself.
struct Split<'g> {
    /// Parts before or after the call, one entry an alternative.
    around: Vec<&'g [ExprId]>,
    /// The alternatives without a call.
    without: Vec<ExprId>,
    /// Whether the call comes first.
    left: bool,
}

impl<'g> Split<'g> {
    fn new(
        grammar: &'g Grammar,
        rule: RuleId,
        body: ExprId,
        mentions: impl Fn(ExprId) -> bool,
    ) -> Option<Split<'g>> {
        let Expr::Choice(alternatives) = grammar.expr(body) else {
            return None;
        };
        let call = |expr: ExprId| *grammar.expr(expr) == Expr::Rule(rule);
        let (mut left, mut right, mut without) = (vec![], vec![], vec![]);
        for &alternative in alternatives {
            if !mentions(alternative) {
                without.push(alternative);
                continue;
            }
            if call(alternative) {
                // `a ::= a` derives nothing more.
                continue;
            }
            let Expr::Concat(parts) = grammar.expr(alternative) else {
                return None;
            };
            let (first, after) = parts.split_first()?;
            let (last, before) = parts.split_last()?;
            if call(*first) && !after.iter().any(|&part| mentions(part)) {
                left.push(after);
            } else if call(*last) && !before.iter().any(|&part| mentions(part))
            {
                right.push(before);
            } else {
                return None;
            }
        }
        if without.is_empty() || !left.is_empty() && !right.is_empty() {
            return None;
        }
        let is_left = !left.is_empty();
        let around = if is_left { left } else { right };
        Some(Split { around, without, left: is_left })
    }

    fn build(self, builder: &mut GrammarBuilder, copies: &[ExprId]) -> ExprId {
        let copied = |expr: &ExprId| copies[expr.index()];
        let once = builder.choice(self.without.iter().map(copied));
        if self.around.is_empty() {
            return once;
        }
        let around: Vec<ExprId> = self
            .around
            .iter()
            .map(|parts| builder.concat(parts.iter().map(copied)))
            .collect();
        let around = builder.choice(around);
        let many = builder.repeat(around, 0, None);
        let order = if self.left { [once, many] } else { [many, once] };
        builder.concat(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(
        body: impl FnOnce(&mut GrammarBuilder, ExprId) -> ExprId,
    ) -> String {
        let mut builder = GrammarBuilder::new();
        let root = builder.declare("a");
        let call = builder.rule(root);
        let body = body(&mut builder, call);
        builder.define(root, body);
        let grammar = builder.build(root).expect("well formed");
        linear(&grammar).to_string()
    }

    #[test]
    fn right_and_left_recursion_become_loops() {
        let right = build(|builder, call| {
            let (x, empty) = (builder.literal(b"x"), builder.empty());
            let more = builder.concat([x, call]);
            builder.choice([more, empty])
        });
        assert_eq!(right, "a ::= \"x\"* \"\"\n".replace(" \"\"", ""));
        let left = build(|builder, call| {
            let [x, y] = [b"x", b"y"].map(|bytes| builder.literal(bytes));
            let more = builder.concat([call, x]);
            builder.choice([more, y, call])
        });
        assert_eq!(left, "a ::= \"y\" \"x\"*\n");
    }

    #[test]
    fn embedding_and_two_sided_rules_are_left_alone() {
        for sides in [(true, true), (false, false)] {
            let text = build(|builder, call| {
                let [x, y] = [b"x", b"y"].map(|bytes| builder.literal(bytes));
                let embedded = builder.concat([x, call, x]);
                let two = builder.concat([x, call]);
                let three = builder.concat([call, y]);
                let parts = if sides.0 {
                    vec![embedded, y]
                } else {
                    vec![two, three, y]
                };
                builder.choice(parts)
            });
            assert!(!text.contains('*'), "{text}");
        }
    }
}
