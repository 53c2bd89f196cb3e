//! The terms of one language: nodes of the expression and continuations.
//!
//! A *node* is a hash-consed part of the expression. A *continuation* is
//! what is still to be matched up to the end of the text: a list of nodes
//! that ends in one of three ways. Counted repetition is a node with two
//! numbers, and matching one round makes the node with both one less, so a
//! count of a thousand million is as small as a count of two.

use std::sync::Arc;

use super::class::CharSet;
use super::intern::Interner;

/// The number of a [`CharSet`] in its language.
pub(super) type ClassId = u32;
/// The number of a [`Node`] in its language.
pub(super) type NodeId = u32;
/// The number of a [`Cont`] in its language.
pub(super) type ContId = u32;

/// A repetition without an upper bound.
pub(super) const UNBOUNDED: u32 = u32::MAX;
/// A length without an upper bound.
pub(super) const INFINITE: u64 = u64::MAX;
/// Finite lengths saturate here.
const MAX_FINITE: u64 = u64::MAX / 4;

/// The class of no character and the class of all.
pub(super) const ANY: ClassId = 0;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum Node {
    /// Matches nothing.
    Empty,
    /// Matches the empty string.
    Epsilon,
    Class(ClassId),
    Cat(NodeId, NodeId),
    /// Sorted, distinct.
    Alt(Arc<[NodeId]>),
    Rep {
        body: NodeId,
        min: u32,
        max: u32,
    },
    /// What follows the first `depth` characters of the words `lo..hi` of a
    /// list; they agree on those. Offsets are in bytes.
    Words {
        list: u32,
        lo: u32,
        hi: u32,
        depth: u32,
    },
    Start,
    End,
    Boundary {
        word: ClassId,
        negative: bool,
    },
    /// The character before is in the class.
    Previous {
        class: ClassId,
        negative: bool,
    },
    Ahead {
        body: NodeId,
        negative: bool,
    },
    /// The side automaton with this number accepts here.
    Behind {
        index: u32,
        negative: bool,
    },
    And(Arc<[NodeId]>),
    Not(NodeId),
}

pub(super) const EMPTY: NodeId = 0;
pub(super) const EPSILON: NodeId = 1;
/// Any string: `ANY` repeated.
pub(super) const ANY_STRING: NodeId = 3;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum Cont {
    /// The text must end here.
    Nil,
    /// Anything may follow.
    Top,
    /// The look-behind that is being tracked ends here.
    Here,
    /// There is no way on.
    Fail,
    Cons(NodeId, ContId),
}

pub(super) const NIL: ContId = 0;
pub(super) const TOP: ContId = 1;
pub(super) const HERE: ContId = 2;
pub(super) const FAIL: ContId = 3;

/// What is known of a node, a continuation or a formula without any search.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Info {
    /// No match is shorter.
    pub(super) min: u64,
    /// No match is longer.
    pub(super) max: u64,
    /// Made of classes, concatenation, alternation and repetition only. Then
    /// it is not empty, and `min` and `max` are attained.
    pub(super) plain: bool,
    /// Plain, and every length from `min` to `max` is attained.
    pub(super) dense: bool,
    /// What it matches depends on the text before.
    pub(super) context: bool,
    /// Every match holds a start-of-text assertion.
    pub(super) needs_start: bool,
    /// A continuation that ends in `Here`.
    pub(super) here: bool,
}

impl Info {
    pub(super) const fn exactly(length: u64) -> Info {
        Info {
            min: length,
            max: length,
            plain: true,
            dense: true,
            context: false,
            needs_start: false,
            here: false,
        }
    }

    pub(super) const fn any() -> Info {
        Info { max: INFINITE, ..Info::exactly(0) }
    }

    fn assertion(context: bool) -> Info {
        Info { plain: false, dense: false, context, ..Info::exactly(0) }
    }

    /// Matches the empty string for certain.
    pub(super) fn is_nullable(&self) -> bool {
        self.plain && self.min == 0
    }

    pub(super) fn then(self, next: Info) -> Info {
        Info {
            min: (self.min + next.min).min(MAX_FINITE),
            max: add_max(self.max, next.max),
            plain: self.plain && next.plain,
            dense: self.dense && next.dense,
            context: self.context || next.context,
            needs_start: self.needs_start || next.needs_start,
            here: next.here,
        }
    }

    /// Either of these. The order does not matter.
    pub(super) fn either(parts: &[Info]) -> Info {
        let mut out = Info {
            min: INFINITE,
            max: 0,
            plain: true,
            dense: true,
            context: false,
            needs_start: true,
            here: false,
        };
        for part in parts {
            out.min = out.min.min(part.min);
            out.max = out.max.max(part.max);
            out.plain &= part.plain;
            out.context |= part.context;
            out.needs_start &= part.needs_start;
            out.here |= part.here;
        }
        out.dense = out.plain && parts.iter().all(|part| part.dense);
        if out.dense {
            let mut windows: Vec<(u64, u64)> =
                parts.iter().map(|part| (part.min, part.max)).collect();
            windows.sort_unstable();
            let mut reached = out.min;
            for (min, max) in windows {
                out.dense &= min <= reached.saturating_add(1);
                reached = reached.max(max);
            }
        }
        out
    }
}

