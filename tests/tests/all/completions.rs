//! Completions are accepted, and as short as brute force finds them.

use std::collections::BTreeSet;

use maskwright::grammar::{Grammar, SchemaOptions};
use maskwright_grammar_core::automaton::{
    Automaton, Completions, Configuration, Machine, StackLimits, Symbol,
};
use maskwright_tests::{
    corpus::{Case, cases},
    vocabularies::Random,
};
use serde_json::json;

/// How many configurations brute force looks at before it gives up.
const MAX_BRUTE: usize = 1500;

fn after(
    machine: Machine<'_>,
    before: &Configuration,
    byte: u8,
) -> Configuration {
    before
        .step(machine, StackLimits::default(), Symbol::Byte(byte))
        .expect("within the limits")
}

fn is_accepting(machine: Machine<'_>, at: &Configuration) -> bool {
    at.is_accepting(machine, StackLimits::default()).expect("no limit")
}

/// The length of the shortest completion, breadth first over every byte;
/// none if that takes too long.
fn brute_force(machine: Machine<'_>, start: &Configuration) -> Option<usize> {
    let mut level = vec![start.clone()];
    let mut seen = BTreeSet::from([format!("{start:?}")]);
    for length in 0.. {
        if level.iter().any(|at| is_accepting(machine, at)) {
            return Some(length);
        }
        let mut next = Vec::new();
        for at in &level {
            for byte in 0..=u8::MAX {
                let to = after(machine, at, byte);
                if !to.is_dead() && seen.insert(format!("{to:?}")) {
                    next.push(to);
                }
                if seen.len() > MAX_BRUTE {
                    return None;
                }
            }
        }
        level = next;
    }
    None
}

/// Whether a byte string leads through a frame with registers.
fn has_registers(machine: Machine<'_>, at: &Configuration) -> bool {
    at.tops().iter().any(|top| {
        let mut states = vec![top.frame.state];
        let mut below = &top.below;
        while let Some(edge) = below.edges().first() {
            states.push(edge.frame.state);
            below = &edge.below;
        }
        states
            .iter()
            .any(|&state| machine.row(state).expect("a row").registers)
    })
}

/// What was compared.
#[derive(Default)]
struct Tally {
    completions: usize,
    compared: usize,
    longer: usize,
}

/// Completes each configuration of a random walk over bytes.
fn complete_along(
    name: &str,
    automaton: &dyn Automaton,
    n_steps: usize,
    random: &mut Random,
    tally: &mut Tally,
) {
    let machine = Machine::new(automaton);
    let limits = StackLimits::default();
    let mut completions = Completions::new();
    let mut at = Configuration::start(machine, limits).expect("a start");
    let mut text = Vec::new();
    for step in 0..n_steps {
        let found = completions.shortest(machine, limits, &at);
        let found = found.expect("no limit").unwrap_or_else(|| {
            panic!(
                "{name}: no completion of {}: {}",
                text.escape_ascii(),
                at.describe(machine)
            )
        });
        let mut end = at.clone();
        let mut is_guarded = has_registers(machine, &end);
        for &byte in &found {
            end = after(machine, &end, byte);
            is_guarded |= has_registers(machine, &end);
        }
        let shown = found.escape_ascii();
        assert!(is_accepting(machine, &end), "{name}: {shown}");
        tally.completions += 1;
        if step % 4 == 0
            && let Some(length) = brute_force(machine, &at)
        {
            tally.compared += 1;
            assert!(found.len() >= length, "{name}: brute force is wrong");
            if found.len() > length {
                tally.longer += 1;
                assert!(is_guarded, "{name}: {shown}");
            }
        }
        let nexts: Vec<(u8, Configuration)> = (0..=u8::MAX)
            .map(|byte| (byte, after(machine, &at, byte)))
            .filter(|(_, next)| !next.is_dead())
            .collect();
        if nexts.is_empty() {
            break;
        }
        let (byte, next) = nexts[random.below(nexts.len())].clone();
        text.push(byte);
        at = next;
    }
}

#[test]
fn completions_are_accepted_and_as_short_as_brute_force() {
    let cases: Vec<Case> =
        cases().into_iter().filter(|case| case.error.is_none()).collect();
    let mut tally = Tally::default();
    for (seed, case) in (0..).zip(&cases) {
        for options in [SchemaOptions::default(), SchemaOptions::widest()] {
            let grammar = case.compile_with(&options).expect("a grammar");
            let mut random = Random::new(seed);
            let automaton = &**grammar.automaton();
            complete_along(&case.name, automaton, 24, &mut random, &mut tally);
        }
    }
    assert!(tally.compared > cases.len(), "brute force gave up too often");
}

/// Completes along walks through a schema in any order and any spelling.
fn complete_schema(name: &str, schema: &serde_json::Value) {
    let grammar = Grammar::from_schema_value(schema, &SchemaOptions::widest())
        .expect("a schema");
    let mut tally = Tally::default();
    let random = &mut Random::new(7);
    let automaton = &**grammar.automaton();
    complete_along(name, automaton, 4, random, &mut tally);
    assert!(tally.completions > 1);
}

/// In any order the required members of an object come in too many orders to
/// look at all of them.
#[test]
fn an_object_in_any_order_is_completed() {
    let names: Vec<String> = (0..24).map(|i| format!("name{i}")).collect();
    let members = |value: serde_json::Value| -> serde_json::Value {
        names.iter().map(|name| (name.clone(), value.clone())).collect()
    };
    let either = json!({"type": ["string", "integer"]});
    let all = json!({
        "type": "object", "properties": members(either), "required": names,
    });
    complete_schema("many members", &all);
    let integers = json!({"type": "integer", "not": {"const": 0}});
    complete_schema(
        "one of two lists of integers",
        &json!({
            "type": "object",
            "properties": members(integers),
            "oneOf": [
                {"required": names[..16]},
                {"required": names[8..]},
            ],
        }),
    );
    complete_schema(
        "many members beneath others",
        &json!({
            "type": "object",
            "properties": {"a": {"type": "array", "items": all, "minItems": 3}},
            "patternProperties": {"^a": {"minItems": 2}},
            "required": ["a"],
        }),
    );
}
