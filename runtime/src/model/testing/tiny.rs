//! A tiny random model on disk, over single bytes, without an end token.
//!
//! The tests of the command take this file, too, so it uses nothing of the
//! crate.

use std::{collections::BTreeMap, fs, path::Path};

use candle_core::{
    Device, Tensor,
    quantized::{
        GgmlDType, QTensor,
        gguf_file::{self, Value},
    },
};

pub(crate) const WIDTH: usize = 32;
pub(crate) const N_HEADS: usize = 4;
pub(crate) const N_KV_HEADS: usize = 2;
pub(crate) const HEAD_DIM: usize = 8;
pub(crate) const FF_WIDTH: usize = 64;
pub(crate) const VOCAB_SIZE: usize = 256;
pub(crate) const N_LAYERS: usize = 2;
pub(crate) const CONTEXT: usize = 600;

/// The weights of the tiny model, with their shapes, by the names that
/// safetensors files use.
pub(crate) struct TinyModel {
    pub(crate) weights: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

impl TinyModel {
    pub(crate) fn new() -> TinyModel {
        let mut shapes = vec![
            ("model.embed_tokens".to_owned(), vec![VOCAB_SIZE, WIDTH]),
            ("model.norm".to_owned(), vec![WIDTH]),
        ];
        for layer in 0..N_LAYERS {
            for (name, shape) in [
                ("input_layernorm", vec![WIDTH]),
                ("self_attn.q_proj", vec![N_HEADS * HEAD_DIM, WIDTH]),
                ("self_attn.k_proj", vec![N_KV_HEADS * HEAD_DIM, WIDTH]),
                ("self_attn.v_proj", vec![N_KV_HEADS * HEAD_DIM, WIDTH]),
                ("self_attn.o_proj", vec![WIDTH, N_HEADS * HEAD_DIM]),
                ("post_attention_layernorm", vec![WIDTH]),
                ("mlp.gate_proj", vec![FF_WIDTH, WIDTH]),
                ("mlp.up_proj", vec![FF_WIDTH, WIDTH]),
                ("mlp.down_proj", vec![WIDTH, FF_WIDTH]),
            ] {
                shapes.push((format!("model.layers.{layer}.{name}"), shape));
            }
        }
        let mut state = 1u32;
        let weights = shapes.into_iter().map(|(name, shape)| {
            let is_norm = shape.len() == 1;
            let n_values = shape.iter().product();
            let values = std::iter::repeat_with(|| {
                state = state.wrapping_mul(1_664_525).wrapping_add(12_345_677);
                let high = u16::try_from(state >> 16).expect("16 bits");
                let unit = f32::from(high) / 32_768.0 - 1.0;
                if is_norm { 1.0 + 0.2 * unit } else { 0.4 * unit }
            });
            let values = values.take(n_values).collect();
            (format!("{name}.weight"), (shape, values))
        });
        TinyModel { weights: weights.collect() }
    }

    /// Writes `config.json`, `tokenizer.json` and the weights.
    pub(crate) fn write_directory(&self, directory: &Path) {
        let config = serde_json::json!({
            "model_type": "llama",
            "hidden_size": WIDTH,
            "intermediate_size": FF_WIDTH,
            "num_hidden_layers": N_LAYERS,
            "num_attention_heads": N_HEADS,
            "num_key_value_heads": N_KV_HEADS,
            "vocab_size": VOCAB_SIZE,
            "max_position_embeddings": CONTEXT,
            "rms_norm_eps": 1e-5,
            "rope_theta": 10_000.0,
            "tie_word_embeddings": true,
        });
        let write = |name: &str, text: String| {
            fs::write(directory.join(name), text).expect("a temporary file");
        };
        write("config.json", config.to_string());
        write("tokenizer.json", tokenizer_json().to_string());
        let tensors: std::collections::BTreeMap<String, Tensor> = self
            .weights
            .iter()
            .map(|(name, (shape, values))| {
                let tensor =
                    Tensor::from_slice(values, shape.as_slice(), &Device::Cpu);
                (name.clone(), tensor.expect("a tensor"))
            })
            .collect();
        let path = directory.join("model.safetensors");
        write_safetensors(&tensors, &path);
    }

    /// Writes the same model as GGUF: other names, and the rows of queries
    /// and keys in the order that neighbouring pairs want.
    pub(crate) fn write_gguf(&self, path: &Path, dtype: GgmlDType) {
        self.write_gguf_with(path, dtype, &[]);
    }

