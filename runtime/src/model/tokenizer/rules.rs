//! The table of pre-tokenizers: what each name in a GGUF file stands for.
//!
//! The expressions are those of the models' own tokenizers. llama.cpp's are
//! the same but where its engine has no categories of letters (`tekken`,
//! `gpt-4o`): there it takes every letter beyond ASCII for both large and
//! small, and leaves combining marks out of words.

/// Contractions in either case.
macro_rules! contraction {
    () => {
        "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
    };
}

/// A word, with the one character before it that is no letter, number or line
/// break.
macro_rules! word {
    () => {
        r"[^\r\n\p{L}\p{N}]?\p{L}+"
    };
}

/// A run of white space but for the last of it, which goes with the word.
macro_rules! spaces {
    () => {
        r"\s+(?!\S)|\s+"
    };
}

/// Punctuation with the space before it and the line breaks behind it; then
/// runs of white space.
macro_rules! rest {
    () => {
        concat!(r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|", spaces!())
    };
}

/// Letters that may begin a word of mixed case, and those that go on.
macro_rules! large {
    () => {
        r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}"
    };
}

macro_rules! small {
    () => {
        r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
    };
}

/// Words that end where small letters are followed by large ones. What is
/// given goes into both classes, and behind the word.
macro_rules! cased_word {
    ($class:expr, $end:expr) => {
        concat!(
            r"[^\r\n\p{L}\p{N}]?[",
            large!(),
            $class,
            "]*[",
            small!(),
            $class,
            "]+",
            $end,
            r"|[^\r\n\p{L}\p{N}]?[",
            large!(),
            $class,
            "]+[",
            small!(),
            $class,
            "]*",
            $end
        )
    };
}

/// Punctuation as models with such words have it, with slashes behind it.
macro_rules! rest_with_slash {
    () => {
        concat!(r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|", spaces!())
    };
}

/// Each digit by itself.
const DIGIT: &str = r"\p{N}";

/// Up to three digits together.
const THREE_DIGITS: &str = r"\p{N}{1,3}";

const NUMBER: &str = r"\p{N}+";

const LINE_BREAK: &str = r"[\r\n]";

/// GPT-2: contractions, words, numbers, punctuation, each with the space
/// before it.
const GPT2: &str = concat!(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+",
    r"| ?[^\s\p{L}\p{N}]+|",
    spaces!()
);

/// Llama 3: at most three digits together, line breaks kept with the
/// punctuation before them.
const LLAMA3: &str =
    concat!(contraction!(), "|", word!(), r"|\p{N}{1,3}|", rest!());

/// Qwen 2: as Llama 3, with each digit by itself.
const QWEN2: &str = concat!(contraction!(), "|", word!(), r"|\p{N}|", rest!());

/// Qwen 3.5: as Qwen 2, with combining marks among the letters.
const QWEN35: &str = concat!(
    contraction!(),
    r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}",
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|",
    spaces!()
);

/// Without contractions, so that suffixes behind an apostrophe stay whole.
const UFAKZEKA: &str = concat!(word!(), r"|\p{N}|", rest!());

/// As Llama 3, with any number of digits.
const MINICPM5: &str =
    concat!(contraction!(), "|", word!(), r"|\p{N}+|", rest!());

/// As Llama 3, with runs of white space in powers of two.
const JAIS2: &str = concat!(
    contraction!(),
    "|",
    word!(),
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+",
    r"|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)",
    r"|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)",
    r"|\s{1,2}(?!\S)|\s{1}"
);

/// One line break at a time.
const BAILING: &str = concat!(
    r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|",
    word!(),
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|",
    spaces!()
);

/// Punctuation without the line breaks behind it.
const SEED_CODER: &str = concat!(
    contraction!(),
    "|",
    word!(),
    r"|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|",
    spaces!()
);

/// Words over spaces.
const EXAONE_MOE: &str = concat!(
    contraction!(),
    r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+",
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|",
    spaces!()
);

