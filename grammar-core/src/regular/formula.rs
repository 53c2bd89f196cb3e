//! Boolean formulas over the rest of the text.
//!
//! A formula says which suffixes are still accepted. Its leaves are the end
//! of the text, and steps: one character of a class, then a continuation.
//! Formulas are hash-consed and kept in a simplified form, which is what
//! keeps the number of states small; no simplification is needed for
//! correctness.

use std::sync::Arc;

use super::intern::Interner;
use super::term::{
    ANY, ClassId, Cont, ContId, INFINITE, Info, Node, NodeId, TOP, Terms,
};

/// The number of a [`Formula`] in its language.
pub(super) type FormulaId = u32;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum Formula {
    False,
    True,
    /// The text ends here.
    End,
    /// The tracked look-behind ends here.
    Here,
    Step(ClassId, ContId),
    /// At least one character that takes the first formula to acceptance,
    /// then the continuation.
    Then(FormulaId, ContId),
    /// Sorted, distinct, at least two.
    Or(Arc<[FormulaId]>),
    /// Sorted, distinct, at least two.
    And(Arc<[FormulaId]>),
    Not(FormulaId),
}

pub(super) const FALSE: FormulaId = 0;
pub(super) const TRUE: FormulaId = 1;
pub(super) const END: FormulaId = 2;
pub(super) const HERE_NOW: FormulaId = 3;

/// What is known of a formula without any search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) info: Info,
    /// It holds at the end of the text.
    pub(super) accepts: bool,
    /// How far it is from what accepts, about: the shortest matches of all
    /// that must hold at once, added up.
    pub(super) effort: u64,
    /// The number of leaves and operators, saturating.
    pub(super) size: u32,
    /// How deep operators nest, saturating.
    pub(super) depth: u16,
}

/// All formulas of one language.
#[derive(Debug)]
pub(super) struct Formulas {
    table: Interner<Formula>,
    facts: Vec<Facts>,
    /// Words taken by the lists of all operators.
    n_words: usize,
}

impl Formulas {
    pub(super) fn new(terms: &Terms) -> Formulas {
        let mut formulas =
            Formulas { table: Interner::new(), facts: Vec::new(), n_words: 0 };
        for leaf in
            [Formula::False, Formula::True, Formula::End, Formula::Here]
        {
            formulas.intern(leaf, terms);
        }
        formulas
    }

    pub(super) fn get(&self, id: FormulaId) -> &Formula {
        &self.table[id]
    }

    pub(super) fn facts(&self, id: FormulaId) -> &Facts {
        &self.facts[id as usize]
    }

    /// The number of alternatives.
    pub(super) fn n_parts(&self, id: FormulaId) -> usize {
        match &self.table[id] {
            Formula::Or(parts) => parts.len(),
            _ => 1,
        }
    }

    /// Words of memory taken, about.
    pub(super) fn n_words(&self) -> usize {
        self.n_words + 16 * self.table.len()
    }

    fn intern(&mut self, formula: Formula, terms: &Terms) -> FormulaId {
        let (id, new) = self.table.intern(formula);
        if new {
            let facts = self.compute_facts(id, terms);
            self.facts.push(facts);
            if let Formula::Or(parts) | Formula::And(parts) = &self.table[id] {
                self.n_words += parts.len();
            }
        }
        id
    }

    fn compute_facts(&self, id: FormulaId, terms: &Terms) -> Facts {
        let leaf = |info: Info, accepts| Facts {
            info,
            accepts,
            effort: info.min,
            size: 1,
            depth: 0,
        };
        let vague = Info {
            max: INFINITE,
            plain: false,
            dense: false,
            ..Info::exactly(0)
        };
        match &self.table[id] {
            Formula::False => leaf(vague, false),
            Formula::True => leaf(Info::any(), true),
            Formula::End => leaf(Info::exactly(0), true),
            Formula::Here => leaf(Info { here: true, ..vague }, false),
            Formula::Step(_, tail) => {
                let tail = terms.cont_info(*tail);
                leaf(Info::exactly(1).then(tail), false)
            }
            Formula::Then(inner, tail) => {
                let inner = self.facts(*inner);
                let tail = terms.cont_info(*tail);
                let info = inner.info.then(tail);
                let info = Info {
                    min: info.min.max(1),
                    plain: false,
                    dense: false,
                    ..info
                };
                Facts {
                    info,
                    accepts: false,
                    effort: inner.effort.saturating_add(tail.min),
                    size: inner.size.saturating_add(1),
                    depth: inner.depth.saturating_add(1),
                }
            }
            Formula::Or(parts) => {
                let infos: Vec<Info> =
                    parts.iter().map(|&p| self.facts(p).info).collect();
                let accepts = parts.iter().any(|&p| self.facts(p).accepts);
                let efforts = parts.iter().map(|&p| self.facts(p).effort);
                let effort = efforts.min().unwrap_or_default();
                let info = Info::either(&infos);
                self.operator(info, accepts, effort, parts)
            }
            Formula::And(parts) => {
                let mut info = vague;
                for &part in &**parts {
                    let part = self.facts(part).info;
                    info.min = info.min.max(part.min);
                    info.max = info.max.min(part.max);
                    info.context |= part.context;
                    info.here |= part.here;
                }
                if info.here {
                    (info.min, info.max) = (0, INFINITE);
                }
                let accepts = parts.iter().all(|&p| self.facts(p).accepts);
                let efforts = parts.iter().map(|&p| self.facts(p).effort);
                let effort = efforts.fold(0, u64::saturating_add);
                self.operator(info, accepts, effort, parts)
            }
            Formula::Not(inner) => {
                let facts = self.facts(*inner);
                let info = Info {
                    context: facts.info.context,
                    here: facts.info.here,
                    ..vague
                };
                self.operator(info, !facts.accepts, 0, &[*inner])
            }
        }
    }

