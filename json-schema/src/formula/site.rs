//! Conjunctions as tables, for machines that keep counters and bit sets
//! instead of formulas.
//!
//! Most object and array formulas are plain conjunctions. A site lists what
//! such a conjunction says; what does not fit is its `rest`, a formula that
//! has to be derived beside the table. A site is *flat* when `rest` is true.

use std::sync::Arc;

use super::arena::{Formulas, Parts};
use super::form::{Form, FormulaId, Key, KeySet, KeySetId, NO_END};
use crate::error::SchemaError;
use crate::parse::{JsonType, NameId};

/// A member name that an object site mentions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SiteName {
    /// The name.
    pub name: NameId,
    /// What the member's value must satisfy: a value formula. Key sets that
    /// contain the name are counted in. False where the member is forbidden.
    pub goal: FormulaId,
    /// Whether the member must exist.
    pub required: bool,
    /// Whether the derivative of `rest` by this name can differ from `rest`.
    pub in_rest: bool,
}

/// An object formula as a table.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ObjectSite {
    /// The typed formula that this is the table of.
    pub formula: FormulaId,
    /// The names mentioned, in the order of the document.
    pub names: Box<[SiteName]>,
    /// For keys that are not in `names`: a value formula for each key set
    /// that contains the key, all of which the member must satisfy.
    pub open: Box<[(KeySetId, FormulaId)]>,
    /// The least number of members.
    pub min: u64,
    /// The greatest number of members.
    pub max: Option<u64>,
    /// What the table does not say; derive it beside the table.
    pub rest: FormulaId,
    /// Whether a key that is not in `names` can change `rest`.
    pub open_in_rest: bool,
}

impl ObjectSite {
    /// Whether the table says all.
    pub fn is_flat(&self) -> bool {
        self.rest.is_true()
    }
}

/// An array formula as a table.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ArraySite {
    /// The typed formula that this is the table of.
    pub formula: FormulaId,
    /// What each of the first items must satisfy: value formulas.
    pub prefix: Box<[FormulaId]>,
    /// What every later item must satisfy.
    pub tail: FormulaId,
    /// The least number of items.
    pub min: u64,
    /// The greatest number of items.
    pub max: Option<u64>,
    /// Whether all items must differ.
    pub unique: bool,
    /// What the table does not say; derive it beside the table.
    pub rest: FormulaId,
}

impl ArraySite {
    /// Whether the table says all.
    pub fn is_flat(&self) -> bool {
        self.rest.is_true()
    }

    /// What the item with this index must satisfy, as far as the table says.
    pub fn goal(&self, index: u64) -> FormulaId {
        usize::try_from(index)
            .ok()
            .and_then(|index| self.prefix.get(index))
            .copied()
            .unwrap_or(self.tail)
    }
}

/// Items with an index of their own beyond this go to `rest`.
const MAX_PREFIX: u64 = 4_096;

impl Formulas {
    /// The parts of a conjunction; a formula that is none is its only part.
    pub fn conjuncts(&self, id: FormulaId) -> Parts {
        match self.form(id) {
            Form::And(parts) => Parts::from_slice(parts),
            Form::True => Parts::new(),
            _ => Parts::from_slice(&[id]),
        }
    }

    /// The ways of a disjunction among the parts of a conjunction, each with
    /// all other parts.
    pub(crate) fn distributed(
        &mut self,
        parts: &[FormulaId],
        choice: FormulaId,
    ) -> Vec<FormulaId> {
        let ways = self.form(choice).parts().to_vec();
        let with_rest = |way| {
            let rest = parts.iter().copied().filter(|&part| part != choice);
            self.and(rest.chain([way]))
        };
        ways.into_iter().map(with_rest).collect()
    }

