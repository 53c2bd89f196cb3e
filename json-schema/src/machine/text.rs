//! How the code points of a string are spelled in JSON text.
//!
//! A string machine reads *decoded* code points; this module puts the bytes
//! under it: raw UTF-8 (shortest form only, no surrogates), escapes, and
//! pairs of `\u` escapes that make one code point. Every state stands for a
//! set of code points that may still come out, so that a partial sequence is
//! alive if and only if one of them is: after an enum of emoji has begun with
//! `\ud83`, only the digits that lead to one of its members are left.
//!
//! `Q` is the state of the machine above, which gives its [`Edge`]s.

use maskwright_grammar_core::automaton::{
    AutomatonError, Outcome, RowBuilder, StateId, Step,
};

use super::policy::Escapes;

/// The code points `lo..=hi` lead to the state `to`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Edge<Q> {
    pub(crate) lo: u32,
    pub(crate) hi: u32,
    pub(crate) to: Q,
}

/// Where in the spelling of a code point a string stands.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) enum Spelling<Q> {
    /// Between two code points.
    Between(Q),
    /// Inside UTF-8, `left` bytes from the end of a code point in `lo..=hi`,
    /// and where it leads depends on which it will be.
    Utf8 { from: Q, lo: u32, hi: u32, left: u8 },
    /// Inside UTF-8, `left` bytes from the end; the next byte is in `lo..=hi`
    /// and each way leads to `to`.
    Utf8Tail { to: Q, left: u8, lo: u8, hi: u8 },
    /// After a backslash.
    Escape(Q),
    /// After `\u` and `digits` digits, which make `value`.
    Hex { from: Q, digits: u8, value: u32 },
    /// `left` digits from the end of `\uXXXX`; each way leads to `to`.
    HexTail { to: Q, left: u8 },
    /// `left` digits from the end of a high surrogate; each way leads to
    /// `to`, after a low surrogate.
    HighTail { to: Q, left: u8 },
    /// After the high surrogate `high` and, from `stage` 1, a backslash.
    Pair { from: Q, high: u32, stage: u8 },
    /// The digits of the low surrogate after `high`.
    Low { from: Q, high: u32, digits: u8, value: u32 },
    /// Before a low surrogate: backslash, `u`, `d`, `c-f`; each way leads to
    /// `to`.
    LowTail { to: Q, stage: u8 },
}

/// What the edges say of a whole interval of code points.
enum Cover<Q> {
    /// No code point in it is alive.
    Dead,
    /// Each code point in it leads to the same state.
    Uniform(Q),
    /// Anything else.
    Mixed,
}

const MAX: u32 = 0x10_FFFF;
/// The lead bytes of UTF-8 in ranges whose second byte is in the same range:
/// first lead, last lead, second byte from, to, bytes after the lead.
const LEADS: [(u8, u8, u8, u8, u8); 8] = [
    (0xC2, 0xDF, 0x80, 0xBF, 1),
    (0xE0, 0xE0, 0xA0, 0xBF, 2),
    (0xE1, 0xEC, 0x80, 0xBF, 2),
    (0xED, 0xED, 0x80, 0x9F, 2),
    (0xEE, 0xEF, 0x80, 0xBF, 2),
    (0xF0, 0xF0, 0x90, 0xBF, 3),
    (0xF1, 0xF3, 0x80, 0xBF, 3),
    (0xF4, 0xF4, 0x80, 0x8F, 3),
];
/// The escapes of one character and what they spell.
const SHORT: [(u8, u32); 7] = [
    (b'"', 0x22),
    (b'\\', 0x5C),
    (b'b', 0x08),
    (b'f', 0x0C),
    (b'n', 0x0A),
    (b'r', 0x0D),
    (b't', 0x09),
];

