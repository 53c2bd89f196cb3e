//! Small machines written by hand, one for each thing that a mask must get
//! right.

use std::{collections::BTreeMap, sync::Arc};

use maskwright_grammar_core::automaton::{
    Atom, AtomId, AtomToken, Automaton, AutomatonError, Call, Frame, Hint,
    Memory, Outcome, Resumed, Row, RowBuilder, StateId, Step, Watch,
};

/// A machine that is a table.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: BTreeMap<u32, Row>,
    resumes: BTreeMap<(u32, u32), Vec<u32>>,
    atoms: Vec<Atom>,
    shared: Option<Arc<dyn Automaton>>,
}

impl Automaton for Table {
    fn start(&self) -> StateId {
        StateId(0)
    }

    fn row(&self, state: StateId) -> Result<&Row, AutomatonError> {
        Ok(&self.rows[&state.0])
    }

    fn resume(
        &self,
        resume: StateId,
        outcome: Outcome,
    ) -> Result<Resumed, AutomatonError> {
        let states = self.resumes.get(&(resume.0, outcome.0));
        Ok(states.into_iter().flatten().map(|&id| StateId(id)).collect())
    }

    fn shared(&self) -> Option<&Arc<dyn Automaton>> {
        self.shared.as_ref()
    }

    fn atoms(&self) -> &[Atom] {
        &self.atoms
    }

    fn describe(&self, state: StateId) -> String {
        format!("state {}", state.0)
    }
}

const DONE: Outcome = Outcome(0);

pub(super) fn returns(outcome: u32) -> Step {
    Step::Return(Outcome(outcome))
}

pub(super) fn stay(state: u32) -> Step {
    Step::Stay(StateId(state))
}

pub(super) fn call(resume: u32, callee: u32) -> Step {
    Step::Call { resume: StateId(resume), callee: StateId(callee) }
}

impl Table {
    pub(super) fn insert(&mut self, state: u32, row: Row) {
        self.rows.insert(state, row);
    }

    pub(super) fn get(&self, state: u32) -> &Row {
        &self.rows[&state]
    }

    pub(super) fn add(
        &mut self,
        state: u32,
        build: impl FnOnce(&mut RowBuilder),
    ) {
        let mut row = RowBuilder::new();
        build(&mut row);
        self.rows.insert(state, row.build());
    }

    pub(super) fn resumes(
        &mut self,
        waiting: u32,
        outcome: u32,
        states: &[u32],
    ) {
        self.resumes.insert((waiting, outcome), states.to_vec());
    }

    /// A string of letters and of characters beyond ASCII, from `state` on;
    /// uses the next seven states too. A quote ends it.
    fn string(&mut self, state: u32) {
        self.add(state, |row| {
            string_row(row, state, state);
        });
        self.characters(state, state);
    }

    /// The states within a character that leads to `to`.
    fn characters(&mut self, state: u32, to: u32) {
        let at = |offset| state + offset;
        self.add(at(1), |row| {
            row.range(0x80, 0xbf, stay(to));
        });
        self.add(at(2), |row| {
            row.range(0x80, 0xbf, stay(at(1)));
        });
        self.add(at(3), |row| {
            row.range(0x80, 0xbf, stay(at(2)));
        });
        self.add(at(4), |row| {
            row.range(0xa0, 0xbf, stay(at(1)));
        });
        self.add(at(5), |row| {
            row.range(0x80, 0x9f, stay(at(1)));
        });
        self.add(at(6), |row| {
            row.range(0x90, 0xbf, stay(at(2)));
        });
        self.add(at(7), |row| {
            row.range(0x80, 0x8f, stay(at(2)));
        });
    }
}

