//! The values that a formula allows, as a union of simple sets.
//!
//! A cell is an interval, at most one divisor (several are fused by their
//! least common multiple), divisors that must not divide, and excluded
//! values; or a finite set. A conjunction of formulas is the pairwise
//! intersection of cells, and empty cells are dropped where they arise, so a
//! union without cells is an unsatisfiable formula.
//!
//! # Where this is inexact
//!
//! A union never has more than [`MAX_CELLS`] cells. A formula that needs more
//! becomes the set of all numbers with [`Cells::is_exact`] false, and so do
//! numbers whose digits are more than some thousand places apart, which no
//! double distinguishes. Viability is then over-approximated; what may end is
//! still decided by the formula itself.

use super::{
    Decimal,
    formula::{Atom, Op, Program},
};

/// The most cells of one union.
pub(super) const MAX_CELLS: usize = 64;

/// The most steps to look for a value that is no forbidden multiple. Among
/// that many consecutive values one is free of 12 forbidden divisors.
const MAX_STEPS: usize = 4_096;

/// What a cell asks of the spelling.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Spelled {
    Any,
    /// Neither a point nor an exponent.
    Integer,
    /// A point or an exponent.
    NotInteger,
}

/// One end of an interval.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct End {
    pub(super) value: Decimal,
    pub(super) open: bool,
}

/// A simple set of numbers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Cell {
    pub(super) low: Option<End>,
    pub(super) high: Option<End>,
    pub(super) multiple: Option<Decimal>,
    pub(super) not_multiples: Vec<Decimal>,
    /// Sorted.
    pub(super) excluded: Vec<Decimal>,
    /// The only values, sorted. All other fields but `spelled` are then
    /// vacuous.
    pub(super) only: Option<Vec<Decimal>>,
    pub(super) spelled: Spelled,
}

/// What a search for a value found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Pick {
    Value(Decimal),
    Nothing,
    /// Too far apart or too dense to tell; counts as found.
    Unknown,
}

/// A stretch of values of one spelling: `[low, high)`, and multiples of
/// `step` only.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) low: Decimal,
    pub(super) high: Option<Decimal>,
    pub(super) step: Option<Decimal>,
}

impl Window {
    /// All numbers that are not negative.
    pub(super) fn whole() -> Window {
        Window { low: Decimal::zero(), high: None, step: None }
    }

    fn contains(&self, value: &Decimal) -> bool {
        *value >= self.low
            && self.high.as_ref().is_none_or(|high| value < high)
            && self.step.as_ref().is_none_or(|s| value.is_multiple_of(s))
    }
}

impl Cell {
    pub(super) fn all() -> Cell {
        Cell {
            low: None,
            high: None,
            multiple: None,
            not_multiples: Vec::new(),
            excluded: Vec::new(),
            only: None,
            spelled: Spelled::Any,
        }
    }

    /// Returns the cell of an atom or of its complement.
    fn of(atom: &Atom, positive: bool) -> Cell {
        let mut cell = Cell::all();
        match (atom, positive) {
            (Atom::Ge(bound), true) => cell.low = end(bound, false),
            (Atom::Gt(bound), true) => cell.low = end(bound, true),
            (Atom::Ge(bound), false) => cell.high = end(bound, true),
            (Atom::Gt(bound), false) => cell.high = end(bound, false),
            (Atom::MultipleOf(divisor), true) => {
                cell.multiple = Some(divisor.clone());
            }
            (Atom::MultipleOf(divisor), false) => {
                cell.not_multiples.push(divisor.clone());
            }
            (Atom::IntegerText, true) => {
                cell.spelled = Spelled::Integer;
                cell.multiple = Some(Decimal::pow10(0));
            }
            (Atom::IntegerText, false) => cell.spelled = Spelled::NotInteger,
            (Atom::In(values), true) => cell.only = Some(values.clone()),
            (Atom::In(values), false) => cell.excluded.clone_from(values),
        }
        cell
    }

