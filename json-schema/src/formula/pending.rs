//! Pending formulas: their leaves, and what becomes of them when the child
//! has ended.

use std::sync::Arc;

use maskwright_grammar_core::util::FxHashMap;
use smallvec::SmallVec;

use super::arena::{Formulas, Parts};
use super::form::{Evaluator, Form, FormulaId};
use crate::parse::ConstantId;

/// The most terms that [`Formulas::terms`] splits a formula into, unless
/// the child is told apart by constants.
pub const DNF_CAP: usize = 64;

/// The most constants that a child is told apart by.
const MAX_CONSTANTS: usize = 256;

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

/// Up to how many leaves of a pending formula every set is looked at; a leaf
/// and its negation are one.
const MAX_LEAVES: usize = 6;

/// What becomes of terms beyond [`DNF_CAP`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Beyond {
    /// There is no answer.
    Refuse,
    /// They are left out, those with the most goals first.
    Drop,
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

    /// Cases of a pending formula: it holds if one of these does, and the
    /// child satisfies the goal of that. Those of a disjunction, or else two:
    /// a leaf is false, or it holds (leaves occur positively only).
    pub(crate) fn cases_of_leaves(
        &mut self,
        id: FormulaId,
    ) -> Vec<(FormulaId, FormulaId)> {
        let always = FormulaId::TRUE;
        let parts = self.conjuncts(id);
        let has_leaves = |part: &FormulaId| self.has_leaves(*part);
        let open: Parts = parts.iter().copied().filter(has_leaves).collect();
        if let [part] = open[..]
            && let Form::Or(_) = self.form(part)
        {
            let cases = self.distributed(&parts, part);
            return cases.into_iter().map(|case| (always, case)).collect();
        }
        let Some(leaf) = self.deciding_leaf(id) else { return Vec::new() };
        let [without, with] = [false, true].map(|holds| {
            self.with_leaves(id, &|goal| (goal == leaf).then_some(holds))
        });
        vec![(always, without), (leaf, with)]
    }

    /// A leaf on which much of a pending formula depends, if it has any.
    fn deciding_leaf(&self, id: FormulaId) -> Option<FormulaId> {
        let mut id = id;
        loop {
            match self.form(id) {
                Form::Kid(goal) => return Some(*goal),
                Form::And(parts) | Form::Or(parts) => {
                    // A leaf itself, or else one of what is least.
                    id = parts
                        .iter()
                        .copied()
                        .filter(|&part| self.has_leaves(part))
                        .min_by_key(|&part| self.form(part).n_children())?;
                }
                Form::Unevaluated(evaluators, _)
                | Form::ExUnevaluated(evaluators, _) => {
                    let mut conditions =
                        evaluators.iter().map(|it| it.condition);
                    id = conditions.find(|&part| self.has_leaves(part))?;
                }
                _ => return None,
            }
        }
    }

    /// A pending formula where the truth of some leaves is known.
    pub(super) fn with_leaves(
        &mut self,
        id: FormulaId,
        truth: &dyn Fn(FormulaId) -> Option<bool>,
    ) -> FormulaId {
        self.rewrite(id, &mut FxHashMap::default(), &|form| match form {
            Form::Kid(goal) => truth(*goal).map(FormulaId::constant),
            _ => None,
        })
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
        self.with_leaves(id, &|goal| Some(truth(goal)))
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
    /// leaves it with more. Where that gives too many terms, and constants
    /// tell children apart, there is a term for each constant and one for
    /// all other children; or, with few leaves, one for each set of them.
    /// Returns `None` where there are more than [`DNF_CAP`] terms otherwise.
    pub fn terms(&mut self, id: FormulaId) -> Option<Vec<Term>> {
        match self.split(id, Beyond::Refuse) {
            Some(terms) => Some(terms),
            None => self.by_constant(id).or_else(|| self.by_leaves(id)),
        }
    }

    /// As [`Formulas::terms`], but of too many terms only some are returned;
    /// the flag says whether these are all.
    pub fn some_terms(&mut self, id: FormulaId) -> (Vec<Term>, bool) {
        match self.terms(id) {
            Some(terms) => (terms, true),
            None => (self.split(id, Beyond::Drop).unwrap_or_default(), false),
        }
    }

    fn split(&mut self, id: FormulaId, beyond: Beyond) -> Option<Vec<Term>> {
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
                    all.extend(self.split(part, beyond)?);
                    if all.len() > 4 * DNF_CAP || self.is_full() {
                        if beyond == Beyond::Refuse {
                            return None;
                        }
                        break;
                    }
                }
                all
            }
            Form::And(parts) => {
                let parts = Arc::clone(parts);
                return self.product(&parts, beyond);
            }
            Form::Unevaluated(..) | Form::ExUnevaluated(..) => {
                self.cases(id)?
            }
            _ => vec![Term { goals: SmallVec::new(), rest: id }],
        };
        self.merge(terms, beyond)
    }

    fn product(
        &mut self,
        parts: &[FormulaId],
        beyond: Beyond,
    ) -> Option<Vec<Term>> {
        // What has no leaves is one factor of every term.
        let mut rest = Parts::new();
        let mut factors = Vec::new();
        for &part in parts {
            if self.has_leaves(part) {
                factors.push(self.split(part, beyond)?);
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
                if self.is_full() {
                    if beyond == Beyond::Refuse {
                        return None;
                    }
                    break;
                }
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
            all = self.merge(next, beyond)?;
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

    /// Splits by the leaves that are true, if they are few.
    fn by_leaves(&mut self, id: FormulaId) -> Option<Vec<Term>> {
        let mut leaves = self.leaves(id);
        // Of a leaf and its negation, one is true.
        let mut questions: Vec<(Option<FormulaId>, FormulaId)> = Vec::new();
        while let Some(leaf) = leaves.pop() {
            let negation = self.negate(leaf);
            let other = leaves.binary_search(&negation).ok();
            questions.push((other.map(|at| leaves.remove(at)), leaf));
        }
        if questions.len() > MAX_LEAVES {
            return None;
        }
        let mut terms: Vec<Term> = Vec::new();
        let mut subsets: Vec<u32> = (0..1_u32 << questions.len()).collect();
        subsets.sort_by_key(|bits| bits.count_ones());
        for bits in subsets {
            let mut goals: SmallVec<[FormulaId; 4]> = (0..)
                .zip(&questions)
                .filter_map(|(index, &(no, yes))| {
                    if bits >> index & 1 != 0 { Some(yes) } else { no }
                })
                .collect();
            goals.sort_unstable();
            let is_true = |goal| goals.binary_search(&goal).is_ok();
            let rest = self.substitute(id, &is_true);
            // The same with fewer goals is in the list already.
            let is_implied = terms.iter().any(|term| {
                let mut fewer = term.goals.iter();
                term.rest == rest && fewer.all(|&goal| is_true(goal))
            });
            if !rest.is_false() && !is_implied {
                terms.push(Term { goals, rest });
            }
        }
        Some(terms)
    }

    /// Splits by which constant the child equals, if any: equal to one, it
    /// differs from all others.
    fn by_constant(&mut self, id: FormulaId) -> Option<Vec<Term>> {
        let mut constants = Vec::new();
        for leaf in self.leaves(id) {
            self.push_constants(leaf, &mut constants);
        }
        constants.sort_unstable();
        constants.dedup();
        if constants.is_empty() || constants.len() > MAX_CONSTANTS {
            return None;
        }
        let mut all = Vec::new();
        for &constant in &constants {
            let goal = self.equals(constant);
            let case = self.in_case(id, Some(constant));
            for mut term in self.split(case, Beyond::Refuse)? {
                term.goals.push(goal);
                term.goals.sort_unstable();
                all.push(term);
            }
        }
        let mut others: SmallVec<[FormulaId; 4]> = SmallVec::new();
        for &constant in &constants {
            let goal = self.equals(constant);
            others.push(self.negate(goal));
        }
        let case = self.in_case(id, None);
        for mut term in self.split(case, Beyond::Refuse)? {
            term.goals.extend_from_slice(&others);
            term.goals.sort_unstable();
            all.push(term);
        }
        Some(all)
    }

    /// Adds the constants that a value formula compares with.
    fn push_constants(&self, id: FormulaId, out: &mut Vec<ConstantId>) {
        match self.form(id) {
            Form::Const(constant) | Form::NotConst(constant) => {
                out.push(*constant);
            }
            form => {
                for &part in form.parts() {
                    self.push_constants(part, out);
                }
            }
        }
    }

    /// A pending formula where the child equals a constant, or none of
    /// those that the formula compares with.
    fn in_case(
        &mut self,
        id: FormulaId,
        constant: Option<ConstantId>,
    ) -> FormulaId {
        let mut truths = Vec::new();
        for leaf in self.leaves(id) {
            let decided =
                self.rewrite(leaf, &mut FxHashMap::default(), &|form| {
                    match form {
                        Form::Const(other) => {
                            Some(FormulaId::constant(Some(*other) == constant))
                        }
                        Form::NotConst(other) => {
                            Some(FormulaId::constant(Some(*other) != constant))
                        }
                        _ => None,
                    }
                });
            let kid = self.kid(decided);
            truths.push((leaf, kid));
        }
        self.rewrite(id, &mut FxHashMap::default(), &|form| match form {
            Form::Kid(goal) => truths
                .binary_search_by_key(goal, |&(leaf, _)| leaf)
                .ok()
                .map(|at| truths[at].1),
            _ => None,
        })
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
    fn merge(
        &mut self,
        mut terms: Vec<Term>,
        beyond: Beyond,
    ) -> Option<Vec<Term>> {
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
        if merged.len() > DNF_CAP && beyond == Beyond::Drop {
            merged.sort_by_key(|term| term.goals.len());
            merged.truncate(DNF_CAP);
        }
        (merged.len() <= DNF_CAP).then_some(merged)
    }
}
