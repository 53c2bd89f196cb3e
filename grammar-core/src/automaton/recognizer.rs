//! Running a machine over bytes, exactly.
//!
//! A [`Configuration`] is what a machine may be in the middle of: the tops of
//! all live stacks. Deterministic machines have one; a frame that may either
//! end or go on, or a row with several steps on a byte, has more. Equal ones
//! are merged. When there are more than the limit, that is an error, never a
//! configuration forgotten.
//!
//! A [`Recognizer`] is a configuration with its machine: the oracle of byte
//! strings against which everything faster is tested.
//!
//! # Order of the hooks
//!
//! A frame that reads a byte is advanced first, also when it then waits for a
//! callee; the callee is entered from the advanced caller. A frame that
//! returns on a byte is handed to [`Automaton::leave`] as it was before that
//! byte. Each new frame is looked at by [`Automaton::watch`].

use std::sync::Arc;

use smallvec::SmallVec;

use super::{
    AtomId, Automaton, AutomatonError, Frame, Machine, Outcome, Row, Stack,
    StateId, Step, Watch,
};

/// What a configuration reads in one step.
#[derive(Clone, Copy)]
pub enum Symbol<'a> {
    /// A byte.
    Byte(u8),
    /// A whole token: every atom that stands for it. The state tells whose
    /// atoms are asked for.
    Token(&'a dyn Fn(StateId, AtomId) -> bool),
}

impl std::fmt::Debug for Symbol<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Symbol::Byte(byte) => write!(f, "Byte({})", byte.escape_ascii()),
            Symbol::Token(_) => f.write_str("Token"),
        }
    }
}

/// How large a configuration may grow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StackLimits {
    /// How many stacks may be live at a time.
    pub max_configurations: usize,
    /// How deep a stack may be.
    pub max_depth: usize,
}

/// A thousand live stacks and a million frames.
impl Default for StackLimits {
    fn default() -> StackLimits {
        StackLimits { max_configurations: 1024, max_depth: 1_000_000 }
    }
}

/// The top frame of some stacks, and the frames below it.
#[derive(Clone, Debug)]
pub struct Top {
    /// The frame on top.
    pub frame: Frame,
    /// The waiting frames.
    pub below: Stack,
}

/// What a machine may be in the middle of.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    tops: SmallVec<[Top; 1]>,
    complete: bool,
}

impl Configuration {
    /// Creates the configuration before the first byte.
    ///
    /// # Errors
    ///
    /// Fails when the machine cannot build a row.
    pub fn start(
        machine: Machine<'_>,
        limits: StackLimits,
    ) -> Result<Configuration, AutomatonError> {
        let mut start = Configuration::default();
        let top =
            Top { frame: Frame::new(machine.start()), below: Stack::empty() };
        start.settle(machine, limits, top)?;
        Ok(start)
    }

    /// Returns the tops of all live stacks. Each is open: it can read.
    pub fn tops(&self) -> &[Top] {
        &self.tops
    }

    /// Returns true if and only if the root frame has ended: the text so far
    /// is complete, whatever the stacks that are still live may add.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Returns true if and only if no text begins with what was read.
    pub fn is_dead(&self) -> bool {
        self.tops.is_empty() && !self.complete
    }

    /// Returns true if and only if the text may end here.
    ///
    /// # Errors
    ///
    /// Fails when the machine cannot build a row, or a limit is met.
    pub fn is_accepting(
        &self,
        machine: Machine<'_>,
        limits: StackLimits,
    ) -> Result<bool, AutomatonError> {
        if self.complete {
            return Ok(true);
        }
        let mut may_finish = false;
        for top in &self.tops {
            may_finish |= machine.row(top.frame.state)?.finish.is_some();
        }
        Ok(may_finish && self.closure(machine, limits, false)?.complete)
    }

    /// Returns the configuration after `symbol`, which is dead if the symbol
    /// is refused.
    ///
    /// # Errors
    ///
    /// Fails when the machine cannot build a row, or a limit is met.
    pub fn step(
        &self,
        machine: Machine<'_>,
        limits: StackLimits,
        symbol: Symbol<'_>,
    ) -> Result<Configuration, AutomatonError> {
        let mut next = Configuration::default();
        if let [top] = &*self.tops {
            let row = machine.row(top.frame.state)?;
            if row.finish.is_none() && row.calls.is_empty() {
                next.read(machine, limits, top, row, symbol)?;
                next.merge();
                return Ok(next);
            }
        }
        for top in &self.closure(machine, limits, true)?.tops {
            let row = machine.row(top.frame.state)?;
            next.read(machine, limits, top, row, symbol)?;
        }
        next.merge();
        Ok(next)
    }

