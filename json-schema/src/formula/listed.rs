//! Value formulas that list the values which can satisfy them.

use maskwright_grammar_core::util::FxHashMap;
use serde_json::Value;

use super::arena::Formulas;
use super::form::{EnvId, Form, FormulaId, NO_END};
use crate::parse::{ConstantId, JsonType, Keyword, NodeId, TypeSet};

/// The most values of a list.
pub(crate) const MAX_LISTED: usize = 64;

/// How far references and combinations are followed.
const MAX_DEPTH: usize = 16;

impl Formulas {
    /// Values among which all are that satisfy a value formula; none where it
    /// does not list them, or more than [`MAX_LISTED`].
    pub(crate) fn candidates(
        &mut self,
        value: FormulaId,
    ) -> Option<Vec<ConstantId>> {
        self.candidates_within(value, MAX_DEPTH)
    }

    /// Recursion is bounded by `depth`.
    fn candidates_within(
        &mut self,
        value: FormulaId,
        depth: usize,
    ) -> Option<Vec<ConstantId>> {
        let depth = depth.checked_sub(1)?;
        match self.form(value).clone() {
            Form::False => Some(Vec::new()),
            Form::Const(constant) => Some(vec![constant]),
            Form::Or(parts) => self.all_of(parts.iter().copied(), depth),
            Form::And(parts) => parts
                .iter()
                .filter_map(|&part| self.candidates_within(part, depth))
                .min_by_key(Vec::len),
            Form::Goal(goal) => {
                let goal = self.goal_value(goal);
                let schema = std::sync::Arc::clone(&self.schema);
                let keywords = schema.keywords(goal.node).iter();
                keywords
                    .filter_map(|keyword| {
                        self.listed_by(keyword, goal.env, depth)
                    })
                    .min_by_key(Vec::len)
            }
            _ => None,
        }
    }

    /// The values of all of several formulas.
    fn all_of(
        &mut self,
        parts: impl IntoIterator<Item = FormulaId>,
        depth: usize,
    ) -> Option<Vec<ConstantId>> {
        let mut all = Vec::new();
        for part in parts {
            all.extend(self.candidates_within(part, depth)?);
            all.sort_unstable();
            all.dedup();
            if all.len() > MAX_LISTED {
                return None;
            }
        }
        Some(all)
    }

    fn listed_by(
        &mut self,
        keyword: &Keyword,
        env: EnvId,
        depth: usize,
    ) -> Option<Vec<ConstantId>> {
        let goals = |this: &mut Formulas, nodes: &[NodeId]| {
            nodes.iter().map(|&node| this.goal(node, env)).collect::<Vec<_>>()
        };
        match keyword {
            Keyword::Const(constant) => Some(vec![*constant]),
            Keyword::Enum(constants) if constants.len() <= MAX_LISTED => {
                Some(constants.to_vec())
            }
            Keyword::Type(types) => self.of_types(*types),
            Keyword::Ref(node) => {
                let goal = self.goal(*node, env);
                self.candidates_within(goal, depth)
            }
            Keyword::AllOf(nodes) => goals(self, nodes)
                .into_iter()
                .filter_map(|goal| self.candidates_within(goal, depth))
                .min_by_key(Vec::len),
            Keyword::AnyOf(nodes) | Keyword::OneOf(nodes) => {
                let goals = goals(self, nodes);
                self.all_of(goals, depth)
            }
            _ => None,
        }
    }

    /// The values of types that have few.
    fn of_types(&mut self, types: TypeSet) -> Option<Vec<ConstantId>> {
        let mut all = Vec::new();
        for json_type in JsonType::ALL {
            if !types.contains(json_type) {
                continue;
            }
            let value = match json_type {
                JsonType::Null => Value::Null,
                JsonType::False => Value::Bool(false),
                JsonType::True => Value::Bool(true),
                _ => return None,
            };
            all.extend(self.pool.value(&value));
        }
        Some(all)
    }

    /// An array formula after an item that equals a constant: no item to come
    /// may equal it, or one that does is the repetition asked for.
    pub(crate) fn with_known_item(
        &mut self,
        id: FormulaId,
        constant: ConstantId,
    ) -> FormulaId {
        let same = self.equals(constant);
        let differs = self.negate(same);
        let unique = self.make(Form::Unique);
        let others = self.items_all(0, NO_END, differs);
        let unique = self.and([unique, others]);
        let repeated = self.make(Form::Repeated);
        let again = self.make(Form::ItemsEx(0, NO_END, same));
        let repeated = self.or([repeated, again]);
        self.rewrite(id, &mut FxHashMap::default(), &|form| match form {
            Form::Unique => Some(unique),
            Form::Repeated => Some(repeated),
            _ => None,
        })
    }
}
