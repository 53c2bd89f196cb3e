//! The tables for people and the JSON line for programs.

use serde_json::{Map, Value, json};

use crate::clock::Span;
use crate::measure::{Compiled, Outcome, TestRun, Verdict};
use crate::stats::{Distribution, grouped, short};

/// One engine's results, in the order of the cases.
#[derive(Debug)]
pub struct Column {
    /// The engine's name.
    pub name: &'static str,
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
        }
        counts
    }

    fn all(&self) -> Vec<&Compiled> {
        self.outcomes.iter().filter_map(|one| one.as_ref().ok()).collect()
    }
}

/// The times of one engine over some schemas, processor and wall.
struct Times {
    mask: Distribution,
    step: Distribution,
    first: Distribution,
    mask_wall: Distribution,
    step_wall: Distribution,
    first_wall: Distribution,
}

impl Times {
    /// `reach` says how many masks of a test count.
    fn new(
        schemas: &[&Compiled],
        reach: impl Fn(usize, usize, &TestRun) -> usize,
    ) -> Times {
        let (mut masks, mut steps): (Vec<Span>, Vec<Span>) =
            Default::default();
        for (schema, compiled) in schemas.iter().enumerate() {
            for (test, run) in compiled.tests.iter().enumerate() {
                let n_masks = reach(schema, test, run);
                masks.extend(&run.masks[..n_masks]);
                steps.extend((0..n_masks).map(|index| run.step(index)));
            }
        }
        let firsts: Vec<Span> =
            schemas.iter().map(|one| one.to_first_mask()).collect();
        let cpu = |spans: &[Span]| {
            Distribution::new(spans.iter().map(|span| span.cpu))
        };
        let wall = |spans: &[Span]| {
            Distribution::new(spans.iter().map(|span| span.wall))
        };
        Times {
            mask: cpu(&masks),
            step: cpu(&steps),
            first: cpu(&firsts),
            mask_wall: wall(&masks),
            step_wall: wall(&steps),
            first_wall: wall(&firsts),
        }
    }

