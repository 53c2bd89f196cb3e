//! Drafts and their masks, against the matcher that reads them.

use std::sync::Arc;

use maskwright::{
    mask::TokenTrie,
    matcher::{DraftNode, DraftRow, Matcher, MatcherError},
    vocabulary::TokenId,
};
use maskwright_tests::vocabularies::{Random, with_end};

use super::{compiled_cases, go_on};

/// A token that may come next, most of the time.
fn some_token(matcher: &mut Matcher, random: &mut Random) -> TokenId {
    let n_tokens = matcher.grammar().vocabulary().n_tokens();
    let any = TokenId::from_index(random.below(n_tokens));
    if random.chance(10) || matcher.is_terminated() {
        return any;
    }
    let mask = matcher.mask().expect("a mask");
    let tokens: Vec<TokenId> = mask.tokens().collect();
    *random.pick(&tokens)
}

/// A path of tokens along the grammar, with a stray one now and then.
fn draft(
    matcher: &Matcher,
    random: &mut Random,
    n_tokens: usize,
) -> Vec<TokenId> {
    let mut ahead = matcher.fork();
    let mut tokens = Vec::new();
    for _ in 0..n_tokens {
        let token = some_token(&mut ahead, random);
        tokens.push(token);
        let _ = ahead.try_accept(&[token]).expect("a known token");
    }
    tokens
}

#[test]
fn drafts_are_validated_as_they_would_be_accepted() {
    let (mut n_whole, mut n_cut) = (0, 0);
    for (seed, case, mut matcher) in compiled_cases() {
        let mut random = Random::new(seed);
        for _ in 0..20 {
            let tokens = draft(&matcher, &mut random, 6);
            let before = matcher.mask().expect("a mask").clone();
            let steps = matcher.n_steps();
            let n_valid = matcher.validate_draft(&tokens).expect("a draft");
            assert_eq!(matcher.n_steps(), steps, "{}", case.name);
            assert_eq!(*matcher.mask().expect("a mask"), before);
            let mut other = matcher.fork();
            let n_accepted = other.try_accept(&tokens);
            assert_eq!(n_accepted, Ok(n_valid), "{}: {tokens:?}", case.name);
            let whole = n_valid == tokens.len();
            *(if whole { &mut n_whole } else { &mut n_cut }) += 1;
            go_on(&mut matcher, &mut random);
        }
    }
    assert!(n_whole > 200 && n_cut > 200, "{n_whole} whole, {n_cut} cut");
}

/// A tree whose nodes mostly follow the grammar.
fn tree(
    matcher: &Matcher,
    random: &mut Random,
    n_nodes: usize,
) -> Vec<DraftNode> {
    let mut ends: Vec<Matcher> = vec![matcher.fork()];
    let mut nodes = Vec::new();
    for node in 0..n_nodes {
        let below = random.below(node + 1);
        let mut end = ends[below].fork();
        let token = some_token(&mut end, random);
        nodes.push(DraftNode { parent: below.checked_sub(1), token });
        let _ = end.try_accept(&[token]).expect("a known token");
        ends.push(end);
    }
    nodes
}

/// The tokens from the root to a node.
fn path(tree: &[DraftNode], node: usize) -> Vec<TokenId> {
    let mut tokens = vec![tree[node].token];
    let mut at = tree[node].parent;
    while let Some(parent) = at {
        tokens.push(tree[parent].token);
        at = tree[parent].parent;
    }
    tokens.reverse();
    tokens
}

