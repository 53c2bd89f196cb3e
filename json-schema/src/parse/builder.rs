//! Turns documents into nodes: a worklist from the root along references.

use maskwright_grammar_core::{interrupt, util::FxHashMap};

use super::json::Json;
use super::pool::{NameId, Pool};
use super::resources::{Resources, Target, address_of};
use super::schema::{
    DynamicScope, Keyword, Node, NodeId, NodeKind, ResourceId, Schema,
    Warning, WarningReason,
};
use super::{Limits, Options};
use crate::error::{ErrorKind, SchemaError};
use crate::keywords;
use crate::location::LocationId;

/// How many warnings are kept.
const MAX_WARNINGS: usize = 1_000;

/// A schema under construction.
pub(crate) struct Builder<'a> {
    pub(crate) options: &'a Options,
    pub(crate) resources: Resources<'a>,
    pub(crate) pool: Pool,
    pub(crate) used: Vec<(&'static str, LocationId)>,
    pub(crate) is_recursive: bool,
    warnings: Vec<Warning>,
    left_out: Vec<SchemaError>,
    nodes: Vec<Node>,
    /// Those of all nodes, one node after the other.
    keywords: Vec<Keyword>,
    values: Vec<&'a Json<'a>>,
    ids: FxHashMap<usize, NodeId>,
    /// The anchors that some `$dynamicRef` looks for.
    anchors: Vec<NameId>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(
        options: &'a Options,
        resources: Resources<'a>,
    ) -> Builder<'a> {
        Builder {
            options,
            resources,
            pool: Pool::default(),
            used: Vec::new(),
            is_recursive: false,
            warnings: Vec::new(),
            left_out: Vec::new(),
            nodes: Vec::with_capacity(32),
            keywords: Vec::with_capacity(64),
            values: Vec::with_capacity(32),
            ids: FxHashMap::default(),
            anchors: Vec::new(),
        }
    }

    /// Returns the node of a schema, to be read later if it is new.
    pub(crate) fn node(
        &mut self,
        target: Target<'a>,
    ) -> Result<NodeId, SchemaError> {
        let address = address_of(target.value);
        if let Some(&id) = self.ids.get(&address) {
            return Ok(id);
        }
        if let Err(error) = interrupt::check() {
            let place = self.resources.locations.get(target.location);
            return Err(SchemaError::new(
                ErrorKind::Interrupted(error),
                place,
            ));
        }
        let Limits { max_nodes, .. } = self.options.limits;
        if self.nodes.len() >= max_nodes {
            let place = self.resources.locations.get(target.location);
            let (limit, value) = (max_nodes as u64, max_nodes as u64 + 1);
            return Err(SchemaError::limit(
                "number of schema nodes",
                limit,
                value,
                place,
            ));
        }
        let id = NodeId::new(self.nodes.len());
        self.ids.insert(address, id);
        self.values.push(target.value);
        self.nodes.push(Node {
            kind: NodeKind::Any,
            resource: target.resource,
            location: target.location,
        });
        Ok(id)
    }

    /// Makes what a node says of its constraints.
    pub(crate) fn keywords(
        &mut self,
        keywords: impl IntoIterator<Item = Keyword>,
    ) -> NodeKind {
        let end = |keywords: &[Keyword]| {
            u32::try_from(keywords.len()).unwrap_or(u32::MAX)
        };
        let start = end(&self.keywords);
        self.keywords.extend(keywords);
        let end = end(&self.keywords);
        if start == end {
            return NodeKind::Any;
        }
        NodeKind::Keywords { start, end }
    }

    /// Notes that the dynamic scope is searched for an anchor.
    pub(crate) fn dynamic_anchor(&mut self, name: NameId) {
        if !self.anchors.contains(&name) {
            self.anchors.push(name);
        }
    }

    pub(crate) fn warn(
        &mut self,
        keyword: &str,
        location: LocationId,
        reason: WarningReason,
    ) {
        if self.warnings.len() < MAX_WARNINGS {
            let location = self.resources.locations.get(location);
            let location = location.child(keyword);
            let keyword = keyword.to_owned();
            self.warnings.push(Warning { keyword, location, reason });
        }
    }

    /// Leaves out a keyword that cannot be enforced.
    ///
    /// # Errors
    ///
    /// Fails with `error` unless that is what was asked for.
    pub(crate) fn leave_out(
        &mut self,
        error: SchemaError,
    ) -> Result<(), SchemaError> {
        if !self.options.lenient {
            return Err(error);
        }
        // A pattern is read for its own keyword and those beside it.
        if !self.left_out.contains(&error) {
            self.left_out.push(error);
        }
        Ok(())
    }

    /// Reads everything that can be reached from a document's root.
    pub(crate) fn build(
        mut self,
        root: ResourceId,
    ) -> Result<(Schema, Pool), SchemaError> {
        let draft = self.resources.get(root).dialect.draft;
        let root = self.node(self.resources.get(root).root)?;
        let mut next = 0;
        let mut scopes = Vec::new();
        loop {
            while next < self.nodes.len() {
                self.read(next)?;
                next += 1;
            }
            // Dynamic references may reach more, in every resource loaded.
            scopes = self.scopes(scopes)?;
            if next == self.nodes.len() {
                break;
            }
        }
        let schema = Schema {
            is_dynamic: scopes.iter().any(DynamicScope::matters),
            nodes: self.nodes,
            keywords: self.keywords,
            scopes,
            root,
            draft,
            locations: self.resources.locations,
            warnings: self.warnings,
            left_out: self.left_out,
            used: self.used,
        };
        if let Some(node) = in_place_cycle(&schema) {
            let place = schema.location(node);
            return Err(SchemaError::new(ErrorKind::InPlaceCycle, place));
        }
        Ok((schema, self.pool))
    }

    fn read(&mut self, index: usize) -> Result<(), SchemaError> {
        let Node { resource, location, .. } = self.nodes[index];
        let kind = match self.values[index] {
            Json::Bool(true) => NodeKind::Any,
            Json::Object(map) => {
                keywords::read(self, map, resource, location)?
            }
            _ => NodeKind::Never,
        };
        self.nodes[index].kind = kind;
        Ok(())
    }

    fn scopes(
        &mut self,
        old: Vec<DynamicScope>,
    ) -> Result<Vec<DynamicScope>, SchemaError> {
        if self.anchors.is_empty() && !self.is_recursive {
            return Ok(old);
        }
        let mut scopes = Vec::with_capacity(self.resources.all.len());
        for index in 0..self.resources.all.len() {
            let mut scope = DynamicScope::default();
            let resource = &self.resources.all[index];
            let (root, recursive) = (resource.root, resource.recursive);
            for (anchor, target) in resource.dynamic.clone() {
                let name = self.pool.name(anchor);
                if self.anchors.contains(&name) {
                    scope.anchors.push((name, self.node(target)?));
                }
            }
            if recursive && self.is_recursive {
                scope.recursive = Some(self.node(root)?);
            }
            scopes.push(scope);
        }
        Ok(scopes)
    }
}

