//! The tables for people.

use crate::report::times::{ROWS, Times, quotients};
use crate::stats::{Distribution, short};

/// The times of one engine in one pass, and the name of both.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// What the lines are called.
    pub name: &'a str,
    /// The times.
    pub times: &'a Times,
}

/// The head of a table of distributions.
pub fn print_head() {
    println!("| | avg | p50 | p90 | p99 | p99.9 | max |");
    println!("|:--|--:|--:|--:|--:|--:|--:|");
}

/// Prints the rows, each with a line for the peer and one for each of ours,
/// and the ratio below each of these.
pub fn print_rows(rows: &[usize], peer: Option<Side<'_>>, ours: &[Side<'_>]) {
    print_head();
    for &row in rows {
        let what = ROWS[row];
        // What a pass does not change is not repeated for it.
        let is_of_pass = !what.starts_with("compile");
        if let Some(peer) = peer {
            let name = format!("{what}, {}", peer.name);
            print_line(&name, peer.times.row(row));
        }
        for side in &ours[..if is_of_pass { ours.len() } else { 1 }] {
            let times = side.times.row(row);
            print_line(&format!("{what}, {}", side.name), times);
            if let Some(peer) = peer {
                print_ratio(peer.times.row(row), times);
            }
        }
    }
}

/// Prints a line of figures in microseconds.
pub fn print_line(name: &str, times: &Distribution) {
    let cells: Vec<String> =
        times.figures().into_iter().map(|(_, figure)| short(figure)).collect();
    println!("| {name} | {} |", cells.join(" | "));
}

/// Prints the peer's figures divided by ours.
pub fn print_ratio(peer: &Distribution, ours: &Distribution) {
    let cells: Vec<String> = quotients(peer, ours)
        .into_iter()
        .map(|(_, ratio)| format!("**{ratio:.1}**"))
        .collect();
    println!("| **ratio** | {} |", cells.join(" | "));
}
