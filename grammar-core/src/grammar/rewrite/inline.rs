//! Puts the bodies of small or once-used rules where the rules are named.

use super::copy;
use crate::grammar::{
    Analysis, Expr, ExprId, Grammar, GrammarBuilder, RuleId,
};

/// The size up to which a rule that is used more than once is put in place.
const MAX_SIZE: u32 = 24;

/// A class of more code points than this makes a rule broad: its states have
/// large masks, which are better shared than copied.
const MAX_BREADTH: u32 = 64;

/// Puts the body of each rule in place of its name where the rule does not
/// embed itself and is either named once, or small and not broad. Rules that
/// are no longer named are dropped.
#[must_use]
pub fn inline(grammar: &Grammar, analysis: &Analysis) -> Grammar {
    let n = grammar.exprs().len();
    let uses = uses(grammar);
    let mut pass = Pass {
        builder: GrammarBuilder::with_terminals_of(grammar),
        copies: vec![ExprId(0); n],
        weights: vec![Weight::default(); n],
        bodies: vec![None; grammar.rules().len()],
        new_ids: vec![RuleId(0); grammar.rules().len()],
    };
    let keep = |rule: RuleId, weight: Weight| {
        rule == grammar.root()
            || analysis.is_recursive(rule)
            || uses[rule.index()] > 1
                && (weight.size > MAX_SIZE || weight.broad)
    };
    let reachable = reachable(grammar);
    let mut seen = vec![false; n];
    for rule in analysis.callees_first() {
        if !reachable[rule.index()] {
            continue;
        }
        // A rule that embeds itself is kept, and its id must be known first.
        if analysis.is_recursive(rule) {
            pass.declare(grammar, rule);
        }
    }
    let mut defined = Vec::new();
    for rule in analysis.callees_first() {
        if !reachable[rule.index()] {
            continue;
        }
        let body = grammar.rule(rule).body;
        let below = grammar.below([body], |expr| {
            !std::mem::replace(&mut seen[expr.index()], true)
        });
        for expr in below {
            pass.visit(grammar, expr);
        }
        if keep(rule, pass.weights[body.index()]) {
            if !analysis.is_recursive(rule) {
                pass.declare(grammar, rule);
            }
            defined.push((pass.new_ids[rule.index()], body));
        } else {
            pass.bodies[rule.index()] = Some(body);
        }
    }
    for (rule, body) in defined {
        pass.builder.define(rule, pass.copies[body.index()]);
    }
    let root = pass.new_ids[grammar.root().index()];
    // Every reachable rule that is kept was declared and defined above.
    pass.builder.build(root).unwrap_or_else(|_| grammar.clone())
}

/// How much a machine for an expression needs.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    size: u32,
    broad: bool,
}

struct Pass {
    builder: GrammarBuilder,
    copies: Vec<ExprId>,
    weights: Vec<Weight>,
    /// The old body of each rule that is put in place.
    bodies: Vec<Option<ExprId>>,
    new_ids: Vec<RuleId>,
}

impl Pass {
    fn declare(&mut self, grammar: &Grammar, rule: RuleId) {
        let name = grammar.rule(rule).name.clone();
        self.new_ids[rule.index()] = self.builder.declare(name);
    }

    /// Copies and weighs one expression, whose parts were visited before.
    fn visit(&mut self, grammar: &Grammar, id: ExprId) {
        let expr = grammar.expr(id);
        let i = id.index();
        if let Expr::Rule(rule) = expr {
            if let Some(body) = self.bodies[rule.index()] {
                self.copies[i] = self.copies[body.index()];
                self.weights[i] = self.weights[body.index()];
            } else {
                let rule = self.new_ids[rule.index()];
                self.copies[i] = self.builder.rule(rule);
                self.weights[i] = Weight { size: 1, broad: false };
            }
            return;
        }
        self.copies[i] = copy(expr, &mut self.builder, &self.copies);
        self.weights[i] = self.weigh(expr);
    }

    fn weigh(&self, expr: &Expr) -> Weight {
        let own = match expr {
            Expr::Literal(bytes) => {
                u32::try_from(bytes.len()).unwrap_or(u32::MAX)
            }
            Expr::Class(class) => {
                let n_points = class
                    .ranges()
                    .iter()
                    .map(|(lo, hi)| hi - lo + 1)
                    .sum::<u32>();
                let broad = n_points > MAX_BREADTH;
                return Weight { size: 1, broad };
            }
            Expr::Repeat { body, min, max } => {
                let inner = self.weights[body.index()];
                let times = max.unwrap_or_else(|| min.saturating_add(1));
                let size = inner.size.saturating_mul(times);
                return Weight { size, ..inner };
            }
            Expr::Empty | Expr::Concat(_) | Expr::Choice(_) => 0,
            Expr::Atom(_) | Expr::Rule(_) | Expr::Machine(_) => 1,
        };
        let mut weight = Weight { size: own, broad: false };
        for part in expr.parts() {
            let part = self.weights[part.index()];
            weight.size = weight.size.saturating_add(part.size);
            weight.broad |= part.broad;
        }
        weight
    }
}

/// Returns how often each rule is named in the rules that the root reaches,
/// every place counted.
fn uses(grammar: &Grammar) -> Vec<u64> {
    let mut places = vec![0_u64; grammar.exprs().len()];
    for (rule, reachable) in grammar.rules().iter().zip(reachable(grammar)) {
        places[rule.body.index()] += u64::from(reachable);
    }
    let mut uses = vec![0_u64; grammar.rules().len()];
    for (i, expr) in grammar.exprs().iter().enumerate().rev() {
        let here = places[i];
        for part in expr.parts() {
            let places = &mut places[part.index()];
            *places = places.saturating_add(here);
        }
        if let Expr::Rule(rule) = expr {
            uses[rule.index()] = here;
        }
    }
    uses
}

/// Returns which rules the root reaches.
fn reachable(grammar: &Grammar) -> Vec<bool> {
    let calls = grammar.calls();
    let mut reachable = vec![false; calls.len()];
    let mut work = vec![grammar.root().0];
    while let Some(rule) = work.pop() {
        if !std::mem::replace(&mut reachable[rule as usize], true) {
            work.extend(&calls[rule as usize]);
        }
    }
    reachable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_rules_are_put_in_place_and_recursive_ones_kept() {
        // root ::= ws v ws v; v ::= "(" root ")"; ws ::= " "*; no ::= "n"
        let mut builder = GrammarBuilder::new();
        let [root, v, ws, no] =
            ["root", "v", "ws", "no"].map(|name| builder.declare(name));
        let [call_root, call_v, call_ws] =
            [root, v, ws].map(|rule| builder.rule(rule));
        let body = builder.concat([call_ws, call_v, call_ws, call_v]);
        builder.define(root, body);
        let [open, close, blank, n] =
            [b"(", b")", b" ", b"n"].map(|bytes| builder.literal(bytes));
        let body = builder.concat([open, call_root, close]);
        builder.define(v, body);
        let body = builder.repeat(blank, 0, None);
        builder.define(ws, body);
        builder.define(no, n);
        let grammar = builder.build(root).expect("well formed");
        let small = inline(&grammar, &Analysis::new(&grammar)).to_string();
        assert!(small.contains("root ::= \" \"* v \" \"* v\n"), "{small}");
        assert!(small.contains("v ::= \"(\" root \")\"\n"), "{small}");
        assert_eq!(small.lines().count(), 2);
    }
}
