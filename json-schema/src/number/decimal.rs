//! An exact decimal number of any size.
//!
//! A [`Decimal`] is a sign, a whole mantissa and a power of ten, kept in
//! lowest terms: the mantissa has no trailing zero, and zero has one form.
//! Equal values are therefore equal structs with equal hashes, and `1e400` is
//! as small as `1`. Order is decided by magnitude first, and digits are only
//! aligned when two magnitudes agree, which never needs more digits than the
//! longer mantissa already has.

use std::{cmp::Ordering, fmt};

use num_bigint::BigUint;
use num_integer::Integer;
use num_traits::{One, Pow, ToPrimitive, Zero};

/// The most decimal places by which two numbers are shifted against each
/// other to compute with them. Past it the arithmetic gives up (`None`);
/// order, equality and divisibility never need it.
const MAX_SHIFT: u64 = 4_096;

/// The largest absolute exponent that a number text may denote.
const MAX_EXPONENT: i64 = 100_000_000_000_000_000;

/// The longest run of zeros that `Display` writes instead of an exponent.
const MAX_PLAIN_ZEROS: i64 = 20;

/// A whole number with a fast path for ordinary sizes.
///
/// Invariant: `Big` holds only what does not fit `Small`, so that the derived
/// equality and hash are those of the value.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Whole {
    Small(u128),
    Big(BigUint),
}

impl Whole {
    fn from_big(value: BigUint) -> Whole {
        match value.to_u128() {
            Some(small) => Whole::Small(small),
            None => Whole::Big(value),
        }
    }

    fn to_big(&self) -> BigUint {
        match self {
            Whole::Small(value) => BigUint::from(*value),
            Whole::Big(value) => value.clone(),
        }
    }

    fn times_pow10(&self, shift: u64) -> Whole {
        if let Whole::Small(value) = self
            && let Some(product) =
                pow10_u128(shift).and_then(|power| value.checked_mul(power))
        {
            return Whole::Small(product);
        }
        Whole::from_big(self.to_big() * pow10_big(shift))
    }

    fn plus(&self, other: &Whole) -> Whole {
        if let (Whole::Small(left), Whole::Small(right)) = (self, other)
            && let Some(sum) = left.checked_add(*right)
        {
            return Whole::Small(sum);
        }
        Whole::from_big(self.to_big() + other.to_big())
    }

    fn compare(&self, other: &Whole) -> Ordering {
        match (self, other) {
            (Whole::Small(left), Whole::Small(right)) => left.cmp(right),
            (Whole::Big(left), Whole::Big(right)) => left.cmp(right),
            (Whole::Small(_), Whole::Big(_)) => Ordering::Less,
            (Whole::Big(_), Whole::Small(_)) => Ordering::Greater,
        }
    }
}

/// An exact decimal number of any size, ordered and compared by value.
///
/// # Example
///
/// ```
/// use maskwright_json_schema::number::Decimal;
///
/// let parse = |text: &str| text.parse::<Decimal>();
/// assert_eq!(parse("10e-1")?, parse("1.0")?);
/// assert!(parse("1e400")? < parse("1e999999999")?);
/// assert!(parse("19.99")?.is_multiple_of(&parse("0.01")?));
/// # Ok::<(), maskwright_json_schema::number::DecimalError>(())
/// ```
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct Decimal {
    negative: bool,
    mantissa: Whole,
    /// The number of digits of `mantissa`; 0 for zero.
    n_digits: u64,
    exponent: i64,
}

impl Decimal {
    /// Returns zero.
    pub fn zero() -> Decimal {
        Decimal {
            negative: false,
            mantissa: Whole::Small(0),
            n_digits: 0,
            exponent: 0,
        }
    }

    /// Returns ten to the power of `exponent`.
    pub(super) fn pow10(exponent: i64) -> Decimal {
        Decimal {
            negative: false,
            mantissa: Whole::Small(1),
            n_digits: 1,
            exponent,
        }
    }

    /// Returns the bound of the doubles: a value is nearest to a finite
    /// double exactly when its absolute value is below this one.
    pub(super) fn f64_limit() -> Decimal {
        let one = BigUint::one();
        Decimal::reduce(
            false,
            Whole::from_big((&one << 1024_u32) - (&one << 970_u32)),
            0,
        )
    }

