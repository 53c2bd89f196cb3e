//! A regular language as a lazily built automaton.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::analysis::Analyses;
use super::class::CharSet;
use super::compile::compile;
use super::error::LanguageError;
use super::expand::{Algebra, Context, check_depth};
use super::formula::{FALSE, Formula, FormulaId, TRUE};
use super::intern::Interner;
use super::limits::{LimitError, LimitKind, Limits};
use super::partition::{Members, Partition};
use super::regex::Regex;
use super::term::{ClassId, ContId, INFINITE, Info, NIL};
use crate::{interrupt, util::FxHashMap};

/// The number of a state of a [`Language`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StateId(u32);

impl StateId {
    /// The number, for tables beside a language. States are numbered from
    /// zero in the order in which they were first asked for.
    pub fn as_u32(self) -> u32 {
        self.0
    }

    /// The number as an index.
    pub fn as_usize(self) -> usize {
        self.0 as usize
    }
}

/// Where the code points `first..=last` lead.
///
/// Both ends are Unicode scalar values, and so is everything between them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Transition {
    /// The least code point.
    pub first: u32,
    /// The greatest code point.
    pub last: u32,
    /// The state after it.
    pub next: StateId,
}

/// The answer to a question that may have cost too much.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Answer {
    /// Certainly.
    Yes,
    /// Certainly not.
    No,
    /// The budget for the question was spent. Each question documents the
    /// safe reading.
    Unknown,
}

/// A regular language over Unicode scalar values, as a deterministic
/// automaton whose states are made when they are first asked for.
///
/// A state stands for the set of suffixes that complete the text so far. It
/// is found by boolean derivatives, so intersection, complement and
/// look-around are exact and cost nothing up front. Cloning shares the
/// automaton, and all methods take `&self` from any thread: what exists is
/// read without a lock, what is new is made under one.
///
/// # Three-valued answers
///
/// Some questions need a search, which is bounded by
/// [`Limits::with_search_budget`]. They answer [`Answer::Unknown`] rather
/// than guess. Reading 'unknown' as 'may go on' keeps every string of the
/// language, at the price that a text may turn out to have no completion.
///
/// # Example
///
/// ```
/// use maskwright_grammar_core::regular::{Answer, Language, Limits, Regex};
///
/// let password = Regex::ecma(r"^(?=.*\d)(?=.*[a-z]).{8,}$")?;
/// let language = Language::new(&password, Limits::new())?;
/// assert!(language.is_match("12345xyz")?);
/// assert!(!language.is_match("12345678")?);
/// assert_eq!(language.is_dead(language.start()), Answer::No);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Language {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) limits: Limits,
    start: StateId,
    slack: Option<u64>,
    /// Append-only; read without a lock, appended to under that of `core`.
    pub(super) states: boxcar::Vec<State>,
    core: Mutex<Core>,
}

/// One state. Everything but the facts that are found later is immutable.
#[derive(Debug)]
pub(super) struct State {
    formula: FormulaId,
    /// The formulas of the side automata, if they still matter.
    behind: u32,
    pub(super) accepting: bool,
    pub(super) universal: bool,
    pub(super) info: Info,
    /// Any text keeps it alive, and that shows without a search.
    pub(super) absorbing: bool,
    live: AtomicU8,
    pub(super) never_dies: OnceLock<Answer>,
    row: OnceLock<Arc<[Transition]>>,
}

const LIVE_UNASKED: u8 = 0;
const LIVE_YES: u8 = 1;
const LIVE_NO: u8 = 2;
const LIVE_UNKNOWN: u8 = 3;

impl State {
    /// What is known about whether an accepting state can be reached.
    pub(super) fn live(&self) -> Option<Answer> {
        match self.live.load(Ordering::Relaxed) {
            LIVE_UNASKED => None,
            LIVE_YES => Some(Answer::Yes),
            LIVE_NO => Some(Answer::No),
            _ => Some(Answer::Unknown),
        }
    }