fn add_max(a: u64, b: u64) -> u64 {
    if a == INFINITE || b == INFINITE {
        INFINITE
    } else {
        (a + b).min(MAX_FINITE)
    }
}

fn scale_max(length: u64, times: u32) -> u64 {
    match (length, times) {
        (0, _) | (_, 0) => 0,
        (INFINITE, _) | (_, UNBOUNDED) => INFINITE,
        _ => length.saturating_mul(u64::from(times)).min(MAX_FINITE),
    }
}

/// All nodes, classes and continuations of one language.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) classes: Interner<CharSet>,
    pub(super) nodes: Interner<Node>,
    node_info: Vec<Info>,
    pub(super) conts: Interner<Cont>,
    cont_info: Vec<Info>,
    pub(super) lists: Interner<Arc<[Box<str>]>>,
}

impl Terms {
    pub(super) fn new() -> Terms {
        let mut terms = Terms {
            classes: Interner::new(),
            nodes: Interner::new(),
            node_info: Vec::new(),
            conts: Interner::new(),
            cont_info: Vec::new(),
            lists: Interner::new(),
        };
        terms.classes.intern(CharSet::any());
        // The constants above are these positions.
        terms.node(Node::Empty);
        terms.node(Node::Epsilon);
        let any = terms.node(Node::Class(ANY));
        terms.node(Node::Rep { body: any, min: 0, max: UNBOUNDED });
        for cont in [Cont::Nil, Cont::Top, Cont::Here, Cont::Fail] {
            terms.cont(cont);
        }
        terms
    }

    pub(super) fn class(&mut self, set: CharSet) -> ClassId {
        self.classes.intern(set).0
    }

    pub(super) fn node_info(&self, node: NodeId) -> Info {
        self.node_info[node as usize]
    }

    pub(super) fn cont_info(&self, cont: ContId) -> Info {
        self.cont_info[cont as usize]
    }

    /// Returns the id of a node that is already in its simplest form.
    pub(super) fn node(&mut self, node: Node) -> NodeId {
        let (id, new) = self.nodes.intern(node);
        if new {
            let info = self.compute_node_info(id);
            self.node_info.push(info);
        }
        id
    }

    fn compute_node_info(&self, id: NodeId) -> Info {
        match &self.nodes[id] {
            Node::Empty => {
                Info { plain: false, dense: false, ..Info::exactly(0) }
            }
            Node::Epsilon => Info::exactly(0),
            Node::Class(_) => Info::exactly(1),
            Node::Cat(a, b) => self.node_info(*a).then(self.node_info(*b)),
            Node::Alt(parts) => {
                let infos: Vec<Info> =
                    parts.iter().map(|&part| self.node_info(part)).collect();
                Info::either(&infos)
            }
            Node::Rep { body, min, max } => {
                self.repeat_info(*body, *min, *max)
            }
            Node::Words { list, lo, hi, depth } => {
                self.words_info(*list, *lo, *hi, *depth)
            }
            Node::Start => Info { needs_start: true, ..Info::assertion(true) },
            Node::End => Info::assertion(false),
            Node::Boundary { .. }
            | Node::Previous { .. }
            | Node::Behind { .. } => Info::assertion(true),
            Node::Ahead { body, negative } => {
                let body = self.node_info(*body);
                Info {
                    needs_start: body.needs_start && !negative,
                    ..Info::assertion(body.context)
                }
            }
            Node::And(parts) => {
                let mut info =
                    Info { max: INFINITE, ..Info::assertion(false) };
                for &part in &**parts {
                    let part = self.node_info(part);
                    info.min = info.min.max(part.min);
                    info.max = info.max.min(part.max);
                    info.context |= part.context;
                }
                info
            }
            Node::Not(body) => Info {
                max: INFINITE,
                ..Info::assertion(self.node_info(*body).context)
            },
        }
    }

    fn repeat_info(&self, body: NodeId, min: u32, max: u32) -> Info {
        let body = self.node_info(body);
        let least = body.min.saturating_mul(u64::from(min)).min(MAX_FINITE);
        // The windows of `i` and `i + 1` rounds touch, worst at the fewest.
        let slack = u64::from(min)
            .saturating_mul(body.max.saturating_sub(body.min))
            .saturating_add(1);
        Info {
            min: least,
            max: scale_max(body.max, max),
            plain: body.plain,
            dense: body.dense && (min == max || slack >= body.min),
            context: body.context,
            needs_start: body.needs_start && min > 0,
            here: false,
        }
    }

