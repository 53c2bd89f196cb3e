//! The sizes and constants of a llama-family model.

use std::path::Path;

use serde::Deserialize;

use super::cache::KvLayout;
use super::error::ModelError;
use super::gguf::Gguf;
use super::rope::{Pairing, Rope, Scaling};

/// The sizes and constants of a llama-family model.
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
    /// The number of positions that the model was trained for.
    pub(super) context_length: usize,
    /// The constant under the root of the normalisation.
    pub(super) rms_epsilon: f32,
    /// The rotary position embedding.
    pub(super) rope: Rope,
}

impl Config {
    /// Returns the layout of this model's key-value cache.
    pub(super) fn kv_layout(&self) -> KvLayout {
        KvLayout {
            n_layers: self.n_layers,
            n_kv_heads: self.n_kv_heads,
            head_dim: self.head_dim,
        }
    }

    /// Reads the configuration from a GGUF file's metadata.
    ///
    /// # Errors
    ///
    /// Fails for another architecture, for an absent or contradictory size,
    /// and for an option that the code does not have.
    pub(super) fn from_gguf(gguf: &mut Gguf) -> Result<Config, ModelError> {
        let architecture = gguf
            .text("general.architecture")?
            .ok_or_else(|| missing("general.architecture", "a string"))?;
        if architecture != "llama" {
            return Err(ModelError::Architecture {
                found: architecture.to_owned(),
            });
        }
        if gguf.integer("llama.expert_count")?.unwrap_or(0) > 0 {
            return Err(ModelError::Architecture {
                found: "llama with a mixture of experts".to_owned(),
            });
        }
        let size = |key: &str| {
            let value = gguf.integer(key)?;
            to_size(key, value)
        };
        let n_heads = size("llama.attention.head_count")?;
        let width = size("llama.embedding_length")?;
        let head_dim = match gguf.integer("llama.attention.key_length")? {
            None => width.checked_div(n_heads).unwrap_or(0),
            length => to_size("llama.attention.key_length", length)?,
        };
        let n_kv_heads = match gguf.integer("llama.attention.head_count_kv")? {
            None => n_heads,
            count => to_size("llama.attention.head_count_kv", count)?,
        };
        let vocab_size = match gguf.integer("llama.vocab_size")? {
            None => gguf
                .texts("tokenizer.ggml.tokens")?
                .map(|tokens| tokens.len())
                .ok_or_else(|| missing("llama.vocab_size", "an integer"))?,
            count => to_size("llama.vocab_size", count)?,
        };
        let epsilon_key = "llama.attention.layer_norm_rms_epsilon";
        let epsilon = gguf
            .float(epsilon_key)?
            .ok_or_else(|| missing(epsilon_key, "a float"))?;
        let config = Config {
            n_layers: size("llama.block_count")?,
            width,
            n_heads,
            n_kv_heads,
            head_dim,
            ff_width: size("llama.feed_forward_length")?,
            vocab_size,
            context_length: size("llama.context_length")?,
            rms_epsilon: narrow(epsilon),
            rope: gguf_rope(gguf, head_dim)?,
        };
        config.check()?;
        Ok(config)
    }

    /// Reads the configuration from a `config.json`.
    ///
    /// # Errors
    ///
    /// As [`Config::from_gguf`], and when the text is not JSON.
    pub(super) fn from_json(
        path: &Path,
        text: &str,
    ) -> Result<Config, ModelError> {
        let malformed =
            |error: serde_json::Error| ModelError::malformed(path, error);
        let kind: Kind = serde_json::from_str(text).map_err(malformed)?;
        let found = kind.model_type.unwrap_or_default();
        if !matches!(found.as_str(), "llama" | "mistral") {
            return Err(ModelError::Architecture { found });
        }
        let file: File = serde_json::from_str(text).map_err(malformed)?;
        file.refuse_what_is_not_built()?;
        let head_dim = file.head_dim.unwrap_or_else(|| {
            file.hidden_size.checked_div(file.num_attention_heads).unwrap_or(0)
        });
        let config = Config {
            n_layers: file.num_hidden_layers,
            width: file.hidden_size,
            n_heads: file.num_attention_heads,
            n_kv_heads: file
                .num_key_value_heads
                .unwrap_or(file.num_attention_heads),
            head_dim,
            ff_width: file.intermediate_size,
            vocab_size: file.vocab_size,
            context_length: file.max_position_embeddings,
            rms_epsilon: narrow(file.rms_norm_eps),
            rope: Rope {
                base: file.rope_base(),
                n_dims: head_dim,
                pairing: Pairing::Halves,
                scaling: file.scaling()?,
            },
        };
        config.check()?;
        Ok(config)
    }

