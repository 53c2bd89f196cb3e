//! The keys and values that attention has already computed, as a value.
//!
//! A [`KvCache`] is what a model remembers of one sequence. It can be cut
//! back ([`KvCache::truncate`]) and forked ([`KvCache::fork`]) at any length,
//! and neither copies what both sides keep: the cache is a list of
//! reference-counted blocks of [`BLOCK_LEN`] positions, and a block is copied
//! only when a sequence writes into one that another still holds. Appending a
//! token never moves what is already there.
//!
//! The blocks of a model on an accelerator lie in one pool of that model; a
//! cache holds their numbers, with the same reference counts, and the model
//! reads and writes them.
//!
//! # Layout
//!
//! A block holds all layers of its positions: layer, then keys and values,
//! then key-value head, then position, then the entries of one head. The
//! positions of one head are contiguous, which is the order in which
//! attention reads them.

use std::convert::Infallible;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Positions per block.
///
/// The block is the unit of sharing: small enough that the copy a fork pays
/// on its first write stays under a millisecond, large enough that the inner
/// loops of attention run over contiguous memory.
pub const BLOCK_LEN: usize = 32;

/// The sizes that a cache needs to know of its model.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KvLayout {
    /// The number of transformer layers.
    pub n_layers: usize,
    /// The number of key-value heads in a layer.
    pub n_kv_heads: usize,
    /// The entries of one head.
    pub head_dim: usize,
}

impl KvLayout {
    /// The entries of one head over the positions of a block.
    fn head_len(self) -> usize {
        BLOCK_LEN * self.head_dim
    }

    fn block_len(self) -> usize {
        self.n_layers * 2 * self.n_kv_heads * self.head_len()
    }

    fn offset(self, layer: usize, half: Half, head: usize) -> usize {
        ((layer * 2 + half as usize) * self.n_kv_heads + head)
            * self.head_len()
    }
}

#[derive(Clone, Copy)]
enum Half {
    Keys = 0,
    Values = 1,
}

/// What a model remembers of one sequence.
pub struct KvCache {
    layout: KvLayout,
    /// Invariant: at least `len.div_ceil(BLOCK_LEN)` blocks.
    blocks: Blocks,
    len: usize,
}

#[derive(Clone)]
enum Blocks {
    /// In the processor's memory.
    Host(Vec<Arc<[f32]>>),
    /// In a model's pool.
    Device(Arc<BlockPool>, Vec<Arc<PoolBlock>>),
}

impl Blocks {
    fn host(&self) -> &[Arc<[f32]>] {
        match self {
            Blocks::Host(blocks) => blocks,
            Blocks::Device(..) => &[],
        }
    }

    fn device(&self) -> &[Arc<PoolBlock>] {
        match self {
            Blocks::Host(_) => &[],
            Blocks::Device(_, blocks) => blocks,
        }
    }

    fn len(&self) -> usize {
        self.host().len() + self.device().len()
    }

    fn truncate(&mut self, n: usize) {
        match self {
            Blocks::Host(blocks) => blocks.truncate(n),
            Blocks::Device(_, blocks) => blocks.truncate(n),
        }
    }
}

/// Makes `blocks` as many as `len` positions and `n` more need. `make` makes
/// one, which holds what another does if one is given: that into which the
/// new positions go, if others hold it, too.
fn reserve<T: ?Sized, E>(
    blocks: &mut Vec<Arc<T>>,
    len: usize,
    n: usize,
    mut make: impl FnMut(Option<&T>) -> Result<Arc<T>, E>,
) -> Result<(), E> {
    let n_blocks = (len + n).div_ceil(BLOCK_LEN);
    blocks.truncate(n_blocks);
    if n > 0
        && !len.is_multiple_of(BLOCK_LEN)
        && let Some(block) = blocks.get_mut(len / BLOCK_LEN)
        && Arc::get_mut(block).is_none()
    {
        *block = make(Some(&**block))?;
    }
    while blocks.len() < n_blocks {
        blocks.push(make(None)?);
    }
    Ok(())
}

