//! The grammar mask: the first stage that can forbid.

use super::{
    error::PipelineError,
    row::Row,
    stage::{Stage, StageKind, Step},
};
use crate::vocabulary::TokenId;

mod sealed {
    pub trait Sealed {}
}

/// A word of a bitmask: `u32`, `u64` or `usize`.
///
/// Token `i` is bit `i % BITS` of word `i / BITS`, the lowest bit first.
pub trait MaskWord: sealed::Sealed + Copy + Eq {
    /// The number of bits.
    const BITS: usize;
    /// A word that forbids every token.
    const NONE: Self;
    /// A word that allows every token.
    const ALL: Self;

    /// Returns true if and only if the bit at `index` is set.
    fn is_set(self, index: usize) -> bool;

    /// Returns how many bits are set.
    fn n_set(self) -> usize;

    /// Returns the sixteen bits from `index` times sixteen on.
    fn sixteen(self, index: usize) -> u16;

    /// Returns the index of the lowest set bit, and the word without it.
    fn take_lowest(self) -> Option<(usize, Self)>;
}

macro_rules! impl_mask_word {
    ($($word:ty),*) => {$(
        impl sealed::Sealed for $word {}

        impl MaskWord for $word {
            const BITS: usize = <$word>::BITS as usize;
            const NONE: $word = 0;
            const ALL: $word = <$word>::MAX;

            fn is_set(self, index: usize) -> bool {
                self >> (index % <Self as MaskWord>::BITS) & 1 == 1
            }

            fn n_set(self) -> usize {
                self.count_ones() as usize
            }

            #[expect(
                clippy::cast_possible_truncation,
                reason = "the low bits are meant"
            )]
            fn sixteen(self, index: usize) -> u16 {
                (self >> (index * LANES % <Self as MaskWord>::BITS)) as u16
            }

            fn take_lowest(self) -> Option<(usize, $word)> {
                let index = self.trailing_zeros() as usize;
                (self != 0).then(|| (index, self & (self - 1)))
            }
        }
    )*};
}

impl_mask_word!(u32, u64, usize);

/// How many logits are selected at once.
const LANES: usize = 16;

/// A number in a row of logits: `f32`, or one of the halves that models
/// compute with, [`half::f16`] and [`half::bf16`].
pub trait Logit: sealed::Sealed + Copy {
    /// The logit of a token that is forbidden.
    const FORBIDDEN: Self;

    /// Forbids those of sixteen logits whose bit is not set.
    fn select(logits: &mut [Self; LANES], allowed: u16);
}

macro_rules! impl_logit {
    ($($logit:ty as $bits:ty),*) => {$(
        impl sealed::Sealed for $logit {}

        impl Logit for $logit {
            const FORBIDDEN: $logit = <$logit>::NEG_INFINITY;

            #[inline]
            fn select(logits: &mut [$logit; LANES], allowed: u16) {
                // PERF: bits as wide as a logit, known places and no branch,
                // so that it becomes vector code.
                let allowed = <$bits>::from(allowed);
                let forbidden = Self::FORBIDDEN.to_bits();
                for (index, logit) in logits.iter_mut().enumerate() {
                    let is_allowed = allowed & (1 << index) != 0;
                    let bits = logit.to_bits();
                    let bits = if is_allowed { bits } else { forbidden };
                    *logit = <$logit>::from_bits(bits);
                }
            }
        }
    )*};
}

impl_logit!(f32 as u32, half::f16 as u16, half::bf16 as u16);

