//! How many values satisfy a formula, for `uniqueItems`.

use maskwright_grammar_core::regular::{Language, Limits, WordCount};

use super::{Result, Verdict, Viability};
use crate::format::Bound;
use crate::formula::{
    ArraySite, Form, FormulaId, Formulas, KeySet, KeySetId, ObjectSite,
    SiteName,
};
use crate::number::{Cells, Values};
use crate::parse::{JsonType, NameId};

/// In how many members many values are looked for.
const MAX_NAMES: usize = 16;

/// How deep in containers values are counted.
const MAX_DEPTH: u32 = 3;

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
        self.begin(formulas);
        self.find_count(formulas, value, cap)
    }

    /// [`Viability::count`] inside a search.
    pub(super) fn find_count(
        &mut self,
        formulas: &mut Formulas,
        value: FormulaId,
        cap: u64,
    ) -> Result<Cardinality> {
        if let Some(listed) = self.find_listed(formulas, value)? {
            let count = listed.len() as u64;
            let (at_least, exact) = (count.min(cap), count < cap);
            return Ok(Cardinality { at_least, exact });
        }
        self.count_value(formulas, value, cap, MAX_DEPTH)
    }

    /// [`Viability::count`], so deep in containers. Recursion is as deep.
    fn count_value(
        &mut self,
        formulas: &mut Formulas,
        value: FormulaId,
        cap: u64,
        depth: u32,
    ) -> Result<Cardinality> {
        let mut total = Cardinality { at_least: 0, exact: true };
        for json_type in JsonType::ALL {
            let typed = formulas.typed(value, json_type)?;
            if typed.is_false() {
                continue;
            }
            let part = match json_type {
                JsonType::Array | JsonType::Object if !typed.is_true() => {
                    let limits = (cap, depth);
                    self.count_container(formulas, typed, json_type, limits)?
                }
                _ => self.count_scalars(formulas, typed, json_type, cap),
            };
            total.at_least = total.at_least.saturating_add(part.at_least);
            total.exact &= part.exact;
            if total.at_least >= cap {
                return Ok(Cardinality { at_least: cap, exact: false });
            }
        }
        Ok(total)
    }

    fn count_scalars(
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
                let most = usize::try_from(cap).unwrap_or(usize::MAX);
                match cells.list(most) {
                    Values::All(values) => exactly(values.len() as u64),
                    Values::More => many,
                    Values::Unknown => {
                        Cardinality { at_least: 0, exact: false }
                    }
                }
            }
            _ => self.count_strings(formulas, typed, cap),
        }
    }

    /// Counts containers where they are plain conjunctions. Of others it is
    /// looked for a member or an item with many values.
    fn count_container(
        &mut self,
        formulas: &mut Formulas,
        typed: FormulaId,
        json_type: JsonType,
        (cap, depth): (u64, u32),
    ) -> Result<Cardinality> {
        let only_empty = formulas.conjuncts(typed).iter().any(|&part| {
            let form = formulas.form(part);
            matches!(form, Form::LenLe(0) | Form::CountLe(0))
        });
        let empty = u64::from(formulas.holds_at_end(typed, false));
        let plain = Cardinality { at_least: empty, exact: only_empty };
        if only_empty || depth == 0 {
            return Ok(plain);
        }
        let counted = if json_type == JsonType::Array {
            let site = formulas.make_array_site(typed);
            if site.is_flat() && !site.unique {
                self.count_arrays(formulas, &site, cap, depth - 1)?
            } else {
                plain
            }
        } else {
            let site = formulas.make_object_site(typed, &[]);
            if site.is_flat() {
                self.count_objects(formulas, &site, cap, depth - 1)?
            } else {
                plain
            }
        };
        let limits = (cap, depth - 1);
        let is_known = counted.exact || counted.at_least >= cap;
        Ok(if is_known {
            counted
        } else if self.has_many(formulas, typed, json_type, limits)? {
            Cardinality { at_least: cap, exact: false }
        } else if counted.at_least > empty {
            counted
        } else {
            plain
        })
    }

    /// Whether some first member or item of a container has many values.
    fn has_many(
        &mut self,
        formulas: &mut Formulas,
        typed: FormulaId,
        json_type: JsonType,
        limits: (u64, u32),
    ) -> Result<bool> {
        if json_type == JsonType::Array {
            let pending = formulas.derive_item(typed);
            return self.has_many_after(formulas, pending, None, limits);
        }
        let mut names = self.candidates(formulas, typed, &[]).names;
        // Keys without a name of their own come last, and may be anything.
        names.reverse();
        names.truncate(MAX_NAMES);
        for name in names {
            let pending = formulas.derive_name(typed, name);
            if self.has_many_after(formulas, pending, Some(name), limits)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn has_many_after(
        &mut self,
        formulas: &mut Formulas,
        pending: FormulaId,
        name: Option<NameId>,
        (cap, depth): (u64, u32),
    ) -> Result<bool> {
        let pending = formulas.factor(pending);
        for term in formulas.some_terms(pending).0 {
            let goal = formulas.and(term.goals);
            if self.count_value(formulas, goal, cap, depth)?.at_least < cap {
                continue;
            }
            let rest = match name {
                Some(name) => {
                    self.find_object(formulas, term.rest, &[name])?
                }
                None => self.find_array(formulas, term.rest)?,
            };
            if rest == Verdict::Yes {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn count_arrays(
        &mut self,
        formulas: &mut Formulas,
        site: &ArraySite,
        cap: u64,
        depth: u32,
    ) -> Result<Cardinality> {
        let n_prefix = site.prefix.len() as u64;
        let mut total = Product::new(cap);
        let n_fixed = site.min.min(n_prefix + 1);
        for index in 0..n_fixed {
            let goal = site.goal(index);
            total.times(self.count_value(formulas, goal, cap, depth)?);
        }
        if site.max == Some(site.min) && n_fixed == site.min {
            return Ok(total.cardinality());
        }
        // Any number of items that are alike, behind those that are not.
        let mut goes_on = site.max.is_none() && total.at_least > 0;
        for index in n_fixed..=n_prefix {
            let goal = site.goal(index);
            goes_on = goes_on
                && self.count_value(formulas, goal, 1, depth)?.at_least > 0;
        }
        if goes_on {
            total.at_least = cap;
        }
        total.exact = false;
        Ok(total.cardinality())
    }

    fn count_objects(
        &mut self,
        formulas: &mut Formulas,
        site: &ObjectSite,
        cap: u64,
        depth: u32,
    ) -> Result<Cardinality> {
        let (required, optional): (Vec<&SiteName>, Vec<&SiteName>) =
            site.names.iter().partition(|name| name.required);
        let n_required = required.len() as u64;
        if n_required < site.min {
            return Ok(Cardinality { at_least: 0, exact: false });
        }
        let mut total = Product::new(cap);
        for name in required {
            total.times(self.count_value(formulas, name.goal, cap, depth)?);
        }
        if site.max.is_some_and(|most| most <= n_required) {
            total.exact &= site.max == Some(n_required);
            total.at_least *= u64::from(site.max == Some(n_required));
            return Ok(total.cardinality());
        }
        // One member more than those that are required.
        let mut more = Cardinality { at_least: 1, exact: true };
        for name in optional {
            let count = self.count_value(formulas, name.goal, cap, depth)?;
            more.at_least = more.at_least.saturating_add(count.at_least);
            more.exact &= count.exact && count.at_least == 0;
        }
        more.exact &= is_closed(formulas, site);
        let open = formulas.and(site.open.iter().map(|&(_, goal)| goal));
        if self.count_value(formulas, open, 1, depth)?.at_least > 0 {
            more.at_least = cap;
        }
        total.times(more);
        Ok(total.cardinality())
    }

    fn count_strings(
        &self,
        formulas: &mut Formulas,
        typed: FormulaId,
        cap: u64,
    ) -> Cardinality {
        let nothing = Cardinality { at_least: 0, exact: false };
        let (mut regex, exact) = self.expression(formulas, typed);
        if !exact {
            regex = formulas.string_regex(typed, Bound::Least, self.formats);
        }
        let Ok(language) = Language::new(&regex, Limits::new()) else {
            return nothing;
        };
        match language.count_words(language.start(), cap) {
            WordCount::Exactly(at_least) => Cardinality { at_least, exact },
            WordCount::MoreThanCap => {
                Cardinality { at_least: cap, exact: false }
            }
            WordCount::Unknown => nothing,
        }
    }
}

/// Whether no member may come that a site does not name.
fn is_closed(formulas: &Formulas, site: &ObjectSite) -> bool {
    let is_names =
        |set: &KeySetId| matches!(formulas.key_set(*set), KeySet::Names(_));
    site.open.iter().any(|&(set, goal)| {
        goal.is_false()
            && match formulas.key_set(set) {
                KeySet::Any => true,
                KeySet::NoneOf(sets) => sets.iter().all(is_names),
                _ => false,
            }
    })
}

/// The number of combinations of values that are chosen independently.
struct Product {
    at_least: u64,
    exact: bool,
    cap: u64,
}

impl Product {
    fn new(cap: u64) -> Product {
        Product { at_least: 1, exact: true, cap }
    }

    /// Chooses one value more.
    fn times(&mut self, count: Cardinality) {
        self.exact &= count.exact;
        self.at_least = self.at_least.saturating_mul(count.at_least);
    }

    fn cardinality(&self) -> Cardinality {
        if self.at_least >= self.cap {
            return Cardinality { at_least: self.cap, exact: false };
        }
        Cardinality { at_least: self.at_least, exact: self.exact }
    }
}
