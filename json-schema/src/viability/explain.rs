//! Why no value satisfies a schema.
//!
//! A formula has forgotten which keyword it came from, so the explanation
//! looks at the schema again: it follows what must exist down to a place
//! where two keywords clash.

use std::fmt::Write as _;

use super::{Result, Verdict, Viability};
use crate::formula::{Form, FormulaId, Formulas};
use crate::location::Location;
use crate::parse::{JsonType, Keyword, NameId, NodeId, NodeKind, Schema};

/// How far an explanation goes down.
const MAX_STEPS: usize = 32;

/// The keywords that apply to one value, with their places.
#[derive(Default)]
struct Applied {
    nodes: Vec<NodeId>,
}

impl Viability {
    /// Says why a value formula, about which the verdict is *no*, cannot be
    /// satisfied.
    pub(super) fn explain(
        &mut self,
        formulas: &mut Formulas,
        value: FormulaId,
    ) -> Result<(Location, String)> {
        let schema = std::sync::Arc::clone(formulas.schema());
        let mut value = value;
        let mut path = String::new();
        for _ in 0..MAX_STEPS {
            let applied = applied(formulas, &schema, value);
            let Some((name, goal)) = self.bad_member(formulas, value)? else {
                let place = place(&schema, &applied);
                let mut text = clash(&schema, &applied);
                if !path.is_empty() {
                    text = format!("{text} (the value at {path})");
                }
                return Ok((place, text));
            };
            let key = formulas.pool().name_text(name).to_owned();
            let required = required_at(&schema, &applied, name);
            if goal.is_false() {
                let forbidden =
                    forbidden_at(formulas, &schema, &applied, name);
                let mut text = format!("{key:?} is required");
                if let Some(at) = &required {
                    let _ = write!(text, " by {at}");
                }
                text.push_str(" and forbidden");
                if let Some(at) = forbidden {
                    let _ = write!(text, " by {at}");
                }
                let place =
                    required.unwrap_or_else(|| place(&schema, &applied));
                return Ok((place, text));
            }
            let _ = write!(path, "/{key}");
            if goal == value {
                let place =
                    required.unwrap_or_else(|| place(&schema, &applied));
                let text = format!(
                    "{key:?} is required at every level, so no document is \
                     finite",
                );
                return Ok((place, text));
            }
            value = goal;
        }
        let text = format!(
            "the required members {path} go on without end, so no document \
             is finite",
        );
        Ok((Location::root(), text))
    }

    /// A member that every object needs and that no value can be; none if
    /// objects are not what is asked for.
    fn bad_member(
        &mut self,
        formulas: &mut Formulas,
        value: FormulaId,
    ) -> Result<Option<(NameId, FormulaId)>> {
        for json_type in JsonType::ALL {
            let typed = formulas.typed(value, json_type)?;
            if json_type != JsonType::Object && !typed.is_false() {
                return Ok(None);
            }
        }
        let site = formulas.object_site(value)?;
        for member in &site.names {
            if member.required
                && self.value(formulas, member.goal)? == Verdict::No
            {
                return Ok(Some((member.name, member.goal)));
            }
        }
        Ok(None)
    }
}

/// The nodes that apply to a value without a choice.
fn applied(formulas: &Formulas, schema: &Schema, value: FormulaId) -> Applied {
    let mut applied = Applied::default();
    let mut stack = Vec::new();
    for part in formulas.conjuncts(value) {
        if let Form::Goal(goal) = formulas.form(part) {
            stack.push(formulas.goal_value(*goal).node);
        }
    }
    stack.reverse();
    while let Some(node) = stack.pop() {
        if applied.nodes.contains(&node) {
            continue;
        }
        applied.nodes.push(node);
        for keyword in schema.keywords(node).iter().rev() {
            match keyword {
                Keyword::Ref(target) => stack.push(*target),
                Keyword::AllOf(nodes) => stack.extend(nodes.iter().rev()),
                _ => {}
            }
        }
    }
    applied
}

