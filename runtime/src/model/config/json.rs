//! The configuration beside safetensors: `config.json`, as transformers
//! writes it.

use std::path::Path;

use super::keys::Keys;
use super::rope::{self, Positions, RopeFor};
use super::{
    Activation, Attention, Config, Feature, missing, narrow, refuse,
    root_scale,
};
use crate::model::error::ModelError;

/// An architecture by its `model_type`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Llama,
    Mistral,
    Qwen2,
    Qwen3,
    Gemma3,
    Phi3,
}

/// What is taken where a file does not say; transformers leaves out what
/// equals its own.
struct Defaults {
    n_heads: Option<usize>,
    n_kv_heads: Option<usize>,
    head_dim: Option<usize>,
    vocab_size: Option<usize>,
    context_length: Option<usize>,
    rms_epsilon: f64,
    window: Option<usize>,
}

impl Kind {
    fn by_name(name: &str) -> Option<Kind> {
        Some(match name {
            "llama" => Kind::Llama,
            "mistral" => Kind::Mistral,
            "qwen2" => Kind::Qwen2,
            "qwen3" => Kind::Qwen3,
            "gemma3" | "gemma3_text" => Kind::Gemma3,
            "phi3" => Kind::Phi3,
            _ => return None,
        })
    }

    fn defaults(self) -> Defaults {
        let plain = Defaults {
            n_heads: None,
            n_kv_heads: None,
            head_dim: None,
            vocab_size: None,
            context_length: None,
            rms_epsilon: 1e-6,
            window: None,
        };
        match self {
            Kind::Llama => plain,
            Kind::Mistral => {
                Defaults { n_kv_heads: Some(8), window: Some(4096), ..plain }
            }
            Kind::Qwen2 => {
                Defaults { n_kv_heads: Some(32), window: Some(4096), ..plain }
            }
            Kind::Qwen3 => Defaults {
                n_kv_heads: Some(32),
                head_dim: Some(128),
                window: Some(4096),
                ..plain
            },
            Kind::Gemma3 => Defaults {
                n_heads: Some(8),
                n_kv_heads: Some(4),
                head_dim: Some(256),
                vocab_size: Some(262_208),
                context_length: Some(131_072),
                window: Some(4096),
                ..plain
            },
            Kind::Phi3 => Defaults { rms_epsilon: 1e-5, ..plain },
        }
    }
}

impl Config {
    /// Reads a `config.json`, for a context of `asked` positions if the
    /// caller asks for one.
    ///
    /// # Errors
    ///
    /// Fails when the text is not JSON, for an architecture that has no code
    /// here, for an absent or contradictory size, and for an option that the
    /// code does not have.
    pub(in super::super) fn from_json(
        path: &Path,
        text: &str,
        asked: Option<usize>,
    ) -> Result<Config, ModelError> {
        let mut file = Keys::parse(path, text)?;
        let name = file.text("model_type")?.unwrap_or_default();
        let Some(kind) = Kind::by_name(&name) else {
            return Err(ModelError::Architecture { found: name });
        };
        let mut unknown = Vec::new();
        // Models that also see keep what is about text in an object.
        let mut keys = match file.object("text_config")? {
            None => file,
            Some(mut text) => {
                text.or_from(&mut file, "tie_word_embeddings");
                unknown.extend(file.unknown());
                text
            }
        };
        let config = read(kind, &mut keys, asked, &mut unknown)?;
        unknown.extend(keys.unknown());
        config.check()?;
        Ok(Config { unknown, ..config })
    }
}

