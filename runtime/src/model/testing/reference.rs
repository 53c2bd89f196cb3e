//! Tiny models of every architecture, with logits that transformers computed
//! (`testdata/reference.py`).

use std::{collections::BTreeMap, fs, path::Path};

use candle_core::{
    Device, Tensor,
    quantized::{
        GgmlDType, QTensor,
        gguf_file::{self, Value},
    },
};
use serde::Deserialize;

use super::super::{
    ComputeDevice, Feed, LoadOptions, LoadedModel, Logits, Want,
};
use super::tiny::{alphabet, tokenizer_json, write_safetensors};

/// A model, and what it makes of some tokens.
#[derive(Debug, Deserialize)]
pub(crate) struct Reference {
    pub(crate) name: String,
    /// As transformers writes it.
    pub(crate) config: serde_json::Value,
    /// The shape of each tensor.
    tensors: BTreeMap<String, Vec<usize>>,
    pub(crate) tokens: Vec<u32>,
    /// The first logits of each row.
    heads: Vec<Vec<f32>>,
    /// The last row.
    last: Vec<f32>,
    /// How many times narrower the model was.
    #[serde(skip)]
    widened: Option<u8>,
}

/// Returns all of them.
pub(crate) fn references() -> Vec<Reference> {
    serde_json::from_str(include_str!("../testdata/reference.json"))
        .expect("the file is ours")
}

/// Number formats of weights whose blocks are small integers.
pub(crate) const QUANTISED: [GgmlDType; 8] = [
    GgmlDType::Q4_0,
    GgmlDType::Q4_1,
    GgmlDType::Q5_0,
    GgmlDType::Q5_1,
    GgmlDType::Q8_0,
    GgmlDType::Q4K,
    GgmlDType::Q5K,
    GgmlDType::Q6K,
];

/// Number formats of weights that are floating-point numbers.
const FLOATS: [GgmlDType; 3] =
    [GgmlDType::F32, GgmlDType::F16, GgmlDType::BF16];

/// Returns the number formats of weights.
pub(crate) fn formats() -> impl Iterator<Item = GgmlDType> {
    FLOATS.into_iter().chain(QUANTISED)
}

/// Feeds the tokens in chunks, and returns all rows of logits.
pub(crate) fn rows(
    loaded: &LoadedModel,
    tokens: &[u32],
    chunk_len: usize,
) -> Vec<Vec<f32>> {
    let mut cache = loaded.model.new_cache();
    let mut logits = Logits::new();
    let mut rows = Vec::new();
    for tokens in tokens.chunks(chunk_len) {
        let feed = Feed { tokens, cache: &mut cache, want: Want::All };
        loaded.model.forward(&mut [feed], &mut logits).expect("computed");
        rows.extend(logits.rows(0).map(<[f32]>::to_vec));
    }
    rows
}

/// Returns how large the difference of two lists of rows is beside the
/// second.
pub(crate) fn relative_error(made: &[Vec<f32>], expected: &[Vec<f32>]) -> f64 {
    let square = |values: &mut dyn Iterator<Item = f32>| {
        values.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt()
    };
    let pairs = made.iter().flatten().zip(expected.iter().flatten());
    let error = square(&mut pairs.map(|(a, b)| a - b));
    error / square(&mut expected.iter().flatten().copied())
}

impl Reference {
    /// Returns how the model is loaded for the processor's body.
    pub(crate) fn options(&self) -> LoadOptions {
        LoadOptions {
            context_length: self.name.ends_with("-long").then_some(64),
            device: ComputeDevice::Cpu,
            ..LoadOptions::default()
        }
    }

    /// Returns how far logits are from those of transformers.
    pub(crate) fn difference(&self, rows: &[Vec<f32>]) -> f32 {
        assert_eq!(rows.len(), self.heads.len());
        let heads = rows.iter().zip(&self.heads);
        let last = rows.iter().rev().zip([&self.last]);
        heads
            .chain(last)
            .flat_map(|(row, expected)| row.iter().zip(expected))
            .map(|(got, expected)| (got - expected).abs())
            .fold(0.0, f32::max)
    }

