//! The judge of instances: the `jsonschema` crate, which has no code in
//! common with ours.
//!
//! It judges values; a text is valid if it is one JSON value without white
//! space around it, whose objects have no key twice, that the schema allows.

use maskwright_json_schema::{Draft, parse::read_json};
use serde_json::Value;

/// More than the other reader goes along with.
const MAX_DEPTH: usize = 1000;

/// A schema, as the `jsonschema` crate understands it.
#[derive(Debug)]
pub struct Judge {
    validator: jsonschema::Validator,
}

impl Judge {
    /// Compiles a schema of a draft; `formats` says whether they are enforced.
    ///
    /// # Errors
    ///
    /// Says why the crate refuses the schema.
    pub fn new(
        schema: &Value,
        draft: Draft,
        formats: bool,
    ) -> Result<Judge, String> {
        let draft = match draft {
            Draft::Draft4 => jsonschema::Draft::Draft4,
            Draft::Draft6 => jsonschema::Draft::Draft6,
            Draft::Draft7 => jsonschema::Draft::Draft7,
            Draft::Draft201909 => jsonschema::Draft::Draft201909,
            Draft::Draft202012 => jsonschema::Draft::Draft202012,
        };
        let mut schema = schema.clone();
        without_exponents(&mut schema).ok_or("a number of a great size")?;
        schema.sort_all_objects();
        jsonschema::options()
            .with_draft(draft)
            .should_validate_formats(formats)
            .build(&schema)
            .map(|validator| Judge { validator })
            .map_err(|error| error.to_string())
    }

    /// Whether the schema allows a text; nothing if the text nests too deep
    /// to say, or has numbers of too great a size.
    pub fn allows(&self, text: &str) -> Option<bool> {
        if text.trim() != text {
            return Some(false);
        }
        let mut value = match serde_json::from_str::<Value>(text) {
            Ok(value) => value,
            Err(error) if error.to_string().contains("recursion") => {
                return None;
            }
            Err(_) => return Some(false),
        };
        match read_json(text, MAX_DEPTH) {
            Ok(_) => {
                without_exponents(&mut value)?;
                value.sort_all_objects();
                Some(self.validator.is_valid(&value))
            }
            // Ours is asked for keys that stand twice, and for nothing else:
            // whether it is JSON was decided by another reader.
            Err(error) => error.message.contains("twice").then_some(false),
        }
    }

    /// Says what the crate finds wrong with a text.
    pub fn complaint(&self, text: &str) -> String {
        match serde_json::from_str::<Value>(text) {
            Err(error) => error.to_string(),
            Ok(value) => self
                .validator
                .validate(&value)
                .err()
                .map_or_else(String::new, |error| {
                    format!("{error} at {}", error.schema_path())
                }),
        }
    }
}

/// Whether a text may have a number with more digits than a floating-point
/// number tells apart. The crate loses them in `multipleOf` and bounds, though
/// not always: 10000000000000000000001 is a multiple of 2 for it.
pub fn has_long_numbers(text: &str) -> bool {
    const MAX_DIGITS: usize = 15;
    let is_number =
        |char: char| char.is_ascii_digit() || "+-.eE".contains(char);
    text.split(|char| !is_number(char)).any(|number| {
        let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
        let digits: String =
            mantissa.chars().filter(char::is_ascii_digit).collect();
        digits.trim_matches('0').len() > MAX_DIGITS
    })
}

/// The greatest exponent that is written out.
const MAX_EXPONENT: i64 = 1000;

/// Writes out all numbers with exponents; nothing if there is one of too
/// great a size.
fn without_exponents(value: &mut Value) -> Option<()> {
    match value {
        Value::Number(number) => {
            let text = number.as_str();
            let Some(at) = text.find(['e', 'E']) else { return Some(()) };
            let written = written_out(&text[..at], &text[at + 1..])?;
            *value = serde_json::from_str(&written).ok()?;
            Some(())
        }
        Value::Array(items) => {
            items.iter_mut().try_for_each(without_exponents)
        }
        Value::Object(members) => {
            members.values_mut().try_for_each(without_exponents)
        }
        _ => Some(()),
    }
}

/// Shifts the decimal point. A fraction stays in any case, since draft 4 asks
/// how an integer is spelled.
fn written_out(digits: &str, exponent: &str) -> Option<String> {
    let exponent: i64 = exponent.parse().ok()?;
    if exponent.abs() > MAX_EXPONENT {
        return None;
    }
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let point = i64::try_from(whole.len()).ok()? + exponent;
    let all = format!("{whole}{fraction}");
    let (zeros, point) = match usize::try_from(point) {
        Ok(point) => (0, point),
        Err(_) => (usize::try_from(-point).ok()?, 0),
    };
    let all = format!("{}{all}", "0".repeat(zeros));
    let padded = format!("{all:0<point$}");
    let (whole, fraction) = padded.split_at(point);
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let fraction = if fraction.is_empty() { "0" } else { fraction };
    Some(format!("{sign}{whole}.{fraction}"))
}

#[cfg(test)]
mod tests {
    use super::written_out;

    #[test]
    fn the_decimal_point_moves() {
        for (digits, exponent, expected) in [
            ("1", "1", "10.0"),
            ("-1.25", "+1", "-12.5"),
            ("1.25", "-2", "0.0125"),
            ("0", "5", "0.0"),
            ("120", "-1", "12.0"),
            ("0.001", "2", "0.1"),
        ] {
            let written = written_out(digits, exponent).expect("a small one");
            let value = |text: &str| text.parse::<f64>().expect("a number");
            assert_eq!(
                written.parse::<f64>(),
                Ok(value(expected)),
                "{written}"
            );
        }
        assert_eq!(written_out("1", "9999"), None);
    }
}
