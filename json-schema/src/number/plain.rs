//! Numbers spelled plainly, of any length, as a finite automaton.
//!
//! Without exponents and with no bound on digits, conditions on a number are
//! a regular language: a comparison with a bound is decided by the length of
//! the whole part and the first digit that differs, and a multiple by its
//! residue. [`NumberSpec`](super::NumberSpec) reads more spellings and keeps
//! what that needs; this is for those who want all states.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::{
    Cells, Decimal, NumberFormula,
    formula::{Atom, Program},
    state::Phase,
};

/// Bounds of more digits than this, on either side of the point, are not
/// compared digit by digit.
const MAX_DIGITS: i64 = 200;

/// A state of [`PlainNumbers`].
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct PlainState {
    phase: Phase,
    negative: bool,
    /// Whether some digit is not zero.
    nonzero: bool,
    compared: SmallVec<[Compared; 4]>,
    rests: SmallVec<[Rest; 2]>,
}

/// How the digits so far compare with those of a bound, signs aside.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Compared {
    Decided(Ordering),
    /// So many digits of the whole part were read, which compare so with as
    /// many of the bound.
    Whole(u32, Ordering),
    /// All digits are equal so far, with so many after the point.
    Fraction(u32),
}

/// What is known of the division by a divisor.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Rest {
    /// A digit stands past the last place of the divisor.
    Off,
    /// The residue, with so many digits after the point.
    Residue(u64, u32),
}

#[derive(Clone, Debug)]
struct Bound {
    negative: bool,
    whole: Vec<u8>,
    /// Without zeros at the end.
    fraction: Vec<u8>,
}

/// A divisor as a count of `10^-scale`.
#[derive(Clone, Copy, Debug)]
struct Divisor {
    units: u64,
    scale: u32,
}

/// The automaton of the plain spellings of some numbers.
#[derive(Clone, Debug)]
pub(crate) struct PlainNumbers {
    program: Program,
    bounds: Vec<Bound>,
    divisors: Vec<Divisor>,
    /// Whether texts may have a point.
    fraction: bool,
}

impl PlainNumbers {
    /// The numbers that satisfy a formula; `None` where it names a number
    /// that is too large or too fine.
    pub(crate) fn new(formula: &NumberFormula) -> Option<PlainNumbers> {
        let program = Program::new(formula);
        let (mut bounds, mut divisors) = (Vec::new(), Vec::new());
        for atom in program.atoms() {
            match atom {
                Atom::Ge(value) | Atom::Gt(value) => {
                    bounds.push(Bound::new(value)?);
                }
                Atom::In(values) => {
                    for value in values {
                        bounds.push(Bound::new(value)?);
                    }
                }
                Atom::MultipleOf(divisor) => {
                    divisors.push(Divisor::new(divisor)?);
                }
                Atom::IntegerText => {}
            }
        }
        let fraction = !Cells::of_program(&program).all_integers();
        Some(PlainNumbers { program, bounds, divisors, fraction })
    }

    /// The state before any digit.
    pub(crate) fn start(&self) -> PlainState {
        let equal = Compared::Whole(0, Ordering::Equal);
        PlainState {
            phase: Phase::Start,
            negative: false,
            nonzero: false,
            compared: SmallVec::from_elem(equal, self.bounds.len()),
            rests: SmallVec::from_elem(
                Rest::Residue(0, 0),
                self.divisors.len(),
            ),
        }
    }

