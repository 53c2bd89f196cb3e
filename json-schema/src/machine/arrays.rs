//! Arrays: which items may come now, and whether the array may end.

use std::sync::Arc;

use maskwright_grammar_core::automaton::AutomatonError;
use smallvec::SmallVec;

use super::{
    Machine, algebra::Typed, distinct::Ends, sites::MAX_COUNTED,
    values::QuestionId,
};

/// What one array is asked.
#[derive(Debug)]
pub(crate) enum ArraySite {
    /// A conjunction of conditions on items by index, and on their number.
    Flat(FlatArray),
    /// Anything else.
    General {
        /// The residuals of formulas: the need first, then the goals.
        formulas: Box<[Typed]>,
        /// Whether any of them asks whether items are equal.
        compares: bool,
    },
}

/// A conjunction of conditions on items by index, and on their number.
#[derive(Debug)]
pub(crate) struct FlatArray {
    /// What the first items are asked; `None` where there may be none.
    pub(crate) prefix: Box<[Option<QuestionId>]>,
    /// What the items after them are asked.
    pub(crate) tail: Option<QuestionId>,
    pub(crate) least: u64,
    pub(crate) most: Option<u64>,
    /// Whether all items must differ.
    pub(crate) unique: bool,
    /// Whether there are always values left for the items to come.
    pub(crate) lasting: bool,
}

/// How far an array has come.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Array {
    pub(crate) site: u32,
    /// The number of items, as far as the site tells numbers apart.
    pub(crate) count: u64,
    /// Whether two items that were compared are equal.
    pub(crate) repeated: bool,
    /// Whether the residual formulas know the items.
    pub(crate) known: Known,
    /// The residual formulas of a general site.
    pub(crate) rest: SmallVec<[Typed; 2]>,
}

/// Whether formulas know the items of an array.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Known {
    /// They were not told.
    No,
    /// They were told all of them.
    Noted,
    /// They would have to be told, and there are too many.
    Many,
}

/// What follows from how far an array has come.
#[derive(Debug)]
pub(crate) struct ArrayInfo {
    /// What the next item is asked; none if there may be none.
    pub(crate) question: Option<QuestionId>,
    /// Which items it can go on with, if they have to be compared.
    pub(crate) ends: Option<Ends>,
    /// The verdicts with which the array may end now.
    pub(crate) close: Option<u32>,
    /// Whether all this was decided, and nothing assumed.
    pub(crate) exact: bool,
    /// Whether what is left to come depends on the values of the items.
    notes: bool,
    /// The array after the next item, but for the verdicts.
    after: Array,
}

impl FlatArray {
    fn question(&self, index: u64) -> Option<QuestionId> {
        if self.most.is_some_and(|most| index >= most) {
            return None;
        }
        let prefix = usize::try_from(index)
            .ok()
            .and_then(|index| self.prefix.get(index));
        prefix.copied().unwrap_or(self.tail)
    }

    /// The number of items from which on all are alike.
    fn horizon(&self) -> u64 {
        let prefix = self.prefix.len() as u64;
        let first = u64::from(self.unique);
        prefix.max(self.least).max(self.most.unwrap_or(0)).max(first)
    }

    fn info(&self, array: &Array) -> ArrayInfo {
        let mut after = array.clone();
        after.count = (array.count + 1).min(self.horizon());
        let ends = match array.count {
            _ if !self.unique => None,
            0 => Some(Ends::First),
            _ => Some(Ends::New),
        };
        ArrayInfo {
            question: self.question(array.count),
            ends,
            close: (array.count >= self.least).then_some(0),
            exact: self.lasting,
            notes: false,
            after,
        }
    }
}

impl Machine {
    /// The array of a site before its first item.
    pub(crate) fn array_start(
        &self,
        site: u32,
    ) -> Result<u32, AutomatonError> {
        let rest = match self.array_site(site)? {
            ArraySite::Flat(_) => SmallVec::new(),
            ArraySite::General { formulas, .. } => {
                SmallVec::from_slice(formulas)
            }
        };
        let array =
            Array { site, count: 0, repeated: false, known: Known::No, rest };
        self.parts.arrays.intern(array)
    }