    fn operator(
        &self,
        info: Info,
        accepts: bool,
        effort: u64,
        parts: &[FormulaId],
    ) -> Facts {
        let sizes = parts.iter().map(|&part| self.facts(part).size);
        let depths = parts.iter().map(|&part| self.facts(part).depth);
        Facts {
            info: Info { needs_start: false, ..info },
            accepts,
            effort,
            size: sizes.fold(1, u32::saturating_add),
            depth: depths.max().unwrap_or(0).saturating_add(1),
        }
    }

    /// One character of `class`, then `tail`.
    pub(super) fn step(
        &mut self,
        class: ClassId,
        tail: ContId,
        terms: &Terms,
    ) -> FormulaId {
        let dead = tail == super::term::FAIL
            || terms.classes[class].is_empty()
            || terms.cont_info(tail).needs_start;
        if dead {
            return FALSE;
        }
        self.intern(Formula::Step(class, tail), terms)
    }

    /// A non-empty word of `inner`, then `tail`.
    pub(super) fn then(
        &mut self,
        inner: FormulaId,
        tail: ContId,
        terms: &Terms,
    ) -> FormulaId {
        if inner == FALSE || inner == END || tail == super::term::FAIL {
            return FALSE;
        }
        self.intern(Formula::Then(inner, tail), terms)
    }

    pub(super) fn not(
        &mut self,
        inner: FormulaId,
        terms: &Terms,
    ) -> FormulaId {
        match self.table[inner] {
            Formula::False => TRUE,
            Formula::True => FALSE,
            Formula::Not(inner) => inner,
            _ => self.intern(Formula::Not(inner), terms),
        }
    }

    /// Any of `parts`.
    pub(super) fn or(
        &mut self,
        parts: &[FormulaId],
        terms: &mut Terms,
    ) -> FormulaId {
        if let [only] = *parts {
            return only;
        }
        let mut parts = self.flatten(parts, true);
        if parts.first() == Some(&TRUE) || parts.get(1) == Some(&TRUE) {
            return TRUE;
        }
        parts.retain(|&part| part != FALSE);
        if parts.len() > 1 {
            self.join_steps(&mut parts, terms);
            if self.absorb_in_or(&mut parts, terms) {
                return TRUE;
            }
        }
        match *parts {
            [] => FALSE,
            [only] => only,
            _ => self.intern(Formula::Or(parts.into()), terms),
        }
    }

    /// All of `parts`.
    pub(super) fn and(
        &mut self,
        parts: &[FormulaId],
        terms: &mut Terms,
    ) -> FormulaId {
        if let [only] = *parts {
            return only;
        }
        let mut work = parts.to_vec();
        loop {
            let mut parts = self.flatten(&work, false);
            if parts.first() == Some(&FALSE) {
                return FALSE;
            }
            parts.retain(|&part| part != TRUE);
            if parts.len() > 1 {
                if self.is_contradiction(&parts) {
                    return FALSE;
                }
                if let Some(end) = self.and_with_end(&parts) {
                    return end;
                }
                if !self.meet_steps(&mut parts, terms) {
                    return FALSE;
                }
                if self.simplify_in_and(&mut parts, terms) {
                    work = parts;
                    continue;
                }
            }
            return match *parts {
                [] => TRUE,
                [only] => only,
                _ => self.intern(Formula::And(parts.into()), terms),
            };
        }
    }

