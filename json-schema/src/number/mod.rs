//! JSON numbers, read byte by byte against exact arithmetic.
//!
//! A schema says which *values* a number may have; a generator writes
//! *texts*. Once exponents are allowed, the texts below a bound are not a
//! regular language, so no automaton over bytes decides them. Here a prefix
//! is judged by arithmetic instead: it is kept as far as it matters
//! ([`NumberState`]), and it is viable when one of the windows of values that
//! it can still reach meets the allowed values ([`Cells`]).
//!
//! - [`Decimal`] is an exact decimal that never expands its exponent.
//! - [`NumberFormula`] is a boolean combination of conditions on a number.
//! - [`NumberSpec`] is what one site asks: a formula that must hold, goals
//!   whose verdicts are wanted at the end, and a spelling [`Policy`].
//!
//! Nothing here knows about the machine around it: every function is pure.

mod cells;
mod classes;
mod decimal;
mod formula;
mod list;
mod plain;
mod search;
mod spec;
mod state;
#[cfg(test)]
mod tests;

pub use cells::Cells;
pub use decimal::{Decimal, DecimalError};
pub use formula::NumberFormula;
pub use list::Values;
pub(crate) use plain::{PlainNumbers, PlainState};
pub use spec::{LiveBytes, MAX_GOALS, NumberSpec, Policy, Spelling};
pub use state::NumberState;
