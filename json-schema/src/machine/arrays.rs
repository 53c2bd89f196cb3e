//! Arrays: which items may come now, and whether the array may end.

use maskwright_grammar_core::automaton::AutomatonError;
use smallvec::SmallVec;

use super::{Machine, algebra::Typed, distinct::Ends, values::QuestionId};
use crate::parse::JsonType;

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
    /// The residual formulas of a general site.
    pub(crate) rest: SmallVec<[Typed; 2]>,
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
        let array = Array { site, count: 0, repeated: false, rest };
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
        let item = self.general_item(&array.rest, others)?;
        let mut after = array.clone();
        after.count = u64::from(compares);
        after.rest = item.rest;
        let compared = item.ends.is_some_and(|ends| ends != Ends::First);
        Ok(ArrayInfo {
            question: item.question,
            ends: item.ends,
            close: item.close,
            // What is left of the values of items is not looked at.
            exact: !compared && n_assumed == self.algebra.n_assumed(),
            after,
        })
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
            Some(&need) => self.algebra.may_end(need, JsonType::Array),
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
