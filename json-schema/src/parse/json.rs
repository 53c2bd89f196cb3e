//! Reads JSON text strictly: no member name twice, no lone surrogate, a
//! bound on nesting, numbers kept as they are written, no recursion.
//!
//! `serde_json` would keep the last of two equal names and stop at its own
//! nesting bound, so it is not used for reading. A schema is read into a tree
//! that borrows from its text ([`Json`]): where a schema is compiled for one
//! request, strings and maps of their own would be half of the work.

use bumpalo::Bump;
use maskwright_grammar_core::interrupt;
use serde_json::{Map, Number, Value};

/// Objects with no more members than this are searched from the front.
const MAX_SEARCHED: usize = 16;

/// A JSON value that borrows its strings and lives in an arena.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    /// A number, as it is written.
    Number(&'a str),
    String(&'a str),
    Array(&'a [Json<'a>]),
    Object(&'a Object<'a>),
}

/// A member of an object.
type Member<'a> = (&'a str, Json<'a>);

/// The members of an object, in the order of the text; no name comes twice.
#[derive(Debug)]
pub(crate) struct Object<'a> {
    members: &'a [Member<'a>],
    /// Where there are many: the members by name.
    sorted: &'a [u32],
}

impl<'a> Object<'a> {
    /// Makes an object; the error is a member whose name came before.
    fn new(
        members: &'a [Member<'a>],
        bump: &'a Bump,
    ) -> Result<Object<'a>, usize> {
        if members.len() <= MAX_SEARCHED {
            for (index, (name, _)) in members.iter().enumerate() {
                if members[..index].iter().any(|(known, _)| known == name) {
                    return Err(index);
                }
            }
            return Ok(Object { members, sorted: &[] });
        }
        let name = |index: u32| members[index as usize].0;
        let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
        let sorted = bump.alloc_slice_fill_iter(0..count);
        sorted.sort_unstable_by_key(|&index| (name(index), index));
        let again = sorted.windows(2).filter(|w| name(w[0]) == name(w[1]));
        match again.map(|w| w[1]).min() {
            Some(index) => Err(index as usize),
            None => Ok(Object { members, sorted }),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Json<'a>> {
        let members = self.members;
        let index = if self.sorted.is_empty() {
            members.iter().position(|&(known, _)| known == name)?
        } else {
            let found = self
                .sorted
                .binary_search_by_key(&name, |&i| members[i as usize].0);
            self.sorted[found.ok()?] as usize
        };
        Some(&members[index].1)
    }

    pub(crate) fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// The members, in the order of the text.
    pub(crate) fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = (&'a str, &'a Json<'a>)> + use<'a> {
        self.members.iter().map(|(name, value)| (*name, value))
    }
}

impl<'a> Json<'a> {
    /// Reads one JSON text.
    ///
    /// # Errors
    ///
    /// As [`read_json`].
    pub(crate) fn read(
        text: &'a str,
        max_depth: usize,
        bump: &'a Bump,
    ) -> Result<&'a Json<'a>, JsonError> {
        let mut reader =
            Reader { text, bytes: text.as_bytes(), at: 0, max_depth, bump };
        reader.document().map(|value| &*bump.alloc(value))
    }

