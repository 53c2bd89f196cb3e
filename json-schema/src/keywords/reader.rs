//! Reads one schema object, keyword by keyword.

use maskwright_grammar_core::util::FxHashSet;
use smallvec::SmallVec;

use super::{applicator, array, number, object, reference, string, value};
use crate::draft::Draft;
use crate::error::{ErrorKind, SchemaError};
use crate::location::{Location, LocationId, Token};
use crate::parse::builder::Builder;
use crate::parse::resources::{Dialect, Target, Vocabularies};
use crate::parse::{
    Json, Keyword, NameId, NodeId, NodeKind, Object, PatternError, PatternId,
    ResourceId, WarningReason,
};

/// What a keyword that holds a schema expects.
const SCHEMA: &str = "a schema (an object or a boolean)";

/// Lists no longer than this are compared pair by pair.
const MAX_COMPARED: usize = 16;

/// One schema object while its keywords are read.
pub(crate) struct Reader<'r, 'a> {
    pub(crate) builder: &'r mut Builder<'a>,
    pub(crate) map: &'a Object<'a>,
    pub(crate) resource: ResourceId,
    pub(crate) location: LocationId,
    pub(crate) dialect: Dialect,
    pub(crate) out: SmallVec<[Keyword; 8]>,
}

/// Reads the constraints of a schema object.
///
/// # Errors
///
/// Fails at the first keyword whose value the draft does not allow.
pub(crate) fn read<'a>(
    builder: &mut Builder<'a>,
    map: &'a Object<'a>,
    resource: ResourceId,
    location: LocationId,
) -> Result<NodeKind, SchemaError> {
    let dialect = builder.resources.get(resource).dialect;
    let out = SmallVec::new();
    let mut reader = Reader { builder, map, resource, location, dialect, out };
    if dialect.draft.ref_hides_siblings() && map.contains_key("$ref") {
        reader.only_ref(map)?;
    } else {
        for (keyword, value) in map.iter() {
            reader.keyword(keyword, value)?;
        }
    }
    let out = reader.out;
    Ok(builder.keywords(out))
}

