//! JSON texts up to what a value is: two texts of equal values have equal
//! canonical forms, and no others have.
//!
//! Strings are decoded, numbers are by value, members are sorted by name.
//! The text is that of a value that was read by a machine, so it is well
//! formed; nothing is checked.

use num_bigint::BigInt;
use serde_json::{Map, Value};

use super::guard::decode;

/// The first byte of every canonical form but those of strings, which are
/// their UTF-8: no text in UTF-8 has it.
const NO_STRING: u8 = 0xFF;

/// Whether a canonical form is that of a string.
pub(crate) fn is_string(form: &[u8]) -> bool {
    form.first() != Some(&NO_STRING)
}

/// The canonical form of a string, from what stands between its quotes.
pub(crate) fn string(raw: &[u8]) -> Vec<u8> {
    decode(raw).0
}

/// The canonical form of a literal that begins with `first`.
pub(crate) fn literal(first: u8) -> Vec<u8> {
    vec![NO_STRING, first]
}

/// The canonical form of a number: sign, digits without zeros at either end,
/// and the power of ten behind them.
pub(crate) fn number(text: &[u8]) -> Vec<u8> {
    let (negative, text) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let exponent_at = text.iter().position(|byte| matches!(byte, b'e' | b'E'));
    let (mantissa, exponent) = match exponent_at {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &b"0"[..]),
    };
    let point = mantissa.iter().position(|&byte| byte == b'.');
    let n_fraction = point.map_or(0, |at| mantissa.len() - at - 1);
    let digits: Vec<u8> =
        mantissa.iter().copied().filter(|&byte| byte != b'.').collect();
    let start = digits.iter().position(|&digit| digit != b'0');
    let mut form = vec![NO_STRING, b'0'];
    let Some(start) = start else { return form };
    let end = digits.iter().rposition(|&digit| digit != b'0');
    let end = end.map_or(digits.len(), |at| at + 1);
    let n_zeros = digits.len() - end;
    let exponent = exponent.strip_prefix(b"+").unwrap_or(exponent);
    let exponent = BigInt::parse_bytes(exponent, 10).unwrap_or_default();
    let exponent = exponent - n_fraction + n_zeros;
    form.pop();
    if negative {
        form.push(b'-');
    }
    form.extend_from_slice(&digits[start..end]);
    form.push(b'e');
    form.extend_from_slice(exponent.to_string().as_bytes());
    form
}

/// The number of a canonical form, as a text; none of other values.
pub(crate) fn number_text(form: &[u8]) -> Option<&str> {
    let text = form.strip_prefix(&[NO_STRING])?;
    let is_number = matches!(text.first()?, b'-' | b'0'..=b'9');
    is_number.then(|| std::str::from_utf8(text).ok()).flatten()
}

/// The deepest value that [`parsed`] makes of a form.
const MAX_DEPTH: usize = 64;

/// The value of a canonical form; none if it nests too deep.
pub(crate) fn parsed(form: &[u8]) -> Option<Value> {
    parsed_within(form, MAX_DEPTH)
}

/// Recursion is bounded by `depth`.
fn parsed_within(form: &[u8], depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    if is_string(form) {
        return String::from_utf8(form.to_vec()).ok().map(Value::String);
    }
    if let Some(text) = number_text(form) {
        return serde_json::from_str(text).ok();
    }
    let (&kind, mut rest) = form.get(1..)?.split_first()?;
    let mut next = || {
        let (length, after) = rest.split_first_chunk()?;
        let length = usize::try_from(u64::from_be_bytes(*length)).ok()?;
        let (part, after) = after.split_at_checked(length)?;
        rest = after;
        Some(part)
    };
    Some(match kind {
        b'n' => Value::Null,
        b't' => Value::Bool(true),
        b'f' => Value::Bool(false),
        b'[' => {
            let mut items = Vec::new();
            while let Some(part) = next() {
                items.push(parsed_within(part, depth)?);
            }
            Value::Array(items)
        }
        _ => {
            let mut members = Map::new();
            while let (Some(key), Some(value)) = (next(), next()) {
                let key = String::from_utf8(key.to_vec()).ok()?;
                members.insert(key, parsed_within(value, depth)?);
            }
            Value::Object(members)
        }
    })
}

/// A container whose end has not come.
struct Open {
    /// Of an object: members, each after its key.
    is_object: bool,
    parts: Vec<Vec<u8>>,
}

