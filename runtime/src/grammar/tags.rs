//! Structural tags: free text in which a trigger switches to a grammar.
//!
//! A model that may call tools writes what it likes until it writes a
//! *trigger* (`<function=`). From there on it must write one of the *tags*
//! that begin with that trigger: the rest of its beginning, a text of its
//! grammar, and its end; then it is free again.
//!
//! The first trigger that is complete counts, and of two that are complete
//! with the same character, the longer. Hence a trigger that begins another
//! one stands for both, and what merely resembles a trigger is text.
//!
//! # Example
//!
//! ```
//! use maskwright::grammar::{Grammar, StructuralTags, Tag};
//!
//! let arguments = Grammar::from_schema(
//!     r#"{"type": "object", "properties": {"city": {"type": "string"}},
//!         "required": ["city"], "additionalProperties": false}"#,
//!     &Default::default(),
//! )?;
//! let mut tags = StructuralTags::default();
//! tags.triggers = vec!["<function=".to_owned()];
//! tags.tags =
//!     vec![Tag::text("<function=weather>", arguments, "</function>")];
//! let grammar = Grammar::from_tags(&tags)?;
//! let text = r#"I see. <function=weather>{"city":"Oslo"}</function> Done <3"#;
//! assert!(grammar.accepts(text)?);
//! assert!(!grammar.accepts("<function=wether>")?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use maskwright_grammar_core::{
    automaton::{
        Atom, AtomToken, AutomatonError,
        cfg::{CfgLimits, CfgMachine},
    },
    grammar::{ExprId, GrammarBuilder, RuleId, rewrite},
};

use super::{
    Grammar,
    free_text::{FreeText, Rules},
};

/// Text is followed apart for each number of tags up to a bound; bounds may
/// be so large.
const MAX_COUNT: u32 = 256;

/// A piece of the beginning or the end of a tag.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Marker {
    /// A text.
    Text(String),
    /// One whole token, which may be a special one: it is matched by its id,
    /// and its spelling in text is no trigger.
    Token(AtomToken),
}

/// A tag: a grammar between two marks.
#[derive(Clone, Debug)]
pub struct Tag {
    /// What it begins with. The first piece holds the trigger.
    pub begin: Vec<Marker>,
    /// What may stand in it.
    pub content: Grammar,
    /// What it ends with; behind it, text is free again.
    pub end: Vec<Marker>,
}

impl Tag {
    /// Creates a tag between two texts.
    pub fn text(
        begin: impl Into<String>,
        content: Grammar,
        end: impl Into<String>,
    ) -> Tag {
        Tag {
            begin: vec![Marker::Text(begin.into())],
            content,
            end: vec![Marker::Text(end.into())],
        }
    }
}

/// Free text with tags in it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StructuralTags {
    /// The texts that switch to a tag. Each must begin a tag, and each tag
    /// that begins with a text must begin with one of them. If there are
    /// none, they are the whole beginnings of the tags.
    pub triggers: Vec<String>,
    /// The tags.
    pub tags: Vec<Tag>,
    /// How many tags there must be.
    pub at_least: u32,
    /// How many tags there may be; after the last, no trigger may come.
    pub at_most: Option<u32>,
    /// Whether there may be text before, between and behind the tags.
    pub free_text: bool,
}

impl Default for StructuralTags {
    fn default() -> StructuralTags {
        StructuralTags {
            triggers: Vec::new(),
            tags: Vec::new(),
            at_least: 0,
            at_most: None,
            free_text: true,
        }
    }
}

/// A section before the grammar begins, in which the model may reason.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Reasoning {
    /// What it begins with, where the prompt does not say it already.
    pub begin: Option<Marker>,
    /// What ends it, the first time that it comes.
    pub end: Marker,
}

impl Reasoning {
    /// Creates a section that has begun already.
    pub fn until(end: Marker) -> Reasoning {
        Reasoning { begin: None, end }
    }
}

