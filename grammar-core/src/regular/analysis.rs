//! Questions about what can follow a state: liveness, lengths, words.
//!
//! Most states answer without a search, from what their formula says of its
//! shortest and longest match. The rest is explored, nearest first, under
//! the search budget of the limits. An answer of a search that was
//! interrupted is 'unknown' too, and is not kept.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::language::{Answer, Core, Inner, Language, StateId, Transition};
use super::lengths::LengthTable;
use super::term::INFINITE;
use crate::{
    interrupt,
    util::{FxHashMap, FxHashSet},
};

/// The length of the longest text that completes a state.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Longest {
    /// No text completes it.
    Never,
    /// This many code points.
    Finite(u64),
    /// There is always a longer one.
    Unbounded,
    /// The budget was spent.
    Unknown,
}

/// The length of the shortest text that completes a state.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Shortest {
    /// No text completes it.
    Never,
    /// This many code points.
    Exactly(u64),
    /// This many code points or more, if any text completes it at all: the
    /// budget was spent.
    AtLeast(u64),
}

/// How many texts complete a state.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum WordCount {
    /// This many.
    Exactly(u64),
    /// More than the cap that was asked for.
    MoreThanCap,
    /// The budget was spent.
    Unknown,
}

/// How many states each of two searches looks at before the other one does.
const FIRST_SHARE: usize = 32;

/// Answers that belong to the whole automaton.
#[derive(Debug, Default)]
pub(super) struct Analyses {
    tables: FxHashMap<StateId, Option<Arc<LengthTable>>>,
}

/// Part of the state limit that questions may not use up, so that a text can
/// still be followed after them.
fn search_room(inner: &Inner) -> usize {
    inner.limits.max_states() / 4 * 3
}

impl Language {
    /// Is this a state from which no text is accepted?
    ///
    /// Exact unless the answer is [`Answer::Unknown`], whose safe reading is
    /// 'alive'.
    pub fn is_dead(&self, state: StateId) -> Answer {
        let inner = self.inner();
        let live = match inner.state(state).live() {
            Some(live) => live,
            None => inner.lock().live(inner, state),
        };
        match live {
            Answer::Yes => Answer::No,
            Answer::No => Answer::Yes,
            Answer::Unknown => Answer::Unknown,
        }
    }

    /// Does every text lead from here to a state that is not dead?
    ///
    /// An unanchored search never dies. The safe reading of
    /// [`Answer::Unknown`] is 'it may die'.
    pub fn never_dies(&self, state: StateId) -> Answer {
        let inner = self.inner();
        let entry = inner.state(state);
        if entry.universal || entry.absorbing {
            return Answer::Yes;
        }
        if let Some(&known) = entry.never_dies.get() {
            return known;
        }
        let answer = inner.lock().find_never_dies(inner, state);
        if interrupt::confirm().is_err() {
            return Answer::Unknown;
        }
        *entry.never_dies.get_or_init(|| answer)
    }

    /// The length of the shortest text that completes a state.
    pub fn shortest(&self, state: StateId) -> Shortest {
        let inner = self.inner();
        let entry = inner.state(state);
        if entry.accepting {
            return Shortest::Exactly(0);
        }
        if entry.info.plain {
            return Shortest::Exactly(entry.info.min);
        }
        inner.lock().find_shortest(inner, state)
    }

    /// The length of the longest text that completes a state.
    pub fn longest(&self, state: StateId) -> Longest {
        let inner = self.inner();
        let entry = inner.state(state);
        if entry.universal || entry.info.plain {
            return match entry.info.max {
                INFINITE => Longest::Unbounded,
                max => Longest::Finite(max),
            };
        }
        inner.lock().find_longest(inner, state)
    }

