//! What one site asks of a number, and the steps through its texts.

use smallvec::SmallVec;

use super::{
    Cells, Decimal, NumberFormula, NumberState,
    cells::Cell,
    classes::Classes,
    formula::Program,
    state::{Digits, Phase, Prefix, Repr},
};

/// The most goals of one specification: one bit each of a verdict.
pub const MAX_GOALS: usize = 64;

/// The most digits to which plain spelling is widened for a schema's own
/// numbers.
const MAX_WIDENED: i64 = 1_000;

/// Plain numbers of no more digits than this stay finite as doubles with two
/// digits of exponent.
const MAX_FINITE_DIGITS: u32 = 200;

/// The most digits of an exponent in plain spelling.
const MAX_PLAIN_EXPONENT: i64 = 2;

/// The most digits of a mantissa that are kept when all of them matter.
const MAX_KEPT_DIGITS: usize = 4_096;

/// Which texts of a value are allowed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Spelling {
    /// What generators want.
    ///
    /// - Whole numbers have no point where only whole numbers are allowed.
    /// - There are no exponents, except of at most two digits where the
    ///   formulas say nothing at all, and below.
    /// - There are at most `max_digits` digits, widened where a bound itself
    ///   has more.
    /// - Where only finitely many values are allowed, each is spelled plainly
    ///   and in its shortest form.
    ///
    /// Where no allowed value has such a text, [`Spelling::Json`] applies.
    Plain {
        /// The most digits before the exponent.
        max_digits: u32,
    },
    /// Every text of JSON's grammar.
    Json,
}

/// Restrictions on the texts of numbers.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Policy {
    /// Which texts of a value are allowed.
    pub spelling: Spelling,
    /// Whether only values whose nearest double is finite are allowed.
    pub range_f64: bool,
}

impl Policy {
    /// Plain spelling of at most 40 digits, within the range of doubles.
    pub fn plain() -> Policy {
        let spelling = Spelling::Plain { max_digits: 40 };
        Policy { spelling, range_f64: true }
    }

    /// Every spelling of JSON, within the range of doubles.
    pub fn json() -> Policy {
        Policy { spelling: Spelling::Json, range_f64: true }
    }
}

/// The bytes that may come next, ascending, each with the state after it.
pub type LiveBytes = SmallVec<[(u8, NumberState); 4]>;

/// What one site asks of a number: a formula that must hold, goals whose
/// verdicts are wanted when the number ends, and a spelling policy.
///
/// # Example
///
/// ```
/// use maskwright_json_schema::number::{
///     NumberFormula, NumberSpec, Policy,
/// };
///
/// let at_most_150 = NumberFormula::And(vec![
///     NumberFormula::Integer,
///     NumberFormula::Ge(0_i64.into()),
///     NumberFormula::Le(150_i64.into()),
/// ]);
/// let spec = NumberSpec::new(&at_most_150, &[], Policy::plain());
/// let mut state = spec.start();
/// for byte in *b"15" {
///     state = spec.step(&state, byte).expect("15 may become 15 or 150");
/// }
/// assert!(spec.may_end(&state));
/// assert!(spec.step(&state, b'1').is_none());
/// assert!(spec.step(&state, b'0').is_some());
/// ```
#[derive(Clone, Debug)]
pub struct NumberSpec {
    need: Program,
    goals: Vec<Program>,
    cells: Cells,
    /// The absolute values of `cells`, positive and negative.
    pub(super) halves: [Vec<Cell>; 2],
    /// Absolute values must stay below it.
    limit: Option<Decimal>,
    classes: Classes,
    /// Whether nothing but the grammar and the number of digits counts.
    pub(super) free: bool,
    /// Whether texts may have a point.
    pub(super) fraction: bool,
    /// Whether texts may have an exponent.
    pub(super) exponent: bool,
    pub(super) max_digits: Option<u32>,
    /// The only texts, sorted, if there are finitely many.
    texts: Vec<ListedText>,
}

#[derive(Clone, Debug)]
struct ListedText {
    text: Box<[u8]>,
    verdicts: u64,
}

impl NumberSpec {
    /// Prepares the number that satisfies `need` and is judged by `goals`.
    ///
    /// Goals past [`MAX_GOALS`] have no verdict.
    pub fn new(
        need: &NumberFormula,
        goals: &[NumberFormula],
        policy: Policy,
    ) -> NumberSpec {
        let need = Program::new(need);
        let goals: Vec<Program> =
            goals.iter().take(MAX_GOALS).map(Program::new).collect();
        let cells = Cells::of_program(&need);
        if let Spelling::Plain { max_digits } = policy.spelling {
            let spec = NumberSpec::with(
                need.clone(),
                goals.clone(),
                cells.clone(),
                policy.range_f64,
                Some(max_digits.max(1)),
            );
            if !spec.is_empty() || cells.is_empty() {
                return spec;
            }
        }
        NumberSpec::with(need, goals, cells, policy.range_f64, None)
    }

