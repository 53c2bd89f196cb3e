//! What a grammar does not hold, and where the schema says it.

use std::{fmt, sync::Arc};

use maskwright_grammar_core::util::FxHashSet;

use crate::{
    draft::Draft,
    error::SchemaError,
    formula::{Form, FormulaId, Formulas},
    location::Location,
    parse::{Keyword, NodeId, NodeKind},
};

/// A keyword that a grammar does not hold.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct LeftOut {
    /// The keyword.
    pub keyword: String,
    /// Where it stands.
    pub location: Location,
    /// Why, and what the grammar allows instead.
    pub reason: String,
}

impl LeftOut {
    /// The place as a JSON pointer, behind the address of its document if
    /// that is not the schema itself.
    pub fn pointer(&self) -> String {
        self.location.address()
    }

    /// What was left out when the schema was read.
    pub(super) fn of_error(error: &SchemaError) -> LeftOut {
        let location = error.location().clone();
        let pointer = location.pointer.as_str();
        let keyword = pointer.rsplit('/').next().unwrap_or_default();
        LeftOut {
            keyword: keyword.to_owned(),
            reason: error.to_string(),
            location,
        }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut { keyword, location, reason } = self;
        // A comment, and a message, is one line.
        let line = format!("`{keyword}` at {location}: {reason}");
        f.write_str(&line.replace(['\n', '\r'], " "))
    }
}

/// What was left out so far, each thing once.
#[derive(Debug, Default)]
pub(super) struct Omissions {
    list: Vec<LeftOut>,
    seen: FxHashSet<LeftOut>,
}

impl Omissions {
    pub(super) fn push(&mut self, omission: LeftOut) {
        if self.seen.insert(omission.clone()) {
            self.list.push(omission);
        }
    }

    pub(super) fn into_list(self) -> Vec<LeftOut> {
        self.list
    }

    /// Notes that some keywords of the schemas that apply to a value are left
    /// out; where none of them has one, the first of these schemas is named.
    pub(super) fn note(
        &mut self,
        formulas: &mut Formulas,
        value: FormulaId,
        keywords: &[&str],
        reason: &str,
    ) {
        let mut places = places(formulas, value, keywords);
        if places.is_empty() {
            places.extend(fallback(formulas, value, keywords));
        }
        for (keyword, location) in places {
            let reason = reason.to_owned();
            self.push(LeftOut { keyword, location, reason });
        }
    }

    /// Notes that the keys of a value's objects may come twice: at the first
    /// keyword that lets other keys come than those with names.
    pub(super) fn note_open(
        &mut self,
        formulas: &mut Formulas,
        value: FormulaId,
    ) {
        let keywords = [
            "additionalProperties",
            "patternProperties",
            "unevaluatedProperties",
        ];
        let schema = Arc::clone(formulas.schema());
        let is_never =
            |node| matches!(schema.node(node).kind, NodeKind::Never);
        let closes = |keyword: &Keyword| match *keyword {
            Keyword::AdditionalProperties { node, .. }
            | Keyword::UnevaluatedProperties(node) => is_never(node),
            _ => false,
        };
        let mut found = None;
        for node in nodes(formulas, value) {
            for keyword in schema.keywords(node) {
                let name = name_of(keyword, schema.draft());
                if found.is_none()
                    && keywords.contains(&name)
                    && !closes(keyword)
                {
                    let place = schema.location(node).child(name);
                    found = Some((name.to_owned(), place));
                }
            }
        }
        let found = found.or_else(|| fallback(formulas, value, &keywords));
        if let Some((keyword, location)) = found {
            let reason = "a key that the schema does not name may come twice";
            let reason = reason.to_owned();
            self.push(LeftOut { keyword, location, reason });
        }
    }
}