/// Calls `each` for the nodes that a node applies to the same value.
pub(crate) fn in_place(keyword: &Keyword, mut each: impl FnMut(NodeId)) {
    match keyword {
        Keyword::Ref(node)
        | Keyword::Not(node)
        | Keyword::DynamicRef { target: node, anchor: None }
        | Keyword::RecursiveRef { target: node, dynamic: false } => {
            each(*node);
        }
        Keyword::AllOf(nodes)
        | Keyword::AnyOf(nodes)
        | Keyword::OneOf(nodes) => nodes.iter().copied().for_each(each),
        Keyword::If { condition, then, otherwise } => {
            each(*condition);
            then.iter().chain(otherwise).copied().for_each(each);
        }
        Keyword::DependentSchemas(members) => {
            members.iter().for_each(|(_, node)| each(*node));
        }
        // What other dynamic references lead to is known when expanding.
        _ => {}
    }
}

/// Finds a node that applies itself to the same value.
fn in_place_cycle(schema: &Schema) -> Option<NodeId> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; schema.nodes.len()];
    let mut stack = Vec::new();
    for start in 0..schema.nodes.len() {
        stack.push((NodeId::new(start), false));
        while let Some((node, leave)) = stack.pop() {
            let mark = &mut marks[node.index()];
            if leave {
                *mark = Mark::Done;
                continue;
            }
            match *mark {
                Mark::Done => continue,
                Mark::Open => return Some(node),
                Mark::New => *mark = Mark::Open,
            }
            stack.push((node, true));
            for keyword in schema.keywords(node) {
                in_place(keyword, |child| stack.push((child, false)));
            }
        }
    }
    None
}
