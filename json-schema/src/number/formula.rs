//! Boolean combinations of conditions on a number.

use smallvec::SmallVec;

use super::Decimal;

/// A boolean combination of conditions on one number.
///
/// All conditions are about the value, except [`IntegerText`], which is about
/// the spelling. The tree may be as deep as schemas nest; it is flattened
/// without recursion.
///
/// [`IntegerText`]: NumberFormula::IntegerText
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum NumberFormula {
    /// Always holds.
    True,
    /// Never holds.
    False,
    /// At least the bound.
    Ge(Decimal),
    /// Greater than the bound.
    Gt(Decimal),
    /// At most the bound.
    Le(Decimal),
    /// Less than the bound.
    Lt(Decimal),
    /// A whole multiple of the number, whose sign does not matter.
    MultipleOf(Decimal),
    /// A whole number, however it is spelled.
    Integer,
    /// A number spelled without a point and without an exponent, which is
    /// what draft 4 calls an integer.
    IntegerText,
    /// One of the listed values.
    In(Vec<Decimal>),
    /// All of them hold.
    And(Vec<NumberFormula>),
    /// At least one of them holds.
    Or(Vec<NumberFormula>),
    /// The inner formula does not hold.
    Not(Box<NumberFormula>),
}

/// One condition, without its sign.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Atom {
    Ge(Decimal),
    Gt(Decimal),
    /// Of a positive number.
    MultipleOf(Decimal),
    IntegerText,
    /// Sorted and without repetitions.
    In(Vec<Decimal>),
}

impl Atom {
    fn holds(&self, value: &Decimal, integer_text: bool) -> bool {
        match self {
            Atom::Ge(bound) => value >= bound,
            Atom::Gt(bound) => value > bound,
            Atom::MultipleOf(divisor) => value.is_multiple_of(divisor),
            Atom::IntegerText => integer_text,
            Atom::In(values) => values.binary_search(value).is_ok(),
        }
    }
}

/// An operation of a [`Program`].
#[derive(Clone, Debug)]
pub(super) enum Op {
    Constant(bool),
    /// An atom, negated when the flag is false.
    Literal(Atom, bool),
    /// Conjunction of so many operands.
    And(usize),
    /// Disjunction of so many operands.
    Or(usize),
}

/// A formula with negations at its atoms, in postfix order.
#[derive(Clone, Debug)]
pub(super) struct Program {
    ops: Vec<Op>,
}

impl Program {
    pub(super) fn new(formula: &NumberFormula) -> Program {
        // Operators are pushed before their operands here, and the whole is
        // reversed at the end; operand order does not matter.
        let mut ops = Vec::new();
        let mut pending = vec![(formula, true)];
        while let Some((formula, positive)) = pending.pop() {
            match formula {
                NumberFormula::And(parts) | NumberFormula::Or(parts) => {
                    let all = matches!(formula, NumberFormula::And(_));
                    let n_parts = parts.len();
                    ops.push(if all == positive {
                        Op::And(n_parts)
                    } else {
                        Op::Or(n_parts)
                    });
                    pending.extend(parts.iter().map(|part| (part, positive)));
                }
                NumberFormula::Not(inner) => pending.push((inner, !positive)),
                leaf => ops.push(literal(leaf, positive)),
            }
        }
        ops.reverse();
        Program { ops }
    }

    pub(super) fn ops(&self) -> &[Op] {
        &self.ops
    }

    pub(super) fn atoms(&self) -> impl Iterator<Item = &Atom> {
        self.ops.iter().filter_map(|op| match op {
            Op::Literal(atom, _) => Some(atom),
            Op::Constant(_) | Op::And(_) | Op::Or(_) => None,
        })
    }

    pub(super) fn eval(&self, value: &Decimal, integer_text: bool) -> bool {
        self.eval_with(|atom| atom.holds(value, integer_text))
    }

    /// Evaluates where the truth of each atom is told, which is asked for in
    /// the order of [`Program::atoms`].
    pub(super) fn eval_with(
        &self,
        mut truth: impl FnMut(&Atom) -> bool,
    ) -> bool {
        let mut stack: SmallVec<[bool; 32]> = SmallVec::new();
        for op in &self.ops {
            let result = match op {
                Op::Constant(truth) => *truth,
                Op::Literal(atom, positive) => truth(atom) == *positive,
                Op::And(n_parts) => {
                    let start = stack.len().saturating_sub(*n_parts);
                    stack.drain(start..).all(|truth| truth)
                }
                Op::Or(n_parts) => {
                    let start = stack.len().saturating_sub(*n_parts);
                    stack.drain(start..).any(|truth| truth)
                }
            };
            stack.push(result);
        }
        stack.pop().unwrap_or(true)
    }
}

/// Translates a formula without operands. Upper bounds are negated lower
/// bounds, and a whole number is a multiple of one.
fn literal(leaf: &NumberFormula, positive: bool) -> Op {
    let (atom, sense) = match leaf {
        NumberFormula::True => return Op::Constant(positive),
        NumberFormula::Ge(bound) => (Atom::Ge(bound.clone()), true),
        NumberFormula::Gt(bound) => (Atom::Gt(bound.clone()), true),
        NumberFormula::Le(bound) => (Atom::Gt(bound.clone()), false),
        NumberFormula::Lt(bound) => (Atom::Ge(bound.clone()), false),
        NumberFormula::MultipleOf(divisor) if divisor.is_zero() => {
            (Atom::In(vec![Decimal::zero()]), true)
        }
        NumberFormula::MultipleOf(divisor) => {
            (Atom::MultipleOf(divisor.abs()), true)
        }
        NumberFormula::Integer => (Atom::MultipleOf(Decimal::pow10(0)), true),
        NumberFormula::IntegerText => (Atom::IntegerText, true),
        NumberFormula::In(values) => {
            let mut values = values.clone();
            values.sort_unstable();
            values.dedup();
            (Atom::In(values), true)
        }
        NumberFormula::False
        | NumberFormula::And(_)
        | NumberFormula::Or(_)
        | NumberFormula::Not(_) => return Op::Constant(!positive),
    };
    Op::Literal(atom, positive == sense)
}