    /// Returns true if and only if the value is in the cell.
    pub(super) fn contains(&self, value: &Decimal) -> bool {
        self.low.as_ref().is_none_or(|low| {
            *value > low.value || !low.open && *value == low.value
        }) && self.high.as_ref().is_none_or(|high| {
            *value < high.value || !high.open && *value == high.value
        }) && self.admits(value)
    }

    /// Like `contains`, but for the ends of the interval.
    fn admits(&self, value: &Decimal) -> bool {
        self.multiple.as_ref().is_none_or(|m| value.is_multiple_of(m))
            && !self.not_multiples.iter().any(|m| value.is_multiple_of(m))
            && self.excluded.binary_search(value).is_err()
            && self
                .only
                .as_ref()
                .is_none_or(|only| only.binary_search(value).is_ok())
    }

    /// Intersects two cells. `None` when the divisors are too far apart to
    /// fuse; `Some(None)` when nothing is left.
    #[expect(
        clippy::option_option,
        reason = "the outer level is an early return, the inner the answer"
    )]
    fn intersect(&self, other: &Cell) -> Option<Option<Cell>> {
        let spelled = match (self.spelled, other.spelled) {
            (Spelled::Any, spelled) | (spelled, Spelled::Any) => spelled,
            (left, right) if left == right => left,
            _ => return Some(None),
        };
        let multiple = match (&self.multiple, &other.multiple) {
            (Some(left), Some(right)) => Some(left.lcm(right)?),
            (one, None) | (None, one) => one.clone(),
        };
        let mut cell = Cell {
            low: tighter(self.low.as_ref(), other.low.as_ref(), |new, old| {
                new > old
            }),
            high: tighter(
                self.high.as_ref(),
                other.high.as_ref(),
                |new, old| new < old,
            ),
            multiple,
            not_multiples: union(&self.not_multiples, &other.not_multiples),
            excluded: union(&self.excluded, &other.excluded),
            only: match (&self.only, &other.only) {
                (Some(left), Some(_)) => Some(left.clone()),
                (one, None) | (None, one) => one.clone(),
            },
            spelled,
        };
        if let Some(only) = &mut cell.only {
            only.retain(|value| self.contains(value) && other.contains(value));
            cell = Cell { only: cell.only, spelled, ..Cell::all() };
        }
        let empty = [false, true].into_iter().all(|negative| {
            cell.half(negative).is_none_or(|half| {
                half.pick(&Window::whole(), false) == Pick::Nothing
            })
        });
        Some((!empty).then_some(cell))
    }

    /// Returns the absolute values of the cell's numbers of one sign, where
    /// zero has both; `None` when there are none.
    pub(super) fn half(&self, negative: bool) -> Option<Cell> {
        let mut half = self.clone();
        if negative {
            let mirror = |end: &Option<End>| {
                end.as_ref().map(|end| End {
                    value: end.value.negated(),
                    open: end.open,
                })
            };
            half.low = mirror(&self.high);
            half.high = mirror(&self.low);
            let mirror = |values: &mut Vec<Decimal>| {
                for value in values.iter_mut() {
                    *value = value.negated();
                }
                values.reverse();
            };
            mirror(&mut half.excluded);
            if let Some(only) = &mut half.only {
                mirror(only);
            }
        }
        half.excluded.retain(|value| !value.is_negative());
        if let Some(only) = &mut half.only {
            only.retain(|value| !value.is_negative());
        }
        if half.low.as_ref().is_none_or(|low| low.value.is_negative()) {
            half.low = None;
        }
        if half.high.as_ref().is_some_and(|high| {
            high.value.is_negative() || high.open && high.value.is_zero()
        }) {
            return None;
        }
        Some(half)
    }

    /// Looks for a value of a half cell in a window. Where any value will do
    /// and `exact` is false, the value found may be a stand-in.
    pub(super) fn pick(&self, window: &Window, exact: bool) -> Pick {
        if let Some(only) = &self.only {
            let found = only.iter().find(|value| window.contains(value));
            return found.map_or(Pick::Nothing, |v| Pick::Value(v.clone()));
        }
        let (low, low_open) = match &self.low {
            Some(low) if low.value >= window.low => (&low.value, low.open),
            _ => (&window.low, false),
        };
        let high = match (&self.high, &window.high) {
            (Some(high), Some(end)) if high.value < *end => {
                Some((&high.value, high.open))
            }
            (_, Some(end)) => Some((end, true)),
            (Some(high), None) => Some((&high.value, high.open)),
            (None, None) => None,
        };
        if high.is_some_and(|(high, open)| {
            low > high || low == high && (low_open || open)
        }) {
            return Pick::Nothing;
        }
        let step = match (&self.multiple, &window.step) {
            (Some(multiple), Some(step)) => match multiple.lcm(step) {
                Some(step) => Some(step),
                None => return Pick::Unknown,
            },
            (one, None) | (None, one) => one.clone(),
        };
        match step {
            Some(step) => self.pick_multiple(low, low_open, high, &step),
            None if high.is_some_and(|(high, _)| low == high) => {
                if self.admits(low) {
                    Pick::Value(low.clone())
                } else {
                    Pick::Nothing
                }
            }
            None if !exact => Pick::Unknown,
            None => self.pick_dense(low, low_open, high),
        }
    }

    fn pick_multiple(
        &self,
        low: &Decimal,
        low_open: bool,
        high: Option<(&Decimal, bool)>,
        step: &Decimal,
    ) -> Pick {
        if self.not_multiples.iter().any(|m| step.is_multiple_of(m)) {
            return Pick::Nothing;
        }
        let mut next = low.next_multiple(step, low_open);
        for _ in 0..MAX_STEPS + self.excluded.len() {
            let Some(value) = next else {
                return Pick::Unknown;
            };
            if high.is_some_and(|(high, open)| {
                value > *high || open && value == *high
            }) {
                return Pick::Nothing;
            }
            if self.admits(&value) {
                return Pick::Value(value);
            }
            next = value.next_multiple(step, true);
        }
        Pick::Unknown
    }

    /// Finds a value strictly inside an interval that is not a single point.
    /// There always is one: a digit past the last place of everything that
    /// is forbidden.
    fn pick_dense(
        &self,
        low: &Decimal,
        low_open: bool,
        high: Option<(&Decimal, bool)>,
    ) -> Pick {
        if !low_open && self.admits(low) {
            return Pick::Value(low.clone());
        }
        let below = |value: &Decimal| {
            high.is_none_or(|(high, open)| {
                value < high || !open && value == high
            })
        };
        let top = low.magnitude().max(0);
        for place in (top - 24..=top).rev() {
            let step = Decimal::pow10(place);
            let found = low
                .next_multiple(&step, true)
                .filter(|value| below(value) && self.admits(value));
            if let Some(value) = found {
                return Pick::Value(value);
            }
        }
        let last_place = [Some(low), high.map(|(high, _)| high)]
            .into_iter()
            .flatten()
            .chain(&self.not_multiples)
            .map(Decimal::exponent)
            .min()
            .unwrap_or(0);
        for deeper in 1.. {
            let digit = Decimal::pow10(last_place.saturating_sub(deeper));
            match low.plus(&digit) {
                Some(value) if below(&value) && self.admits(&value) => {
                    return Pick::Value(value);
                }
                Some(_) => {}
                None => break,
            }
        }
        Pick::Unknown
    }
}

