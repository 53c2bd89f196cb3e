//! Invalid schemas: refused where the meta-schema refuses them, and nowhere
//! else, but for the listed differences.

use std::fmt::Write as _;

use maskwright_json_schema::{Draft, ErrorKind, Options, parse};
use serde_json::{Value, json};

const ADDRESSES: [(Draft, &str); 5] = [
    (Draft::Draft4, "http://json-schema.org/draft-04/schema#"),
    (Draft::Draft6, "http://json-schema.org/draft-06/schema#"),
    (Draft::Draft7, "http://json-schema.org/draft-07/schema#"),
    (Draft::Draft201909, "https://json-schema.org/draft/2019-09/schema"),
    (Draft::Draft202012, "https://json-schema.org/draft/2020-12/schema"),
];

/// One member of a schema for each way to get a keyword wrong, or right.
fn mutations() -> Vec<(&'static str, Value)> {
    let mut all = vec![
        ("type", json!("strng")),
        ("type", json!(5)),
        ("type", json!([])),
        ("type", json!(["string", "string"])),
        ("type", json!(["string", "nul"])),
        ("type", json!(["string", "null"])),
        ("enum", json!("a")),
        ("enum", json!([])),
        ("enum", json!([1, 1.0])),
        ("enum", json!([1, true, "1"])),
        ("const", Value::Null),
        ("multipleOf", json!(0)),
        ("multipleOf", json!(-2)),
        ("multipleOf", json!("2")),
        ("minimum", json!("3")),
        ("maximum", Value::Null),
        ("exclusiveMinimum", json!("3")),
        ("exclusiveMaximum", json!([3])),
        ("pattern", json!(5)),
        ("format", json!(5)),
        ("uniqueItems", json!("yes")),
        ("properties", json!([])),
        ("properties", json!({"a": 1})),
        ("properties", json!({"a": {"type": 1}})),
        ("patternProperties", json!({"a": "b"})),
        ("additionalProperties", json!("no")),
        ("additionalItems", json!(5)),
        ("propertyNames", json!("a")),
        ("required", json!("a")),
        ("required", json!(true)),
        ("required", json!([1])),
        ("required", json!([])),
        ("required", json!(["a", "a"])),
        ("dependencies", json!([])),
        ("dependencies", json!({"a": "b"})),
        ("dependencies", json!({"a": []})),
        ("dependencies", json!({"a": ["b", "b"]})),
        ("dependencies", json!({"a": [1]})),
        ("dependentRequired", json!({"a": "b"})),
        ("dependentRequired", json!({"a": ["b", "b"]})),
        ("dependentSchemas", json!({"a": ["b"]})),
        ("items", json!("a")),
        ("items", json!([])),
        ("items", json!([1])),
        ("items", json!([{}])),
        ("prefixItems", json!({})),
        ("prefixItems", json!([])),
        ("prefixItems", json!([5])),
        ("contains", json!([])),
        ("unevaluatedItems", json!(5)),
        ("unevaluatedProperties", json!("a")),
        ("allOf", json!({})),
        ("anyOf", json!([])),
        ("oneOf", json!([1])),
        ("not", json!([])),
        ("if", json!(1)),
        ("then", json!(1)),
        ("else", json!("a")),
        ("$ref", json!(5)),
        ("$id", json!(5)),
        ("id", json!(5)),
        ("$anchor", json!("1a")),
        ("$anchor", json!("a:b")),
        ("$anchor", json!("_a")),
        ("$dynamicAnchor", json!(5)),
        ("$recursiveAnchor", json!("a")),
        ("$vocabulary", json!([])),
        ("definitions", json!([])),
        ("$defs", json!("a")),
        ("x-anything", json!([1, 1])),
    ];
    for name in [
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "minContains",
        "maxContains",
    ] {
        for value in [json!(-1), json!(1.5), json!("1"), json!(0)] {
            all.push((name, value));
        }
    }
    all
}

