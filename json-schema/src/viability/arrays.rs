//! Can an array be finished?
//!
//! Items come in order, so the search goes item by item. A plain table of
//! conditions is decided without a search: behind the prefix all items are
//! alike.

use super::{Question, Result, Verdict, Viability};
use crate::formula::{ArraySite, Form, FormulaId, Formulas, Term};
use crate::parse::{ConstantId, JsonType};

/// Up to how many items with a place of their own are compared.
const MAX_COMPARED: usize = 16;

impl Viability {
    /// Whether an array can be finished.
    pub(super) fn find_array(
        &mut self,
        formulas: &mut Formulas,
        id: FormulaId,
    ) -> Result<Verdict> {
        self.array_from(formulas, id, 0)
    }

    /// Whether an array can be finished that has items of which nothing is
    /// known. That an item repeats one of them is only known to be possible.
    pub(super) fn find_array_rest(
        &mut self,
        formulas: &mut Formulas,
        id: FormulaId,
    ) -> Result<Verdict> {
        let found = self.array_from(formulas, id, 0)?;
        if found != Verdict::No || !mentions_repeated(formulas, id) {
            return Ok(found);
        }
        self.if_repeated(formulas, id)
    }

    /// Whether an array can be finished if an item to come may repeat one:
    /// no, or unknown.
    fn if_repeated(
        &mut self,
        formulas: &mut Formulas,
        id: FormulaId,
    ) -> Result<Verdict> {
        let repeated = formulas.with_repetition(id);
        let one = formulas.at_least_items(1);
        let repeated = formulas.and([repeated, one]);
        Ok(match self.array_from(formulas, repeated, 0)? {
            Verdict::No => Verdict::No,
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
        let (verdict, final_) =
            self.guarded(formulas, question, |this, formulas| {
                let site = formulas.make_array_site(id);
                if is_flat_but_repeated(formulas, &site) {
                    return this.flat_repeated(formulas, &site);
                }
                if site.is_flat() && (n_items == 0 || !site.unique) {
                    let found = this.flat_array(formulas, &site)?;
                    if found != Verdict::Unknown || !site.unique {
                        return Ok(found);
                    }
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
        let verdict = self.each_item(formulas, site, site.min)?;
        if !site.unique || site.min < 2 || verdict == Verdict::No {
            return Ok(verdict);
        }
        // Each item needs as many values as there are items, then they can
        // be chosen one after the other.
        let mut enough = true;
        let goals = site.prefix.iter().take(clamp(site.min)).copied();
        let tail = (site.min > n_prefix).then_some(site.tail);
        for goal in goals.chain(tail) {
            let count = self.find_count(formulas, goal, site.min)?;
            enough &= count.at_least >= site.min;
            let same = n_prefix == 0;
            if same && count.exact && count.at_least < site.min {
                return Ok(Verdict::No);
            }
        }
        Ok(if enough { verdict } else { Verdict::Unknown })
    }

    /// Whether each of the first items of a table has a value. Those behind
    /// the prefix are alike.
    fn each_item(
        &mut self,
        formulas: &mut Formulas,
        site: &ArraySite,
        n_items: u64,
    ) -> Result<Verdict> {
        let mut verdict = Verdict::Yes;
        for index in 0..n_items.min(site.prefix.len() as u64 + 1) {
            let goal = site.goal(index);
            verdict = verdict.and(self.find_value(formulas, goal)?);
        }
        Ok(verdict)
    }

    /// Decides a table of which two items must be equal: some two of them
    /// have a value in common.
    fn flat_repeated(
        &mut self,
        formulas: &mut Formulas,
        site: &ArraySite,
    ) -> Result<Verdict> {
        // Behind the prefix all are alike, so that two of those will do.
        let n_alike = site.prefix.len() as u64 + 2;
        let n_items = site.max.map_or(n_alike, |max| max.min(n_alike));
        let mut verdict = Verdict::No;
        for second in 1..n_items {
            let n_needed = site.min.max(second + 1);
            let each = self.each_item(formulas, site, n_needed)?;
            for first in 0..second {
                let goals = [first, second].map(|index| site.goal(index));
                let both = formulas.and(goals);
                let found = self.find_value(formulas, both)?;
                verdict = verdict.or(found.and(each));
                if verdict == Verdict::Yes {
                    return Ok(verdict);
                }
            }
        }
        Ok(verdict)
    }

    /// What an item must satisfy, beside all else, so that the array after it
    /// can be finished: what an item to come asks that may have to equal it.
    /// None where that is not known.
    ///
    /// # Errors
    ///
    /// Fails where a formula cannot be expanded.
    pub(crate) fn repeat_goal(
        &mut self,
        formulas: &mut Formulas,
        rest: FormulaId,
    ) -> Result<Option<FormulaId>> {
        self.begin(formulas);
        let mut ways = Vec::new();
        for option in options(formulas, rest) {
            match self.find_array(formulas, option)? {
                Verdict::Yes => return Ok(Some(FormulaId::TRUE)),
                Verdict::Unknown => return Ok(None),
                Verdict::No => {}
            }
            if !mentions_repeated(formulas, option) {
                continue;
            }
            let site = formulas.make_array_site(option);
            if !is_flat_but_repeated(formulas, &site) {
                return Ok(None);
            }
            let n_alike = site.prefix.len() as u64 + 1;
            let n_items = site.max.map_or(n_alike, |max| max.min(n_alike));
            for again in 0..n_items {
                let n_needed = site.min.max(again + 1);
                match self.each_item(formulas, &site, n_needed)? {
                    Verdict::Yes => ways.push(site.goal(again)),
                    Verdict::Unknown => return Ok(None),
                    Verdict::No => {}
                }
            }
        }
        Ok(Some(formulas.or(ways)))
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
            let options = formulas.distributed(&parts, choice);
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
        if self.aborted {
            return Ok(Verdict::Unknown);
        }
        let unique = formulas.compares_items(id);
        if unique
            && mentions_repeated(formulas, id)
            && self.twice(formulas, id)? == Verdict::Yes
        {
            return Ok(Verdict::Yes);
        }
        let pending = formulas.derive_item(id);
        let pending = formulas.factor(pending);
        let (mut terms, complete) = formulas.some_terms(pending);
        // As for members: what is nearest to the end first.
        terms.sort_by_cached_key(|term| formulas.unmet(term.rest).len());
        let mut verdict =
            if complete { Verdict::No } else { Verdict::Unknown };
        for term in terms {
            let goal = formulas.and(term.goals);
            if unique && let Some(listed) = self.find_listed(formulas, goal)? {
                let found =
                    self.any_of_listed(formulas, term.rest, listed, n_items)?;
                verdict = verdict.or(found);
                if verdict == Verdict::Yes {
                    break;
                }
                continue;
            }
            let mut item = self.find_value(formulas, goal)?;
            if item == Verdict::No {
                continue;
            }
            if unique && n_items > 0 {
                let needed = n_items + 1;
                let count = self.find_count(formulas, goal, needed)?;
                if count.at_least < needed {
                    item = Verdict::Unknown;
                }
            }
            let mut rest =
                self.array_from(formulas, term.rest, n_items + 1)?;
            if rest != Verdict::Yes && mentions_repeated(formulas, term.rest) {
                rest = rest.or(self.if_repeated(formulas, term.rest)?);
            }
            verdict = verdict.or(item.and(rest));
            if verdict == Verdict::Yes {
                break;
            }
        }
        Ok(verdict)
    }

    /// Whether an array can be finished with the next two items equal.
    fn twice(
        &mut self,
        formulas: &mut Formulas,
        id: FormulaId,
    ) -> Result<Verdict> {
        let repeated = formulas.with_repetition(id);
        for first in self.ways(formulas, repeated) {
            for second in self.ways(formulas, first.rest) {
                let goals = first.goals.iter().chain(&second.goals);
                let both = formulas.and(goals.copied());
                let found = self.find_value(formulas, both)?;
                if found == Verdict::Yes
                    && self.array_from(formulas, second.rest, 0)?
                        == Verdict::Yes
                {
                    return Ok(Verdict::Yes);
                }
            }
        }
        Ok(Verdict::Unknown)
    }

    /// Ways to go on with an item; none of a search that has to end.
    fn ways(&self, formulas: &mut Formulas, id: FormulaId) -> Vec<Term> {
        if self.aborted {
            return Vec::new();
        }
        let pending = formulas.derive_item(id);
        let pending = formulas.factor(pending);
        formulas.some_terms(pending).0
    }

    /// Whether an array can be finished after an item that is one of these.
    fn any_of_listed(
        &mut self,
        formulas: &mut Formulas,
        rest: FormulaId,
        listed: Vec<ConstantId>,
        n_items: u64,
    ) -> Result<Verdict> {
        let mut verdict = Verdict::No;
        for constant in listed {
            let rest = formulas.with_known_item(rest, constant);
            let found = self.array_from(formulas, rest, n_items)?;
            verdict = verdict.or(found);
            if verdict == Verdict::Yes {
                break;
            }
        }
        Ok(verdict)
    }
}

/// The ways of the first choice in a conjunction that speaks of repetitions,
/// each with all else.
fn options(formulas: &mut Formulas, id: FormulaId) -> Vec<FormulaId> {
    let parts = formulas.conjuncts(id);
    let choice = parts.iter().copied().find(|&part| {
        matches!(formulas.form(part), Form::Or(_))
            && mentions_repeated(formulas, part)
    });
    match choice {
        Some(choice) => formulas.distributed(&parts, choice),
        None => vec![id],
    }
}

/// Whether a table says all, but that two items must be equal.
fn is_flat_but_repeated(formulas: &Formulas, site: &ArraySite) -> bool {
    matches!(formulas.form(site.rest), Form::Repeated)
        && site.prefix.len() <= MAX_COMPARED
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