    pub(super) fn set_live(&self, answer: Answer) {
        let value = match answer {
            Answer::Yes => LIVE_YES,
            Answer::No => LIVE_NO,
            Answer::Unknown => LIVE_UNKNOWN,
        };
        self.live.store(value, Ordering::Relaxed);
    }
}

/// What is changed under the lock.
#[derive(Debug)]
pub(super) struct Core {
    algebra: Algebra,
    behinds: Interner<Box<[FormulaId]>>,
    index: FxHashMap<(FormulaId, u32), StateId>,
    /// All transitions of a state, dead ends included.
    raw: Vec<Option<Arc<[Transition]>>>,
    /// Partitions made so far. States of one count ask for the same.
    partitions: FxHashMap<Vec<ClassId>, Arc<Partition>>,
    pub(super) analyses: Analyses,
}

/// Partitions that are kept.
const MAX_PARTITIONS: usize = 64;

/// No side automata.
const NO_BEHIND: u32 = 0;

impl Language {
    /// Compiles an expression. Takes time in the length of the expression,
    /// not in the number of its states.
    ///
    /// # Errors
    ///
    /// Fails when the expression is larger than `limits` allow, and when an
    /// intersection or complement inside of it looks at what comes before.
    pub fn new(
        regex: &Regex,
        limits: Limits,
    ) -> Result<Language, LanguageError> {
        let mut algebra = Algebra::new(limits);
        let root = compile(regex, &limits, &mut algebra)?;
        let is_plain = algebra.terms.node_info(root).plain;
        let slack = is_plain.then(|| algebra.terms.slack(root));
        let mut core = Core {
            algebra,
            behinds: Interner::new(),
            index: FxHashMap::default(),
            raw: Vec::new(),
            partitions: FxHashMap::default(),
            analyses: Analyses::default(),
        };
        core.behinds.intern(Box::new([]));
        let states = boxcar::Vec::new();
        let algebra = &mut core.algebra;
        algebra.context_classes.sort_unstable();
        algebra.context_classes.dedup();
        let mut behind = Vec::new();
        for index in 0..algebra.behinds.len() {
            let body = algebra.behinds[index];
            let context = Context { previous: None, behind: &behind };
            behind.push(algebra.start_behind(body, context));
        }
        let cont = algebra.terms.cons(root, NIL);
        let context = Context { previous: None, behind: &behind };
        let formula = algebra.expand(cont, context);
        algebra.check()?;
        let start = core.state(&states, &limits, formula, behind)?;
        let core = Mutex::new(core);
        let inner = Inner { limits, start, slack, states, core };
        Ok(Language { inner: Arc::new(inner) })
    }

    /// The state before any text.
    pub fn start(&self) -> StateId {
        self.inner.start
    }

    /// The limits it was made with.
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// The number of states made so far.
    pub fn n_states(&self) -> usize {
        self.inner.states.count()
    }

    /// Returns about how many bytes the states made so far hold.
    pub fn memory_usage(&self) -> usize {
        size_of::<State>() * self.n_states()
    }

    /// Returns true if and only if the text may end in this state.
    pub fn is_accepting(&self, state: StateId) -> bool {
        self.inner.state(state).accepting
    }

    /// Returns true only if every suffix is accepted from here.
    ///
    /// It is a cheap look at the state: false means that this is not known,
    /// not that it is wrong.
    pub fn is_universal(&self, state: StateId) -> bool {
        self.inner.state(state).universal
    }

    /// The ways on from a state: sorted, disjoint ranges of code points that
    /// lead to states from which the text can be completed. Neighbouring
    /// ranges to the same state are joined, but never across surrogates.
    ///
    /// A successor of which it is not known whether it is dead is included.
    ///
    /// # Errors
    ///
    /// Fails when the successors do not fit in the limits. Asking again
    /// fails again.
    pub fn transitions(
        &self,
        state: StateId,
    ) -> Result<&[Transition], LimitError> {
        let entry = self.inner.state(state);
        if let Some(row) = entry.row.get() {
            return Ok(row);
        }
        let mut core = self.inner.lock();
        let row = core.live_row(&self.inner, state)?;
        drop(core);
        Ok(entry.row.get_or_init(|| row))
    }