    /// Is there a text of `least..=most` code points that completes a state?
    ///
    /// The safe reading of [`Answer::Unknown`] is 'there is'.
    pub fn accepts_length(
        &self,
        state: StateId,
        least: u64,
        most: u64,
    ) -> Answer {
        let inner = self.inner();
        let entry = inner.state(state);
        let info = entry.info;
        if least > most || info.min > most || info.max < least {
            return Answer::No;
        }
        let window = least..=most;
        let attained = info.plain
            && (info.dense
                || window.contains(&info.min)
                || window.contains(&info.max));
        if attained || (entry.accepting && least == 0) {
            return Answer::Yes;
        }
        inner.lock().find_length(inner, state, least, most)
    }

    /// Counts the texts that complete a state, up to `cap`.
    pub fn count_words(&self, state: StateId, cap: u64) -> WordCount {
        self.count_words_within(state, 0, u64::MAX, cap)
    }

    /// Counts the texts of `least..=most` code points that complete a state,
    /// up to `cap`.
    pub fn count_words_within(
        &self,
        state: StateId,
        least: u64,
        most: u64,
        cap: u64,
    ) -> WordCount {
        let inner = self.inner();
        inner.lock().count_words(inner, state, (least, most), cap)
    }

    /// Lists all texts of the language, if there are at most `cap` of them,
    /// in order of their length and then of their code points.
    ///
    /// None says that there are more, or that it could not be found out
    /// within the search budget.
    pub fn enumerate(&self, cap: usize) -> Option<Vec<String>> {
        self.enumerate_from(self.start(), cap)
    }

    /// Lists all texts that complete a state, as [`Language::enumerate`].
    pub fn enumerate_from(
        &self,
        state: StateId,
        cap: usize,
    ) -> Option<Vec<String>> {
        let wide = u64::try_from(cap).unwrap_or(u64::MAX);
        match self.count_words(state, wide) {
            WordCount::Exactly(_) => {}
            WordCount::MoreThanCap | WordCount::Unknown => return None,
        }
        let mut words = Vec::new();
        let mut level = vec![(state, String::new())];
        while !level.is_empty() {
            let mut next = Vec::new();
            for (state, text) in level {
                for range in self.transitions(state).ok()? {
                    for c in
                        (range.first..=range.last).filter_map(char::from_u32)
                    {
                        let mut text = text.clone();
                        text.push(c);
                        next.push((range.next, text));
                    }
                }
                if self.is_accepting(state) {
                    words.push(text);
                }
            }
            level = next;
        }
        Some(words)
    }
}

impl Core {
    /// Can an accepting state be reached?
    pub(super) fn live(&mut self, inner: &Inner, state: StateId) -> Answer {
        if let Some(known) = inner.state(state).live() {
            return known;
        }
        let answer = self.search_live(inner, state);
        if interrupt::confirm().is_err() {
            return Answer::Unknown;
        }
        inner.state(state).set_live(answer);
        answer
    }

    /// Looks for a state that is surely live, in two ways by turns, each time
    /// twice as far: where one of them is long, the other may be short.
    fn search_live(&mut self, inner: &Inner, root: StateId) -> Answer {
        let budget = inner.limits.search_budget();
        let mut searches = [Nearness::Bound, Nearness::Effort]
            .map(|nearness| LiveSearch::new(self, inner, root, nearness));
        let mut share = budget.min(FIRST_SHARE);
        loop {
            for search in &mut searches {
                if let Some(answer) = search.run(self, inner, share) {
                    return answer;
                }
            }
            if share == budget {
                return Answer::Unknown;
            }
            share = budget.min(2 * share);
        }
    }