    /// What may come in an array, and whether it may end.
    pub(crate) fn array_info(
        &self,
        array: u32,
    ) -> Result<&ArrayInfo, AutomatonError> {
        self.parts.arrays.derived(array, |array| {
            match self.array_site(array.site)? {
                ArraySite::Flat(flat) => Ok(flat.info(array)),
                ArraySite::General { compares, .. } => {
                    let compares = *compares && !array.repeated;
                    self.general_array(array, compares)
                }
            }
        })
    }

    fn general_array(
        &self,
        array: &Array,
        compares: bool,
    ) -> Result<ArrayInfo, AutomatonError> {
        let n_assumed = self.algebra.n_assumed();
        let others = compares.then_some(array.count > 0);
        let noted = array.known == Known::Noted;
        let item = self.general_item(&array.rest, others, noted)?;
        let mut after = array.clone();
        after.known = Known::No;
        after.count = u64::from(compares);
        after.rest = item.rest;
        let compared = item.ends.is_some_and(|ends| ends != Ends::First);
        let decided = n_assumed == self.algebra.n_assumed();
        let notes = compared && !noted && (item.depends || !decided);
        // No array stays in a state that notes, unless it cannot note. Any
        // other state is right as long as there are always values left.
        let exact = match item.question {
            _ if notes => array.known == Known::No,
            Some(question) if compared && !noted => {
                decided && self.has_many(question)?
            }
            _ => decided,
        };
        Ok(ArrayInfo {
            question: item.question,
            ends: item.ends,
            close: item.close,
            exact,
            notes,
            after,
        })
    }

    /// Whether very many values answer a question.
    fn has_many(&self, question: QuestionId) -> Result<bool, AutomatonError> {
        let need = self.parts.questions.get(question.0).need;
        let count = self.algebra.count(need, MAX_COUNTED)?;
        Ok(count.at_least >= MAX_COUNTED)
    }

    /// The array where its formulas know the items, if what is left to come
    /// depends on them; `None` if it cannot end then.
    pub(crate) fn noted(
        &self,
        array: u32,
        used: &[Arc<[u8]>],
    ) -> Result<Option<u32>, AutomatonError> {
        let old = self.parts.arrays.get(array);
        if old.known != Known::No || !self.array_info(array)?.notes {
            return Ok(Some(array));
        }
        let Some(items) = self.algebra.constants(used) else {
            let many = Array { known: Known::Many, ..old.clone() };
            return self.parts.arrays.intern(many).map(Some);
        };
        let mut noted = Array { known: Known::Noted, ..old.clone() };
        self.algebra.note(&mut noted.rest, &items);
        if let Some(&need) = noted.rest.first()
            && !self.algebra.may_end_array(need, true)?
        {
            return Ok(None);
        }
        self.parts.arrays.intern(noted).map(Some)
    }

    /// Whether the items of an array are compared, or were.
    pub(crate) fn compares(&self, array: u32) -> Result<bool, AutomatonError> {
        let site = self.parts.arrays.get(array).site;
        Ok(match self.array_site(site)? {
            ArraySite::Flat(flat) => flat.unique,
            ArraySite::General { compares, .. } => *compares,
        })
    }

    /// The arrays after the next item has ended with `verdicts`: after an
    /// item that differs from all before, and after one that does not, where
    /// that makes a difference. None that cannot end.
    pub(crate) fn arrays_after(
        &self,
        array: u32,
        verdicts: u64,
    ) -> Result<SmallVec<[u32; 2]>, AutomatonError> {
        let info = self.array_info(array)?;
        let mut all = SmallVec::new();
        let mut after = info.after.clone();
        let alive = self.settle(info.question, verdicts, &mut after.rest);
        let Some(ends) = info.ends else {
            if alive {
                all.push(self.parts.arrays.intern(after)?);
            }
            return Ok(all);
        };
        let may_end = |array: &Array| match array.rest.first() {
            Some(&need) => {
                let noted = array.known == Known::Noted;
                self.algebra.may_end_array(need, noted)
            }
            None => Ok(true),
        };
        if matches!(ends, Ends::Repeated | Ends::Any) {
            let mut again =
                Array { repeated: true, count: 0, ..after.clone() };
            self.algebra.repeat(&mut again.rest);
            if may_end(&again)? {
                all.push(self.parts.arrays.intern(again)?);
            }
        }
        if may_end(&after)? {
            all.push(self.parts.arrays.intern(after)?);
        }
        Ok(all)
    }
}
