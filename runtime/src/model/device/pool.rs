//! Keys and values of all sequences of a model, on a device.

use candle_core::{DType, Device, Tensor};

use super::super::cache::{BLOCK_LEN, KvLayout};
use super::super::error::ModelError;

/// How many blocks there are room for at first.
const N_FIRST: usize = 32;

/// Keys and values of all sequences: for each layer its keys, then its
/// values; by position in the pool; by the entries of all heads.
#[derive(Debug)]
pub(super) struct Pool(Tensor);

impl Pool {
    pub(super) fn new(
        layout: KvLayout,
        device: &Device,
    ) -> Result<Pool, ModelError> {
        let KvLayout { n_layers, n_kv_heads, head_dim } = layout;
        let shape = (2 * n_layers, N_FIRST * BLOCK_LEN, n_kv_heads * head_dim);
        Ok(Pool(Tensor::zeros(shape, DType::F32, device)?))
    }

    /// Makes sure that block `to` is there, and copies block `from` to it if
    /// one is given.
    pub(super) fn make(
        &mut self,
        to: usize,
        from: Option<usize>,
    ) -> Result<(), ModelError> {
        let (n_halves, n_positions, width) = self.0.dims3()?;
        let asked = (to + 1) * BLOCK_LEN;
        if asked > n_positions {
            let n = asked.max(2 * n_positions);
            let shape = (n_halves, n, width);
            let grown = Tensor::zeros(shape, DType::F32, self.0.device())?;
            grown.slice_set(&self.0, 1, 0)?;
            self.0 = grown;
        }
        if let Some(from) = from {
            let block = self.0.narrow(1, from * BLOCK_LEN, BLOCK_LEN)?;
            let block = block.force_contiguous()?;
            self.0.slice_set(&block, 1, to * BLOCK_LEN)?;
        }
        Ok(())
    }

    /// Returns the keys and the values of a layer, which are written in
    /// place.
    pub(super) fn layer(
        &self,
        index: usize,
    ) -> Result<(Tensor, Tensor), ModelError> {
        Ok((self.0.get(2 * index)?, self.0.get(2 * index + 1)?))
    }
}
