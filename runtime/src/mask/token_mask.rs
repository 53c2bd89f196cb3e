//! The set of tokens that may come next.

use std::fmt;

use fixedbitset::FixedBitSet;

use super::set::{copy_blocks, insert_all};
use crate::vocabulary::TokenId;

/// The number of bits in a word that [`TokenMask::copy_into`] writes.
const WORD_BITS: usize = u32::BITS as usize;
const BLOCK_BITS: usize = usize::BITS as usize;

/// The set of tokens that may come next, one bit a token.
///
/// Its width is fixed when it is made and equals the width of the logits it
/// is applied to. Ids that only pad the logits are never allowed.
///
/// # Example
///
/// ```
/// use maskwright::{mask::TokenMask, vocabulary::TokenId};
///
/// let mut mask = TokenMask::none(40);
/// mask.allow(TokenId(1))?;
/// mask.allow(TokenId(33))?;
/// let mut words = [0; 2];
/// mask.copy_into(&mut words)?;
/// assert_eq!(words, [1 << 1, 1 << 1]);
/// // A token that the vocabulary does not have is an error, not a panic.
/// assert!(mask.allow(TokenId(40)).is_err());
/// # Ok::<(), maskwright::mask::MaskError>(())
/// ```
#[derive(Clone, Eq, PartialEq)]
pub struct TokenMask {
    bits: FixedBitSet,
}

impl TokenMask {
    /// Creates a mask of `len` tokens that allows none of them.
    pub fn none(len: usize) -> TokenMask {
        TokenMask { bits: FixedBitSet::with_capacity(len) }
    }

    /// Returns the number of tokens, allowed or not: the width of the logits.
    pub fn len(&self) -> usize {
        self.bits.len()
    }

    /// Returns true if and only if the mask is over no tokens at all.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    /// Allows `token`.
    ///
    /// # Errors
    ///
    /// Fails when `token` is not in this mask's vocabulary. The mask is then
    /// unchanged.
    pub fn allow(&mut self, token: TokenId) -> Result<(), MaskError> {
        self.check(token)?;
        self.bits.insert(token.index());
        Ok(())
    }

    /// Forbids `token`.
    ///
    /// # Errors
    ///
    /// Fails when `token` is not in this mask's vocabulary. The mask is then
    /// unchanged.
    pub fn forbid(&mut self, token: TokenId) -> Result<(), MaskError> {
        self.check(token)?;
        self.bits.remove(token.index());
        Ok(())
    }

    /// Returns true if and only if `token` is allowed.
    ///
    /// A token outside the vocabulary is never allowed.
    pub fn is_allowed(&self, token: TokenId) -> bool {
        self.bits.contains(token.index())
    }

    /// Returns how many tokens are allowed.
    pub fn n_allowed(&self) -> usize {
        self.bits.count_ones(..)
    }

