//! Removes what leads nowhere.

use super::nfa::{Callee, Edge, Label, Nfa};

/// Removes every edge that does not lead to the end of its rule, and every
/// call of what derives no more than the empty text.
///
/// Left in, the latter fake left recursion and hide tail calls.
pub(super) fn trim(nfa: &mut Nfa) {
    let productive = Productive::new(nfa);
    let mut kept: Vec<(u32, Edge)> = Vec::with_capacity(nfa.edges.len());
    for from in 0..u32::try_from(nfa.len()).unwrap_or(u32::MAX) {
        for &edge in nfa.edges(from) {
            if productive.keeps(nfa, edge) {
                kept.push((from, edge));
            }
        }
    }
    nfa.set_edges(&kept);
}

struct Productive {
    /// Whether the end of the rule can be reached from a node.
    alive: Vec<bool>,
    /// The same, having read something on the way.
    reads: Vec<bool>,
}

impl Productive {
    fn new(nfa: &Nfa) -> Productive {
        let mut found = Productive {
            alive: vec![false; nfa.len()],
            reads: vec![false; nfa.len()],
        };
        let back = Back::new(nfa);
        // A node, and whether it became one that reads.
        let mut work: Vec<(u32, bool)> = Vec::new();
        for &last in &nfa.last {
            found.add(last, false, &mut work);
        }
        while let Some((node, reads)) = work.pop() {
            for &(from, label) in back.entering(node) {
                let reads = match label {
                    Label::Empty => reads,
                    Label::Bytes { .. } | Label::Atom(_) => true,
                    Label::Call(callee) => {
                        if !found.calls(nfa, callee) {
                            continue;
                        }
                        true
                    }
                };
                found.add(from, reads, &mut work);
            }
            // A rule that was found to derive more than the empty text wakes
            // up the calls that wait for it.
            let owner = nfa.owner[node as usize];
            if reads && nfa.first[owner as usize] == node {
                for &(from, to) in back.callers(owner) {
                    if found.alive[to as usize] {
                        found.add(from, true, &mut work);
                    }
                }
            }
        }
        found
    }

    fn add(&mut self, node: u32, reads: bool, work: &mut Vec<(u32, bool)>) {
        let is_new = if reads {
            self.alive[node as usize] = true;
            &mut self.reads[node as usize]
        } else {
            &mut self.alive[node as usize]
        };
        if !std::mem::replace(is_new, true) {
            work.push((node, reads));
        }
    }

    /// Returns true if and only if the callee has a non-empty text.
    fn calls(&self, nfa: &Nfa, callee: Callee) -> bool {
        // Machines without such a text are not called at all.
        rule_of(nfa, callee)
            .is_none_or(|rule| self.reads[nfa.first[rule as usize] as usize])
    }

    fn keeps(&self, nfa: &Nfa, edge: Edge) -> bool {
        let is_open = match edge.label {
            Label::Call(callee) => self.calls(nfa, callee),
            Label::Empty | Label::Bytes { .. } | Label::Atom(_) => true,
        };
        is_open && self.alive[edge.to as usize]
    }
}

fn rule_of(nfa: &Nfa, callee: Callee) -> Option<u32> {
    match callee {
        Callee::Rule(rule) => Some(rule),
        Callee::Counter(counter) => Some(nfa.counters[counter as usize].rule),
        Callee::Machine(_) => None,
    }
}

/// The edges by where they lead, and the calls by what they call.
struct Back {
    offsets: Vec<u32>,
    edges: Vec<(u32, Label)>,
    call_offsets: Vec<u32>,
    calls: Vec<(u32, u32)>,
}

impl Back {
    fn new(nfa: &Nfa) -> Back {
        let all = || {
            (0..u32::try_from(nfa.len()).unwrap_or(u32::MAX)).flat_map(
                |from| nfa.edges(from).iter().map(move |edge| (from, edge)),
            )
        };
        let edges = all().map(|(from, edge)| (edge.to, (from, edge.label)));
        let calls = all().filter_map(|(from, edge)| match edge.label {
            Label::Call(callee) => {
                Some((rule_of(nfa, callee)?, (from, edge.to)))
            }
            Label::Empty | Label::Bytes { .. } | Label::Atom(_) => None,
        });
        let (offsets, edges) = group(nfa.len(), edges);
        let (call_offsets, calls) = group(nfa.first.len(), calls);
        Back { offsets, edges, call_offsets, calls }
    }

    fn entering(&self, node: u32) -> &[(u32, Label)] {
        slice(&self.offsets, &self.edges, node)
    }

    fn callers(&self, rule: u32) -> &[(u32, u32)] {
        slice(&self.call_offsets, &self.calls, rule)
    }
}

fn slice<'a, T>(offsets: &[u32], items: &'a [T], key: u32) -> &'a [T] {
    let key = key as usize;
    &items[offsets[key] as usize..offsets[key + 1] as usize]
}

/// Groups `items` by their keys, which are below `n`.
fn group<T: Copy>(
    n: usize,
    items: impl Iterator<Item = (u32, T)>,
) -> (Vec<u32>, Vec<T>) {
    let mut keyed: Vec<(u32, T)> = items.collect();
    keyed.sort_by_key(|(key, _)| *key);
    let mut offsets = vec![0; n + 1];
    for (key, _) in &keyed {
        offsets[*key as usize + 1] += 1;
    }
    for key in 0..n {
        offsets[key + 1] += offsets[key];
    }
    (offsets, keyed.into_iter().map(|(_, item)| item).collect())
}
