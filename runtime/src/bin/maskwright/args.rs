//! What the command line says, shared by the subcommands.

use std::{
    io::{Read, Write as _},
    path::{Path, PathBuf},
};

use clap::Args;
use maskwright::grammar::{
    Backreferences, ChoiceOptions, Draft, Escapes, FormatPolicy, Grammar,
    Numbers, Order, SchemaOptions, Whitespace,
};

use crate::{fail::Fail, sampling::SamplingArgs, tags::TagArgs};

/// How the texts of a schema's instances may be written.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SchemaArgs {
    /// Order of members: `schema` or `any`. Where tokens are drawn, also the
    /// order of the stages (see --sampling-order); it may be given twice
    #[arg(long = "order", value_name = "ORDER")]
    pub(crate) orders: Vec<String>,
    /// White space between tokens: `compact`, `spaced`, `indent` (by two
    /// spaces a level), `indent:N`, `any`, or `any:N` for runs of up to N
    /// bytes
    #[arg(long, value_name = "POLICY")]
    pub(crate) whitespace: Option<String>,
    /// Escapes in strings: `needed`, `ascii` or `any`
    #[arg(long, value_name = "POLICY")]
    pub(crate) escapes: Option<String>,
    /// Spelling of numbers: `plain` or `json`
    #[arg(long, value_name = "POLICY")]
    pub(crate) numbers: Option<String>,
    /// What `format` means: `annotate`, `assert-known` or `assert-all`
    #[arg(long, value_name = "POLICY")]
    pub(crate) format: Option<String>,
    /// The draft where the schema names none: 4, 6, 7, 2019-09 or 2020-12
    #[arg(long, value_name = "DRAFT")]
    pub(crate) draft: Option<String>,
    /// What becomes of backreferences in patterns: `error`, or `check` when
    /// the string ends
    #[arg(long, value_name = "POLICY")]
    pub(crate) regex_backrefs: Option<String>,
    /// Leaves out what cannot be enforced, with a warning, instead of failing
    #[arg(long)]
    pub(crate) lenient: bool,
    /// A document that references may lead to
    #[arg(long = "document", value_name = "URI=FILE")]
    pub(crate) documents: Vec<String>,
}

impl SchemaArgs {
    /// Takes apart what `--order` says of members and what it says of the
    /// stages that choose a token, which have other names.
    pub(crate) fn split_order(
        &self,
        sampling: &SamplingArgs,
    ) -> Result<(SchemaArgs, SamplingArgs), Fail> {
        let is_of_members = |order: &String| {
            ORDERS.iter().any(|(name, _)| *name == order.as_str())
        };
        let (members, stages): (Vec<String>, Vec<String>) =
            self.orders.iter().cloned().partition(is_of_members);
        let mut sampling = sampling.clone();
        for order in stages {
            sampling.set_order(order)?;
        }
        Ok((SchemaArgs { orders: members, ..self.clone() }, sampling))
    }

    /// Puts what was said over `options`.
    pub(crate) fn over(
        &self,
        mut options: SchemaOptions,
    ) -> Result<SchemaOptions, String> {
        let text = &mut options.text;
        for order in &self.orders {
            text.order = choose("order", order, &ORDERS)?;
        }
        if let Some(whitespace) = &self.whitespace {
            text.whitespace = whitespace_policy(whitespace, text.whitespace)?;
        }
        if let Some(escapes) = &self.escapes {
            let policies = [
                ("needed", Escapes::Needed),
                ("ascii", Escapes::Ascii),
                ("any", Escapes::Any),
            ];
            text.escapes = choose("escapes", escapes, &policies)?;
        }
        if let Some(numbers) = &self.numbers {
            let policies =
                [("plain", Numbers::Plain), ("json", Numbers::Json)];
            text.numbers = choose("numbers", numbers, &policies)?;
        }
        if let Some(format) = &self.format {
            let policies = [
                ("annotate", FormatPolicy::Annotate),
                ("assert-known", FormatPolicy::AssertKnown),
                ("assert-all", FormatPolicy::AssertAll),
            ];
            options.parse.format = choose("format", format, &policies)?;
        }
        if let Some(draft) = &self.draft {
            let drafts = [
                ("4", Draft::Draft4),
                ("6", Draft::Draft6),
                ("7", Draft::Draft7),
                ("2019-09", Draft::Draft201909),
                ("2020-12", Draft::Draft202012),
            ];
            options.parse.draft = Some(choose("draft", draft, &drafts)?);
        }
        if let Some(backrefs) = &self.regex_backrefs {
            let policies = [
                ("error", Backreferences::Refuse),
                ("check", Backreferences::Check),
            ];
            options.parse.backreferences =
                choose("regex-backrefs", backrefs, &policies)?;
        }
        options.parse.lenient |= self.lenient;
        for document in &self.documents {
            let (uri, file) = document.split_once('=').ok_or_else(|| {
                format!("a document is given as URI=FILE, not {document:?}")
            })?;
            let text = read(Path::new(file)).map_err(|e| e.to_string())?;
            let value = serde_json::from_str(&text)
                .map_err(|error| format!("document {file}: {error}"))?;
            options.parse.documents.insert(uri.to_owned(), value);
        }
        Ok(options)
    }
}

