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
    strings::accepting,
};

/// Up to how many tuples of states are told apart letter by letter.
const MAX_TUPLES: usize = 256;

/// Up to how many tuples of states are explored for the classes that occur.
const MAX_EXPLORED: usize = 4_096;

/// The first code point that is no character, and the first after those.
const SURROGATES: (u32, u32) = (0xD800, 0xE000);
/// One more than the last code point.
const END: u32 = 0x11_0000;

/// Classes of keys without a declared name, one bit each.
pub(crate) type Classes = SmallVec<[u64; 1]>;

/// Which tests hold for the keys of a class, bit by bit.
pub(crate) type Holding = SmallVec<[u64; 1]>;

/// The states of a site's patterns; `None` once a pattern cannot match.
pub(crate) type PatternStates = Box<[Option<regular::StateId>]>;

/// The classes that keys fall into, by number: those that occur, not every
/// set of tests that one could think of. Number 0 are the keys for which no
/// test holds, which is what the prelude calls its keys.
#[derive(Debug)]
pub(crate) struct ClassTable {
    sets: Vec<Holding>,
    numbers: FxHashMap<Holding, u32>,
}

impl ClassTable {
    /// The one class of keys that no test tells apart.
    pub(crate) fn one() -> ClassTable {
        ClassTable::all(0)
    }

    /// The one class of keys for all of which just these tests hold.
    pub(crate) fn single(holding: &[u64]) -> ClassTable {
        let mut table = ClassTable::empty();
        table.number(Holding::from_slice(holding));
        table
    }

    /// The classes of every set of `n_tests` tests.
    pub(crate) fn all(n_tests: usize) -> ClassTable {
        let mut table = ClassTable::empty();
        for set in 0..1_u64 << n_tests {
            let words = [set];
            let words = if set == 0 { &[][..] } else { &words };
            table.number(Holding::from_slice(words));
        }
        table
    }

    fn empty() -> ClassTable {
        ClassTable { sets: Vec::new(), numbers: FxHashMap::default() }
    }

    /// The number of a class, a new one if need be.
    fn number(&mut self, set: Holding) -> u32 {
        let new = u32::try_from(self.sets.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(set.clone()).or_insert(new);
        if number == new {
            self.sets.push(set);
        }
        number
    }

    /// How many classes there are.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.sets.len()).unwrap_or(u32::MAX)
    }

    /// Which tests hold for a class.
    pub(crate) fn holding(&self, class: u32) -> &[u64] {
        &self.sets[class as usize]
    }

    /// The class of the keys for which just these tests hold.
    pub(crate) fn class(&self, holding: &Holding) -> Option<u32> {
        self.numbers.get(holding).copied()
    }
}

/// The patterns of a site, explored.
#[derive(Debug)]
pub(crate) struct Explored {
    /// The classes that occur.
    pub(crate) table: ClassTable,
    /// Those of them that a key has which is not declared.
    pub(crate) open: Classes,
    /// The same letter by letter, where that is possible.
    pub(crate) key_classes: Option<KeyClasses>,
}

/// What a part of a key may still become.
#[derive(Debug)]
pub(crate) struct KeyClasses {
    pub(crate) languages: Box<[Language]>,
    tuples: FxHashMap<PatternStates, Ahead>,
}

/// What is ahead of a tuple.
#[derive(Debug)]
struct Ahead {
    /// The class of a key that ends here.
    class: u32,
    /// What one may become.
    may: Classes,
    /// What is left in the end, whatever is read: one of these.
    last: Box<[Classes]>,
}

impl Explored {
    /// Explores `patterns`, where keys in `declared` are of no class. `None`
    /// if there are too many states; for `many` patterns more are tried.
    pub(crate) fn new(
        patterns: &[Regex],
        declared: &[String],
        many: bool,
    ) -> Result<Option<Explored>, AutomatonError> {
        let languages: Box<[Language]> =
            patterns.iter().map(language).collect::<Result<_, _>>()?;
        let max = if many { MAX_EXPLORED } else { MAX_TUPLES };
        let Some(graph) = Graph::explore(&languages, max) else {
            return Ok(None);
        };
        let open = graph.open(&languages, declared);
        let is_finite = |language: &Language| {
            matches!(language.longest(language.start()), Longest::Finite(_))
        };
        let endless = graph.tuples.len() <= MAX_TUPLES
            && !languages.iter().any(is_finite);
        let classes = endless.then(|| graph.classes()).flatten();
        let Graph { tuples, ends, table, .. } = graph;
        let key_classes = classes.map(|classes| {
            let ahead = ends
                .into_iter()
                .zip(classes)
                .map(|(class, (may, last))| Ahead { class, may, last });
            let tuples = tuples.into_iter().zip(ahead).collect();
            KeyClasses { languages, tuples }
        });
        Ok(Some(Explored { table, open, key_classes }))
    }

