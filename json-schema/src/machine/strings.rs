//! Strings that are asked something: patterns, constants, lengths.
//!
//! A string is read once for everything that it is asked: its state is the
//! tuple of the states of all languages, that of the need first.

use maskwright_grammar_core::{
    automaton::{AutomatonError, Hint, RowBuilder, StateId},
    regular::{self, Answer, Language, Shortest},
};
use smallvec::SmallVec;

use super::{
    Machine, StateKey,
    algebra::limit,
    checked::Leasts,
    keys::with_gaps,
    names::NameRange,
    prelude::Window,
    text::{Edge, Speller, Spelling},
};

/// The languages of one string: what it must be in, then one a goal, then
/// one of `leasts` each.
#[derive(Debug)]
pub(crate) struct StringSpec {
    pub(crate) languages: Box<[Language]>,
    /// Which of them are no languages, but bounds of what is checked when the
    /// string ends.
    pub(crate) leasts: Leasts<()>,
}

/// The states of the languages of one string or key.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Tuple {
    pub(crate) of: TupleOf,
    /// The declared names that begin with what was read of a key.
    pub(crate) names: NameRange,
    /// Dead goals are none; the need never is.
    pub(crate) states: Box<[Option<regular::StateId>]>,
}

/// Whose languages a tuple's are.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum TupleOf {
    /// A string's, by its spec.
    String(u32),
    /// A key's, by its site and what may come ([`super::keys::Viable`]).
    Key { site: u32, viable: u32 },
    /// Those of a key's patterns alone: nothing is needed, all are goals.
    Patterns { site: u32 },
}

impl Tuple {
    /// The states of the goals.
    pub(crate) fn goals(&self) -> &[Option<regular::StateId>] {
        match self.of {
            TupleOf::Patterns { .. } => &self.states,
            TupleOf::String(_) | TupleOf::Key { .. } => &self.states[1..],
        }
    }

    /// Whether nothing is asked any more, and nothing needed.
    fn is_free(&self, languages: &[Language]) -> bool {
        let needs_nothing = match (self.of, &*self.states, languages) {
            (TupleOf::Patterns { .. }, _, _) => true,
            (_, [Some(need), ..], [language, ..]) => {
                language.is_universal(*need)
            }
            _ => false,
        };
        needs_nothing
            && self.names.is_none()
            && self.goals().iter().all(Option::is_none)
    }
}

/// A tuple whose need is met whatever follows, and whose goals are dead.
pub(crate) const FREE: u32 = u32::MAX;

impl Machine {
    /// The state after the opening quote of a string of `spec`.
    pub(crate) fn string_start(
        &self,
        spec: u32,
    ) -> Result<StateId, AutomatonError> {
        let languages = &self.string_spec(spec)?.languages;
        let states =
            languages.iter().map(|language| Some(language.start())).collect();
        let (of, names) = (TupleOf::String(spec), NameRange::NONE);
        let tuple = self.tuple(Tuple { of, names, states }, languages)?;
        self.string_state(spec, Spelling::Between(tuple))
    }

    /// Interns a tuple, unless nothing is asked of it any more.
    pub(crate) fn tuple(
        &self,
        tuple: Tuple,
        languages: &[Language],
    ) -> Result<u32, AutomatonError> {
        if tuple.is_free(languages) && !self.is_checked(tuple.of)? {
            return Ok(FREE);
        }
        self.parts.tuples.intern(tuple)
    }

    /// Whether something is checked when a string or a key has ended.
    fn is_checked(&self, of: TupleOf) -> Result<bool, AutomatonError> {
        Ok(match of {
            TupleOf::String(spec) => {
                !self.string_spec(spec)?.leasts.is_empty()
            }
            TupleOf::Key { site, .. } | TupleOf::Patterns { site } => {
                !self.object_site(site)?.leasts.is_empty()
            }
        })
    }

    fn string_state(
        &self,
        spec: u32,
        spelling: Spelling<u32>,
    ) -> Result<StateId, AutomatonError> {
        match spelling.if_free(|tuple| tuple == FREE) {
            Some(free) => self.prelude.string_at(free, Window::FREE),
            None => self.table.intern(StateKey::String { spec, spelling }),
        }
    }

    pub(crate) fn build_string(
        &self,
        spec: u32,
        spelling: Spelling<u32>,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let languages = &self.string_spec(spec)?.languages;
        let edges = match spelling.from() {
            Some(tuple) => self.tuple_edges(tuple, languages)?,
            None => &[],
        };
        let close = match spelling {
            Spelling::Between(tuple) => {
                let states = &self.parts.tuples.get(tuple).states;
                self.string_outcome(spec, &accepting(states, languages))?
            }
            _ => None,
        };
        Speller {
            edges,
            escapes: self.policy.escapes,
            close,
            intern: &mut |next| self.string_state(spec, next),
        }
        .fill(spelling, row)?;
        if let Spelling::Between(tuple) = spelling
            && !self.is_checked(TupleOf::String(spec))?
            && let Some(least) = self.never_dies(tuple, languages)
        {
            let base = self.prelude.string(Window::FREE)?;
            row.hint(Hint::Ends { base, least });
        }
        Ok(())
    }

