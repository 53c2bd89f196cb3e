#!/usr/bin/env python3
"""Greedy texts of the bundled generator beside llama.cpp's.

    python3 bench/llama_cpp_greedy.py [MODEL.gguf] [--new 64]

Writes 64 tokens after each of 20 prompts with both, from the same GGUF file.
Where the two choose another token, the gap between the logits of the two
tokens (llama.cpp's) is printed: both round inputs to eight bits, in another
order of additions, so that near ties may fall either way. The exit status is
1 if a gap is above --gap. Needs llama-cpp-python 0.3.36; builds our command.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import llama_cpp

ROOT = Path(__file__).resolve().parents[1]

PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "def fibonacci(n):\n",
    "1, 2, 3, 4, 5,",
    "Water boils at 100 degrees because",
    "Dear Sir or Madam,\n\nI am writing to",
    "The three laws of motion are:\n1.",
    "A recipe for bread needs flour,",
    "SELECT name FROM customers WHERE",
    "Il était une fois",
    "Die Hauptstadt von Deutschland ist",
    "Q: What is 17 + 25?\nA:",
    '{"name": "Ada", "age":',
    "The sun rises in the",
    "To be, or not to be,",
    "Photosynthesis is the process by which",
    "<html>\n<head>\n<title>",
    "In 1969, two men walked",
    "My favourite colour is",
    "東京は",
]


def default_model():
    cache = os.environ.get("MASKWRIGHT_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "maskwright"
    )
    return Path(cache) / "SmolLM2-135M-Instruct.Q4_1.gguf"


def ours(program, model, prompt, n_new):
    command = [program, "generate", "--raw", "--json-output", "--temperature", "0"]
    command += ["--repetition-penalty", "1", "--max-tokens", str(n_new)]
    command += ["--model", str(model), "--prompt", prompt]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if result.returncode not in (0, 5):
        sys.exit(result.stderr.decode())
    line = json.loads(result.stdout)
    return line["tokens"], line["prompt_tokens"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", type=Path, default=default_model())
    parser.add_argument("--new", type=int, default=64)
    parser.add_argument("--gap", type=float, default=0.5)
    parser.add_argument("--program", help="our command, already built")
    options = parser.parse_args()
    program = options.program
    if program is None:
        build = ["cargo", "build", "--release", "-p", "maskwright"]
        subprocess.run(build, cwd=ROOT, check=True)
        target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
        program = target / "release" / "maskwright"

    llm = llama_cpp.Llama(
        str(options.model), n_ctx=1024, n_threads=2, verbose=False, logits_all=False
    )
    n_vocab = llm.n_vocab()
    n_equal, worst, n_prompts_differ = 0, 0.0, 0
    for prompt in PROMPTS:
        tokens, n_prompt = ours(program, options.model, prompt, options.new)
        ids = llm.tokenize(prompt.encode(), add_bos=True, special=True)
        if len(ids) != n_prompt:
            print(f"{prompt!r}: {n_prompt} tokens of prompt, llama.cpp has {len(ids)}")
            n_prompts_differ += 1
            continue
        llm.reset()
        llm._ctx.kv_cache_clear()
        llm.eval(ids)
        agree = 0
        for token in tokens:
            pointer = llama_cpp.llama_get_logits_ith(llm._ctx.ctx, -1)
            row = pointer[:n_vocab]
            best = max(range(n_vocab), key=row.__getitem__)
            if best != token:
                gap = row[best] - row[token]
                worst = max(worst, gap)
                print(f"{prompt!r}: other after {agree} tokens, logits {gap:.4f} apart")
                break
            agree += 1
            llm.eval([token])
        else:
            n_equal += 1
    print(
        f"{options.model.name}: {n_equal} of {len(PROMPTS)} texts of up to {options.new}"
        f" tokens are equal, the others differ first where logits are at most"
        f" {worst:.4f} apart; {n_prompts_differ} prompts split otherwise"
    )
    sys.exit(worst > options.gap or n_prompts_differ > 0)


main()