    /// The state after one character, or none if the text cannot go on so.
    ///
    /// # Errors
    ///
    /// As [`Language::transitions`].
    pub fn step(
        &self,
        state: StateId,
        character: char,
    ) -> Result<Option<StateId>, LimitError> {
        let row = self.transitions(state)?;
        Ok(find(row, u32::from(character)).map(|found| found.next))
    }

    /// Returns true if and only if some code point in `first..=last` leads
    /// to a state from which the text can be completed.
    ///
    /// # Errors
    ///
    /// As [`Language::transitions`].
    pub fn live_range(
        &self,
        state: StateId,
        first: u32,
        last: u32,
    ) -> Result<bool, LimitError> {
        let row = self.transitions(state)?;
        let after = row.partition_point(|range| range.last < first);
        Ok(row.get(after).is_some_and(|range| range.first <= last))
    }

    /// Returns true if and only if the text is in the language.
    ///
    /// # Errors
    ///
    /// As [`Language::transitions`].
    pub fn is_match(&self, text: &str) -> Result<bool, LimitError> {
        let mut state = self.start();
        for character in text.chars() {
            match self.step(state, character)? {
                Some(next) => state = next,
                None => return Ok(false),
            }
        }
        Ok(self.is_accepting(state))
    }

    /// Returns lengths, in code points, that no completion of a state falls
    /// short of or passes: a cheap look at the state, not always the
    /// narrowest bounds.
    pub fn length_bounds(&self, state: StateId) -> (u64, Option<u64>) {
        let info = self.inner.state(state).info;
        (info.min, Some(info.max).filter(|&max| max != INFINITE))
    }

    /// Returns a length, in code points, within which every state that can
    /// be completed at all can be. None if that does not show.
    pub fn slack(&self) -> Option<u64> {
        self.inner.slack
    }

    /// Returns the class and the count if the suffixes of a state are
    /// between `least` and `most` characters of one class. None says that
    /// this does not show.
    pub fn window(
        &self,
        state: StateId,
    ) -> Option<(CharSet, u32, Option<u32>)> {
        let formula = self.inner.state(state).formula;
        self.inner.lock().algebra.window(formula)
    }

    /// Does the expression repeat some class more than `count` times, but
    /// not without a bound?
    pub fn counts_classes(&self, count: u32) -> bool {
        self.inner.lock().algebra.terms.counts_classes(count)
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.inner
    }
}

/// Finds the range of a row that holds a code point.
fn find(row: &[Transition], code_point: u32) -> Option<&Transition> {
    let after = row.partition_point(|range| range.last < code_point);
    row.get(after).filter(|range| range.first <= code_point)
}

impl Inner {
    pub(super) fn state(&self, state: StateId) -> &State {
        self.states
            .get(state.as_usize())
            .expect("state ids are handed out after the state is stored")
    }

