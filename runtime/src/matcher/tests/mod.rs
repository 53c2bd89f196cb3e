//! Every mask against brute force, on toy machines and toy vocabularies.

mod forced;
mod spelled;
mod toys;

use std::sync::Arc;

use maskwright_grammar_core::automaton::Automaton;

use super::*;
use crate::{mask::TokenTrie, vocabulary::Vocabulary};

/// A generator of numbers that are random enough.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % n
    }
}

/// A vocabulary whose tokens are random strings of `pieces`: some of one
/// piece, most of a few, with duplicates and characters cut in two.
fn vocabulary(
    random: &mut Random,
    pieces: &[&str],
    size: usize,
) -> Arc<TokenTrie> {
    let mut tokens: Vec<Vec<u8>> =
        vec![b"</s>".to_vec(), b"<special>".to_vec(), Vec::new()];
    tokens.extend(pieces.iter().map(|piece| piece.as_bytes().to_vec()));
    while tokens.len() < size {
        let mut token = Vec::new();
        for _ in 0..=random.below(5) {
            let piece = pieces[random.below(pieces.len())];
            token.extend_from_slice(piece.as_bytes());
        }
        if random.below(8) == 0 {
            token.pop();
        }
        if random.below(12) == 0 && !token.is_empty() {
            token.remove(0);
        }
        tokens.push(token);
    }
    let mut vocabulary = Vocabulary::from_tokens(tokens, [TokenId(0)])
        .expect("a vocabulary")
        .with_special_tokens([TokenId(1)])
        .expect("a special token");
    vocabulary.set_n_logits(size + 5).expect("wider than the tokens");
    Arc::new(TokenTrie::new(Arc::new(vocabulary)))
}

/// Walks at random, comparing the mask with brute force in every state, and
/// what rollbacks and forks lead back to.
fn check(
    random: &mut Random,
    automaton: &Arc<dyn Automaton>,
    tokens: &Arc<TokenTrie>,
    n_steps: usize,
) {
    let grammar =
        CompiledGrammar::new(Arc::clone(automaton), Arc::clone(tokens))
            .expect("a bound grammar");
    let grammar = Arc::new(grammar);
    let mut matcher = Matcher::new(Arc::clone(&grammar)).expect("a start");
    let mut read: Vec<TokenId> = Vec::new();
    for _ in 0..n_steps {
        let exact = matcher.brute_force_mask().expect("a mask");
        let mask = matcher.mask().expect("a mask").clone();
        assert_eq!(mask, exact, "{automaton:?} after {}", text(tokens, &read));
        let allowed: Vec<TokenId> = mask.tokens().collect();
        // Long texts make brute force slow and walks no wiser.
        if allowed.is_empty() || read.len() > 30 || random.below(12) == 0 {
            let n_back = random.below(read.len() + 1);
            matcher.rollback(n_back).expect("as many as were read");
            read.truncate(read.len() - n_back);
            let mut other =
                Matcher::new(Arc::clone(&grammar)).expect("a start");
            assert_eq!(other.try_accept(&read), Ok(read.len()));
            let mut fork = matcher.fork();
            assert_eq!(other.mask(), fork.mask());
            if random.below(10) == 0 {
                grammar.clear_cache();
            }
            continue;
        }
        let token = allowed[random.below(allowed.len())];
        matcher.accept(token).expect("an allowed token");
        if matcher.is_terminated() {
            assert_eq!(matcher.accept(token), Err(MatcherError::Finished));
            matcher.rollback(1).expect("the end token");
        } else {
            read.push(token);
        }
    }
}

fn text(tokens: &TokenTrie, read: &[TokenId]) -> String {
    read.iter().map(|&token| tokens.vocabulary().text(token)).collect()
}

/// Checks one machine with several vocabularies, small ones (everything is
/// walked) and larger ones (hints and tables are used).
fn check_all(seed: u64, automaton: &Arc<dyn Automaton>, pieces: &[&str]) {
    let mut random = Random(seed * 2_654_435_761 + 1);
    for size in [12, 60, 60, 400, 1_500] {
        let tokens = vocabulary(&mut random, pieces, size.max(pieces.len()));
        check(&mut random, automaton, &tokens, 160);
    }
}

#[test]
fn loops() {
    let pieces = ["a", "b", "z", "\"", "\u{e9}", "\u{20ac}", "\u{1f600}", "1"];
    check_all(1, &toys::string_loop(), &pieces);
    check_all(2, &toys::open_end(), &["a", "b", "c", "!", "\u{e9}"]);
}

#[test]
fn lists_with_white_space() {
    let pieces =
        ["(", ")", ",", "1", "23", "\"", "ab", " ", "\n", "  ", "\u{e9}"];
    for spaces in [0, 1, 3, 7] {
        let lists = toys::lists(spaces);
        check_all(3 + u64::from(spaces), &lists, &pieces);
    }
}

