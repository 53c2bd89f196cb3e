//! Slow and obvious: a recogniser by spans, and a runner that keeps every
//! stack apart.

use std::{collections::BTreeSet, sync::Arc};

use super::CfgMachine;
use crate::{
    automaton::{Automaton, Frame, Recognizer, StateId, Step},
    grammar::{Expr, ExprId, Grammar},
};

/// A byte, or 256 and the index of an atom.
pub(super) type Symbol = u16;

/// What is known of a text: the ends of each rule from each place, as bits.
///
/// A text of `n` symbols has the places `0..=n`, and one more, "beyond":
/// from `n` and from beyond, any symbol leads beyond.
struct Spans<'a> {
    grammar: &'a Grammar,
    text: &'a [Symbol],
    rules: Vec<Vec<u64>>,
}

/// Whether `text` is in the language, and whether any text that begins with
/// it is.
pub(super) fn judge(grammar: &Grammar, text: &[Symbol]) -> (bool, bool) {
    let n = text.len();
    assert!(n < 60, "places are bits");
    let rules = vec![vec![0; n + 2]; grammar.rules().len()];
    let mut spans = Spans { grammar, text, rules };
    loop {
        let mut changed = false;
        for (i, rule) in grammar.rules().iter().enumerate() {
            for place in 0..n + 2 {
                let ends = spans.ends(rule.body, place);
                changed |= ends != spans.rules[i][place];
                spans.rules[i][place] = ends;
            }
        }
        if !changed {
            break;
        }
    }
    let ends = spans.rules[grammar.root().index()][0];
    (ends >> n & 1 == 1, ends >> n != 0)
}

impl Spans<'_> {
    fn symbol(&self, symbol: Symbol, place: usize) -> u64 {
        let n = self.text.len();
        match self.text.get(place) {
            Some(&there) => u64::from(there == symbol) << (place + 1),
            None => 1 << (n + 1),
        }
    }

    fn bytes(&self, bytes: &[u8], place: usize) -> u64 {
        bytes.iter().fold(1 << place, |at, &byte| {
            self.each(at, |place| self.symbol(byte.into(), place))
        })
    }

    /// The ends of the texts of a machine.
    fn machine(&self, machine: &Arc<dyn Automaton>, place: usize) -> u64 {
        let n = self.text.len();
        if place > n {
            return 1 << place;
        }
        let mut recognizer =
            Recognizer::new(Arc::clone(machine)).expect("no limit");
        let mut ends = 0;
        for end in place..=n {
            let accepts = recognizer.is_accepting().expect("no limit");
            ends |= u64::from(accepts) << end;
            let viable = match self.text.get(end) {
                None => {
                    let next = recognizer.allowed_bytes().expect("no limit");
                    ends |= u64::from(next.contains(&true)) << (n + 1);
                    false
                }
                Some(&symbol) => u8::try_from(symbol).is_ok_and(|byte| {
                    recognizer.push_byte(byte).expect("no limit")
                }),
            };
            if !viable {
                break;
            }
        }
        ends
    }

    fn each(&self, places: u64, step: impl Fn(usize) -> u64) -> u64 {
        (0..self.text.len() + 2)
            .filter(|place| places >> place & 1 == 1)
            .fold(0, |ends, place| ends | step(place))
    }

    fn ends(&self, expr: ExprId, place: usize) -> u64 {
        match self.grammar.expr(expr) {
            Expr::Empty => 1 << place,
            Expr::Literal(bytes) => self.bytes(bytes, place),
            Expr::Class(class) => class
                .ranges()
                .iter()
                .flat_map(|&(lo, hi)| lo..=hi)
                .filter_map(char::from_u32)
                .fold(0, |ends, c| {
                    ends | self.bytes(c.to_string().as_bytes(), place)
                }),
            Expr::Atom(atom) => {
                let symbol = 256 + u16::try_from(atom.0).expect("few atoms");
                self.symbol(symbol, place)
            }
            Expr::Rule(rule) => self.rules[rule.index()][place],
            Expr::Machine(machine) => {
                let machine = &self.grammar.machine(*machine).automaton;
                self.machine(machine, place)
            }
            Expr::Concat(parts) => {
                parts.iter().fold(1 << place, |at, &part| {
                    self.each(at, |place| self.ends(part, place))
                })
            }
            Expr::Choice(parts) => parts
                .iter()
                .fold(0, |ends, &part| ends | self.ends(part, place)),
            Expr::Repeat { body, min, max } => {
                // Texts here are short, and idle rounds change nothing.
                let enough = min + 12;
                let mut at = 1 << place;
                let mut ends = 0;
                for times in 0..=max.unwrap_or(enough).min(enough) {
                    if times >= *min {
                        ends |= at;
                    }
                    at = self.each(at, |place| self.ends(*body, place));
                }
                ends
            }
        }
    }
}

