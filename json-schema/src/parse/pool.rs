//! Shared small things by number: names, numbers, constants, patterns.
//!
//! Equal things get equal ids, so that formulas compare and hash words only.
//! Ids are handed out in the order of first use, which for names is the
//! order of the document.

use std::sync::Arc;

use bumpalo::Bump;
use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;
use serde_json::Value;

use super::json::Json;
use super::pattern::{Backreferences, Pattern, PatternError};
use crate::number::Decimal;

/// Defines an identifier that is a number in a typed coat.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// Returns the number as an index.
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// Makes an identifier; saturates, which limits on growth keep
            /// out of reach.
            #[allow(dead_code, reason = "not every table counts its rows")]
            pub(crate) fn new(index: usize) -> $name {
                $name(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }
    };
}
pub(crate) use id;

id! {
    /// A string: a member name or a string constant.
    NameId
}
id! {
    /// A number, by value.
    NumberId
}
id! {
    /// A constant JSON value.
    ConstantId
}
id! {
    /// A regular expression.
    PatternId
}
id! {
    /// The name of a format.
    FormatId
}

/// A constant JSON value, with its parts by id; equal values are equal.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Constant {
    /// `null`.
    Null,
    /// `false`.
    False,
    /// `true`.
    True,
    /// A number, by value.
    Number(NumberId),
    /// A string.
    String(NameId),
    /// An array.
    Array(Box<[ConstantId]>),
    /// An object; members sorted by the id of their name.
    Object(Box<[(NameId, ConstantId)]>),
}

/// The tables of shared small things.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    names: IndexSet<Arc<str>, FxBuildHasher>,
    numbers: IndexMap<Decimal, Box<str>, FxBuildHasher>,
    constants: IndexSet<Constant, FxBuildHasher>,
    patterns: IndexMap<Box<str>, Pattern, FxBuildHasher>,
    formats: IndexSet<Box<str>, FxBuildHasher>,
}

impl Pool {
    /// Returns the id of a string.
    pub fn name(&mut self, text: &str) -> NameId {
        if let Some(index) = self.names.get_index_of(text) {
            return NameId::new(index);
        }
        NameId::new(self.names.insert_full(text.into()).0)
    }

    /// Returns the id of a string that is already known.
    pub fn find_name(&self, text: &str) -> Option<NameId> {
        self.names.get_index_of(text).map(NameId::new)
    }

    /// The string of an id.
    pub fn name_text(&self, name: NameId) -> &str {
        self.names.get_index(name.index()).map_or("", |text| text)
    }

    /// The string of an id, shared.
    pub(crate) fn shared_name(&self, name: NameId) -> Arc<str> {
        let text = self.names.get_index(name.index());
        text.map_or_else(|| "".into(), Arc::clone)
    }

    /// Returns the id of a number that is spelled `text`, or `None` where
    /// its exponent is beyond what [`Decimal`] holds.
    pub fn number(&mut self, text: &str) -> Option<NumberId> {
        let value: Decimal = text.parse().ok()?;
        if let Some(index) = self.numbers.get_index_of(&value) {
            return Some(NumberId::new(index));
        }
        let (index, _) = self.numbers.insert_full(value, text.into());
        Some(NumberId::new(index))
    }

    /// The value of a number.
    ///
    /// # Panics
    ///
    /// Panics where the id is not of this pool.
    pub fn number_value(&self, number: NumberId) -> &Decimal {
        self.numbers.get_index(number.index()).expect("ids are made here").0
    }

    /// The first spelling of a number.
    pub fn number_text(&self, number: NumberId) -> &str {
        self.numbers.get_index(number.index()).map_or("0", |(_, text)| text)
    }

    /// Returns the id of a constant.
    pub fn constant(&mut self, constant: Constant) -> ConstantId {
        ConstantId::new(self.constants.insert_full(constant).0)
    }

    /// The constant of an id.
    pub fn constant_value(&self, id: ConstantId) -> &Constant {
        self.constants.get_index(id.index()).unwrap_or(&Constant::Null)
    }

    /// Returns the id of a JSON value, or `None` where a number in it has
    /// an exponent beyond what [`Decimal`] holds.
    ///
    /// Recursion is bounded by the nesting of the value, which the reader of
    /// the schema bounds.
    pub fn value(&mut self, value: &Value) -> Option<ConstantId> {
        let bump = Bump::new();
        self.json(Json::from_value(value, &bump))
    }

    pub(crate) fn json(&mut self, value: Json<'_>) -> Option<ConstantId> {
        let constant = match value {
            Json::Null => Constant::Null,
            Json::Bool(false) => Constant::False,
            Json::Bool(true) => Constant::True,
            Json::Number(text) => Constant::Number(self.number(text)?),
            Json::String(text) => Constant::String(self.name(text)),
            Json::Array(items) => {
                let items: Option<Box<[ConstantId]>> =
                    items.iter().map(|&item| self.json(item)).collect();
                Constant::Array(items?)
            }
            Json::Object(map) => {
                let mut members = Vec::with_capacity(map.len());
                for (key, &value) in map.iter() {
                    members.push((self.name(key), self.json(value)?));
                }
                members.sort_unstable();
                Constant::Object(members.into())
            }
        };
        Some(self.constant(constant))
    }

    /// Returns the id of a regular expression.
    ///
    /// # Errors
    ///
    /// Fails when the expression does not parse or is not regular.
    pub fn pattern(
        &mut self,
        source: &str,
        backreferences: Backreferences,
    ) -> Result<PatternId, PatternError> {
        if let Some(index) = self.patterns.get_index_of(source) {
            return Ok(PatternId::new(index));
        }
        let pattern = Pattern::new(source, backreferences)?;
        let (index, _) = self.patterns.insert_full(source.into(), pattern);
        Ok(PatternId::new(index))
    }

    /// The regular expression of an id.
    ///
    /// # Panics
    ///
    /// Panics where the id is not of this pool.
    pub fn pattern_value(&self, id: PatternId) -> &Pattern {
        self.patterns.get_index(id.index()).expect("ids are made here").1
    }

    /// Returns the id of a format's name.
    pub fn format(&mut self, name: &str) -> FormatId {
        FormatId::new(self.formats.insert_full(name.into()).0)
    }

    /// The name of a format.
    pub fn format_name(&self, format: FormatId) -> &str {
        self.formats.get_index(format.index()).map_or("", |name| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_equal_by_value() {
        let mut pool = Pool::default();
        let one = pool.number("1");
        for text in ["1.0", "10e-1", "0.1E+1", "1.000"] {
            assert_eq!(pool.number(text), one, "{text}");
        }
        assert_eq!(pool.number("-0"), pool.number("0.0e99"));
        assert_ne!(pool.number("1.0000000000000000000001"), one);
        assert_ne!(pool.number("1e999999999"), None);
        assert_eq!(pool.number("1e99999999999999999999"), None);
        assert_eq!(pool.number_text(one.expect("a number")), "1");
    }

    #[test]
    fn constants_are_equal_without_order() {
        let mut pool = Pool::default();
        let mut value = |text: &str| {
            let value: Value = serde_json::from_str(text).expect("JSON");
            pool.value(&value).expect("small numbers")
        };
        assert_eq!(
            value("{\"a\":1,\"b\":[2]}"),
            value("{\"b\":[2.0],\"a\":1.0}")
        );
        assert_ne!(value("[1,2]"), value("[2,1]"));
        assert_ne!(value("1"), value("true"));
        assert_ne!(value("\"1\""), value("1"));
    }
}