    /// Prepares plain spelling if `max_digits` is given, else all of JSON.
    fn with(
        need: Program,
        goals: Vec<Program>,
        cells: Cells,
        range_f64: bool,
        max_digits: Option<u32>,
    ) -> NumberSpec {
        let max_digits = max_digits
            .map(|given| widened(given, std::iter::once(&need).chain(&goals)));
        let short = max_digits.is_some_and(|n| n <= MAX_FINITE_DIGITS);
        let programs = || std::iter::once(&need).chain(&goals);
        let no_atoms = programs().all(|p| p.atoms().next().is_none());
        let limit = (range_f64 && !short).then(Decimal::f64_limit);
        let free = no_atoms && limit.is_none() && !cells.is_empty();
        let exponent = max_digits.is_none() || free;
        let cells = match &limit {
            Some(limit) => cells.clipped(limit),
            None => cells,
        };
        let halves = [false, true].map(|negative| {
            let cells = cells.as_slice().iter();
            cells.filter_map(|cell| cell.half(negative)).collect()
        });
        let counted = max_digits.is_some() && !exponent;
        let classes = Classes::new(programs(), limit.as_ref(), counted);
        let fraction = max_digits.is_none() || !cells.all_integers();
        let mut spec = NumberSpec {
            need,
            goals,
            cells,
            halves,
            limit,
            classes,
            free,
            fraction,
            exponent,
            max_digits,
            texts: Vec::new(),
        };
        if let Some(max_digits) = max_digits {
            spec.texts = spec.listed_texts(max_digits);
        }
        spec
    }

    /// Spells the values of a finite specification.
    fn listed_texts(&self, max_digits: u32) -> Vec<ListedText> {
        let values = self.cells.values().unwrap_or_default();
        let mut texts = Vec::new();
        for value in &values {
            let mut spellings = vec![value.to_string()];
            spellings.extend(plain_text(value, max_digits));
            spellings.dedup();
            for text in spellings {
                let whole = !text.contains(['.', 'e']);
                if self.need.eval(value, whole) {
                    let verdicts = self.verdicts_of(value, whole);
                    let text = text.into_bytes().into_boxed_slice();
                    texts.push(ListedText { text, verdicts });
                }
            }
        }
        texts.sort_unstable_by(|left, right| left.text.cmp(&right.text));
        texts
    }