    /// Refuses sizes that contradict each other, so that the forward pass
    /// need not.
    fn check(&self) -> Result<(), ModelError> {
        let refuse = |option: &str, value: usize, way_out: &str| {
            Err(ModelError::Option {
                option: option.into(),
                value: value.to_string(),
                way_out: way_out.into(),
            })
        };
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
        let n_dims = self.rope.n_dims;
        if !n_dims.is_multiple_of(2) || n_dims > self.head_dim {
            let way_out = "it must be even and at most the head width";
            return refuse("rotary dimensions", n_dims, way_out);
        }
        Ok(())
    }
}

/// Reads the rotary embedding of a GGUF file. Converters fold the frequency
/// scaling of Llama 3 into a tensor of factors.
fn gguf_rope(gguf: &mut Gguf, head_dim: usize) -> Result<Rope, ModelError> {
    let n_dims = match gguf.integer("llama.rope.dimension_count")? {
        None => head_dim,
        count => to_size("llama.rope.dimension_count", count)?,
    };
    let scaling = match gguf.text("llama.rope.scaling.type")? {
        None | Some("none") => Scaling::None,
        Some("linear") => {
            let key = "llama.rope.scaling.factor";
            let factor =
                gguf.float(key)?.ok_or_else(|| missing(key, "a float"))?;
            Scaling::Linear { factor }
        }
        Some(other) => {
            return Err(rope_type(
                "llama.rope.scaling.type",
                other,
                "none, linear",
            ));
        }
    };
    let base = gguf.float("llama.rope.freq_base")?.unwrap_or(10_000.0);
    let mut rope =
        Rope { base, n_dims, pairing: Pairing::Neighbours, scaling };
    if gguf.has_tensor("rope_freqs.weight") {
        let cpu = candle_core::Device::Cpu;
        let factors = gguf
            .tensor("rope_freqs.weight", &cpu)?
            .dequantize(&cpu)?
            .flatten_all()?
            .to_vec1::<f32>()?;
        if factors.len() != n_dims / 2 {
            return Err(ModelError::Tensor {
                name: "rope_freqs.weight".into(),
                expected: vec![n_dims / 2],
                found: format!("[{}]", factors.len()),
            });
        }
        rope.scaling = Scaling::Factors(factors);
    }
    Ok(rope)
}

#[derive(Deserialize)]
struct Kind {
    model_type: Option<String>,
}

/// The keys of `config.json` that matter here.
#[derive(Deserialize)]
struct File {
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    vocab_size: usize,
    max_position_embeddings: usize,
    rms_norm_eps: f64,
    rope_theta: Option<f64>,
    rope_scaling: Option<RopeScaling>,
    /// Newer files put base and scaling into one object.
    rope_parameters: Option<RopeScaling>,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    hidden_act: Option<String>,
    sliding_window: Option<usize>,
}

#[derive(Deserialize)]
struct RopeScaling {
    #[serde(alias = "type")]
    rope_type: Option<String>,
    rope_theta: Option<f64>,
    factor: Option<f64>,
    low_freq_factor: Option<f64>,
    high_freq_factor: Option<f64>,
    original_max_position_embeddings: Option<f64>,
}

impl File {
    fn refuse_what_is_not_built(&self) -> Result<(), ModelError> {
        let refuse = |option: &str, value: String, way_out: &str| {
            Err(ModelError::Option {
                option: option.into(),
                value,
                way_out: way_out.into(),
            })
        };
        for (name, set) in [
            ("attention_bias", self.attention_bias),
            ("mlp_bias", self.mlp_bias),
        ] {
            if set {
                return refuse(name, "true".into(), "only false is");
            }
        }
        match self.hidden_act.as_deref() {
            None | Some("silu" | "swish") => {}
            Some(other) => {
                return refuse("hidden_act", other.into(), "only silu is");
            }
        }
        match self.sliding_window {
            Some(window) if window < self.max_position_embeddings => refuse(
                "sliding_window",
                window.to_string(),
                "only full attention is",
            ),
            _ => Ok(()),
        }
    }

