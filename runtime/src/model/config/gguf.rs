//! The configuration in the metadata of a GGUF file, with llama.cpp's keys.

use std::collections::BTreeSet;

use candle_core::Device;

use super::rope::Positions;
use super::{
    Activation, Attention, Config, Feature, missing, narrow, refuse,
    root_scale,
};
use crate::model::error::ModelError;
use crate::model::gguf::Gguf;
use crate::model::rope::{Pairing, Rope, Scaling};

/// Keys of an architecture without influence on what is computed here.
const HARMLESS: &[&str] = &["rope.scaling.finetuned"];

/// An architecture by its `general.architecture`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// Mistral's models, too.
    Llama,
    Qwen2,
    Qwen3,
    Gemma3,
    Phi3,
}

impl Kind {
    fn by_name(name: &str) -> Option<Kind> {
        Some(match name {
            "llama" => Kind::Llama,
            "qwen2" => Kind::Qwen2,
            "qwen3" => Kind::Qwen3,
            "gemma3" => Kind::Gemma3,
            "phi3" => Kind::Phi3,
            _ => return None,
        })
    }

    fn features(self, gguf: &Gguf) -> Vec<Feature> {
        match self {
            Kind::Llama => {
                let biases = [
                    ("attn_q", Feature::QkvBias),
                    ("attn_output", Feature::OutputBias),
                    ("ffn_gate", Feature::FeedForwardBias),
                ];
                biases
                    .into_iter()
                    .filter(|(name, _)| {
                        gguf.has_tensor(&format!("blk.0.{name}.bias"))
                    })
                    .map(|(_, feature)| feature)
                    .collect()
            }
            Kind::Qwen2 => vec![Feature::QkvBias],
            Kind::Qwen3 => vec![Feature::HeadNorms],
            Kind::Gemma3 => vec![Feature::HeadNorms, Feature::PostNorms],
            Kind::Phi3 => vec![Feature::Fused],
        }
    }
}

impl Config {
    /// Reads the configuration from a GGUF file's metadata, for a context of
    /// `asked` positions if the caller asks for one.
    ///
    /// # Errors
    ///
    /// Fails for an architecture that has no code here, for an absent or
    /// contradictory size, and for an option that the code does not have.
    pub(in super::super) fn from_gguf(
        gguf: &mut Gguf,
        asked: Option<usize>,
    ) -> Result<Config, ModelError> {
        let key = "general.architecture";
        let name = gguf.text(key)?.ok_or_else(|| missing(key, "a string"))?;
        let name = name.to_owned();
        let Some(kind) = Kind::by_name(&name) else {
            return Err(ModelError::Architecture { found: name });
        };
        let mut keys = Keys { gguf, name, taken: BTreeSet::new() };
        let config = read(kind, &mut keys, asked)?;
        let unknown = keys.unknown();
        config.check()?;
        Ok(Config { unknown, ..config })
    }
}

/// The keys of the file's architecture, with those that were asked for.
struct Keys<'a> {
    gguf: &'a mut Gguf,
    /// The architecture, with which its keys begin.
    name: String,
    taken: BTreeSet<String>,
}

