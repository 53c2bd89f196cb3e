//! Structural tags and tools as JSON.

use maskwright_grammar_core::automaton::AtomToken;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Grammar, GrammarError, Marker, SchemaOptions, StructuralTags, Tag,
};

/// An error that occurs when a file of tags or tools is refused.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TagFileError {
    /// The text is no JSON, or JSON of another form.
    #[error("{what} cannot be read: {message}")]
    Form {
        /// What was to be read.
        what: &'static str,
        /// What is wrong, with line and column where they are known.
        message: String,
    },
    /// A tag does not have exactly one grammar.
    #[error(
        "tag {index} needs exactly one of `schema`, `regex`, `gbnf`, \
         `choices` and `json`, and has {n}"
    )]
    Content {
        /// The index of the tag, from zero.
        index: usize,
        /// How many grammars it has.
        n: usize,
    },
    /// The grammar of a tag or a tool is refused.
    #[error("{of}: {error}")]
    Grammar {
        /// The tag, by its index from zero, or the tool, by its name.
        of: String,
        /// What is wrong with it.
        error: Box<GrammarError>,
    },
    /// Two tools have the same name.
    #[error("two tools are called {name:?}; rename one")]
    SameName {
        /// The name.
        name: String,
    },
}

/// How a call of a tool is written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ToolStyle {
    /// `<tool_call>\n{"name": "f", "arguments": {…}}\n</tool_call>`, as
    /// Hermes and Qwen write it. The trigger is `<tool_call>`.
    #[default]
    Hermes,
    /// `<function=f>{…}</function>`, as Llama 3.1 writes it. The trigger is
    /// `<function=`.
    Function,
}