/// What a meta-schema refuses and we take, and why.
fn taken() -> Vec<(Draft, Value, &'static str)> {
    use Draft::{Draft4, Draft7, Draft201909, Draft202012};
    let boolean = "later drafts say what it means";
    let annotation = "it constrains nothing, whatever its value";
    let unread = "nothing leads there, and it may be no schema at all";
    vec![
        (Draft4, json!({"properties": {"a": true}}), boolean),
        (Draft4, json!({"not": false}), boolean),
        (
            Draft4,
            json!({ "exclusiveMinimum": true }),
            "it is reported as without its partner",
        ),
        (Draft7, json!({ "title": 5 }), annotation),
        (Draft202012, json!({ "description": null }), annotation),
        (Draft7, json!({ "readOnly": "yes" }), annotation),
        (Draft201909, json!({ "examples": 1 }), annotation),
        (Draft202012, json!({ "contentSchema": 1 }), annotation),
        (Draft7, json!({"definitions": {"a": {"type": 1}}}), unread),
        (Draft202012, json!({"$defs": {"a": 1}}), unread),
        (
            Draft7,
            json!({"$ref": "#/definitions/a", "type": 1, "definitions": {"a": {}}}),
            "the reference hides it, which is reported",
        ),
        (
            Draft202012,
            json!({ "$id": "http://example.com/a#b" }),
            "the address is what stands before the fragment",
        ),
    ]
}

fn is_refused(schema: &Value) -> Option<ErrorKind> {
    let options = Options::widest();
    let error = parse::parse_value(schema, &options.parse).err()?;
    Some(error.kind().clone())
}

#[test]
fn what_the_meta_schema_refuses_is_refused() {
    let mut wrong = String::new();
    let mut n_refused = 0;
    for (draft, address) in ADDRESSES {
        for (keyword, value) in mutations() {
            let schema = json!({ "$schema": address, keyword: value });
            let invalid = !jsonschema::meta::is_valid(&schema);
            let refused = is_refused(&schema);
            n_refused += usize::from(invalid);
            // Its meta-schema does not mention references; they are strings.
            let is_reference =
                draft == Draft::Draft4 && keyword == "$ref" && !invalid;
            if invalid != refused.is_some() && !is_reference {
                let _ = writeln!(
                    wrong,
                    "{draft}: {keyword} {value} invalid {invalid}, {refused:?}"
                );
            }
        }
    }
    assert_eq!(wrong, "");
    assert!(n_refused > 200, "only {n_refused} are invalid");
}

#[test]
fn what_is_taken_all_the_same_is_listed() {
    for (draft, schema, reason) in taken() {
        let (_, address) = ADDRESSES[draft as usize];
        let mut schema = schema;
        schema["$schema"] = json!(address);
        assert!(!jsonschema::meta::is_valid(&schema), "{schema}: {reason}");
        assert_eq!(is_refused(&schema), None, "{schema}: {reason}");
    }
}

#[test]
fn an_error_says_what_where_and_what_is_there() {
    for (schema, want) in [
        (
            json!({"items": {"minimum": "3"}}),
            "invalid `minimum` at /items/minimum: expected a number, found \
             \"3\"",
        ),
        (
            json!({"type": ["string", "strng"]}),
            "invalid `type` at /type/1: expected null, boolean, integer, \
             number, string, array, object, or a list of these, found \
             \"strng\"",
        ),
        (
            json!({"properties": []}),
            "invalid `properties` at /properties: expected an object of \
             schemas, found an empty array",
        ),
        (
            json!({"maxLength": -1}),
            "invalid `maxLength` at /maxLength: expected a whole number that \
             is not negative, found -1",
        ),
        (
            json!({"required": ["a", "b", "a"]}),
            "invalid `required` at /required/2: expected every value once, \
             found \"a\"",
        ),
        (
            json!({"dependentRequired": {"a/b": ["c", {}]}}),
            "invalid `dependentRequired` at /dependentRequired/a~1b/1: \
             expected a string, found an object",
        ),
        (
            json!({"anyOf": []}),
            "invalid `anyOf` at /anyOf: expected at least one schema, found \
             an empty array",
        ),
    ] {
        let options = Options::widest();
        let error = parse::parse_value(&schema, &options.parse);
        let error = error.map(|_| ()).expect_err("invalid");
        assert_eq!(error.to_string(), want);
    }
}
