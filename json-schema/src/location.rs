//! Where in a schema something is: JSON pointers (RFC 6901).
//!
//! While a schema is read, places are chains of tokens in one arena
//! (`Locations`), so that a node costs one small entry and no string. A
//! [`Location`] is the printed form that errors and warnings carry.

use std::fmt;
use std::sync::Arc;

/// A JSON pointer in its escaped spelling, such as `/properties/a~1b`.
///
/// The empty pointer names the whole document and prints as `(root)` in
/// messages, so that a sentence never has a hole in it.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Pointer(String);

impl Pointer {
    /// The pointer to the whole document.
    pub fn root() -> Pointer {
        Pointer::default()
    }

    /// Appends one token, escaping `~` and `/`.
    pub fn push(&mut self, token: &str) {
        self.0.push('/');
        for c in token.chars() {
            match c {
                '~' => self.0.push_str("~0"),
                '/' => self.0.push_str("~1"),
                c => self.0.push(c),
            }
        }
    }

    /// Returns this pointer with one more token.
    #[must_use]
    pub fn child(&self, token: &str) -> Pointer {
        let mut pointer = self.clone();
        pointer.push(token);
        pointer
    }

    /// The escaped spelling; empty for the whole document.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "(root)" } else { &self.0 })
    }
}

/// Undoes the escapes of one pointer token.
pub(crate) fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// A place in a schema: a document and a pointer into it.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Location {
    /// The address of the document; empty for the schema itself.
    pub document: String,
    /// The place in that document.
    pub pointer: Pointer,
}

impl Location {
    /// The root of the schema itself.
    pub fn root() -> Location {
        Location::default()
    }

    /// The pointer, behind the address of its document if that is not the
    /// schema itself.
    pub fn address(&self) -> String {
        let pointer = self.pointer.as_str();
        match &*self.document {
            "" => pointer.to_owned(),
            document => format!("{document}#{pointer}"),
        }
    }

    /// Returns the place one token below this one.
    #[must_use]
    pub fn child(&self, token: &str) -> Location {
        Location {
            document: self.document.clone(),
            pointer: self.pointer.child(token),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.document.is_empty() {
            return write!(f, "{}", self.pointer);
        }
        write!(f, "{}#{}", self.document, self.pointer.as_str())
    }
}

/// The identifier of a place in [`Locations`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct LocationId(u32);

/// One token of a pointer, without an allocation of its own where possible.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Token {
    /// The root of the document with this number.
    Document(u32),
    /// A keyword that this crate knows.
    Keyword(&'static str),
    /// A position in an array.
    Index(usize),
    /// A member name, which the pool of names has too.
    Name(Arc<str>),
}

impl From<&'static str> for Token {
    fn from(keyword: &'static str) -> Token {
        Token::Keyword(keyword)
    }
}

/// An append-only arena of places.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locations {
    places: Vec<(u32, Token)>,
    documents: Vec<String>,
}

impl Locations {
    /// Adds a document and returns the place of its root.
    pub(crate) fn add_document(&mut self, address: String) -> LocationId {
        let number = u32::try_from(self.documents.len()).unwrap_or(u32::MAX);
        self.documents.push(address);
        self.add(LocationId(0), Token::Document(number))
    }

    /// Adds the place one token below `parent`.
    pub(crate) fn add(
        &mut self,
        parent: LocationId,
        token: impl Into<Token>,
    ) -> LocationId {
        let id = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        self.places.push((parent.0, token.into()));
        LocationId(id)
    }

    /// Prints a place.
    pub(crate) fn get(&self, id: LocationId) -> Location {
        let mut tokens = Vec::new();
        let mut next = id.0 as usize;
        let mut location = Location::default();
        while let Some((parent, token)) = self.places.get(next) {
            if let Token::Document(number) = token {
                location.document = self
                    .documents
                    .get(*number as usize)
                    .cloned()
                    .unwrap_or_default();
                break;
            }
            tokens.push(token);
            next = *parent as usize;
        }
        for token in tokens.into_iter().rev() {
            match token {
                Token::Document(_) => {}
                Token::Keyword(keyword) => location.pointer.push(keyword),
                Token::Index(index) => {
                    location.pointer.push(&index.to_string());
                }
                Token::Name(name) => location.pointer.push(name),
            }
        }
        location
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_print_as_escaped_pointers() {
        let mut places = Locations::default();
        let root = places.add_document(String::new());
        let map = places.add(root, "properties");
        let name = places.add(map, Token::Name("a/b~c".into()));
        let item = places.add(name, Token::Index(3));
        assert_eq!(places.get(root).to_string(), "(root)");
        assert_eq!(places.get(item).to_string(), "/properties/a~1b~0c/3");
        let other = places.add_document("http://x/y".to_owned());
        let place = places.add(other, "items");
        assert_eq!(places.get(place).to_string(), "http://x/y#/items");
        assert_eq!(unescape("a~1b~0c"), "a/b~c");
    }
}
