//! Deterministic automata over characters, and the expressions of them.

use maskwright_grammar_core::{
    regular::{CharSet, Language},
    util::FxHashMap,
};

use super::{
    ConvertError, Trouble,
    expr::Expr,
    graph::{END, Graph, START},
    rules::Rules,
};
use crate::number::{PlainNumbers, PlainState};

/// The most states of one automaton.
pub(super) const MAX_STATES: usize = 3_000;
/// How often states are told apart anew before they are left as they are.
const MAX_ROUNDS: usize = 100;

/// A state: whether a text may end in it, and where it leads.
#[derive(Clone, Debug, Default)]
struct State {
    accepting: bool,
    ways: Vec<(CharSet, usize)>,
}

/// An automaton that starts in state 0.
#[derive(Debug)]
pub(super) struct Dfa {
    states: Vec<State>,
}

impl Dfa {
    /// The automaton of a language.
    pub(super) fn of_language(language: &Language) -> Result<Dfa, Trouble> {
        explore(language.start(), |&state| {
            let row =
                language.transitions(state).map_err(|_| Trouble::TooMany)?;
            let ways = row.iter().map(|way| (way.first, way.last, way.next));
            Ok((language.is_accepting(state), ways.collect()))
        })
    }

    /// The automaton of the plain spellings of numbers.
    pub(super) fn of_numbers(numbers: &PlainNumbers) -> Result<Dfa, Trouble> {
        let bytes = b"-.0123456789";
        explore(numbers.start(), |state: &PlainState| {
            let steps = bytes.iter().filter_map(|&byte| {
                let next = numbers.step(state, byte)?;
                Some((u32::from(byte), u32::from(byte), next))
            });
            Ok((numbers.may_end(state), steps.collect()))
        })
    }

    /// The expression of this automaton's texts, where `spell` says how the
    /// characters of a set are written.
    pub(super) fn expr(
        self,
        hint: &str,
        rules: &mut Rules,
        spell: &mut dyn FnMut(
            &CharSet,
            &mut Rules,
        ) -> Result<Expr, ConvertError>,
    ) -> Result<Expr, ConvertError> {
        let dfa = self.merged();
        let mut graph = Graph::new();
        let first = dfa.states.len();
        let places: Vec<usize> = (0..first).map(|_| graph.add()).collect();
        graph.link(START, places[0], Expr::empty());
        for (state, &place) in dfa.states.iter().zip(&places) {
            for (set, next) in &state.ways {
                graph.link(place, places[*next], spell(set, rules)?);
            }
            if state.accepting {
                graph.link(place, END, Expr::empty());
            }
        }
        graph.expr(hint, rules)
    }

    /// The automaton with equal states joined, as far as that shows soon.
    fn merged(self) -> Dfa {
        let mut classes: Vec<usize> =
            self.states.iter().map(|it| usize::from(it.accepting)).collect();
        let mut n_classes = 0;
        for _ in 0..MAX_ROUNDS {
            let mut numbers = FxHashMap::default();
            let next: Vec<usize> = (0..self.states.len())
                .map(|index| {
                    let key =
                        (classes[index], self.signature(index, &classes));
                    let fresh = numbers.len();
                    *numbers.entry(key).or_insert(fresh)
                })
                .collect();
            classes = next;
            if numbers.len() == n_classes {
                return self.quotient(&classes, n_classes);
            }
            n_classes = numbers.len();
        }
        self
    }

    /// What a state does, by classes of states.
    fn signature(
        &self,
        index: usize,
        classes: &[usize],
    ) -> Vec<(usize, CharSet)> {
        let mut ways: Vec<(usize, CharSet)> = Vec::new();
        for (set, next) in &self.states[index].ways {
            let class = classes[*next];
            match ways.iter_mut().find(|way| way.0 == class) {
                Some((_, sets)) => *sets = sets.union(set),
                None => ways.push((class, set.clone())),
            }
        }
        ways.sort_unstable();
        ways
    }

    /// One state a class. The class of the first state is the first.
    fn quotient(&self, classes: &[usize], n_classes: usize) -> Dfa {
        let mut states = vec![State::default(); n_classes];
        for (index, &class) in classes.iter().enumerate() {
            let ways = self.signature(index, classes);
            states[class] = State {
                accepting: self.states[index].accepting,
                ways: ways.into_iter().map(|(to, set)| (set, to)).collect(),
            };
        }
        // By character, which is how people read.
        for state in &mut states {
            state.ways.sort_unstable();
        }
        Dfa { states }
    }
}

/// What one state does: whether a text may end, and ranges with their states.
type Row<S> = (bool, Vec<(u32, u32, S)>);

/// Visits every state that a first one leads to.
fn explore<S: Clone + Eq + std::hash::Hash>(
    start: S,
    row: impl Fn(&S) -> Result<Row<S>, Trouble>,
) -> Result<Dfa, Trouble> {
    let mut numbers: FxHashMap<S, usize> = FxHashMap::default();
    let mut known = vec![start.clone()];
    numbers.insert(start, 0);
    let mut states = Vec::new();
    while let Some(state) = known.get(states.len()).cloned() {
        let (accepting, ranges) = row(&state)?;
        let mut sets: Vec<(usize, Vec<(u32, u32)>)> = Vec::new();
        for (lo, hi, next) in ranges {
            let number = if let Some(&number) = numbers.get(&next) {
                number
            } else {
                let number = known.len();
                numbers.insert(next.clone(), number);
                known.push(next);
                number
            };
            match sets.iter_mut().find(|set| set.0 == number) {
                Some((_, ranges)) => ranges.push((lo, hi)),
                None => sets.push((number, vec![(lo, hi)])),
            }
        }
        if known.len() > MAX_STATES {
            return Err(Trouble::TooMany);
        }
        let ways =
            sets.into_iter().map(|(to, ranges)| (CharSet::new(ranges), to));
        states.push(State { accepting, ways: ways.collect() });
    }
    Ok(Dfa { states })
}
