//! A schema as a graph of checked nodes.
//!
//! What the drafts spell differently is one thing here: an array-valued
//! `items` is [`Keyword::PrefixItems`], a draft-4 `exclusiveMinimum` is a
//! flag of [`Keyword::Minimum`], and references are node ids.

use super::pool::{ConstantId, FormatId, NameId, NumberId, PatternId, id};
use crate::draft::Draft;
use crate::error::SchemaError;
use crate::location::{Location, LocationId, Locations};

id! {
    /// A schema node.
    NodeId
}
id! {
    /// A schema resource: a schema with an address of its own.
    ResourceId
}

/// The JSON types, with the two booleans apart: the first byte of a value
/// tells which of these it is, and `null`, `true` and `false` have one value
/// each.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum JsonType {
    /// `null`.
    Null,
    /// `false`.
    False,
    /// `true`.
    True,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl JsonType {
    /// Every type.
    pub const ALL: [JsonType; 7] = [
        JsonType::Null,
        JsonType::False,
        JsonType::True,
        JsonType::Number,
        JsonType::String,
        JsonType::Array,
        JsonType::Object,
    ];

    /// The position in [`JsonType::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// The type that a value starting with this byte has.
    pub fn of_first_byte(byte: u8) -> Option<JsonType> {
        Some(match byte {
            b'n' => JsonType::Null,
            b'f' => JsonType::False,
            b't' => JsonType::True,
            b'-' | b'0'..=b'9' => JsonType::Number,
            b'"' => JsonType::String,
            b'[' => JsonType::Array,
            b'{' => JsonType::Object,
            _ => return None,
        })
    }
}

/// Which numbers a `type` keyword allows.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum NumberRule {
    /// None.
    None,
    /// Integers by value: `1.0` is one.
    Integer,
    /// Integers by spelling, as in draft 4: `1.0` is none.
    IntegerText,
    /// All.
    All,
}

/// The types that a `type` keyword allows.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct TypeSet {
    /// Bit `t` for [`JsonType`] number `t`; numbers follow `numbers`.
    pub(crate) bits: u8,
    /// Which numbers are allowed.
    pub numbers: NumberRule,
}

impl TypeSet {
    /// Whether values of this type are allowed, numbers aside.
    pub fn contains(self, json_type: JsonType) -> bool {
        self.bits & (1 << json_type.index()) != 0
    }
}

/// One constraint of a schema object.
#[derive(Clone, Debug)]
pub enum Keyword {
    /// `$ref`.
    Ref(NodeId),
    /// `$dynamicRef`; with an anchor where the dynamic scope decides.
    DynamicRef {
        /// What the reference means statically.
        target: NodeId,
        /// The anchor to look for in the dynamic scope.
        anchor: Option<NameId>,
    },
    /// `$recursiveRef`; dynamic where its target says so.
    RecursiveRef {
        /// What the reference means statically.
        target: NodeId,
        /// Whether the dynamic scope decides.
        dynamic: bool,
    },
    /// `type`.
    Type(TypeSet),
    /// `enum`.
    Enum(Box<[ConstantId]>),
    /// `const`.
    Const(ConstantId),
    /// `multipleOf`.
    MultipleOf(NumberId),
    /// `minimum`, `exclusiveMinimum`.
    Minimum {
        /// The bound.
        limit: NumberId,
        /// Whether the bound itself is outside.
        exclusive: bool,
    },
    /// `maximum`, `exclusiveMaximum`.
    Maximum {
        /// The bound.
        limit: NumberId,
        /// Whether the bound itself is outside.
        exclusive: bool,
    },
    /// `minLength`.
    MinLength(u64),
    /// `maxLength`.
    MaxLength(u64),
    /// `pattern`.
    Pattern(PatternId),
    /// `format`, where the policy asserts it.
    Format(FormatId),
    /// `properties`.
    Properties(Box<[(NameId, NodeId)]>),
    /// `patternProperties`.
    PatternProperties(Box<[(PatternId, NodeId)]>),
    /// `additionalProperties`.
    AdditionalProperties {
        /// What the other members must satisfy.
        node: NodeId,
        /// The names of `properties` beside it.
        names: Box<[NameId]>,
        /// The patterns of `patternProperties` beside it.
        patterns: Box<[PatternId]>,
    },
    /// `propertyNames`.
    PropertyNames(NodeId),
    /// `required`.
    Required(Box<[NameId]>),
    /// `minProperties`.
    MinProperties(u64),
    /// `maxProperties`.
    MaxProperties(u64),
    /// `dependentRequired`, and `dependencies` on names.
    DependentRequired(Box<[(NameId, Box<[NameId]>)]>),
    /// `dependentSchemas`, and `dependencies` on schemas.
    DependentSchemas(Box<[(NameId, NodeId)]>),
    /// `prefixItems`, and `items` with an array.
    PrefixItems(Box<[NodeId]>),
    /// `items` with a schema, and `additionalItems`.
    Items {
        /// The first index that it applies to.
        from: u64,
        /// What those items must satisfy.
        node: NodeId,
    },
    /// `contains` with its bounds.
    Contains {
        /// What is counted.
        node: NodeId,
        /// How many there must be.
        min: u64,
        /// How many there may be.
        max: Option<u64>,
        /// Whether a match counts as evaluated (2020-12).
        evaluates: bool,
    },
    /// `minItems`.
    MinItems(u64),
    /// `maxItems`.
    MaxItems(u64),
    /// `uniqueItems: true`.
    UniqueItems,
    /// `unevaluatedProperties`.
    UnevaluatedProperties(NodeId),
    /// `unevaluatedItems`.
    UnevaluatedItems(NodeId),
    /// `allOf`.
    AllOf(Box<[NodeId]>),
    /// `anyOf`.
    AnyOf(Box<[NodeId]>),
    /// `oneOf`.
    OneOf(Box<[NodeId]>),
    /// `not`.
    Not(NodeId),
    /// `if` with `then` and `else`.
    If {
        /// The condition.
        condition: NodeId,
        /// What holds where the condition does.
        then: Option<NodeId>,
        /// What holds where it does not.
        otherwise: Option<NodeId>,
    },
}