/// The row of a string whose characters lead to `to` by way of the states
/// that follow `state`.
fn string_row(row: &mut RowBuilder, state: u32, to: u32) {
    row.range(b'a', b'z', stay(to))
        .byte(b'"', Step::Return(DONE))
        .range(0xc2, 0xdf, stay(state + 1))
        .byte(0xe0, stay(state + 4))
        .range(0xe1, 0xec, stay(state + 2))
        .byte(0xed, stay(state + 5))
        .range(0xee, 0xef, stay(state + 2))
        .byte(0xf0, stay(state + 6))
        .range(0xf1, 0xf3, stay(state + 3))
        .byte(0xf4, stay(state + 7));
}

/// `[a-z or any character beyond ASCII]*"`.
pub(super) fn string_loop() -> Arc<dyn Automaton> {
    let mut table = Table::default();
    table.string(0);
    Arc::new(table)
}

/// `[a-z]*` that may end anywhere.
pub(super) fn open_end() -> Arc<dyn Automaton> {
    let mut table = Table::default();
    table.add(0, |row| {
        row.range(b'a', b'z', stay(0)).finish(DONE);
    });
    Arc::new(table)
}

/// Nested lists of numbers and strings, with white space of at most
/// `spaces` bytes before each value. Numbers may end or go on.
pub(super) fn lists(spaces: u32) -> Arc<dyn Automaton> {
    let mut table = Table::default();
    // 1: the root is done; 2: number; 10: string.
    // 20 and up: before a value, in the root; 40: before the first item or
    // the end of a list; 60: before a later item; 80: after an item.
    table.add(1, |row| {
        row.finish(DONE);
    });
    table.add(2, |row| {
        row.range(b'0', b'9', stay(2)).finish(DONE);
    });
    table.string(10);
    for (base, resume) in [(20, 1), (40, 80), (60, 80)] {
        for left in 0..=spaces {
            let state =
                if base + left == 20 + spaces { 0 } else { base + left };
            table.add(state, |row| {
                row.byte(b'(', call(resume, 40 + spaces))
                    .range(b'0', b'9', call(resume, 2))
                    .byte(b'"', call(resume, 10))
                    .hint(Hint::Gap { core: StateId(base), left });
                if base == 40 {
                    row.byte(b')', Step::Return(DONE));
                }
                if left > 0 {
                    let next = base + left - 1;
                    row.byte(b' ', stay(next)).byte(b'\n', stay(next));
                    row.byte(b'\t', stay(next)).byte(b'\r', stay(next));
                }
            });
        }
    }
    table.add(80, |row| {
        row.byte(b',', stay(60 + spaces)).byte(b')', Step::Return(DONE));
    });
    table.resumes(1, 0, &[1]);
    table.resumes(80, 0, &[80]);
    if spaces == 0 {
        // The start is the core itself.
        let row = table.rows[&0].clone();
        table.rows.insert(20, row);
    }
    Arc::new(table)
}

/// A number, a zero, and an exclamation mark: where the number ends is open.
pub(super) fn digits_then_zero() -> Arc<dyn Automaton> {
    let mut table = Table::default();
    table.add(0, |row| {
        row.range(b'0', b'9', call(1, 5));
    });
    table.add(1, |row| {
        row.byte(b'0', stay(2));
    });
    table.add(2, |row| {
        row.byte(b'!', Step::Return(DONE)).byte(b'a', stay(2));
    });
    table.add(5, |row| {
        row.range(b'0', b'9', stay(5)).finish(DONE);
    });
    table.resumes(1, 0, &[1]);
    Arc::new(table)
}

/// Palindromes of `a` and `b` with an odd length, which no machine without
/// choices reads.
pub(super) fn palindromes() -> Arc<dyn Automaton> {
    let mut table = Table::default();
    for state in [0, 1] {
        table.add(state, |row| {
            row.byte(b'a', call(10, 1)).byte(b'a', Step::Return(DONE));
            row.byte(b'b', call(11, 1)).byte(b'b', Step::Return(DONE));
        });
    }
    for (waiting, byte) in [(10, b'a'), (11, b'b')] {
        table.add(waiting, |row| {
            row.byte(byte, Step::Return(DONE));
        });
        table.resumes(waiting, 0, &[waiting]);
    }
    Arc::new(table)
}