fn read(
    kind: Kind,
    keys: &mut Keys,
    asked: Option<usize>,
    unknown: &mut Vec<String>,
) -> Result<Config, ModelError> {
    refuse_what_is_not_built(keys)?;
    let defaults = kind.defaults();
    let need = |value: Option<usize>, key: &str| {
        value.ok_or_else(|| missing(key, "a non-negative integer"))
    };
    let width = keys.need_size("hidden_size")?;
    let n_heads = keys.size("num_attention_heads")?.or(defaults.n_heads);
    let n_heads = need(n_heads, "num_attention_heads")?;
    let n_kv_heads = if keys.is_given("num_key_value_heads") {
        keys.size("num_key_value_heads")?
    } else {
        defaults.n_kv_heads
    };
    let head_dim = keys.size("head_dim")?.or(defaults.head_dim);
    let head_dim =
        head_dim.unwrap_or_else(|| width.checked_div(n_heads).unwrap_or(0));
    let vocab_size = keys.size("vocab_size")?.or(defaults.vocab_size);
    let trained = keys.size("max_position_embeddings")?;
    let trained = trained.or(defaults.context_length);
    let trained = need(trained, "max_position_embeddings")?;
    let original = keys.size("original_max_position_embeddings")?;
    let original = match kind {
        Kind::Phi3 => original.or(Some(4096)),
        _ => original,
    };
    let positions = Positions { trained, original, asked };
    let epsilon = keys.float("rms_norm_eps")?.unwrap_or(defaults.rms_epsilon);
    let n_layers = keys.need_size("num_hidden_layers")?;
    let attention = attention(kind, keys, n_layers, trained)?;
    let ropes = ropes(kind, keys, head_dim, positions, unknown)?;
    let context = ropes.iter().find_map(|(_, context)| *context);
    let is_tied = if keys.has("tie_word_embeddings") {
        keys.flag("tie_word_embeddings")?
    } else {
        kind == Kind::Gemma3
    };
    let mut config = Config {
        n_layers,
        width,
        n_heads,
        n_kv_heads: n_kv_heads.unwrap_or(n_heads),
        head_dim,
        ff_width: keys.need_size("intermediate_size")?,
        vocab_size: need(vocab_size, "vocab_size")?,
        context_length: trained,
        rms_epsilon: narrow(epsilon),
        score_scale: score_scale(keys, head_dim)?,
        embedding_scale: embedding_scale(kind, width),
        activation: activation(kind, keys)?,
        features: features(kind, keys)?,
        ropes: ropes.into_iter().map(|(rope, _)| rope).collect(),
        attention,
        is_tied: Some(is_tied),
        unknown: Vec::new(),
    };
    config.limit_context(context.or(asked))?;
    Ok(config)
}

/// Refuses what would change the result and has no code here.
fn refuse_what_is_not_built(keys: &mut Keys) -> Result<(), ModelError> {
    for key in ["attn_logit_softcapping", "final_logit_softcapping"] {
        if let Some(value) = keys.float(key)? {
            return refuse(key, value, "only null is");
        }
    }
    for key in ["use_bidirectional_attention", "rope_interleaved"] {
        if keys.flag(key)? {
            return refuse(key, true, "only false is");
        }
    }
    if keys.has("quantization_config") {
        return refuse(
            "quantization_config",
            "an object",
            "take the weights as they were before, or a GGUF file",
        );
    }
    let splits = keys.size("pretraining_tp")?;
    if let Some(splits) = splits.filter(|splits| *splits > 1) {
        return refuse("pretraining_tp", splits, "only 1 is");
    }
    Ok(())
}

fn score_scale(keys: &mut Keys, head_dim: usize) -> Result<f32, ModelError> {
    let scalar = keys.float("query_pre_attn_scalar")?;
    Ok(scalar.map_or(root_scale(head_dim), |x| narrow(1.0 / x.sqrt())))
}

#[expect(clippy::cast_precision_loss, reason = "widths are far below 2^24")]
fn embedding_scale(kind: Kind, width: usize) -> f32 {
    if kind == Kind::Gemma3 { (width as f32).sqrt() } else { 1.0 }
}

fn activation(kind: Kind, keys: &mut Keys) -> Result<Activation, ModelError> {
    let (key, default) = match kind {
        Kind::Gemma3 => ("hidden_activation", Activation::GeluTanh),
        _ => ("hidden_act", Activation::Silu),
    };
    match keys.text(key)?.as_deref() {
        None => Ok(default),
        Some("silu" | "swish") => Ok(Activation::Silu),
        Some("gelu_pytorch_tanh" | "gelu_new") => Ok(Activation::GeluTanh),
        Some(other) => {
            refuse(key, other, "supported: silu, gelu_pytorch_tanh")
        }
    }
}

fn features(kind: Kind, keys: &mut Keys) -> Result<Vec<Feature>, ModelError> {
    let mut features = match kind {
        Kind::Llama | Kind::Mistral => Vec::new(),
        Kind::Qwen2 => vec![Feature::QkvBias],
        Kind::Qwen3 => vec![Feature::HeadNorms],
        Kind::Gemma3 => {
            vec![Feature::HeadNorms, Feature::PostNorms, Feature::NormsLessOne]
        }
        Kind::Phi3 => vec![Feature::Fused],
    };
    let has_option = matches!(kind, Kind::Llama | Kind::Qwen3 | Kind::Gemma3);
    if has_option && keys.flag("attention_bias")? {
        features.extend([Feature::QkvBias, Feature::OutputBias]);
    }
    if kind == Kind::Llama && keys.flag("mlp_bias")? {
        features.push(Feature::FeedForwardBias);
    }
    for key in ["attention_bias", "mlp_bias"] {
        if keys.flag(key)? {
            return refuse(key, true, "this architecture has none");
        }
    }
    Ok(features)
}