    /// The state after one more byte, if that is spelled plainly.
    pub(crate) fn step(
        &self,
        state: &PlainState,
        byte: u8,
    ) -> Option<PlainState> {
        let mut next = state.clone();
        next.phase = match (state.phase, byte) {
            (Phase::Start, b'-') => Phase::Minus,
            (Phase::Start | Phase::Minus, b'0') => Phase::Zero,
            (Phase::Start | Phase::Minus, b'1'..=b'9')
            | (Phase::Whole, b'0'..=b'9') => Phase::Whole,
            (Phase::Zero | Phase::Whole, b'.') if self.fraction => {
                Phase::Point
            }
            (Phase::Point | Phase::Fraction, b'0'..=b'9') => Phase::Fraction,
            _ => return None,
        };
        match byte {
            b'-' => next.negative = true,
            b'.' => {
                for (compared, bound) in
                    next.compared.iter_mut().zip(&self.bounds)
                {
                    *compared = compared.after_whole(bound);
                }
            }
            _ => self.read(&mut next, byte - b'0'),
        }
        Some(next)
    }

    fn read(&self, state: &mut PlainState, digit: u8) {
        state.nonzero |= digit != 0;
        for (compared, bound) in state.compared.iter_mut().zip(&self.bounds) {
            *compared = compared.after(digit, bound);
        }
        let places = u32::from(state.phase == Phase::Fraction);
        for (rest, divisor) in state.rests.iter_mut().zip(&self.divisors) {
            *rest = rest.after(digit, places, *divisor);
        }
    }

    /// Whether the text so far is one of the numbers.
    pub(crate) fn may_end(&self, state: &PlainState) -> bool {
        if !state.phase.is_complete() {
            return false;
        }
        let mut signs = state
            .compared
            .iter()
            .zip(&self.bounds)
            .map(|(compared, bound)| state.compare(*compared, bound));
        let mut divides = state
            .rests
            .iter()
            .zip(&self.divisors)
            .map(|(rest, divisor)| rest.is_none(*divisor));
        self.program.eval_with(|atom| match atom {
            Atom::Ge(_) => signs.next().is_some_and(Ordering::is_ge),
            Atom::Gt(_) => signs.next().is_some_and(Ordering::is_gt),
            Atom::In(values) => {
                let signs = signs.by_ref().take(values.len());
                signs.filter(|sign| sign.is_eq()).count() > 0
            }
            Atom::MultipleOf(_) => divides.next().unwrap_or(false),
            Atom::IntegerText => state.phase.is_whole(),
        })
    }
}

impl PlainState {
    /// How the number compares with a bound.
    fn compare(&self, compared: Compared, bound: &Bound) -> Ordering {
        let size = match compared.after_whole(bound) {
            Compared::Decided(order) | Compared::Whole(_, order) => order,
            Compared::Fraction(at) if (at as usize) < bound.fraction.len() => {
                Ordering::Less
            }
            Compared::Fraction(_) => Ordering::Equal,
        };
        match (self.negative && self.nonzero, bound.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => size,
            (true, true) => size.reverse(),
        }
    }
}

impl Compared {
    fn after(self, digit: u8, bound: &Bound) -> Compared {
        match self {
            Compared::Decided(_) => self,
            Compared::Whole(read, order) => {
                let Some(own) = bound.whole.get(read as usize) else {
                    // No whole part of several digits begins with zero.
                    return Compared::Decided(Ordering::Greater);
                };
                Compared::Whole(read + 1, order.then(digit.cmp(own)))
            }
            Compared::Fraction(at) => {
                let own = bound.fraction.get(at as usize);
                match (digit.cmp(own.unwrap_or(&0)), own) {
                    (Ordering::Equal, Some(_)) => Compared::Fraction(at + 1),
                    (Ordering::Equal, None) => self,
                    (order, _) => Compared::Decided(order),
                }
            }
        }
    }

    fn after_whole(self, bound: &Bound) -> Compared {
        let Compared::Whole(read, order) = self else { return self };
        match (read as usize).cmp(&bound.whole.len()).then(order) {
            Ordering::Equal => Compared::Fraction(0),
            order => Compared::Decided(order),
        }
    }
}

impl Rest {
    fn after(self, digit: u8, places: u32, divisor: Divisor) -> Rest {
        let Rest::Residue(value, at) = self else { return self };
        if at + places > divisor.scale {
            return if digit == 0 { self } else { Rest::Off };
        }
        let value = (u128::from(value) * 10 + u128::from(digit))
            % u128::from(divisor.units);
        Rest::Residue(u64::try_from(value).unwrap_or(0), at + places)
    }

