//! Schemas as boolean formulas that are derived, not normalised.
//!
//! A schema node is never merged with another one up front. It becomes a
//! formula in negation normal form, one per JSON type, when the first byte of
//! a value has told the type ([`Formulas::typed`]). Reading a member or an
//! item *derives* that formula ([`Formulas::derive_member`],
//! [`Formulas::derive_item`]): the result speaks about the members to come,
//! with leaves [`Form::Kid`] about the child's value. When the child has
//! ended, each leaf is replaced by its truth ([`Formulas::substitute`]). What
//! is left at the end of the container is true or false
//! ([`Formulas::holds_at_end`]). This is exact for every keyword and needs no
//! search.
//!
//! Every atom has a dual, so negation ([`Formulas::negate`]) is cheap, and
//! formulas are hash-consed, so equality is equality of ids. Everything is
//! expanded lazily and memoised; the arena only grows, and its limits are
//! reported by the next [`Formulas::typed`].
//!
//! Recursion in this module is on the nesting of a formula, which
//! [`Limits::max_formula_depth`](crate::parse::Limits) bounds; chains of
//! references are followed with an explicit stack.

mod arena;
mod cycles;
mod derive;
mod evaluators;
mod expand;
mod form;
mod listed;
mod one_of;
mod order;
mod passed;
mod pending;
mod simplify;
mod site;
mod strings;
mod track;

#[cfg(test)]
mod tests;

pub use arena::Formulas;
pub use form::{
    EnvId, Evaluator, Form, FormulaId, Goal, GoalId, Key, KeySet, KeySetId,
    NO_END, NumberSetId, Scope, StringSetId,
};
pub(crate) use listed::MAX_LISTED;
pub use pending::{DNF_CAP, Term};
pub(crate) use site::Mentions;
pub use site::{ArraySite, ObjectSite, SiteName};
pub use strings::StringSite;
pub use track::{TrackError, Tracker};
