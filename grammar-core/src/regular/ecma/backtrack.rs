//! Backreferences: a matcher that backtracks, and the language around it.
//!
//! A pattern with backreferences is not regular. What it may match is: the
//! same pattern with the language of the group in place of each reference
//! ([`Parsed::most`]). Which of those texts it does match, [`Backtracker`]
//! finds out by the algorithm of ECMA-262 (22.2.2), within a budget of steps:
//! such patterns can take exponential time.
//!
//! Nothing here recurses: choices are kept on a stack of their own.

use std::collections::BTreeMap;

use crate::regular::{
    class::CharSet,
    regex::{Op, Regex},
};

/// How many steps one text may take.
const MAX_STEPS: u32 = 1_000_000;

/// What an operation is besides.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Mark {
    /// A group that captures, by its number from 1.
    Capture(u32),
    /// A reference to that group; the operation is in its place only.
    Reference(u32),
    /// A repetition that takes as little as it can.
    Lazy,
}

/// A pattern with backreferences: operations in postfix order, and marks of
/// some of them by index.
#[derive(Clone, Debug, Default)]
pub(super) struct Parsed {
    pub(super) ops: Vec<Op>,
    pub(super) marks: BTreeMap<usize, Mark>,
    pub(super) n_groups: u32,
}

impl Parsed {
    /// Returns the texts that may hold a match.
    pub(super) fn most(&self) -> Regex {
        // For each operand: where its operations begin, and what it may be.
        let mut stack: Vec<(usize, Regex)> = Vec::new();
        let mut groups: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
        for (index, op) in self.ops.iter().enumerate() {
            let operands = stack.len() - op.n_operands();
            let operands = stack.split_off(operands);
            let first = operands.first().map_or(index, |(first, _)| *first);
            let parts: Vec<Regex> =
                operands.into_iter().map(|(_, regex)| regex).collect();
            let regex = match (self.marks.get(&index), op) {
                (Some(Mark::Reference(group)), _) => {
                    self.referent(groups.get(group).copied())
                }
                // What must not be there is not known.
                (_, Op::Look { negative: true, .. })
                    if self.has_reference(first, index) =>
                {
                    Regex::epsilon()
                }
                _ => {
                    let parts = parts.iter();
                    let mut ops: Vec<Op> =
                        parts.flat_map(|part| part.ops().to_vec()).collect();
                    ops.push(op.clone());
                    Regex::from_ops(ops)
                }
            };
            if let Some(Mark::Capture(group)) = self.marks.get(&index) {
                groups.insert(*group, (first, index));
            }
            stack.push((first, regex));
        }
        stack.pop().map_or_else(Regex::epsilon, |(_, regex)| regex)
    }

    fn has_reference(&self, first: usize, last: usize) -> bool {
        let mut marks = self.marks.range(first..=last);
        marks.any(|(_, mark)| matches!(mark, Mark::Reference(_)))
    }

    /// Returns the texts that a reference to the group with these operations
    /// may match: nothing, where the group has not matched.
    fn referent(&self, group: Option<(usize, usize)>) -> Regex {
        let Some((first, last)) = group else { return Regex::any_string() };
        let ops = &self.ops[first..=last];
        let depends = ops.iter().any(|op| {
            matches!(
                op,
                Op::Look { .. } | Op::Start | Op::End | Op::Boundary { .. }
            )
        });
        if depends || self.has_reference(first, last) {
            return Regex::any_string();
        }
        Regex::from_ops(ops.to_vec()).or(&Regex::epsilon())
    }
}

/// Where an instruction goes on: an index in `Backtracker::labels`.
type Label = usize;

#[derive(Clone, Debug)]
enum Instruction {
    Class {
        set: CharSet,
        back: bool,
    },
    /// Tries the first, then the other.
    Split(Label, Label),
    Jump(Label),
    Save(usize),
    Reference {
        group: u32,
        back: bool,
    },
    Start,
    End,
    Boundary {
        word: CharSet,
        negative: bool,
    },
    /// Goes on with what is looked for; behind it comes `Found`.
    Look {
        negative: bool,
        after: Label,
    },
    Found,
    /// Begins to count in a register.
    Count(usize),
    /// Begins another round, or goes on behind the repetition.
    Again(Again),
    /// A round begins, and no group of these has matched in it.
    Round {
        register: usize,
        groups: (u32, u32),
    },
    Match,
}