#[test]
fn masks_of_a_draft_tree_are_those_of_its_paths() {
    let (mut n_masks, mut n_refused, mut n_ended) = (0, 0, 0);
    for (seed, case, mut matcher) in compiled_cases() {
        let mut random = Random::new(seed);
        let width = matcher.mask().expect("a mask").n_words();
        for _ in 0..6 {
            let tree = tree(&matcher, &mut random, 8);
            let mut words = vec![u32::MAX; 9 * width];
            let before = matcher.mask().expect("a mask").clone();
            let steps = matcher.n_steps();
            let masks = matcher.draft_masks(&tree, &mut words);
            let masks = masks.expect("under the limits");
            assert_eq!(matcher.n_steps(), steps);
            assert_eq!(*matcher.mask().expect("a mask"), before);
            let rows: Vec<&[u32]> = words.chunks_exact(width).collect();
            assert_eq!(rows[0], before.words().collect::<Vec<_>>());
            for node in 0..tree.len() {
                let path = path(&tree, node);
                let mut other = matcher.fork();
                let n_read = other.try_accept(&path).expect("known tokens");
                let row = masks.rows()[node + 1];
                let is_accepted = n_read == path.len();
                assert_eq!(masks.is_accepted(node), is_accepted);
                if is_accepted && !other.is_terminated() {
                    let mut mask = vec![0; width];
                    let forbids_any =
                        other.mask_into(&mut mask).expect("a mask");
                    assert_eq!(rows[node + 1], mask, "{}", case.name);
                    assert_eq!(row, DraftRow::Mask { forbids_any });
                    n_masks += 1;
                    continue;
                }
                assert!(rows[node + 1].iter().all(|&word| word == 0));
                if is_accepted {
                    assert_eq!(row, DraftRow::Ended);
                    n_ended += 1;
                } else {
                    assert_eq!(row, DraftRow::Refused);
                    n_refused += 1;
                }
            }
            go_on(&mut matcher, &mut random);
        }
    }
    assert!(n_masks > 500, "{n_masks} masks");
    assert!(n_refused > 100, "{n_refused} refused");
    assert!(n_ended > 20, "{n_ended} ended");
}

/// A matcher of the texts `ab`, `abb` and so on. One word is 32 tokens.
fn abs() -> Matcher {
    let tokens = ["a", "b", "bb"].map(|token| token.as_bytes().to_vec());
    let trie: Arc<TokenTrie> = with_end(tokens.to_vec());
    let grammar = maskwright::grammar::Grammar::from_regex("ab+");
    let grammar = grammar.expect("an expression").compile(&trie);
    Matcher::new(grammar.expect("no atoms")).expect("a start")
}

#[test]
fn a_draft_that_is_no_tree_is_an_error() {
    let matcher = abs();
    let node = |parent, token| DraftNode { parent, token: TokenId(token) };
    let mut words = [0; 3];
    let itself = [node(None, 0), node(Some(1), 1)];
    assert_eq!(
        matcher.draft_masks(&itself, &mut words),
        Err(MatcherError::DraftOrder { node: 1, parent: 1 }),
    );
    let unknown = [node(None, 0), node(None, 4)];
    assert_eq!(
        matcher.draft_masks(&unknown, &mut words),
        Err(MatcherError::TokenOutOfRange { token: TokenId(4), n_tokens: 4 }),
    );
    let small = [node(None, 0)];
    assert_eq!(
        matcher.draft_masks(&small, &mut words),
        Err(MatcherError::DraftRoom { n_nodes: 1, n_words: 1, given: 3 }),
    );
    assert_eq!(
        matcher.validate_draft(&[TokenId(0), TokenId(4)]),
        Err(MatcherError::TokenOutOfRange { token: TokenId(4), n_tokens: 4 }),
    );
    // What comes after the first refusal is not looked at.
    assert_eq!(matcher.validate_draft(&[TokenId(1), TokenId(4)]), Ok(0));
}

#[test]
fn signed_words_are_the_same_bits() {
    let mut matcher = abs();
    let tree = [DraftNode { parent: None, token: TokenId(0) }];
    let (mut signed, mut words) = ([0_i32; 2], [0_u32; 2]);
    let masks = matcher.draft_masks(&tree, &mut words).expect("a tree");
    let others = matcher.draft_masks_i32(&tree, &mut signed);
    assert_eq!(others.expect("a tree").rows(), masks.rows());
    assert_eq!(signed.map(i32::cast_unsigned), words);
    assert_eq!(words, [0b001, 0b110]);
    assert_eq!(matcher.mask_into_i32(&mut signed[..1]), Ok(true));
    assert_eq!(signed[0], 0b001);
}

#[test]
fn statistics_tell_known_masks_from_new_ones() {
    let mut matcher = abs();
    matcher.mask().expect("a mask");
    assert!(!matcher.mask_stats().is_hit());
    assert_eq!(matcher.mask_stats().time, None);
    matcher.measure_time(true);
    matcher.mask().expect("a mask");
    assert!(matcher.mask_stats().is_hit());
    assert!(matcher.mask_stats().time.is_some());
}
