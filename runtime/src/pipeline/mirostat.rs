//! Mirostat (Basu et al., 2020): a feedback loop that holds the surprise of
//! the text at a target.

use super::{
    error::PipelineError,
    options::MirostatOptions,
    row::{Candidate, Row},
    softmax,
    stage::{Stage, StageKind, Step},
    top_k,
};

/// Which mirostat.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum MirostatVersion {
    /// The paper's: the exponent of a Zipf law is estimated from the 100
    /// likeliest tokens, and k follows from it.
    V1,
    /// That of the authors' code: tokens that surprise more than the bound
    /// are dropped.
    V2,
}

/// Keeps as many tokens as hold the surprise, in bits, at a target.
///
/// The bound begins at twice the target; after each token it falls by the
/// learning rate times what the token surprised more than it should have. It
/// is kept in the history of a sequence ([`History::observe`]), so the stage
/// itself is shared as all others are. Details are those of llama.cpp.
///
/// [`History::observe`]: super::History::observe
#[derive(Clone, Copy, Debug)]
pub struct Mirostat {
    options: MirostatOptions,
}

/// How many of the likeliest tokens version 1 looks at.
const N_ESTIMATE: usize = 100;

impl Mirostat {
    /// Creates the stage.
    ///
    /// # Errors
    ///
    /// Fails when the target is not positive, or the rate negative.
    pub fn new(options: MirostatOptions) -> Result<Mirostat, PipelineError> {
        let MirostatOptions { tau, eta, .. } = options;
        if !(tau > 0.0 && tau.is_finite()) {
            return Err(PipelineError::OutOfRange {
                option: "mirostat_tau",
                given: f64::from(tau),
                range: "greater than 0 and finite",
            });
        }
        if !(eta >= 0.0 && eta.is_finite()) {
            return Err(PipelineError::OutOfRange {
                option: "mirostat_eta",
                given: f64::from(eta),
                range: "at least 0 and finite",
            });
        }
        Ok(Mirostat { options })
    }

    /// Returns the bound on surprise at a step, in bits.
    fn bound(&self, step: &Step<'_>) -> f32 {
        step.history.memory().unwrap_or(2.0 * self.options.tau)
    }
}

/// Returns how many tokens version 1 keeps under a bound.
fn n_kept(row: &mut Row<'_>, bound: f64) -> usize {
    #[expect(
        clippy::cast_precision_loss,
        reason = "no vocabulary has that many tokens"
    )]
    let n_vocabulary = row.n_logits() as f64;
    let (values, buffer) = row.values();
    top_k::gather_greatest(values, N_ESTIMATE, buffer);
    buffer.sort_unstable_by(|a, b| b.total_cmp(a));
    let (mut products, mut squares) = (0.0, 0.0);
    for (rank, pair) in (1_u32..).zip(buffer.windows(2)) {
        let distance = (f64::from(rank + 1) / f64::from(rank)).ln();
        products += distance * (f64::from(pair[0]) - f64::from(pair[1]));
        squares += distance * distance;
    }
    if squares == 0.0 {
        return 1;
    }
    let zipf = products / squares;
    let excess = zipf - 1.0;
    // (excess / (1 - n^-excess)), whose limit at no excess is 1 / ln n.
    let log_n = n_vocabulary.ln();
    let ratio = if excess == 0.0 {
        1.0 / log_n
    } else {
        excess / -(-excess * log_n).exp_m1()
    };
    let k = (ratio * bound.exp2()).powf(1.0 / zipf);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole tokens, at least one; a cast saturates"
    )]
    let k = k as usize;
    k.max(1)
}

impl Stage for Mirostat {
    fn name(&self) -> &'static str {
        "mirostat"
    }

    fn kind(&self) -> StageKind {
        StageKind::Truncate
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        step: &Step<'_>,
    ) -> Result<(), PipelineError> {
        let bound = f64::from(self.bound(step));
        match self.options.version {
            MirostatVersion::V1 => {
                let k = n_kept(row, bound);
                top_k::keep_exactly(row, k);
            }
            MirostatVersion::V2 => {
                let max = row.max();
                let least = f64::from(max) + row.mass().ln()
                    - bound * std::f64::consts::LN_2;
                row.keep_at_least_near(least);
                if least > f64::from(max) {
                    row.keep_ties(max, 1);
                }
            }
        }
        Ok(())
    }

    fn learn(
        &self,
        row: &mut Row<'_>,
        chosen: Candidate,
        step: &Step<'_>,
    ) -> Option<f32> {
        let weight = f64::from(softmax::exp(chosen.logit - row.max()));
        let surprise = -(weight / row.mass()).log2();
        let MirostatOptions { tau, eta, .. } = self.options;
        let error = surprise - f64::from(tau);
        let bound = f64::from(self.bound(step)) - f64::from(eta) * error;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a few bits of surprise"
        )]
        let bound = bound as f32;
        Some(bound)
    }
}