impl Keys<'_> {
    /// Returns how a key is written in the file.
    fn key(&mut self, part: &str) -> String {
        let key = format!("{}.{part}", self.name);
        self.taken.insert(key.clone());
        key
    }

    fn size(&mut self, part: &str) -> Result<Option<usize>, ModelError> {
        let key = self.key(part);
        let size = |value: u64| {
            let size = usize::try_from(value);
            size.map_err(|_| missing(&key, "a size of this machine"))
        };
        self.gguf.integer(&key)?.map(size).transpose()
    }

    fn need_size(&mut self, part: &str) -> Result<usize, ModelError> {
        let value = self.size(part)?;
        let key = self.key(part);
        value.ok_or_else(|| missing(&key, "a non-negative integer"))
    }

    fn float(&mut self, part: &str) -> Result<Option<f64>, ModelError> {
        let key = self.key(part);
        self.gguf.float(&key)
    }

    fn need_float(&mut self, part: &str) -> Result<f64, ModelError> {
        let value = self.float(part)?;
        let key = self.key(part);
        value.ok_or_else(|| missing(&key, "a float"))
    }

    fn text(&mut self, part: &str) -> Result<Option<String>, ModelError> {
        let key = self.key(part);
        Ok(self.gguf.text(&key)?.map(str::to_owned))
    }

    /// Reads the factors that frequencies are divided by, if there are any.
    fn factors(&mut self, name: &str) -> Result<Option<Vec<f32>>, ModelError> {
        if !self.gguf.has_tensor(name) {
            return Ok(None);
        }
        let tensor = self.gguf.tensor(name, &Device::Cpu)?;
        let factors = tensor.dequantize(&Device::Cpu)?.flatten_all()?;
        Ok(Some(factors.to_vec1()?))
    }

    fn unknown(self) -> Vec<String> {
        let Keys { gguf, name, taken } = self;
        let own = |key: &&str| {
            let part = key.strip_prefix(name.as_str());
            let part = part.and_then(|part| part.strip_prefix('.'));
            part.is_some_and(|part| !HARMLESS.contains(&part))
                && !taken.contains(*key)
        };
        gguf.keys().filter(own).map(str::to_owned).collect()
    }
}

fn read(
    kind: Kind,
    keys: &mut Keys<'_>,
    asked: Option<usize>,
) -> Result<Config, ModelError> {
    refuse_what_is_not_built(keys)?;
    let n_layers = keys.need_size("block_count")?;
    let width = keys.need_size("embedding_length")?;
    let n_heads = keys.need_size("attention.head_count")?;
    let shared = width.checked_div(n_heads).unwrap_or(0);
    let head_dim = keys.size("attention.key_length")?.unwrap_or(shared);
    let value_dim = keys.size("attention.value_length")?;
    if let Some(other) = value_dim.filter(|dim| *dim != head_dim) {
        let way_out = format!("only as wide as keys, {head_dim}, is");
        return refuse("attention.value_length", other, &way_out);
    }
    let trained = keys.need_size("context_length")?;
    let n_tokens = |keys: &Keys<'_>| {
        let tokens = keys.gguf.texts("tokenizer.ggml.tokens")?;
        tokens
            .map(|tokens| tokens.len())
            .ok_or_else(|| missing("vocab_size", "an integer"))
    };
    let vocab_size = match keys.size("vocab_size")? {
        Some(size) => size,
        None => n_tokens(keys)?,
    };
    let (rope, context) = rope(kind, keys, head_dim, trained, asked)?;
    let mut ropes = vec![rope];
    if kind == Kind::Gemma3 {
        ropes.push(Rope {
            base: keys.float("rope.freq_base_swa")?.unwrap_or(1e4),
            scaling: Scaling::None,
            ..ropes[0].clone()
        });
    }
    let epsilon = keys.need_float("attention.layer_norm_rms_epsilon")?;
    let is_gemma = kind == Kind::Gemma3;
    let mut config = Config {
        n_layers,
        width,
        n_heads,
        n_kv_heads: keys.size("attention.head_count_kv")?.unwrap_or(n_heads),
        head_dim,
        ff_width: keys.need_size("feed_forward_length")?,
        vocab_size,
        context_length: trained,
        rms_epsilon: narrow(epsilon),
        // The largest of the family scales by another width, and its file
        // does not say so: llama.cpp knows it by its layers.
        score_scale: if is_gemma && n_layers == 62 {
            root_scale(shared)
        } else {
            root_scale(head_dim)
        },
        #[expect(
            clippy::cast_precision_loss,
            reason = "widths are far below 2^24"
        )]
        embedding_scale: if is_gemma { (width as f32).sqrt() } else { 1.0 },
        activation: if is_gemma {
            Activation::GeluTanh
        } else {
            Activation::Silu
        },
        features: kind.features(keys.gguf),
        ropes,
        attention: attention(kind, keys, n_layers, trained)?,
        is_tied: None,
        unknown: Vec::new(),
    };
    config.limit_context(context.or(asked))?;
    Ok(config)
}

