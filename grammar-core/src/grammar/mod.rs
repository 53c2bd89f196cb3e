//! Context-free grammars over code points, literals and whole tokens.
//!
//! A [`Grammar`] is a list of rules whose bodies live in one arena of
//! expressions. Equal expressions are one expression, and an expression's
//! parts come before it in the arena, so that every pass over a grammar is a
//! loop and never recursion. A [`GrammarBuilder`] makes grammars,
//! [`Analysis`] answers questions about them, and [`rewrite`] holds the
//! passes that change a grammar and keep its language.
//!
//! Machines for grammars are [`automaton::cfg`](crate::automaton::cfg)'s
//! work; syntaxes for them are the front ends'.

mod analysis;
mod builder;
mod class;
mod expr;
mod graph;
mod print;
pub mod rewrite;

pub(crate) use self::graph::Components;
pub use self::{
    analysis::Analysis,
    builder::{GrammarBuilder, GrammarError},
    class::Class,
    expr::{Embedded, Expr, ExprId, Grammar, MachineId, Rule, RuleId},
};
