//! How a byte-level tokenizer cuts a text before it merges, by the name that
//! GGUF files give to it.
//!
//! Each name stands for regular expressions that are applied one after the
//! other: every match becomes a piece, and so does what lies between. A
//! wrong choice still encodes, to ids that the model was not trained on, so
//! a name that is not in the table is an error.

use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{PreTokenizerWrapper, SplitDelimiterBehavior};

use crate::model::error::ModelError;

/// Each digit by itself.
const DIGIT: &str = r"\p{N}";

/// GPT-2: contractions, words, numbers, punctuation, each with the space
/// before it.
const GPT2: &str = concat!(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+",
    r"| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
);

/// Llama 3: at most three digits together, line breaks kept with the
/// punctuation before them.
const LLAMA3: &str = concat!(
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])",
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// Qwen 2: as Llama 3, with each digit by itself.
const QWEN2: &str = concat!(
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])",
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// What files without a name get.
const UNNAMED: &[&str] =
    &[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"];

/// A way to cut a text.
pub(super) struct Rule {
    names: &'static [&'static str],
    patterns: &'static [&'static str],
    /// Whether a piece that is a token is taken whole, without merging.
    pub(super) whole_words: bool,
    /// Whether a sequence begins with the begin token where the file does
    /// not say.
    pub(super) adds_begin: bool,
}

const RULES: &[Rule] = &[
    Rule {
        names: &["default"],
        patterns: UNNAMED,
        whole_words: false,
        adds_begin: false,
    },
    Rule {
        names: &["gpt-2", "gpt2", "phi-2", "mpt", "olmo", "roberta-bpe"],
        patterns: &[GPT2],
        whole_words: false,
        adds_begin: false,
    },
    Rule {
        names: &[
            "smollm",
            "starcoder",
            "refact",
            "command-r",
            "codeshell",
            "exaone",
        ],
        patterns: &[DIGIT, GPT2],
        whole_words: false,
        adds_begin: false,
    },
    Rule {
        names: &["llama-bpe", "llama3", "llama-v3"],
        patterns: &[LLAMA3],
        whole_words: true,
        adds_begin: true,
    },
    Rule {
        names: &["qwen2", "stablelm2", "deepseek-r1-qwen"],
        patterns: &[QWEN2],
        whole_words: false,
        adds_begin: false,
    },
];

impl Rule {
    /// Returns the rule that a GGUF file names.
    pub(super) fn by_name(name: &str) -> Result<&'static Rule, ModelError> {
        RULES.iter().find(|rule| rule.names.contains(&name)).ok_or_else(|| {
            let known: Vec<&str> =
                RULES.iter().flat_map(|rule| rule.names).copied().collect();
            ModelError::Tokenizer(format!(
                "tokenizer.ggml.pre = {name:?} is not known; known: {}",
                known.join(", ")
            ))
        })
    }

    /// Builds the pre-tokenizer.
    pub(super) fn build(&self) -> Result<PreTokenizerWrapper, ModelError> {
        let mut steps = Vec::with_capacity(self.patterns.len() + 1);
        for pattern in self.patterns {
            let split = Split::new(
                SplitPattern::Regex((*pattern).to_owned()),
                SplitDelimiterBehavior::Isolated,
                false,
            )
            .map_err(|error| ModelError::Tokenizer(error.to_string()))?;
            steps.push(PreTokenizerWrapper::Split(split));
        }
        let bytes = ByteLevel::new(false, true, false);
        steps.push(PreTokenizerWrapper::ByteLevel(bytes));
        Ok(PreTokenizerWrapper::Sequence(Sequence::new(steps)))
    }
}

#[cfg(test)]
mod tests {
    use tokenizers::{
        OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer,
    };

    use super::*;

    fn pieces(name: &str, text: &str) -> Vec<String> {
        let rule = Rule::by_name(name).expect("known");
        let mut cut = PreTokenizedString::from(text);
        rule.build()
            .expect("patterns compile")
            .pre_tokenize(&mut cut)
            .expect("cuts");
        cut.get_splits(OffsetReferential::Original, OffsetType::Byte)
            .into_iter()
            .map(|(_, (start, end), _)| text[start..end].to_owned())
            .collect()
    }

    #[test]
    fn each_rule_cuts_as_its_models_do() {
        let text = "I'll pay 12345 now!\n\n  ok";
        for (name, expected) in [
            (
                "gpt-2",
                &["I", "'ll", " pay", " 12345", " now", "!", "\n\n ", " ok"][..],
            ),
            (
                "smollm",
                &[
                    "I", "'ll", " pay", " ", "1", "2", "3", "4", "5", " now",
                    "!", "\n\n ", " ok",
                ],
            ),
            (
                "llama-bpe",
                &[
                    "I", "'ll", " pay", " ", "123", "45", " now", "!\n\n",
                    " ", " ok",
                ],
            ),
            (
                "qwen2",
                &[
                    "I", "'ll", " pay", " ", "1", "2", "3", "4", "5", " now",
                    "!\n\n", " ", " ok",
                ],
            ),
        ] {
            assert_eq!(pieces(name, text), expected, "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_that_lists_the_known_ones() {
        let error = Rule::by_name("klingon").err().expect("unknown");
        let error = error.to_string();
        assert!(error.contains("klingon") && error.contains("smollm"));
    }
}
