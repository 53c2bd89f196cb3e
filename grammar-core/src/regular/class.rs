//! Sets of code points as sorted, disjoint ranges.
//!
//! The alphabet of every regular language here is the set of Unicode scalar
//! values: surrogates belong to no set, not even to a complement.

use std::fmt;
use std::sync::Arc;

/// The greatest code point.
pub const MAX_CODE_POINT: u32 = 0x0010_FFFF;

const SURROGATES: (u32, u32) = (0xD800, 0xDFFF);

/// A set of Unicode scalar values.
///
/// # Invariant
///
/// Ranges are sorted, do not touch, and hold no surrogate. The range below
/// the surrogates and the one above them are never joined, so both ends of
/// every range are characters, and equal sets have equal ranges.
#[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CharSet {
    ranges: Arc<[(u32, u32)]>,
}

impl CharSet {
    /// Creates the set of all code points in `ranges`, both ends included.
    ///
    /// Order and overlap do not matter. Surrogates, code points over
    /// `10FFFF` and reversed ranges add nothing.
    pub fn new(ranges: impl IntoIterator<Item = (u32, u32)>) -> CharSet {
        let mut pieces = Vec::new();
        for (lo, hi) in ranges {
            push_scalar_pieces(&mut pieces, lo, hi);
        }
        CharSet { ranges: join(pieces).into() }
    }

    /// The set without members.
    pub fn empty() -> CharSet {
        CharSet::new([])
    }

    /// The set of all Unicode scalar values.
    pub fn any() -> CharSet {
        CharSet::new([(0, MAX_CODE_POINT)])
    }

    /// The set of one character.
    pub fn single(character: char) -> CharSet {
        let code_point = u32::from(character);
        CharSet { ranges: [(code_point, code_point)].into() }
    }

    /// The ranges, sorted, both ends included.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Returns true if and only if the set has no member.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns true if and only if every scalar value is a member.
    pub fn is_any(&self) -> bool {
        *self.ranges
            == [(0, SURROGATES.0 - 1), (SURROGATES.1 + 1, MAX_CODE_POINT)]
    }

    /// Returns the only member, if there is exactly one.
    pub fn as_single(&self) -> Option<char> {
        match *self.ranges {
            [(lo, hi)] if lo == hi => char::from_u32(lo),
            _ => None,
        }
    }

    /// Returns true if and only if `code_point` is a member.
    pub fn contains(&self, code_point: u32) -> bool {
        let after = self.ranges.partition_point(|&(lo, _)| lo <= code_point);
        after > 0 && code_point <= self.ranges[after - 1].1
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.ranges.iter().map(|&(lo, hi)| (hi - lo) as usize + 1).sum()
    }

    /// The members of either set.
    #[must_use]
    pub fn union(&self, other: &CharSet) -> CharSet {
        let both = self.ranges.iter().chain(other.ranges.iter()).copied();
        CharSet { ranges: join(both.collect()).into() }
    }

    /// The members of both sets.
    #[must_use]
    pub fn intersection(&self, other: &CharSet) -> CharSet {
        let (mut left, mut right) = (&self.ranges[..], &other.ranges[..]);
        let mut out = Vec::new();
        while let (Some(a), Some(b)) = (left.first(), right.first()) {
            let (lo, hi) = (a.0.max(b.0), a.1.min(b.1));
            if lo <= hi {
                out.push((lo, hi));
            }
            if a.1 < b.1 {
                left = &left[1..];
            } else {
                right = &right[1..];
            }
        }
        CharSet { ranges: out.into() }
    }

    /// The scalar values that are no members.
    #[must_use]
    pub fn complement(&self) -> CharSet {
        let mut pieces = Vec::new();
        let mut next = 0;
        for &(lo, hi) in &*self.ranges {
            if lo > next {
                push_scalar_pieces(&mut pieces, next, lo - 1);
            }
            next = hi + 1;
        }
        push_scalar_pieces(&mut pieces, next, MAX_CODE_POINT);
        CharSet { ranges: pieces.into() }
    }

    /// The members that `other` does not have.
    #[must_use]
    pub fn difference(&self, other: &CharSet) -> CharSet {
        self.intersection(&other.complement())
    }

