//! The coarsest partition of the alphabet that respects some classes.

use smallvec::SmallVec;

use super::class::{CharSet, MAX_CODE_POINT};
use crate::util::FxHashMap;

/// The classes that hold all members of a group, as positions in the list
/// the partition was made for.
pub(super) type Members = SmallVec<[u32; 4]>;

/// A part of the alphabet whose members are in the same classes.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) members: Members,
    /// A member of the group.
    pub(super) example: u32,
}

/// Ranges in ascending order that cover every scalar value, each with the
/// number of its group.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) ranges: Vec<(u32, u32, u32)>,
    pub(super) groups: Vec<Group>,
}

impl Partition {
    pub(super) fn new(classes: &[&CharSet]) -> Partition {
        let mut events = Vec::new();
        for (index, class) in (0u32..).zip(classes) {
            for &(lo, hi) in class.ranges() {
                events.push((lo, index, true));
                events.push((hi + 1, index, false));
            }
        }
        events.sort_unstable();
        let mut partition =
            Partition { ranges: Vec::new(), groups: Vec::new() };
        let mut ids: FxHashMap<Members, u32> = FxHashMap::default();
        let mut active = Members::new();
        let mut from = 0;
        let mut at = 0;
        while at < events.len() {
            let point = events[at].0;
            partition.add(&mut ids, &active, from, point);
            from = point;
            while let Some(&(_, index, enters)) =
                events.get(at).filter(|event| event.0 == point)
            {
                toggle(&mut active, index, enters);
                at += 1;
            }
        }
        partition.add(&mut ids, &active, from, MAX_CODE_POINT + 1);
        partition
    }

    /// Adds the scalar values in `from..to`.
    fn add(
        &mut self,
        ids: &mut FxHashMap<Members, u32>,
        active: &Members,
        from: u32,
        to: u32,
    ) {
        for (lo, hi) in [
            (from, to.min(0xD800).wrapping_sub(1)),
            (from.max(0xE000), to.wrapping_sub(1)),
        ] {
            if to == 0 || lo > hi || lo >= to {
                continue;
            }
            let next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            let group = if let Some(&group) = ids.get(active) {
                group
            } else {
                ids.insert(active.clone(), next);
                let members = active.clone();
                self.groups.push(Group { members, example: lo });
                next
            };
            self.ranges.push((lo, hi, group));
        }
    }
}

/// Adds or removes a position, keeping the list sorted.
fn toggle(active: &mut Members, index: u32, enters: bool) {
    match (active.binary_search(&index), enters) {
        (Err(at), true) => active.insert(at, index),
        (Ok(at), false) => {
            active.remove(at);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set() -> impl Strategy<Value = CharSet> {
        let point = prop_oneof![
            0u32..30,
            0xD7F8u32..0xE008,
            0x0010_FFF8u32..0x0011_0000
        ];
        prop::collection::vec((point, 0u32..6), 0..5).prop_map(|ranges| {
            ranges.into_iter().map(|(lo, n)| (lo, lo + n)).collect()
        })
    }

    proptest! {
        #[test]
        fn every_scalar_value_is_in_the_group_of_its_classes(
            sets in prop::collection::vec(set(), 0..5),
        ) {
            let classes: Vec<&CharSet> = sets.iter().collect();
            let partition = Partition::new(&classes);
            let mut next = 0;
            for &(lo, hi, group) in &partition.ranges {
                prop_assert_eq!(lo, next);
                next = if hi == 0xD7FF { 0xE000 } else { hi + 1 };
                let members = &partition.groups[group as usize].members;
                for point in [lo, hi] {
                    let found: Members = (0u32..)
                        .zip(&sets)
                        .filter(|(_, set)| set.contains(point))
                        .map(|(index, _)| index)
                        .collect();
                    prop_assert_eq!(&found, members);
                }
            }
            prop_assert_eq!(next, MAX_CODE_POINT + 1);
        }
    }
}
