//! Random walks through a grammar, token by token.

use maskwright::{mask::TokenMask, matcher::Matcher, vocabulary::TokenId};

use crate::vocabularies::Random;

/// Walks `n_steps` from the start, each time to a token of the mask drawn
/// evenly, and begins again at an end token. `visit` sees the matcher and its
/// mask before each step.
///
/// # Panics
///
/// If a mask is empty (a dead end), or allows a token that is not accepted.
pub fn walk(
    matcher: &mut Matcher,
    n_steps: usize,
    random: &mut Random,
    visit: &mut dyn FnMut(&Matcher, &TokenMask),
) {
    for _ in 0..n_steps {
        let mask = matcher.mask().expect("a mask").clone();
        visit(matcher, &mask);
        let tokens: Vec<TokenId> = mask.tokens().collect();
        assert!(!tokens.is_empty(), "a dead end: {}", matcher.describe());
        let token = tokens[random.below(tokens.len())];
        matcher.accept(token).expect("a token of the mask is accepted");
        if matcher.is_terminated() {
            matcher.reset().expect("the start");
        }
    }
}
