//! The state of one sequence.
//!
//! A [`Matcher`] reads tokens and says which may come next. It is small and
//! cheap to fork: all that is large lies behind the grammar's `Arc`. Its
//! history is kept whole, a reference count a token, so that any number of
//! tokens can be taken back.
//!
//! A call that fails leaves the matcher as it was.
//!
//! # Example
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use maskwright::{compiled::CompiledGrammar, matcher::Matcher};
//! # fn next(grammar: Arc<CompiledGrammar>)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! let mut matcher = Matcher::new(grammar)?;
//! while !matcher.is_terminated() {
//!     let mask = matcher.mask()?;
//!     let token = mask.tokens().next().expect("a grammar is never stuck");
//!     matcher.accept(token)?;
//! }
//! # Ok(())
//! # }
//! ```

mod draft;
mod error;
mod forced;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc, time::Instant};

use maskwright_grammar_core::{
    automaton::{AutomatonError, Configuration, Symbol},
    interrupt::Interrupt,
};

pub use self::{
    draft::{DraftMasks, DraftNode, DraftRow},
    error::MatcherError,
};
use crate::{
    compiled::CompiledGrammar,
    mask::{MaskStats, TokenMask, token_mask},
    saved::MAX_TEXT,
    vocabulary::{TokenId, TokenKind},
};

/// How many bytes [`Matcher::forced_bytes`] returns at most: a grammar may
/// force a text without end.
pub const MAX_FORCED_BYTES: usize = 1024;

/// The state of one sequence.
#[derive(Clone)]
pub struct Matcher {
    grammar: Arc<CompiledGrammar>,
    state: State,
    /// The states before each step, oldest first.
    history: Vec<State>,
    /// Where a mask is put together that is not kept.
    mask: TokenMask,
    /// The last mask, if the grammar keeps it.
    kept: Option<Arc<TokenMask>>,
    stats: MaskStats,
    is_timed: bool,
    /// What was read, if the grammar remembers texts, up to a length.
    text: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
struct State {
    configuration: Configuration,
    terminated: bool,
    /// How much of the text was read before, where that is kept.
    n_bytes: u32,
}

impl Matcher {
    /// Creates a matcher that has read nothing.
    ///
    /// # Errors
    ///
    /// Fails when the grammar cannot build its first state.
    pub fn new(
        grammar: Arc<CompiledGrammar>,
    ) -> Result<Matcher, MatcherError> {
        let configuration = grammar.start()?;
        let mask = TokenMask::none(grammar.vocabulary().n_logits());
        let state = State { configuration, terminated: false, n_bytes: 0 };
        let stats = MaskStats::default();
        let text = grammar.remembers().then(Vec::new);
        Ok(Matcher {
            grammar,
            state,
            history: Vec::new(),
            mask,
            kept: None,
            stats,
            is_timed: false,
            text,
        })
    }

    /// Returns the grammar.
    pub fn grammar(&self) -> &Arc<CompiledGrammar> {
        &self.grammar
    }

    pub(crate) fn configuration(&self) -> &Configuration {
        &self.state.configuration
    }

    /// Returns the tokens that may come next.
    ///
    /// # Errors
    ///
    /// Fails when an end token was accepted already, or a limit of the
    /// grammar is met.
    pub fn mask(&mut self) -> Result<&TokenMask, MatcherError> {
        self.check_unfinished()?;
        let start = self.clock();
        let configuration = &self.state.configuration;
        let blocks = self.mask.blocks_mut();
        (self.kept, self.stats) =
            self.grammar.whole_or_fill(configuration, blocks)?;
        self.stop_clock(start);
        self.note_if_dear()?;
        Ok(self.kept.as_deref().unwrap_or(&self.mask))
    }

    /// Returns what the last mask took.
    pub fn mask_stats(&self) -> MaskStats {
        self.stats
    }

    /// Sets whether [`MaskStats::time`] is measured. It is not at first: two
    /// looks at the clock are a part of what a known mask takes.
    pub fn measure_time(&mut self, is_timed: bool) {
        self.is_timed = is_timed;
    }

