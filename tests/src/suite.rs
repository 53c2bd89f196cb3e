//! The official JSON-Schema-Test-Suite token by token.
//!
//! Each instance, in each of its spellings, is split in two ways. Every token
//! of a valid one must be in its mask, and the end token in the last one; of
//! an invalid one some token must be missing.

use std::{path::PathBuf, sync::Arc};

use maskwright::{
    compiled::CompiledGrammar,
    grammar::{Grammar, SchemaOptions},
    mask::TokenTrie,
};

use self::{cases::Group, spellings::spellings};
use crate::tokens::{Split, Splitter, accepts_tokens};

#[path = "../../json-schema/tests/suite/cases.rs"]
mod cases;
#[path = "../../json-schema/tests/suite/spellings.rs"]
mod spellings;

/// What became of a run.
#[derive(Clone, Debug, Default)]
pub struct Score {
    /// Tests with the right verdict, however they were spelled and split.
    pub n_right: usize,
    /// Texts that were split.
    pub n_texts: usize,
    /// Tokens that were looked up in a mask.
    pub n_tokens: usize,
    /// Tests that were not right: file, name, what.
    pub wrong: Vec<String>,
}

/// The folder of the suite, if it is there.
pub fn folder() -> Option<PathBuf> {
    cases::folder()
}

/// The suite, ready to run.
#[derive(Debug)]
pub struct Suite {
    groups: Vec<Group>,
    tokens: Arc<TokenTrie>,
    splitter: Splitter,
}

impl Suite {
    /// Reads the tests whose file contains `filter`; none if the suite is not
    /// there.
    pub fn read(filter: &str, tokens: Arc<TokenTrie>) -> Option<Suite> {
        let base = SchemaOptions::widest();
        let groups = cases::groups(&folder()?, filter, &base);
        let splitter = Splitter::new(tokens.vocabulary());
        Some(Suite { groups, tokens, splitter })
    }

    /// How many schemas there are.
    pub fn n_schemas(&self) -> usize {
        self.groups.len()
    }

    /// Runs the tests of one schema.
    pub fn run(&self, number: usize, score: &mut Score) {
        let group = &self.groups[number];
        let made = Grammar::from_schema_value(&group.schema, &group.options);
        let compiled = match made {
            Ok(grammar) => grammar
                .compile(&self.tokens)
                .map(Some)
                .map_err(|error| error.to_string()),
            Err(error) if error.kind() == "unsatisfiable" => Ok(None),
            Err(error) => Err(error.to_string()),
        };
        for test in &group.tests {
            let verdict = match &compiled {
                Err(error) => Err(format!("no schema: {error}")),
                Ok(None) if test.valid => Err("wrongly refused".to_owned()),
                Ok(None) => Ok(()),
                Ok(Some(grammar)) => self.judge(
                    grammar,
                    &spellings(&test.data),
                    test.valid,
                    score,
                ),
            };
            match verdict {
                Ok(()) => score.n_right += 1,
                Err(what) => score
                    .wrong
                    .push(format!("{} | {} | {what}", group.file, test.name)),
            }
        }
    }

    fn judge(
        &self,
        grammar: &Arc<CompiledGrammar>,
        texts: &[String],
        valid: bool,
        score: &mut Score,
    ) -> Result<(), String> {
        for (seed, text) in (1..).zip(texts) {
            for how in [Split::Longest, Split::Random(seed)] {
                let tokens = self.splitter.split(text, how);
                score.n_texts += 1;
                score.n_tokens += tokens.len();
                match accepts_tokens(grammar, &tokens)? {
                    true if !valid => {
                        return Err(format!("WRONGLY ACCEPTED {text}"));
                    }
                    false if valid => {
                        return Err(format!("wrongly refused {text}"));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
