//! Forced tokens, against tokenizers small enough to try what may follow.

use super::*;
use crate::grammar::Grammar;

const ALPHABET: &[u8] = b"ab\": ";

/// Tokens, all single letters of [`ALPHABET`] first, and the end.
struct Toy {
    tokens: Vec<Vec<u8>>,
}

impl Toy {
    /// Each token but the letters is two others joined.
    fn new(random: &mut Random, n_merges: usize) -> Toy {
        let mut tokens: Vec<Vec<u8>> =
            ALPHABET.iter().map(|&byte| vec![byte]).collect();
        while tokens.len() < ALPHABET.len() + n_merges {
            let [one, other] =
                [(); 2].map(|()| tokens[random.below(tokens.len())].clone());
            let joined = [one, other].concat();
            if !tokens.contains(&joined) && joined.len() < 6 {
                tokens.push(joined);
            }
        }
        Toy { tokens }
    }

    fn trie(&self) -> Arc<TokenTrie> {
        let end = TokenId::from_index(self.tokens.len());
        let tokens = self.tokens.iter().map(|token| &token[..]);
        let vocabulary =
            Vocabulary::from_tokens(tokens.chain([&b"</s>"[..]]), [end]);
        Arc::new(TokenTrie::new(Arc::new(vocabulary.expect("a vocabulary"))))
    }

    fn id(&self, token: &[u8]) -> Option<TokenId> {
        let index = self.tokens.iter().position(|other| other == token)?;
        Some(TokenId::from_index(index))
    }

    /// Byte-pair encoding: the pair whose token comes first is joined first.
    fn pairs(&self, text: &str) -> Vec<TokenId> {
        let mut parts: Vec<Vec<u8>> =
            text.bytes().map(|byte| vec![byte]).collect();
        loop {
            let joined =
                parts.windows(2).enumerate().filter_map(|(at, two)| {
                    self.id(&two.concat()).map(|id| (id, at))
                });
            let Some((id, at)) = joined.min() else { break };
            parts[at] = self.tokens[id.index()].clone();
            parts.remove(at + 1);
        }
        parts.iter().map(|part| self.id(part).expect("a token")).collect()
    }

    /// The longest token each time.
    fn longest(&self, text: &str) -> Vec<TokenId> {
        let (mut ids, mut rest) = (Vec::new(), text.as_bytes());
        while !rest.is_empty() {
            let id = (1..=rest.len().min(6))
                .rev()
                .find_map(|length| self.id(&rest[..length]))
                .expect("every letter is a token");
            rest = &rest[self.tokens[id.index()].len()..];
            ids.push(id);
        }
        ids
    }

    /// Words first, as the tokenizers of models have them: a word takes a
    /// space along, and so does the end of a run of spaces with what follows.
    fn words(&self, text: &str) -> Vec<TokenId> {
        let bytes = text.as_bytes();
        let (mut ids, mut start) = (Vec::new(), 0);
        let is_letter =
            |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphabetic);
        while start < bytes.len() {
            let mut end = start;
            while bytes.get(end) == Some(&b' ') {
                end += 1;
            }
            if end > start + 1 && end < bytes.len() {
                end -= 1;
            } else if end < bytes.len() {
                let letters = is_letter(end);
                while end < bytes.len()
                    && bytes[end] != b' '
                    && is_letter(end) == letters
                {
                    end += 1;
                }
            }
            ids.extend(self.pairs(&text[start..end]));
            start = end;
        }
        ids
    }
}

fn random_text(random: &mut Random, length: usize) -> String {
    (0..length)
        .map(|_| char::from(ALPHABET[random.below(ALPHABET.len())]))
        .collect()
}

/// All texts of up to `length` letters.
fn texts(length: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut from = 0;
    for _ in 0..length {
        let to = all.len();
        for index in from..to {
            for &byte in ALPHABET {
                let text = format!("{}{}", all[index], char::from(byte));
                all.push(text);
            }
        }
        from = to;
    }
    all
}