/// The values that a formula allows, as a union of at most 64 simple sets.
#[derive(Clone, Debug)]
pub struct Cells {
    cells: Vec<Cell>,
    exact: bool,
}

impl Cells {
    /// Works out the values that a formula allows.
    pub fn new(formula: &super::NumberFormula) -> Cells {
        Cells::of_program(&Program::new(formula))
    }

    pub(super) fn of_program(program: &Program) -> Cells {
        match cells_of(program) {
            Some(cells) => Cells { cells, exact: true },
            None => Cells { cells: vec![Cell::all()], exact: false },
        }
    }

    /// Returns true if and only if no number satisfies the formula. An
    /// inexact union is never empty.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Returns true if and only if the union holds exactly the formula's
    /// numbers. It holds more of them otherwise.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Returns all values, sorted, if the union is a finite list of values
    /// that may be spelled in any way.
    pub fn values(&self) -> Option<Vec<Decimal>> {
        let mut values = Vec::new();
        for cell in &self.cells {
            if cell.spelled != Spelled::Any {
                return None;
            }
            values.extend(cell.only.as_ref()?.iter().cloned());
        }
        values.sort_unstable();
        values.dedup();
        Some(values)
    }

    /// Returns true if and only if every value is known to be whole.
    pub fn all_integers(&self) -> bool {
        self.cells.iter().all(|cell| match &cell.only {
            Some(only) => only.iter().all(Decimal::is_integer),
            None => cell.multiple.as_ref().is_some_and(Decimal::is_integer),
        })
    }

