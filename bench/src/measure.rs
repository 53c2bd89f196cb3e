//! One engine over one schema: the protocol of the comparison.
//!
//! The clock runs from the schema's text to the first mask, and then around
//! every mask and every accepted token of every instance. Each instance starts
//! from a cold copy, made outside the clock.

use std::panic::{AssertUnwindSafe, catch_unwind};

use maskwright::mask::MaskStats;

use crate::clock::{Clock, Span};
use crate::corpus::{Case, Instance};
use crate::engine::{Engine, Sequence};

/// What an engine made of a schema: its times, or why it refused.
pub type Outcome = Result<Compiled, String>;

/// The times of a schema that compiled.
#[derive(Debug)]
pub struct Compiled {
    /// From the schema's text to a sequence.
    pub compile: Span,
    /// The first mask after that.
    pub first_mask: Span,
    /// The instances, in the case's order.
    pub tests: Vec<TestRun>,
}

/// The times of an instance, up to the token that was refused.
#[derive(Debug)]
pub struct TestRun {
    /// What MaskBench says of the instance.
    pub valid: bool,
    /// Every token was allowed and the end accepted.
    pub accepted: bool,
    /// The engine failed on the way.
    pub error: Option<String>,
    /// One span for every mask asked for.
    pub masks: Vec<Span>,
    /// One span for every token accepted.
    pub accepts: Vec<Span>,
    /// The engine's account of the state of every mask, if that was asked.
    pub places: Vec<(String, MaskStats)>,
}

impl TestRun {
    /// Mask and accept of one token together; a refused token has no accept.
    pub fn step(&self, index: usize) -> Span {
        let accept = self.accepts.get(index).copied().unwrap_or_default();
        self.masks[index].plus(accept)
    }
}

/// How a schema counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every valid instance accepted, every invalid one refused.
    Passing,
    /// A valid instance was refused, or the engine failed on one.
    RefusedValid,
    /// An invalid instance was accepted, and no valid one refused.
    AcceptedInvalid,
}

impl Compiled {
    /// Compile and first mask together.
    pub fn to_first_mask(&self) -> Span {
        self.compile.plus(self.first_mask)
    }

    /// How the schema counts.
    pub fn verdict(&self) -> Verdict {
        let refused = |test: &TestRun| {
            test.error.is_some() || (test.valid && !test.accepted)
        };
        if self.tests.iter().any(refused) {
            Verdict::RefusedValid
        } else if self.tests.iter().any(|test| !test.valid && test.accepted) {
            Verdict::AcceptedInvalid
        } else {
            Verdict::Passing
        }
    }
}

/// Measures `engine` on `case`. `words` is the caller's mask buffer. A panic
/// counts as a refusal of the schema. `with_places` has every state described.
pub fn measure(
    engine: &dyn Engine,
    case: &Case,
    clock: &Clock,
    words: &mut [u32],
    with_places: bool,
) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| {
        run_case(engine, case, clock, words, with_places)
    }))
    .unwrap_or_else(|_| Err("panicked".to_owned()))
}

fn run_case(
    engine: &dyn Engine,
    case: &Case,
    clock: &Clock,
    words: &mut [u32],
    with_places: bool,
) -> Outcome {
    let (sequence, compile) = clock.time(|| engine.open(&case.schema));
    let mut sequence = sequence?;
    let prototype = sequence.prototype();
    let (first, first_mask) = clock.time(|| sequence.mask_into(words));
    first.map_err(|error| format!("first mask: {error}"))?;
    drop(sequence);
    let mut tests = Vec::with_capacity(case.tests.len());
    for instance in &case.tests {
        let copy = prototype.start()?;
        tests.push(run_instance(copy, instance, clock, words, with_places));
    }
    Ok(Compiled { compile, first_mask, tests })
}

fn run_instance(
    mut sequence: Box<dyn Sequence>,
    instance: &Instance,
    clock: &Clock,
    words: &mut [u32],
    with_places: bool,
) -> TestRun {
    let mut run = TestRun {
        valid: instance.valid,
        accepted: false,
        error: None,
        masks: Vec::with_capacity(instance.tokens.len()),
        accepts: Vec::with_capacity(instance.tokens.len()),
        places: Vec::new(),
    };
    for &token in &instance.tokens {
        let (result, span) = clock.time(|| sequence.mask_into(words));
        if let Err(error) = result {
            run.error = Some(error);
            return run;
        }
        run.masks.push(span);
        if with_places {
            run.places.push((sequence.describe(), sequence.stats()));
        }
        if !is_allowed(words, token) {
            return run;
        }
        let (result, span) = clock.time(|| sequence.accept(token));
        if let Err(error) = result {
            run.error = Some(error);
            return run;
        }
        run.accepts.push(span);
    }
    run.accepted = sequence.is_accepting();
    run
}

fn is_allowed(words: &[u32], token: u32) -> bool {
    let word = words.get(token as usize / 32).copied().unwrap_or(0);
    word >> (token % 32) & 1 == 1
}
