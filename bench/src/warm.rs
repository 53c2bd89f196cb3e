//! Known states: the masks of documents that were read before, under the same
//! grammar.
//!
//! Both engines read the same documents once, with everything shared that
//! they let their users share. Then they read them again, and at states taken
//! evenly along each the same mask is made many times in a row, between two
//! looks at the clock, so that the clock's own cost is divided by their
//! number. The peer's copy of the mask that it has just returned is dropped
//! before each, or it would be that copy which is measured; what the copy
//! takes is its own line.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::clock::{Clock, Span};
use crate::corpus::{self, Case};
use crate::engine::{self, Engine, Sequence};
use crate::options::Options;
use crate::report::times::{figures, ratios};
use crate::report::{print_head, print_line, print_ratio};
use crate::stats::{Distribution, grouped, micros, short};
use crate::tokenizer;

/// Each Nth schema, if the command line does not say.
const EVERY: usize = 20;

/// A state is taken each so many tokens.
const STRIDE: usize = 16;

/// States of a schema at most.
const A_SCHEMA: usize = 16;

/// How often a mask is made.
const REPEATS: u32 = 200;

/// Slow masks are made less often: about as long as this.
const PATIENCE: Duration = Duration::from_millis(4);

/// The targets in nanoseconds, by reference and copied.
const TARGETS: [u64; 2] = [500, 1_000];

/// Where a state is: schema, test, tokens before it.
type Place = (usize, usize, usize);

/// What one mask takes at a state.
#[derive(Clone, Debug)]
struct State {
    place: Place,
    /// Left where the engine has it.
    by_reference: Span,
    /// Written into the caller's buffer.
    copied: Span,
    /// Copied again without dropping what the engine remembers of it.
    again: Span,
    about: String,
}

/// Runs the command.
///
/// # Errors
///
/// What could not be read or loaded.
pub fn run(options: &Options) -> Result<(), String> {
    let records = options.records(EVERY)?;
    let path = options.tokenizer_path()?;
    let (tokenizer, shape) =
        tokenizer::load(&path, options.end_token, options.width)?;
    let engines = engine::load_wanted(options, &path, shape)?;
    let engines: Vec<_> =
        engines.into_iter().map(|(_, engine)| engine).collect();
    let clock = Clock::calibrated();
    let mut words = vec![0; shape.words()];
    let mut found: Vec<Vec<State>> = vec![Vec::new(); engines.len()];
    let mut names = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let case = corpus::prepare(record, &tokenizer)?;
        for turn in 0..engines.len() {
            let at = (index + turn) % engines.len();
            // What an engine refuses has no states.
            let states =
                states(&*engines[at], index, &case, &clock, &mut words);
            found[at].extend(states.unwrap_or_default());
        }
        names.push(case.name);
    }
    let at = |name: &str| {
        let mut names = engines.iter().map(|engine| engine.name());
        names.position(|found| found.to_lowercase().starts_with(name))
    };
    let (ours, peer) = (at("maskwright"), at("llguidance"));
    if let (Some(ours), Some(peer)) = (ours, peer) {
        keep_common(&mut found, ours, peer);
    }
    let states = |at: Option<usize>| at.map(|at| &*found[at]);
    let summary = print(states(ours), states(peer), records.len());
    if let Some(states) = states(ours.or(peer)).filter(|_| options.slowest > 0)
    {
        print_slowest(states, options.slowest, &names);
    }
    if options.summary_json {
        println!("\n{summary}");
    }
    Ok(())
}

/// The states of the documents of a case, in their order.
fn states(
    engine: &dyn Engine,
    index: usize,
    case: &Case,
    clock: &Clock,
    words: &mut [u32],
) -> Result<Vec<State>, String> {
    engine.prepare();
    let shared = engine.open(&case.schema)?.prototype().share()?;
    let valid = || {
        let tests = case.tests.iter().enumerate();
        tests.filter(|(_, test)| test.valid)
    };
    for (_, test) in valid() {
        let mut sequence = shared.start()?;
        for &token in &test.tokens {
            sequence.mask_into(words)?;
            sequence.accept(token)?;
        }
    }
    let mut states = Vec::new();
    for (test, instance) in valid() {
        let mut sequence = shared.start()?;
        for (token, &id) in instance.tokens.iter().enumerate() {
            // Not the same token of each document.
            if (token + index + test).is_multiple_of(STRIDE)
                && states.len() < A_SCHEMA
            {
                let place = (index, test, token);
                states.push(measure(&mut *sequence, place, clock, words)?);
            }
            sequence.accept(id)?;
        }
    }
    Ok(states)
}

