//! Scalar formulas: what they say of one string or number, and their forms
//! for the automata of strings and the arithmetic of numbers.

use std::sync::Arc;

use maskwright_grammar_core::regular::Regex;

use super::arena::Formulas;
use super::form::{Form, FormulaId};
use crate::format::{self, Bound};
use crate::number::{Decimal, NumberFormula};
use crate::parse::{FormatId, NameId, PatternId};

/// A conjunction of string atoms as a table.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct StringSite {
    /// The only strings allowed, if the schema lists them; sorted by id.
    pub only: Option<Arc<[NameId]>>,
    /// Strings that are not allowed; sorted by id.
    pub except: Option<Arc<[NameId]>>,
    /// Patterns, with whether they must or must not match.
    pub patterns: Vec<(PatternId, bool)>,
    /// Formats, with whether they must or must not match.
    pub formats: Vec<(FormatId, bool)>,
    /// The least number of code points.
    pub min: u64,
    /// The greatest number of code points.
    pub max: Option<u64>,
    /// Disjunctions of string atoms that must hold as well.
    pub rest: Vec<FormulaId>,
}

impl Formulas {
    /// The table of a typed string formula that is not false.
    pub fn string_site(&self, id: FormulaId) -> StringSite {
        let mut site = StringSite::default();
        for part in self.conjuncts(id) {
            match *self.form(part) {
                // Sets of one sign were fused when the conjunction was made.
                Form::StringIn(set, true) => {
                    site.only = Some(Arc::clone(self.string_set(set)));
                }
                Form::StringIn(set, false) => {
                    site.except = Some(Arc::clone(self.string_set(set)));
                }
                Form::Pattern(pattern, sign) => {
                    site.patterns.push((pattern, sign));
                }
                Form::Format(format, sign) => {
                    site.formats.push((format, sign));
                }
                Form::CharsGe(count) => site.min = count,
                Form::CharsLe(count) => site.max = Some(count),
                _ => site.rest.push(part),
            }
        }
        site
    }

    /// Whether a string satisfies a typed formula.
    ///
    /// A format that is not known counts as satisfied, and so does its
    /// negation.
    pub fn string_holds(&self, id: FormulaId, text: &str) -> bool {
        let length = || text.chars().count() as u64;
        match self.form(id) {
            Form::And(parts) => {
                parts.iter().all(|&part| self.string_holds(part, text))
            }
            Form::Or(parts) => {
                parts.iter().any(|&part| self.string_holds(part, text))
            }
            Form::True => true,
            Form::Format(name, sign) => {
                let name = self.pool().format_name(*name);
                format::holds(name, text).is_none_or(|holds| holds == *sign)
            }
            Form::Pattern(pattern, sign) => {
                self.pool().pattern_value(*pattern).holds(text, *sign)
            }
            Form::CharsGe(count) => length() >= *count,
            Form::CharsLe(count) => length() <= *count,
            Form::StringIn(set, sign) => {
                let inside = self.pool().find_name(text).is_some_and(|name| {
                    self.string_set(*set).binary_search(&name).is_ok()
                });
                inside == *sign
            }
            _ => false,
        }
    }

    /// Whether a number satisfies a typed formula. `text` is its spelling.
    pub fn number_holds(
        &self,
        id: FormulaId,
        value: &Decimal,
        text: &str,
    ) -> bool {
        let number = |number| self.pool().number_value(number);
        match *self.form(id) {
            Form::And(ref parts) => {
                parts.iter().all(|&part| self.number_holds(part, value, text))
            }
            Form::Or(ref parts) => {
                parts.iter().any(|&part| self.number_holds(part, value, text))
            }
            Form::True => true,
            Form::Ge(bound) => value >= number(bound),
            Form::Gt(bound) => value > number(bound),
            Form::Le(bound) => value <= number(bound),
            Form::Lt(bound) => value < number(bound),
            Form::Multiple(divisor, sign) => {
                value.is_multiple_of(number(divisor)) == sign
            }
            Form::Integer(sign) => value.is_integer() == sign,
            Form::IntegerText(sign) => text.contains(['.', 'e', 'E']) != sign,
            Form::NumberIn(set, sign) => {
                let mut values = self.number_set(set).iter();
                values.any(|&other| number(other) == value) == sign
            }
            _ => false,
        }
    }

