//! The tables for people and the JSON line for programs.

mod table;
pub mod times;

use serde_json::{Map, Value, json};

use self::table::{Side, print_rows};
pub use self::table::{print_head, print_line, print_ratio};
use self::times::{
    ALL_ROWS, Both, CPU_ROWS, MASK_ROWS, Pair, Times, figures, ratios,
};
use crate::measure::{Compiled, Outcome, Pass, Verdict};
use crate::stats::grouped;

/// One engine's results, in the order of the cases.
#[derive(Debug)]
pub struct Column {
    /// The engine's name.
    pub name: String,
    /// The pass that the main tables quote.
    pub main: Pass,
    /// One outcome a case.
    pub outcomes: Vec<Outcome>,
    /// Peak memory of a run of this engine alone, where it was measured.
    pub peak_rss_mb: Option<f64>,
}

/// How one engine's schemas count.
#[derive(Debug, Default)]
pub struct Counts {
    /// Schemas whose instances all came out as MaskBench says.
    pub passing: usize,
    /// Schemas with a refused valid instance.
    pub refused_valid: usize,
    /// Schemas with an accepted invalid instance.
    pub accepted_invalid: usize,
    /// Schemas that did not compile.
    pub compile_errors: usize,
    /// Schemas that passes with other caches decided otherwise. A mistake of
    /// the engine if there are any.
    pub passes_disagree: usize,
}

impl Column {
    /// Counts the verdicts.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for outcome in &self.outcomes {
            match outcome.as_ref().map(Compiled::verdict) {
                Err(_) => counts.compile_errors += 1,
                Ok(Verdict::Passing) => counts.passing += 1,
                Ok(Verdict::RefusedValid) => counts.refused_valid += 1,
                Ok(Verdict::AcceptedInvalid) => counts.accepted_invalid += 1,
            }
            let agree = outcome.as_ref().is_ok_and(Compiled::passes_agree);
            counts.passes_disagree += usize::from(outcome.is_ok() && !agree);
        }
        counts
    }

    fn all(&self) -> Vec<&Compiled> {
        self.outcomes.iter().filter_map(|one| one.as_ref().ok()).collect()
    }
}

/// All columns of a run. Any may be absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Columns<'a> {
    /// Maskwright.
    pub ours: Option<&'a Column>,
    /// The peer in this process.
    pub peer: Option<&'a Column>,
    /// XGrammar, in a process of its own.
    pub xgrammar: Option<&'a Column>,
}

/// What the lines of ours are called where each test is cold.
const COLD: &str = "Maskwright, each test cold";

/// Prints the tables, and returns what the JSON line says.
pub fn print(columns: Columns<'_>, n_schemas: usize) -> Value {
    let Columns { ours, peer, xgrammar } = columns;
    let mut summary = Map::new();
    summary.insert("schemas".into(), json!(n_schemas));
    print_counts(&[peer, ours, xgrammar]);
    if let (Some(ours), Some(peer)) = (ours, peer) {
        print_both(ours, peer, &mut summary);
    }
    print_all(ours, peer, &mut summary);
    if let (Some(ours), Some(peer)) = (ours, peer) {
        print_sharing(ours, peer, &mut summary);
    }
    insert_alone(&mut summary, "", ours);
    insert_alone(&mut summary, "peer_", peer);
    if let Some(xgrammar) = xgrammar {
        let value = print_xgrammar(ours, xgrammar);
        summary.insert("xgrammar".into(), value);
    }
    Value::Object(summary)
}

