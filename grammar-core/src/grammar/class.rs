//! Sets of code points.

use std::fmt;

/// The first and the last surrogate, which are no code points of any text.
const SURROGATES: (u32, u32) = (0xD800, 0xDFFF);
/// The last code point.
const LAST: u32 = 0x10_FFFF;

/// A set of code points that UTF-8 can spell, as sorted ranges.
///
/// The empty class is legal and stands for the empty language.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct Class {
    /// Invariant: sorted, neither touching nor overlapping, and without
    /// surrogates.
    ranges: Box<[(u32, u32)]>,
}

impl Class {
    /// Creates the class of all the code points in `ranges`, which may come
    /// in any order. Surrogates and what lies past the last code point are
    /// left out.
    pub fn new(ranges: impl IntoIterator<Item = (u32, u32)>) -> Class {
        let mut sorted: Vec<(u32, u32)> = Vec::new();
        for (lo, hi) in ranges {
            let parts = [
                (lo, hi.min(SURROGATES.0 - 1)),
                (lo.max(SURROGATES.1 + 1), hi.min(LAST)),
            ];
            sorted.extend(parts.into_iter().filter(|(lo, hi)| lo <= hi));
        }
        sorted.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::with_capacity(sorted.len());
        for (lo, hi) in sorted {
            match joined.last_mut() {
                Some(last) if lo <= last.1.saturating_add(1) => {
                    last.1 = last.1.max(hi);
                }
                _ => joined.push((lo, hi)),
            }
        }
        Class { ranges: joined.into() }
    }

    /// Creates the class of every code point.
    pub fn any() -> Class {
        Class::new([(0, LAST)])
    }

    /// Returns the class of every code point that this one lacks.
    #[must_use]
    pub fn negate(&self) -> Class {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 1);
        let mut next = 0;
        for &(lo, hi) in &self.ranges {
            if next < lo {
                ranges.push((next, lo - 1));
            }
            next = hi + 1;
        }
        if next <= LAST {
            ranges.push((next, LAST));
        }
        Class::new(ranges)
    }

    /// Returns the ranges, sorted; surrogates are in none of them.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Returns true if and only if there is no code point in this class.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the only code point of this class, if it has exactly one.
    pub fn single(&self) -> Option<char> {
        match *self.ranges {
            [(lo, hi)] if lo == hi => char::from_u32(lo),
            _ => None,
        }
    }

    /// Returns true if and only if `c` is in this class.
    pub fn contains(&self, c: char) -> bool {
        let c = u32::from(c);
        self.ranges.iter().any(|&(lo, hi)| lo <= c && c <= hi)
    }
}

/// Prints as a bracketed class: `[a-z\u{e9}]`.
impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |c: u32| {
            char::from_u32(c)
                .map(|c| c.escape_default().to_string())
                .unwrap_or_default()
        };
        f.write_str("[")?;
        for &(lo, hi) in &self.ranges {
            f.write_str(&show(lo))?;
            if lo < hi {
                write!(f, "-{}", show(hi))?;
            }
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_and_surrogates_left_out() {
        let class = Class::new([(0x62, 0x64), (0x61, 0x61), (0x63, 0x66)]);
        assert_eq!(class.ranges(), [(0x61, 0x66)]);
        let class = Class::new([(0xD000, 0xF000), (0x11_0000, u32::MAX)]);
        assert_eq!(class.ranges(), [(0xD000, 0xD7FF), (0xE000, 0xF000)]);
        assert!(Class::new([(0xD800, 0xDFFF)]).is_empty());
    }

    #[test]
    fn negation_is_an_involution() {
        for ranges in [
            vec![],
            vec![(0, 0)],
            vec![(0, LAST)],
            vec![(97, 122), (0x80, 0xD800), (0xFFFF, LAST)],
        ] {
            let class = Class::new(ranges);
            assert_eq!(class.negate().negate(), class);
            for c in ['\0', 'a', '\u{80}', '\u{E000}', '\u{10FFFF}'] {
                assert_ne!(class.contains(c), class.negate().contains(c));
            }
        }
    }
}
