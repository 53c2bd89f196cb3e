//! What is kept of a number prefix.

use std::fmt;

use smallvec::SmallVec;

use super::{Decimal, decimal::signed};

/// Where in the number grammar a prefix ends.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Phase {
    Start,
    Minus,
    /// The whole part is a zero.
    Zero,
    /// Within a whole part that does not begin with zero.
    Whole,
    /// Right after the point.
    Point,
    Fraction,
    /// Right after the `e`.
    Exponent,
    /// Right after the sign of the exponent.
    ExponentSign,
    ExponentDigits,
}

impl Phase {
    pub(super) fn is_mantissa(self) -> bool {
        matches!(
            self,
            Phase::Zero | Phase::Whole | Phase::Point | Phase::Fraction
        )
    }

    pub(super) fn is_exponent(self) -> bool {
        matches!(
            self,
            Phase::Exponent | Phase::ExponentSign | Phase::ExponentDigits
        )
    }

    /// Whether a number may end here by the grammar.
    pub(super) fn is_complete(self) -> bool {
        matches!(
            self,
            Phase::Zero
                | Phase::Whole
                | Phase::Fraction
                | Phase::ExponentDigits
        )
    }

    /// Whether the text so far has neither a point nor an exponent.
    pub(super) fn is_whole(self) -> bool {
        matches!(self, Phase::Zero | Phase::Whole)
    }
}

/// The decimal digits of a mantissa, as values 0 to 9.
pub(super) type Digits = SmallVec<[u8; 24]>;

/// A representative of all prefixes that behave alike.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Prefix {
    pub(super) phase: Phase,
    pub(super) negative: bool,
    pub(super) exponent_negative: bool,
    /// Significant digits without leading and trailing zeros.
    pub(super) digits: Digits,
    /// How many digits are known, from the first that is not zero. Those
    /// past `digits` are zeros.
    pub(super) length: u32,
    /// Where the point stands: the mantissa is `0.digits * 10^point`. In a
    /// mantissa that is zero so far, minus the number of fraction digits.
    pub(super) point: i64,
    /// The exponent written so far, without its sign.
    pub(super) exponent: i64,
}

impl Prefix {
    pub(super) fn start() -> Prefix {
        Prefix {
            phase: Phase::Start,
            negative: false,
            exponent_negative: false,
            digits: Digits::new(),
            length: 0,
            point: 0,
            exponent: 0,
        }
    }

    /// Appends a digit to the mantissa.
    pub(super) fn push(&mut self, digit: u8) {
        let whole = self.phase == Phase::Whole;
        if self.digits.is_empty() && digit == 0 {
            self.point -= 1;
            return;
        }
        self.point += i64::from(whole);
        if digit != 0 {
            self.digits.resize(self.length as usize, 0);
            self.digits.push(digit);
        }
        self.length = self.length.saturating_add(1);
    }

    pub(super) fn trim(&mut self) {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
    }

    /// Returns how many fraction digits are written, where `length` counts
    /// all digits.
    pub(super) fn n_fraction(&self) -> i64 {
        i64::from(self.length) - self.point
    }

    /// Returns how many digits are written, where `length` counts all.
    pub(super) fn n_written(&self) -> i64 {
        if self.point >= 1 {
            i64::from(self.length)
        } else {
            1 + self.n_fraction()
        }
    }

    /// Returns the absolute value of the mantissa.
    pub(super) fn mantissa(&self) -> Decimal {
        let exponent = self.point - signed(self.digits.len());
        Decimal::from_reduced_digits(false, &self.digits, exponent)
    }

    /// Returns the value of the number if it ended here.
    pub(super) fn value(&self) -> Decimal {
        let exponent = if self.exponent_negative {
            -self.exponent
        } else {
            self.exponent
        };
        let value = self.mantissa().scaled(exponent);
        if self.negative { value.negated() } else { value }
    }

    /// Returns digit `index` of the mantissa, counted from the first that is
    /// not zero.
    pub(super) fn digit(&self, index: usize) -> u8 {
        self.digits.get(index).copied().unwrap_or(0)
    }
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum Repr {
    Prefix(Prefix),
    /// The texts `first..last` of a list begin with the same `depth` bytes,
    /// which are the prefix.
    Listed {
        first: u32,
        last: u32,
        depth: u32,
    },
}

/// A class of number prefixes that behave alike under one
/// [`NumberSpec`](super::NumberSpec).
///
/// Two prefixes with equal states have the same continuations with the same
/// verdicts. A state belongs to the specification that made it; under another
/// one it has no meaning, though nothing panics.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct NumberState(pub(super) Repr);

impl fmt::Debug for NumberState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Listed { first, last, depth } => {
                write!(f, "Listed({first}..{last} at {depth})")
            }
            Repr::Prefix(prefix) => {
                write!(f, "{:?}(", prefix.phase)?;
                if prefix.negative {
                    f.write_str("-")?;
                }
                for digit in &prefix.digits {
                    write!(f, "{digit}")?;
                }
                write!(f, "/{}@{}", prefix.length, prefix.point)?;
                if prefix.phase.is_exponent() {
                    let sign = if prefix.exponent_negative { "-" } else { "" };
                    write!(f, "e{sign}{}", prefix.exponent)?;
                }
                f.write_str(")")
            }
        }
    }
}
