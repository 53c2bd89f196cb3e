//! Strings and keys that are checked when they end.
//!
//! A format that is not regular lies between two languages
//! ([`crate::format::Bound`]). The automaton of a string follows both: what
//! is in the lesser has the format, what is not in the greater has not. Of a
//! string between them the outcome is *open*: its frame has recorded the
//! text, which decides in [`Machine::decide`] among the outcomes that it may
//! stand for, or that there is none.

use maskwright_grammar_core::{
    automaton::{Automaton, AutomatonError, Frame, Outcome, Resumed, StateId},
    regular::Regex,
};
use smallvec::SmallVec;

use super::{
    Machine, StateKey,
    algebra::Typed,
    classes::Holding,
    guard,
    keys::{bit, other_outcome},
};

/// The bit that marks an outcome which is open; the rest is its number. No
/// other outcome is that large.
const OPEN_BIT: u32 = 1 << 30;

/// How many conditions may be open about one string.
const MAX_OPEN: u32 = 6;

/// What is known of a string or a key that has ended, and what is not.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct OpenOutcome {
    of: OpenOf,
    /// The conditions that hold for certain, bit by bit.
    sure: u64,
    /// The conditions of which it is not known.
    open: u64,
    /// Whether the need is one of those.
    needs: bool,
}

/// Whose conditions they are.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum OpenOf {
    /// A string's: the goals of its spec.
    String(u32),
    /// A key's: the tests of its site, and what may come.
    Key { site: u32, viable: u32 },
}

/// The conditions that are not regular: the index of each among all, and the
/// strings that meet it for certain.
#[derive(Debug)]
pub(crate) struct Leasts<T> {
    pub(crate) list: Box<[(usize, T)]>,
}

impl<T> Leasts<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Sorts conditions into those that hold and those that are open, bit by
    /// bit, by which languages accept: one for each of them, and then what is
    /// certain. There is room for a need and its goals.
    fn sort_out(&self, accepting: &[bool]) -> (u128, u128) {
        let n_all = accepting.len() - self.list.len();
        let (all, certain) = accepting.split_at(n_all);
        let mut sure = 0;
        for (index, &holds) in all.iter().enumerate() {
            sure |= u128::from(holds) << index;
        }
        let mut open = 0;
        for (&(index, _), &certain) in self.list.iter().zip(certain) {
            if all[index] && !certain {
                open |= 1 << index;
            }
        }
        (sure & !open, open)
    }
}

impl Machine {
    /// The outcome of a string after which the automata of `spec` accept as
    /// in `accepting`: need, goals, and then what is certain.
    pub(crate) fn string_outcome(
        &self,
        spec: u32,
        accepting: &[bool],
    ) -> Result<Option<Outcome>, AutomatonError> {
        let leasts = &self.string_spec(spec)?.leasts;
        if !accepting[0] {
            return Ok(None);
        }
        let (sure, open) = leasts.sort_out(accepting);
        let needs = open & 1 != 0;
        let (sure, open) = (goals(sure), goals(open));
        if open == 0 && !needs {
            return Ok(Some(Outcome(self.parts.outcomes.intern(sure)?)));
        }
        let of = OpenOf::String(spec);
        self.open(OpenOutcome { of, sure, open, needs }).map(Some)
    }

    /// The outcome of a key without a declared name, if such a key may come;
    /// `accepting` is about the tests of `site`, and then what is certain.
    pub(crate) fn key_outcome(
        &self,
        site: u32,
        viable: u32,
        accepting: &[bool],
    ) -> Result<Option<Outcome>, AutomatonError> {
        let leasts = &self.object_site(site)?.leasts;
        let (sure, open) = leasts.sort_out(accepting);
        // Few tests of a site that has such conditions are let through.
        let narrow = |bits| u64::try_from(bits).unwrap_or(u64::MAX);
        let (sure, open) = (narrow(sure), narrow(open));
        if open == 0 {
            return self.class_outcome(site, viable, sure);
        }
        let of = OpenOf::Key { site, viable };
        let outcome = OpenOutcome { of, sure, open, needs: false };
        let possible = self.possible(outcome)?;
        if possible.is_empty() {
            return Ok(None);
        }
        self.open(outcome).map(Some)
    }

    fn open(&self, outcome: OpenOutcome) -> Result<Outcome, AutomatonError> {
        let n_open = outcome.open.count_ones();
        if n_open > MAX_OPEN {
            return Err(AutomatonError::Limit {
                name: "max_open_formats",
                what: "the number of formats that are checked at the end of \
                       one string",
                limit: MAX_OPEN as usize,
            });
        }
        let id = self.parts.open.intern(outcome)?;
        Ok(Outcome(Outcome::GUARDED_BIT | OPEN_BIT | id))
    }

    /// What is open about an outcome, if anything.
    fn open_outcome(&self, outcome: Outcome) -> Option<OpenOutcome> {
        let mask = Outcome::GUARDED_BIT | OPEN_BIT;
        let is_open = outcome.0 & mask == mask;
        is_open.then(|| *self.parts.open.get(outcome.0 & !mask))
    }