#[derive(Clone, Copy, Debug)]
struct Again {
    register: usize,
    min: u32,
    max: Option<u32>,
    lazy: bool,
    body: Label,
    after: Label,
}

/// A pattern with backreferences, ready to be matched.
#[derive(Clone, Debug)]
pub struct Backtracker {
    instructions: Vec<Instruction>,
    labels: Vec<usize>,
    n_groups: u32,
    n_registers: usize,
}

/// What is still to be written.
enum Work {
    Node { index: usize, back: bool },
    Instruction(Instruction),
    Place(Label),
}

struct Writer<'p> {
    parsed: &'p Parsed,
    /// Where the operations of each operation begin.
    first: Vec<usize>,
    out: Backtracker,
    work: Vec<Work>,
}

impl Backtracker {
    pub(super) fn new(parsed: &Parsed) -> Backtracker {
        let mut first = Vec::with_capacity(parsed.ops.len());
        for (index, op) in parsed.ops.iter().enumerate() {
            let mut begin = index;
            for _ in 0..op.n_operands() {
                begin = first[begin - 1];
            }
            first.push(begin);
        }
        let out = Backtracker {
            instructions: Vec::new(),
            labels: Vec::new(),
            n_groups: parsed.n_groups,
            n_registers: 0,
        };
        let mut writer = Writer { parsed, first, out, work: Vec::new() };
        if let Some(last) = parsed.ops.len().checked_sub(1) {
            writer.work.push(Work::Node { index: last, back: false });
        }
        writer.write();
        writer.out.instructions.push(Instruction::Match);
        writer.out
    }

    /// Returns whether `text` holds a match anywhere; none if that takes more
    /// than a million steps.
    pub fn is_match(&self, text: &str) -> Option<bool> {
        let text: Vec<char> = text.chars().collect();
        let mut steps = 0;
        for start in 0..=text.len() {
            let mut run = Run {
                program: self,
                text: &text,
                slots: vec![None; 2 * (self.n_groups as usize + 1)],
                registers: vec![(0, 0); self.n_registers],
                stack: Vec::new(),
            };
            if run.matches(start, &mut steps)? {
                return Some(true);
            }
        }
        Some(false)
    }
}

