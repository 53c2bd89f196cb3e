//! The sizes and constants of a transformer, and what its architecture does
//! differently from the others.
//!
//! Every architecture here is the same stack of layers with a few switches,
//! so the differences are data: [`Feature`]s, a window and a rotary embedding
//! for each layer, an activation, two scales. The readers of the two file
//! formats fill them in, and the forward pass never asks for a name.

mod gguf;
mod json;
mod keys;
mod rope;
#[cfg(test)]
mod tests;

use super::cache::KvLayout;
use super::error::ModelError;
use super::rope::Rope;

/// The sizes and constants of a transformer.
#[derive(Clone, Debug)]
pub(super) struct Config {
    /// The number of transformer layers.
    pub(super) n_layers: usize,
    /// The width of the residual stream.
    pub(super) width: usize,
    /// The number of attention heads.
    pub(super) n_heads: usize,
    /// The number of key-value heads, each shared by several heads.
    pub(super) n_kv_heads: usize,
    /// The entries of one head.
    pub(super) head_dim: usize,
    /// The inner width of the feed-forward block.
    pub(super) ff_width: usize,
    /// The rows of the embedding, which is also the width of the logits.
    pub(super) vocab_size: usize,
    /// The number of positions that a sequence may have.
    pub(super) context_length: usize,
    /// The constant under the root of the normalisation.
    pub(super) rms_epsilon: f32,
    /// What the products of queries and keys are multiplied by.
    pub(super) score_scale: f32,
    /// What embeddings are multiplied by.
    pub(super) embedding_scale: f32,
    /// The function of the feed-forward block's gate.
    pub(super) activation: Activation,
    /// What this architecture has beyond the plain one.
    pub(super) features: Vec<Feature>,
    /// The rotary embeddings that layers choose from.
    pub(super) ropes: Vec<Rope>,
    /// What the attention of each layer is like; as many as layers.
    pub(super) attention: Vec<Attention>,
    /// Whether the output matrix is the embedding. `None`: if and only if the
    /// file has no other.
    pub(super) is_tied: Option<bool>,
    /// Keys of the file that nothing here looks at, as they are written.
    pub(super) unknown: Vec<String>,
}

/// What an architecture has beyond a plain transformer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Feature {
    /// Queries, keys and values are one matrix in the file, and so are gate
    /// and up projection.
    Fused,
    /// Queries, keys and values have a bias.
    QkvBias,
    /// The output of attention has a bias.
    OutputBias,
    /// The matrices of the feed-forward block have a bias.
    FeedForwardBias,
    /// Each head of queries and keys is normalised before it is turned.
    HeadNorms,
    /// What attention and feed-forward block give is normalised before it is
    /// added to the stream.
    PostNorms,
    /// Weights of a normalisation are stored less one.
    NormsLessOne,
}

/// The function of a feed-forward block's gate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Activation {
    /// `x / (1 + e^-x)`.
    Silu,
    /// The Gaussian error linear unit, by the formula with the hyperbolic
    /// tangent.
    GeluTanh,
}

/// What one layer's attention looks at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Attention {
    /// The number of positions that a query sees, its own included; all where
    /// absent.
    pub(super) window: Option<usize>,
    /// The index of its rotary embedding.
    pub(super) rope: usize,
}

impl Config {
    /// Returns true if and only if the architecture has the feature.
    pub(super) fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    /// Returns the layout of this model's key-value cache.
    pub(super) fn kv_layout(&self) -> KvLayout {
        KvLayout {
            n_layers: self.n_layers,
            n_kv_heads: self.n_kv_heads,
            head_dim: self.head_dim,
        }
    }

    /// Refuses sizes that contradict each other, so that the forward pass
    /// need not.
    fn check(&self) -> Result<(), ModelError> {
        for (name, value) in [
            ("layers", self.n_layers),
            ("width", self.width),
            ("heads", self.n_heads),
            ("key-value heads", self.n_kv_heads),
            ("head width", self.head_dim),
            ("feed-forward width", self.ff_width),
            ("vocabulary size", self.vocab_size),
            ("context length", self.context_length),
        ] {
            if !(1..=1 << 24).contains(&value) {
                return refuse(name, value, "it must be in 1..=16777216");
            }
        }
        if !self.n_heads.is_multiple_of(self.n_kv_heads) {
            let way_out = "it must divide the number of heads";
            return refuse("key-value heads", self.n_kv_heads, way_out);
        }
        for rope in &self.ropes {
            let n_dims = rope.n_dims;
            if !n_dims.is_multiple_of(2) || n_dims > self.head_dim {
                let way_out = "it must be even and at most the head width";
                return refuse("rotary dimensions", n_dims, way_out);
            }
            rope.check()?;
        }
        if self.attention.iter().any(|layer| layer.window == Some(0)) {
            return refuse("sliding window", 0, "it must be at least 1");
        }
        if self.attention.len() != self.n_layers {
            let way_out = "it must be one for each layer";
            return refuse("layer types", self.attention.len(), way_out);
        }
        Ok(())
    }

    /// Lowers the context to what is asked for.
    fn limit_context(
        &mut self,
        asked: Option<usize>,
    ) -> Result<(), ModelError> {
        let Some(asked) = asked else { return Ok(()) };
        if asked > self.context_length {
            let limit = self.context_length;
            let way_out = format!("this model holds at most {limit} tokens");
            return refuse("context length", asked, &way_out);
        }
        self.context_length = asked;
        Ok(())
    }
}

/// One over the root of a head's width, which most architectures scale
/// scores by.
#[expect(
    clippy::cast_precision_loss,
    reason = "head widths are far below 2^24"
)]
fn root_scale(head_dim: usize) -> f32 {
    1.0 / (head_dim as f32).sqrt()
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers hand over numbers and texts"
)]
fn refuse<T>(
    option: &str,
    value: impl ToString,
    way_out: &str,
) -> Result<T, ModelError> {
    Err(ModelError::Option {
        option: option.into(),
        value: value.to_string(),
        way_out: way_out.into(),
    })
}

fn missing(key: &str, expected: &'static str) -> ModelError {
    ModelError::Metadata { key: key.into(), expected }
}

#[expect(clippy::cast_possible_truncation, reason = "a tiny constant")]
fn narrow(value: f64) -> f32 {
    value as f32
}
