//! Which prefixes behave alike.
//!
//! A prefix is replaced by a representative of its class, so that a cache
//! over states stays small. Two facts decide what may be forgotten.
//!
//! *Order.* Digits matter only until the comparison with every bound is
//! decided. The significant digits of all bounds cut the digit strings into
//! gaps; a prefix that lies wholly in a gap is as good as any other of that
//! gap with the same place of its point, and further digits do not matter.
//!
//! *Divisors.* Where a text has no exponent, all divisors together are
//! multiples of `10^-scale` with a least common multiple of `modulus` such
//! units, and the digits matter only by their residue. Where a text may have
//! an exponent, all digits are kept.

use super::{
    Decimal,
    formula::{Atom, Program},
    state::{Digits, Phase, Prefix},
};

/// The largest power of ten of a place that a divisor may have to be tracked
/// by its residue.
const MAX_SCALE: u32 = 18;

/// What is kept of digits past the decision.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Keep {
    Nothing,
    Residue { modulus: u64, scale: u32 },
    Everything,
}

/// The classes of prefixes under one specification.
#[derive(Clone, Debug)]
pub(super) struct Classes {
    /// The significant digits of all bounds, sorted as fractions `0.digits`.
    bounds: Vec<Digits>,
    /// For the gap below each bound, and the one above all, the shortest
    /// digits that lie wholly in it.
    gaps: Vec<Option<Digits>>,
    /// A single 1, for numbers whose digits do not matter at all.
    unit: Digits,
    /// The magnitudes of all bounds, sorted.
    points: Vec<i64>,
    keep: Keep,
    /// Whether texts are without exponents and their digits counted.
    counted: bool,
    /// Whether nothing compares, so that the sign does not matter.
    sign_free: bool,
    /// Exponents past this one, plus the size of the mantissa, are alike.
    max_exponent: i64,
}