    /// A typed formula of numbers for the arithmetic.
    pub fn number_formula(&self, id: FormulaId) -> NumberFormula {
        let number = |number| self.pool().number_value(number).clone();
        let signed = |formula: NumberFormula, sign| {
            if sign { formula } else { NumberFormula::Not(Box::new(formula)) }
        };
        let all = |parts: &[FormulaId]| {
            parts.iter().map(|&part| self.number_formula(part)).collect()
        };
        match *self.form(id) {
            Form::And(ref parts) => NumberFormula::And(all(parts)),
            Form::Or(ref parts) => NumberFormula::Or(all(parts)),
            Form::True => NumberFormula::True,
            Form::Ge(bound) => NumberFormula::Ge(number(bound)),
            Form::Gt(bound) => NumberFormula::Gt(number(bound)),
            Form::Le(bound) => NumberFormula::Le(number(bound)),
            Form::Lt(bound) => NumberFormula::Lt(number(bound)),
            Form::Multiple(divisor, sign) => {
                signed(NumberFormula::MultipleOf(number(divisor)), sign)
            }
            Form::Integer(sign) => signed(NumberFormula::Integer, sign),
            Form::IntegerText(sign) => {
                signed(NumberFormula::IntegerText, sign)
            }
            Form::NumberIn(set, sign) => {
                let values = self.number_set(set).iter().copied();
                signed(NumberFormula::In(values.map(number).collect()), sign)
            }
            _ => NumberFormula::False,
        }
    }

    /// Whether a typed formula of strings asks for a format of which
    /// `is_such` is true.
    pub fn has_format(
        &self,
        id: FormulaId,
        is_such: &dyn Fn(&str) -> bool,
    ) -> bool {
        match self.form(id) {
            Form::Format(name, _) => is_such(self.pool().format_name(*name)),
            form => {
                let mut parts = form.parts().iter();
                parts.any(|&part| self.has_format(part, is_such))
            }
        }
    }

    /// Whether a typed formula of strings has a pattern with backreferences.
    pub fn has_backreferences(&self, id: FormulaId) -> bool {
        match *self.form(id) {
            Form::Pattern(pattern, _) => {
                !self.pool().pattern_value(pattern).is_regular()
            }
            ref form => {
                let mut parts = form.parts().iter();
                parts.any(|&part| self.has_backreferences(part))
            }
        }
    }

    /// A typed formula of strings as one expression over code points: of
    /// those that satisfy it for certain, or of those that may.
    ///
    /// `format` gives the expressions of a format and of its negation, where
    /// they are known. Lengths beyond `u32` count as that bound, which no
    /// string reaches.
    pub fn string_regex(
        &self,
        id: FormulaId,
        bound: Bound,
        format: format::Languages,
    ) -> Regex {
        let signed =
            |regex: Regex, sign| if sign { regex } else { regex.not() };
        let length = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let all = |parts: &[FormulaId]| -> Vec<Regex> {
            let parts = parts.iter();
            parts.map(|&part| self.string_regex(part, bound, format)).collect()
        };
        match *self.form(id) {
            Form::And(ref parts) => Regex::intersect(&all(parts)),
            Form::Or(ref parts) => Regex::alternate(&all(parts)),
            Form::True => Regex::any_string(),
            Form::Pattern(pattern, sign) => {
                self.pool().pattern_value(pattern).bound(sign, bound)
            }
            Form::Format(name, sign) => {
                let name = self.pool().format_name(name);
                format(name, sign, bound).unwrap_or_else(|| match bound {
                    Bound::Least => Regex::empty(),
                    Bound::Most => Regex::any_string(),
                })
            }
            Form::CharsGe(count) => Regex::length(length(count), None),
            Form::CharsLe(count) => Regex::length(0, Some(length(count))),
            Form::StringIn(set, sign) => {
                let names = self.string_set(set).iter();
                let texts = names.map(|&name| self.pool().name_text(name));
                signed(Regex::literals(texts), sign)
            }
            _ => Regex::empty(),
        }
    }
}