    /// The table of a value formula's objects.
    ///
    /// # Errors
    ///
    /// As [`Formulas::typed`].
    pub fn object_site(
        &mut self,
        value: FormulaId,
    ) -> Result<Arc<ObjectSite>, SchemaError> {
        if let Some(known) = self.objects.get(&value) {
            return Ok(Arc::clone(known));
        }
        let formula = self.typed(value, JsonType::Object)?;
        let order = self.property_order(value);
        let site = Arc::new(self.make_object_site(formula, &order));
        self.objects.insert(value, Arc::clone(&site));
        Ok(site)
    }

    /// The table of a typed object formula, with names in the given order.
    pub fn make_object_site(
        &mut self,
        formula: FormulaId,
        order: &[NameId],
    ) -> ObjectSite {
        let mut draft = Draft::default();
        for part in self.conjuncts(formula) {
            match *self.form(part) {
                Form::CountGe(count) => draft.min = count,
                Form::CountLe(count) => draft.max = Some(count),
                Form::All(set, goal) => match self.key_set(set) {
                    KeySet::Names(names) => {
                        let names = Arc::clone(names);
                        draft
                            .goals
                            .extend(names.iter().map(|&name| (name, goal)));
                    }
                    _ => draft.open.push((set, goal)),
                },
                Form::Ex(set, goal) => match self.key_set(set) {
                    KeySet::Names(names) if names.len() == 1 => {
                        draft.goals.push((names[0], goal));
                        draft.required.push(names[0]);
                    }
                    _ => draft.rest.push(part),
                },
                _ => draft.rest.push(part),
            }
        }
        self.finish_object_site(formula, order, draft)
    }

    fn finish_object_site(
        &mut self,
        formula: FormulaId,
        order: &[NameId],
        mut draft: Draft,
    ) -> ObjectSite {
        draft.goals.sort_unstable();
        draft.required.sort_unstable();
        let rest = self.and(draft.rest);
        let mut in_rest = Mentions::default();
        self.mentions(rest, &mut in_rest);
        in_rest.names.sort_unstable();
        in_rest.names.dedup();
        let mut mentioned = Mentions::default();
        self.mentions(formula, &mut mentioned);
        mentioned.names.sort_unstable();
        mentioned.names.dedup();
        let ordered = order
            .iter()
            .copied()
            .filter(|name| mentioned.names.binary_search(name).is_ok());
        let mut names: Vec<NameId> = ordered.collect();
        let mut known = names.clone();
        known.sort_unstable();
        names.extend(
            mentioned
                .names
                .iter()
                .filter(|name| known.binary_search(name).is_err()),
        );
        let names = names
            .into_iter()
            .map(|name| SiteName {
                name,
                goal: self.site_goal(name, &draft.goals, &draft.open),
                required: draft.required.binary_search(&name).is_ok(),
                in_rest: in_rest.open
                    || in_rest.names.binary_search(&name).is_ok(),
            })
            .collect();
        ObjectSite {
            formula,
            names,
            open: draft.open.into(),
            min: draft.min,
            max: draft.max,
            rest,
            open_in_rest: in_rest.open,
        }
    }

    fn site_goal(
        &mut self,
        name: NameId,
        goals: &[(NameId, FormulaId)],
        open: &[(KeySetId, FormulaId)],
    ) -> FormulaId {
        let from = goals.partition_point(|&(other, _)| other < name);
        let mut parts: Parts = goals[from..]
            .iter()
            .take_while(|&&(other, _)| other == name)
            .map(|&(_, goal)| goal)
            .collect();
        for &(set, goal) in open {
            if self.name_in(set, name) {
                parts.push(goal);
            }
        }
        self.and(parts)
    }

    /// What a member whose key is not listed must satisfy.
    pub fn open_goal(
        &mut self,
        site: &ObjectSite,
        key: &dyn Key,
    ) -> FormulaId {
        let goals: Parts = site
            .open
            .iter()
            .filter(|&&(set, _)| self.key_in(set, key))
            .map(|&(_, goal)| goal)
            .collect();
        self.and(goals)
    }

