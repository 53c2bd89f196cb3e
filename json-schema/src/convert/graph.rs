//! Graphs whose edges are expressions, and the expressions of graphs.
//!
//! A place that leads to one other place only is taken out, and its ways are
//! joined with those that lead to it. What is nested like the parts of a
//! regular expression folds up into one; a place that is left over becomes a
//! rule, so that no graph makes a grammar much larger than itself.

use std::hash::Hash;

use maskwright_grammar_core::util::FxHashMap;

use super::{
    ConvertError, Trouble,
    expr::{Expr, MAX_DEPTH},
    rules::{RuleKind, Rules},
};

/// The place in which a text ends.
pub(super) const END: usize = 0;
/// The place in which a text starts.
pub(super) const START: usize = 1;

/// The largest label that is written more than once.
const MAX_COPIED: usize = 6;
/// The largest label that stays one expression.
const MAX_LABEL: usize = 400;

/// The most places of one object or array.
const MAX_PLACES: usize = 2_000;

/// A graph whose places are found by what is still asked there.
#[derive(Debug)]
pub(super) struct Places<K> {
    pub(super) graph: Graph,
    known: FxHashMap<K, usize>,
    todo: Vec<(K, usize)>,
}

impl<K: Copy + Eq + Hash> Places<K> {
    pub(super) fn new() -> Places<K> {
        Places {
            graph: Graph::new(),
            known: FxHashMap::default(),
            todo: Vec::new(),
        }
    }

    /// The next place whose ways are to be added.
    pub(super) fn next(&mut self) -> Option<(K, usize)> {
        self.todo.pop()
    }

    /// Adds a way to a place.
    pub(super) fn lead(
        &mut self,
        from: usize,
        place: K,
        label: Expr,
    ) -> Result<(), Trouble> {
        let to = if let Some(&known) = self.known.get(&place) {
            known
        } else {
            if self.known.len() >= MAX_PLACES {
                return Err(Trouble::TooMany);
            }
            let fresh = self.graph.add();
            self.known.insert(place, fresh);
            self.todo.push((place, fresh));
            fresh
        };
        self.graph.link(from, to, label);
        Ok(())
    }
}

/// Places and the ways between them.
#[derive(Debug)]
pub(super) struct Graph {
    /// For each place, those that it leads to, each once, and by which texts.
    ways: Vec<Vec<(usize, Expr)>>,
    /// For each place, those that lead to it; some may not any more.
    from: Vec<Vec<usize>>,
}

impl Graph {
    /// A graph of the two places that every graph has.
    pub(super) fn new() -> Graph {
        Graph { ways: vec![Vec::new(); 2], from: vec![Vec::new(); 2] }
    }

    /// Adds a place.
    pub(super) fn add(&mut self) -> usize {
        self.ways.push(Vec::new());
        self.from.push(Vec::new());
        self.ways.len() - 1
    }

    /// Adds a way.
    pub(super) fn link(&mut self, from: usize, to: usize, label: Expr) {
        if label.is_never() {
            return;
        }
        let ways = &mut self.ways[from];
        if let Some((_, old)) = ways.iter_mut().find(|(end, _)| *end == to) {
            *old = Expr::choice([old.clone(), label]);
        } else {
            ways.push((to, label));
            self.from[to].push(from);
        }
    }

    /// The texts that lead from the start to the end.
    pub(super) fn expr(
        mut self,
        hint: &str,
        rules: &mut Rules,
    ) -> Result<Expr, ConvertError> {
        self.trim();
        let mut queue: Vec<usize> = (START + 1..self.ways.len()).collect();
        while let Some(place) = queue.pop() {
            let Some(onward) = self.single(place) else { continue };
            self.take_out(place, onward, hint, rules, &mut queue)?;
        }
        self.finish(hint, rules)
    }