/// The table over the schemas and tokens that both engines reached.
fn print_both(ours: &Column, peer: &Column, summary: &mut Map<String, Value>) {
    let pair = Pair::new(ours, peer);
    let Some(main) = pair.times(ours.main, peer.main) else { return };
    let cold = pair.times(Pass::Cold, peer.main);
    println!(
        "\nThe {} schemas that both compile, the same {} tokens, in µs:\n",
        grouped(&pair.len().to_string()),
        grouped(&main.ours.mask.len().to_string()),
    );
    let mut sides = vec![Side { name: &ours.name, times: &main.ours }];
    if let Some(cold) = &cold {
        sides.push(Side { name: COLD, times: &cold.ours });
    }
    let theirs = Side { name: &peer.name, times: &main.peer };
    print_rows(&ALL_ROWS, Some(theirs), &sides);
    println!(
        "\nMasks slower than the peer's on the same token: {}; more than \
         twice as slow: {}.",
        main.slower, main.twice
    );
    if let Some(cold) = &cold {
        println!(
            "With each test of ours cold: {}; more than twice as slow: {}.",
            cold.slower, cold.twice
        );
    }
    summary.insert("both_compiled".into(), json!(pair.len()));
    summary.insert("masks".into(), json!(main.ours.mask.len()));
    for (name, value) in compared(&main) {
        summary.insert(name, value);
    }
    let (our_first, peer_first) = (&main.ours.first, &main.peer.first);
    summary.insert("ttfm_ratio".into(), ratios(peer_first, our_first));
    summary.insert("ttfm_us".into(), figures(our_first));
    summary.insert("peer_ttfm_us".into(), figures(peer_first));
    let mut object = cold.map_or(Map::new(), |cold| compared(&cold));
    if let (Some(ours), Some(peer)) =
        (Times::alone(ours, Pass::Cold), Times::alone(peer, peer.main))
    {
        object.insert("tbm_us_all".into(), figures(&ours.mask));
        let ratio = ratios(&peer.mask, &ours.mask);
        object.insert("tbm_ratio_all".into(), ratio);
    }
    summary.insert("cold_tests".into(), or_null(object));
}

/// The part of the JSON line that every comparison of masks has.
fn compared(both: &Both) -> Map<String, Value> {
    let Both { ours, peer, slower, twice } = both;
    let mut object = Map::new();
    for (name, value) in [
        ("tbm_ratio", ratios(&peer.mask, &ours.mask)),
        ("step_ratio", ratios(&peer.step, &ours.step)),
        ("tbm_wall_ratio", ratios(&peer.mask_wall, &ours.mask_wall)),
        ("tbm_us", figures(&ours.mask)),
        ("step_us", figures(&ours.step)),
        ("peer_tbm_us", figures(&peer.mask)),
        ("peer_step_us", figures(&peer.step)),
        ("slower_than_peer", json!(slower)),
        ("slower_than_twice_peer", json!(twice)),
    ] {
        object.insert(name.into(), value);
    }
    object
}

fn or_null(object: Map<String, Value>) -> Value {
    if object.is_empty() { Value::Null } else { Value::Object(object) }
}

/// The table of each engine over everything that it compiles itself.
fn print_all(
    ours: Option<&Column>,
    peer: Option<&Column>,
    summary: &mut Map<String, Value>,
) {
    let alone = |column: &Column, pass| Times::alone(column, pass);
    let peer_times = peer.and_then(|column| alone(column, column.main));
    let main = ours.and_then(|column| alone(column, column.main));
    let cold = ours.and_then(|column| alone(column, Pass::Cold));
    let theirs = peer
        .zip(peer_times.as_ref())
        .map(|(column, times)| Side { name: &column.name, times });
    let mut sides = Vec::new();
    if let (Some(column), Some(times)) = (ours, &main) {
        sides.push(Side { name: &column.name, times });
        let cold = cold.as_ref().map(|times| Side { name: COLD, times });
        sides.extend(cold);
    }
    println!("\nEvery schema that the engine itself compiles, in µs:\n");
    print_rows(&CPU_ROWS, theirs, &sides);
    if let (Some(ours), Some(peer)) = (&main, &peer_times) {
        summary.insert("tbm_ratio_all".into(), ratios(&peer.mask, &ours.mask));
        summary
            .insert("ttfm_ratio_all".into(), ratios(&peer.first, &ours.first));
    }
}