    /// Does that, with more metadata.
    pub(crate) fn write_gguf_with(
        &self,
        path: &Path,
        dtype: GgmlDType,
        more: &[(&str, Value)],
    ) {
        let tensors: Vec<(String, QTensor)> = self
            .weights
            .iter()
            .map(|(name, (shape, values))| {
                let heads = match name {
                    _ if name.contains("q_proj") => Some(N_HEADS),
                    _ if name.contains("k_proj") => Some(N_KV_HEADS),
                    _ => None,
                };
                let values = match heads {
                    Some(n_heads) => interleave(values, n_heads),
                    None => values.clone(),
                };
                let tensor =
                    Tensor::from_vec(values, shape.as_slice(), &Device::Cpu)
                        .expect("a tensor");
                let dtype =
                    if shape.len() == 1 { GgmlDType::F32 } else { dtype };
                let tensor = QTensor::quantize(&tensor, dtype);
                (gguf_name(name), tensor.expect("blocks fit"))
            })
            .collect();
        let size = |n: usize| Value::U32(u32::try_from(n).expect("small"));
        let texts = |items: Vec<String>| {
            Value::Array(items.into_iter().map(Value::String).collect())
        };
        let metadata = [
            ("general.architecture", Value::String("llama".into())),
            ("llama.block_count", size(N_LAYERS)),
            ("llama.context_length", size(CONTEXT)),
            ("llama.embedding_length", size(WIDTH)),
            ("llama.feed_forward_length", size(FF_WIDTH)),
            ("llama.attention.head_count", size(N_HEADS)),
            ("llama.attention.head_count_kv", size(N_KV_HEADS)),
            ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
            ("llama.rope.freq_base", Value::F32(10_000.0)),
            ("llama.vocab_size", size(VOCAB_SIZE)),
            ("tokenizer.ggml.model", Value::String("gpt2".into())),
            ("tokenizer.ggml.pre", Value::String("smollm".into())),
            ("tokenizer.ggml.tokens", texts(alphabet())),
            ("tokenizer.ggml.merges", texts(Vec::new())),
        ];
        let metadata: Vec<(&str, &Value)> = metadata
            .iter()
            .chain(more)
            .map(|(key, value)| (*key, value))
            .collect();
        let tensors: Vec<(&str, &QTensor)> =
            tensors.iter().map(|(name, t)| (name.as_str(), t)).collect();
        let mut file = fs::File::create(path).expect("a temporary file");
        gguf_file::write(&mut file, &metadata, &tensors).expect("written");
    }
}

pub(crate) fn write_safetensors(
    tensors: &BTreeMap<String, Tensor>,
    path: &Path,
) {
    let mut header = serde_json::Map::new();
    let mut data: Vec<u8> = Vec::new();
    for (name, tensor) in tensors {
        let values: Vec<f32> = tensor
            .flatten_all()
            .and_then(|tensor| tensor.to_vec1())
            .expect("values");
        let start = data.len();
        data.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        let entry = serde_json::json!({
            "dtype": "F32",
            "shape": tensor.dims(),
            "data_offsets": [start, data.len()],
        });
        header.insert(name.clone(), entry);
    }
    let header = serde_json::Value::Object(header).to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    fs::write(path, bytes).expect("a temporary file");
}

/// The names of a GGUF file.
fn gguf_name(name: &str) -> String {
    [
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("model.layers", "blk"),
        ("input_layernorm", "attn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("post_attention_layernorm", "ffn_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ]
    .iter()
    .fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}

/// Puts row `i` of a head's first half before row `i` of its second.
fn interleave(values: &[f32], n_heads: usize) -> Vec<f32> {
    let head_len = values.len() / n_heads;
    let row_len = head_len / HEAD_DIM;
    let half = HEAD_DIM / 2;
    let mut out = Vec::with_capacity(values.len());
    for head in values.chunks(head_len) {
        let rows: Vec<&[f32]> = head.chunks(row_len).collect();
        for row in 0..half {
            out.extend_from_slice(rows[row]);
            out.extend_from_slice(rows[half + row]);
        }
    }
    out
}

/// A token for each byte, in the byte-level alphabet.
pub(crate) fn alphabet() -> Vec<String> {
    let mut next = 0x100;
    (0..=255u8)
        .map(|byte| {
            let code = match byte {
                0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => u32::from(byte),
                _ => {
                    next += 1;
                    next - 1
                }
            };
            char::from_u32(code).expect("a character").to_string()
        })
        .collect()
}

pub(crate) fn tokenizer_json() -> serde_json::Value {
    let vocabulary: serde_json::Map<String, serde_json::Value> =
        alphabet().into_iter().zip((0..).map(|id: u32| id.into())).collect();
    let byte_level = serde_json::json!({
        "type": "ByteLevel",
        "add_prefix_space": false,
        "trim_offsets": true,
        "use_regex": true,
    });
    serde_json::json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": byte_level,
        "post_processor": null,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "byte_fallback": false,
            "vocab": vocabulary,
            "merges": [],
        },
    })
}