/// Sets the logit of every token that the mask does not allow to minus
/// infinity.
///
/// Bits beyond the row are ignored. Logits beyond the mask are forbidden: a
/// mask that is too short never lets a token through.
///
/// Logits of words that allow everything are not touched, which is most of a
/// row where a grammar is wide.
///
/// ```
/// use half::bf16;
/// use maskwright::pipeline::mask_logits;
///
/// let mut logits = [0.5, 1.5, 2.5];
/// mask_logits(&mut logits, &[0b101_u32]);
/// assert_eq!(logits, [0.5, f32::NEG_INFINITY, 2.5]);
/// let mut logits = [bf16::ONE; 3];
/// mask_logits(&mut logits, &[0b011_u64]);
/// assert_eq!(logits, [bf16::ONE, bf16::ONE, bf16::NEG_INFINITY]);
/// ```
pub fn mask_logits<L: Logit, W: MaskWord>(logits: &mut [L], words: &[W]) {
    let covered = words.len().saturating_mul(W::BITS).min(logits.len());
    let (covered, beyond) = logits.split_at_mut(covered);
    beyond.fill(L::FORBIDDEN);
    for (chunk, &word) in covered.chunks_mut(W::BITS).zip(words) {
        if word == W::ALL {
            continue;
        }
        if word == W::NONE {
            chunk.fill(L::FORBIDDEN);
            continue;
        }
        let (lanes, rest) = chunk.as_chunks_mut::<LANES>();
        for (index, lanes) in lanes.iter_mut().enumerate() {
            L::select(lanes, word.sixteen(index));
        }
        let done = lanes.len() * LANES;
        for (index, logit) in (done..).zip(rest) {
            if !word.is_set(index) {
                *logit = L::FORBIDDEN;
            }
        }
    }
}

/// The allowed tokens of one step, borrowed from whoever computed them.
#[derive(Clone, Copy, Debug)]
pub enum MaskBits<'a> {
    /// Words of 32 bits, the layout that serving engines exchange.
    U32(&'a [u32]),
    /// Words of 64 bits.
    U64(&'a [u64]),
    /// Words of the machine, the layout of `fixedbitset`.
    Usize(&'a [usize]),
}

impl<'a> From<&'a [u32]> for MaskBits<'a> {
    fn from(words: &'a [u32]) -> MaskBits<'a> {
        MaskBits::U32(words)
    }
}

impl<'a> From<&'a [u64]> for MaskBits<'a> {
    fn from(words: &'a [u64]) -> MaskBits<'a> {
        MaskBits::U64(words)
    }
}

impl<'a> From<&'a [usize]> for MaskBits<'a> {
    fn from(words: &'a [usize]) -> MaskBits<'a> {
        MaskBits::Usize(words)
    }
}

impl MaskBits<'_> {
    /// Returns true if and only if the mask allows a token.
    pub fn is_allowed(self, token: TokenId) -> bool {
        fn is_set<W: MaskWord>(words: &[W], token: TokenId) -> bool {
            let index = token.index();
            words
                .get(index / W::BITS)
                .is_some_and(|word| word.is_set(index % W::BITS))
        }
        match self {
            MaskBits::U32(words) => is_set(words, token),
            MaskBits::U64(words) => is_set(words, token),
            MaskBits::Usize(words) => is_set(words, token),
        }
    }

    /// Returns how many tokens the mask allows.
    pub fn n_allowed(self) -> usize {
        fn n_set<W: MaskWord>(words: &[W]) -> usize {
            words.iter().map(|word| word.n_set()).sum()
        }
        match self {
            MaskBits::U32(words) => n_set(words),
            MaskBits::U64(words) => n_set(words),
            MaskBits::Usize(words) => n_set(words),
        }
    }

    /// Visits the allowed tokens, ascending.
    pub fn for_each_allowed(self, mut visit: impl FnMut(TokenId)) {
        fn each<W: MaskWord>(words: &[W], visit: &mut impl FnMut(TokenId)) {
            for (place, &word) in words.iter().enumerate() {
                let mut word = word;
                while let Some((bit, rest)) = word.take_lowest() {
                    visit(TokenId::from_index(place * W::BITS + bit));
                    word = rest;
                }
            }
        }
        match self {
            MaskBits::U32(words) => each(words, &mut visit),
            MaskBits::U64(words) => each(words, &mut visit),
            MaskBits::Usize(words) => each(words, &mut visit),
        }
    }

    /// Returns the bits of the sixty-four tokens from `index` times sixty-four
    /// on; those beyond the mask are not set.
    pub(super) fn sixty_four(self, index: usize) -> u64 {
        fn join<W: MaskWord>(words: &[W], index: usize) -> u64 {
            (0..64 / LANES).fold(0, |joined, part| {
                let word = words.get((index * 64 + part * LANES) / W::BITS);
                let bits = word.map_or(0, |word| word.sixteen(part));
                joined | u64::from(bits) << (part * LANES)
            })
        }
        match self {
            MaskBits::U32(words) => join(words, index),
            MaskBits::U64(words) => join(words, index),
            MaskBits::Usize(words) => join(words, index),
        }
    }

    /// Applies the mask to a plain row, as [`mask_logits`] does.
    pub(super) fn mask_logits(self, logits: &mut [f32]) {
        match self {
            MaskBits::U32(words) => mask_logits(logits, words),
            MaskBits::U64(words) => mask_logits(logits, words),
            MaskBits::Usize(words) => mask_logits(logits, words),
        }
    }

    /// Refuses a mask that was made for a row of another width.
    pub(super) fn check_width(
        self,
        n_logits: usize,
    ) -> Result<(), PipelineError> {
        let (given, bits) = match self {
            MaskBits::U32(words) => (words.len(), <u32 as MaskWord>::BITS),
            MaskBits::U64(words) => (words.len(), <u64 as MaskWord>::BITS),
            MaskBits::Usize(words) => (words.len(), <usize as MaskWord>::BITS),
        };
        let expected = n_logits.div_ceil(bits);
        if given == expected {
            Ok(())
        } else {
            Err(PipelineError::MaskWidth { given, expected, n_logits })
        }
    }
}

/// Forbids what the step's mask does not allow; does nothing without one.
#[derive(Clone, Copy, Debug)]
pub struct GrammarMask;

impl Stage for GrammarMask {
    fn name(&self) -> &'static str {
        "mask"
    }

    fn kind(&self) -> StageKind {
        StageKind::Mask
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        step: &Step<'_>,
    ) -> Result<(), PipelineError> {
        let Some(mask) = step.mask else { return Ok(()) };
        mask.check_width(row.n_logits())?;
        row.apply_mask(mask);
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "a mask never changes a logit")]
mod tests {
    use super::*;