    /// Returns true if and only if `other` has every member of this set.
    pub fn is_subset(&self, other: &CharSet) -> bool {
        self.ranges.iter().all(|&(lo, hi)| {
            let after = other.ranges.partition_point(|range| range.0 <= lo);
            after > 0 && hi <= other.ranges[after - 1].1
        })
    }

    /// Returns true if and only if the sets have no common member.
    pub fn is_disjoint(&self, other: &CharSet) -> bool {
        self.intersection(other).is_empty()
    }
}

impl FromIterator<(u32, u32)> for CharSet {
    fn from_iter<I: IntoIterator<Item = (u32, u32)>>(ranges: I) -> CharSet {
        CharSet::new(ranges)
    }
}

/// Prints the ranges as a character class: `[a-z\u{e9}]`.
impl fmt::Debug for CharSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_any() {
            return f.write_str("any");
        }
        f.write_str("[")?;
        for &(lo, hi) in &*self.ranges {
            write_code_point(f, lo)?;
            if hi > lo {
                f.write_str("-")?;
                write_code_point(f, hi)?;
            }
        }
        f.write_str("]")
    }
}

fn write_code_point(f: &mut fmt::Formatter<'_>, value: u32) -> fmt::Result {
    match char::from_u32(value) {
        Some(c) => write!(f, "{}", c.escape_default()),
        None => write!(f, "\\u{{{value:x}}}"),
    }
}

/// Adds the parts of a range that are scalar values.
fn push_scalar_pieces(pieces: &mut Vec<(u32, u32)>, lo: u32, hi: u32) {
    let below = (lo, hi.min(SURROGATES.0 - 1));
    let above = (lo.max(SURROGATES.1 + 1), hi.min(MAX_CODE_POINT));
    pieces.extend([below, above].into_iter().filter(|&(lo, hi)| lo <= hi));
}

/// Sorts ranges of scalar values and joins those that touch.
fn join(mut pieces: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    pieces.sort_unstable();
    let mut out: Vec<(u32, u32)> = Vec::with_capacity(pieces.len());
    for (lo, hi) in pieces {
        match out.last_mut() {
            Some(last) if lo <= last.1.saturating_add(1) => {
                last.1 = last.1.max(hi);
            }
            _ => out.push((lo, hi)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set() -> impl Strategy<Value = CharSet> {
        let point = prop_oneof![
            0u32..40,
            0xD7F8u32..0xE008,
            0x0010_FFF0u32..0x0011_0002
        ];
        prop::collection::vec((point, 0u32..12), 0..6).prop_map(|ranges| {
            ranges.into_iter().map(|(lo, n)| (lo, lo + n)).collect()
        })
    }

    fn probes() -> impl Iterator<Item = u32> {
        (0..60).chain(0xD7F0..0xE020).chain(0x0010_FFE0..0x0011_0010)
    }

    proptest! {
        #[test]
        fn operations_agree_with_membership(a in set(), b in set()) {
            let (union, both) = (a.union(&b), a.intersection(&b));
            let (not, minus) = (a.complement(), a.difference(&b));
            for c in probes() {
                let (x, y) = (a.contains(c), b.contains(c));
                let scalar = char::from_u32(c).is_some();
                prop_assert_eq!(union.contains(c), x || y);
                prop_assert_eq!(both.contains(c), x && y);
                prop_assert_eq!(not.contains(c), scalar && !x);
                prop_assert_eq!(minus.contains(c), x && !y);
            }
            prop_assert_eq!(not.complement(), a.clone());
            prop_assert_eq!(a.is_subset(&b), both == a);
            prop_assert_eq!(a.is_disjoint(&b), both.is_empty());
            prop_assert!(a.union(&not).is_any());
        }
    }

    #[test]
    fn surrogates_are_in_no_set() {
        assert!(CharSet::new([(0xD800, 0xDFFF)]).is_empty());
        assert_eq!(CharSet::any().ranges().len(), 2);
        assert!(CharSet::empty().complement().is_any());
        assert_eq!(CharSet::any().len(), 0x0011_0000 - 0x800);
    }
}
