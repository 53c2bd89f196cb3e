//! What a state sees of a counter.

use super::nfa::Counter;
use crate::automaton::HORIZON;

/// How near a count must be to a bound for its state to know it exactly. One
/// more than a token can count, so that a frame is moved in time.
const NEAR: u32 = HORIZON + 1;

/// A count as its state sees it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Class {
    /// Exactly this many.
    Exact(u32),
    /// More than one, and far below the lower bound.
    Below,
    /// At least the lower bound, and far from the upper one.
    Enough,
}

impl Counter {
    /// Returns what the state of a frame sees that counted to `count`.
    pub(super) fn class(self, count: u32) -> Class {
        let near_max =
            self.max.is_some_and(|max| max.saturating_sub(count) <= NEAR);
        if count < self.min {
            let is_far = self.min - count > NEAR && count > 1;
            if is_far { Class::Below } else { Class::Exact(count) }
        } else if near_max || count <= 1 {
            Class::Exact(count)
        } else {
            Class::Enough
        }
    }

    /// Returns `count` and one more; no further than it matters.
    pub(super) fn succ(self, count: u32) -> u32 {
        if self.max.is_none() && count >= self.min.max(2) {
            return count;
        }
        count.saturating_add(1)
    }

    /// Returns what is seen after one more, as far as `class` tells.
    pub(super) fn next(self, class: Class) -> Class {
        match class {
            Class::Exact(count) => self.class(self.succ(count)),
            Class::Below | Class::Enough => class,
        }
    }

    /// Returns true if and only if a frame may end here.
    pub(super) fn accepts(self, class: Class) -> bool {
        match class {
            Class::Exact(count) => count > 0 && count >= self.min,
            Class::Below => false,
            Class::Enough => true,
        }
    }

    /// Returns true if and only if one more would be the last.
    pub(super) fn is_last(self, class: Class) -> bool {
        matches!(
            (class, self.max),
            (Class::Exact(count), Some(max)) if count + 1 >= max
        )
    }

    /// Returns true if and only if states do not know the count, so that
    /// frames have to.
    pub(super) fn has_register(self) -> bool {
        self.min > NEAR || self.max.is_some_and(|max| max > NEAR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_exact_near_bounds_only() {
        let max = Some(1_000_000_000);
        let counter = Counter { rule: 0, min: 10_000, max };
        assert_eq!(counter.class(0), Class::Exact(0));
        assert_eq!(counter.class(2), Class::Below);
        assert_eq!(counter.class(9_999), Class::Exact(9_999));
        assert_eq!(counter.class(10_000), Class::Enough);
        assert_eq!(counter.class(999_999_900), Class::Exact(999_999_900));
        assert!(counter.has_register());
        let small = Counter { rule: 0, min: 0, max: Some(200) };
        assert!((0..200).all(|c| small.class(c) == Class::Exact(c)));
        assert!(!small.has_register());
        let open = Counter { rule: 0, min: 3, max: None };
        assert_eq!(open.class(open.succ(2)), Class::Enough);
        assert_eq!(open.succ(3), 3);
        assert!(!open.has_register());
    }
}
