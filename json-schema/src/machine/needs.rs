//! What a child must satisfy so that its container can still end.
//!
//! A pending formula says what is left to ask of the container, with leaves
//! about the child. The need is what the leaves must come to so that the rest
//! can be met.

use maskwright_grammar_core::{automaton::AutomatonError, util::FxHashMap};
use smallvec::SmallVec;

use super::algebra::{Algebra, Typed, Value, late};
use crate::{formula::FormulaId, parse::NameId};

/// How many cases of true and false leaves one need may take.
const MAX_CASES: usize = 1 << 10;

/// How many formulas and parts of formulas the ways to meet one need may
/// take.
const MAX_GROWTH: usize = 1 << 18;

/// A container of which something was read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Container<'a> {
    /// With names that can not come any more.
    Object(&'a [NameId]),
    /// Whether formulas know all items before the child.
    Array { known: bool },
}

impl Algebra {
    /// What a child must satisfy so that the pending need of its container
    /// can be met.
    pub(crate) fn need_of(
        &self,
        pending: Typed,
        container: Container<'_>,
    ) -> Result<Value, AutomatonError> {
        let terms = {
            let mut formulas = self.lock();
            formulas.check_limits().map_err(|error| late(&error))?;
            formulas.allow_growth(MAX_GROWTH);
            formulas.terms(pending)
        };
        let Some(terms) = terms else {
            return self.need_by_leaves(pending, container);
        };
        let mut ways: SmallVec<[Value; 4]> = SmallVec::new();
        for term in terms {
            // What another item asks that has to equal this one.
            let again = match container {
                Container::Array { known: true } => {
                    self.repeat_goal(term.rest)?
                }
                _ => None,
            };
            let goals = term.goals.into_iter().chain(again);
            if again.is_some() || self.may_end(term.rest, container)? {
                ways.push(self.lock().and(goals));
            }
        }
        Ok(self.lock().or(ways))
    }

    /// Whether a container can be finished so that a formula without leaves
    /// holds.
    fn may_end(
        &self,
        rest: Typed,
        container: Container<'_>,
    ) -> Result<bool, AutomatonError> {
        match container {
            Container::Object(used) => self.may_end_object(rest, used),
            // The item itself is not known.
            Container::Array { .. } => self.may_end_array(rest, false),
        }
    }

    /// [`Algebra::need_of`] where there are too many ways for a list of
    /// them: case by case, of which equal ones are decided once.
    fn need_by_leaves(
        &self,
        pending: Typed,
        container: Container<'_>,
    ) -> Result<Value, AutomatonError> {
        let mut known: FxHashMap<Typed, Value> = FxHashMap::default();
        let mut stack = vec![pending];
        while let Some(&formula) = stack.last() {
            if known.contains_key(&formula) {
                stack.pop();
                continue;
            }
            // Too many ways all the same: the child is free, which costs no
            // more than dead ends (the container still ends only where its
            // need is met).
            let n_cases = known.len() + stack.len();
            if n_cases > MAX_CASES || self.lock().is_full() {
                self.assume();
                return Ok(FormulaId::TRUE);
            }
            if let Some(need) = self.need_at_once(formula, container)? {
                known.insert(formula, need);
                continue;
            }
            let mut formulas = self.lock();
            let cases = formulas.cases_of_leaves(formula);
            let open = cases.iter().map(|&(_, case)| case);
            let open: Vec<Typed> =
                open.filter(|case| !known.contains_key(case)).collect();
            if !open.is_empty() {
                stack.extend(open);
                continue;
            }
            let ways: Vec<Value> = cases
                .into_iter()
                .map(|(goal, case)| {
                    let need = known.get(&case).copied();
                    formulas.and([goal, need.unwrap_or(FormulaId::FALSE)])
                })
                .collect();
            let need = formulas.or(ways);
            known.insert(formula, need);
        }
        Ok(known.get(&pending).copied().unwrap_or(FormulaId::TRUE))
    }

    /// The need of a pending formula that any child meets, or none does.
    fn need_at_once(
        &self,
        formula: Typed,
        container: Container<'_>,
    ) -> Result<Option<Value>, AutomatonError> {
        let [least, most] = [false, true].map(|holds| {
            let mut formulas = self.lock();
            formulas.substitute(formula, &|_| holds)
        });
        if !self.may_end(most, container)? {
            return Ok(Some(FormulaId::FALSE));
        }
        let always = self.may_end(least, container)?;
        Ok(always.then_some(FormulaId::TRUE))
    }

    /// What an item must satisfy so that the array can still end, where it is
    /// one of few values and is compared with others, which the formula
    /// knows if they are `noted`. `None` of one of many.
    pub(crate) fn values_left(
        &self,
        need: Value,
        pending: Typed,
        noted: bool,
    ) -> Result<Option<Value>, AutomatonError> {
        let Some(values) = self.listed_values(need)? else { return Ok(None) };
        let leaves = self.lock().leaves(pending);
        let mut left = Vec::with_capacity(values.len());
        for &value in &values {
            let mut holding = Vec::with_capacity(leaves.len());
            for &leaf in &leaves {
                let both = {
                    let mut formulas = self.lock();
                    let same = formulas.equals(value);
                    formulas.and([leaf, same])
                };
                if self.satisfiable(both)? {
                    holding.push(leaf);
                }
            }
            let rest = {
                let mut formulas = self.lock();
                let truth = |leaf: Value| holding.binary_search(&leaf).is_ok();
                let rest = formulas.substitute(pending, &truth);
                formulas.with_known_item(rest, value)
            };
            if self.may_end_array(rest, noted)? {
                left.push(value);
            }
        }
        if left.len() == values.len() {
            return Ok(Some(need));
        }
        let mut formulas = self.lock();
        let left: Vec<Value> =
            left.into_iter().map(|value| formulas.equals(value)).collect();
        Ok(Some(formulas.or(left)))
    }
}