    fn find_never_dies(&mut self, inner: &Inner, root: StateId) -> Answer {
        // From where each state was come by first.
        let mut from = FxHashMap::default();
        let mut stack = vec![root];
        let mut sure = true;
        from.insert(root, root);
        while let Some(state) = stack.pop() {
            if inner.state(state).never_dies.get() == Some(&Answer::No) {
                note_death(inner, &from, state);
                return Answer::No;
            }
            match self.live(inner, state) {
                Answer::No => {
                    note_death(inner, &from, state);
                    return Answer::No;
                }
                Answer::Yes => {}
                Answer::Unknown => sure = false,
            }
            let entry = inner.state(state);
            if entry.universal || entry.absorbing {
                continue;
            }
            if from.len() > inner.limits.search_budget()
                || inner.states.count() > search_room(inner)
            {
                return Answer::Unknown;
            }
            let Ok(row) = self.raw_row(inner, state) else {
                return Answer::Unknown;
            };
            if !covers_everything(&row) {
                note_death(inner, &from, state);
                return Answer::No;
            }
            for range in &*row {
                from.entry(range.next).or_insert_with(|| {
                    stack.push(range.next);
                    state
                });
            }
        }
        if sure { Answer::Yes } else { Answer::Unknown }
    }

    /// Finds the nearest accepting state. What a formula says of its
    /// shortest match never exceeds it, so the first one found is nearest.
    fn find_shortest(&mut self, inner: &Inner, root: StateId) -> Shortest {
        let mut best: FxHashMap<StateId, u64> = FxHashMap::default();
        let mut heap = BinaryHeap::new();
        best.insert(root, 0);
        heap.push(Reverse((inner.state(root).info.min, 0, root)));
        let mut n_looked_at = 0;
        while let Some(Reverse((bound, length, state))) = heap.pop() {
            let entry = inner.state(state);
            if entry.accepting || entry.info.plain {
                return Shortest::Exactly(bound);
            }
            if best.get(&state).is_some_and(|&best| best < length) {
                continue;
            }
            if self.live(inner, state) == Answer::No {
                continue;
            }
            n_looked_at += 1;
            if n_looked_at > inner.limits.search_budget()
                || inner.states.count() > search_room(inner)
                || interrupt::check().is_err()
            {
                return Shortest::AtLeast(bound);
            }
            let Ok(row) = self.raw_row(inner, state) else {
                return Shortest::AtLeast(bound);
            };
            let length: u64 = length + 1;
            for range in &*row {
                let known = best.entry(range.next).or_insert(u64::MAX);
                if length >= *known {
                    continue;
                }
                *known = length;
                let next = inner.state(range.next);
                let min = if next.accepting { 0 } else { next.info.min };
                let bound = length.saturating_add(min);
                heap.push(Reverse((bound, length, range.next)));
            }
        }
        Shortest::Never
    }

    fn find_longest(&mut self, inner: &Inner, root: StateId) -> Longest {
        match self.live(inner, root) {
            Answer::No => return Longest::Never,
            Answer::Yes => {}
            Answer::Unknown => return Longest::Unknown,
        }
        self.longest_path(inner, root).unwrap_or(Longest::Unknown)
    }

    /// Searches depth first. A way back to a state that is being searched is
    /// a cycle of live states, which ends the search at once.
    fn longest_path(
        &mut self,
        inner: &Inner,
        root: StateId,
    ) -> Option<Longest> {
        let mut done: FxHashMap<StateId, Option<u64>> = FxHashMap::default();
        let mut path = vec![Visit::new(root, self.raw_row(inner, root).ok()?)];
        done.insert(root, None);
        loop {
            let visit = path.last_mut()?;
            let Some(next) = visit.next_state() else {
                let Visit { state, longest, .. } = *visit;
                done.insert(state, Some(longest));
                path.pop();
                match path.last_mut() {
                    None => return Some(Longest::Finite(longest)),
                    Some(before) => before.reach(longest),
                }
                continue;
            };
            match done.get(&next) {
                Some(None) => return Some(Longest::Unbounded),
                Some(&Some(longest)) => {
                    visit.reach(longest);
                    continue;
                }
                None => {}
            }
            match self.live(inner, next) {
                Answer::No => continue,
                Answer::Yes => {}
                Answer::Unknown => return None,
            }
            let info = inner.state(next).info;
            if info.plain && info.max == INFINITE {
                return Some(Longest::Unbounded);
            }
            if info.plain {
                done.insert(next, Some(info.max));
                path.last_mut()?.reach(info.max);
                continue;
            }
            if done.len() > inner.limits.search_budget()
                || inner.states.count() > search_room(inner)
                || interrupt::check().is_err()
            {
                return None;
            }
            done.insert(next, None);
            path.push(Visit::new(next, self.raw_row(inner, next).ok()?));
        }
    }

