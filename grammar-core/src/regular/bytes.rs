//! A regular language read byte by byte, as UTF-8.
//!
//! Between the bytes of a character the machine is in a [`Utf8State`] that
//! remembers which code points the bytes so far allow. Only valid UTF-8 is
//! read: overlong forms, surrogates and code points over `10FFFF` have no
//! way on, and neither has a sequence of which no completion is alive.

use super::language::{Language, StateId, Transition};
use super::limits::LimitError;

/// A state of a language, or a place inside the UTF-8 form of the next
/// character.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Utf8State {
    /// Between two characters.
    At(StateId),
    /// The bytes so far leave the code points from `first` on, 64 to the
    /// power of `n_more` of them.
    Inside {
        /// The state before the character.
        state: StateId,
        /// The least code point that may come of it. Not all that follow
        /// need be allowed in UTF-8.
        first: u32,
        /// How many bytes are missing.
        n_more: u8,
    },
    /// Whatever the character will be, it leads to the same state. One such
    /// place serves all states and all beginnings of a character for which
    /// this holds.
    Uniform {
        /// The state after the character.
        next: StateId,
        /// How many bytes are missing.
        n_more: u8,
        /// The least next byte.
        lo: u8,
        /// The greatest next byte.
        hi: u8,
    },
}

/// The bytes `lo..=hi` and the state they lead to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Utf8Range {
    /// The first byte.
    pub lo: u8,
    /// The last byte.
    pub hi: u8,
    /// The state after it.
    pub next: Utf8State,
}

/// The bytes that begin a character of two, three or four bytes, and the
/// range of the byte that follows.
const LEADS: [(u8, u8, u8, u8, u8); 8] = [
    // first lead, last lead, missing bytes, least and greatest next byte
    (0xC2, 0xDF, 1, 0x80, 0xBF),
    (0xE0, 0xE0, 2, 0xA0, 0xBF),
    (0xE1, 0xEC, 2, 0x80, 0xBF),
    (0xED, 0xED, 2, 0x80, 0x9F),
    (0xEE, 0xEF, 2, 0x80, 0xBF),
    (0xF0, 0xF0, 3, 0x90, 0xBF),
    (0xF1, 0xF3, 3, 0x80, 0xBF),
    (0xF4, 0xF4, 3, 0x80, 0x8F),
];

impl Language {
    /// The bytes that keep a text alive, in ascending order.
    ///
    /// # Errors
    ///
    /// As [`Language::transitions`].
    pub fn utf8_row(
        &self,
        state: Utf8State,
    ) -> Result<Vec<Utf8Range>, LimitError> {
        let mut row = Vec::new();
        match state {
            Utf8State::At(state) => {
                let transitions = self.transitions(state)?;
                push_ascii(&mut row, transitions);
                push_leads(&mut row, state, transitions);
            }
            Utf8State::Inside { state, first, n_more } => {
                let transitions = self.transitions(state)?;
                push_continuations(
                    &mut row,
                    state,
                    transitions,
                    first,
                    n_more,
                );
            }
            Utf8State::Uniform { next, n_more, lo, hi } => {
                let next = uniform(next, n_more - 1, 0x80, 0xBF);
                row.push(Utf8Range { lo, hi, next });
            }
        }
        Ok(row)
    }

    /// Returns true if and only if the text may end here.
    pub fn is_utf8_accepting(&self, state: Utf8State) -> bool {
        match state {
            Utf8State::At(state) => self.is_accepting(state),
            Utf8State::Inside { .. } | Utf8State::Uniform { .. } => false,
        }
    }
}

fn uniform(next: StateId, n_more: u8, lo: u8, hi: u8) -> Utf8State {
    if n_more == 0 {
        Utf8State::At(next)
    } else {
        Utf8State::Uniform { next, n_more, lo, hi }
    }
}

fn push(row: &mut Vec<Utf8Range>, lo: u8, hi: u8, next: Utf8State) {
    match row.last_mut() {
        Some(last) if last.next == next && last.hi + 1 == lo => last.hi = hi,
        _ => row.push(Utf8Range { lo, hi, next }),
    }
}

fn low_byte(code_point: u32) -> u8 {
    u8::try_from(code_point & 0xFF).expect("eight bits fit in a byte")
}

fn push_ascii(row: &mut Vec<Utf8Range>, transitions: &[Transition]) {
    for range in transitions.iter().take_while(|range| range.first < 0x80) {
        let hi = low_byte(range.last.min(0x7F));
        push(row, low_byte(range.first), hi, Utf8State::At(range.next));
    }
}

fn push_leads(
    row: &mut Vec<Utf8Range>,
    state: StateId,
    transitions: &[Transition],
) {
    for (first_lead, last_lead, n_more, lo, hi) in LEADS {
        // The bits of the lead byte that belong to the code point.
        let mask = 0x3F_u8 >> n_more;
        for lead in first_lead..=last_lead {
            let first = u32::from(lead & mask) << (6 * n_more);
            let unit = 1_u32 << (6 * (n_more - 1));
            let least = first + u32::from(lo - 0x80) * unit;
            let most = first + u32::from(hi - 0x80 + 1) * unit - 1;
            let next = match meet(transitions, least, most) {
                Meet::Nothing => continue,
                Meet::All(next) => uniform(next, n_more, lo, hi),
                Meet::Some => Utf8State::Inside { state, first, n_more },
            };
            push(row, lead, lead, next);
        }
    }
}

