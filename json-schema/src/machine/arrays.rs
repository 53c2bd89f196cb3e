//! Arrays: which items may come now, and whether the array may end.

use maskwright_grammar_core::automaton::AutomatonError;
use smallvec::SmallVec;

use super::{Machine, algebra::Typed, values::QuestionId};

/// What one array is asked.
#[derive(Debug)]
pub(crate) enum ArraySite {
    /// A conjunction of conditions on items by index, and on their number.
    Flat(FlatArray),
    /// The residuals of formulas: the need first, then the goals.
    General(Box<[Typed]>),
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
}

/// How far an array has come.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Array {
    pub(crate) site: u32,
    /// The number of items, as far as the site tells numbers apart.
    pub(crate) count: u64,
    /// The residual formulas of a general site.
    pub(crate) rest: SmallVec<[Typed; 2]>,
}

/// What follows from how far an array has come.
#[derive(Debug)]
pub(crate) struct ArrayInfo {
    /// What the next item is asked; none if there may be none.
    pub(crate) question: Option<QuestionId>,
    /// The verdicts with which the array may end now.
    pub(crate) close: Option<u32>,
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
        prefix.max(self.least).max(self.most.unwrap_or(0))
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
            ArraySite::General(formulas) => SmallVec::from_slice(formulas),
        };
        self.parts.arrays.intern(Array { site, count: 0, rest })
    }

    /// What may come in an array, and whether it may end.
    pub(crate) fn array_info(
        &self,
        array: u32,
    ) -> Result<&ArrayInfo, AutomatonError> {
        self.parts.arrays.derived(array, |array| {
            let mut after = array.clone();
            match self.array_site(array.site)? {
                ArraySite::Flat(flat) => {
                    after.count = (array.count + 1).min(flat.horizon());
                    Ok(ArrayInfo {
                        question: flat.question(array.count),
                        close: (array.count >= flat.least).then_some(0),
                        after,
                    })
                }
                ArraySite::General(_) => {
                    let (question, close, rest) =
                        self.general_item(&array.rest)?;
                    after.rest = rest;
                    Ok(ArrayInfo { question, close, after })
                }
            }
        })
    }

    /// The array after its next item has ended with `verdicts`; none if the
    /// array cannot end after that.
    pub(crate) fn array_after(
        &self,
        array: u32,
        verdicts: u64,
    ) -> Result<Option<u32>, AutomatonError> {
        let info = self.array_info(array)?;
        let mut after = info.after.clone();
        let alive = self.settle(info.question, verdicts, &mut after.rest);
        alive.then(|| self.parts.arrays.intern(after)).transpose()
    }
}