    /// The class of all keys that are not declared, if there is only one.
    pub(crate) fn only_class(&self) -> Option<u32> {
        let is_open = |&class: &u32| bit(&self.open, class);
        let mut open = (0..self.table.len()).filter(is_open);
        open.next().filter(|_| open.next().is_none())
    }
}

impl KeyClasses {
    /// The classes that a key may become after which `states` are left.
    pub(crate) fn of(&self, states: &[Option<regular::StateId>]) -> &[u64] {
        self.tuples.get(states).map_or(&[], |ahead| &ahead.may[..])
    }

    /// Whether a key after which `states` are left can be made one of these
    /// classes, and still can whatever else is read.
    pub(crate) fn always_lead_to(
        &self,
        states: &[Option<regular::StateId>],
        open: &[u64],
    ) -> bool {
        self.tuples.get(states).is_some_and(|ahead| {
            ahead.last.iter().all(|last| {
                last.iter().zip(open).any(|(last, open)| last & open != 0)
            })
        })
    }

    /// The class of a key that ends in `states`.
    pub(crate) fn class(
        &self,
        states: &[Option<regular::StateId>],
    ) -> Option<u32> {
        self.tuples.get(states).map(|ahead| ahead.class)
    }
}

fn starts(languages: &[Language]) -> PatternStates {
    languages.iter().map(|language| Some(language.start())).collect()
}

/// Which languages accept in their states.
pub(crate) fn holding(
    languages: &[Language],
    states: &[Option<regular::StateId>],
) -> Holding {
    let mut holding = Holding::new();
    for (index, holds) in (0..).zip(accepting(states, languages)) {
        if holds {
            set_bit(&mut holding, index);
        }
    }
    holding
}

/// All tuples that can be reached.
struct Graph {
    tuples: Vec<PatternStates>,
    numbers: FxHashMap<PatternStates, usize>,
    table: ClassTable,
    /// The class of a key that ends at a tuple.
    ends: Vec<u32>,
    /// The tuples one code point on, and on how many code points.
    next: Vec<Vec<(usize, u64)>>,
}

impl Graph {
    fn explore(languages: &[Language], max: usize) -> Option<Graph> {
        let mut graph = Graph {
            tuples: vec![starts(languages)],
            numbers: FxHashMap::default(),
            table: ClassTable::one(),
            ends: Vec::new(),
            next: Vec::new(),
        };
        graph.numbers.insert(starts(languages), 0);
        while graph.next.len() < graph.tuples.len() {
            let states = graph.tuples[graph.next.len()].clone();
            let end = graph.table.number(holding(languages, &states));
            graph.ends.push(end);
            let mut next: Vec<(usize, u64)> = Vec::new();
            for (width, states) in successors(languages, &states)? {
                let number = graph.tuple(states);
                match next.iter_mut().find(|(to, _)| *to == number) {
                    Some((_, known)) => *known += width,
                    None => next.push((number, width)),
                }
            }
            if graph.tuples.len() > max {
                return None;
            }
            graph.next.push(next);
        }
        Some(graph)
    }

    fn tuple(&mut self, states: PatternStates) -> usize {
        let new = self.tuples.len();
        let number = *self.numbers.entry(states.clone()).or_insert(new);
        if number == new {
            self.tuples.push(states);
        }
        number
    }

    /// The classes that have more keys than the declared ones.
    fn open(&self, languages: &[Language], declared: &[String]) -> Classes {
        let mut left: Vec<u64> = vec![0; self.table.sets.len()];
        for (&end, keys) in self.ends.iter().zip(self.n_keys()) {
            let left = &mut left[end as usize];
            *left = left.saturating_add(keys);
        }
        for name in declared {
            let class = class_of(languages, name)
                .and_then(|holding| self.table.class(&holding));
            if let Some(class) = class
                && let Some(left) = left.get_mut(class as usize)
                && *left != u64::MAX
            {
                *left -= 1;
            }
        }
        let mut open = Classes::new();
        for (class, left) in (0..).zip(left) {
            if left > 0 {
                set_bit(&mut open, class);
            }
        }
        open
    }