    fn rows(&self) -> [(&'static str, &Distribution); 6] {
        [
            ("mask", &self.mask),
            ("mask + accept", &self.step),
            ("compile + first mask", &self.first),
            ("mask, wall", &self.mask_wall),
            ("mask + accept, wall", &self.step_wall),
            ("compile + first mask, wall", &self.first_wall),
        ]
    }
}

/// Prints the tables, and returns what the JSON line says. Either column may
/// be absent.
pub fn print(
    ours: Option<&Column>,
    peer: Option<&Column>,
    n_schemas: usize,
) -> Value {
    let mut summary = Map::new();
    summary.insert("schemas".into(), json!(n_schemas));
    let columns: Vec<&Column> = peer.into_iter().chain(ours).collect();
    print_counts(&columns);
    if let (Some(ours), Some(peer)) = (ours, peer) {
        both(ours, peer, &mut summary);
    }
    let alone = |column: &Column| {
        Times::new(&column.all(), |_, _, run| run.masks.len())
    };
    let (ours_times, peer_times) = (ours.map(alone), peer.map(alone));
    println!("\nEvery schema that the engine itself compiles, in µs:\n");
    table(peer.zip(peer_times.as_ref()), ours.zip(ours_times.as_ref()));
    if let (Some(ours), Some(peer)) = (&ours_times, &peer_times) {
        summary.insert("tbm_ratio_all".into(), ratios(&peer.mask, &ours.mask));
        summary
            .insert("ttfm_ratio_all".into(), ratios(&peer.first, &ours.first));
    }
    insert_alone(&mut summary, "", ours, ours_times.as_ref());
    insert_alone(&mut summary, "peer_", peer, peer_times.as_ref());
    Value::Object(summary)
}

/// The table over the schemas and tokens that both engines reached.
fn both(ours: &Column, peer: &Column, summary: &mut Map<String, Value>) {
    let (mut our_schemas, mut peer_schemas) = (Vec::new(), Vec::new());
    for (our, peer) in ours.outcomes.iter().zip(&peer.outcomes) {
        if let (Ok(our), Ok(peer)) = (our, peer) {
            our_schemas.push(our);
            peer_schemas.push(peer);
        }
    }
    let common = |schema: usize, test: usize, _: &TestRun| {
        let ours = &our_schemas[schema].tests[test].masks;
        ours.len().min(peer_schemas[schema].tests[test].masks.len())
    };
    let our_times = Times::new(&our_schemas, common);
    let peer_times = Times::new(&peer_schemas, common);
    println!(
        "\nThe {} schemas that both compile, the same {} tokens, in µs:\n",
        grouped(&our_schemas.len().to_string()),
        grouped(&our_times.mask.len().to_string()),
    );
    table(Some((peer, &peer_times)), Some((ours, &our_times)));
    let (slower, twice) = slower_than_peer(&our_schemas, &peer_schemas);
    println!(
        "\nMasks slower than the peer's on the same token: {slower}; \
         more than twice as slow: {twice}."
    );
    summary.insert("both_compiled".into(), json!(our_schemas.len()));
    summary.insert("masks".into(), json!(our_times.mask.len()));
    for (name, ours, peer) in [
        ("tbm_ratio", &our_times.mask, &peer_times.mask),
        ("step_ratio", &our_times.step, &peer_times.step),
        ("ttfm_ratio", &our_times.first, &peer_times.first),
        ("tbm_wall_ratio", &our_times.mask_wall, &peer_times.mask_wall),
    ] {
        summary.insert(name.into(), ratios(peer, ours));
    }
    for (name, times) in [
        ("tbm_us", &our_times.mask),
        ("ttfm_us", &our_times.first),
        ("peer_tbm_us", &peer_times.mask),
        ("peer_ttfm_us", &peer_times.first),
    ] {
        summary.insert(name.into(), figures(times));
    }
    summary.insert("slower_than_peer".into(), json!(slower));
    summary.insert("slower_than_twice_peer".into(), json!(twice));
}

/// How many of our masks took longer than the peer's, and than twice that.
fn slower_than_peer(ours: &[&Compiled], peer: &[&Compiled]) -> (usize, usize) {
    let (mut slower, mut twice) = (0, 0);
    for (ours, peer) in ours.iter().zip(peer) {
        for (ours, peer) in ours.tests.iter().zip(&peer.tests) {
            for (ours, peer) in ours.masks.iter().zip(&peer.masks) {
                slower += usize::from(ours.cpu > peer.cpu);
                twice += usize::from(ours.cpu > 2 * peer.cpu);
            }
        }
    }
    (slower, twice)
}

fn print_counts(columns: &[&Column]) {
    println!(
        "| schemas | passing | compile error | refused valid | \
         accepted invalid | peak memory |\n|:--|--:|--:|--:|--:|--:|"
    );
    for column in columns {
        let counts = column.counts();
        let memory = column
            .peak_rss_mb
            .map_or_else(|| "-".to_owned(), |mb| format!("{mb:.0} MB"));
        println!(
            "| {} | {} | {} | {} | {} | {memory} |",
            column.name,
            counts.passing,
            counts.compile_errors,
            counts.refused_valid,
            counts.accepted_invalid,
        );
    }
}

fn table(peer: Option<(&Column, &Times)>, ours: Option<(&Column, &Times)>) {
    println!("| | avg | p50 | p90 | p99 | p99.9 | max |");
    println!("|:--|--:|--:|--:|--:|--:|--:|");
    let n_rows = 6;
    for row in 0..n_rows {
        for (column, times) in peer.iter().chain(&ours) {
            let (what, times) = times.rows()[row];
            line(&format!("{what}, {}", column.name), times, short);
        }
        if let (Some((_, peer)), Some((_, ours))) = (peer, ours) {
            let (peer, ours) = (peer.rows()[row].1, ours.rows()[row].1);
            let cells: Vec<String> = quotients(peer, ours)
                .into_iter()
                .map(|(_, ratio)| format!("**{ratio:.1}**"))
                .collect();
            println!("| **ratio** | {} |", cells.join(" | "));
        }
    }
}

fn line(name: &str, times: &Distribution, show: fn(f64) -> String) {
    let cells: Vec<String> =
        times.figures().into_iter().map(|(_, figure)| show(figure)).collect();
    println!("| {name} | {} |", cells.join(" | "));
}

fn quotients(
    peer: &Distribution,
    ours: &Distribution,
) -> Vec<(&'static str, f64)> {
    let quotient = |peer: f64, ours: f64| {
        if ours > 0.0 { peer / ours } else { 0.0 }
    };
    peer.figures()
        .into_iter()
        .zip(ours.figures())
        .map(|((name, peer), (_, ours))| (name, quotient(peer, ours)))
        .collect()
}

fn ratios(peer: &Distribution, ours: &Distribution) -> Value {
    let pairs = quotients(peer, ours);
    Value::Object(pairs.into_iter().map(rounded).collect())
}

fn figures(times: &Distribution) -> Value {
    Value::Object(times.figures().into_iter().map(rounded).collect())
}

fn rounded((name, figure): (&'static str, f64)) -> (String, Value) {
    (name.to_owned(), json!((figure * 1000.0).round() / 1000.0))
}

fn insert_alone(
    summary: &mut Map<String, Value>,
    prefix: &str,
    column: Option<&Column>,
    times: Option<&Times>,
) {
    let mut put = |name: &str, value: Value| {
        summary.insert(format!("{prefix}{name}"), value);
    };
    let counts = column.map(Column::counts);
    let count = |pick: fn(&Counts) -> usize| {
        counts.as_ref().map_or(Value::Null, |counts| json!(pick(counts)))
    };
    put("tbm_us_all", times.map_or(Value::Null, |t| figures(&t.mask)));
    put("ttfm_us_all", times.map_or(Value::Null, |t| figures(&t.first)));
    put("passing", count(|counts| counts.passing));
    put("compile_errors", count(|counts| counts.compile_errors));
    put("refused_valid", count(|counts| counts.refused_valid));
    put("accepted_invalid", count(|counts| counts.accepted_invalid));
    let memory = column.and_then(|column| column.peak_rss_mb);
    put("peak_rss_mb", memory.map_or(Value::Null, |mb| json!(mb.round())));
}
