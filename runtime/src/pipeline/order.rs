//! The orders of three ecosystems, and what else sets them apart.

use std::{fmt, str::FromStr};

use super::{options::SamplingOptions, settings::Settings};

/// An order of the built-in stages.
///
/// Orders are named after the engine whose order they are. With equal options
/// they keep different tokens. Stages that an engine does not have stand where
/// its relatives stand.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Order {
    /// Hugging Face transformers, `hf`: biases, penalties and bans, then the
    /// mask where the processors of users stand, then temperature, top-k,
    /// top-p, min-p and the rest. Ties at the cut of top-k are kept.
    #[default]
    HuggingFace,
    /// vLLM, `vllm`: the mask first, bans, biases held to ±100, penalties,
    /// then temperature, min-p, top-k, top-p. Ties at the cut of top-k are
    /// kept, a temperature below 0.01 is raised to it, and bad words are
    /// looked for in the output alone.
    Vllm,
    /// llama.cpp, `llama.cpp`: penalties over the last 64 tokens, DRY, then
    /// top-nσ, top-k, typical-p, top-p, min-p, XTC, and temperature last.
    /// Top-k keeps just k. With mirostat nothing but biases, temperature and
    /// mirostat.
    ///
    /// The mask is first, where llama.cpp samples first and asks the grammar
    /// only then: the same for greedy and plain sampling, and never an
    /// illegal token under truncation.
    LlamaCpp,
    /// The names of stages, of the user's own or built in, in any lawful
    /// order. Details are those of `hf`.
    Custom(Vec<String>),
}

const HUGGING_FACE: &[&str] = &[
    "sequence_bias",
    "logit_bias",
    "repetition_penalty",
    "frequency_presence_penalty",
    "dry",
    "no_repeat_ngram",
    "bad_words",
    "min_length",
    "min_new_tokens",
    "allowed_tokens",
    "forced_begin_token",
    "forced_end_tokens",
    "exponential_decay",
    "suppress_tokens",
    "begin_suppress_tokens",
    "mask",
    "temperature",
    "top_n_sigma",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "epsilon_cutoff",
    "eta_cutoff",
    "xtc",
    "mirostat",
];

const VLLM: &[&str] = &[
    "mask",
    "allowed_tokens",
    "bad_words",
    "suppress_tokens",
    "begin_suppress_tokens",
    "no_repeat_ngram",
    "min_new_tokens",
    "min_length",
    "forced_begin_token",
    "forced_end_tokens",
    "logit_bias",
    "sequence_bias",
    "repetition_penalty",
    "frequency_presence_penalty",
    "dry",
    "exponential_decay",
    "temperature",
    "top_n_sigma",
    "min_p",
    "top_k",
    "top_p",
    "typical_p",
    "epsilon_cutoff",
    "eta_cutoff",
    "xtc",
    "mirostat",
];

const LLAMA_CPP: &[&str] = &[
    "mask",
    "allowed_tokens",
    "bad_words",
    "suppress_tokens",
    "begin_suppress_tokens",
    "no_repeat_ngram",
    "min_new_tokens",
    "min_length",
    "forced_begin_token",
    "forced_end_tokens",
    "logit_bias",
    "sequence_bias",
    "repetition_penalty",
    "frequency_presence_penalty",
    "dry",
    "exponential_decay",
    "top_n_sigma",
    "top_k",
    "typical_p",
    "top_p",
    "min_p",
    "epsilon_cutoff",
    "eta_cutoff",
    "xtc",
    "temperature",
    "mirostat",
];

impl Order {
    /// Returns the names of the stages, first to last.
    pub fn stage_names(&self) -> Vec<&str> {
        match self {
            Order::HuggingFace => HUGGING_FACE.to_vec(),
            Order::Vllm => VLLM.to_vec(),
            Order::LlamaCpp => LLAMA_CPP.to_vec(),
            Order::Custom(names) => names.iter().map(String::as_str).collect(),
        }
    }