    /// How many keys end at each tuple; `u64::MAX` for what comes past a
    /// cycle.
    fn n_keys(&self) -> Vec<u64> {
        let mut n_open = vec![0_usize; self.tuples.len()];
        for &(to, _) in self.next.iter().flatten() {
            n_open[to] += 1;
        }
        let mut n_keys = vec![0_u64; self.tuples.len()];
        n_keys[0] = 1;
        let ready = (0..n_open.len()).filter(|&tuple| n_open[tuple] == 0);
        let mut ready: Vec<usize> = ready.collect();
        while let Some(tuple) = ready.pop() {
            let keys = n_keys[tuple];
            for &(to, width) in &self.next[tuple] {
                let more = keys.saturating_mul(width);
                n_keys[to] = n_keys[to].saturating_add(more);
                n_open[to] -= 1;
                if n_open[to] == 0 {
                    ready.push(to);
                }
            }
        }
        for (keys, n_open) in n_keys.iter_mut().zip(n_open) {
            if n_open > 0 {
                *keys = u64::MAX;
            }
        }
        n_keys
    }

    /// What can be reached from each tuple, at all and in the end; `None` if
    /// any of it can be reached by finitely many keys only.
    fn classes(&self) -> Option<Vec<(Classes, Box<[Classes]>)>> {
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
        if !(0..self.tuples.len()).all(is_endless) {
            return None;
        }
        // From wherever a last one leads, there is a way back to it.
        let is_last: Vec<bool> = (0..self.tuples.len())
            .map(|to| {
                members(&reachable[to]).all(|on| has(&reachable[on], to))
            })
            .collect();
        let last = reachable.iter().map(|row| {
            let last = members(row).filter(|&to| is_last[to]);
            let mut last: Vec<_> = last.map(|to| all[to].clone()).collect();
            last.sort_unstable();
            last.dedup();
            last.into()
        });
        let last: Vec<Box<[Classes]>> = last.collect();
        Some(all.into_iter().zip(last).collect())
    }

