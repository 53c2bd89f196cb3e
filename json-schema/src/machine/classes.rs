//! Which classes of undeclared keys a part of a key may still become.
//!
//! The patterns of a site are followed side by side. Where every class that
//! can be reached is reached by infinitely many keys, neither the declared
//! names nor the keys that were used can exhaust it, so a part of a key is
//! alive if and only if it can become a class that may come: a set of bits,
//! and no automaton of its own for each place of an object.

use maskwright_grammar_core::{
    automaton::AutomatonError,
    regular::{self, Language, Longest, Regex},
    util::FxHashMap,
};
use smallvec::SmallVec;

use super::{
    algebra::language,
    keys::{bit, set_bit},
    names::NameRange,
    strings::{Part, cut, without_surrogates},
};

/// Up to how many tuples of states of the patterns are explored.
const MAX_TUPLES: usize = 256;

/// The classes of keys without a declared name, one bit each.
pub(crate) type Classes = SmallVec<[u64; 1]>;

/// The states of a site's patterns; `None` once a pattern cannot match.
pub(crate) type PatternStates = Box<[Option<regular::StateId>]>;

/// The patterns of a site, explored.
#[derive(Debug)]
pub(crate) struct KeyClasses {
    pub(crate) languages: Box<[Language]>,
    /// What each reachable tuple may become.
    classes: FxHashMap<PatternStates, Classes>,
}

impl KeyClasses {
    /// Explores `patterns`. `None` if there are too many states, or a class
    /// that only finitely many keys have.
    pub(crate) fn explore(
        patterns: &[Regex],
    ) -> Result<Option<KeyClasses>, AutomatonError> {
        let languages: Box<[Language]> =
            patterns.iter().map(language).collect::<Result<_, _>>()?;
        let is_finite = |language: &Language| {
            matches!(language.longest(language.start()), Longest::Finite(_))
        };
        if languages.iter().any(is_finite) {
            return Ok(None);
        }
        let Some(graph) = Graph::explore(&languages) else {
            return Ok(None);
        };
        let Some(classes) = graph.classes() else { return Ok(None) };
        let classes = graph.tuples.into_iter().zip(classes).collect();
        Ok(Some(KeyClasses { languages, classes }))
    }

    /// The states before any text.
    pub(crate) fn start(&self) -> PatternStates {
        starts(&self.languages)
    }

    /// The classes that a key may become after which `states` are left.
    pub(crate) fn of(&self, states: &[Option<regular::StateId>]) -> &[u64] {
        self.classes.get(states).map_or(&[], |classes| &classes[..])
    }

    /// The class of a key that ends in `states`.
    pub(crate) fn class(&self, states: &[Option<regular::StateId>]) -> u32 {
        class_of(&self.languages, states)
    }
}

fn starts(languages: &[Language]) -> PatternStates {
    languages.iter().map(|language| Some(language.start())).collect()
}

fn class_of(
    languages: &[Language],
    states: &[Option<regular::StateId>],
) -> u32 {
    (0..).zip(languages.iter().zip(states)).fold(
        0,
        |class, (index, (language, state))| {
            let holds =
                state.is_some_and(|state| language.is_accepting(state));
            class | u32::from(holds) << index
        },
    )
}

/// All tuples that can be reached.
struct Graph {
    tuples: Vec<PatternStates>,
    /// The class of a key that ends at a tuple.
    ends: Vec<u32>,
    next: Vec<Vec<usize>>,
}

impl Graph {
    fn explore(languages: &[Language]) -> Option<Graph> {
        let mut graph =
            Graph { tuples: Vec::new(), ends: Vec::new(), next: Vec::new() };
        let mut numbers: FxHashMap<PatternStates, usize> =
            FxHashMap::default();
        graph.tuples.push(starts(languages));
        numbers.insert(starts(languages), 0);
        while graph.next.len() < graph.tuples.len() {
            let states = graph.tuples[graph.next.len()].clone();
            graph.ends.push(class_of(languages, &states));
            let mut parts: Vec<Part> = without_surrogates(0, 0x10_FFFF)
                .map(|(lo, hi)| (lo, hi, NameRange::NONE, Vec::new()))
                .collect();
            for (state, language) in states.iter().zip(languages) {
                let edges = match state {
                    Some(state) => language.transitions(*state).ok()?,
                    None => &[],
                };
                parts = cut(&parts, edges, false);
            }
            let mut next = Vec::new();
            for (_, _, _, states) in parts {
                let states: PatternStates = states.into();
                let n_known = graph.tuples.len();
                let number = *numbers.entry(states.clone()).or_insert(n_known);
                if number == n_known {
                    if n_known == MAX_TUPLES {
                        return None;
                    }
                    graph.tuples.push(states);
                }
                next.push(number);
            }
            next.sort_unstable();
            next.dedup();
            graph.next.push(next);
        }
        Some(graph)
    }