    /// Explores all live states from `root`, which becomes state zero. None
    /// if the budget is spent or liveness is not known for one of them.
    fn live_graph(&mut self, inner: &Inner, root: StateId) -> Option<Graph> {
        let mut graph = Graph::default();
        let mut index: FxHashMap<StateId, usize> = FxHashMap::default();
        index.insert(root, 0);
        graph.states.push(root);
        while graph.edges.len() < graph.states.len() {
            if graph.states.len() > inner.limits.search_budget()
                || inner.states.count() > search_room(inner)
            {
                return None;
            }
            interrupt::check().ok()?;
            let state = graph.states[graph.edges.len()];
            let row = self.raw_row(inner, state).ok()?;
            let mut edges = Vec::new();
            for range in &*row {
                match self.live(inner, range.next) {
                    Answer::No => continue,
                    Answer::Yes => {}
                    Answer::Unknown => return None,
                }
                let at = *index.entry(range.next).or_insert_with(|| {
                    graph.states.push(range.next);
                    graph.states.len() - 1
                });
                edges.push(at);
            }
            edges.sort_unstable();
            edges.dedup();
            graph.edges.push(edges);
        }
        Some(graph)
    }

    fn find_length(
        &mut self,
        inner: &Inner,
        state: StateId,
        least: u64,
        most: u64,
    ) -> Answer {
        let live = self.live(inner, state);
        let info = inner.state(state).info;
        if live == Answer::No || least <= info.min && info.max <= most {
            return live;
        }
        if !self.analyses.tables.contains_key(&state) {
            match self.find_shortest(inner, state) {
                Shortest::Never => return Answer::No,
                Shortest::Exactly(n) if n >= least => {
                    return if n <= most { Answer::Yes } else { Answer::No };
                }
                Shortest::AtLeast(n) if n > most => return Answer::No,
                Shortest::Exactly(_) | Shortest::AtLeast(_) => {}
            }
            self.make_table(inner, state);
        }
        if let Some(Some(table)) = self.analyses.tables.get(&state) {
            let found = table.accepts(state, least, most);
            return found.unwrap_or(Answer::Unknown);
        }
        self.search_length(inner, state, least, most)
    }

    /// Makes the table of all lengths for every state after `root`, and
    /// notes where none could be made.
    fn make_table(&mut self, inner: &Inner, root: StateId) {
        let table = self.live_graph(inner, root).and_then(|graph| {
            let accepting = |state: &StateId| inner.state(*state).accepting;
            LengthTable::new(&graph, accepting).map(Arc::new)
        });
        match table {
            None if interrupt::confirm().is_err() => {}
            None => {
                self.analyses.tables.insert(root, None);
            }
            Some(table) => {
                for &state in table.states() {
                    let table = Some(Arc::clone(&table));
                    self.analyses.tables.entry(state).or_insert(table);
                }
            }
        }
    }