fn cover<Q: Copy + Eq>(edges: &[Edge<Q>], lo: u32, hi: u32) -> Cover<Q> {
    let first = edges.partition_point(|edge| edge.hi < lo);
    let Some(edge) = edges.get(first).filter(|edge| edge.lo <= hi) else {
        return Cover::Dead;
    };
    let to = edge.to;
    let mut next = lo;
    for edge in &edges[first..] {
        if edge.lo > hi {
            break;
        }
        // Surrogates are no code points: a gap over them is no gap.
        let gap = edge.lo > next && !(next >= 0xD800 && edge.lo <= 0xE000);
        if edge.to != to || gap {
            return Cover::Mixed;
        }
        next = edge.hi + 1;
    }
    let done = next > hi || (next >= 0xD800 && hi <= 0xDFFF);
    if done { Cover::Uniform(to) } else { Cover::Mixed }
}

fn target<Q: Copy + Eq>(edges: &[Edge<Q>], code: u32) -> Option<Q> {
    match cover(edges, code, code) {
        Cover::Uniform(to) => Some(to),
        Cover::Dead | Cover::Mixed => None,
    }
}

impl Escapes {
    /// The intervals of code points that may be spelled by one `\uXXXX`.
    fn hex_intervals(self) -> &'static [(u32, u32)] {
        match self {
            Escapes::Any => &[(0, 0xFFFF)],
            Escapes::Needed => &[(0, 7), (0xB, 0xB), (0xE, 0x1F)],
            Escapes::Ascii => {
                &[(0, 7), (0xB, 0xB), (0xE, 0x1F), (0x80, 0xFFFF)]
            }
        }
    }

    /// The greatest code point that may stand raw.
    fn max_raw(self) -> u32 {
        if self == Escapes::Ascii { 0x7F } else { MAX }
    }

    fn allows_pairs(self) -> bool {
        self != Escapes::Needed
    }

    fn digits(self) -> impl Iterator<Item = (u8, u32)> {
        let upper: &[u8] = if self == Escapes::Any { b"ABCDEF" } else { b"" };
        let lower = b"0123456789abcdef".iter().zip(0..);
        lower.chain(upper.iter().zip(10..)).map(|(&byte, value)| (byte, value))
    }
}

/// Whether some code point of `lo..=hi` (as spelled by four digits; a high
/// surrogate stands for the pairs that it begins) leads on.
fn hex_is_live<Q: Copy + Eq>(
    edges: &[Edge<Q>],
    escapes: Escapes,
    lo: u32,
    hi: u32,
) -> bool {
    let alive = |lo: u32, hi: u32| {
        lo <= hi && !matches!(cover(edges, lo, hi), Cover::Dead)
    };
    for &(from, to) in escapes.hex_intervals() {
        let (lo, hi) = (lo.max(from), hi.min(to));
        if alive(lo, hi.min(0xD7FF)) || alive(lo.max(0xE000), hi) {
            return true;
        }
    }
    let (lo, hi) = (lo.max(0xD800), hi.min(0xDBFF));
    escapes.allows_pairs()
        && lo <= hi
        && alive(pair(lo, 0xDC00), pair(hi, 0xDFFF))
}

fn pair(high: u32, low: u32) -> u32 {
    0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00)
}

/// Fills rows of one string machine.
pub(crate) struct Speller<'a, Q> {
    /// The edges of the state in which the spelling stands (`from`, or that
    /// of `Between` and `Escape`); empty for the others.
    pub(crate) edges: &'a [Edge<Q>],
    pub(crate) escapes: Escapes,
    /// What the closing quote returns, if the string may end here.
    pub(crate) close: Option<Outcome>,
    /// Interns a state.
    pub(crate) intern:
        &'a mut dyn FnMut(Spelling<Q>) -> Result<StateId, AutomatonError>,
}