/// Which blocks of a model's pool are in use.
#[derive(Debug, Default)]
pub(super) struct BlockPool(Mutex<FreeBlocks>);

#[derive(Debug, Default)]
struct FreeBlocks {
    free: Vec<usize>,
    /// The number of blocks that were ever handed out.
    n_blocks: usize,
}

impl BlockPool {
    fn take(pool: &Arc<BlockPool>) -> Arc<PoolBlock> {
        let mut state = pool.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = state.free.pop().unwrap_or_else(|| {
            state.n_blocks += 1;
            state.n_blocks - 1
        });
        Arc::new(PoolBlock { index, pool: Arc::clone(pool) })
    }
}

/// One block of a pool, which goes back to it.
#[derive(Debug)]
struct PoolBlock {
    index: usize,
    pool: Arc<BlockPool>,
}

impl Drop for PoolBlock {
    fn drop(&mut self) {
        let state = &self.pool.0;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.free.push(self.index);
    }
}

impl KvCache {
    /// Creates an empty cache.
    pub fn new(layout: KvLayout) -> KvCache {
        KvCache { layout, blocks: Blocks::Host(Vec::new()), len: 0 }
    }

    /// Creates an empty cache whose blocks lie in a pool.
    pub(super) fn in_pool(layout: KvLayout, pool: &Arc<BlockPool>) -> KvCache {
        let blocks = Blocks::Device(Arc::clone(pool), Vec::new());
        KvCache { layout, blocks, len: 0 }
    }

    /// Returns true if and only if the blocks lie in a pool.
    pub(super) fn is_on_device(&self) -> bool {
        matches!(self.blocks, Blocks::Device(..))
    }

    /// Returns true if and only if the blocks lie in this pool.
    pub(super) fn is_in(&self, pool: &Arc<BlockPool>) -> bool {
        match &self.blocks {
            Blocks::Host(_) => false,
            Blocks::Device(own, _) => Arc::ptr_eq(own, pool),
        }
    }

    /// Returns the sizes that this cache was made for.
    pub fn layout(&self) -> KvLayout {
        self.layout
    }