/// Mistral's since NeMo: words of mixed case, each digit by itself.
const TEKKEN: &str =
    concat!(cased_word!("", ""), r"|\p{N}|", rest_with_slash!());

/// OpenAI's o200k: as Tekken, with contractions at the end of words and up to
/// three digits together.
const O200K: &str = concat!(
    cased_word!("", concat!(contraction!(), "?")),
    r"|\p{N}{1,3}|",
    rest_with_slash!()
);

/// As o200k, with each digit by itself.
const O200K_DIGIT: &str = concat!(
    cased_word!("", concat!(contraction!(), "?")),
    r"|\p{N}|",
    rest_with_slash!()
);

/// As o200k, with Han characters apart from the other letters.
const KIMI: &str = concat!(
    r"\p{Han}+|",
    cased_word!(r"&&[^\p{Han}]", concat!(contraction!(), "?")),
    r"|\p{N}{1,3}|",
    rest!()
);

/// Three digits at a time, counted from the right. What ends a number is
/// written out, since engines disagree on which characters make words.
const GROUPED_DIGITS: &str =
    r"\d{1,3}(?=(?:\d{3})*(?![\p{L}\p{M}\p{N}\p{Pc}]))";

/// Han characters and kana.
const HAN_OR_KANA: &str =
    r"[\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+";

const CJK: &str = r"[\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+";

/// Hangul; punctuation of Chinese and Japanese; bopomofo; Han and kana.
const YOUTU_CJK: &str = concat!(
    r"[\x{ac00}-\x{d7a3}\x{3131}-\x{318e}]+",
    r"|[\x{ff01}\x{2026}\x{201c}\x{201d}\x{2018}\x{2019}\x{2014}\x{ff1a}",
    r"\x{ff1b}\x{ff0c}\x{3001}-\x{303f}\x{fe30}-\x{fe4f}]+",
    r"|[\x{3105}-\x{312f}]+",
    r"|[\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+"
);

/// Punctuation that takes the Latin letters behind it along; words; runs of
/// punctuation and symbols.
const DEEPSEEK_V3: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##,
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*",
    r"|\s*[\r\n]+|",
    spaces!()
);

const SPARK: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##,
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+",
    r"|[\r\n]|",
    spaces!()
);

/// Letters that have a case, listed as the tokenizer lists them.
const CASED_LETTERS: &str = concat!(
    r"\s?[A-Za-z",
    r"\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}",
    r"\x{1c4}-\x{293}\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}",
    r"\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a}\x{38c}",
    r"\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}",
    r"\x{531}-\x{556}\x{10a0}-\x{10c5}\x{13a0}-\x{13f5}",
    r"\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf}",
    r"\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}",
    r"\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45}",
    r"\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d}",
    r"\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}",
    r"\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}",
    r"\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4}",
    r"\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115}",
    r"\x{2119}-\x{211d}\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d}",
    r"\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f}\x{2145}-\x{2149}",
    r"\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4}",
    r"\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}",
    r"\x{a680}-\x{a69b}\x{a722}-\x{a76f}\x{a771}-\x{a787}",
    r"\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}",
    r"\x{fb13}-\x{fb17}\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}",
    r"\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}",
    r"\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}",
    r"\x{1e900}-\x{1e943}",
    "]+"
);

const PUNCTUATION: &str = concat!(
    r"\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}",
    r"\x{3000}-\x{3002}]+"
);

/// Everything between white space and the punctuation that ends sentences.
const BLOOM: &str =
    r" ?[^(\s|.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{964}\x{6d4}\x{60c})]+";

/// A way to cut a text.
pub(super) struct Rule {
    pub(super) names: &'static [&'static str],
    pub(super) patterns: &'static [&'static str],
    /// Whether a piece that is a token is taken whole, without merging.
    pub(super) whole_words: bool,
    /// Whether a sequence begins with the begin token where the file does
    /// not say.
    pub(super) adds_begin: bool,
}

