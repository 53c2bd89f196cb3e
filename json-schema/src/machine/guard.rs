//! Keys may not repeat.
//!
//! A key that the schema names is ruled out by the object's state. Any other
//! key is remembered, decoded, in the registers of the object's frame; the
//! frame that reads a key shares that memory and adds the key so far. Items
//! of arrays that must differ are remembered likewise ([`super::distinct`]);
//! those that are no strings never equal one.

use std::sync::Arc;

use maskwright_grammar_core::automaton::{
    Frame, Memory, Outcome, StateId, Watch,
};

use super::canonical::is_string;

/// Creates the frame that reads a key of the object in `caller`.
pub(crate) fn enter_key(caller: &Frame, callee: StateId) -> Frame {
    let used = caller.memory.as_ref().map(|memory| Arc::clone(&memory.used));
    let memory =
        Memory { used: used.unwrap_or_default(), ..Memory::default() };
    Frame { state: callee, counts: [0; 2], memory: Some(Arc::new(memory)) }
}

/// Adds a byte to the key that `frame` reads.
pub(crate) fn advance_key(frame: &mut Frame, byte: u8) {
    if let Some(memory) = &mut frame.memory {
        Arc::make_mut(memory).partial.push(byte);
    }
}

/// Ends a callee of an object: after a key that only the registers know, the
/// object remembers it, and `None` is returned if it was used before.
pub(crate) fn leave(
    caller: &Frame,
    callee: &Frame,
    outcome: Outcome,
    to: StateId,
) -> Option<Frame> {
    let mut frame = Frame { state: to, ..caller.clone() };
    if !outcome.is_guarded() {
        return Some(frame);
    }
    let Some(key) = &callee.memory else {
        return Some(frame);
    };
    let (word, _) = decode(&key.partial);
    if key.used.iter().any(|used| **used == *word) {
        return None;
    }
    let memory = Arc::make_mut(frame.memory.get_or_insert_default());
    Arc::make_mut(&mut memory.used).push(word.into());
    Some(frame)
}

/// Says whether the key that `frame` reads may yet become a used one.
pub(crate) fn watch_key(frame: &Frame) -> Watch {
    if candidates(frame) == 0 { Watch::Clear } else { Watch::Watching }
}

/// Returns the bytes on which the key that `frame` reads may go on towards a
/// used one, or end as one.
pub(crate) fn watched_bytes(frame: &Frame) -> [u64; 4] {
    let mut bytes = [0; 4];
    let mut add = |byte: u8| {
        bytes[usize::from(byte >> 6)] |= 1 << (byte & 63);
    };
    let Some(memory) = &frame.memory else { return bytes };
    let (word, complete) = decode(&memory.partial);
    if !complete {
        // Within a character or an escape.
        return [u64::MAX; 4];
    }
    add(b'"');
    add(b'\\');
    for used in memory.used.iter().filter(|used| is_string(used)) {
        if used.starts_with(&word)
            && let Some(&next) = used.get(word.len())
        {
            add(next);
        }
    }
    bytes
}

/// Calls `on` with what is left of each used key that the key which `frame`
/// reads may become; false within a character or an escape.
pub(crate) fn refused_words(frame: &Frame, on: &mut dyn FnMut(&[u8])) -> bool {
    let Some(memory) = &frame.memory else { return true };
    let (word, complete) = decode(&memory.partial);
    if complete {
        let used = memory.used.iter().filter(|used| is_string(used));
        used.filter_map(|used| used.strip_prefix(&*word)).for_each(on);
    }
    complete
}

/// Counts the used keys that begin with the key that `frame` reads.
pub(crate) fn candidates(frame: &Frame) -> usize {
    completions(frame).count()
}

/// The used keys that begin with the key that `frame` reads, without what
/// was read. Of a key within a character, the whole characters count.
pub(crate) fn completions(frame: &Frame) -> impl Iterator<Item = &[u8]> {
    let memory = frame.memory.as_deref();
    let memory = memory.filter(|memory| !memory.used.is_empty());
    let (word, complete) =
        memory.map(|memory| decode(&memory.partial)).unwrap_or_default();
    let used = memory.into_iter().flat_map(|memory| memory.used.iter());
    used.filter(|used| is_string(used)).filter_map(move |used| {
        let rest = used.strip_prefix(&*word)?;
        (complete || !rest.is_empty()).then_some(rest)
    })
}

/// Whether the key that `frame` reads, ended here, is a used one.
pub(crate) fn is_used(frame: &Frame) -> bool {
    completions(frame).any(<[u8]>::is_empty)
}

/// Decodes the content of a JSON string that may end anywhere: the code
/// points that are whole, as UTF-8, and whether nothing was left over.
pub(super) fn decode(raw: &[u8]) -> (Vec<u8>, bool) {
    let mut word = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((&first, after)) = rest.split_first() {
        if first == b'\\' {
            let Some((code, after)) = unescape(after) else {
                return (word, false);
            };
            let mut buffer = [0; 4];
            word.extend_from_slice(code.encode_utf8(&mut buffer).as_bytes());
            rest = after;
            continue;
        }
        let len = match first {
            0..=0x7F => 0,
            0x80..=0xDF => 1,
            0xE0..=0xEF => 2,
            0xF0..=0xFF => 3,
        };
        let Some((tail, after)) = after.split_at_checked(len) else {
            return (word, false);
        };
        word.push(first);
        word.extend_from_slice(tail);
        rest = after;
    }
    (word, true)
}

/// Reads one escape, after its backslash; `None` if it is not whole.
fn unescape(rest: &[u8]) -> Option<(char, &[u8])> {
    let (&kind, rest) = rest.split_first()?;
    let code = match kind {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let (high, rest) = hex(rest)?;
            if let Some(code) = char::from_u32(high) {
                return Some((code, rest));
            }
            let (low, rest) = hex(rest.strip_prefix(b"\\u")?)?;
            let low = low.checked_sub(0xDC00)?;
            let code = 0x1_0000 + (high.checked_sub(0xD800)? << 10) + low;
            return Some((char::from_u32(code)?, rest));
        }
        other => char::from(other),
    };
    Some((code, rest))
}

fn hex(rest: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = rest.split_at_checked(4)?;
    let digits = std::str::from_utf8(digits).ok()?;
    Some((u32::from_str_radix(digits, 16).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_decodes_to_the_same_key() {
        for raw in [r"aé😀", r"\u0061\u00e9\ud83d\uDE00", r"a\u00E9😀"] {
            let (word, complete) = decode(raw.as_bytes());
            assert_eq!(word, "aé😀".as_bytes(), "{raw}");
            assert!(complete, "{raw}");
        }
        assert_eq!(decode(br#"\"\\\/\n"#).0, b"\"\\/\n");
    }

    #[test]
    fn a_part_of_a_code_point_is_left_over() {
        for raw in [
            &b"a\\"[..],
            b"a\\u00",
            b"a\\ud83d",
            b"a\\ud83d\\ud",
            b"a\xF0\x9F",
        ] {
            assert_eq!(decode(raw), (b"a".to_vec(), false), "{raw:?}");
        }
    }
}
