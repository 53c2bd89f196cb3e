//! The tensors of a transformer, for whatever computes with them.
//!
//! Which tensors there are, and how they are joined, is the same for every
//! body. What a matrix and a vector are is not: the processor's body has its
//! own packed formats, that of an accelerator has tensors on a device.

use std::fmt::Debug;
use std::sync::Arc;

use candle_core::quantized::QTensor;

use super::config::{Config, Feature};
use super::error::ModelError;
use super::linear::Matrix;
use super::names::{Name, Part};
use super::rope::Rope;
use super::weights::Weights;
use super::{Feed, KvCache};

/// What computes, and how it holds tensors.
pub(super) trait Backend: Debug {
    type Matrix: Debug;
    type Vector: Debug;

    /// Takes matrices of `n_in` columns, which lie below each other.
    fn matrix(
        &self,
        weights: Vec<Arc<QTensor>>,
        n_in: usize,
    ) -> Result<Self::Matrix, ModelError>;

    /// Takes the embedding as the matrix of the output.
    fn tied(
        &self,
        embedding: &Matrix,
        weight: Arc<QTensor>,
        shape: [usize; 2],
    ) -> Result<Self::Matrix, ModelError>;

    fn vector(&self, values: Vec<f32>) -> Result<Self::Vector, ModelError>;
}

/// All tensors of a transformer.
#[derive(Debug)]
pub(super) struct Body<B: Backend> {
    pub(super) config: Config,
    /// Those of each rotary embedding.
    pub(super) frequencies: Vec<Vec<f64>>,
    /// In the processor's memory for every body: rows are looked up in it.
    pub(super) embedding: Matrix,
    pub(super) layers: Vec<Layer<B>>,
    pub(super) output_norm: B::Vector,
    pub(super) output: B::Matrix,
    /// The number formats of the weights.
    pub(super) formats: String,
}

#[derive(Debug)]
pub(super) struct Layer<B: Backend> {
    pub(super) attention_norm: B::Vector,
    /// Queries, keys and values, one below the other.
    pub(super) qkv: Projection<B>,
    pub(super) head_norms: Option<HeadNorms<B>>,
    pub(super) attention_output: Projection<B>,
    pub(super) attention_post_norm: Option<B::Vector>,
    pub(super) feed_forward_norm: B::Vector,
    /// The gate, then the up projection.
    pub(super) gate_up: Projection<B>,
    pub(super) down: Projection<B>,
    pub(super) feed_forward_post_norm: Option<B::Vector>,
}

/// A matrix product, and what is added to each row of it.
#[derive(Debug)]
pub(super) struct Projection<B: Backend> {
    pub(super) matrix: B::Matrix,
    pub(super) bias: Option<B::Vector>,
}

#[derive(Debug)]
pub(super) struct HeadNorms<B: Backend> {
    pub(super) query: B::Vector,
    pub(super) key: B::Vector,
}

impl<B: Backend> Body<B> {
    /// Takes the tensors of a model.
    pub(super) fn load(
        backend: &B,
        config: Config,
        mut weights: Weights<'_>,
    ) -> Result<Body<B>, ModelError> {
        let Config { width, vocab_size, .. } = config;
        let shape = [vocab_size, width];
        let weight = weights.matrix(Name::Embedding, shape)?;
        let embedding = Matrix::new(Arc::clone(&weight))?;
        let is_tied = config.is_tied;
        let output = if is_tied.unwrap_or(!weights.has(Name::Output)) {
            weights.ignore(Name::Output);
            backend.tied(&embedding, weight, shape)?
        } else {
            let output = weights.matrix(Name::Output, shape)?;
            backend.matrix(vec![output], width)?
        };
        let layers = (0..config.n_layers)
            .map(|index| Layer::load(backend, &config, &mut weights, index))
            .collect::<Result<_, _>>()?;
        let output_norm = norm(&config, &mut weights, Name::OutputNorm, width);
        let body = Body {
            frequencies: config.ropes.iter().map(Rope::frequencies).collect(),
            embedding,
            layers,
            output_norm: backend.vector(output_norm?)?,
            output,
            formats: weights.formats(),
            config,
        };
        weights.finish()?;
        Ok(body)
    }