    /// Returns the number of positions that hold keys and values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if and only if no position is held.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets every position from `len` on. A `len` past the end changes
    /// nothing.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.blocks.truncate(self.len.div_ceil(BLOCK_LEN));
    }

    /// Returns a cache with the same content, which it shares until either
    /// side writes.
    #[must_use]
    pub fn fork(&self) -> KvCache {
        KvCache {
            layout: self.layout,
            blocks: self.blocks.clone(),
            len: self.len,
        }
    }

    /// Returns the bytes of the blocks that this cache refers to. Blocks that
    /// forks share are counted by each of them.
    pub fn memory_usage(&self) -> usize {
        self.blocks.len() * self.layout.block_len() * size_of::<f32>()
    }

    /// Returns what tells each block from all others that are alive, and the
    /// bytes of one. Blocks that two caches share are the same.
    pub(crate) fn blocks(&self) -> (impl Iterator<Item = usize>, usize) {
        let host = self.blocks.host().iter();
        let device = self.blocks.device().iter();
        let ids = host
            .map(|block| block.as_ptr().addr())
            .chain(device.map(|block| Arc::as_ptr(block).addr()));
        (ids, self.layout.block_len() * size_of::<f32>())
    }

    /// Makes room for `n` more positions, and makes sure that writing them
    /// reaches no other cache.
    ///
    /// The positions count only after [`KvCache::commit`], so that a forward
    /// pass which fails midway leaves the sequence as it was.
    pub fn reserve(&mut self, n: usize) {
        let block_len = self.layout.block_len();
        let Blocks::Host(blocks) = &mut self.blocks else {
            debug_assert!(false, "the model reserves in its pool");
            return;
        };
        let make = |from: Option<&[f32]>| {
            Ok::<_, Infallible>(match from {
                Some(block) => Arc::from(block),
                None => std::iter::repeat_n(0.0, block_len).collect(),
            })
        };
        let Ok(()) = reserve(blocks, self.len, n, make);
    }

    /// Does what [`KvCache::reserve`] does in a pool. `make` makes sure that
    /// a block is there, with what another holds if one is given.
    pub(super) fn reserve_in_pool<E>(
        &mut self,
        n: usize,
        mut make: impl FnMut(usize, Option<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Blocks::Device(pool, blocks) = &mut self.blocks else {
            debug_assert!(false, "the blocks are in a pool");
            return Ok(());
        };
        reserve(blocks, self.len, n, |from: Option<&PoolBlock>| {
            let block = BlockPool::take(pool);
            make(block.index, from.map(|block| block.index))?;
            Ok(block)
        })
    }

    /// Returns where positions lie in the pool, counted in positions.
    pub(super) fn places_in_pool(
        &self,
        positions: Range<usize>,
    ) -> impl Iterator<Item = usize> {
        let blocks = self.blocks.device();
        positions.filter_map(|position| {
            let block = blocks.get(position / BLOCK_LEN)?;
            Some(block.index * BLOCK_LEN + position % BLOCK_LEN)
        })
    }

    /// Writes the keys and values of every head at `position`, which must
    /// have been reserved; otherwise nothing is written.
    pub fn write(
        &mut self,
        layer: usize,
        position: usize,
        keys: &[f32],
        values: &[f32],
    ) {
        let KvLayout { head_dim, .. } = self.layout;
        let in_block = position % BLOCK_LEN * head_dim;
        let block = match &mut self.blocks {
            Blocks::Host(blocks) => blocks.get_mut(position / BLOCK_LEN),
            Blocks::Device(..) => None,
        };
        let Some(block) = block.and_then(Arc::get_mut) else {
            debug_assert!(false, "position {position} is not reserved");
            return;
        };
        for (half, source) in [(Half::Keys, keys), (Half::Values, values)] {
            for (head, source) in source.chunks_exact(head_dim).enumerate() {
                let start = self.layout.offset(layer, half, head) + in_block;
                block[start..start + head_dim].copy_from_slice(source);
            }
        }
    }

    /// Counts `n` written positions in.
    pub fn commit(&mut self, n: usize) {
        self.len += n;
        debug_assert!(self.blocks.len() * BLOCK_LEN >= self.len);
    }

    /// Returns the keys and the values of one head, block by block, over a
    /// range of positions, reserved ones included.
    pub fn head(
        &self,
        layer: usize,
        head: usize,
        positions: Range<usize>,
    ) -> impl Iterator<Item = (&[f32], &[f32])> {
        let layout = self.layout;
        let keys = layout.offset(layer, Half::Keys, head);
        let values = layout.offset(layer, Half::Values, head);
        let Range { start, end } = positions;
        let first = start / BLOCK_LEN;
        let blocks = self.blocks.host().get(first..).unwrap_or_default();
        (first..).zip(blocks).map_while(move |(index, block)| {
            let base = index * BLOCK_LEN;
            let skipped = start.saturating_sub(base) * layout.head_dim;
            let len = end.checked_sub(base)?.min(BLOCK_LEN) * layout.head_dim;
            (len > skipped).then(|| {
                let range = skipped..len;
                (&block[keys..][range.clone()], &block[values..][range])
            })
        })
    }
}

