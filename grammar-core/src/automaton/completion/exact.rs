//! The search over exact configurations, where rows were not enough.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{Completions, Trial, pleasant, try_bytes, useful_row};
use crate::{
    automaton::{AutomatonError, Configuration, Machine, StackLimits, Symbol},
    util::FxHashSet,
};

/// A configuration that was reached, and the bytes that led to it.
struct Node {
    bytes: Vec<u8>,
    configuration: Configuration,
    /// What rows say is left; not asked yet where they could not tell one
    /// byte before.
    rest: Option<Vec<u8>>,
    /// How many choices of its kind were passed over on the way here. Nine
    /// digits seldom do what the tenth does not.
    n_passed: usize,
    /// How many times registers refused what rows said on the way here.
    n_refused: usize,
}

/// The order of nodes: lower ranks first.
type Rank = (bool, Reverse<usize>, usize);

/// Numbers of nodes, by what an order says of them and by rank.
type Queue = BinaryHeap<Reverse<(Reverse<usize>, Rank, usize)>>;

/// How many orders there are.
const N_ORDERS: usize = 3;

/// Where a text was refused, or what was to be tried there.
#[derive(Clone, Copy)]
struct Reached<'a> {
    bytes: &'a [u8],
    configuration: &'a Configuration,
    n_passed: usize,
    n_refused: usize,
    /// Whether to ask rows what is left.
    ask: bool,
}

impl Node {
    /// What comes before the rank in one of the orders: nothing, or whether
    /// rows were refused, or how many times. Rows that were wrong once say the
    /// same of every other way to that place, and ranks rely on rows.
    fn order(&self, order: usize) -> usize {
        match order {
            0 => 0,
            1 => self.n_refused.min(1),
            _ => self.n_refused,
        }
    }

    /// The shortest text first, and fewer choices passed over; where rows
    /// know no way to the end, whatever has come furthest.
    fn rank(&self) -> Rank {
        let n_read = self.bytes.len();
        match &self.rest {
            Some(rest) => {
                let length = n_read + rest.len();
                (false, Reverse(0), length + self.n_passed)
            }
            None => (true, Reverse(n_read), 0),
        }
    }
}

/// The configurations to look at.
struct Frontier<'a> {
    known: &'a mut Completions,
    machine: Machine<'a>,
    limits: StackLimits,
    /// In the order of discovery; none that was looked at.
    nodes: Vec<Option<Node>>,
    /// Their numbers in the orders of [`Node::order`], which take turns.
    orders: [Queue; N_ORDERS],
    /// The bytes of every node that was made.
    seen: FxHashSet<Vec<u8>>,
}

