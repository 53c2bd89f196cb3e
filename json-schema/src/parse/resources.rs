//! Documents, resources, anchors, and what a reference leads to.

use std::collections::BTreeMap;

use bumpalo::Bump;
use maskwright_grammar_core::util::FxHashMap;

use super::FormatPolicy;
use super::json::{Json, Object};
use super::meta::meta_schema;
use super::schema::ResourceId;
use crate::draft::Draft;
use crate::error::{ErrorKind, SchemaError};
use crate::keywords::{Shape, shape};
use crate::location::{Location, LocationId, Locations, Token, unescape};
use crate::reference::{percent_decode, resolve, split_fragment};

/// How many custom meta-schemas may follow each other.
const MAX_META_SCHEMAS: usize = 16;

/// Which vocabularies of a dialect constrain anything.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Vocabularies {
    pub(crate) applicator: bool,
    pub(crate) unevaluated: bool,
    pub(crate) validation: bool,
    /// What `format` means where the dialect says so, whatever the policy.
    pub(crate) format: Option<FormatPolicy>,
}

/// A draft, with what a custom meta-schema or the absence of `$schema`
/// changes in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Dialect {
    pub(crate) draft: Draft,
    pub(crate) vocabularies: Vocabularies,
    /// Whether spellings of older drafts are understood.
    pub(crate) compatible: bool,
}

impl Dialect {
    pub(crate) fn of(draft: Draft) -> Dialect {
        let vocabularies = Vocabularies {
            applicator: true,
            unevaluated: true,
            validation: true,
            format: None,
        };
        Dialect { draft, vocabularies, compatible: false }
    }
}

/// A place in a document: the value, whose resource it is in, where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) value: &'a Json<'a>,
    pub(crate) resource: ResourceId,
    pub(crate) location: LocationId,
}

/// A schema with an address of its own.
#[derive(Debug)]
pub(crate) struct Resource<'a> {
    pub(crate) address: String,
    pub(crate) root: Target<'a>,
    pub(crate) dialect: Dialect,
    pub(crate) anchors: FxHashMap<&'a str, Target<'a>>,
    /// `$dynamicAnchor`s, in the order of the document.
    pub(crate) dynamic: Vec<(&'a str, Target<'a>)>,
    pub(crate) recursive: bool,
}

/// Every document that was looked at, and what is in it.
#[derive(Debug)]
pub(crate) struct Resources<'a> {
    pub(crate) all: Vec<Resource<'a>>,
    pub(crate) locations: Locations,
    /// What references may lead to, by address.
    documents: BTreeMap<&'a str, &'a Json<'a>>,
    bump: &'a Bump,
    by_address: FxHashMap<String, ResourceId>,
    /// The resource of each value that is the root of one.
    roots: FxHashMap<usize, ResourceId>,
    default: Dialect,
    forced: bool,
}

/// The identity of a value: documents do not move while they are read.
pub(crate) fn address_of(value: &Json<'_>) -> usize {
    std::ptr::from_ref(value).addr()
}

/// A step from a schema to a schema in it.
#[derive(Clone, Copy)]
struct Step<'a> {
    keyword: &'a str,
    inner: Inner<'a>,
}

#[derive(Clone, Copy)]
enum Inner<'a> {
    None,
    Name(&'a str),
    Index(usize),
}

/// A schema found by a scan, with the way back up.
struct Found<'a> {
    value: &'a Json<'a>,
    resource: ResourceId,
    parent: usize,
    step: Step<'a>,
}

fn text<'a>(map: &Object<'a>, keyword: &str) -> Option<&'a str> {
    map.get(keyword)?.as_str()
}

/// A `$id` beside a `$ref` is void where `$ref` hides its siblings.
fn own_id<'a>(map: &Object<'a>, draft: Draft) -> Option<&'a str> {
    if draft.ref_hides_siblings() && map.contains_key("$ref") {
        return None;
    }
    text(map, draft.id_keyword())
}