    /// Collects the names that an object formula can tell apart.
    pub(crate) fn mentions(&self, id: FormulaId, out: &mut Mentions) {
        match self.form(id) {
            Form::And(parts) | Form::Or(parts) => {
                for &part in &**parts {
                    self.mentions(part, out);
                }
            }
            Form::All(set, _) | Form::Ex(set, _) => {
                self.set_mentions(*set, out);
            }
            Form::CountGe(_) | Form::CountLe(_) => out.open = true,
            Form::Unevaluated(evaluators, _)
            | Form::ExUnevaluated(evaluators, _) => {
                out.open = true;
                for evaluator in &**evaluators {
                    if let super::Scope::Keys(set) = evaluator.scope {
                        self.set_mentions(set, out);
                    }
                    self.mentions(evaluator.condition, out);
                }
            }
            _ => {}
        }
    }

    fn set_mentions(&self, set: KeySetId, out: &mut Mentions) {
        match self.key_set(set) {
            KeySet::Names(names) => out.names.extend(names.iter()),
            KeySet::Any => out.open = true,
            KeySet::Pattern(_) | KeySet::Satisfying(_) => {
                out.open = true;
                out.sets.push(set);
            }
            KeySet::NoneOf(sets) => {
                out.open = true;
                for &set in &**sets {
                    self.set_mentions(set, out);
                }
            }
        }
    }

    /// The table of a value formula's arrays.
    ///
    /// # Errors
    ///
    /// As [`Formulas::typed`].
    pub fn array_site(
        &mut self,
        value: FormulaId,
    ) -> Result<Arc<ArraySite>, SchemaError> {
        if let Some(known) = self.arrays.get(&value) {
            return Ok(Arc::clone(known));
        }
        let formula = self.typed(value, JsonType::Array)?;
        let site = Arc::new(self.make_array_site(formula));
        self.arrays.insert(value, Arc::clone(&site));
        Ok(site)
    }

    /// The table of a typed array formula.
    pub fn make_array_site(&mut self, formula: FormulaId) -> ArraySite {
        let mut ranges = Vec::new();
        let mut rest = Parts::new();
        let (mut min, mut max, mut unique) = (0, None, false);
        for part in self.conjuncts(formula) {
            match *self.form(part) {
                Form::LenGe(count) => min = count,
                Form::LenLe(count) => max = Some(count),
                Form::Unique => unique = true,
                Form::ItemsAll(from, to, goal)
                    if from <= MAX_PREFIX
                        && (to == NO_END || to <= MAX_PREFIX) =>
                {
                    ranges.push((from, to, goal));
                }
                _ => rest.push(part),
            }
        }
        let ends = ranges.iter().map(
            |&(from, to, _)| {
                if to == NO_END { from } else { to }
            },
        );
        let n_prefix = ends.max().unwrap_or(0);
        let mut goal = |index: u64| {
            let goals: Parts = ranges
                .iter()
                .filter(|&&(from, to, _)| from <= index && index < to)
                .map(|&(_, _, goal)| goal)
                .collect();
            self.and(goals)
        };
        let prefix = (0..n_prefix).map(&mut goal).collect();
        let tail = goal(n_prefix);
        let rest = self.and(rest);
        ArraySite { formula, prefix, tail, min, max, unique, rest }
    }
}

/// The conjuncts of an object formula, sorted into kinds.
#[derive(Default)]
struct Draft {
    goals: Vec<(NameId, FormulaId)>,
    required: Vec<NameId>,
    open: Vec<(KeySetId, FormulaId)>,
    min: u64,
    max: Option<u64>,
    rest: Parts,
}

/// What an object formula can tell keys apart by.
#[derive(Debug, Default)]
pub(crate) struct Mentions {
    /// Names, not sorted.
    pub(crate) names: Vec<NameId>,
    /// Pattern and string sets, not sorted.
    pub(crate) sets: Vec<KeySetId>,
    /// Whether keys that are not named matter.
    pub(crate) open: bool,
}
