//! The ways in which an instance of the suite is written, which all mean the
//! same value: as the suite has it, with its members in reverse and in a mixed
//! order, and with every character of strings and keys escaped.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The order in which members are written.
#[derive(Clone, Copy)]
enum Members {
    Written,
    Reversed,
    Mixed,
}

/// The texts of a value that are tried; each once.
pub(crate) fn spellings(data: &Value) -> Vec<String> {
    let ways = [
        (Members::Written, false),
        (Members::Reversed, false),
        (Members::Mixed, false),
        (Members::Written, true),
    ];
    let mut texts: Vec<String> = Vec::with_capacity(ways.len());
    for (members, escaped) in ways {
        let mut text = String::new();
        write_value(&mut text, data, members, escaped);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// Writes a value without white space. The suite's values nest little.
fn write_value(
    out: &mut String,
    value: &Value,
    members: Members,
    escaped: bool,
) {
    match value {
        Value::String(text) => write_string(out, text, escaped),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                out.push(if index == 0 { '[' } else { ',' });
                write_value(out, item, members, escaped);
            }
            out.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Value::Object(map) => {
            for (index, (key, value)) in
                ordered(map, members).into_iter().enumerate()
            {
                out.push(if index == 0 { '{' } else { ',' });
                write_string(out, key, escaped);
                out.push(':');
                write_value(out, value, members, escaped);
            }
            out.push_str(if map.is_empty() { "{}" } else { "}" });
        }
        plain => out.push_str(&plain.to_string()),
    }
}

fn ordered(
    map: &Map<String, Value>,
    members: Members,
) -> Vec<(&String, &Value)> {
    let mut all: Vec<(&String, &Value)> = map.iter().collect();
    match members {
        Members::Written => {}
        Members::Reversed => all.reverse(),
        // Every second member, and then the others.
        Members::Mixed => {
            let odd = all.iter().skip(1).step_by(2);
            let even = all.iter().step_by(2);
            all = odd.chain(even).copied().collect();
        }
    }
    all
}

fn write_string(out: &mut String, text: &str, escaped: bool) {
    if !escaped {
        out.push_str(&Value::from(text).to_string());
        return;
    }
    out.push('"');
    for unit in text.encode_utf16() {
        write!(out, "\\u{unit:04X}").expect("strings take everything");
    }
    out.push('"');
}
