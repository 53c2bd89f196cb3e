#!/usr/bin/env python3
"""Compares `maskwright pipeline --order llama.cpp` with llama.cpp.

Runs llama.cpp's own samplers (the library that llama-cpp-python builds, called
without a model), in the order in which `common_sampler_init` chains them, over
random rows and parameters, and compares survivors and probabilities after the
last one.

    pip install llama-cpp-python
    python bench/llama_cpp_pipeline.py target/debug/maskwright [--rows 1000]

The mask comes first: what it forbids is no candidate. Mirostat is compared at
its first step, and XTC with a probability of 1, since the random numbers are
other ones.

A row counts as equal when the same tokens are left and no probability differs
by more than 1e-5. A row whose outcome hangs on the last digits is told apart:
llama.cpp sums up in single precision, so a token on the very edge of a
truncation may go either way. It counts as an edge only if llama.cpp itself
changes its mind when its thresholds are moved by one part in a hundred
thousand, or all logits by one in a million. Some differences are known and
meant; a row counts as one of them only if llama.cpp comes to what maskwright
does once its reason is taken away. See `DEAD`, `MOVED`, `SKIPPED` and
`OVERFLOW`.
"""

import ctypes
import importlib.util
import math
import pathlib
import sys

from pipeline_rows import arguments, compare, differs_by_ties, is_equal

DEAD = "dead tokens"
"""llama.cpp's top-n-sigma sets what it drops to minus infinity and leaves it in
the list. If no top-k follows, typical-p computes 0 * log 0, which is NaN, and
sorts by it; and dynamic temperature counts the dead tokens in the entropy that
would be the greatest. Tokens so unlikely that their probability is 0 in single
precision make NaN of typical-p as well. Maskwright drops what is dropped, and 0
times log 0 is 0."""

UNDERFLOW = -103.0
"""The least exponent whose power of e is not 0 in single precision, about."""

MOVED = "zero that moves"
"""In llama.cpp a temperature of 0 with a dynamic range is one between 0 and the
range. Maskwright leaves nothing to chance at temperature 0, in every order, and
warns that the range has no effect."""

SKIPPED = "zero with mirostat"
"""With mirostat llama.cpp has neither penalties nor DRY, at temperature 0 too,
where mirostat keeps one token. Maskwright warns that mirostat has no effect
there, and does what it would do without."""

THRESHOLDS = ["top_p", "min_p", "typical_p", "xtc_threshold", "top_n_sigma", "mirostat_tau"]


OVERFLOW = "k beyond an int"
"""Where the likeliest tokens are about equally likely, mirostat 1 comes to a k
beyond any int, of which a cast makes the least one, and llama.cpp keeps one
token. Maskwright keeps all of them."""

DYNAMIC = "dynamic_temperature_range"


class Token(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_int32),
        ("logit", ctypes.c_float),
        ("p", ctypes.c_float),
    ]


class Tokens(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.POINTER(Token)),
        ("size", ctypes.c_size_t),
        ("selected", ctypes.c_int64),
        ("sorted", ctypes.c_bool),
    ]


class Bias(ctypes.Structure):
    _fields_ = [("token", ctypes.c_int32), ("bias", ctypes.c_float)]


