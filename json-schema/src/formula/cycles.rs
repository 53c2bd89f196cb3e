//! Schemas that apply themselves to the same value through a dynamic
//! reference.
//!
//! A reference leads to one place, and such a cycle of references is found
//! when the schema is read. Where a dynamic one leads depends on the way
//! there, so what can be reached is expanded, once, before any text is read.

use maskwright_grammar_core::util::FxHashSet;

use super::arena::Formulas;
use super::form::{Form, FormulaId};
use crate::error::{ErrorKind, SchemaError};
use crate::parse::JsonType;

/// How many goals are expanded; a cycle beyond them is an error when a text
/// comes there.
const MAX_GOALS: usize = 4_096;

impl Formulas {
    /// Refuses a schema that applies itself to the same value through a
    /// dynamic reference.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::InPlaceCycle`].
    pub(crate) fn check_cycles(&mut self) -> Result<(), SchemaError> {
        if !self.schema.is_dynamic {
            return Ok(());
        }
        let mut seen: FxHashSet<FormulaId> = FxHashSet::default();
        let mut goals = vec![self.root()];
        while let Some(goal) = goals.pop() {
            if seen.len() > MAX_GOALS || !seen.insert(goal) {
                continue;
            }
            for json_type in JsonType::ALL {
                match self.typed(goal, json_type) {
                    Ok(typed) => self.push_goals(typed, &mut goals),
                    Err(error) => match error.kind() {
                        ErrorKind::InPlaceCycle => return Err(error),
                        // A limit may not be met by any text.
                        _ => return Ok(()),
                    },
                }
            }
        }
        Ok(())
    }

    /// Adds the value formulas in a typed formula.
    fn push_goals(&self, typed: FormulaId, out: &mut Vec<FormulaId>) {
        let mut parts = vec![typed];
        let mut seen: FxHashSet<FormulaId> = FxHashSet::default();
        while let Some(part) = parts.pop() {
            if !seen.insert(part) {
                continue;
            }
            match self.form(part) {
                Form::And(inner) | Form::Or(inner) => parts.extend(&**inner),
                Form::All(_, goal)
                | Form::Ex(_, goal)
                | Form::ItemsAll(_, _, goal)
                | Form::ItemsEx(_, _, goal)
                | Form::ContainsGe(goal, _)
                | Form::ContainsLe(goal, _) => out.push(*goal),
                Form::Unevaluated(evaluators, goal)
                | Form::ExUnevaluated(evaluators, goal) => {
                    out.push(*goal);
                    parts.extend(evaluators.iter().map(|it| it.condition));
                }
                _ => {}
            }
        }
    }
}
