//! The transformer on an accelerator, with candle's tensors.
//!
//! It computes what [`super::transformer`] computes, and keeps the logits
//! where they are: [`super::Logits`] copies them when somebody looks at them,
//! and finds the strongest of a row without that ([`strongest`]).
//!
//! # Keys and values
//!
//! All sequences share one pool of blocks on the device, as in
//! [vLLM](https://arxiv.org/abs/2309.06180): a [`KvCache`] holds the numbers
//! of its blocks, and forks share them. Attention gathers the positions of
//! all sequences that read one token into one tensor, padded to the longest,
//! so that the number of launches does not grow with the batch. A sequence
//! that reads several tokens goes through attention alone.
//!
//! # Precision
//!
//! Everything between the matrix products is `f32`. Quantised matrices stay
//! so, and those of 16 bits are multiplied in 16 bits, where the device can.
//! Logits may differ in their last bits with the rest of the batch, unlike
//! those of the processor's body.

mod attention;
mod pool;
mod strongest;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{D, DType, Device, Module, Tensor};
use candle_nn::ops;

use super::cache::{BlockPool, KvCache};
use super::config::{Activation, Config};
use super::error::ModelError;
use super::layers::{Backend, Body, HeadNorms, Layer, Projection};
use super::linear::{Matrix, merge};
use super::rope::{Angles, Pairing};
use super::weights::Weights;
use super::{Feed, Logits, Model};
use attention::Group;
use pool::Pool;
pub(super) use strongest::strongest;

/// A transformer on a device.
#[derive(Debug)]
pub(super) struct DeviceTransformer {
    body: Body<Tensors>,
    device: Device,
    blocks: Arc<BlockPool>,
    /// Held for a whole pass: passes of one model run one after the other.
    pool: Mutex<Pool>,
}

/// Matrices and vectors on a device.
#[derive(Debug)]
struct Tensors(Device);

/// Matrices of one input, whose products lie beside each other.
type Stack = Vec<DeviceMatrix>;

#[derive(Debug)]
enum DeviceMatrix {
    Quantised(QMatMul),
    /// Outputs by inputs.
    Dense(Tensor),
}

impl Backend for Tensors {
    type Matrix = Stack;
    type Vector = Tensor;

    fn matrix(
        &self,
        weights: Vec<Arc<QTensor>>,
        n_in: usize,
    ) -> Result<Stack, ModelError> {
        let weights = merge(weights, n_in)?;
        weights.iter().map(|weight| self.upload(weight)).collect()
    }

    fn tied(
        &self,
        _: &Matrix,
        weight: Arc<QTensor>,
        [_, n_in]: [usize; 2],
    ) -> Result<Stack, ModelError> {
        self.matrix(vec![weight], n_in)
    }

    fn vector(&self, values: Vec<f32>) -> Result<Tensor, ModelError> {
        let len = values.len();
        Ok(Tensor::from_vec(values, len, &self.0)?)
    }
}

impl Tensors {
    fn upload(&self, weight: &QTensor) -> Result<DeviceMatrix, ModelError> {
        let device = &self.0;
        // Products of 16 bits, where the device has them.
        let wide = match weight.dtype() {
            GgmlDType::F32 => Some(DType::F32),
            GgmlDType::F16 if device.is_cpu() => Some(DType::F32),
            GgmlDType::BF16 if !device.supports_bf16() => Some(DType::F32),
            GgmlDType::F16 => Some(DType::F16),
            GgmlDType::BF16 => Some(DType::BF16),
            _ => None,
        };
        if let Some(dtype) = wide {
            let dense = weight.dequantize(&Device::Cpu)?.to_dtype(dtype)?;
            return Ok(DeviceMatrix::Dense(dense.to_device(device)?));
        }
        let (dtype, shape) = (weight.dtype(), weight.shape().clone());
        let storage = QStorage::from_data(weight.data()?, device, dtype)?;
        let weight = Arc::new(QTensor::new(storage, shape)?);
        Ok(DeviceMatrix::Quantised(QMatMul::from_arc(weight)?))
    }
}

