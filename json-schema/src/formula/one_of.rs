//! Exactly one of several formulas.
//!
//! Most `oneOf`s have branches that no value satisfies two of: another type,
//! another constant in a required member, a member that one requires and the
//! other forbids. Branches that are told apart so need no negation of each
//! other, which keeps what is left to decide small. It is an optimisation
//! only: what is not told apart gets its negation.

use std::sync::Arc;

use super::arena::{Formulas, Parts};
use super::form::{Form, FormulaId, KeySet};
use crate::parse::{ConstantId, JsonType, Keyword, NameId};

/// More branches than this are not compared with each other.
const MAX_COMPARED: usize = 128;

/// What tells an object formula from others.
#[derive(Default)]
struct Branch {
    /// The members that must exist; sorted.
    required: Vec<NameId>,
    /// What named members must satisfy; sorted by name.
    goals: Vec<(NameId, FormulaId)>,
    /// The only names allowed, where the formula says so; sorted.
    allowed: Option<Arc<[NameId]>>,
}

/// What tells a value formula from others.
#[derive(Default)]
struct Discriminator {
    /// The only values allowed; sorted.
    values: Option<Vec<ConstantId>>,
    /// The types allowed, bit by bit.
    types: Option<u8>,
}

impl Formulas {
    /// Exactly one of several formulas of one type holds.
    pub(super) fn exactly_one(
        &mut self,
        parts: &[FormulaId],
        json_type: JsonType,
    ) -> FormulaId {
        let parts: Parts =
            parts.iter().copied().filter(|part| !part.is_false()).collect();
        if parts.len() > 1
            && parts.len() <= MAX_COMPARED
            && let Some(overlaps) = self.overlaps(&parts, json_type)
        {
            return self.one_of_sparse(&parts, &overlaps);
        }
        let all = self.one_of(&parts).0;
        if json_type != JsonType::Object || parts.len() > MAX_COMPARED {
            return all;
        }
        let Some(name) = self.discriminating_name(&parts) else { return all };
        // With that member, no two of them hold.
        let present = self.has(name);
        let absent = self.negate(present);
        let any = self.or(parts);
        let with = self.and([present, any]);
        let without = self.and([absent, all]);
        self.or([with, without])
    }

    /// A name of a member that tells all branches apart, where it exists.
    fn discriminating_name(&self, parts: &[FormulaId]) -> Option<NameId> {
        let branches: Vec<Branch> =
            parts.iter().map(|&part| self.branch(part)).collect();
        let (first, others) = branches.split_first()?;
        let mut names: Vec<NameId> =
            first.goals.iter().map(|&(name, _)| name).collect();
        names.dedup();
        names.retain(|&name| {
            others.iter().all(|it| goals_of(it, name).next().is_some())
        });
        names.into_iter().find(|&name| {
            branches.iter().enumerate().all(|(index, one)| {
                branches[..index].iter().all(|other| {
                    goals_of(one, name).any(|ours| {
                        goals_of(other, name)
                            .any(|theirs| self.values_apart(ours, theirs))
                    })
                })
            })
        })
    }

    /// For each branch, the others that it is not told apart from; none if
    /// there are too many for this to help.
    fn overlaps(
        &mut self,
        parts: &[FormulaId],
        json_type: JsonType,
    ) -> Option<Vec<Vec<usize>>> {
        let is_object = json_type == JsonType::Object;
        let branches: Vec<Branch> = if is_object {
            parts.iter().map(|&part| self.branch(part)).collect()
        } else {
            Vec::new()
        };
        let mut overlaps = vec![Vec::new(); parts.len()];
        let mut total = 0;
        for one in 0..parts.len() {
            for other in 0..one {
                let apart = if is_object {
                    self.are_apart(&branches[one], &branches[other])
                } else {
                    self.and([parts[one], parts[other]]).is_false()
                };
                if apart {
                    continue;
                }
                overlaps[one].push(other);
                overlaps[other].push(one);
                total += 1;
                if total > parts.len() {
                    return None;
                }
            }
        }
        Some(overlaps)
    }

    fn one_of_sparse(
        &mut self,
        parts: &[FormulaId],
        overlaps: &[Vec<usize>],
    ) -> FormulaId {
        let mut options = Parts::new();
        for (&part, others) in parts.iter().zip(overlaps) {
            let mut all = Parts::new();
            all.push(part);
            for &other in others {
                all.push(self.negate(parts[other]));
            }
            options.push(self.and(all));
        }
        self.or(options)
    }

