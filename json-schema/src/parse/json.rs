//! Reads JSON text strictly: no member name twice, no lone surrogate, a
//! bound on nesting, numbers kept as they are written, no recursion.
//!
//! `serde_json` would keep the last of two equal names and stop at its own
//! nesting bound, so it is not used for reading.

use maskwright_grammar_core::interrupt;
use serde_json::{Map, Number, Value, map::Entry};

/// What is wrong with a text, and where.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JsonError {
    /// What is wrong.
    pub message: String,
    /// The byte at which it is wrong.
    pub offset: usize,
    /// The nesting bound, when that was met.
    pub(crate) too_deep: bool,
}

/// Reads one JSON text.
///
/// # Errors
///
/// Fails when the text is not JSON, when an object has a name twice, when a
/// string has a lone surrogate, and when values nest deeper than
/// `max_depth`.
pub fn read_json(text: &str, max_depth: usize) -> Result<Value, JsonError> {
    Reader { text, bytes: text.as_bytes(), at: 0, max_depth }.document()
}

/// A container that is not finished.
enum Open {
    Array(Vec<Value>),
    /// With the name of the member that is being read, and where that is.
    Object(Map<String, Value>, String, usize),
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    max_depth: usize,
}

type Result1<T> = Result<T, JsonError>;