impl<Q: Copy + Eq> Speller<'_, Q> {
    /// Adds what `spelling` can read to `row`.
    pub(crate) fn fill(
        &mut self,
        spelling: Spelling<Q>,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        match spelling {
            Spelling::Between(from) => self.between(from, row),
            Spelling::Utf8 { from, lo, hi, left } => {
                self.utf8(from, lo, hi, left, row)
            }
            Spelling::Utf8Tail { to, left, lo, hi } => {
                let next = self.utf8_tail(to, left - 1, 0x80, 0xBF)?;
                row.range(lo, hi, Step::Stay(next));
                Ok(())
            }
            Spelling::Escape(from) => self.escape(from, row),
            Spelling::Hex { from, digits, value } => {
                self.hex(from, digits, value, row)
            }
            Spelling::HexTail { to, left } => {
                let next = self.hex_tail(to, left - 1)?;
                self.any_digit(next, row);
                Ok(())
            }
            Spelling::HighTail { to, left } => {
                let next = self.high_tail(to, left - 1)?;
                self.any_digit(next, row);
                Ok(())
            }
            Spelling::Pair { from, high, stage: 0 } => {
                self.one(b'\\', Spelling::Pair { from, high, stage: 1 }, row)
            }
            Spelling::Pair { from, high, .. } => {
                let low = Spelling::Low { from, high, digits: 0, value: 0 };
                self.one(b'u', low, row)
            }
            Spelling::Low { from, high, digits, value } => {
                self.low(from, high, digits, value, row)
            }
            Spelling::LowTail { to, stage } => self.low_tail(to, stage, row),
        }
    }

    fn stay(&mut self, to: Spelling<Q>) -> Result<Step, AutomatonError> {
        Ok(Step::Stay((self.intern)(to)?))
    }

    fn one(
        &mut self,
        byte: u8,
        to: Spelling<Q>,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let step = self.stay(to)?;
        row.byte(byte, step);
        Ok(())
    }

    fn any_digit(&self, next: StateId, row: &mut RowBuilder) {
        row.range(b'0', b'9', Step::Stay(next));
        row.range(b'a', b'f', Step::Stay(next));
        if self.escapes == Escapes::Any {
            row.range(b'A', b'F', Step::Stay(next));
        }
    }

    fn between(
        &mut self,
        from: Q,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        if let Some(outcome) = self.close {
            row.byte(b'"', Step::Return(outcome));
        }
        for index in 0..self.edges.len() {
            let Edge { lo, hi, to } = self.edges[index];
            let (lo, hi) = (lo.max(0x20), hi.min(0x7F));
            if lo > hi {
                continue;
            }
            let step = self.stay(Spelling::Between(to))?;
            // The quote and the backslash mean something else.
            for (from, to) in [(0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7F)] {
                let (lo, hi) = (lo.max(from), hi.min(to));
                if let (Ok(lo), Ok(hi)) = (u8::try_from(lo), u8::try_from(hi))
                {
                    row.range(lo, hi, step);
                }
            }
        }
        self.leads(from, row)?;
        if self.escape_is_live() {
            self.one(b'\\', Spelling::Escape(from), row)?;
        }
        Ok(())
    }

    fn escape_is_live(&self) -> bool {
        match self.escapes {
            Escapes::Any => !self.edges.is_empty(),
            Escapes::Needed | Escapes::Ascii => {
                SHORT.iter().any(|&(_, code)| self.target(code).is_some())
                    || hex_is_live(self.edges, self.escapes, 0, 0xFFFF)
            }
        }
    }

    fn target(&self, code: u32) -> Option<Q> {
        target(self.edges, code)
    }

    fn leads(
        &mut self,
        from: Q,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        if self.escapes.max_raw() < 0x80 {
            return Ok(());
        }
        match cover(self.edges, 0x80, MAX) {
            Cover::Dead => return Ok(()),
            Cover::Uniform(to) => {
                for (first, last, lo, hi, left) in LEADS {
                    let next = self.utf8_tail(to, left, lo, hi)?;
                    row.range(first, last, Step::Stay(next));
                }
                return Ok(());
            }
            Cover::Mixed => {}
        }
        for (first, last, second_lo, second_hi, left) in LEADS {
            for lead in first..=last {
                let shift = 6 * u32::from(left);
                let bits = u32::from(lead) & (0x3F >> left);
                let code = |second: u8, rest: u32| {
                    let second = u32::from(second & 0x3F) << (shift - 6);
                    (bits << shift)
                        | second
                        | (rest & ((1 << (shift - 6)) - 1))
                };
                let (lo, hi) = (code(second_lo, 0), code(second_hi, MAX));
                let next = match cover(self.edges, lo, hi) {
                    Cover::Dead => continue,
                    Cover::Uniform(to) => {
                        self.utf8_tail(to, left, second_lo, second_hi)?
                    }
                    Cover::Mixed => {
                        (self.intern)(Spelling::Utf8 { from, lo, hi, left })?
                    }
                };
                row.byte(lead, Step::Stay(next));
            }
        }
        Ok(())
    }

    fn utf8_tail(
        &mut self,
        to: Q,
        left: u8,
        lo: u8,
        hi: u8,
    ) -> Result<StateId, AutomatonError> {
        if left == 0 {
            (self.intern)(Spelling::Between(to))
        } else {
            (self.intern)(Spelling::Utf8Tail { to, left, lo, hi })
        }
    }

    fn utf8(
        &mut self,
        from: Q,
        lo: u32,
        hi: u32,
        left: u8,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let shift = 6 * u32::from(left - 1);
        for part in (lo >> shift)..=(hi >> shift) {
            let low = lo.max(part << shift);
            let high = hi.min((part << shift) | ((1 << shift) - 1));
            let next = match cover(self.edges, low, high) {
                Cover::Dead => continue,
                Cover::Uniform(to) => {
                    self.utf8_tail(to, left - 1, 0x80, 0xBF)?
                }
                Cover::Mixed => (self.intern)(Spelling::Utf8 {
                    from,
                    lo: low,
                    hi: high,
                    left: left - 1,
                })?,
            };
            let byte = u8::try_from(part & 0x3F).unwrap_or(0) | 0x80;
            row.byte(byte, Step::Stay(next));
        }
        Ok(())
    }

    fn escape(
        &mut self,
        from: Q,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let slash = [(b'/', 0x2F)];
        let slash: &[_] =
            if self.escapes == Escapes::Any { &slash } else { &[] };
        for &(byte, code) in SHORT.iter().chain(slash) {
            if let Some(to) = self.target(code) {
                self.one(byte, Spelling::Between(to), row)?;
            }
        }
        if hex_is_live(self.edges, self.escapes, 0, 0xFFFF) {
            let hex = Spelling::Hex { from, digits: 0, value: 0 };
            self.one(b'u', hex, row)?;
        }
        Ok(())
    }

    fn hex(
        &mut self,
        from: Q,
        digits: u8,
        value: u32,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let left = 3 - digits;
        let shift = 4 * u32::from(left);
        for (byte, digit) in self.escapes.digits() {
            let value = value << 4 | digit;
            let (lo, hi) = (value << shift, ((value + 1) << shift) - 1);
            if !hex_is_live(self.edges, self.escapes, lo, hi) {
                continue;
            }
            let next = match self.hex_cover(lo, hi) {
                Some((to, false)) => self.hex_tail(to, left)?,
                Some((to, true)) => self.high_tail(to, left)?,
                None if left == 0 => (self.intern)(Spelling::Pair {
                    from,
                    high: value,
                    stage: 0,
                })?,
                None => (self.intern)(Spelling::Hex {
                    from,
                    digits: digits + 1,
                    value,
                })?,
            };
            row.byte(byte, Step::Stay(next));
        }
        Ok(())
    }

    /// The state to which each four digits in `lo..=hi` lead, if there is
    /// just one, and whether they are high surrogates.
    fn hex_cover(&self, lo: u32, hi: u32) -> Option<(Q, bool)> {
        let high = lo >= 0xD800 && hi <= 0xDBFF;
        let (lo, hi) = if high {
            (pair(lo, 0xDC00), pair(hi, 0xDFFF))
        } else {
            let plain = hi < 0xD800 || lo > 0xDFFF;
            let allowed = self
                .escapes
                .hex_intervals()
                .iter()
                .any(|&(from, to)| from <= lo && hi <= to);
            if !(plain && allowed) {
                return None;
            }
            (lo, hi)
        };
        match cover(self.edges, lo, hi) {
            Cover::Uniform(to) => Some((to, high)),
            Cover::Dead | Cover::Mixed => None,
        }
    }

    fn hex_tail(
        &mut self,
        to: Q,
        left: u8,
    ) -> Result<StateId, AutomatonError> {
        if left == 0 {
            (self.intern)(Spelling::Between(to))
        } else {
            (self.intern)(Spelling::HexTail { to, left })
        }
    }

    fn high_tail(
        &mut self,
        to: Q,
        left: u8,
    ) -> Result<StateId, AutomatonError> {
        if left == 0 {
            (self.intern)(Spelling::LowTail { to, stage: 0 })
        } else {
            (self.intern)(Spelling::HighTail { to, left })
        }
    }

    fn low(
        &mut self,
        from: Q,
        high: u32,
        digits: u8,
        value: u32,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let left = 3 - digits;
        let shift = 4 * u32::from(left);
        for (byte, digit) in self.escapes.digits() {
            let value = value << 4 | digit;
            let lo = (value << shift).max(0xDC00);
            let hi = (((value + 1) << shift) - 1).min(0xDFFF);
            if lo > hi {
                continue;
            }
            let whole = hi - lo == (1 << shift) - 1;
            let next = match cover(self.edges, pair(high, lo), pair(high, hi))
            {
                Cover::Dead => continue,
                Cover::Uniform(to) if whole => self.hex_tail(to, left)?,
                Cover::Uniform(_) | Cover::Mixed => {
                    (self.intern)(Spelling::Low {
                        from,
                        high,
                        digits: digits + 1,
                        value,
                    })?
                }
            };
            row.byte(byte, Step::Stay(next));
        }
        Ok(())
    }

    fn low_tail(
        &mut self,
        to: Q,
        stage: u8,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        let next = Spelling::LowTail { to, stage: stage + 1 };
        match stage {
            0 => self.one(b'\\', next, row),
            1 => self.one(b'u', next, row),
            2 => {
                let step = self.stay(next)?;
                row.byte(b'd', step);
                if self.escapes == Escapes::Any {
                    row.byte(b'D', step);
                }
                Ok(())
            }
            _ => {
                let step = self.stay(Spelling::HexTail { to, left: 2 })?;
                row.range(b'c', b'f', step);
                if self.escapes == Escapes::Any {
                    row.range(b'C', b'F', step);
                }
                Ok(())
            }
        }
    }
}