impl<'a> Resources<'a> {
    pub(crate) fn new(
        documents: BTreeMap<&'a str, &'a Json<'a>>,
        default: Dialect,
        forced: bool,
        bump: &'a Bump,
    ) -> Resources<'a> {
        Resources {
            all: Vec::new(),
            locations: Locations::default(),
            documents,
            bump,
            by_address: FxHashMap::default(),
            roots: FxHashMap::default(),
            default,
            forced,
        }
    }

    pub(crate) fn get(&self, id: ResourceId) -> &Resource<'a> {
        &self.all[id.index()]
    }

    /// Loads a document and finds the resources and anchors in it.
    pub(crate) fn load(
        &mut self,
        address: &str,
        value: &'a Json<'a>,
    ) -> Result<ResourceId, SchemaError> {
        let location = self.locations.add_document(address.to_owned());
        let mut dialect = self.default;
        let mut id = None;
        if let Json::Object(map) = value {
            dialect = self.dialect(map, dialect, location)?;
            id = own_id(map, dialect.draft);
        }
        let resource = self.add(address.to_owned(), value, dialect, location);
        if self.all.len() == 1 {
            // Documents without `$schema` follow the schema itself.
            self.default = Dialect { compatible: false, ..dialect };
        }
        if let Some(id) = id {
            self.rename(resource, id);
        }
        self.scan(value, resource, location)?;
        Ok(resource)
    }

    fn add(
        &mut self,
        address: String,
        value: &'a Json<'a>,
        dialect: Dialect,
        location: LocationId,
    ) -> ResourceId {
        let id = ResourceId::new(self.all.len());
        self.by_address.insert(address.clone(), id);
        self.roots.insert(address_of(value), id);
        self.all.push(Resource {
            address,
            root: Target { value, resource: id, location },
            dialect,
            anchors: FxHashMap::default(),
            dynamic: Vec::new(),
            recursive: false,
        });
        id
    }

    /// Gives a document the address that it claims.
    fn rename(&mut self, resource: ResourceId, id: &'a str) {
        let entry = &mut self.all[resource.index()];
        let (path, fragment) = split_fragment(id);
        if !fragment.is_empty() {
            entry.anchors.insert(fragment, entry.root);
        }
        entry.address = resolve(&entry.address, path);
        self.by_address.insert(entry.address.clone(), resource);
    }

    /// Reads `$schema`.
    fn dialect(
        &self,
        map: &Object<'_>,
        default: Dialect,
        location: LocationId,
    ) -> Result<Dialect, SchemaError> {
        let Some(uri) = text(map, "$schema") else {
            return Ok(default);
        };
        if let Some(draft) = Draft::from_uri(uri) {
            return Ok(Dialect::of(draft));
        }
        let fail = |kind| {
            let place = self.locations.get(location).child("$schema");
            Err(SchemaError::new(kind, place))
        };
        match self.custom_dialect(uri) {
            Some(Ok(dialect)) => Ok(dialect),
            None if self.forced => Ok(default),
            None => fail(ErrorKind::UnknownDialect { uri: uri.to_owned() }),
            Some(Err(uri)) => fail(ErrorKind::UnknownVocabulary { uri }),
        }
    }

    /// Reads `$vocabulary` of a custom meta-schema; none if it was not
    /// supplied or follows no draft. The error is a vocabulary that has to
    /// be understood and is not.
    fn custom_dialect(&self, uri: &str) -> Option<Result<Dialect, String>> {
        let meta = self.document(uri)?.as_object()?;
        // A custom meta-schema may follow another one.
        let mut outer = meta;
        let mut draft = None;
        for _ in 0..MAX_META_SCHEMAS {
            let uri = text(outer, "$schema")?;
            draft = Draft::from_uri(uri);
            if draft.is_some() {
                break;
            }
            outer = self.document(uri)?.as_object()?;
        }
        let mut dialect = Dialect::of(draft?);
        if let Some(Json::Object(listed)) = meta.get("$vocabulary") {
            match vocabularies(dialect.draft, listed) {
                Ok(vocabularies) => dialect.vocabularies = vocabularies,
                Err(uri) => return Some(Err(uri)),
            }
        }
        Some(Ok(dialect))
    }

    /// A document that was supplied, or a bundled meta-schema.
    fn document(&self, address: &str) -> Option<&'a Json<'a>> {
        let bare = address.strip_suffix('#').unwrap_or(address);
        let supplied = self.documents.get(bare);
        supplied
            .or_else(|| self.documents.get(&*format!("{bare}#")))
            .copied()
            .or_else(|| meta_schema(bare, self.bump))
    }

    /// Finds the resources and anchors below (and at) one schema.
    pub(crate) fn scan(
        &mut self,
        value: &'a Json<'a>,
        resource: ResourceId,
        top: LocationId,
    ) -> Result<(), SchemaError> {
        let none = Step { keyword: "", inner: Inner::None };
        let first = Found { value, resource, parent: 0, step: none };
        let mut found = vec![first];
        let mut next = 0;
        while next < found.len() {
            if let Json::Object(map) = found[next].value {
                let at = &found[next];
                let resource = match self.roots.get(&address_of(at.value)) {
                    Some(&known) => known,
                    None => self.enter(map, &found, next, top)?,
                };
                self.anchors(map, resource, &found, next, top);
                children(map, |value, step| {
                    found.push(Found { value, resource, parent: next, step });
                });
            }
            next += 1;
        }
        Ok(())
    }

    /// Makes the place of a schema that a scan found.
    fn place(
        &mut self,
        found: &[Found<'a>],
        index: usize,
        top: LocationId,
    ) -> LocationId {
        let mut chain = Vec::new();
        let mut next = index;
        while next != 0 {
            chain.push(found[next].step);
            next = found[next].parent;
        }
        let mut place = top;
        for step in chain.into_iter().rev() {
            let keyword = Token::Name(step.keyword.into());
            place = self.locations.add(place, keyword);
            match step.inner {
                Inner::None => {}
                Inner::Name(name) => {
                    place =
                        self.locations.add(place, Token::Name(name.into()));
                }
                Inner::Index(index) => {
                    place = self.locations.add(place, Token::Index(index));
                }
            }
        }
        place
    }

    /// Opens the resource that a schema's `$id` makes, if any.
    fn enter(
        &mut self,
        map: &'a Object<'a>,
        found: &[Found<'a>],
        index: usize,
        top: LocationId,
    ) -> Result<ResourceId, SchemaError> {
        let at = &found[index];
        let outer = self.get(at.resource);
        let draft = outer.dialect.draft;
        // Which schemas are resources, the draft around them says; a
        // `$schema` elsewhere means nothing.
        let Some(id) = own_id(map, draft) else {
            return Ok(at.resource);
        };
        let (path, fragment) = split_fragment(id);
        let place = self.place(found, index, top);
        let target =
            Target { value: at.value, resource: at.resource, location: place };
        if path.is_empty() && draft <= Draft::Draft7 {
            if !fragment.is_empty() {
                let outer = &mut self.all[at.resource.index()];
                outer.anchors.insert(fragment, target);
            }
            return Ok(at.resource);
        }
        let outer = self.get(at.resource);
        let address = resolve(&outer.address, path);
        let default = outer.dialect;
        let dialect = self.dialect(map, default, place)?;
        let inner = self.add(address, at.value, dialect, place);
        if !fragment.is_empty() && draft <= Draft::Draft7 {
            let entry = &mut self.all[inner.index()];
            entry.anchors.insert(fragment, entry.root);
        }
        Ok(inner)
    }

    /// Notes the anchors that a schema defines.
    fn anchors(
        &mut self,
        map: &'a Object<'a>,
        resource: ResourceId,
        found: &[Found<'a>],
        index: usize,
        top: LocationId,
    ) {
        let draft = self.get(resource).dialect.draft;
        if draft < Draft::Draft201909 {
            return;
        }
        let value = found[index].value;
        if let Some(anchor) = text(map, "$anchor") {
            let location = self.place(found, index, top);
            let target = Target { value, resource, location };
            self.all[resource.index()].anchors.insert(anchor, target);
        }
        if draft == Draft::Draft202012
            && let Some(anchor) = text(map, "$dynamicAnchor")
        {
            let location = self.place(found, index, top);
            let target = Target { value, resource, location };
            let entry = &mut self.all[resource.index()];
            entry.anchors.insert(anchor, target);
            entry.dynamic.push((anchor, target));
        }
        let entry = &mut self.all[resource.index()];
        if draft == Draft::Draft201909
            && map.get("$recursiveAnchor").is_some_and(Json::is_true)
            && address_of(entry.root.value) == address_of(value)
        {
            entry.recursive = true;
        }
    }

    /// Finds a document or resource by its address.
    fn find(
        &mut self,
        address: &str,
    ) -> Result<Option<ResourceId>, SchemaError> {
        if let Some(&id) = self.by_address.get(address) {
            return Ok(Some(id));
        }
        if let Some(value) = self.document(address) {
            return self.load(address, value).map(Some);
        }
        // A document may hold a resource with another address. What is wrong
        // with one that holds none is of no interest.
        for (name, value) in self.documents.clone() {
            let name = name.strip_suffix('#').unwrap_or(name);
            if !self.by_address.contains_key(name) {
                let loaded = self.load(name, value);
                if self.by_address.contains_key(address) {
                    loaded?;
                }
            }
        }
        Ok(self.by_address.get(address).copied())
    }

    /// Finds what a reference leads to, and the anchor it goes by, if any.
    pub(crate) fn resolve(
        &mut self,
        reference: &str,
        from: ResourceId,
        at: &dyn Fn(&Locations) -> Location,
    ) -> Result<(Target<'a>, Option<String>), SchemaError> {
        let (path, fragment) = split_fragment(reference);
        let resource = if path.is_empty() {
            Some(from)
        } else {
            let address = resolve(&self.get(from).address, path);
            self.find(&address)?
        };
        let fail = |this: &Resources<'a>, reason: String| {
            let reference = reference.to_owned();
            SchemaError::new(
                ErrorKind::UnresolvedRef { reference, reason },
                at(&this.locations),
            )
        };
        let Some(resource) = resource else {
            let reason = "no such document; nothing is fetched, so supply \
                          it as a document (meta-schemas too)";
            return Err(fail(self, reason.to_owned()));
        };
        let fragment = percent_decode(fragment);
        if fragment.is_empty() {
            return Ok((self.get(resource).root, None));
        }
        if let Some(pointer) = fragment.strip_prefix('/') {
            return match self.walk(resource, pointer)? {
                Ok(target) => Ok((target, None)),
                Err(token) => {
                    let reason = format!("nothing is at {token:?}");
                    Err(fail(self, reason))
                }
            };
        }
        if let Some(&target) = self.get(resource).anchors.get(&*fragment) {
            return Ok((target, Some(fragment.into_owned())));
        }
        let reason = format!("there is no anchor {fragment:?}");
        Err(fail(self, reason))
    }

    /// Follows a JSON pointer; the inner error is the token that fails.
    fn walk(
        &mut self,
        resource: ResourceId,
        pointer: &str,
    ) -> Result<Result<Target<'a>, String>, SchemaError> {
        let mut target = self.get(resource).root;
        // Whether a scan has been here: it goes from schema to schema only.
        let mut shape_here = Shape::Schema;
        let mut scanned = true;
        for token in pointer.split('/') {
            let token = unescape(token);
            let (value, step) = match target.value {
                Json::Object(map) => match map.get(&token) {
                    Some(value) => (value, Token::Name(token.as_str().into())),
                    None => return Ok(Err(token)),
                },
                Json::Array(items) => {
                    let index = token.parse::<usize>().ok();
                    match index.and_then(|i| Some((items.get(i)?, i))) {
                        Some((value, i)) => (value, Token::Index(i)),
                        None => return Ok(Err(token)),
                    }
                }
                _ => return Ok(Err(token)),
            };
            shape_here = match shape_here {
                Shape::Schema => shape(&token),
                Shape::Map | Shape::List => Shape::Schema,
                Shape::SchemaOrList if value.is_object() => Shape::Schema,
                Shape::SchemaOrList | Shape::Other => Shape::Other,
            };
            if shape_here == Shape::SchemaOrList {
                shape_here =
                    if value.is_array() { Shape::List } else { Shape::Schema };
            }
            scanned &= shape_here != Shape::Other;
            target.value = value;
            target.location = self.locations.add(target.location, step);
            if let Some(&inner) = self.roots.get(&address_of(value)) {
                target.resource = inner;
            }
        }
        if !scanned && target.value.is_object() {
            self.scan(target.value, target.resource, target.location)?;
        }
        Ok(Ok(target))
    }

    /// The resource of a schema that is reached from one in `outer`.
    pub(crate) fn resource_of(
        &self,
        value: &Json<'_>,
        outer: ResourceId,
    ) -> ResourceId {
        self.roots.get(&address_of(value)).copied().unwrap_or(outer)
    }
}

