//! Arrays: a place for each of the first items, and a count of the others.

use maskwright_grammar_core::util::FxHashMap;

use super::{
    ConvertError, Trouble,
    basics::Basic,
    expr::Expr,
    graph::{END, Graph, Places, START},
    values::Converter,
};
use crate::formula::{ArraySite, Form, FormulaId};

impl Converter {
    /// The arrays of a typed formula.
    pub(super) fn array(
        &mut self,
        value: FormulaId,
        typed: FormulaId,
        hint: &str,
    ) -> Result<Expr, ConvertError> {
        if typed.is_false() {
            return Ok(Expr::never());
        }
        if typed.is_true() {
            return self.basic(Basic::Array);
        }
        let typed = self.uncompared(value, typed);
        let hint = hint.trim_start_matches("root-");
        let items = match self.array_graph(value, typed, hint) {
            Ok(items) => items,
            Err(Trouble::Error(error)) => return Err(error),
            Err(Trouble::TooMany) => {
                let keywords = [
                    "contains",
                    "anyOf",
                    "oneOf",
                    "not",
                    "if",
                    "unevaluatedItems",
                ];
                let reason =
                    "what it asks of items together would need too many rules";
                self.note(value, &keywords, reason);
                let site = self.formulas.make_array_site(typed);
                self.flat_array(value, &site, hint)?
            }
        };
        let gap = self.basics.gap(&mut self.rules)?;
        let (open, close) = (Expr::literal("["), Expr::literal("]"));
        Ok(Expr::seq([open, gap, items, close]))
    }

    /// An array formula that does not ask which items are equal.
    fn uncompared(&mut self, value: FormulaId, typed: FormulaId) -> FormulaId {
        if !self.formulas.compares_items(typed) {
            return typed;
        }
        // Where there is one item at most, that is known.
        let at_most_one =
            self.formulas.conjuncts(typed).into_iter().any(|part| {
                matches!(self.formulas.form(part), Form::LenLe(0 | 1))
            });
        if !at_most_one {
            let reason = "a grammar cannot compare items; they may be equal";
            self.note(value, &["uniqueItems"], reason);
        }
        self.formulas.rewrite(typed, &mut FxHashMap::default(), &|form| {
            match form {
                Form::Unique => Some(FormulaId::TRUE),
                Form::Repeated => Some(FormulaId::constant(!at_most_one)),
                _ => None,
            }
        })
    }

    /// The items between the brackets.
    fn array_graph(
        &mut self,
        value: FormulaId,
        typed: FormulaId,
        hint: &str,
    ) -> Result<Expr, Trouble> {
        let site = self.formulas.make_array_site(typed);
        if site.is_flat() {
            return Ok(self.flat_array(value, &site, hint)?);
        }
        // What is asked of the items to come, and whether none has come.
        let mut walk = Places::new();
        walk.lead(START, (typed, true), Expr::empty())?;
        let hint = format!("{hint}-item");
        let gap = self.basics.gap(&mut self.rules)?;
        let comma = self.basics.comma(&mut self.rules)?;
        while let Some(((formula, is_first), at)) = walk.next() {
            if self.formulas.holds_at_end(formula, false) {
                let gap = if is_first { Expr::empty() } else { gap.clone() };
                walk.graph.link(at, END, gap);
            }
            let pending = self.formulas.derive_item(formula);
            let pending = self.formulas.factor(pending);
            let terms = self.formulas.terms(pending);
            self.formulas.check_limits()?;
            for term in terms.ok_or(Trouble::TooMany)? {
                let goal = self.formulas.and(term.goals.iter().copied());
                let item = self.value(goal, &hint)?;
                let comma =
                    if is_first { Expr::empty() } else { comma.clone() };
                let label = Expr::seq([comma, item]);
                if !term.rest.is_false() {
                    walk.lead(at, (term.rest, false), label)?;
                }
            }
        }
        Ok(walk.graph.expr(&hint, &mut self.rules)?)
    }

    /// The items of a table.
    fn flat_array(
        &mut self,
        value: FormulaId,
        site: &ArraySite,
        hint: &str,
    ) -> Result<Expr, ConvertError> {
        let keywords = ["minItems", "maxItems"];
        let (min, max) = self.counts(value, site.min, site.max, keywords);
        let hint = format!("{hint}-item");
        let comma = self.basics.comma(&mut self.rules)?;
        let gap = self.basics.gap(&mut self.rules)?;
        let mut graph = Graph::new();
        let mut at = START;
        let mut read = 0_u32;
        let take = |this: &mut Converter, goal| {
            let item = this.value(goal, &hint)?;
            Ok::<_, ConvertError>((item.clone(), [comma.clone(), item]))
        };
        for &goal in &site.prefix {
            if read >= min {
                let gap = if read == 0 { Expr::empty() } else { gap.clone() };
                graph.link(at, END, gap);
            }
            if max.is_some_and(|max| read >= max) {
                return graph.expr(&hint, &mut self.rules);
            }
            let (item, more) = take(self, goal)?;
            let next = graph.add();
            let label = if read == 0 { item } else { Expr::seq(more) };
            graph.link(at, next, label);
            (at, read) = (next, read + 1);
        }
        if max == Some(read) {
            let gap = if read == 0 { Expr::empty() } else { gap };
            graph.link(at, END, gap);
            return graph.expr(&hint, &mut self.rules);
        }
        let min = min.saturating_sub(read);
        let max = max.map(|max| max.saturating_sub(read));
        let (item, more) = take(self, site.tail)?;
        let more = Expr::seq(more);
        let rest = if read > 0 {
            let items = Expr::repeat(more, min, max);
            Expr::seq([items, gap])
        } else {
            let less = max.map(|max| max.saturating_sub(1));
            let items = Expr::repeat(more, min.saturating_sub(1), less);
            let items = Expr::seq([item, items, gap]);
            if min == 0 { Expr::optional(items) } else { items }
        };
        // An unsatisfiable tail is left out by what `repeat` makes of it.
        graph.link(at, END, rest);
        graph.expr(&hint, &mut self.rules)
    }
}
