#!/usr/bin/env python3
"""XGrammar over the grammars of `maskwright-bench grammars --dump FILE`.

    python3 -m venv v && v/bin/pip install xgrammar==0.2.9
    v/bin/python bench/xgrammar_grammars.py tokenizer.json FILE [SECONDS]

Prints a line a grammar in the columns of that command: processor time of the
thread in microseconds, the clock's own cost subtracted. One thread; the
compiled grammar is new for each text; a text ends after SECONDS (20).
"""

import json
import sys
import time

import xgrammar as xgr

def vocabulary(path, width):
    """The tokens of a tokenizer.json, by id, as the library wants them."""
    data = json.load(open(path, encoding="utf-8"))
    tokens = [""] * width
    for token, index in data["model"]["vocab"].items():
        tokens[index] = token
    for added in data["added_tokens"]:
        tokens[added["id"]] = added["content"]
    return tokens


def cost(clock):
    """What two readings of a clock take."""
    readings = sorted(-(clock() - clock()) for _ in range(100_000))
    return readings[len(readings) // 2]


def main():
    tokenizer, prepared = sys.argv[1:3]
    patience = float(sys.argv[3]) if len(sys.argv) > 3 else 20.0
    clock = time.thread_time_ns
    own = cost(clock)
    info = None
    for line in open(prepared, encoding="utf-8"):
        grammar = json.loads(line)
        if info is None:
            info = xgr.TokenizerInfo(
                vocabulary(tokenizer, grammar["width"]),
                xgr.VocabType.BYTE_LEVEL,
                vocab_size=grammar["width"],
                stop_token_ids=[grammar["end_token"]],
            )
        started = clock()
        try:
            compiler = xgr.GrammarCompiler(
                info, max_threads=1, cache_enabled=False
            )
            matcher = xgr.GrammarMatcher(
                compiler.compile_grammar(grammar["ebnf"])
            )
        except RuntimeError as error:
            print(f"| {grammar['name']} | XGrammar | refused: {error} |")
            continue
        mask = xgr.allocate_token_bitmask(1, grammar["width"])
        matcher.fill_next_token_bitmask(mask)
        first = clock() - started
        matcher.reset()
        masks, accepts, why = [], [], ""
        deadline = time.monotonic() + patience
        for token in grammar["tokens"]:
            at = clock()
            matcher.fill_next_token_bitmask(mask)
            masks.append(max(0, clock() - at - own))
            at = clock()
            accepted = matcher.accept_token(token)
            accepts.append(max(0, clock() - at - own))
            if not accepted:
                why = " (the last refused)"
                break
            if time.monotonic() > deadline:
                why = f" (stopped after {patience:.0f} s)"
                break
        show(grammar["name"], masks, accepts, why, first)


def show(name, masks, accepts, why, first):
    """Prints the line of a grammar."""
    tenth = max(1, len(masks) // 10)

    def average(times):
        return sum(times) / len(times) / 1e3

    order = sorted(masks)
    figures = [
        average(masks),
        order[len(order) // 2] / 1e3,
        order[len(order) * 99 // 100] / 1e3,
        order[-1] / 1e3,
        average(accepts),
        average(masks[:tenth]),
        average(masks[-tenth:]),
        first / 1e3,
    ]
    cells = " | ".join(f"{figure:.2f}" for figure in figures)
    print(f"| {name} | XGrammar 0.2.9 | {len(masks)}{why} | {cells} |")


main()
