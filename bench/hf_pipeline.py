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

import argparse
import json
import random
import subprocess
import sys
import time

import torch
import transformers
from transformers.generation import logits_process as lp

ENDS = [0, 3]


def random_case(rng, index):
    width = rng.choice([1, 2, 8, 50, 300, 1000, 5000])
    grain = rng.choice([1, 8, 1024])
    spread = rng.choice([2.0, 10.0, 30.0])
    holes = rng.choice([0.0, 0.0, 0.1, 0.5])
    logits = [
        None
        if rng.random() < holes
        else round((rng.random() - 0.5) * spread * grain) / grain
        for _ in range(width)
    ]
    ids = lambda most: [rng.randrange(width) for _ in range(rng.randint(1, most))]
    case = {
        "id": index,
        "logits": logits,
        "prompt": ids(12),
        "history": [rng.randrange(min(width, 6)) for _ in range(rng.randint(0, 12))],
        "parameters": {},
    }
    if rng.random() < 0.6:
        share = rng.choice([0.01, 0.1, 0.5, 0.95])
        case["mask"] = sorted(
            {i for i in range(width) if rng.random() < share} | set(ids(2))
        )
    p = case["parameters"]
    p["end_tokens"] = [end for end in ENDS if end < width]

    def maybe(name, values, chance=0.4):
        if rng.random() < chance:
            p[name] = rng.choice(values)

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
    maybe("suppress_tokens", [ids(3)], 0.2)
    maybe("begin_suppress_tokens", [ids(3)], 0.2)
    maybe("exponential_decay_length_penalty", [[2, 1.2], [6, 1.05]], 0.2)
    everything = case["prompt"] + case["history"]
    if rng.random() < 0.3:
        n = rng.randint(0, min(3, len(everything)))
        p["sequence_bias"] = [[everything[len(everything) - n :] + ids(1), 1.5]]
    if rng.random() < 0.3:
        n = rng.randint(0, min(3, len(everything)))
        p["bad_words_ids"] = [everything[len(everything) - n :] + ids(1)]
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


def is_equal(ours, theirs, tied_logits=None):
    if ours is None or theirs is None:
        return ours is None and theirs is None
    if ours.keys() != theirs.keys():
        return False
    return all(abs(ours[i] - theirs[i]) <= 1e-5 for i in ours)


def differs_by_ties(ours, theirs):
    """Whether the same probabilities are left on other tokens.

    Which of equal logits top-p drops is nowhere defined: transformers sorts
    with an unstable sort.
    """
    if not ours or not theirs or len(ours) != len(theirs):
        return False
    pairs = zip(sorted(ours.values()), sorted(theirs.values()))
    return all(abs(a - b) <= 1e-5 for a, b in pairs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("maskwright")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    torch.manual_seed(0)
    cases = [random_case(rng, index) for index in range(args.rows)]
    command = [args.maskwright, "pipeline", "--jsonl", "-", "--top", "0"]
    lines = "\n".join(json.dumps(case) for case in cases)
    started = time.time()
    run = subprocess.run(command, input=lines, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{command}: {run.stderr}")
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    counts = dict.fromkeys(["equal", "tie", "edge", "yielded", "empty", "different"], 0)
    for case, answer in zip(cases, answers, strict=True):
        assert case["id"] == answer["id"]
        theirs = by_transformers(case)
        if answer["error"] is None:
            last = answer["stages"][-1]["tokens"]
            ours = {one["id"]: one["probability"] for one in last}
        elif "no token is left" in answer["error"]:
            ours = None
        else:
            sys.exit(f"row {case['id']}: {answer['error']}")
        if answer.get("yielded"):
            # What would leave nothing yields here, and nowhere else.
            counts["yielded" if theirs is None else "different"] += 1
        elif ours is None and theirs is None:
            counts["empty"] += 1
        elif is_equal(ours, theirs):
            counts["equal"] += 1
        elif differs_by_ties(ours, theirs):
            counts["tie"] += 1
        else:
            near = [
                by_transformers(case, torch.float64),
                by_transformers(case, scale=1 + 1e-6),
                by_transformers(case, scale=1 - 1e-6),
            ]
            is_edge = any(
                is_equal(ours, it) or (it and it.keys() != theirs.keys())
                for it in near
            )
            counts["edge" if is_edge else "different"] += 1
            if not is_edge:
                print("different:", json.dumps(case["parameters"]), case["id"])
                print("  ours  ", ours and list(ours.items())[:8])
                print("  theirs", theirs and list(theirs.items())[:8])
    took = time.time() - started
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    print(f"{len(cases)} rows in {took:.0f} s: " + ", ".join(f"{n} {k}" for k, n in counts.items()))
    sys.exit(1 if counts["different"] else 0)


if __name__ == "__main__":
    main()
