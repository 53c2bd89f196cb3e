//! Pending formulas: their leaves, and what becomes of them when the child
//! has ended.

use std::sync::Arc;

use maskwright_grammar_core::util::FxHashMap;
use smallvec::SmallVec;

use super::arena::{Formulas, Parts};
use super::form::{Evaluator, Form, FormulaId};

/// The most terms that [`Formulas::terms`] splits a formula into.
pub const DNF_CAP: usize = 64;

/// The most leaves inside one `unevaluated…` atom that are split by cases.
const MAX_NESTED: usize = 6;

/// One way in which a pending formula can come true.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Term {
    /// The value formulas that the child must satisfy, all of them; sorted.
    pub goals: SmallVec<[FormulaId; 4]>,
    /// What must then hold for the rest of the container.
    pub rest: FormulaId,
}

impl Formulas {
    /// Groups leaves: `K(g) ∧ K(h)` becomes `K(g ∧ h)`.
    ///
    /// This is where the schemas that apply to one child meet.
    pub fn factor(&mut self, id: FormulaId) -> FormulaId {
        let (conjunction, parts) = match self.form(id) {
            Form::And(parts) => (true, Arc::clone(parts)),
            Form::Or(parts) => (false, Arc::clone(parts)),
            _ => return id,
        };
        let mut others = Parts::new();
        let mut goals = Parts::new();
        for &part in &*parts {
            let part = self.factor(part);
            match self.form(part) {
                Form::Kid(goal) => goals.push(*goal),
                _ => others.push(part),
            }
        }
        if !goals.is_empty() {
            let goal = self.combine(conjunction, goals);
            others.push(self.kid(goal));
        }
        self.combine(conjunction, others)
    }

    /// The value formulas that a pending formula asks of the child; sorted.
    pub fn leaves(&self, id: FormulaId) -> Vec<FormulaId> {
        let mut leaves = Vec::new();
        self.push_leaves(id, &mut leaves);
        leaves.sort_unstable();
        leaves.dedup();
        leaves
    }

    /// Adds the leaves of a formula to a list that is not sorted.
    pub fn push_leaves(&self, id: FormulaId, out: &mut Vec<FormulaId>) {
        match self.form(id) {
            Form::Kid(goal) => out.push(*goal),
            Form::And(parts) | Form::Or(parts) => {
                for &part in &**parts {
                    self.push_leaves(part, out);
                }
            }
            Form::Unevaluated(evaluators, _)
            | Form::ExUnevaluated(evaluators, _) => {
                for evaluator in &**evaluators {
                    self.push_leaves(evaluator.condition, out);
                }
            }
            _ => {}
        }
    }

    /// Replaces each leaf by its truth.
    pub fn substitute(
        &mut self,
        id: FormulaId,
        truth: &dyn Fn(FormulaId) -> bool,
    ) -> FormulaId {
        self.rewrite(id, &mut FxHashMap::default(), &|form| match form {
            Form::Kid(goal) => Some(FormulaId::constant(truth(*goal))),
            _ => None,
        })
    }

    /// Notes that two items of the array are equal: `Repeated` holds from
    /// now on.
    pub fn with_repetition(&mut self, id: FormulaId) -> FormulaId {
        self.rewrite(id, &mut FxHashMap::default(), &|form| match form {
            Form::Unique => Some(FormulaId::FALSE),
            Form::Repeated => Some(FormulaId::TRUE),
            _ => None,
        })
    }

    /// Replaces atoms.
    pub(crate) fn rewrite(
        &mut self,
        id: FormulaId,
        memo: &mut FxHashMap<FormulaId, FormulaId>,
        atom: &dyn Fn(&Form) -> Option<FormulaId>,
    ) -> FormulaId {
        let (conjunction, parts) = match self.form(id) {
            Form::And(parts) => (true, Arc::clone(parts)),
            Form::Or(parts) => (false, Arc::clone(parts)),
            Form::Unevaluated(evaluators, rest) => {
                let (evaluators, rest) = (Arc::clone(evaluators), *rest);
                return self.rewrite_evaluators(
                    true,
                    &evaluators,
                    rest,
                    memo,
                    atom,
                );
            }
            Form::ExUnevaluated(evaluators, rest) => {
                let (evaluators, rest) = (Arc::clone(evaluators), *rest);
                return self.rewrite_evaluators(
                    false,
                    &evaluators,
                    rest,
                    memo,
                    atom,
                );
            }
            form => return atom(form).unwrap_or(id),
        };
        if let Some(&known) = memo.get(&id) {
            return known;
        }
        let parts: Parts =
            parts.iter().map(|&part| self.rewrite(part, memo, atom)).collect();
        let rewritten = self.combine(conjunction, parts);
        memo.insert(id, rewritten);
        rewritten
    }

    fn rewrite_evaluators(
        &mut self,
        positive: bool,
        evaluators: &[Evaluator],
        rest: FormulaId,
        memo: &mut FxHashMap<FormulaId, FormulaId>,
        atom: &dyn Fn(&Form) -> Option<FormulaId>,
    ) -> FormulaId {
        let evaluators = evaluators
            .iter()
            .map(|evaluator| {
                let condition = self.rewrite(evaluator.condition, memo, atom);
                Evaluator { condition, ..*evaluator }
            })
            .collect();
        self.make_unevaluated(positive, evaluators, rest)
    }