impl DeviceMatrix {
    /// Multiplies rows, which are contiguous.
    fn forward(&self, rows: &Tensor) -> Result<Tensor, ModelError> {
        Ok(match self {
            DeviceMatrix::Quantised(matrix) => matrix.forward(rows)?,
            DeviceMatrix::Dense(matrix) => rows
                .to_dtype(matrix.dtype())?
                .matmul(&matrix.t()?)?
                .to_dtype(DType::F32)?,
        })
    }
}

fn product(stack: &Stack, rows: &Tensor) -> Result<Tensor, ModelError> {
    let rows = rows.contiguous()?;
    if let [one] = stack.as_slice() {
        return one.forward(&rows);
    }
    let products = stack.iter().map(|matrix| matrix.forward(&rows));
    let products = products.collect::<Result<Vec<_>, _>>()?;
    Ok(Tensor::cat(&products, D::Minus1)?)
}

impl Projection<Tensors> {
    fn forward(&self, rows: &Tensor) -> Result<Tensor, ModelError> {
        let product = product(&self.matrix, rows)?;
        Ok(match &self.bias {
            Some(bias) => product.broadcast_add(bias)?,
            None => product,
        })
    }
}

/// What all layers of a pass read.
struct Pass {
    /// The cosines and sines of each rotary embedding; positions by one by
    /// pairs.
    angles: Vec<(Tensor, Tensor)>,
    /// Where the keys and values of each row go.
    targets: Tensor,
    groups: Vec<Group>,
}

impl DeviceTransformer {
    /// Builds the model from its tensors.
    pub(super) fn load(
        config: Config,
        weights: Weights<'_>,
        device: Device,
    ) -> Result<DeviceTransformer, ModelError> {
        let pool = Pool::new(config.kv_layout(), &device)?;
        let body = Body::load(&Tensors(device.clone()), config, weights)?;
        Ok(DeviceTransformer {
            body,
            device,
            blocks: Arc::default(),
            pool: Mutex::new(pool),
        })
    }