impl Reader<'_> {
    fn document(&mut self) -> Result1<Value> {
        let mut stack: Vec<Open> = Vec::new();
        loop {
            self.space();
            let mut done = match self.peek() {
                Some(b'[') => {
                    self.at += 1;
                    self.space();
                    if self.eat(b']') {
                        Value::Array(Vec::new())
                    } else {
                        self.push(&mut stack, Open::Array(Vec::new()))?;
                        continue;
                    }
                }
                Some(b'{') => {
                    self.at += 1;
                    self.space();
                    if self.eat(b'}') {
                        Value::Object(Map::new())
                    } else {
                        let start = self.at;
                        let key = self.key()?;
                        let open = Open::Object(Map::new(), key, start);
                        self.push(&mut stack, open)?;
                        continue;
                    }
                }
                _ => self.scalar()?,
            };
            // Close every container that this value finishes.
            loop {
                self.space();
                match stack.pop() {
                    None => return self.end(done),
                    Some(Open::Array(mut items)) => {
                        items.push(done);
                        if self.eat(b',') {
                            stack.push(Open::Array(items));
                            break;
                        }
                        self.expect(b']', "`,` or `]`")?;
                        done = Value::Array(items);
                    }
                    Some(Open::Object(mut members, key, start)) => {
                        match members.entry(key) {
                            Entry::Vacant(entry) => entry.insert(done),
                            Entry::Occupied(entry) => {
                                let key = entry.key();
                                let what =
                                    format!("the name {key:?} comes twice");
                                return Err(self.error_at(start, what));
                            }
                        };
                        if self.eat(b',') {
                            self.space();
                            let start = self.at;
                            let key = self.key()?;
                            stack.push(Open::Object(members, key, start));
                            break;
                        }
                        self.expect(b'}', "`,` or `}`")?;
                        done = Value::Object(members);
                    }
                }
            }
        }
    }

    fn push(&self, stack: &mut Vec<Open>, open: Open) -> Result1<()> {
        interrupt::check().map_err(|error| self.error(error.to_string()))?;
        if stack.len() >= self.max_depth {
            let limit = self.max_depth;
            let what = format!("nesting is deeper than {limit} levels");
            let mut error = self.error(what);
            error.too_deep = true;
            return Err(error);
        }
        stack.push(open);
        Ok(())
    }

    fn end(&mut self, value: Value) -> Result1<Value> {
        if self.at < self.bytes.len() {
            return Err(self.error("text after the end of the value"));
        }
        Ok(value)
    }

    fn key(&mut self) -> Result1<String> {
        if self.peek() != Some(b'"') {
            return Err(self.error("expected a member name"));
        }
        let key = self.string()?;
        self.space();
        self.expect(b':', "`:`")?;
        Ok(key)
    }

    fn scalar(&mut self) -> Result1<Value> {
        match self.peek() {
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                for (word, value) in [
                    ("null", Value::Null),
                    ("true", Value::Bool(true)),
                    ("false", Value::Bool(false)),
                ] {
                    if self.bytes[self.at..].starts_with(word.as_bytes()) {
                        self.at += word.len();
                        return Ok(value);
                    }
                }
                Err(self.error("expected a JSON value"))
            }
        }
    }

    fn number(&mut self) -> Result1<Value> {
        let start = self.at;
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            if !self.eat(b'+') {
                self.eat(b'-');
            }
            self.digits()?;
        }
        let text = self.text[start..self.at].to_owned();
        Ok(Value::Number(Number::from_string_unchecked(text)))
    }

    fn digits(&mut self) -> Result1<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.error("expected a digit"));
        }
        Ok(())
    }

    fn string(&mut self) -> Result1<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let start = self.at;
            while self
                .peek()
                .is_some_and(|b| b != b'"' && b != b'\\' && b >= b' ')
            {
                self.at += 1;
            }
            out.push_str(&self.text[start..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    let c = self.escape()?;
                    out.push(c);
                }
                Some(_) => {
                    return Err(self.error("a control character in a string"));
                }
                None => return Err(self.error("a string without an end")),
            }
        }
    }

    fn escape(&mut self) -> Result1<char> {
        let start = self.at;
        self.at += 1;
        let letter = self.peek();
        self.at += 1;
        Ok(match letter {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(start),
            _ => return Err(self.error_at(start, "an unknown escape")),
        })
    }

    fn unicode_escape(&mut self, start: usize) -> Result1<char> {
        let mut code = self.hex(start)?;
        if (0xd800..0xdc00).contains(&code)
            && self.bytes[self.at..].starts_with(b"\\u")
        {
            self.at += 2;
            let low = self.hex(start)?;
            if (0xdc00..0xe000).contains(&low) {
                code = 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            }
        }
        char::from_u32(code)
            .ok_or_else(|| self.error_at(start, "a lone surrogate"))
    }

    fn hex(&mut self, start: usize) -> Result1<u32> {
        let digits = self.text.get(self.at..self.at + 4);
        let code = digits
            .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 4;
        code.ok_or_else(|| {
            self.error_at(start, "expected four hexadecimal digits")
        })
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, what: &str) -> Result1<()> {
        if self.eat(byte) {
            return Ok(());
        }
        Err(self.error(format!("expected {what}")))
    }

    fn error(&self, message: impl Into<String>) -> JsonError {
        self.error_at(self.at, message)
    }

    fn error_at(
        &self,
        offset: usize,
        message: impl Into<String>,
    ) -> JsonError {
        let offset = offset.min(self.bytes.len());
        JsonError { message: message.into(), offset, too_deep: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_serde_json_on_good_texts() {
        let texts = [
            "null",
            " [1, -0.5e+3, 10e-2, \"a\\u00e9\\ud83d\\ude00\\n\"] ",
            "{\"a\":{\"b\":[[],{}]},\"c\":true,\"d\":false}",
            "0",
            "\"\"",
        ];
        for text in texts {
            let want: Value = serde_json::from_str(text).expect("good");
            assert_eq!(read_json(text, 10), Ok(want), "{text}");
        }
    }

    #[test]
    fn bad_texts_are_refused_where_they_go_wrong() {
        let cases = [
            ("", 0),
            ("[1,]", 3),
            ("01", 1),
            ("{\"a\":1,\"\\u0061\":2}", 7),
            ("\"\\ud800\"", 1),
            ("\"\\ud800\\u0041\"", 1),
            ("\"a\nb\"", 2),
            ("1.", 2),
            ("nul", 0),
            ("[1 2]", 3),
            ("\"\\u12", 1),
            ("{\"a\"", 4),
            ("\"abc", 4),
            ("\"\\", 1),
            ("\"\\u00é0\"", 1),
        ];
        for (text, offset) in cases {
            let error = read_json(text, 10).expect_err(text);
            assert_eq!(error.offset, offset, "{text}: {error:?}");
        }
    }

    #[test]
    fn nesting_has_a_bound() {
        let text = format!("{}1{}", "[".repeat(10), "]".repeat(10));
        assert!(read_json(&text, 10).is_ok());
        assert!(read_json(&text, 9).expect_err("deep").too_deep);
        let hostile = "[".repeat(1_000_000);
        assert!(read_json(&hostile, 100).expect_err("deep").too_deep);
    }
}
