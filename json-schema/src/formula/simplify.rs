//! Conjunction and disjunction with local simplification.
//!
//! Everything here looks at the direct children only, so its cost is the
//! size of one node (squared for absorption, which is limited to small
//! nodes). Nothing depends on it but size and speed.

use std::sync::Arc;

use super::arena::{Formulas, Parts};
use super::form::{Form, FormulaId};

/// Nodes with more children than this are not searched for absorption.
const MAX_ABSORB: usize = 24;

/// The counters whose bounds are fused.
#[derive(Clone, Copy, PartialEq)]
enum Counter {
    Members,
    Items,
    Chars,
}

/// A bound on a counter: which, whether from below, the bound.
fn bound(form: &Form) -> Option<(Counter, bool, u64)> {
    Some(match *form {
        Form::CountGe(count) => (Counter::Members, true, count),
        Form::CountLe(count) => (Counter::Members, false, count),
        Form::LenGe(count) => (Counter::Items, true, count),
        Form::LenLe(count) => (Counter::Items, false, count),
        Form::CharsGe(count) => (Counter::Chars, true, count),
        Form::CharsLe(count) => (Counter::Chars, false, count),
        _ => return None,
    })
}

impl Formulas {
    /// Combines formulas by ∧ (`conjunction`) or ∨.
    pub(super) fn combine(
        &mut self,
        conjunction: bool,
        parts: impl IntoIterator<Item = FormulaId>,
    ) -> FormulaId {
        let unit = FormulaId::constant(conjunction);
        let zero = FormulaId::constant(!conjunction);
        let mut set = Parts::new();
        for part in parts {
            if part == zero {
                return zero;
            }
            if part == unit {
                continue;
            }
            match (conjunction, self.form(part)) {
                (true, Form::And(inner)) | (false, Form::Or(inner)) => {
                    set.extend_from_slice(inner);
                }
                _ => set.push(part),
            }
        }
        if set.len() > 1 {
            set.sort_unstable();
            set.dedup();
        }
        if set.len() > 1 && self.simplify(conjunction, &mut set) {
            return zero;
        }
        if set.len() > 1
            && set.len() <= MAX_ABSORB
            && let Some(parts) = self.without_contradicted(conjunction, &set)
        {
            return self.combine(conjunction, parts);
        }
        match set.len() {
            0 => unit,
            1 => set[0],
            _ if conjunction => self.make(Form::And(Arc::from(&set[..]))),
            _ => self.make(Form::Or(Arc::from(&set[..]))),
        }
    }

    /// Simplifies two or more children, sorted; true where the whole is the
    /// zero of the operation.
    fn simplify(&mut self, conjunction: bool, set: &mut Parts) -> bool {
        if self.has_complement(conjunction, set)
            || self.fuse_constants(conjunction, set)
            || self.fuse_bounds(conjunction, set)
            || self.fuse_sets(conjunction, set)
        {
            return true;
        }
        if set.len() > 1 && set.len() <= MAX_ABSORB {
            self.absorb(conjunction, set);
        }
        false
    }

    /// Whether the children contain `x` and `¬x`. The latter may have been
    /// flattened into them.
    fn has_complement(&self, conjunction: bool, set: &[FormulaId]) -> bool {
        let inside = |part: FormulaId| set.binary_search(&part).is_ok();
        set.iter().any(|&part| {
            let Some(negation) = self.known_negation(part) else {
                return false;
            };
            inside(negation)
                || match (conjunction, self.form(negation)) {
                    (true, Form::And(parts)) | (false, Form::Or(parts)) => {
                        parts.iter().all(|&part| inside(part))
                    }
                    _ => false,
                }
        })
    }

    /// A value equals one constant at most: `x = 1 ∧ x = 2` is false,
    /// `x = 1 ∧ x ≠ 2` is `x = 1`; and the duals.
    fn fuse_constants(&self, conjunction: bool, set: &mut Parts) -> bool {
        let decisive = |part: FormulaId| match self.form(part) {
            Form::Const(_) => conjunction,
            Form::NotConst(_) => !conjunction,
            _ => false,
        };
        let weak = |part: FormulaId| match self.form(part) {
            Form::Const(_) => !conjunction,
            Form::NotConst(_) => conjunction,
            _ => false,
        };
        match set.iter().filter(|&&part| decisive(part)).count() {
            0 => false,
            1 => {
                // An equal constant was found as a complement.
                set.retain(|part| !weak(*part));
                false
            }
            _ => true,
        }
    }

    /// Keeps the tightest (∧) or the loosest (∨) bound of each counter.
    fn fuse_bounds(&self, conjunction: bool, set: &mut Parts) -> bool {
        let n_bounds =
            set.iter().filter(|&&p| bound(self.form(p)).is_some()).count();
        if n_bounds < 2 {
            return false;
        }
        // Per counter: the bound from below, the bound from above.
        let mut best: [[Option<u64>; 2]; 3] = [[None; 2]; 3];
        for &part in &*set {
            let Some((counter, lower, count)) = bound(self.form(part)) else {
                continue;
            };
            let slot = &mut best[counter as usize][usize::from(!lower)];
            let greater = lower == conjunction;
            *slot = Some(match *slot {
                Some(old) if greater => old.max(count),
                Some(old) => old.min(count),
                None => count,
            });
        }
        for [lower, upper] in best {
            if let (Some(lower), Some(upper)) = (lower, upper) {
                // `n ≥ 3 ∧ n ≤ 2` is false, `n ≥ 3 ∨ n ≤ 2` is true.
                let clash = if conjunction {
                    lower > upper
                } else {
                    lower <= upper.saturating_add(1)
                };
                if clash {
                    return true;
                }
            }
        }
        set.retain(|part| match bound(self.form(*part)) {
            Some((counter, lower, count)) => {
                let slot = best[counter as usize][usize::from(!lower)];
                slot == Some(count)
            }
            None => true,
        });
        false
    }