#[test]
fn ends_that_are_optional() {
    let pieces = ["0", "1", "00", "!", "a"];
    check_all(20, &toys::digits_then_zero(), &pieces);
}

#[test]
fn words_that_are_looked_up() {
    let pieces = [
        "\"",
        "a",
        "ab",
        "abc",
        "b",
        "\\",
        "\\a",
        "a\\b",
        "\\b\"",
        "ab\"",
        "\".",
        "a\".",
        "c\"2",
        "\"0",
        "\"1",
        "!",
        "-",
        "z",
        "bc\"1-\"ab",
    ];
    let lists: [(&[&str], u64); 4] = [
        (&["a", "ab", "abc", "b"], 0b1111),
        (&["a", "ab", "abc", "b"], 0b0100),
        (&["", "ab", "zz"], 0b101),
        (&["abc", "abz"], 0b10),
    ];
    for (seed, (words, allowed)) in (200..).zip(lists) {
        for closed in [false, true] {
            let machine = spelled::spelled_words(words, allowed, closed);
            check_all(2 * seed + u64::from(closed), &machine, &pieces);
        }
    }
}

#[test]
fn ends_of_their_own() {
    let pieces = [
        "\"", "a", "aa", "ab\"", "b", "\\", "\\a", "a\\", "\".", "a\".",
        "\"1", "aa\"1", "!", "-", "\\a\"", "bb\"\"",
    ];
    check_all(300, &spelled::counted_ends(), &pieces);
}

#[test]
fn several_stacks() {
    check_all(30, &toys::palindromes(), &["a", "b"]);
    check_all(31, &toys::silent_calls(), &["a", "b", "c", "ab", "bac"]);
}

#[test]
fn exceptions_from_a_base() {
    let pieces = ["a", "b", "c", "\"", "#", "1", "x", ";", ".", "\u{e9}"];
    for (seed, declared) in
        [&["ab", "abc", "b"][..], &["a"], &["cab", "", "caba"]]
            .into_iter()
            .enumerate()
    {
        let words = toys::words(declared);
        check_all(40 + seed as u64, &words, &pieces);
    }
}

#[test]
fn windows_over_a_base() {
    let pieces = ["a", "b", "\"", "1", "\u{e9}", "\u{20ac}", "\u{1f600}"];
    for (seed, (least, most)) in
        [(0, 0), (0, 3), (2, 2), (1, 9), (5, 30)].into_iter().enumerate()
    {
        let lengths = toys::lengths(least, most);
        check_all(50 + seed as u64, &lengths, &pieces);
    }
}

#[test]
fn bounds_that_long_tokens_reach() {
    let pieces = [
        "a",
        "b-",
        "-",
        "\"",
        "1",
        "abcabcabcabcabcabcabcabcabc",
        "ab-cd-ef-",
        "a-b-c-d-e-f-g-h-i-j-k-l-m-n-o-p-q-r-s-t-u-v-w-x-y-z",
        "z\"1",
    ];
    for (seed, most) in [5, 18, 27, 40, 66, 130, 300].into_iter().enumerate() {
        let bounded = toys::bounded(most);
        check_all(70 + seed as u64, &bounded, &pieces);
    }
}

#[test]
fn a_letter_of_a_class_that_differs() {
    let pieces = ["a", "b", "c", "x", "B", "axcb", "aacc"];
    check_all(80, &toys::odd_letters(), &pieces);
}

#[test]
fn tokens_by_name() {
    check_all(60, &toys::atoms(), &["a", "b", "\"", "0", "!"]);
}

#[test]
fn a_shared_machine() {
    let pieces = ["(", ")", "\"", "a", "b", ",", "\u{e9}"];
    check_all(70, &toys::with_shared(), &pieces);
}

#[test]
fn keys_that_may_not_come_twice() {
    let pieces = [
        "a", "b", "c", "\"", ":", ",", "{", "}", "1", "\":", "\":1", ",\"",
        "{\"", "\",\"",
    ];
    check_all(80, &toys::Objects::machine(None), &pieces);
    for (seed, keys) in [&["a", "ab", "b"][..], &["a"], &["abc", "abca", "c"]]
        .into_iter()
        .enumerate()
    {
        let objects = toys::Objects::machine(Some(keys));
        check_all(81 + seed as u64, &objects, &pieces);
    }
}

#[test]
fn everything_can_be_shared_between_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<CompiledGrammar>();
    is_shared::<Matcher>();
    is_shared::<TokenTrie>();
}