    /// Adds everything that is alive in `other`.
    ///
    /// # Errors
    ///
    /// Fails when a limit is met.
    pub fn extend(
        &mut self,
        other: Configuration,
        limits: StackLimits,
    ) -> Result<(), AutomatonError> {
        self.complete |= other.complete;
        for top in other.tops {
            self.add(limits, top)?;
        }
        self.merge();
        Ok(())
    }

    /// Returns everything that can be reached without reading: frames that
    /// finish, and (if `calls`) callees before their first byte.
    ///
    /// # Errors
    ///
    /// Fails when the machine cannot build a row, or a limit is met.
    pub fn closure(
        &self,
        machine: Machine<'_>,
        limits: StackLimits,
        calls: bool,
    ) -> Result<Configuration, AutomatonError> {
        let mut all = self.clone();
        let mut done = 0;
        while done < all.tops.len() {
            let top = all.tops[done].clone();
            done += 1;
            let row = machine.row(top.frame.state)?;
            if let Some(outcome) = row.finish {
                all.end(machine, limits, &top, outcome, true)?;
            }
            if !calls {
                continue;
            }
            for call in &row.calls {
                let mut caller = top.frame.clone();
                caller.state = call.resume;
                all.call(machine, limits, &top.below, caller, call.callee)?;
            }
        }
        Ok(all)
    }

    /// Returns the only byte that may come next, if there is exactly one and
    /// the text may not end here either.
    ///
    /// # Errors
    ///
    /// Fails when the machine cannot build a row, or a limit is met.
    pub fn forced_byte(
        &self,
        machine: Machine<'_>,
        limits: StackLimits,
    ) -> Result<Option<u8>, AutomatonError> {
        if self.is_accepting(machine, limits)? {
            return Ok(None);
        }
        let candidates = self.candidates(machine, limits)?;
        let mut forced = None;
        for byte in 0..=u8::MAX {
            if !candidates[usize::from(byte)]
                || self.step(machine, limits, Symbol::Byte(byte))?.is_dead()
            {
                continue;
            }
            if forced.is_some() {
                return Ok(None);
            }
            forced = Some(byte);
        }
        Ok(forced)
    }

    /// Describes for people what is being read, innermost first.
    pub fn describe(&self, machine: Machine<'_>) -> String {
        const FRAMES: usize = 4;
        let mut texts = Vec::new();
        for top in &self.tops {
            let state = top.frame.state;
            let mut text = machine.owner(state).describe(state);
            let mut below = &top.below;
            for _ in 1..FRAMES {
                let Some(edge) = below.edges().first() else { break };
                let state = edge.frame.state;
                text.push_str(", in ");
                text.push_str(&machine.owner(state).describe(state));
                below = &edge.below;
            }
            texts.push(text);
        }
        if self.complete {
            texts.push("the end".to_owned());
        }
        texts.join("; or ")
    }

    /// Returns the bytes on which a row in reach has a step: all that may
    /// come next, and those that only registers refuse.
    fn candidates(
        &self,
        machine: Machine<'_>,
        limits: StackLimits,
    ) -> Result<[bool; 256], AutomatonError> {
        let mut candidates = [false; 256];
        for top in &self.closure(machine, limits, true)?.tops {
            let row = machine.row(top.frame.state)?;
            for byte in 0..=u8::MAX {
                candidates[usize::from(byte)] |= row.is_live(byte);
            }
        }
        Ok(candidates)
    }