    /// Returns what the engine samples with when nothing is set.
    ///
    /// They are no part of [`SamplingOptions::default`]; commands apply them
    /// where the user names the order.
    pub fn defaults(&self) -> Settings {
        let plain = Settings { temperature: Some(1.0), ..Settings::default() };
        match self {
            Order::HuggingFace => Settings { top_k: Some(50), ..plain },
            Order::LlamaCpp => Settings {
                temperature: Some(0.8),
                top_k: Some(40),
                top_p: Some(0.95),
                min_p: Some(0.05),
                ..plain
            },
            Order::Vllm | Order::Custom(_) => plain,
        }
    }
}

/// Writes what [`FromStr`] reads.
impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::HuggingFace => f.write_str("hf"),
            Order::Vllm => f.write_str("vllm"),
            Order::LlamaCpp => f.write_str("llama.cpp"),
            Order::Custom(names) => f.write_str(&names.join(",")),
        }
    }
}

/// Reads `hf`, `vllm`, `llama.cpp`, or the names of stages between commas.
/// Whether there are such stages is seen when the pipeline is built.
impl FromStr for Order {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Order, Self::Err> {
        Ok(match text.trim() {
            "hf" => Order::HuggingFace,
            "vllm" => Order::Vllm,
            "llama.cpp" => Order::LlamaCpp,
            list => {
                let names = list.split(',').map(str::trim);
                Order::Custom(names.map(str::to_owned).collect())
            }
        })
    }
}

/// In what details an order's stages differ from those of others.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "one for each difference")]
pub(super) struct Rules {
    /// Top-k and typical-p keep nothing that ties beyond what they ask for.
    pub(super) exact_ties: bool,
    /// Bad words are looked for in the prompt too.
    pub(super) bad_words_with_prompt: bool,
    /// A bad word that is one end token does not count.
    pub(super) spare_ends: bool,
    /// What biases on tokens are held to.
    pub(super) bias_bound: Option<f32>,
    /// Temperatures above 0 are raised to this.
    pub(super) least_temperature: f32,
    /// The window of the penalties where the user gives none.
    pub(super) penalty_last_n: Option<usize>,
    /// Frequency and presence are counted in the prompt too.
    pub(super) frequency_with_prompt: bool,
    /// Mirostat does without penalties, and with a temperature that does not
    /// move.
    pub(super) bare_mirostat: bool,
}

impl Rules {
    pub(super) fn of(order: &Order) -> Rules {
        let hugging_face = Rules {
            exact_ties: false,
            bad_words_with_prompt: true,
            spare_ends: true,
            bias_bound: None,
            least_temperature: 0.0,
            penalty_last_n: None,
            frequency_with_prompt: false,
            bare_mirostat: false,
        };
        match order {
            Order::HuggingFace | Order::Custom(_) => hugging_face,
            Order::Vllm => Rules {
                bad_words_with_prompt: false,
                spare_ends: false,
                bias_bound: Some(100.0),
                least_temperature: 0.01,
                ..hugging_face
            },
            Order::LlamaCpp => Rules {
                exact_ties: true,
                spare_ends: false,
                penalty_last_n: Some(64),
                frequency_with_prompt: true,
                bare_mirostat: true,
                ..hugging_face
            },
        }
    }

    /// Returns the temperature that is used.
    pub(super) fn temperature(self, options: &SamplingOptions) -> f32 {
        if options.is_greedy() {
            1.0
        } else {
            options.temperature.max(self.least_temperature)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_written_as_they_are_read() {
        for text in ["hf", "vllm", "llama.cpp", "mask,top_k,temperature"] {
            let Ok(order) = text.parse::<Order>();
            assert_eq!(order.to_string(), text);
        }
        let Ok(order) = " mask , top_k ".parse::<Order>();
        assert_eq!(order.stage_names(), ["mask", "top_k"]);
    }

    #[test]
    fn orders_have_the_same_stages() {
        let sorted = |order: Order| -> Vec<String> {
            let names = order.stage_names();
            let mut names: Vec<String> =
                names.into_iter().map(str::to_owned).collect();
            names.sort_unstable();
            names
        };
        let all = sorted(Order::HuggingFace);
        assert_eq!(sorted(Order::Vllm), all);
        assert_eq!(sorted(Order::LlamaCpp), all);
        let mut built_in: Vec<&str> = super::super::catalogue::NAMES.to_vec();
        built_in.sort_unstable();
        assert_eq!(all, built_in);
    }
}