    /// Returns the allowed values, those of the policy's range only.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Returns the only texts, sorted, if there are finitely many and the
    /// spelling is plain.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let texts = self.texts.iter();
        texts.filter_map(|listed| std::str::from_utf8(&listed.text).ok())
    }

    /// Returns true if and only if no text is allowed. False where the cells
    /// are inexact.
    pub fn is_empty(&self) -> bool {
        match self.start().0 {
            Repr::Listed { first, last, .. } => first == last,
            Repr::Prefix(prefix) => self.search(&prefix, false).is_none(),
        }
    }

    /// Returns the state in which nothing is read.
    pub fn start(&self) -> NumberState {
        NumberState(if self.texts.is_empty() {
            Repr::Prefix(Prefix::start())
        } else {
            let last = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
            Repr::Listed { first: 0, last, depth: 0 }
        })
    }

    /// Reads a byte; `None` exactly when no allowed number continues so.
    pub fn step(&self, state: &NumberState, byte: u8) -> Option<NumberState> {
        match &state.0 {
            Repr::Listed { first, last, depth } => {
                self.step_listed(*first, *last, *depth, byte)
            }
            Repr::Prefix(prefix) => {
                let next = self.advance(prefix, byte)?;
                self.search(&next, false)?;
                Some(NumberState(Repr::Prefix(next)))
            }
        }
    }

    /// Returns the bytes that may come next, with the states after them.
    pub fn live_bytes(&self, state: &NumberState) -> LiveBytes {
        let candidates: &[u8] = match &state.0 {
            Repr::Listed { .. } => b"+-.0123456789Ee",
            Repr::Prefix(prefix) => match prefix.phase {
                Phase::Start => b"-0123456789",
                Phase::Zero => b".Ee",
                Phase::Whole => b".0123456789Ee",
                Phase::Fraction => b"0123456789Ee",
                Phase::Exponent => b"+-0123456789",
                Phase::Minus
                | Phase::Point
                | Phase::ExponentSign
                | Phase::ExponentDigits => b"0123456789",
            },
        };
        let mut live = LiveBytes::new();
        let mut last_prefix: Option<(Prefix, bool)> = None;
        for &byte in candidates {
            let Repr::Prefix(prefix) = &state.0 else {
                live.extend(self.step(state, byte).map(|next| (byte, next)));
                continue;
            };
            let Some(next) = self.advance(prefix, byte) else {
                continue;
            };
            // Neighbouring digits are often in one class: ask once.
            let is_live = match &last_prefix {
                Some((seen, is_live)) if *seen == next => *is_live,
                _ => self.search(&next, false).is_some(),
            };
            if is_live {
                let next = NumberState(Repr::Prefix(next.clone()));
                live.push((byte, next));
            }
            last_prefix = Some((next, is_live));
        }
        live
    }

    /// Returns true if and only if the text so far is an allowed number.
    pub fn may_end(&self, state: &NumberState) -> bool {
        match &state.0 {
            Repr::Listed { .. } => self.listed(state).is_some(),
            Repr::Prefix(prefix) => {
                prefix.phase.is_complete()
                    && (self.free || self.allows(prefix))
            }
        }
    }

    /// Returns a bit for each goal: whether it holds of the text so far. Zero
    /// where the text is no number yet.
    pub fn verdicts(&self, state: &NumberState) -> u64 {
        match &state.0 {
            Repr::Listed { .. } => {
                self.listed(state).map_or(0, |listed| listed.verdicts)
            }
            Repr::Prefix(prefix) if !prefix.phase.is_complete() => 0,
            Repr::Prefix(prefix) => {
                self.verdicts_of(&prefix.value(), prefix.phase.is_whole())
            }
        }
    }

    /// Returns bytes that complete the text so far to an allowed number,
    /// preferring few; `None` where the state is kept only because the cells
    /// are inexact.
    pub fn shortest_completion(&self, state: &NumberState) -> Option<Vec<u8>> {
        if self.may_end(state) {
            return Some(Vec::new());
        }
        match &state.0 {
            Repr::Listed { first, last, depth } => self
                .texts
                .get(*first as usize..*last as usize)?
                .iter()
                .filter_map(|listed| listed.text.get(*depth as usize..))
                .min_by_key(|text| text.len())
                .map(<[u8]>::to_vec),
            Repr::Prefix(prefix) => self.search(prefix, true),
        }
    }

    /// Returns bytes that complete a text which another specification has
    /// read to an allowed number. Both ask the same questions, whatever the
    /// answers that they want. `None` where there are none, or none was found.
    pub fn completion_of(&self, state: &NumberState) -> Option<Vec<u8>> {
        let Repr::Prefix(prefix) = &state.0 else { return None };
        if prefix.phase.is_complete() && self.allows(prefix) {
            return Some(Vec::new());
        }
        self.search(prefix, true)
    }

    fn allows(&self, prefix: &Prefix) -> bool {
        let value = prefix.value();
        self.limit.as_ref().is_none_or(|limit| value.abs() < *limit)
            && self.need.eval(&value, prefix.phase.is_whole())
    }

    fn verdicts_of(&self, value: &Decimal, integer_text: bool) -> u64 {
        self.goals.iter().enumerate().fold(0, |bits, (index, goal)| {
            bits | u64::from(goal.eval(value, integer_text)) << index
        })
    }

    pub(super) fn is_decided(&self, prefix: &Prefix) -> bool {
        self.classes.is_decided(prefix)
    }

    /// Returns the listed text that ends here.
    fn listed(&self, state: &NumberState) -> Option<&ListedText> {
        let Repr::Listed { first, last, depth } = state.0 else {
            return None;
        };
        let listed = self.texts.get(first as usize)?;
        (first < last && listed.text.len() == depth as usize).then_some(listed)
    }

    fn step_listed(
        &self,
        first: u32,
        last: u32,
        depth: u32,
        byte: u8,
    ) -> Option<NumberState> {
        let texts = self.texts.get(first as usize..last as usize)?;
        let at = |listed: &ListedText| {
            listed.text.get(depth as usize).copied().unwrap_or(0)
        };
        let start = texts.partition_point(|listed| at(listed) < byte);
        let end = texts.partition_point(|listed| at(listed) <= byte);
        let index = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        (start < end).then(|| {
            NumberState(Repr::Listed {
                first: first + index(start),
                last: first + index(end),
                depth: depth + 1,
            })
        })
    }

    /// Reads a byte by the grammar alone and reduces the prefix to its class.
    pub(super) fn advance(&self, prefix: &Prefix, byte: u8) -> Option<Prefix> {
        let phase = self.next_phase(prefix, byte)?;
        let mut next = prefix.clone();
        next.phase = phase;
        match phase {
            Phase::Start | Phase::Zero | Phase::Point | Phase::Exponent => {}
            Phase::Minus => next.negative = true,
            Phase::Whole | Phase::Fraction => next.push(byte - b'0'),
            Phase::ExponentSign => next.exponent_negative = byte == b'-',
            Phase::ExponentDigits => {
                let digit = i64::from(byte - b'0');
                next.exponent =
                    next.exponent.saturating_mul(10).saturating_add(digit);
            }
        }
        if self.free {
            return self.advance_free(prefix, next);
        }
        let max_digits = self.max_digits.map_or(i64::MAX, i64::from);
        if phase.is_mantissa() && next.n_written() > max_digits {
            return None;
        }
        self.classes.reduce(&mut next);
        (next.digits.len() <= MAX_KEPT_DIGITS).then_some(next)
    }

    /// Keeps the phase and the counts only.
    fn advance_free(&self, last: &Prefix, mut next: Prefix) -> Option<Prefix> {
        let phase = next.phase;
        let is_digit =
            matches!(phase, Phase::Zero | Phase::Whole | Phase::Fraction);
        next.negative &= phase == Phase::Minus;
        next.digits = Digits::new();
        next.point = 0;
        next.exponent = 0;
        next.length = 0;
        next.exponent_negative = false;
        let Some(max_digits) = self.max_digits else {
            return Some(next);
        };
        match phase {
            Phase::ExponentDigits => {
                next.exponent = last.exponent + 1;
                if next.exponent > MAX_PLAIN_EXPONENT {
                    return None;
                }
            }
            Phase::Exponent | Phase::ExponentSign => {}
            _ => next.length = last.length + u32::from(is_digit),
        }
        let needed = next.length + u32::from(phase == Phase::Point);
        (needed <= max_digits).then_some(next)
    }

    fn next_phase(&self, prefix: &Prefix, byte: u8) -> Option<Phase> {
        let phase = prefix.phase;
        match (phase, byte) {
            (Phase::Start, b'-') => Some(Phase::Minus),
            (Phase::Start | Phase::Minus, b'0') => Some(Phase::Zero),
            (Phase::Start | Phase::Minus, b'1'..=b'9')
            | (Phase::Whole, b'0'..=b'9') => Some(Phase::Whole),
            (Phase::Zero | Phase::Whole, b'.') => {
                self.fraction.then_some(Phase::Point)
            }
            (Phase::Point | Phase::Fraction, b'0'..=b'9') => {
                Some(Phase::Fraction)
            }
            (Phase::Zero | Phase::Whole | Phase::Fraction, b'e' | b'E') => {
                self.exponent.then_some(Phase::Exponent)
            }
            (Phase::Exponent, b'+' | b'-') => Some(Phase::ExponentSign),
            (
                Phase::Exponent | Phase::ExponentSign | Phase::ExponentDigits,
                b'0'..=b'9',
            ) => Some(Phase::ExponentDigits),
            _ => None,
        }
    }
}