const ORDERS: [(&str, Order); 2] =
    [("schema", Order::Schema), ("any", Order::Any)];

fn whitespace_policy(
    text: &str,
    default: Whitespace,
) -> Result<Whitespace, String> {
    if let Some(max) = text.strip_prefix("any:") {
        let max = max.parse().map_err(|_| {
            format!("the longest run of white space is a number, not {max:?}")
        })?;
        return Ok(Whitespace::Any { max });
    }
    if let Some(width) = text.strip_prefix("indent:") {
        let width = width.parse().map_err(|_| {
            format!("lines are indented by 0 to 255 spaces, not {width:?}")
        })?;
        return Ok(Whitespace::Indent { width });
    }
    let any = match default {
        Whitespace::Any { .. } => default,
        Whitespace::Compact
        | Whitespace::Spaced
        | Whitespace::Indent { .. } => Whitespace::default(),
    };
    let policies = [
        ("compact", Whitespace::Compact),
        ("spaced", Whitespace::Spaced),
        ("indent", Whitespace::Indent { width: 2 }),
        ("any", any),
    ];
    choose("whitespace", text, &policies)
}

fn choose<T: Copy>(
    option: &str,
    given: &str,
    choices: &[(&str, T)],
) -> Result<T, String> {
    let found = choices.iter().find(|(name, _)| *name == given);
    found.map(|&(_, value)| value).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|&(name, _)| name).collect();
        format!(
            "`{option}` is one of {}, and {given:?} was given",
            names.join(", ")
        )
    })
}

/// Which grammar constrains the output.
#[derive(Args, Clone, Debug, Default)]
#[group(id = "grammar", multiple = false)]
pub(crate) struct GrammarSource {
    /// A file with a JSON Schema
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    /// Any JSON value
    #[arg(long)]
    pub(crate) json: bool,
    /// A regular expression (Rust syntax) that the whole text must match
    #[arg(long, value_name = "REGEX")]
    pub(crate) regex: Option<String>,
    /// Texts, one of which it must be, separated by commas
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub(crate) choices: Option<Vec<String>>,
    /// A file with a grammar in GBNF, whose rule `root` it starts at
    #[arg(long, value_name = "FILE")]
    pub(crate) gbnf: Option<PathBuf>,
    /// A file of structural tags (JSON): free text in which a trigger
    /// switches to a grammar
    #[arg(long, value_name = "FILE")]
    pub(crate) tags: Option<PathBuf>,
    /// A file with a list of tools (JSON), each with a name and the schema
    /// of its arguments, which may be called in free text
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
}

/// A grammar, and how its texts may be written.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct GrammarArgs {
    #[command(flatten)]
    pub(crate) source: GrammarSource,
    /// Lets a space stand before each of the choices
    #[arg(long, requires = "choices")]
    pub(crate) leading_space: bool,
    #[command(flatten)]
    pub(crate) options: SchemaArgs,
    #[command(flatten)]
    pub(crate) tags: TagArgs,
}

impl GrammarArgs {
    /// Compiles the grammar; none if none was named. Warnings go to standard
    /// error.
    pub(crate) fn compile(
        &self,
        defaults: SchemaOptions,
    ) -> Result<Option<Grammar>, Fail> {
        let options = self.options.over(defaults).map_err(Fail::usage)?;
        let source = &self.source;
        let grammar = if let Some(file) = &source.schema {
            Grammar::from_schema(&read(file)?, &options)?
        } else if source.json {
            Grammar::json(&options)?
        } else if let Some(regex) = &source.regex {
            Grammar::from_regex(regex)?
        } else if let Some(choices) = &source.choices {
            let leading_space = self.leading_space;
            Grammar::from_choices_with(
                choices,
                &ChoiceOptions { leading_space },
            )?
        } else if let Some(file) = &source.gbnf {
            self.tags.gbnf(file, options)?
        } else if let Some(file) = &source.tags {
            TagArgs::tags(file, &options)?
        } else if let Some(file) = &source.tools {
            self.tags.tools(file, &options)?
        } else {
            return Ok(None);
        };
        let grammar = self.tags.with_reasoning(grammar)?;
        let mut stderr = std::io::stderr().lock();
        for warning in grammar.warnings() {
            writeln!(stderr, "warning: {warning}").map_err(Fail::write)?;
        }
        Ok(Some(grammar))
    }

    /// Compiles the grammar, which must be named.
    pub(crate) fn require(
        &self,
        defaults: SchemaOptions,
    ) -> Result<Grammar, Fail> {
        self.compile(defaults)?.ok_or_else(|| {
            Fail::usage(
                "name a grammar: one of --schema, --json, --regex, --choices, \
                 --gbnf, --tags and --tools"
                    .to_owned(),
            )
        })
    }
}

/// Reads a file, or standard input if it is called `-`.
pub(crate) fn read(file: &Path) -> Result<String, Fail> {
    let read = || {
        if file == Path::new("-") {
            let mut text = String::new();
            std::io::stdin().lock().read_to_string(&mut text)?;
            Ok(text)
        } else {
            std::fs::read_to_string(file)
        }
    };
    read().map_err(|error| Fail::file(file, &error))
}
