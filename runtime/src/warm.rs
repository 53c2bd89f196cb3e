//! What all JSON schemas have in common, made in advance.

use std::sync::Arc;

use crate::{
    grammar::{Grammar, SchemaOptions},
    mask::TokenTrie,
    matcher::Matcher,
};

/// Schemas whose places are like those of most schemas: any value, an object
/// that is open and one that is closed, with a value of each kind, and keys
/// and strings in which a letter or a word is searched for.
const SCHEMAS: [&str; 4] = [
    "true",
    r#"{"type": "object", "properties": {
        "s": {"type": "string"},
        "t": {"type": "string", "minLength": 1, "maxLength": 9},
        "i": {"type": "integer", "minimum": 0},
        "n": {"type": "number"},
        "b": {"type": "boolean"},
        "e": {"enum": ["x", "y"]},
        "a": {"type": "array", "items": {"type": "string"}},
        "o": {"type": "object", "properties": {"z": {}}},
        "p": {"type": "string", "pattern": "x"}
    }}"#,
    r#"{"type": "object", "properties": {
        "s": {"type": "string", "maxLength": 9},
        "i": {"type": "integer", "maximum": 99},
        "n": {"type": "number"},
        "a": {"type": "array", "items": {"type": "integer"}},
        "o": {"type": "object", "properties": {"z": {"type": "null"}},
            "additionalProperties": false}
    }, "additionalProperties": false}"#,
    r#"{"type": "object", "patternProperties": {
        "[a-z]": {"type": "string", "pattern": "[a-z]"}
    }, "additionalProperties": {
        "type": "object", "patternProperties": {"x": {}}
    }}"#,
];

/// Texts of those schemas, as far as each schema goes along.
const TEXTS: [&str; 9] = [
    r#"{"n": 12345678901234.1234567890123456"#,
    r#"{"n": -1234567890.12345678, "#,
    r#"{"k": 1234567890123456, "#,
    r#"{"s": "a\n", "t": "b", "i": 1, "n": -1.5, "b": true, "e": "x", "#,
    r#"{"s": "a", "i": 12, "n": 0.5, "a": [1, 2], "o": {"z": null}}"#,
    r#"{"b": false, "a": ["c", "d"], "o": {"z": [null, 0], "q": {}}, "p": "x"#,
    r#"{"a": "a", "#,
    r#"{"0": {"x": 1}}"#,
    r#"[{"k": "v", "l": [true, {"m": -2.5}]}, "w", 3, []]"#,
];

impl TokenTrie {
    /// Makes in advance what the masks of all JSON schemas under `options`
    /// have in common, so that no first mask pays for it: the tokens of free
    /// strings and keys, of numbers, of white space.
    ///
    /// This is worth its time (some tens of milliseconds for a usual
    /// vocabulary) where many schemas are to come. What it does not reach is
    /// made when a mask needs it.
    pub fn warm_up(self: &Arc<TokenTrie>, options: &SchemaOptions) {
        for kept in [false, true] {
            self.classes(kept);
        }
        for schema in SCHEMAS {
            for text in TEXTS {
                // Nothing is lost by what fails: masks make it later.
                let _ = follow(self, options, schema, text);
            }
        }
    }
}

/// Asks for the mask before each byte of a text, as far as it is accepted.
fn follow(
    tokens: &Arc<TokenTrie>,
    options: &SchemaOptions,
    schema: &str,
    text: &str,
) -> Option<()> {
    let grammar = Grammar::from_schema(schema, options).ok()?;
    let compiled = grammar.compile(tokens).ok()?;
    let mut matcher = Matcher::new(compiled).ok()?;
    for byte in text.bytes() {
        matcher.mask().ok()?;
        matcher.accept_bytes(&[byte]).ok()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::{TokenId, Vocabulary};

    #[test]
    fn masks_are_the_same_after_it() {
        let tokens: Vec<Vec<u8>> = (0..=255_u8)
            .map(|byte| vec![byte])
            .chain(["\":", "\",", "{\"", "ab", "  ", "<end>"].map(Vec::from))
            .collect();
        let end = TokenId(256 + 5);
        let vocabulary = Vocabulary::from_tokens(tokens, [end]);
        let vocabulary = Arc::new(vocabulary.expect("a small vocabulary"));
        let cold = Arc::new(TokenTrie::new(Arc::clone(&vocabulary)));
        let warm = Arc::new(TokenTrie::new(vocabulary));
        let options = SchemaOptions::default();
        warm.warm_up(&options);
        let warm = Arc::new(warm.snapshot());
        for schema in SCHEMAS {
            let grammar =
                Grammar::from_schema(schema, &options).expect("valid");
            let matchers = [&cold, &warm].map(|tokens| {
                let compiled = grammar.compile(tokens).expect("no atoms");
                Matcher::new(compiled).expect("a start")
            });
            let [mut cold, mut warm] = matchers;
            for byte in TEXTS[1].bytes() {
                let (one, other) = (cold.mask(), warm.mask());
                assert_eq!(one.expect("a mask"), other.expect("a mask"));
                let bytes = [byte];
                let read = cold.accept_bytes(&bytes).is_ok();
                assert_eq!(read, warm.accept_bytes(&bytes).is_ok());
                if !read {
                    break;
                }
            }
        }
    }
}
