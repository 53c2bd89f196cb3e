//! Top-k (Fan et al., 2018): keep the k strongest tokens.

use super::{
    error::PipelineError,
    row::Row,
    softmax,
    stage::{Stage, StageKind, Step},
};

/// Keeps the `k` greatest logits, and every token that ties with the last of
/// them.
#[derive(Clone, Copy, Debug)]
pub struct TopK {
    k: usize,
    exactly: bool,
}

impl TopK {
    /// Creates the stage.
    ///
    /// # Errors
    ///
    /// Fails when `k` is zero.
    pub fn new(k: usize) -> Result<TopK, PipelineError> {
        if k > 0 {
            return Ok(TopK { k, exactly: false });
        }
        Err(PipelineError::OutOfRange {
            option: "top_k",
            given: 0.0,
            range: "at least 1 for a stage of its own",
        })
    }

    pub(super) fn k(self) -> usize {
        self.k
    }

    /// Keeps no more than `k` tokens, as llama.cpp does: among equals those
    /// with the lowest ids.
    #[must_use]
    pub fn exactly(mut self) -> TopK {
        self.exactly = true;
        self
    }
}

/// Keeps the `k` greatest logits and nothing that ties with the last of them
/// beyond that; among equals the lowest ids.
pub(super) fn keep_exactly(row: &mut Row<'_>, k: usize) {
    let (values, buffer) = row.values();
    let Some(least) = kth_greatest(values, k, buffer) else { return };
    row.keep_at_least(least);
    let candidates = row.candidates().iter();
    let n_greater = candidates.filter(|one| one.logit > least).count();
    row.keep_ties(least, k.saturating_sub(n_greater));
}

impl Stage for TopK {
    fn name(&self) -> &'static str {
        "top_k"
    }

    fn kind(&self) -> StageKind {
        StageKind::Truncate
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        _: &Step<'_>,
    ) -> Result<(), PipelineError> {
        if self.exactly {
            keep_exactly(row, self.k);
            return Ok(());
        }
        let (values, buffer) = row.values();
        if let Some(least) = kth_greatest(values, self.k, buffer) {
            row.keep_at_least(least);
        }
        Ok(())
    }
}

/// Returns the `k`th greatest of the values above minus infinity, or `None`
/// when there are fewer than `k`.
///
/// One pass over the values. The buffer gathers what is above the `k`th
/// greatest value so far and is cut back to `k` when it is full, which is
/// rare: most chunks of a row have nothing to offer.
fn kth_greatest(
    values: &[f32],
    k: usize,
    buffer: &mut Vec<f32>,
) -> Option<f32> {
    if k == 0 || k > values.len() {
        return None;
    }
    gather(values, k, buffer);
    (buffer.len() >= k).then(|| cut(buffer, k))
}

/// Gathers the `k` greatest of the values above minus infinity, or all when
/// there are fewer, and some more, in no order.
fn gather(values: &[f32], k: usize, buffer: &mut Vec<f32>) {
    /// The grain in which values are looked at and passed over.
    const CHUNK: usize = 64;
    let capacity = k.saturating_mul(2).max(256);
    let mut least = f32::NEG_INFINITY;
    buffer.clear();
    for chunk in values.chunks(CHUNK) {
        if softmax::max(chunk) <= least {
            continue;
        }
        buffer.extend(chunk.iter().copied().filter(|&value| value > least));
        if buffer.len() >= capacity {
            least = cut(buffer, k);
        }
    }
}

/// Gathers the `k` greatest of the values above minus infinity, in no order;
/// all when there are fewer.
pub(super) fn gather_greatest(
    values: &[f32],
    k: usize,
    buffer: &mut Vec<f32>,
) {
    gather(values, k, buffer);
    if buffer.len() > k {
        cut(buffer, k);
    }
}

/// Cuts a list of at least `k` values back to the `k` greatest and returns
/// the least of those.
fn cut(values: &mut Vec<f32>, k: usize) -> f32 {
    let descending = |a: &f32, b: &f32| b.total_cmp(a);
    let (_, &mut least, _) = values.select_nth_unstable_by(k - 1, descending);
    values.truncate(k);
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kth_greatest_equals_sorting() {
        let mut seed = 1_u32;
        let mut random = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Few distinct values, so that there are ties.
            let [high, low, ..] = (seed & 0xf007_0000).to_be_bytes();
            match high {
                0 => f32::NEG_INFINITY,
                high => f32::from(high) / 3.0 - f32::from(low),
            }
        };
        let mut buffer = Vec::new();
        for length in [0, 1, 2, 63, 64, 65, 1000, 5000] {
            let values: Vec<f32> = (0..length).map(|_| random()).collect();
            let mut sorted = values.clone();
            sorted.retain(|&value| value > f32::NEG_INFINITY);
            sorted.sort_by(|a, b| b.total_cmp(a));
            for k in [1, 2, 3, 40, 64, 300, 999, 5000] {
                assert_eq!(
                    kth_greatest(&values, k, &mut buffer),
                    sorted.get(k - 1).copied(),
                    "length {length}, k {k}",
                );
            }
        }
    }
}
