//! Exactly one of several formulas.

use super::arena::{Formulas, Parts};
use super::form::FormulaId;

impl Formulas {
    /// Exactly one of several formulas holds.
    ///
    /// Halving keeps the nesting logarithmic: exactly one of two halves
    /// together is one of the first and none of the second, or the reverse.
    pub(super) fn exactly_one(&mut self, parts: &[FormulaId]) -> FormulaId {
        let parts: Parts =
            parts.iter().copied().filter(|part| !part.is_false()).collect();
        self.one_of(&parts).0
    }

    /// "Exactly one", and "none".
    fn one_of(&mut self, parts: &[FormulaId]) -> (FormulaId, FormulaId) {
        match parts {
            [] => (FormulaId::FALSE, FormulaId::TRUE),
            &[part] => (part, self.negate(part)),
            _ => {
                let (left, right) = parts.split_at(parts.len() / 2);
                let (left_one, left_none) = self.one_of(left);
                let (right_one, right_none) = self.one_of(right);
                let first = self.and([left_one, right_none]);
                let second = self.and([left_none, right_one]);
                let one = self.or([first, second]);
                (one, self.and([left_none, right_none]))
            }
        }
    }
}
