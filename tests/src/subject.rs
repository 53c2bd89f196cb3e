//! What is judged: a schema, compiled by us.

use maskwright::grammar::{Grammar, GrammarError, SchemaOptions};
use maskwright_grammar_core::automaton::{
    Automaton, AutomatonError, Completions, Configuration, Machine,
    StackLimits, Symbol,
};
use maskwright_json_schema::{Draft, FormatPolicy};
use serde_json::Value;

use crate::judge::Judge;

/// A schema that was compiled, or that no value satisfies.
#[derive(Clone, Debug)]
pub struct Subject {
    grammar: Option<Grammar>,
}

impl Subject {
    /// Compiles a schema. One that no value satisfies is a subject that
    /// accepts nothing.
    ///
    /// # Errors
    ///
    /// Fails when the schema is refused for any other reason.
    pub fn new(
        schema: &Value,
        options: &SchemaOptions,
    ) -> Result<Subject, GrammarError> {
        match Grammar::from_schema_value(schema, options) {
            Ok(grammar) => Ok(Subject { grammar: Some(grammar) }),
            Err(error) if error.kind() == "unsatisfiable" => {
                Ok(Subject { grammar: None })
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the grammar, if some value satisfies the schema.
    pub fn grammar(&self) -> Option<&Grammar> {
        self.grammar.as_ref()
    }

    /// Whether a text is accepted.
    ///
    /// # Errors
    ///
    /// Says which limit was met.
    pub fn accepts(&self, text: &str) -> Result<bool, AutomatonError> {
        self.grammar.as_ref().map_or(Ok(false), |it| it.accepts(text))
    }

    /// Returns the part of a text that is read before a byte is refused, and
    /// what completes it. Nothing if nothing was found to complete it; that
    /// is a dead end.
    ///
    /// # Errors
    ///
    /// Says which limit was met.
    pub fn completed(
        &self,
        text: &[u8],
        completions: &mut Completions,
    ) -> Result<(usize, Option<Vec<u8>>), AutomatonError> {
        let Some(grammar) = &self.grammar else { return Ok((0, None)) };
        let automaton = &**grammar.automaton();
        let (n_read, at) = read(automaton, text)?;
        let machine = Machine::new(automaton);
        let found =
            completions.shortest(machine, StackLimits::default(), &at)?;
        Ok((n_read, found))
    }
}

/// Reads a text up to its first byte that is refused.
///
/// # Errors
///
/// Says which limit was met.
pub fn read(
    automaton: &dyn Automaton,
    text: &[u8],
) -> Result<(usize, Configuration), AutomatonError> {
    let machine = Machine::new(automaton);
    let limits = StackLimits::default();
    let mut at = Configuration::start(machine, limits)?;
    for (n_read, &byte) in text.iter().enumerate() {
        let next = at.step(machine, limits, Symbol::Byte(byte))?;
        if next.is_dead() {
            return Ok((n_read, at));
        }
        at = next;
    }
    Ok((text.len(), at))
}

/// The widest options for a draft: what checking takes.
pub fn widest(draft: Draft, formats: FormatPolicy) -> SchemaOptions {
    let mut options = SchemaOptions::widest();
    options.parse.draft = Some(draft);
    options.parse.format = formats;
    options
}

/// Finds the draft of a schema that both we and the judge understand: the one
/// that it names, or else the newest of those that can be meant.
///
/// # Errors
///
/// Says why the schema is refused, and by whom.
pub fn draft_of(
    schema: &Value,
    formats: bool,
) -> Result<(Draft, Judge), String> {
    let named = schema["$schema"].as_str().and_then(Draft::from_uri);
    let drafts = named.map_or_else(
        || vec![Draft::Draft202012, Draft::Draft7, Draft::Draft4],
        |draft| vec![draft],
    );
    let mut first = None;
    for draft in drafts {
        let options = widest(draft, policy(formats));
        let refused = match Subject::new(schema, &options) {
            Err(error) => format!("by us: {} ({error})", error.kind()),
            Ok(_) => match Judge::new(schema, draft, formats) {
                Ok(judge) => return Ok((draft, judge)),
                Err(error) => format!("by the judge: {error}"),
            },
        };
        first.get_or_insert(refused);
    }
    Err(first.unwrap_or_default())
}

/// The policy of formats that corresponds to a judge that enforces them, or
/// does not.
pub fn policy(formats: bool) -> FormatPolicy {
    if formats { FormatPolicy::AssertKnown } else { FormatPolicy::Annotate }
}
