//! States that loop on themselves take whole subtrees at once.

use maskwright_grammar_core::automaton::{
    AutomatonError, Machine, Row, StateId, Step,
};

use super::trie::{ByteSet, Trie, utf8_step};

/// On what a state comes back to itself, within its frame and with nothing
/// else to do on the way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loop {
    /// ASCII bytes that lead from the state to itself.
    ascii: u128,
    /// Whether every character beyond ASCII does, once that was asked for.
    characters: Option<bool>,
}

impl Loop {
    /// Never.
    pub(crate) fn never() -> Loop {
        Loop { ascii: 0, characters: Some(false) }
    }

    /// Finds the bytes of a state, whose row is `row`.
    pub(crate) fn new(state: StateId, row: &Row) -> Loop {
        let mut ascii = 0;
        if !row.is_deterministic() || !row.calls.is_empty() {
            return Loop { ascii, characters: Some(false) };
        }
        for range in row.ranges() {
            if range.step == Step::Stay(state) && range.lo < 0x80 {
                for byte in range.lo..=range.hi.min(0x7f) {
                    ascii |= 1 << byte;
                }
            }
        }
        let is_broad = ascii != 0 && row.is_live(0xc2) && row.is_live(0xf4);
        Loop { ascii, characters: if is_broad { None } else { Some(false) } }
    }

    /// Returns true if the state stays on everything below `node`.
    pub(crate) fn takes(
        &mut self,
        machine: Machine<'_>,
        state: StateId,
        trie: &Trie,
        node: u32,
    ) -> Result<bool, AutomatonError> {
        if self.ascii == 0 {
            return Ok(false);
        }
        let Some((ByteSet { ascii, other }, is_utf8)) = trie.below(node)
        else {
            return Ok(false);
        };
        if ascii & !self.ascii != 0 {
            return Ok(false);
        }
        if !other {
            return Ok(true);
        }
        if !is_utf8 {
            return Ok(false);
        }
        if let Some(known) = self.characters {
            return Ok(known);
        }
        let found = loops_on_characters(machine, state, machine.row(state)?)?;
        self.characters = Some(found);
        Ok(found)
    }
}

/// Follows the machine beside the UTF-8 machine until both are back.
fn loops_on_characters(
    machine: Machine<'_>,
    state: StateId,
    row: &Row,
) -> Result<bool, AutomatonError> {
    const MAX_PAIRS: usize = 24;
    let mut pairs: Vec<(u8, StateId)> = vec![(0, state)];
    let mut done = 0;
    while let Some(&(utf8, at)) = pairs.get(done) {
        done += 1;
        let row = if at == state { row } else { machine.row(at)? };
        if at != state
            && !(row.is_deterministic()
                && row.finish.is_none()
                && row.calls.is_empty())
        {
            return Ok(false);
        }
        for byte in 0x80..=u8::MAX {
            let Some(next) = utf8_step(utf8, byte) else { continue };
            let Some(Step::Stay(to)) = row.step(byte) else {
                return Ok(false);
            };
            if next == 0 {
                if to != state {
                    return Ok(false);
                }
            } else if !pairs.contains(&(next, to)) {
                if pairs.len() == MAX_PAIRS {
                    return Ok(false);
                }
                pairs.push((next, to));
            }
        }
    }
    Ok(true)
}
