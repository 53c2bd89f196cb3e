//! A transformer on the CPU, for every architecture that is built here.
//!
//! Pre-normalised layers with rotary positions, grouped-query attention and a
//! gated feed-forward block. What architectures do differently stands in the
//! [`Config`]: biases, norms of heads and behind blocks, windows, activation
//! and scales. Everything between the matrix products is plain loops over the
//! rows of the batch.
//!
//! # Batches
//!
//! A forward pass takes any number of sequences, each with any number of new
//! tokens. All their tokens go through the matrix products as rows of one
//! matrix, and only attention looks at which row belongs to which sequence.
//! A row is computed in one order whatever stands beside it and on however
//! many threads, so that feeding a prompt whole, in chunks, in a batch or
//! after a shared beginning gives the same bits.

use rayon::prelude::*;

use super::cache::KvCache;
use super::config::{Activation, Config, Feature};
use super::error::ModelError;
use super::kernels;
use super::linear::{Linear, Matrix};
use super::names::{Name, Part};
use super::rope::{Angles, Rope};
use super::simd::Version;
use super::weights::Weights;
use super::{Feed, Logits, Model};

/// From this many multiplications on, attention is worth spreading over
/// threads.
const MIN_PARALLEL_WORK: usize = 1 << 20;

/// A transformer.
#[derive(Debug)]
pub(super) struct Transformer {
    config: Config,
    /// Those of each rotary embedding.
    frequencies: Vec<Vec<f64>>,
    embedding: Matrix,
    layers: Vec<Layer>,
    output_norm: Vec<f32>,
    output: Linear,
    /// The number formats of the weights.
    formats: String,
}

#[derive(Debug)]
struct Layer {
    attention_norm: Vec<f32>,
    /// Queries, keys and values, one below the other.
    qkv: Projection,
    head_norms: Option<HeadNorms>,
    attention_output: Projection,
    attention_post_norm: Option<Vec<f32>>,
    feed_forward_norm: Vec<f32>,
    /// The gate, then the up projection.
    gate_up: Projection,
    down: Projection,
    feed_forward_post_norm: Option<Vec<f32>>,
}

/// A matrix product, and what is added to each row of it.
#[derive(Debug)]
struct Projection {
    linear: Linear,
    /// Empty where there is none.
    bias: Vec<f32>,
}

#[derive(Debug)]
struct HeadNorms {
    query: Vec<f32>,
    key: Vec<f32>,
}

/// Buffers of one forward pass, reused from layer to layer.
#[derive(Default)]
struct Scratch {
    normed: Vec<f32>,
    qkv: Vec<f32>,
    attended: Vec<f32>,
    delta: Vec<f32>,
    gate_up: Vec<f32>,
    gated: Vec<f32>,
}

/// Where a row of the flattened batch belongs.
#[derive(Clone, Copy)]
struct Place {
    sequence: usize,
    position: usize,
}

impl Transformer {
    /// Builds the model from its tensors.
    pub(super) fn load(
        config: Config,
        mut weights: Weights<'_>,
    ) -> Result<Transformer, ModelError> {
        let Config { width, vocab_size, .. } = config;
        let shape = [vocab_size, width];
        let embedding = Matrix::new(weights.matrix(Name::Embedding, shape)?)?;
        let is_tied = config.is_tied;
        let output = if is_tied.unwrap_or(!weights.has(Name::Output)) {
            weights.ignore(Name::Output);
            embedding.clone()
        } else {
            Matrix::new(weights.matrix(Name::Output, shape)?)?
        };
        let layers = (0..config.n_layers)
            .map(|index| Layer::load(&config, &mut weights, index))
            .collect::<Result<_, _>>()?;
        let frequencies = config.ropes.iter().map(Rope::frequencies);
        let model = Transformer {
            frequencies: frequencies.collect(),
            embedding,
            layers,
            output_norm: norm(&config, &mut weights, Name::OutputNorm, width)?,
            output: Linear::single(output, width, vocab_size),
            formats: weights.formats(),
            config,
        };
        weights.finish()?;
        Ok(model)
    }

