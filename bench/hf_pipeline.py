#!/usr/bin/env python3
"""Compares `maskwright pipeline --order hf` with Hugging Face transformers.

Runs transformers' own logits processors (torch, on the CPU), in the order in
which `GenerationMixin._get_logits_processor` puts them, with the grammar mask
where processors of users stand, over random rows and parameters, and compares
survivors and probabilities after the last stage.

    pip install torch transformers
    python bench/hf_pipeline.py target/debug/maskwright [--rows 1000]

A row counts as equal when the same tokens are left and no probability differs
by more than 1e-5. A row whose outcome hangs on the last digits is told apart:
transformers computes in single precision, so a token on the very edge of a
truncation may go either way. It counts as an edge only if transformers itself
changes its mind when all logits are moved by one part in a million or run in
double precision.
"""

import torch
import transformers
from transformers.generation import logits_process as lp

from pipeline_rows import arguments, compare

ENDS = [0, 3]


def random_case(rng, index):
    case = rng.row(index)
    width, p = len(case["logits"]), case["parameters"]
    p["end_tokens"] = [end for end in ENDS if end < width]
    maybe = lambda *rule: rng.maybe(p, *rule)
    maybe("temperature", [0.3, 0.7, 1.3, 2.0], 0.7)
    maybe("top_k", [1, 2, 5, 20, 50, 400])
    maybe("top_p", [0.0, 0.1, 0.5, 0.8, 0.95, 0.999])
    maybe("min_p", [0.01, 0.05, 0.2, 0.9])
    maybe("typical_p", [0.1, 0.5, 0.9], 0.2)
    maybe("epsilon_cutoff", [0.0003, 0.003, 0.2], 0.2)
    maybe("eta_cutoff", [0.0003, 0.003, 0.2], 0.2)
    maybe("repetition_penalty", [1.1, 1.5, 0.8])
    maybe("no_repeat_ngram_size", [1, 2, 3], 0.3)
    maybe("min_length", [5, 15, 30], 0.2)
    maybe("min_new_tokens", [3, 10, 20], 0.2)
    maybe("suppress_tokens", [rng.ids(width, 3)], 0.2)
    maybe("begin_suppress_tokens", [rng.ids(width, 3)], 0.2)
    maybe("exponential_decay_length_penalty", [[2, 1.2], [6, 1.05]], 0.2)
    everything = case["prompt"] + case["history"]
    sequence = lambda: everything[
        len(everything) - rng.randint(0, min(3, len(everything))) :
    ] + rng.ids(width, 1)
    if rng.random() < 0.3:
        p["sequence_bias"] = [[sequence(), 1.5]]
    if rng.random() < 0.3:
        p["bad_words_ids"] = [sequence()]
    return case


def processors(case):
    """The processors in transformers' order, the mask among them."""
    p, prompt = case["parameters"], case["prompt"]
    ends = p["end_tokens"]
    out = []
    add = lambda name, make: out.append(make(p[name])) if name in p else None
    add("sequence_bias", lambda v: lp.SequenceBiasLogitsProcessor([[s, b] for s, b in v]))
    add("repetition_penalty", lp.RepetitionPenaltyLogitsProcessor)
    add("no_repeat_ngram_size", lp.NoRepeatNGramLogitsProcessor)
    if "bad_words_ids" in p:
        words = [w for w in p["bad_words_ids"] if w not in [[e] for e in ends]]
        if words:
            out.append(lp.NoBadWordsLogitsProcessor(words, ends))
    if ends:
        add("min_length", lambda v: lp.MinLengthLogitsProcessor(v, ends))
        add("min_new_tokens", lambda v: lp.MinNewTokensLengthLogitsProcessor(len(prompt), v, ends))
        add("exponential_decay_length_penalty", lambda v: lp.ExponentialDecayLengthPenalty(tuple(v), ends, len(prompt)))
    add("suppress_tokens", lp.SuppressTokensLogitsProcessor)
    add("begin_suppress_tokens", lambda v: lp.SuppressTokensAtBeginLogitsProcessor(v, len(prompt)))
    if "mask" in case:
        allowed = torch.zeros(len(case["logits"]), dtype=torch.bool)
        allowed[case["mask"]] = True
        out.append(lambda ids, scores: scores.masked_fill(~allowed, -float("inf")))
    add("temperature", lp.TemperatureLogitsWarper)
    add("top_k", lp.TopKLogitsWarper)
    add("top_p", lp.TopPLogitsWarper)
    add("min_p", lp.MinPLogitsWarper)
    add("typical_p", lp.TypicalLogitsWarper)
    add("epsilon_cutoff", lp.EpsilonLogitsWarper)
    add("eta_cutoff", lp.EtaLogitsWarper)
    return out


def by_transformers(case, dtype=torch.float32, scale=1.0):
    """The probabilities that transformers leaves, by token."""
    minus = -float("inf")
    row = [minus if x is None else x * scale for x in case["logits"]]
    scores = torch.tensor([row], dtype=dtype)
    ids = torch.tensor([case["prompt"] + case["history"]])
    for processor in processors(case):
        scores = processor(ids, scores.clone())
        if not torch.isfinite(scores).any():
            # Nothing is left, and later processors may not survive that.
            return None
    left = torch.isfinite(scores[0])
    probabilities = scores[0].double().softmax(-1)
    return {i: probabilities[i].item() for i in left.nonzero().flatten().tolist()}


def near(case):
    """What transformers leaves in double precision, and of logits that are
    moved by one part in a million."""
    return [
        by_transformers(case, torch.float64),
        by_transformers(case, scale=1 + 1e-6),
        by_transformers(case, scale=1 - 1e-6),
    ]


if __name__ == "__main__":
    torch.manual_seed(0)
    peer = f"transformers {transformers.__version__}, torch {torch.__version__}"
    compare(arguments(), random_case, by_transformers, near, peer)
