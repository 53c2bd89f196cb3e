"""Writes reference.json: logits of tiny models of each architecture, as
transformers computes them in float32.

    pip install torch transformers
    python3 runtime/src/model/testdata/reference.py

Weights are not stored: each is a formula of its tensor's name and its index,
which the tests repeat.
"""

import json
import pathlib

import torch
import transformers

VOCAB_SIZE = 256
N_TOKENS = 24
# The entries of each row that are stored; of the last row all are.
N_ENTRIES = 6

SIZES = dict(
    vocab_size=VOCAB_SIZE,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    bos_token_id=None,
    eos_token_id=None,
    pad_token_id=None,
)


def case(name, kind, n_tokens=N_TOKENS, **options):
    return name, kind, n_tokens, options


def rope(kind, **options):
    return dict(rope_parameters=dict(rope_type=kind, rope_theta=10000.0, **options))


LONG = dict(
    original_max_position_embeddings=16,
    partial_rotary_factor=0.5,
    rope_parameters=dict(
        rope_type="longrope",
        rope_theta=10000.0,
        partial_rotary_factor=0.5,
        short_factor=[1.0, 1.25],
        long_factor=[1.5, 6.0],
    ),
)

GEMMA = dict(
    num_hidden_layers=4,
    head_dim=12,
    sliding_window=5,
    layer_types=["sliding_attention"] * 2 + ["full_attention", "sliding_attention"],
    rope_parameters=dict(
        full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1000000.0),
        sliding_attention=dict(rope_type="default", rope_theta=10000.0),
    ),
)

CASES = [
    case("llama", "Llama", **rope("default")),
    case("llama-biases", "Llama", attention_bias=True, mlp_bias=True, **rope("default")),
    case("llama-tied", "Llama", tie_word_embeddings=True, **rope("default")),
    case("llama-linear", "Llama", **rope("linear", factor=4.0)),
    case("llama-dynamic", "Llama", **rope("dynamic", factor=4.0)),
    case("llama-llama3", "Llama", **rope(
        "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=16)),
    case("llama-yarn", "Llama", **rope(
        "yarn", factor=4.0, original_max_position_embeddings=16)),
    case("mistral", "Mistral", sliding_window=6, head_dim=12, **rope("default")),
    case("qwen2", "Qwen2", **rope("default")),
    case("qwen2-window", "Qwen2", use_sliding_window=True, sliding_window=5,
         max_window_layers=1, **rope("default")),
    case("qwen3", "Qwen3", head_dim=12, tie_word_embeddings=True, **rope("default")),
    case("gemma3", "Gemma3Text", query_pre_attn_scalar=12, **GEMMA),
    case("gemma3-scale", "Gemma3Text", query_pre_attn_scalar=20, **GEMMA),
    case("phi3", "Phi3", sliding_window=7, **rope("default")),
    case("phi3-short", "Phi3", n_tokens=16, **LONG),
    case("phi3-long", "Phi3", **LONG),
]


def values(name, shape):
    """The formula: a linear congruential generator from a hash of the name."""
    state = 2166136261
    for byte in name.encode():
        state = (state ^ byte) * 16777619 & 0xFFFFFFFF
    units = []
    for _ in range(int(torch.tensor(shape).prod())):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        units.append((state >> 16) / 32768.0 - 1.0)
    units = torch.tensor(units, dtype=torch.float32).reshape(shape)
    if len(shape) == 1:
        return 0.2 * units
    return 0.4 * units


def run(name, kind, n_tokens, options):
    config = getattr(transformers, f"{kind}Config")(**{**SIZES, **options})
    causal = f"{kind.removesuffix('Text')}ForCausalLM"
    model = getattr(transformers, causal)(config).float().eval()
    less_one = kind == "Gemma3Text"
    tensors = {}
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            shape = list(parameter.shape)
            tensors[key] = shape
            data = values(key, shape)
            if "norm" in key and not less_one:
                data = 1.0 + data
            parameter.copy_(data)
        tokens = [(37 * i + 11) % VOCAB_SIZE for i in range(n_tokens)]
        logits = model(torch.tensor([tokens]), use_cache=False).logits[0]
    config = json.loads(config.to_json_string(use_diff=True))
    return dict(
        name=name,
        config=config,
        tensors=tensors,
        tokens=tokens,
        heads=[[round(x, 6) for x in row[:N_ENTRIES].tolist()] for row in logits],
        last=[round(x, 6) for x in logits[-1].tolist()],
    )


def main():
    torch.manual_seed(0)
    path = pathlib.Path(__file__).with_name("reference.json")
    lines = ",\n".join(json.dumps(run(*case)) for case in CASES)
    path.write_text(f"[\n{lines}\n]\n")
    print(f"{path}: {len(CASES)} models, transformers {transformers.__version__}")


main()