class Vector(ctypes.Structure):
    """std::vector, as libstdc++ and libc++ lay it out."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("begin", "end", "room")]

    @classmethod
    def of(cls, array):
        start = ctypes.addressof(array)
        end = start + ctypes.sizeof(array)
        vector = cls(start, end, end)
        vector.array = array
        return vector


class Library:
    """The samplers by name. What ends in `_init_` something makes one."""

    I, F, N, P = ctypes.c_int32, ctypes.c_float, ctypes.c_size_t, ctypes.c_void_p
    MAKERS = {
        "logit_bias": [I, I, ctypes.POINTER(Bias)],
        "penalties": [I, I, F, F, F],
        "dry": [P, F, F, I, I, P, N],
        "top_n_sigma": [F],
        "top_k": [I],
        "typical": [F, N],
        "top_p": [F, N],
        "min_p": [F, N],
        "xtc": [F, F, N, ctypes.c_uint32],
        "temp": [F],
        "temp_ext": [F, F, F],
        "mirostat": [I, ctypes.c_uint32, F, F, I],
        "mirostat_v2": [ctypes.c_uint32, F, F],
    }
    # What llama.cpp's own tests make samplers with, to name tokens and no texts.
    DRY = "_Z30llama_sampler_init_dry_testingffiiRKSt6vectorIS_IiSaIiEESaIS1_EE"

    def __init__(self, path):
        self.c = ctypes.CDLL(str(path))
        for name, types in self.MAKERS.items():
            make = getattr(self.c, f"llama_sampler_init_{name}")
            make.argtypes, make.restype = types, ctypes.c_void_p
        self.c.llama_sampler_apply.argtypes = [self.P, ctypes.POINTER(Tokens)]
        self.c.llama_sampler_accept.argtypes = [self.P, self.I]
        self.c.llama_sampler_free.argtypes = [self.P]
        self.c.llama_sampler_apply.restype = None
        self.c.llama_sampler_accept.restype = None
        self.c.llama_sampler_free.restype = None

    def make(self, name, *values):
        return getattr(self.c, f"llama_sampler_init_{name}")(*values)

    def dry(self, multiplier, base, allowed_length, last_n, breakers):
        if not breakers:
            return self.make("dry", None, multiplier, base, allowed_length, last_n, None, 0)
        make = self.c[self.DRY]
        F, I = self.F, self.I
        make.argtypes, make.restype = [F, F, I, I, ctypes.POINTER(Vector)], self.P
        inner = [Vector.of((I * len(ids))(*ids)) for ids in breakers]
        outer = Vector.of((Vector * len(inner))(*inner))
        return make(multiplier, base, allowed_length, last_n, ctypes.byref(outer))


def find_library():
    spec = importlib.util.find_spec("llama_cpp")
    if spec is None:
        sys.exit("llama-cpp-python is not installed; pip install llama-cpp-python")
    folder = pathlib.Path(spec.origin).parent / "lib"
    for name in ["libllama.so", "libllama.dylib"]:
        if (folder / name).exists():
            return folder / name
    return sys.exit(f"{folder}: there is no libllama in it")


def random_case(rng, index):
    case = rng.row(index, holes=(0.0,))
    case["order"] = "llama.cpp"
    width, p = len(case["logits"]), case["parameters"]
    maybe = lambda *rule: rng.maybe(p, *rule)
    maybe("temperature", [0.0, 0.3, 0.7, 1.3, 2.0], 0.7)
    maybe("dynamic_temperature_range", [0.2, 0.5], 0.2)
    maybe("dynamic_temperature_exponent", [0.5, 2.0], 0.3)
    maybe("top_k", [0, 1, 2, 5, 20, 50, 400], 0.6)
    maybe("top_p", [0.0, 0.1, 0.5, 0.8, 0.999, 1.0], 0.6)
    maybe("min_p", [0.0, 0.01, 0.2, 0.9], 0.6)
    maybe("typical_p", [0.1, 0.5, 0.9], 0.2)
    maybe("top_n_sigma", [0.5, 1.0, 3.0], 0.2)
    maybe("xtc_threshold", [0.02, 0.1, 0.3, 0.6], 0.3)
    maybe("xtc_probability", [1.0], 0.3)
    # Under a mask those of the order are off, and so the user has to say them.
    p["repetition_penalty"] = rng.choice([1.0, 1.0, 1.1, 1.5, 0.8])
    p["frequency_penalty"] = rng.choice([0.0, 0.0, 0.5, -1.0])
    p["presence_penalty"] = rng.choice([0.0, 0.0, 0.25, -2.0])
    maybe("penalty_last_n", [0, 1, 5, 64], 0.3)
    if rng.random() < 0.4:
        p["dry_multiplier"] = rng.choice([0.8, 2.0])
        maybe("dry_base", [1.0, 1.5, 4.0])
        maybe("dry_allowed_length", [0, 1, 2, 4])
        maybe("dry_last_n", [3, 8, 30])
        few = min(width, 6)
        if rng.random() < 0.5:
            p["dry_sequence_breakers"] = [
                rng.ids(few, 3) for _ in range(rng.randint(1, 2))
            ]
        # A text that repeats itself.
        case["history"] = (case["history"] * 3)[: rng.randint(0, 40)]
    if rng.random() < 0.3:
        tokens = sorted(set(rng.ids(width, 3)))
        p["logit_bias"] = [[token, rng.choice([2.0, -1.5])] for token in tokens]
    if rng.random() < 0.15:
        p["mirostat"] = rng.choice([1, 2])
        maybe("mirostat_tau", [0.5, 2.0, 5.0])
        maybe("mirostat_eta", [0.05, 0.2])
    return case


def samplers(library, case):
    """The chain of `common_sampler_init`, with the defaults of
    `common_params_sampling`."""
    p, width = case["parameters"], len(case["logits"])
    make = library.make
    chain = []
    if "logit_bias" in p:
        biases = [Bias(token, bias) for token, bias in p["logit_bias"]]
        array = (Bias * len(biases))(*biases)
        chain.append(make("logit_bias", width, len(biases), array))
    temperature = p.get("temperature", 0.8)
    if p.get("mirostat", 0) > 0:
        chain.append(make("temp", temperature))
        tau, eta = p.get("mirostat_tau", 5.0), p.get("mirostat_eta", 0.1)
        if p["mirostat"] == 1:
            chain.append(make("mirostat", width, 0, tau, eta, 100))
        else:
            chain.append(make("mirostat_v2", 0, tau, eta))
        return chain
    penalties = [p[f"{kind}_penalty"] for kind in ("repetition", "frequency", "presence")]
    return chain + [
        make("penalties", width, p.get("penalty_last_n", 64), *penalties),
        library.dry(
            p.get("dry_multiplier", 0.0),
            p.get("dry_base", 1.75),
            p.get("dry_allowed_length", 2),
            p.get("dry_last_n", 4096),
            p.get("dry_sequence_breakers", []),
        ),
        make("top_n_sigma", p.get("top_n_sigma", -1.0)),
        make("top_k", p.get("top_k", 40)),
        make("typical", p.get("typical_p", 1.0), 0),
        make("top_p", p.get("top_p", 0.95), 0),
        make("min_p", p.get("min_p", 0.05), 0),
        make("xtc", p.get("xtc_probability", 0.0), p.get("xtc_threshold", 0.1), 0, 0),
        make(
            "temp_ext",
            temperature,
            p.get("dynamic_temperature_range", 0.0),
            p.get("dynamic_temperature_exponent", 1.0),
        ),
    ]


def by_llama_cpp(library, case, scale=1.0, without_dead=False):
    """The probabilities that llama.cpp leaves, by token; at temperature 0 the
    one token with its logit."""
    allowed = case.get("mask", range(len(case["logits"])))
    rows = [Token(i, case["logits"][i] * scale, 0.0) for i in allowed]
    if not rows:
        return None
    array = (Token * len(rows))(*rows)
    tokens = Tokens(array, len(rows), -1, False)
    for sampler in samplers(library, case):
        for token in case["prompt"] + case["history"]:
            library.c.llama_sampler_accept(sampler, token)
        library.c.llama_sampler_apply(sampler, ctypes.byref(tokens))
        library.c.llama_sampler_free(sampler)
        if without_dead:
            row = tokens.data[: tokens.size]
            least = max(one.logit for one in row) + UNDERFLOW
            alive = [
                (one.id, one.logit, one.p) for one in row if one.logit > least
            ]
            for place, one in enumerate(alive):
                tokens.data[place] = Token(*one)
            tokens.size = len(alive)
    left = {
        one.id: one.logit
        for one in tokens.data[: tokens.size]
        if one.logit > -math.inf
    }
    if case["parameters"].get("temperature") == 0:
        return left
    greatest = max(left.values())
    weights = {token: math.exp(logit - greatest) for token, logit in left.items()}
    total = math.fsum(weights.values())
    return {token: weight / total for token, weight in weights.items()}


def near(library, case):
    """What llama.cpp leaves when it is moved a little."""
    p = case["parameters"]
    for factor in (1 + 1e-5, 1 - 1e-5):
        moved = {
            name: value * factor if name in THRESHOLDS else value
            for name, value in {"top_p": 0.95, "min_p": 0.05, **p}.items()
        }
        yield by_llama_cpp(library, {**case, "parameters": moved})
    for scale in (1 + 1e-6, 1 - 1e-6):
        yield by_llama_cpp(library, case, scale)


def overflows(case, ours):
    """Whether mirostat's k is beyond an int; `ours` is everything then."""
    likeliest = sorted(ours.values(), reverse=True)[:100]
    pairs = list(zip(likeliest, likeliest[1:]))
    if not pairs:
        return False
    distances = [math.log((rank + 2) / (rank + 1)) for rank in range(len(pairs))]
    slopes = [math.log(a / b) for a, b in pairs]
    zipf = sum(map(math.prod, zip(distances, slopes))) / sum(d * d for d in distances)
    if zipf < 1e-6:
        # One over it is the exponent, of something above 1.
        return True
    excess, bound = zipf - 1, 2 * case["parameters"].get("mirostat_tau", 5.0)
    ratio = excess / (1 - len(case["logits"]) ** -excess)
    return (math.log(ratio) + bound * math.log(2)) / zipf > 31 * math.log(2)


