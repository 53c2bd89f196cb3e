//! Can an object be finished?
//!
//! The order of members does not matter to a formula, so the search picks one
//! condition that the object does not meet yet and tries the ways to come
//! closer to it: no other order has to be tried.

use super::{Question, Result, Verdict, Viability};
use crate::formula::{Form, FormulaId, Formulas, KeySet, Mentions};
use crate::parse::NameId;

/// A conjunction of conditions on single members and on their number.
#[derive(Default)]
struct Flat {
    /// What the named members must satisfy, sorted by name.
    goals: Vec<(NameId, FormulaId)>,
    /// Sorted, without repetition.
    required: Vec<NameId>,
    open: Vec<(crate::formula::KeySetId, FormulaId)>,
    min: u64,
    max: Option<u64>,
}

impl Viability {
    /// Whether an object can be finished.
    pub(super) fn find_object(
        &mut self,
        formulas: &mut Formulas,
        id: FormulaId,
        used: &[NameId],
    ) -> Result<Verdict> {
        if id.is_false() {
            return Ok(Verdict::No);
        }
        if formulas.holds_at_end(id, false) {
            return Ok(Verdict::Yes);
        }
        let used = if formulas.needs_any_member(id) { used } else { &[] };
        let key = (id, crate::parse::JsonType::Object);
        if used.is_empty()
            && let Some(&known) = self.typed.get(&key)
        {
            return Ok(known);
        }
        let question = Question::Container(id);
        let (verdict, final_) =
            self.guarded(formulas, question, |this, formulas| {
                match flat(formulas, id) {
                    Some(flat) => this.flat(formulas, id, &flat, used),
                    None => this.search_object(formulas, id, used),
                }
            })?;
        if final_ && used.is_empty() {
            self.typed.insert(key, verdict);
        }
        Ok(verdict)
    }

    /// Decides a flat conjunction: each required member for itself, then the
    /// number of members.
    fn flat(
        &mut self,
        formulas: &mut Formulas,
        id: FormulaId,
        flat: &Flat,
        used: &[NameId],
    ) -> Result<Verdict> {
        let n_required = flat.required.len() as u64;
        if flat.max.is_some_and(|max| n_required.max(flat.min) > max) {
            return Ok(Verdict::No);
        }
        let mut verdict = Verdict::Yes;
        for &name in &flat.required {
            if used.contains(&name) {
                return Ok(Verdict::No);
            }
            let goal = flat_goal(formulas, flat, name);
            verdict = verdict.and(self.find_value(formulas, goal)?);
            if verdict == Verdict::No {
                return Ok(verdict);
            }
        }
        let needed = flat.min.saturating_sub(n_required);
        Ok(verdict.and(self.optional(formulas, id, flat, used, needed)?))
    }

    /// Whether there are `needed` members that are not required.
    fn optional(
        &mut self,
        formulas: &mut Formulas,
        id: FormulaId,
        flat: &Flat,
        used: &[NameId],
        needed: u64,
    ) -> Result<Verdict> {
        if needed == 0 {
            return Ok(Verdict::Yes);
        }
        let mut mentions = Mentions::default();
        formulas.mentions(id, &mut mentions);
        mentions.names.sort_unstable();
        mentions.names.dedup();
        let mut taken: Vec<NameId> = mentions.names.clone();
        taken.extend_from_slice(used);
        let (mut sure, mut maybe) = (0, 0);
        for name in mentions.names {
            if used.contains(&name)
                || flat.required.binary_search(&name).is_ok()
            {
                continue;
            }
            let goal = flat_goal(formulas, flat, name);
            match self.find_value(formulas, goal)? {
                Verdict::Yes => sure += 1,
                Verdict::Unknown => maybe += 1,
                Verdict::No => {}
            }
            if sure >= needed {
                return Ok(Verdict::Yes);
            }
        }
        let open =
            self.open_members(formulas, id, flat, &mut taken, needed - sure)?;
        Ok(match open {
            Verdict::No if sure + maybe >= needed => Verdict::Unknown,
            Verdict::No if maybe > 0 => Verdict::Unknown,
            verdict => verdict,
        })
    }

    /// Whether there are `needed` members with keys that are not mentioned.
    fn open_members(
        &mut self,
        formulas: &mut Formulas,
        id: FormulaId,
        flat: &Flat,
        taken: &mut Vec<NameId>,
        needed: u64,
    ) -> Result<Verdict> {
        let mut found = 0;
        let mut complete = true;
        while found < needed {
            if !self.step(formulas) {
                return Ok(Verdict::Unknown);
            }
            let candidates = self.candidates(formulas, id, taken);
            complete &= candidates.complete;
            let before = found;
            for name in candidates.names {
                let goal = flat_goal(formulas, flat, name);
                match self.find_value(formulas, goal)? {
                    // Where nothing tells keys apart there is no end of them.
                    Verdict::Yes if is_plain(formulas, flat) => {
                        return Ok(Verdict::Yes);
                    }
                    Verdict::Yes => found += 1,
                    Verdict::Unknown => complete = false,
                    Verdict::No => {}
                }
                taken.push(name);
            }
            if found == before {
                return Ok(if complete {
                    Verdict::No
                } else {
                    Verdict::Unknown
                });
            }
        }
        Ok(Verdict::Yes)
    }

