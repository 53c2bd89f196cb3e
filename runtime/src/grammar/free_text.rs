//! Text that may be anything until a pattern stands in it.
//!
//! The text is read by the automaton of Aho and Corasick ("Efficient string
//! matching", 1975), a rule a node, so that the frame that reads it has one
//! state, knows which patterns have begun, and leaves the text with the last
//! character of the first pattern that is complete. What merely resembles a
//! pattern stays text.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use maskwright_grammar_core::grammar::{
    Class, ExprId, GrammarBuilder, RuleId,
};

/// Finds the first of some patterns in a text.
#[derive(Debug)]
pub(super) struct FreeText {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    children: BTreeMap<char, usize>,
    /// The node of the longest other pattern prefix that the text ends with.
    fail: usize,
    /// The pattern that ends here.
    found: Option<usize>,
    /// Where each character leads that does not lead to the root.
    steps: BTreeMap<char, usize>,
}

const ROOT: usize = 0;

impl FreeText {
    /// Creates the automaton of `patterns`, none of which is empty.
    pub(super) fn new(patterns: &[&str]) -> FreeText {
        let mut text = FreeText { nodes: vec![Node::default()] };
        for (index, pattern) in patterns.iter().enumerate() {
            let mut at = ROOT;
            for c in pattern.chars() {
                let fresh = text.nodes.len();
                let next = *text.nodes[at].children.entry(c).or_insert(fresh);
                if next == fresh {
                    text.nodes.push(Node::default());
                }
                at = next;
            }
            text.nodes[at].found.get_or_insert(index);
        }
        text.link();
        text
    }

    /// Follows the failure links, nearest nodes first.
    fn link(&mut self) {
        let mut queue = VecDeque::from([ROOT]);
        while let Some(at) = queue.pop_front() {
            let fail = self.nodes[at].fail;
            let mut steps = if at == ROOT {
                BTreeMap::new()
            } else {
                self.nodes[fail].steps.clone()
            };
            for (c, child) in self.nodes[at].children.clone() {
                let fail = steps.insert(c, child).unwrap_or(ROOT);
                let found = self.nodes[fail].found;
                let node = &mut self.nodes[child];
                node.fail = fail;
                node.found = node.found.or(found);
                queue.push_back(child);
            }
            self.nodes[at].steps = steps;
        }
    }

    /// Returns the first pattern that is complete in `text`, and the byte
    /// after it.
    pub(super) fn find(&self, text: &str) -> Option<(usize, usize)> {
        let mut at = ROOT;
        for (i, c) in text.char_indices() {
            at = self.nodes[at].steps.get(&c).copied().unwrap_or(ROOT);
            if let Some(pattern) = self.nodes[at].found {
                return Some((pattern, i + c.len_utf8()));
            }
        }
        None
    }

    /// Declares the rules of a text, and returns that of its beginning.
    pub(super) fn declare(
        &self,
        builder: &mut GrammarBuilder,
        name: &str,
    ) -> Rules {
        let nodes = self.nodes.iter();
        let rules = nodes.map(|_| builder.declare(name)).collect();
        Rules { rules }
    }

    /// Defines the rules that were declared. Behind each pattern comes what
    /// `behind` says, and `else_` may come in place of any character.
    pub(super) fn define(
        &self,
        builder: &mut GrammarBuilder,
        rules: &Rules,
        behind: &[Option<ExprId>],
        else_: &[ExprId],
    ) {
        for (node, &rule) in self.nodes.iter().zip(&rules.rules) {
            if node.found.is_some() {
                // Nobody comes here: the text has ended.
                let never = builder.choice([]);
                builder.define(rule, never);
                continue;
            }
            let mut targets: BTreeMap<usize, BTreeSet<char>> = BTreeMap::new();
            for (&c, &to) in &node.steps {
                targets.entry(to).or_default().insert(c);
            }
            let known = class(node.steps.keys().copied());
            let mut ways = else_.to_vec();
            let other = builder.class(known.negate());
            let root = builder.rule(rules.rules[ROOT]);
            ways.push(builder.concat([other, root]));
            for (to, chars) in targets {
                let next = match self.nodes[to].found {
                    None => Some(builder.rule(rules.rules[to])),
                    Some(pattern) => behind[pattern],
                };
                let Some(next) = next else { continue };
                let read = builder.class(class(chars));
                ways.push(builder.concat([read, next]));
            }
            let body = builder.choice(ways);
            builder.define(rule, body);
        }
    }
}

/// The rules of a text, a rule a node.
#[derive(Debug)]
pub(super) struct Rules {
    rules: Vec<RuleId>,
}

impl Rules {
    /// The rule of a text that has not begun.
    pub(super) fn start(&self) -> RuleId {
        self.rules[ROOT]
    }
}

fn class(chars: impl IntoIterator<Item = char>) -> Class {
    Class::new(chars.into_iter().map(|c| (u32::from(c), u32::from(c))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_complete_pattern_is_found() {
        let text = FreeText::new(&["<f=", "<tool>", "ool", "aab"]);
        assert_eq!(text.find("a<f =<f="), Some((0, 8)));
        assert_eq!(text.find("<tool>"), Some((2, 5)));
        assert_eq!(text.find("aaaab"), Some((3, 5)));
        assert_eq!(text.find("<<<f"), None);
        assert_eq!(FreeText::new(&[]).find("abc"), None);
    }
}
