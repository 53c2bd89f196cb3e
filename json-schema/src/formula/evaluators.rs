//! `unevaluatedProperties` and `unevaluatedItems`.
//!
//! What evaluates a member or an item, and on which condition, is gathered
//! over the schema object itself and everything that it applies in place.
//! The conditions are formulas about the whole container, so they ride inside
//! the atom and are derived with it.

use std::sync::Arc;

use super::arena::Formulas;
use super::form::{
    EnvId, Evaluator, Form, FormulaId, Goal, KeySet, NO_END, Scope,
};
use crate::error::SchemaError;
use crate::parse::{JsonType, Keyword, NodeId};

/// A schema whose evaluators are gathered.
struct Visit {
    goal: Goal,
    /// When it applies, itself included.
    condition: FormulaId,
    top: bool,
}

impl Formulas {
    /// The formula of an `unevaluated…` keyword of `goal`.
    pub(super) fn unevaluated(
        &mut self,
        goal: Goal,
        node: NodeId,
        json_type: JsonType,
    ) -> Result<FormulaId, SchemaError> {
        let rest = self.goal(node, goal.env);
        if rest.is_true() {
            return Ok(rest);
        }
        let evaluators = self.evaluators(goal, json_type)?;
        Ok(self.make_unevaluated(true, evaluators, rest))
    }

    /// Makes the atom, or its dual, without entries that cannot matter.
    pub(super) fn make_unevaluated(
        &mut self,
        positive: bool,
        mut evaluators: Vec<Evaluator>,
        rest: FormulaId,
    ) -> FormulaId {
        let dead = FormulaId::constant(!positive);
        let live = FormulaId::constant(positive);
        evaluators.retain(|evaluator| evaluator.condition != dead);
        let everything = evaluators.iter().any(|evaluator| {
            evaluator.condition == live && self.is_everything(evaluator.scope)
        });
        if everything {
            return FormulaId::constant(positive);
        }
        evaluators.sort_unstable();
        evaluators.dedup();
        let evaluators: Arc<[Evaluator]> = evaluators.into();
        self.make(if positive {
            Form::Unevaluated(evaluators, rest)
        } else {
            Form::ExUnevaluated(evaluators, rest)
        })
    }

    fn is_everything(&self, scope: Scope) -> bool {
        match scope {
            Scope::Keys(set) => *self.key_set(set) == KeySet::Any,
            Scope::Items(from, to) => from == 0 && to == NO_END,
            Scope::Matches(goal) => goal.is_true(),
        }
    }

    fn evaluators(
        &mut self,
        goal: Goal,
        json_type: JsonType,
    ) -> Result<Vec<Evaluator>, SchemaError> {
        let schema = Arc::clone(&self.schema);
        let mut out = Vec::new();
        let top = Visit { goal, condition: FormulaId::TRUE, top: true };
        let mut stack = vec![top];
        while let Some(visit) = stack.pop() {
            if visit.condition.is_false() {
                continue;
            }
            let env = visit.goal.env;
            for keyword in schema.keywords(visit.goal.node) {
                let scopes = match json_type {
                    JsonType::Object => self.keys_of(keyword, visit.top),
                    _ => self.items_of(keyword, env, visit.top),
                };
                let condition = visit.condition;
                out.extend(
                    scopes
                        .into_iter()
                        .map(|scope| Evaluator { scope, condition }),
                );
                self.visit(keyword, &visit, json_type, &mut stack)?;
            }
        }
        Ok(out)
    }

    /// The member names that a keyword evaluates.
    fn keys_of(&mut self, keyword: &Keyword, top: bool) -> Vec<Scope> {
        match keyword {
            Keyword::Properties(members) if !members.is_empty() => {
                let mut names: Vec<_> =
                    members.iter().map(|&(name, _)| name).collect();
                names.sort_unstable();
                let set = self.make_key_set(KeySet::Names(names.into()));
                vec![Scope::Keys(set)]
            }
            Keyword::PatternProperties(members) => members
                .iter()
                .map(|&(pattern, _)| Scope::Keys(self.pattern_keys(pattern)))
                .collect(),
            Keyword::AdditionalProperties { .. } => {
                vec![Scope::Keys(self.make_key_set(KeySet::Any))]
            }
            Keyword::UnevaluatedProperties(_) if !top => {
                vec![Scope::Keys(self.make_key_set(KeySet::Any))]
            }
            _ => Vec::new(),
        }
    }

    /// The items that a keyword evaluates.
    fn items_of(
        &mut self,
        keyword: &Keyword,
        env: EnvId,
        top: bool,
    ) -> Vec<Scope> {
        match keyword {
            Keyword::PrefixItems(nodes) if !nodes.is_empty() => {
                vec![Scope::Items(0, nodes.len() as u64)]
            }
            Keyword::Items { .. } => vec![Scope::Items(0, NO_END)],
            Keyword::Contains { node, evaluates: true, .. } => {
                let goal = self.goal(*node, env);
                if goal.is_false() {
                    return Vec::new();
                }
                vec![Scope::Matches(goal)]
            }
            Keyword::UnevaluatedItems(_) if !top => {
                vec![Scope::Items(0, NO_END)]
            }
            _ => Vec::new(),
        }
    }

    /// Pushes what a keyword applies in place and whose evaluators count.
    fn visit(
        &mut self,
        keyword: &Keyword,
        visit: &Visit,
        json_type: JsonType,
        stack: &mut Vec<Visit>,
    ) -> Result<(), SchemaError> {
        let env = visit.goal.env;
        let always = FormulaId::TRUE;
        let mut push =
            |this: &mut Formulas, node: NodeId, extra: FormulaId| {
                this.push_visit(visit, node, extra, json_type, stack)
            };
        match keyword {
            Keyword::Ref(_)
            | Keyword::DynamicRef { .. }
            | Keyword::RecursiveRef { .. } => {
                let node = self.dynamic_target(keyword, env);
                push(self, node, always)?;
            }
            Keyword::AllOf(nodes)
            | Keyword::AnyOf(nodes)
            | Keyword::OneOf(nodes) => {
                for &node in nodes {
                    push(self, node, always)?;
                }
            }
            Keyword::If { condition, then, otherwise } => {
                push(self, *condition, always)?;
                let holds = self.applied(*condition, env, json_type);
                if let Some(node) = then {
                    push(self, *node, holds)?;
                }
                if let Some(node) = otherwise {
                    let fails = self.negate(holds);
                    push(self, *node, fails)?;
                }
            }
            Keyword::DependentSchemas(members)
                if json_type == JsonType::Object =>
            {
                for &(name, node) in members {
                    let present = self.has(name);
                    push(self, node, present)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn push_visit(
        &mut self,
        visit: &Visit,
        node: NodeId,
        extra: FormulaId,
        json_type: JsonType,
        stack: &mut Vec<Visit>,
    ) -> Result<(), SchemaError> {
        let formula = self.goal(node, visit.goal.env);
        let Form::Goal(goal) = *self.form(formula) else {
            return Ok(());
        };
        let goal = self.goal_value(goal);
        let holds = self.typed(formula, json_type)?;
        let condition = self.and([visit.condition, extra, holds]);
        stack.push(Visit { goal, condition, top: false });
        Ok(())
    }
}
