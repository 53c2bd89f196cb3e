//! Looking at a row without choosing from it: log-probabilities before and
//! after the mask, and what the stages leave, for whoever searches.

use super::{
    error::PipelineError,
    mask::MaskBits,
    row::{Candidate, Scratch},
    run::{Nobody, Pipeline},
    softmax::log_sum_exp,
    stage::Step,
};
use crate::vocabulary::TokenId;

/// What a row of logits says before and after the mask. Nothing else is
/// applied to it: no penalty, no temperature, no truncation.
///
/// Log-probabilities are natural logarithms.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    log_total: f64,
    log_allowed: f64,
    /// How much of the model's probability is on tokens that the mask
    /// forbids: from 0 to 1.
    pub removed_mass: f64,
    /// How many tokens the mask allows; all where there is no grammar.
    pub n_allowed: usize,
    /// The likeliest tokens as the model has it, with log-probabilities
    /// before the mask.
    pub likeliest: Vec<(TokenId, f64)>,
    /// The likeliest tokens that are allowed, with log-probabilities among
    /// the allowed ones.
    pub allowed: Vec<(TokenId, f64)>,
    /// The likeliest tokens that are forbidden, with log-probabilities before
    /// the mask.
    pub forbidden: Vec<(TokenId, f64)>,
}

impl Observation {
    /// Returns the log-probability, before the mask, of a token with this
    /// logit.
    pub fn before(&self, logit: f32) -> f64 {
        f64::from(logit) - self.log_total
    }

    /// Returns the log-probability, among the allowed tokens, of an allowed
    /// token with this logit.
    pub fn after(&self, logit: f32) -> f64 {
        f64::from(logit) - self.log_allowed
    }
}

/// Looks at a row as the model gave it, and lists up to `n` tokens of each
/// kind, likeliest first, equal ones by ascending id.
///
/// ```
/// use maskwright::pipeline::{MaskBits, observe};
///
/// let logits = [2.0, 1.0, 0.0];
/// let seen = observe(&logits, Some(MaskBits::U32(&[0b110])), 1);
/// assert_eq!(seen.likeliest[0].0.0, 0);
/// assert_eq!(seen.allowed[0].0.0, 1);
/// assert!((seen.removed_mass - 0.665).abs() < 1e-3);
/// assert!((seen.after(1.0).exp() - 0.731).abs() < 1e-3);
/// ```
pub fn observe(
    logits: &[f32],
    mask: Option<MaskBits<'_>>,
    n: usize,
) -> Observation {
    let log_total = log_sum_exp(logits);
    let all = || (0..).map(TokenId).zip(logits.iter().copied());
    let likeliest = strongest(all(), n);
    let Some(mask) = mask else {
        let likeliest = with_logs(likeliest, log_total);
        return Observation {
            log_total,
            log_allowed: log_total,
            removed_mass: 0.0,
            n_allowed: logits.len(),
            allowed: likeliest.clone(),
            likeliest,
            forbidden: Vec::new(),
        };
    };
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    let (mut allowed, mut forbidden) = (Vec::new(), Vec::new());
    for (token, logit) in all() {
        let is_allowed = mask.is_allowed(token);
        let (values, pairs) = if is_allowed {
            (&mut kept, &mut allowed)
        } else {
            (&mut dropped, &mut forbidden)
        };
        values.push(logit);
        insert(pairs, n, token, logit);
    }
    let (log_allowed, log_forbidden) =
        (log_sum_exp(&kept), log_sum_exp(&dropped));
    Observation {
        log_total,
        log_allowed,
        removed_mass: (log_forbidden - log_total).exp().min(1.0),
        n_allowed: kept.len(),
        likeliest: with_logs(likeliest, log_total),
        allowed: with_logs(allowed, log_allowed),
        forbidden: with_logs(forbidden, log_total),
    }
}

fn with_logs(
    strongest: Vec<Candidate>,
    log_total: f64,
) -> Vec<(TokenId, f64)> {
    let log = |one: Candidate| (one.token, f64::from(one.logit) - log_total);
    strongest.into_iter().map(log).collect()
}

