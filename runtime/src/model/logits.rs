//! The scores that a forward pass leaves behind.

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
        self.values.clear();
        &mut self.values
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
        let bounds = self
            .starts
            .get(sequence..)
            .and_then(|rest| Some((*rest.first()?, *rest.get(1)?)));
        let (start, end) = bounds.unwrap_or((0, 0));
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