impl<Q: Copy> Spelling<Q> {
    /// The state above in which this spelling stands, and whose edges decide
    /// how it goes on; none if that is decided already.
    pub(crate) fn from(self) -> Option<Q> {
        match self {
            Spelling::Between(from)
            | Spelling::Escape(from)
            | Spelling::Utf8 { from, .. }
            | Spelling::Hex { from, .. }
            | Spelling::Pair { from, .. }
            | Spelling::Low { from, .. } => Some(from),
            Spelling::Utf8Tail { .. }
            | Spelling::HexTail { .. }
            | Spelling::HighTail { .. }
            | Spelling::LowTail { .. } => None,
        }
    }

    /// The same place in the spelling over other states.
    pub(crate) fn map<R>(self, f: impl FnOnce(Q) -> R) -> Spelling<R> {
        match self {
            Spelling::Between(from) => Spelling::Between(f(from)),
            Spelling::Escape(from) => Spelling::Escape(f(from)),
            Spelling::Utf8 { from, lo, hi, left } => {
                Spelling::Utf8 { from: f(from), lo, hi, left }
            }
            Spelling::Hex { from, digits, value } => {
                Spelling::Hex { from: f(from), digits, value }
            }
            Spelling::Pair { from, high, stage } => {
                Spelling::Pair { from: f(from), high, stage }
            }
            Spelling::Low { from, high, digits, value } => {
                Spelling::Low { from: f(from), high, digits, value }
            }
            Spelling::Utf8Tail { to, left, lo, hi } => {
                Spelling::Utf8Tail { to: f(to), left, lo, hi }
            }
            Spelling::HexTail { to, left } => {
                Spelling::HexTail { to: f(to), left }
            }
            Spelling::HighTail { to, left } => {
                Spelling::HighTail { to: f(to), left }
            }
            Spelling::LowTail { to, stage } => {
                Spelling::LowTail { to: f(to), stage }
            }
        }
    }

    /// The same place in the spelling of a string of any content, if its
    /// state above (which `is_free` looks at) stands for that.
    pub(crate) fn if_free(
        self,
        is_free: impl FnOnce(Q) -> bool,
    ) -> Option<Spelling<()>> {
        let mut free = false;
        let spelling = self.map(|state| free = is_free(state));
        free.then_some(spelling)
    }
}
