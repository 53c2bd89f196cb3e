//! What can happen in one state, as sparse ranges of bytes.

use std::{fmt, sync::Arc};

use smallvec::SmallVec;

use super::{AtomId, Outcome, StateId};

/// What a state does on a byte.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Step {
    /// The frame moves on to another state.
    Stay(StateId),
    /// The frame waits as `resume`, and a new frame in state `callee`, which
    /// has read the byte already, is pushed above it.
    Call {
        /// What the caller will do once the callee has ended.
        resume: StateId,
        /// The state of the new frame.
        callee: StateId,
    },
    /// The frame has read the byte and ends.
    Return(Outcome),
}

/// The bytes `lo..=hi` and what a state does on each of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ByteRange {
    /// The first byte.
    pub lo: u8,
    /// The last byte.
    pub hi: u8,
    /// What happens.
    pub step: Step,
}

/// A call that reads nothing: the callee decides which bytes it wants.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Call {
    /// What the caller will do once the callee has ended.
    pub resume: StateId,
    /// The state of the new frame, before its first byte. A callee never
    /// ends without reading a byte, and calls without bytes never form a
    /// cycle.
    pub callee: StateId,
}

/// What else is known of a row. A hint changes time, never results.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Hint {
    /// Nothing.
    #[default]
    None,
    /// A place where up to `left` more bytes of JSON white space (space, tab,
    /// line feed, carriage return) may stand: each leads to a state that
    /// differs in `left` only, and all other bytes behave as in `core`, which
    /// has no step on white space. `u32::MAX` is "any number".
    Gap {
        /// The state that allows no more white space.
        core: StateId,
        /// How many more bytes of white space may follow.
        left: u32,
    },
    /// This row equals the row of `base` but on `bytes` (sorted). Also, every
    /// state that is reached along those bytes is again like the base's
    /// successor but for exceptions, or unlike it altogether.
    Except {
        /// The state that this one is like.
        base: StateId,
        /// The bytes on which they differ.
        bytes: Box<[u8]>,
    },
    /// This state reads words of a list: those of `words` at `lo..hi`, which
    /// all begin with the `read` bytes that were read already, and of which
    /// `allowed` has the bit. The last byte of a word returns its outcome.
    ///
    /// Besides, at each place before a byte of a word, the byte
    /// [`Words::escape`] may stand: what follows it, the rows tell.
    ///
    /// With a `base` it reads everything that `base` reads but for the
    /// words of the range: where one of them ends, it is the word that ends
    /// (or nothing, if it is not allowed), not the base. Then, a state that
    /// is reached by an escape is like the successor of the base but for
    /// exceptions, or unlike it altogether.
    Words {
        /// The list.
        words: Arc<Words>,
        /// The first word.
        lo: u32,
        /// The word after the last one.
        hi: u32,
        /// How many bytes of them were read.
        read: u32,
        /// Which words of the list are allowed.
        allowed: Arc<[u64]>,
        /// What else is read.
        base: Option<StateId>,
    },
    /// This state reads what `base` reads as long as both stay in their
    /// frames, and so do the states that the same bytes lead both to. Where
    /// this frame returns, `base` does too; whether it returns there, and
    /// with which outcome, is its own. Neither calls nor finishes, and each
    /// has one step a byte.
    ///
    /// The tokens within the frame are those of `base`; only where `base`
    /// returns does this state have to be followed.
    Ends {
        /// The state that stays alike.
        base: StateId,
        /// The frame returns after so many bytes at the earliest.
        least: u32,
    },
    /// This state does what `base` does on every path of at most `bytes`
    /// bytes: both stay in their frames, return with the same outcome, or
    /// die. Neither calls, finishes or has registers.
    ///
    /// Of the tokens only the longer ones have to be followed: a bound that
    /// is near makes no new walk of a vocabulary.
    Alike {
        /// The state that does the same.
        base: StateId,
        /// For how long.
        bytes: u32,
    },
    /// This state is like `base` (a state without registers that stays in
    /// its own frame), but only so many *units* may still be read. A unit is
    /// complete each time a step leads back to `base` (a code point of a
    /// string is; the states between are its bytes). A state inside a unit
    /// is alive if that unit may still be completed. The frame may return or
    /// finish only once at least `least` units were read, and at most `most`.
    ///
    /// Masks of all windows over one base are cut from one walk of the base:
    /// tokens by the number of units that they need, cumulated.
    Window {
        /// The state without bounds.
        base: StateId,
        /// How many units must still be read before the frame may end.
        least: u32,
        /// How many units may still be read; `u32::MAX` is "any number".
        most: u32,
    },
}

