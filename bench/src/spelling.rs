//! JSON text spelled as Python's `json.dumps` spells it, so that an instance
//! is the same text, and with it the same token ids, as in MaskBench.

use std::fmt::Write;

use serde_json::{Number, Value};

/// The text of `value` with `", "` and `": "` as separators. With `ascii`,
/// everything beyond ASCII is written as `\uXXXX`.
pub fn spaced(value: &Value, ascii: bool) -> String {
    let mut text = String::new();
    write_value(value, ascii, &mut text);
    text
}

fn write_value(value: &Value, ascii: bool, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_string(text, ascii, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_value(item, ascii, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (index, (key, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_string(key, ascii, out);
                out.push_str(": ");
                write_value(member, ascii, out);
            }
            out.push('}');
        }
    }
}

fn write_string(text: &str, ascii: bool, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' => write_escape(character, out),
            _ if ascii && !character.is_ascii() => {
                write_escape(character, out);
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

fn write_escape(character: char, out: &mut String) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        let _ = write!(out, "\\u{unit:04x}");
    }
}

/// Whole numbers keep their digits; others take the shortest spelling that
/// reads back as the same double, laid out as Python's `repr` does.
fn write_number(number: &Number, out: &mut String) {
    let text = number.as_str();
    if !text.contains(['.', 'e', 'E']) {
        out.push_str(if text == "-0" { "0" } else { text });
        return;
    }
    let Ok(double) = text.parse::<f64>() else {
        out.push_str(text);
        return;
    };
    let scientific = format!("{double:e}");
    let (digits, exponent) =
        scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let _ = write!(out, "{double:?}");
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{digits}e{sign}{:02}", exponent.abs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn respelled(text: &str) -> String {
        spaced(&serde_json::from_str(text).expect("literal JSON"), false)
    }

    #[test]
    fn numbers_read_as_python_writes_them() {
        for (text, python) in [
            ("1", "1"),
            ("-0", "0"),
            ("1.0", "1.0"),
            ("1e10", "10000000000.0"),
            ("1e16", "1e+16"),
            ("1.50", "1.5"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("2.5E-7", "2.5e-07"),
            ("1e100", "1e+100"),
            ("-0.0", "-0.0"),
        ] {
            assert_eq!(respelled(text), python);
        }
    }

    #[test]
    fn strings_and_separators_read_as_python_writes_them() {
        assert_eq!(
            respelled("{\"a\":[1,\"\\u00e9\\u0001\\n\\/\"],\"b\":{}}"),
            "{\"a\": [1, \"é\\u0001\\n/\"], \"b\": {}}"
        );
        let face: Value = serde_json::from_str("\"😀\"").expect("JSON");
        assert_eq!(spaced(&face, true), "\"\\ud83d\\ude00\"");
    }
}