    /// Fuses finite sets of strings, and of numbers.
    fn fuse_sets(&mut self, conjunction: bool, set: &mut Parts) -> bool {
        let is_set = |form: &Form| match form {
            Form::StringIn(..) => 1,
            Form::NumberIn(..) => 2,
            _ => 0,
        };
        for kind in [1, 2] {
            let members: Parts = set
                .iter()
                .copied()
                .filter(|&part| is_set(self.form(part)) == kind)
                .collect();
            if members.len() < 2 {
                continue;
            }
            let fused = if kind == 1 {
                self.fuse_strings(conjunction, &members)
            } else {
                self.fuse_numbers(conjunction, &members)
            };
            if fused == FormulaId::constant(!conjunction) {
                return true;
            }
            set.retain(|part| !members.contains(part));
            if fused != FormulaId::constant(conjunction) {
                let at = set.binary_search(&fused).unwrap_or_else(|at| at);
                set.insert(at, fused);
            }
        }
        set.dedup();
        false
    }

    fn fuse_strings(
        &mut self,
        conjunction: bool,
        members: &[FormulaId],
    ) -> FormulaId {
        let signed: Vec<_> = members
            .iter()
            .filter_map(|&part| match self.form(part) {
                Form::StringIn(set, sign) => {
                    Some((Arc::clone(self.string_set(*set)), *sign))
                }
                _ => None,
            })
            .collect();
        let (values, sign) = fuse(conjunction, &signed);
        self.string_in(values, sign)
    }

    fn fuse_numbers(
        &mut self,
        conjunction: bool,
        members: &[FormulaId],
    ) -> FormulaId {
        let signed: Vec<_> = members
            .iter()
            .filter_map(|&part| match self.form(part) {
                Form::NumberIn(set, sign) => {
                    Some((Arc::clone(self.number_set(*set)), *sign))
                }
                _ => None,
            })
            .collect();
        let (values, sign) = fuse(conjunction, &signed);
        self.number_in(values, sign)
    }

    /// The children without what another contradicts: `a ∧ ((¬a ∧ b) ∨ c)` is
    /// `a ∧ c`; and its dual. None where nothing is contradicted.
    fn without_contradicted(
        &mut self,
        conjunction: bool,
        set: &Parts,
    ) -> Option<Parts> {
        let is_contradicted = |part: FormulaId| {
            let negation = self.known_negation(part);
            negation.is_some_and(|other| set.binary_search(&other).is_ok())
        };
        let is_gone = |way: FormulaId| match (conjunction, self.form(way)) {
            (true, Form::And(parts)) | (false, Form::Or(parts)) => {
                parts.iter().any(|&part| is_contradicted(part))
            }
            _ => is_contradicted(way),
        };
        let mut left: Vec<(usize, Parts)> = Vec::new();
        for (index, &part) in set.iter().enumerate() {
            let ((true, Form::Or(ways)) | (false, Form::And(ways))) =
                (conjunction, self.form(part))
            else {
                continue;
            };
            if ways.iter().any(|&way| is_gone(way)) {
                let kept = ways.iter().copied().filter(|&way| !is_gone(way));
                left.push((index, kept.collect()));
            }
        }
        if left.is_empty() {
            return None;
        }
        let mut parts = set.clone();
        for (index, kept) in left {
            parts[index] = self.combine(!conjunction, kept);
        }
        Some(parts)
    }

    /// Absorption: `a ∧ (a ∨ b) = a`, and its dual.
    fn absorb(&self, conjunction: bool, set: &mut Parts) {
        let inner = |part: FormulaId| match (conjunction, self.form(part)) {
            (true, Form::Or(inner)) | (false, Form::And(inner)) => {
                Some(Arc::clone(inner))
            }
            _ => None,
        };
        let complex: SmallComplex = set
            .iter()
            .filter_map(|&part| Some((part, inner(part)?)))
            .collect();
        if complex.is_empty() {
            return;
        }
        for (index, (part, children)) in complex.iter().enumerate() {
            let direct =
                set.iter().any(|other| children.binary_search(other).is_ok());
            let wider = || {
                complex.iter().enumerate().any(|(at, (_, fewer))| {
                    at != index
                        && fewer.len() < children.len()
                        && is_subset(fewer, children)
                })
            };
            if direct || wider() {
                set.retain(|other| other != part);
            }
        }
    }
}

type SmallComplex = smallvec::SmallVec<[(FormulaId, Arc<[FormulaId]>); 4]>;

/// Whether one sorted slice is a subset of another.
fn is_subset(fewer: &[FormulaId], more: &[FormulaId]) -> bool {
    fewer.iter().all(|part| more.binary_search(part).is_ok())
}

/// Combines signed finite sets into one.
fn fuse<T: Copy + Ord>(
    conjunction: bool,
    signed: &[(Arc<[T]>, bool)],
) -> (Vec<T>, bool) {
    // By De Morgan, ∨ of sets is the complement of ∧ of complements.
    let positive = |sign: bool| sign == conjunction;
    let mut included: Option<Vec<T>> = None;
    let mut excluded: Vec<T> = Vec::new();
    for (set, sign) in signed {
        if !positive(*sign) {
            excluded.extend_from_slice(set);
        } else if let Some(included) = &mut included {
            included.retain(|value| set.binary_search(value).is_ok());
        } else {
            included = Some(set.to_vec());
        }
    }
    excluded.sort_unstable();
    let (values, sign) = match included {
        Some(mut included) => {
            included.retain(|value| excluded.binary_search(value).is_err());
            (included, true)
        }
        None => (excluded, false),
    };
    (values, sign == conjunction)
}
