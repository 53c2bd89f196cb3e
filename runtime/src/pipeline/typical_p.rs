//! Locally typical sampling (Meister et al., 2022): keep what is about as
//! surprising as was to be expected.

use super::{
    error::PipelineError,
    row::Row,
    select::{Cut, cut_at_mass},
    stage::{Stage, StageKind, Step},
};

/// Keeps the tokens whose surprise is nearest to the entropy, until their
/// probability reaches `p`.
#[derive(Clone, Copy, Debug)]
pub struct TypicalP {
    p: f32,
    exactly: bool,
}

impl TypicalP {
    /// Creates the stage. Tokens as near as the last that is kept are kept,
    /// as Hugging Face transformers does.
    ///
    /// # Errors
    ///
    /// Fails when `p` is not greater than 0 and at most 1.
    pub fn new(p: f32) -> Result<TypicalP, PipelineError> {
        if p > 0.0 && p <= 1.0 {
            return Ok(TypicalP { p, exactly: false });
        }
        Err(PipelineError::OutOfRange {
            option: "typical_p",
            given: f64::from(p),
            range: "greater than 0 and at most 1, which turns it off",
        })
    }

    /// Keeps no more tokens than it takes to exceed `p`, as llama.cpp does;
    /// among equals the lowest ids.
    #[must_use]
    pub fn exactly(mut self) -> TypicalP {
        self.exactly = true;
        self
    }
}

impl Stage for TypicalP {
    fn name(&self) -> &'static str {
        "typical_p"
    }

    fn kind(&self) -> StageKind {
        StageKind::Truncate
    }

    #[expect(clippy::float_cmp, reason = "a tie is exact")]
    fn apply(
        &self,
        row: &mut Row<'_>,
        _: &Step<'_>,
    ) -> Result<(), PipelineError> {
        if self.p >= 1.0 {
            return Ok(());
        }
        let (mass, entropy) = row.mass_and_entropy();
        // A surprise of ln(mass) + max - z, less the entropy.
        let expected = mass.ln() + f64::from(row.max()) - entropy;
        let distance = |logit: f32| (expected - f64::from(logit)).abs();
        let target = mass * f64::from(self.p);
        let weighted = row.weighted(distance);
        let Some(Cut { key, n_ties }) =
            cut_at_mass(weighted, target, self.exactly)
        else {
            return Ok(());
        };
        let mut n_left = if self.exactly { n_ties } else { usize::MAX };
        row.retain(|one| {
            let distance = distance(one.logit);
            let is_kept = distance < key || (distance == key && n_left > 0);
            if distance == key {
                n_left = n_left.saturating_sub(1);
            }
            is_kept
        });
        Ok(())
    }
}
