//! What serving engines ask for, against the plain matcher.

mod batches;
mod compilers;
mod drafts;
mod forced;
mod interrupts;
mod precomputed;
mod saved;

use maskwright::{matcher::Matcher, vocabulary::TokenId};
use maskwright_tests::{
    corpus::{Case, cases},
    vocabularies::{Random, pieces},
};

/// Every case with a vocabulary of pieces of its texts.
pub(crate) fn compiled_cases() -> impl Iterator<Item = (u64, Case, Matcher)> {
    (0..).zip(cases()).filter_map(|(seed, case)| {
        let grammar = case.compile().ok()?;
        let texts: Vec<&str> =
            case.accept.iter().map(String::as_str).collect();
        let compiled =
            grammar.compile(&pieces(&texts, seed)).expect("no atoms");
        let matcher = Matcher::new(compiled).expect("a start");
        Some((seed, case, matcher))
    })
}

/// Reads one token that may come next, or starts again.
pub(crate) fn go_on(matcher: &mut Matcher, random: &mut Random) {
    let mask = matcher.mask().expect("a mask");
    let tokens: Vec<TokenId> = mask.tokens().collect();
    matcher.accept(*random.pick(&tokens)).expect("a token of the mask");
    if matcher.is_terminated() {
        matcher.reset().expect("the start");
    }
}