/// Words that end a frame, sorted: one that another one begins with but for
/// its last byte comes before it, and all bytes but the last are in order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Words {
    /// The bytes of each word, and what its last byte returns.
    pub words: Box<[(Box<[u8]>, Outcome)]>,
    /// The byte that may stand before any other one.
    pub escape: u8,
}

impl Words {
    /// Splits the words at `lo..hi`, which have their first `read` bytes in
    /// common, by the next byte: calls `on` with it and the range of those
    /// that go on with it.
    pub fn split(
        &self,
        (mut lo, hi): (u32, u32),
        read: u32,
        mut on: impl FnMut(u8, u32, u32),
    ) {
        let next = |word: &(Box<[u8]>, Outcome)| word.0[read as usize];
        while lo < hi {
            let rest = &self.words[lo as usize..hi as usize];
            let byte = next(&rest[0]);
            let same = if rest.len() == 1 || self.is_last(lo, read) {
                1
            } else {
                let same = rest.partition_point(|word| next(word) <= byte);
                u32::try_from(same).unwrap_or(u32::MAX)
            };
            on(byte, lo, lo + same);
            lo += same;
        }
    }

    /// Returns true if and only if one byte of the word is left after `read`.
    pub fn is_last(&self, word: u32, read: u32) -> bool {
        self.words[word as usize].0.len() == read as usize + 1
    }
}

/// What can happen in one state.
///
/// The ranges are sorted by their first byte. Where no two ranges share a
/// byte, the state is deterministic on bytes ([`Row::is_deterministic`]).
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Row {
    ranges: Box<[ByteRange]>,
    live: [u64; 4],
    deterministic: bool,
    /// Calls that read nothing.
    pub calls: Box<[Call]>,
    /// What happens on a whole token.
    pub atoms: Box<[(AtomId, Step)]>,
    /// Set if the frame may end here without reading a byte.
    pub finish: Option<Outcome>,
    /// Set if this state's frames have registers. All states that one frame
    /// goes through agree on that.
    pub registers: bool,
    /// What else is known.
    pub hint: Hint,
}

impl Row {
    /// Returns about how many bytes the row holds elsewhere; what it shares
    /// with other rows is not counted.
    pub fn memory_usage(&self) -> usize {
        size_of_val(&*self.ranges)
            + size_of_val(&*self.calls)
            + size_of_val(&*self.atoms)
    }

    /// Returns the ranges, sorted by their first byte.
    pub fn ranges(&self) -> &[ByteRange] {
        &self.ranges
    }

    /// Returns true if and only if the state has a step on `byte`.
    pub fn is_live(&self, byte: u8) -> bool {
        self.live[usize::from(byte >> 6)] >> (byte & 63) & 1 != 0
    }

    /// Returns the bytes on which the state has a step, as a bitset.
    pub fn live(&self) -> &[u64; 4] {
        &self.live
    }

    /// Returns on how many bytes the state has a step.
    pub fn n_live(&self) -> u32 {
        self.live.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns true if and only if no byte has two steps.
    pub fn is_deterministic(&self) -> bool {
        self.deterministic
    }

    /// Returns true if and only if the state is alive within its own frame:
    /// it has a byte, a call or an atom, and not only a finish.
    pub fn is_open(&self) -> bool {
        !(self.ranges.is_empty()
            && self.calls.is_empty()
            && self.atoms.is_empty())
    }

    /// Returns the step on `byte` of a state that is deterministic.
    ///
    /// Where the state has several, this is the first of them.
    pub fn step(&self, byte: u8) -> Option<Step> {
        if !self.is_live(byte) {
            return None;
        }
        self.steps(byte).next()
    }

    /// Returns the bytes on which the two rows do not do the same, in order.
    /// Both must be deterministic.
    pub fn differences(&self, other: &Row) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (mut mine, mut theirs) = (&*self.ranges, &*other.ranges);
        let mut next = Some(0_u8);
        while let Some(byte) = next {
            let (step, end) = stretch(&mut mine, byte);
            let (other_step, other_end) = stretch(&mut theirs, byte);
            let end = end.min(other_end);
            if step != other_step {
                bytes.extend(byte..=end);
            }
            next = end.checked_add(1);
        }
        bytes
    }