/// Calls `each` for every schema directly inside a schema.
fn children<'a>(
    map: &'a Object<'a>,
    mut each: impl FnMut(&'a Json<'a>, Step<'a>),
) {
    for (keyword, value) in map.iter() {
        match (shape(keyword), value) {
            (Shape::Map, Json::Object(inner)) => {
                for (name, value) in inner.iter() {
                    if value.is_object() {
                        let inner = Inner::Name(name);
                        each(value, Step { keyword, inner });
                    }
                }
            }
            (Shape::List | Shape::SchemaOrList, Json::Array(items)) => {
                for (index, value) in items.iter().enumerate() {
                    if value.is_object() {
                        let inner = Inner::Index(index);
                        each(value, Step { keyword, inner });
                    }
                }
            }
            (Shape::Schema | Shape::SchemaOrList, Json::Object(_)) => {
                each(value, Step { keyword, inner: Inner::None });
            }
            _ => {}
        }
    }
}

/// Which vocabularies of a draft a `$vocabulary` lists. The error is one
/// that has to be understood and is not.
fn vocabularies(
    draft: Draft,
    listed: &Object<'_>,
) -> Result<Vocabularies, String> {
    let mut vocabularies = Vocabularies {
        applicator: false,
        unevaluated: false,
        validation: false,
        format: None,
    };
    let own = format!("https://json-schema.org/draft/{draft}/vocab/");
    for (uri, required) in listed.iter() {
        match uri.strip_prefix(&own) {
            Some("applicator") => {
                vocabularies.applicator = true;
                vocabularies.unevaluated |= draft == Draft::Draft201909;
            }
            Some("unevaluated") => vocabularies.unevaluated = true,
            Some("validation") => vocabularies.validation = true,
            Some("format-assertion") => {
                vocabularies.format = Some(FormatPolicy::AssertAll);
            }
            // In 2019-09, whether it asserts is whether it is required.
            Some("format") if required.is_true() => {
                vocabularies.format = Some(FormatPolicy::AssertKnown);
            }
            Some(
                "core" | "meta-data" | "format" | "format-annotation"
                | "content",
            ) => {}
            _ if required.is_true() => return Err(uri.to_owned()),
            _ => {}
        }
    }
    Ok(vocabularies)
}