def explain(library, case, ours, theirs):
    """The name of a known difference."""
    p = case["parameters"]
    is_zero, has_mirostat = p.get("temperature") == 0, "mirostat" in p
    without = []
    if is_zero and has_mirostat:
        kind, without = SKIPPED, ["mirostat", "typical_p", "xtc_probability", DYNAMIC]
    elif is_zero and DYNAMIC in p:
        kind, without = MOVED, [DYNAMIC]
    elif p.get("mirostat") == 1:
        return OVERFLOW if overflows(case, ours) and len(theirs) == 1 else None
    elif "top_n_sigma" in p or "typical_p" in p:
        kind = DEAD
    else:
        return None
    other = {name: value for name, value in p.items() if name not in without}
    other = by_llama_cpp(library, {**case, "parameters": other}, 1.0, kind == DEAD)
    return kind if is_equal(ours, other) or differs_by_ties(ours, other) else None


def main():
    path = lambda parser: parser.add_argument(
        "--library", help="another libllama than that of llama-cpp-python"
    )
    args = arguments(path)
    library = Library(args.library or find_library())
    if args.library:
        peer = args.library
    else:
        from importlib.metadata import version

        peer = f"llama-cpp-python {version('llama-cpp-python')}"
    compare(
        args,
        random_case,
        lambda case: by_llama_cpp(library, case),
        lambda case: list(near(library, case)),
        peer,
        lambda *row: explain(library, *row),
    )


if __name__ == "__main__":
    main()
