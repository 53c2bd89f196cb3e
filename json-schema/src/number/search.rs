//! Looking for a number that begins with a prefix.
//!
//! The values that a prefix can still reach form windows. Let `W` be the
//! digits read so far.
//!
//! - Without exponents, a whole part reaches `[W, W+1) * 10^j` for every
//!   count `j` of further digits, and a fraction reaches one window. The
//!   digits left over give the places that a value may use.
//! - With exponents, any mantissa reaches `[W, W+1) * 10^e` for every `e`;
//!   a mantissa that is zero so far reaches everything.
//! - Within the exponent the mantissa is fixed, and the exponents that put it
//!   into a cell form one interval, less single exponents.
//!
//! Only windows next to the ends of a cell, or near the size of its divisor,
//! can differ from the others, so few are looked at.

use super::{
    Decimal,
    cells::{Cell, Pick, Spelled, Window},
    decimal::signed,
    spec::NumberSpec,
    state::{Phase, Prefix},
};

/// The most digits of a whole number that may have no exponent by its
/// spelling and has no limit on its digits.
const MAX_WHOLE_DIGITS: i64 = 5_000;

/// Digits past which a prefix that still follows a bound is let through: its
/// window would cost more than it tells.
const MAX_WINDOW_DIGITS: u32 = 2_000;

/// A value to aim at: the mantissa to spell and the exponent to add.
struct Target {
    mantissa: Decimal,
    exponent: i64,
}

impl NumberSpec {
    /// Looks for bytes that complete a prefix. Unless `exact`, only whether
    /// there are any is answered, by an arbitrary text.
    pub(super) fn search(
        &self,
        prefix: &Prefix,
        exact: bool,
    ) -> Option<Vec<u8>> {
        match prefix.phase {
            Phase::Start | Phase::Minus => self.search_first(prefix, exact),
            phase if self.free => Some(match phase {
                Phase::Point | Phase::Exponent | Phase::ExponentSign => {
                    b"0".to_vec()
                }
                _ => Vec::new(),
            }),
            phase if phase.is_exponent() => {
                self.cells_of(prefix).find_map(|cell| {
                    if cell.spelled == Spelled::Integer {
                        return None;
                    }
                    search_exponent(cell, prefix)
                })
            }
            _ => self.cells_of(prefix).find_map(|cell| {
                if prefix.length > MAX_WINDOW_DIGITS && !exact {
                    return Some(Vec::new());
                }
                if self.exponent && cell.spelled != Spelled::Integer {
                    self.search_scaled(cell, prefix, exact)
                } else {
                    self.search_plain(cell, prefix, exact)
                }
            }),
        }
    }

    fn cells_of(&self, prefix: &Prefix) -> std::slice::Iter<'_, Cell> {
        self.halves[usize::from(prefix.negative)].iter()
    }

    fn search_first(&self, prefix: &Prefix, exact: bool) -> Option<Vec<u8>> {
        (b'0'..=b'9').chain([b'-']).find_map(|byte| {
            let next = self.advance(prefix, byte)?;
            let mut text = vec![byte];
            text.append(&mut self.search(&next, exact)?);
            Some(text)
        })
    }

    /// Searches texts without an exponent.
    fn search_plain(
        &self,
        cell: &Cell,
        prefix: &Prefix,
        exact: bool,
    ) -> Option<Vec<u8>> {
        let in_whole = prefix.phase.is_whole();
        if !in_whole && cell.spelled == Spelled::Integer {
            return None;
        }
        let fraction = self.fraction && cell.spelled != Spelled::Integer;
        let max_digits = self.max_digits.map_or(MAX_WHOLE_DIGITS, i64::from);
        let left = if self.max_digits.is_some() {
            max_digits - prefix.n_written()
        } else {
            max_digits - prefix.point
        };
        let must_go_on = prefix.phase == Phase::Point
            || in_whole && cell.spelled == Spelled::NotInteger;
        if left < i64::from(must_go_on) || must_go_on && !fraction {
            return None;
        }
        let low = prefix.mantissa();
        let ulp = prefix.point - i64::from(prefix.length);
        let high = low.plus(&Decimal::pow10(ulp))?;
        let written = if in_whole { 0 } else { prefix.n_fraction() };
        let last = if prefix.phase == Phase::Whole {
            left - i64::from(must_go_on)
        } else {
            0
        };
        for extra in extra_digits(cell, prefix, last) {
            let places = if fraction { written + left - extra } else { 0 };
            let window = Window {
                low: low.scaled(extra),
                high: Some(high.scaled(extra)),
                step: Some(Decimal::pow10(-places)),
            };
            match cell.pick(&window, exact) {
                Pick::Nothing => {}
                Pick::Unknown if exact => {}
                Pick::Unknown => return Some(Vec::new()),
                Pick::Value(_) if !exact => return Some(Vec::new()),
                Pick::Value(mantissa) => {
                    let target = Target { mantissa, exponent: 0 };
                    return Some(completion(prefix, &target, cell.spelled));
                }
            }
        }
        None
    }

    /// Searches texts that may have an exponent, from within the mantissa.
    fn search_scaled(
        &self,
        cell: &Cell,
        prefix: &Prefix,
        exact: bool,
    ) -> Option<Vec<u8>> {
        let answer = |value: Decimal, exponent: i64| {
            if !exact {
                return Vec::new();
            }
            if self.is_decided(prefix) {
                return exponent_only(prefix, exponent, cell.spelled);
            }
            let mantissa = value.scaled(-exponent);
            let target = Target { mantissa, exponent };
            completion(prefix, &target, cell.spelled)
        };
        if prefix.digits.is_empty() {
            return match cell.pick(&Window::whole(), exact) {
                Pick::Value(value) => {
                    // Small enough to follow the zeros that are written.
                    let shift = value.magnitude() - prefix.point;
                    let exponent = match (value.is_zero(), shift) {
                        (false, 1..) => shift,
                        _ => 0,
                    };
                    Some(answer(value, exponent))
                }
                Pick::Unknown if !exact => Some(Vec::new()),
                Pick::Unknown | Pick::Nothing => None,
            };
        }
        let low = prefix.mantissa();
        let ulp = prefix.point - i64::from(prefix.length);
        let high = low.plus(&Decimal::pow10(ulp))?;
        for magnitude in magnitudes(cell, prefix) {
            let shift = magnitude - prefix.point;
            let window = Window {
                low: low.scaled(shift),
                high: Some(high.scaled(shift)),
                step: None,
            };
            match cell.pick(&window, exact) {
                Pick::Value(value) => return Some(answer(value, shift)),
                Pick::Unknown if !exact => return Some(Vec::new()),
                Pick::Unknown | Pick::Nothing => {}
            }
        }
        None
    }
}