    /// The least number of code points that a string still needs, if any
    /// text whatever can be completed after `tuple`.
    fn never_dies(&self, tuple: u32, languages: &[Language]) -> Option<u32> {
        let states = &self.parts.tuples.get(tuple).states;
        let (need, language) = (states.first()?.as_ref()?, languages.first()?);
        if language.never_dies(*need) != Answer::Yes {
            return None;
        }
        Some(match language.shortest(*need) {
            Shortest::Exactly(n) => u32::try_from(n).unwrap_or(u32::MAX),
            Shortest::Never | Shortest::AtLeast(_) => 0,
        })
    }

    /// The edges of a tuple: those of its need, cut where a goal's change.
    pub(crate) fn tuple_edges(
        &self,
        tuple: u32,
        languages: &[Language],
    ) -> Result<&[Edge<u32>], AutomatonError> {
        let edges = self
            .parts
            .tuples
            .derived(tuple, |tuple| self.derive_edges(tuple, languages))?;
        Ok(edges)
    }

    fn derive_edges(
        &self,
        tuple: &Tuple,
        languages: &[Language],
    ) -> Result<Box<[Edge<u32>]>, AutomatonError> {
        let mut names = Vec::new();
        let mut needed = true;
        match tuple.of {
            TupleOf::String(_) => {}
            TupleOf::Key { site, .. } => {
                self.object_site(site)?.names.edges(tuple.names, &mut names);
            }
            TupleOf::Patterns { site } => {
                self.object_site(site)?.names.edges(tuple.names, &mut names);
                needed = false;
            }
        }
        let mut parts: Vec<Part> = Vec::new();
        for edge in with_gaps(&names) {
            let ranges = without_surrogates(edge.lo, edge.hi);
            parts.extend(ranges.map(|(lo, hi)| (lo, hi, edge.to, Vec::new())));
        }
        for (index, (state, language)) in
            tuple.states.iter().zip(languages).enumerate()
        {
            let edges = match state {
                Some(state) => language.transitions(*state).map_err(limit)?,
                None => &[],
            };
            parts = cut(&parts, edges, needed && index == 0);
        }
        let mut edges: Vec<Edge<u32>> = Vec::with_capacity(parts.len());
        for (lo, hi, names, states) in parts {
            let (of, states) = (tuple.of, states.into());
            let to = self.tuple(Tuple { of, names, states }, languages)?;
            match edges.last_mut() {
                Some(last) if last.to == to && last.hi + 1 == lo => {
                    last.hi = hi;
                }
                _ => edges.push(Edge { lo, hi, to }),
            }
        }
        Ok(edges.into())
    }
}

/// Which languages accept in their states; none does once it is dead.
pub(crate) fn accepting(
    states: &[Option<regular::StateId>],
    languages: &[Language],
) -> SmallVec<[bool; 4]> {
    let pairs = states.iter().zip(languages);
    pairs
        .map(|(state, language)| {
            state.is_some_and(|state| language.is_accepting(state))
        })
        .collect()
}

/// An interval of code points, and the names and states after it.
type Part = (u32, u32, NameRange, Vec<Option<regular::StateId>>);

/// The code points `lo..=hi` that are characters.
fn without_surrogates(lo: u32, hi: u32) -> impl Iterator<Item = (u32, u32)> {
    [(lo, hi.min(0xD7FF)), (lo.max(0xE000), hi)]
        .into_iter()
        .filter(|(lo, hi)| lo <= hi)
}

/// Cuts `parts` where the transitions of one more language change. Code
/// points without a transition are left out if `required`.
fn cut(
    parts: &[Part],
    transitions: &[regular::Transition],
    required: bool,
) -> Vec<Part> {
    let mut result = Vec::with_capacity(parts.len() + transitions.len());
    for (lo, hi, names, states) in parts {
        let mut next = *lo;
        let mut push = |lo, hi, state| {
            let mut states = states.clone();
            states.push(state);
            result.push((lo, hi, *names, states));
        };
        let first = transitions.partition_point(|edge| edge.last < *lo);
        for edge in &transitions[first..] {
            if edge.first > *hi {
                break;
            }
            if edge.first > next && !required {
                push(next, edge.first - 1, None);
            }
            let (from, to) = (edge.first.max(*lo), edge.last.min(*hi));
            push(from, to, Some(edge.next));
            next = to + 1;
        }
        if next <= *hi && !required {
            push(next, *hi, None);
        }
    }
    result
}