    /// The lock on what grows. A thread that panicked while it held the lock
    /// left terms that are complete: each is stored whole or not at all.
    pub(super) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    /// Returns the state of a formula.
    fn state(
        &mut self,
        states: &boxcar::Vec<State>,
        limits: &Limits,
        formula: FormulaId,
        behind: Vec<FormulaId>,
    ) -> Result<StateId, LimitError> {
        let facts = *self.algebra.formulas.facts(formula);
        let behind = if facts.info.context {
            self.behinds.intern(behind.into()).0
        } else {
            NO_BEHIND
        };
        if let Some(&state) = self.index.get(&(formula, behind)) {
            return Ok(state);
        }
        if facts.size as usize > limits.max_terms() {
            return Err(LimitError::new(
                LimitKind::Terms,
                limits.max_terms(),
                facts.size as usize,
            ));
        }
        let n_states = self.index.len() + 1;
        if n_states > limits.max_states() {
            let limit = limits.max_states();
            return Err(LimitError::new(LimitKind::States, limit, n_states));
        }
        let live = if formula == FALSE {
            LIVE_NO
        } else if self.algebra.is_surely_live(formula) {
            LIVE_YES
        } else {
            LIVE_UNASKED
        };
        let id = states.push(State {
            formula,
            behind,
            accepting: facts.accepts,
            universal: formula == TRUE,
            info: facts.info,
            absorbing: self.algebra.is_absorbing(formula),
            live: AtomicU8::new(live),
            never_dies: OnceLock::new(),
            row: OnceLock::new(),
        });
        // The limit check above keeps the number of states far below this.
        let id = StateId(u32::try_from(id).unwrap_or(u32::MAX));
        self.index.insert((formula, behind), id);
        self.raw.push(None);
        Ok(id)
    }

    /// Returns the transitions of a state without those that are known to
    /// lead nowhere.
    pub(super) fn live_row(
        &mut self,
        inner: &Inner,
        state: StateId,
    ) -> Result<Arc<[Transition]>, LimitError> {
        let raw = self.raw_row(inner, state)?;
        let mut dead = Vec::new();
        for transition in &*raw {
            if self.live(inner, transition.next) == Answer::No {
                dead.push(transition.next);
            }
        }
        if let Err(error) = interrupt::confirm() {
            return Err(LimitError::interrupted(error));
        }
        if dead.is_empty() {
            return Ok(raw);
        }
        let alive = raw.iter().filter(|range| !dead.contains(&range.next));
        Ok(alive.copied().collect())
    }

    /// How far a state is from acceptance, about.
    pub(super) fn effort(&self, inner: &Inner, state: StateId) -> u64 {
        let formula = inner.state(state).formula;
        self.algebra.formulas.facts(formula).effort
    }

    /// Returns all transitions of a state.
    pub(super) fn raw_row(
        &mut self,
        inner: &Inner,
        state: StateId,
    ) -> Result<Arc<[Transition]>, LimitError> {
        if let Some(row) = &self.raw[state.as_usize()] {
            return Ok(Arc::clone(row));
        }
        let (formula, behind) = {
            let state = inner.state(state);
            (state.formula, self.behinds[state.behind].clone())
        };
        let row = self.make_row(inner, formula, &behind)?;
        // Each transition is three words.
        self.algebra.n_row_words += 3 * row.len();
        let row: Arc<[Transition]> = row.into();
        self.raw[state.as_usize()] = Some(Arc::clone(&row));
        Ok(row)
    }

    fn make_row(
        &mut self,
        inner: &Inner,
        formula: FormulaId,
        behind: &[FormulaId],
    ) -> Result<Vec<Transition>, LimitError> {
        let algebra = &mut self.algebra;
        let mut roots = vec![formula];
        roots.extend_from_slice(behind);
        let mut classes = algebra.leaf_classes(&roots);
        if algebra.formulas.facts(formula).info.context {
            classes.extend_from_slice(&algebra.context_classes);
            classes.sort_unstable();
            classes.dedup();
        }
        let buckets = Buckets::new(algebra, formula, &classes);
        let partition = self.partition(classes);
        let mut targets = Vec::with_capacity(partition.groups.len());
        for group in &partition.groups {
            let target = self.successor(
                inner,
                &buckets,
                &group.members,
                group.example,
                behind,
            )?;
            targets.push(target);
        }
        let mut row: Vec<Transition> = Vec::new();
        for &(first, last, group) in &partition.ranges {
            let Some(next) = targets[group as usize] else { continue };
            match row.last_mut() {
                Some(before)
                    if before.next == next && before.last + 1 == first =>
                {
                    before.last = last;
                }
                _ => row.push(Transition { first, last, next }),
            }
        }
        Ok(row)
    }

