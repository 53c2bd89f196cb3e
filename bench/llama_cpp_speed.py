#!/usr/bin/env python3
"""Times llama.cpp for `maskwright-bench generator`, which starts it.

    python3 bench/llama_cpp_speed.py MODEL.gguf THREADS N_NEW

Reads token ids from the standard input (a line of JSON), has the model read
them and then decode greedily, once for warmth and once for the clock, and
prints a line of JSON. Needs llama-cpp-python 0.3.36; without it the exit
status is 3.
"""

import json
import sys
import time

try:
    import llama_cpp
except ImportError:
    sys.exit(3)


def main():
    model, n_threads, n_new = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    prompt = json.loads(sys.stdin.readline())
    llm = llama_cpp.Llama(
        model, n_ctx=2048, n_threads=n_threads, n_threads_batch=n_threads, verbose=False
    )
    sampler = llama_cpp.llama_sampler_init_greedy()

    def greedy():
        return llama_cpp.llama_sampler_sample(sampler, llm._ctx.ctx, -1)

    def run():
        llm.reset()
        llm._ctx.kv_cache_clear()
        start = time.perf_counter()
        llm.eval(prompt)
        token = greedy()
        prompt_s = time.perf_counter() - start
        tokens = [token]
        start = time.perf_counter()
        for _ in range(n_new):
            llm.eval([token])
            token = greedy()
            tokens.append(token)
        return prompt_s, time.perf_counter() - start, tokens

    run()
    prompt_s, decode_s, tokens = run()
    print(json.dumps(dict(prompt_s=prompt_s, decode_s=decode_s, tokens=tokens)))


main()
