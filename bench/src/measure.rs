//! One engine over one schema: the protocol of the comparison.
//!
//! The clock runs from the schema's text to the first mask, and then around
//! every mask and every accepted token of every instance. What the instances
//! start from is a [`Pass`], made outside the clock.

use std::panic::{AssertUnwindSafe, catch_unwind};

use maskwright::mask::MaskStats;

use crate::clock::{Clock, Span};
use crate::corpus::{Case, Instance};
use crate::engine::{Engine, Prototype, Sequence};

/// What the instances of a schema start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Every instance from a grammar made anew: nothing that depends on the
    /// grammar is known.
    Cold,
    /// The caches are empty at the schema, and its instances share what they
    /// build, in their order.
    Schema,
    /// The same instances once more, right after [`Pass::Schema`].
    Warm,
}

/// How many kinds of passes there are.
const N_PASSES: usize = 3;

/// The orders in which passes are made, in turn: what comes later finds
/// warmer processor caches.
pub const ORDERS: [[Pass; N_PASSES]; 2] = [
    [Pass::Cold, Pass::Schema, Pass::Warm],
    [Pass::Schema, Pass::Warm, Pass::Cold],
];

/// What an engine made of a schema: its times, or why it refused.
pub type Outcome = Result<Compiled, String>;

/// The times of a schema that compiled.
#[derive(Debug)]
pub struct Compiled {
    /// From the schema's text to a sequence.
    pub compile: Span,
    /// The first mask after that.
    pub first_mask: Span,
    /// The pass that counts for this engine.
    main: Pass,
    /// The instances of each pass, in the case's order; empty where the pass
    /// was not made.
    passes: [Vec<TestRun>; N_PASSES],
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
    /// The times of a schema over which one pass was made.
    pub fn of_one_pass(
        compile: Span,
        first_mask: Span,
        main: Pass,
        tests: Vec<TestRun>,
    ) -> Compiled {
        let mut passes: [Vec<TestRun>; N_PASSES] = Default::default();
        passes[main as usize] = tests;
        Compiled { compile, first_mask, main, passes }
    }

    /// The instances of the pass that counts for this engine.
    pub fn tests(&self) -> &[TestRun] {
        self.runs(self.main)
    }

    /// The instances of a pass; empty where it was not made.
    pub fn runs(&self, pass: Pass) -> &[TestRun] {
        &self.passes[pass as usize]
    }

    /// Compile and first mask together.
    pub fn to_first_mask(&self) -> Span {
        self.compile.plus(self.first_mask)
    }

    /// How the schema counts.
    pub fn verdict(&self) -> Verdict {
        let refused = |test: &TestRun| {
            test.error.is_some() || (test.valid && !test.accepted)
        };
        if self.tests().iter().any(refused) {
            Verdict::RefusedValid
        } else if self.tests().iter().any(|test| !test.valid && test.accepted)
        {
            Verdict::AcceptedInvalid
        } else {
            Verdict::Passing
        }
    }

    /// Whether all passes that were made decided every instance alike, at the
    /// same token. They must: caches are not to change results.
    pub fn passes_agree(&self) -> bool {
        let decided = |tests: &[TestRun]| -> Vec<(bool, usize)> {
            let one = |test: &TestRun| (test.accepted, test.accepts.len());
            tests.iter().map(one).collect()
        };
        let main = decided(self.tests());
        self.passes
            .iter()
            .filter(|tests| !tests.is_empty())
            .all(|tests| decided(tests) == main)
    }
}

/// What is measured of each schema, and with what.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The clock.
    pub clock: &'a Clock,
    /// The passes, in their order. [`Pass::Warm`] comes after
    /// [`Pass::Schema`], whose caches it finds.
    pub passes: &'a [Pass],
    /// Have every state of the main pass described.
    pub with_places: bool,
}

/// Measures `engine` on `case`. `words` is the caller's mask buffer. A panic
/// counts as a refusal of the schema.
pub fn measure(
    engine: &dyn Engine,
    case: &Case,
    plan: &Plan<'_>,
    words: &mut [u32],
) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| run_case(engine, case, plan, words)))
        .unwrap_or_else(|_| Err("panicked".to_owned()))
}

fn run_case(
    engine: &dyn Engine,
    case: &Case,
    plan: &Plan<'_>,
    words: &mut [u32],
) -> Outcome {
    engine.prepare();
    let (sequence, compile) = plan.clock.time(|| engine.open(&case.schema));
    let mut sequence = sequence?;
    let cold = sequence.prototype();
    let (first, first_mask) = plan.clock.time(|| sequence.mask_into(words));
    first.map_err(|error| format!("first mask: {error}"))?;
    drop(sequence);
    let main = engine.main_pass();
    let mut compiled =
        Compiled { compile, first_mask, main, passes: Default::default() };
    let mut shared: Option<Box<dyn Prototype>> = None;
    for &pass in plan.passes {
        if pass == Pass::Schema {
            shared = Some(cold.share()?);
        }
        let prototype = match (pass, &shared) {
            (Pass::Schema | Pass::Warm, Some(shared)) => shared,
            _ => &cold,
        };
        let with_places = plan.with_places && pass == main;
        let runs = &mut compiled.passes[pass as usize];
        for instance in &case.tests {
            let start = prototype.start()?;
            let clock = plan.clock;
            runs.push(run_instance(
                start,
                instance,
                clock,
                words,
                with_places,
            ));
        }
    }
    Ok(compiled)
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

/// Whether the mask has the token.
pub fn is_allowed(words: &[u32], token: u32) -> bool {
    let word = words.get(token as usize / 32).copied().unwrap_or(0);
    word >> (token % 32) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(accepted: bool) -> TestRun {
        TestRun {
            valid: true,
            accepted,
            error: None,
            masks: Vec::new(),
            accepts: Vec::new(),
            places: Vec::new(),
        }
    }

    #[test]
    fn the_main_pass_decides_and_others_have_to_agree() {
        let span = Span::default();
        let tests = vec![run(true)];
        let mut compiled =
            Compiled::of_one_pass(span, span, Pass::Schema, tests);
        assert_eq!(compiled.verdict(), Verdict::Passing);
        assert!(compiled.runs(Pass::Cold).is_empty());
        assert!(compiled.passes_agree());
        compiled.passes[Pass::Cold as usize] = vec![run(false)];
        assert_eq!(compiled.verdict(), Verdict::Passing);
        assert!(!compiled.passes_agree());
    }

    #[test]
    fn warm_comes_after_what_fills_its_caches() {
        for order in ORDERS {
            let at = |pass| order.iter().position(|&found| found == pass);
            assert!(at(Pass::Schema) < at(Pass::Warm));
        }
    }
}
