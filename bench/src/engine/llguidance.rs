//! llguidance as its own benchmark runs it: default JSON options (any
//! whitespace, declared property order) and its general slices.
//!
//! A cold copy is its `deep_clone`, as in its own benchmark. Its plain `clone`
//! shares the states of the lexer with the original, behind a lock; the tables
//! of shared caches use that. Rows and masks belong to one output and are
//! never shared.

use std::hint::black_box;
use std::path::Path;

use llguidance::api::TopLevelGrammar;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{InferenceCapabilities, TokEnv};
use llguidance::{Matcher, ParserFactory};
use toktrie_hf_tokenizers::ByteTokenizer;

use super::{Engine, Prototype, Sequence, Source};
use crate::{measure::Pass, tokenizer::Shape};

/// The engine with its tokenizer environment.
#[allow(missing_debug_implementations, reason = "the factory has no Debug")]
pub struct LlGuidance {
    factory: ParserFactory,
    source: Source,
}

/// Loads the vocabulary and its trie.
///
/// # Errors
///
/// What the crate said of the tokenizer's file.
pub fn environment(path: &Path, shape: Shape) -> Result<TokEnv, String> {
    let mut tokenizer = ByteTokenizer::from_file(path)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    tokenizer.set_eos_token(shape.end_token);
    tokenizer
        .into_tok_env(Some(shape.width as usize))
        .map_err(|error| error.to_string())
}

impl LlGuidance {
    /// Loads the vocabulary and the slices.
    ///
    /// # Errors
    ///
    /// What the crate said of the tokenizer's file.
    pub fn load(path: &Path, shape: Shape) -> Result<LlGuidance, String> {
        LlGuidance::new(&environment(path, shape)?)
    }

    /// Makes the slices.
    ///
    /// # Errors
    ///
    /// What the crate said of the vocabulary.
    pub fn new(environment: &TokEnv) -> Result<LlGuidance, String> {
        let mut factory = ParserFactory::new(
            environment,
            InferenceCapabilities::default(),
            &SlicedBiasComputer::general_slices(),
        )
        .map_err(|error| error.to_string())?;
        factory.quiet();
        Ok(LlGuidance { factory, source: Source::Schema })
    }

    /// The same engine for texts of this kind.
    pub fn reading(self, source: Source) -> LlGuidance {
        LlGuidance { source, ..self }
    }
}

impl Engine for LlGuidance {
    fn name(&self) -> &'static str {
        "llguidance 1.9.1"
    }

    fn main_pass(&self) -> Pass {
        Pass::Cold
    }

    fn open(&self, schema: &str) -> Result<Box<dyn Sequence>, String> {
        let grammar = match self.source {
            Source::Grammar => TopLevelGrammar::from_lark(schema.to_owned()),
            Source::Regex => TopLevelGrammar::from_regex(schema),
            Source::Schema => {
                let schema = serde_json::from_str(schema)
                    .map_err(|error| error.to_string())?;
                TopLevelGrammar::from_json_schema(schema)
            }
        };
        let matcher = Matcher::new(self.factory.create_parser(grammar));
        match matcher.get_error() {
            Some(error) => Err(error),
            None => Ok(Box::new(Running(matcher))),
        }
    }
}

struct Running(Matcher);

impl Prototype for Running {
    fn start(&self) -> Result<Box<dyn Sequence>, String> {
        Ok(Box::new(Running(self.0.deep_clone())))
    }

    fn share(&self) -> Result<Box<dyn Prototype>, String> {
        Ok(Box::new(Sharing(self.0.deep_clone())))
    }
}

/// A fresh matcher whose clones share the lexer's states.
struct Sharing(Matcher);

impl Prototype for Sharing {
    fn start(&self) -> Result<Box<dyn Sequence>, String> {
        Ok(Box::new(Running(self.0.clone())))
    }

    fn share(&self) -> Result<Box<dyn Prototype>, String> {
        Ok(Box::new(Sharing(self.0.clone())))
    }
}

impl Sequence for Running {
    fn prototype(&self) -> Box<dyn Prototype> {
        Box::new(Running(self.0.deep_clone()))
    }

    fn mask_into(&mut self, words: &mut [u32]) -> Result<(), String> {
        let mask =
            self.0.compute_mask_or_eos().map_err(|error| error.to_string())?;
        let mask = mask.as_slice();
        let common = mask.len().min(words.len());
        // A kilobyte at a time, as ours: a copy of all of it is slow by chance
        // of where the two lie (runtime/src/mask/set.rs).
        let pieces = words[..common].chunks_mut(256);
        for (to, from) in pieces.zip(mask[..common].chunks(256)) {
            to.copy_from_slice(from);
        }
        words[common..].fill(0);
        Ok(())
    }

    fn mask_by_reference(&mut self) -> Result<(), String> {
        let mask =
            self.0.compute_mask_or_eos().map_err(|error| error.to_string())?;
        black_box(mask.as_slice());
        Ok(())
    }

    fn forget_mask(&mut self) {
        self.0.invalidate_bias_cache();
    }

    fn accept(&mut self, token: u32) -> Result<(), String> {
        self.0.consume_token(token).map_err(|error| error.to_string())
    }

    fn is_accepting(&mut self) -> bool {
        self.0.is_accepting().unwrap_or(false)
    }

    fn describe(&self) -> String {
        self.0.last_step_stats().map_or_else(
            |error| error.to_string(),
            |stats| format!("{stats:?}"),
        )
    }
}
