//! `check --batch`: many grammars and texts, JSON lines in and out.
//!
//! The interface is stable. One line in:
//!
//! ```json
//! {"id": 1, "schema": {"type": "integer"}, "options": {}, "texts": ["1"]}
//! ```
//!
//! with one of `schema`, `regex`, `gbnf`, `choices` and `tags` (what a file of
//! tags holds). With `gbnf`, `grammars` may have the grammars that it names
//! (texts in GBNF, or objects with one grammar of another kind). One line
//! out, in the order of the input:
//!
//! ```json
//! {"id": 1, "error": null, "accepted": [true], "stopped_at": [null],
//!  "compile_us": 85, "warnings": []}
//! ```
//!
//! Where `error` is set, `accepted` and `stopped_at` are empty. A line that
//! cannot be read is answered by an error of kind `bad_line`, and the rest
//! goes on.

use std::{
    collections::BTreeMap,
    io::{BufRead, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};

use maskwright::{
    check::{Checker, TokenChecker},
    grammar::{
        GbnfOptions, Grammar, GrammarError, NamedGrammar, SchemaOptions,
        StructuralTags,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{args::SchemaArgs, fail::Fail};

/// One line of input.
#[derive(Debug, Deserialize)]
struct Request {
    #[serde(default)]
    id: Value,
    schema: Option<Value>,
    regex: Option<String>,
    gbnf: Option<String>,
    choices: Option<Vec<String>>,
    tags: Option<Value>,
    #[serde(default)]
    grammars: BTreeMap<String, Named>,
    #[serde(default)]
    options: Options,
    #[serde(default)]
    texts: Vec<String>,
}

/// A grammar that another one names.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Named {
    Gbnf(String),
    Schema { schema: Value },
    Regex { regex: String },
    Choices { choices: Vec<String> },
}

/// How the texts may be written; what is absent is taken at its widest.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    order: Option<String>,
    whitespace: Option<String>,
    escapes: Option<String>,
    numbers: Option<String>,
    format: Option<String>,
    draft: Option<String>,
    regex_backrefs: Option<String>,
    #[serde(default)]
    lenient: bool,
    #[serde(default)]
    documents: BTreeMap<String, Value>,
}

/// One line of output.
#[derive(Debug, Serialize)]
struct Response {
    id: Value,
    error: Option<Problem>,
    accepted: Vec<bool>,
    stopped_at: Vec<Option<usize>>,
    compile_us: u64,
    warnings: Vec<String>,
}

/// Why a line was not checked.
#[derive(Debug, Serialize)]
struct Problem {
    kind: String,
    message: String,
    location: Option<String>,
}

impl Response {
    fn failed(id: Value, error: Problem) -> Response {
        Response {
            id,
            error: Some(error),
            accepted: Vec::new(),
            stopped_at: Vec::new(),
            compile_us: 0,
            warnings: Vec::new(),
        }
    }
}

impl Problem {
    fn new(kind: &str, message: String, location: Option<String>) -> Problem {
        Problem { kind: kind.to_owned(), message, location }
    }
}

impl From<GrammarError> for Problem {
    fn from(error: GrammarError) -> Problem {
        Problem::new(error.kind(), error.to_string(), error.location())
    }
}

/// Answers every line of `input`, in order.
pub(crate) fn run(
    input: &mut dyn BufRead,
    output: &mut dyn Write,
    tokens: Option<&TokenChecker>,
) -> Result<(), Fail> {
    let mut line = Vec::new();
    for number in 1_usize.. {
        line.clear();
        if input.read_until(b'\n', &mut line).map_err(Fail::read)? == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let response = answer(&line, number, tokens);
        serde_json::to_writer(&mut *output, &response)
            .map_err(|error| Fail::write(error.into()))?;
        output.write_all(b"\n").map_err(Fail::write)?;
        output.flush().map_err(Fail::write)?;
    }
    Ok(())
}

fn answer(
    line: &[u8],
    number: usize,
    tokens: Option<&TokenChecker>,
) -> Response {
    let request: Request = match serde_json::from_slice(line) {
        Ok(request) => request,
        Err(error) => {
            let id = serde_json::from_slice::<Value>(line)
                .ok()
                .and_then(|value| value.get("id").cloned());
            let location = Some(format!("line {number}"));
            let message = format!("the line cannot be read: {error}");
            let problem = Problem::new("bad_line", message, location);
            return Response::failed(id.unwrap_or_default(), problem);
        }
    };
    let id = request.id.clone();
    // One line must never take the others with it, whatever is wrong.
    catch_unwind(AssertUnwindSafe(|| check(&request, number, tokens)))
        .unwrap_or_else(|_| {
            let message = "a defect of Maskwright; please report this line";
            let location = Some(format!("line {number}"));
            let problem =
                Problem::new("internal", message.to_owned(), location);
            Response::failed(id, problem)
        })
}

fn check(
    request: &Request,
    number: usize,
    tokens: Option<&TokenChecker>,
) -> Response {
    let id = request.id.clone();
    let started = Instant::now();
    let grammar = match compile(request, number) {
        Ok(grammar) => grammar,
        Err(problem) => return Response::failed(id, problem),
    };
    let compile_us =
        u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    let mut response = Response {
        id,
        error: None,
        accepted: Vec::with_capacity(request.texts.len()),
        stopped_at: Vec::with_capacity(request.texts.len()),
        compile_us,
        warnings: grammar.warnings().to_vec(),
    };
    for text in &request.texts {
        let verdict = match tokens {
            Some(tokens) => tokens.check(&grammar, text),
            None => Checker::new(&grammar)
                .check(text.as_bytes())
                .map_err(Into::into),
        };
        match verdict {
            Ok(verdict) => {
                response.accepted.push(verdict.is_accepted());
                response.stopped_at.push(verdict.stopped_at());
            }
            Err(error) => {
                let (kind, message) = (error.kind(), error.to_string());
                let problem = Problem::new(kind, message, None);
                return Response::failed(response.id, problem);
            }
        }
    }
    response
}

fn compile(request: &Request, number: usize) -> Result<Grammar, Problem> {
    let given = [
        request.schema.is_some(),
        request.regex.is_some(),
        request.gbnf.is_some(),
        request.choices.is_some(),
        request.tags.is_some(),
    ];
    if given.iter().filter(|&&given| given).count() != 1 {
        let message = "give just one of `schema`, `regex`, `gbnf`, \
                       `choices` and `tags`";
        let location = Some(format!("line {number}"));
        return Err(Problem::new("bad_line", message.to_owned(), location));
    }
    let options = request.options.schema_options().map_err(|message| {
        let location = Some("options".to_owned());
        Problem::new("bad_option", message, location)
    })?;
    if let Some(schema) = &request.schema {
        return Ok(Grammar::from_schema_value(schema, &options)?);
    }
    if let Some(regex) = &request.regex {
        return Ok(Grammar::from_regex(regex)?);
    }
    if let Some(gbnf) = &request.gbnf {
        return Ok(linked(gbnf, &request.grammars, options)?);
    }
    if let Some(tags) = &request.tags {
        let tags = StructuralTags::from_json(&tags.to_string(), &options);
        return Ok(Grammar::from_tags(&tags.map_err(GrammarError::from)?)?);
    }
    let choices = request.choices.as_deref().unwrap_or_default();
    Ok(Grammar::from_choices(choices)?)
}

fn linked(
    gbnf: &str,
    named: &BTreeMap<String, Named>,
    schema: SchemaOptions,
) -> Result<Grammar, GrammarError> {
    let mut options = GbnfOptions::default();
    for (name, named) in named {
        let grammar = match named {
            Named::Gbnf(text) => NamedGrammar::Gbnf(text.clone()),
            Named::Schema { schema: value } => NamedGrammar::Grammar(
                Grammar::from_schema_value(value, &schema)?,
            ),
            Named::Regex { regex } => {
                NamedGrammar::Grammar(Grammar::from_regex(regex)?)
            }
            Named::Choices { choices } => {
                NamedGrammar::Grammar(Grammar::from_choices(choices)?)
            }
        };
        options.grammars.insert(name.clone(), grammar);
    }
    options.schema = schema;
    Grammar::from_gbnf_with(gbnf, &options)
}

impl Options {
    fn schema_options(&self) -> Result<SchemaOptions, String> {
        let args = SchemaArgs {
            orders: self.order.clone().into_iter().collect(),
            whitespace: self.whitespace.clone(),
            escapes: self.escapes.clone(),
            numbers: self.numbers.clone(),
            format: self.format.clone(),
            draft: self.draft.clone(),
            regex_backrefs: self.regex_backrefs.clone(),
            lenient: self.lenient,
            documents: Vec::new(),
        };
        let mut options = args.over(SchemaOptions::widest())?;
        for (uri, document) in &self.documents {
            options.parse.documents.insert(uri.clone(), document.clone());
        }
        Ok(options)
    }
}