    /// Checks a batch, and returns the place of each of its rows.
    fn places(&self, batch: &[Feed<'_>]) -> Result<Vec<Place>, ModelError> {
        let size = self.config.vocab_size;
        let mut places = Vec::new();
        for (sequence, feed) in batch.iter().enumerate() {
            if feed.tokens.is_empty() {
                return Err(ModelError::EmptyFeed);
            }
            if feed.cache.layout() != self.config.kv_layout() {
                return Err(ModelError::ForeignCache);
            }
            let start = feed.cache.len();
            let end = start + feed.tokens.len();
            let limit = self.config.context_length;
            if end > limit {
                return Err(ModelError::ContextFull { limit, asked: end });
            }
            if let Some(token) = feed.tokens.iter().find(|token| {
                usize::try_from(**token).map_or(true, |token| token >= size)
            }) {
                return Err(ModelError::UnknownToken { token: *token, size });
            }
            places.extend(
                (start..end).map(|position| Place { sequence, position }),
            );
        }
        Ok(places)
    }

    fn embed(&self, batch: &[Feed<'_>]) -> Result<Vec<f32>, ModelError> {
        let tokens: Vec<u32> =
            batch.iter().flat_map(|feed| feed.tokens).copied().collect();
        let mut rows = self.embedding.rows(&tokens)?;
        let scale = self.config.embedding_scale;
        for x in &mut rows {
            *x *= scale;
        }
        Ok(rows)
    }

    fn attention(
        &self,
        index: usize,
        batch: &mut [Feed<'_>],
        places: &[Place],
        angles: &[Angles],
        scratch: &mut Scratch,
    ) {
        let Config { n_heads, n_kv_heads, head_dim, .. } = self.config;
        let angles = &angles[self.config.attention[index].rope];
        let head_norms = &self.layers[index].head_norms;
        let epsilon = self.config.rms_epsilon;
        let (n_query, n_kv) = (n_heads * head_dim, n_kv_heads * head_dim);
        let row_len = n_query + 2 * n_kv;
        for (row, (values, place)) in
            scratch.qkv.chunks_exact_mut(row_len).zip(places).enumerate()
        {
            let (turned, values) = values.split_at_mut(n_query + n_kv);
            if let Some(norms) = head_norms {
                let (queries, keys) = turned.split_at_mut(n_query);
                kernels::rms_norm_in_place(queries, &norms.query, epsilon);
                kernels::rms_norm_in_place(keys, &norms.key, epsilon);
            }
            angles.turn(row, turned, head_dim);
            let keys = &turned[n_query..];
            batch[place.sequence].cache.write(
                index,
                place.position,
                keys,
                values,
            );
        }
        let batch: &[Feed<'_>] = batch;
        scratch.attended.resize(places.len() * n_query, 0.0);
        let one_row = |((out, row), place): ((&mut [f32], &[f32]), &Place)| {
            self.attend(
                index,
                batch[place.sequence].cache,
                place.position + 1,
                &row[..n_query],
                out,
            );
        };
        let work: usize =
            places.iter().map(|place| place.position * n_query).sum();
        let outs = scratch.attended.chunks_exact_mut(n_query);
        if work < MIN_PARALLEL_WORK || places.len() == 1 {
            outs.zip(scratch.qkv.chunks_exact(row_len))
                .zip(places)
                .for_each(one_row);
        } else {
            scratch
                .attended
                .par_chunks_exact_mut(n_query)
                .zip(scratch.qkv.par_chunks_exact(row_len))
                .zip(places)
                .for_each(one_row);
        }
    }

    /// Lets the query heads of one row look at the first `n_positions`
    /// positions, or at as many of the last of them as the window has.
    fn attend(
        &self,
        layer: usize,
        cache: &KvCache,
        n_positions: usize,
        query: &[f32],
        out: &mut [f32],
    ) {
        let Config { n_heads, n_kv_heads, head_dim, .. } = self.config;
        let group = n_heads / n_kv_heads;
        let scale = self.config.score_scale;
        let window = self.config.attention[layer].window;
        let start =
            n_positions - window.unwrap_or(usize::MAX).min(n_positions);
        let seen = start..n_positions;
        let mut scores = vec![0.0; seen.len()];
        let heads = query.chunks_exact(head_dim);
        let outs = out.chunks_exact_mut(head_dim);
        for (head, (query, out)) in heads.zip(outs).enumerate() {
            let blocks = || cache.head(layer, head / group, seen.clone());
            let mut rest = scores.as_mut_slice();
            for (keys, _) in blocks() {
                let keys = keys.chunks_exact(head_dim);
                let (these, others) = rest.split_at_mut(keys.len());
                for (score, key) in these.iter_mut().zip(keys) {
                    *score = kernels::dot(query, key) * scale;
                }
                rest = others;
            }
            kernels::softmax(&mut scores);
            out.fill(0.0);
            let mut weights = scores.iter();
            for (_, values) in blocks() {
                let values = values.chunks_exact(head_dim);
                for (value, weight) in values.zip(&mut weights) {
                    kernels::add_scaled(out, *weight, value);
                }
            }
        }
    }

    fn layer(
        &self,
        index: usize,
        batch: &mut [Feed<'_>],
        places: &[Place],
        angles: &[Angles],
        stream: &mut [f32],
        scratch: &mut Scratch,
    ) -> Result<(), ModelError> {
        let layer = &self.layers[index];
        let epsilon = self.config.rms_epsilon;
        let norm = &layer.attention_norm;
        kernels::rms_norm(stream, norm, epsilon, &mut scratch.normed);
        layer.qkv.forward(&scratch.normed, &mut scratch.qkv)?;
        self.attention(index, batch, places, angles, scratch);
        layer
            .attention_output
            .forward(&scratch.attended, &mut scratch.delta)?;
        self.add(stream, layer.attention_post_norm.as_deref(), scratch);
        let norm = &layer.feed_forward_norm;
        kernels::rms_norm(stream, norm, epsilon, &mut scratch.normed);
        layer.gate_up.forward(&scratch.normed, &mut scratch.gate_up)?;
        let width = self.config.ff_width;
        let gate = match self.config.activation {
            Activation::Silu => kernels::swiglu,
            Activation::GeluTanh => kernels::geglu,
        };
        gate(&scratch.gate_up, width, &mut scratch.gated);
        layer.down.forward(&scratch.gated, &mut scratch.delta)?;
        self.add(stream, layer.feed_forward_post_norm.as_deref(), scratch);
        Ok(())
    }

    /// Adds what a block gave to the stream, normalised if there is a norm
    /// for it.
    fn add(
        &self,
        stream: &mut [f32],
        norm: Option<&[f32]>,
        scratch: &mut Scratch,
    ) {
        if let Some(norm) = norm {
            let epsilon = self.config.rms_epsilon;
            kernels::rms_norm_in_place(&mut scratch.delta, norm, epsilon);
        }
        kernels::add(stream, &scratch.delta);
    }

    /// Computes the logits of the rows that were asked for.
    fn output(
        &self,
        batch: &[Feed<'_>],
        stream: &[f32],
        logits: &mut Logits,
    ) -> Result<(), ModelError> {
        let width = self.config.width;
        let mut wanted = Vec::new();
        let mut counts = Vec::with_capacity(batch.len());
        let mut rest = stream;
        for feed in batch {
            let rows;
            (rows, rest) = rest.split_at(feed.tokens.len() * width);
            let n_rows = feed.n_rows();
            wanted.extend_from_slice(&rows[rows.len() - n_rows * width..]);
            counts.push(n_rows);
        }
        let values = logits.reset(self.config.vocab_size, &counts);
        if wanted.is_empty() {
            return Ok(());
        }
        let mut normed = Vec::new();
        let epsilon = self.config.rms_epsilon;
        kernels::rms_norm(&wanted, &self.output_norm, epsilon, &mut normed);
        self.output.forward(&normed, values)
    }

    fn run(
        &self,
        batch: &mut [Feed<'_>],
        logits: &mut Logits,
    ) -> Result<(), ModelError> {
        let places = self.places(batch)?;
        let mut stream = self.embed(batch)?;
        for feed in batch.iter_mut() {
            feed.cache.reserve(feed.tokens.len());
        }
        let angles: Vec<Angles> = self
            .config
            .ropes
            .iter()
            .zip(&self.frequencies)
            .map(|(rope, frequencies)| {
                let positions = places.iter().map(|place| place.position);
                Angles::new(rope, frequencies, positions)
            })
            .collect();
        let mut scratch = Scratch::default();
        for index in 0..self.layers.len() {
            self.layer(
                index,
                batch,
                &places,
                &angles,
                &mut stream,
                &mut scratch,
            )?;
        }
        self.output(batch, &stream, logits)
    }
}

impl Model for Transformer {
    fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }

    fn context_length(&self) -> usize {
        self.config.context_length
    }

    fn describe(&self) -> String {
        format!("cpu, {}; {}", Version::best().name(), self.formats)
    }

    fn new_cache(&self) -> KvCache {
        KvCache::new(self.config.kv_layout())
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

impl Projection {
    /// Multiplies rows, and replaces `out` by rows of outputs.
    fn forward(
        &self,
        rows: &[f32],
        out: &mut Vec<f32>,
    ) -> Result<(), ModelError> {
        self.linear.forward(rows, out)?;
        if !self.bias.is_empty() {
            for row in out.chunks_exact_mut(self.bias.len()) {
                kernels::add(row, &self.bias);
            }
        }
        Ok(())
    }
}

impl Layer {
    fn load(
        config: &Config,
        weights: &mut Weights<'_>,
        index: usize,
    ) -> Result<Layer, ModelError> {
        let Config { width, ff_width, head_dim, .. } = *config;
        let n_query = config.n_heads * head_dim;
        let n_kv = config.n_kv_heads * head_dim;
        let mut stack = |parts: &[(Part, usize)], n_in, bias: Feature| {
            let matrices = parts.iter().map(|(part, n_out)| {
                weights.matrix(Name::Part(index, *part), [*n_out, n_in])
            });
            let matrices = matrices.collect::<Result<_, _>>()?;
            let linear = Linear::stack(matrices, n_in)?;
            let mut all = Vec::new();
            for (part, n_out) in parts.iter().filter(|_| config.has(bias)) {
                all.extend(weights.vector(Name::Bias(index, *part), *n_out)?);
            }
            Ok::<_, ModelError>(Projection { linear, bias: all })
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
        let mut norm =
            |part, len| norm(config, weights, Name::Part(index, part), len);
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
