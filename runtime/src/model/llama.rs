//! Models of the llama family, on the CPU.
//!
//! Pre-normalised transformer layers with rotary positions, grouped-query
//! attention and a SwiGLU feed-forward block, embeddings tied to the output
//! or not. The matrix products are candle's; everything between them is plain
//! loops over the rows of the batch.
//!
//! # Batches
//!
//! A forward pass takes any number of sequences, each with any number of new
//! tokens. All their tokens go through the matrix products as rows of one
//! matrix, and only attention looks at which row belongs to which sequence.
//! A row is computed in one order whatever stands beside it, so with weights
//! whose product is row-invariant (the quantised types but Q6_K) feeding a
//! prompt whole, in chunks or in a batch gives the same bits.

use rayon::prelude::*;

use super::cache::KvCache;
use super::config::Config;
use super::error::ModelError;
use super::kernels;
use super::linear::{Linear, Matrix};
use super::rope::Angles;
use super::weights::{Name, Weights};
use super::{Feed, Logits, Model};

/// From this many multiplications on, attention is worth spreading over
/// threads.
const MIN_PARALLEL_WORK: usize = 1 << 20;

/// A model of the llama family.
#[derive(Debug)]
pub(super) struct Llama {
    config: Config,
    frequencies: Vec<f64>,
    embedding: Matrix,
    layers: Vec<Layer>,
    output_norm: Vec<f32>,
    output: Linear,
}

#[derive(Debug)]
struct Layer {
    attention_norm: Vec<f32>,
    /// Queries, keys and values, one below the other.
    qkv: Linear,
    attention_output: Linear,
    feed_forward_norm: Vec<f32>,
    /// The gate, then the up projection.
    gate_up: Linear,
    down: Linear,
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

impl Llama {
    /// Builds the model from its tensors.
    pub(super) fn load(
        config: Config,
        mut weights: Weights<'_>,
    ) -> Result<Llama, ModelError> {
        let Config { width, vocab_size, .. } = config;
        let shape = [vocab_size, width];
        let embedding = Matrix::new(weights.matrix(Name::Embedding, shape)?)?;
        let output = if weights.has(Name::Output) {
            Matrix::new(weights.matrix(Name::Output, shape)?)?
        } else {
            embedding.clone()
        };
        let layers = (0..config.n_layers)
            .map(|index| Layer::load(&config, &mut weights, index))
            .collect::<Result<_, _>>()?;
        Ok(Llama {
            frequencies: config.rope.frequencies(),
            embedding,
            layers,
            output_norm: weights.vector(Name::OutputNorm, width)?,
            output: Linear::single(output, width, vocab_size),
            config,
        })
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
        self.embedding.rows(&tokens)
    }

    fn attention(
        &self,
        index: usize,
        batch: &mut [Feed<'_>],
        places: &[Place],
        angles: &Angles,
        scratch: &mut Scratch,
    ) {
        let Config { n_heads, n_kv_heads, head_dim, .. } = self.config;
        let (n_query, n_kv) = (n_heads * head_dim, n_kv_heads * head_dim);
        let row_len = n_query + 2 * n_kv;
        for (row, (values, place)) in
            scratch.qkv.chunks_exact_mut(row_len).zip(places).enumerate()
        {
            let (turned, values) = values.split_at_mut(n_query + n_kv);
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
    /// positions.
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
        #[expect(
            clippy::cast_precision_loss,
            reason = "head widths are far below 2^24"
        )]
        let scale = 1.0 / (head_dim as f32).sqrt();
        let mut scores = vec![0.0; n_positions];
        let heads = query.chunks_exact(head_dim);
        let outs = out.chunks_exact_mut(head_dim);
        for (head, (query, out)) in heads.zip(outs).enumerate() {
            let blocks = || cache.head(layer, head / group, n_positions);
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
        angles: &Angles,
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
        kernels::add(stream, &scratch.delta);
        let norm = &layer.feed_forward_norm;
        kernels::rms_norm(stream, norm, epsilon, &mut scratch.normed);
        layer.gate_up.forward(&scratch.normed, &mut scratch.gate_up)?;
        let width = self.config.ff_width;
        kernels::swiglu(&scratch.gate_up, width, &mut scratch.gated);
        layer.down.forward(&scratch.gated, &mut scratch.delta)?;
        kernels::add(stream, &scratch.delta);
        Ok(())
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
        let angles = Angles::new(
            self.config.rope.pairing,
            &self.frequencies,
            places.iter().map(|place| place.position),
        );
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

impl Model for Llama {
    fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }

    fn context_length(&self) -> usize {
        self.config.context_length
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

impl Layer {
    fn load(
        config: &Config,
        weights: &mut Weights<'_>,
        index: usize,
    ) -> Result<Layer, ModelError> {
        let Config { width, ff_width, head_dim, .. } = *config;
        let n_query = config.n_heads * head_dim;
        let n_kv = config.n_kv_heads * head_dim;
        let mut stack = |parts: &[(Name, usize)], n_in: usize| {
            let matrices = parts
                .iter()
                .map(|(name, n_out)| weights.matrix(*name, [*n_out, n_in]))
                .collect::<Result<_, _>>()?;
            Linear::stack(matrices, n_in)
        };
        let qkv = stack(
            &[
                (Name::Query(index), n_query),
                (Name::Key(index), n_kv),
                (Name::Value(index), n_kv),
            ],
            width,
        )?;
        let gate_up = stack(
            &[(Name::Gate(index), ff_width), (Name::Up(index), ff_width)],
            width,
        )?;
        let attention_output =
            stack(&[(Name::AttentionOutput(index), width)], n_query)?;
        let down = stack(&[(Name::Down(index), width)], ff_width)?;
        Ok(Layer {
            attention_norm: weights
                .vector(Name::AttentionNorm(index), width)?,
            qkv,
            attention_output,
            feed_forward_norm: weights
                .vector(Name::FeedForwardNorm(index), width)?,
            gate_up,
            down,
        })
    }
}