const fn rule(
    names: &'static [&'static str],
    patterns: &'static [&'static str],
) -> Rule {
    Rule { names, patterns, whole_words: false, adds_begin: false }
}

impl Rule {
    const fn whole_words(self) -> Rule {
        Rule { whole_words: true, ..self }
    }

    const fn adds_begin(self) -> Rule {
        Rule { adds_begin: true, ..self }
    }
}

pub(super) const RULES: &[Rule] = &[
    // What files without a name get.
    rule(
        &["default"],
        &[r"[\p{P}\$\+<=>\^~\|]+", GPT2, NUMBER, "[0-9][0-9][0-9]"],
    ),
    rule(
        &[
            "gpt-2",
            "phi-2",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "exaone4",
            "modern-bert",
            "roberta-bpe",
            "jina-es",
            "jina-de",
            "jina-v1-en",
            "jina-v2-es",
            "jina-v2-de",
            "jina-v2-code",
        ],
        &[GPT2],
    ),
    rule(
        &[
            "smollm",
            "starcoder",
            "refact",
            "command-r",
            "codeshell",
            "exaone",
            "minerva-7b",
            "mellum2",
        ],
        &[DIGIT, GPT2],
    ),
    rule(
        &[
            "llama-bpe",
            "llama3",
            "llama-v3",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
            "jina-v5-nano",
        ],
        &[LLAMA3],
    )
    .whole_words()
    .adds_begin(),
    rule(&["dbrx", "smaug-bpe", "chatglm-bpe", "glm4", "glm5"], &[LLAMA3]),
    rule(
        &[
            "qwen2",
            "stablelm2",
            "deepseek-r1-qwen",
            "hunyuan",
            "megrez",
            "kormo",
            "f2llmv2",
            "solar-open",
            "grok-2",
        ],
        &[QWEN2],
    ),
    rule(&["qwen35"], &[QWEN35]),
    rule(&["tekken"], &[TEKKEN]).whole_words().adds_begin(),
    rule(&["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"], &[O200K]),
    rule(&["granite-embed-multi-97m"], &[O200K]).whole_words(),
    rule(&["tiny_aya", "cohere2moe"], &[GROUPED_DIGITS, O200K]),
    rule(&["kimi-k2"], &[KIMI]),
    rule(
        &["deepseek-llm"],
        &[LINE_BREAK, CASED_LETTERS, PUNCTUATION, r"\s+$", CJK, NUMBER],
    ),
    rule(
        &["deepseek-coder"],
        &[LINE_BREAK, r"\s?\p{L}+", r"\s?\p{P}+", CJK, DIGIT],
    ),
    rule(
        &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        &[THREE_DIGITS, HAN_OR_KANA, DEEPSEEK_V3],
    ),
    rule(&["spark2_5"], &[THREE_DIGITS, HAN_OR_KANA, SPARK, DIGIT]),
    rule(&["youtu"], &[YOUTU_CJK, O200K_DIGIT]).whole_words(),
    rule(&["falcon"], &[r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"]),
    rule(&["bloom", "poro-chat", "gpt3-finnish"], &[BLOOM]),
    rule(&["viking"], &[BLOOM, DIGIT]),
    rule(&["jais-2"], &[JAIS2]),
    rule(&["bailingmoe", "bailingmoe2", "llada-moe"], &[BAILING]),
    rule(&["seed-coder"], &[SEED_CODER]),
    rule(&["exaone-moe"], &[EXAONE_MOE]),
    rule(&["minicpm5"], &[THREE_DIGITS, MINICPM5]).whole_words(),
    rule(&["ufakzeka"], &[UFAKZEKA]),
    rule(&["laguna"], &[r"[^\n]+|[\n]+", QWEN2]),
    rule(
        &["chameleon"],
        &[
            "<sentinel:[0-9]+>",
            "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
            "([\\t\\n]|    |  )",
            DIGIT,
            r"[\p{P}!-/:-@\[-`{-~]",
            GPT2,
        ],
    )
    .adds_begin(),
];