    /// Returns this row, which must be deterministic, with other steps on
    /// some bytes (in order), and without a hint.
    #[must_use]
    pub fn with_steps(&self, changes: &[(u8, Option<Step>)]) -> RowBuilder {
        let mut row = RowBuilder {
            ranges: SmallVec::new(),
            row: Row {
                calls: self.calls.clone(),
                atoms: self.atoms.clone(),
                finish: self.finish,
                registers: self.registers,
                ..Row::default()
            },
        };
        let mut changes = changes.iter().peekable();
        for range in &self.ranges {
            let mut lo = Some(range.lo);
            while let Some(&&(byte, step)) = changes.peek() {
                if byte > range.hi {
                    break;
                }
                changes.next();
                if let Some(first) = lo
                    && byte >= first
                {
                    if byte > first {
                        row.range(first, byte - 1, range.step);
                    }
                    lo = byte.checked_add(1);
                }
                if let Some(step) = step {
                    row.byte(byte, step);
                }
            }
            if let Some(lo) = lo {
                row.range(lo, range.hi, range.step);
            }
        }
        for &(byte, step) in changes {
            if let Some(step) = step {
                row.byte(byte, step);
            }
        }
        row
    }

    /// Returns this row with `map` applied to every state that it names.
    ///
    /// # Errors
    ///
    /// Fails as `map` does.
    pub fn map_states<E>(
        &self,
        mut map: impl FnMut(StateId) -> Result<StateId, E>,
    ) -> Result<Row, E> {
        let mut row = self.clone();
        let steps = row.ranges.iter_mut().map(|range| &mut range.step);
        for step in steps.chain(row.atoms.iter_mut().map(|(_, step)| step)) {
            match step {
                Step::Stay(state) => *state = map(*state)?,
                Step::Call { resume, callee } => {
                    *resume = map(*resume)?;
                    *callee = map(*callee)?;
                }
                Step::Return(_) => {}
            }
        }
        for Call { resume, callee } in &mut row.calls {
            *resume = map(*resume)?;
            *callee = map(*callee)?;
        }
        match &mut row.hint {
            Hint::None | Hint::Words { base: None, .. } => {}
            Hint::Gap { core: state, .. }
            | Hint::Except { base: state, .. }
            | Hint::Words { base: Some(state), .. }
            | Hint::Ends { base: state, .. }
            | Hint::Alike { base: state, .. }
            | Hint::Window { base: state, .. } => *state = map(*state)?,
        }
        Ok(row)
    }

    /// Returns every step on `byte`.
    pub fn steps(&self, byte: u8) -> impl Iterator<Item = Step> + '_ {
        // Rows are short, and sorted by first byte.
        self.ranges
            .iter()
            .take_while(move |range| range.lo <= byte)
            .filter(move |range| byte <= range.hi)
            .map(|range| range.step)
    }
}

/// Returns what the first of `ranges` that reach `byte` do on it, and up to
/// which byte they do just that.
fn stretch(ranges: &mut &[ByteRange], byte: u8) -> (Option<Step>, u8) {
    while let Some(range) = ranges.first() {
        if range.hi < byte {
            *ranges = &ranges[1..];
        } else if range.lo <= byte {
            return (Some(range.step), range.hi);
        } else {
            return (None, range.lo - 1);
        }
    }
    (None, u8::MAX)
}

/// One range a line; bytes as characters where they are printable.
impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for range in &self.ranges {
            let (lo, hi) = (range.lo.escape_ascii(), range.hi.escape_ascii());
            if range.lo == range.hi {
                writeln!(f, "{lo} => {:?}", range.step)?;
            } else {
                writeln!(f, "{lo}-{hi} => {:?}", range.step)?;
            }
        }
        for call in &self.calls {
            writeln!(f, "call {call:?}")?;
        }
        for (atom, step) in &self.atoms {
            writeln!(f, "atom {} => {step:?}", atom.0)?;
        }
        if let Some(outcome) = self.finish {
            writeln!(f, "finish {outcome:?}")?;
        }
        if self.hint != Hint::None {
            writeln!(f, "hint {:?}", self.hint)?;
        }
        Ok(())
    }
}

/// Builds a [`Row`] from ranges in any order.
#[derive(Clone, Debug, Default)]
pub struct RowBuilder {
    ranges: SmallVec<[ByteRange; USUAL]>,
    row: Row,
}

/// Rows have up to so many ranges, most of them.
const USUAL: usize = 24;

impl RowBuilder {
    /// Creates a builder of an empty row.
    pub fn new() -> RowBuilder {
        RowBuilder::default()
    }

    /// Adds a step on the bytes `lo..=hi`. Nothing is added if `lo > hi`.
    pub fn range(&mut self, lo: u8, hi: u8, step: Step) -> &mut RowBuilder {
        if lo <= hi {
            self.ranges.push(ByteRange { lo, hi, step });
        }
        self
    }

    /// Adds a step on one byte.
    pub fn byte(&mut self, byte: u8, step: Step) -> &mut RowBuilder {
        self.range(byte, byte, step)
    }

