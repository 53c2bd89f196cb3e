//! From a continuation to a formula, and from a formula to its derivatives.
//!
//! [`Algebra::expand`] rewrites a continuation into end-of-text leaves and
//! steps, with everything that matches no character resolved: alternatives,
//! repetitions, anchors and look-around. [`Algebra::derive`] takes one
//! character off a formula and expands what follows.

use super::class::CharSet;
use super::formula::{
    END, FALSE, Formula, FormulaId, Formulas, HERE_NOW, TRUE,
};
use super::limits::{LimitError, LimitKind, Limits};
use super::term::{
    ANY, ANY_STRING, ClassId, Cont, ContId, FAIL, HERE, NIL, Node, NodeId,
    TOP, Terms, UNBOUNDED,
};
use crate::util::{FxHashMap, FxHashSet};

/// How deep the expansion of look-around may recurse, and how deep formulas
/// may nest: at up to 700 bytes a level, within a stack of 256 KiB.
const MAX_DEPTH: usize = 250;

/// Up to so many continuations are expanded each on its own.
const MAX_APART: usize = 16;

/// From so many alternatives on, what continuations make is kept.
const MIN_JOINED: usize = 32;

/// What the text before a position says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    /// The character before, or none at the start.
    pub(super) previous: Option<u32>,
    /// The formulas of the side automata that track look-behind.
    pub(super) behind: &'a [FormulaId],
}

/// Everything that the states of one language are made of.
#[derive(Debug)]
pub(super) struct Algebra {
    pub(super) terms: Terms,
    pub(super) formulas: Formulas,
    /// The expansion of continuations that depend on nothing before them.
    expanded: FxHashMap<ContId, FormulaId>,
    /// What several such expansions make together, where that is large:
    /// neighbouring states ask for it again at each of their characters.
    joined: FxHashMap<Box<[ContId]>, FormulaId>,
    /// The bodies of the look-behinds, inner before outer.
    pub(super) behinds: Vec<NodeId>,
    /// The classes that assertions ask of the character before.
    pub(super) context_classes: Vec<ClassId>,
    limits: Limits,
    /// Words taken by the rows of all states.
    pub(super) n_row_words: usize,
    /// Set once a bound is passed: from then on formulas are not to be
    /// trusted, and [`Algebra::check`] fails.
    broken: Option<LimitError>,
}

/// The loops that have been entered since the last character.
#[derive(Debug, Default)]
struct Loops {
    entries: Vec<LoopEntry>,
}

#[derive(Debug)]
struct LoopEntry {
    outer: u32,
    /// The continuation after one round. To reach it means that the round
    /// matched the empty string.
    after: ContId,
    /// What is then left to try. What made the round match nothing still
    /// holds, so every round that is owed can do so too; and when none was
    /// owed in the first place, all that follows is being tried already.
    rest: Option<ContId>,
}

impl Loops {
    const NONE: u32 = u32::MAX;

    fn enter(&mut self, entry: LoopEntry) -> u32 {
        let id = u32::try_from(self.entries.len()).unwrap_or(Loops::NONE);
        self.entries.push(entry);
        id
    }

    /// Returns the innermost loop of which `cont` ends a round.
    fn round_of(&self, mut at: u32, cont: ContId) -> Option<&LoopEntry> {
        while let Some(entry) = self.entries.get(at as usize) {
            if entry.after == cont {
                return Some(entry);
            }
            at = entry.outer;
        }
        None
    }
}

/// Fails when operators nest too deep in a formula.
pub(super) fn check_depth(depth: u16) -> Result<(), LimitError> {
    let depth = usize::from(depth);
    if depth > MAX_DEPTH {
        return Err(LimitError::new(LimitKind::Nesting, MAX_DEPTH, depth));
    }
    Ok(())
}

impl Algebra {
    pub(super) fn new(limits: Limits) -> Algebra {
        let terms = Terms::new();
        let formulas = Formulas::new(&terms);
        Algebra {
            terms,
            formulas,
            expanded: FxHashMap::default(),
            joined: FxHashMap::default(),
            behinds: Vec::new(),
            context_classes: Vec::new(),
            limits,
            n_row_words: 0,
            broken: None,
        }
    }