    /// Writes what [`Reference::write_gguf`] writes, with the numbers that
    /// come of a format stored in full.
    pub(crate) fn write_wide_gguf(&self, path: &Path, dtype: GgmlDType) {
        self.write_gguf_with(path, &|matrix| {
            QTensor::quantize(matrix, dtype)
                .and_then(|matrix| matrix.dequantize(&Device::Cpu))
                .and_then(|wide| QTensor::quantize(&wide, GgmlDType::F32))
                .expect("blocks fit")
        });
    }

    pub(crate) fn architecture(&self) -> &str {
        let kind = self.config["model_type"].as_str().expect("a string");
        kind.trim_end_matches("_text")
    }

    fn size(&self, key: &str) -> usize {
        let size = self.config[key].as_u64().expect("a size");
        usize::try_from(size).expect("small")
    }

    /// The formula of the script.
    fn values(&self, name: &str) -> Vec<f32> {
        let shape = &self.tensors[name];
        let mut state = name.bytes().fold(2_166_136_261u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(16_777_619)
        });
        let is_vector = shape.len() == 1;
        // Sums over more entries come out as large as before.
        let scale = 0.4 / self.widened.map_or(1.0, f32::from).sqrt();
        let is_norm = name.contains("norm");
        let is_less_one = self.architecture() == "gemma3";
        let values = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let high = u16::try_from(state >> 16).expect("16 bits");
            let unit = f32::from(high) / 32_768.0 - 1.0;
            match (is_vector, is_norm && !is_less_one) {
                (false, _) => scale * unit,
                (true, false) => 0.2 * unit,
                (true, true) => 1.0 + 0.2 * unit,
            }
        });
        values.take(shape.iter().product()).collect()
    }

    /// Returns the tensors by the names of safetensors.
    pub(crate) fn tensors(&self) -> BTreeMap<String, Tensor> {
        let tensor = |(name, shape): (&String, &Vec<usize>)| {
            let values = self.values(name);
            let tensor =
                Tensor::from_vec(values, shape.as_slice(), &Device::Cpu);
            (name.clone(), tensor.expect("a tensor"))
        };
        self.tensors.iter().map(tensor).collect()
    }

    /// Writes `config.json`, `tokenizer.json` and the weights.
    pub(crate) fn write_directory(&self, directory: &Path) {
        let write = |name: &str, text: String| {
            fs::write(directory.join(name), text).expect("a temporary file");
        };
        write("config.json", self.config.to_string());
        write("tokenizer.json", tokenizer_json().to_string());
        let path = directory.join("model.safetensors");
        write_safetensors(&self.tensors(), &path);
    }

    /// Writes the same model as GGUF, as llama.cpp's converter does: other
    /// names, the rows of llama's queries and keys in the order of
    /// neighbouring pairs, norms whole, factors as tensors.
    pub(crate) fn write_gguf(&self, path: &Path, dtype: GgmlDType) {
        self.write_gguf_with(path, &|matrix| {
            QTensor::quantize(matrix, dtype).expect("blocks fit")
        });
    }

    /// Does that with a way to store matrices.
    pub(crate) fn write_gguf_with(
        &self,
        path: &Path,
        store: &dyn Fn(&Tensor) -> QTensor,
    ) {
        let tensors: Vec<(String, QTensor)> = self
            .tensors()
            .into_iter()
            .map(|(name, tensor)| {
                let tensor = self.convert(&name, &tensor);
                let stored = if tensor.rank() == 1 {
                    let plain = QTensor::quantize(&tensor, GgmlDType::F32);
                    plain.expect("a tensor")
                } else {
                    store(&tensor)
                };
                (self.gguf_name(&name), stored)
            })
            .chain(self.factors())
            .collect();
        let metadata = self.metadata();
        let metadata: Vec<(&str, &Value)> = metadata
            .iter()
            .map(|(key, value)| (key.as_str(), value))
            .collect();
        let tensors: Vec<(&str, &QTensor)> =
            tensors.iter().map(|(name, t)| (name.as_str(), t)).collect();
        let mut file = fs::File::create(path).expect("a temporary file");
        gguf_file::write(&mut file, &metadata, &tensors).expect("written");
    }

    /// Returns a model of the same kind whose heads and blocks are sixteen
    /// times as wide, as large blocks of quantised weights want them.
    pub(crate) fn enlarged(mut self) -> Reference {
        self.widened = Some(16);
        for key in ["hidden_size", "intermediate_size", "head_dim"] {
            if self.config[key].is_u64() {
                self.config[key] = (16 * self.size(key)).into();
            }
        }
        for size in self.tensors.values_mut().flatten() {
            if *size < 256 {
                *size *= 16;
            }
        }
        self
    }

    fn is_llama(&self) -> bool {
        matches!(self.architecture(), "llama" | "mistral")
    }

    fn head_dim(&self) -> usize {
        match &self.config["head_dim"] {
            serde_json::Value::Null => {
                self.size("hidden_size") / self.size("num_attention_heads")
            }
            _ => self.size("head_dim"),
        }
    }

    fn convert(&self, name: &str, tensor: &Tensor) -> Tensor {
        let is_turned = name.contains("q_proj") || name.contains("k_proj");
        let converted = if self.is_llama() && is_turned {
            // Row `i` of a head's first half before row `i` of its second.
            let mut shape = tensor.dims().to_vec();
            let n_heads = shape[0] / self.head_dim();
            let rest = tensor.elem_count() / shape[0];
            let halves = (n_heads, 2, self.head_dim() / 2, rest);
            let turned = tensor
                .reshape(halves)
                .and_then(|tensor| tensor.transpose(1, 2)?.contiguous());
            shape.truncate(tensor.rank());
            turned.and_then(|tensor| tensor.reshape(shape))
        } else if self.architecture() == "gemma3" && name.contains("norm") {
            tensor + 1.0
        } else {
            Ok(tensor.clone())
        };
        converted.expect("the shapes fit")
    }

    fn rope(&self) -> &serde_json::Value {
        let rope = &self.config["rope_parameters"];
        rope.get("full_attention").unwrap_or(rope)
    }

    fn factors(&self) -> Vec<(String, QTensor)> {
        let tensor = |name: &str, values: Vec<f32>| {
            let len = values.len();
            let tensor = Tensor::from_vec(values, len, &Device::Cpu)
                .and_then(|t| QTensor::quantize(&t, GgmlDType::F32));
            (format!("{name}.weight"), tensor.expect("a tensor"))
        };
        let list = |key: &str| -> Option<Vec<f32>> {
            serde_json::from_value(self.rope()[key].clone()).ok()
        };
        let mut all = Vec::new();
        for (key, name) in [
            ("long_factor", "rope_factors_long"),
            ("short_factor", "rope_factors_short"),
        ] {
            all.extend(list(key).map(|values| tensor(name, values)));
        }
        if self.rope()["rope_type"] == "llama3" {
            all.push(tensor("rope_freqs", self.llama3_factors()));
        }
        all
    }

    /// What the converter makes of the scaling of Llama 3.
    fn llama3_factors(&self) -> Vec<f32> {
        let rope = |key: &str| self.rope()[key].as_f64().expect("a number");
        let n_pairs = u32::try_from(self.head_dim() / 2).expect("small");
        let length = rope("original_max_position_embeddings");
        let (low, high) = (rope("low_freq_factor"), rope("high_freq_factor"));
        (0..n_pairs)
            .map(|pair| {
                let exponent = f64::from(pair) / f64::from(n_pairs);
                let frequency = rope("rope_theta").powf(-exponent);
                let wavelength = std::f64::consts::TAU / frequency;
                let factor = if wavelength < length / high {
                    1.0
                } else if wavelength > length / low {
                    rope("factor")
                } else {
                    let smooth = (length / wavelength - low) / (high - low);
                    1.0 / ((1.0 - smooth) / rope("factor") + smooth)
                };
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "stored narrow"
                )]
                let narrow = factor as f32;
                narrow
            })
            .collect()
    }

    fn metadata(&self) -> Vec<(String, Value)> {
        let architecture = match self.architecture() {
            "mistral" => "llama",
            other => other,
        };
        let mut all = vec![(
            "general.architecture".to_owned(),
            Value::String(architecture.into()),
        )];
        let mut own = |key: &str, value: Value| {
            all.push((format!("{architecture}.{key}"), value));
        };
        let size = |n: usize| Value::U32(u32::try_from(n).expect("small"));
        #[expect(clippy::cast_possible_truncation, reason = "stored narrow")]
        let float = |x: f64| Value::F32(x as f32);
        for (key, from) in [
            ("block_count", "num_hidden_layers"),
            ("context_length", "max_position_embeddings"),
            ("embedding_length", "hidden_size"),
            ("feed_forward_length", "intermediate_size"),
            ("attention.head_count", "num_attention_heads"),
            ("attention.head_count_kv", "num_key_value_heads"),
            ("vocab_size", "vocab_size"),
        ] {
            own(key, size(self.size(from)));
        }
        own("attention.key_length", size(self.head_dim()));
        own("attention.value_length", size(self.head_dim()));
        let share = self.config["partial_rotary_factor"].as_f64();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "small numbers"
        )]
        let n_dims = share.map_or(self.head_dim(), |x| {
            (x * self.head_dim() as f64) as usize
        });
        own("rope.dimension_count", size(n_dims));
        let epsilon = self.config["rms_norm_eps"].as_f64();
        let key = "attention.layer_norm_rms_epsilon";
        own(key, float(epsilon.expect("a number")));
        if self.config["sliding_window"].is_u64() {
            let window = self.size("sliding_window");
            own("attention.sliding_window", size(window));
        }
        if let Some(types) = self.config["layer_types"].as_array()
            && self.architecture() == "gemma3"
        {
            let first = types.iter().position(|t| t == "full_attention");
            let period = first.expect("one is") + 1;
            own("attention.sliding_window_pattern", size(period));
        }
        let rope = self.rope();
        own(
            "rope.freq_base",
            float(rope["rope_theta"].as_f64().expect("set")),
        );
        let name = rope["rope_type"].as_str().expect("a string");
        if matches!(name, "linear" | "yarn" | "longrope") {
            own("rope.scaling.type", Value::String(name.into()));
        }
        if let ("linear" | "yarn", Some(factor)) =
            (name, rope["factor"].as_f64())
        {
            own("rope.scaling.factor", float(factor));
        }
        if let ("yarn" | "longrope", Some(length)) =
            (name, rope["original_max_position_embeddings"].as_u64())
        {
            let length = usize::try_from(length).expect("small");
            own("rope.scaling.original_context_length", size(length));
            if name == "longrope" {
                let factor: f64 = 64.0 / 16.0;
                let scale = (1.0 + factor.ln() / 16f64.ln()).sqrt();
                own("rope.scaling.attn_factor", float(scale));
            }
        }
        let texts = |items: Vec<String>| {
            Value::Array(items.into_iter().map(Value::String).collect())
        };
        for (key, value) in [
            ("tokenizer.ggml.model", Value::String("gpt2".into())),
            ("tokenizer.ggml.pre", Value::String("smollm".into())),
            ("tokenizer.ggml.tokens", texts(alphabet())),
            ("tokenizer.ggml.merges", texts(Vec::new())),
        ] {
            all.push((key.into(), value));
        }
        all
    }

    /// The names of a GGUF file.
    fn gguf_name(&self, name: &str) -> String {
        let behind_attention = match self.architecture() {
            "gemma3" => "post_attention_norm",
            _ => "ffn_norm",
        };
        [
            ("model.embed_tokens", "token_embd"),
            ("model.norm", "output_norm"),
            ("model.layers", "blk"),
            ("lm_head", "output"),
            ("input_layernorm", "attn_norm"),
            ("self_attn.qkv_proj", "attn_qkv"),
            ("self_attn.q_proj", "attn_q"),
            ("self_attn.k_proj", "attn_k"),
            ("self_attn.v_proj", "attn_v"),
            ("self_attn.o_proj", "attn_output"),
            ("self_attn.q_norm", "attn_q_norm"),
            ("self_attn.k_norm", "attn_k_norm"),
            ("post_attention_layernorm", behind_attention),
            ("pre_feedforward_layernorm", "ffn_norm"),
            ("post_feedforward_layernorm", "post_ffw_norm"),
            ("mlp.gate_up_proj", "ffn_up"),
            ("mlp.gate_proj", "ffn_gate"),
            ("mlp.up_proj", "ffn_up"),
            ("mlp.down_proj", "ffn_down"),
        ]
        .iter()
        .fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
    }
}