    /// Returns the allowed tokens in ascending order.
    pub fn tokens(&self) -> impl Iterator<Item = TokenId> + '_ {
        self.bits.ones().map(TokenId::from_index)
    }

    /// Returns the bitset.
    pub fn bits(&self) -> &FixedBitSet {
        &self.bits
    }

    /// Returns how many `u32` words [`TokenMask::copy_into`] writes.
    pub fn n_words(&self) -> usize {
        self.len().div_ceil(WORD_BITS)
    }

    /// Returns the mask as `u32` words: token `i` is bit `i % 32` of word
    /// `i / 32`, the layout that the mask kernels of serving engines read.
    pub fn words(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.n_words()).map(|word| {
            let block = self.bits.as_slice()[word * WORD_BITS / BLOCK_BITS];
            low_word(block >> (word * WORD_BITS % BLOCK_BITS))
        })
    }

    /// Writes the words of [`TokenMask::words`] to `words`.
    ///
    /// # Errors
    ///
    /// Fails when `words` does not hold exactly [`TokenMask::n_words`].
    pub fn copy_into(&self, words: &mut [u32]) -> Result<(), MaskError> {
        if words.len() != self.n_words() {
            return Err(MaskError::WordCount {
                given: words.len(),
                expected: self.n_words(),
            });
        }
        if let Some(blocks) = blocks_of(words, self.len()) {
            copy_blocks(blocks, self.bits.as_slice());
            return Ok(());
        }
        let per_block = BLOCK_BITS / WORD_BITS;
        let mut chunks = words.chunks_exact_mut(per_block);
        let blocks = self.bits.as_slice();
        for (chunk, &block) in chunks.by_ref().zip(blocks) {
            for (at, word) in chunk.iter_mut().enumerate() {
                *word = low_word(block >> (at * WORD_BITS));
            }
        }
        if let ([word, ..], Some(&block)) =
            (chunks.into_remainder(), blocks.last())
        {
            *word = low_word(block);
        }
        Ok(())
    }

    /// Returns a mask of so many tokens with these blocks.
    pub(crate) fn from_blocks(len: usize, blocks: &[usize]) -> TokenMask {
        let blocks = blocks.iter().copied();
        TokenMask { bits: FixedBitSet::with_capacity_and_blocks(len, blocks) }
    }

    /// Returns a mask of so many tokens with the words of
    /// [`TokenMask::words`]; none if a token is allowed that is none.
    pub(crate) fn from_words(
        len: usize,
        words: impl Iterator<Item = u32>,
    ) -> Option<TokenMask> {
        let mut mask = TokenMask::none(len);
        let blocks = mask.bits.as_mut_slice();
        let per_block = BLOCK_BITS / WORD_BITS;
        for (at, word) in words.enumerate() {
            let block = blocks.get_mut(at / per_block)?;
            *block |= (word as usize) << (at % per_block * WORD_BITS);
        }
        let rest = len % BLOCK_BITS;
        let is_sane =
            rest == 0 || blocks.last().is_none_or(|last| last >> rest == 0);
        is_sane.then_some(mask)
    }

    /// Returns a mask that allows `tokens`, all of which are below `len`.
    pub(crate) fn of(len: usize, tokens: &[u32]) -> TokenMask {
        let mut mask = TokenMask::none(len);
        insert_all(mask.bits.as_mut_slice(), tokens);
        mask
    }

    /// Allows a token of the mask that is forbidden, and the other way round.
    pub(crate) fn toggle(&mut self, token: u32) {
        self.bits.toggle(token as usize);
    }

    /// Returns the blocks, for the walks that fill them. Bits past the width
    /// must stay zero.
    pub(crate) fn blocks_mut(&mut self) -> &mut [usize] {
        self.bits.as_mut_slice()
    }

    fn check(&self, token: TokenId) -> Result<(), MaskError> {
        if token.index() >= self.len() {
            return Err(MaskError::TokenOutOfRange { token, len: self.len() });
        }
        Ok(())
    }
}

/// Returns words as the blocks of a mask of so many tokens, if they are just
/// as wide and lie in memory as blocks do.
pub(crate) fn blocks_of(
    words: &mut [u32],
    n_tokens: usize,
) -> Option<&mut [usize]> {
    let is_wide = words.len() == n_tokens.div_ceil(WORD_BITS);
    // The first of the words of a block is its low half.
    if !is_wide || cfg!(target_endian = "big") {
        return None;
    }
    bytemuck::try_cast_slice_mut(words).ok()
}

/// Returns true if and only if any of so many tokens is not in `blocks`.
pub(crate) fn forbids_any(blocks: &[usize], n_tokens: usize) -> bool {
    let (full, rest) = (n_tokens / BLOCK_BITS, n_tokens % BLOCK_BITS);
    let (whole, last) = blocks.split_at(full.min(blocks.len()));
    let rest = (1 << rest) - 1;
    whole.iter().any(|&block| block != usize::MAX)
        || last.first().is_some_and(|&block| block & rest != rest)
}

/// The low 32 bits of a block.
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
fn low_word(block: usize) -> u32 {
    block as u32
}

/// Prints the allowed tokens as ranges, since a mask is usually either nearly
/// empty or nearly full: `TokenMask(4 of 8: 1, 4-6)`.
impl fmt::Debug for TokenMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenMask({} of {}", self.n_allowed(), self.len())?;
        let mut separator = ": ";
        let mut tokens = self.bits.ones().peekable();
        while let Some(first) = tokens.next() {
            let mut last = first;
            while let Some(next) = tokens.next_if(|&token| token == last + 1) {
                last = next;
            }
            write!(f, "{separator}{first}")?;
            if first != last {
                write!(f, "-{last}")?;
            }
            separator = ", ";
        }
        write!(f, ")")
    }
}

