//! Many requests side by side on one model: continuous batching.
//!
//! An [`Engine`] takes requests at any time ([`Engine::submit`]) and goes on
//! with all of them by one pass of the model at a time ([`Engine::step`]).
//! What has ended leaves at once and what waits takes its place at the next
//! step. Prompts are read in chunks beside the sequences that are written, so
//! that a long prompt holds nobody up. A prompt that begins as another one
//! did shares what the model remembers of that beginning. Grammars, limits,
//! seeds and all other options are each request's own, and each sequence is
//! what it would be alone.
//!
//! # Memory
//!
//! A request starts only if everything that it may come to need fits within
//! [`EngineOptions::cache_bytes`] beside what the running ones may come to
//! need, so that none has to be broken off for want of memory. One that would
//! not fit alone is refused with the numbers.
//!
//! # Example
//!
//! ```
//! use maskwright::generate::{Engine, EngineOptions, Event, Generator};
//! use maskwright::generate::{Prompt, Request};
//! use maskwright::grammar::Grammar;
//!
//! let generator = Generator::toy();
//! let grammar = generator.compile(&Grammar::from_choices(&["yes", "no"])?)?;
//! let mut engine = Engine::new(generator, EngineOptions::default());
//! for question in ["Is it?", "Was it?", "Will it be?"] {
//!     engine.submit(Request {
//!         prompt: Prompt::Text(question.to_owned()),
//!         grammar: Some(grammar.clone()),
//!         ..Request::default()
//!     })?;
//! }
//! let mut n_finished = 0;
//! while !engine.is_idle() {
//!     for event in engine.step()? {
//!         if let Event::Finished { result, .. } = event {
//!             assert!(["yes", "no"].contains(&&result?[0].text[..]));
//!             n_finished += 1;
//!         }
//!     }
//! }
//! assert_eq!(n_finished, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod memory;
mod prefixes;
mod running;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use rayon::prelude::*;

use self::{memory::Ledger, prefixes::Prefixes, running::Running};
use super::{
    error::GenerateError,
    generator::Generator,
    request::{Request, Search},
    result::Generation,
    sequence::Portion,
};
use crate::model::ModelError;

pub use memory::CacheUse;

/// How many tokens of a prompt go through the model in a step even if the
/// sequences that are written leave no room: a prompt is never held up for
/// good.
const MIN_CHUNK: usize = 16;

/// Names a request of one engine.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RequestId(u64);

/// The limits of an engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// How many sequences run at once at most; 16 by default. A request with
    /// more of its own runs alone.
    pub max_sequences: usize,
    /// How many tokens go through the model in one step before prompts have
    /// to wait; 256 by default.
    pub max_step_tokens: usize,
    /// How many bytes keys and values may take in all; no limit by default.
    pub cache_bytes: Option<usize>,
    /// How many ended requests are remembered for those that begin as they
    /// did; 16 by default. They give way to requests that need their memory.
    pub n_kept: usize,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            max_sequences: 16,
            max_step_tokens: 256,
            cache_bytes: None,
            n_kept: 16,
        }
    }
}

/// What happened in a step.
#[derive(Debug)]
pub enum Event {
    /// There is more text of a sequence, in whole characters.
    Text {
        /// The request.
        request: RequestId,
        /// Which of its sequences.
        sequence: usize,
        /// What is new.
        text: String,
    },
    /// A request has ended, and its memory is free.
    Finished {
        /// The request.
        request: RequestId,
        /// Its sequences, as from [`Generator::generate_all`], or what went
        /// wrong with it. Others are not touched by that.
        result: Result<Vec<Generation>, GenerateError>,
    },
}

/// Runs many requests side by side on one model.
#[derive(Debug)]
pub struct Engine {
    generator: Generator,
    options: EngineOptions,
    waiting: VecDeque<(RequestId, Request)>,
    /// The first of those that wait, once it is prepared.
    next: Option<Running>,
    running: Vec<Running>,
    prefixes: Prefixes,
    next_id: u64,
    /// What has happened and was not handed over yet.
    events: Vec<Event>,
}

