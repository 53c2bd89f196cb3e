//! How the two file formats call the tensors of a transformer.

/// A tensor, by what it is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Name {
    Embedding,
    OutputNorm,
    Output,
    /// A part of a layer.
    Part(usize, Part),
    /// The bias of a part of a layer.
    Bias(usize, Part),
}

/// What a layer consists of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Part {
    AttentionNorm,
    Query,
    Key,
    Value,
    /// Queries, keys and values, one below the other.
    Qkv,
    QueryNorm,
    KeyNorm,
    AttentionOutput,
    AttentionPostNorm,
    FeedForwardNorm,
    /// As it is called where there are norms behind the blocks, too.
    FeedForwardPreNorm,
    Gate,
    Up,
    /// The gate, then the up projection.
    GateUp,
    Down,
    FeedForwardPostNorm,
}

impl Part {
    /// Returns the names in a GGUF file and in safetensors.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Part::AttentionNorm => ("attn_norm", "input_layernorm"),
            Part::Query => ("attn_q", "self_attn.q_proj"),
            Part::Key => ("attn_k", "self_attn.k_proj"),
            Part::Value => ("attn_v", "self_attn.v_proj"),
            Part::Qkv => ("attn_qkv", "self_attn.qkv_proj"),
            Part::QueryNorm => ("attn_q_norm", "self_attn.q_norm"),
            Part::KeyNorm => ("attn_k_norm", "self_attn.k_norm"),
            Part::AttentionOutput => ("attn_output", "self_attn.o_proj"),
            Part::AttentionPostNorm => {
                ("post_attention_norm", "post_attention_layernorm")
            }
            Part::FeedForwardNorm => ("ffn_norm", "post_attention_layernorm"),
            Part::FeedForwardPreNorm => {
                ("ffn_norm", "pre_feedforward_layernorm")
            }
            Part::Gate => ("ffn_gate", "mlp.gate_proj"),
            Part::Up => ("ffn_up", "mlp.up_proj"),
            Part::GateUp => ("ffn_up", "mlp.gate_up_proj"),
            Part::Down => ("ffn_down", "mlp.down_proj"),
            Part::FeedForwardPostNorm => {
                ("post_ffw_norm", "post_feedforward_layernorm")
            }
        }
    }
}

impl Name {
    pub(super) fn in_gguf(self) -> String {
        match self {
            Name::Embedding => "token_embd.weight".into(),
            Name::OutputNorm => "output_norm.weight".into(),
            Name::Output => "output.weight".into(),
            Name::Part(layer, part) => {
                format!("blk.{layer}.{}.weight", part.names().0)
            }
            Name::Bias(layer, part) => {
                format!("blk.{layer}.{}.bias", part.names().0)
            }
        }
    }

    /// Returns the name below the model's prefix; the output is above it.
    pub(super) fn in_safetensors(self) -> String {
        match self {
            Name::Embedding => "embed_tokens.weight".into(),
            Name::OutputNorm => "norm.weight".into(),
            Name::Output => "lm_head.weight".into(),
            Name::Part(layer, part) => {
                format!("layers.{layer}.{}.weight", part.names().1)
            }
            Name::Bias(layer, part) => {
                format!("layers.{layer}.{}.bias", part.names().1)
            }
        }
    }
}
