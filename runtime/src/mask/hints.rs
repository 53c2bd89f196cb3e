//! What a run makes of the hints of rows.

use std::sync::Arc;

use maskwright_grammar_core::automaton::{AutomatonError, Hint, StateId};
use smallvec::SmallVec;

use super::{
    classes::{ClassSet, ClassTrie},
    ends::EndTable,
    run::{HINT_SIZE, MAX_NESTING, Run, Task},
    scan::Code,
    walk::Part,
    words::WordList,
};

impl Run<'_, '_> {
    /// Answers the start of a walk from what a hint knows, if that is all.
    pub(super) fn start_with_hint(
        &mut self,
        task: Task,
    ) -> Result<bool, AutomatonError> {
        let hint = &self.row(task.state)?.hint;
        if self.walker.nesting >= MAX_NESTING
            || self.trie(task).size(task.node) < HINT_SIZE
        {
            return Ok(false);
        }
        match hint {
            Hint::Except { base, .. }
            | Hint::Words { base: Some(base), .. } => {
                let base = *base;
                self.start_except(task, base)?;
                Ok(true)
            }
            &Hint::Window { base, least, most } => {
                self.start_window(task, base, least, most)
            }
            &Hint::Ends { base, least } => {
                self.start_ends(task, base, least)?;
                Ok(true)
            }
            &Hint::Alike { base, bytes } => {
                self.start_alike(task, base, bytes)
            }
            Hint::None | Hint::Gap { .. } | Hint::Words { .. } => Ok(false),
        }
    }

    /// Takes the walk of `base`, and walks only where the state differs.
    fn start_except(
        &mut self,
        task: Task,
        base: StateId,
    ) -> Result<(), AutomatonError> {
        let at = self.place(task);
        let walk = self.walker.walk(base, &at, self.bottom)?;
        let mut cleared = Vec::new();
        let mut alike = vec![(task, base)];
        while let Some((task, base)) = alike.pop() {
            let row = self.row(task.state)?;
            if let Some((list, Some(_))) = WordList::of(&row.hint) {
                let pair = (task, base);
                self.except_words(pair, list, &mut cleared, &mut alike)?;
                continue;
            }
            let Hint::Except { bytes, .. } = &row.hint else { continue };
            let trie = self.held_trie(task);
            for &byte in bytes {
                if let Some(node) = trie.child(task.node, byte) {
                    let pair = (task, base);
                    self.differ(pair, byte, node, &mut cleared, &mut alike)?;
                }
            }
        }
        let part = Part {
            resumes: SmallVec::new(),
            walk,
            cleared: cleared.into(),
            entry: None,
        };
        self.buffers.parts.push((part, None));
        Ok(())
    }

    /// Returns true if `state` is `base` but for exceptions.
    pub(super) fn is_alike(
        &mut self,
        state: StateId,
        base: StateId,
    ) -> Result<bool, AutomatonError> {
        let row = self.row(state)?;
        Ok(match row.hint {
            Hint::Except { base: other, .. }
            | Hint::Words { base: Some(other), .. } => other == base,
            _ => false,
        })
    }

    fn start_window(
        &mut self,
        task: Task,
        base: StateId,
        least: u32,
        most: u32,
    ) -> Result<bool, AutomatonError> {
        let at = self.place(task);
        let Some(table) = self.walker.window(base, &at)? else {
            return Ok(false);
        };
        let (set, lists) = table.accepted(most);
        self.buffers.sets.push(Arc::clone(set));
        for list in lists {
            self.buffers.lists.extend_from_slice(list);
        }
        for (outcome, at) in &*table.exits(least, most) {
            if self.bottom {
                self.buffers.lists.extend_from_slice(at.own_tokens());
            } else {
                self.exit(*outcome, at);
            }
        }
        Ok(true)
    }

    /// Takes the walk of `base`, and walks only the tokens that are longer
    /// than both states are alike.
    fn start_alike(
        &mut self,
        task: Task,
        base: StateId,
        bytes: u32,
    ) -> Result<bool, AutomatonError> {
        let at = self.place(task);
        let longer = if self.is_root(task) {
            match self.walker.index.longer(bytes) {
                Some(longer) => Some(longer),
                None => return Ok(false),
            }
        } else if at.trie.longest(at.node) <= bytes {
            None
        } else {
            return Ok(false);
        };
        let walk = self.walker.walk(base, &at, self.bottom)?;
        let cleared = longer.map_or(Box::default(), |at| at.tokens().into());
        let resumes = SmallVec::new();
        let part = Part { resumes, walk, cleared, entry: None };
        self.buffers.parts.push((part, None));
        if let Some(longer) = longer {
            let trie = self.add_place(longer, None);
            self.arrive(Task { trie, node: longer.node, ..task }, true)?;
        }
        Ok(true)
    }