    fn words_info(&self, list: u32, lo: u32, hi: u32, depth: u32) -> Info {
        let words = &self.lists[list][lo as usize..hi as usize];
        let infos: Vec<Info> = words
            .iter()
            .map(|word| {
                let rest = word.get(depth as usize..).unwrap_or_default();
                Info::exactly(rest.chars().count() as u64)
            })
            .collect();
        Info::either(&infos)
    }

    /// Returns a bound on the shortest completion of whatever can be
    /// completed of an expression that is `plain`.
    pub(super) fn slack(&self, root: NodeId) -> u64 {
        // Of each node, the same once something of it was read. An operand
        // is interned before what it is an operand of.
        let mut slacks: Vec<u64> = Vec::with_capacity(root as usize + 1);
        for id in 0..=root {
            let of = |id: NodeId| slacks[id as usize];
            let slack = match &self.nodes[id] {
                &Node::Cat(a, b) => {
                    of(a).saturating_add(self.node_info(b).min).max(of(b))
                }
                Node::Alt(parts) => {
                    parts.iter().map(|&part| of(part)).max().unwrap_or(0)
                }
                // The rest of one round, and the rounds that are owed.
                &Node::Rep { body, min, .. } => {
                    let owed = u64::from(min.saturating_sub(1));
                    let round = self.node_info(body).min;
                    of(body).saturating_add(round.saturating_mul(owed))
                }
                Node::Words { .. } => self.node_info(id).max.saturating_sub(1),
                _ => 0,
            };
            slacks.push(slack);
        }
        slacks.last().copied().unwrap_or(0).max(self.node_info(root).min)
    }

    fn cont(&mut self, cont: Cont) -> ContId {
        let info = match cont {
            Cont::Nil => Info::exactly(0),
            Cont::Top => Info::any(),
            Cont::Here => {
                Info { max: INFINITE, here: true, ..Info::assertion(false) }
            }
            Cont::Fail => Info::assertion(false),
            Cont::Cons(node, tail) => {
                self.node_info(node).then(self.cont_info(tail))
            }
        };
        let (id, new) = self.conts.intern(cont);
        if new {
            self.cont_info.push(info);
        }
        id
    }

    /// Returns the continuation that matches `node` and then `tail`.
    pub(super) fn cons(&mut self, node: NodeId, tail: ContId) -> ContId {
        if tail == FAIL {
            return FAIL;
        }
        match self.nodes[node] {
            Node::Epsilon => return tail,
            Node::Empty => return FAIL,
            _ => {}
        }
        if tail == TOP && self.node_info(node).plain {
            // What follows is free, so the fewest rounds are enough.
            match self.nodes[node] {
                _ if self.node_info(node).min == 0 => return TOP,
                Node::Rep { body, min, max } if min < max => {
                    let node = self.repeat(body, min, min);
                    return self.cons(node, tail);
                }
                _ => {}
            }
        }
        if tail == NIL && node == ANY_STRING {
            return TOP;
        }
        if let (Node::Rep { body, min, max }, &Cont::Cons(next, rest)) =
            (&self.nodes[node], &self.conts[tail])
            && let Node::Rep { body: same, min: min2, max: max2 } =
                &self.nodes[next]
            && body == same
            && let Some(min) = add_count(*min, *min2)
            && let Some(max) = add_bound(*max, *max2)
        {
            let merged = Node::Rep { body: *body, min, max };
            let merged = self.node(merged);
            return self.cons(merged, rest);
        }
        self.cont(Cont::Cons(node, tail))
    }

    pub(super) fn cat(&mut self, first: NodeId, second: NodeId) -> NodeId {
        match (&self.nodes[first], &self.nodes[second]) {
            (Node::Empty, _) | (_, Node::Empty) => EMPTY,
            (Node::Epsilon, _) => second,
            (_, Node::Epsilon) => first,
            _ => match self.join_counts(first, second) {
                Some((joined, rest)) => self.cat(joined, rest),
                None => self.node(Node::Cat(first, second)),
            },
        }
    }

    /// Joins `x{a,b}` and `x{c,d}` that stand beside each other. Returns the
    /// joined repetition and what follows it.
    fn join_counts(
        &mut self,
        first: NodeId,
        second: NodeId,
    ) -> Option<(NodeId, NodeId)> {
        let (next, rest) = match self.nodes[second] {
            Node::Cat(next, rest) => (next, rest),
            _ => (second, EPSILON),
        };
        let (
            &Node::Rep { body, min, max },
            &Node::Rep { body: same, min: min2, max: max2 },
        ) = (&self.nodes[first], &self.nodes[next])
        else {
            return None;
        };
        if body != same {
            return None;
        }
        let min = add_count(min, min2)?;
        let max = add_bound(max, max2)?;
        Some((self.node(Node::Rep { body, min, max }), rest))
    }