/// The canonical form of a value, from its text.
pub(crate) fn value(text: &[u8]) -> Vec<u8> {
    let mut open: Vec<Open> = Vec::new();
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let done = match first {
            b'[' | b'{' => {
                let is_object = first == b'{';
                open.push(Open { is_object, parts: Vec::new() });
                rest = after;
                continue;
            }
            b']' | b'}' => {
                rest = after;
                open.pop().map(Open::close).unwrap_or_default()
            }
            b'"' => {
                let len = string_len(after);
                rest = after.get(len + 1..).unwrap_or_default();
                string(&after[..len])
            }
            b'-' | b'0'..=b'9' => {
                let len = number_len(rest);
                let (text, after) = rest.split_at(len);
                rest = after;
                number(text)
            }
            b'n' | b't' | b'f' => {
                let len = if first == b'f' { 5 } else { 4 };
                rest = rest.get(len..).unwrap_or_default();
                literal(first)
            }
            // White space, commas and colons.
            _ => {
                rest = after;
                continue;
            }
        };
        match open.last_mut() {
            Some(outer) => outer.parts.push(done),
            None => return done,
        }
    }
    Vec::new()
}

impl Open {
    fn close(self) -> Vec<u8> {
        let Open { is_object, mut parts } = self;
        let mut form = vec![NO_STRING, if is_object { b'{' } else { b'[' }];
        if is_object {
            let mut members: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            let mut all = parts.into_iter();
            while let (Some(key), Some(value)) = (all.next(), all.next()) {
                members.push((key, value));
            }
            members.sort_unstable();
            parts = Vec::with_capacity(2 * members.len());
            for (key, value) in members {
                parts.extend([key, value]);
            }
        }
        for part in parts {
            // The length tells where a part ends, whatever is in it.
            form.extend_from_slice(&(part.len() as u64).to_be_bytes());
            form.extend_from_slice(&part);
        }
        form
    }
}

/// The length of what stands before the closing quote.
fn string_len(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn number_len(text: &[u8]) -> usize {
    let is_number = |byte: &u8| {
        matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
    };
    text.iter().take_while(|byte| is_number(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_equal_forms() {
        let classes: &[&[&str]] = &[
            &["0", "-0", "0.00", "0e7", "-0.0E-3"],
            &["1", "1.0", "10e-1", "0.1E+1", "1.000e00"],
            &["-1", "-1.0"],
            &["100", "1e2", "1E+2", "0.1e3", "100.0"],
            &["1e99999999999999999999", "10e99999999999999999998"],
            &["1e-99999999999999999999"],
            &["\"1\"", "\"\\u0031\""],
            &["\"\""],
            &["true"],
            &["false"],
            &["null"],
            &["[]", "[ ]"],
            &["{}", "{ }"],
            &["[[]]"],
            &["[1,2]", "[ 1.0 , 20e-1 ]"],
            &["[2,1]"],
            &["[\"1\",2]"],
            &["[\"a\",\"b\"]"],
            &["[\"ab\"]"],
            &["[\"a,b\"]"],
            &["[\"]\"]"],
            &[
                "{\"a\":1,\"b\":[{\"c\":null}]}",
                "{ \"\\u0062\" : [ {\"c\":null} ], \"a\":1.0 }",
            ],
            &["{\"b\":1,\"a\":[{\"c\":null}]}"],
            &["{\"a\":\"b\"}"],
            &["[\"a\",\"b\",[]]"],
        ];
        for (index, class) in classes.iter().enumerate() {
            for text in *class {
                for (other, others) in classes.iter().enumerate() {
                    for second in *others {
                        assert_eq!(
                            value(text.as_bytes()) == value(second.as_bytes()),
                            index == other,
                            "{text} and {second}",
                        );
                    }
                }
            }
        }
        assert_eq!(number_text(&number(b"-1.50")), Some("-15e-1"));
        assert_eq!(number_text(&number(b"0.0")), Some("0"));
        assert_eq!(number_text(&string(b"1")), None);
        assert_eq!(number_text(&literal(b't')), None);
    }

    #[test]
    fn a_form_is_parsed_into_its_value() {
        for text in [
            "0",
            "-15e-1",
            "\"a\\u00e9\"",
            "\"\"",
            "null",
            "true",
            "false",
            "[]",
            "{}",
            "[1,[\"a\",{}],null]",
            "{\"a\":[0],\"b\":{\"c\":\"d\"}}",
        ] {
            let expected: Value = serde_json::from_str(text).expect("JSON");
            let form = value(text.as_bytes());
            let found = parsed(&form).expect("not deep");
            assert_eq!(value(found.to_string().as_bytes()), form, "{text}");
            let is_plain = !text.contains(|byte: char| byte.is_ascii_digit());
            assert!(!is_plain || found == expected, "{text}");
        }
        let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
        assert_eq!(parsed(&value(deep.as_bytes())), None);
    }
}