    pub(super) fn as_slice(&self) -> &[Cell] {
        &self.cells
    }

    /// Drops everything at or past a bound on both sides.
    pub(super) fn clipped(&self, limit: &Decimal) -> Cells {
        let range = Cell {
            low: end(&limit.negated(), true),
            high: end(limit, true),
            ..Cell::all()
        };
        let cells = self
            .cells
            .iter()
            .filter_map(|cell| cell.intersect(&range).flatten())
            .collect();
        Cells { cells, exact: self.exact }
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "an interval has optional ends, and every caller sets one"
)]
fn end(bound: &Decimal, open: bool) -> Option<End> {
    Some(End { value: bound.clone(), open })
}

fn tighter(
    left: Option<&End>,
    right: Option<&End>,
    is_tighter: impl Fn(&Decimal, &Decimal) -> bool,
) -> Option<End> {
    match (left, right) {
        (Some(left), Some(right)) => Some(if left.value == right.value {
            End { value: left.value.clone(), open: left.open || right.open }
        } else if is_tighter(&left.value, &right.value) {
            left.clone()
        } else {
            right.clone()
        }),
        (one, None) | (None, one) => one.cloned(),
    }
}

fn union(left: &[Decimal], right: &[Decimal]) -> Vec<Decimal> {
    let mut union: Vec<Decimal> = left.iter().chain(right).cloned().collect();
    union.sort_unstable();
    union.dedup();
    union
}

/// Evaluates a program over unions of cells; `None` past a limit.
fn cells_of(program: &Program) -> Option<Vec<Cell>> {
    let mut stack: Vec<Vec<Cell>> = Vec::new();
    for op in program.ops() {
        let cells = match op {
            Op::Constant(true) => vec![Cell::all()],
            Op::Constant(false) => Vec::new(),
            Op::Literal(atom, positive) => {
                let cell = Cell::of(atom, *positive);
                cell.intersect(&Cell::all())?.into_iter().collect()
            }
            Op::And(n_parts) => {
                let start = stack.len().saturating_sub(*n_parts);
                let mut parts = stack.split_off(start);
                // Small unions first keep the products small.
                parts.sort_by_key(Vec::len);
                parts.iter().try_fold(vec![Cell::all()], |all, part| {
                    product(&all, part)
                })?
            }
            Op::Or(n_parts) => {
                let start = stack.len().saturating_sub(*n_parts);
                sum(stack.split_off(start))
            }
        };
        if cells.len() > MAX_CELLS {
            return None;
        }
        stack.push(cells);
    }
    stack.pop()
}

fn product(left: &[Cell], right: &[Cell]) -> Option<Vec<Cell>> {
    let mut cells = Vec::new();
    for one in left {
        for other in right {
            if let Some(cell) = one.intersect(other)?
                && !cells.contains(&cell)
            {
                cells.push(cell);
            }
        }
    }
    (cells.len() <= MAX_CELLS).then_some(cells)
}

/// Unites unions, fusing the finite sets, which enumerations bring in
/// numbers.
fn sum(parts: Vec<Vec<Cell>>) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for cell in parts.into_iter().flatten() {
        if let Some(more) = &cell.only
            && let Some(values) = cells
                .iter_mut()
                .filter(|other| other.spelled == cell.spelled)
                .find_map(|other| other.only.as_mut())
        {
            *values = union(values, more);
        } else if !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    cells
}
