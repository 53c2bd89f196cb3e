//! Few ways to end a container, for whoever looks for a short one.
//!
//! Members that have to come may come in any order, which is a way for each
//! order. A search for an end need not look at more than one: where a member
//! must come, it comes next, and where a container may end, it does. But not
//! where the caller waits for verdicts: for it, one end may be better than
//! another.

use maskwright_grammar_core::automaton::{
    AutomatonError, Outcome, RowBuilder, StateId, Step,
};

use super::{
    Machine, Place, StateKey,
    algebra::{Algebra, Typed},
    keys::{Viable, set_bit},
    objects::{Object, ObjectSite, SiteKind},
};
use crate::{
    number::{NumberFormula, NumberSpec, NumberState},
    parse::{JsonType, NameId},
};

/// A place in a container from where some of its ways lead on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Ending {
    /// The container ends, with verdicts by number.
    Close { byte: u8, outcome: u32 },
    /// Some of the keys that may come do ([`Viable`] by number), after a
    /// comma if a member comes `before`.
    Member { object: u32, viable: u32, before: bool },
    /// A number has one of some texts (by number), of which those from `lo`
    /// to before `hi` begin with the same `at` bytes, which were read.
    Number { ends: u32, lo: u32, hi: u32, at: u32 },
}

/// How a number may end.
#[derive(Debug)]
pub(crate) struct NumberEnd {
    text: Box<[u8]>,
    verdicts: u64,
}

/// For how many goals every set of answers is tried, and for more each answer
/// by itself.
const MAX_GOALS: usize = 3;

impl Machine {
    /// A state with fewer ways to the end of its frame.
    pub(crate) fn ending_of(
        &self,
        state: StateId,
    ) -> Result<StateId, AutomatonError> {
        let ending = match *self.table.key(state) {
            StateKey::Gap { core, .. } => return self.ending_of(core),
            StateKey::Recorded(recorded) if !recorded.inner.is_shared() => {
                let inner = self.ending_of(recorded.inner)?;
                return self.recorded(recorded.with_inner(inner));
            }
            StateKey::Indented(indented) => {
                return self.ending_indented(indented);
            }
            StateKey::Number { spec, ref state } => {
                self.ending_number(spec, state)?
            }
            StateKey::Object { object, place } => {
                self.ending_object(object, place)?
            }
            StateKey::Array { array, place } if place != Place::Before => {
                let waits = self.parts.arrays.get(array).rest.len() > 1;
                let close = self.array_info(array)?.close;
                let close = close.filter(|_| !waits);
                close.map(|outcome| Ending::Close { byte: b']', outcome })
            }
            _ => None,
        };
        match ending {
            Some(ending) => self.table.intern(StateKey::Ending(ending)),
            None => Ok(state),
        }
    }

    fn ending_object(
        &self,
        object: u32,
        place: Place,
    ) -> Result<Option<Ending>, AutomatonError> {
        let known = self.parts.objects.get(object);
        if known.rest.len() > 1 {
            return Ok(None);
        }
        let info = self.object_info(object)?;
        if place != Place::Before
            && let Some(outcome) = info.close
        {
            return Ok(Some(Ending::Close { byte: b'}', outcome }));
        }
        let Some(viable) = info.viable else { return Ok(None) };
        let viable = self.parts.viables.get(viable);
        let site = self.object_site(known.site)?;
        let next = match &site.kind {
            SiteKind::Flat(_) => site.first_missing(known),
            SiteKind::General(_) => self.next_of_general(site, known)?,
        };
        let Some(next) = next.filter(|&next| viable.has_name(next)) else {
            return Ok(None);
        };
        let mut one = Viable::default();
        set_bit(&mut one.names, next);
        let viable = self.parts.viables.intern(one)?;
        let before = place == Place::After;
        Ok(Some(Ending::Member { object, viable, before }))
    }

    /// A name on a way to the end of an object whose formulas are derived.
    fn next_of_general(
        &self,
        site: &ObjectSite,
        object: &Object,
    ) -> Result<Option<u32>, AutomatonError> {
        let Some(&need) = object.rest.first() else { return Ok(None) };
        let name = self.algebra.next_name(need)?;
        let mut members = (0..).zip(&site.members);
        Ok(name.and_then(|name| {
            let found = members.find(|(_, member)| member.name == name);
            found.map(|(position, _)| position)
        }))
    }

    fn ending_number(
        &self,
        spec: u32,
        state: &NumberState,
    ) -> Result<Option<Ending>, AutomatonError> {
        let ends = self.parts.number_ends.intern((spec, state.clone()))?;
        let n_ends = self.number_ends(ends)?.len();
        let hi = u32::try_from(n_ends).unwrap_or(u32::MAX);
        Ok((hi > 0).then_some(Ending::Number { ends, lo: 0, hi, at: 0 }))
    }