    /// Whether nothing is left over.
    fn is_none(self, divisor: Divisor) -> bool {
        let Rest::Residue(value, at) = self else { return false };
        let units = u128::from(divisor.units);
        let missing = divisor.scale - at.min(divisor.scale);
        let digits = 0..missing;
        digits.fold(u128::from(value), |value, _| value * 10 % units) == 0
    }
}

impl Bound {
    fn new(value: &Decimal) -> Option<Bound> {
        let point = value.magnitude();
        if point.abs() > MAX_DIGITS || value.exponent().abs() > MAX_DIGITS {
            return None;
        }
        let mut digits = value.digits();
        let zeros = usize::try_from(value.exponent().max(0)).ok()?;
        digits.resize(digits.len() + zeros, 0);
        let before = usize::try_from((1 - point).max(0)).ok()?;
        digits.splice(0..0, std::iter::repeat_n(0, before));
        let fraction = digits.split_off(usize::try_from(point.max(1)).ok()?);
        Some(Bound { negative: value.is_negative(), whole: digits, fraction })
    }
}

impl Divisor {
    fn new(divisor: &Decimal) -> Option<Divisor> {
        let scale = u32::try_from(divisor.exponent().saturating_neg().max(0));
        let scale = scale.ok().filter(|&scale| scale <= 18)?;
        let units = divisor.to_scaled_u64(scale).filter(|&it| it > 0)?;
        Some(Divisor { units, scale })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use NumberFormula::{And, Ge, Gt, In, Integer, Le, Lt, MultipleOf, Not};

    fn number(text: &str) -> Decimal {
        text.parse().expect("a number")
    }

    fn holds(formula: &NumberFormula, text: &str) -> bool {
        let numbers = PlainNumbers::new(formula).expect("small numbers");
        let mut state = numbers.start();
        for byte in text.bytes() {
            match numbers.step(&state, byte) {
                Some(next) => state = next,
                None => return false,
            }
        }
        numbers.may_end(&state)
    }

    #[test]
    fn the_automaton_says_what_arithmetic_says() {
        let texts = [
            "0", "-0", "0.0", "0.5", "0.49", "0.50", "0.500001", "1", "1.0",
            "9", "10", "10.5", "99", "100", "-1", "-9.99", "-10", "-10.01",
            "12.34", "12.340", "12.345", "0.01", "0.001", "1000000", "-100",
            "7", "14", "21", "0.7", "1.4", "15", "1.5", "105",
        ];
        let formulas = [
            Ge(number("0.5")),
            Gt(number("-10")),
            Le(number("12.34")),
            Lt(number("100")),
            In(vec![number("10"), number("0.01"), number("-0")]),
            Not(Box::new(In(vec![number("1"), number("100")]))),
            MultipleOf(number("0.01")),
            MultipleOf(number("7")),
            MultipleOf(number("100")),
            MultipleOf(number("1.5")),
            And(vec![Gt(number("-1")), Le(number("1e1"))]),
        ];
        for formula in &formulas {
            let program = Program::new(formula);
            let whole = Cells::of_program(&program).all_integers();
            for text in texts {
                let is_whole = !text.contains('.');
                let expected = program.eval(&number(text), is_whole)
                    && (is_whole || !whole);
                assert_eq!(
                    holds(formula, text),
                    expected,
                    "{formula:?} {text}"
                );
            }
        }
        assert!(!holds(&Integer, "1.0") && holds(&Integer, "-12"));
        for text in ["01", "-", "1.", ".5", "1e1", "+1", ""] {
            assert!(!holds(&NumberFormula::True, text), "{text}");
        }
        assert!(PlainNumbers::new(&Ge(number("1e500"))).is_none());
    }
}
