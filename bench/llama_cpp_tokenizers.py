#!/usr/bin/env python3
"""Compares the tokenizers of GGUF files with llama.cpp's.

For each name of a pre-tokenizer (`tokenizer.ggml.pre`) that maskwright knows,
and for the kinds of SentencePiece vocabularies, writes a file that has a
vocabulary and nothing else, splits forty hard texts with llama.cpp and with
maskwright, and prints how many agree.

    pip install llama-cpp-python tokenizers
    cargo build --example tokenize
    python bench/llama_cpp_tokenizers.py target/debug/examples/tokenize \\
        [--model MODEL.gguf ...] [--show]

The vocabularies are made of the texts themselves: the commonest neighbours are
joined again and again, across all borders that a pre-tokenizer may draw, so
that a border in another place shows in the ids.

Some differences are known and meant, see `CASED`.
"""

import argparse
import collections
import ctypes
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

TEXTS = [
    "",
    " ",
    "   ",
    "\t",
    "\n",
    "\n\n\n",
    "\r\n\r\nx",
    "Hello, world!",
    " Hello  world   again ",
    "a\tb\t\tc \t d",
    "line one\nline two\r\n  indented\n\n\n\tdone",
    "trailing spaces   \nand more  \n ",
    "It's we're I've I'm you'll he'd can't",
    "IT'S WE'RE I'VE I'M YOU'LL HE'D CAN'T it'S",
    "'s'tx 'Reply' ''s don''t",
    "1 22 333 4444 55555 1234567890",
    "3.14159 1,000,000 -7 +8 1e10 0x1F 12a34",
    "x=1;y+=2;z!=3&&(a<=b||c>=d)",
    "def f(x):\n    return x**2  # square\n",
    "<b>bold</b> & <i class=\"x\">it</i>",
    "https://example.org/a/b?c=d&e=%20f#g",
    "snake_case camelCase PascalCase SCREAMING_CASE kebab-case",
    "XMLHttpRequest iPhone McDonald GmbH",
    "\u00c9COLE \u00e9cole \u00c9cole \u00fcber \u00dcBER \u00dfa",
    "\u041f\u0440\u0438\u0432\u0435\u0442 \u041c\u0418\u0420 \u043c\u0438\u0440\u041c\u0418\u0420",
    "\u4f60\u597d\uff0c\u4e16\u754c\u30023\u4e2a\u82f9\u679c",
    "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c \u30ab\u30bf\u30ab\u30ca\u30fc",
    "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4 \u3131\u3134",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645\u060c \u0661\u0662\u0663\u0664",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01 \u0e51\u0e52\u0e53",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e\u0964 \u0967\u0968",
    "e\u0301a\u0308o\u0302 a\u0301\u0302\u0303 Z\u0351\u036b\u0343a\u0321lgo",
    "\U0001f600\U0001f680 \U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \u2764\ufe0f",
    "\u00bd \u00b2 \u2163 \u2460 \u0be7 10\u00b2",
    "nbsp\u00a0here\u3000wide\u2003em\u200bzero\u2028sep\u0085nel",
    "\ufffd\uffff\ufdd0\U0001fffe \ue000 \x00\x01\x7f",
    "\u201cquoted\u201d \u2018x\u2019 \u2014 dash\u2026 \u00abg\u00bb",
    "!!!???...,,,;;; (((())))[]{} ~~~ ``` ^^^ $$$ ###",
    "<0x41> <s> \u2581lower<|user|> \n x<|end|>\ty <s> z <|user|>",
    "mixed \u4e2d\u6587English\u0440\u0443\u0441123\uff11\uff12 \t\n \u00a0end",
]

NAMES = pathlib.Path(__file__).parent.parent / (
    "runtime/src/model/tokenizer/rules.rs"
)

LARGE = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}"
SMALL = r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
BEFORE = r"[^\r\n\p{L}\p{N}]?"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def cased(end, digits, slash="/", without=""):
    large, small = f"[{LARGE}{without}]", f"[{SMALL}{without}]"
    return (
        f"{BEFORE}{large}*{small}+{end}|{BEFORE}{large}+{small}*{end}"
        rf"|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n{slash}]*|{SPACES}"
    )


O200K = cased(CONTRACTION, r"\p{N}{1,3}")
KIMI = r"[\p{Han}]+|" + cased(
    CONTRACTION, r"\p{N}{1,3}", "", r"&&[^\p{Han}]"
)
GROUPED = r"\d{1,3}(?=(?:\d{3})*\b)"

