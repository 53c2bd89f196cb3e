//! Top-p, nucleus sampling (Holtzman et al., 2019): keep the strongest tokens
//! that together are likely enough.

use super::{
    error::PipelineError,
    row::Row,
    softmax,
    stage::{Stage, StageKind, Step},
};

/// Keeps the smallest set of strongest tokens whose probability reaches `p`:
/// the token that crosses it is kept. Among equals the lowest ids go first.
#[derive(Clone, Copy, Debug)]
pub struct TopP {
    p: f32,
}

impl TopP {
    /// Creates the stage.
    ///
    /// # Errors
    ///
    /// Fails when `p` is not from 0 to 1.
    pub fn new(p: f32) -> Result<TopP, PipelineError> {
        if (0.0..=1.0).contains(&p) {
            return Ok(TopP { p });
        }
        Err(PipelineError::OutOfRange {
            option: "top_p",
            given: f64::from(p),
            range: "from 0 to 1; 1 turns it off",
        })
    }
}

impl Stage for TopP {
    fn name(&self) -> &'static str {
        "top_p"
    }

    fn kind(&self) -> StageKind {
        StageKind::Truncate
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        _: &Step<'_>,
    ) -> Result<(), PipelineError> {
        // Rounding must not cut off the tail that 1 asks for.
        if self.p >= 1.0 {
            return Ok(());
        }
        let max = row.max();
        let target = row.mass() * f64::from(self.p);
        let (values, head) = row.values();
        gather_head(values, max, target, head);
        if let Some((least, n_ties)) = find_cut(head, max, target) {
            row.keep_at_least(least);
            row.keep_ties(least, n_ties);
        }
        Ok(())
    }
}

/// Gathers, in descending order, enough of the greatest values to hold the
/// mass `target`.
///
/// Real rows have nearly all their mass within a few nats of the greatest
/// logit, in a few hundred of their 100,000 tokens; only those are sorted.
fn gather_head(values: &[f32], max: f32, target: f64, head: &mut Vec<f32>) {
    for depth in [8.0, 16.0, 32.0, f32::INFINITY] {
        let least = (max - depth).max(f32::MIN);
        head.clear();
        head.extend(values.iter().copied().filter(|&value| value >= least));
        if softmax::mass(head, max) >= target {
            break;
        }
    }
    head.sort_unstable_by(|a, b| b.total_cmp(a));
}

/// Returns the value at which the mass `target` is reached and how many of
/// the values equal to it are needed; `None` when all values are.
fn find_cut(head: &[f32], max: f32, target: f64) -> Option<(f32, usize)> {
    let mut mass = 0.0;
    for (index, &value) in head.iter().enumerate() {
        mass += f64::from(softmax::exp(value - max));
        if mass >= target {
            let first = head.partition_point(|&other| other > value);
            return Some((value, index + 1 - first));
        }
    }
    None
}
