//! Values as Python has and prints them.

use std::fmt::{self, Write};

use minijinja::value::ValueKind;
use minijinja::{Error, Output, State, Value};

/// How deep lists and mappings are printed.
const MAX_DEPTH: usize = 64;

/// Makes a value of JSON. Numbers are numbers, however they are kept.
pub(super) fn value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(truth) => Value::from(*truth),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(whole) => Value::from(whole),
            None => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(items) => items.iter().map(value).collect(),
        serde_json::Value::Object(members) => members
            .iter()
            .map(|(key, member)| (key.as_str(), value(member)))
            .collect(),
    }
}

/// Writes what a template prints, as Python's `str` would.
pub(super) fn format(
    out: &mut Output<'_>,
    state: &State<'_, '_>,
    value: &Value,
) -> Result<(), Error> {
    if value.kind() == ValueKind::String {
        return minijinja::escape_formatter(out, state, value);
    }
    if value.is_undefined() {
        return Ok(());
    }
    let mut text = String::new();
    write_value(&mut text, value, 0)?;
    out.write_str(&text).map_err(Error::from)
}

/// Writes a value as Python's `repr` would.
fn write_value(
    out: &mut String,
    value: &Value,
    depth: usize,
) -> Result<(), Error> {
    let too_deep = depth > MAX_DEPTH;
    match value.kind() {
        ValueKind::None | ValueKind::Undefined => out.push_str("None"),
        ValueKind::Bool if value.is_true() => out.push_str("True"),
        ValueKind::Bool => out.push_str("False"),
        ValueKind::String => {
            write_string(out, value.as_str().unwrap_or_default())?;
        }
        ValueKind::Seq | ValueKind::Iterable if !too_deep => {
            out.push('[');
            for (index, item) in value.try_iter()?.enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_value(out, &item, depth + 1)?;
            }
            out.push(']');
        }
        ValueKind::Map if !too_deep => {
            out.push('{');
            for (index, key) in value.try_iter()?.enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_value(out, &key, depth + 1)?;
                out.push_str(": ");
                write_value(out, &value.get_item(&key)?, depth + 1)?;
            }
            out.push('}');
        }
        _ => write!(out, "{value}")?,
    }
    Ok(())
}

/// Quotes a text: in single quotes, unless those are in it and double ones
/// are not.
fn write_string(out: &mut String, text: &str) -> fmt::Result {
    let is_double = text.contains('\'') && !text.contains('"');
    let quote = if is_double { '"' } else { '\'' };
    out.push(quote);
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            _ if character == quote => {
                out.push('\\');
                out.push(character);
            }
            _ if character.is_control() => {
                write!(out, "\\x{:02x}", u32::from(character))?;
            }
            _ => out.push(character),
        }
    }
    out.push(quote);
    Ok(())
}