    /// Writes the words of the mask to `words`, and returns whether anything
    /// is forbidden: if not, the mask need not be applied.
    ///
    /// Token `i` is bit `i % 32` of word `i / 32`, and an allowed token is a
    /// one: what [`TokenMask::words`] returns.
    ///
    /// # Errors
    ///
    /// Fails as [`Matcher::mask`] does, and when `words` is not exactly as
    /// wide as the logits.
    pub fn mask_into(
        &mut self,
        words: &mut [u32],
    ) -> Result<bool, MatcherError> {
        self.check_unfinished()?;
        let start = self.clock();
        let n_logits = self.mask.len();
        let Some(blocks) = token_mask::blocks_of(words, n_logits) else {
            let mask = self.mask()?;
            mask.copy_into(words)?;
            return Ok(mask.n_allowed() < n_logits);
        };
        let configuration = &self.state.configuration;
        self.stats = self.grammar.fill(configuration, blocks)?;
        self.stop_clock(start);
        self.note_if_dear()?;
        Ok(token_mask::forbids_any(blocks, n_logits))
    }

    /// Tells the grammar the text if the last mask is one to be saved.
    fn note_if_dear(&self) -> Result<(), MatcherError> {
        if let (Some(depth), Some(text)) =
            (self.stats.dear_depth, self.text.as_deref())
        {
            let configuration = &self.state.configuration;
            self.grammar.note(configuration, depth, text)?;
        }
        Ok(())
    }

    /// Goes on to `next`, which `bytes` lead to.
    fn go_on(&mut self, mut next: State, bytes: &[u8]) {
        if let Some(text) = &mut self.text {
            text.extend_from_slice(bytes);
            match u32::try_from(text.len()) {
                Ok(n_bytes) if text.len() <= MAX_TEXT => {
                    next.n_bytes = n_bytes;
                }
                _ => self.text = None,
            }
        }
        self.history.push(std::mem::replace(&mut self.state, next));
    }

    /// Goes on to `next`, which `token` leads to.
    fn go_on_by(&mut self, next: State, token: TokenId) {
        if self.text.is_none() || next.terminated {
            return self.go_on(next, &[]);
        }
        let vocabulary = Arc::clone(self.grammar.vocabulary());
        self.go_on(next, vocabulary.token_bytes(token).unwrap_or_default());
    }

    /// Does what [`Matcher::mask_into`] does, with the same bits in signed
    /// words: the bitmask that the kernels of vLLM and XGrammar read is a
    /// tensor of `int32`, a row a sequence.
    ///
    /// # Errors
    ///
    /// As [`Matcher::mask_into`].
    pub fn mask_into_i32(
        &mut self,
        words: &mut [i32],
    ) -> Result<bool, MatcherError> {
        self.mask_into(bytemuck::cast_slice_mut(words))
    }

    /// Does what [`Matcher::mask_into`] does, unless `interrupt` comes before
    /// it is done. What was learned until then is kept, so that asking again
    /// goes on from there.
    ///
    /// # Errors
    ///
    /// As [`Matcher::mask_into`], and with [`AutomatonError::Interrupted`].
    /// What `words` holds is not specified then.
    pub fn mask_into_within(
        &mut self,
        words: &mut [u32],
        interrupt: &Interrupt,
    ) -> Result<bool, MatcherError> {
        let result = interrupt.run(|| self.mask_into(words));
        result.map_err(AutomatonError::Interrupted)?
    }

    /// Does what [`Matcher::mask_into`] does if that takes nothing new: no
    /// walk has to be made, and no other thread is waited for. Otherwise
    /// returns none, and `words` holds anything.
    pub(crate) fn known_mask_into(
        &mut self,
        words: &mut [u32],
    ) -> Result<Option<bool>, MatcherError> {
        self.check_unfinished()?;
        let start = self.clock();
        let n_logits = self.mask.len();
        let configuration = &self.state.configuration;
        let in_place = token_mask::blocks_of(words, n_logits);
        let is_in_place = in_place.is_some();
        let blocks = in_place.unwrap_or(self.mask.blocks_mut());
        let known = self.grammar.fill_known(configuration, blocks)?;
        let forbids_any = token_mask::forbids_any(blocks, n_logits);
        let Some(stats) = known else { return Ok(None) };
        self.set_stats(stats);
        self.stop_clock(start);
        if !is_in_place {
            self.mask.copy_into(words)?;
        }
        Ok(Some(forbids_any))
    }

    pub(crate) fn set_stats(&mut self, stats: MaskStats) {
        self.stats = stats;
    }

