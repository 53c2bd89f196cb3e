//! Laws of the algebra, and the worked examples that made it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Form, FormulaId, Formulas, Tracker};
use crate::parse::{JsonType, Limits, NameId, Options, parse_value};

fn formulas(schema: &Value) -> Formulas {
    let (schema, pool) =
        parse_value(schema, &Options::default()).expect("a good schema");
    Formulas::new(Arc::new(schema), pool, Limits::default())
}

fn object(formulas: &mut Formulas) -> FormulaId {
    let root = formulas.root();
    formulas.typed(root, JsonType::Object).expect("a small formula")
}

fn name(formulas: &mut Formulas, text: &str) -> NameId {
    formulas.pool_mut().name(text)
}

/// The residual after members whose values satisfy every leaf.
fn after(formulas: &mut Formulas, id: FormulaId, names: &[&str]) -> FormulaId {
    names.iter().fold(id, |id, text| {
        let name = name(formulas, text);
        let pending = formulas.derive_name(id, name);
        formulas.substitute(pending, &|_| true)
    })
}

#[test]
fn negation_is_its_own_inverse_and_excludes() {
    let schemas = [
        json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        json!({"properties": {"a": {"type": "string"}}, "minProperties": 2}),
        json!({"unevaluatedProperties": false, "anyOf": [
            {"properties": {"a": true}}, {"required": ["b"]}]}),
        json!({"if": {"required": ["a"]}, "then": {"required": ["b"]}}),
    ];
    for schema in schemas {
        let mut formulas = formulas(&schema);
        let id = object(&mut formulas);
        let negation = formulas.negate(id);
        assert_eq!(formulas.negate(negation), id, "{schema}");
        assert!(formulas.and([id, negation]).is_false(), "{schema}");
        assert!(formulas.or([id, negation]).is_true(), "{schema}");
    }
}

#[test]
fn required_only_branches_forbid_each_other() {
    let schema = json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    let mut formulas = formulas(&schema);
    let id = object(&mut formulas);
    assert!(!formulas.holds_at_end(id, false));
    let id = after(&mut formulas, id, &["a"]);
    assert!(formulas.holds_at_end(id, false));
    let b = name(&mut formulas, "b");
    assert!(formulas.derive_name(id, b).is_false());
}

#[test]
fn condition_on_a_constant_waits_for_its_member() {
    let schema = json!({
        "if": {"properties": {"kind": {"const": "x"}}},
        "then": {"required": ["p"]},
        "else": {"required": ["q"]},
    });
    let mut formulas = formulas(&schema);
    let id = object(&mut formulas);
    let kind = name(&mut formulas, "kind");
    let pending = formulas.derive_name(id, kind);
    // One goal and its negation: one run of the child decides both.
    let leaves = formulas.leaves(pending);
    assert_eq!(leaves.len(), 2);
    assert_eq!(formulas.negate(leaves[0]), leaves[1]);
    let p = after(&mut formulas, id, &["p"]);
    assert!(formulas.holds_at_end(p, false), "no kind: the condition holds");
    let q = after(&mut formulas, id, &["q"]);
    assert!(!formulas.holds_at_end(q, false));
}

#[test]
fn chain_of_conditions_has_a_term_for_each_constant() {
    let branch = |index: usize| {
        json!({
            "if": {"properties": {"kind": {"const": index.to_string()}}},
            "then": {"required": [format!("p{index}")]},
        })
    };
    let all: Vec<Value> = (0..12).map(branch).collect();
    let mut formulas = formulas(&json!({"allOf": all}));
    let id = object(&mut formulas);
    let kind = name(&mut formulas, "kind");
    let pending = formulas.derive_name(id, kind);
    let terms = formulas.terms(pending).expect("constants tell cases apart");
    assert_eq!(terms.len(), 13);
}

#[test]
fn branches_told_apart_need_no_negation() {
    let branch = |kind: &str| {
        json!({
            "properties": {"kind": {"const": kind}, "v": {"minimum": 1}},
            "required": ["kind"],
        })
    };
    let schema = json!({"oneOf": [branch("a"), branch("b"), branch("c")]});
    let mut one = formulas(&schema);
    let id = object(&mut one);
    assert!(matches!(one.form(id), Form::Or(parts) if parts.len() == 3));
}

#[test]
fn flat_site_lists_names_in_document_order() {
    let schema = json!({
        "properties": {"z": true, "b": {"type": "string"}},
        "allOf": [{"properties": {"a": {"type": "null"}, "b": true}}],
        "patternProperties": {"^a": {"const": null}},
        "additionalProperties": {"type": "integer"},
        "required": ["b", "r"], "maxProperties": 5,
    });
    let mut formulas = formulas(&schema);
    let root = formulas.root();
    let site = formulas.object_site(root).expect("a small formula");
    assert!(site.is_flat());
    let names: Vec<&str> = site
        .names
        .iter()
        .map(|member| formulas.pool().name_text(member.name))
        .collect();
    assert_eq!(names, ["z", "b", "a", "r"]);
    let required: Vec<bool> =
        site.names.iter().map(|member| member.required).collect();
    assert_eq!(required, [false, true, false, true]);
    assert_eq!(site.max, Some(5));
    assert!(site.names[0].goal.is_true());
    assert!(!site.names[3].goal.is_true(), "r is an additional property");
}

#[test]
fn array_site_has_a_prefix_and_a_tail() {
    let schema = json!({
        "prefixItems": [{"const": 1}, true],
        "items": {"type": "string"}, "minItems": 1, "uniqueItems": true,
    });
    let mut formulas = formulas(&schema);
    let root = formulas.root();
    let site = formulas.array_site(root).expect("a small formula");
    assert!(site.is_flat() && site.unique);
    assert_eq!((site.min, site.max), (1, None));
    assert_eq!(site.prefix.len(), 2);
    assert!(site.goal(1).is_true());
    assert_eq!(site.goal(2), site.goal(200));
    assert!(!site.goal(2).is_true());
}

#[test]
fn unevaluated_dies_with_its_condition() {
    let schema = json!({
        "anyOf": [
            {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"b": true}, "required": ["b"]},
        ],
        "unevaluatedProperties": false,
    });
    let mut formulas = formulas(&schema);
    let a = name(&mut formulas, "a");
    let id = object(&mut formulas);
    let pending = formulas.derive_name(id, a);
    let failed = formulas.substitute(pending, &|_| false);
    assert!(failed.is_false(), "a string there can never be evaluated");
}

#[test]
fn deep_references_do_not_recurse() {
    let depth = 20_000;
    let mut definitions = serde_json::Map::new();
    for index in 0..depth {
        let next = format!("#/definitions/d{}", index + 1);
        definitions
            .insert(format!("d{index}"), json!({"allOf": [{"$ref": next}]}));
    }
    definitions.insert(format!("d{depth}"), json!({"type": "null"}));
    let schema = json!({
        "$ref": "#/definitions/d0", "definitions": definitions,
    });
    let mut formulas = formulas(&schema);
    let mut tracker = Tracker::new(&mut formulas);
    assert_eq!(tracker.validate(&json!(null)), Ok(true));
    assert_eq!(tracker.validate(&json!(1)), Ok(false));
}
