//! The order in which a schema lists the members of an object.

use std::sync::Arc;

use maskwright_grammar_core::util::FxHashSet;

use super::arena::Formulas;
use super::form::{Form, FormulaId};
use crate::parse::{Constant, ConstantId, Keyword, NameId};

/// The names found so far, in order and without repetition.
#[derive(Default)]
struct Order {
    names: Vec<NameId>,
    seen: FxHashSet<NameId>,
}

impl Order {
    fn add(&mut self, name: NameId) {
        if self.seen.insert(name) {
            self.names.push(name);
        }
    }
}

/// What is still to be looked at, in document order.
#[derive(Clone, Copy)]
enum Step {
    Formula(FormulaId),
    Name(NameId),
}

impl Formulas {
    /// The member names that a value formula mentions, in document order:
    /// first occurrence in `properties` over everything applied in place,
    /// where it stands; then the names that are only required.
    pub fn property_order(&mut self, value: FormulaId) -> Arc<[NameId]> {
        if let Some(known) = self.orders.get(&value) {
            return Arc::clone(known);
        }
        let mut order = Order::default();
        let mut required = Vec::new();
        let mut visited: FxHashSet<FormulaId> = FxHashSet::default();
        let mut stack = vec![Step::Formula(value)];
        while let Some(step) = stack.pop() {
            let formula = match step {
                Step::Name(name) => {
                    order.add(name);
                    continue;
                }
                Step::Formula(formula) => formula,
            };
            if !visited.insert(formula) {
                continue;
            }
            match self.form(formula).clone() {
                Form::And(parts) | Form::Or(parts) => {
                    stack.extend(
                        parts.iter().rev().map(|&part| Step::Formula(part)),
                    );
                }
                Form::NotGoal(_) | Form::NotConst(_) => {
                    stack.push(Step::Formula(self.negate(formula)));
                }
                Form::Const(constant) => {
                    stack.extend(self.names_of(constant).rev());
                }
                Form::Goal(_) => {
                    let mut steps = self.steps(formula, &mut required);
                    steps.reverse();
                    stack.append(&mut steps);
                }
                _ => {}
            }
        }
        for name in required {
            order.add(name);
        }
        let names: Arc<[NameId]> = order.names.into();
        self.orders.insert(value, Arc::clone(&names));
        names
    }

    /// What one goal lists, in document order.
    fn steps(
        &mut self,
        formula: FormulaId,
        required: &mut Vec<NameId>,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        let Form::Goal(goal) = *self.form(formula) else {
            return steps;
        };
        let goal = self.goal_value(goal);
        let schema = Arc::clone(&self.schema);
        for keyword in schema.keywords(goal.node) {
            match keyword {
                Keyword::Properties(members) => {
                    let names = members.iter().map(|&(name, _)| name);
                    steps.extend(names.map(Step::Name));
                }
                Keyword::Required(names) => required.extend(&**names),
                Keyword::DependentRequired(members) => {
                    for (name, needed) in members {
                        required.push(*name);
                        required.extend(&**needed);
                    }
                }
                Keyword::Enum(constants) => {
                    for &constant in constants {
                        steps.extend(self.names_of(constant));
                    }
                }
                Keyword::Const(constant) => {
                    steps.extend(self.names_of(*constant));
                }
                Keyword::DynamicRef { .. } | Keyword::RecursiveRef { .. } => {
                    let node = self.dynamic_target(keyword, goal.env);
                    let formula = self.goal(node, goal.env);
                    steps.push(Step::Formula(formula));
                }
                keyword => {
                    if let Keyword::DependentSchemas(members) = keyword {
                        required.extend(members.iter().map(|&(n, _)| n));
                    }
                    crate::parse::builder::in_place(keyword, |node| {
                        let formula = self.goal(node, goal.env);
                        steps.push(Step::Formula(formula));
                    });
                }
            }
        }
        steps
    }

    /// The member names of a constant object.
    fn names_of(
        &self,
        constant: ConstantId,
    ) -> impl DoubleEndedIterator<Item = Step> + use<'_> {
        let members = match self.pool.constant_value(constant) {
            Constant::Object(members) => &**members,
            _ => &[],
        };
        members.iter().map(|&(name, _)| Step::Name(name))
    }
}