/// An error that occurs when tags make no grammar.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TagError {
    /// There are no tags.
    #[error("there are no tags; give at least one")]
    NoTags,
    /// A text that must be found is empty.
    #[error("{what} is empty; give at least one character or token")]
    Empty {
        /// Which text.
        what: String,
    },
    /// A tag does not begin with a trigger.
    #[error(
        "tag {index} begins with {begin:?}, and none of the triggers does; \
         the triggers are {triggers:?}"
    )]
    NotTriggered {
        /// The index of the tag, from zero.
        index: usize,
        /// Its beginning.
        begin: String,
        /// The triggers.
        triggers: Vec<String>,
    },
    /// A trigger leads to no tag.
    #[error("no tag begins with the trigger {trigger:?}; remove it")]
    Unused {
        /// The trigger.
        trigger: String,
    },
    /// A trigger can never come, since another one comes first.
    #[error(
        "the trigger {trigger:?} cannot come, because {other:?} is complete \
         before it; remove one of them"
    )]
    Hidden {
        /// The trigger that cannot come.
        trigger: String,
        /// The one that is in its way.
        other: String,
    },
    /// The counts are in the wrong order, or too large.
    #[error(
        "at least {at_least} and at most {at_most} tags were asked for; the \
         first must not be above the second, and neither above {limit}"
    )]
    Counts {
        /// How many there must be.
        at_least: u32,
        /// How many there may be.
        at_most: u32,
        /// The limit on both.
        limit: u32,
    },
    /// The machine could not be built.
    #[error("the machine of the tags cannot be built: {0}")]
    Machine(#[from] AutomatonError),
}

/// Compiles free text with tags.
pub(super) fn compile(tags: &StructuralTags) -> Result<Grammar, TagError> {
    let triggers = Triggers::new(tags)?;
    let (last, is_open) = counts(tags)?;
    let mut builder = GrammarBuilder::new();
    let root = builder.declare("text");
    let free = FreeText::new(&triggers.texts());
    // Text is free after each number of tags alike, but another rule each.
    let levels: Vec<Level> = (0..=last)
        .map(|_| {
            if tags.free_text {
                Level::Free(free.declare(&mut builder, "text"))
            } else {
                Level::Bare(builder.declare("tags"))
            }
        })
        .collect();
    let mut written = Written::new(tags, &triggers, &mut builder);
    for (count, level) in (0..).zip(&levels) {
        let more = if count < last { Some(count + 1) } else { None };
        let more = more.or(is_open.then_some(count));
        let next = more.map(|next| &levels[next as usize]);
        let may_end = count >= tags.at_least;
        written.level(&free, level, next, may_end, &mut builder);
    }
    let start = builder.rule(levels[0].start());
    builder.define(root, start);
    let mut grammar = machine(builder, root)?;
    let contents = tags.tags.iter().flat_map(|tag| tag.content.warnings());
    grammar.warnings = contents.cloned().collect();
    Ok(grammar)
}

/// Compiles a section of reasoning before `grammar`.
pub(super) fn after_reasoning(
    grammar: &Grammar,
    reasoning: &Reasoning,
) -> Result<Grammar, TagError> {
    let mut builder = GrammarBuilder::new();
    let root = builder.declare("root");
    let answer = builder.machine("answer", grammar.automaton());
    let pattern = match &reasoning.end {
        Marker::Text(text) if text.is_empty() => {
            let what = "the end of the reasoning".to_owned();
            return Err(TagError::Empty { what });
        }
        Marker::Text(text) => vec![text.as_str()],
        Marker::Token(_) => Vec::new(),
    };
    let free = FreeText::new(&pattern);
    let rules = free.declare(&mut builder, "reasoning");
    let mut ways = Vec::new();
    if let Marker::Token(token) = &reasoning.end {
        let end = self::token(token, &mut builder);
        ways.push(builder.concat([end, answer]));
    }
    free.define(&mut builder, &rules, &[Some(answer)], &ways);
    let begin = match &reasoning.begin {
        Some(begin) => marker(begin, &mut builder),
        None => builder.empty(),
    };
    let text = builder.rule(rules.start());
    let body = builder.concat([begin, text]);
    builder.define(root, body);
    let mut whole = machine(builder, root)?;
    whole.warnings = Arc::clone(&grammar.warnings);
    whole.schema.clone_from(&grammar.schema);
    Ok(whole)
}

