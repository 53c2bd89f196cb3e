//! The strongest tokens of a row of logits that a mask allows, found where
//! the row lies.
//!
//! The mask goes to the device as packed bits, one kernel reads bits and
//! logits, and what comes back is a handful of tokens. What the pipeline
//! makes of them is decided on the processor, so that both give one answer.

use candle_core::{CpuStorage, CustomOp2, Layout, Shape, Tensor, WithDType};

use super::super::error::ModelError;
use super::super::linear::contiguous;

/// How many tokens can be asked for.
pub(super) const MAX_STRONGEST: usize = 1 << 10;

/// How many more than that may tie with the last.
const MAX_TIES: usize = 64;

/// The strongest tokens of a row.
pub(in super::super) type Found = Vec<(u32, f32)>;

/// Returns the `k` strongest tokens that the mask allows, and what ties with
/// the last of them, in no order; fewer where fewer are allowed. Logits of
/// minus infinity are none.
///
/// `mask` has a bit for each token of `row`, lowest bits first; what is past
/// its end is forbidden. The answer is `None` where it needs the whole row:
/// when a logit is NaN or positive infinity, be it one that is forbidden,
/// when too many tie, when `k` is above [`MAX_STRONGEST`], and on devices
/// that have no kernel for it.
pub(in super::super) fn strongest(
    row: &Tensor,
    mask: &[u32],
    k: usize,
) -> Result<Option<Found>, ModelError> {
    if k == 0 || k > MAX_STRONGEST || row.device().is_metal() {
        return Ok(None);
    }
    let mask = Tensor::from_slice(mask, mask.len(), row.device())?;
    let found = row.apply_op2_no_bwd(&mask, &Strongest { k })?;
    let found = found.to_vec1::<u32>()?;
    let [n_found, is_bad, pairs @ ..] = found.as_slice() else {
        return Ok(None);
    };
    let (pairs, _) = pairs.as_chunks::<2>();
    let n_found = usize::try_from(*n_found).unwrap_or(usize::MAX);
    let pairs = pairs.get(..n_found).filter(|_| *is_bad == 0);
    let found = |&[token, bits]: &[u32; 2]| (token, f32::from_bits(bits));
    Ok(pairs.map(|pairs| pairs.iter().map(found).collect()))
}

/// From a row of logits and the bits of its tokens to how many were found,
/// whether a logit was bad, and then tokens and the bits of their logits.
#[derive(Debug)]
struct Strongest {
    k: usize,
}

impl Strongest {
    fn capacity(&self) -> usize {
        self.k + MAX_TIES
    }

    fn shape(&self) -> Shape {
        Shape::from(2 + 2 * self.capacity())
    }
}

fn slice<'a, T: WithDType>(
    storage: &'a CpuStorage,
    layout: &Layout,
) -> candle_core::Result<&'a [T]> {
    Ok(&storage.as_slice::<T>()?[contiguous(layout)?])
}

impl CustomOp2 for Strongest {
    fn name(&self) -> &'static str {
        "strongest"
    }

    /// What the kernel does, slowly: the oracle of its test.
    fn cpu_fwd(
        &self,
        row: &CpuStorage,
        row_layout: &Layout,
        mask: &CpuStorage,
        mask_layout: &Layout,
    ) -> candle_core::Result<(CpuStorage, Shape)> {
        let row: &[f32] = slice(row, row_layout)?;
        let mask: &[u32] = slice(mask, mask_layout)?;
        let is_bad = row.iter().any(|x| x.is_nan() || *x == f32::INFINITY);
        let is_allowed = |index: usize| {
            mask.get(index / 32).is_some_and(|w| w >> (index % 32) & 1 == 1)
        };
        let allowed = |(index, x): &(usize, &f32)| {
            is_allowed(*index) && **x > f32::NEG_INFINITY
        };
        let allowed = row.iter().enumerate().filter(allowed);
        let mut sorted: Vec<f32> = allowed.clone().map(|it| *it.1).collect();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let least = sorted.get(self.k - 1).copied();
        let least = least.unwrap_or(f32::NEG_INFINITY);
        let mut out = vec![0, u32::from(is_bad)];
        for (index, x) in allowed.filter(|it| *it.1 >= least) {
            out[0] += 1;
            if out.len() < 2 + 2 * self.capacity() {
                out.extend([super::index(index)?, x.to_bits()]);
            }
        }
        out.resize(2 + 2 * self.capacity(), 0);
        Ok((CpuStorage::U32(out), self.shape()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        row: &candle_core::CudaStorage,
        row_layout: &Layout,
        mask: &candle_core::CudaStorage,
        mask_layout: &Layout,
    ) -> candle_core::Result<(candle_core::CudaStorage, Shape)> {
        let (capacity, k) = (self.capacity(), self.k);
        let (row, mask) = ((row, row_layout), (mask, mask_layout));
        let found = cuda::strongest(row, mask, k, capacity)?;
        Ok((found, self.shape()))
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use std::sync::OnceLock;

    use candle_core::backend::BackendStorage;
    use candle_core::cuda_backend::cudarc::driver::{
        LaunchConfig, PushKernelArg,
    };
    use candle_core::cuda_backend::cudarc::nvrtc;
    use candle_core::cuda_backend::{CudaStorage, WrapErr};
    use candle_core::{Layout, Result};

    use super::super::index;
    use super::contiguous;

    /// The threads of the one block that reads a row. The kernel knows it.
    const N_THREADS: u32 = 1024;

    /// Returns our kernels, which are compiled for the present device when
    /// they are first wanted.
    fn kernels() -> Result<&'static str> {
        static KERNELS: OnceLock<String> = OnceLock::new();
        if let Some(kernels) = KERNELS.get() {
            return Ok(kernels);
        }
        let compiled = nvrtc::compile_ptx(include_str!("strongest.cu"))
            .map_err(|e| {
                candle_core::Error::Msg(format!(
                    "the kernel for masks does not compile: {e:?}"
                ))
            })?;
        Ok(KERNELS.get_or_init(|| compiled.to_src()))
    }

    pub(super) fn strongest(
        (row, row_layout): (&CudaStorage, &Layout),
        (mask, mask_layout): (&CudaStorage, &Layout),
        k: usize,
        capacity: usize,
    ) -> Result<CudaStorage> {
        let device = row.device();
        let (logits, words) =
            (contiguous(row_layout)?, contiguous(mask_layout)?);
        let (n_logits, n_words) = (index(logits.len())?, index(words.len())?);
        let row = row.as_cuda_slice::<f32>()?.slice(logits);
        let mask = mask.as_cuda_slice::<u32>()?.slice(words);
        let found = device.alloc_zeros::<u32>(2 + 2 * capacity)?;
        let (k, capacity) = (index(k)?, index(capacity)?);
        let kernel = device.get_or_load_custom_func(
            "strongest",
            "maskwright_strongest",
            kernels()?,
        )?;
        let mut call = kernel.builder();
        call.arg(&row).arg(&mask).arg(&found);
        call.arg(&n_logits).arg(&n_words).arg(&k).arg(&capacity);
        let config = LaunchConfig {
            grid_dim: (1, 1, 1),
            block_dim: (N_THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the arguments are those of the kernel, which reads
        // `n_logits` and `n_words` entries and writes at most `capacity`
        // pairs after the first two entries of `found`.
        unsafe { call.launch(config) }.w()?;
        Ok(CudaStorage::wrap_cuda_slice(found, device.clone()))
    }
}