/// Lists how many further digits of the whole part are worth a look.
fn extra_digits(
    cell: &Cell,
    prefix: &Prefix,
    last: i64,
) -> impl Iterator<Item = i64> + use<> {
    let point = prefix.point;
    let mut first = 0;
    let mut last = last;
    let mut listed = Vec::new();
    if prefix.phase == Phase::Whole {
        if let Some(low) = &cell.low {
            first = first.max(low.value.magnitude() - point);
        }
        if let Some(high) = &cell.high {
            last = last.min(high.value.magnitude() - point);
        }
        if let Some(only) = &cell.only {
            listed.extend(only.iter().map(|v| v.magnitude() - point));
            listed.retain(|extra| (first..=last).contains(extra));
            listed.dedup();
            last = -1;
        }
    }
    let size = cell.multiple.as_ref().map_or(0, |multiple| {
        multiple.magnitude().saturating_sub(point).max(0)
    });
    let near = first.saturating_add(size).saturating_add(64).min(last);
    let far = (last - 1).max(near + 1);
    listed.into_iter().chain(first..=near).chain(far..=last)
}

/// Lists the magnitudes at which the digits of a prefix are worth a look.
fn magnitudes(
    cell: &Cell,
    prefix: &Prefix,
) -> impl Iterator<Item = i64> + use<> {
    let low = cell.low.as_ref().filter(|low| !low.value.is_zero());
    let low = low.map(|low| low.value.magnitude());
    let high = cell.high.as_ref().map(|high| high.value.magnitude());
    let mut list = vec![prefix.point];
    if let Some(only) = &cell.only {
        list.clear();
        list.extend(only.iter().map(Decimal::magnitude));
        list.dedup();
    }
    if let Some(high) = high {
        list.extend([high, high - 1]);
    }
    if let Some(multiple) = &cell.multiple {
        let size = multiple.magnitude();
        let base = low.map_or(size, |low| low.max(size));
        // Past this many places a window is wider than the longest run of
        // values that are forbidden.
        let places = i64::from(prefix.length) + 6;
        list.extend(base..=base.saturating_add(places));
    } else if let Some(low) = low {
        list.extend([low, low + 1]);
    }
    list.into_iter().filter(move |&magnitude| {
        low.is_none_or(|low| magnitude >= low)
            && high.is_none_or(|high| magnitude <= high)
    })
}

/// Searches the exponents that put a finished mantissa into a cell.
fn search_exponent(cell: &Cell, prefix: &Prefix) -> Option<Vec<u8>> {
    let mantissa = prefix.mantissa();
    if mantissa.is_zero() {
        let done = prefix.phase == Phase::ExponentDigits;
        let text = if done { Vec::new() } else { b"0".to_vec() };
        return cell.contains(&mantissa).then_some(text);
    }
    let ranges = exponent_ranges(cell, &mantissa);
    let signs: &[bool] = match prefix.phase {
        Phase::Exponent => &[false, true],
        _ if prefix.exponent_negative => &[true],
        _ => &[false],
    };
    let tries = signed(cell.excluded.len());
    signs.iter().find_map(|&negative| {
        let sign = if negative { -1 } else { 1 };
        ranges.iter().find_map(|&(low, high)| {
            let (low, high) =
                if negative { (-high, -low) } else { (low, high) };
            exponent_windows(prefix).find_map(|(first, last)| {
                let first = first.max(low);
                let last = last.min(high).min(first.saturating_add(tries));
                let exponent = (first..=last).find(|&exponent| {
                    cell.contains(&mantissa.scaled(sign * exponent))
                })?;
                Some(exponent_text(prefix, negative, exponent))
            })
        })
    })
}