fn machine(
    builder: GrammarBuilder,
    root: RuleId,
) -> Result<Grammar, TagError> {
    let grammar = builder.build(root).map_err(|error| {
        AutomatonError::Grammar { message: error.to_string() }
    })?;
    let grammar = rewrite::simplify(&grammar);
    let machine = CfgMachine::new(&grammar, &CfgLimits::default())?;
    Ok(Grammar::from_automaton(Arc::new(machine)))
}

/// Returns after how many tags text is followed apart, and whether more may
/// come after that.
fn counts(tags: &StructuralTags) -> Result<(u32, bool), TagError> {
    let StructuralTags { at_least, at_most, .. } = *tags;
    let last = at_most.unwrap_or(at_least);
    if at_least > last || last > MAX_COUNT {
        return Err(TagError::Counts {
            at_least,
            at_most: last,
            limit: MAX_COUNT,
        });
    }
    Ok((last, at_most.is_none()))
}

/// The triggers that are texts, and what each tag has of them.
struct Triggers {
    texts: Vec<String>,
    /// For each tag, its trigger and how many bytes of its beginning that
    /// is; none for one that begins with a token.
    of: Vec<Option<(usize, usize)>>,
}

impl Triggers {
    fn new(tags: &StructuralTags) -> Result<Triggers, TagError> {
        if tags.tags.is_empty() {
            return Err(TagError::NoTags);
        }
        let mut texts = tags.triggers.clone();
        let mut begins: Vec<Option<&str>> = Vec::new();
        for (index, tag) in tags.tags.iter().enumerate() {
            let begin = match tag.begin.first() {
                Some(Marker::Text(text)) if !text.is_empty() => Some(&**text),
                Some(Marker::Token(_)) => None,
                _ => {
                    let what = format!("the beginning of tag {index}");
                    return Err(TagError::Empty { what });
                }
            };
            if tags.triggers.is_empty() {
                texts.extend(begin.map(str::to_owned));
            }
            begins.push(begin);
        }
        if texts.iter().any(String::is_empty) {
            let what = "a trigger".to_owned();
            return Err(TagError::Empty { what });
        }
        let mut triggers = Triggers { texts: shortest(texts), of: Vec::new() };
        triggers.check_hidden()?;
        let free = FreeText::new(&triggers.texts());
        for (index, begin) in begins.into_iter().enumerate() {
            let of = begin.map(|begin| match free.find(begin) {
                Some((trigger, end))
                    if end == triggers.texts[trigger].len() =>
                {
                    Ok((trigger, end))
                }
                _ => Err(TagError::NotTriggered {
                    index,
                    begin: begin.to_owned(),
                    triggers: triggers.texts.clone(),
                }),
            });
            triggers.of.push(of.transpose()?);
        }
        let mut unused = vec![true; triggers.texts.len()];
        for &(trigger, _) in triggers.of.iter().flatten() {
            unused[trigger] = false;
        }
        match unused.iter().position(|&unused| unused) {
            Some(index) => {
                let trigger = triggers.texts[index].clone();
                Err(TagError::Unused { trigger })
            }
            None => Ok(triggers),
        }
    }

    fn texts(&self) -> Vec<&str> {
        self.texts.iter().map(String::as_str).collect()
    }

    fn check_hidden(&self) -> Result<(), TagError> {
        let free = FreeText::new(&self.texts());
        for trigger in &self.texts {
            if let Some((first, _)) = free.find(trigger)
                && self.texts[first] != *trigger
            {
                let other = self.texts[first].clone();
                let trigger = trigger.clone();
                return Err(TagError::Hidden { trigger, other });
            }
        }
        Ok(())
    }
}

