//! Derivatives: what is left to ask after one member or item.

use std::sync::Arc;

use maskwright_grammar_core::util::FxHashMap;

use super::arena::{Formulas, Parts};
use super::form::{
    Evaluator, Form, FormulaId, Key, KeySet, KeySetId, NO_END, Scope,
};
use crate::parse::{NameId, PatternId};

/// Results for shared parts of one formula.
type Memo = FxHashMap<FormulaId, FormulaId>;

/// A key given by its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextKey<'a> {
    pub(crate) name: Option<NameId>,
    pub(crate) text: &'a str,
}

impl Key for TextKey<'_> {
    fn name(&self) -> Option<NameId> {
        self.name
    }

    fn matches(&self, formulas: &Formulas, pattern: PatternId) -> bool {
        formulas.pool().pattern_value(pattern).is_match(self.text)
    }

    fn satisfies(&self, formulas: &Formulas, formula: FormulaId) -> bool {
        formulas.string_holds(formula, self.text)
    }
}

impl Formulas {
    /// Whether a key is in a key set.
    ///
    /// Recursion is on the nesting of key sets, which is two.
    pub fn key_in(&self, set: KeySetId, key: &dyn Key) -> bool {
        match self.key_set(set) {
            KeySet::Any => true,
            KeySet::Names(names) => key
                .name()
                .is_some_and(|name| names.binary_search(&name).is_ok()),
            KeySet::Pattern(pattern) => key.matches(self, *pattern),
            KeySet::Satisfying(formula) => key.satisfies(self, *formula),
            KeySet::NoneOf(sets) => {
                !sets.iter().any(|&set| self.key_in(set, key))
            }
        }
    }

    /// Whether a known name is in a key set; memoised.
    pub fn name_in(&mut self, set: KeySetId, name: NameId) -> bool {
        if let KeySet::Names(names) = self.key_set(set) {
            return names.binary_search(&name).is_ok();
        }
        if let Some(&known) = self.key_in.get(&(set, name)) {
            return known;
        }
        let text = self.pool.name_text(name);
        let inside = self.key_in(set, &TextKey { name: Some(name), text });
        self.key_in.insert((set, name), inside);
        inside
    }

    /// The derivative of an object formula by a member with a known name.
    ///
    /// The result is pending: its [`Form::Kid`] leaves are about the
    /// member's value. See [`Formulas::factor`] for what to do next.
    pub fn derive_name(&mut self, id: FormulaId, name: NameId) -> FormulaId {
        if let Some(&known) = self.members.get(&(id, name)) {
            return known;
        }
        let mut by = ByName { name };
        let derived = self.derive(id, &mut by, &mut Memo::default());
        self.members.insert((id, name), derived);
        derived
    }

    /// The derivative of an object formula by a member with any key.
    pub fn derive_member(
        &mut self,
        id: FormulaId,
        key: &dyn Key,
    ) -> FormulaId {
        if let Some(name) = key.name() {
            return self.derive_name(id, name);
        }
        self.derive(id, &mut ByKey { key }, &mut Memo::default())
    }

    /// The derivative of an array formula by its next item.
    pub fn derive_item(&mut self, id: FormulaId) -> FormulaId {
        if let Some(&known) = self.items.get(&id) {
            return known;
        }
        let derived = self.derive(id, &mut ByItem, &mut Memo::default());
        self.items.insert(id, derived);
        derived
    }

    fn derive(
        &mut self,
        id: FormulaId,
        by: &mut dyn By,
        memo: &mut Memo,
    ) -> FormulaId {
        let (conjunction, parts) = match self.form(id) {
            Form::And(parts) => (true, Arc::clone(parts)),
            Form::Or(parts) => (false, Arc::clone(parts)),
            Form::Unevaluated(evaluators, rest) => {
                let (evaluators, rest) = (Arc::clone(evaluators), *rest);
                return self.derive_unevaluated(
                    true,
                    &evaluators,
                    rest,
                    by,
                    memo,
                );
            }
            Form::ExUnevaluated(evaluators, rest) => {
                let (evaluators, rest) = (Arc::clone(evaluators), *rest);
                return self.derive_unevaluated(
                    false,
                    &evaluators,
                    rest,
                    by,
                    memo,
                );
            }
            _ => return by.atom(self, id),
        };
        if let Some(&known) = memo.get(&id) {
            return known;
        }
        let parts: Parts =
            parts.iter().map(|&part| self.derive(part, by, memo)).collect();
        let derived = self.combine(conjunction, parts);
        memo.insert(id, derived);
        derived
    }

    /// Derives `Unevaluated` (`positive`) or its dual, which has the same
    /// rule with ∧ and ∨ exchanged.
    fn derive_unevaluated(
        &mut self,
        positive: bool,
        evaluators: &[Evaluator],
        rest: FormulaId,
        by: &mut dyn By,
        memo: &mut Memo,
    ) -> FormulaId {
        let mut derived = Vec::with_capacity(evaluators.len());
        let mut hits = Parts::new();
        hits.push(self.kid(rest));
        for evaluator in evaluators {
            let condition = self.derive(evaluator.condition, by, memo);
            let scope = match evaluator.scope {
                Scope::Items(from, to) => {
                    shift(from, to).map(|(from, to)| Scope::Items(from, to))
                }
                scope => Some(scope),
            };
            if let Some(scope) = scope {
                derived.push(Evaluator { scope, condition });
            }
            match evaluator.scope {
                Scope::Keys(set) if by.covers(self, set) => {
                    hits.push(condition);
                }
                Scope::Items(0, _) => hits.push(condition),
                Scope::Keys(_) | Scope::Items(..) => {}
                Scope::Matches(goal) => {
                    let goal = if positive { goal } else { self.negate(goal) };
                    let kid = self.kid(goal);
                    hits.push(self.combine(positive, [condition, kid]));
                }
            }
        }
        let later = self.make_unevaluated(positive, derived, rest);
        let now = self.combine(!positive, hits);
        self.combine(positive, [later, now])
    }
}

