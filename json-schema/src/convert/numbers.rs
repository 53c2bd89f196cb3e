//! Numbers: lists of them, and conditions on their digits.

use maskwright_grammar_core::util::FxHashMap;

use super::{
    ConvertError, Trouble, basics::Basic, dfa::Dfa, expr::Expr,
    values::Converter,
};
use crate::{
    formula::{Form, FormulaId},
    number::{NumberSpec, PlainNumbers, Policy},
};

impl Converter {
    /// The numbers of a typed formula.
    pub(super) fn number(
        &mut self,
        value: FormulaId,
        typed: FormulaId,
        hint: &str,
    ) -> Result<Expr, ConvertError> {
        if let Some(made) = self.numbers.get(&typed) {
            return Ok(made.clone());
        }
        let made = self.make_number(value, typed, hint)?;
        let made = self.rules.shared(hint, made)?;
        self.numbers.insert(typed, made.clone());
        Ok(made)
    }

    fn make_number(
        &mut self,
        value: FormulaId,
        typed: FormulaId,
        hint: &str,
    ) -> Result<Expr, ConvertError> {
        match *self.formulas.form(typed) {
            Form::False => return Ok(Expr::never()),
            Form::True => return self.basic(Basic::Number),
            Form::Integer(true) | Form::IntegerText(true) => {
                return self.basic(Basic::Integer);
            }
            _ => {}
        }
        let formula = self.formulas.number_formula(typed);
        let is_list = self.lists_numbers(typed);
        if is_list {
            let spec = NumberSpec::new(&formula, &[], Policy::plain());
            return Ok(Expr::words(spec.texts().map(Expr::literal)));
        }
        if let Some(made) = self.number_automaton(typed, hint)? {
            return Ok(made);
        }
        let divided =
            self.formulas.rewrite(typed, &mut FxHashMap::default(), &|form| {
                let is_multiple = matches!(form, Form::Multiple(..));
                is_multiple.then_some(FormulaId::TRUE)
            });
        if divided != typed
            && let Some(made) = self.number_automaton(divided, hint)?
        {
            let reason = "the residues of digits need more states than one \
                          automaton may have; other numbers are allowed too";
            self.note(value, &["multipleOf"], reason);
            return Ok(made);
        }
        let reason = "the digits of this bound need more states than one \
                      automaton may have; any number is allowed";
        let keywords = ["minimum", "maximum", "multipleOf", "enum", "const"];
        self.note(value, &keywords, reason);
        self.basic(Basic::Number)
    }

    /// Whether a formula allows only numbers that it lists.
    fn lists_numbers(&self, typed: FormulaId) -> bool {
        let parts = self.formulas.conjuncts(typed);
        parts.iter().any(|&part| {
            matches!(self.formulas.form(part), Form::NumberIn(_, true))
        })
    }

    fn number_automaton(
        &mut self,
        typed: FormulaId,
        hint: &str,
    ) -> Result<Option<Expr>, ConvertError> {
        let formula = self.formulas.number_formula(typed);
        let Some(numbers) = PlainNumbers::new(&formula) else {
            return Ok(None);
        };
        let dfa = match Dfa::of_numbers(&numbers) {
            Ok(dfa) => dfa,
            Err(Trouble::TooMany) => return Ok(None),
            Err(Trouble::Error(error)) => return Err(error),
        };
        let mut spell =
            |set: &_, _: &mut _| Ok(Expr::class(Clone::clone(set)));
        dfa.expr(hint, &mut self.rules, &mut spell).map(Some)
    }
}