    /// Refuses a batch with tokens that are unknown or do not fit, or with
    /// another model's caches.
    pub(super) fn check(
        &self,
        batch: &[Feed<'_>],
        is_own: impl Fn(&KvCache) -> bool,
    ) -> Result<(), ModelError> {
        let size = self.config.vocab_size;
        for feed in batch {
            if feed.tokens.is_empty() {
                return Err(ModelError::EmptyFeed);
            }
            if feed.cache.layout() != self.config.kv_layout()
                || !is_own(feed.cache)
            {
                return Err(ModelError::ForeignCache);
            }
            let asked = feed.cache.len() + feed.tokens.len();
            let limit = self.config.context_length;
            if asked > limit {
                return Err(ModelError::ContextFull { limit, asked });
            }
            if let Some(token) = feed.tokens.iter().find(|token| {
                usize::try_from(**token).map_or(true, |token| token >= size)
            }) {
                return Err(ModelError::UnknownToken { token: *token, size });
            }
        }
        Ok(())
    }

    /// Returns the rows of the embedding that tokens have.
    pub(super) fn embed(
        &self,
        tokens: &[u32],
    ) -> Result<Vec<f32>, ModelError> {
        let mut rows = self.embedding.rows(tokens)?;
        let scale = self.config.embedding_scale;
        for x in &mut rows {
            *x *= scale;
        }
        Ok(rows)
    }
}

impl<B: Backend> Layer<B> {
    fn load(
        backend: &B,
        config: &Config,
        weights: &mut Weights<'_>,
        index: usize,
    ) -> Result<Layer<B>, ModelError> {
        let Config { width, ff_width, head_dim, .. } = *config;
        let n_query = config.n_heads * head_dim;
        let n_kv = config.n_kv_heads * head_dim;
        let mut stack = |parts: &[(Part, usize)], n_in, bias: Feature| {
            let matrices = parts.iter().map(|(part, n_out)| {
                weights.matrix(Name::Part(index, *part), [*n_out, n_in])
            });
            let matrices = matrices.collect::<Result<_, _>>()?;
            let matrix = backend.matrix(matrices, n_in)?;
            let mut all = Vec::new();
            for (part, n_out) in parts.iter().filter(|_| config.has(bias)) {
                all.extend(weights.vector(Name::Bias(index, *part), *n_out)?);
            }
            let bias =
                (!all.is_empty()).then(|| backend.vector(all)).transpose()?;
            Ok::<_, ModelError>(Projection { matrix, bias })
        };
        let is_fused = config.has(Feature::Fused);
        let qkv: &[_] = if is_fused {
            &[(Part::Qkv, n_query + 2 * n_kv)]
        } else {
            &[(Part::Query, n_query), (Part::Key, n_kv), (Part::Value, n_kv)]
        };
        let gate_up: &[_] = if is_fused {
            &[(Part::GateUp, 2 * ff_width)]
        } else {
            &[(Part::Gate, ff_width), (Part::Up, ff_width)]
        };
        let qkv = stack(qkv, width, Feature::QkvBias)?;
        let gate_up = stack(gate_up, width, Feature::FeedForwardBias)?;
        let attention_output = stack(
            &[(Part::AttentionOutput, width)],
            n_query,
            Feature::OutputBias,
        )?;
        let down =
            stack(&[(Part::Down, width)], ff_width, Feature::FeedForwardBias)?;
        let has_post_norms = config.has(Feature::PostNorms);
        let mut norm = |part, len| {
            let values = norm(config, weights, Name::Part(index, part), len);
            backend.vector(values?)
        };
        Ok(Layer {
            attention_norm: norm(Part::AttentionNorm, width)?,
            qkv,
            head_norms: if config.has(Feature::HeadNorms) {
                Some(HeadNorms {
                    query: norm(Part::QueryNorm, head_dim)?,
                    key: norm(Part::KeyNorm, head_dim)?,
                })
            } else {
                None
            },
            attention_output,
            attention_post_norm: has_post_norms
                .then(|| norm(Part::AttentionPostNorm, width))
                .transpose()?,
            feed_forward_norm: if has_post_norms {
                norm(Part::FeedForwardPreNorm, width)?
            } else {
                norm(Part::FeedForwardNorm, width)?
            },
            gate_up,
            down,
            feed_forward_post_norm: has_post_norms
                .then(|| norm(Part::FeedForwardPostNorm, width))
                .transpose()?,
        })
    }
}

/// Reads the weights of a normalisation.
fn norm(
    config: &Config,
    weights: &mut Weights<'_>,
    name: Name,
    len: usize,
) -> Result<Vec<f32>, ModelError> {
    let mut values = weights.vector(name, len)?;
    if config.has(Feature::NormsLessOne) {
        for x in &mut values {
            *x += 1.0;
        }
    }
    Ok(values)
}