/// Shifts a range by one item; none where it ends.
fn shift(from: u64, to: u64) -> Option<(u64, u64)> {
    let to = if to == NO_END { to } else { to.saturating_sub(1) };
    let from = from.saturating_sub(1);
    (from < to).then_some((from, to))
}

/// What a formula is derived by.
trait By {
    /// Derives an atom.
    fn atom(&mut self, formulas: &mut Formulas, id: FormulaId) -> FormulaId;
    /// Whether a key set contains the key.
    fn covers(&mut self, formulas: &mut Formulas, set: KeySetId) -> bool;
}

/// A member with a known name.
struct ByName {
    name: NameId,
}

impl By for ByName {
    fn atom(&mut self, formulas: &mut Formulas, id: FormulaId) -> FormulaId {
        let name = Some(self.name);
        member_atom(formulas, id, name, |formulas, set| {
            self.covers(formulas, set)
        })
    }

    fn covers(&mut self, formulas: &mut Formulas, set: KeySetId) -> bool {
        formulas.name_in(set, self.name)
    }
}

/// A member with a key that no schema mentions.
struct ByKey<'a> {
    key: &'a dyn Key,
}

impl By for ByKey<'_> {
    fn atom(&mut self, formulas: &mut Formulas, id: FormulaId) -> FormulaId {
        member_atom(formulas, id, None, |formulas, set| {
            self.covers(formulas, set)
        })
    }

    fn covers(&mut self, formulas: &mut Formulas, set: KeySetId) -> bool {
        formulas.key_in(set, self.key)
    }
}

fn member_atom(
    formulas: &mut Formulas,
    id: FormulaId,
    name: Option<NameId>,
    mut covers: impl FnMut(&mut Formulas, KeySetId) -> bool,
) -> FormulaId {
    match *formulas.form(id) {
        Form::All(set, goal) => {
            if !covers(formulas, set) {
                return id;
            }
            let kid = formulas.kid(goal);
            let rest = match without(formulas, set, name) {
                Some(set) => formulas.all(set, goal),
                None => FormulaId::TRUE,
            };
            formulas.and([kid, rest])
        }
        Form::Ex(set, goal) => {
            if !covers(formulas, set) {
                return id;
            }
            let kid = formulas.kid(goal);
            let rest = match without(formulas, set, name) {
                Some(set) => formulas.make(Form::Ex(set, goal)),
                None => FormulaId::FALSE,
            };
            formulas.or([kid, rest])
        }
        Form::CountGe(count) => formulas.count_ge(count.saturating_sub(1)),
        Form::CountLe(0) => FormulaId::FALSE,
        Form::CountLe(count) => formulas.make(Form::CountLe(count - 1)),
        _ => id,
    }
}

/// A key set after one of its names has been read, which cannot come again;
/// none where nothing is left.
fn without(
    formulas: &mut Formulas,
    set: KeySetId,
    name: Option<NameId>,
) -> Option<KeySetId> {
    let (Some(name), KeySet::Names(names)) = (name, formulas.key_set(set))
    else {
        return Some(set);
    };
    let left: Vec<NameId> =
        names.iter().copied().filter(|&other| other != name).collect();
    if left.is_empty() {
        return None;
    }
    Some(formulas.make_key_set(KeySet::Names(left.into())))
}

/// The next item.
struct ByItem;

impl By for ByItem {
    fn atom(&mut self, formulas: &mut Formulas, id: FormulaId) -> FormulaId {
        match *formulas.form(id) {
            Form::ItemsAll(from, to, goal) => {
                let rest = match shift(from, to) {
                    Some((from, to)) => formulas.items_all(from, to, goal),
                    None => FormulaId::TRUE,
                };
                if from > 0 {
                    return rest;
                }
                let kid = formulas.kid(goal);
                formulas.and([kid, rest])
            }
            Form::ItemsEx(from, to, goal) => {
                let rest = match shift(from, to) {
                    Some((from, to)) => {
                        formulas.make(Form::ItemsEx(from, to, goal))
                    }
                    None => FormulaId::FALSE,
                };
                if from > 0 {
                    return rest;
                }
                let kid = formulas.kid(goal);
                formulas.or([kid, rest])
            }
            Form::LenGe(count) => formulas.len_ge(count.saturating_sub(1)),
            Form::LenLe(0) => FormulaId::FALSE,
            Form::LenLe(count) => formulas.make(Form::LenLe(count - 1)),
            Form::ContainsGe(goal, count) => {
                let kid = formulas.kid(goal);
                let fewer = formulas.contains_ge(goal, count - 1);
                let hit = formulas.and([kid, fewer]);
                formulas.or([hit, id])
            }
            Form::ContainsLe(goal, count) => {
                let negation = formulas.negate(goal);
                let kid = formulas.kid(negation);
                let miss = formulas.and([kid, id]);
                let fewer = match count {
                    0 => FormulaId::FALSE,
                    count => formulas.contains_le(goal, count - 1),
                };
                formulas.or([miss, fewer])
            }
            _ => id,
        }
    }

    fn covers(&mut self, _: &mut Formulas, _: KeySetId) -> bool {
        false
    }
}