    /// Adds a call that reads nothing.
    pub fn call(&mut self, call: Call) -> &mut RowBuilder {
        let mut calls = std::mem::take(&mut self.row.calls).into_vec();
        calls.push(call);
        self.row.calls = calls.into();
        self
    }

    /// Adds a step on an atom.
    pub fn atom(&mut self, atom: AtomId, step: Step) -> &mut RowBuilder {
        let mut atoms = std::mem::take(&mut self.row.atoms).into_vec();
        atoms.push((atom, step));
        self.row.atoms = atoms.into();
        self
    }

    /// Lets the frame end here without reading a byte.
    pub fn finish(&mut self, outcome: Outcome) -> &mut RowBuilder {
        self.row.finish = Some(outcome);
        self
    }

    /// Marks the state's frames as having registers.
    pub fn registers(&mut self) -> &mut RowBuilder {
        self.row.registers = true;
        self
    }

    /// Sets what else is known of the row.
    pub fn hint(&mut self, hint: Hint) -> &mut RowBuilder {
        self.row.hint = hint;
        self
    }

    /// Builds the row: sorts the ranges and joins neighbours that do the
    /// same.
    pub fn build(mut self) -> Row {
        let is_sorted = self
            .ranges
            .windows(2)
            .all(|pair| (pair[0].lo, pair[0].hi) <= (pair[1].lo, pair[1].hi));
        if !is_sorted {
            self.ranges.sort_by_key(|range| (range.lo, range.hi));
        }
        let mut ranges: SmallVec<[ByteRange; USUAL]> = SmallVec::new();
        let mut row = self.row;
        row.deterministic = true;
        let mut end: Option<u8> = None;
        for range in self.ranges {
            if end.is_some_and(|end| range.lo <= end) {
                row.deterministic = false;
            }
            end = end.max(Some(range.hi));
            set_range(&mut row.live, range.lo, range.hi);
            match ranges.last_mut() {
                Some(last)
                    if last.step == range.step
                        && last.hi.checked_add(1) == Some(range.lo) =>
                {
                    last.hi = range.hi;
                }
                Some(last) if *last == range => {}
                _ => ranges.push(range),
            }
        }
        row.ranges = Box::from(&ranges[..]);
        row
    }
}

/// Adds the bytes `lo..=hi` to a set.
fn set_range(set: &mut [u64; 4], lo: u8, hi: u8) {
    for (index, word) in (0_u8..).zip(set) {
        let first = 64 * index;
        let (lo, hi) = (lo.max(first), hi.min(first + 63));
        if lo <= hi {
            *word |= u64::MAX >> (63 - (hi - lo)) << (lo - first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Step = Step::Stay(StateId(1));
    const B: Step = Step::Stay(StateId(2));

    #[test]
    fn neighbours_that_do_the_same_are_joined() {
        let mut builder = RowBuilder::new();
        builder.range(b'b', b'c', A).byte(b'a', A).byte(b'e', A);
        let row = builder.build();
        assert_eq!(row.ranges().len(), 2);
        assert!(row.is_deterministic());
        assert_eq!(row.step(b'b'), Some(A));
        assert_eq!(row.step(b'd'), None);
    }

    #[test]
    fn differences_and_changes_undo_each_other() {
        let mut builder = RowBuilder::new();
        builder.range(b'b', b'y', A).byte(0, B).range(200, 255, B);
        let row = builder.build();
        let changes = [
            (0, None),
            (b'a', Some(B)),
            (b'c', Some(B)),
            (b'd', None),
            (b'y', Some(B)),
            (b'z', Some(A)),
            (255, Some(A)),
        ];
        let changed = row.with_steps(&changes).build();
        let bytes: Vec<u8> = changes.iter().map(|change| change.0).collect();
        assert_eq!(row.differences(&changed), bytes);
        assert!(changed.is_deterministic());
        for byte in 0..=255 {
            let change = changes.iter().find(|change| change.0 == byte);
            let expected = change.map_or(row.step(byte), |(_, step)| *step);
            assert_eq!(changed.step(byte), expected, "{byte}");
            assert_eq!(changed.is_live(byte), expected.is_some(), "{byte}");
        }
        assert!(row.differences(&row).is_empty());
    }

    #[test]
    fn a_byte_with_two_steps_is_not_deterministic() {
        let mut builder = RowBuilder::new();
        builder.range(0, 255, A).byte(b'a', B);
        let row = builder.build();
        assert!(!row.is_deterministic());
        assert_eq!(row.steps(b'a').collect::<Vec<_>>(), [A, B]);
        assert_eq!(row.steps(b'b').collect::<Vec<_>>(), [A]);
        assert_eq!(row.live(), &[u64::MAX; 4]);
    }
}
