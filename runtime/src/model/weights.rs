//! Where a model's tensors come from, under one set of names.

use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};

use super::error::ModelError;
use super::gguf::Gguf;
use super::linear::read;
use super::safetensors::Safetensors;

/// The tensors of a llama-family model.
#[derive(Clone, Copy, Debug)]
pub(super) enum Name {
    Embedding,
    OutputNorm,
    Output,
    AttentionNorm(usize),
    Query(usize),
    Key(usize),
    Value(usize),
    AttentionOutput(usize),
    FeedForwardNorm(usize),
    Gate(usize),
    Up(usize),
    Down(usize),
}

impl Name {
    fn in_gguf(self) -> String {
        let (layer, part) = match self {
            Name::Embedding => return "token_embd.weight".into(),
            Name::OutputNorm => return "output_norm.weight".into(),
            Name::Output => return "output.weight".into(),
            Name::AttentionNorm(layer) => (layer, "attn_norm"),
            Name::Query(layer) => (layer, "attn_q"),
            Name::Key(layer) => (layer, "attn_k"),
            Name::Value(layer) => (layer, "attn_v"),
            Name::AttentionOutput(layer) => (layer, "attn_output"),
            Name::FeedForwardNorm(layer) => (layer, "ffn_norm"),
            Name::Gate(layer) => (layer, "ffn_gate"),
            Name::Up(layer) => (layer, "ffn_up"),
            Name::Down(layer) => (layer, "ffn_down"),
        };
        format!("blk.{layer}.{part}.weight")
    }

    fn in_safetensors(self) -> String {
        let (layer, part) = match self {
            Name::Embedding => return "model.embed_tokens.weight".into(),
            Name::OutputNorm => return "model.norm.weight".into(),
            Name::Output => return "lm_head.weight".into(),
            Name::AttentionNorm(layer) => (layer, "input_layernorm"),
            Name::Query(layer) => (layer, "self_attn.q_proj"),
            Name::Key(layer) => (layer, "self_attn.k_proj"),
            Name::Value(layer) => (layer, "self_attn.v_proj"),
            Name::AttentionOutput(layer) => (layer, "self_attn.o_proj"),
            Name::FeedForwardNorm(layer) => {
                (layer, "post_attention_layernorm")
            }
            Name::Gate(layer) => (layer, "mlp.gate_proj"),
            Name::Up(layer) => (layer, "mlp.up_proj"),
            Name::Down(layer) => (layer, "mlp.down_proj"),
        };
        format!("model.layers.{layer}.{part}.weight")
    }
}

/// A source of tensors.
pub(super) enum Weights<'a> {
    Gguf(&'a mut Gguf),
    Safetensors(Safetensors),
}

impl Weights<'_> {
    /// Returns true if and only if the source has the tensor.
    pub(super) fn has(&self, name: Name) -> bool {
        match self {
            Weights::Gguf(gguf) => gguf.has_tensor(&name.in_gguf()),
            Weights::Safetensors(files) => {
                files.shape(&name.in_safetensors()).is_some()
            }
        }
    }

    /// Reads a matrix.
    pub(super) fn matrix(
        &mut self,
        name: Name,
        shape: [usize; 2],
    ) -> Result<Arc<QTensor>, ModelError> {
        let tensor = match self {
            Weights::Gguf(gguf) => {
                let tensor = gguf.tensor(&name.in_gguf(), &Device::Cpu)?;
                check(&name.in_gguf(), &shape, tensor.shape().dims())?;
                tensor
            }
            Weights::Safetensors(files) => {
                let tensor = load(files, name, &shape)?;
                QTensor::quantize(&tensor, GgmlDType::F32)?
            }
        };
        Ok(Arc::new(tensor))
    }

    /// Reads a vector.
    pub(super) fn vector(
        &mut self,
        name: Name,
        len: usize,
    ) -> Result<Vec<f32>, ModelError> {
        let tensor = match self {
            Weights::Gguf(gguf) => {
                let tensor = gguf.tensor(&name.in_gguf(), &Device::Cpu)?;
                check(&name.in_gguf(), &[len], tensor.shape().dims())?;
                tensor.dequantize(&Device::Cpu)?
            }
            Weights::Safetensors(files) => load(files, name, &[len])?,
        };
        read(&tensor, <[f32]>::to_vec)
    }
}

fn load(
    files: &mut Safetensors,
    name: Name,
    shape: &[usize],
) -> Result<Tensor, ModelError> {
    let key = name.in_safetensors();
    match files.shape(&key) {
        Some(found) => check(&key, shape, found)?,
        None => return Err(absent(key, shape)),
    }
    files.tensor(&key)?.ok_or_else(|| absent(key, shape))
}

fn check(
    name: &str,
    expected: &[usize],
    found: &[usize],
) -> Result<(), ModelError> {
    if expected == found {
        return Ok(());
    }
    Err(ModelError::Tensor {
        name: name.to_owned(),
        expected: expected.to_vec(),
        found: format!("{found:?}"),
    })
}

fn absent(name: String, expected: &[usize]) -> ModelError {
    ModelError::Tensor {
        name,
        expected: expected.to_vec(),
        found: "nothing".into(),
    }
}