impl Writer<'_> {
    fn write(&mut self) {
        while let Some(work) = self.work.pop() {
            match work {
                Work::Node { index, back } => self.node(index, back),
                Work::Instruction(instruction) => {
                    self.out.instructions.push(instruction);
                }
                Work::Place(label) => {
                    self.out.labels[label] = self.out.instructions.len();
                }
            }
        }
    }

    fn label(&mut self) -> Label {
        self.out.labels.push(0);
        self.out.labels.len() - 1
    }

    /// Has these things written, in this order.
    fn then(&mut self, work: impl IntoIterator<Item = Work>) {
        let from = self.work.len();
        self.work.extend(work);
        self.work[from..].reverse();
    }

    /// Returns the operands of an operation, in order.
    fn operands(&self, index: usize) -> Vec<usize> {
        let mut operands = Vec::new();
        let mut at = index;
        for _ in 0..self.parsed.ops[index].n_operands() {
            operands.push(at - 1);
            at = self.first[at - 1];
        }
        operands.reverse();
        operands
    }

    fn node(&mut self, index: usize, back: bool) {
        let mark = self.parsed.marks.get(&index).cloned();
        if let Some(Mark::Reference(group)) = mark {
            let reference = Instruction::Reference { group, back };
            self.out.instructions.push(reference);
            return;
        }
        let group = match mark {
            Some(Mark::Capture(group)) => Some(2 * group as usize),
            _ => None,
        };
        if let Some(slot) = group {
            let end = Instruction::Save(slot + usize::from(!back));
            self.work.push(Work::Instruction(end));
        }
        self.op(index, back, mark == Some(Mark::Lazy));
        if let Some(slot) = group {
            let begin = Instruction::Save(slot + usize::from(back));
            self.work.push(Work::Instruction(begin));
        }
    }

    fn op(&mut self, index: usize, back: bool, lazy: bool) {
        let operands = self.operands(index);
        let node = |index| Work::Node { index, back };
        let one = |instruction| [Work::Instruction(instruction)];
        match &self.parsed.ops[index] {
            Op::Concat(_) if back => {
                self.then(operands.into_iter().rev().map(node));
            }
            Op::Concat(_) => self.then(operands.into_iter().map(node)),
            Op::Alternate(_) => self.alternate(&operands, back),
            Op::Repeat { min, max } => {
                self.repeat(operands[0], *min, *max, lazy, back);
            }
            Op::Look { behind, negative } => {
                let after = self.label();
                let look = Instruction::Look { negative: *negative, after };
                self.then([
                    Work::Instruction(look),
                    Work::Node { index: operands[0], back: *behind },
                    Work::Instruction(Instruction::Found),
                    Work::Place(after),
                ]);
            }
            Op::Class(set) => {
                self.then(one(Instruction::Class { set: set.clone(), back }));
            }
            Op::Start => self.then(one(Instruction::Start)),
            Op::End => self.then(one(Instruction::End)),
            Op::Boundary { word, negative } => {
                let (word, negative) = (word.clone(), *negative);
                self.then(one(Instruction::Boundary { word, negative }));
            }
            // The parser of ECMA-262 makes none of these.
            Op::Literal(_)
            | Op::Words(_)
            | Op::Intersect(_)
            | Op::Complement
            | Op::Again(_)
            | Op::Part(_) => {
                let set = CharSet::empty();
                self.then(one(Instruction::Class { set, back }));
            }
        }
    }

    fn alternate(&mut self, operands: &[usize], back: bool) {
        let after = self.label();
        let mut work = Vec::new();
        for (i, &index) in operands.iter().enumerate() {
            let is_last = i + 1 == operands.len();
            let (this, other) = (self.label(), self.label());
            if !is_last {
                let split = Instruction::Split(this, other);
                work.push(Work::Instruction(split));
            }
            work.push(Work::Place(this));
            work.push(Work::Node { index, back });
            work.push(Work::Instruction(Instruction::Jump(after)));
            work.push(Work::Place(other));
        }
        work.push(Work::Place(after));
        self.then(work);
    }

    fn repeat(
        &mut self,
        index: usize,
        min: u32,
        max: Option<u32>,
        lazy: bool,
        back: bool,
    ) {
        let register = self.out.n_registers;
        self.out.n_registers += 1;
        let (again, body, after) = (self.label(), self.label(), self.label());
        let inner = self.parsed.marks.range(self.first[index]..=index);
        let inner = inner.filter_map(|(_, mark)| match mark {
            Mark::Capture(group) => Some(*group),
            Mark::Reference(_) | Mark::Lazy => None,
        });
        let groups = inner.fold((u32::MAX, 0), |(lo, hi), group| {
            (lo.min(group), hi.max(group))
        });
        self.then([
            Work::Instruction(Instruction::Count(register)),
            Work::Place(again),
            Work::Instruction(Instruction::Again(Again {
                register,
                min,
                max,
                lazy,
                body,
                after,
            })),
            Work::Place(body),
            Work::Instruction(Instruction::Round { register, groups }),
            Work::Node { index, back },
            Work::Instruction(Instruction::Jump(again)),
            Work::Place(after),
        ]);
    }
}

/// What is undone, or tried, when a way leads nowhere.
enum Undo {
    Choice { at: usize, place: usize },
    Slot { slot: usize, old: Option<usize> },
    Register { register: usize, old: (u32, usize) },
    Look { negative: bool, after: Label, place: usize },
}

struct Run<'p> {
    program: &'p Backtracker,
    text: &'p [char],
    /// The ends of each group.
    slots: Vec<Option<usize>>,
    /// Rounds so far, and where the last one began.
    registers: Vec<(u32, usize)>,
    stack: Vec<Undo>,
}

/// Where a run is: an instruction and a place in the text.
type Point = (usize, usize);

