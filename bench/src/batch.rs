//! Batches: 64 sequences with 64 grammars on [`BatchMatcher`], and the same in
//! a plain loop.
//!
//! A round reads the same documents with each runner in turn, over a vocabulary
//! of its own that knows what the load has made and nothing else. *Cold*: no
//! grammar was used before. *Warm*: every document was read before. *Mixed*:
//! every other one was. What is timed is the masks of each step together;
//! compiling, accepting and warming are not. A ratio is taken within each
//! round, where the same neighbours disturb both, and the median of the rounds
//! is what is printed.
//!
//! Where other programs want the cores, the wall clock says little about two
//! threads. So there is a second time, *spread evenly*: the processor time of
//! the calling thread and that of the pool divided by its threads. The wall
//! clock cannot read less: it is what it would read if each thread had a core,
//! each did as much as the others and none waited for a lock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use maskwright::batch::{BatchMatcher, BatchRow, RowMask};
use maskwright::matcher::Matcher;
use maskwright::vocabulary::TokenId;
use serde_json::{Value, json};

use crate::clock::thread_nanos;
use crate::corpus;
use crate::engine::Maskwright;
use crate::measure::is_allowed;
use crate::options::Options;
use crate::stats::{Distribution, micros, short};
use crate::tokenizer::{self, Shape};

/// Each Nth schema, if the command line does not say.
const EVERY: usize = 40;

/// Sequences of a batch.
const N_SEQUENCES: usize = 64;

/// Tokens that are read of each document.
const N_STEPS: usize = 48;

/// Documents with fewer tokens are left out.
const MIN_TOKENS: usize = 16;

/// How often everything is done.
const N_ROUNDS: usize = 9;

/// What is known when a batch begins.
const KINDS: [&str; 3] = ["cold", "mixed", "warm"];

/// What makes the masks of a step.
enum Runner {
    Plain,
    Pool(BatchMatcher),
}

impl Runner {
    fn n_threads(&self) -> u64 {
        match self {
            Runner::Plain => 1,
            Runner::Pool(pool) => pool.n_threads().max(1) as u64,
        }
    }
}

/// A document and its grammar.
struct Member {
    name: String,
    schema: String,
    tokens: Vec<u32>,
}

/// What the masks of a step took together, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Step {
    wall: u64,
    /// The calling thread's processor time.
    own: u64,
    /// The calling thread's processor time and that of the pool divided by
    /// its threads.
    spread: u64,
}

/// How long threads get to fall asleep before their accounts are read.
const SETTLING: Duration = Duration::from_micros(200);

/// Runs the command.
///
/// # Errors
///
/// What could not be read, loaded or started.
pub fn run(options: &Options) -> Result<(), String> {
    let path = options.tokenizer_path()?;
    let (tokenizer, shape) =
        tokenizer::load(&path, options.end_token, options.width)?;
    let engine = Maskwright::load(&path, shape)?;
    let mut members = Vec::new();
    for record in options.records(EVERY)? {
        if members.len() == N_SEQUENCES {
            break;
        }
        let case = corpus::prepare(&record, &tokenizer)?;
        let long = case
            .tests
            .into_iter()
            .find(|test| test.valid && test.tokens.len() >= MIN_TOKENS);
        let Some(test) = long else { continue };
        let mut tokens = test.tokens;
        tokens.truncate(N_STEPS);
        let member = Member { name: case.name, schema: case.schema, tokens };
        // Only what compiles and is allowed.
        if read(&engine, &member, shape.words()).is_ok() {
            members.push(member);
        }
    }
    let pool = |n_threads| -> Result<Runner, String> {
        let pool = BatchMatcher::new(n_threads);
        pool.map(Runner::Pool).map_err(|error| error.to_string())
    };
    let runners = [Runner::Plain, pool(1)?, pool(2)?];
    let n_masks: usize =
        members.iter().map(|member| member.tokens.len()).sum();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!(
        "Batches of {} sequences, each with a grammar of its own: {n_masks} \
         masks in {N_STEPS} steps, {N_ROUNDS} rounds, wall clock, {cores} \
         cores{}. Caller: the processor time of the calling thread, which \
         nothing divides. Spread: the same and the pool's divided by its \
         threads, which the wall clock would say on idle \
         cores with even work and no lock that is waited for.\n",
        members.len(),
        load_average().map_or_else(String::new, |load| {
            format!(", a load of {load} before it began")
        }),
    );
    let mut summary = json!({
        "sequences": members.len(), "steps": N_STEPS, "masks": n_masks,
        "rounds": N_ROUNDS, "cores": cores,
    });
    println!(
        "| | runner | µs a mask | steps p50 | p99 | max | caller, µs a mask | \
         spread, µs a mask | to plain loop | to 1 thread | spread to plain \
         loop | spread to 1 thread |"
    );
    println!("|:--|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for kind in KINDS {
        let mut times: [Vec<Vec<Step>>; 3] = Default::default();
        for round in 0..N_ROUNDS {
            for turn in 0..runners.len() {
                let at = (round + turn) % runners.len();
                let steps =
                    batch(&engine, &members, &runners[at], kind, shape)?;
                times[at].push(steps);
            }
        }
        summary[kind] = print(kind, &times, n_masks);
    }
    if options.slowest > 0 {
        print_slowest(&engine, &members, options.slowest, shape.words())?;
    }
    if options.summary_json {
        println!("\n{summary}");
    }
    Ok(())
}