impl fmt::Debug for KvCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KvCache")
            .field("layout", &self.layout)
            .field("len", &self.len)
            .field("blocks", &self.blocks.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: KvLayout =
        KvLayout { n_layers: 2, n_kv_heads: 3, head_dim: 4 };

    /// Appends positions whose entries spell their place.
    fn append(cache: &mut KvCache, n: usize, mark: f32) {
        let start = cache.len();
        cache.reserve(n);
        for position in start..start + n {
            for layer in 0..LAYOUT.n_layers {
                let row = row(layer, position, mark);
                let values: Vec<f32> = row.iter().map(|x| -x).collect();
                cache.write(layer, position, &row, &values);
            }
        }
        cache.commit(n);
    }

    fn row(layer: usize, position: usize, mark: f32) -> Vec<f32> {
        (0..12u16)
            .map(|i| {
                let place = u16::try_from(layer * 1000 + position * 16);
                f32::from(place.expect("small") + i) + mark
            })
            .collect()
    }

    fn check(cache: &KvCache, marks: &[(usize, f32)]) {
        let mark_at = |position| {
            marks.iter().find(|(end, _)| position < *end).expect("marked").1
        };
        for layer in 0..LAYOUT.n_layers {
            for head in 0..LAYOUT.n_kv_heads {
                let mut position = 0;
                for (keys, values) in cache.head(layer, head, 0..cache.len()) {
                    for (key, value) in keys.chunks(4).zip(values.chunks(4)) {
                        let row = row(layer, position, mark_at(position));
                        let row = &row[head * 4..head * 4 + 4];
                        assert_eq!(key, row, "position {position}");
                        let negated: Vec<f32> =
                            row.iter().map(|r| -r).collect();
                        assert_eq!(value, negated);
                        position += 1;
                    }
                }
                assert_eq!(position, cache.len());
            }
        }
    }

    #[test]
    fn what_is_written_is_read_back_across_blocks() {
        let mut cache = KvCache::new(LAYOUT);
        for n in [1, 30, 1, 1, 64, 5] {
            append(&mut cache, n, 0.0);
            check(&cache, &[(usize::MAX, 0.0)]);
        }
        assert_eq!(cache.len(), 102);
    }

    #[test]
    fn a_range_of_positions_may_begin_and_end_anywhere() {
        let mut cache = KvCache::new(LAYOUT);
        append(&mut cache, 100, 0.0);
        for (start, end) in [(0, 0), (5, 9), (31, 33), (32, 64), (63, 100)] {
            let read: Vec<f32> = cache
                .head(1, 2, start..end)
                .flat_map(|(keys, _)| keys.chunks(4).map(|key| key[0]))
                .collect();
            let expected: Vec<f32> = (start..end)
                .map(|position| row(1, position, 0.0)[8])
                .collect();
            assert_eq!(read, expected, "{start}..{end}");
        }
    }

    #[test]
    fn a_fork_and_its_origin_do_not_see_each_other() {
        for cut in [0, 1, 31, 32, 33, 40] {
            let mut cache = KvCache::new(LAYOUT);
            append(&mut cache, 40, 0.0);
            let mut fork = cache.fork();
            fork.truncate(cut);
            append(&mut fork, 50, 0.5);
            append(&mut cache, 3, 0.25);
            check(&cache, &[(40, 0.0), (usize::MAX, 0.25)]);
            check(&fork, &[(cut, 0.0), (usize::MAX, 0.5)]);
        }
    }

    #[test]
    fn reserved_positions_do_not_count_until_they_are_committed() {
        let mut cache = KvCache::new(LAYOUT);
        append(&mut cache, 10, 0.0);
        let fork = cache.fork();
        cache.reserve(40);
        assert_eq!(cache.len(), 10);
        cache.truncate(10);
        append(&mut cache, 2, 0.5);
        check(&cache, &[(10, 0.0), (usize::MAX, 0.5)]);
        check(&fork, &[(usize::MAX, 0.0)]);
    }

    #[test]
    fn truncate_past_the_end_changes_nothing() {
        let mut cache = KvCache::new(LAYOUT);
        append(&mut cache, 7, 0.0);
        cache.truncate(100);
        assert_eq!(cache.len(), 7);
        cache.truncate(0);
        assert!(cache.is_empty());
        assert_eq!(cache.memory_usage(), 0);
    }
}