    /// Builds a number from the digits of its mantissa, given as ASCII or as
    /// values 0 to 9, without leading or trailing zeros.
    pub(super) fn from_reduced_digits(
        negative: bool,
        digits: &[u8],
        exponent: i64,
    ) -> Decimal {
        if digits.is_empty() {
            return Decimal::zero();
        }
        let mantissa = if digits.len() <= 38 {
            Whole::Small(
                digits.iter().fold(0, |m, d| m * 10 + u128::from(d & 15)),
            )
        } else {
            let values: Vec<u8> = digits.iter().map(|d| d & 15).collect();
            let whole = BigUint::from_radix_be(&values, 10);
            Whole::from_big(whole.unwrap_or_default())
        };
        let n_digits = digits.len() as u64;
        Decimal { negative, mantissa, n_digits, exponent }
    }

    /// Brings a mantissa and an exponent into lowest terms.
    fn reduce(negative: bool, mantissa: Whole, exponent: i64) -> Decimal {
        match mantissa {
            Whole::Small(0) => Decimal::zero(),
            Whole::Small(mut value) => {
                let mut exponent = exponent;
                while value % 10 == 0 {
                    value /= 10;
                    exponent += 1;
                }
                Decimal {
                    negative,
                    mantissa: Whole::Small(value),
                    n_digits: u64::from(value.ilog10()) + 1,
                    exponent,
                }
            }
            Whole::Big(value) => {
                let digits = value.to_radix_be(10);
                let kept = without_trailing_zeros(&digits);
                let dropped = (digits.len() - kept.len()) as u64;
                Decimal::from_reduced_digits(
                    negative,
                    kept,
                    exponent.saturating_add_unsigned(dropped),
                )
            }
        }
    }

    /// Returns true if and only if this is zero.
    pub fn is_zero(&self) -> bool {
        self.n_digits == 0
    }

    /// Returns true if and only if this is below zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Returns true if and only if this is a whole number.
    pub fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// Returns the power of ten of the last significant digit; 0 for zero.
    pub fn exponent(&self) -> i64 {
        self.exponent
    }

    /// Returns the number of significant digits; 0 for zero.
    pub fn n_digits(&self) -> u64 {
        self.n_digits
    }

    /// Returns how many digits stand before the decimal point in plain
    /// spelling. It is zero or less for numbers below 0.1, and the value lies
    /// in `[10^(magnitude-1), 10^magnitude)`.
    pub(super) fn magnitude(&self) -> i64 {
        self.exponent.saturating_add_unsigned(self.n_digits)
    }

    /// Returns the significant digits as values 0 to 9; none for zero.
    pub(super) fn digits(&self) -> Vec<u8> {
        match &self.mantissa {
            Whole::Small(0) => Vec::new(),
            Whole::Small(value) => {
                value.to_string().bytes().map(|b| b - b'0').collect()
            }
            Whole::Big(value) => value.to_radix_be(10),
        }
    }

    /// Returns the absolute value.
    #[must_use]
    pub fn abs(&self) -> Decimal {
        Decimal { negative: false, ..self.clone() }
    }

    /// Returns the number with the opposite sign.
    #[must_use]
    pub fn negated(&self) -> Decimal {
        let negative = !self.negative && !self.is_zero();
        Decimal { negative, ..self.clone() }
    }

    /// Returns true if and only if this is a whole multiple of `divisor`,
    /// whose sign does not matter. Only zero is a multiple of zero.
    pub fn is_multiple_of(&self, divisor: &Decimal) -> bool {
        if self.is_zero() || divisor.is_zero() {
            return self.is_zero();
        }
        // The mantissa has no factor ten, so it cannot make up for one.
        let Ok(shift) = u64::try_from(self.exponent - divisor.exponent) else {
            return false;
        };
        if let (Whole::Small(value), Whole::Small(by)) =
            (&self.mantissa, &divisor.mantissa)
        {
            if *by == 1 || value % by == 0 {
                return true;
            }
            if let Some(value) =
                pow10_u128(shift).and_then(|p| value.checked_mul(p))
            {
                return value % by == 0;
            }
        }
        let by = divisor.mantissa.to_big();
        let rest = &by / self.mantissa.to_big().gcd(&by);
        divides_pow10(rest, shift)
    }

    /// Returns the sum of two numbers that are not negative, or `None` when
    /// they are too far apart to add.
    pub(super) fn plus(&self, other: &Decimal) -> Option<Decimal> {
        if other.is_zero() {
            return Some(self.clone());
        }
        let (left, right, exponent) = self.aligned(other)?;
        Some(Decimal::reduce(false, left.plus(&right), exponent))
    }

