//! The scores that a forward pass leaves behind.

use candle_core::Tensor;

use super::device;
use super::error::ModelError;
use super::linear::read;

/// Which of the fed tokens get logits.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Want {
    /// None: the tokens only fill the cache.
    Nothing,
    /// The last one.
    #[default]
    Last,
    /// Every one.
    All,
}

/// Rows of logits, one buffer for all sequences of a batch.
///
/// The buffer is kept between forward passes.
#[derive(Clone, Debug, Default)]
pub struct Logits {
    values: Vec<f32>,
    width: usize,
    /// The first row of each sequence, and the end of the last.
    starts: Vec<usize>,
    /// The rows on a device, if `values` does not have them.
    far: Option<Tensor>,
    may_stay: bool,
}

impl Logits {
    /// Creates an empty buffer.
    pub fn new() -> Logits {
        Logits::default()
    }

    /// Forgets the rows, and makes room for `counts` rows per sequence. The
    /// caller fills what this returns.
    pub fn reset(&mut self, width: usize, counts: &[usize]) -> &mut Vec<f32> {
        self.width = width;
        self.starts.clear();
        self.starts.push(0);
        let mut end = 0;
        for count in counts {
            end += count;
            self.starts.push(end);
        }
        self.far = None;
        self.values.clear();
        &mut self.values
    }

    /// Says whether rows may stay on the device that computed them, until
    /// they are fetched. Unless it is said they may not.
    pub(crate) fn may_stay(&mut self, may_stay: bool) {
        self.may_stay = may_stay;
    }

    /// Takes rows that a device computed, `counts` for each sequence.
    pub(super) fn put(
        &mut self,
        rows: Tensor,
        counts: &[usize],
    ) -> Result<(), ModelError> {
        self.reset(rows.dim(1)?, counts);
        self.far = Some(rows);
        if self.may_stay { Ok(()) } else { self.fetch() }
    }

    /// Whether rows are still on a device.
    pub(crate) fn is_on_device(&self) -> bool {
        self.far.is_some()
    }

    /// Copies rows that are still on a device into this buffer.
    pub(crate) fn fetch(&mut self) -> Result<(), ModelError> {
        if let Some(rows) = self.far.take() {
            let rows = rows.to_device(&candle_core::Device::Cpu)?;
            read(&rows, |rows| self.values.extend_from_slice(rows))?;
        }
        Ok(())
    }

    /// Copies the rows of one sequence to another buffer, which may leave
    /// them on the device.
    pub(crate) fn copy_to(
        &self,
        sequence: usize,
        target: &mut Logits,
    ) -> Result<(), ModelError> {
        let (start, end) = self.bounds(sequence).unwrap_or((0, 0));
        match &self.far {
            Some(rows) if start < end => {
                let rows = rows.narrow(0, start, end - start)?;
                target.put(rows, &[end - start])
            }
            _ => {
                let values = target.reset(self.width, &[end - start]);
                self.rows(sequence)
                    .for_each(|row| values.extend_from_slice(row));
                Ok(())
            }
        }
    }

    /// Fills `row` with the last row of a sequence, but for all that is
    /// neither among the `k` strongest tokens that the mask allows nor ties
    /// with the last of these: that is minus infinity. Returns how many are
    /// not; none, and does nothing, where the rows are not on a device or the
    /// whole row is wanted.
    pub(crate) fn strongest(
        &self,
        sequence: usize,
        mask: &[u32],
        k: usize,
        row: &mut Vec<f32>,
    ) -> Result<Option<usize>, ModelError> {
        let (Some(rows), Some((start, end))) =
            (&self.far, self.bounds(sequence))
        else {
            return Ok(None);
        };
        if start == end {
            return Ok(None);
        }
        let last = rows.get(end - 1)?;
        let Some(found) = device::strongest(&last, mask, k)? else {
            return Ok(None);
        };
        row.clear();
        row.resize(self.width, f32::NEG_INFINITY);
        for &(token, logit) in &found {
            if let Some(entry) =
                usize::try_from(token).ok().and_then(|at| row.get_mut(at))
            {
                *entry = logit;
            }
        }
        Ok(Some(found.len()))
    }

    fn bounds(&self, sequence: usize) -> Option<(usize, usize)> {
        let rest = self.starts.get(sequence..)?;
        Some((*rest.first()?, *rest.get(1)?))
    }

    /// Returns the number of sequences.
    pub fn n_sequences(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Returns the rows of a sequence, in the order of its tokens.
    pub fn rows(
        &self,
        sequence: usize,
    ) -> impl DoubleEndedIterator<Item = &[f32]> + ExactSizeIterator {
        let (start, end) = self.bounds(sequence).unwrap_or((0, 0));
        let values = self.values.get(start * self.width..end * self.width);
        values.unwrap_or_default().chunks_exact(self.width.max(1))
    }

    /// Returns the last row of a sequence, if any was asked for.
    pub fn last(&self, sequence: usize) -> Option<&[f32]> {
        self.rows(sequence).next_back()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sequence_sees_its_own_rows() {
        let mut logits = Logits::new();
        assert_eq!(logits.n_sequences(), 0);
        assert!(logits.last(0).is_none());
        let values = logits.reset(2, &[1, 0, 2]);
        values.extend([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(logits.n_sequences(), 3);
        assert_eq!(logits.last(0), Some(&[0.0, 1.0][..]));
        assert_eq!(logits.last(1), None);
        assert_eq!(logits.rows(2).len(), 2);
        assert_eq!(logits.last(2), Some(&[4.0, 5.0][..]));
        assert_eq!(logits.last(3), None);
    }
}