    /// Fails when a bound has been passed.
    pub(super) fn check(&self) -> Result<(), LimitError> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        let n_words = self.n_row_words
            + self.formulas.n_words()
            + 16 * (self.terms.nodes.len() + self.terms.conts.len())
            + 16 * self.joined.len();
        let limit = self.limits.max_arena();
        if n_words > limit {
            return Err(LimitError::new(LimitKind::Arena, limit, n_words));
        }
        Ok(())
    }

    fn give_up(&mut self, depth: usize) -> FormulaId {
        let error = LimitError::new(LimitKind::Nesting, MAX_DEPTH, depth);
        self.broken.get_or_insert(error);
        FALSE
    }

    /// Returns the formula of a continuation at a position.
    pub(super) fn expand(
        &mut self,
        cont: ContId,
        context: Context<'_>,
    ) -> FormulaId {
        self.expand_fresh(cont, context, 0)
    }

    /// Returns the formula that any of some continuations satisfies.
    ///
    /// Many at once share what follows them, as in `a?b?c?`, so they are
    /// expanded together; a few are likely to be known already.
    pub(super) fn expand_any(
        &mut self,
        conts: &[ContId],
        context: Context<'_>,
    ) -> FormulaId {
        if conts.len() > MAX_APART {
            let mut loops = Loops::default();
            let work = WorkList::new(conts, Loops::NONE);
            return self.expand_in(work, &mut loops, context, 0);
        }
        if let Some(&known) = self.joined.get(conts) {
            return known;
        }
        let mut out = Vec::with_capacity(conts.len());
        for &cont in conts {
            let formula = self.expand(cont, context);
            if formula == TRUE {
                return TRUE;
            }
            out.push(formula);
        }
        let formula = self.or(&out);
        let mut infos = conts.iter().map(|&cont| self.terms.cont_info(cont));
        if self.formulas.n_parts(formula) >= MIN_JOINED
            && infos.all(|info| !info.context)
            && self.broken.is_none()
        {
            self.joined.insert(conts.into(), formula);
        }
        formula
    }

    fn expand_fresh(
        &mut self,
        cont: ContId,
        context: Context<'_>,
        depth: usize,
    ) -> FormulaId {
        let free = !self.terms.cont_info(cont).context;
        if free && let Some(&formula) = self.expanded.get(&cont) {
            return formula;
        }
        let mut loops = Loops::default();
        let work = WorkList::new(&[cont], Loops::NONE);
        let formula = self.expand_in(work, &mut loops, context, depth);
        if free && self.broken.is_none() {
            self.expanded.insert(cont, formula);
        }
        formula
    }

    /// Expands all ways on from `cont`, as a work list. Only assertions
    /// recurse.
    fn expand_in(
        &mut self,
        work: WorkList,
        loops: &mut Loops,
        context: Context<'_>,
        depth: usize,
    ) -> FormulaId {
        if depth > MAX_DEPTH {
            return self.give_up(depth);
        }
        let entered = Loops::NONE;
        let mut place =
            Place { work, out: Vec::new(), loops, entered, context, depth };
        while let Some((mut cont, mut entered)) = place.work.pop() {
            if let Some(round) = place.loops.round_of(entered, cont) {
                let Some(rest) = round.rest else { continue };
                // The round is over. What is left of the repetition is not
                // inside of it, even where it looks like the next round.
                (cont, entered) = (rest, round.outer);
            }
            place.entered = entered;
            match self.terms.conts[cont] {
                Cont::Nil => place.out.push(END),
                Cont::Top => return TRUE,
                Cont::Here => place.out.push(HERE_NOW),
                Cont::Fail => {}
                Cont::Cons(node, tail) => {
                    self.expand_node(cont, node, tail, &mut place);
                }
            }
        }
        self.or(&place.out)
    }

    /// Expands `cont`, which begins with `node`.
    fn expand_node(
        &mut self,
        cont: ContId,
        node: NodeId,
        tail: ContId,
        place: &mut Place<'_>,
    ) {
        match self.terms.nodes[node].clone() {
            Node::Empty => {}
            Node::Epsilon => place.push(tail),
            Node::Class(class) => {
                place.out.push(self.formulas.step(class, tail, &self.terms));
            }
            Node::Cat(first, second) => {
                let tail = self.terms.cons(second, tail);
                place.push(self.terms.cons(first, tail));
            }
            Node::Alt(parts) => {
                for &part in parts.iter().rev() {
                    place.push(self.terms.cons(part, tail));
                }
            }
            Node::Rep { body, min, max } => {
                self.expand_repeat((body, min, max), tail, place);
            }
            Node::Words { list, lo, hi, depth } => {
                let out = &mut place.out;
                if self.expand_words(list, lo, hi, depth, tail, out) {
                    place.push(tail);
                }
            }
            Node::Start => {
                if place.context.previous.is_none() {
                    place.push(tail);
                }
            }
            Node::Previous { class, negative } => {
                if self.previous_in(class, place.context) != negative {
                    place.push(tail);
                }
            }
            Node::And(_) | Node::Not(_) => {
                let inner =
                    self.expand_inner(node, place.context, place.depth);
                if tail == NIL {
                    place.out.push(inner);
                    return;
                }
                place.out.push(self.formulas.then(inner, tail, &self.terms));
                if self.formulas.facts(inner).accepts {
                    place.push(tail);
                }
            }
            Node::End
            | Node::Boundary { .. }
            | Node::Ahead { .. }
            | Node::Behind { .. } => self.expand_assertions(cont, place),
        }
    }

    fn expand_repeat(
        &mut self,
        (body, min, max): (NodeId, u32, u32),
        tail: ContId,
        place: &mut Place<'_>,
    ) {
        let after = self.after_round(body, min, max, tail);
        if min == 0 {
            place.push(tail);
        }
        let maybe_empty = self.terms.node_info(body).min == 0;
        let inside = if maybe_empty && max > 1 {
            let rest = (min > 0).then(|| self.after_round(body, 0, max, tail));
            place.loops.enter(LoopEntry { outer: place.entered, after, rest })
        } else {
            place.entered
        };
        place.work.push(self.terms.cons(body, after), inside);
    }

    fn expand_assertions(&mut self, cont: ContId, place: &mut Place<'_>) {
        let (guards, rest) =
            self.take_assertions(cont, place.context, place.depth);
        let guard = self.formulas.and(&guards, &mut self.terms);
        match guard {
            FALSE => {}
            TRUE => place.push(rest),
            _ => {
                let rest = self.expand_in(
                    WorkList::new(&[rest], place.entered),
                    place.loops,
                    place.context,
                    place.depth + 1,
                );
                let both = self.formulas.and(&[guard, rest], &mut self.terms);
                place.out.push(both);
            }
        }
    }

    /// Returns the continuation after one round of a repetition.
    fn after_round(
        &mut self,
        body: NodeId,
        min: u32,
        max: u32,
        tail: ContId,
    ) -> ContId {
        let max = if max == UNBOUNDED { max } else { max - 1 };
        let rest = self.terms.repeat(body, min.saturating_sub(1), max);
        self.terms.cons(rest, tail)
    }

    /// Adds a step for each next character of some words. Returns whether
    /// one of them ends here.
    fn expand_words(
        &mut self,
        list: u32,
        lo: u32,
        hi: u32,
        depth: u32,
        tail: ContId,
        out: &mut Vec<FormulaId>,
    ) -> bool {
        let words = std::sync::Arc::clone(&self.terms.lists[list]);
        let next = |index: u32| {
            let rest = words[index as usize].get(depth as usize..);
            rest.unwrap_or_default().chars().next()
        };
        let mut at = lo;
        let mut ends = false;
        while at < hi {
            let Some(character) = next(at) else {
                ends = true;
                at += 1;
                continue;
            };
            let group = &words[at as usize..hi as usize];
            let width = group.partition_point(|word| {
                word.get(depth as usize..)
                    .is_some_and(|rest| rest.starts_with(character))
            });
            let end = at + u32::try_from(width).unwrap_or(hi - at);
            let depth =
                depth + u32::try_from(character.len_utf8()).unwrap_or(0);
            let rest = self.terms.words(list, at, end, depth);
            let after = self.terms.cons(rest, tail);
            let class = self.terms.class(CharSet::single(character));
            out.push(self.formulas.step(class, after, &self.terms));
            at = end.max(at + 1);
        }
        ends
    }

    /// Expands an intersection or complement as a language of its own.
    fn expand_inner(
        &mut self,
        node: NodeId,
        context: Context<'_>,
        depth: usize,
    ) -> FormulaId {
        match self.terms.nodes[node].clone() {
            Node::And(parts) => {
                let mut all = Vec::with_capacity(parts.len());
                for &part in &*parts {
                    let cont = self.terms.cons(part, NIL);
                    all.push(self.expand_fresh(cont, context, depth + 1));
                }
                self.formulas.and(&all, &mut self.terms)
            }
            Node::Not(inner) => {
                let cont = self.terms.cons(inner, NIL);
                let inner = self.expand_fresh(cont, context, depth + 1);
                self.formulas.not(inner, &self.terms)
            }
            _ => FALSE,
        }
    }

    /// Takes the assertions off the front of a continuation.
    fn take_assertions(
        &mut self,
        mut cont: ContId,
        context: Context<'_>,
        depth: usize,
    ) -> (Vec<FormulaId>, ContId) {
        let mut guards = Vec::new();
        while let Cont::Cons(node, tail) = self.terms.conts[cont] {
            let guard = match self.terms.nodes[node] {
                Node::End => END,
                Node::Boundary { word, negative } => {
                    self.boundary(word, negative, context)
                }
                Node::Ahead { body, negative } => {
                    let body = self.terms.cons(body, TOP);
                    let guard = self.expand_fresh(body, context, depth + 1);
                    self.negate_if(guard, negative)
                }
                Node::Behind { index, negative } => {
                    let side = context.behind.get(index as usize);
                    let side = side.copied().unwrap_or(FALSE);
                    let guard = self.here_value(side, depth + 1);
                    self.negate_if(guard, negative)
                }
                _ => break,
            };
            guards.push(guard);
            cont = tail;
            if guard == FALSE {
                break;
            }
        }
        (guards, cont)
    }

    fn negate_if(&mut self, formula: FormulaId, negative: bool) -> FormulaId {
        if negative {
            self.formulas.not(formula, &self.terms)
        } else {
            formula
        }
    }

    fn previous_in(&self, class: ClassId, context: Context<'_>) -> bool {
        context.previous.is_some_and(|previous| {
            self.terms.classes[class].contains(previous)
        })
    }

    /// A boundary lies here if exactly one of the two neighbours is a word
    /// character.
    fn boundary(
        &mut self,
        word: ClassId,
        negative: bool,
        context: Context<'_>,
    ) -> FormulaId {
        let next_is_word = self.formulas.step(word, TOP, &self.terms);
        let same = self.previous_in(word, context) != negative;
        self.negate_if(next_is_word, same)
    }

    /// Returns what a side automaton says at this position: true where its
    /// look-behind has just been matched. Look-ahead inside of it remains.
    fn here_value(&mut self, formula: FormulaId, depth: usize) -> FormulaId {
        if depth > 2 * MAX_DEPTH {
            return self.give_up(depth);
        }
        if !self.formulas.facts(formula).info.here {
            return formula;
        }
        match self.formulas.get(formula).clone() {
            Formula::Here => TRUE,
            Formula::Or(parts) => {
                let parts: Vec<FormulaId> = parts
                    .iter()
                    .map(|&part| self.here_value(part, depth + 1))
                    .collect();
                self.or(&parts)
            }
            Formula::And(parts) => {
                let parts: Vec<FormulaId> = parts
                    .iter()
                    .map(|&part| self.here_value(part, depth + 1))
                    .collect();
                self.formulas.and(&parts, &mut self.terms)
            }
            Formula::Not(inner) => {
                let inner = self.here_value(inner, depth + 1);
                self.formulas.not(inner, &self.terms)
            }
            // A step that leads to the end of the look-behind is not there.
            _ => FALSE,
        }
    }

    /// Returns true only if some suffix satisfies the formula, as far as
    /// that shows without a search.
    pub(super) fn is_surely_live(&self, formula: FormulaId) -> bool {
        let sure = |formula: FormulaId| {
            let facts = self.formulas.facts(formula);
            facts.accepts || (facts.info.plain && formula != FALSE)
        };
        match self.formulas.get(formula) {
            Formula::Or(parts) => parts.iter().any(|&part| sure(part)),
            _ => sure(formula),
        }
    }

    /// Returns true only if every text leads to a formula that some suffix
    /// satisfies, as far as that shows without a search: `.*x` never dies.
    pub(super) fn is_absorbing(&self, formula: FormulaId) -> bool {
        let absorbing = |formula: FormulaId| match *self.formulas.get(formula)
        {
            Formula::True | Formula::Step(ANY, TOP) => true,
            Formula::Step(ANY, tail) => {
                matches!(self.terms.conts[tail], Cont::Cons(ANY_STRING, _))
                    && self.terms.cont_info(tail).plain
            }
            _ => false,
        };
        match self.formulas.get(formula) {
            Formula::Or(parts) => parts.iter().any(|&part| absorbing(part)),
            _ => absorbing(formula),
        }
    }

    /// Returns the class and the count if a formula is one class with a
    /// count: `least` and `most` characters of it.
    pub(super) fn window(
        &self,
        formula: FormulaId,
    ) -> Option<(CharSet, u32, Option<u32>)> {
        let (step, may_end) = match self.formulas.get(formula) {
            Formula::Or(parts) => match **parts {
                [END, step] => (step, true),
                _ => return None,
            },
            _ => (formula, false),
        };
        let Formula::Step(class, tail) = *self.formulas.get(step) else {
            return None;
        };
        let (least, most) = match self.terms.conts[tail] {
            Cont::Nil => (0, 0),
            Cont::Cons(node, NIL) => match self.terms.nodes[node] {
                Node::Class(same) if same == class => (1, 1),
                Node::Rep { body, min, max }
                    if self.terms.nodes[body] == Node::Class(class) =>
                {
                    (min, max)
                }
                _ => return None,
            },
            _ => return None,
        };
        if may_end && least > 0 {
            return None;
        }
        let least = if may_end { 0 } else { least.checked_add(1)? };
        let most = match most {
            UNBOUNDED => None,
            most => Some(most.checked_add(1)?),
        };
        let class = self.terms.classes[class].clone();
        Some((class, least, most))
    }

    /// Returns the formula that any of `parts` satisfies.
    pub(super) fn any_of(&mut self, parts: &[FormulaId]) -> FormulaId {
        self.or(parts)
    }

    fn or(&mut self, parts: &[FormulaId]) -> FormulaId {
        if parts.is_empty() {
            return FALSE;
        }
        self.formulas.or(parts, &mut self.terms)
    }

    /// Returns the formula of a side automaton at the start of the text.
    pub(super) fn start_behind(
        &mut self,
        body: NodeId,
        context: Context<'_>,
    ) -> FormulaId {
        let here = self.terms.cons(body, HERE);
        let cont = self.terms.cons(ANY_STRING, here);
        self.expand(cont, context)
    }

    /// Takes `code_point` off `formula`. `context` is that after it.
    pub(super) fn derive(
        &mut self,
        formula: FormulaId,
        code_point: u32,
        context: Context<'_>,
    ) -> FormulaId {
        let mut memo = FxHashMap::default();
        self.derive_with(formula, code_point, context, &mut memo, 0)
    }

    fn derive_with(
        &mut self,
        formula: FormulaId,
        code_point: u32,
        context: Context<'_>,
        memo: &mut FxHashMap<FormulaId, FormulaId>,
        depth: usize,
    ) -> FormulaId {
        match *self.formulas.get(formula) {
            Formula::True => return TRUE,
            Formula::False | Formula::End | Formula::Here => return FALSE,
            Formula::Step(class, tail) => {
                return if self.terms.classes[class].contains(code_point) {
                    self.expand(tail, context)
                } else {
                    FALSE
                };
            }
            _ => {}
        }
        if let Some(&known) = memo.get(&formula) {
            return known;
        }
        if depth > MAX_DEPTH {
            return self.give_up(depth);
        }
        let derived = match self.formulas.get(formula).clone() {
            Formula::Or(parts) => {
                let mut out = Vec::new();
                let mut tails = Vec::new();
                for &part in &*parts {
                    if let Formula::Step(class, tail) =
                        *self.formulas.get(part)
                    {
                        if self.terms.classes[class].contains(code_point) {
                            tails.push(tail);
                        }
                        continue;
                    }
                    out.push(self.derive_with(
                        part,
                        code_point,
                        context,
                        memo,
                        depth + 1,
                    ));
                }
                out.push(self.expand_any(&tails, context));
                self.or(&out)
            }
            Formula::And(parts) => {
                let mut out = Vec::with_capacity(parts.len());
                for &part in &*parts {
                    let derived = self.derive_with(
                        part,
                        code_point,
                        context,
                        memo,
                        depth + 1,
                    );
                    out.push(derived);
                    if derived == FALSE {
                        break;
                    }
                }
                self.formulas.and(&out, &mut self.terms)
            }
            Formula::Not(inner) => {
                let inner = self.derive_with(
                    inner,
                    code_point,
                    context,
                    memo,
                    depth + 1,
                );
                self.formulas.not(inner, &self.terms)
            }
            Formula::Then(inner, tail) => {
                let inner = self.derive_with(
                    inner,
                    code_point,
                    context,
                    memo,
                    depth + 1,
                );
                let mut out =
                    vec![self.formulas.then(inner, tail, &self.terms)];
                if self.formulas.facts(inner).accepts {
                    out.push(self.expand(tail, context));
                }
                self.or(&out)
            }
            _ => FALSE,
        };
        memo.insert(formula, derived);
        derived
    }

    /// Collects the distinct classes that the next character is tested for.
    pub(super) fn leaf_classes(&self, roots: &[FormulaId]) -> Vec<ClassId> {
        let mut classes = Vec::new();
        let mut stack = roots.to_vec();
        let mut seen: FxHashSet<FormulaId> = FxHashSet::default();
        while let Some(formula) = stack.pop() {
            match self.formulas.get(formula) {
                Formula::Step(class, _) => classes.push(*class),
                Formula::Or(parts) | Formula::And(parts)
                    if seen.insert(formula) =>
                {
                    stack.extend_from_slice(parts);
                }
                Formula::Not(inner) | Formula::Then(inner, _)
                    if seen.insert(formula) =>
                {
                    stack.push(*inner);
                }
                _ => {}
            }
        }
        classes.sort_unstable();
        classes.dedup();
        classes
    }
}

