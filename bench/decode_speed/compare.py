#!/usr/bin/env python3
"""Decode speed beside llama-cpp-python: the same file, one thread, one sitting.

    python3 bench/decode_speed/compare.py [MODEL.gguf]

Builds `runtime/examples/decode_speed.rs` in release mode, then lets both
engines read one prompt and decode greedily, in turns, each in a process of
its own. Prints tokens per second (median, and each run), the ratio, and for
how many tokens the two greedy texts agree.

Needs llama-cpp-python 0.3.36 for the python that runs it
(`pip install llama-cpp-python==0.3.36`). Without a model argument the default
model is taken from Maskwright's cache.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROMPT = (
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
    "<|im_start|>user\nWrite a short letter to a friend about a trip to the "
    "sea, and say what you ate there.<|im_end|>\n<|im_start|>assistant\n"
)


def default_model():
    cache = os.environ.get("MASKWRIGHT_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "maskwright"
    )
    return Path(cache) / "SmolLM2-135M-Instruct.Q4_1.gguf"


def environment():
    # One thread each: candle's pool and rayon's read this variable.
    return {**os.environ, "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def peer(model, n_new, n_runs):
    """Runs llama.cpp in this process and prints a JSON line for each run."""
    import time

    import llama_cpp

    start = time.perf_counter()
    llm = llama_cpp.Llama(
        model, n_ctx=2048, n_threads=1, n_threads_batch=1, verbose=False
    )
    load_s = time.perf_counter() - start
    prompt = json.loads(sys.stdin.readline())

    def greedy():
        # The engine's own argmax over its own logits, without a copy.
        return sampler_sample(sampler, llm._ctx.ctx, -1)

    sampler = llama_cpp.llama_sampler_init_greedy()
    sampler_sample = llama_cpp.llama_sampler_sample
    for _ in range(n_runs):
        llm.reset()
        llm._ctx.kv_cache_clear()
        start = time.perf_counter()
        llm.eval(prompt)
        tokens = [greedy()]
        prompt_s = time.perf_counter() - start
        start = time.perf_counter()
        while len(tokens) <= n_new:
            llm.eval(tokens[-1:])
            tokens.append(greedy())
        decode_s = time.perf_counter() - start
        print(
            json.dumps(
                {
                    "load_s": load_s,
                    "prompt_s": prompt_s,
                    "decode_s": decode_s,
                    "tokens": tokens,
                }
            ),
            flush=True,
        )


def prompt_ids(model):
    import llama_cpp

    vocabulary = llama_cpp.Llama(str(model), vocab_only=True, verbose=False)
    return vocabulary.tokenize(PROMPT.encode(), add_bos=False, special=True)


def build():
    """Builds our side and returns the program's path."""
    command = ["cargo", "build", "--release", "-p", "maskwright"]
    command += ["--example", "decode_speed", "--message-format=json"]
    output = subprocess.run(
        command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    for line in output.splitlines():
        message = json.loads(line)
        is_ours = message.get("target", {}).get("name") == "decode_speed"
        if is_ours and message.get("executable"):
            return message["executable"]
    sys.exit("the build made no program")


def measure(command, line):
    result = subprocess.run(
        [str(part) for part in command],
        input=line + "\n",
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=environment(),
    )
    return [json.loads(line) for line in result.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", type=Path, default=default_model())
    parser.add_argument("--new", type=int, default=128, help="tokens to write")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program", help="our program, already built")
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        peer(str(options.model), options.new, 2)
        return
    if not options.model.exists():
        sys.exit(f"no model at {options.model}; run any command that needs one")

    program = options.program or build()
    ids = prompt_ids(options.model)
    ours, theirs = [], []
    for _ in range(options.rounds):
        line = " ".join(map(str, ids))
        ours += measure([program, options.model, options.new, 2], line)
        command = [sys.executable, __file__, options.model, "--peer"]
        theirs += measure([*command, "--new", options.new], json.dumps(ids))

    def rates(runs, key, count):
        return [count / run[key] for run in runs]

    print(f"{options.model.name}, one thread, prompt {len(ids)} tokens, ", end="")
    print(f"{options.new} new tokens, {len(ours)} runs each, in turns")
    for label, key, count in [
        ("prompt", "prompt_s", len(ids)),
        ("decode", "decode_s", options.new),
    ]:
        a, b = rates(ours, key, count), rates(theirs, key, count)
        mine, peers = statistics.median(a), statistics.median(b)
        print(f"{label}: maskwright {mine:.1f} tokens/s", end=", ")
        print(f"llama.cpp {peers:.1f} tokens/s, ratio {mine / peers:.2f}")
        for name, values in [("maskwright", a), ("llama.cpp", b)]:
            print(f"  {name}: " + " ".join(f"{value:.1f}" for value in values))
    pairs = list(zip(ours[0]["tokens"], theirs[0]["tokens"]))
    same = next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))
    print(f"load: maskwright {ours[0]['load_s']:.2f} s", end=", ")
    print(f"llama.cpp {theirs[0]['load_s']:.2f} s")
    print(f"greedy texts agree for {same} of {len(pairs)} tokens")


if __name__ == "__main__":
    main()