impl Engine {
    /// Creates an engine without requests.
    pub fn new(generator: Generator, options: EngineOptions) -> Engine {
        Engine {
            generator,
            prefixes: Prefixes::new(options.n_kept),
            options,
            waiting: VecDeque::new(),
            next: None,
            running: Vec::new(),
            next_id: 0,
            events: Vec::new(),
        }
    }

    /// Returns the generator, with which grammars are compiled.
    pub fn generator(&self) -> &Generator {
        &self.generator
    }

    /// Takes a request in. It starts at a later step, in the order of
    /// submission.
    ///
    /// # Errors
    ///
    /// Fails when an option is out of range, and for a search with beams,
    /// which looks at all beams before each step:
    /// [`Generator::generate_all`] does those.
    pub fn submit(
        &mut self,
        request: Request,
    ) -> Result<RequestId, GenerateError> {
        request.check()?;
        if let Search::Beams(_) = request.search {
            return Err(GenerateError::OutOfRange {
                option: "search",
                given: "a search with beams".to_owned(),
                range: "samples in an engine; a generator searches with beams",
            });
        }
        let id = RequestId(self.next_id);
        self.next_id += 1;
        self.waiting.push_back((id, request));
        Ok(id)
    }

    /// Ends a request at once, and returns what it has written; nothing if it
    /// was waiting. Its memory is free when this returns.
    ///
    /// Returns `None` if there is no such request any more.
    pub fn cancel(&mut self, id: RequestId) -> Option<Vec<Generation>> {
        if let Some(at) = self.waiting.iter().position(|one| one.0 == id) {
            self.waiting.remove(at);
            return Some(Vec::new());
        }
        if self.next.take_if(|one| one.id == id).is_some() {
            return Some(Vec::new());
        }
        let at = self.running.iter().position(|one| one.id == id)?;
        let mut cancelled = self.running.remove(at);
        cancelled.cancel();
        Some(cancelled.finish(&self.generator).sequences)
    }

    /// Whether nothing waits and nothing runs.
    pub fn is_idle(&self) -> bool {
        self.n_waiting() == 0 && self.running.is_empty()
    }

    /// Returns how many requests wait.
    pub fn n_waiting(&self) -> usize {
        self.waiting.len() + usize::from(self.next.is_some())
    }

    /// Returns how many requests run.
    pub fn n_running(&self) -> usize {
        self.running.len()
    }

    /// Returns what keys and values take.
    pub fn cache_use(&self) -> CacheUse {
        let mut ledger = Ledger::default();
        for one in &self.running {
            one.enter(&mut ledger);
        }
        let committed = ledger.committed();
        self.prefixes.enter(&mut ledger);
        CacheUse {
            held: ledger.held(),
            committed,
            limit: self.options.cache_bytes,
        }
    }

    /// Goes on with every request by one pass of the model, and returns what
    /// came of it.
    ///
    /// # Errors
    ///
    /// Fails when the model does. The requests are as they were before the
    /// pass, and can be gone on with or cancelled. What happened before it is
    /// handed over by the next step.
    pub fn step(&mut self) -> Result<Vec<Event>, GenerateError> {
        self.admit();
        let Engine { generator, running, events, .. } = self;
        let generator: &Generator = generator;
        let outcomes: Vec<_> =
            running.par_iter_mut().map(|one| one.advance(generator)).collect();
        let mut outcomes = outcomes.into_iter();
        let mut failed = Vec::new();
        running.retain_mut(|one| {
            let request = one.id;
            match outcomes.next() {
                Some(Ok(pieces)) => {
                    let pieces = pieces.into_iter();
                    events.extend(pieces.map(|(sequence, text)| {
                        Event::Text { request, sequence, text }
                    }));
                    true
                }
                Some(Err(error)) => {
                    let result = Err(error);
                    failed.push(Event::Finished { request, result });
                    false
                }
                None => true,
            }
        });
        events.append(&mut failed);
        self.feed()?;
        self.retire();
        Ok(std::mem::take(&mut self.events))
    }