    fn clock(&self) -> Option<Instant> {
        self.is_timed.then(Instant::now)
    }

    fn stop_clock(&mut self, start: Option<Instant>) {
        self.stats.time = start.map(|start| start.elapsed());
    }

    /// Reads `token`.
    ///
    /// # Errors
    ///
    /// Fails when the token may not come next or is not in the vocabulary,
    /// when an end token was accepted already, and when a limit of the
    /// grammar is met.
    pub fn accept(&mut self, token: TokenId) -> Result<(), MatcherError> {
        let next = self.after(&self.state, token)?;
        let next = next.ok_or_else(|| self.refusal(token))?;
        self.go_on_by(next, token);
        Ok(())
    }

    /// Reads as many of `tokens` as may come next, and returns how many those
    /// are.
    ///
    /// # Errors
    ///
    /// Fails when a token is not in the vocabulary, or a limit of the grammar
    /// is met. Nothing is read then.
    pub fn try_accept(
        &mut self,
        tokens: &[TokenId],
    ) -> Result<usize, MatcherError> {
        for (n_read, &token) in tokens.iter().enumerate() {
            if self.state.terminated {
                return Ok(n_read);
            }
            match self.after(&self.state, token) {
                Ok(Some(next)) => self.go_on_by(next, token),
                Ok(None) => return Ok(n_read),
                Err(error) => {
                    self.rollback(n_read)?;
                    return Err(error);
                }
            }
        }
        Ok(tokens.len())
    }

    /// Reads `bytes`, all of them or none. That is one step for
    /// [`Matcher::rollback`].
    ///
    /// # Errors
    ///
    /// Fails when a byte may not come next, when an end token was accepted
    /// already, and when a limit of the grammar is met.
    pub fn accept_bytes(&mut self, bytes: &[u8]) -> Result<(), MatcherError> {
        self.check_unfinished()?;
        let machine = self.grammar.machine();
        let limits = self.grammar.limits();
        let mut configuration = self.state.configuration.clone();
        for (offset, &byte) in bytes.iter().enumerate() {
            let symbol = Symbol::Byte(byte);
            let next = configuration.step(machine, limits, symbol)?;
            if next.is_dead() {
                return Err(MatcherError::ByteRefused {
                    byte,
                    offset,
                    place: configuration.describe(machine),
                });
            }
            configuration = next;
        }
        let next = State { configuration, terminated: false, n_bytes: 0 };
        self.go_on(next, bytes);
        Ok(())
    }

    /// Takes back the last `n_steps` steps: tokens, and calls of
    /// [`Matcher::accept_bytes`].
    ///
    /// # Errors
    ///
    /// Fails when there were fewer steps.
    pub fn rollback(&mut self, n_steps: usize) -> Result<(), MatcherError> {
        if n_steps == 0 {
            return Ok(());
        }
        let Some(keep) = self.history.len().checked_sub(n_steps) else {
            return Err(MatcherError::Rollback {
                n_steps,
                n_read: self.history.len(),
            });
        };
        self.history.truncate(keep + 1);
        if let Some(state) = self.history.pop() {
            self.state = state;
        }
        if let Some(text) = &mut self.text {
            text.truncate(self.state.n_bytes as usize);
        }
        Ok(())
    }

    /// Returns how many steps can be taken back.
    pub fn n_steps(&self) -> usize {
        self.history.len()
    }

    /// Returns a matcher that goes on from here on its own.
    #[must_use]
    pub fn fork(&self) -> Matcher {
        self.clone()
    }

    /// Goes back to the start, and forgets everything that was read.
    ///
    /// # Errors
    ///
    /// Fails when the grammar cannot build its first state.
    pub fn reset(&mut self) -> Result<(), MatcherError> {
        let configuration = self.grammar.start()?;
        self.state = State { configuration, terminated: false, n_bytes: 0 };
        self.history.clear();
        self.text = self.grammar.remembers().then(Vec::new);
        Ok(())
    }

    /// Returns true if and only if the text may end here.
    ///
    /// # Errors
    ///
    /// Fails when a limit of the grammar is met.
    pub fn is_accepting(&self) -> Result<bool, MatcherError> {
        let machine = self.grammar.machine();
        let limits = self.grammar.limits();
        Ok(self.state.configuration.is_accepting(machine, limits)?)
    }