/// `S ::= S? X | S? X "c"`, `X ::= "a" | "a" "b"` by calls that read nothing,
/// with frames that can only end when they resume.
pub(super) fn silent_calls() -> Arc<dyn Automaton> {
    let mut table = Table::default();
    let silent = |resume, callee| Call {
        resume: StateId(resume),
        callee: StateId(callee),
    };
    table.add(0, |row| {
        row.call(silent(1, 5)).call(silent(2, 5)).finish(DONE);
    });
    table.add(1, |row| {
        row.call(silent(1, 5)).call(silent(2, 5)).finish(DONE);
    });
    table.add(2, |row| {
        row.byte(b'c', stay(3)).byte(b'c', stay(0));
    });
    table.add(3, |row| {
        row.finish(DONE);
    });
    table.add(5, |row| {
        row.byte(b'a', stay(6)).byte(b'b', call(7, 5));
    });
    table.add(6, |row| {
        row.byte(b'b', stay(7)).finish(DONE);
    });
    table.add(7, |row| {
        row.finish(DONE);
    });
    for waiting in [1, 2, 7] {
        table.resumes(waiting, 0, &[waiting]);
    }
    Arc::new(table)
}

/// A word and a quote; after declared words comes an `x`, after all others a
/// digit. The word is the free string with exceptions.
pub(super) fn words(declared: &[&str]) -> Arc<dyn Automaton> {
    let mut table = Table::default();
    table.add(0, |row| {
        row.byte(b'"', call(2, 100)).byte(b'#', call(2, 10));
    });
    table.string(10);
    table.resumes(2, 0, &[3]);
    table.resumes(2, 1, &[4]);
    table.add(3, |row| {
        row.range(b'0', b'9', stay(0)).byte(b';', Step::Return(DONE));
    });
    table.add(4, |row| {
        row.byte(b'x', stay(0)).byte(b'.', Step::Return(DONE));
    });
    let mut prefixes = vec![""];
    for word in declared {
        prefixes.extend((1..=word.len()).map(|end| &word[..end]));
    }
    prefixes.sort_unstable();
    prefixes.dedup();
    let id = |prefix: &str| {
        let index = prefixes.iter().position(|other| *other == prefix);
        index.map(|index| 100 + u32::try_from(index).expect("few"))
    };
    for prefix in &prefixes {
        let mut bytes = Vec::new();
        let mut row = RowBuilder::new();
        for byte in b'a'..=b'z' {
            let next = id(&format!("{prefix}{}", char::from(byte)));
            row.byte(byte, stay(next.unwrap_or(10)));
            if next.is_some() {
                bytes.push(byte);
            }
        }
        if declared.contains(prefix) {
            row.byte(b'"', Step::Return(Outcome(1)));
            bytes.insert(0, b'"');
        } else {
            row.byte(b'"', Step::Return(DONE));
        }
        let free = &table.rows[&10];
        for range in free.ranges().iter().filter(|range| range.lo >= 0x80) {
            row.range(range.lo, range.hi, range.step);
        }
        let bytes = bytes.into();
        row.hint(Hint::Except { base: StateId(10), bytes });
        let state = id(prefix).expect("a prefix");
        table.rows.insert(state, row.build());
    }
    Arc::new(table)
}