/// Returns the ranges of exponents, without sign, whose texts begin with the
/// digits written so far.
fn exponent_windows(prefix: &Prefix) -> impl Iterator<Item = (i64, i64)> {
    let written = prefix.exponent;
    // Leading zeros are legal, so a zero says nothing yet.
    let n_windows = if written == 0 { 1 } else { 18 };
    (0..n_windows).map(move |n_more| {
        if written == 0 {
            return (0, i64::MAX);
        }
        let power = 10_i64.pow(n_more);
        let first = written.saturating_mul(power);
        (first, first.saturating_add(power - 1))
    })
}

fn exponent_text(prefix: &Prefix, negative: bool, exponent: i64) -> Vec<u8> {
    let mut text = exponent.to_string();
    if prefix.phase == Phase::ExponentDigits {
        if prefix.exponent == 0 {
            if exponent == 0 {
                text.clear();
            }
        } else {
            text.drain(..prefix.exponent.to_string().len().min(text.len()));
        }
    } else if prefix.phase == Phase::Exponent && negative {
        text.insert(0, '-');
    }
    text.into_bytes()
}

/// Returns the ranges of exponents that put a positive mantissa into a cell,
/// up to excluded values.
fn exponent_ranges(cell: &Cell, mantissa: &Decimal) -> Vec<(i64, i64)> {
    if let Some(only) = &cell.only {
        let size = mantissa.magnitude();
        return only
            .iter()
            .filter(|value| !value.is_zero())
            .map(|value| value.magnitude() - size)
            .filter(|&shift| cell.contains(&mantissa.scaled(shift)))
            .map(|shift| (shift, shift))
            .collect();
    }
    exponent_range(cell, mantissa).into_iter().collect()
}

/// The same for a cell that is no finite set.
fn exponent_range(cell: &Cell, mantissa: &Decimal) -> Option<(i64, i64)> {
    let size = mantissa.magnitude();
    let mut low = i64::MIN / 4;
    let mut high = i64::MAX / 4;
    if let Some(end) = &cell.low
        && !end.value.is_zero()
    {
        low = end.value.magnitude() - size;
        let value = mantissa.scaled(low);
        if value < end.value || end.open && value == end.value {
            low += 1;
        }
    }
    if let Some(end) = &cell.high {
        if end.value.is_zero() {
            return None;
        }
        high = end.value.magnitude() - size;
        let value = mantissa.scaled(high);
        if value > end.value || end.open && value == end.value {
            high -= 1;
        }
    }
    if let Some(multiple) = &cell.multiple {
        low = low.max(mantissa.first_multiple_shift(multiple)?);
    }
    for divisor in &cell.not_multiples {
        if let Some(shift) = mantissa.first_multiple_shift(divisor) {
            high = high.min(shift - 1);
        }
    }
    (low <= high).then_some((low, high))
}

/// Spells the rest of a target whose mantissa begins with the prefix.
fn completion(prefix: &Prefix, target: &Target, spelled: Spelled) -> Vec<u8> {
    let digits = target.mantissa.digits();
    let point = target.mantissa.magnitude();
    let n_digits = signed(digits.len());
    let digit = |place: i64| {
        // Place 0 is the first after the point, place -1 the last before.
        let index = usize::try_from(place + point).ok();
        b'0' + index.and_then(|i| digits.get(i)).copied().unwrap_or(0)
    };
    let mut text = Vec::new();
    let mut place = match prefix.phase {
        Phase::Whole => prefix.point - point,
        Phase::Zero | Phase::Point => 0,
        _ => prefix.n_fraction(),
    };
    while place < 0 {
        text.push(digit(place));
        place += 1;
    }
    let n_fraction = if digits.is_empty() { 0 } else { n_digits - point };
    if prefix.phase.is_whole() && place < n_fraction {
        text.push(b'.');
    }
    if prefix.phase == Phase::Point && n_fraction <= 0 {
        text.push(b'0');
    }
    while place < n_fraction {
        text.push(digit(place));
        place += 1;
    }
    if target.exponent != 0 {
        text.extend(format!("e{}", target.exponent).into_bytes());
    } else if spelled == Spelled::NotInteger
        && prefix.phase.is_whole()
        && n_fraction <= 0
    {
        text.extend(b".0");
    }
    text
}

/// Completes a prefix whose further digits do not matter.
fn exponent_only(prefix: &Prefix, exponent: i64, spelled: Spelled) -> Vec<u8> {
    let mut text = Vec::new();
    if prefix.phase == Phase::Point {
        text.push(b'0');
    }
    if exponent != 0 {
        text.extend(format!("e{exponent}").into_bytes());
    } else if spelled == Spelled::NotInteger && prefix.phase.is_whole() {
        text.extend(b".0");
    }
    text
}