impl<'a> Reader<'_, 'a> {
    pub(crate) fn draft(&self) -> Draft {
        self.dialect.draft
    }

    /// Whether a keyword of drafts since `since` is one here.
    pub(crate) fn since(&self, since: Draft) -> bool {
        self.dialect.draft >= since
    }

    /// Reads `$ref` in a draft where it hides its siblings.
    fn only_ref(&mut self, map: &'a Object<'a>) -> Result<(), SchemaError> {
        for (keyword, value) in map.iter() {
            if keyword == "$ref" {
                self.used("$ref");
                reference::reference(self, value)?;
            } else if matches!(
                super::support(keyword),
                Some(super::Enforced | super::EnforcedIfKnown)
            ) {
                self.warn(keyword, WarningReason::HiddenByRef);
            }
        }
        Ok(())
    }

    fn keyword(
        &mut self,
        keyword: &'a str,
        value: &'a Json<'a>,
    ) -> Result<(), SchemaError> {
        let Vocabularies { applicator, unevaluated, validation, .. } =
            self.dialect.vocabularies;
        if self.core(keyword, value)?
            || (applicator && self.applicator(keyword, value)?)
            || (unevaluated && self.unevaluated(keyword, value)?)
            || (validation && self.validation(keyword, value)?)
            || string::format(self, keyword, value)?
            || is_annotation(keyword)
        {
            return Ok(());
        }
        self.warn(keyword, WarningReason::UnknownKeyword);
        Ok(())
    }

    fn core(
        &mut self,
        keyword: &str,
        value: &'a Json<'a>,
    ) -> Result<bool, SchemaError> {
        match keyword {
            "$ref" => {
                self.used("$ref");
                reference::reference(self, value)?;
            }
            "$dynamicRef" if self.draft() == Draft::Draft202012 => {
                self.used("$dynamicRef");
                reference::dynamic(self, value)?;
            }
            "$recursiveRef" if self.draft() == Draft::Draft201909 => {
                self.used("$recursiveRef");
                reference::recursive(self, value)?;
            }
            "id" | "$schema" | "$id" | "$anchor" | "$dynamicAnchor"
            | "$recursiveAnchor" | "$vocabulary" => {
                let known = super::is_in(keyword, self.draft());
                if known {
                    self.identifier(keyword, value)?;
                }
                return Ok(known);
            }
            "definitions" | "$defs" => {
                let known = super::is_in(keyword, self.draft());
                if known && !value.is_object() {
                    return Err(self.invalid(keyword, "an object of schemas"));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Checks the value of a keyword that names something.
    fn identifier(
        &self,
        keyword: &str,
        value: &Json<'_>,
    ) -> Result<(), SchemaError> {
        let (right, expected) = match keyword {
            "$recursiveAnchor" => (value.is_boolean(), "a boolean"),
            "$vocabulary" => {
                let map = value.as_object();
                let right = map
                    .is_some_and(|it| it.iter().all(|(_, v)| v.is_boolean()));
                (right, "an object of booleans")
            }
            "$anchor" | "$dynamicAnchor" => {
                let right = value.as_str().is_some_and(|name| {
                    is_anchor(name, self.draft() == Draft::Draft202012)
                });
                let expected = "a name of letters, digits, `-`, `_` and `.` \
                                that begins with a letter";
                (right, expected)
            }
            _ => (value.as_str().is_some(), "an address as a string"),
        };
        if right { Ok(()) } else { Err(self.invalid(keyword, expected)) }
    }

    fn applicator(
        &mut self,
        keyword: &str,
        value: &'a Json<'a>,
    ) -> Result<bool, SchemaError> {
        let array = applicator::read(self, keyword, value)?
            || array::applicator(self, keyword, value)?;
        Ok(array || object::applicator(self, keyword, value)?)
    }

    fn unevaluated(
        &mut self,
        keyword: &str,
        value: &'a Json<'a>,
    ) -> Result<bool, SchemaError> {
        if self.draft() < Draft::Draft201909 {
            return Ok(false);
        }
        match keyword {
            "unevaluatedProperties" => {
                let node = self.child("unevaluatedProperties", value)?;
                self.push(
                    "unevaluatedProperties",
                    Keyword::UnevaluatedProperties(node),
                );
            }
            "unevaluatedItems" => {
                let node = self.child("unevaluatedItems", value)?;
                self.push("unevaluatedItems", Keyword::UnevaluatedItems(node));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn validation(
        &mut self,
        keyword: &str,
        value: &'a Json<'a>,
    ) -> Result<bool, SchemaError> {
        Ok(value::read(self, keyword, value)?
            || number::read(self, keyword, value)?
            || string::read(self, keyword, value)?
            || array::validation(self, keyword, value)?
            || object::validation(self, keyword, value)?)
    }

    /// Adds a constraint.
    pub(crate) fn push(&mut self, name: &'static str, keyword: Keyword) {
        self.used(name);
        self.out.push(keyword);
    }

    /// Notes the first place of a keyword.
    pub(crate) fn used(&mut self, name: &'static str) {
        let used = &mut self.builder.used;
        if !used.iter().any(|(keyword, _)| *keyword == name) {
            let place =
                self.builder.resources.locations.add(self.location, name);
            used.push((name, place));
        }
    }

    /// The node of a schema that is a keyword's value.
    pub(crate) fn child(
        &mut self,
        keyword: &'static str,
        value: &'a Json<'a>,
    ) -> Result<NodeId, SchemaError> {
        let location =
            self.builder.resources.locations.add(self.location, keyword);
        self.node(keyword, value, location)
    }

    /// The node of a schema inside a keyword's value.
    pub(crate) fn grandchild(
        &mut self,
        keyword: &'static str,
        token: Token,
        value: &'a Json<'a>,
    ) -> Result<NodeId, SchemaError> {
        let locations = &mut self.builder.resources.locations;
        let outer = locations.add(self.location, keyword);
        let location = locations.add(outer, token);
        self.node(keyword, value, location)
    }

    fn node(
        &mut self,
        keyword: &str,
        value: &'a Json<'a>,
        location: LocationId,
    ) -> Result<NodeId, SchemaError> {
        if !is_schema(value) {
            let place = self.builder.resources.locations.get(location);
            let kind = ErrorKind::invalid(keyword, SCHEMA, value);
            return Err(SchemaError::new(kind, place));
        }
        let resource =
            self.builder.resources.resource_of(value, self.resource);
        self.builder.node(Target { value, resource, location })
    }

    /// Checks that a value is a schema, which nothing applies.
    pub(crate) fn schema(
        &self,
        keyword: &str,
        value: &Json<'_>,
    ) -> Result<(), SchemaError> {
        if is_schema(value) {
            return Ok(());
        }
        Err(self.invalid(keyword, SCHEMA))
    }

    /// The nodes of an array of schemas.
    pub(crate) fn children(
        &mut self,
        keyword: &'static str,
        value: &'a Json<'a>,
    ) -> Result<Box<[NodeId]>, SchemaError> {
        let Json::Array(items) = value else {
            return Err(self.invalid(keyword, "an array of schemas"));
        };
        if items.is_empty() {
            return Err(self.invalid(keyword, "at least one schema"));
        }
        let nodes = items.iter().enumerate().map(|(index, item)| {
            self.grandchild(keyword, Token::Index(index), item)
        });
        nodes.collect()
    }

    /// A whole number that is not negative; `2.0` is one.
    pub(crate) fn count(
        &self,
        keyword: &str,
        value: &Json<'_>,
    ) -> Result<u64, SchemaError> {
        let expected = "a whole number that is not negative";
        let Json::Number(number) = value else {
            return Err(self.invalid(keyword, expected));
        };
        whole(number).ok_or_else(|| self.invalid(keyword, expected))
    }

    /// An array of different strings, at `path` below a keyword.
    pub(crate) fn names(
        &mut self,
        keyword: &str,
        path: &[&str],
        value: &'a Json<'a>,
    ) -> Result<Box<[NameId]>, SchemaError> {
        let wrong = |reader: &Self, path: &[&str], expected, value| {
            Err(reader.invalid_below(keyword, path, expected, value))
        };
        let Json::Array(items) = value else {
            return wrong(self, path, "an array of strings", value);
        };
        if items.is_empty() && self.draft() == Draft::Draft4 {
            return wrong(self, path, "at least one string", value);
        }
        let mut names = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let Json::String(name) = item else {
                let expected = "a string";
                return Err(
                    self.invalid_item(keyword, path, index, expected, item)
                );
            };
            names.push(self.builder.pool.name(name));
        }
        self.distinct(keyword, path, &names, items)?;
        Ok(names.into())
    }

    /// A regular expression; none if it was left out.
    pub(crate) fn pattern(
        &mut self,
        keyword: &str,
        source: &str,
    ) -> Result<Option<PatternId>, SchemaError> {
        let backreferences = self.builder.options.backreferences;
        let pattern = self.builder.pool.pattern(source, backreferences);
        let error = match pattern {
            Ok(pattern) => return Ok(Some(pattern)),
            Err(error) => error,
        };
        let mut place = self.place().child(keyword);
        if keyword == "patternProperties" {
            place = place.child(source);
        }
        let pattern = source.to_owned();
        let error = match error {
            PatternError::Invalid { offset, message } => {
                let kind =
                    ErrorKind::InvalidRegex { pattern, offset, message };
                return Err(SchemaError::new(kind, place));
            }
            PatternError::Unsupported { offset, feature } => SchemaError::new(
                ErrorKind::UnsupportedRegex { pattern, offset, feature },
                place,
            ),
            PatternError::TooLarge { limit, value } => SchemaError::limit(
                "size of a regular expression",
                limit,
                value,
                place,
            ),
        };
        self.builder.leave_out(error)?;
        Ok(None)
    }

    /// Where this schema stands.
    pub(crate) fn place(&self) -> Location {
        self.builder.resources.locations.get(self.location)
    }

    /// The error of a keyword with a wrong value.
    pub(crate) fn invalid(
        &self,
        keyword: &str,
        expected: &str,
    ) -> SchemaError {
        let value = self.map.get(keyword).unwrap_or(&Json::Null);
        let kind = ErrorKind::invalid(keyword, expected, value);
        SchemaError::new(kind, self.place().child(keyword))
    }

    /// The error of a wrong value at `path` below a keyword.
    pub(crate) fn invalid_below(
        &self,
        keyword: &str,
        path: &[&str],
        expected: &str,
        value: &Json<'_>,
    ) -> SchemaError {
        let place = self.place().child(keyword);
        let place = path.iter().fold(place, |at, token| at.child(token));
        let kind = ErrorKind::invalid(keyword, expected, value);
        SchemaError::new(kind, place)
    }

    /// The error of a wrong item of an array at `path` below a keyword.
    pub(crate) fn invalid_item(
        &self,
        keyword: &str,
        path: &[&str],
        index: usize,
        expected: &str,
        value: &Json<'_>,
    ) -> SchemaError {
        let index = index.to_string();
        let path = [path, &[&*index]].concat();
        self.invalid_below(keyword, &path, expected, value)
    }

    /// Checks that no two of some values are equal.
    pub(crate) fn distinct<T: Eq + std::hash::Hash>(
        &self,
        keyword: &str,
        path: &[&str],
        ids: &[T],
        items: &[Json<'_>],
    ) -> Result<(), SchemaError> {
        let again = if ids.len() <= MAX_COMPARED {
            (1..ids.len()).find(|&index| ids[..index].contains(&ids[index]))
        } else {
            let mut known = FxHashSet::default();
            ids.iter().position(|id| !known.insert(id))
        };
        let Some(index) = again else { return Ok(()) };
        let expected = "every value once";
        Err(self.invalid_item(keyword, path, index, expected, &items[index]))
    }

    pub(crate) fn warn(&mut self, keyword: &str, reason: WarningReason) {
        self.builder.warn(keyword, self.location, reason);
    }
}

/// Whether a value has the shape of a schema.
fn is_schema(value: &Json<'_>) -> bool {
    value.is_object() || value.is_boolean()
}

/// Whether a name is one of an anchor. Draft 2019-09 has `:` where 2020-12
/// has a `_` at the beginning.
fn is_anchor(name: &str, new: bool) -> bool {
    let starts = |c: char| c.is_ascii_alphabetic() || new && c == '_';
    let goes_on = |c: char| {
        c.is_ascii_alphanumeric() || "-._".contains(c) || !new && c == ':'
    };
    name.starts_with(starts) && name.chars().all(goes_on)
}

/// Whether a keyword constrains nothing by the specification. It is one in
/// every draft: no meaning can be missed.
fn is_annotation(keyword: &str) -> bool {
    super::support(keyword) == Some(super::Annotation)
}

/// Reads the text of a JSON number as a count. What is larger than a `u64`
/// is the largest one, which no document can reach.
fn whole(text: &str) -> Option<u64> {
    if let Ok(count) = text.parse() {
        return Some(count);
    }
    let value: crate::number::Decimal = text.parse().ok()?;
    if value.is_negative() || !value.is_integer() {
        return None;
    }
    if value >= crate::number::Decimal::from(u64::MAX) {
        return Some(u64::MAX);
    }
    value.to_string().parse().ok()
}