/// `"`, then `least` to `most` characters, then `"` and a digit.
pub(super) fn lengths(least: u32, most: u32) -> Arc<dyn Automaton> {
    let mut table = Table::default();
    table.string(1_000);
    let window = |read: u32| 10 + 8 * read;
    table.add(0, |row| {
        row.byte(b'"', call(1, window(0)));
    });
    table.add(1, |row| {
        row.finish(DONE);
    });
    table.resumes(1, 0, &[2]);
    table.add(2, |row| {
        row.range(b'0', b'9', Step::Return(DONE)).byte(b'"', stay(2));
    });
    for read in 0..=most {
        let state = window(read);
        let mut row = RowBuilder::new();
        string_row(&mut row, state, window(read + 1));
        let full = row.build();
        let mut row = RowBuilder::new();
        for range in full.ranges() {
            let keep = match range.step {
                Step::Return(_) => read >= least,
                _ => read < most,
            };
            if keep {
                row.range(range.lo, range.hi, range.step);
            }
        }
        row.hint(Hint::Window {
            base: StateId(1_000),
            least: least.saturating_sub(read),
            most: most - read,
        });
        table.rows.insert(state, row.build());
        table.characters(state, window(read + 1));
    }
    Arc::new(table)
}

/// `"`, then at most `most` letters and single dashes between them, then `"`
/// and a digit.
pub(super) fn bounded(most: u32) -> Arc<dyn Automaton> {
    const FREE: u32 = 100_000;
    let mut table = Table::default();
    table.add(0, |row| {
        row.byte(b'"', call(1, 10));
    });
    table.resumes(1, 0, &[2]);
    table.add(2, |row| {
        row.range(b'0', b'9', Step::Return(DONE)).byte(b'"', stay(0));
    });
    table.add(FREE, |row| {
        row.range(b'a', b'z', stay(FREE));
        row.byte(b'-', stay(FREE + 1)).byte(b'"', Step::Return(DONE));
    });
    table.add(FREE + 1, |row| {
        row.range(b'a', b'z', stay(FREE));
    });
    for read in 0..=most {
        let letter = 10 + 2 * read;
        let left = most - read;
        // A dash wants a letter after it.
        let alike = |row: &mut RowBuilder, base| {
            if let Some(bytes) = left.checked_sub(1) {
                row.hint(Hint::Alike { base: StateId(base), bytes });
            }
        };
        table.add(letter, |row| {
            row.byte(b'"', Step::Return(DONE));
            if left > 0 {
                row.range(b'a', b'z', stay(letter + 2));
            }
            if left > 1 {
                row.byte(b'-', stay(letter + 3));
            }
            alike(row, FREE);
        });
        table.add(letter + 1, |row| {
            row.range(b'a', b'z', stay(letter + 2));
            alike(row, FREE + 1);
        });
    }
    Arc::new(table)
}

/// Letters, but no small `b`.
pub(super) fn odd_letters() -> Arc<dyn Automaton> {
    let mut table = Table::default();
    table.add(0, |row| {
        row.byte(b'a', stay(0))
            .range(b'c', b'z', stay(0))
            .range(b'A', b'Z', stay(0))
            .finish(DONE);
    });
    Arc::new(table)
}

/// Text, or one of two tokens by name, or any token but one.
pub(super) fn atoms() -> Arc<dyn Automaton> {
    let mut table = Table::default();
    let atom = |token, negated| Atom { token, negated };
    table.atoms = vec![
        atom(AtomToken::Text("<special>".to_owned()), false),
        atom(AtomToken::Id(3), false),
        atom(AtomToken::Id(4), true),
    ];
    table.add(0, |row| {
        row.range(b'a', b'z', stay(0))
            .atom(AtomId(0), stay(1))
            .atom(AtomId(1), call(2, 3));
    });
    table.add(1, |row| {
        row.byte(b'"', call(2, 3)).byte(b'!', Step::Return(DONE));
    });
    table.add(2, |row| {
        row.finish(DONE).byte(b'a', stay(0));
    });
    table.add(3, |row| {
        row.atom(AtomId(2), Step::Return(DONE)).byte(b'0', stay(3));
    });
    table.resumes(2, 0, &[0, 2]);
    Arc::new(table)
}