/// Widens a limit on digits so that plain spelling reaches the numbers that
/// the formulas themselves name.
fn widened<'p>(
    given: u32,
    programs: impl Iterator<Item = &'p Program>,
) -> u32 {
    use super::formula::Atom;
    let width = |value: &Decimal| {
        let whole = value.magnitude().max(1);
        let fraction = value.exponent().saturating_neg().max(0);
        let width = whole.saturating_add(fraction).saturating_add(1);
        if width > MAX_WIDENED { 0 } else { width }
    };
    let most = programs
        .flat_map(Program::atoms)
        .filter_map(|atom| match atom {
            Atom::Ge(value) | Atom::Gt(value) | Atom::MultipleOf(value) => {
                Some(width(value))
            }
            Atom::In(values) => values.iter().map(width).max(),
            Atom::IntegerText => None,
        })
        .max()
        .unwrap_or(0);
    given.max(u32::try_from(most).unwrap_or(0))
}

/// Spells a value without an exponent, if it has few enough digits.
fn plain_text(value: &Decimal, max_digits: u32) -> Option<String> {
    let fraction = value.exponent().saturating_neg().max(0);
    let whole = value.magnitude().max(1);
    let max_digits = i64::from(max_digits);
    if whole.saturating_add(fraction) > max_digits {
        return None;
    }
    let mut digits: String =
        value.digits().iter().map(|d| char::from(d + b'0')).collect();
    let zeros = usize::try_from(value.exponent().max(0)).ok()?;
    digits.push_str(&"0".repeat(zeros));
    let width = usize::try_from(whole + fraction).ok()?;
    let mut text = format!("{digits:0>width$}");
    if fraction > 0 {
        text.insert(usize::try_from(whole).ok()?, '.');
    }
    if value.is_negative() {
        text.insert(0, '-');
    }
    Some(text)
}
