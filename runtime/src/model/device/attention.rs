//! Attention of sequences that read equally many tokens.

use candle_core::{Device, Tensor};
use candle_nn::ops;

use super::super::Feed;
use super::super::config::Config;
use super::super::error::ModelError;
use super::index;

/// Sequences that read equally many tokens, whose rows lie side by side.
#[derive(Debug)]
pub(super) struct Group {
    /// The first row.
    start: usize,
    n_sequences: usize,
    /// How many tokens each of them reads.
    n_tokens: usize,
    /// The positions of the longest of them, the new ones included.
    n_positions: usize,
    /// Where the positions of each sequence are in the pool; what is past the
    /// end of one is any place.
    places: Tensor,
    /// For each window of the model what is added to the scores: nothing, or
    /// minus infinity for positions that are not seen.
    masks: Vec<(Option<usize>, Tensor)>,
}

impl Group {
    /// Prepares the attention of `fed`, whose first row is `start`.
    pub(super) fn new(
        fed: &[&Feed<'_>],
        start: usize,
        config: &Config,
        device: &Device,
    ) -> Result<Group, ModelError> {
        let n_sequences = fed.len();
        let n_tokens = fed.first().map_or(0, |feed| feed.tokens.len());
        let end = |feed: &Feed<'_>| feed.cache.len() + n_tokens;
        let n_positions =
            fed.iter().map(|feed| end(feed)).max().unwrap_or_default();
        let mut places = Vec::with_capacity(n_sequences * n_positions);
        for feed in fed {
            let own = feed.cache.places_in_pool(0..end(feed)).map(index);
            let padded = own.chain(std::iter::repeat_with(|| Ok(0)));
            places.extend(
                padded.take(n_positions).collect::<Result<Vec<_>, _>>()?,
            );
        }
        let mut masks: Vec<(Option<usize>, Tensor)> = Vec::new();
        for kind in &config.attention {
            if masks.iter().any(|(window, _)| *window == kind.window) {
                continue;
            }
            let window = kind.window.unwrap_or(usize::MAX);
            let mut mask = Vec::with_capacity(places.len() * n_tokens);
            for feed in fed {
                for last in feed.cache.len()..end(feed) {
                    let first = (last + 1).saturating_sub(window);
                    let is_seen = |at: usize| (first..=last).contains(&at);
                    let score = |at| {
                        if is_seen(at) { 0.0 } else { f32::NEG_INFINITY }
                    };
                    mask.extend((0..n_positions).map(score));
                }
            }
            let shape = (n_sequences, 1, n_tokens, n_positions);
            let mask = Tensor::from_vec(mask, shape, device)?;
            masks.push((kind.window, mask));
        }
        Ok(Group {
            start,
            n_sequences,
            n_tokens,
            n_positions,
            places: Tensor::new(places, device)?,
            masks,
        })
    }

    pub(super) fn n_rows(&self) -> usize {
        self.n_sequences * self.n_tokens
    }

    /// Lets the group's rows of `queries` (rows by heads by entries) look at
    /// the keys and values of a layer, and returns rows of what they saw.
    pub(super) fn attend(
        &self,
        queries: &Tensor,
        keys: &Tensor,
        values: &Tensor,
        config: &Config,
        window: Option<usize>,
    ) -> Result<Tensor, ModelError> {
        let Config { n_heads, n_kv_heads, head_dim, .. } = *config;
        let Group { n_sequences, n_tokens, n_positions, .. } = *self;
        let n_shared = n_heads / n_kv_heads;
        let n_pairs = n_sequences * n_kv_heads;
        let queries = queries
            .narrow(0, self.start, self.n_rows())?
            .reshape((n_sequences, n_tokens, n_heads, head_dim))?
            .transpose(1, 2)?
            .contiguous()?
            .reshape((n_pairs, n_shared * n_tokens, head_dim))?;
        let gather = |all: &Tensor| {
            all.index_select(&self.places, 0)?
                .reshape((n_sequences, n_positions, n_kv_heads, head_dim))?
                .transpose(1, 2)?
                .contiguous()?
                .reshape((n_pairs, n_positions, head_dim))
        };
        let scores = queries.matmul(&gather(keys)?.t()?)?;
        let scale = f64::from(config.score_scale);
        let mut scores = (scores * scale)?.reshape((
            n_sequences,
            n_heads,
            n_tokens,
            n_positions,
        ))?;
        if let Some((_, mask)) = self.masks.iter().find(|it| it.0 == window) {
            scores = scores.broadcast_add(mask)?;
        }
        let weights = ops::softmax_last_dim(&scores)?.reshape((
            n_pairs,
            n_shared * n_tokens,
            n_positions,
        ))?;
        Ok(weights
            .matmul(&gather(values)?)?
            .reshape((n_sequences, n_heads, n_tokens, head_dim))?
            .transpose(1, 2)?
            .contiguous()?
            .reshape((self.n_rows(), n_heads * head_dim))?)
    }
}