    /// Decides any formula by picking one condition that is not met yet.
    fn search_object(
        &mut self,
        formulas: &mut Formulas,
        id: FormulaId,
        used: &[NameId],
    ) -> Result<Verdict> {
        if let Form::Or(parts) = formulas.form(id) {
            let parts = parts.to_vec();
            return self.any_object(formulas, parts, used);
        }
        let unmet = formulas.unmet(id).into_iter();
        let unmet = unmet.min_by_key(|&part| urgency(formulas, part));
        let Some(unmet) = unmet else {
            return Ok(Verdict::Yes);
        };
        match formulas.form(unmet) {
            Form::Or(_) => {
                let parts = formulas.conjuncts(id);
                let options = formulas.distributed(&parts, unmet);
                self.any_object(formulas, options, used)
            }
            Form::Ex(set, _) => {
                let set = *set;
                if let KeySet::Names(names) = formulas.key_set(set) {
                    let names = names.to_vec();
                    return self.any_member(formulas, id, names, used, true);
                }
                let candidates = self.candidates(formulas, id, used);
                let mut names = candidates.names;
                names.retain(|&name| formulas.name_in(set, name));
                let complete = candidates.complete;
                self.any_member(formulas, id, names, used, complete)
            }
            _ => {
                let candidates = self.candidates(formulas, id, used);
                let (names, complete) =
                    (candidates.names, candidates.complete);
                self.any_member(formulas, id, names, used, complete)
            }
        }
    }

    fn any_object(
        &mut self,
        formulas: &mut Formulas,
        options: Vec<FormulaId>,
        used: &[NameId],
    ) -> Result<Verdict> {
        let mut verdict = Verdict::No;
        for option in options {
            verdict = verdict.or(self.find_object(formulas, option, used)?);
            if verdict == Verdict::Yes {
                break;
            }
        }
        Ok(verdict)
    }

    /// Whether the object can go on with a member of one of these names.
    fn any_member(
        &mut self,
        formulas: &mut Formulas,
        id: FormulaId,
        names: Vec<NameId>,
        used: &[NameId],
        complete: bool,
    ) -> Result<Verdict> {
        let none = if complete { Verdict::No } else { Verdict::Unknown };
        let mut verdict = none;
        for name in names {
            if used.contains(&name) {
                continue;
            }
            let mut used = used.to_vec();
            used.push(name);
            let found = self.with_member(formulas, id, name, &used)?;
            verdict = verdict.or(found);
            if verdict == Verdict::Yes {
                break;
            }
        }
        Ok(verdict)
    }

    fn with_member(
        &mut self,
        formulas: &mut Formulas,
        id: FormulaId,
        name: NameId,
        used: &[NameId],
    ) -> Result<Verdict> {
        if self.aborted {
            return Ok(Verdict::Unknown);
        }
        let pending = formulas.derive_name(id, name);
        let pending = formulas.factor(pending);
        let (mut terms, complete) = formulas.some_terms(pending);
        // What is nearest to the end first: a member that meets nothing can
        // be followed by as many as the object may have.
        terms.sort_by_cached_key(|term| formulas.unmet(term.rest).len());
        let mut verdict =
            if complete { Verdict::No } else { Verdict::Unknown };
        for term in terms {
            let goal = formulas.and(term.goals);
            let child = self.find_value(formulas, goal)?;
            if child == Verdict::No {
                continue;
            }
            let rest = self.find_object(formulas, term.rest, used)?;
            verdict = verdict.or(child.and(rest));
            if verdict == Verdict::Yes {
                break;
            }
        }
        Ok(verdict)
    }
}

/// What to look at first among the conditions that are not met.
fn urgency(formulas: &Formulas, id: FormulaId) -> (u8, usize) {
    match formulas.form(id) {
        Form::Ex(set, _) => match formulas.key_set(*set) {
            KeySet::Names(names) => (0, names.len()),
            _ => (2, 0),
        },
        Form::Or(parts) => (1, parts.len()),
        Form::CountGe(_) => (3, 0),
        _ => (4, 0),
    }
}

/// The conjunction as a table, if it is flat.
fn flat(formulas: &Formulas, id: FormulaId) -> Option<Flat> {
    let mut flat = Flat::default();
    for part in formulas.conjuncts(id) {
        match *formulas.form(part) {
            Form::CountGe(count) => flat.min = count,
            Form::CountLe(count) => flat.max = Some(count),
            Form::All(set, goal) => match formulas.key_set(set) {
                KeySet::Names(names) => {
                    flat.goals.extend(names.iter().map(|&name| (name, goal)));
                }
                _ => flat.open.push((set, goal)),
            },
            Form::Ex(set, goal) => match formulas.key_set(set) {
                KeySet::Names(names) if names.len() == 1 => {
                    flat.goals.push((names[0], goal));
                    flat.required.push(names[0]);
                }
                _ => return None,
            },
            _ => return None,
        }
    }
    flat.goals.sort_unstable();
    flat.required.sort_unstable();
    flat.required.dedup();
    Some(flat)
}

fn flat_goal(formulas: &mut Formulas, flat: &Flat, name: NameId) -> FormulaId {
    let from = flat.goals.partition_point(|&(other, _)| other < name);
    let mut goals: Vec<FormulaId> = flat.goals[from..]
        .iter()
        .take_while(|&&(other, _)| other == name)
        .map(|&(_, goal)| goal)
        .collect();
    for &(set, goal) in &flat.open {
        if formulas.name_in(set, name) {
            goals.push(goal);
        }
    }
    formulas.and(goals)
}

/// Whether keys that are not mentioned are all alike.
fn is_plain(formulas: &Formulas, flat: &Flat) -> bool {
    flat.open.iter().all(|&(set, _)| match formulas.key_set(set) {
        KeySet::Any => true,
        KeySet::NoneOf(sets) => sets
            .iter()
            .all(|&set| matches!(formulas.key_set(set), KeySet::Names(_))),
        _ => false,
    })
}