    /// Returns the least multiple of `step` that is at least this number, or
    /// greater than it when `strict`; `None` when they are too far apart.
    /// Neither is negative, and `step` is not zero.
    pub(super) fn next_multiple(
        &self,
        step: &Decimal,
        strict: bool,
    ) -> Option<Decimal> {
        if !strict && self.is_multiple_of(step) {
            return Some(self.clone());
        }
        if self.is_zero() || self.magnitude() < step.magnitude() {
            return Some(step.clone());
        }
        let (value, step, exponent) = self.aligned(step)?;
        let whole = match (&value, &step) {
            (Whole::Small(value), Whole::Small(step)) => (value / step)
                .checked_add(1)
                .and_then(|count| count.checked_mul(*step))
                .map(Whole::Small),
            _ => None,
        };
        let whole = whole.unwrap_or_else(|| {
            let step = step.to_big();
            Whole::from_big((value.to_big() / &step + 1_u32) * step)
        });
        // Here the number is no multiple, or the next one is wanted anyway.
        Some(Decimal::reduce(false, whole, exponent))
    }

    /// Returns the least positive number that is a multiple of both, or
    /// `None` when they are too far apart. Both are positive.
    pub(super) fn lcm(&self, other: &Decimal) -> Option<Decimal> {
        if self.is_multiple_of(other) {
            return Some(self.clone());
        }
        if other.is_multiple_of(self) {
            return Some(other.clone());
        }
        let (left, right, exponent) = self.aligned(other)?;
        let whole = left.to_big().lcm(&right.to_big());
        Some(Decimal::reduce(false, Whole::from_big(whole), exponent))
    }

    /// Returns the least power of ten that makes this number a multiple of a
    /// positive divisor, if there is one. All greater powers do so too.
    pub(super) fn first_multiple_shift(
        &self,
        divisor: &Decimal,
    ) -> Option<i64> {
        let by = divisor.mantissa.to_big();
        let mut rest = &by / self.mantissa.to_big().gcd(&by);
        let twos = rest.trailing_zeros().unwrap_or(0);
        rest >>= twos;
        let mut fives = 0;
        while !rest.is_one() {
            let (quotient, left) = rest.div_rem(&BigUint::from(5_u32));
            if !left.is_zero() {
                return None;
            }
            fives += 1;
            rest = quotient;
        }
        let power = i64::try_from(twos.max(fives)).ok()?;
        Some(power - (self.exponent - divisor.exponent))
    }

    /// Returns this number as a whole count of `10^-scale`, if it is one and
    /// fits.
    pub(super) fn to_scaled_u64(&self, scale: u32) -> Option<u64> {
        let shift = u64::try_from(self.exponent + i64::from(scale)).ok()?;
        if self.is_zero() {
            return Some(0);
        }
        if shift > 20 {
            return None;
        }
        match self.mantissa.times_pow10(shift) {
            Whole::Small(value) => u64::try_from(value).ok(),
            Whole::Big(_) => None,
        }
    }

    /// Returns this number times a power of ten.
    pub(super) fn scaled(&self, shift: i64) -> Decimal {
        if self.is_zero() {
            return self.clone();
        }
        let exponent = self.exponent.saturating_add(shift);
        Decimal { exponent, ..self.clone() }
    }

    /// Returns both absolute values as whole counts of one power of ten.
    fn aligned(&self, other: &Decimal) -> Option<(Whole, Whole, i64)> {
        let exponent = if self.is_zero() {
            other.exponent
        } else {
            self.exponent.min(other.exponent)
        };
        let shift = |value: &Decimal| {
            let shift = value.exponent.saturating_sub(exponent);
            let shift = u64::try_from(shift).unwrap_or(0);
            (shift <= MAX_SHIFT).then(|| value.mantissa.times_pow10(shift))
        };
        Some((shift(self)?, shift(other)?, exponent))
    }

