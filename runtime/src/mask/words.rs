//! States that read words of a list: the words are looked up in the trie, and
//! no state is made on the way.

use maskwright_grammar_core::automaton::{
    AutomatonError, Hint, Row, StateId, Step, Words,
};

use smallvec::SmallVec;

use super::{
    run::{Run, Task},
    trie::Trie,
};

/// The words that a state reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct WordList<'a> {
    words: &'a Words,
    range: (u32, u32),
    read: u32,
    allowed: &'a [u64],
}

impl<'a> WordList<'a> {
    /// Returns what a hint says, and its base.
    pub(super) fn of(
        hint: &'a Hint,
    ) -> Option<(WordList<'a>, Option<StateId>)> {
        let Hint::Words { words, lo, hi, read, allowed, base } = hint else {
            return None;
        };
        let range = (*lo, *hi);
        Some((WordList { words, range, read: *read, allowed }, *base))
    }

    /// Returns the bytes that the state reads of a word until `read` of it
    /// are read.
    fn path(&self, word: u32, read: u32) -> &'a [u8] {
        let bytes = &self.words.words[word as usize].0;
        &bytes[self.read as usize..read as usize]
    }

    fn is_allowed(&self, word: u32) -> bool {
        let bits = self.allowed.get(word as usize / 64);
        bits.is_some_and(|bits| bits >> (word % 64) & 1 != 0)
    }

    fn is_any_allowed(&self, lo: u32, hi: u32) -> bool {
        (lo..hi).any(|word| self.is_allowed(word))
    }
}

/// A node on the path of some words.
struct At {
    node: u32,
    range: (u32, u32),
    read: u32,
}

/// Nodes of the trie at which a list of words differs from its base.
#[derive(Debug, Default)]
struct Differences {
    /// Where a word ends, and which.
    ends: SmallVec<[(u32, u32); 8]>,
    /// Where an escape stands, a word that goes on there, and how many bytes
    /// of it were read by then.
    escapes: SmallVec<[(u32, u32, u32); 8]>,
}

impl<'a> Run<'_, 'a> {
    /// Reads all words of a list below the node of `task`.
    pub(super) fn read_words(
        &mut self,
        task: Task,
        list: WordList<'a>,
    ) -> Result<(), AutomatonError> {
        let trie = self.held_trie(task);
        let mut inner: SmallVec<[u32; 32]> = SmallVec::new();
        let found = differences(&trie, task.node, &list, true, |node| {
            inner.push(node);
        });
        self.add_steps(inner.len());
        for node in inner {
            self.accept(Task { node, ..task }, node + 1);
        }
        for (node, word) in found.ends {
            if list.is_allowed(word) {
                let outcome = list.words.words[word as usize].1;
                self.end(Task { node, ..task }, outcome)?;
            }
        }
        let escape = list.words.escape;
        for (node, word, read) in found.escapes {
            let path = list.path(word, read);
            let Some(state) = self.state_after(task.state, path)? else {
                continue;
            };
            let row = self.row(state)?;
            self.read(Task { state, ..task }, row, escape, node)?;
        }
        Ok(())
    }

    /// Finds where a list of words differs from `base` below the node of
    /// `task`: adds what the base is wrong about to `cleared`, and the pairs
    /// of states that are alike again to `alike`.
    pub(super) fn except_words(
        &mut self,
        (task, base): (Task, StateId),
        list: WordList<'a>,
        cleared: &mut Vec<u32>,
        alike: &mut Vec<(Task, StateId)>,
    ) -> Result<(), AutomatonError> {
        let trie = self.held_trie(task);
        let found = differences(&trie, task.node, &list, false, |_| {});
        self.add_steps(found.ends.len() + found.escapes.len());
        for (node, word) in found.ends {
            cleared.extend_from_slice(trie.subtree_tokens(node));
            if list.is_allowed(word) {
                let outcome = list.words.words[word as usize].1;
                self.end(Task { node, ..task }, outcome)?;
            }
        }
        let escape = list.words.escape;
        for (node, word, read) in found.escapes {
            let path = list.path(word, read);
            let Some(state) = self.state_after(task.state, path)? else {
                continue;
            };
            let Some(base) = self.state_after(base, path)? else { continue };
            let task = Task { state, ..task };
            self.differ((task, base), escape, node, cleared, alike)?;
        }
        Ok(())
    }

    /// Compares the steps of two states on one byte, which leads to `node`.
    pub(super) fn differ(
        &mut self,
        (task, base): (Task, StateId),
        byte: u8,
        node: u32,
        cleared: &mut Vec<u32>,
        alike: &mut Vec<(Task, StateId)>,
    ) -> Result<(), AutomatonError> {
        let row = self.row(task.state)?;
        let base_row = self.row(base)?;
        if let (Some(Step::Stay(to)), Some(Step::Stay(base_to))) =
            (only_step(row, byte), only_step(base_row, byte))
        {
            if to == base_to {
                return Ok(());
            }
            if self.is_alike(to, base_to)? {
                alike.push((Task { state: to, node, ..task }, base_to));
                return Ok(());
            }
        }
        let trie = self.held_trie(task);
        cleared.extend_from_slice(trie.subtree_tokens(node));
        self.read(task, row, byte, node)
    }

    /// Returns the state that `state` comes to on `bytes` within its frame.
    fn state_after(
        &mut self,
        state: StateId,
        bytes: &[u8],
    ) -> Result<Option<StateId>, AutomatonError> {
        let mut state = state;
        for &byte in bytes {
            match only_step(self.row(state)?, byte) {
                Some(Step::Stay(to)) => state = to,
                _ => return Ok(None),
            }
        }
        Ok(Some(state))
    }
}

/// Follows the words of a list below a node; `inner` is called with each node
/// within a word, of those that may come if `only_allowed`.
fn differences(
    trie: &Trie,
    node: u32,
    list: &WordList<'_>,
    only_allowed: bool,
    mut inner: impl FnMut(u32),
) -> Differences {
    let mut found = Differences::default();
    let escape = list.words.escape;
    let start = At { node, range: list.range, read: list.read };
    let mut pending: SmallVec<[At; 16]> = SmallVec::from_iter([start]);
    while let Some(At { node, range, read }) = pending.pop() {
        if trie.size(node) == 1 {
            continue;
        }
        if range.0 < range.1
            && let Some(child) = trie.child(node, escape)
        {
            found.escapes.push((child, range.0, read));
        }
        list.words.split(range, read, |byte, lo, hi| {
            let Some(child) = trie.child(node, byte) else { return };
            if list.words.is_last(lo, read) {
                found.ends.push((child, lo));
            } else if !only_allowed || list.is_any_allowed(lo, hi) {
                inner(child);
                pending.push(At {
                    node: child,
                    range: (lo, hi),
                    read: read + 1,
                });
            }
        });
    }
    found
}

/// The one step of `row` on `byte`, if there is just one.
pub(super) fn only_step(row: &Row, byte: u8) -> Option<Step> {
    if !row.is_live(byte) {
        return None;
    }
    let mut steps = row.steps(byte);
    let step = steps.next();
    if steps.next().is_some() { None } else { step }
}