/// A function that the model may call.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What its arguments may be.
    pub arguments: Grammar,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// What others say that this is.
    #[serde(rename = "type")]
    _type: Option<String>,
    #[serde(default)]
    triggers: Vec<String>,
    #[serde(alias = "structures")]
    tags: Vec<Entry>,
    #[serde(default)]
    at_least: u32,
    at_most: Option<u32>,
    #[serde(default = "yes")]
    free_text: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    begin: Marks,
    end: Marks,
    schema: Option<Value>,
    regex: Option<String>,
    gbnf: Option<String>,
    choices: Option<Vec<String>>,
    #[serde(default)]
    json: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Marks {
    One(Mark),
    Many(Vec<Mark>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Mark {
    Text(String),
    Token { token: String },
    Id { token_id: u32 },
}

impl Marks {
    fn read(self) -> Vec<Marker> {
        let marks = match self {
            Marks::One(mark) => vec![mark],
            Marks::Many(marks) => marks,
        };
        let read = |mark| match mark {
            Mark::Text(text) => Marker::Text(text),
            Mark::Token { token } => Marker::Token(AtomToken::Text(token)),
            Mark::Id { token_id } => Marker::Token(AtomToken::Id(token_id)),
        };
        marks.into_iter().map(read).collect()
    }
}

impl Entry {
    fn read(
        self,
        index: usize,
        options: &SchemaOptions,
    ) -> Result<Tag, TagFileError> {
        let Entry { begin, end, schema, regex, gbnf, choices, json } = self;
        let all = [
            schema.map(|schema| Grammar::from_schema_value(&schema, options)),
            regex.map(|regex| Grammar::from_regex(&regex)),
            gbnf.map(|gbnf| Grammar::from_gbnf(&gbnf)),
            choices.map(|choices| Grammar::from_choices(&choices)),
            json.then(|| Grammar::json(options)),
        ];
        let mut given: Vec<_> = all.into_iter().flatten().collect();
        let content = match (given.pop(), given.len()) {
            (Some(content), 0) => content,
            (last, more) => {
                let n = more + usize::from(last.is_some());
                return Err(TagFileError::Content { index, n });
            }
        };
        let content = content.map_err(|error| TagFileError::Grammar {
            of: format!("tag {index}"),
            error: Box::new(error),
        })?;
        Ok(Tag { begin: begin.read(), content, end: end.read() })
    }
}

impl StructuralTags {
    /// Reads tags from JSON:
    ///
    /// ```json
    /// {"triggers": ["<function="],
    ///  "tags": [{"begin": "<function=f>", "schema": {"type": "object"},
    ///            "end": "</function>"}],
    ///  "at_least": 0, "at_most": 2, "free_text": true}
    /// ```
    ///
    /// A tag has one of `schema`, `regex`, `gbnf`, `choices` and `json`
    /// (true for any value). A beginning or an end is a text, a token
    /// (`{"token": "<tool_call>"}` or `{"token_id": 7}`), or a list of such
    /// pieces. All but the tags may be left out. `structures` is read as
    /// `tags`, so that the structural tags of other servers are read too.
    ///
    /// # Errors
    ///
    /// Fails when the JSON has another form, or when a grammar is refused.
    pub fn from_json(
        json: &str,
        options: &SchemaOptions,
    ) -> Result<StructuralTags, TagFileError> {
        let file: File = serde_json::from_str(json)
            .map_err(|error| form("the file of tags", &error))?;
        let tags = (0..).zip(file.tags);
        let tags = tags.map(|(index, entry)| entry.read(index, options));
        Ok(StructuralTags {
            triggers: file.triggers,
            tags: tags.collect::<Result<_, _>>()?,
            at_least: file.at_least,
            at_most: file.at_most,
            free_text: file.free_text,
        })
    }

    /// Creates the tags of some tools.
    ///
    /// # Errors
    ///
    /// Fails when two tools have the same name.
    pub fn for_tools(
        tools: &[Tool],
        style: ToolStyle,
    ) -> Result<StructuralTags, TagFileError> {
        let mut tags = StructuralTags::default();
        let mut names = std::collections::BTreeSet::new();
        for Tool { name, arguments } in tools {
            if !names.insert(name) {
                let name = name.clone();
                return Err(TagFileError::SameName { name });
            }
            let (begin, end) = match style {
                ToolStyle::Hermes => {
                    let name = Value::String(name.clone());
                    let begin = format!(
                        "<tool_call>\n{{\"name\": {name}, \"arguments\": "
                    );
                    (begin, "}\n</tool_call>")
                }
                ToolStyle::Function => {
                    (format!("<function={name}>"), "</function>")
                }
            };
            tags.tags.push(Tag::text(begin, arguments.clone(), end));
        }
        let trigger = match style {
            ToolStyle::Hermes => "<tool_call>",
            ToolStyle::Function => "<function=",
        };
        tags.triggers = vec![trigger.to_owned()];
        Ok(tags)
    }
}

/// A tool as servers are given it, bare or within `{"type": "function"}`.
#[derive(Deserialize)]
#[serde(untagged)]
enum ToolEntry {
    Wrapped { function: Function },
    Bare(Function),
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(alias = "input_schema", alias = "inputSchema", alias = "schema")]
    parameters: Option<Value>,
}

impl Tool {
    /// Reads a list of tools from JSON, each with a name and the schema of
    /// its arguments: `{"name": …, "parameters": …}`, bare or as
    /// `{"type": "function", "function": …}`; `input_schema`, `inputSchema`
    /// and `schema` are read as `parameters`. A tool without a schema takes
    /// any object.
    ///
    /// # Errors
    ///
    /// Fails when the JSON has another form, or when a schema is refused.
    pub fn list_from_json(
        json: &str,
        options: &SchemaOptions,
    ) -> Result<Vec<Tool>, TagFileError> {
        let entries: Vec<ToolEntry> = serde_json::from_str(json)
            .map_err(|error| form("the list of tools", &error))?;
        let tools = entries.into_iter().map(|entry| {
            let (ToolEntry::Wrapped { function } | ToolEntry::Bare(function)) =
                entry;
            let Function { name, parameters } = function;
            let schema = parameters
                .unwrap_or_else(|| serde_json::json!({"type": "object"}));
            let arguments = Grammar::from_schema_value(&schema, options);
            let arguments = arguments.map_err(|error| {
                let of = format!("the arguments of the tool {name:?}");
                TagFileError::Grammar { of, error: Box::new(error) }
            })?;
            Ok(Tool { name, arguments })
        });
        tools.collect()
    }
}

fn form(what: &'static str, error: &serde_json::Error) -> TagFileError {
    TagFileError::Form { what, message: error.to_string() }
}