/// Prints the slowest masks of a warm batch, made one after the other.
fn print_slowest(
    engine: &Maskwright,
    members: &[Member],
    count: usize,
    n_words: usize,
) -> Result<(), String> {
    let mut matchers = matchers(engine, members)?;
    let mut words = vec![0; n_words];
    for (matcher, member) in matchers.iter_mut().zip(members) {
        read_on(matcher, member, &mut words)?;
        matcher.reset().map_err(|error| error.to_string())?;
    }
    let mut found = Vec::new();
    for (matcher, member) in matchers.iter_mut().zip(members) {
        for (step, &token) in member.tokens.iter().enumerate() {
            let before = thread_nanos();
            matcher.mask_into(&mut words).map_err(|e| e.to_string())?;
            let nanos = thread_nanos() - before;
            let (state, stats) = (matcher.describe(), matcher.mask_stats());
            found.push((nanos, step, &member.name, state, stats));
            accept(matcher, token)?;
        }
    }
    found.sort_by_key(|(nanos, ..)| std::cmp::Reverse(*nanos));
    println!("\nSlowest warm masks:\n");
    println!("| µs | schema | step | walks | known | nodes | state |");
    println!("|--:|:--|--:|--:|--:|--:|:--|");
    for (nanos, step, name, state, stats) in found.into_iter().take(count) {
        println!(
            "| {} | {name} | {step} | {} | {} | {} | {} |",
            short(micros(nanos)),
            stats.n_walks,
            stats.n_known,
            stats.n_nodes,
            state.replace(['\n', '|'], " "),
        );
    }
    Ok(())
}

/// The sequences of a batch, their grammars compiled over one vocabulary.
fn matchers(
    engine: &Maskwright,
    members: &[Member],
) -> Result<Vec<Matcher>, String> {
    let tokens = Arc::new(engine.tokens().snapshot());
    members
        .iter()
        .map(|member| {
            let grammar = engine.compile(&member.schema, &tokens)?;
            Matcher::new(grammar).map_err(|error| error.to_string())
        })
        .collect()
}

/// Reads a document alone.
fn read(
    engine: &Maskwright,
    member: &Member,
    n_words: usize,
) -> Result<(), String> {
    let one = matchers(engine, std::slice::from_ref(member))?;
    let mut words = vec![0; n_words];
    one.into_iter()
        .try_for_each(|mut matcher| read_on(&mut matcher, member, &mut words))
}

fn read_on(
    matcher: &mut Matcher,
    member: &Member,
    words: &mut [u32],
) -> Result<(), String> {
    for &token in &member.tokens {
        matcher.mask_into(words).map_err(|error| error.to_string())?;
        accept(matcher, token)?;
    }
    Ok(())
}

fn accept(matcher: &mut Matcher, token: u32) -> Result<(), String> {
    matcher.accept(TokenId(token)).map_err(|error| error.to_string())
}

/// Reads all documents together, and returns what each step took.
fn batch(
    engine: &Maskwright,
    members: &[Member],
    runner: &Runner,
    kind: &str,
    shape: Shape,
) -> Result<Vec<Step>, String> {
    let mut matchers = matchers(engine, members)?;
    let mut words = vec![vec![0; shape.words()]; members.len()];
    let sequences = matchers.iter_mut().zip(members).zip(&mut words);
    for (index, ((matcher, member), words)) in sequences.enumerate() {
        let is_known = match kind {
            "cold" => false,
            "mixed" => index % 2 == 0,
            _ => true,
        };
        if is_known {
            read_on(matcher, member, words)?;
            matcher.reset().map_err(|error| error.to_string())?;
        }
    }
    let mut steps = Vec::new();
    for step in 0..N_STEPS {
        let pool_before = pool_nanos();
        let own_before = thread_nanos();
        let start = Instant::now();
        fill(runner, step, &mut matchers, &mut words, members)?;
        let wall = start.elapsed().as_nanos();
        let own = thread_nanos() - own_before;
        let wall = u64::try_from(wall).unwrap_or(u64::MAX);
        let pool = pool_nanos().saturating_sub(pool_before);
        let spread = own + pool / runner.n_threads();
        steps.push(Step { wall, own, spread });
        let sequences = matchers.iter_mut().zip(members).zip(&words);
        for ((matcher, member), words) in sequences {
            let Some(&token) = member.tokens.get(step) else { continue };
            if !is_allowed(words, token) {
                return Err(format!("token {step} of a document is refused"));
            }
            accept(matcher, token)?;
        }
    }
    Ok(steps)
}

