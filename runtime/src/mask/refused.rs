//! Words that the text of a string may not be, found in a trie.

use smallvec::{SmallVec, smallvec};

use super::trie::Trie;

/// Adds the tokens below `node` with which a JSON string whose rest is `word`
/// ends, in any spelling, to `tokens`.
pub(super) fn find_spellings(
    trie: &Trie,
    node: u32,
    word: &[u8],
    tokens: &mut Vec<u32>,
) {
    // Nodes, and how many bytes of the word lead there.
    let mut pending: SmallVec<[(u32, usize); 8]> = smallvec![(node, 0)];
    while let Some((node, read)) = pending.pop() {
        if trie.size(node) == 1 {
            continue;
        }
        let Some(&byte) = word.get(read) else {
            if let Some(end) = trie.child(node, b'"') {
                tokens.extend_from_slice(trie.subtree_tokens(end));
            }
            continue;
        };
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            let next = trie.child(node, byte);
            pending.extend(next.map(|child| (child, read + 1)));
        }
        // No escape begins within a character.
        if byte & 0xc0 != 0x80
            && let Some(escape) = trie.child(node, b'\\')
        {
            find_escapes(trie, escape, word, read, &mut pending);
        }
    }
}

/// Finds the escapes of the character at `word[read..]` below the node of a
/// backslash.
fn find_escapes(
    trie: &Trie,
    node: u32,
    word: &[u8],
    read: usize,
    found: &mut SmallVec<[(u32, usize); 8]>,
) {
    let letter = match word[read] {
        byte @ (b'"' | b'\\' | b'/') => Some(byte),
        0x08 => Some(b'b'),
        0x0c => Some(b'f'),
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        b'\t' => Some(b't'),
        _ => None,
    };
    let short = letter.and_then(|letter| trie.child(node, letter));
    found.extend(short.map(|child| (child, read + 1)));
    let Some(mark) = trie.child(node, b'u') else { return };
    let rest = String::from_utf8_lossy(&word[read..]);
    let Some(character) = rest.chars().next() else { return };
    let mut units = [0; 2];
    let units = character.encode_utf16(&mut units);
    let mut nodes: SmallVec<[u32; 8]> = smallvec![mark];
    for (index, unit) in units.iter().enumerate() {
        if index > 0 {
            step(trie, &mut nodes, *b"\\\\");
            step(trie, &mut nodes, *b"uu");
        }
        for shift in [12, 8, 4, 0] {
            let digit = u32::from(unit >> shift & 0xf);
            let digit = char::from_digit(digit, 16).unwrap_or('0');
            // The digit is ASCII.
            let lower = u8::try_from(digit).unwrap_or(b'0');
            step(trie, &mut nodes, [lower, lower.to_ascii_uppercase()]);
        }
    }
    let read = read + character.len_utf8();
    found.extend(nodes.into_iter().map(|node| (node, read)));
}

/// Replaces the nodes by their children on either byte.
fn step(trie: &Trie, nodes: &mut SmallVec<[u32; 8]>, either: [u8; 2]) {
    let n_bytes = if either[0] == either[1] { 1 } else { 2 };
    let children = nodes.iter().flat_map(|&node| {
        either[..n_bytes].iter().filter_map(move |&b| trie.child(node, b))
    });
    *nodes = children.collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a token ends a string whose rest is `word`.
    fn ends_as(token: &str, word: &str) -> bool {
        token.match_indices('"').any(|(at, _)| {
            let literal = format!("\"{}\"", &token[..at]);
            let text: Option<String> = serde_json::from_str(&literal).ok();
            text.as_deref() == Some(word)
        })
    }

    #[test]
    fn every_spelling_is_found() {
        let tokens = [
            "a\"",
            "a",
            "ab\"",
            "\"",
            "\":",
            "\\\"\"",
            "\"\"",
            "\\u0061\":1",
            "\\u0061",
            "\\u00e9\"",
            "\\u00E9\", ",
            "é\"",
            "é",
            "\\ud83D\\uDe00\"",
            "😀\"x",
            "\\n\"",
            "\n\"",
            "\\/\"",
            "/\"",
            "\\\\\"",
            "\\\"",
            "\\b\\f\\r\\t\"",
            "\\u000A\"",
            "a\\u0062\"",
        ];
        let spelled = (0..).zip(tokens.iter().map(|token| token.as_bytes()));
        let trie = Trie::new(spelled).0;
        let words = [
            "",
            "a",
            "ab",
            "\"",
            "é",
            "😀",
            "\n",
            "/",
            "\\",
            "\u{8}\u{c}\r\t",
            "c",
        ];
        for word in words {
            let mut found = Vec::new();
            find_spellings(&trie, 0, word.as_bytes(), &mut found);
            found.sort_unstable();
            let expected: Vec<u32> = (0..)
                .zip(tokens)
                .filter(|(_, token)| ends_as(token, word))
                .map(|(id, _)| id)
                .collect();
            assert_eq!(found, expected, "{word:?}");
        }
    }
}
