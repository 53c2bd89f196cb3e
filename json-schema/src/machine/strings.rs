//! Strings that are asked something: patterns, constants, lengths.
//!
//! A string is read once for everything that it is asked: its state is the
//! tuple of the states of all languages, that of the need first. How long the
//! string may get is no part of that language but counted beside it: the
//! states of a pattern and of a length would be as many as their product.

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
    prelude::{UNBOUNDED, Window},
    text::{Edge, Speller, Spelling},
};

/// The languages of one string: what it must be in, then one a goal, then
/// one of `leasts` each.
#[derive(Debug)]
pub(crate) struct StringSpec {
    pub(crate) languages: Box<[Language]>,
    /// The bounds of the string, which its need's language says nothing of.
    pub(crate) window: Window,
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
    /// What is left of the bounds of a string, as far as they still matter.
    pub(crate) left: Window,
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
            && self.left == Window::FREE
            && self.goals().iter().all(Option::is_none)
    }
}

/// Strings with fewer characters left than this are followed as they are.
const MIN_ALIKE: u32 = 16;

/// A tuple whose need is met whatever follows, and whose goals are dead.
pub(crate) const FREE: u32 = u32::MAX;

impl Machine {
    /// The state after the opening quote of a string of `spec`.
    pub(crate) fn string_start(
        &self,
        spec: u32,
    ) -> Result<StateId, AutomatonError> {
        let StringSpec { languages, window, .. } = self.string_spec(spec)?;
        let start = |language: &Language| Some(language.start());
        let states: Box<[_]> = languages.iter().map(start).collect();
        let left = match (&**languages, &*states) {
            ([language, ..], [Some(need), ..]) => {
                within(language, *need, *window)
            }
            _ => None,
        };
        // That the string can be completed was asked before.
        let left = left.unwrap_or(*window);
        let (of, names) = (TupleOf::String(spec), NameRange::NONE);
        let tuple =
            self.tuple(Tuple { of, names, left, states }, languages)?;
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
        if let Some(free) = spelling.if_free(|tuple| tuple == FREE) {
            return self.prelude.string_at(free, Window::FREE);
        }
        self.table.intern(StateKey::String { spec, spelling })
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
                let tuple = self.parts.tuples.get(tuple);
                let accepting = accepting(&tuple.states, languages);
                match tuple.left.least {
                    0 => self.string_outcome(spec, &accepting)?,
                    _ => None,
                }
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
        let Spelling::Between(tuple) = spelling else { return Ok(()) };
        if self.is_checked(TupleOf::String(spec))? {
            return Ok(());
        }
        let left = self.parts.tuples.get(tuple).left;
        if left.most != UNBOUNDED {
            self.hint_at_unbounded(spec, tuple, languages, row)?;
        } else if let Some(least) = self.never_dies(tuple, languages) {
            let least = least.max(left.least);
            let base = self.prelude.string(Window::FREE)?;
            row.hint(Hint::Ends { base, least });
        }
        Ok(())
    }

    /// Notes how a string that may not get longer than some length is like
    /// one without bounds.
    fn hint_at_unbounded(
        &self,
        spec: u32,
        tuple: u32,
        languages: &[Language],
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let tuple = self.parts.tuples.get(tuple);
        let Window { least, most } = tuple.left;
        let unbounded = Tuple { left: Window::FREE, ..tuple.clone() };
        if unbounded.is_free(languages) {
            if !tuple.left.is_far() {
                let base = self.prelude.string(Window::FREE)?;
                row.hint(Hint::Window { base, least, most });
            }
            return Ok(());
        }
        // Whatever is read of so many characters can still be completed.
        let slack = languages.first().and_then(Language::slack);
        let slack = slack.and_then(|slack| u32::try_from(slack).ok());
        let bytes = slack.map_or(0, |slack| most.saturating_sub(slack));
        if least == 0 && bytes >= MIN_ALIKE {
            let base = self.tuple(unbounded, languages)?;
            let base = self.string_state(spec, Spelling::Between(base))?;
            row.hint(Hint::Alike { base, bytes });
        }
        Ok(())
    }

    /// The least number of code points that a string or key still needs, if
    /// any text whatever can be completed after `tuple`.
    pub(crate) fn never_dies(
        &self,
        tuple: u32,
        languages: &[Language],
    ) -> Option<u32> {
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
            let mut left = tuple.left;
            if left != Window::FREE
                && let ([language, ..], [Some(need), ..]) =
                    (languages, &states[..])
            {
                let next = (left.most > 0).then(|| left.after_one());
                match next.and_then(|next| within(language, *need, next)) {
                    Some(next) => left = next,
                    None => continue,
                }
            }
            let (of, states) = (tuple.of, states.into());
            let to = Tuple { of, names, left, states };
            let to = self.tuple(to, languages)?;
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

/// What of a window still matters in a state, if its text can be completed
/// within it.
fn within(
    language: &Language,
    state: regular::StateId,
    window: Window,
) -> Option<Window> {
    let (least, most) = window.lengths();
    if language.accepts_length(state, least, most) == Answer::No {
        return None;
    }
    let (min, max) = language.length_bounds(state);
    let is_within = max.is_some_and(|max| max <= most);
    let least = if least <= min { 0 } else { window.least };
    let most = if is_within { UNBOUNDED } else { window.most };
    Some(Window { least, most })
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
