//! Strings and numbers: decided by the automata and by arithmetic.

use maskwright_grammar_core::regular::{Answer, Language, Limits, Regex};

use super::{Verdict, Viability};
use crate::format::{self, Bound};
use crate::formula::{FormulaId, Formulas};
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
            let certain = plain || !found || self.knows(formulas, typed);
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
            let pattern = formulas.pool().pattern_value(*pattern);
            let language = pattern.language();
            let most = site.max.unwrap_or(u64::MAX);
            let start = language.start();
            return match language.accepts_length(start, site.min, most) {
                Answer::Yes if pattern.is_regular() => Verdict::Yes,
                Answer::No => Verdict::No,
                Answer::Yes | Answer::Unknown => Verdict::Unknown,
            };
        }
        let is_dead = |regex: &Regex| {
            Language::new(regex, Limits::new())
                .map_or(Answer::Unknown, |language| {
                    language.is_dead(language.start())
                })
        };
        let (most, exact) = self.expression(formulas, typed);
        match is_dead(&most) {
            Answer::Yes => return Verdict::No,
            Answer::No if exact => return Verdict::Yes,
            Answer::Unknown if exact => return Verdict::Unknown,
            _ => {}
        }
        let least = formulas.string_regex(typed, Bound::Least, self.formats);
        match is_dead(&least) {
            Answer::No => Verdict::Yes,
            _ => Verdict::Unknown,
        }
    }

    /// The strings that may satisfy a typed formula, and whether these are
    /// those that do.
    pub(super) fn expression(
        &self,
        formulas: &Formulas,
        typed: FormulaId,
    ) -> (Regex, bool) {
        let regex = formulas.string_regex(typed, Bound::Most, self.formats);
        let is_loose = |name: &str| {
            !format::is_regular(name)
                || (self.formats)(name, true, Bound::Most).is_none()
        };
        let is_exact = !formulas.has_format(typed, &is_loose)
            && !formulas.has_backreferences(typed);
        (regex, is_exact)
    }

    /// Whether all formats of a formula are known.
    fn knows(&self, formulas: &Formulas, typed: FormulaId) -> bool {
        let is_unknown =
            |name: &str| (self.formats)(name, true, Bound::Most).is_none();
        !formulas.has_format(typed, &is_unknown)
    }
}
