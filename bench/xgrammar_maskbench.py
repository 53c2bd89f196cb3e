#!/usr/bin/env python3
"""XGrammar over the cases that `maskwright-bench maskbench --xgrammar` hands
over; started by it.

    python3 -m venv v && v/bin/pip install xgrammar==0.2.9 apache-tvm-ffi numpy
    xgrammar_maskbench.py tokenizer.json CASES --end-token ID --width N

CASES has a line of JSON a schema: {"name", "schema", "tests": [[valid, ids]]}.
Written is a line of results for each, in their order,

    {"id", "compile_error" | "compile_ns", "first_mask_ns", "mask_ns",
     "consume_ns", each also with "_cpu_ns",
     "tests": [[valid, tokens allowed, accepting, accepted, tokens, error]]}

and at the end {"peak_rss_mb"}. Each time has the cost of its two clocks
subtracted, as an empty piece of work reads them. One thread, white space
anywhere, strict objects (the library's defaults); no cache outlives a schema,
each test has a new matcher of the compiled grammar. The work is done in a
second process, which is ended and started again when a schema takes longer
than its patience: such a schema counts as a compile error if it was not
compiled, and else as far as it came.
"""

import argparse
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("tokenizer")
    parser.add_argument("cases")
    parser.add_argument("--end-token", type=int, required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--patience", type=float, default=20.0)
    parser.add_argument("--worker", action="store_true")
    return parser.parse_args()


class Worker:
    """A process that answers one offset into the cases at a time."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, *sys.argv, "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        os.set_blocking(self.process.stdout.fileno(), False)
        self.text = b""
        if "ready" not in (self.read(300) or {}):
            sys.exit("XGrammar does not load")

    def read(self, seconds):
        """The next line, or None if none comes in time or ever."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self.text:
            left = deadline - time.monotonic()
            out = self.process.stdout
            if left <= 0 or not select.select([out], [], [], left)[0]:
                return None
            more = out.read(1 << 20)
            if more == b"":
                return None
            self.text += more or b""
        line, self.text = self.text.split(b"\n", 1)
        return json.loads(line)

    def run(self, offset, patience):
        """The result of a case, or None with how far the worker came."""
        self.process.stdin.write(b"%d\n" % offset)
        self.process.stdin.flush()
        deadline = time.monotonic() + patience
        phase = None
        while True:
            line = self.read(deadline - time.monotonic())
            if line is None:
                return None, phase
            if "phase" not in line:
                return line, None
            phase = line

    def end(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


def drive(options):
    worker, peak, done = None, 0.0, 0
    begun = time.monotonic()
    with open(options.cases, "rb") as cases:
        while True:
            offset = cases.tell()
            line = cases.readline()
            if not line:
                break
            worker = worker or Worker()
            result, phase = worker.run(offset, options.patience)
            if result is None:
                worker.end()
                worker = None
                result = late(json.loads(line), phase, options.patience)
            peak = max(peak, result.pop("rss_mb", 0.0))
            print(json.dumps(result), flush=True)
            done += 1
            if time.monotonic() - begun > 10:
                begun = time.monotonic()
                print(f"{done}: XGrammar on {result['id']}", file=sys.stderr)
    if worker:
        worker.end()
    print(json.dumps({"peak_rss_mb": peak}))


def late(case, phase, patience):
    """The result of a schema whose worker was ended, or ended itself."""
    result = {"id": case["name"]}
    if phase is None:
        result["compile_error"] = f"ended, or not done in {patience:.0f} s"
        return result
    result.update(phase["times"])
    for name in ["mask_ns", "mask_cpu_ns", "consume_ns", "consume_cpu_ns"]:
        result[name] = []
    error = f"not read in {patience:.0f} s"
    result["tests"] = [
        [valid, False, False, 0, len(tokens), error]
        for valid, tokens in case["tests"]
    ]
    return result


def vocabulary(path, width):
    """The tokens of a tokenizer.json, by id, as the library wants them."""
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    tokens = [""] * width
    for token, index in data["model"]["vocab"].items():
        tokens[index] = token
    for added in data["added_tokens"]:
        tokens[added["id"]] = added["content"]
    return tokens


class Clock:
    """The processor's clock with the wall's inside; both cost something."""

    def __init__(self):
        self.cost = (0, 0)
        empty = sorted(self.time(lambda: None)[1] for _ in range(100_000))
        wall = sorted(reading[1] for reading in empty)
        self.cost = (empty[len(empty) // 2][0], wall[len(wall) // 2])

    def time(self, work, *values):
        cpu = time.thread_time_ns()
        wall = time.perf_counter_ns()
        value = work(*values)
        wall = time.perf_counter_ns() - wall
        cpu = time.thread_time_ns() - cpu
        return value, (
            max(0, cpu - self.cost[0]),
            max(0, wall - self.cost[1]),
        )


def work(options):
    import numpy
    import tvm_ffi
    import xgrammar

    # What the library prints is not to be taken for a line of ours.
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(line):
        lines.write(json.dumps(line) + "\n")
        lines.flush()

    info = xgrammar.TokenizerInfo(
        vocabulary(options.tokenizer, options.width),
        xgrammar.VocabType.BYTE_LEVEL,
        vocab_size=options.width,
        stop_token_ids=[options.end_token],
    )
    words = numpy.zeros((1, (options.width + 31) // 32), dtype=numpy.int32)
    mask = tvm_ffi.from_dlpack(words)
    clock = Clock()
    say({"ready": True})
    with open(options.cases, "rb") as cases:
        for line in sys.stdin:
            cases.seek(int(line))
            case = json.loads(cases.readline())
            run(xgrammar, info, case, words[0], mask, clock, options, say)


def run(xgrammar, info, case, row, mask, clock, options, say):
    compiler = xgrammar.GrammarCompiler(
        info, max_threads=1, cache_enabled=False
    )

    def begin():
        compiled = compiler.compile_json_schema(case["schema"])
        return compiled, xgrammar.GrammarMatcher(compiled)

    result = {"id": case["name"]}
    try:
        (compiled, matcher), compiling = clock.time(begin)
        _, first = clock.time(matcher.fill_next_token_bitmask, mask)
    except Exception as error:  # whatever the library throws is its answer
        result["compile_error"] = f"{type(error).__name__}: {error}"[:500]
        result["rss_mb"] = peak_mb()
        say(result)
        return
    times = {}
    for name, (cpu, wall) in [("compile", compiling), ("first_mask", first)]:
        times[f"{name}_cpu_ns"], times[f"{name}_ns"] = cpu, wall
    say({"phase": "compiled", "times": times})
    result.update(times)
    masks, accepts, tests = [], [], []

    def allows(token):
        return int(row[token >> 5]) >> (token & 31) & 1

    for valid, tokens in case["tests"]:
        matcher = xgrammar.GrammarMatcher(compiled)
        allowed, accepting, error, n_accepted = True, False, None, 0
        for token in tokens:
            _, span = clock.time(matcher.fill_next_token_bitmask, mask)
            masks.append(span)
            if not allows(token):
                allowed = False
                break
            accepted, span = clock.time(matcher.accept_token, token)
            if not accepted:
                allowed, error = False, "refused a token that it allows"
                break
            accepts.append(span)
            n_accepted += 1
        if allowed:
            matcher.fill_next_token_bitmask(mask)
            accepting = bool(allows(options.end_token))
        tests.append(
            [valid, allowed, accepting, n_accepted, len(tokens), error]
        )
    for name, spans in [("mask", masks), ("consume", accepts)]:
        result[f"{name}_cpu_ns"] = [cpu for cpu, _ in spans]
        result[f"{name}_ns"] = [wall for _, wall in spans]
    result["tests"] = tests
    result["rss_mb"] = peak_mb()
    say(result)


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    chosen = arguments()
    work(chosen) if chosen.worker else drive(chosen)