/// Returns bytes after which `configuration` accepts, if they are found
/// before the effort is spent.
pub(super) fn search(
    known: &mut Completions,
    machine: Machine<'_>,
    limits: StackLimits,
    configuration: &Configuration,
) -> Result<Option<Vec<u8>>, AutomatonError> {
    let n_nodes = known.effort.exact;
    let mut frontier = Frontier {
        known,
        machine,
        limits,
        nodes: Vec::new(),
        orders: Default::default(),
        seen: FxHashSet::default(),
    };
    let root = Reached {
        bytes: &[],
        configuration,
        n_passed: 0,
        n_refused: 0,
        ask: true,
    };
    frontier.add(root, Vec::new(), configuration.clone(), 0)?;
    for number in 0..n_nodes {
        let Some(node) = frontier.next(number % N_ORDERS) else { break };
        if let Some(found) = frontier.visit(&node)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

impl Frontier<'_> {
    /// Tries what rows say of a node; if it is refused, goes one byte on from
    /// the node and from where it was refused.
    fn visit(
        &mut self,
        node: &Node,
    ) -> Result<Option<Vec<u8>>, AutomatonError> {
        let (machine, limits) = (self.machine, self.limits);
        let late = match &node.rest {
            None => self.rest(&node.configuration)?,
            Some(_) => None,
        };
        let rest = node.rest.as_ref().or(late.as_ref());
        if let Some(rest) = rest {
            let trial = try_bytes(machine, limits, &node.configuration, rest)?;
            let Trial { accepted, n_read, after } = trial;
            let bytes = [&*node.bytes, &rest[..n_read]].concat();
            if accepted {
                return Ok(Some(bytes));
            }
            self.expand(Reached {
                bytes: &bytes,
                configuration: &after,
                n_passed: node.n_passed,
                n_refused: node.n_refused + 1,
                ask: true,
            })?;
        }
        self.expand(Reached {
            bytes: &node.bytes,
            configuration: &node.configuration,
            n_passed: node.n_passed,
            n_refused: node.n_refused,
            ask: rest.is_some(),
        })?;
        Ok(None)
    }

    /// Adds what follows by one byte of each range, or by two digits: one of
    /// them may be a zero that changes no number.
    fn expand(&mut self, from: Reached<'_>) -> Result<(), AutomatonError> {
        let (machine, limits) = (self.machine, self.limits);
        let mut ranges = Vec::new();
        for top in from.configuration.closure(machine, limits, true)?.tops() {
            let row = useful_row(machine, machine.row(top.frame.state)?)?;
            ranges.extend(row.ranges().iter().map(|r| (r.lo, r.hi)));
        }
        ranges.sort_by_key(|&(lo, hi)| (pleasant(lo, hi) != b'a', lo, hi));
        ranges.dedup();
        // White space is mostly optional, and then never helps.
        if ranges.iter().any(|&range| !is_white(range)) {
            ranges.retain(|&range| !is_white(range));
        }
        let mut n_of_kind = [0; 3];
        for (lo, hi) in ranges {
            // The first byte of the range that registers let through.
            let first = pleasant(lo, hi);
            let mut n_left = if kind(first) == 0 { 2 } else { 1 };
            for byte in (first..=hi).chain(lo..first) {
                let symbol = Symbol::Byte(byte);
                let after =
                    from.configuration.step(machine, limits, symbol)?;
                if !after.is_dead() {
                    let n_before = &mut n_of_kind[kind(byte)];
                    let n_passed = from.n_passed + *n_before;
                    *n_before += 1;
                    let bytes = [from.bytes, &[byte]].concat();
                    self.add(from, bytes, after, n_passed)?;
                    n_left -= 1;
                    if n_left == 0 {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes the next node that was not looked at.
    fn next(&mut self, order: usize) -> Option<Node> {
        loop {
            let Reverse((_, _, number)) = self.orders[order].pop()?;
            let node = self.nodes[number].take();
            if node.is_some() {
                return node;
            }
        }
    }

    fn add(
        &mut self,
        from: Reached<'_>,
        bytes: Vec<u8>,
        configuration: Configuration,
        n_passed: usize,
    ) -> Result<(), AutomatonError> {
        if !self.seen.insert(bytes.clone()) {
            return Ok(());
        }
        let rest = if from.ask { self.rest(&configuration)? } else { None };
        let n_refused = from.n_refused;
        let node = Node { bytes, configuration, rest, n_passed, n_refused };
        let (rank, number) = (node.rank(), self.nodes.len());
        for (order, nodes) in self.orders.iter_mut().enumerate() {
            nodes.push(Reverse((Reverse(node.order(order)), rank, number)));
        }
        self.nodes.push(Some(node));
        Ok(())
    }

    fn rest(
        &mut self,
        configuration: &Configuration,
    ) -> Result<Option<Vec<u8>>, AutomatonError> {
        if configuration.is_complete() {
            return Ok(Some(Vec::new()));
        }
        self.known.by_rows(self.machine, configuration)
    }
}

fn is_white((lo, hi): (u8, u8)) -> bool {
    (lo..=hi).all(|byte| byte.is_ascii_whitespace())
}

/// What a byte is like: those of one kind often lead to the same.
fn kind(byte: u8) -> usize {
    match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => 1,
        _ => 2,
    }
}
