//! Random grammars in GBNF: ambiguous, nullable, recursive on any side, and
//! with machines of other kinds in them.

use std::fmt::Write as _;

use crate::vocabularies::Random;

/// Parts that are no groups.
const LEAVES: [&str; 16] = [
    "\"a\"",
    "\"b\"",
    "\"ab\"",
    "\",\"",
    "\"\"",
    "[a-c]",
    "[^a]",
    "\"é\"",
    "[é-ü]",
    ".",
    "%regex /a*b?/",
    "%regex /(?:ab|b){1,3}/",
    "%json {\"type\": \"integer\"}",
    "%json {\"enum\": [\"a\", [1], 1, 10]}",
    "%json {\"type\": \"array\", \"items\": {\"type\": \"boolean\"}, \
      \"uniqueItems\": true}",
    "%json {\"type\": \"object\", \"additionalProperties\": {\"const\": 0}}",
];

/// The rules of a grammar, by their names.
const NAMES: [&str; 4] = ["root", "x", "y", "z"];

/// Writes a grammar of a few rules. Some are refused: a rule may derive
/// nothing.
pub fn random_grammar(random: &mut Random) -> String {
    let n_rules = 1 + random.below(NAMES.len());
    let names = &NAMES[..n_rules];
    let mut text = String::new();
    for name in names {
        let body = choice(random, names, 1);
        // A string takes any text.
        let _ = writeln!(text, "{name} ::= {body}");
    }
    text
}

fn choice(random: &mut Random, names: &[&str], depth: u32) -> String {
    let n = 1 + random.below(2);
    let ways: Vec<String> =
        (0..n).map(|_| sequence(random, names, depth)).collect();
    ways.join(" | ")
}

fn sequence(random: &mut Random, names: &[&str], depth: u32) -> String {
    let n = 1 + random.below(3);
    let parts: Vec<String> =
        (0..n).map(|_| part(random, names, depth)).collect();
    parts.join(" ")
}

/// Recursion ends with `depth`.
fn part(random: &mut Random, names: &[&str], depth: u32) -> String {
    const OPERATORS: [&str; 6] = ["*", "+", "?", "{2}", "{0,3}", "{1,70}"];
    let mut part = if depth > 0 && random.chance(25) {
        format!("({})", choice(random, names, depth - 1))
    } else if random.chance(25) {
        names[random.below(names.len())].to_owned()
    } else {
        LEAVES[random.below(LEAVES.len())].to_owned()
    };
    if part != "\"\"" && random.chance(20) {
        part.push_str(OPERATORS[random.below(OPERATORS.len())]);
    }
    part
}