    fn compare_abs(&self, other: &Decimal) -> Ordering {
        if self.is_zero() || other.is_zero() {
            return self.n_digits.cmp(&other.n_digits);
        }
        let by_magnitude = self.magnitude().cmp(&other.magnitude());
        by_magnitude.then_with(|| {
            // Equal magnitudes differ in exponent by the lengths' difference.
            match self.n_digits.cmp(&other.n_digits) {
                Ordering::Equal => self.mantissa.compare(&other.mantissa),
                Ordering::Less => self
                    .mantissa
                    .times_pow10(other.n_digits - self.n_digits)
                    .compare(&other.mantissa),
                Ordering::Greater => self.mantissa.compare(
                    &other
                        .mantissa
                        .times_pow10(self.n_digits - other.n_digits),
                ),
            }
        })
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.compare_abs(other),
            (true, true) => other.compare_abs(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Decimal {
        let mantissa = Whole::Small(u128::from(value.unsigned_abs()));
        Decimal::reduce(value < 0, mantissa, 0)
    }
}

impl From<u64> for Decimal {
    fn from(value: u64) -> Decimal {
        Decimal::reduce(false, Whole::Small(u128::from(value)), 0)
    }
}

impl std::str::FromStr for Decimal {
    type Err = DecimalError;

    /// Parses the text of a JSON number.
    fn from_str(text: &str) -> Result<Decimal, DecimalError> {
        let syntax = || DecimalError { exponent: false };
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match rest.find(['e', 'E']) {
            Some(at) => (&rest[..at], Some(&rest[at + 1..])),
            None => (rest, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        if !is_digits(whole)
            || leading_zero
            || fraction.is_some_and(|digits| !is_digits(digits))
        {
            return Err(syntax());
        }
        let fraction = fraction.unwrap_or("");
        let written = match exponent {
            Some(text) => parse_exponent(text).ok_or_else(syntax)?,
            None => 0,
        };
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let kept = without_trailing_zeros(&digits);
        let dropped = digits.len() - kept.len();
        let start = kept.iter().position(|&d| d != b'0').unwrap_or(kept.len());
        let kept = &kept[start..];
        if kept.is_empty() {
            return Ok(Decimal::zero());
        }
        if written.abs() > MAX_EXPONENT {
            return Err(DecimalError { exponent: true });
        }
        let exponent = written
            .saturating_sub_unsigned(fraction.len() as u64)
            .saturating_add_unsigned(dropped as u64);
        Ok(Decimal::from_reduced_digits(negative, kept, exponent))
    }
}

/// The shortest of plain and exponent spelling, as JSON.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        let digits: String =
            self.digits().iter().map(|d| char::from(d + b'0')).collect();
        let point = self.magnitude();
        if digits.is_empty() {
            return f.write_str("0");
        }
        f.write_str(sign)?;
        if (0..=MAX_PLAIN_ZEROS).contains(&self.exponent) {
            let zeros = usize::try_from(self.exponent).unwrap_or(0);
            write!(f, "{digits}{}", "0".repeat(zeros))
        } else if self.exponent < 0 && point > 0 {
            let at = usize::try_from(point).unwrap_or(0);
            write!(f, "{}.{}", &digits[..at], &digits[at..])
        } else if self.exponent < 0 && point > -MAX_PLAIN_ZEROS {
            let zeros = usize::try_from(-point).unwrap_or(0);
            write!(f, "0.{}{digits}", "0".repeat(zeros))
        } else {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            write!(f, "{first}{dot}{rest}e{}", point - 1)
        }
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An error that occurs when a text is no number this module can hold.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DecimalError {
    /// Whether the syntax is right and only the exponent is too large.
    exponent: bool,
}

impl std::error::Error for DecimalError {}

impl fmt::Display for DecimalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.exponent {
            write!(
                f,
                "the exponent is past {MAX_EXPONENT} in absolute value; \
                 write a number nearer to one"
            )
        } else {
            f.write_str("the text is not a JSON number")
        }
    }
}

/// Returns a count as a number that can be subtracted from places.
pub(super) fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses an exponent, saturating; `None` when it is malformed.
fn parse_exponent(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    let value = is_digits(digits).then(|| {
        digits.bytes().fold(0_i64, |value, digit| {
            value.saturating_mul(10).saturating_add(i64::from(digit & 15))
        })
    })?;
    Some(if negative { -value } else { value })
}

/// Works on digit values and on ASCII digits alike.
fn without_trailing_zeros(digits: &[u8]) -> &[u8] {
    let end = digits.iter().rposition(|d| d & 15 != 0).map_or(0, |at| at + 1);
    &digits[..end]
}

fn pow10_u128(exponent: u64) -> Option<u128> {
    10_u128.checked_pow(u32::try_from(exponent).ok()?)
}

fn pow10_big(exponent: u64) -> BigUint {
    Pow::pow(BigUint::from(10_u32), exponent)
}

/// Returns true if and only if `value` divides `10^power`.
fn divides_pow10(mut value: BigUint, power: u64) -> bool {
    let twos = value.trailing_zeros().unwrap_or(0);
    if twos > power {
        return false;
    }
    value >>= twos;
    let mut fives = 0;
    while !value.is_one() {
        let (quotient, rest) = value.div_rem(&BigUint::from(5_u32));
        fives += 1;
        if !rest.is_zero() || fives > power {
            return false;
        }
        value = quotient;
    }
    true
}
