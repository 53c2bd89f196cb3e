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

use std::sync::Arc;

use candle_core::quantized::QTensor;
use rayon::prelude::*;

use super::cache::KvCache;
use super::config::{Activation, Config};
use super::error::ModelError;
use super::kernels;
use super::layers::{Backend, Body, Projection};
use super::linear::{Linear, Matrix};
use super::rope::Angles;
use super::simd::Version;
use super::weights::Weights;
use super::{Feed, Logits, Model};

/// From this many multiplications on, attention is worth spreading over
/// threads.
const MIN_PARALLEL_WORK: usize = 1 << 20;

/// A transformer.
#[derive(Debug)]
pub(super) struct Transformer(Body<Processor>);

/// Packed matrices and plain vectors.
#[derive(Debug)]
struct Processor;

impl Backend for Processor {
    type Matrix = Linear;
    type Vector = Vec<f32>;

    fn matrix(
        &self,
        weights: Vec<Arc<QTensor>>,
        n_in: usize,
    ) -> Result<Linear, ModelError> {
        Linear::stack(weights, n_in)
    }

    fn tied(
        &self,
        embedding: &Matrix,
        _: Arc<QTensor>,
        [n_out, n_in]: [usize; 2],
    ) -> Result<Linear, ModelError> {
        Ok(Linear::single(embedding.clone(), n_in, n_out))
    }

    fn vector(&self, values: Vec<f32>) -> Result<Vec<f32>, ModelError> {
        Ok(values)
    }
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
        weights: Weights<'_>,
    ) -> Result<Transformer, ModelError> {
        Ok(Transformer(Body::load(&Processor, config, weights)?))
    }

    /// Checks a batch, and returns the place of each of its rows.
    fn places(&self, batch: &[Feed<'_>]) -> Result<Vec<Place>, ModelError> {
        self.0.check(batch, |cache| !cache.is_on_device())?;
        let mut places = Vec::new();
        for (sequence, feed) in batch.iter().enumerate() {
            let start = feed.cache.len();
            places.extend(
                (start..start + feed.tokens.len())
                    .map(|position| Place { sequence, position }),
            );
        }
        Ok(places)
    }

    fn attention(
        &self,
        index: usize,
        batch: &mut [Feed<'_>],
        places: &[Place],
        angles: &[Angles],
        scratch: &mut Scratch,
    ) {
        let Config { n_heads, n_kv_heads, head_dim, .. } = self.0.config;
        let angles = &angles[self.0.config.attention[index].rope];
        let head_norms = &self.0.layers[index].head_norms;
        let epsilon = self.0.config.rms_epsilon;
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
        let Config { n_heads, n_kv_heads, head_dim, .. } = self.0.config;
        let group = n_heads / n_kv_heads;
        let scale = self.0.config.score_scale;
        let window = self.0.config.attention[layer].window;
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
        let layer = &self.0.layers[index];
        let epsilon = self.0.config.rms_epsilon;
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
        let width = self.0.config.ff_width;
        let gate = match self.0.config.activation {
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
            let epsilon = self.0.config.rms_epsilon;
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
        let width = self.0.config.width;
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
        let values = logits.reset(self.0.config.vocab_size, &counts);
        if wanted.is_empty() {
            return Ok(());
        }
        let mut normed = Vec::new();
        let epsilon = self.0.config.rms_epsilon;
        kernels::rms_norm(&wanted, &self.0.output_norm, epsilon, &mut normed);
        self.0.output.forward(&normed, values)
    }

    fn run(
        &self,
        batch: &mut [Feed<'_>],
        logits: &mut Logits,
    ) -> Result<(), ModelError> {
        let places = self.places(batch)?;
        let tokens: Vec<u32> =
            batch.iter().flat_map(|feed| feed.tokens).copied().collect();
        let mut stream = self.0.embed(&tokens)?;
        for feed in batch.iter_mut() {
            feed.cache.reserve(feed.tokens.len());
        }
        let angles: Vec<Angles> = self
            .0
            .config
            .ropes
            .iter()
            .zip(&self.0.frequencies)
            .map(|(rope, frequencies)| {
                let positions = places.iter().map(|place| place.position);
                Angles::new(rope, frequencies, positions)
            })
            .collect();
        let mut scratch = Scratch::default();
        for index in 0..self.0.layers.len() {
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
        self.0.config.vocab_size
    }

    fn context_length(&self) -> usize {
        self.0.config.context_length
    }

    fn describe(&self) -> String {
        format!("cpu, {}; {}", Version::best().name(), self.0.formats)
    }

    fn new_cache(&self) -> KvCache {
        KvCache::new(self.0.config.kv_layout())
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

impl Projection<Processor> {
    /// Multiplies rows, and replaces `out` by rows of outputs.
    fn forward(
        &self,
        rows: &[f32],
        out: &mut Vec<f32>,
    ) -> Result<(), ModelError> {
        self.matrix.forward(rows, out)?;
        if let Some(bias) = &self.bias {
            for row in out.chunks_exact_mut(bias.len()) {
                kernels::add(row, bias);
            }
        }
        Ok(())
    }
}
