//! How many values satisfy a formula, for `uniqueItems`.

use maskwright_grammar_core::regular::{Language, Limits, WordCount};

use super::{Result, Viability};
use crate::formula::{Form, FormulaId, Formulas};
use crate::number::Cells;
use crate::parse::JsonType;

/// A number of values, up to a cap.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cardinality {
    /// There are at least so many; the cap where there are more.
    pub at_least: u64,
    /// Whether there are exactly so many, below the cap.
    pub exact: bool,
}

impl Viability {
    /// How many values satisfy a value formula, up to `cap`.
    ///
    /// # Errors
    ///
    /// Fails where a formula cannot be expanded.
    pub fn count(
        &mut self,
        formulas: &mut Formulas,
        value: FormulaId,
        cap: u64,
    ) -> Result<Cardinality> {
        let mut total = Cardinality { at_least: 0, exact: true };
        for json_type in JsonType::ALL {
            let typed = formulas.typed(value, json_type)?;
            if typed.is_false() {
                continue;
            }
            let part = self.count_typed(formulas, typed, json_type, cap);
            total.at_least = total.at_least.saturating_add(part.at_least);
            total.exact &= part.exact;
            if total.at_least >= cap {
                return Ok(Cardinality { at_least: cap, exact: false });
            }
        }
        Ok(total)
    }

    fn count_typed(
        &self,
        formulas: &mut Formulas,
        typed: FormulaId,
        json_type: JsonType,
        cap: u64,
    ) -> Cardinality {
        let many = Cardinality { at_least: cap, exact: false };
        let exactly = |at_least| Cardinality { at_least, exact: true };
        match json_type {
            JsonType::Null | JsonType::False | JsonType::True => exactly(1),
            _ if typed.is_true() => many,
            JsonType::Number => {
                let cells = Cells::new(&formulas.number_formula(typed));
                match cells.values() {
                    Some(values) => Cardinality {
                        at_least: values.len() as u64,
                        exact: cells.is_exact(),
                    },
                    None if cells.is_exact() => many,
                    None => Cardinality { at_least: 0, exact: false },
                }
            }
            JsonType::String => self.count_strings(formulas, typed, cap),
            JsonType::Array | JsonType::Object => {
                let empty = formulas.holds_at_end(typed, false);
                let only_empty = formulas.conjuncts(typed).iter().any(|&p| {
                    matches!(
                        formulas.form(p),
                        Form::LenLe(0) | Form::CountLe(0)
                    )
                });
                Cardinality { at_least: u64::from(empty), exact: only_empty }
            }
        }
    }

    fn count_strings(
        &self,
        formulas: &mut Formulas,
        typed: FormulaId,
        cap: u64,
    ) -> Cardinality {
        let nothing = Cardinality { at_least: 0, exact: false };
        let (regex, exact) = self.expression(formulas, typed);
        let Ok(language) = Language::new(&regex, Limits::new()) else {
            return nothing;
        };
        if !exact {
            return nothing;
        }
        match language.count_words(language.start(), cap) {
            WordCount::Exactly(at_least) => {
                Cardinality { at_least, exact: true }
            }
            WordCount::MoreThanCap => {
                Cardinality { at_least: cap, exact: false }
            }
            WordCount::Unknown => nothing,
        }
    }
}
