"""Random rows of logits, and the comparison of `maskwright pipeline` with a peer.

What the scripts beside this one share: `hf_pipeline.py`, `llama_cpp_pipeline.py`
and `vllm_pipeline.py` bring the parameters and the peer.
"""

import argparse
import json
import random
import subprocess
import sys
import time


class Rng(random.Random):
    """A generator of cases."""

    def ids(self, width, most):
        """Some tokens."""
        return [self.randrange(width) for _ in range(self.randint(1, most))]

    def maybe(self, parameters, name, values, chance=0.4):
        """Sets a parameter to one of the values, now and then."""
        if self.random() < chance:
            parameters[name] = self.choice(values)

    def row(self, index, holes=(0.0, 0.0, 0.1, 0.5)):
        """A row with a text and perhaps a mask; nothing is asked of it yet."""
        width = self.choice([1, 2, 8, 50, 300, 1000, 5000])
        grain = self.choice([1, 8, 1024])
        spread = self.choice([2.0, 10.0, 30.0])
        holes = self.choice(holes)
        logits = [
            None
            if self.random() < holes
            else round((self.random() - 0.5) * spread * grain) / grain
            for _ in range(width)
        ]
        few = min(width, 6)
        case = {
            "id": index,
            "logits": logits,
            "prompt": self.ids(width, 12),
            "history": [self.randrange(few) for _ in range(self.randint(0, 12))],
            "parameters": {},
        }
        if self.random() < 0.6:
            share = self.choice([0.01, 0.1, 0.5, 0.95])
            allowed = {i for i in range(width) if self.random() < share}
            case["mask"] = sorted(allowed | set(self.ids(width, 2)))
        return case


def is_equal(ours, theirs):
    """Whether the same tokens are left, each about as likely."""
    if ours is None or theirs is None:
        return ours is None and theirs is None
    if ours.keys() != theirs.keys():
        return False
    return all(
        abs(ours[i] - theirs[i]) <= 1e-5 * max(1.0, abs(theirs[i])) for i in ours
    )


def differs_by_ties(ours, theirs):
    """Whether the same probabilities are left on other tokens.

    Which of equal logits a truncation drops is nowhere defined: the peers sort
    with unstable sorts.
    """
    if not ours or not theirs or len(ours) != len(theirs):
        return False
    pairs = zip(sorted(ours.values()), sorted(theirs.values()))
    return all(abs(a - b) <= 1e-5 for a, b in pairs)


def arguments(more=lambda parser: None):
    """The command line of such a script."""
    parser = argparse.ArgumentParser()
    parser.add_argument("maskwright")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    more(parser)
    return parser.parse_args()


def answers_of(maskwright, cases):
    """What maskwright says of each case."""
    command = [maskwright, "pipeline", "--jsonl", "-", "--top", "0"]
    lines = "\n".join(json.dumps(case) for case in cases)
    run = subprocess.run(command, input=lines, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{command}: {run.stderr}")
    return [json.loads(line) for line in run.stdout.splitlines()]


def left_of(case, answer):
    """The probabilities that maskwright leaves, by token. At temperature 0 it
    is the token that was chosen, with its logit."""
    if answer["error"] is None:
        if case["parameters"].get("temperature") == 0:
            return {answer["choice"]["token"]: answer["choice"]["logit"]}
        last = answer["stages"][-1]["tokens"]
        return {one["id"]: one["probability"] for one in last}
    if "no token is left" in answer["error"]:
        return None
    return sys.exit(f"row {case['id']}: {answer['error']}")


def compare(args, random_case, by_peer, near, peer, explain=lambda *_: None):
    """Compares, prints what came of it, and ends with 1 if anything differs.

    `by_peer` returns the probabilities that the peer leaves, `near` what it
    leaves when it is moved by less than its rounding, and `explain` the name
    of a known difference, if a row shows one.
    """
    rng = Rng(args.seed)
    cases = [random_case(rng, index) for index in range(args.rows)]
    started = time.time()
    counts = dict.fromkeys(
        ["equal", "tie", "edge", "yielded", "empty", "different"], 0
    )
    for case, answer in zip(cases, answers_of(args.maskwright, cases), strict=True):
        assert case["id"] == answer["id"]
        theirs, ours = by_peer(case), left_of(case, answer)
        if answer.get("yielded"):
            # What would leave nothing yields here, and nowhere else.
            kind = "yielded" if theirs is None else "different"
        elif ours is None and theirs is None:
            kind = "empty"
        elif is_equal(ours, theirs):
            kind = "equal"
        elif differs_by_ties(ours, theirs):
            kind = "tie"
        elif known := explain(case, ours, theirs):
            kind = known
        else:
            moved = near(case)
            is_edge = any(
                is_equal(ours, it)
                or differs_by_ties(ours, it)
                or (it and it.keys() != theirs.keys())
                for it in moved
            )
            kind = "edge" if is_edge else "different"
        counts[kind] = counts.get(kind, 0) + 1
        if kind == "different":
            print("different:", json.dumps(case["parameters"]), case["id"])
            print("  ours  ", ours and list(ours.items())[:8])
            print("  theirs", theirs and list(theirs.items())[:8])
    took = time.time() - started
    print(peer)
    print(
        f"{len(cases)} rows in {took:.0f} s: "
        + ", ".join(f"{n} {kind}" for kind, n in counts.items())
    )
    sys.exit(1 if counts["different"] else 0)