impl Classes {
    /// Works out the classes that no program tells apart. `limit` is one more
    /// bound, on the absolute value.
    pub(super) fn new<'p>(
        programs: impl Iterator<Item = &'p Program>,
        limit: Option<&Decimal>,
        counted: bool,
    ) -> Classes {
        let mut bounds: Vec<&Decimal> = Vec::new();
        let mut divisors: Vec<&Decimal> = Vec::new();
        for atom in programs.flat_map(Program::atoms) {
            match atom {
                Atom::Ge(bound) | Atom::Gt(bound) => bounds.push(bound),
                Atom::In(values) => bounds.extend(values),
                Atom::MultipleOf(divisor) => divisors.push(divisor),
                Atom::IntegerText => {}
            }
        }
        let sign_free = bounds.is_empty();
        bounds.extend(limit);
        bounds.retain(|bound| !bound.is_zero());
        let size = |value: &&&Decimal| {
            value.magnitude().saturating_abs()
                + value.exponent().saturating_abs()
                + 4 * i64::try_from(value.n_digits()).unwrap_or(0)
        };
        let max_exponent = 64
            + bounds.iter().map(|v| size(&v)).max().unwrap_or(0)
            + divisors.iter().map(|v| size(&v)).max().unwrap_or(0);
        let mut points: Vec<i64> =
            bounds.iter().map(|bound| bound.magnitude()).collect();
        points.sort_unstable();
        points.dedup();
        let keep = keep(&divisors, counted);
        let mut bounds: Vec<Digits> = bounds
            .iter()
            .map(|bound| Digits::from_vec(bound.digits()))
            .collect();
        bounds.sort_unstable();
        bounds.dedup();
        let gaps = (0..=bounds.len()).map(|gap| gap_digits(&bounds, gap));
        let gaps = gaps.collect();
        Classes {
            bounds,
            gaps,
            unit: Digits::from_elem(1, 1),
            points,
            keep,
            counted,
            sign_free,
            max_exponent,
        }
    }

    /// Replaces a prefix by the representative of its class.
    pub(super) fn reduce(&self, prefix: &mut Prefix) {
        if self.sign_free && prefix.phase != Phase::Minus {
            prefix.negative = false;
        }
        if prefix.phase.is_exponent() {
            self.reduce_exponent(prefix);
            return;
        }
        if prefix.digits.is_empty() || !prefix.phase.is_mantissa() {
            return;
        }
        let Some(decided) = self.decided(prefix) else {
            return;
        };
        let length = prefix.length as usize;
        let gap = match decided.gap {
            Some(gap) => self.gaps[gap].as_ref(),
            None => Some(&self.unit),
        };
        let gap = gap.filter(|digits| digits.len() <= length);
        match self.keep {
            Keep::Everything => {}
            Keep::Nothing => {
                match gap {
                    Some(digits) => prefix.digits.clone_from(digits),
                    None => prefix.digits.truncate(decided.length),
                }
                if self.counted {
                    self.reduce_point(prefix);
                } else {
                    let length = gap.map_or(decided.length, Digits::len);
                    prefix.length = u32::try_from(length).unwrap_or(u32::MAX);
                }
            }
            Keep::Residue { modulus, scale } => {
                let own: Digits =
                    (0..decided.length).map(|i| prefix.digit(i)).collect();
                let digits = gap
                    .and_then(|head| {
                        with_residue(prefix, head, modulus, scale)
                    })
                    .or_else(|| with_residue(prefix, &own, modulus, scale));
                if let Some(digits) = digits {
                    prefix.digits = digits;
                }
            }
        }
        prefix.trim();
    }

    /// Returns true if and only if no further digit matters.
    pub(super) fn is_decided(&self, prefix: &Prefix) -> bool {
        self.keep == Keep::Nothing
            && !prefix.digits.is_empty()
            && self.decided(prefix).is_some()
    }

    /// Forgets where the point of a decided number stands, as far as no
    /// bound has a magnitude in between. The count of digits stays.
    fn reduce_point(&self, prefix: &mut Prefix) {
        if prefix.phase != Phase::Fraction || self.has_bound_at(prefix.point) {
            return;
        }
        let above = self.points.partition_point(|&p| p < prefix.point);
        let floor = above.checked_sub(1).map(|index| self.points[index] + 1);
        let ceiling = self.points.get(above).map(|point| point - 1);
        let point = floor.map_or(1, |floor| floor.max(1));
        let point = ceiling.map_or(point, |ceiling| ceiling.min(point));
        let n_written = prefix.n_written();
        let length =
            if point >= 1 { n_written } else { n_written - 1 + point };
        prefix.point = point;
        prefix.length = u32::try_from(length).unwrap_or(0);
    }

    fn has_bound_at(&self, point: i64) -> bool {
        self.points.binary_search(&point).is_ok()
    }

    fn reduce_exponent(&self, prefix: &mut Prefix) {
        if prefix.digits.is_empty() {
            prefix.point = 0;
            prefix.exponent = 0;
            prefix.exponent_negative = false;
            prefix.negative &= !self.sign_free;
            return;
        }
        prefix.length = u32::try_from(prefix.digits.len()).unwrap_or(u32::MAX);
        let most = self
            .max_exponent
            .saturating_add(prefix.point.saturating_abs())
            .saturating_add(4 * i64::from(prefix.length));
        prefix.exponent = prefix.exponent.min(most);
    }

    /// Finds the first digits of a prefix after which it lies in a gap.
    fn decided(&self, prefix: &Prefix) -> Option<Decided> {
        let is_placed = matches!(prefix.phase, Phase::Point | Phase::Fraction);
        if self.counted && is_placed && !self.has_bound_at(prefix.point) {
            return Some(Decided { gap: None, length: 1 });
        }
        // The bounds that begin with the digits so far, padded with zeros.
        let mut first = 0;
        let mut last = self.bounds.len();
        for index in 0..prefix.length as usize {
            let digit = prefix.digit(index);
            let at = |bound: &Digits| bound.get(index).copied().unwrap_or(0);
            let range = &self.bounds[first..last];
            let start = range.partition_point(|b| at(b) < digit);
            let end = range.partition_point(|b| at(b) <= digit);
            (first, last) = (first + start, first + end);
            if first == last {
                return Some(Decided { gap: Some(first), length: index + 1 });
            }
        }
        None
    }
}