fn measure(
    sequence: &mut dyn Sequence,
    place: Place,
    clock: &Clock,
    words: &mut [u32],
) -> Result<State, String> {
    sequence.mask_into(words)?;
    sequence.forget_mask();
    let start = Instant::now();
    sequence.mask_into(words)?;
    let about = sequence.describe();
    let one = start.elapsed().max(Duration::from_nanos(1));
    let fit = PATIENCE.as_nanos() / one.as_nanos();
    let repeats = u32::try_from(fit).unwrap_or(REPEATS).clamp(8, REPEATS);
    let looped = |work: &mut dyn FnMut() -> Result<(), String>| {
        let (result, span) =
            clock.time(|| (0..repeats).try_for_each(|_| work()));
        let each = |nanos: u64| nanos / u64::from(repeats);
        result.map(|()| Span { cpu: each(span.cpu), wall: each(span.wall) })
    };
    let by_reference = looped(&mut || {
        sequence.forget_mask();
        sequence.mask_by_reference()
    })?;
    let copied = looped(&mut || {
        sequence.forget_mask();
        sequence.mask_into(words)
    })?;
    let again = looped(&mut || sequence.mask_into(words))?;
    Ok(State { place, by_reference, copied, again, about })
}

/// Leaves the states that both engines reached.
fn keep_common(found: &mut [Vec<State>], ours: usize, peer: usize) {
    let places = |states: &[State]| -> Vec<Place> {
        let mut places: Vec<Place> =
            states.iter().map(|state| state.place).collect();
        places.sort_unstable();
        places
    };
    let (our_places, peer_places) =
        (places(&found[ours]), places(&found[peer]));
    for states in found {
        states.retain(|state| {
            our_places.binary_search(&state.place).is_ok()
                && peer_places.binary_search(&state.place).is_ok()
        });
    }
}

/// How a time is read from a state.
type Reading = fn(&State) -> u64;

/// What the tables have a row for: its name, that in the JSON line, and how
/// it is read from a state.
const ROWS: [(&str, &str, Reading); 5] = [
    ("by reference", "reference", |state| state.by_reference.cpu),
    ("copied", "copied", |state| state.copied.cpu),
    ("by reference, wall", "reference_wall", |state| state.by_reference.wall),
    ("copied, wall", "copied_wall", |state| state.copied.wall),
    ("copied, asked again at once", "again", |state| state.again.cpu),
];

fn print(
    ours: Option<&[State]>,
    peer: Option<&[State]>,
    n_schemas: usize,
) -> Value {
    let n_states = ours.or(peer).map_or(0, <[State]>::len);
    println!(
        "Known states: {} of documents of {n_schemas} schemas, each mask made \
         up to {REPEATS} times in a row, in µs; processor time of the thread \
         unless it says wall. *Asked again at once*: without dropping the \
         copy that the peer keeps of its last mask (Maskwright keeps none).\n",
        grouped(&n_states.to_string())
    );
    let mut summary = json!({"schemas": n_schemas, "states": n_states});
    print_head();
    for (what, key, read) in ROWS {
        let times = |states: Option<&[State]>| {
            states.map(|states| Distribution::new(states.iter().map(read)))
        };
        let (ours, peer) = (times(ours), times(peer));
        if let Some(peer) = &peer {
            print_line(&format!("{what}, llguidance"), peer);
            summary[format!("peer_{key}_us")] = figures(peer);
        }
        if let Some(ours) = &ours {
            print_line(&format!("{what}, Maskwright"), ours);
            summary[format!("{key}_us")] = figures(ours);
            if let Some(peer) = &peer {
                print_ratio(peer, ours);
                summary[format!("{key}_ratio")] = ratios(peer, ours);
            }
        }
    }
    if let Some(ours) = ours {
        for ((what, key, read), target) in ROWS.into_iter().zip(TARGETS) {
            let over = ours.iter().filter(|state| read(state) > target);
            let over = over.count();
            println!(
                "{}{what}: {over} of {n_states} states over {} µs.",
                if key == "reference" { "\n" } else { "" },
                short(micros(target))
            );
            summary[format!("{key}_over_target")] = json!(over);
        }
    }
    summary
}

fn print_slowest(states: &[State], count: usize, names: &[String]) {
    let mut slowest: Vec<&State> = states.iter().collect();
    slowest.sort_by_key(|state| std::cmp::Reverse(state.by_reference.cpu));
    println!("\nSlowest known states:\n");
    println!("| by reference µs | copied | schema | test.token | state |");
    println!("|--:|--:|:--|--:|:--|");
    for state in slowest.into_iter().take(count) {
        let (schema, test, token) = state.place;
        println!(
            "| {} | {} | {} | {test}.{token} | {} |",
            short(micros(state.by_reference.cpu)),
            short(micros(state.copied.cpu)),
            names[schema],
            state.about.replace(['\n', '|'], " "),
        );
    }
}