    /// The outcomes that an open one may stand for.
    fn possible(
        &self,
        outcome: OpenOutcome,
    ) -> Result<SmallVec<[Outcome; 2]>, AutomatonError> {
        let OpenOutcome { sure, open, .. } = outcome;
        let mut all = SmallVec::new();
        let mut part = open;
        loop {
            all.extend(self.closed(outcome, sure | part)?);
            if part == 0 {
                return Ok(all);
            }
            part = (part - 1) & open;
        }
    }

    /// The outcome once it is known which conditions hold.
    fn closed(
        &self,
        outcome: OpenOutcome,
        holding: u64,
    ) -> Result<Option<Outcome>, AutomatonError> {
        Ok(match outcome.of {
            OpenOf::String(_) => {
                Some(Outcome(self.parts.outcomes.intern(holding)?))
            }
            OpenOf::Key { site, viable } => {
                self.class_outcome(site, viable, holding)?
            }
        })
    }

    /// The outcome of a key for which just the tests of `holding` hold, if it
    /// may come.
    fn class_outcome(
        &self,
        site: u32,
        viable: u32,
        holding: u64,
    ) -> Result<Option<Outcome>, AutomatonError> {
        let words = [holding];
        let words = if holding == 0 { &[][..] } else { &words };
        let table = &self.object_site(site)?.table;
        let others = &self.parts.viables.get(viable).others;
        let class = table.class(&Holding::from_slice(words));
        let class = class.filter(|&class| bit(others, class));
        Ok(class.map(other_outcome))
    }

    /// Where a waiting state goes on after an outcome, if that is open: in
    /// any of the states in which it may.
    pub(crate) fn resume_open(
        &self,
        waiting: StateId,
        outcome: Outcome,
    ) -> Result<Option<Resumed>, AutomatonError> {
        let Some(open) = self.open_outcome(outcome) else { return Ok(None) };
        let mut all = Resumed::new();
        for possible in self.possible(open)? {
            for state in self.resume(waiting, possible)? {
                if !all.contains(&state) {
                    all.push(state);
                }
            }
        }
        Ok(Some(all))
    }

    /// The outcome with which `callee` has ended, where `outcome` leaves
    /// something open; `None` if it must not end so.
    pub(crate) fn decide(
        &self,
        callee: &Frame,
        outcome: Outcome,
    ) -> Result<Option<Outcome>, AutomatonError> {
        let Some(open) = self.open_outcome(outcome) else {
            return Ok(Some(outcome));
        };
        let partial = callee.memory.as_ref().map(|memory| &memory.partial[..]);
        let (word, _) = guard::decode(partial.unwrap_or_default());
        let Ok(text) = std::str::from_utf8(&word) else { return Ok(None) };
        let holds = |formula| self.algebra.lock().string_holds(formula, text);
        let formulas: Vec<Option<Typed>> = match open.of {
            OpenOf::String(spec) => {
                let [need, goals @ ..] = &**self.parts.strings.get(spec)
                else {
                    return Ok(None);
                };
                if open.needs && !holds(*need) {
                    return Ok(None);
                }
                goals.iter().copied().map(Some).collect()
            }
            OpenOf::Key { site, .. } => {
                let tests = self.object_site(site)?.tests.iter();
                tests.map(|test| test.formula()).collect()
            }
        };
        let mut holding = open.sure;
        for (index, formula) in formulas.into_iter().enumerate() {
            if open.open >> index & 1 != 0 && formula.is_some_and(holds) {
                holding |= 1 << index;
            }
        }
        self.closed(open, holding)
    }

    /// Whether a string that has begun can be completed to one that satisfies
    /// its need for certain.
    pub(super) fn is_sure(
        &self,
        state: &StateKey,
    ) -> Result<bool, AutomatonError> {
        let StateKey::String { spec, spelling } = *state else {
            return Ok(true);
        };
        let leasts = &self.string_spec(spec)?.leasts;
        let Some(&(0, ())) = leasts.list.first() else { return Ok(true) };
        let Some(tuple) = spelling.from() else { return Ok(true) };
        let states = &self.parts.tuples.get(tuple).states;
        let first = states.len() - leasts.list.len();
        Ok(states[first].is_some())
    }
}

/// The bits of the goals, which come after the need.
fn goals(all: u128) -> u64 {
    u64::try_from(all >> 1).unwrap_or(u64::MAX)
}

impl Leasts<Regex> {
    /// The expressions, in order.
    pub(crate) fn regexes(&self) -> impl Iterator<Item = &Regex> {
        self.list.iter().map(|(_, regex)| regex)
    }

    /// The strings that meet the condition `index` for certain; `most` are
    /// those that may.
    pub(crate) fn least<'a>(
        &'a self,
        index: usize,
        most: &'a Regex,
    ) -> &'a Regex {
        let found = self.list.iter().find(|(of, _)| *of == index);
        found.map_or(most, |(_, least)| least)
    }
}