/// The tables of shared caches: both engines share between the tests of a
/// schema, in a first pass and in a second one.
fn print_sharing(
    ours: &Column,
    peer: &Column,
    summary: &mut Map<String, Value>,
) {
    let pair = Pair::new(ours, peer);
    for (pass, name, about) in [
        (
            Pass::Schema,
            "peer_shares",
            "Both engines share between the tests of a schema (first pass; \
             the peer's matchers are clones, which share the states of its \
             lexer)",
        ),
        (
            Pass::Warm,
            "shared_caches",
            "Shared caches: the same tests once more, with everything that \
             the first pass has built in either engine",
        ),
    ] {
        let Some(both) = pair.times(pass, pass) else {
            summary.insert(name.into(), Value::Null);
            continue;
        };
        println!("\n{about}, in µs:\n");
        let theirs = Side { name: &peer.name, times: &both.peer };
        let sides = [Side { name: &ours.name, times: &both.ours }];
        print_rows(&MASK_ROWS, Some(theirs), &sides);
        println!(
            "\nMasks slower than the peer's on the same token: {}; more than \
             twice as slow: {}.",
            both.slower, both.twice
        );
        summary.insert(name.into(), Value::Object(compared(&both)));
    }
}

/// The table beside XGrammar, and its part of the JSON line.
fn print_xgrammar(ours: Option<&Column>, xgrammar: &Column) -> Value {
    let mut object = Map::new();
    if let Some(ours) = ours {
        let pair = Pair::new(ours, xgrammar);
        if let Some(both) = pair.times(ours.main, xgrammar.main) {
            println!(
                "\nThe {} schemas that {} and Maskwright both compile, the \
                 same {} tokens, in µs:\n",
                grouped(&pair.len().to_string()),
                xgrammar.name,
                grouped(&both.ours.mask.len().to_string()),
            );
            let theirs = Side { name: &xgrammar.name, times: &both.peer };
            let cold = pair.times(Pass::Cold, xgrammar.main);
            let mut sides = vec![Side { name: &ours.name, times: &both.ours }];
            let cold = cold.as_ref().map(|cold| &cold.ours);
            sides.extend(cold.map(|times| Side { name: COLD, times }));
            print_rows(&CPU_ROWS, Some(theirs), &sides);
            object = compared(&both);
            object.insert("both_compiled".into(), json!(pair.len()));
            let (ours, peer) = (&both.ours.first, &both.peer.first);
            object.insert("ttfm_ratio".into(), ratios(peer, ours));
            object.insert("peer_ttfm_us".into(), figures(peer));
        }
    }
    insert_alone(&mut object, "peer_", Some(xgrammar));
    Value::Object(object)
}

fn print_counts(columns: &[Option<&Column>]) {
    println!(
        "| | passing | compile error | refused valid | accepted invalid | \
         peak memory |"
    );
    println!("|:--|--:|--:|--:|--:|--:|");
    let mut disagree = Vec::new();
    for column in columns.iter().copied().flatten() {
        let counts = column.counts();
        let memory = column
            .peak_rss_mb
            .map_or("not measured".to_owned(), |mb| format!("{mb:.0} MB"));
        println!(
            "| {} | {} | {} | {} | {} | {memory} |",
            column.name,
            counts.passing,
            counts.compile_errors,
            counts.refused_valid,
            counts.accepted_invalid,
        );
        if counts.passes_disagree > 0 {
            disagree.push((&column.name, counts.passes_disagree));
        }
    }
    for (name, count) in disagree {
        println!(
            "\n**{name} decided {count} schemas differently with other \
             caches.**"
        );
    }
}

fn insert_alone(
    summary: &mut Map<String, Value>,
    prefix: &str,
    column: Option<&Column>,
) {
    let times = column.and_then(|column| Times::alone(column, column.main));
    let mut put = |name: &str, value: Value| {
        summary.insert(format!("{prefix}{name}"), value);
    };
    let counts = column.map(Column::counts);
    let count = |pick: fn(&Counts) -> usize| {
        counts.as_ref().map_or(Value::Null, |counts| json!(pick(counts)))
    };
    let times = times.as_ref();
    put("tbm_us_all", times.map_or(Value::Null, |t| figures(&t.mask)));
    put("ttfm_us_all", times.map_or(Value::Null, |t| figures(&t.first)));
    put("passing", count(|counts| counts.passing));
    put("compile_errors", count(|counts| counts.compile_errors));
    put("refused_valid", count(|counts| counts.refused_valid));
    put("accepted_invalid", count(|counts| counts.accepted_invalid));
    put("passes_disagree", count(|counts| counts.passes_disagree));
    let memory = column.and_then(|column| column.peak_rss_mb);
    put("peak_rss_mb", memory.map_or(Value::Null, |mb| json!(mb.round())));
}
