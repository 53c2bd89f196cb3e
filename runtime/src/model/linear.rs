//! A matrix product with weights that may be quantised.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{Device, Layout, Module, Storage, Tensor};

use super::error::ModelError;
use super::packed::Packed;

/// One matrix, in the form that multiplies fastest here.
#[derive(Clone, Debug)]
pub(super) enum Matrix {
    Packed(Packed),
    Library(QMatMul),
}

impl Matrix {
    pub(super) fn new(weight: Arc<QTensor>) -> Result<Matrix, ModelError> {
        let weight = with_product(weight)?;
        if let Some(packed) = Packed::new(&weight)? {
            return Ok(Matrix::Packed(packed));
        }
        Ok(Matrix::Library(QMatMul::from_arc(weight)?))
    }

    /// Multiplies rows of `n_in` entries, and replaces `out` by the product.
    fn forward(
        &self,
        rows: &[f32],
        n_in: usize,
        out: &mut Vec<f32>,
    ) -> Result<(), ModelError> {
        match self {
            Matrix::Packed(packed) => packed.forward(rows, out),
            Matrix::Library(weight) => {
                let shape = (rows.len() / n_in, n_in);
                let rows = Tensor::from_slice(rows, shape, &Device::Cpu)?;
                out.clear();
                read(&weight.forward(&rows)?, |values| {
                    out.extend_from_slice(values);
                })?;
            }
        }
        Ok(())
    }

    /// Looks rows up by their index, which the caller has checked.
    pub(super) fn rows(
        &self,
        indices: &[u32],
    ) -> Result<Vec<f32>, ModelError> {
        match self {
            Matrix::Packed(packed) => {
                let mut out = Vec::new();
                for index in indices.iter().flat_map(|i| usize::try_from(*i)) {
                    packed.widen_row(index, &mut out);
                }
                Ok(out)
            }
            Matrix::Library(weight) => {
                let indices = Tensor::new(indices, &Device::Cpu)?;
                read(&weight.embedding(&indices)?, <[f32]>::to_vec)
            }
        }
    }
}

/// `x · Wᵀ` for rows of `x`, with one or several `W` over the same input.
///
/// Matrices that read the same input (queries, keys and values; gate and up)
/// are stacked into one where their types agree: one pass over the input and
/// one dispatch in place of several.
#[derive(Clone, Debug)]
pub(super) struct Linear {
    parts: Vec<(Matrix, usize)>,
    n_in: usize,
    n_out: usize,
}

impl Linear {
    /// Stacks matrices of `n_in` columns. Their shapes have been checked.
    pub(super) fn stack(
        weights: Vec<Arc<QTensor>>,
        n_in: usize,
    ) -> Result<Linear, ModelError> {
        let weights = merge(weights, n_in)?;
        let mut parts = Vec::with_capacity(weights.len());
        for weight in weights {
            let n_out = weight.shape().elem_count() / n_in;
            parts.push((Matrix::new(weight)?, n_out));
        }
        let n_out = parts.iter().map(|(_, n_out)| n_out).sum();
        Ok(Linear { parts, n_in, n_out })
    }

    /// Wraps one matrix.
    pub(super) fn single(matrix: Matrix, n_in: usize, n_out: usize) -> Linear {
        Linear { parts: vec![(matrix, n_out)], n_in, n_out }
    }

    /// Multiplies rows of `n_in` entries, and replaces `out` by rows of
    /// `n_out`.
    pub(super) fn forward(
        &self,
        rows: &[f32],
        out: &mut Vec<f32>,
    ) -> Result<(), ModelError> {
        if let [(matrix, _)] = self.parts.as_slice() {
            return matrix.forward(rows, self.n_in, out);
        }
        out.clear();
        out.resize(rows.len() / self.n_in * self.n_out, 0.0);
        let mut start = 0;
        let mut product = Vec::new();
        for (matrix, n_out) in &self.parts {
            matrix.forward(rows, self.n_in, &mut product)?;
            let sources = product.chunks_exact(*n_out);
            let targets = out.chunks_exact_mut(self.n_out);
            for (target, source) in targets.zip(sources) {
                target[start..start + n_out].copy_from_slice(source);
            }
            start += n_out;
        }
        Ok(())
    }
}

/// Puts matrices of one block type below each other, and returns others as
/// they are. Rows are whole blocks, so this is a concatenation of bytes.
pub(super) fn merge(
    weights: Vec<Arc<QTensor>>,
    n_in: usize,
) -> Result<Vec<Arc<QTensor>>, ModelError> {
    let Some(first) = weights.first().filter(|_| weights.len() > 1) else {
        return Ok(weights);
    };
    let dtype = first.dtype();
    if weights.iter().any(|weight| weight.dtype() != dtype) {
        return Ok(weights);
    }
    let mut bytes = Vec::new();
    let mut n_out = 0;
    for weight in &weights {
        bytes.extend_from_slice(&weight.data()?);
        n_out += weight.shape().elem_count() / n_in;
    }
    let storage =
        QStorage::from_data(Cow::Owned(bytes), &first.device(), dtype)?;
    Ok(vec![Arc::new(QTensor::new(storage, (n_out, n_in))?)])
}

/// Reads a contiguous tensor on the CPU without copying it.
pub(super) fn read<R>(
    tensor: &Tensor,
    use_values: impl FnOnce(&[f32]) -> R,
) -> Result<R, ModelError> {
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cpu(storage) = &*storage else {
        return Err(candle_core::Error::Msg(
            "expected a tensor in host memory".into(),
        )
        .into());
    };
    let values = storage.as_slice::<f32>()?;
    Ok(use_values(&values[contiguous(layout)?]))
}

/// Returns where the entries of a contiguous tensor are in its storage.
pub(super) fn contiguous(
    layout: &Layout,
) -> candle_core::Result<Range<usize>> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(start..end),
        None => candle_core::bail!("expected a contiguous tensor"),
    }
}

/// Turns weights of the type that files use for inputs alone, and that the
/// tensor library does not multiply by, into one that is multiplied by here.
fn with_product(weight: Arc<QTensor>) -> Result<Arc<QTensor>, ModelError> {
    if weight.dtype() != GgmlDType::Q8_1 {
        return Ok(weight);
    }
    let wide = weight.dequantize(&Device::Cpu)?;
    Ok(Arc::new(QTensor::quantize(&wide, GgmlDType::Q8_0)?))
}