    /// "Exactly one", and "none".
    ///
    /// Halving keeps the nesting logarithmic: exactly one of two halves
    /// together is one of the first and none of the second, or the reverse.
    fn one_of(&mut self, parts: &[FormulaId]) -> (FormulaId, FormulaId) {
        match parts {
            [] => (FormulaId::FALSE, FormulaId::TRUE),
            &[part] => (part, self.negate(part)),
            _ => {
                let (left, right) = parts.split_at(parts.len() / 2);
                let (left_one, left_none) = self.one_of(left);
                let (right_one, right_none) = self.one_of(right);
                let first = self.and([left_one, right_none]);
                let second = self.and([left_none, right_one]);
                let one = self.or([first, second]);
                (one, self.and([left_none, right_none]))
            }
        }
    }

    fn branch(&self, id: FormulaId) -> Branch {
        let mut branch = Branch::default();
        for part in self.conjuncts(id) {
            match *self.form(part) {
                Form::Ex(set, goal) => {
                    if let KeySet::Names(names) = self.key_set(set)
                        && let [name] = names[..]
                    {
                        branch.required.push(name);
                        branch.goals.push((name, goal));
                    }
                }
                Form::All(set, goal) => match self.key_set(set) {
                    KeySet::Names(names) => branch
                        .goals
                        .extend(names.iter().map(|&name| (name, goal))),
                    KeySet::NoneOf(sets) if goal.is_false() => {
                        if let [only] = sets[..]
                            && let KeySet::Names(names) = self.key_set(only)
                        {
                            branch.allowed = Some(Arc::clone(names));
                        }
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        branch.required.sort_unstable();
        branch.goals.sort_unstable();
        branch
    }

    /// Whether a required member proves that no object is in both branches.
    fn are_apart(&self, one: &Branch, other: &Branch) -> bool {
        self.requires_apart(one, other) || self.requires_apart(other, one)
    }

    fn requires_apart(&self, one: &Branch, other: &Branch) -> bool {
        one.required.iter().any(|&name| {
            if let Some(allowed) = &other.allowed
                && allowed.binary_search(&name).is_err()
            {
                return true;
            }
            goals_of(other, name).any(|theirs| {
                theirs.is_false()
                    || goals_of(one, name)
                        .any(|ours| self.values_apart(ours, theirs))
            })
        })
    }

    /// Whether no value satisfies both value formulas.
    fn values_apart(&self, one: FormulaId, other: FormulaId) -> bool {
        let (one, other) =
            (self.discriminator(one), self.discriminator(other));
        if let (Some(ours), Some(theirs)) = (&one.values, &other.values)
            && !ours.iter().any(|value| theirs.binary_search(value).is_ok())
        {
            return true;
        }
        let types = (one.types, other.types);
        matches!(types, (Some(ours), Some(theirs)) if ours & theirs == 0)
    }

    fn discriminator(&self, id: FormulaId) -> Discriminator {
        let mut found = Discriminator::default();
        let goal = match *self.form(id) {
            Form::Const(constant) => {
                found.values = Some(vec![constant]);
                return found;
            }
            Form::Or(ref parts) => {
                found.values = self.enumeration(parts);
                if let Some(values) = &mut found.values {
                    values.sort_unstable();
                }
                return found;
            }
            Form::Goal(goal) => self.goal_value(goal),
            _ => return found,
        };
        for keyword in self.schema.keywords(goal.node) {
            match keyword {
                Keyword::Const(constant) => {
                    found.values = Some(vec![*constant]);
                }
                Keyword::Enum(constants) if found.values.is_none() => {
                    let mut values = constants.to_vec();
                    values.sort_unstable();
                    found.values = Some(values);
                }
                Keyword::Type(types) => found.types = Some(types.bits),
                _ => {}
            }
        }
        found
    }
}

fn goals_of(
    branch: &Branch,
    name: NameId,
) -> impl Iterator<Item = FormulaId> + '_ {
    let from = branch.goals.partition_point(|&(other, _)| other < name);
    branch.goals[from..]
        .iter()
        .take_while(move |&&(other, _)| other == name)
        .map(|&(_, goal)| goal)
}
