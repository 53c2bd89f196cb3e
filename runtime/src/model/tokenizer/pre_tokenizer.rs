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

use super::rules::RULES;
pub(super) use super::rules::Rule;
use crate::model::error::ModelError;

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

    /// The pieces by name, with bars between them.
    const CUT: &[(&str, &str)] = &[
        (
            "default",
            concat!(
                "It|'|S| \u{c9}COLEcole| e|\u{301}|t| |123|45|",
                " \u{4f60}\u{597d}| x|_|y|!/|\r\n\n | ok",
            ),
        ),
        (
            "gpt-2",
            concat!(
                "It|'|S| \u{c9}COLEcole| e|\u{301}|t| 12345|",
                " \u{4f60}\u{597d}| x|_|y|!/|\r\n\n | ok",
            ),
        ),
        (
            "smollm",
            concat!(
                "It|'|S| \u{c9}COLEcole| e|\u{301}|t| |1|2|3|4|5|",
                " \u{4f60}\u{597d}| x|_|y|!/|\r\n\n | ok",
            ),
        ),
        (
            "llama-bpe",
            concat!(
                "It|'S| \u{c9}COLEcole| e|\u{301}t| |123|45|",
                " \u{4f60}\u{597d}| x|_y|!/\r\n\n| | ok",
            ),
        ),
        (
            "qwen2",
            concat!(
                "It|'S| \u{c9}COLEcole| e|\u{301}t| |1|2|3|4|5|",
                " \u{4f60}\u{597d}| x|_y|!/\r\n\n| | ok",
            ),
        ),
        (
            "qwen35",
            concat!(
                "It|'S| \u{c9}COLEcole| e\u{301}t| |1|2|3|4|5|",
                " \u{4f60}\u{597d}| x|_y|!/\r\n\n| | ok",
            ),
        ),
        (
            "tekken",
            concat!(
                "It|'S| \u{c9}COLEcole| e\u{301}t| |1|2|3|4|5|",
                " \u{4f60}\u{597d}| x|_y|!/\r\n\n| | ok",
            ),
        ),
        (
            "gpt-4o",
            concat!(
                "It'S| \u{c9}COLEcole| e\u{301}t| |123|45|",
                " \u{4f60}\u{597d}| x|_y|!/\r\n\n| | ok",
            ),
        ),
        (
            "tiny_aya",
            concat!(
                "It'S| \u{c9}COLEcole| e\u{301}t| |12|345|",
                " \u{4f60}\u{597d}| x|_y|!/\r\n\n| | ok",
            ),
        ),
        (
            "kimi-k2",
            concat!(
                "It'S| \u{c9}COLEcole| e\u{301}t| |123|45| |",
                "\u{4f60}\u{597d}| x|_y|!/\r\n\n| | ok",
            ),
        ),
        (
            "deepseek-llm",
            concat!(
                "It|'|S| \u{c9}|COLEcole| e|\u{301}|t| |12345| |",
                "\u{4f60}\u{597d}| x|_|y|!/|\r|\n|\n| | ok",
            ),
        ),
        (
            "deepseek-coder",
            concat!(
                "It|'|S| \u{c9}COLEcole| e|\u{301}|t| |1|2|3|4|5| |",
                "\u{4f60}\u{597d}| x|_|y|!/|\r|\n|\n| | ok",
            ),
        ),
        (
            "deepseek-v3",
            concat!(
                "It|'S| \u{c9}COLEcole| e\u{301}t| |123|45| |",
                "\u{4f60}\u{597d}| x|_y|!/\r\n\n| | ok",
            ),
        ),
        (
            "spark2_5",
            concat!(
                "It|'S| \u{c9}COLEcole| e\u{301}t| |1|2|3|4|5| |",
                "\u{4f60}\u{597d}| x|_y|!/|\r|\n|\n| | ok",
            ),
        ),
        (
            "youtu",
            concat!(
                "It'S| \u{c9}COLEcole| e\u{301}t| |1|2|3|4|5| |",
                "\u{4f60}\u{597d}| x|_y|!/\r\n\n| | ok",
            ),
        ),
        (
            "falcon",
            concat!(
                "It|'|S| \u{c9}COLEcole| e|\u{301}|t| |123|45|",
                " \u{4f60}\u{597d}| x|_|y|!/|\r\n\n | ok",
            ),
        ),
        (
            "bloom",
            concat!(
                "It'S| \u{c9}COLEcole| e\u{301}t| 12345| \u{4f60}\u{597d}|",
                " x_y|!|/|\r\n\n | ok",
            ),
        ),
        (
            "viking",
            concat!(
                "It'S| \u{c9}COLEcole| e\u{301}t| |1|2|3|4|5|",
                " \u{4f60}\u{597d}| x_y|!|/|\r\n\n | ok",
            ),
        ),
        (
            "jais-2",
            concat!(
                "It|'S| \u{c9}COLEcole| e|\u{301}t| |123|45|",
                " \u{4f60}\u{597d}| x|_y|!/\r\n\n| | ok",
            ),
        ),
        (
            "bailingmoe",
            concat!(
                "It|'S| \u{c9}COLEcole| e|\u{301}t| |1|2|3|4|5|",
                " \u{4f60}\u{597d}| x|_y|!/\r\n\n| | ok",
            ),
        ),
        (
            "seed-coder",
            concat!(
                "It|'S| \u{c9}COLEcole| e|\u{301}t| |1|2|3|4|5|",
                " \u{4f60}\u{597d}| x|_y|!/|\r\n\n| | ok",
            ),
        ),
        (
            "exaone-moe",
            concat!(
                "It|'S| \u{c9}COLEcole e\u{301}t| |1|2|3|4|5|",
                " \u{4f60}\u{597d} x|_y|!/\r|\n\n| | ok",
            ),
        ),
        (
            "minicpm5",
            concat!(
                "It|'S| \u{c9}COLEcole| e|\u{301}t| |123|45|",
                " \u{4f60}\u{597d}| x|_y|!/\r\n\n| | ok",
            ),
        ),
        (
            "ufakzeka",
            concat!(
                "It|'S| \u{c9}COLEcole| e|\u{301}t| |1|2|3|4|5|",
                " \u{4f60}\u{597d}| x|_y|!/\r\n\n| | ok",
            ),
        ),
        (
            "laguna",
            concat!(
                "It|'S| \u{c9}COLEcole| e|\u{301}t| |1|2|3|4|5|",
                " \u{4f60}\u{597d}| x|_y|!/\r|\n\n| | ok",
            ),
        ),
        (
            "chameleon",
            concat!(
                "It|'|S| \u{c9}COLEcole| e|\u{301}|t| |1|2|3|4|5|",
                " \u{4f60}\u{597d}| x|_|y|!|/|\r|\n|\n|  |ok",
            ),
        ),
    ];

    /// The text holds no bar, so that bars can stand between the pieces. They
    /// are those of llama.cpp, or of the library of the models where the two
    /// differ (`bench/llama_cpp_tokenizers.py` says where).
    #[test]
    fn each_rule_cuts_as_its_models_do() {
        let text = concat!(
            "It'S \u{c9}COLEcole e\u{301}t 12345 \u{4f60}\u{597d}",
            " x_y!/\r\n\n  ok"
        );
        for (name, expected) in CUT {
            assert_eq!(&pieces(name, text).join("|"), expected, "{name}");
        }
    }

    #[test]
    fn every_rule_is_valid_and_no_name_comes_twice() {
        let mut names: Vec<&str> = Vec::new();
        for rule in RULES {
            rule.build().expect("patterns compile");
            names.extend(rule.names);
        }
        let n_names = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n_names);
    }

    /// A pattern that tries too much would leave the rest of a text uncut.
    #[test]
    fn long_runs_are_cut_to_their_end() {
        let n = 1 << 17;
        for run in [" ", "a", "1", "!", "\n", "\r\n", " \n", "\u{e9}A"] {
            let text = format!("{}x y", run.repeat(n));
            for name in ["default", "llama-bpe", "gpt-4o", "deepseek-v3"] {
                let pieces = pieces(name, &text);
                let ends = pieces.last().is_some_and(|last| last == " y");
                assert!(ends, "{name} {run:?}");
            }
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_that_lists_the_known_ones() {
        let error = Rule::by_name("klingon").err().expect("unknown");
        let error = error.to_string();
        assert!(error.contains("klingon") && error.contains("smollm"));
    }
}