    /// Returns words in which a token is allowed when `is_allowed` says so.
    fn words<W: MaskWord + From<bool>>(
        n_logits: usize,
        is_allowed: impl Fn(usize) -> bool,
        join: impl Fn(W, usize) -> W,
    ) -> Vec<W> {
        let mut words = vec![W::NONE; n_logits.div_ceil(W::BITS)];
        for token in (0..n_logits).filter(|&token| is_allowed(token)) {
            let word = &mut words[token / W::BITS];
            *word = join(*word, token % W::BITS);
        }
        words
    }

    /// Sets of allowed tokens that take every path of the loop.
    const PATTERNS: &[fn(usize) -> bool] = &[
        |_| true,
        |_| false,
        |token| token % 3 == 1,
        |token| token / 64 % 2 == 0,
        |token| token == 70,
    ];

    #[test]
    fn masked_rows_equal_a_plain_loop_at_every_width() {
        for n_logits in [0, 1, 31, 32, 33, 63, 64, 65, 128, 200] {
            for is_allowed in PATTERNS {
                let u32s = words(n_logits, is_allowed, |w: u32, i| w | 1 << i);
                let u64s = words(n_logits, is_allowed, |w: u64, i| w | 1 << i);
                let usizes =
                    words(n_logits, is_allowed, |w: usize, i| w | 1 << i);
                let expected: Vec<f32> =
                    (0..n_logits)
                        .map(|i| {
                            if is_allowed(i) { 1.5 } else { f32::NEG_INFINITY }
                        })
                        .collect();
                let allowed: Vec<TokenId> = (0..n_logits)
                    .filter(|&token| is_allowed(token))
                    .map(TokenId::from_index)
                    .collect();
                for mask in [
                    MaskBits::from(&*u32s),
                    MaskBits::from(&*u64s),
                    MaskBits::from(&*usizes),
                ] {
                    let mut row = vec![1.5; n_logits];
                    mask.mask_logits(&mut row);
                    assert_eq!(row, expected);
                    let mut visited = Vec::new();
                    mask.for_each_allowed(|token| visited.push(token));
                    assert_eq!(visited, allowed);
                    assert_eq!(mask.n_allowed(), allowed.len());
                    assert!(allowed.iter().all(|&t| mask.is_allowed(t)));
                    let beyond = TokenId::from_index(n_logits + 64);
                    assert!(!mask.is_allowed(beyond));
                }
            }
        }
    }