    /// Returns true if and only if an end token was accepted.
    pub fn is_terminated(&self) -> bool {
        self.state.terminated
    }

    /// Returns true if and only if `token` may come next.
    ///
    /// # Errors
    ///
    /// Fails when the token is not in the vocabulary, or a limit of the
    /// grammar is met.
    pub fn is_token_allowed(
        &self,
        token: TokenId,
    ) -> Result<bool, MatcherError> {
        Ok(self.after(&self.state, token)?.is_some())
    }

    /// Returns the bytes that must come next: as long as there is one byte
    /// that may, and the text may not end. At most [`MAX_FORCED_BYTES`].
    ///
    /// They are bytes, not tokens: a model would not necessarily split them
    /// where they begin and end. [`Matcher::forced_tokens`] does.
    ///
    /// # Errors
    ///
    /// Fails when a limit of the grammar is met.
    pub fn forced_bytes(&self) -> Result<Vec<u8>, MatcherError> {
        let mut forced = Vec::new();
        if self.state.terminated {
            return Ok(forced);
        }
        let machine = self.grammar.machine();
        let limits = self.grammar.limits();
        let mut configuration = self.state.configuration.clone();
        while forced.len() < MAX_FORCED_BYTES {
            if self.grammar.may_read_atom(&configuration)? {
                break;
            }
            let Some(byte) = configuration.forced_byte(machine, limits)?
            else {
                break;
            };
            let symbol = Symbol::Byte(byte);
            configuration = configuration.step(machine, limits, symbol)?;
            forced.push(byte);
        }
        Ok(forced)
    }

    /// Returns the mask as brute force has it: every token of the vocabulary
    /// is stepped on its own.
    ///
    /// This is the definition of a mask, and thousands of times slower than
    /// [`Matcher::mask`], which must always agree.
    ///
    /// # Errors
    ///
    /// Fails as [`Matcher::mask`] does.
    pub fn brute_force_mask(&self) -> Result<TokenMask, MatcherError> {
        self.check_unfinished()?;
        let mut mask = TokenMask::none(self.mask.len());
        for index in 0..self.grammar.vocabulary().n_tokens() {
            let token = TokenId::from_index(index);
            if self.is_token_allowed(token)? {
                mask.allow(token)?;
            }
        }
        Ok(mask)
    }

    /// Describes for people what is being read.
    pub fn describe(&self) -> String {
        self.state.configuration.describe(self.grammar.machine())
    }

    /// Returns the state that `before` comes to by `token`, or none if it may
    /// not come next.
    fn after(
        &self,
        before: &State,
        token: TokenId,
    ) -> Result<Option<State>, MatcherError> {
        if before.terminated {
            return Err(MatcherError::Finished);
        }
        let vocabulary = self.grammar.vocabulary();
        if token.index() >= vocabulary.n_tokens() {
            return Err(MatcherError::TokenOutOfRange {
                token,
                n_tokens: vocabulary.n_tokens(),
            });
        }
        let before = &before.configuration;
        if vocabulary.is_end(token) {
            let machine = self.grammar.machine();
            let limits = self.grammar.limits();
            if !before.is_accepting(machine, limits)? {
                return Ok(None);
            }
            let configuration = before.clone();
            let terminated = true;
            return Ok(Some(State { configuration, terminated, n_bytes: 0 }));
        }
        let configuration = self.grammar.after(before, token)?;
        let state = State { configuration, terminated: false, n_bytes: 0 };
        Ok((!state.configuration.is_dead()).then_some(state))
    }

    fn check_unfinished(&self) -> Result<(), MatcherError> {
        if self.state.terminated {
            return Err(MatcherError::Finished);
        }
        Ok(())
    }

    /// Says why `token` may not come next.
    fn refusal(&self, token: TokenId) -> MatcherError {
        let vocabulary = self.grammar.vocabulary();
        let place = self.describe();
        let text = vocabulary.text(token).into_owned();
        if vocabulary.is_end(token) {
            return MatcherError::NotAccepting { token, place };
        }
        match vocabulary.kind(token) {
            TokenKind::Text => {
                MatcherError::TokenRefused { token, text, place }
            }
            _ => MatcherError::NotText { token, text },
        }
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher")
            .field("n_steps", &self.history.len())
            .field("terminated", &self.state.terminated)
            .field("place", &self.describe())
            .finish_non_exhaustive()
    }
}
