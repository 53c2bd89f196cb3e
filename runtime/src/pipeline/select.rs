//! Where a mass is reached, without sorting.

/// A key with the weight of the token that has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighted {
    pub(super) key: f64,
    pub(super) weight: f32,
}

/// Where, by ascending key, a mass is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cut {
    /// The key at which it is reached.
    pub(super) key: f64,
    /// How many of those with that key are needed.
    pub(super) n_ties: usize,
}

/// Returns where, by ascending key, the weights reach `target`; if `exceed`,
/// where they exceed it. `None` when they never do.
///
/// Halves what is left by selection, so that the time is linear.
pub(super) fn cut_at_mass(
    mut all: &mut [Weighted],
    target: f64,
    exceed: bool,
) -> Option<Cut> {
    let is_reached =
        |mass: f64| if exceed { mass > target } else { mass >= target };
    let mut before = 0.0;
    // Of the entries before `all`, those that tie with its first.
    let mut last = (f64::NEG_INFINITY, 0);
    while !all.is_empty() {
        let middle = all.len() / 2;
        all.select_nth_unstable_by(middle, |a, b| a.key.total_cmp(&b.key));
        let (head, tail) = all.split_at_mut(middle + 1);
        let (pivot, lower) = head.split_last_mut()?;
        let below: f64 = lower.iter().map(|one| f64::from(one.weight)).sum();
        if !lower.is_empty() && is_reached(before + below) {
            all = lower;
            continue;
        }
        before += below;
        if last.0.total_cmp(&pivot.key).is_ne() {
            last = (pivot.key, 0);
        }
        let tied = |one: &&mut Weighted| one.key.total_cmp(&pivot.key).is_eq();
        last.1 += lower.iter_mut().filter(tied).count();
        let weight = f64::from(pivot.weight);
        if is_reached(before + weight) {
            return Some(Cut { key: pivot.key, n_ties: last.1 + 1 });
        }
        last.1 += 1;
        before += weight;
        all = tail;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_equal_sorting() {
        let mut seed = 7_u32;
        let mut random = |n: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % n
        };
        for _ in 0..2000 {
            let length = random(40);
            let mut all: Vec<Weighted> = (0..length)
                .map(|_| Weighted {
                    key: f64::from(random(9)),
                    // Equal weights for equal keys, as in a row.
                    weight: 1.0,
                })
                .collect();
            let target = f64::from(random(44));
            for exceed in [false, true] {
                let mut sorted = all.clone();
                sorted.sort_by(|a, b| a.key.total_cmp(&b.key));
                let mut mass = 0.0;
                let found = sorted.iter().position(|one| {
                    mass += f64::from(one.weight);
                    if exceed { mass > target } else { mass >= target }
                });
                let expected = found.map(|index| {
                    let key = sorted[index].key;
                    let first = sorted.partition_point(|o| o.key < key);
                    Cut { key, n_ties: index + 1 - first }
                });
                assert_eq!(cut_at_mass(&mut all, target, exceed), expected);
            }
        }
    }
}
