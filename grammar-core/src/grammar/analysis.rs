//! What can be said of a grammar: which rules derive the empty text, which
//! derive anything at all, and which embed themselves.

use super::{Components, Expr, ExprId, Grammar, RuleId};

/// Answers about one grammar. Every pass is iterative and linear.
#[derive(Clone, Debug)]
pub struct Analysis {
    nullable: Vec<bool>,
    productive: Vec<bool>,
    components: Components,
    left: Components,
}

impl Analysis {
    /// Analyses `grammar`.
    pub fn new(grammar: &Grammar) -> Analysis {
        let nullable = least(grammar, |expr| match expr {
            Expr::Empty | Expr::Repeat { min: 0, .. } => true,
            Expr::Machine(machine) => grammar.machine(*machine).is_nullable,
            Expr::Literal(_)
            | Expr::Class(_)
            | Expr::Atom(_)
            | Expr::Rule(_)
            | Expr::Concat(_)
            | Expr::Choice(_)
            | Expr::Repeat { .. } => false,
        });
        let productive = least(grammar, |expr| match expr {
            Expr::Class(class) => !class.is_empty(),
            Expr::Machine(machine) => {
                let machine = grammar.machine(*machine);
                machine.is_nullable || machine.is_open
            }
            Expr::Empty
            | Expr::Literal(_)
            | Expr::Atom(_)
            | Expr::Repeat { min: 0, .. } => true,
            Expr::Rule(_)
            | Expr::Concat(_)
            | Expr::Choice(_)
            | Expr::Repeat { .. } => false,
        });
        let components = Components::new(&grammar.calls());
        let left = Components::new(&left_calls(grammar, &nullable));
        Analysis { nullable, productive, components, left }
    }

    /// Returns true if and only if `expr` derives the empty text.
    pub fn is_nullable(&self, expr: ExprId) -> bool {
        self.nullable[expr.index()]
    }

    /// Returns true if and only if `expr` derives anything.
    pub fn is_productive(&self, expr: ExprId) -> bool {
        self.productive[expr.index()]
    }

    /// Returns true if and only if `rule` can call itself, directly or not.
    pub fn is_recursive(&self, rule: RuleId) -> bool {
        let component = self.components.of[rule.index()];
        self.components.cyclic[component as usize]
    }

    /// Returns true if and only if `rule` can call itself before it has read
    /// anything, directly, indirectly or behind what may be empty.
    pub fn is_left_recursive(&self, rule: RuleId) -> bool {
        self.left.cyclic[self.left.of[rule.index()] as usize]
    }

    /// Returns the rules, each after the rules that it calls except for those
    /// that call it back.
    pub fn callees_first(&self) -> impl Iterator<Item = RuleId> + '_ {
        self.components.members.iter().flatten().copied().map(RuleId)
    }
}

/// Returns the least set of expressions that holds everything of which `base`
/// is true, and each concatenation of members, choice with a member,
/// repetition of a member and call of a rule whose body is a member.
fn least(grammar: &Grammar, base: impl Fn(&Expr) -> bool) -> Vec<bool> {
    let n = grammar.exprs.len();
    let mut member = vec![false; n];
    // How many parts still have to be members.
    let mut missing = vec![1_usize; n];
    let users = Users::new(grammar);
    let mut work: Vec<ExprId> = Vec::new();
    for (id, expr) in expr_ids(grammar).zip(&grammar.exprs) {
        if let Expr::Concat(parts) = expr {
            missing[id.index()] = parts.len();
        }
        if base(expr) {
            member[id.index()] = true;
            work.push(id);
        }
    }
    while let Some(expr) = work.pop() {
        for &user in users.of(expr) {
            let left = &mut missing[user.index()];
            *left = left.saturating_sub(1);
            if *left == 0 && !member[user.index()] {
                member[user.index()] = true;
                work.push(user);
            }
        }
    }
    member
}

/// Who uses an expression: expressions that it is a part of (once for each
/// time), and calls of the rules that it is the body of.
struct Users {
    start: Vec<usize>,
    users: Vec<ExprId>,
}

