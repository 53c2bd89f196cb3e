//! The slowest masks and compiles, run once more to tell a slow state from an
//! unlucky moment, with the engine's account of the state.

use maskwright::mask::MaskStats;
use tokenizers::Tokenizer;

use crate::clock::Clock;
use crate::corpus::Case;
use crate::engine::{Engine, Sequence};
use crate::report::Column;
use crate::stats::{micros, short};

/// How many masks of one schema are printed at most: a hard one would fill
/// the list.
const A_SCHEMA: usize = 3;

/// Where a mask was asked for.
#[derive(Clone, Copy, Debug)]
struct Place {
    schema: usize,
    test: usize,
    token: usize,
    nanos: u64,
}

/// Prints the `count` slowest masks and compiles of `column`. `case` gives the
/// case of an index, `other` is the engine to compare with.
///
/// # Errors
///
/// What `case` or the engine said.
pub fn print(
    column: &Column,
    other: Option<&Column>,
    count: usize,
    engine: &dyn Engine,
    tools: &Tools<'_>,
) -> Result<(), String> {
    println!("\nSlowest masks, {}:\n", column.name);
    println!("| µs | again | peer | schema | test.token | after | state |");
    println!("|--:|--:|--:|:--|--:|:--|:--|");
    for place in masks(column, count) {
        let case = (tools.case)(place.schema)?;
        let peer = other.and_then(|other| {
            let compiled = other.outcomes[place.schema].as_ref().ok()?;
            compiled.tests().get(place.test)?.masks.get(place.token)
        });
        let (again, state) = replay(engine, &case, place, tools)?;
        println!(
            "| {} | {} | {} | {} | {}.{} | `{}` | {state} |",
            short(micros(place.nanos)),
            short(micros(again)),
            peer.map_or("-".to_owned(), |span| short(micros(span.cpu))),
            case.name,
            place.test,
            place.token,
            tail(&case, place, tools.tokenizer),
        );
    }
    print_compiles(column, other, count, engine, tools)
}

fn print_compiles(
    column: &Column,
    other: Option<&Column>,
    count: usize,
    engine: &dyn Engine,
    tools: &Tools<'_>,
) -> Result<(), String> {
    println!("\nSlowest compiles (compile + first mask), {}:\n", column.name);
    println!(
        "| compile µs | again | first mask µs | again | peer, both | schema \
         | bytes | first state |"
    );
    println!("|--:|--:|--:|--:|--:|:--|--:|:--|");
    for (schema, compile, first) in compiles(column, count) {
        let case = (tools.case)(schema)?;
        let peer = other
            .and_then(|other| other.outcomes[schema].as_ref().ok())
            .map(|compiled| micros(compiled.to_first_mask().cpu));
        engine.prepare();
        let (sequence, compile_again) =
            tools.clock.time(|| engine.open(&case.schema));
        let mut sequence = sequence?;
        let mut words = vec![0; tools.n_words];
        let (result, first_again) =
            tools.clock.time(|| sequence.mask_into(&mut words));
        result?;
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            short(micros(compile)),
            short(micros(compile_again.cpu)),
            short(micros(first)),
            short(micros(first_again.cpu)),
            peer.map_or("-".to_owned(), short),
            case.name,
            case.schema.len(),
            reason(&*sequence),
        );
    }
    Ok(())
}

/// The state of a sequence in words, and what its last mask took, as a cell.
fn reason(sequence: &dyn Sequence) -> String {
    let stats = sequence.stats();
    let state = sequence.describe().replace(['\n', '|'], " ");
    if stats == MaskStats::default() {
        return state;
    }
    format!(
        "{state} ({} walks, {} known, {} nodes, {} stepped)",
        stats.n_walks, stats.n_known, stats.n_nodes, stats.n_stepped
    )
}

