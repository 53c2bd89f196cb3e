//! Strings and numbers: decided by the automata and by arithmetic.

use maskwright_grammar_core::regular::{Answer, Language, Limits, Regex};
use maskwright_grammar_core::util::FxHashMap;

use super::{Verdict, Viability};
use crate::formula::{Form, FormulaId, Formulas};
use crate::number::Cells;

impl Viability {
    pub(super) fn number(formulas: &Formulas, typed: FormulaId) -> Verdict {
        let cells = Cells::new(&formulas.number_formula(typed));
        match (cells.is_empty(), cells.is_exact()) {
            (true, _) => Verdict::No,
            (false, true) => Verdict::Yes,
            (false, false) => Verdict::Unknown,
        }
    }

    pub(super) fn string(
        &self,
        formulas: &mut Formulas,
        typed: FormulaId,
    ) -> Verdict {
        let site = formulas.string_site(typed);
        let plain = site.patterns.is_empty()
            && site.formats.is_empty()
            && site.rest.is_empty();
        if let Some(only) = &site.only {
            let found = only.iter().any(|&name| {
                let text = formulas.pool().name_text(name);
                formulas.string_holds(typed, text)
            });
            let certain = plain || !found || !has_format(formulas, typed);
            return match (found, certain) {
                (false, _) => Verdict::No,
                (true, true) => Verdict::Yes,
                (true, false) => Verdict::Unknown,
            };
        }
        // Bounds that clash were found when the conjunction was made, and
        // finitely many exceptions do not exhaust an unbounded length.
        if plain && site.except.is_none() {
            return Verdict::Yes;
        }
        if let ([(pattern, true)], true, true, None) = (
            &site.patterns[..],
            site.formats.is_empty(),
            site.rest.is_empty(),
            &site.except,
        ) {
            let language = formulas.pool().pattern_value(*pattern).language();
            let most = site.max.unwrap_or(u64::MAX);
            let start = language.start();
            return match language.accepts_length(start, site.min, most) {
                Answer::Yes => Verdict::Yes,
                Answer::No => Verdict::No,
                Answer::Unknown => Verdict::Unknown,
            };
        }
        let (regex, exact) = self.expression(formulas, typed);
        let dead = Language::new(&regex, Limits::new())
            .map_or(Answer::Unknown, |language| {
                language.is_dead(language.start())
            });
        match dead {
            Answer::Yes => Verdict::No,
            Answer::No if exact => Verdict::Yes,
            _ => Verdict::Unknown,
        }
    }

    /// The strings of a typed formula, and whether the expression is exact;
    /// otherwise it has strings too many.
    pub(super) fn expression(
        &self,
        formulas: &mut Formulas,
        typed: FormulaId,
    ) -> (Regex, bool) {
        let known = self.formats;
        let undecided =
            formulas.rewrite(typed, &mut FxHashMap::default(), &|form| {
                match form {
                    Form::Format(..) => Some(FormulaId::TRUE),
                    _ => None,
                }
            });
        let exact =
            undecided == typed || formats_known(formulas, typed, known);
        let formula = if exact { typed } else { undecided };
        let regex = formulas.string_regex(formula, &|name| {
            known(name).unwrap_or_else(Regex::any_string)
        });
        (regex, exact)
    }
}

/// Whether a string formula asks for a format.
fn has_format(formulas: &Formulas, id: FormulaId) -> bool {
    match formulas.form(id) {
        Form::Format(..) => true,
        form => form.parts().iter().any(|&part| has_format(formulas, part)),
    }
}

fn formats_known(
    formulas: &Formulas,
    id: FormulaId,
    known: fn(&str) -> Option<Regex>,
) -> bool {
    match formulas.form(id) {
        Form::Format(format, _) => {
            known(formulas.pool().format_name(*format)).is_some()
        }
        form => form
            .parts()
            .iter()
            .all(|&part| formats_known(formulas, part, known)),
    }
}
