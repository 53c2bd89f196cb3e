//! Grammars in grammars: tags, tools, named grammars and reasoning.

use std::path::Path;

use clap::Args;
use maskwright::grammar::{
    AtomToken, GbnfOptions, Grammar, GrammarError, Marker, NamedGrammar,
    Reasoning, SchemaOptions, StructuralTags, Tool, ToolStyle,
};

use crate::{args::read, fail::Fail};

/// What goes with grammars in which others stand.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TagArgs {
    /// A grammar that `%grammar NAME` in GBNF stands for: a `.gbnf` file, or
    /// a `.json` file with a JSON Schema
    #[arg(long = "grammar", value_name = "NAME=FILE")]
    grammars: Vec<String>,
    /// How calls of `--tools` are written: `hermes`
    /// (`<tool_call>{"name": …}</tool_call>`) or `function`
    /// (`<function=NAME>{…}</function>`)
    #[arg(long, value_name = "STYLE", requires = "tools")]
    tool_style: Option<String>,
    /// How many calls of `--tools` there must be
    #[arg(long, value_name = "N", requires = "tools")]
    min_calls: Option<u32>,
    /// How many calls of `--tools` there may be
    #[arg(long, value_name = "N", requires = "tools")]
    max_calls: Option<u32>,
    /// Lets the model reason until this text, or `token:` and a token, and
    /// then begins the grammar
    #[arg(long, value_name = "MARK")]
    reasoning_end: Option<String>,
    /// What the reasoning begins with, where the prompt has not begun it
    #[arg(long, value_name = "MARK", requires = "reasoning_end")]
    reasoning_begin: Option<String>,
}

impl TagArgs {
    /// Compiles a grammar in GBNF with those that it names.
    pub(crate) fn gbnf(
        &self,
        file: &Path,
        schema: SchemaOptions,
    ) -> Result<Grammar, Fail> {
        let mut options = GbnfOptions::default();
        for named in &self.grammars {
            let (name, file) = named.split_once('=').ok_or_else(|| {
                Fail::usage(format!(
                    "a grammar is given as NAME=FILE, not {named:?}"
                ))
            })?;
            let text = read(Path::new(file))?;
            let is = |end: &str| {
                let extension = Path::new(file).extension();
                extension.is_some_and(|found| found.eq_ignore_ascii_case(end))
            };
            let grammar = if is("json") {
                NamedGrammar::Grammar(Grammar::from_schema(&text, &schema)?)
            } else if is("gbnf") {
                NamedGrammar::Gbnf(text)
            } else {
                return Err(Fail::usage(format!(
                    "a grammar is a `.gbnf` or a `.json` file, not {file:?}"
                )));
            };
            options.grammars.insert(name.to_owned(), grammar);
        }
        options.schema = schema;
        Ok(Grammar::from_gbnf_with(&read(file)?, &options)?)
    }

    /// Compiles a file of tags.
    pub(crate) fn tags(
        file: &Path,
        schema: &SchemaOptions,
    ) -> Result<Grammar, Fail> {
        let tags = StructuralTags::from_json(&read(file)?, schema)
            .map_err(GrammarError::from)?;
        Ok(Grammar::from_tags(&tags)?)
    }

    /// Compiles a list of tools.
    pub(crate) fn tools(
        &self,
        file: &Path,
        schema: &SchemaOptions,
    ) -> Result<Grammar, Fail> {
        let style = match self.tool_style.as_deref() {
            None | Some("hermes") => ToolStyle::Hermes,
            Some("function") => ToolStyle::Function,
            Some(style) => {
                return Err(Fail::usage(format!(
                    "`tool-style` is one of hermes, function, and {style:?} \
                     was given"
                )));
            }
        };
        let text = read(file)?;
        let mut tags = Tool::list_from_json(&text, schema)
            .and_then(|tools| StructuralTags::for_tools(&tools, style))
            .map_err(GrammarError::from)?;
        tags.at_least = self.min_calls.unwrap_or(0);
        tags.at_most = self.max_calls;
        Ok(Grammar::from_tags(&tags)?)
    }

    /// Puts the reasoning before a grammar, if there is any.
    pub(crate) fn with_reasoning(
        &self,
        grammar: Grammar,
    ) -> Result<Grammar, GrammarError> {
        let Some(end) = &self.reasoning_end else { return Ok(grammar) };
        let mut reasoning = Reasoning::until(marker(end));
        reasoning.begin = self.reasoning_begin.as_deref().map(marker);
        grammar.after_reasoning(&reasoning)
    }
}

/// Reads a text, or a token behind `token:`.
fn marker(text: &str) -> Marker {
    let Some(token) = text.strip_prefix("token:") else {
        return Marker::Text(text.to_owned());
    };
    let id = token.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    Marker::Token(match id.and_then(|id| id.parse().ok()) {
        Some(id) => AtomToken::Id(id),
        None => AtomToken::Text(token.to_owned()),
    })
}