/// The first of the schemas that apply to a value, where none of them has any
/// of the keywords.
fn fallback(
    formulas: &mut Formulas,
    value: FormulaId,
    keywords: &[&str],
) -> Option<(String, Location)> {
    let keyword = (*keywords.first()?).to_owned();
    let node = nodes(formulas, value).first().copied();
    let node = node.unwrap_or(formulas.schema().root());
    Some((keyword, formulas.schema().location(node)))
}

/// Where the schemas that apply to a value have one of some keywords.
fn places(
    formulas: &mut Formulas,
    value: FormulaId,
    keywords: &[&str],
) -> Vec<(String, Location)> {
    let mut found = Vec::new();
    for node in nodes(formulas, value) {
        let schema = formulas.schema();
        for keyword in schema.keywords(node) {
            let name = name_of(keyword, schema.draft());
            if keywords.contains(&name)
                || name == "dependencies"
                    && keywords.iter().any(|it| it.starts_with("dependent"))
            {
                let place = schema.location(node).child(name);
                found.push((name.to_owned(), place));
            }
        }
    }
    found
}

/// The schema nodes that apply to a value in place, in document order.
pub(super) fn nodes(formulas: &mut Formulas, value: FormulaId) -> Vec<NodeId> {
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    let mut stack = vec![value];
    while let Some(formula) = stack.pop() {
        if !seen.insert(formula) {
            continue;
        }
        match formulas.form(formula).clone() {
            Form::And(parts) | Form::Or(parts) => {
                stack.extend(parts.iter().rev());
            }
            Form::NotGoal(_) => stack.push(formulas.negate(formula)),
            Form::Goal(goal) => {
                let goal = formulas.goal_value(goal);
                found.push(goal.node);
                let mut applied = formulas.applied_in_place(goal);
                applied.reverse();
                stack.append(&mut applied);
            }
            _ => {}
        }
    }
    found
}

/// The name of a keyword.
fn name_of(keyword: &Keyword, draft: Draft) -> &'static str {
    let is_old = draft < Draft::Draft201909;
    match keyword {
        Keyword::Ref(_) => "$ref",
        Keyword::DynamicRef { .. } => "$dynamicRef",
        Keyword::RecursiveRef { .. } => "$recursiveRef",
        Keyword::Type(_) => "type",
        Keyword::Enum(_) => "enum",
        Keyword::Const(_) => "const",
        Keyword::MultipleOf(_) => "multipleOf",
        Keyword::Minimum { .. } => "minimum",
        Keyword::Maximum { .. } => "maximum",
        Keyword::MinLength(_) => "minLength",
        Keyword::MaxLength(_) => "maxLength",
        Keyword::Pattern(_) => "pattern",
        Keyword::Format(_) => "format",
        Keyword::Properties(_) => "properties",
        Keyword::PatternProperties(_) => "patternProperties",
        Keyword::AdditionalProperties { .. } => "additionalProperties",
        Keyword::PropertyNames(_) => "propertyNames",
        Keyword::Required(_) => "required",
        Keyword::MinProperties(_) => "minProperties",
        Keyword::MaxProperties(_) => "maxProperties",
        Keyword::DependentRequired(_) | Keyword::DependentSchemas(_)
            if is_old =>
        {
            "dependencies"
        }
        Keyword::DependentRequired(_) => "dependentRequired",
        Keyword::DependentSchemas(_) => "dependentSchemas",
        Keyword::PrefixItems(_) if is_old => "items",
        Keyword::PrefixItems(_) => "prefixItems",
        Keyword::Items { .. } => "items",
        Keyword::Contains { .. } => "contains",
        Keyword::MinItems(_) => "minItems",
        Keyword::MaxItems(_) => "maxItems",
        Keyword::UniqueItems => "uniqueItems",
        Keyword::UnevaluatedProperties(_) => "unevaluatedProperties",
        Keyword::UnevaluatedItems(_) => "unevaluatedItems",
        Keyword::AllOf(_) => "allOf",
        Keyword::AnyOf(_) => "anyOf",
        Keyword::OneOf(_) => "oneOf",
        Keyword::Not(_) => "not",
        Keyword::If { .. } => "if",
    }
}
