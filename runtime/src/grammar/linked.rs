//! Grammars in GBNF with the schemas, expressions and grammars in them.

use std::{cell::RefCell, collections::BTreeMap, sync::Arc};

use maskwright_gbnf::{
    Reference, Referent, ReferentError, RegexOnly, Resolver,
};
use maskwright_grammar_core::automaton::cfg::CfgLimits;

use super::{Grammar, GrammarError, SchemaOptions};

/// What a grammar in GBNF is compiled with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GbnfOptions {
    /// The rule whose texts are the grammar's.
    pub start_rule: String,
    /// The options of the schemas behind `%json`.
    pub schema: SchemaOptions,
    /// What `%grammar` may name.
    pub grammars: BTreeMap<String, NamedGrammar>,
}

impl Default for GbnfOptions {
    fn default() -> GbnfOptions {
        GbnfOptions {
            start_rule: "root".to_owned(),
            schema: SchemaOptions::default(),
            grammars: BTreeMap::new(),
        }
    }
}

/// A grammar that others refer to by its name.
#[derive(Clone, Debug)]
pub enum NamedGrammar {
    /// A text in GBNF, whose rule `root` is meant. It may refer to others.
    Gbnf(String),
    /// A grammar of any kind.
    Grammar(Grammar),
}

pub(super) fn compile(
    gbnf: &str,
    options: &GbnfOptions,
) -> Result<Grammar, GrammarError> {
    let linker = Linker { options, warnings: RefCell::default() };
    let (automaton, warnings) = maskwright_gbnf::compile_with(
        gbnf,
        &options.start_rule,
        &CfgLimits::default(),
        &linker,
    )?;
    let warnings = warnings.iter().map(ToString::to_string);
    let warnings = warnings.chain(linker.warnings.into_inner()).collect();
    Ok(Grammar { automaton, warnings, schema: None, origin: None })
}

struct Linker<'a> {
    options: &'a GbnfOptions,
    /// What was noticed about the grammars that are referred to.
    warnings: RefCell<Vec<String>>,
}

impl Linker<'_> {
    fn machine(&self, grammar: &Grammar) -> Referent {
        let warnings = grammar.warnings.iter().cloned();
        self.warnings.borrow_mut().extend(warnings);
        Referent::Machine(Arc::clone(&grammar.automaton))
    }

    fn unknown(&self, name: &str) -> String {
        let names: Vec<&str> =
            self.options.grammars.keys().map(String::as_str).collect();
        if names.is_empty() {
            return format!(
                "there is no grammar `{name}`, nor any other to refer to; \
                 supply it by its name"
            );
        }
        let names = names.join("`, `");
        format!("there is no grammar `{name}`; there are `{names}`")
    }
}

impl Resolver for Linker<'_> {
    fn resolve(
        &self,
        reference: &Reference,
    ) -> Result<Referent, ReferentError> {
        match reference {
            Reference::Regex(_) => RegexOnly.resolve(reference),
            Reference::Json(schema) => {
                let grammar =
                    Grammar::from_schema(schema, &self.options.schema);
                let grammar = grammar.map_err(|error| {
                    ReferentError::Message(error.to_string())
                })?;
                Ok(self.machine(&grammar))
            }
            Reference::Grammar(name) => {
                match self.options.grammars.get(name) {
                    Some(NamedGrammar::Gbnf(text)) => {
                        maskwright_gbnf::parse(text)
                            .map(Referent::Grammar)
                            .map_err(ReferentError::Grammar)
                    }
                    Some(NamedGrammar::Grammar(grammar)) => {
                        Ok(self.machine(grammar))
                    }
                    None => Err(ReferentError::Message(self.unknown(name))),
                }
            }
        }
    }
}