/// Strings of a shared machine between the brackets of a machine of its own.
pub(super) fn with_shared() -> Arc<dyn Automaton> {
    const BIT: u32 = StateId::SHARED_BIT;
    let mut shared = Table::default();
    shared.string(BIT);
    let mut table =
        Table { shared: Some(Arc::new(shared)), ..Table::default() };
    table.add(0, |row| {
        row.byte(b'(', call(1, 0)).byte(b'"', call(2, BIT));
    });
    table.add(1, |row| {
        row.byte(b')', Step::Return(DONE));
    });
    table.add(2, |row| {
        row.byte(b',', stay(0)).finish(DONE);
    });
    table.resumes(1, 0, &[1]);
    table.resumes(2, 0, &[2]);
    Arc::new(table)
}

/// Objects whose keys may not come twice, at any depth; values are numbers,
/// strings and objects.
///
/// Keys are words over `abc`: any of them, or only the declared ones.
#[derive(Debug)]
pub(super) struct Objects {
    rows: Vec<Row>,
    declared: Option<Vec<Vec<u8>>>,
}

impl Objects {
    const ROOT: u32 = 0;
    const ROOT_DONE: u32 = 1;
    const NUMBER: u32 = 2;
    const STRING: u32 = 3;
    /// After an opening brace.
    const OPEN: u32 = 4;
    /// After a comma.
    const COMMA: u32 = 5;
    /// After a key.
    const KEY: u32 = 6;
    /// Before a value.
    const VALUE: u32 = 7;
    /// After a value.
    const AFTER: u32 = 8;
    /// In a key, before its first letter.
    const FIRST: u32 = 9;
    /// In a key: one state for each prefix of a declared key, or just one.
    const LETTERS: u32 = 10;

    const USED: Outcome = Outcome(Outcome::GUARDED_BIT);

    pub(super) fn machine(declared: Option<&[&str]>) -> Arc<dyn Automaton> {
        let declared: Option<Vec<Vec<u8>>> = declared.map(|keys| {
            keys.iter().map(|key| key.as_bytes().to_vec()).collect()
        });
        let mut rows = Vec::new();
        let mut add = |build: &dyn Fn(&mut RowBuilder)| {
            let mut row = RowBuilder::new();
            build(&mut row);
            rows.push(row.build());
        };
        let values = |row: &mut RowBuilder, resume| {
            row.range(b'0', b'9', call(resume, Objects::NUMBER))
                .byte(b'"', call(resume, Objects::STRING))
                .byte(b'{', call(resume, Objects::OPEN));
        };
        add(&|row| values(row, Objects::ROOT_DONE));
        add(&|row| {
            row.finish(DONE);
        });
        add(&|row| {
            row.range(b'0', b'9', stay(Objects::NUMBER)).finish(DONE);
        });
        add(&|row| {
            row.range(b'a', b'z', stay(Objects::STRING))
                .byte(b'"', Step::Return(DONE));
        });
        let key = call(Objects::KEY, Objects::FIRST);
        add(&|row| {
            row.byte(b'}', Step::Return(DONE)).byte(b'"', key).registers();
        });
        add(&|row| {
            row.byte(b'"', key).registers();
        });
        add(&|row| {
            row.byte(b':', stay(Objects::VALUE)).registers();
        });
        add(&|row| {
            values(row, Objects::AFTER);
            row.registers();
        });
        add(&|row| {
            row.byte(b',', stay(Objects::COMMA))
                .byte(b'}', Step::Return(DONE))
                .registers();
        });
        match &declared {
            None => {
                for state in [Objects::FIRST, Objects::LETTERS] {
                    add(&|row| {
                        row.range(b'a', b'c', stay(Objects::LETTERS));
                        if state != Objects::FIRST {
                            row.byte(b'"', Step::Return(Objects::USED));
                        }
                        row.registers();
                    });
                }
            }
            Some(keys) => {
                let mut prefixes: Vec<&[u8]> = keys
                    .iter()
                    .flat_map(|key| (0..=key.len()).map(|end| &key[..end]))
                    .collect();
                prefixes.sort_unstable();
                prefixes.dedup();
                for prefix in &prefixes {
                    add(&|row| {
                        for byte in b'a'..=b'c' {
                            let next = [prefix, &[byte][..]].concat();
                            let at = prefixes.iter().position(|p| *p == next);
                            if let Some(at) = at {
                                let at = u32::try_from(at).expect("few");
                                row.byte(byte, stay(Objects::FIRST + at));
                            }
                        }
                        if keys.iter().any(|key| key == prefix) {
                            row.byte(b'"', Step::Return(Objects::USED));
                        }
                        row.registers();
                    });
                }
            }
        }
        Arc::new(Objects { rows, declared })
    }