    /// Splices nested operators of the same kind, sorts, drops duplicates.
    fn flatten(&self, parts: &[FormulaId], or: bool) -> Vec<FormulaId> {
        let mut out = Vec::with_capacity(parts.len());
        for &part in parts {
            match &self.table[part] {
                Formula::Or(inner) if or => out.extend_from_slice(inner),
                Formula::And(inner) if !or => out.extend_from_slice(inner),
                _ => out.push(part),
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Joins steps to the same continuation, and steps whose continuations
    /// differ only in the count of their first repetition.
    fn join_steps(&mut self, parts: &mut Vec<FormulaId>, terms: &mut Terms) {
        let mut steps: Vec<(ContId, ClassId)> = Vec::new();
        for &part in &*parts {
            if let Formula::Step(class, tail) = self.table[part] {
                steps.push((tail, class));
            }
        }
        if steps.len() < 2 {
            return;
        }
        let n_before = steps.len();
        join_counts(&mut steps, terms);
        join_classes(&mut steps, terms);
        if steps.len() == n_before {
            return;
        }
        parts.retain(|&p| !matches!(self.table[p], Formula::Step(..)));
        for (tail, class) in steps {
            parts.push(self.step(class, tail, terms));
        }
        parts.sort_unstable();
        parts.dedup();
    }

    /// Drops what another alternative covers. Returns true when together
    /// they cover everything.
    fn absorb_in_or(
        &mut self,
        parts: &mut Vec<FormulaId>,
        terms: &mut Terms,
    ) -> bool {
        let negated = |&part: &FormulaId| match self.table[part] {
            Formula::Not(inner) => parts.binary_search(&inner).is_ok(),
            _ => false,
        };
        if parts.iter().any(negated) {
            return true;
        }
        let accepts =
            |id: FormulaId| id != END && self.facts[id as usize].accepts;
        if parts.iter().any(|&part| accepts(part)) {
            parts.retain(|&part| part != END);
        }
        let free = self.table_step_to_top(parts);
        if let Some(free) = free
            && self.absorb_by_free_step(parts, free, terms)
        {
            return true;
        }
        let covered: Vec<FormulaId> = parts
            .iter()
            .copied()
            .filter(|&part| match &self.table[part] {
                Formula::And(inner) => {
                    inner.iter().any(|p| parts.binary_search(p).is_ok())
                }
                _ => false,
            })
            .collect();
        parts.retain(|part| !covered.contains(part));
        false
    }

    /// Finds the step after which anything may follow. There is at most one
    /// since steps to the same continuation have been joined.
    fn table_step_to_top(&self, parts: &[FormulaId]) -> Option<FormulaId> {
        parts
            .iter()
            .copied()
            .find(|&part| matches!(self.table[part], Formula::Step(_, TOP)))
    }

    fn absorb_by_free_step(
        &mut self,
        parts: &mut Vec<FormulaId>,
        free: FormulaId,
        terms: &mut Terms,
    ) -> bool {
        let Formula::Step(free_class, _) = self.table[free] else {
            return false;
        };
        if free_class == ANY {
            if parts.iter().any(|&part| self.facts(part).accepts) {
                return true;
            }
            parts.retain(|&part| {
                part == free || self.facts[part as usize].info.min == 0
            });
            return false;
        }
        let taken = terms.classes[free_class].clone();
        let mut changed = false;
        for part in parts.iter_mut() {
            let Formula::Step(class, tail) = self.table[*part] else {
                continue;
            };
            if *part == free || terms.classes[class].is_disjoint(&taken) {
                continue;
            }
            let left = terms.classes[class].difference(&taken);
            let class = terms.class(left);
            *part = self.step(class, tail, terms);
            changed = true;
        }
        if changed {
            parts.retain(|&part| part != FALSE);
            parts.sort_unstable();
            parts.dedup();
        }
        false
    }

    fn is_contradiction(&self, parts: &[FormulaId]) -> bool {
        let (mut min, mut max) = (0, INFINITE);
        for &part in parts {
            if let Formula::Not(inner) = self.table[part]
                && parts.binary_search(&inner).is_ok()
            {
                return true;
            }
            let info = self.facts(part).info;
            if !info.here {
                min = min.max(info.min);
                max = max.min(info.max);
            }
        }
        min > max
    }

    /// With the end of the text among them, the others are decided.
    fn and_with_end(&self, parts: &[FormulaId]) -> Option<FormulaId> {
        let decided = parts.contains(&END)
            && parts.iter().all(|&part| !self.facts(part).info.here);
        decided.then(|| {
            if parts.iter().all(|&part| self.facts(part).accepts) {
                END
            } else {
                FALSE
            }
        })
    }

    /// Narrows the classes of all steps to what they have in common.
    /// Returns false when that is nothing.
    fn meet_steps(
        &mut self,
        parts: &mut Vec<FormulaId>,
        terms: &mut Terms,
    ) -> bool {
        let classes: Vec<ClassId> = parts
            .iter()
            .filter_map(|&part| match self.table[part] {
                Formula::Step(class, _) => Some(class),
                _ => None,
            })
            .collect();
        let Some(&first) = classes.first() else { return true };
        if classes.iter().all(|&class| class == first) {
            return true;
        }
        let mut common = terms.classes[first].clone();
        for &class in &classes[1..] {
            common = common.intersection(&terms.classes[class]);
        }
        if common.is_empty() {
            return false;
        }
        let class = terms.class(common);
        for part in parts.iter_mut() {
            if let Formula::Step(_, tail) = self.table[*part] {
                *part = self.step(class, tail, terms);
            }
        }
        parts.sort_unstable();
        parts.dedup();
        true
    }

    /// Uses each conjunct as a fact inside the others. Returns true when
    /// something changed.
    fn simplify_in_and(
        &mut self,
        parts: &mut Vec<FormulaId>,
        terms: &mut Terms,
    ) -> bool {
        let ors: Vec<(FormulaId, Arc<[FormulaId]>)> = parts
            .iter()
            .filter_map(|&part| match &self.table[part] {
                Formula::Or(inner) => Some((part, Arc::clone(inner))),
                _ => None,
            })
            .collect();
        for (or, inner) in ors {
            if inner.iter().any(|part| parts.binary_search(part).is_ok()) {
                parts.retain(|&part| part != or);
                return true;
            }
            let simpler: Vec<FormulaId> = inner
                .iter()
                .map(|&part| self.assume(part, or, parts, terms))
                .collect();
            if simpler[..] != inner[..] {
                let simpler = self.or(&simpler, terms);
                parts.retain(|&part| part != or);
                parts.push(simpler);
                return true;
            }
        }
        false
    }

    /// Simplifies one alternative of `or`, where all of `facts` hold.
    fn assume(
        &mut self,
        part: FormulaId,
        or: FormulaId,
        facts: &[FormulaId],
        terms: &mut Terms,
    ) -> FormulaId {
        let holds = |part: &FormulaId| {
            *part != or && facts.binary_search(part).is_ok()
        };
        match &self.table[part] {
            Formula::Not(inner) if holds(inner) => FALSE,
            Formula::And(inner) if inner.iter().any(holds) => {
                let rest: Vec<FormulaId> =
                    inner.iter().copied().filter(|p| !holds(p)).collect();
                self.and(&rest, terms)
            }
            _ => part,
        }
    }
}

/// Joins `c x{a,b} k` and `c x{c,d} k` where the counts overlap or touch.
fn join_counts(steps: &mut Vec<(ContId, ClassId)>, terms: &mut Terms) {
    let mut counted: Vec<(ClassId, NodeId, ContId, u32, u32)> = Vec::new();
    let mut rest = Vec::with_capacity(steps.len());
    for &(tail, class) in &*steps {
        match counted_tail(tail, terms) {
            Some((body, after, min, max)) => {
                counted.push((class, body, after, min, max));
            }
            None => rest.push((tail, class)),
        }
    }
    if counted.is_empty() {
        return;
    }
    counted.sort_unstable();
    let mut joined: Vec<(ClassId, NodeId, ContId, u32, u32)> = Vec::new();
    for item in counted {
        let (class, body, after, min, max) = item;
        match joined.last_mut() {
            Some(last)
                if (last.0, last.1, last.2) == (class, body, after)
                    && min <= last.4.saturating_add(1) =>
            {
                last.4 = last.4.max(max);
            }
            _ => joined.push(item),
        }
    }
    for (class, body, after, min, max) in joined {
        let node = terms.repeat(body, min, max);
        rest.push((terms.cons(node, after), class));
    }
    *steps = rest;
}

/// Splits a continuation that begins with a repetition.
fn counted_tail(
    tail: ContId,
    terms: &Terms,
) -> Option<(NodeId, ContId, u32, u32)> {
    let Cont::Cons(node, after) = terms.conts[tail] else { return None };
    match terms.nodes[node] {
        Node::Rep { body, min, max } => Some((body, after, min, max)),
        _ => None,
    }
}

/// Joins the classes of steps to the same continuation.
fn join_classes(steps: &mut Vec<(ContId, ClassId)>, terms: &mut Terms) {
    steps.sort_unstable();
    steps.dedup();
    let mut out: Vec<(ContId, ClassId)> = Vec::with_capacity(steps.len());
    let mut rest = &steps[..];
    while let Some(&(tail, class)) = rest.first() {
        let n = rest.iter().take_while(|step| step.0 == tail).count();
        let class = if n == 1 {
            class
        } else {
            let all = rest[..n].iter().flat_map(|&(_, class)| {
                terms.classes[class].ranges().iter().copied()
            });
            let set = all.collect();
            terms.class(set)
        };
        out.push((tail, class));
        rest = &rest[n..];
    }
    *steps = out;
}
