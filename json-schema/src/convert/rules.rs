//! The rules of the grammar that is made, and how they become a text.

use std::fmt::Write as _;

use maskwright_grammar_core::util::{FxHashMap, FxHashSet};

use super::{
    ConvertError,
    expr::{Expr, Kind, MAX_DEPTH, RuleId},
    print,
};

/// The most rules, so that a schema that unfolds without end is an error.
const MAX_RULES: usize = 50_000;
/// The largest expression that is put in the place of the name of its rule,
/// where that is named once.
const MAX_INLINE: usize = 40;
/// As [`MAX_INLINE`], for rules that a place of the schema has given a name.
const MAX_INLINE_NAMED: usize = 14;

/// A rule.
#[derive(Debug)]
struct Rule {
    /// What it should be called.
    hint: String,
    kind: RuleKind,
    body: Expr,
}

/// What a rule is to people.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RuleKind {
    /// A thing that everybody knows, such as a string.
    Basic,
    /// A place of the schema.
    Place,
    /// A part of another rule.
    Part,
}

/// The rules made so far.
#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: Vec<Rule>,
    /// Rules without a name of their own, by what they derive.
    known: FxHashMap<Expr, RuleId>,
}

impl Rules {
    /// Makes a rule that derives nothing yet.
    pub(super) fn declare(
        &mut self,
        hint: &str,
        kind: RuleKind,
    ) -> Result<RuleId, ConvertError> {
        self.add(hint, kind, Expr::never())
    }

    fn add(
        &mut self,
        hint: &str,
        kind: RuleKind,
        body: Expr,
    ) -> Result<RuleId, ConvertError> {
        let id = RuleId(self.rules.len());
        if id.0 >= MAX_RULES {
            return Err(ConvertError::TooLarge {
                which: "rules",
                limit: MAX_RULES,
                value: id.0 + 1,
            });
        }
        self.rules.push(Rule { hint: hint.to_owned(), kind, body });
        Ok(id)
    }

    /// Says what a rule derives.
    pub(super) fn define(&mut self, rule: RuleId, body: Expr) {
        self.rules[rule.0].body = body;
    }

    /// A name for an expression: that of a rule that derives it.
    pub(super) fn shared(
        &mut self,
        hint: &str,
        body: Expr,
    ) -> Result<Expr, ConvertError> {
        if body.size() == 1 {
            return Ok(body);
        }
        if let Some(&rule) = self.known.get(&body) {
            return Ok(Expr::rule(rule));
        }
        let hint = if hint == "root" { "part" } else { hint };
        let rule = self.add(hint, RuleKind::Part, body.clone())?;
        self.known.insert(body, rule);
        Ok(Expr::rule(rule))
    }

    /// An expression that is not too deep to be put into another one.
    pub(super) fn shallow(
        &mut self,
        hint: &str,
        body: Expr,
    ) -> Result<Expr, ConvertError> {
        if body.depth() < MAX_DEPTH / 2 {
            return Ok(body);
        }
        self.shared(hint, body)
    }

    /// Makes the grammar that starts at a rule ready to be written. False
    /// where that derives nothing.
    pub(super) fn finish(&mut self, root: RuleId) -> bool {
        self.prune();
        self.forward();
        self.inline(root);
        !self.rules[root.0].body.is_never()
    }

    /// Whether the grammar that starts at a rule needs another one.
    pub(super) fn is_used(&self, root: RuleId, rule: RuleId) -> bool {
        self.reachable(root).contains(&rule)
    }

    /// Writes the grammar that starts at a rule.
    pub(super) fn text(&self, root: RuleId) -> String {
        let order = self.reachable(root);
        let names = self.names(root, &order);
        let name = |rule: RuleId| names[&rule].clone();
        let mut out = String::new();
        for &rule in &order {
            let body = print::body(&self.rules[rule.0].body, &name);
            let gap = if body.starts_with('\n') { "" } else { " " };
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{} ::={gap}{body}", name(rule));
        }
        out
    }

    /// Puts a rule in the place of those that are only its other names.
    fn forward(&mut self) {
        let ends: Vec<Option<Expr>> = (0..self.rules.len())
            .map(|index| self.forwarded(RuleId(index)))
            .collect();
        for rule in &mut self.rules {
            rule.body = rule.body.replaced(&|used| ends[used.0].clone());
        }
    }

    /// What a rule is another name of, if it is.
    fn forwarded(&self, rule: RuleId) -> Option<Expr> {
        let mut found = None;
        let mut at = rule;
        // No rule names itself only: such rules derive nothing.
        while let Kind::Rule(next) = *self.rules[at.0].body.kind() {
            found = Some(Expr::rule(next));
            at = next;
        }
        found
    }