/// Whatever follows, forced tokens are what the tokenizer writes.
#[test]
fn forced_tokens_stand_whatever_follows() {
    type Tokenize = fn(&Toy, &str) -> Vec<TokenId>;
    let tokenizers: [Tokenize; 3] = [Toy::pairs, Toy::longest, Toy::words];
    let endings = texts(4);
    let mut n_forced = [0; 3];
    for seed in 1..=40_u64 {
        let seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut random = Random(seed);
        let n_merges = 4 + random.below(16);
        let toy = Toy::new(&mut random, n_merges);
        let trie = toy.trie();
        let (n_before, n_known) = (random.below(4), 1 + random.below(8));
        let before = random_text(&mut random, n_before);
        let known = random_text(&mut random, n_known);
        let grammar = format!("{known}[ab\": ]*");
        let grammar = Grammar::from_regex(&grammar).expect("a pattern");
        let compiled = grammar.compile(&trie).expect("no atoms");
        let matcher = Matcher::new(compiled).expect("a start");
        assert_eq!(
            matcher.forced_bytes().expect("no limit"),
            known.as_bytes()
        );
        for (tokenize, n_forced) in tokenizers.iter().zip(&mut n_forced) {
            let whole = |text: &str| tokenize(&toy, text);
            let is_known =
                |text: &str| text.bytes().all(|b| ALPHABET.contains(&b));
            let forced = matcher
                .forced_tokens(&before, |text| {
                    is_known(text).then(|| whole(text))
                })
                .expect("no limit");
            *n_forced += forced.len();
            let given = whole(&before);
            for ending in &endings {
                if forced.is_empty() {
                    break;
                }
                let all = whole(&format!("{before}{known}{ending}"));
                assert!(
                    all.starts_with(&given)
                        && all[given.len()..].starts_with(&forced),
                    "{:?}: {before:?} {known:?} {ending:?}: {forced:?} in \
                     {all:?}",
                    toy.tokens,
                );
            }
        }
    }
    assert!(n_forced.iter().all(|&n| n > 20), "{n_forced:?}");
}

#[test]
fn names_of_special_tokens_may_go_on() {
    let tokens = ["<", "a", "<|x|>", "</s>"];
    let vocabulary = Vocabulary::from_tokens(tokens, [TokenId(3)])
        .and_then(|known| known.with_special_tokens([TokenId(2)]));
    let vocabulary = Arc::new(vocabulary.expect("a vocabulary"));
    let trie = Arc::new(TokenTrie::new(vocabulary));
    let tokenize = |text: &str| {
        let ids = text.chars().filter_map(|c| match c {
            '<' => Some(TokenId(0)),
            'a' => Some(TokenId(1)),
            _ => None,
        });
        Some(ids.collect::<Vec<_>>())
    };
    for (pattern, expected) in
        [("aa<[a<]+", &[1, 1][..]), ("a<a[a<]+", &[1, 0, 1])]
    {
        let grammar = Grammar::from_regex(pattern).expect("a pattern");
        let compiled = grammar.compile(&trie).expect("no atoms");
        let matcher = Matcher::new(compiled).expect("a start");
        let forced = matcher.forced_tokens("", tokenize).expect("no limit");
        let forced: Vec<u32> = forced.iter().map(|token| token.0).collect();
        assert_eq!(forced, expected, "{pattern}");
    }
}

#[test]
fn a_text_that_has_ended_forces_nothing() {
    let mut matcher = lists();
    let each = |text: &str| Some(vec![TokenId(2); text.len()]);
    matcher.accept_bytes(b"(1)").expect("a list");
    assert_eq!(matcher.forced_tokens("(1)", each), Ok(Vec::new()));
    matcher.accept(TokenId(0)).expect("the end");
    assert_eq!(matcher.forced_tokens("(1)", each), Ok(Vec::new()));
}
