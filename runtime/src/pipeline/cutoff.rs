//! Epsilon and eta sampling (Hewitt et al., 2022): drop what is unlikely,
//! however many tokens that leaves.

use super::{
    error::PipelineError,
    row::Row,
    stage::{Stage, StageKind, Step},
};

fn check(option: &'static str, epsilon: f32) -> Result<f32, PipelineError> {
    if (0.0..1.0).contains(&epsilon) {
        return Ok(epsilon);
    }
    Err(PipelineError::OutOfRange {
        option,
        given: f64::from(epsilon),
        range: "at least 0 and less than 1; 0 turns it off",
    })
}

/// Keeps the tokens that are at least this likely, and the likeliest in any
/// case.
fn keep_likely(row: &mut Row<'_>, mass: f64, probability: f64) {
    if probability > 0.0 {
        let bound = f64::from(row.max()) + (probability * mass).ln();
        row.keep_at_least_near(bound);
    }
}

/// Keeps the tokens with a probability of at least epsilon.
#[derive(Clone, Copy, Debug)]
pub struct EpsilonCutoff {
    epsilon: f32,
}

impl EpsilonCutoff {
    /// Creates the stage.
    ///
    /// # Errors
    ///
    /// Fails when epsilon is not at least 0 and less than 1.
    pub fn new(epsilon: f32) -> Result<EpsilonCutoff, PipelineError> {
        let epsilon = check("epsilon_cutoff", epsilon)?;
        Ok(EpsilonCutoff { epsilon })
    }
}

impl Stage for EpsilonCutoff {
    fn name(&self) -> &'static str {
        "epsilon_cutoff"
    }

    fn kind(&self) -> StageKind {
        StageKind::Truncate
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        _: &Step<'_>,
    ) -> Result<(), PipelineError> {
        let mass = row.mass();
        keep_likely(row, mass, f64::from(self.epsilon));
        Ok(())
    }
}

/// Keeps the tokens with a probability of at least epsilon, or of sqrt(epsilon)
/// times e to the power of minus the entropy where that is less.
#[derive(Clone, Copy, Debug)]
pub struct EtaCutoff {
    epsilon: f32,
}

impl EtaCutoff {
    /// Creates the stage.
    ///
    /// # Errors
    ///
    /// Fails when epsilon is not at least 0 and less than 1.
    pub fn new(epsilon: f32) -> Result<EtaCutoff, PipelineError> {
        let epsilon = check("eta_cutoff", epsilon)?;
        Ok(EtaCutoff { epsilon })
    }
}

impl Stage for EtaCutoff {
    fn name(&self) -> &'static str {
        "eta_cutoff"
    }

    fn kind(&self) -> StageKind {
        StageKind::Truncate
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        _: &Step<'_>,
    ) -> Result<(), PipelineError> {
        let (mass, entropy) = row.mass_and_entropy();
        let epsilon = f64::from(self.epsilon);
        let eta = epsilon.min(epsilon.sqrt() * (-entropy).exp());
        keep_likely(row, mass, eta);
        Ok(())
    }
}