    /// What can be reached from each tuple; `None` if any of it can be
    /// reached by finitely many keys only.
    fn classes(&self) -> Option<Vec<Classes>> {
        let reachable = self.closure();
        let all: Vec<Classes> = (0..self.tuples.len())
            .map(|from| {
                let mut classes = Classes::new();
                set_bit(&mut classes, self.ends[from]);
                for to in members(&reachable[from]) {
                    set_bit(&mut classes, self.ends[to]);
                }
                classes
            })
            .collect();
        // A key can be made longer without end where it comes past a cycle.
        let endless = |from: usize| {
            let mut classes = Classes::new();
            let near = std::iter::once(from);
            for to in near.chain(members(&reachable[from])) {
                if !has(&reachable[to], to) {
                    continue;
                }
                let words = all[to].iter().enumerate();
                for (index, &word) in words {
                    if classes.len() <= index {
                        classes.resize(index + 1, 0);
                    }
                    classes[index] |= word;
                }
            }
            classes
        };
        let is_endless = |from: usize| {
            let endless = endless(from);
            (0..).zip(&all[from]).all(|(index, &word)| {
                word & !endless.get(index).copied().unwrap_or(0) == 0
            })
        };
        (0..self.tuples.len()).all(is_endless).then_some(all)
    }

    /// For each tuple, those that are reached by at least one code point.
    fn closure(&self) -> Vec<Vec<u64>> {
        let n = self.tuples.len();
        let mut rows = vec![vec![0_u64; n.div_ceil(64)]; n];
        for (row, next) in rows.iter_mut().zip(&self.next) {
            for &to in next {
                row[to / 64] |= 1 << (to % 64);
            }
        }
        for middle in 0..n {
            let through = rows[middle].clone();
            for row in &mut rows {
                if has(row, middle) {
                    for (word, more) in row.iter_mut().zip(&through) {
                        *word |= more;
                    }
                }
            }
        }
        rows
    }
}

fn has(row: &[u64], index: usize) -> bool {
    u32::try_from(index).is_ok_and(|index| bit(row, index))
}

fn members(row: &[u64]) -> impl Iterator<Item = usize> + '_ {
    (0..row.len() * 64).filter(|&index| has(row, index))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explore(patterns: &[&str]) -> Option<KeyClasses> {
        let patterns: Vec<Regex> = patterns
            .iter()
            .map(|pattern| Regex::ecma(pattern).expect("a valid pattern"))
            .collect();
        KeyClasses::explore(&patterns).expect("within the limits")
    }

    fn after(classes: &KeyClasses, text: &str) -> Vec<u32> {
        let mut states = classes.start();
        for letter in text.chars() {
            for (state, language) in states.iter_mut().zip(&classes.languages)
            {
                *state = state.and_then(|state| {
                    language.step(state, letter).expect("within the limits")
                });
            }
        }
        (0..8).filter(|&class| bit(classes.of(&states), class)).collect()
    }

    #[test]
    fn what_is_left_is_told_letter_by_letter() {
        let classes = explore(&["^x-", "^x-y|z$"]).expect("endless classes");
        assert_eq!(after(&classes, ""), [0, 1, 2, 3]);
        assert_eq!(after(&classes, "x"), [0, 1, 2, 3]);
        assert_eq!(after(&classes, "x-"), [1, 3]);
        assert_eq!(after(&classes, "x-y"), [3]);
        assert_eq!(after(&classes, "a"), [0, 2]);
    }

    #[test]
    fn a_class_of_few_keys_is_not_endless() {
        assert!(explore(&["^[a-z]{1,3}$"]).is_none());
        assert!(explore(&["^a|^b$", "^a"]).is_none());
        assert!(explore(&["^(?:a|b+c)$"]).is_none());
        assert!(explore(&["^ab*$"]).is_some());
    }
}