fn place(schema: &Schema, applied: &Applied) -> Location {
    applied
        .nodes
        .first()
        .map_or_else(Location::root, |&node| schema.location(node))
}

fn required_at(
    schema: &Schema,
    applied: &Applied,
    name: NameId,
) -> Option<Location> {
    applied.nodes.iter().find_map(|&node| {
        schema.keywords(node).iter().find_map(|keyword| {
            let Keyword::Required(names) = keyword else {
                return None;
            };
            let index = names.iter().position(|&other| other == name)?;
            let place = schema.location(node).child("required");
            Some(place.child(&index.to_string()))
        })
    })
}

fn forbidden_at(
    formulas: &Formulas,
    schema: &Schema,
    applied: &Applied,
    name: NameId,
) -> Option<Location> {
    let text = formulas.pool().name_text(name);
    let never =
        |node: &NodeId| matches!(schema.node(*node).kind, NodeKind::Never);
    applied.nodes.iter().find_map(|&at| {
        schema.keywords(at).iter().find_map(|keyword| match keyword {
            Keyword::Properties(members) => members
                .iter()
                .any(|(other, node)| *other == name && never(node))
                .then(|| schema.location(at).child("properties").child(text)),
            Keyword::AdditionalProperties { node, names, patterns } => {
                let listed = names.contains(&name)
                    || patterns.iter().any(|&pattern| {
                        formulas.pool().pattern_value(pattern).is_match(text)
                    });
                (never(node) && !listed)
                    .then(|| schema.location(at).child("additionalProperties"))
            }
            _ => None,
        })
    })
}

/// Describes the constraints of the applied nodes in a line.
fn clash(schema: &Schema, applied: &Applied) -> String {
    let mut said = Vec::new();
    for &node in &applied.nodes {
        for keyword in schema.keywords(node) {
            if let Some(name) = describe(keyword) {
                let place = schema.location(node).child(name);
                said.push(place.to_string());
            }
        }
    }
    if said.is_empty() {
        return "it is `false`, or all its alternatives are".to_owned();
    }
    said.truncate(6);
    format!("nothing satisfies all of {}", said.join(", "))
}

/// The keyword's name.
fn describe(keyword: &Keyword) -> Option<&'static str> {
    Some(match keyword {
        Keyword::Type(_) => "type",
        Keyword::Enum(_) => "enum",
        Keyword::Const(_) => "const",
        Keyword::MultipleOf(_) => "multipleOf",
        Keyword::Minimum { exclusive: false, .. } => "minimum",
        Keyword::Minimum { .. } => "exclusiveMinimum",
        Keyword::Maximum { exclusive: false, .. } => "maximum",
        Keyword::Maximum { .. } => "exclusiveMaximum",
        Keyword::MinLength(_) => "minLength",
        Keyword::MaxLength(_) => "maxLength",
        Keyword::Pattern(_) => "pattern",
        Keyword::Format(_) => "format",
        Keyword::Required(_) => "required",
        Keyword::MinProperties(_) => "minProperties",
        Keyword::MaxProperties(_) => "maxProperties",
        Keyword::PropertyNames(_) => "propertyNames",
        Keyword::AdditionalProperties { .. } => "additionalProperties",
        Keyword::PatternProperties(_) => "patternProperties",
        Keyword::PrefixItems(_) | Keyword::Items { .. } => "items",
        Keyword::Contains { .. } => "contains",
        Keyword::MinItems(_) => "minItems",
        Keyword::MaxItems(_) => "maxItems",
        Keyword::UniqueItems => "uniqueItems",
        Keyword::AnyOf(_) => "anyOf",
        Keyword::OneOf(_) => "oneOf",
        Keyword::Not(_) => "not",
        Keyword::If { .. } => "if",
        Keyword::UnevaluatedProperties(_) => "unevaluatedProperties",
        Keyword::UnevaluatedItems(_) => "unevaluatedItems",
        _ => return None,
    })
}
