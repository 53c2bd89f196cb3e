//! A matrix product with weights that may be quantised.

use std::borrow::Cow;
use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{Device, Module, Storage, Tensor};

use super::error::ModelError;

/// `x · Wᵀ` for rows of `x`, with one or several `W` over the same input.
///
/// Matrices that read the same input (queries, keys and values; gate and up)
/// are stacked into one where their types agree: one pass over the input and
/// one dispatch in place of several.
#[derive(Clone, Debug)]
pub(super) struct Linear {
    parts: Vec<(QMatMul, usize)>,
    n_in: usize,
    n_out: usize,
}

impl Linear {
    /// Stacks matrices of `n_in` columns. Their shapes have been checked.
    pub(super) fn stack(
        weights: Vec<Arc<QTensor>>,
        n_in: usize,
    ) -> Result<Linear, ModelError> {
        let weights = match merge(&weights, n_in)? {
            Some(merged) => vec![Arc::new(merged)],
            None => weights,
        };
        let mut parts = Vec::with_capacity(weights.len());
        for weight in weights {
            let n_out = weight.shape().elem_count() / n_in;
            parts.push((QMatMul::from_arc(weight)?, n_out));
        }
        let n_out = parts.iter().map(|(_, n_out)| n_out).sum();
        Ok(Linear { parts, n_in, n_out })
    }

    /// Multiplies rows of `n_in` entries, and replaces `out` by rows of
    /// `n_out`.
    pub(super) fn forward(
        &self,
        rows: &[f32],
        out: &mut Vec<f32>,
    ) -> Result<(), ModelError> {
        let n_rows = rows.len() / self.n_in;
        let rows =
            Tensor::from_slice(rows, (n_rows, self.n_in), &Device::Cpu)?;
        out.clear();
        if let [(weight, _)] = self.parts.as_slice() {
            return read(&weight.forward(&rows)?, |values| {
                out.extend_from_slice(values);
            });
        }
        out.resize(n_rows * self.n_out, 0.0);
        let mut start = 0;
        for (weight, n_out) in &self.parts {
            read(&weight.forward(&rows)?, |values| {
                let sources = values.chunks_exact(*n_out);
                let targets = out.chunks_exact_mut(self.n_out);
                for (target, source) in targets.zip(sources) {
                    target[start..start + n_out].copy_from_slice(source);
                }
            })?;
            start += n_out;
        }
        Ok(())
    }
}

/// Puts matrices of one block type below each other. Rows are whole blocks,
/// so this is a concatenation of bytes.
fn merge(
    weights: &[Arc<QTensor>],
    n_in: usize,
) -> Result<Option<QTensor>, ModelError> {
    let Some(first) = weights.first().filter(|_| weights.len() > 1) else {
        return Ok(None);
    };
    let dtype = first.dtype();
    if weights.iter().any(|weight| weight.dtype() != dtype) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let mut n_out = 0;
    for weight in weights {
        bytes.extend_from_slice(&weight.data()?);
        n_out += weight.shape().elem_count() / n_in;
    }
    let storage =
        QStorage::from_data(Cow::Owned(bytes), &first.device(), dtype)?;
    Ok(Some(QTensor::new(storage, (n_out, n_in))?))
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
    let (start, end) = layout.contiguous_offsets().ok_or_else(|| {
        candle_core::Error::Msg("expected a contiguous tensor".into())
    })?;
    Ok(use_values(&values[start..end]))
}

/// Turns weights of a type that the tensor library multiplies one element at
/// a time into a type for which it has vector code.
///
/// The target has eight bits for the four or five of the source, so what
/// this rounds is far below what the source has rounded already.
pub(super) fn with_vector_code(
    weight: QTensor,
) -> Result<QTensor, ModelError> {
    match weight.dtype() {
        GgmlDType::Q4_1
        | GgmlDType::Q5_0
        | GgmlDType::Q5_1
        | GgmlDType::Q8_1 => {
            let wide = weight.dequantize(&Device::Cpu)?;
            Ok(QTensor::quantize(&wide, GgmlDType::Q8_0)?)
        }
        _ => Ok(weight),
    }
}