struct Decided {
    /// The gap of the digits; `None` where the place of the point alone
    /// tells the number from all bounds.
    gap: Option<usize>,
    length: usize,
}

/// Decides what of the divisors can be tracked by a residue.
fn keep(divisors: &[&Decimal], counted: bool) -> Keep {
    if divisors.is_empty() {
        return Keep::Nothing;
    }
    let scale = divisors.iter().map(|d| -d.exponent()).max().unwrap_or(0);
    let scale = u32::try_from(scale.max(0)).unwrap_or(u32::MAX);
    if !counted || scale > MAX_SCALE {
        return Keep::Everything;
    }
    let modulus = divisors.iter().try_fold(1_u64, |modulus, divisor| {
        let units = divisor.to_scaled_u64(scale)?;
        let gcd = num_integer::gcd(modulus, units);
        (modulus / gcd).checked_mul(units)
    });
    match modulus {
        Some(modulus) if modulus < 1 << 60 => Keep::Residue { modulus, scale },
        _ => Keep::Everything,
    }
}

/// Returns digits that begin with `head`, are as many as those of the prefix
/// and have the same residues, if there are any.
fn with_residue(
    prefix: &Prefix,
    head: &[u8],
    modulus: u64,
    scale: u32,
) -> Option<Digits> {
    let length = prefix.length as usize;
    let n_fraction = match prefix.phase {
        Phase::Fraction => usize::try_from(prefix.n_fraction()).ok()?,
        _ => 0,
    };
    let beyond = n_fraction.saturating_sub(scale as usize);
    let tracked = length.saturating_sub(beyond);
    let mut digits = Digits::from_slice(head);
    if prefix.digits.len() > tracked {
        // A digit past the last place of all divisors: never a multiple.
        if head.len() < length {
            digits.resize(length - 1, 0);
            digits.push(1);
        }
        return Some(digits);
    }
    if head.len() > tracked {
        let same = (0..head.len()).all(|i| head[i] == prefix.digit(i));
        return same.then_some(digits);
    }
    let modulus = u128::from(modulus);
    let residue = |digits: &mut dyn Iterator<Item = u8>| {
        digits.fold(0_u128, |value, digit| {
            (value * 10 + u128::from(digit)) % modulus
        })
    };
    let wanted = residue(&mut (0..tracked).map(|i| prefix.digit(i)));
    let padding = std::iter::repeat_n(0, tracked - head.len());
    let base = residue(&mut head.iter().copied().chain(padding));
    let mut tail = (wanted + modulus - base) % modulus;
    digits.resize(tracked, 0);
    for digit in digits[head.len()..].iter_mut().rev() {
        *digit = u8::try_from(tail % 10).unwrap_or(0);
        tail /= 10;
    }
    (tail == 0).then_some(digits)
}

/// Returns the shortest digits that lie wholly between two neighbouring
/// bounds.
fn gap_digits(bounds: &[Digits], gap: usize) -> Option<Digits> {
    let below = gap.checked_sub(1).map(|index| &bounds[index]);
    let above = bounds.get(gap);
    let longest = [below, above].into_iter().flatten().map(Digits::len).max();
    (1..=longest.unwrap_or(0) + 1).find_map(|length| {
        let mut digits = Digits::from_elem(0, length);
        match below {
            None => digits[0] = 1,
            Some(below) => {
                for (digit, given) in digits.iter_mut().zip(below) {
                    *digit = *given;
                }
                let place = digits.iter().rposition(|&digit| digit < 9)?;
                digits[place] += 1;
                digits[place + 1..].fill(0);
            }
        }
        let fits = above.is_none_or(|above| {
            let mut padded = above.clone();
            padded.resize(length.max(above.len()), 0);
            digits[..] < padded[..length]
        });
        fits.then_some(digits)
    })
}