    /// A short end of a number for each answer to its goals; sorted.
    fn number_ends(&self, ends: u32) -> Result<&[NumberEnd], AutomatonError> {
        let ends = self.parts.number_ends.derived(ends, |(spec, state)| {
            let known = self.number_spec(*spec)?;
            let mut texts: Vec<Vec<u8>> = self
                .number_answers(*spec)?
                .iter()
                .filter_map(|answer| answer.completion_of(state))
                .collect();
            texts.sort_unstable();
            texts.dedup();
            let end = |text: Vec<u8>| {
                let mut state = state.clone();
                for &byte in &text {
                    state = known.step(&state, byte)?;
                }
                let verdicts = known.verdicts(&state);
                let text = text.into();
                known.may_end(&state).then_some(NumberEnd { text, verdicts })
            };
            Ok(texts.into_iter().filter_map(end).collect())
        })?;
        Ok(ends)
    }

    /// What a number is asked, with answers to its goals.
    fn number_answers(
        &self,
        spec: u32,
    ) -> Result<&[NumberSpec], AutomatonError> {
        let answers = self.parts.number_answers.intern(spec)?;
        let answers = self.parts.number_answers.derived(answers, |&spec| {
            let formulas = self.parts.numbers.get(spec);
            let formulas = self.algebra.number_formulas(formulas);
            let Some((need, goals)) = formulas.split_first() else {
                return Ok(Box::default());
            };
            let answer = |answers: &[(usize, bool)]| {
                let signed = answers.iter().map(|&(goal, holds)| {
                    let goal = goals[goal].clone();
                    if holds { goal } else { NumberFormula::Not(goal.into()) }
                });
                let all = [need.clone()].into_iter().chain(signed).collect();
                let policy = self.policy.numbers.policy();
                NumberSpec::new(&NumberFormula::And(all), &[], policy)
            };
            let n_goals = goals.len();
            Ok(if n_goals <= MAX_GOALS {
                let sets = 0..1_u32 << n_goals;
                sets.map(|bits| {
                    let holds = |goal| (goal, bits >> goal & 1 != 0);
                    answer(&(0..n_goals).map(holds).collect::<Vec<_>>())
                })
                .collect()
            } else {
                let each = (0..n_goals).flat_map(|goal| {
                    [true, false].map(|holds| answer(&[(goal, holds)]))
                });
                each.collect()
            })
        })?;
        Ok(answers)
    }

    fn build_number_end(
        &self,
        (ends, lo, hi, at): (u32, u32, u32, u32),
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let all = self.number_ends(ends)?;
        let at_byte = |index: u32| all[index as usize].text.get(at as usize);
        let mut from = lo;
        while from < hi {
            let Some(&byte) = at_byte(from) else {
                let verdicts = all[from as usize].verdicts;
                row.finish(Outcome(self.parts.outcomes.intern(verdicts)?));
                from += 1;
                continue;
            };
            let is_same = |&index: &u32| at_byte(index) == Some(&byte);
            let to =
                (from..hi).take_while(is_same).last().map_or(hi, |i| i + 1);
            let next = Ending::Number { ends, lo: from, hi: to, at: at + 1 };
            let next = self.table.intern(StateKey::Ending(next))?;
            row.byte(byte, Step::Stay(next));
            from = to;
        }
        Ok(())
    }

    pub(crate) fn build_ending(
        &self,
        ending: Ending,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        match ending {
            Ending::Close { byte, outcome } => {
                row.byte(byte, Step::Return(Outcome(outcome)));
            }
            Ending::Number { ends, lo, hi, at } => {
                self.build_number_end((ends, lo, hi, at), row)?;
            }
            Ending::Member { object, viable, before: true } => {
                let next = Ending::Member { object, viable, before: false };
                let next = self.separated(b',', StateKey::Ending(next))?;
                row.byte(b',', Step::Stay(next));
            }
            Ending::Member { object, viable, .. } => {
                self.call_key(object, viable, row)?;
            }
        }
        Ok(())
    }
}

impl ObjectSite {
    /// The first required name that has not come, in the order of the schema.
    fn first_missing(&self, object: &Object) -> Option<u32> {
        self.by_rank.iter().copied().find(|&position| {
            let member = &self.members[position as usize];
            member.required && !object.seen.has(member, position)
        })
    }
}

impl Algebra {
    /// A name that an object needs, or that leads on where one of several
    /// things is needed.
    fn next_name(
        &self,
        need: Typed,
    ) -> Result<Option<NameId>, AutomatonError> {
        let mut need = need;
        loop {
            let found = self.lock().needed_name(need);
            let ways = match found {
                Ok(name) => return Ok(name),
                Err(ways) => ways,
            };
            // The first that can be finished will do.
            let mut next = None;
            for way in ways {
                if self.may_hold(way, JsonType::Object)? {
                    next = Some(way);
                    break;
                }
            }
            match next {
                Some(way) if way != need => need = way,
                _ => return Ok(None),
            }
        }
    }
}
