//! Schemas as grammars, compared with the schemas themselves.
//!
//! Both sides write texts of their own: what the schema's machine writes must
//! be in the grammar, and what the grammar derives must fit the schema where
//! the conversion says that it is exact. The `jsonschema` crate has a say in
//! that too.

use std::sync::Arc;

use maskwright::{
    convert::{self, Gbnf},
    grammar::{FormatPolicy, Grammar, SchemaOptions},
    mask::TokenTrie,
};
use maskwright_grammar_core::automaton::Completions;
use maskwright_json_schema::Draft;
use serde_json::Value;

use crate::{
    judge::{Judge, has_long_numbers},
    mutate::mutated,
    vocabularies::{Random, pieces},
    walk::{Draw, draw},
};

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Schemas that were converted.
    pub n_schemas: usize,
    /// Those of them of which the grammar holds everything.
    pub n_exact: usize,
    /// Bytes of all grammars.
    pub n_bytes: usize,
    /// Texts that the machine wrote.
    pub n_ours: usize,
    /// Texts that the grammar derived.
    pub n_derived: usize,
    /// Instances, and those changed a little, on which both were asked.
    pub n_asked: usize,
    /// Schemas that were refused, and why.
    pub refused: Vec<String>,
    /// What is wrong.
    pub wrong: Vec<String>,
}

/// A schema, its grammar, and who judges them.
#[derive(Debug)]
pub struct Sides {
    name: String,
    /// The conversion.
    pub gbnf: Gbnf,
    /// The conversion, compiled.
    pub grammar: Grammar,
    /// The schema under the policy of the conversion.
    ours: Grammar,
    /// The schema under the widest policy.
    widest: Grammar,
    judge: Option<Judge>,
    tokens: Arc<TokenTrie>,
}

impl Sides {
    /// Converts a schema.
    ///
    /// # Errors
    ///
    /// Says who refused it: none may but for the conversion's own limits.
    pub fn new(
        name: &str,
        schema: &Value,
        formats: bool,
        tally: &mut Tally,
    ) -> Result<Sides, String> {
        let mut options = convert::options();
        options.parse.format = if formats {
            FormatPolicy::AssertKnown
        } else {
            FormatPolicy::Annotate
        };
        let gbnf = convert::value_to_gbnf(schema, &options)
            .map_err(|error| error.to_string())?;
        let grammar = Grammar::from_gbnf(&gbnf.text)
            .map_err(|error| format!("no GBNF: {error}"))?;
        tally.n_schemas += 1;
        tally.n_exact += usize::from(gbnf.is_exact());
        tally.n_bytes += gbnf.text.len();
        let warnings = grammar.warnings();
        if !warnings.is_empty() {
            tally.wrong.push(format!("{name}: {warnings:?}"));
        }
        let mut wide = SchemaOptions::widest();
        wide.parse.format = options.parse.format;
        let compile = |options: &SchemaOptions| {
            Grammar::from_schema_value(schema, options)
                .map_err(|error| error.to_string())
        };
        let draft = schema["$schema"].as_str().and_then(Draft::from_uri);
        let draft = draft.unwrap_or_default();
        let text = schema.to_string();
        Ok(Sides {
            name: name.to_owned(),
            ours: compile(&options)?,
            widest: compile(&wide)?,
            judge: Judge::new(schema, draft, formats).ok(),
            tokens: pieces(&[&text], 1),
            gbnf,
            grammar,
        })
    }

    /// Lets both sides write texts.
    ///
    /// # Panics
    ///
    /// If a limit is met.
    pub fn write(&self, n_documents: usize, seed: u64, tally: &mut Tally) {
        for (grammar, is_ours) in [(&self.ours, true), (&self.grammar, false)]
        {
            let compiled =
                grammar.compile(&self.tokens).expect("no tokens named");
            let mut completions = Completions::new();
            for number in 0..n_documents {
                let mut random = Random::new(seed + number as u64);
                let n_tokens = random.below(24);
                let drawn = draw(
                    &compiled,
                    &mut completions,
                    Draw::Even,
                    n_tokens,
                    &mut random,
                );
                match drawn {
                    Ok(document) if is_ours => {
                        tally.n_ours += 1;
                        self.hear_ours(&document.text, tally);
                    }
                    Ok(document) => {
                        tally.n_derived += 1;
                        self.hear_derived(&document.text, tally);
                    }
                    // The machine may not find its way out of a format.
                    Err(_) if is_ours => {}
                    Err(stuck) => tally
                        .wrong
                        .push(format!("{}: stuck {stuck}", self.name)),
                }
            }
        }
    }

    /// A text that the machine wrote.
    fn hear_ours(&self, text: &str, tally: &mut Tally) {
        if self.ours.accepts(text).is_ok_and(|accepts| accepts) {
            self.expect(text, true, tally);
        }
    }

    /// A text that the grammar derived.
    fn hear_derived(&self, text: &str, tally: &mut Tally) {
        self.expect(text, true, tally);
        if serde_json::from_str::<Value>(text)
            .is_err_and(|error| !error.to_string().contains("recursion"))
        {
            tally.wrong.push(format!("{}: no JSON: {text}", self.name));
        }
        if !self.gbnf.is_exact() {
            return;
        }
        if !self.widest.accepts(text).expect("under the limits") {
            tally.wrong.push(format!("{}: unfit: {text}", self.name));
        }
        let verdict = self.judge.as_ref().and_then(|judge| judge.allows(text));
        if verdict == Some(false) && !has_long_numbers(text) {
            tally.wrong.push(format!("{}: judged unfit: {text}", self.name));
        }
    }

    /// Asks both sides about an instance and some that differ a little.
    ///
    /// # Panics
    ///
    /// If a limit is met.
    pub fn ask(
        &self,
        instance: &Value,
        n_changed: usize,
        seed: u64,
        tally: &mut Tally,
    ) {
        let mut random = Random::new(seed);
        let changed = (0..n_changed).map(|_| mutated(instance, &mut random));
        for text in changed.chain([instance.to_string()]) {
            tally.n_asked += 1;
            let ours = self.ours.accepts(&text).expect("under the limits");
            let widest = self.widest.accepts(&text).expect("under the limits");
            if ours {
                self.expect(&text, true, tally);
            } else if !widest && self.gbnf.is_exact() {
                self.expect(&text, false, tally);
            }
        }
    }

    /// Notes where the grammar does not say what it should.
    ///
    /// # Panics
    ///
    /// If a limit is met.
    pub fn expect(&self, text: &str, expected: bool, tally: &mut Tally) {
        let accepts = self.grammar.accepts(text).expect("under the limits");
        if accepts != expected {
            let what = if accepts { "ACCEPTED" } else { "refused" };
            tally.wrong.push(format!("{}: {what}: {text}", self.name));
        }
    }
}