    /// Takes the tokens of `base`, and follows the paths that end it: in the
    /// trie by classes, as far as states are uniform there.
    fn start_ends(
        &mut self,
        task: Task,
        base: StateId,
        least: u32,
    ) -> Result<(), AutomatonError> {
        let start = self.buffers.table.number(task.state);
        let mut classes = None;
        if let Some(start) = start {
            let codes = self.codes(start)?;
            let mixed = self.buffers.table.mixed(codes);
            if !mixed.holds_letters() {
                classes = self.classes_at(task, !mixed.is_empty());
            }
        }
        let at = match classes {
            Some(classes) => classes.root.clone(),
            None => self.place(task),
        };
        let mut table = self.walker.ends(base, &at)?;
        self.buffers.sets.push(Arc::clone(&table.accepted));
        if least > table.longest || table.nodes.len() < 2 {
            return Ok(());
        }
        let Some(start) = start else {
            return self.arrive(task, true);
        };
        if let Some(classes) = classes {
            let n_tasks = self.buffers.tasks.len();
            let n_exits = self.buffers.exits.len();
            let trie = self.add_place(&at, None);
            let by_classes = Task { trie, ..task };
            let all = Some(classes);
            if self.follow_ends(by_classes, start, &table, all)? {
                return Ok(());
            }
            // The real paths that end the frame are fewer than all that lies
            // below the letters on which states differ.
            self.buffers.tasks.truncate(n_tasks);
            self.buffers.exits.truncate(n_exits);
            table = self.walker.ends(base, &self.place(task))?;
        }
        self.follow_ends(task, start, &table, None)?;
        Ok(())
    }

    /// Follows the paths of a table. Returns false, and is not to be used, if
    /// that is by classes and some state does not do the same on all letters.
    fn follow_ends(
        &mut self,
        task: Task,
        start: u16,
        table: &EndTable,
        classes: Option<&ClassTrie>,
    ) -> Result<bool, AutomatonError> {
        let nodes = &*table.nodes;
        let mut above: Vec<(u32, ClassSet, u32)> = Vec::new();
        let (mut codes, mut end) = (self.codes(start)?, nodes[0].end);
        // At the root either bytes are kept or the state is uniform.
        let mut mixed = ClassSet::default();
        let mut index = 1;
        while index < nodes[0].end {
            while index >= end {
                let below = (codes, mixed, nodes[0].end);
                (codes, mixed, end) = above.pop().unwrap_or(below);
            }
            let node = nodes[index as usize];
            self.add_steps(1);
            if mixed.holds(node.byte)
                && let Some(classes) = classes
            {
                if mixed.holds_letters() {
                    return Ok(false);
                }
                let row = self.row_of(codes)?;
                self.read_members(task, row, classes, node.node)?;
                index = node.end;
                continue;
            }
            let code = self.buffers.table.step(codes, node.byte);
            let Some(number) = code.number() else {
                if code != Code::DEAD {
                    let row = self.row_of(codes)?;
                    let at = (node.node, node.byte);
                    self.read_classed(task, row, classes, at, code)?;
                }
                index = node.end;
                continue;
            };
            if node.end == index + 1 {
                index += 1;
                continue;
            }
            self.look_at(number)?;
            let simple = self.buffers.table.simple(number).copied();
            if let Some(simple) = simple {
                above.push((codes, mixed, end));
                let is_free = classes.is_some_and(|it| it.is_free(node.node));
                mixed = if is_free {
                    self.buffers.table.mixed(simple.codes)
                } else {
                    ClassSet::default()
                };
                (codes, end) = (simple.codes, node.end);
                index += 1;
            } else {
                let state = self.buffers.table.state(number);
                self.leave_scan(task, state, classes, node.node);
                index = node.end;
            }
        }
        Ok(true)
    }

    /// Returns the table of a state that is known to be simple.
    pub(super) fn codes(
        &mut self,
        number: u16,
    ) -> Result<u32, AutomatonError> {
        self.look_at(number)?;
        let simple = self.buffers.table.simple(number);
        simple.map(|simple| simple.codes).ok_or_else(|| {
            AutomatonError::Grammar {
                message: "a state that only reads came to another".to_owned(),
            }
        })
    }
}