fn strongest(
    tokens: impl Iterator<Item = (TokenId, f32)>,
    n: usize,
) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (token, logit) in tokens {
        insert(&mut found, n, token, logit);
    }
    found
}

/// Puts a token into a list of the `n` strongest so far. Few tokens of a row
/// get past the first comparison.
fn insert(found: &mut Vec<Candidate>, n: usize, token: TokenId, logit: f32) {
    let is_strong = match found.last() {
        Some(last) if found.len() >= n => logit > last.logit,
        _ => n > 0,
    };
    if is_strong && logit > f32::NEG_INFINITY {
        let place = found.partition_point(|one| one.logit >= logit);
        found.insert(place, Candidate { token, logit });
        found.truncate(n);
    }
}

/// Returns the number in [0, 1) that belongs to a seed, a position and an
/// attempt, for searches that draw on their own.
#[cfg(feature = "generator")]
pub(crate) fn uniform_at(seed: u64, position: u64, attempt: u64) -> f64 {
    use super::choice::{Purpose, uniform};

    uniform(Purpose::Beams, seed, position, attempt)
}

impl Pipeline {
    /// Runs the stages and returns the tokens that they leave with their
    /// scores, by ascending id. Scores are what became of the logits: those
    /// of a row of log-probabilities are log-probabilities, not normalised
    /// again.
    ///
    /// # Errors
    ///
    /// Fails as [`choose`](Self::choose) does.
    pub fn survivors(
        &self,
        logits: &mut [f32],
        step: &Step<'_>,
        scratch: &mut Scratch,
    ) -> Result<Vec<Candidate>, PipelineError> {
        let mut row = self.run(logits, step, scratch, &mut Nobody)?;
        Ok(row.candidates().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observation_agrees_with_a_plain_softmax() {
        let logits: Vec<f32> =
            (0..300_u16).map(|i| f32::from(i * 37 % 101) / 9.0).collect();
        let mut mask = vec![0_u32; 10];
        for token in (0..300).filter(|token| token % 7 == 3) {
            mask[token / 32] |= 1 << (token % 32);
        }
        let seen = observe(&logits, Some(MaskBits::U32(&mask)), 4);
        let weight = |i: usize| f64::from(logits[i]).exp();
        let total: f64 = (0..300).map(weight).sum();
        let allowed: f64 = (0..300).filter(|i| i % 7 == 3).map(weight).sum();
        assert!((seen.removed_mass - (1.0 - allowed / total)).abs() < 1e-6);
        assert_eq!(seen.n_allowed, 43);
        assert_eq!(seen.allowed.len(), 4);
        for (list, is_allowed, sum) in [
            (&seen.likeliest, None, total),
            (&seen.allowed, Some(true), allowed),
            (&seen.forbidden, Some(false), total),
        ] {
            let mut all: Vec<usize> = (0..300)
                .filter(|i| is_allowed.is_none_or(|it| (i % 7 == 3) == it))
                .collect();
            all.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
            for (&(token, log), &expected) in list.iter().zip(&all) {
                assert_eq!(token.index(), expected);
                let exact = (weight(expected) / sum).ln();
                assert!((log - exact).abs() < 1e-5);
            }
        }
        assert!((seen.before(logits[3]) - (weight(3) / total).ln()) < 1e-5);
        assert!((seen.after(logits[3]) - (weight(3) / allowed).ln()) < 1e-5);
    }

    #[test]
    fn without_a_mask_nothing_is_removed() {
        let seen = observe(&[1.0, f32::NEG_INFINITY, 1.0], None, 9);
        assert!(seen.removed_mass.abs() < f64::EPSILON);
        let tokens: Vec<u32> = seen.allowed.iter().map(|t| t.0.0).collect();
        assert_eq!(tokens, [0, 2]);
        assert!(seen.forbidden.is_empty());
        assert!(observe(&[], None, 3).likeliest.is_empty());
    }
}