    /// Takes out what derives nothing.
    fn prune(&mut self) {
        let mut derives = vec![false; self.rules.len()];
        loop {
            let mut changed = false;
            // Parts come before what they are parts of, and places after.
            let all = 0..self.rules.len();
            for index in all.clone().chain(all.rev()) {
                let body = &self.rules[index].body;
                if !derives[index] && is_productive(body, &derives) {
                    derives[index] = true;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        let with = |rule: RuleId| (!derives[rule.0]).then(Expr::never);
        for rule in &mut self.rules {
            rule.body = rule.body.replaced(&with);
        }
    }

    /// Puts short rules, and those that are named once, in their place.
    fn inline(&mut self, root: RuleId) {
        let mut n_uses = vec![0_usize; self.rules.len()];
        let order = self.reachable(root);
        let mut used = Vec::new();
        for &rule in &order {
            used.clear();
            self.rules[rule.0].body.push_rules(&mut used);
            for used in &used {
                n_uses[used.0] += 1;
            }
        }
        // Parts before wholes; a part that waits for the whole stays a rule.
        let mut state = vec![State::New; self.rules.len()];
        state[root.0] = State::Kept;
        let mut stack = vec![(root, false)];
        let mut entered = FxHashSet::default();
        while let Some((rule, is_ready)) = stack.pop() {
            if !is_ready {
                if !entered.insert(rule) {
                    continue;
                }
                stack.push((rule, true));
                let mut used = Vec::new();
                self.rules[rule.0].body.push_rules(&mut used);
                let news = used.into_iter().filter(|u| !entered.contains(u));
                stack.extend(news.map(|used| (used, false)));
                continue;
            }
            let rules = &self.rules;
            let with = |used: RuleId| {
                (state[used.0] == State::Short)
                    .then(|| rules[used.0].body.clone())
            };
            let mut body = rules[rule.0].body.replaced(&with);
            if body.depth() > MAX_DEPTH {
                body = rules[rule.0].body.clone();
            }
            if rule != root {
                state[rule.0] = self.state_of(rule, &body, n_uses[rule.0]);
            }
            self.rules[rule.0].body = body;
        }
    }

    fn state_of(&self, rule: RuleId, body: &Expr, n_uses: usize) -> State {
        let most = match (self.rules[rule.0].kind, n_uses) {
            (RuleKind::Basic, _) => 0,
            (RuleKind::Place, 0 | 1) => MAX_INLINE_NAMED,
            (RuleKind::Part, 0 | 1) => MAX_INLINE,
            (_, _) => 1,
        };
        let mut used = Vec::new();
        body.push_rules(&mut used);
        let is_short = body.size() <= most
            && body.depth() <= MAX_DEPTH / 4
            && !used.contains(&rule);
        if is_short { State::Short } else { State::Kept }
    }

    /// The rules that one leads to, each once, in the order of the text.
    fn reachable(&self, root: RuleId) -> Vec<RuleId> {
        let mut order = Vec::new();
        let mut seen = FxHashSet::default();
        let mut stack = vec![root];
        while let Some(rule) = stack.pop() {
            if !seen.insert(rule) {
                continue;
            }
            order.push(rule);
            let mut used = Vec::new();
            self.rules[rule.0].body.push_rules(&mut used);
            stack.extend(used.into_iter().rev());
        }
        order
    }

    /// A name for each rule.
    fn names(
        &self,
        root: RuleId,
        order: &[RuleId],
    ) -> FxHashMap<RuleId, String> {
        let mut names = FxHashMap::default();
        let mut taken: FxHashSet<String> = FxHashSet::default();
        let mut last: FxHashMap<&str, usize> = FxHashMap::default();
        taken.insert("root".to_owned());
        names.insert(root, "root".to_owned());
        // What everybody knows keeps its name.
        let is_basic =
            |rule: &RuleId| self.rules[rule.0].kind == RuleKind::Basic;
        let (basics, others): (Vec<RuleId>, Vec<RuleId>) =
            order.iter().copied().partition(is_basic);
        for rule in basics.into_iter().chain(others) {
            if rule == root {
                continue;
            }
            let hint = &*self.rules[rule.0].hint;
            let mut name = hint.to_owned();
            let number = last.entry(hint).or_insert(1);
            while taken.contains(&name) {
                *number += 1;
                name = format!("{hint}-{number}");
            }
            taken.insert(name.clone());
            names.insert(rule, name);
        }
        names
    }
}

/// Whether a rule is put in the place of its name.
#[derive(Clone, Copy, Eq, PartialEq)]
enum State {
    New,
    Short,
    Kept,
}

fn is_productive(expr: &Expr, derives: &[bool]) -> bool {
    match expr.kind() {
        Kind::Literal(_) | Kind::Class(_) => true,
        Kind::Rule(rule) => derives[rule.0],
        Kind::Seq(parts) => {
            parts.iter().all(|part| is_productive(part, derives))
        }
        Kind::Choice(ways) => {
            ways.iter().any(|way| is_productive(way, derives))
        }
        Kind::Repeat { body, min, .. } => {
            *min == 0 || is_productive(body, derives)
        }
    }
}

/// What people read of a name: letters, digits and dashes.
pub(super) fn clean(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
        if out.len() >= 40 {
            break;
        }
    }
    out.truncate(out.trim_end_matches('-').len());
    if out.is_empty() { "rule".to_owned() } else { out }
}
