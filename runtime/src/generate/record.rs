//! Records of what the model thought of the tokens that were taken.

use super::{
    guide::Shared,
    result::{Origin, TokenTrace, Trace},
};
use crate::{
    mask::TokenMask,
    pipeline::{MaskBits, log_sum_exp, observe},
    vocabulary::TokenId,
};

/// A token that was taken, with what is known of the step but for the
/// model's row.
#[derive(Clone, Debug)]
pub(super) struct Taking {
    pub(super) token: TokenId,
    pub(super) origin: Origin,
    /// What the grammar allowed there; none without a grammar, and where no
    /// records are asked for.
    pub(super) mask: Option<TokenMask>,
    pub(super) place: Option<String>,
}

impl Taking {
    pub(super) fn new(token: TokenId, origin: Origin) -> Taking {
        Taking { token, origin, mask: None, place: None }
    }

    /// Counts the token's log-probability, and returns the record of it that
    /// was asked for. There is no row where the model was not asked.
    pub(super) fn record(
        self,
        trace: &mut Trace,
        shared: &Shared<'_>,
        row: Option<&[f32]>,
    ) -> Option<TokenTrace> {
        if !shared.is_scored {
            return None;
        }
        let Taking { token, origin, mask, place } = self;
        let logit = row.and_then(|row| row.get(token.index()).copied());
        let Some((row, logit)) = row.zip(logit) else {
            return shared.request.logprobs.map(|_| unasked(token, origin));
        };
        let Some(n) = shared.request.logprobs else {
            count(trace, f64::from(logit) - log_sum_exp(row));
            return None;
        };
        let bits =
            mask.as_ref().map(|it| MaskBits::from(it.bits().as_slice()));
        let seen = observe(row, bits, n);
        count(trace, seen.before(logit));
        let vocabulary = shared.vocabulary();
        Some(TokenTrace {
            before: Some(seen.before(logit)),
            after: Some(seen.after(logit)),
            removed_mass: Some(seen.removed_mass),
            n_allowed: Some(seen.n_allowed.min(vocabulary.n_logits())),
            likeliest: seen.likeliest,
            allowed: seen.allowed,
            forbidden: seen.forbidden,
            place,
            ..unasked(token, origin)
        })
    }
}

fn count(trace: &mut Trace, log_probability: f64) {
    trace.n_scored += 1;
    trace.logs.push(log_probability);
    *trace.log_probability.get_or_insert(0.0) += log_probability;
}

fn unasked(token: TokenId, origin: Origin) -> TokenTrace {
    TokenTrace {
        token,
        origin,
        before: None,
        after: None,
        removed_mass: None,
        n_allowed: None,
        likeliest: Vec::new(),
        allowed: Vec::new(),
        forbidden: Vec::new(),
        place: None,
    }
}