/// What a schema node says.
#[derive(Clone, Copy, Debug)]
pub enum NodeKind {
    /// `true`, `{}`, or annotations only.
    Any,
    /// `false`.
    Never,
    /// Constraints ([`Schema::keywords`]), in the order of the document.
    Keywords {
        /// Where they begin among those of all nodes.
        start: u32,
        /// Where they end.
        end: u32,
    },
}

/// A schema node.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it says.
    pub kind: NodeKind,
    /// The resource that it belongs to.
    pub resource: ResourceId,
    pub(crate) location: LocationId,
}

/// What a resource offers to the dynamic scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct DynamicScope {
    /// The `$dynamicAnchor`s that some `$dynamicRef` names.
    pub(crate) anchors: Vec<(NameId, NodeId)>,
    /// The root, if it has `$recursiveAnchor: true`.
    pub(crate) recursive: Option<NodeId>,
}

impl DynamicScope {
    /// Whether entering the resource can change what a reference means.
    pub(crate) fn matters(&self) -> bool {
        !self.anchors.is_empty() || self.recursive.is_some()
    }
}

/// Something that the author of a schema may want to know.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    /// The keyword.
    pub keyword: String,
    /// Where it stands.
    pub location: Location,
    /// What happened to it.
    pub reason: WarningReason,
}

/// What happened to a keyword.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum WarningReason {
    /// It is not a keyword of the draft, so it constrains nothing.
    UnknownKeyword,
    /// It stands beside `$ref` in a draft where `$ref` hides it.
    HiddenByRef,
    /// It does nothing without the keyword that it belongs to.
    WithoutPartner,
    /// The format is not known, so it constrains nothing.
    UnknownFormat,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.reason {
            WarningReason::UnknownKeyword => "is not a keyword of the draft",
            WarningReason::HiddenByRef => {
                "is hidden by the $ref beside it in this draft"
            }
            WarningReason::WithoutPartner => {
                "does nothing without the keyword that it belongs to"
            }
            WarningReason::UnknownFormat => "names a format that is not known",
        };
        write!(
            f,
            "`{}` at {} {what} and was not enforced",
            self.keyword, self.location
        )
    }
}

/// A parsed schema: every reachable node checked, every reference resolved.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) nodes: Vec<Node>,
    /// Those of all nodes, one node after the other.
    pub(crate) keywords: Vec<Keyword>,
    pub(crate) scopes: Vec<DynamicScope>,
    pub(crate) root: NodeId,
    pub(crate) draft: Draft,
    pub(crate) locations: Locations,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) left_out: Vec<SchemaError>,
    /// Every keyword that occurs, with its first place.
    pub(crate) used: Vec<(&'static str, LocationId)>,
    /// Whether any reference depends on the dynamic scope.
    pub(crate) is_dynamic: bool,
}

impl Schema {
    /// The node of the whole schema.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// The draft of the whole schema.
    pub fn draft(&self) -> Draft {
        self.draft
    }

    /// Returns a node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The constraints of a node; none for `true` and `false`.
    pub fn keywords(&self, id: NodeId) -> &[Keyword] {
        match self.node(id).kind {
            NodeKind::Any | NodeKind::Never => &[],
            NodeKind::Keywords { start, end } => {
                &self.keywords[start as usize..end as usize]
            }
        }
    }

    /// How many nodes are reachable.
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Where a node stands.
    pub fn location(&self, id: NodeId) -> Location {
        self.locations.get(self.node(id).location)
    }

    /// What the author may want to know.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The keywords that were left out because they cannot be enforced, as
    /// the errors that they are where [`Options::lenient`] is not set.
    ///
    /// [`Options::lenient`]: super::Options::lenient
    pub fn left_out(&self) -> &[SchemaError] {
        &self.left_out
    }

    /// The place where a keyword first occurs.
    pub fn first_use(&self, keyword: &str) -> Option<Location> {
        let (_, place) = self.used.iter().find(|(k, _)| *k == keyword)?;
        Some(self.locations.get(*place))
    }

    /// Every keyword that occurs, in the order of first occurrence.
    pub fn used_keywords(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.used.iter().map(|(keyword, _)| *keyword)
    }
}
