//! Where the time goes: the masks grouped by the state they were asked in.

use std::collections::BTreeMap;
use std::path::Path;

use crate::measure::Compiled;
use crate::report::Column;
use crate::stats::{Distribution, grouped, micros, short};

/// The masks of one kind of state.
#[derive(Default)]
struct Kind {
    ours: Vec<u64>,
    peer: Vec<u64>,
    walks: u64,
    known: u64,
    nodes: u64,
    stepped: u64,
}

/// Prints, for each kind of state that `column` was measured with, how many
/// masks there were and what they cost, the dearest kind first.
pub fn print(column: &Column, other: Option<&Column>) {
    let mut kinds: BTreeMap<String, Kind> = BTreeMap::new();
    for (schema, compiled) in column.outcomes.iter().enumerate() {
        let Ok(compiled) = compiled else { continue };
        let other =
            other.and_then(|other| other.outcomes.get(schema)?.as_ref().ok());
        collect(compiled, other, &mut kinds);
    }
    let mut kinds: Vec<(String, Kind)> = kinds.into_iter().collect();
    let cost = |kind: &Kind| kind.ours.iter().sum::<u64>();
    kinds.sort_by_key(|(_, kind)| std::cmp::Reverse(cost(kind)));
    let total: u64 = kinds.iter().map(|(_, kind)| cost(kind)).sum();
    println!("\nMasks by state, {}, in µs:\n", column.name);
    println!(
        "| % of time | masks | avg | p50 | p90 | p99 | max | peer avg | \
         peer p50 | walks | known | nodes | stepped | state |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|:--|");
    for (name, kind) in kinds {
        let share = cost(&kind) * 1000 / total.max(1);
        let ours = Distribution::new(kind.ours.iter().copied());
        let peer = Distribution::new(kind.peer.iter().copied());
        let find = |times: &Distribution, wanted: &str| {
            let figures = times.figures();
            let found = figures.iter().find(|(name, _)| *name == wanted);
            found.map_or("-".to_owned(), |(_, figure)| short(*figure))
        };
        let each = |sum| short(micros(sum * 1000) / count(&ours));
        println!(
            "| {}.{} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} \
             | {} | {name} |",
            share / 10,
            share % 10,
            grouped(&ours.len().to_string()),
            find(&ours, "avg"),
            find(&ours, "p50"),
            find(&ours, "p90"),
            find(&ours, "p99"),
            find(&ours, "max"),
            find(&peer, "avg"),
            find(&peer, "p50"),
            each(kind.walks),
            each(kind.known),
            each(kind.nodes),
            each(kind.stepped),
        );
    }
}

fn collect(
    compiled: &Compiled,
    other: Option<&Compiled>,
    kinds: &mut BTreeMap<String, Kind>,
) {
    for (test, run) in compiled.tests().iter().enumerate() {
        for (token, (span, (place, stats))) in
            run.masks.iter().zip(&run.places).enumerate()
        {
            let kind = kinds.entry(general(place)).or_default();
            kind.ours.push(span.cpu);
            kind.walks += u64::from(stats.n_walks);
            kind.known += u64::from(stats.n_known);
            kind.nodes += stats.n_nodes;
            kind.stepped += u64::from(stats.n_stepped);
            let peer = other
                .and_then(|other| other.tests().get(test)?.masks.get(token));
            kind.peer.extend(peer.map(|span| span.cpu));
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn count(times: &Distribution) -> f64 {
    times.len().max(1) as f64
}

/// Writes a line for each mask that `column` was measured with: schema, test,
/// token, microseconds, those of the peer, what it took, state.
///
/// # Errors
///
/// What the operating system said of the file.
pub fn dump(
    column: &Column,
    other: Option<&Column>,
    names: &[&str],
    path: &Path,
) -> Result<(), String> {
    let mut text = String::from(
        "schema\ttest\ttoken\tus\tpeer_us\twalks\tknown\tnodes\tstepped\tstate\n",
    );
    for (schema, compiled) in column.outcomes.iter().enumerate() {
        let Ok(compiled) = compiled else { continue };
        let other =
            other.and_then(|other| other.outcomes.get(schema)?.as_ref().ok());
        for (test, run) in compiled.tests().iter().enumerate() {
            let masks = run.masks.iter().zip(&run.places).enumerate();
            for (token, (span, (place, stats))) in masks {
                let peer = other
                    .and_then(|other| {
                        other.tests().get(test)?.masks.get(token)
                    })
                    .map_or(String::new(), |span| short(micros(span.cpu)));
                let line = format!(
                    "{}\t{test}\t{token}\t{:.1}\t{peer}\t{}\t{}\t{}\t{}\t{}\n",
                    names[schema],
                    micros(span.cpu),
                    stats.n_walks,
                    stats.n_known,
                    stats.n_nodes,
                    stats.n_stepped,
                    place.escape_debug(),
                );
                text.push_str(&line);
            }
        }
    }
    std::fs::write(path, text)
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// The kind of a state: its description without names and numbers.
fn general(place: &str) -> String {
    let mut kind = String::new();
    let mut quoted = false;
    for letter in place.chars() {
        if letter == '"' {
            quoted = !quoted;
            kind.push_str(if quoted { "\"…" } else { "\"" });
        } else if !quoted && !letter.is_ascii_digit() {
            kind.push(if letter == '|' { '/' } else { letter });
        }
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn kinds_have_no_names_and_no_numbers() {
        let place = "after \"first name\" of 12";
        assert_eq!(general(place), "after \"…\" of ");
    }
}