impl Run<'_> {
    fn matches(&mut self, start: usize, steps: &mut u32) -> Option<bool> {
        let mut point = Some((0, start));
        loop {
            *steps += 1;
            if *steps > MAX_STEPS {
                return None;
            }
            let Some((at, place)) = point else {
                match self.back_up() {
                    Some(next) => point = Some(next),
                    None => return Some(false),
                }
                continue;
            };
            if let Instruction::Match = self.program.instructions[at] {
                return Some(true);
            }
            point = self.step(at, place);
        }
    }

    fn label(&self, label: Label) -> usize {
        self.program.labels[label]
    }

    /// Undoes what was done since the last choice, and takes its other way.
    fn back_up(&mut self) -> Option<Point> {
        while let Some(undo) = self.stack.pop() {
            match undo {
                Undo::Choice { at, place } => return Some((at, place)),
                Undo::Slot { slot, old } => self.slots[slot] = old,
                Undo::Register { register, old } => {
                    self.registers[register] = old;
                }
                // What is looked for is not there.
                Undo::Look { negative: true, after, place } => {
                    return Some((self.label(after), place));
                }
                Undo::Look { negative: false, .. } => {}
            }
        }
        None
    }

    fn step(&mut self, at: usize, place: usize) -> Option<Point> {
        let next = at + 1;
        let program = self.program;
        match &program.instructions[at] {
            Instruction::Class { set, back } => {
                let (c, place) = self.read(place, *back)?;
                set.contains(u32::from(c)).then_some((next, place))
            }
            Instruction::Split(this, other) => {
                let other = self.label(*other);
                self.stack.push(Undo::Choice { at: other, place });
                Some((self.label(*this), place))
            }
            Instruction::Jump(to) => Some((self.label(*to), place)),
            Instruction::Save(slot) => {
                self.save(*slot, Some(place));
                Some((next, place))
            }
            Instruction::Reference { group, back } => {
                let place = self.reference(*group, place, *back)?;
                Some((next, place))
            }
            Instruction::Start => (place == 0).then_some((next, place)),
            Instruction::End => {
                (place == self.text.len()).then_some((next, place))
            }
            Instruction::Boundary { word, negative } => {
                let is_word = |c: Option<&char>| {
                    c.is_some_and(|&c| word.contains(u32::from(c)))
                };
                let before = place.checked_sub(1);
                let before = is_word(before.map(|at| &self.text[at]));
                let after = is_word(self.text.get(place));
                ((before != after) != *negative).then_some((next, place))
            }
            Instruction::Look { negative, after } => {
                let (negative, after) = (*negative, *after);
                self.stack.push(Undo::Look { negative, after, place });
                Some((next, place))
            }
            Instruction::Found => self.found(),
            Instruction::Count(register) => {
                self.count(*register, (0, place));
                Some((next, place))
            }
            Instruction::Again(again) => self.again(*again, place),
            Instruction::Round { register, groups } => {
                self.begin_round(*register, place, *groups);
                Some((next, place))
            }
            Instruction::Match => None,
        }
    }

    fn read(&self, place: usize, back: bool) -> Option<(char, usize)> {
        if back {
            let before = place.checked_sub(1)?;
            return Some((self.text[before], before));
        }
        Some((*self.text.get(place)?, place + 1))
    }

    fn save(&mut self, slot: usize, value: Option<usize>) {
        let old = std::mem::replace(&mut self.slots[slot], value);
        self.stack.push(Undo::Slot { slot, old });
    }

    fn count(&mut self, register: usize, value: (u32, usize)) {
        let old = std::mem::replace(&mut self.registers[register], value);
        self.stack.push(Undo::Register { register, old });
    }

    /// Reads what a group has matched; nothing, if it has not.
    fn reference(
        &self,
        group: u32,
        place: usize,
        back: bool,
    ) -> Option<usize> {
        let slot = 2 * group as usize;
        let (Some(from), Some(to)) = (self.slots[slot], self.slots[slot + 1])
        else {
            return Some(place);
        };
        let word = &self.text[from..to];
        if back {
            let begin = place.checked_sub(word.len())?;
            return (self.text[begin..place] == *word).then_some(begin);
        }
        let end = place + word.len();
        (self.text.get(place..end)? == word).then_some(end)
    }

    /// Ends what was looked for: none of its other ways is tried any more,
    /// but what it captured stays, and is undone with what came before.
    fn found(&mut self) -> Option<Point> {
        let is_look = |undo: &Undo| matches!(undo, Undo::Look { .. });
        let begin = self.stack.iter().rposition(is_look)?;
        let inside = self.stack.split_off(begin);
        let mut inside = inside.into_iter();
        let Some(Undo::Look { negative, after, place }) = inside.next() else {
            return None;
        };
        let undone = inside.filter(|undo| {
            matches!(undo, Undo::Slot { .. } | Undo::Register { .. })
        });
        self.stack.extend(undone);
        if negative {
            return None;
        }
        Some((self.label(after), place))
    }

    fn again(&mut self, again: Again, place: usize) -> Option<Point> {
        let Again { register, min, max, lazy, body, after } = again;
        let (n_rounds, began) = self.registers[register];
        // A round that is not needed must read something.
        if n_rounds > min && place == began {
            return None;
        }
        let (body, after) = (self.label(body), self.label(after));
        if max.is_some_and(|max| n_rounds >= max) {
            return Some((after, place));
        }
        if n_rounds < min {
            return Some((body, place));
        }
        let (at, other) = if lazy { (after, body) } else { (body, after) };
        self.stack.push(Undo::Choice { at: other, place });
        Some((at, place))
    }

    fn begin_round(
        &mut self,
        register: usize,
        place: usize,
        (lo, hi): (u32, u32),
    ) {
        let n_rounds = self.registers[register].0.saturating_add(1);
        self.count(register, (n_rounds, place));
        for group in lo..=hi {
            let slot = 2 * group as usize;
            self.save(slot, None);
            self.save(slot + 1, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::regular::{Language, Limits, Regex};

    /// Patterns, texts that hold a match, and texts that do not, as V8 decides
    /// with the flag `u`.
    const CASES: &[(&str, &[&str], &[&str])] = &[
        (r"^(a|b)\1$", &["aa", "bb"], &["ab", "a", "aaa"]),
        (r"^(a*)b\1$", &["b", "aba", "aabaa"], &["ab", "aaba"]),
        (r"^(a)?\1b$", &["b", "aab"], &["ab", "aaab"]),
        (r"^\1(a)$", &["a"], &["aa"]),
        (r"^(?:(a)|b)*\1$", &["ab", "b", "aa"], &["aba", "c", "a"]),
        (r"^(?:(a)|(b))*\1\2$", &["abb", "aa", "baa"], &["bac"]),
        (r"^(?=(a*))\1b", &["aab", "b"], &["c", "aac"]),
        (r"^(?=(a*))a*b\1", &["aabaa", "b"], &["aaba", "aab"]),
        (r"^(.)(?!\1)", &["ab", "a"], &["aa", ""]),
        (r"(?<=\1(a))b", &["aab"], &["ab", "b"]),
        (r"^(a){2,3}\1$", &["aaa", "aaaa"], &["aa", "aaaaa"]),
        (r"^(a+?)\1c", &["aac", "aaaac"], &["ac", "aaac"]),
        (r"^(é|💩)\1$", &["éé", "💩💩"], &["é💩"]),
        (r"^(?:a(b)?){2}\1$", &["aa", "ababb"], &["abab", "abb", "ab"]),
        (r"\b(\w+) \1\b", &["the the", "a b b"], &["the then", "a b"]),
        (r"^(((a)\3)\2)\1$", &["aaaaaaaa"], &["aaaa", "aaaaaa"]),
        (r"^(a*)*\1$", &["", "aaa"], &["a", "b"]),
        (r"^(?:(a)|\1b)+$", &["ab", "aab", "aaba", "bb", "abab"], &[]),
        (r"(?<!\1(a))c", &["ac", "c"], &["aac"]),
        (
            r"^(?:(x)??(y|\1)){3}$",
            &["xyxx", "yyy", "xxyy", "xxxxxx"],
            &["yyx"],
        ),
        (r"^(?<q>['`])[^'`]*\k<q>$", &["'x'", "``"], &["'x`"]),
    ];

    #[test]
    fn texts_match_as_ecma_262_says() {
        for (pattern, good, bad) in CASES {
            let (most, matcher) =
                Regex::ecma_with_references(pattern, &Limits::new())
                    .expect(pattern);
            let most = Language::new(&most, Limits::new()).expect("small");
            for text in *good {
                assert_eq!(
                    matcher.is_match(text),
                    Some(true),
                    "{pattern} {text:?}"
                );
                assert!(
                    most.is_match(text).expect("small"),
                    "{pattern} {text:?}"
                );
            }
            for text in *bad {
                assert_eq!(
                    matcher.is_match(text),
                    Some(false),
                    "{pattern} {text:?}"
                );
            }
        }
    }

    #[test]
    fn the_work_for_one_text_is_bounded() {
        let pattern = r"^(a*)*(a*)*(a*)*\1\2\3c$";
        let (_, matcher) =
            Regex::ecma_with_references(pattern, &Limits::new())
                .expect("a pattern");
        assert_eq!(matcher.is_match(&"a".repeat(200)), None);
    }

    #[test]
    fn references_to_nothing_are_errors() {
        for pattern in [r"\1", r"(a)\2", r"(?<a>b)\k<b>", r"\k<a>"] {
            let result = Regex::ecma_with_references(pattern, &Limits::new());
            let error = result.map(|_| ()).expect_err(pattern);
            assert!(error.to_string().contains("no group"), "{error}");
        }
    }
}