/// An expansion under way.
struct Place<'a> {
    work: WorkList,
    /// The alternatives found so far.
    out: Vec<FormulaId>,
    loops: &'a mut Loops,
    /// The innermost loop around what is being expanded.
    entered: u32,
    context: Context<'a>,
    depth: usize,
}

impl Place<'_> {
    /// Adds a way on inside the same loops.
    fn push(&mut self, cont: ContId) {
        self.work.push(cont, self.entered);
    }
}

/// Continuations still to be expanded, each at most once.
struct WorkList {
    items: Vec<(ContId, u32)>,
    seen: Vec<(ContId, u32)>,
    index: FxHashSet<(ContId, u32)>,
}

impl WorkList {
    /// From here on a set is faster than looking through the list.
    const SMALL: usize = 24;

    fn new(conts: &[ContId], entered: u32) -> WorkList {
        let mut work = WorkList {
            items: Vec::new(),
            seen: Vec::new(),
            index: FxHashSet::default(),
        };
        for &cont in conts {
            work.push(cont, entered);
        }
        work
    }

    fn push(&mut self, cont: ContId, entered: u32) {
        if cont == FAIL {
            return;
        }
        let item = (cont, entered);
        if self.seen.len() < WorkList::SMALL {
            if self.seen.contains(&item) {
                return;
            }
            self.seen.push(item);
        } else {
            if self.index.is_empty() {
                self.index.extend(self.seen.iter().copied());
            }
            if !self.index.insert(item) {
                return;
            }
        }
        self.items.push(item);
    }

    fn pop(&mut self) -> Option<(ContId, u32)> {
        self.items.pop()
    }
}