    /// Drops places that no text passes on its way to the end.
    fn trim(&mut self) {
        let mut ends = vec![false; self.ways.len()];
        let mut stack = vec![END];
        while let Some(place) = stack.pop() {
            if !std::mem::replace(&mut ends[place], true) {
                stack.extend(&self.from[place]);
            }
        }
        let mut starts = vec![false; self.ways.len()];
        let mut stack = vec![START];
        while let Some(place) = stack.pop() {
            if !std::mem::replace(&mut starts[place], true) {
                stack.extend(self.ways[place].iter().map(|way| way.0));
            }
        }
        for (place, ways) in self.ways.iter_mut().enumerate() {
            if starts[place] {
                ways.retain(|way| ends[way.0]);
            } else {
                ways.clear();
            }
        }
        for from in &mut self.from {
            from.retain(|&place| starts[place]);
        }
    }

    /// The only place that a place leads to, itself aside.
    fn single(&self, place: usize) -> Option<usize> {
        let mut others = self.ways[place].iter().filter(|way| way.0 != place);
        let (only, _) = others.next()?;
        others.next().is_none().then_some(*only)
    }

    fn take_out(
        &mut self,
        place: usize,
        onward: usize,
        hint: &str,
        rules: &mut Rules,
        queue: &mut Vec<usize>,
    ) -> Result<(), ConvertError> {
        let mut label = Expr::empty();
        for (to, more) in std::mem::take(&mut self.ways[place]) {
            label = if to == place {
                Expr::seq([Expr::star(more), label])
            } else {
                Expr::seq([label, more])
            };
        }
        let mut sources = std::mem::take(&mut self.from[place]);
        sources.retain(|&source| source != place);
        let is_large = label.size() > MAX_LABEL
            || label.depth() > MAX_DEPTH / 2
            || sources.len() > 1 && label.size() > MAX_COPIED;
        if is_large {
            label = rules.shared(hint, label)?;
        }
        for source in sources {
            let ways = &mut self.ways[source];
            let at = ways.iter().position(|way| way.0 == place);
            let Some(at) = at else { continue };
            let (_, before) = ways.remove(at);
            let whole = Expr::seq([before, label.clone()]);
            let whole = rules.shallow(hint, whole)?;
            self.link(source, onward, whole);
            self.keep_shallow(source, onward, hint, rules)?;
            if source > START {
                queue.push(source);
            }
        }
        Ok(())
    }

    /// Gives a label that nests too deep a rule of its own.
    fn keep_shallow(
        &mut self,
        from: usize,
        to: usize,
        hint: &str,
        rules: &mut Rules,
    ) -> Result<(), ConvertError> {
        for (end, label) in &mut self.ways[from] {
            if *end == to {
                *label = rules.shallow(hint, label.clone())?;
            }
        }
        Ok(())
    }

    /// Writes what is left: one way, or a rule for each place.
    fn finish(
        self,
        hint: &str,
        rules: &mut Rules,
    ) -> Result<Expr, ConvertError> {
        let is_left = |place: &usize| !self.ways[*place].is_empty();
        let left: Vec<usize> =
            (START + 1..self.ways.len()).filter(is_left).collect();
        let returns = self.ways.iter().flatten().any(|way| way.0 == START);
        let mut names = vec![None; self.ways.len()];
        for place in left {
            names[place] = Some(rules.declare(hint, RuleKind::Part)?);
        }
        if returns {
            names[START] = Some(rules.declare(hint, RuleKind::Part)?);
        }
        let mut start = Expr::never();
        for (place, ways) in self.ways.iter().enumerate() {
            let ways = ways.iter().map(|(to, label)| {
                let after = names[*to].map_or_else(Expr::empty, Expr::rule);
                Expr::seq([label.clone(), after])
            });
            let body = Expr::choice(ways);
            match (place, names[place]) {
                (_, Some(rule)) => rules.define(rule, body),
                (START, None) => start = body,
                (_, None) => {}
            }
        }
        Ok(names[START].map_or(start, Expr::rule))
    }
}
