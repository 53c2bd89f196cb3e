//! Sets of tokens: lists while they are small, bitsets when they are large.

/// Above so many tokens, or-ing a bitset of a usual vocabulary is cheaper
/// than going through a list.
const DENSE_AT: usize = 448;
const BITS: usize = usize::BITS as usize;

/// A set of tokens of one vocabulary.
#[derive(Debug)]
pub(crate) enum TokenSet {
    /// In any order.
    Sparse(Box<[u32]>),
    /// One bit a token.
    Dense(Box<[usize]>),
}

impl TokenSet {
    /// Creates the set of everything in `slices`, in a vocabulary of so many
    /// blocks.
    pub(crate) fn new<'t>(
        slices: impl Iterator<Item = &'t [u32]> + Clone,
        n_blocks: usize,
    ) -> TokenSet {
        let len: usize = slices.clone().map(<[u32]>::len).sum();
        if len <= DENSE_AT.min(n_blocks) {
            let mut tokens = Vec::with_capacity(len);
            for slice in slices {
                tokens.extend_from_slice(slice);
            }
            return TokenSet::Sparse(tokens.into());
        }
        let mut blocks = vec![0; n_blocks];
        for slice in slices {
            insert_all(&mut blocks, slice);
        }
        TokenSet::Dense(blocks.into())
    }

    /// Creates the union of `sets`, in a vocabulary of so many blocks.
    pub(crate) fn union<'s>(
        sets: impl Iterator<Item = &'s TokenSet> + Clone,
        n_blocks: usize,
    ) -> TokenSet {
        let sparse = |set: &'s TokenSet| match set {
            TokenSet::Sparse(tokens) => Some(&**tokens),
            TokenSet::Dense(_) => None,
        };
        if sets.clone().all(|set| sparse(set).is_some()) {
            return TokenSet::new(sets.filter_map(sparse), n_blocks);
        }
        let mut blocks = vec![0; n_blocks];
        for set in sets {
            set.union_into(&mut blocks);
        }
        TokenSet::Dense(blocks.into())
    }

    /// Adds all of these tokens to `blocks`.
    pub(crate) fn union_into(&self, blocks: &mut [usize]) {
        match self {
            TokenSet::Sparse(tokens) => insert_all(blocks, tokens),
            TokenSet::Dense(dense) => {
                for (block, &more) in blocks.iter_mut().zip(dense) {
                    *block |= more;
                }
            }
        }
    }

    /// Makes `blocks`, which were empty, exactly this set.
    pub(crate) fn copy_into(&self, blocks: &mut [usize]) {
        match self {
            TokenSet::Sparse(tokens) => {
                blocks.fill(0);
                insert_all(blocks, tokens);
            }
            TokenSet::Dense(dense) => copy_blocks(blocks, dense),
        }
    }

    /// Returns about how many bytes of memory this set holds.
    pub(crate) fn memory(&self) -> usize {
        match self {
            TokenSet::Sparse(tokens) => size_of_val(&**tokens),
            TokenSet::Dense(blocks) => size_of_val(&**blocks),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, TokenSet::Sparse(tokens) if tokens.is_empty())
    }
}

/// How many blocks are copied at once.
const COPIED_AT_ONCE: usize = 128;

/// Copies a mask of as many blocks.
///
/// PERF: a piece at a time. To copy all 16 KB at once is left to the
/// processor's own string instruction by the C library, which on many
/// machines takes 8 microseconds, and not 0.25, where the target begins some
/// bytes after the source within a page.
pub(crate) fn copy_blocks(to: &mut [usize], from: &[usize]) {
    let pieces = to.chunks_mut(COPIED_AT_ONCE);
    for (to, from) in pieces.zip(from.chunks(COPIED_AT_ONCE)) {
        to.copy_from_slice(from);
    }
}

/// Adds `tokens` to `blocks`.
pub(crate) fn insert_all(blocks: &mut [usize], tokens: &[u32]) {
    for &token in tokens {
        blocks[token as usize / BITS] |= 1 << (token as usize % BITS);
    }
}

/// Removes `token` from `blocks`.
pub(crate) fn remove(blocks: &mut [usize], token: u32) {
    blocks[token as usize / BITS] &= !(1 << (token as usize % BITS));
}

/// Returns true if and only if `token` is in `blocks`.
pub(crate) fn contains(blocks: &[usize], token: u32) -> bool {
    blocks[token as usize / BITS] >> (token as usize % BITS) & 1 != 0
}