    /// Whether a formula of a container holds when the container ends.
    ///
    /// `repeated` says whether two items of an array are equal.
    pub fn holds_at_end(&self, id: FormulaId, repeated: bool) -> bool {
        match self.form(id) {
            Form::And(parts) => {
                parts.iter().all(|&part| self.holds_at_end(part, repeated))
            }
            Form::Or(parts) => {
                parts.iter().any(|&part| self.holds_at_end(part, repeated))
            }
            Form::True
            | Form::All(..)
            | Form::CountLe(_)
            | Form::ItemsAll(..)
            | Form::LenLe(_)
            | Form::ContainsLe(..)
            | Form::Unevaluated(..) => true,
            Form::Unique => !repeated,
            Form::Repeated => repeated,
            _ => false,
        }
    }

    /// Whether a formula mentions `Unique` or `Repeated`, so that the items
    /// of the array have to be compared.
    pub fn compares_items(&self, id: FormulaId) -> bool {
        match self.form(id) {
            Form::And(parts) | Form::Or(parts) => {
                parts.iter().any(|&part| self.compares_items(part))
            }
            Form::Unevaluated(evaluators, _)
            | Form::ExUnevaluated(evaluators, _) => evaluators
                .iter()
                .any(|evaluator| self.compares_items(evaluator.condition)),
            Form::Unique | Form::Repeated => true,
            _ => false,
        }
    }

    /// Splits a pending formula into the ways in which it can come true.
    ///
    /// A child that satisfies all goals of one term leaves the container with
    /// that term's rest. Leaves occur positively only, so no other child
    /// leaves it with more. Returns `None` beyond [`DNF_CAP`] terms.
    pub fn terms(&mut self, id: FormulaId) -> Option<Vec<Term>> {
        let terms = match self.form(id) {
            Form::False => return Some(Vec::new()),
            Form::Kid(goal) => {
                let goals = SmallVec::from_slice(&[*goal]);
                vec![Term { goals, rest: FormulaId::TRUE }]
            }
            Form::Or(parts) => {
                let parts = Arc::clone(parts);
                let mut all = Vec::new();
                for &part in &*parts {
                    all.extend(self.terms(part)?);
                    if all.len() > 4 * DNF_CAP {
                        return None;
                    }
                }
                all
            }
            Form::And(parts) => {
                let parts = Arc::clone(parts);
                return self.product(&parts);
            }
            Form::Unevaluated(..) | Form::ExUnevaluated(..) => {
                self.cases(id)?
            }
            _ => vec![Term { goals: SmallVec::new(), rest: id }],
        };
        self.merge(terms)
    }

    fn product(&mut self, parts: &[FormulaId]) -> Option<Vec<Term>> {
        // What has no leaves is one factor of every term.
        let mut rest = Parts::new();
        let mut factors = Vec::new();
        for &part in parts {
            if self.has_leaves(part) {
                factors.push(self.terms(part)?);
            } else {
                rest.push(part);
            }
        }
        let rest = self.and(rest);
        let mut all = vec![Term { goals: SmallVec::new(), rest }];
        factors.sort_by_key(Vec::len);
        for factor in factors {
            let mut next = Vec::new();
            for left in &all {
                for right in &factor {
                    let rest = self.and([left.rest, right.rest]);
                    if rest.is_false() {
                        continue;
                    }
                    let mut goals = left.goals.clone();
                    goals.extend_from_slice(&right.goals);
                    goals.sort_unstable();
                    goals.dedup();
                    next.push(Term { goals, rest });
                }
            }
            all = self.merge(next)?;
        }
        Some(all)
    }

    fn has_leaves(&self, id: FormulaId) -> bool {
        match self.form(id) {
            Form::Kid(_) => true,
            Form::And(parts) | Form::Or(parts) => {
                parts.iter().any(|&part| self.has_leaves(part))
            }
            Form::Unevaluated(evaluators, _)
            | Form::ExUnevaluated(evaluators, _) => evaluators
                .iter()
                .any(|evaluator| self.has_leaves(evaluator.condition)),
            _ => false,
        }
    }

    /// Splits by the truth of the leaves inside an atom.
    fn cases(&mut self, id: FormulaId) -> Option<Vec<Term>> {
        let leaves = self.leaves(id);
        if leaves.len() > MAX_NESTED {
            return None;
        }
        let mut terms = Vec::new();
        for bits in 0..1_u32 << leaves.len() {
            let is_true = |goal: FormulaId| {
                leaves
                    .binary_search(&goal)
                    .is_ok_and(|index| bits & (1 << index) != 0)
            };
            let rest = self.substitute(id, &is_true);
            let mut goals = SmallVec::new();
            for &leaf in &leaves {
                let goal =
                    if is_true(leaf) { leaf } else { self.negate(leaf) };
                goals.push(goal);
            }
            goals.sort_unstable();
            terms.push(Term { goals, rest });
        }
        Some(terms)
    }

    /// Joins terms with equal goals, and drops what another term implies.
    fn merge(&mut self, mut terms: Vec<Term>) -> Option<Vec<Term>> {
        terms.retain(|term| !term.rest.is_false());
        let mut merged: Vec<Term> = Vec::with_capacity(terms.len());
        terms.sort_by(|one, other| one.goals.cmp(&other.goals));
        for term in terms {
            match merged.last_mut() {
                Some(last) if last.goals == term.goals => {
                    last.rest = self.or([last.rest, term.rest]);
                }
                _ => merged.push(term),
            }
        }
        (merged.len() <= DNF_CAP).then_some(merged)
    }
}