fn push_continuations(
    row: &mut Vec<Utf8Range>,
    state: StateId,
    transitions: &[Transition],
    first: u32,
    n_more: u8,
) {
    let n_more = n_more - 1;
    let unit = 1_u32 << (6 * n_more);
    for byte in 0x80..=0xBF_u8 {
        let least = first + u32::from(byte - 0x80) * unit;
        // What the lead byte rules out, no transition has: surrogates and
        // what is over 10FFFF. Overlong forms are code points that exist.
        let is_overlong =
            matches!((n_more, least), (1, 0..0x800) | (2, 0..0x1_0000));
        if is_overlong {
            continue;
        }
        let next = match meet(transitions, least, least + unit - 1) {
            Meet::Nothing => continue,
            Meet::All(next) => uniform(next, n_more, 0x80, 0xBF),
            Meet::Some => Utf8State::Inside { state, first: least, n_more },
        };
        push(row, byte, byte, next);
    }
}

enum Meet {
    Nothing,
    Some,
    All(StateId),
}

/// Where the code points `least..=most` lead.
fn meet(transitions: &[Transition], least: u32, most: u32) -> Meet {
    let at = transitions.partition_point(|range| range.last < least);
    match transitions.get(at) {
        Some(range) if range.first <= least && most <= range.last => {
            Meet::All(range.next)
        }
        Some(range) if range.first <= most => Meet::Some,
        _ => Meet::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regular::{CharSet, Limits, Regex};

    fn run(language: &Language, bytes: &[u8]) -> Option<Utf8State> {
        let mut state = Utf8State::At(language.start());
        for &byte in bytes {
            let row = language.utf8_row(state).expect("within the limits");
            assert!(row.is_sorted_by(|a, b| a.hi < b.lo), "{row:?}");
            state = row
                .iter()
                .find(|range| (range.lo..=range.hi).contains(&byte))?
                .next;
        }
        Some(state)
    }

    /// The characters at the edges of UTF-8 and of the sets below.
    fn edges() -> Vec<char> {
        let edges = [
            0, 0x41, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xCFFF, 0xD000,
            0xD7FF, 0xE000, 0xFFFF, 0x1_0000, 0x1_F600, 0x1_F63F, 0x3_FFFF,
            0x4_0000, 0xF_FFFF, 0x10_0000, 0x10_FFFF,
        ];
        let near = edges
            .iter()
            .flat_map(|&edge: &u32| [edge.saturating_sub(1), edge, edge + 1]);
        near.filter_map(char::from_u32).collect()
    }

    #[test]
    fn bytes_agree_with_characters() {
        let sets = [
            CharSet::any(),
            CharSet::new([(0x41, 0x7FF)]),
            CharSet::new([(0x7FF, 0xFFF), (0xD7FF, 0x1_F600)]),
            CharSet::new([(0x1_F601, 0x1_F63E)]).complement(),
            CharSet::new([(0x10_FFFF, 0x10_FFFF), (0, 0)]),
            CharSet::new([(0x80, 0x80)]),
        ];
        for set in sets {
            let regex = Regex::class(set.clone());
            let language = Language::new(&regex, Limits::new())
                .expect("a class is small");
            for character in edges() {
                let mut buffer = [0; 4];
                let bytes = character.encode_utf8(&mut buffer).as_bytes();
                let end = run(&language, bytes);
                let accepted =
                    end.is_some_and(|end| language.is_utf8_accepting(end));
                let expected = set.contains(character.into());
                assert_eq!(accepted, expected, "{character:?} in {set:?}");
                // A beginning is alive just if some member has it.
                for n in 1..bytes.len() {
                    let alive = run(&language, &bytes[..n]).is_some();
                    let (lo, hi) = completions(&bytes[..n], bytes.len() - n);
                    let window = CharSet::new([(lo, hi)]);
                    let expected = !set.is_disjoint(&window);
                    assert_eq!(alive, expected, "{:x?} {set:?}", &bytes[..n]);
                }
            }
        }
    }

    /// The code points that begin with some bytes of a valid character.
    fn completions(bytes: &[u8], n_missing: usize) -> (u32, u32) {
        let of = |fill: u8| {
            let mut all = bytes.to_vec();
            all.resize(bytes.len() + n_missing, fill);
            let lead_mask = 0x7F >> all.len();
            all[1..]
                .iter()
                .fold(u32::from(all[0] & lead_mask), |value, byte| {
                    value << 6 | u32::from(byte & 0x3F)
                })
        };
        let least = match bytes {
            [0xE0] => 0x800,
            [0xF0] => 0x1_0000,
            _ => of(0x80),
        };
        (least, of(0xBF))
    }

    #[test]
    fn invalid_utf8_has_no_way_on() {
        let language = Language::new(&Regex::any_string(), Limits::new())
            .expect("it is small");
        let invalid: [&[u8]; 9] = [
            b"\x80",
            b"\xC0",
            b"\xC1",
            b"\xE0\x80",
            b"\xED\xA0",
            b"\xF0\x8F",
            b"\xF4\x90",
            b"\xF5",
            b"\xC3a",
        ];
        for bytes in invalid {
            assert_eq!(run(&language, bytes), None, "{bytes:x?}");
        }
        let not_all = Regex::class(CharSet::single('x').complement());
        let language = Language::new(&not_all.repeat(0, None), Limits::new())
            .expect("it is small");
        for bytes in invalid {
            assert_eq!(run(&language, bytes), None, "{bytes:x?}");
        }
    }

    #[test]
    fn a_uniform_character_has_one_path_for_all_states() {
        let regex = Regex::rust("(?s)a.b.").expect("it is valid");
        let language =
            Language::new(&regex, Limits::new()).expect("it is small");
        let state = run(&language, b"a").expect("it is alive");
        let row = language.utf8_row(state).expect("within the limits");
        // ASCII, and the eight shapes of longer characters, of which the
        // neighbours E1-EC and EE-EF are parted by ED.
        assert_eq!(row.len(), 9, "{row:?}");
    }
}