    /// Makes the same value. Recursion is bounded by its nesting.
    pub(crate) fn from_value(value: &'a Value, bump: &'a Bump) -> Json<'a> {
        match value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(number) => Json::Number(number.as_str()),
            Value::String(text) => Json::String(text),
            Value::Array(items) => {
                let items =
                    items.iter().map(|item| Json::from_value(item, bump));
                Json::Array(bump.alloc_slice_fill_iter(items))
            }
            Value::Object(map) => {
                let members = map.iter().map(|(name, value)| {
                    (name.as_str(), Json::from_value(value, bump))
                });
                let members = bump.alloc_slice_fill_iter(members);
                let object = Object::new(members, bump)
                    .expect("the names of a map are different");
                Json::Object(bump.alloc(object))
            }
        }
    }

    /// Makes the same value. Recursion is bounded by its nesting.
    pub(crate) fn to_value(self) -> Value {
        match self {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(value),
            Json::Number(text) => {
                Value::Number(Number::from_string_unchecked(text.to_owned()))
            }
            Json::String(text) => Value::String(text.to_owned()),
            Json::Array(items) => Value::Array(
                items.iter().map(|item| item.to_value()).collect(),
            ),
            Json::Object(object) => {
                let members = object
                    .iter()
                    .map(|(name, value)| (name.to_owned(), value.to_value()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    pub(crate) fn as_str(&self) -> Option<&'a str> {
        match *self {
            Json::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_object(&self) -> Option<&'a Object<'a>> {
        match *self {
            Json::Object(object) => Some(object),
            _ => None,
        }
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self, Json::Object(_))
    }

    pub(crate) fn is_array(&self) -> bool {
        matches!(self, Json::Array(_))
    }

    pub(crate) fn is_boolean(&self) -> bool {
        matches!(self, Json::Bool(_))
    }

    pub(crate) fn is_true(&self) -> bool {
        matches!(self, Json::Bool(true))
    }
}

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
    let bump = Bump::new();
    Json::read(text, max_depth, &bump).map(|value| value.to_value())
}

/// A container that is not finished.
enum Open {
    /// Where its items begin in [`Parts::items`].
    Array(usize),
    /// Where its members begin in [`Parts::members`].
    Object(usize),
}

/// What belongs to containers that are not finished.
struct Parts<'a> {
    stack: Vec<Open>,
    items: Vec<Json<'a>>,
    /// Members, the last of each open object without its value yet.
    members: Vec<Member<'a>>,
    /// Where the name of each member begins in the text.
    starts: Vec<usize>,
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    max_depth: usize,
    bump: &'a Bump,
}

type Result1<T> = Result<T, JsonError>;

impl<'a> Reader<'a> {
    fn document(&mut self) -> Result1<Json<'a>> {
        let mut parts = Parts {
            stack: Vec::with_capacity(32),
            items: Vec::with_capacity(32),
            members: Vec::with_capacity(64),
            starts: Vec::with_capacity(64),
        };
        loop {
            self.space();
            let mut done = match self.peek() {
                Some(b'[') => {
                    self.at += 1;
                    self.space();
                    if self.eat(b']') {
                        Json::Array(&[])
                    } else {
                        let start = parts.items.len();
                        self.open(&mut parts, Open::Array(start))?;
                        continue;
                    }
                }
                Some(b'{') => {
                    self.at += 1;
                    self.space();
                    if self.eat(b'}') {
                        Json::Object(&Object { members: &[], sorted: &[] })
                    } else {
                        let start = parts.members.len();
                        self.name(&mut parts)?;
                        self.open(&mut parts, Open::Object(start))?;
                        continue;
                    }
                }
                _ => self.scalar()?,
            };
            // Close every container that this value finishes.
            loop {
                self.space();
                match parts.stack.last() {
                    None => return self.end(done),
                    Some(&Open::Array(start)) => {
                        parts.items.push(done);
                        if self.eat(b',') {
                            break;
                        }
                        self.expect(b']', "`,` or `]`")?;
                        let items =
                            self.bump.alloc_slice_copy(&parts.items[start..]);
                        parts.items.truncate(start);
                        done = Json::Array(items);
                    }
                    Some(&Open::Object(start)) => {
                        if let Some(member) = parts.members.last_mut() {
                            member.1 = done;
                        }
                        if self.eat(b',') {
                            self.space();
                            self.name(&mut parts)?;
                            break;
                        }
                        self.expect(b'}', "`,` or `}`")?;
                        done = self.object(&mut parts, start)?;
                    }
                }
                parts.stack.pop();
            }
        }
    }

    fn open(&self, parts: &mut Parts<'a>, open: Open) -> Result1<()> {
        interrupt::check().map_err(|error| self.error(error.to_string()))?;
        if parts.stack.len() >= self.max_depth {
            let limit = self.max_depth;
            let what = format!("nesting is deeper than {limit} levels");
            let mut error = self.error(what);
            error.too_deep = true;
            return Err(error);
        }
        parts.stack.push(open);
        Ok(())
    }

    fn end(&mut self, value: Json<'a>) -> Result1<Json<'a>> {
        if self.at < self.bytes.len() {
            return Err(self.error("text after the end of the value"));
        }
        Ok(value)
    }

    /// Reads a member's name, and what stands between it and the value.
    fn name(&mut self, parts: &mut Parts<'a>) -> Result1<()> {
        if self.peek() != Some(b'"') {
            return Err(self.error("expected a member name"));
        }
        parts.starts.push(self.at);
        parts.members.push((self.string()?, Json::Null));
        self.space();
        self.expect(b':', "`:`")
    }

    /// Makes the object of the members from `start` on.
    fn object(
        &self,
        parts: &mut Parts<'a>,
        start: usize,
    ) -> Result1<Json<'a>> {
        let members = self.bump.alloc_slice_copy(&parts.members[start..]);
        let object = Object::new(members, self.bump).map_err(|index| {
            let name = members[index].0;
            let what = format!("the name {name:?} comes twice");
            self.error_at(parts.starts[start + index], what)
        })?;
        parts.members.truncate(start);
        parts.starts.truncate(start);
        Ok(Json::Object(self.bump.alloc(object)))
    }

    fn scalar(&mut self) -> Result1<Json<'a>> {
        match self.peek() {
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                for (word, value) in [
                    ("null", Json::Null),
                    ("true", Json::Bool(true)),
                    ("false", Json::Bool(false)),
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

    fn number(&mut self) -> Result1<Json<'a>> {
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
        Ok(Json::Number(&self.text[start..self.at]))
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

    fn string(&mut self) -> Result1<&'a str> {
        self.at += 1;
        let start = self.at;
        self.plain();
        let plain = &self.text[start..self.at];
        if self.eat(b'"') {
            return Ok(plain);
        }
        let mut out = plain.to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(self.bump.alloc_str(&out));
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => {
                    return Err(self.error("a control character in a string"));
                }
                None => return Err(self.error("a string without an end")),
            }
            let start = self.at;
            self.plain();
            out.push_str(&self.text[start..self.at]);
        }
    }

    /// Skips what stands for itself in a string.
    fn plain(&mut self) {
        while let Some(eight) = self.bytes[self.at..].first_chunk() {
            let n_plain = leading_plain(*eight);
            self.at += n_plain;
            if n_plain < 8 {
                return;
            }
        }
        let is_plain = |b: u8| b != b'"' && b != b'\\' && b >= b' ';
        while self.peek().is_some_and(is_plain) {
            self.at += 1;
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

/// How many of eight bytes, from the first on, stand for themselves in a
/// string: they are no quote, no backslash and no control character.
///
/// All are looked at together. A byte of `x` is 0 where the first set bit of
/// `(x - 1…1) & !x & 8…8` is; a borrow can only mark bytes behind it.
fn leading_plain(bytes: [u8; 8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let word = u64::from_le_bytes(bytes);
    let below =
        |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGH;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let special = equal(b'"') | equal(b'\\') | below(word, u64::from(b' '));
    (special.trailing_zeros() / 8) as usize
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
    fn eight_bytes_are_judged_as_one_by_one() {
        let specials = [0, 1, 31, b'"', b'\\'];
        let plain = [32, b'!', b'#', b'[', b']', 127, 128, 160, 255];
        for special in specials.into_iter().chain(plain) {
            for beside in plain.into_iter().chain(specials) {
                for place in 0..8 {
                    let mut bytes = [b'x'; 8];
                    bytes[place] = special;
                    bytes[(place + 1) % 8] = beside;
                    let want = bytes.iter().position(|b| specials.contains(b));
                    assert_eq!(leading_plain(bytes), want.unwrap_or(8));
                }
            }
        }
    }

    #[test]
    fn names_are_found_and_refused_in_objects_of_any_size() {
        for count in [1, MAX_SEARCHED, MAX_SEARCHED + 1, 1_000] {
            let members: Vec<String> =
                (0..count).map(|i| format!("\"n{i}\":{i}")).collect();
            let text = format!("{{{}}}", members.join(","));
            let bump = Bump::new();
            let read = Json::read(&text, 9, &bump).expect("good");
            let object = read.as_object().expect("an object");
            for (index, (name, value)) in object.iter().enumerate() {
                assert_eq!(name, format!("n{index}"));
                let found = object.get(name).expect("it is there");
                assert!(std::ptr::eq(found, value));
            }
            assert!(!object.contains_key("n"));
            let value: Value = serde_json::from_str(&text).expect("good");
            assert_eq!(read.to_value(), value);
            let again = Json::from_value(&value, &bump);
            assert_eq!(again.to_value(), value);
            let twice = format!("{},\"n0\":1}}", &text[..text.len() - 1]);
            let error = read_json(&twice, 9).expect_err("twice");
            assert_eq!(error.offset, text.len());
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
