//! The values that satisfy a formula, where it lists them.

use super::{Result, Verdict, Viability};
use crate::formula::{FormulaId, Formulas};
use crate::parse::ConstantId;

impl Viability {
    /// The values that satisfy a value formula, if it lists them and each of
    /// them was decided.
    ///
    /// # Errors
    ///
    /// Fails where a formula cannot be expanded.
    pub(crate) fn listed(
        &mut self,
        formulas: &mut Formulas,
        value: FormulaId,
    ) -> Result<Option<Vec<ConstantId>>> {
        self.begin(formulas);
        self.find_listed(formulas, value)
    }

    /// [`Viability::listed`] inside a search.
    pub(super) fn find_listed(
        &mut self,
        formulas: &mut Formulas,
        value: FormulaId,
    ) -> Result<Option<Vec<ConstantId>>> {
        let Some(candidates) = formulas.candidates(value) else {
            return Ok(None);
        };
        let mut listed = Vec::with_capacity(candidates.len());
        for constant in candidates {
            let same = formulas.equals(constant);
            let both = formulas.and([value, same]);
            match self.find_value(formulas, both)? {
                Verdict::Yes => listed.push(constant),
                Verdict::No => {}
                Verdict::Unknown => return Ok(None),
            }
        }
        Ok(Some(listed))
    }
}