    /// Follows all texts at once, a character at a time. For automata that
    /// are too large for a table.
    fn search_length(
        &mut self,
        inner: &Inner,
        root: StateId,
        least: u64,
        most: u64,
    ) -> Answer {
        let mut level = vec![root];
        let mut n_looked_at = 0;
        let mut length = 0;
        while !level.is_empty() && length <= most {
            let mut next = FxHashSet::default();
            let mut ordered = Vec::new();
            for &state in &level {
                let entry = inner.state(state);
                if entry.accepting && length >= least {
                    return Answer::Yes;
                }
                let info = entry.info;
                let overlaps = length + info.min.min(most) <= most
                    && length.saturating_add(info.max) >= least;
                if info.dense && overlaps {
                    return Answer::Yes;
                }
                if !overlaps {
                    continue;
                }
                n_looked_at += 1;
                if n_looked_at > inner.limits.search_budget()
                    || inner.states.count() > search_room(inner)
                    || interrupt::check().is_err()
                {
                    return Answer::Unknown;
                }
                let Ok(row) = self.raw_row(inner, state) else {
                    return Answer::Unknown;
                };
                for range in &*row {
                    if next.insert(range.next) {
                        ordered.push(range.next);
                    }
                }
            }
            level = ordered;
            length += 1;
        }
        Answer::No
    }

    /// Counts texts level by level. Every live state has a word of its own,
    /// so the number of ways into a level bounds the count from below.
    fn count_words(
        &mut self,
        inner: &Inner,
        root: StateId,
        (least, most): (u64, u64),
        cap: u64,
    ) -> WordCount {
        let mut n_words: u64 = 0;
        let mut level = vec![(root, 1u64)];
        let mut length: u64 = 0;
        match self.find_length(inner, root, least, most) {
            Answer::No => return WordCount::Exactly(0),
            Answer::Unknown => return WordCount::Unknown,
            Answer::Yes => {}
        }
        let mut n_looked_at = 0;
        while !level.is_empty() {
            let ways = level
                .iter()
                .fold(n_words, |sum, &(_, ways)| sum.saturating_add(ways));
            if ways > cap {
                return WordCount::MoreThanCap;
            }
            let mut index: FxHashMap<StateId, usize> = FxHashMap::default();
            let mut next: Vec<(StateId, u64)> = Vec::new();
            for (state, ways) in level {
                if length >= least && inner.state(state).accepting {
                    n_words = n_words.saturating_add(ways);
                }
                if length == most {
                    continue;
                }
                n_looked_at += 1;
                if n_looked_at > 8 * inner.limits.search_budget()
                    || inner.states.count() > search_room(inner)
                    || interrupt::check().is_err()
                {
                    return WordCount::Unknown;
                }
                let Ok(row) = self.raw_row(inner, state) else {
                    return WordCount::Unknown;
                };
                let least = least.saturating_sub(length + 1);
                let most = match most {
                    u64::MAX => most,
                    most => most - length - 1,
                };
                for range in &*row {
                    match self.find_length(inner, range.next, least, most) {
                        Answer::No => continue,
                        Answer::Unknown => return WordCount::Unknown,
                        Answer::Yes => {}
                    }
                    let width = u64::from(range.last - range.first) + 1;
                    let ways = ways.saturating_mul(width);
                    let at = *index.entry(range.next).or_insert_with(|| {
                        next.push((range.next, 0));
                        next.len() - 1
                    });
                    next[at].1 = next[at].1.saturating_add(ways);
                }
            }
            level = next;
            length += 1;
        }
        WordCount::Exactly(n_words)
    }
}

/// What makes a state the next to be looked at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Nearness {
    /// The length that no match is shorter than. It leads to a short match,
    /// but of an intersection it sees only one part: of `.{60}` and `.*ab.*`
    /// the former, whatever has become of the latter.
    Bound,
    /// The lengths of all parts of an intersection together.
    Effort,
}

/// A search for a live state, the nearest first, that can be gone on with.
struct LiveSearch {
    nearness: Nearness,
    parents: FxHashMap<StateId, StateId>,
    heap: BinaryHeap<Reverse<(u64, u64, StateId)>>,
    /// How many states were found, so that the earlier of two comes first.
    n_found: u64,
    n_looked_at: usize,
}

impl LiveSearch {
    fn new(
        core: &Core,
        inner: &Inner,
        root: StateId,
        nearness: Nearness,
    ) -> LiveSearch {
        let mut search = LiveSearch {
            nearness,
            parents: FxHashMap::default(),
            heap: BinaryHeap::new(),
            n_found: 0,
            n_looked_at: 0,
        };
        search.find(core, inner, root, root);
        search
    }

