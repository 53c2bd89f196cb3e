//! Formulas about what is left, when it is known what will not come.

use std::sync::Arc;

use maskwright_grammar_core::util::FxHashMap;

use super::arena::Formulas;
use super::form::{Form, FormulaId, KeySet, KeySetId};
use super::site::Mentions;
use crate::parse::NameId;

impl Formulas {
    /// The names and the other sets that an object formula can tell keys
    /// apart by.
    pub(crate) fn mentioned(&self, id: FormulaId) -> Mentions {
        let mut mentions = Mentions::default();
        self.mentions(id, &mut mentions);
        mentions
    }

    /// An object formula where members with these names do not come any
    /// more, as when an order of members has passed them.
    ///
    /// Key sets with other names beside them are left as they are, so the
    /// result may allow more than can still come, never less.
    pub fn without_names(
        &mut self,
        id: FormulaId,
        names: &[NameId],
    ) -> FormulaId {
        let sets: Vec<KeySetId> = names
            .iter()
            .filter_map(|&name| {
                let set = KeySet::Names(Arc::new([name]));
                self.key_sets.get_index_of(&set).map(KeySetId::new)
            })
            .collect();
        if sets.is_empty() {
            return id;
        }
        self.rewrite(id, &mut FxHashMap::default(), &|form| match form {
            Form::All(set, _) if sets.contains(set) => Some(FormulaId::TRUE),
            Form::Ex(set, _) if sets.contains(set) => Some(FormulaId::FALSE),
            _ => None,
        })
    }

    /// Whether an object formula may need a member without a certain name:
    /// whether some names have come before matters to no other.
    pub(crate) fn needs_any_member(&self, id: FormulaId) -> bool {
        match self.form(id) {
            Form::And(parts) | Form::Or(parts) => {
                parts.iter().any(|&part| self.needs_any_member(part))
            }
            Form::Ex(set, _) => {
                !matches!(self.key_set(*set), KeySet::Names(_))
            }
            Form::CountGe(_) | Form::ExUnevaluated(..) => true,
            _ => false,
        }
    }

    /// A name that a member must have so that an object can end, if it is
    /// told by what is not met yet. As an error, the ways to meet what can be
    /// met in several ways: each with all else that must hold, those with
    /// the least to do first.
    pub(crate) fn needed_name(
        &mut self,
        id: FormulaId,
    ) -> Result<Option<NameId>, Vec<FormulaId>> {
        let unmet = self.unmet(id);
        for &part in &unmet {
            if let Form::Ex(set, _) = self.form(part)
                && let KeySet::Names(names) = self.key_set(*set)
                && let Some(&name) = names.first()
            {
                return Ok(Some(name));
            }
        }
        let mut choices = unmet.into_iter();
        let choice =
            choices.find(|&part| matches!(self.form(part), Form::Or(_)));
        let Some(choice) = choice else { return Ok(None) };
        let ways = self.form(choice).parts().iter();
        let n_unmet: Vec<usize> =
            ways.map(|&way| self.unmet(way).len()).collect();
        let parts = self.conjuncts(id);
        let cases = self.distributed(&parts, choice);
        let mut cases: Vec<_> = n_unmet.into_iter().zip(cases).collect();
        cases.sort_by_key(|&(n_unmet, _)| n_unmet);
        Err(cases.into_iter().map(|(_, case)| case).collect())
    }

    /// The conditions of a conjunction that are not met at the end.
    pub(crate) fn unmet(&self, id: FormulaId) -> Vec<FormulaId> {
        let parts = self.conjuncts(id).into_iter();
        parts.filter(|&part| !self.holds_at_end(part, false)).collect()
    }

    /// A pending formula whose child is known to satisfy these goals.
    pub fn with_certain(
        &mut self,
        id: FormulaId,
        goals: &[FormulaId],
    ) -> FormulaId {
        if goals.is_empty() {
            return id;
        }
        self.with_leaves(id, &|goal| goals.contains(&goal).then_some(true))
    }
}
