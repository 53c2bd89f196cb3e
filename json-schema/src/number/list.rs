//! The values of a union of cells, where they are few.

use super::{
    Cells, Decimal,
    cells::{Cell, Spelled},
};

/// The values of a formula, up to a number of them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Values {
    /// All there are; sorted.
    All(Vec<Decimal>),
    /// More than so many.
    More,
    /// That could not be found out.
    Unknown,
}

impl Cells {
    /// Lists the values, however they are spelled, if there are at most
    /// `cap`.
    pub fn list(&self, cap: usize) -> Values {
        if !self.is_exact() {
            return Values::Unknown;
        }
        let mut values = Vec::new();
        for cell in self.as_slice() {
            match list_cell(cell, cap) {
                Values::All(more) => values.extend(more),
                other => return other,
            }
        }
        values.sort_unstable();
        values.dedup();
        if values.len() > cap { Values::More } else { Values::All(values) }
    }
}

fn list_cell(cell: &Cell, cap: usize) -> Values {
    if let Some(only) = &cell.only {
        return Values::All(only.clone());
    }
    let mut values = Vec::new();
    for negative in [false, true] {
        let Some(half) = cell.half(negative) else { continue };
        match list_half(&half, cap) {
            Values::All(more) if negative => {
                values.extend(more.iter().map(Decimal::negated));
            }
            Values::All(more) => values.extend(more),
            other => return other,
        }
    }
    Values::All(values)
}

/// Lists the values of a cell that has none below zero.
fn list_half(cell: &Cell, cap: usize) -> Values {
    if let Some(only) = &cell.only {
        return Values::All(only.clone());
    }
    let Some(high) = &cell.high else { return Values::More };
    let low = cell.low.as_ref();
    let zero = Decimal::zero();
    let start = low.map_or(&zero, |low| &low.value);
    let Some(step) = &cell.multiple else {
        // Decimals are dense.
        return if *start < high.value {
            Values::More
        } else {
            let inside = cell.contains(start);
            Values::All(inside.then(|| start.clone()).into_iter().collect())
        };
    };
    let strict = low.is_some_and(|low| low.open);
    let mut next = start.next_multiple(step, strict);
    let mut values = Vec::new();
    // What conditions take out of the steps is looked at as well.
    for _ in 0..=cap.saturating_mul(4) {
        let Some(value) = next else { return Values::Unknown };
        if value > high.value {
            return Values::All(values);
        }
        if cell.contains(&value) {
            values.push(value.clone());
        }
        if values.len() > cap {
            return Values::More;
        }
        next = value.plus(step);
    }
    if cell.spelled == Spelled::Any && cell.not_multiples.is_empty() {
        Values::More
    } else {
        Values::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::super::NumberFormula;
    use super::*;

    fn list(parts: Vec<NumberFormula>, cap: usize) -> Values {
        Cells::new(&NumberFormula::And(parts)).list(cap)
    }

    fn all(values: &[&str]) -> Values {
        let parse = |text: &&str| text.parse().expect("a number");
        Values::All(values.iter().map(parse).collect())
    }

    #[test]
    fn few_values_are_listed() {
        use NumberFormula as F;
        let between =
            |low: i64, high: i64| vec![F::Ge(low.into()), F::Le(high.into())];
        let with = |mut parts: Vec<F>, more: F| {
            parts.push(more);
            parts
        };
        let integers = with(between(-1, 2), F::Integer);
        assert_eq!(list(integers.clone(), 4), all(&["-1", "0", "1", "2"]));
        assert_eq!(list(integers.clone(), 3), Values::More);
        let odd = F::Not(Box::new(F::MultipleOf(2_i64.into())));
        assert_eq!(list(with(integers, odd), 4), all(&["-1", "1"]));
        assert_eq!(list(between(0, 1), 9), Values::More);
        assert_eq!(list(between(3, 3), 9), all(&["3"]));
        assert_eq!(list(vec![F::Integer], 9), Values::More);
        let quarter = F::MultipleOf("0.25".parse().expect("a number"));
        assert_eq!(
            list(with(between(0, 1), quarter), 9),
            all(&["0", "0.25", "0.5", "0.75", "1"])
        );
    }
}