    fn rope_base(&self) -> f64 {
        self.rope_theta
            .or_else(|| self.rope_parameters.as_ref()?.rope_theta)
            .unwrap_or(10_000.0)
    }

    fn scaling(&self) -> Result<Scaling, ModelError> {
        let scaling = self.rope_scaling.as_ref();
        let Some(scaling) = scaling.or(self.rope_parameters.as_ref()) else {
            return Ok(Scaling::None);
        };
        let need = |value: Option<f64>, key: &str| {
            let key = format!("rope_scaling.{key}");
            value.ok_or_else(|| missing(&key, "a number"))
        };
        match scaling.rope_type.as_deref() {
            None | Some("default") => Ok(Scaling::None),
            Some("linear") => {
                Ok(Scaling::Linear { factor: need(scaling.factor, "factor")? })
            }
            Some("llama3") => Ok(Scaling::Llama3 {
                factor: need(scaling.factor, "factor")?,
                low: need(scaling.low_freq_factor, "low_freq_factor")?,
                high: need(scaling.high_freq_factor, "high_freq_factor")?,
                original_length: need(
                    scaling.original_max_position_embeddings,
                    "original_max_position_embeddings",
                )?,
            }),
            Some(other) => Err(rope_type(
                "rope_scaling.rope_type",
                other,
                "default, linear, llama3",
            )),
        }
    }
}

fn missing(key: &str, expected: &'static str) -> ModelError {
    ModelError::Metadata { key: key.into(), expected }
}

fn rope_type(key: &str, value: &str, supported: &str) -> ModelError {
    ModelError::Option {
        option: key.into(),
        value: value.into(),
        way_out: format!("supported: {supported}"),
    }
}

fn to_size(key: &str, value: Option<u64>) -> Result<usize, ModelError> {
    value
        .and_then(|value| usize::try_from(value).ok())
        .ok_or_else(|| missing(key, "a non-negative integer"))
}

#[expect(clippy::cast_possible_truncation, reason = "a tiny constant")]
fn narrow(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"{
        "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 100,
        "max_position_embeddings": 256, "rms_norm_eps": 1e-5 ,
        "rope_theta": 5e5 EXTRA }"#;

    fn parse(extra: &str) -> Result<Config, ModelError> {
        let text = SMALL.replace("EXTRA", extra);
        Config::from_json(Path::new("config.json"), &text)
    }

    #[test]
    fn reads_a_config_json() {
        let config = parse("").expect("valid");
        assert_eq!(config.head_dim, 16);
        assert_eq!(config.kv_layout().n_kv_heads, 2);
        assert!(matches!(config.rope.scaling, Scaling::None));
    }

    #[test]
    fn reads_the_scaling_of_llama_3() {
        let config = parse(
            r#", "rope_scaling": {"rope_type": "llama3", "factor": 32.0,
            "low_freq_factor": 1, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192}"#,
        );
        let scaling = config.expect("valid").rope.scaling;
        assert!(matches!(scaling, Scaling::Llama3 { .. }), "{scaling:?}");
    }

    #[test]
    fn what_is_not_built_is_refused_by_name() {
        for (extra, name) in [
            (r#", "attention_bias": true"#, "attention_bias"),
            (r#", "hidden_act": "gelu""#, "gelu"),
            (r#", "sliding_window": 128"#, "sliding_window"),
            (r#", "rope_scaling": {"type": "yarn", "factor": 2}"#, "yarn"),
            (r#", "rope_scaling": {"type": "linear"}"#, "factor"),
            (r#", "head_dim": 7"#, "rotary"),
            (r#", "head_dim": 0"#, "head width"),
        ] {
            let error = parse(extra).expect_err(extra).to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn another_architecture_is_named_with_what_is_supported() {
        let error = Config::from_json(
            Path::new("config.json"),
            r#"{"model_type": "mamba"}"#,
        );
        let error = error.expect_err("unsupported").to_string();
        assert!(error.contains("mamba") && error.contains("llama"));
    }
}