/// An error that occurs when a mask and what it is used with do not belong
/// together.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MaskError {
    /// A token is not in the mask's vocabulary.
    #[error(
        "token {} is not in the vocabulary of {len} tokens; was the mask \
         made for another vocabulary?",
        token.0
    )]
    TokenOutOfRange {
        /// The token.
        token: TokenId,
        /// The width of the mask.
        len: usize,
    },
    /// The room for the words has the wrong size.
    #[error(
        "the mask has {expected} words of 32 bits, and room was given for \
         {given}; make it exactly as wide as the logits"
    )]
    WordCount {
        /// How many words there was room for.
        given: usize,
        /// How many the mask has.
        expected: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_words_are_those_of_the_mask() {
        let n_tokens = 3 * BLOCK_BITS - 5;
        let mut mask = TokenMask::none(n_tokens);
        for token in [0, 31, 32, 63, 64, 100, n_tokens - 1] {
            mask.allow(TokenId::from_index(token)).expect("a token");
        }
        let mut copied = vec![0; n_tokens.div_ceil(WORD_BITS)];
        mask.copy_into(&mut copied).expect("as wide");
        let mut room = vec![[0_usize; 1]; 3];
        let words = bytemuck::cast_slice_mut::<_, u32>(&mut room);
        if let Some(blocks) = blocks_of(words, n_tokens) {
            blocks.copy_from_slice(mask.bits.as_slice());
            assert!(forbids_any(blocks, n_tokens));
            assert_eq!(words, copied);
        }
        assert!(blocks_of(words, n_tokens + WORD_BITS).is_none());
        let unaligned = &mut words[1..];
        assert!(blocks_of(unaligned, n_tokens - WORD_BITS).is_none());
        let mut all = vec![usize::MAX; 3];
        assert!(!forbids_any(&all, n_tokens));
        all[2] = (1 << (BLOCK_BITS - 6)) - 1;
        assert!(forbids_any(&all, n_tokens));
    }

    /// The widths at which a bitset goes wrong.
    const WIDTHS: &[usize] = &[0, 1, 31, 32, 33, 63, 64, 65, 96, 97];

    fn mask(len: usize, tokens: &[u32]) -> TokenMask {
        let mut mask = TokenMask::none(len);
        for &token in tokens {
            mask.allow(TokenId(token)).expect("tokens below len");
        }
        mask
    }

    #[test]
    fn debug_prints_ranges() {
        assert_eq!(
            format!("{:?}", mask(8, &[1, 4, 5, 6])),
            "TokenMask(4 of 8: 1, 4-6)",
        );
        assert_eq!(format!("{:?}", mask(8, &[])), "TokenMask(0 of 8)");
    }

    #[test]
    fn a_token_past_the_end_is_refused_at_every_width() {
        for &len in WIDTHS {
            let end = TokenId::from_index(len);
            let mut mask = TokenMask::none(len);
            assert!(mask.allow(end).is_err(), "width {len}");
            assert!(!mask.is_allowed(end), "width {len}");
            assert_eq!(mask, TokenMask::none(len), "width {len}");
        }
    }

    #[test]
    fn words_hold_the_tokens_at_every_width() {
        for &len in WIDTHS {
            let n = u32::try_from(len).expect("small width");
            let tokens: Vec<u32> = (0..n).step_by(3).collect();
            let mask = mask(len, &tokens);
            assert_eq!(mask.n_allowed(), tokens.len());
            let mut words = vec![u32::MAX; mask.n_words()];
            mask.copy_into(&mut words).expect("the right size");
            assert_eq!(words, mask.words().collect::<Vec<_>>());
            for token in 0..len {
                let bit = words[token / 32] >> (token % 32) & 1 != 0;
                assert_eq!(bit, token % 3 == 0, "width {len}, {token}");
            }
            words.push(0);
            assert!(mask.copy_into(&mut words).is_err());
        }
    }
}