    /// Is some class repeated more than `count` times?
    pub(super) fn counts_classes(&self, count: u32) -> bool {
        (0..self.nodes.len()).any(|id| {
            let id = u32::try_from(id).unwrap_or(u32::MAX);
            match self.nodes[id] {
                Node::Rep { body, min, max } => {
                    matches!(self.nodes[body], Node::Class(_))
                        && (min > count || (max > count && max != UNBOUNDED))
                }
                _ => false,
            }
        })
    }

    /// Returns the alternation, with classes joined and duplicates gone.
    pub(super) fn alternate(&mut self, parts: &[NodeId]) -> NodeId {
        let mut rest = Vec::with_capacity(parts.len());
        let mut ranges = Vec::new();
        for &part in parts {
            match &self.nodes[part] {
                Node::Empty => {}
                Node::Class(class) => {
                    ranges.extend_from_slice(self.classes[*class].ranges());
                }
                Node::Alt(inner) => {
                    for &part in inner.iter() {
                        match &self.nodes[part] {
                            Node::Class(class) => ranges.extend_from_slice(
                                self.classes[*class].ranges(),
                            ),
                            _ => rest.push(part),
                        }
                    }
                }
                _ => rest.push(part),
            }
        }
        if !ranges.is_empty() {
            let class = self.class(CharSet::new(ranges));
            rest.push(self.node(Node::Class(class)));
        }
        rest.sort_unstable();
        rest.dedup();
        if rest.contains(&EPSILON)
            && rest.iter().any(|&part| {
                part != EPSILON && self.node_info(part).is_nullable()
            })
        {
            rest.retain(|&part| part != EPSILON);
        }
        match *rest {
            [] => EMPTY,
            [only] => only,
            [EPSILON, other] => self.repeat(other, 0, 1),
            _ => self.node(Node::Alt(rest.into())),
        }
    }

    /// Returns the repetition, with nested counts multiplied out where that
    /// is exact.
    pub(super) fn repeat(
        &mut self,
        body: NodeId,
        min: u32,
        max: u32,
    ) -> NodeId {
        let min = if self.node_info(body).is_nullable() { 0 } else { min };
        match self.nodes[body] {
            _ if max == 0 => return EPSILON,
            Node::Empty if min == 0 => return EPSILON,
            Node::Empty | Node::Epsilon => return body,
            _ if min == 1 && max == 1 => return body,
            // All counts from `min * a` to `max * b` are reached.
            Node::Rep { body: inner, min: a, max: b }
                if a <= 1 || (a == b && min == max) =>
            {
                if let Some(least) = min.checked_mul(a)
                    && let Some(most) = scale_bound(b, max)
                {
                    return self.repeat(inner, least, most);
                }
            }
            _ => {}
        }
        self.node(Node::Rep { body, min, max })
    }

    pub(super) fn intersect(&mut self, parts: &[NodeId]) -> NodeId {
        let mut parts = parts.to_vec();
        parts.sort_unstable();
        parts.dedup();
        parts.retain(|&part| part != ANY_STRING);
        match *parts {
            [] => ANY_STRING,
            _ if parts.contains(&EMPTY) => EMPTY,
            [only] => only,
            _ => self.node(Node::And(parts.into())),
        }
    }

    pub(super) fn complement(&mut self, body: NodeId) -> NodeId {
        match self.nodes[body] {
            Node::Not(inner) => inner,
            Node::Empty => ANY_STRING,
            _ if body == ANY_STRING => EMPTY,
            _ => self.node(Node::Not(body)),
        }
    }

    /// Returns the expression for what follows `depth` bytes of some words
    /// of a list.
    pub(super) fn words(
        &mut self,
        list: u32,
        lo: u32,
        hi: u32,
        depth: u32,
    ) -> NodeId {
        if lo == hi {
            return EMPTY;
        }
        let first = &self.lists[list][lo as usize];
        if lo + 1 == hi && first.len() == depth as usize {
            return EPSILON;
        }
        self.node(Node::Words { list, lo, hi, depth })
    }
}

fn add_count(a: u32, b: u32) -> Option<u32> {
    a.checked_add(b).filter(|&sum| sum != UNBOUNDED)
}

fn add_bound(a: u32, b: u32) -> Option<u32> {
    if a == UNBOUNDED || b == UNBOUNDED {
        Some(UNBOUNDED)
    } else {
        add_count(a, b)
    }
}

fn scale_bound(a: u32, b: u32) -> Option<u32> {
    match (a, b) {
        (0, _) | (_, 0) => Some(0),
        (UNBOUNDED, _) | (_, UNBOUNDED) => Some(UNBOUNDED),
        _ => a.checked_mul(b).filter(|&product| product != UNBOUNDED),
    }
}