/// Runs a machine with a list of stacks.
#[derive(Clone, Debug)]
pub(super) struct Runner<'a> {
    machine: &'a CfgMachine,
    /// Stacks of states and counts, the top last. An empty stack has ended.
    pub(super) stacks: BTreeSet<Vec<(u32, u32)>>,
}

impl<'a> Runner<'a> {
    pub(super) fn new(machine: &'a CfgMachine) -> Runner<'a> {
        let stacks = [vec![(machine.start().0, 0)]].into();
        let mut runner = Runner { machine, stacks };
        runner.settle();
        runner
    }

    /// Whether some text that begins with what was read is accepted.
    pub(super) fn is_viable(&self) -> bool {
        !self.stacks.is_empty()
    }

    pub(super) fn is_accepting(&self) -> bool {
        self.stacks.contains(&vec![])
    }

    pub(super) fn read(&mut self, symbol: Symbol) {
        let stacks = std::mem::take(&mut self.stacks);
        for stack in stacks {
            let Some(&(state, _)) = stack.last() else { continue };
            let row = self.machine.row(StateId(state)).expect("no limit");
            let steps: Vec<Step> = match u8::try_from(symbol) {
                Ok(byte) => row.steps(byte).collect(),
                Err(_) => row
                    .atoms
                    .iter()
                    .filter(|(atom, _)| atom.0 + 256 == u32::from(symbol))
                    .map(|(_, step)| *step)
                    .collect(),
            };
            for step in steps {
                self.step(stack.clone(), symbol, step);
            }
        }
        self.settle();
        assert!(self.stacks.len() < 100_000, "too many stacks");
    }

    fn step(
        &mut self,
        mut stack: Vec<(u32, u32)>,
        symbol: Symbol,
        step: Step,
    ) {
        match step {
            Step::Stay(to) => {
                self.advance(&mut stack, symbol, to);
                self.stacks.insert(stack);
            }
            Step::Call { resume, callee } => {
                self.advance(&mut stack, symbol, resume);
                self.call(stack, resume, callee);
            }
            Step::Return(_) => self.leave(stack),
        }
    }

    /// Moves the frame on top, which reads `symbol`, to `to`.
    fn advance(
        &self,
        stack: &mut Vec<(u32, u32)>,
        symbol: Symbol,
        to: StateId,
    ) {
        let mut frame = frame(stack.pop().expect("not ended"));
        let row = self.machine.row(frame.state).expect("no limit");
        match u8::try_from(symbol) {
            Ok(byte) if row.registers => {
                let moved = self.machine.advance(&mut frame, byte, to);
                moved.expect("no limit");
            }
            _ => frame.state = to,
        }
        stack.push((frame.state.0, frame.counts[0]));
    }

    fn call(
        &mut self,
        mut stack: Vec<(u32, u32)>,
        resume: StateId,
        callee: StateId,
    ) {
        let top = stack.pop().expect("not ended");
        let row = self.machine.row(callee).expect("no limit");
        let new = if row.registers {
            self.machine.enter(&frame(top), callee)
        } else {
            Frame::new(callee)
        };
        stack.push((resume.0, top.1));
        stack.push((new.state.0, new.counts[0]));
        self.stacks.insert(stack);
    }

    /// Ends the frame on top.
    fn leave(&mut self, mut stack: Vec<(u32, u32)>) {
        let callee = frame(stack.pop().expect("not ended"));
        let Some(waiting) = stack.pop() else {
            self.stacks.insert(stack);
            return;
        };
        let outcome = super::DONE;
        let caller = frame(waiting);
        let resumed = self.machine.resume(caller.state, outcome);
        for to in resumed.expect("no limit") {
            let row = self.machine.row(to).expect("no limit");
            let mut stack = stack.clone();
            if row.registers {
                let left = self.machine.leave(&caller, &callee, outcome, to);
                let Some(frame) = left.expect("no limit") else { continue };
                stack.push((frame.state.0, frame.counts[0]));
            } else {
                stack.push((to.0, waiting.1));
            }
            self.stacks.insert(stack);
        }
    }

    /// Does all that needs no symbol.
    fn settle(&mut self) {
        let mut done = BTreeSet::new();
        while let Some(stack) = self.stacks.pop_first() {
            if !done.insert(stack.clone()) {
                continue;
            }
            let Some(&(state, _)) = stack.last() else { continue };
            let row = self.machine.row(StateId(state)).expect("no limit");
            for call in &row.calls {
                self.call(stack.clone(), call.resume, call.callee);
            }
            if row.finish.is_some() {
                self.leave(stack);
            }
        }
        self.stacks = done;
    }
}

fn frame((state, count): (u32, u32)) -> Frame {
    let mut frame = Frame::new(StateId(state));
    frame.counts[0] = count;
    frame
}
