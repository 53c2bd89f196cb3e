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

    /// A pending formula whose child is known to satisfy these goals.
    pub fn with_certain(
        &mut self,
        id: FormulaId,
        goals: &[FormulaId],
    ) -> FormulaId {
        if goals.is_empty() {
            return id;
        }
        self.rewrite(id, &mut FxHashMap::default(), &|form| match form {
            Form::Kid(goal) if goals.contains(goal) => Some(FormulaId::TRUE),
            _ => None,
        })
    }
}
