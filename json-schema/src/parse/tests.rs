//! What is refused, where, and what is only warned about.

use serde_json::{Value, json};

use super::{Options, WarningReason, parse_str, parse_value};
use crate::draft::Draft;
use crate::error::SchemaError;

fn error(schema: &Value, options: &Options) -> SchemaError {
    match parse_value(schema, options) {
        Ok(_) => panic!("{schema} is accepted"),
        Err(error) => error,
    }
}

#[test]
fn faults_are_located() {
    let cases = [
        (
            json!({"properties": {"foo": "bar"}}),
            "invalid_keyword",
            "/properties/foo",
        ),
        (json!({"properties": []}), "invalid_keyword", "/properties"),
        (json!({"type": "strnig"}), "invalid_keyword", "/type"),
        (json!({"type": [1]}), "invalid_keyword", "/type/0"),
        (json!({"required": true}), "invalid_keyword", "/required"),
        (json!({"required": [1]}), "invalid_keyword", "/required/0"),
        (json!({"enum": 1}), "invalid_keyword", "/enum"),
        (json!({"minLength": -1}), "invalid_keyword", "/minLength"),
        (json!({"maxItems": 1.5}), "invalid_keyword", "/maxItems"),
        (json!({"minimum": "1"}), "invalid_keyword", "/minimum"),
        (json!({"multipleOf": 0}), "invalid_keyword", "/multipleOf"),
        (json!({"anyOf": {}}), "invalid_keyword", "/anyOf"),
        (
            json!({"items": {"allOf": [true, 1]}}),
            "invalid_keyword",
            "/items/allOf/1",
        ),
        (json!({"pattern": "a("}), "invalid_regex", "/pattern"),
        (
            json!({"patternProperties": {"[": true}}),
            "invalid_regex",
            "/patternProperties/[",
        ),
        (json!({"pattern": "(a)\\1"}), "unsupported_regex", "/pattern"),
        (json!({"$ref": "#/$defs/x"}), "unresolved_ref", "/$ref"),
        (json!({"items": {"$ref": "#gone"}}), "unresolved_ref", "/items/$ref"),
        (json!({"$ref": "http://example.com/x"}), "unresolved_ref", "/$ref"),
        (json!({"$ref": "#"}), "in_place_cycle", "(root)"),
        (
            json!({"$schema": "http://example.com/d"}),
            "unknown_dialect",
            "/$schema",
        ),
        (json!({"uniqueItems": 1}), "invalid_keyword", "/uniqueItems"),
        (json!([]), "invalid_keyword", "(root)"),
    ];
    for (schema, kind, at) in cases {
        let error = error(&schema, &Options::default());
        assert_eq!(error.kind_name(), kind, "{schema}: {error}");
        assert_eq!(error.location().to_string(), at, "{schema}: {error}");
    }
}

#[test]
fn text_is_read_strictly() {
    let options = Options::default();
    for text in ["", "{\"a\":1,\"a\":2}", "{} {}", "{\"a\":\"\\ud800\"}"] {
        let error = parse_str(text, &options).map(|_| ()).expect_err(text);
        assert_eq!(error.kind_name(), "invalid_json", "{text}");
    }
    let deep = format!("{}{{}}{}", "{\"not\":".repeat(600), "}".repeat(600));
    let error = parse_str(&deep, &options).map(|_| ()).expect_err("deep");
    assert_eq!(error.kind_name(), "resource_limit");
}

#[test]
fn drafts_spell_things_their_way() {
    let with = |draft| Options { draft: Some(draft), ..Options::default() };
    let flag = json!({"minimum": 1, "exclusiveMinimum": true});
    assert!(parse_value(&flag, &with(Draft::Draft4)).is_ok());
    assert!(parse_value(&flag, &Options::default()).is_ok(), "compatible");
    let refused = error(&flag, &with(Draft::Draft7));
    assert_eq!(refused.location().to_string(), "/exclusiveMinimum");
    let tuple = json!({"items": [true]});
    assert!(parse_value(&tuple, &with(Draft::Draft201909)).is_ok());
    let refused = error(&tuple, &with(Draft::Draft202012));
    assert!(refused.to_string().contains("prefixItems"), "{refused}");
}

#[test]
fn what_is_not_enforced_is_warned_about() {
    let schema = json!({
        "title": "t", "x-order": 1, "then": {}, "minContains": 2,
        "additionalItems": false,
    });
    let (schema, _) = parse_value(&schema, &Options::default()).expect("good");
    let warned: Vec<(&str, WarningReason)> = schema
        .warnings()
        .iter()
        .map(|warning| (warning.keyword.as_str(), warning.reason))
        .collect();
    let partner = WarningReason::WithoutPartner;
    assert_eq!(
        warned,
        [
            ("x-order", WarningReason::UnknownKeyword),
            ("then", partner),
            ("minContains", partner),
            ("additionalItems", partner),
        ]
    );
    let old = Options { draft: Some(Draft::Draft7), ..Options::default() };
    let hidden = json!({
        "$ref": "#/definitions/a", "minimum": 1, "definitions": {"a": {}},
    });
    let (schema, _) = parse_value(&hidden, &old).expect("good");
    let warning = &schema.warnings()[0];
    assert_eq!(warning.reason, WarningReason::HiddenByRef);
    assert_eq!(warning.location.to_string(), "/minimum");
}

#[test]
fn meta_schemas_are_known_and_vocabularies_honoured() {
    for draft in Draft::ALL {
        let address = match draft {
            Draft::Draft4 => "http://json-schema.org/draft-04/schema#",
            Draft::Draft6 => "http://json-schema.org/draft-06/schema#",
            Draft::Draft7 => "https://json-schema.org/draft-07/schema",
            Draft::Draft201909 => {
                "https://json-schema.org/draft/2019-09/schema"
            }
            Draft::Draft202012 => {
                "https://json-schema.org/draft/2020-12/schema"
            }
        };
        let schema = json!({"$schema": address, "$ref": address});
        let read = parse_value(&schema, &Options::default());
        assert!(read.is_ok(), "{draft}: {:?}", read.err());
    }
    let own = "http://example.com/meta";
    let vocabulary = |uri: &str, required: bool| {
        let meta = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$vocabulary": {uri: required},
        });
        let mut options = Options::default();
        options.documents.insert(own.to_owned(), meta);
        options
    };
    let schema = json!({"$schema": own, "type": "string"});
    let optional = vocabulary("http://example.com/vocabulary", false);
    let (read, _) = parse_value(&schema, &optional).expect("not required");
    assert_eq!(read.used_keywords().count(), 0, "no validation vocabulary");
    let required = vocabulary("http://example.com/vocabulary", true);
    let refused = error(&schema, &required);
    assert_eq!(refused.kind_name(), "unknown_vocabulary");
    assert_eq!(refused.location().to_string(), "/$schema");
    let validation = vocabulary(
        "https://json-schema.org/draft/2020-12/vocab/validation",
        true,
    );
    let (read, _) = parse_value(&schema, &validation).expect("known");
    assert_eq!(read.used_keywords().collect::<Vec<_>>(), ["type"]);
}
