//! The shapes of formulas and of key sets.

use std::sync::Arc;

use crate::parse::{
    ConstantId, FormatId, JsonType, NameId, NodeId, NumberId, PatternId,
    ResourceId, id,
};

id! {
    /// A formula. Equal formulas have equal ids.
    FormulaId
}
id! {
    /// A set of member names.
    KeySetId
}
id! {
    /// A goal: a schema node in a dynamic scope.
    GoalId
}
id! {
    /// A dynamic scope: the resources entered that can matter.
    EnvId
}
id! {
    /// A sorted set of strings.
    StringSetId
}
id! {
    /// A set of numbers.
    NumberSetId
}

impl FormulaId {
    /// The formula that never holds.
    pub const FALSE: FormulaId = FormulaId(0);
    /// The formula that always holds.
    pub const TRUE: FormulaId = FormulaId(1);

    /// Whether this is [`FormulaId::FALSE`].
    pub fn is_false(self) -> bool {
        self == FormulaId::FALSE
    }

    /// Whether this is [`FormulaId::TRUE`].
    pub fn is_true(self) -> bool {
        self == FormulaId::TRUE
    }

    /// The constant formula.
    pub fn constant(holds: bool) -> FormulaId {
        if holds { FormulaId::TRUE } else { FormulaId::FALSE }
    }
}

/// The end of a range of items that has none.
pub const NO_END: u64 = u64::MAX;

/// A schema node, in the dynamic scope in which it was reached.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Goal {
    /// The node.
    pub node: NodeId,
    /// The dynamic scope; empty for nearly every schema.
    pub env: EnvId,
}

/// A dynamic scope, outermost resource first.
pub(crate) type Env = Box<[ResourceId]>;

/// One part of a schema that evaluates members or items, for
/// `unevaluatedProperties` and `unevaluatedItems`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Evaluator {
    /// What it evaluates.
    pub scope: Scope,
    /// When: a typed formula about the whole container.
    pub condition: FormulaId,
}

/// What an evaluator evaluates.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Scope {
    /// The members with these names.
    Keys(KeySetId),
    /// The items from `.0` (inclusive) to `.1` (exclusive).
    Items(u64, u64),
    /// The items that satisfy a value formula, as `contains` does.
    Matches(FormulaId),
}

/// A formula in negation normal form.
///
/// A *value formula* is about a value of any type: a combination of
/// [`Goal`](Form::Goal), [`Const`](Form::Const) and their negations. A
/// *typed formula* is about a value of one type: a combination of that
/// type's atoms. A *pending formula* is a typed formula of a container with
/// [`Kid`](Form::Kid) leaves about the child that is being read.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Form {
    /// Never.
    False,
    /// Always.
    True,
    /// All of them; two or more, sorted, none a conjunction.
    And(Arc<[FormulaId]>),
    /// One of them at least; two or more, sorted, none a disjunction.
    Or(Arc<[FormulaId]>),

    /// The value is valid for a schema node.
    Goal(GoalId),
    /// The value is not valid for a schema node.
    NotGoal(GoalId),
    /// The value equals a constant.
    Const(ConstantId),
    /// The value differs from a constant.
    NotConst(ConstantId),

    /// The child that is being read satisfies a value formula.
    Kid(FormulaId),

    /// Every member with a key in the set satisfies the value formula.
    All(KeySetId, FormulaId),
    /// Some member with a key in the set satisfies the value formula.
    Ex(KeySetId, FormulaId),
    /// There are at least so many members (to come).
    CountGe(u64),
    /// There are at most so many members (to come).
    CountLe(u64),

    /// Every item from `.0` to before `.1` satisfies the value formula.
    /// Indices are relative to the items already read.
    ItemsAll(u64, u64, FormulaId),
    /// Some item from `.0` to before `.1` satisfies the value formula.
    ItemsEx(u64, u64, FormulaId),
    /// There are at least so many items (to come).
    LenGe(u64),
    /// There are at most so many items (to come).
    LenLe(u64),
    /// At least so many items satisfy the value formula.
    ContainsGe(FormulaId, u64),
    /// At most so many items satisfy the value formula.
    ContainsLe(FormulaId, u64),
    /// All items differ.
    Unique,
    /// Two items are equal.
    Repeated,

    /// Every member or item is evaluated, or satisfies the value formula.
    Unevaluated(Arc<[Evaluator]>, FormulaId),
    /// Some member or item is not evaluated (every evaluator that covers it
    /// has a condition, stored negated, that holds) and satisfies the value
    /// formula.
    ExUnevaluated(Arc<[Evaluator]>, FormulaId),

    /// The string matches a pattern, or with `false` does not.
    Pattern(PatternId, bool),
    /// The string has a format, or with `false` has not.
    Format(FormatId, bool),
    /// The string has at least so many code points.
    CharsGe(u64),
    /// The string has at most so many code points.
    CharsLe(u64),
    /// The string is in the set, or with `false` is not.
    StringIn(StringSetId, bool),

    /// The number is at least the bound.
    Ge(NumberId),
    /// The number is greater than the bound.
    Gt(NumberId),
    /// The number is at most the bound.
    Le(NumberId),
    /// The number is less than the bound.
    Lt(NumberId),
    /// The number is a multiple, or with `false` is none.
    Multiple(NumberId, bool),
    /// The number is an integer by value, or with `false` is none.
    Integer(bool),
    /// The number is spelled as an integer, or with `false` is not.
    IntegerText(bool),
    /// The number is in the set, or with `false` is not.
    NumberIn(NumberSetId, bool),
}

impl Form {
    /// The children of a conjunction or disjunction.
    pub fn parts(&self) -> &[FormulaId] {
        if let Form::And(parts) | Form::Or(parts) = self { parts } else { &[] }
    }

    /// How many formulas this one holds by number.
    pub(super) fn n_children(&self) -> usize {
        match self {
            Form::And(parts) | Form::Or(parts) => parts.len(),
            Form::Unevaluated(evaluators, _)
            | Form::ExUnevaluated(evaluators, _) => evaluators.len(),
            _ => 0,
        }
    }
}

/// A set of member names: a regular language over code points.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum KeySet {
    /// Every name.
    Any,
    /// These names; sorted by id.
    Names(Arc<[NameId]>),
    /// The names that match a pattern.
    Pattern(PatternId),
    /// The names that satisfy a typed formula of strings.
    Satisfying(FormulaId),
    /// The names that are in none of these sets; sorted.
    NoneOf(Arc<[KeySetId]>),
}

/// What a question about a member's key needs to know of the key.
///
/// Keys with equal answers are interchangeable: an object formula has equal
/// derivatives by them.
pub trait Key {
    /// The key's id, if a schema or a document has mentioned it.
    fn name(&self) -> Option<NameId>;
    /// Whether the key matches a pattern.
    fn matches(&self, formulas: &Formulas, pattern: PatternId) -> bool;
    /// Whether the key satisfies a typed formula of strings.
    fn satisfies(&self, formulas: &Formulas, formula: FormulaId) -> bool;
}

use super::Formulas;

/// The JSON type of a constant.
pub(crate) fn constant_type(constant: &crate::parse::Constant) -> JsonType {
    use crate::parse::Constant;
    match constant {
        Constant::Null => JsonType::Null,
        Constant::False => JsonType::False,
        Constant::True => JsonType::True,
        Constant::Number(_) => JsonType::Number,
        Constant::String(_) => JsonType::String,
        Constant::Array(_) => JsonType::Array,
        Constant::Object(_) => JsonType::Object,
    }
}