    /// Starts waiting requests as long as there is room.
    fn admit(&mut self) {
        while let Some((request, prepared)) = self.take_next() {
            let admitted = prepared.and_then(|mut one| {
                if !self.has_place(&one) {
                    return Ok(Some(one));
                }
                one.share(&self.running, &self.prefixes);
                let is_early = self.running.iter().any(|it| it.leads(&one));
                if is_early || !self.make_room(&one)? {
                    one.unshare();
                    return Ok(Some(one));
                }
                self.running.push(one);
                Ok(None)
            });
            match admitted {
                Ok(None) => {}
                Ok(next @ Some(_)) => {
                    self.next = next;
                    return;
                }
                Err(error) => {
                    let result = Err(error);
                    self.events.push(Event::Finished { request, result });
                }
            }
        }
    }

    /// Returns the first of those that wait, prepared.
    fn take_next(
        &mut self,
    ) -> Option<(RequestId, Result<Running, GenerateError>)> {
        if let Some(next) = self.next.take() {
            return Some((next.id, Ok(next)));
        }
        let (id, request) = self.waiting.pop_front()?;
        Some((id, Running::new(id, request, &self.generator)))
    }

    /// Whether there are not too many sequences for another request.
    fn has_place(&self, new: &Running) -> bool {
        let n_old: usize = self.running.iter().map(Running::n_sequences).sum();
        self.running.is_empty()
            || n_old + new.n_sequences() <= self.options.max_sequences
    }

    /// Whether a request fits beside those that run, if need be after what is
    /// only remembered has given way.
    fn make_room(&mut self, new: &Running) -> Result<bool, ModelError> {
        let Some(limit) = self.options.cache_bytes else { return Ok(true) };
        let alone = new.needed_alone();
        if alone > limit {
            return Err(ModelError::CacheFull { needed: alone, limit });
        }
        loop {
            let mut ledger = Ledger::default();
            for one in self.running.iter().chain([new]) {
                one.enter(&mut ledger);
            }
            if ledger.committed() > limit {
                return Ok(false);
            }
            self.prefixes.enter(&mut ledger);
            if ledger.committed() <= limit {
                return Ok(true);
            }
            self.prefixes.forget_oldest();
        }
    }

    /// Has the model read what each request took, and of prompts as much as
    /// there is room for.
    fn feed(&mut self) -> Result<(), GenerateError> {
        let mut n_left = self.options.max_step_tokens;
        let mut portions: Vec<Portion<'_>> = Vec::new();
        let mut reading = Vec::new();
        for one in &mut self.running {
            if one.is_reading() {
                reading.push(one);
                continue;
            }
            for portion in one.portions() {
                n_left = n_left.saturating_sub(portion.tokens.len());
                portions.push(portion);
            }
        }
        n_left = n_left.max(MIN_CHUNK);
        for one in reading {
            let Some(portion) = one.chunk(n_left) else { continue };
            n_left -= portion.tokens.len();
            portions.push(portion);
        }
        if portions.is_empty() {
            return Ok(());
        }
        let started = std::time::Instant::now();
        Portion::feed(&mut portions)?;
        let time = started.elapsed();
        for one in &mut self.running {
            one.fed(&self.generator, time);
        }
        Ok(())
    }

    /// Lets go of what has ended.
    fn retire(&mut self) {
        let (ended, running) = std::mem::take(&mut self.running)
            .into_iter()
            .partition(Running::has_ended);
        self.running = running;
        for one in Vec::into_iter(ended) {
            let request = one.id;
            let finished = one.finish(&self.generator);
            let rest = finished.pieces.into_iter();
            self.events.extend(rest.map(|(sequence, text)| Event::Text {
                request,
                sequence,
                text,
            }));
            self.prefixes.keep(finished.session);
            let result = Ok(finished.sequences);
            self.events.push(Event::Finished { request, result });
        }
    }
}
