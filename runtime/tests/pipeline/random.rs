//! Random numbers and masks, for the tests of pipelines from inside and from
//! outside.

use rand_chacha::{ChaCha8Rng, rand_core::RngCore};

/// Returns a number below `n`.
pub(crate) fn below(random: &mut ChaCha8Rng, n: u32) -> u32 {
    random.next_u32() % n
}

/// Returns a mask that allows about one token in `sparsity`.
pub(crate) fn random_mask(
    random: &mut ChaCha8Rng,
    n_logits: usize,
    sparsity: u32,
) -> Vec<u32> {
    let mut words = vec![0; n_logits.div_ceil(32)];
    for token in 0..n_logits {
        if below(random, sparsity) == 0 {
            words[token / 32] |= 1 << (token % 32);
        }
    }
    words
}
