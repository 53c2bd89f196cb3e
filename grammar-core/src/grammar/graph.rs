//! The strongly connected components of a call graph.

/// The strongly connected components of a graph.
#[derive(Clone, Debug)]
pub(crate) struct Components {
    /// The component of each node.
    pub(crate) of: Vec<u32>,
    /// The members of each component. A component comes after every other
    /// component that it has an edge into: callees first.
    pub(crate) members: Vec<Vec<u32>>,
    /// Whether a component has an edge inside itself.
    pub(crate) cyclic: Vec<bool>,
}

impl Components {
    /// Finds the components of the graph with these edges, by Tarjan's
    /// algorithm on an explicit stack.
    pub(crate) fn new(edges: &[Vec<u32>]) -> Components {
        const NEW: u32 = u32::MAX;
        let n = edges.len();
        let mut found = Components {
            of: vec![NEW; n],
            members: Vec::new(),
            cyclic: Vec::new(),
        };
        let mut index = vec![NEW; n];
        let mut low = vec![NEW; n];
        let (mut next, mut open) = (0, Vec::new());
        // A node and how many of its edges were followed.
        let mut path: Vec<(u32, usize)> = Vec::new();
        for root in 0..u32::try_from(n).unwrap_or(NEW) {
            if index[root as usize] != NEW {
                continue;
            }
            path.push((root, 0));
            while let Some((node, edge)) = path.pop() {
                let v = node as usize;
                if edge == 0 {
                    index[v] = next;
                    low[v] = next;
                    next += 1;
                    open.push(node);
                }
                if let Some(&to) = edges[v].get(edge) {
                    path.push((node, edge + 1));
                    let w = to as usize;
                    if index[w] == NEW {
                        path.push((to, 0));
                    } else if found.of[w] == NEW {
                        low[v] = low[v].min(index[w]);
                    }
                    continue;
                }
                if low[v] == index[v] {
                    found.close(node, &mut open, edges);
                }
                if let Some(&(parent, _)) = path.last() {
                    let p = parent as usize;
                    low[p] = low[p].min(low[v]);
                }
            }
        }
        found
    }

    /// Makes a component of `node` and all that was opened after it.
    fn close(&mut self, node: u32, open: &mut Vec<u32>, edges: &[Vec<u32>]) {
        let component = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        let start = open.iter().rposition(|&other| other == node);
        let members = open.split_off(start.unwrap_or(0));
        for &member in &members {
            self.of[member as usize] = component;
        }
        let cyclic = members.len() > 1 || edges[node as usize].contains(&node);
        self.members.push(members);
        self.cyclic.push(cyclic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_come_callees_first() {
        let edges = [vec![1], vec![2, 3], vec![1], vec![4], vec![4], vec![]];
        let found = Components::new(&edges);
        assert_eq!(found.of[1], found.of[2]);
        assert_ne!(found.of[3], found.of[4]);
        assert!(found.of[4] < found.of[3] && found.of[3] < found.of[1]);
        assert!(found.cyclic[found.of[4] as usize]);
        assert!(found.cyclic[found.of[1] as usize]);
        assert!(!found.cyclic[found.of[3] as usize]);
        assert!(!found.cyclic[found.of[0] as usize]);
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let n = 200_000;
        let edges: Vec<Vec<u32>> =
            (1..=n).map(|to| if to < n { vec![to] } else { vec![] }).collect();
        assert_eq!(Components::new(&edges).members.len(), n as usize);
    }
}