fn attention(
    kind: Kind,
    keys: &mut Keys,
    n_layers: usize,
    context: usize,
) -> Result<Vec<Attention>, ModelError> {
    let mut window = match kind {
        Kind::Llama => None,
        _ if keys.is_given("sliding_window") => keys.size("sliding_window")?,
        _ => kind.defaults().window,
    };
    let mut types = None;
    if matches!(kind, Kind::Qwen2 | Kind::Qwen3 | Kind::Gemma3) {
        types = keys.texts("layer_types")?;
    }
    let is_sliding: Box<dyn Fn(usize) -> bool> = match kind {
        Kind::Llama => Box::new(|_| false),
        Kind::Mistral | Kind::Phi3 => Box::new(|_| true),
        Kind::Qwen2 | Kind::Qwen3 => {
            if !keys.flag("use_sliding_window")? {
                window = None;
            }
            let first = keys.size("max_window_layers")?.unwrap_or(28);
            Box::new(move |layer| layer >= first)
        }
        Kind::Gemma3 => {
            let key = "sliding_window_pattern";
            let period = keys.size(key)?.unwrap_or(6);
            if period == 0 {
                return refuse(key, period, "it must be at least 1");
            }
            Box::new(move |layer| !(layer + 1).is_multiple_of(period))
        }
    };
    let types: Vec<bool> = match types {
        None => (0..n_layers).map(is_sliding).collect(),
        Some(types) => types
            .iter()
            .map(|name| match name.as_str() {
                "full_attention" => Ok(false),
                "sliding_attention" => Ok(true),
                other => refuse(
                    "layer_types",
                    other,
                    "supported: full_attention, sliding_attention",
                ),
            })
            .collect::<Result<_, _>>()?,
    };
    let window = window.filter(|window| *window < context);
    let layer = |is_sliding: bool| Attention {
        window: window.filter(|_| is_sliding),
        rope: usize::from(kind == Kind::Gemma3 && is_sliding),
    };
    Ok(types.into_iter().map(layer).collect())
}

fn ropes(
    kind: Kind,
    keys: &mut Keys,
    head_dim: usize,
    positions: Positions,
    unknown: &mut Vec<String>,
) -> Result<Vec<RopeFor>, ModelError> {
    let base = keys.float("rope_theta")?;
    let older = keys.object("rope_scaling")?;
    let newer = keys.object("rope_parameters")?;
    if kind == Kind::Gemma3 {
        let local = keys.float("rope_local_base_freq")?;
        let mut newer = newer.unwrap_or_else(Keys::empty);
        let sliding = newer.object("sliding_attention")?;
        let full = newer.object("full_attention")?;
        unknown.extend(newer.unknown());
        let mut read = |keys: Option<Keys>, base| {
            let keys = keys.unwrap_or_else(Keys::empty);
            rope::read(keys, base, head_dim, positions, unknown)
        };
        return Ok(vec![
            read(older.or(full), base.unwrap_or(1e6))?,
            read(sliding, local.unwrap_or(1e4))?,
        ]);
    }
    let mut scaling = older.or(newer).unwrap_or_else(Keys::empty);
    let outer_share = keys.float("partial_rotary_factor")?;
    let share = scaling.float("partial_rotary_factor")?.or(outer_share);
    let n_dims = rotary_dims(kind, head_dim, share)?;
    let base = base.unwrap_or(1e4);
    Ok(vec![rope::read(scaling, base, n_dims, positions, unknown)?])
}

/// Returns how many entries of a head are turned.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "head widths are small, and casts saturate"
)]
fn rotary_dims(
    kind: Kind,
    head_dim: usize,
    share: Option<f64>,
) -> Result<usize, ModelError> {
    let n_dims = share.map_or(head_dim, |x| (x * head_dim as f64) as usize);
    if kind != Kind::Phi3 && n_dims != head_dim {
        let share = share.unwrap_or(1.0);
        return refuse("partial_rotary_factor", share, "only 1 is");
    }
    Ok(n_dims)
}