/// Prints why schemas did not compile and where valid instances were refused.
///
/// # Errors
///
/// What `case` said.
pub fn print_failures(
    column: &Column,
    count: usize,
    tools: &Tools<'_>,
) -> Result<(), String> {
    println!("\nNot compiled, {}:\n", column.name);
    let failed = column.outcomes.iter().enumerate();
    let failed =
        failed.filter_map(|(at, one)| Some((at, one.as_ref().err()?)));
    for (schema, error) in failed.take(count) {
        let case = (tools.case)(schema)?;
        let line = error.lines().next().unwrap_or_default();
        println!("- {}: {line}", case.name);
    }
    println!("\nDecided otherwise than MaskBench says, {}:\n", column.name);
    let mut left = count;
    for (schema, outcome) in column.outcomes.iter().enumerate() {
        let Ok(compiled) = outcome else { continue };
        for (test, run) in compiled.tests().iter().enumerate() {
            if (run.accepted == run.valid && run.error.is_none()) || left == 0
            {
                continue;
            }
            left -= 1;
            let case = (tools.case)(schema)?;
            let token = run.accepts.len();
            let place = Place { schema, test, token, nanos: 0 };
            println!(
                "- {} test {test}: valid {}, accepted {}, token {token} of {} \
                 after `{}` {}",
                case.name,
                run.valid,
                run.accepted,
                case.tests[test].tokens.len(),
                tail(&case, place, tools.tokenizer),
                run.error.as_deref().unwrap_or_default(),
            );
        }
    }
    Ok(())
}

/// What a second look at a case needs.
#[allow(missing_debug_implementations, reason = "holds a closure")]
pub struct Tools<'a> {
    /// The case of an index.
    pub case: &'a dyn Fn(usize) -> Result<Case, String>,
    /// For showing the text before a token.
    pub tokenizer: &'a Tokenizer,
    /// The clock of the run.
    pub clock: &'a Clock,
    /// Words of a mask.
    pub n_words: usize,
}

fn masks(column: &Column, count: usize) -> Vec<Place> {
    let mut places = Vec::new();
    for (schema, outcome) in column.outcomes.iter().enumerate() {
        let Ok(compiled) = outcome else { continue };
        for (test, run) in compiled.tests().iter().enumerate() {
            for (token, span) in run.masks.iter().enumerate() {
                places.push(Place { schema, test, token, nanos: span.cpu });
            }
        }
    }
    places.sort_by_key(|place| std::cmp::Reverse(place.nanos));
    let mut n_of_schema = vec![0; column.outcomes.len()];
    places.retain(|place| {
        n_of_schema[place.schema] += 1;
        n_of_schema[place.schema] <= A_SCHEMA
    });
    places.truncate(count);
    places
}

fn compiles(column: &Column, count: usize) -> Vec<(usize, u64, u64)> {
    let mut all: Vec<(usize, u64, u64)> = column
        .outcomes
        .iter()
        .enumerate()
        .filter_map(|(schema, outcome)| {
            let compiled = outcome.as_ref().ok()?;
            Some((schema, compiled.compile.cpu, compiled.first_mask.cpu))
        })
        .collect();
    all.sort_by_key(|(_, compile, first)| std::cmp::Reverse(compile + first));
    all.truncate(count);
    all
}

/// Drives a cold sequence to the place and times its mask again.
fn replay(
    engine: &dyn Engine,
    case: &Case,
    place: Place,
    tools: &Tools<'_>,
) -> Result<(u64, String), String> {
    let mut words = vec![0; tools.n_words];
    engine.prepare();
    let mut sequence = engine.open(&case.schema)?;
    for &token in &case.tests[place.test].tokens[..place.token] {
        sequence.mask_into(&mut words)?;
        sequence.accept(token)?;
    }
    let (result, span) = tools.clock.time(|| sequence.mask_into(&mut words));
    result?;
    Ok((span.cpu, reason(&*sequence)))
}

/// The last few tokens before the place, as text on one line.
fn tail(case: &Case, place: Place, tokenizer: &Tokenizer) -> String {
    let before = &case.tests[place.test].tokens;
    let before = &before[..place.token.min(before.len())];
    let before = &before[before.len().saturating_sub(12)..];
    let text = tokenizer.decode(before, false).unwrap_or_default();
    let one_line = text.replace(['\n', '\r'], " ").replace('|', "\\|");
    let skip = one_line.chars().count().saturating_sub(40);
    one_line.chars().skip(skip).collect()
}