CASED = {
    "tekken": [cased("", r"\p{N}")],
    "gpt-4o": [O200K],
    "llama4": [O200K],
    "kanana2": [O200K],
    "talkie": [O200K],
    "minimax-m2": [O200K],
    "granite-embed-multi-97m": [O200K],
    "tiny_aya": [GROUPED, O200K],
    "cohere2moe": [GROUPED, O200K],
    "kimi-k2": [KIMI],
}
"""Models that cut words where small letters are followed by large ones, with
the expressions of their own tokenizers. llama.cpp does otherwise here: as its
engine has no such classes, every letter beyond ASCII (or every letter) is both
large and small, and marks may be no part of words. So these are judged by the
`tokenizers` package, where it is installed, and llama.cpp is a column."""


def byte_alphabet():
    """The character that byte-level vocabularies write for each byte."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    table = {byte: chr(byte) for byte in plain}
    table.update({byte: chr(256 + i) for i, byte in enumerate(others)})
    return [table[byte] for byte in range(256)]


def train(texts, n_merges):
    """Joins the commonest neighbours, without any borders."""
    words = [list(text) for text in texts if text]
    merges = []
    for _ in range(n_merges):
        pairs = collections.Counter(
            pair for word in words for pair in zip(word, word[1:])
        )
        pairs = {
            pair: n for pair, n in pairs.items()
            if "".join(pair) not in {"".join(merge) for merge in merges}
        }
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        for word in words:
            i = 0
            while i + 1 < len(word):
                if (word[i], word[i + 1]) == best:
                    word[i:i + 2] = ["".join(best)]
                i += 1
    return merges


def gguf(entries):
    """A file of metadata: pairs of a key and a value."""
    def string(text):
        data = text.encode()
        return struct.pack("<Q", len(data)) + data

    def typed(value):
        if isinstance(value, bool):
            return 7, struct.pack("<?", value)
        if isinstance(value, int):
            return 4, struct.pack("<I", value)
        if isinstance(value, float):
            return 6, struct.pack("<f", value)
        if isinstance(value, str):
            return 8, string(value)
        kind = 8 if isinstance(value[0], str) else (
            6 if isinstance(value[0], float) else 5
        )
        data = [
            string(item) if kind == 8
            else struct.pack("<f" if kind == 6 else "<i", item)
            for item in value
        ]
        return 9, struct.pack("<IQ", kind, len(value)) + b"".join(data)

    out = b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries))
    for key, value in entries:
        kind, data = typed(value)
        out += string(key) + struct.pack("<I", kind) + data
    return out


def byte_level(name, merges):
    tokens = byte_alphabet() + ["".join(merge) for merge in merges]
    tokens += ["<s>", "</s>"]
    types = [1] * (len(tokens) - 2) + [3, 3]
    return gguf([
        ("general.architecture", "llama"),
        ("tokenizer.ggml.model", "gpt2"),
        ("tokenizer.ggml.pre", name),
        ("tokenizer.ggml.tokens", tokens),
        ("tokenizer.ggml.token_type", types),
        ("tokenizer.ggml.merges", [" ".join(merge) for merge in merges]),
        ("tokenizer.ggml.bos_token_id", len(tokens) - 2),
        ("tokenizer.ggml.eos_token_id", len(tokens) - 1),
    ])


def sentence_piece(merges, more, special):
    tokens = ["<unk>", "<s>", "</s>"]
    types = [2, 3, 3]
    tokens += [f"<0x{byte:02X}>" for byte in range(256)]
    types += [6] * 256
    for text, kind in special:
        tokens.append(text)
        types.append(kind)
    scores = [0.0] * len(tokens)
    joined = ["".join(merge) for merge in merges]
    single = sorted({char for text in joined for char in text})
    for i, text in enumerate(joined + single):
        if text not in tokens:
            tokens.append(text)
            types.append(1)
            # Some pieces have the same score.
            scores.append(-float(i // 2))
    return gguf([
        ("general.architecture", "llama"),
        ("tokenizer.ggml.model", "llama"),
        ("tokenizer.ggml.tokens", tokens),
        ("tokenizer.ggml.scores", scores),
        ("tokenizer.ggml.token_type", types),
        *more,
    ])


def llama_ids(llama, path, texts):
    parameters = llama.llama_model_default_params()
    parameters.vocab_only = True
    model = llama.llama_model_load_from_file(str(path).encode(), parameters)
    if not model:
        return None
    vocabulary = llama.llama_model_get_vocab(model)
    ids = []
    for text in texts:
        data = text.encode()
        room = len(data) + 16
        out = (llama.llama_token * room)()
        n = llama.llama_tokenize(
            vocabulary, data, len(data), out, room, True, True
        )
        ids.append(list(out[:n]))
    llama.llama_model_free(model)
    return ids


def our_ids(tokenize, path, texts):
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    run = subprocess.run(
        [tokenize, str(path)], input=lines, text=True, capture_output=True,
    )
    if run.returncode != 0:
        return run.stderr.strip()
    return [json.loads(line) for line in run.stdout.splitlines()]


def library_ids(name, merges, texts):
    """What the models' own library does with their expressions."""
    try:
        import tokenizers
    except ImportError:
        return None
    from tokenizers import models, pre_tokenizers
    tokens = byte_alphabet() + ["".join(merge) for merge in merges]
    tokens += ["<s>", "</s>"]
    ids = {token: i for i, token in enumerate(tokens)}
    whole = name in ("tekken", "granite-embed-multi-97m")
    library = tokenizers.Tokenizer(
        models.BPE(vocab=ids, merges=merges, ignore_merges=whole)
    )
    library.add_special_tokens(["<s>", "</s>"])
    library.pre_tokenizer = pre_tokenizers.Sequence([
        *(
            pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
            for pattern in CASED[name]
        ),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    begin = [len(tokens) - 2] if name == "tekken" else []
    return [begin + library.encode(text).ids for text in texts]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tokenize")
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    import llama_cpp as llama

    ignore = llama.llama_log_callback(lambda *_: None)
    llama.llama_log_set(ignore, ctypes.c_void_p(0))
    assert len(TEXTS) == 40
    wrong = 0

    def show(ours, theirs, engine):
        if arguments.show:
            for text, a, b in zip(TEXTS, theirs, ours):
                if a != b:
                    print(f"    {text!r}\n      {engine} {a}\n      ours {b}")

    def report(name, path, judge=None):
        nonlocal wrong
        ours = our_ids(arguments.tokenize, path, TEXTS)
        theirs = llama_ids(llama, path, TEXTS)
        if theirs is None or isinstance(ours, str):
            side = "llama.cpp" if theirs is None else f"maskwright ({ours})"
            print(f"{name:28} refused by {side}")
            wrong += theirs is not None
            return
        n_equal = sum(a == b for a, b in zip(ours, theirs))
        line = f"{name:28} {n_equal}/{len(TEXTS)} as llama.cpp"
        if name not in CASED:
            wrong += n_equal != len(TEXTS)
        elif judge is None:
            line += ", not judged: no package tokenizers"
        else:
            n_judged = sum(a == b for a, b in zip(ours, judge))
            wrong += n_judged != len(TEXTS)
            line += f", {n_judged}/{len(TEXTS)} as tokenizers"
        print(line)
        if name in CASED:
            show(ours, judge or ours, "tokenizers")
        else:
            show(ours, theirs, "llama.cpp")

    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "vocabulary.gguf"
        alphabet = byte_alphabet()
        spelled = [
            "".join(alphabet[byte] for byte in text.encode())
            for text in TEXTS
        ]
        merges = train(spelled, 500)
        rules = NAMES.read_text().split("RULES", 1)[1]
        lists = re.findall(r"rule\(\s*&\[(.*?)\]", rules, re.DOTALL)
        for name in re.findall(r'"([^"]+)"', " ".join(lists)):
            path.write_bytes(byte_level(name, merges))
            judge = None
            if name in CASED:
                judge = library_ids(name, merges, TEXTS)
            report(name, path, judge)
        # llama.cpp reads tokens up to the first zero byte.
        spaced = train([
            text.replace(" ", "\u2581").replace("\0", "") for text in TEXTS
        ], 500)
        runs = [("  ", 4), ("   ", 4), ("\n\n", 4), ("\n\n\n", 4)]
        turns = [("<|user|>", 3), ("<|end|>", 3), ("unused", 5)]
        turns += [("<|endoftext|>", 3)]
        no_space = ("tokenizer.ggml.add_space_prefix", False)
        ends = ("tokenizer.ggml.add_eos_token", True)
        begins = ("tokenizer.ggml.add_bos_token", False)
        for name, more, special in [
            ("spm", [], []),
            ("spm, as gemma", [no_space], runs + turns),
            ("spm, as mistral", [ends], turns),
            ("spm, no begin", [begins, ends], runs),
            ("spm, as phi-3", [("general.name", "Phi-3 mini")], turns),
        ]:
            path.write_bytes(sentence_piece(spaced, more, special))
            report(name, path)
    for model in arguments.model:
        report(pathlib.Path(model).name, model)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