    fn find(
        &mut self,
        core: &Core,
        inner: &Inner,
        state: StateId,
        parent: StateId,
    ) {
        if self.parents.contains_key(&state) {
            return;
        }
        self.parents.insert(state, parent);
        let distance = match self.nearness {
            Nearness::Bound => inner.state(state).info.min,
            Nearness::Effort => core.effort(inner, state),
        };
        self.heap.push(Reverse((distance, self.n_found, state)));
        self.n_found += 1;
    }

    /// Goes on until `budget` states have been looked at, or there is no room
    /// for more, and notes what was found at all states it says something
    /// about. None says that more is needed.
    fn run(
        &mut self,
        core: &mut Core,
        inner: &Inner,
        budget: usize,
    ) -> Option<Answer> {
        while let Some(&Reverse((_, _, state))) = self.heap.peek() {
            match inner.state(state).live() {
                Some(Answer::Yes) => {
                    note_path(inner, &self.parents, state);
                    return Some(Answer::Yes);
                }
                Some(Answer::No) => {
                    self.heap.pop();
                    continue;
                }
                Some(Answer::Unknown) | None => {}
            }
            if interrupt::check().is_err() {
                return Some(Answer::Unknown);
            }
            if self.n_looked_at >= budget
                || inner.states.count() > search_room(inner)
            {
                return None;
            }
            self.n_looked_at += 1;
            self.heap.pop();
            let Ok(row) = core.raw_row(inner, state) else {
                return Some(Answer::Unknown);
            };
            for range in &*row {
                self.find(core, inner, range.next, state);
            }
        }
        for &state in self.parents.keys() {
            inner.state(state).set_live(Answer::No);
        }
        Some(Answer::No)
    }
}

fn note_path(
    inner: &Inner,
    parents: &FxHashMap<StateId, StateId>,
    mut state: StateId,
) {
    loop {
        inner.state(state).set_live(Answer::Yes);
        match parents.get(&state) {
            Some(&parent) if parent != state => state = parent,
            _ => return,
        }
    }
}

/// Notes of `state`, after which some text dies, and of all states on the way
/// to it that they may die: one search then answers for all counts of a
/// repetition.
fn note_death(
    inner: &Inner,
    from: &FxHashMap<StateId, StateId>,
    mut state: StateId,
) {
    // What a search that was broken off says is not kept.
    if interrupt::confirm().is_err() {
        return;
    }
    loop {
        // Who was sooner says the same.
        let _ = inner.state(state).never_dies.set(Answer::No);
        match from.get(&state) {
            Some(&before) if before != state => state = before,
            _ => return,
        }
    }
}

fn covers_everything(row: &[Transition]) -> bool {
    let mut next = 0;
    for range in row {
        if range.first != next {
            return false;
        }
        next = match range.last + 1 {
            0xD800 => 0xE000,
            after => after,
        };
    }
    next == super::class::MAX_CODE_POINT + 1
}

/// A part of an automaton, its states numbered anew.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) states: Vec<StateId>,
    pub(super) edges: Vec<Vec<usize>>,
}

/// A state on the path of a depth-first search.
struct Visit {
    state: StateId,
    row: Arc<[Transition]>,
    at: usize,
    /// The longest text found so far.
    longest: u64,
}

impl Visit {
    fn new(state: StateId, row: Arc<[Transition]>) -> Visit {
        Visit { state, row, at: 0, longest: 0 }
    }

    fn next_state(&mut self) -> Option<StateId> {
        let next = self.row.get(self.at)?.next;
        self.at += 1;
        Some(next)
    }

    /// Notes that a successor has a text of this length.
    fn reach(&mut self, length: u64) {
        self.longest = self.longest.max(length + 1);
    }
}