    /// Compares with a loop over the bits, for one kind of logit and word.
    fn equals_a_plain_loop<L: Logit + PartialEq + std::fmt::Debug, W>(
        value: impl Fn(usize) -> L,
        join: impl Fn(W, usize) -> W,
    ) where
        W: MaskWord + From<bool> + std::fmt::Debug,
    {
        let widths =
            (0..=70).chain([127, 128, 129, 191, 192, 200, 1_000, 4_111]);
        for n_logits in widths {
            for is_allowed in PATTERNS {
                let words = words(n_logits, is_allowed, &join);
                let mut row: Vec<L> = (0..n_logits).map(&value).collect();
                let mut expected = row.clone();
                for (index, logit) in expected.iter_mut().enumerate() {
                    if !words[index / W::BITS].is_set(index % W::BITS) {
                        *logit = L::FORBIDDEN;
                    }
                }
                mask_logits(&mut row, &words);
                assert_eq!(row, expected, "{n_logits} logits, {words:?}");
            }
        }
    }

    fn small(index: usize) -> u16 {
        u16::try_from(index % 97).unwrap_or(0)
    }

    #[test]
    fn every_kind_of_logit_and_word_equals_a_plain_loop() {
        fn with<L: Logit + PartialEq + std::fmt::Debug>(
            value: fn(usize) -> L,
        ) {
            equals_a_plain_loop(value, |word: u32, bit| word | 1 << bit);
            equals_a_plain_loop(value, |word: u64, bit| word | 1 << bit);
            equals_a_plain_loop(value, |word: usize, bit| word | 1 << bit);
        }
        with::<f32>(|index| f32::from(small(index)) - 40.0);
        with::<half::f16>(|index| {
            half::f16::from_f32(f32::from(small(index)) - 40.0)
        });
        with::<half::bf16>(|index| {
            half::bf16::from_f32(f32::from(small(index)) - 40.0)
        });
    }

    #[test]
    fn logits_keep_their_bits() {
        let nan = half::f16::from_bits(0x7e01);
        let mut row = [nan; 40];
        mask_logits(&mut row, &[0x8000_0001_u32, 2]);
        for (index, logit) in row.iter().enumerate() {
            let is_allowed = [0, 31, 33].contains(&index);
            let expected = if is_allowed { nan } else { Logit::FORBIDDEN };
            assert_eq!(logit.to_bits(), expected.to_bits());
        }
    }

    #[test]
    fn short_masks_forbid_and_long_masks_are_cut() {
        let mut row = [1.0; 70];
        mask_logits(&mut row, &[u32::MAX]);
        assert_eq!(row[..32], [1.0; 32]);
        assert_eq!(row[32..], [f32::NEG_INFINITY; 38]);
        let mut row = [1.0; 3];
        mask_logits(&mut row, &[0b11_u64, 1]);
        assert_eq!(row, [1.0, 1.0, f32::NEG_INFINITY]);
    }
}