    fn run(
        &self,
        batch: &mut [Feed<'_>],
        logits: &mut Logits,
    ) -> Result<(), ModelError> {
        self.body.check(batch, |cache| cache.is_in(&self.blocks))?;
        let pool = &self.pool;
        let mut pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
        for feed in batch.iter_mut() {
            let n = feed.tokens.len();
            feed.cache.reserve_in_pool(n, |to, from| pool.make(to, from))?;
        }
        // Those of one token first, side by side.
        let mut order: Vec<usize> = (0..batch.len()).collect();
        order.sort_by_key(|&index| batch[index].tokens.len() > 1);
        let fed: Vec<&Feed<'_>> =
            order.iter().map(|&index| &batch[index]).collect();
        let pass = self.pass(&fed)?;
        let tokens: Vec<u32> =
            fed.iter().flat_map(|feed| feed.tokens).copied().collect();
        let shape = (tokens.len(), self.body.config.width);
        let stream = self.body.embed(&tokens)?;
        let mut stream = Tensor::from_vec(stream, shape, &self.device)?;
        for index in 0..self.body.layers.len() {
            stream = self.layer(index, &pass, &pool, &stream)?;
        }
        self.output(batch, &order, &stream, logits)
    }

    fn pass(&self, fed: &[&Feed<'_>]) -> Result<Pass, ModelError> {
        let config = &self.body.config;
        let device = &self.device;
        let positions = || {
            fed.iter().flat_map(|feed| {
                let start = feed.cache.len();
                start..start + feed.tokens.len()
            })
        };
        let angles = config.ropes.iter().zip(&self.body.frequencies);
        let angles = angles.map(|(rope, frequencies)| {
            let angles = Angles::new(rope, frequencies, positions());
            let (cosines, sines) = angles.split();
            let shape = (positions().count(), 1, frequencies.len());
            Ok::<_, ModelError>((
                Tensor::from_vec(cosines, shape, device)?,
                Tensor::from_vec(sines, shape, device)?,
            ))
        });
        let places = fed.iter().flat_map(|feed| {
            let start = feed.cache.len();
            feed.cache.places_in_pool(start..start + feed.tokens.len())
        });
        let places = places.map(index).collect::<Result<Vec<u32>, _>>()?;
        let n_kv = config.n_kv_heads * config.head_dim;
        let shape = (places.len(), 1);
        let targets = Tensor::from_vec(places, shape, device)?
            .broadcast_as((shape.0, n_kv))?
            .contiguous()?;
        let n_single = fed.partition_point(|feed| feed.tokens.len() == 1);
        let (single, several) = fed.split_at(n_single);
        let mut groups = Vec::new();
        let mut start = 0;
        for group in [single].into_iter().chain(several.chunks(1)) {
            if !group.is_empty() {
                let group = Group::new(group, start, config, device)?;
                start += group.n_rows();
                groups.push(group);
            }
        }
        Ok(Pass { angles: angles.collect::<Result<_, _>>()?, targets, groups })
    }

    fn layer(
        &self,
        index: usize,
        pass: &Pass,
        pool: &Pool,
        stream: &Tensor,
    ) -> Result<Tensor, ModelError> {
        let layer = &self.body.layers[index];
        let epsilon = self.body.config.rms_epsilon;
        let normed = ops::rms_norm(stream, &layer.attention_norm, epsilon)?;
        let attended = self.attention(index, layer, pass, pool, &normed)?;
        let delta = layer.attention_output.forward(&attended)?;
        let stream =
            self.add(stream, delta, layer.attention_post_norm.as_ref())?;
        let norm = &layer.feed_forward_norm;
        let normed = ops::rms_norm(&stream, norm, epsilon)?;
        let both = layer.gate_up.forward(&normed)?;
        let width = self.body.config.ff_width;
        let gate = both.narrow(D::Minus1, 0, width)?;
        let gate = match self.body.config.activation {
            Activation::Silu => gate.silu()?,
            Activation::GeluTanh => gate.gelu()?,
        };
        let gated = (gate * both.narrow(D::Minus1, width, width)?)?;
        let delta = layer.down.forward(&gated)?;
        self.add(&stream, delta, layer.feed_forward_post_norm.as_ref())
    }

    /// Adds what a block gave to the stream, normalised if there is a norm
    /// for it.
    fn add(
        &self,
        stream: &Tensor,
        delta: Tensor,
        norm: Option<&Tensor>,
    ) -> Result<Tensor, ModelError> {
        let delta = match norm {
            Some(norm) => {
                ops::rms_norm(&delta, norm, self.body.config.rms_epsilon)?
            }
            None => delta,
        };
        Ok((stream + delta)?)
    }

    fn attention(
        &self,
        index: usize,
        layer: &Layer<Tensors>,
        pass: &Pass,
        pool: &Pool,
        normed: &Tensor,
    ) -> Result<Tensor, ModelError> {
        let config = &self.body.config;
        let Config { n_heads, n_kv_heads, head_dim, .. } = *config;
        let qkv = layer.qkv.forward(normed)?;
        let n_rows = qkv.dim(0)?;
        let n_kv = n_kv_heads * head_dim;
        let values = qkv.narrow(1, n_heads * head_dim + n_kv, n_kv)?;
        let heads = n_heads + n_kv_heads;
        let turned = qkv
            .narrow(1, 0, heads * head_dim)?
            .reshape((n_rows, heads, head_dim))?;
        let turned = self.norm_heads(turned, layer.head_norms.as_ref())?;
        let kind = config.attention[index];
        let turned = turn(
            &turned,
            config.ropes[kind.rope].pairing,
            &pass.angles[kind.rope],
        )?;
        let queries = turned.narrow(1, 0, n_heads)?;
        let keys = turned.narrow(1, n_heads, n_kv_heads)?;
        let keys = keys.contiguous()?.reshape((n_rows, n_kv))?;
        let values = values.contiguous()?;
        let (all_keys, all_values) = pool.layer(index)?;
        all_keys.scatter_set(&pass.targets, &keys, 0)?;
        all_values.scatter_set(&pass.targets, &values, 0)?;
        let attended = pass.groups.iter().map(|group| {
            group.attend(&queries, &all_keys, &all_values, config, kind.window)
        });
        let attended = attended.collect::<Result<Vec<_>, _>>()?;
        Ok(match attended.as_slice() {
            [one] => one.clone(),
            several => Tensor::cat(several, 0)?,
        })
    }

    fn norm_heads(
        &self,
        heads: Tensor,
        norms: Option<&HeadNorms<Tensors>>,
    ) -> Result<Tensor, ModelError> {
        let Some(norms) = norms else { return Ok(heads) };
        let Config { n_heads, n_kv_heads, rms_epsilon, .. } = self.body.config;
        let norm = |start, len, norm| {
            let heads = heads.narrow(1, start, len)?.contiguous()?;
            ops::rms_norm(&heads, norm, rms_epsilon)
        };
        let queries = norm(0, n_heads, &norms.query)?;
        let keys = norm(n_heads, n_kv_heads, &norms.key)?;
        Ok(Tensor::cat(&[queries, keys], 1)?)
    }

    /// Computes the logits of the rows that were asked for, in the order of
    /// the batch.
    fn output(
        &self,
        batch: &[Feed<'_>],
        order: &[usize],
        stream: &Tensor,
        logits: &mut Logits,
    ) -> Result<(), ModelError> {
        let mut ends = vec![0; batch.len()];
        let mut end = 0;
        for &index in order {
            end += batch[index].tokens.len();
            ends[index] = end;
        }
        let counts: Vec<usize> = batch.iter().map(Feed::n_rows).collect();
        let wanted = ends.iter().zip(&counts).flat_map(|(e, n)| e - n..*e);
        let wanted = wanted.map(index).collect::<Result<Vec<u32>, _>>()?;
        let vocab_size = self.body.config.vocab_size;
        if wanted.is_empty() {
            logits.reset(vocab_size, &counts);
            return Ok(());
        }
        let wanted = Tensor::new(wanted, &self.device)?;
        let rows = stream.index_select(&wanted, 0)?;
        let norm = &self.body.output_norm;
        let rows = ops::rms_norm(&rows, norm, self.body.config.rms_epsilon)?;
        let rows = product(&self.body.output, &rows)?;
        logits.put(rows.contiguous()?, &counts)
    }
}

/// Turns the heads of each row by the angles of its position.
fn turn(
    heads: &Tensor,
    pairing: Pairing,
    (cosines, sines): &(Tensor, Tensor),
) -> Result<Tensor, ModelError> {
    let (n_rows, n_heads, head_dim) = heads.dims3()?;
    let n_turned = 2 * cosines.dim(D::Minus1)?;
    let part = heads.narrow(2, 0, n_turned)?.contiguous()?;
    let part = part.reshape((n_rows, n_heads, 1, n_turned))?;
    let turned = match pairing {
        Pairing::Halves => candle_nn::rotary_emb::rope(&part, cosines, sines)?,
        Pairing::Neighbours => {
            candle_nn::rotary_emb::rope_i(&part, cosines, sines)?
        }
    };
    let turned = turned.reshape((n_rows, n_heads, n_turned))?;
    if n_turned == head_dim {
        return Ok(turned);
    }
    let rest = heads.narrow(2, n_turned, head_dim - n_turned)?;
    Ok(Tensor::cat(&[turned, rest.contiguous()?], 2)?)
}

/// Returns an index as the device counts.
fn index(index: usize) -> candle_core::Result<u32> {
    u32::try_from(index).map_err(|_| {
        candle_core::Error::Msg(format!(
            "index {index} does not fit 32 bits: use fewer or shorter \
             sequences at once"
        ))
    })
}

impl Model for DeviceTransformer {
    fn vocab_size(&self) -> usize {
        self.body.config.vocab_size
    }

    fn context_length(&self) -> usize {
        self.body.config.context_length
    }

    fn describe(&self) -> String {
        let device = match &self.device {
            Device::Cpu => "candle on the cpu",
            Device::Cuda(_) => "cuda",
            Device::Metal(_) => "metal",
        };
        format!("{device}; {}", self.body.formats)
    }

    fn new_cache(&self) -> KvCache {
        KvCache::in_pool(self.body.config.kv_layout(), &self.blocks)
    }

    fn forward(
        &self,
        batch: &mut [Feed<'_>],
        logits: &mut Logits,
    ) -> Result<(), ModelError> {
        self.run(batch, logits)?;
        for feed in batch {
            feed.cache.commit(feed.tokens.len());
        }
        Ok(())
    }
}