fn refuse_what_is_not_built(keys: &mut Keys<'_>) -> Result<(), ModelError> {
    if let Some(count) = keys.size("expert_count")?.filter(|n| *n > 0) {
        return refuse("expert_count", count, "only models without experts");
    }
    for part in ["attn_logit_softcapping", "final_logit_softcapping"] {
        if let Some(value) = keys.float(part)?.filter(|value| *value != 0.0) {
            return refuse(part, value, "only 0 is");
        }
    }
    Ok(())
}

fn attention(
    kind: Kind,
    keys: &mut Keys<'_>,
    n_layers: usize,
    context: usize,
) -> Result<Vec<Attention>, ModelError> {
    let window = keys.size("attention.sliding_window")?;
    let window = window.filter(|window| (1..context).contains(window));
    let period = match kind {
        Kind::Gemma3 => {
            keys.size("attention.sliding_window_pattern")?.unwrap_or(6)
        }
        // No layer is at the end of a period.
        _ => 0,
    };
    let layer = |index: usize| {
        let is_sliding = !(index + 1).is_multiple_of(period);
        Attention {
            window: window.filter(|_| is_sliding),
            rope: usize::from(kind == Kind::Gemma3 && is_sliding),
        }
    };
    Ok((0..n_layers).map(layer).collect())
}

/// Reads the rotary embedding, and the context to which its factors belong if
/// they do to one.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "context lengths are far below 2^52, and factors are small"
)]
fn rope(
    kind: Kind,
    keys: &mut Keys<'_>,
    head_dim: usize,
    trained: usize,
    asked: Option<usize>,
) -> Result<(Rope, Option<usize>), ModelError> {
    let n_dims = keys.size("rope.dimension_count")?.unwrap_or(head_dim);
    let base = keys.float("rope.freq_base")?.unwrap_or(1e4);
    let factor = keys.float("rope.scaling.factor")?.filter(|x| *x != 0.0);
    let original = keys.size("rope.scaling.original_context_length")?;
    let positions = Positions { trained, original, asked };
    let original = original.unwrap_or(trained);
    let magnitude = keys.float("rope.scaling.attn_factor")?.unwrap_or(1.0);
    let mut rope = Rope {
        base,
        n_dims,
        // The converter reorders the rows of the weights for the one.
        pairing: match kind {
            Kind::Llama => Pairing::Neighbours,
            _ => Pairing::Halves,
        },
        scaling: Scaling::None,
        magnitude: magnitude as f32,
    };
    let mut context = None;
    match keys.text("rope.scaling.type")?.as_deref() {
        Some("none") => {}
        None | Some("linear" | "longrope") => {
            if let Some(factor) = factor {
                rope.scaling = Scaling::Linear { factor };
            }
        }
        Some("yarn") => {
            let factor = factor.unwrap_or(1.0);
            rope.magnitude *= (0.1 * factor.max(1.0).ln() + 1.0) as f32;
            rope.scaling = Scaling::Yarn {
                factor,
                fast: keys
                    .float("rope.scaling.yarn_beta_fast")?
                    .unwrap_or(32.0),
                slow: keys
                    .float("rope.scaling.yarn_beta_slow")?
                    .unwrap_or(1.0),
                original_length: original as f64,
                is_truncated: true,
            };
        }
        Some(other) => {
            let way_out = "supported: none, linear, yarn, longrope";
            return refuse("rope.scaling.type", other, way_out);
        }
    }
    let long = keys.factors("rope_factors_long.weight")?;
    let short = keys.factors("rope_factors_short.weight")?;
    let mut factors = keys.factors("rope_freqs.weight")?;
    if let (Some(long), Some(short)) = (long, short) {
        let length = positions.of_longrope(original);
        context = Some(length);
        factors = Some(if length > original { long } else { short });
    }
    if let Some(factors) = factors {
        rope.scaling = Scaling::Factors(factors);
    }
    Ok((rope, context))
}