    fn is_key(state: u32) -> bool {
        state >= Objects::FIRST
    }

    fn used(frame: &Frame) -> &[Arc<[u8]>] {
        frame.memory.as_ref().map_or(&[], |memory| &memory.used)
    }
}

impl Automaton for Objects {
    fn start(&self) -> StateId {
        StateId(Objects::ROOT)
    }

    fn row(&self, state: StateId) -> Result<&Row, AutomatonError> {
        Ok(&self.rows[state.index()])
    }

    fn resume(
        &self,
        resume: StateId,
        _: Outcome,
    ) -> Result<Resumed, AutomatonError> {
        Ok(Resumed::from_buf([resume]))
    }

    fn enter(&self, caller: &Frame, callee: StateId) -> Frame {
        let mut frame = Frame::new(callee);
        if Objects::is_key(callee.0) {
            frame.memory = caller.memory.clone();
        }
        frame
    }

    fn advance(
        &self,
        frame: &mut Frame,
        byte: u8,
        to: StateId,
    ) -> Result<(), AutomatonError> {
        if Objects::is_key(frame.state.0) {
            let mut memory =
                frame.memory.as_deref().cloned().unwrap_or_default();
            memory.partial.push(byte);
            frame.memory = Some(Arc::new(memory));
        }
        frame.state = to;
        Ok(())
    }

    fn leave(
        &self,
        caller: &Frame,
        callee: &Frame,
        outcome: Outcome,
        to: StateId,
    ) -> Result<Option<Frame>, AutomatonError> {
        let mut frame = caller.clone();
        frame.state = to;
        if outcome == Objects::USED {
            let key = callee
                .memory
                .as_deref()
                .map_or(&[][..], |memory| &memory.partial);
            let mut used = Objects::used(caller).to_vec();
            if used.iter().any(|other| **other == *key) {
                return Ok(None);
            }
            used.push(key.into());
            let memory = Memory { used: Arc::new(used), ..Memory::default() };
            frame.memory = Some(Arc::new(memory));
        }
        Ok(Some(frame))
    }

    fn watch(&self, frame: &Frame) -> Watch {
        let used = Objects::used(frame);
        if !Objects::is_key(frame.state.0) {
            // A comma wants a key that is left.
            let full = self
                .declared
                .as_ref()
                .is_some_and(|keys| keys.len() == used.len());
            return match (full, frame.state.0) {
                (true, Objects::COMMA) => Watch::Dead,
                (true, Objects::AFTER | Objects::VALUE | Objects::KEY) => {
                    Watch::Watching
                }
                _ => Watch::Clear,
            };
        }
        let partial =
            frame.memory.as_deref().map_or(&[][..], |memory| &memory.partial);
        let taken = used.iter().filter(|key| key.starts_with(partial)).count();
        let open = match &self.declared {
            None => usize::MAX,
            Some(keys) => {
                keys.iter().filter(|key| key.starts_with(partial)).count()
            }
        };
        match (taken, open) {
            (0, _) => Watch::Clear,
            (taken, open) if taken == open => Watch::Dead,
            _ => Watch::Watching,
        }
    }

    fn describe(&self, state: StateId) -> String {
        format!("an object in state {}", state.0)
    }
}