/// A matcher of lists over the bytes `(`, `)`, `1` and `,`, and `(1`.
fn lists() -> Matcher {
    let tokens = ["</s>", "<special>", "(", ")", "1", ",", "(1", "x"];
    let vocabulary = Vocabulary::from_tokens(tokens, [TokenId(0)])
        .expect("a vocabulary")
        .with_special_tokens([TokenId(1)])
        .expect("a special token");
    let tokens = Arc::new(TokenTrie::new(Arc::new(vocabulary)));
    let grammar =
        CompiledGrammar::new(toys::lists(0), tokens).expect("a bound grammar");
    Matcher::new(Arc::new(grammar)).expect("a start")
}

#[test]
fn errors_leave_the_matcher_as_it_was() {
    let mut matcher = lists();
    matcher.accept(TokenId(6)).expect("`(1`");
    let before = matcher.mask().expect("a mask").clone();
    assert_eq!(
        matcher.accept(TokenId(8)),
        Err(MatcherError::TokenOutOfRange { token: TokenId(8), n_tokens: 8 }),
    );
    assert!(matches!(
        matcher.accept(TokenId(1)),
        Err(MatcherError::NotText { .. })
    ));
    assert!(matches!(
        matcher.accept(TokenId(0)),
        Err(MatcherError::NotAccepting { .. })
    ));
    assert!(matches!(
        matcher.accept(TokenId(7)),
        Err(MatcherError::TokenRefused { .. })
    ));
    assert!(matches!(
        matcher.accept_bytes(b",1x"),
        Err(MatcherError::ByteRefused { byte: b'x', offset: 2, .. })
    ));
    assert_eq!(
        matcher.rollback(2),
        Err(MatcherError::Rollback { n_steps: 2, n_read: 1 }),
    );
    assert_eq!(matcher.mask(), Ok(&before));
    let tokens = [5, 4, 5, 5, 4].map(TokenId);
    assert_eq!(matcher.try_accept(&tokens), Ok(3));
    matcher.rollback(3).expect("what was read");
    assert_eq!(matcher.mask(), Ok(&before));
    matcher.reset().expect("a start");
    assert_eq!(matcher.mask(), lists().mask());
}

#[test]
fn the_end_is_a_token_of_its_own() {
    let mut matcher = lists();
    matcher.accept_bytes(b"(1)").expect("a list");
    assert_eq!(matcher.is_accepting(), Ok(true));
    assert!(!matcher.is_terminated());
    let mask: Vec<TokenId> =
        matcher.mask().expect("a mask").tokens().collect();
    assert_eq!(mask, [TokenId(0)]);
    matcher.accept(TokenId(0)).expect("the end");
    assert!(matcher.is_terminated());
    assert_eq!(matcher.mask(), Err(MatcherError::Finished));
    assert_eq!(matcher.accept(TokenId(0)), Err(MatcherError::Finished));
    matcher.rollback(1).expect("the end token");
    assert_eq!(matcher.is_token_allowed(TokenId(0)), Ok(true));
}

#[test]
fn forced_bytes_stop_at_a_choice() {
    let tokens = ["x", "\"", "a"];
    let vocabulary =
        Vocabulary::from_tokens(tokens, []).expect("a vocabulary");
    let tokens = Arc::new(TokenTrie::new(Arc::new(vocabulary)));
    let grammar = CompiledGrammar::new(toys::lengths(0, 0), tokens)
        .expect("a bound grammar");
    let matcher = Matcher::new(Arc::new(grammar)).expect("a start");
    assert_eq!(matcher.forced_bytes(), Ok(b"\"\"".to_vec()));
}

#[test]
fn unknown_atoms_are_refused() {
    let vocabulary =
        Vocabulary::from_tokens(["a", "b"], []).expect("a vocabulary");
    let tokens = Arc::new(TokenTrie::new(Arc::new(vocabulary)));
    let error = CompiledGrammar::new(toys::atoms(), tokens);
    assert!(error.is_err());
}

#[test]
fn too_many_stacks_are_an_error() {
    let vocabulary =
        Vocabulary::from_tokens(["a", "b"], []).expect("a vocabulary");
    let tokens = Arc::new(TokenTrie::new(Arc::new(vocabulary)));
    let limits = maskwright_grammar_core::automaton::StackLimits {
        max_configurations: 1024,
        max_depth: 100,
    };
    let grammar = CompiledGrammar::new(toys::palindromes(), tokens)
        .expect("a bound grammar")
        .with_limits(limits);
    let mut matcher = Matcher::new(Arc::new(grammar)).expect("a start");
    let error = (0..200).find_map(|_| matcher.accept(TokenId(0)).err());
    let error = error.expect("a limit").to_string();
    assert!(error.contains("max_depth"), "{error}");
    assert!(error.contains("100"), "{error}");
}
