//! Can an array be finished?
//!
//! Items come in order, so the search goes item by item. A plain table of
//! conditions is decided without a search: behind the prefix all items are
//! alike.

use maskwright_grammar_core::util::FxHashMap;

use super::{Question, Result, Verdict, Viability};
use crate::formula::{ArraySite, Form, FormulaId, Formulas};
use crate::parse::JsonType;

impl Viability {
    /// Whether an array can be finished.
    pub(super) fn find_array(
        &mut self,
        formulas: &mut Formulas,
        id: FormulaId,
    ) -> Result<Verdict> {
        if formulas.compares_items(id) && mentions_repeated(formulas, id) {
            return self.with_repeated(formulas, id, 2);
        }
        self.array_from(formulas, id, 0)
    }

    /// Whether an array that has items already can be finished.
    pub(super) fn find_array_rest(
        &mut self,
        formulas: &mut Formulas,
        id: FormulaId,
    ) -> Result<Verdict> {
        if mentions_repeated(formulas, id) {
            return self.with_repeated(formulas, id, 1);
        }
        self.array_from(formulas, id, 0)
    }

    /// Without a repetition, or else with one, which takes `n_items` more at
    /// least: the second is only known to be necessary.
    fn with_repeated(
        &mut self,
        formulas: &mut Formulas,
        id: FormulaId,
        n_items: u64,
    ) -> Result<Verdict> {
        let distinct = formulas.rewrite(
            id,
            &mut FxHashMap::default(),
            &|form| match form {
                Form::Repeated => Some(FormulaId::FALSE),
                _ => None,
            },
        );
        let found = self.array_from(formulas, distinct, 0)?;
        if found == Verdict::Yes {
            return Ok(found);
        }
        let repeated = formulas.with_repetition(id);
        let more = formulas.at_least_items(n_items);
        let repeated = formulas.and([repeated, more]);
        Ok(match self.array_from(formulas, repeated, 0)? {
            Verdict::No => found,
            _ => Verdict::Unknown,
        })
    }

    /// Whether an array can be finished, of which the search has added
    /// `n_items` items.
    fn array_from(
        &mut self,
        formulas: &mut Formulas,
        id: FormulaId,
        n_items: u64,
    ) -> Result<Verdict> {
        if id.is_false() {
            return Ok(Verdict::No);
        }
        if formulas.holds_at_end(id, false) {
            return Ok(Verdict::Yes);
        }
        let key = (id, JsonType::Array);
        let unique = formulas.compares_items(id);
        let forgetful = n_items == 0 || !unique;
        if forgetful && let Some(&known) = self.typed.get(&key) {
            return Ok(known);
        }
        let question = Question::Container(id);
        let (verdict, final_) = self.guarded(question, |this| {
            let site = formulas.make_array_site(id);
            if site.is_flat() && (n_items == 0 || !site.unique) {
                return this.flat_array(formulas, &site);
            }
            this.search_array(formulas, id, n_items)
        })?;
        if final_ && forgetful {
            self.typed.insert(key, verdict);
        }
        Ok(verdict)
    }

    /// Decides a table: every item up to the least number for itself.
    fn flat_array(
        &mut self,
        formulas: &mut Formulas,
        site: &ArraySite,
    ) -> Result<Verdict> {
        let n_prefix = site.prefix.len() as u64;
        let mut verdict = Verdict::Yes;
        for &goal in site.prefix.iter().take(clamp(site.min)) {
            verdict = verdict.and(self.find_value(formulas, goal)?);
        }
        if site.min > n_prefix {
            verdict = verdict.and(self.find_value(formulas, site.tail)?);
        }
        if !site.unique || site.min < 2 || verdict == Verdict::No {
            return Ok(verdict);
        }
        // Each item needs as many values as there are items, then they can
        // be chosen one after the other.
        let mut enough = true;
        let goals = site.prefix.iter().take(clamp(site.min)).copied();
        let tail = (site.min > n_prefix).then_some(site.tail);
        for goal in goals.chain(tail) {
            let count = self.count(formulas, goal, site.min)?;
            enough &= count.at_least >= site.min;
            let same = n_prefix == 0;
            if same && count.exact && count.at_least < site.min {
                return Ok(Verdict::No);
            }
        }
        Ok(if enough { verdict } else { Verdict::Unknown })
    }

    fn search_array(
        &mut self,
        formulas: &mut Formulas,
        id: FormulaId,
        n_items: u64,
    ) -> Result<Verdict> {
        if let Form::Or(parts) = formulas.form(id) {
            let parts = parts.to_vec();
            return self.any_array(formulas, parts, n_items);
        }
        let parts = formulas.conjuncts(id);
        let choice = parts.iter().copied().find(|&part| {
            matches!(formulas.form(part), Form::Or(_))
                && !formulas.holds_at_end(part, false)
        });
        if let Some(choice) = choice {
            let ways = formulas.form(choice).parts().to_vec();
            let mut options = Vec::with_capacity(ways.len());
            for way in ways {
                let rest = parts.iter().filter(|&&part| part != choice);
                let all = rest.copied().chain([way]);
                options.push(formulas.and(all));
            }
            return self.any_array(formulas, options, n_items);
        }
        self.next_item(formulas, id, n_items)
    }

    fn any_array(
        &mut self,
        formulas: &mut Formulas,
        options: Vec<FormulaId>,
        n_items: u64,
    ) -> Result<Verdict> {
        let mut verdict = Verdict::No;
        for option in options {
            let found = self.array_from(formulas, option, n_items)?;
            verdict = verdict.or(found);
            if verdict == Verdict::Yes {
                break;
            }
        }
        Ok(verdict)
    }

    fn next_item(
        &mut self,
        formulas: &mut Formulas,
        id: FormulaId,
        n_items: u64,
    ) -> Result<Verdict> {
        let unique = formulas.compares_items(id);
        let pending = formulas.derive_item(id);
        let pending = formulas.factor(pending);
        let (terms, complete) = formulas.some_terms(pending);
        let mut verdict =
            if complete { Verdict::No } else { Verdict::Unknown };
        for term in terms {
            let goal = formulas.and(term.goals);
            let mut item = self.find_value(formulas, goal)?;
            if item == Verdict::No {
                continue;
            }
            if unique && n_items > 0 {
                let needed = n_items + 1;
                let count = self.count(formulas, goal, needed)?;
                if count.at_least < needed {
                    item = Verdict::Unknown;
                }
            }
            let rest = self.array_from(formulas, term.rest, n_items + 1)?;
            verdict = verdict.or(item.and(rest));
            if verdict == Verdict::Yes {
                break;
            }
        }
        Ok(verdict)
    }
}

fn clamp(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn mentions_repeated(formulas: &Formulas, id: FormulaId) -> bool {
    match formulas.form(id) {
        Form::Repeated => true,
        // Conditions of evaluators are rare and count as if they did.
        Form::Unevaluated(..) | Form::ExUnevaluated(..) => {
            formulas.compares_items(id)
        }
        form => {
            form.parts().iter().any(|&part| mentions_repeated(formulas, part))
        }
    }
}
