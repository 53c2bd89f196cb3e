//! Machines with words that are looked up, and with ends that are their own.

use std::sync::Arc;

use maskwright_grammar_core::automaton::{
    Automaton, Hint, Outcome, RowBuilder, StateId, Words,
};

use super::toys::{Table, call, returns, stay};

/// Letters, of which any may be spelled with a backslash before it, until a
/// quote; the states of the free text.
const FREE: u32 = 900;

fn free(table: &mut Table) {
    table.add(FREE, |row| {
        row.range(b'a', b'z', stay(FREE))
            .byte(b'\\', stay(FREE + 1))
            .byte(b'"', returns(0));
    });
    table.add(FREE + 1, |row| {
        row.range(b'a', b'z', stay(FREE));
    });
}

/// A word of a list and a quote, after which comes the digit of the word;
/// `closed` words only, or any others as well, with `.` after them. Words of
/// which `allowed` says no end nowhere.
pub(super) fn spelled_words(
    declared: &[&str],
    allowed: u64,
    closed: bool,
) -> Arc<dyn Automaton> {
    let mut table = Table::default();
    free(&mut table);
    table.add(0, |row| {
        row.byte(b'"', call(1, 100)).byte(b'-', stay(0));
    });
    table.resumes(1, 0, &[2]);
    table.add(2, |row| {
        row.byte(b'.', stay(0)).byte(b'!', returns(0));
    });
    let mut sorted = declared.to_vec();
    sorted.sort_unstable();
    let number = |index: usize| u32::try_from(index).expect("few");
    for (digit, index) in (b'0'..).zip(0..sorted.len()) {
        let after = 10 + number(index);
        table.resumes(1, 1 + number(index), &[after]);
        table.add(after, |row| {
            row.byte(digit, stay(0)).byte(b'!', returns(0));
        });
    }
    let words = sorted
        .iter()
        .enumerate()
        .map(|(index, word)| {
            let bytes = format!("{word}\"").into_bytes().into();
            (bytes, Outcome(1 + number(index)))
        })
        .collect();
    let words = Arc::new(Words { words, escape: b'\\' });
    let mut prefixes: Vec<&str> = Vec::new();
    for word in &sorted {
        prefixes.extend((0..=word.len()).map(|end| &word[..end]));
    }
    prefixes.sort_unstable();
    prefixes.dedup();
    let is_allowed = |index: usize| allowed >> index & 1 != 0;
    let alive = |prefix: &str| {
        !closed
            || (0..sorted.len()).any(|index| {
                is_allowed(index) && sorted[index].starts_with(prefix)
            })
    };
    for (at, prefix) in prefixes.iter().enumerate() {
        let state = 100 + 2 * number(at);
        let mut row = RowBuilder::new();
        let mut escaped = RowBuilder::new();
        for byte in b'a'..=b'z' {
            let next = format!("{prefix}{}", char::from(byte));
            let known = prefixes.iter().position(|other| *other == next);
            let to = match known {
                Some(to) if alive(&next) => 100 + 2 * number(to),
                None if !closed => FREE,
                _ => continue,
            };
            row.byte(byte, stay(to));
            escaped.byte(byte, stay(to));
        }
        let whole = sorted.iter().position(|word| word == prefix);
        match whole {
            Some(index) if is_allowed(index) => {
                row.byte(b'"', returns(1 + number(index)));
            }
            None if !closed => {
                row.byte(b'"', returns(0));
            }
            _ => {}
        }
        let escaped = escaped.build();
        if escaped.is_open() {
            row.byte(b'\\', stay(state + 1));
        }
        let lo = sorted.partition_point(|word| word < prefix);
        let rest = sorted[lo..].iter();
        let hi = lo + rest.take_while(|w| w.starts_with(prefix)).count();
        row.hint(Hint::Words {
            words: Arc::clone(&words),
            lo: number(lo),
            hi: number(hi),
            read: number(prefix.len()),
            allowed: Arc::new([allowed]),
            base: (!closed).then_some(StateId(FREE)),
        });
        table.insert(state, row.build());
        let mut escaped = escaped;
        if !closed {
            let free = table.get(FREE + 1);
            let bytes = escaped.differences(free).into();
            escaped.hint = Hint::Except { base: StateId(FREE + 1), bytes };
        }
        table.insert(state + 1, escaped);
    }
    Arc::new(table)
}

/// Text until a quote; how many of its letters were an `a`, modulo three,
/// decides whether it may end (not after none) and what comes then.
pub(super) fn counted_ends() -> Arc<dyn Automaton> {
    let mut table = Table::default();
    free(&mut table);
    table.add(0, |row| {
        row.byte(b'"', call(1, 20)).byte(b'-', stay(0));
    });
    table.resumes(1, 1, &[2]);
    table.resumes(1, 2, &[3]);
    table.add(2, |row| {
        row.byte(b'.', stay(0)).byte(b'!', returns(0));
    });
    table.add(3, |row| {
        row.byte(b'1', stay(0)).byte(b'"', returns(0));
    });
    for n in 0..3_u32 {
        let at = |n: u32| 20 + 2 * (n % 3);
        for (state, is_escape) in [(at(n), false), (at(n) + 1, true)] {
            table.add(state, |row| {
                row.byte(b'a', stay(at(n + 1))).range(b'b', b'z', stay(at(n)));
                if is_escape {
                    return;
                }
                row.byte(b'\\', stay(at(n) + 1));
                if n > 0 {
                    row.byte(b'"', returns(n));
                }
                let least = if n == 0 { 2 } else { 1 };
                row.hint(Hint::Ends { base: StateId(FREE), least });
            });
        }
    }
    Arc::new(table)
}