    /// Adds what `top` becomes by reading `symbol` itself.
    fn read(
        &mut self,
        machine: Machine<'_>,
        limits: StackLimits,
        top: &Top,
        row: &Row,
        symbol: Symbol<'_>,
    ) -> Result<(), AutomatonError> {
        match symbol {
            Symbol::Byte(byte) => {
                if !row.is_live(byte) {
                    return Ok(());
                }
                for step in row.steps(byte) {
                    let byte = Some(byte);
                    self.take(machine, limits, top, row, byte, step)?;
                }
            }
            Symbol::Token(stands_for) => {
                for &(atom, step) in &row.atoms {
                    if stands_for(top.frame.state, atom) {
                        self.take(machine, limits, top, row, None, step)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        machine: Machine<'_>,
        limits: StackLimits,
        top: &Top,
        row: &Row,
        byte: Option<u8>,
        step: Step,
    ) -> Result<(), AutomatonError> {
        let advance = |to: StateId| match byte {
            Some(byte) => machine.advance(&top.frame, row, byte, to),
            None => Ok(Frame { state: to, ..top.frame.clone() }),
        };
        match step {
            Step::Stay(to) => {
                let frame = advance(to)?;
                let below = top.below.clone();
                self.settle(machine, limits, Top { frame, below })
            }
            Step::Call { resume, callee } => {
                let caller = advance(resume)?;
                self.call(machine, limits, &top.below, caller, callee)
            }
            Step::Return(outcome) => {
                self.end(machine, limits, top, outcome, false)
            }
        }
    }

    fn call(
        &mut self,
        machine: Machine<'_>,
        limits: StackLimits,
        below: &Stack,
        caller: Frame,
        callee: StateId,
    ) -> Result<(), AutomatonError> {
        if below.depth() >= limits.max_depth {
            return Err(AutomatonError::Limit {
                name: "max_depth",
                what: "the depth of the stack",
                limit: limits.max_depth,
            });
        }
        let frame = machine.enter(&caller, callee)?;
        let below = below.push(caller);
        self.settle(machine, limits, Top { frame, below })
    }

    /// Ends the frame of `top`. What resumes is settled, but for callers
    /// that read on in the same closure (`lazy`), which are only added.
    fn end(
        &mut self,
        machine: Machine<'_>,
        limits: StackLimits,
        top: &Top,
        outcome: Outcome,
        lazy: bool,
    ) -> Result<(), AutomatonError> {
        self.complete |= top.below.has_bottom();
        for edge in top.below.edges() {
            for frame in machine.leave(&edge.frame, &top.frame, outcome)? {
                let below = edge.below.clone();
                let top = Top { frame, below };
                if lazy && machine.row(top.frame.state)?.is_open() {
                    self.add_watched(machine, limits, top)?;
                } else {
                    self.settle(machine, limits, top)?;
                }
            }
        }
        Ok(())
    }

    /// Adds `top`, or what is left of it once frames that can only finish
    /// have done so.
    fn settle(
        &mut self,
        machine: Machine<'_>,
        limits: StackLimits,
        top: Top,
    ) -> Result<(), AutomatonError> {
        if machine.row(top.frame.state)?.is_open() {
            return self.add_watched(machine, limits, top);
        }
        let mut pending = vec![top];
        while let Some(top) = pending.pop() {
            let row = machine.row(top.frame.state)?;
            if row.is_open() {
                self.add_watched(machine, limits, top)?;
                continue;
            }
            let Some(outcome) = row.finish else { continue };
            if machine.watch(&top.frame, row) == Watch::Dead {
                continue;
            }
            self.complete |= top.below.has_bottom();
            for edge in top.below.edges() {
                for frame in machine.leave(&edge.frame, &top.frame, outcome)? {
                    pending.push(Top { frame, below: edge.below.clone() });
                }
            }
            if pending.len() > limits.max_configurations {
                return Err(too_many(limits));
            }
        }
        Ok(())
    }

    fn add_watched(
        &mut self,
        machine: Machine<'_>,
        limits: StackLimits,
        top: Top,
    ) -> Result<(), AutomatonError> {
        let row = machine.row(top.frame.state)?;
        if machine.watch(&top.frame, row) == Watch::Dead {
            return Ok(());
        }
        self.add(limits, top)
    }

    /// Adds `top` unless it is there already.
    fn add(
        &mut self,
        limits: StackLimits,
        top: Top,
    ) -> Result<(), AutomatonError> {
        for other in &mut self.tops {
            if other.frame.is_same(&top.frame)
                && other.below.is_equal(&top.below)
            {
                return Ok(());
            }
        }
        if self.tops.len() >= limits.max_configurations {
            return Err(too_many(limits));
        }
        self.tops.push(top);
        Ok(())
    }

    /// Merges the tops with equal frames.
    fn merge(&mut self) {
        if self.tops.len() < 2 {
            return;
        }
        let mut merged: SmallVec<[Top; 1]> = SmallVec::new();
        for top in self.tops.drain(..) {
            let same = merged
                .iter_mut()
                .find(|other| other.frame.is_same(&top.frame));
            match same {
                Some(other) => other.below = other.below.union(&top.below),
                None => merged.push(top),
            }
        }
        self.tops = merged;
    }
}

/// A machine in the middle of a text.
///
/// # Example
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright_grammar_core::automaton::{
/// #     Automaton, AutomatonError, Outcome, Recognizer, Resumed, Row,
/// #     RowBuilder, StateId, Step,
/// # };
/// /// `a*b`, as a machine of one state.
/// #[derive(Debug)]
/// struct Runs(Row);
///
/// impl Automaton for Runs {
///     fn start(&self) -> StateId {
///         StateId(0)
///     }
///     fn row(&self, _: StateId) -> Result<&Row, AutomatonError> {
///         Ok(&self.0)
///     }
///     fn resume(
///         &self,
///         _: StateId,
///         _: Outcome,
///     ) -> Result<Resumed, AutomatonError> {
///         Ok(Resumed::new())
///     }
///     fn describe(&self, _: StateId) -> String {
///         "a run of a".to_owned()
///     }
/// }
///
/// let mut row = RowBuilder::new();
/// row.byte(b'a', Step::Stay(StateId(0)));
/// row.byte(b'b', Step::Return(Outcome(0)));
/// let mut recognizer = Recognizer::new(Arc::new(Runs(row.build())))?;
/// assert!(recognizer.push_byte(b'a')?);
/// assert!(!recognizer.push_byte(b'c')?);
/// assert!(recognizer.push_byte(b'b')?);
/// assert!(recognizer.is_accepting()?);
/// # Ok::<(), AutomatonError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recognizer {
    automaton: Arc<dyn Automaton>,
    limits: StackLimits,
    configuration: Configuration,
}

impl Recognizer {
    /// Creates a recognizer that has read nothing.
    ///
    /// # Errors
    ///
    /// Fails when the machine cannot build its first row.
    pub fn new(
        automaton: Arc<dyn Automaton>,
    ) -> Result<Recognizer, AutomatonError> {
        Recognizer::with_limits(automaton, StackLimits::default())
    }

    /// Creates a recognizer with `limits`.
    ///
    /// # Errors
    ///
    /// Fails when the machine cannot build its first row.
    pub fn with_limits(
        automaton: Arc<dyn Automaton>,
        limits: StackLimits,
    ) -> Result<Recognizer, AutomatonError> {
        let machine = Machine::new(&*automaton);
        let configuration = Configuration::start(machine, limits)?;
        Ok(Recognizer { automaton, limits, configuration })
    }

    /// Reads `byte`. Returns false, and leaves everything as it was, if no
    /// text goes on like that.
    ///
    /// # Errors
    ///
    /// Fails when the machine cannot build a row, or a limit is met. The
    /// recognizer is then as it was.
    pub fn push_byte(&mut self, byte: u8) -> Result<bool, AutomatonError> {
        let next = self.after(byte)?;
        if next.is_dead() {
            return Ok(false);
        }
        self.configuration = next;
        Ok(true)
    }

    /// Reads all of `bytes`, or none of them if one is refused.
    ///
    /// # Errors
    ///
    /// Fails as [`Recognizer::push_byte`] does.
    pub fn push_bytes(
        &mut self,
        bytes: &[u8],
    ) -> Result<bool, AutomatonError> {
        let before = self.configuration.clone();
        for &byte in bytes {
            match self.push_byte(byte) {
                Ok(true) => {}
                refused => {
                    self.configuration = before;
                    return refused;
                }
            }
        }
        Ok(true)
    }

    /// Returns true if and only if the text may end here.
    ///
    /// # Errors
    ///
    /// Fails when the machine cannot build a row, or a limit is met.
    pub fn is_accepting(&self) -> Result<bool, AutomatonError> {
        self.configuration.is_accepting(self.machine(), self.limits)
    }

    /// Returns the bytes that may come next, registers included.
    ///
    /// # Errors
    ///
    /// Fails when the machine cannot build a row, or a limit is met.
    pub fn allowed_bytes(&self) -> Result<[bool; 256], AutomatonError> {
        let mut allowed = [false; 256];
        let candidates =
            self.configuration.candidates(self.machine(), self.limits)?;
        for byte in 0..=u8::MAX {
            allowed[usize::from(byte)] =
                candidates[usize::from(byte)] && !self.after(byte)?.is_dead();
        }
        Ok(allowed)
    }

    /// Returns the only byte that may come next, if there is exactly one and
    /// the text may not end here either.
    ///
    /// # Errors
    ///
    /// Fails when the machine cannot build a row, or a limit is met.
    pub fn forced_byte(&self) -> Result<Option<u8>, AutomatonError> {
        self.configuration.forced_byte(self.machine(), self.limits)
    }

    /// Returns where the recognizer is. Cheap, and good for
    /// [`Recognizer::restore`].
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Goes back (or on) to a configuration of the same machine.
    pub fn restore(&mut self, configuration: Configuration) {
        self.configuration = configuration;
    }

    /// Describes for people what is being read, innermost first.
    pub fn describe(&self) -> String {
        self.configuration.describe(self.machine())
    }

    fn after(&self, byte: u8) -> Result<Configuration, AutomatonError> {
        let symbol = Symbol::Byte(byte);
        self.configuration.step(self.machine(), self.limits, symbol)
    }

    fn machine(&self) -> Machine<'_> {
        Machine::new(&*self.automaton)
    }
}

fn too_many(limits: StackLimits) -> AutomatonError {
    AutomatonError::Limit {
        name: "max_configurations",
        what: "the number of stacks alive at a time",
        limit: limits.max_configurations,
    }
}