impl Users {
    fn new(grammar: &Grammar) -> Users {
        let n = grammar.exprs.len();
        let edges = || {
            expr_ids(grammar).zip(&grammar.exprs).flat_map(|(id, expr)| {
                let body = match expr {
                    Expr::Rule(rule) => Some(grammar.rule(*rule).body),
                    Expr::Empty
                    | Expr::Literal(_)
                    | Expr::Class(_)
                    | Expr::Atom(_)
                    | Expr::Machine(_)
                    | Expr::Concat(_)
                    | Expr::Choice(_)
                    | Expr::Repeat { .. } => None,
                };
                let parts = expr.parts().iter().copied().chain(body);
                parts.map(move |part| (part, id))
            })
        };
        let mut start = vec![0; n + 1];
        for (part, _) in edges() {
            start[part.index() + 1] += 1;
        }
        for i in 0..n {
            start[i + 1] += start[i];
        }
        let mut users = vec![ExprId(0); start[n]];
        let mut next = start.clone();
        for (part, user) in edges() {
            users[next[part.index()]] = user;
            next[part.index()] += 1;
        }
        Users { start, users }
    }

    fn of(&self, expr: ExprId) -> &[ExprId] {
        let index = expr.index();
        &self.users[self.start[index]..self.start[index + 1]]
    }
}

/// Returns, for each rule, the rules that it can call before it has read
/// anything.
fn left_calls(grammar: &Grammar, nullable: &[bool]) -> Vec<Vec<u32>> {
    let mut seen = vec![u32::MAX; grammar.exprs.len()];
    let mut calls = Vec::with_capacity(grammar.rules.len());
    for (id, rule) in grammar.rule_ids().zip(&grammar.rules) {
        let mut called = Vec::new();
        let mut work = vec![rule.body];
        while let Some(expr) = work.pop() {
            if std::mem::replace(&mut seen[expr.index()], id.0) == id.0 {
                continue;
            }
            match grammar.expr(expr) {
                Expr::Rule(rule) => called.push(rule.0),
                Expr::Concat(parts) => {
                    for part in parts {
                        work.push(*part);
                        if !nullable[part.index()] {
                            break;
                        }
                    }
                }
                Expr::Choice(parts) => work.extend(parts),
                Expr::Repeat { body, .. } => work.push(*body),
                Expr::Empty
                | Expr::Literal(_)
                | Expr::Class(_)
                | Expr::Atom(_)
                | Expr::Machine(_) => {}
            }
        }
        calls.push(called);
    }
    calls
}

fn expr_ids(grammar: &Grammar) -> impl Iterator<Item = ExprId> + use<> {
    // The builder counts expressions in `u32`.
    (0..u32::try_from(grammar.exprs.len()).unwrap_or(u32::MAX)).map(ExprId)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::GrammarBuilder;

    #[test]
    fn hidden_left_recursion_is_seen() {
        // root ::= ws root "y" | "z"; ws ::= " "*; dead ::= dead "x"
        let mut builder = GrammarBuilder::new();
        let [root, ws, dead] =
            ["root", "ws", "dead"].map(|name| builder.declare(name));
        let [call_ws, call_root, call_dead] =
            [ws, root, dead].map(|rule| builder.rule(rule));
        let [y, z, blank, x] =
            [b"y", b"z", b" ", b"x"].map(|literal| builder.literal(literal));
        let left = builder.concat([call_ws, call_root, y]);
        let body = builder.choice([left, z]);
        builder.define(root, body);
        let body = builder.repeat(blank, 0, None);
        builder.define(ws, body);
        let body = builder.concat([call_dead, x]);
        builder.define(dead, body);
        let grammar = builder.build(root).expect("well formed");
        let analysis = Analysis::new(&grammar);
        assert!(analysis.is_left_recursive(root));
        assert!(!analysis.is_left_recursive(ws));
        assert!(!analysis.is_recursive(ws));
        let body = |rule| grammar.rule(rule).body;
        assert!(analysis.is_nullable(body(ws)));
        assert!(!analysis.is_nullable(body(root)));
        assert!(analysis.is_productive(body(root)));
        assert!(!analysis.is_productive(body(dead)));
    }
}