    fn partition(&mut self, classes: Vec<ClassId>) -> Arc<Partition> {
        if let Some(known) = self.partitions.get(&classes) {
            return Arc::clone(known);
        }
        let all = &self.algebra.terms.classes;
        let sets: Vec<&CharSet> = classes.iter().map(|&id| &all[id]).collect();
        let partition = Arc::new(Partition::new(&sets));
        if self.partitions.len() >= MAX_PARTITIONS {
            self.partitions.clear();
        }
        self.partitions.insert(classes, Arc::clone(&partition));
        partition
    }

    /// Returns the state after `code_point`, which is in the classes at
    /// `members`, unless there is none.
    fn successor(
        &mut self,
        inner: &Inner,
        buckets: &Buckets,
        members: &Members,
        code_point: u32,
        behind: &[FormulaId],
    ) -> Result<Option<StateId>, LimitError> {
        let algebra = &mut self.algebra;
        let previous = Some(code_point);
        let mut next_behind = Vec::with_capacity(behind.len());
        for &side in behind {
            let context = Context { previous, behind: &next_behind };
            next_behind.push(algebra.derive(side, code_point, context));
        }
        let context = Context { previous, behind: &next_behind };
        let formula = buckets.derive(algebra, members, code_point, context);
        algebra.check()?;
        if formula == FALSE {
            return Ok(None);
        }
        let depth = algebra.formulas.facts(formula).depth;
        check_depth(depth)?;
        self.state(&inner.states, &inner.limits, formula, next_behind)
            .map(Some)
    }
}

/// The alternatives of a formula, its steps by class, so that a row of many
/// steps is made in the time of its length.
struct Buckets {
    steps: Vec<Vec<ContId>>,
    others: Vec<FormulaId>,
}

impl Buckets {
    fn new(
        algebra: &Algebra,
        formula: FormulaId,
        classes: &[ClassId],
    ) -> Buckets {
        let mut steps = vec![Vec::new(); classes.len()];
        let mut others = Vec::new();
        let formulas = &algebra.formulas;
        let alternatives = match formulas.get(formula) {
            Formula::Or(parts) => &parts[..],
            _ => &[formula],
        };
        for &part in alternatives {
            match formulas.get(part) {
                Formula::Step(class, tail) => {
                    if let Ok(at) = classes.binary_search(class) {
                        steps[at].push(*tail);
                    }
                }
                _ => others.push(part),
            }
        }
        Buckets { steps, others }
    }

    fn derive(
        &self,
        algebra: &mut Algebra,
        members: &Members,
        code_point: u32,
        context: Context<'_>,
    ) -> FormulaId {
        let mut tails = Vec::new();
        for &class in members {
            tails.extend_from_slice(&self.steps[class as usize]);
        }
        let mut out = vec![algebra.expand_any(&tails, context)];
        for &other in &self.others {
            out.push(algebra.derive(other, code_point, context));
        }
        algebra.any_of(&out)
    }
}

/// Prints the states made so far, one a line: `*` accepts, `!` is dead.
impl fmt::Debug for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Language(")?;
        for (index, state) in &self.inner.states {
            let start =
                if index == self.start().as_usize() { ">" } else { " " };
            let accepting = if state.accepting { "*" } else { " " };
            let dead = match state.live() {
                Some(Answer::No) => "!",
                _ => " ",
            };
            write!(f, "{start}{accepting}{dead} {index:06}:")?;
            match state.row.get() {
                None => write!(f, " ...")?,
                Some(row) => write_row(f, row)?,
            }
            writeln!(f)?;
        }
        write!(f, ")")
    }
}

fn write_row(f: &mut fmt::Formatter<'_>, row: &[Transition]) -> fmt::Result {
    let mut separator = " ";
    for range in row {
        let set = CharSet::new([(range.first, range.last)]);
        write!(f, "{separator}{set:?} => {}", range.next.0)?;
        separator = ", ";
    }
    Ok(())
}