    /// For each tuple, those that are reached by at least one code point.
    fn closure(&self) -> Vec<Vec<u64>> {
        let n = self.tuples.len();
        let mut rows = vec![vec![0_u64; n.div_ceil(64)]; n];
        for (row, next) in rows.iter_mut().zip(&self.next) {
            for &(to, _) in next {
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

/// Which languages a key is in; none if it is over a limit.
fn class_of(languages: &[Language], key: &str) -> Option<Holding> {
    let mut states = starts(languages);
    for letter in key.chars() {
        for (state, language) in states.iter_mut().zip(languages) {
            *state = match *state {
                Some(from) => language.step(from, letter).ok()?,
                None => None,
            };
        }
    }
    Some(holding(languages, &states))
}

/// The tuples one code point on, each with the number of code points.
fn successors(
    languages: &[Language],
    states: &[Option<regular::StateId>],
) -> Option<Vec<(u64, PatternStates)>> {
    let mut live = Vec::new();
    let mut bounds = vec![0, SURROGATES.0, SURROGATES.1, END];
    for (index, (state, language)) in states.iter().zip(languages).enumerate()
    {
        let Some(state) = state else { continue };
        let edges = language.transitions(*state).ok()?;
        bounds.extend(edges.iter().flat_map(|it| [it.first, it.last + 1]));
        live.push((index, edges));
    }
    bounds.sort_unstable();
    bounds.dedup();
    let mut next = Vec::with_capacity(bounds.len());
    for pair in bounds.windows(2) {
        let &[first, end] = pair else { continue };
        if first == SURROGATES.0 {
            continue;
        }
        let mut to: PatternStates = vec![None; states.len()].into();
        for (index, edges) in &mut live {
            // What ends before this interval is of no use any more.
            while edges.first().is_some_and(|edge| edge.last < first) {
                *edges = &edges[1..];
            }
            if let Some(edge) = edges.first().filter(|it| it.first <= first) {
                to[*index] = Some(edge.next);
            }
        }
        next.push((u64::from(end - first), to));
    }
    Some(next)
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

    fn explore(patterns: &[&str], declared: &[&str]) -> Explored {
        let patterns: Vec<Regex> = patterns
            .iter()
            .map(|pattern| Regex::ecma(pattern).expect("a valid pattern"))
            .collect();
        let declared: Vec<String> =
            declared.iter().map(|&name| name.to_owned()).collect();
        let explored = Explored::new(&patterns, &declared, true);
        explored.expect("within the limits").expect("few states")
    }

    /// The sets of tests of some classes, as numbers.
    fn sets(explored: &Explored, classes: &[u64]) -> Vec<u64> {
        let classes =
            (0..explored.table.len()).filter(|&class| bit(classes, class));
        let mut sets: Vec<u64> = classes
            .map(|class| explored.table.holding(class))
            .map(|set| set.first().copied().unwrap_or(0))
            .collect();
        sets.sort_unstable();
        sets
    }

    fn after(explored: &Explored, text: &str) -> Vec<u64> {
        let classes = explored.key_classes.as_ref().expect("endless classes");
        sets(explored, classes.of(&states_after(classes, text)))
    }

    fn states_after(classes: &KeyClasses, text: &str) -> PatternStates {
        let mut states = starts(&classes.languages);
        for letter in text.chars() {
            for (state, language) in states.iter_mut().zip(&classes.languages)
            {
                *state = state.and_then(|state| {
                    language.step(state, letter).expect("within the limits")
                });
            }
        }
        states
    }

    #[test]
    fn what_is_left_is_told_letter_by_letter() {
        let classes = explore(&["^x-", "^x-y|z$"], &[]);
        assert_eq!(after(&classes, ""), [0, 1, 2, 3]);
        assert_eq!(after(&classes, "x"), [0, 1, 2, 3]);
        assert_eq!(after(&classes, "x-"), [1, 3]);
        assert_eq!(after(&classes, "x-y"), [3]);
        assert_eq!(after(&classes, "a"), [0, 2]);
    }

    #[test]
    fn what_is_left_in_the_end_is_told_letter_by_letter() {
        let explored = explore(&["ab|ba", "^x"], &[]);
        let classes = explored.key_classes.as_ref().expect("endless classes");
        let leads = |text: &str, sets: &[u64]| {
            let open = (0..explored.table.len()).filter(|&class| {
                let holding = explored.table.holding(class).first();
                sets.contains(holding.unwrap_or(&0))
            });
            let mut classes_of_sets = Classes::new();
            open.for_each(|class| set_bit(&mut classes_of_sets, class));
            let states = states_after(classes, text);
            classes.always_lead_to(&states, &classes_of_sets)
        };
        // Whatever comes, the first can still be made to hold; that the
        // second holds is known after one letter.
        assert!(leads("", &[1, 3]));
        assert!(!leads("", &[1]));
        assert!(!leads("", &[0, 2]));
        assert!(leads("yb", &[1]));
        assert!(!leads("yb", &[3]));
        assert!(leads("xa", &[2, 3]));
        assert!(!leads("xa", &[2]));
    }

    #[test]
    fn a_class_of_few_keys_is_not_endless() {
        let is_endless = |patterns| explore(patterns, &[]).key_classes;
        assert!(is_endless(&["^[a-z]{1,3}$"]).is_none());
        assert!(is_endless(&["^a|^b$", "^a"]).is_none());
        assert!(is_endless(&["^(?:a|b+c)$"]).is_none());
        assert!(is_endless(&["^ab*$"]).is_some());
    }

    #[test]
    fn only_classes_that_occur_are_numbered() {
        let patterns = ["^a", "^b", "^c", "z$"];
        let explored = explore(&patterns, &[]);
        let open = sets(&explored, &explored.open);
        assert_eq!(open, [0, 1, 2, 4, 8, 9, 10, 12]);
        assert_eq!(explored.table.len(), 8);
    }

    #[test]
    fn a_class_whose_keys_are_all_declared_is_not_open() {
        let open = |declared| {
            let explored = explore(&["^[ab]$", "^ab*$"], declared);
            sets(&explored, &explored.open)
        };
        assert_eq!(open(&[]), [0, 1, 2, 3]);
        assert_eq!(open(&["b"]), [0, 2, 3]);
        assert_eq!(open(&["a", "b", "ab", "abb"]), [0, 2]);
    }
}