/// The processor time so far of all threads of the pools. Zero where the
/// system does not say it.
fn pool_nanos() -> u64 {
    // A thread's account is brought up to date when it goes to sleep. The
    // plain loop waits as well: a pause is not without effect on what follows.
    std::thread::sleep(SETTLING);
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let spent = tasks.flatten().filter_map(|task| {
        let read = |file| std::fs::read_to_string(task.path().join(file)).ok();
        let name = read("comm")?;
        let number = name.trim_end().strip_prefix("maskwright-")?;
        number.parse::<usize>().ok()?;
        read("schedstat")?.split(' ').next()?.parse::<u64>().ok()
    });
    spent.sum()
}

/// Makes the masks of a step.
fn fill(
    runner: &Runner,
    step: usize,
    matchers: &mut [Matcher],
    words: &mut [Vec<u32>],
    members: &[Member],
) -> Result<(), String> {
    let sequences = matchers.iter_mut().zip(words).zip(members);
    let open = sequences
        .filter(|(_, member)| member.tokens.len() > step)
        .map(|(sequence, _)| sequence);
    match runner {
        Runner::Plain => {
            for (matcher, words) in open {
                matcher.mask_into(words).map_err(|e| e.to_string())?;
            }
        }
        Runner::Pool(pool) => {
            let mut rows: Vec<BatchRow<'_>> = open
                .map(|(matcher, words)| BatchRow::new(matcher, words))
                .collect();
            for result in pool.fill(&mut rows, None) {
                match result.map_err(|error| error.to_string())? {
                    RowMask::Done { .. } => {}
                    RowMask::Late => return Err("a late row".to_owned()),
                }
            }
        }
    }
    Ok(())
}

/// The runners by their names in the JSON line.
const NAMES: [&str; 3] = ["plain", "one_thread", "two_threads"];

/// Prints the rows of a kind, and returns what the JSON line says of it.
/// `rounds` has the steps of each round for each runner.
fn print(kind: &str, rounds: &[Vec<Vec<Step>>; 3], n_masks: usize) -> Value {
    let mut object = json!({});
    for (at, name) in NAMES.iter().enumerate() {
        let own = &rounds[at];
        let steps = own.iter().flatten().map(|step| step.wall);
        let steps = Distribution::new(steps).figures();
        let step = |wanted: &str| {
            let found = steps.iter().find(|(name, _)| *name == wanted);
            found.map_or(0.0, |(_, figure)| *figure)
        };
        let each = TIMES.map(|(_, read)| a_mask(own, read, n_masks));
        let mut cells = [each[0], step("p50"), step("p99"), step("max")]
            .map(short)
            .to_vec();
        let own_work = a_mask(own, |step| step.own, n_masks);
        object[format!("{name}_caller_us_a_mask")] = rounded(own_work);
        cells.extend([short(own_work), short(each[1])]);
        for (index, (key, read)) in TIMES.into_iter().enumerate() {
            let prefix = format!("{name}{key}");
            object[format!("{prefix}_us_a_mask")] = rounded(each[index]);
            for other in [0, 1] {
                if other >= at {
                    cells.push("-".to_owned());
                    continue;
                }
                let gain = gain(&rounds[other], own, read);
                cells.push(short(gain));
                object[format!("{prefix}_to_{}", NAMES[other])] =
                    rounded(gain);
            }
        }
        object[format!("{name}_step_p99_us")] = rounded(step("p99"));
        let name = name.replace('_', " ");
        println!("| {kind} | {name} | {} |", cells.join(" | "));
    }
    object
}

/// How a time is read from a step.
type Reading = fn(&Step) -> u64;

/// The two times, by what they add to the names of the JSON line.
const TIMES: [(&str, Reading); 2] =
    [("", |step| step.wall), ("_spread", |step| step.spread)];

/// Microseconds of a round.
fn total(steps: &[Step], read: Reading) -> f64 {
    micros(steps.iter().map(read).sum())
}

/// Microseconds of a mask, the median of the rounds.
fn a_mask(rounds: &[Vec<Step>], read: Reading, n_masks: usize) -> f64 {
    let totals = rounds.iter().map(|steps| total(steps, read));
    #[allow(clippy::cast_precision_loss, reason = "a few thousand")]
    let n_masks = n_masks.max(1) as f64;
    median(totals) / n_masks
}

/// Throughput against another runner, the median of the rounds.
fn gain(other: &[Vec<Step>], own: &[Vec<Step>], read: Reading) -> f64 {
    let pairs = other.iter().zip(own);
    median(pairs.map(|(other, own)| total(other, read) / total(own, read)))
}

fn rounded(figure: f64) -> Value {
    json!((figure * 1000.0).round() / 1000.0)
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = figures.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// The load of the last minute, where the system says it.
fn load_average() -> Option<String> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next().map(str::to_owned)
}