/// Leaves out what is there twice, and what another text begins.
fn shortest(mut texts: Vec<String>) -> Vec<String> {
    // What a text begins comes right behind it.
    texts.sort_unstable();
    texts.dedup_by(|next, kept| next.starts_with(&**kept));
    texts
}

/// The rules after one number of tags.
enum Level {
    Free(Rules),
    Bare(RuleId),
}

impl Level {
    fn start(&self) -> RuleId {
        match self {
            Level::Free(rules) => rules.start(),
            Level::Bare(rule) => *rule,
        }
    }
}

/// The tags as expressions.
struct Written {
    /// What follows each trigger.
    behind: Vec<ExprId>,
    /// The tags that begin with a token.
    tokens: Vec<ExprId>,
    /// The tags with their triggers.
    whole: Vec<ExprId>,
}

impl Written {
    fn new(
        tags: &StructuralTags,
        triggers: &Triggers,
        builder: &mut GrammarBuilder,
    ) -> Written {
        let mut behind = vec![Vec::new(); triggers.texts.len()];
        let mut tokens = Vec::new();
        let mut whole = Vec::new();
        for (tag, of) in tags.tags.iter().zip(&triggers.of) {
            let content = builder.machine("tag", tag.content.automaton());
            let end: Vec<ExprId> =
                tag.end.iter().map(|end| marker(end, builder)).collect();
            let begin: Vec<ExprId> =
                tag.begin.iter().map(|begin| marker(begin, builder)).collect();
            let parts = begin.iter().copied().chain([content]);
            let all = builder.concat(parts.chain(end.iter().copied()));
            whole.push(all);
            let Some((trigger, len)) = *of else {
                tokens.push(all);
                continue;
            };
            let rest = match tag.begin.first() {
                Some(Marker::Text(text)) => &text.as_bytes()[len..],
                Some(Marker::Token(_)) | None => &[],
            };
            let rest = [builder.literal(rest)];
            let parts = rest.iter().chain(&begin[1..]).chain([&content]);
            let parts: Vec<ExprId> = parts.chain(&end).copied().collect();
            behind[trigger].push(builder.concat(parts));
        }
        let behind = behind.into_iter();
        let behind = behind.map(|tags| builder.choice(tags)).collect();
        Written { behind, tokens, whole }
    }

    /// Defines the rules of a level. After a tag comes `next`; without it,
    /// no tag may come.
    fn level(
        &mut self,
        free: &FreeText,
        level: &Level,
        next: Option<&Level>,
        may_end: bool,
        builder: &mut GrammarBuilder,
    ) {
        let next = next.map(|next| builder.rule(next.start()));
        let then = |tags: &[ExprId], builder: &mut GrammarBuilder| {
            let Some(next) = next else { return Vec::new() };
            tags.iter().map(|&tag| builder.concat([tag, next])).collect()
        };
        let mut ways: Vec<ExprId> = Vec::new();
        if may_end {
            ways.push(builder.empty());
        }
        match level {
            Level::Free(rules) => {
                let behind = then(&self.behind, builder);
                let behind: Vec<Option<ExprId>> = if next.is_some() {
                    behind.into_iter().map(Some).collect()
                } else {
                    vec![None; self.behind.len()]
                };
                ways.extend(then(&self.tokens, builder));
                free.define(builder, rules, &behind, &ways);
            }
            Level::Bare(rule) => {
                ways.extend(then(&self.whole, builder));
                let body = builder.choice(ways);
                builder.define(*rule, body);
            }
        }
    }
}

fn marker(marker: &Marker, builder: &mut GrammarBuilder) -> ExprId {
    match marker {
        Marker::Text(text) => builder.literal(text.as_bytes()),
        Marker::Token(token) => self::token(token, builder),
    }
}

fn token(token: &AtomToken, builder: &mut GrammarBuilder) -> ExprId {
    builder.atom(Atom { token: token.clone(), negated: false })
}
