use super::*;
use crate::{
    automaton::{
        Automaton, RegexMachine,
        cfg::{CfgLimits, CfgMachine},
    },
    grammar::GrammarBuilder,
    regular::Limits,
};

fn complete(automaton: &dyn Automaton, prefix: &str) -> Option<String> {
    let machine = Machine::new(automaton);
    let limits = StackLimits::default();
    let start = Configuration::start(machine, limits).expect("a start");
    let read = try_bytes(machine, limits, &start, prefix.as_bytes());
    let read = read.expect("no limit");
    assert_eq!(read.n_read, prefix.len(), "{prefix:?} begins a text");
    let found = Completions::new()
        .shortest(machine, limits, &read.after)
        .expect("no limit")?;
    let trial = try_bytes(machine, limits, &read.after, &found);
    assert!(trial.expect("no limit").accepted, "{found:?}");
    Some(String::from_utf8(found).expect("text"))
}

#[test]
fn a_pattern_is_completed_by_its_shortest_text() {
    for (pattern, prefix, rest) in [
        ("a*b", "aa", "b"),
        ("(ab)*", "", ""),
        ("(ab)*", "aba", "b"),
        ("[0-9]{4}-[0-9]{2}", "20", "!!-!!"),
        ("x(yyyy|zz)", "x", "zz"),
        ("x(yyyy|zz)", "xy", "yyy"),
        ("id-[a-z]{3,90000}", "id-", "aaa"),
        ("é+ü", "é", "ü"),
    ] {
        let automaton = RegexMachine::new(pattern, Limits::default());
        let automaton = automaton.expect("a pattern");
        let found = complete(&automaton, prefix).expect("a completion");
        let rest = rest.replace('!', "0");
        assert_eq!(found, rest, "{pattern} after {prefix:?}");
    }
}

#[test]
fn far_from_its_bound_a_count_is_stepped() {
    let automaton = RegexMachine::new("[a-z]{300,90000}", Limits::default());
    let found = complete(&automaton.expect("a pattern"), "xy");
    assert_eq!(found.expect("a completion"), "a".repeat(298));
}

/// `root ::= "(" root* ")" | "x"`, to any depth.
#[test]
fn frames_that_call_themselves_are_completed() {
    let mut builder = GrammarBuilder::new();
    let root = builder.declare("root");
    let inner = builder.rule(root);
    let many = builder.repeat(inner, 0, None);
    let (open, close) = (builder.literal(b"("), builder.literal(b")"));
    let list = builder.concat([open, many, close]);
    let atom = builder.literal(b"x");
    let body = builder.choice([list, atom]);
    builder.define(root, body);
    let grammar = builder.build(root).expect("well formed");
    let automaton =
        CfgMachine::new(&grammar, &CfgLimits::default()).expect("small");
    assert_eq!(complete(&automaton, "").as_deref(), Some("x"));
    assert_eq!(complete(&automaton, "((x(").as_deref(), Some(")))"));
    let deep = "(".repeat(20_000);
    let found = complete(&automaton, &deep).expect("a completion");
    assert_eq!(found, ")".repeat(20_000));
}

#[test]
fn bytes_that_read_well_come_first() {
    assert_eq!(pleasant(0, 255), b'a');
    assert_eq!(pleasant(b' ', b'Z'), b'!');
    assert_eq!(pleasant(b'0', b'9'), b'0');
    assert_eq!(pleasant(b'\t', b' '), b' ');
    assert_eq!(pleasant(0xc2, 0xdf), 0xc2);
}
