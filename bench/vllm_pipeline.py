#!/usr/bin/env python3
"""Compares `maskwright pipeline --order vllm` with vLLM.

Runs the parts of vLLM's V1 sampler (torch, on the CPU) in the order of
`Sampler.forward` and `Sampler.sample`, with the grammar mask first, where the
scheduler puts its bitmask, over random rows and parameters, and compares
survivors and probabilities after the last one. Only what vLLM leaves to a
kernel of its own on the CPU is written out here: the strongest token of a row.

    pip install torch vllm
    python bench/vllm_pipeline.py target/debug/maskwright [--rows 1000]

The wheel can be installed with `--no-deps`, since no model is run; its shared
libraries are not needed. What counts as equal and as an edge is what it is in
`hf_pipeline.py`.
"""

import math

import torch
import vllm
from vllm.v1.sample.logits_processor.builtin import MinPLogitsProcessor
from vllm.v1.sample.ops import penalties
from vllm.v1.sample.ops.bad_words import apply_bad_words
from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p_pytorch
from vllm.v1.sample.sampler import Sampler

from pipeline_rows import arguments, compare

# There need be no GPU to copy to.
penalties.PIN_MEMORY = False

GREEDY_BELOW = 1e-5
"""Below it, `SamplingParams` makes a temperature 0."""

LEAST_TEMPERATURE = 0.01
"""To this `SamplingParams` raises one that is above 0."""


def random_case(rng, index):
    case = rng.row(index)
    case["order"] = "vllm"
    width, p = len(case["logits"]), case["parameters"]
    maybe = lambda *rule: rng.maybe(p, *rule)
    maybe("temperature", [0, 0.001, 0.3, 0.7, 1.3, 2.0], 0.7)
    maybe("top_k", [1, 2, 5, 20, 50, 400])
    maybe("top_p", [0.1, 0.5, 0.8, 0.95, 0.999])
    maybe("min_p", [0.01, 0.05, 0.2, 0.9])
    p["repetition_penalty"] = rng.choice([1.0, 1.0, 1.1, 1.5, 0.8])
    p["frequency_penalty"] = rng.choice([0.0, 0.0, 0.5, -1.0])
    p["presence_penalty"] = rng.choice([0.0, 0.0, 0.25, -2.0])
    maybe("allowed_tokens", [sorted(set(rng.ids(width, 30)))], 0.2)
    history = case["history"]
    if rng.random() < 0.3:
        n = rng.randint(0, min(3, len(history)))
        p["bad_words_ids"] = [history[len(history) - n :] + rng.ids(width, 1)]
    if rng.random() < 0.3:
        tokens = sorted(set(rng.ids(width, 3)))
        p["logit_bias"] = [[i, rng.choice([2.0, -1.5, 150.0])] for i in tokens]
    return case


def by_vllm(case, dtype=torch.float32, scale=1.0):
    """The probabilities that vLLM leaves, by token; at temperature 0 the one
    token with its logit."""
    p, minus = case["parameters"], -math.inf
    row = [minus if x is None else x * scale for x in case["logits"]]
    logits = torch.tensor([row], dtype=dtype)
    width = len(row)

    def keep(tokens):
        kept = torch.zeros(width, dtype=torch.bool)
        kept[tokens] = True
        logits.masked_fill_(~kept, minus)

    if "mask" in case:
        keep(case["mask"])
    if "allowed_tokens" in p:
        keep(p["allowed_tokens"])
    history = case["history"]
    if "bad_words_ids" in p:
        apply_bad_words(logits, {0: p["bad_words_ids"]}, [history])
    for token, bias in p.get("logit_bias", []):
        logits[0, token] += max(-100.0, min(100.0, bias))
    one = lambda name: torch.tensor([p[name]], dtype=dtype)
    logits = penalties.apply_all_penalties(
        logits,
        torch.tensor([case["prompt"]]),
        one("presence_penalty"),
        one("frequency_penalty"),
        one("repetition_penalty"),
        [history],
    )
    if not torch.isfinite(logits).any():
        return None
    temperature = p.get("temperature", 1.0)
    if temperature < GREEDY_BELOW:
        token = int(logits[0].argmax())
        return {token: logits[0, token].item()}
    temperature = torch.tensor([max(temperature, LEAST_TEMPERATURE)], dtype=dtype)
    logits = Sampler.apply_temperature(logits, temperature, all_random=True)
    if "min_p" in p:
        # Without a batch, whose bookkeeping its constructor is for.
        processor = object.__new__(MinPLogitsProcessor)
        processor.min_p_count = 1
        processor.min_p = torch.tensor([[p["min_p"]]], dtype=dtype)
        logits = processor.apply(logits)
    k = torch.tensor([min(p["top_k"], width)]) if "top_k" in p else None
    top_p = torch.tensor([p["top_p"]], dtype=dtype) if "top_p" in p else None
    logits = apply_top_k_top_p_pytorch(logits, k, top_p, allow_cpu_sync=True)
    left = torch.isfinite(logits[0])
    probabilities = logits[0].double().softmax(-1)
    return {i: probabilities[i].item() for i in left.nonzero().flatten().tolist()}


def near(case):
    """What vLLM leaves in double precision, and of logits that are moved by one
    part in a million."""
    return [
        by_vllm(case, torch.float64),
        by_vllm(case, scale=1 + 1e-6),
        by_vllm(case, scale=1 - 1e-6),
    ]


if __name__ == "__main__":
    peer = f"vllm {vllm.__version__}, torch {torch.__version__}"
    compare(arguments(), random_case, by_vllm, near, peer)
