//! Passes that change a grammar and keep its language, one a file.
//!
//! None is needed for correctness: the machine takes any grammar. They make
//! for fewer frames and fewer configurations.

mod inline;
mod linear;

pub use self::{inline::inline, linear::linear};
use super::{Analysis, Expr, ExprId, Grammar, GrammarBuilder};

/// Runs every pass, in the order in which they help each other.
#[must_use]
pub fn simplify(grammar: &Grammar) -> Grammar {
    let grammar = linear(grammar);
    inline(&grammar, &Analysis::new(&grammar))
}

/// Copies one expression, whose parts are already in `copies`.
fn copy(
    expr: &Expr,
    builder: &mut GrammarBuilder,
    copies: &[ExprId],
) -> ExprId {
    let parts = expr.parts().iter().map(|part| copies[part.index()]);
    match expr {
        Expr::Empty => builder.empty(),
        Expr::Literal(bytes) => builder.literal(bytes),
        Expr::Class(class) => builder.class(class.clone()),
        Expr::Atom(atom) => builder.known_atom(*atom),
        Expr::Machine(machine) => builder.known_machine(*machine),
        Expr::Rule(rule) => builder.rule(*rule),
        Expr::Concat(_) => builder.concat(parts),
        Expr::Choice(_) => builder.choice(parts),
        Expr::Repeat { body, min, max } => {
            builder.repeat(copies[body.index()], *min, *max)
        }
    }
}
