//! The machine against the recogniser by spans, on random grammars.

use super::{
    CfgLimits, CfgMachine,
    oracle::{Runner, Symbol, judge},
};
use crate::{
    automaton::{Atom, AtomToken, Automaton, RegexMachine},
    grammar::{Class, ExprId, Grammar, GrammarBuilder, RuleId, rewrite},
    regular::Limits,
};

use std::sync::Arc;

/// Xorshift: small, seeded, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from((self.0 >> 33) % u64::from(n)).expect("below n")
    }
}

/// What random grammars are made of.
#[derive(Clone, Copy)]
struct Taste {
    n_rules: u32,
    depth: u32,
    /// Chances in 16 of a repetition.
    repeats: u32,
    max_times: u32,
    /// Whether other machines are embedded.
    machines: bool,
}

struct Generator {
    random: Random,
    builder: GrammarBuilder,
    rules: Vec<RuleId>,
    taste: Taste,
}

impl Generator {
    fn grammar(seed: u64, taste: Taste) -> Option<Grammar> {
        let mut builder = GrammarBuilder::new();
        let rules = (0..taste.n_rules)
            .map(|i| builder.declare(format!("r{i}")))
            .collect();
        let random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut generator = Generator { random, builder, rules, taste };
        for _ in 0..4 {
            generator.random.below(2);
        }
        for i in 0..generator.rules.len() {
            let body = generator.expr(taste.depth);
            generator.builder.define(generator.rules[i], body);
        }
        let root = generator.rules[0];
        Some(generator.builder.build(root).expect("well formed")).filter(|g| {
            super::Analysis::new(g).is_productive(g.rules()[0].body)
        })
    }

    fn expr(&mut self, depth: u32) -> ExprId {
        if depth == 0 {
            return self.leaf();
        }
        if self.random.below(16) < self.taste.repeats {
            let body = self.expr(depth - 1);
            let min = self.random.below(self.taste.max_times);
            let more = self.random.below(self.taste.max_times);
            let max = (self.random.below(4) > 0).then_some(min + more);
            return self.builder.repeat(body, min, max);
        }
        let n = 1 + self.random.below(3);
        let parts: Vec<ExprId> =
            (0..n).map(|_| self.expr(depth - 1)).collect();
        if self.random.below(2) == 0 {
            self.builder.concat(parts)
        } else {
            self.builder.choice(parts)
        }
    }

    fn leaf(&mut self) -> ExprId {
        if self.taste.machines && self.random.below(4) == 0 {
            const PATTERNS: [&str; 6] =
                ["a", "(?:ab)*", "a?b|a", "[a-é]b*", "(?:a|é){1,3}", ""];
            let pattern = PATTERNS[self.random.below(6) as usize];
            let machine = RegexMachine::new(pattern, Limits::new());
            let machine: Arc<dyn Automaton> =
                Arc::new(machine.expect("a pattern of this test"));
            return self.builder.machine(pattern, &machine);
        }
        match self.random.below(16) {
            0 => self.builder.empty(),
            1..=3 => self.builder.literal(b"a"),
            4 | 5 => self.builder.literal(b"b"),
            6 => self.builder.literal(b"ab"),
            7 => self.builder.class(Class::new([(0x61, 0x62), (0xE9, 0xE9)])),
            8 => self
                .builder
                .atom(Atom { token: AtomToken::Id(7), negated: false }),
            _ => {
                let n = self.taste.n_rules;
                let rule = self.rules[self.random.below(n) as usize];
                self.builder.rule(rule)
            }
        }
    }
}

const ALPHABET: [Symbol; 5] = [b'a' as u16, b'b' as u16, 0xC3, 0xA9, 256];

/// Reads random texts that stay viable as long as they can, with every
/// possible next symbol judged at each place.
fn compare(
    seed: u64,
    original: &Grammar,
    machine: &CfgMachine,
    length: usize,
) {
    let mut random = Random(seed | 1);
    for _ in 0..3 {
        let mut text: Vec<Symbol> = Vec::new();
        let mut runner = Runner::new(machine);
        let check = |runner: &Runner<'_>, text: &[Symbol]| {
            let found = (runner.is_accepting(), runner.is_viable());
            let expected = judge(original, text);
            assert_eq!(
                found, expected,
                "(accepted, viable) of {text:?}, seed {seed}\n{original}"
            );
        };
        check(&runner, &text);
        while text.len() < length && runner.stacks.len() < 60 {
            let mut next = Vec::new();
            for symbol in ALPHABET {
                let mut there = runner.clone();
                there.read(symbol);
                text.push(symbol);
                check(&there, &text);
                text.pop();
                if there.is_viable() {
                    next.push((symbol, there));
                }
            }
            if next.is_empty() {
                break;
            }
            let n = u32::try_from(next.len()).expect("few");
            let (symbol, there) = next.swap_remove(random.below(n) as usize);
            text.push(symbol);
            runner = there;
        }
    }
}

/// Compares this many grammars, or as many times more as the variable
/// `MASKWRIGHT_TEST_SCALE` says.
fn compare_random(seeds: std::ops::Range<u64>, taste: Taste, unroll: u32) {
    let scale = std::env::var("MASKWRIGHT_TEST_SCALE").ok();
    let scale = scale.and_then(|scale| scale.parse().ok()).unwrap_or(1_u64);
    let first = seeds.start * scale;
    let seeds = first..first + (seeds.end - seeds.start) * scale;
    let limits = CfgLimits { max_unrolled: unroll, ..CfgLimits::default() };
    let mut n_compared = 0;
    for seed in seeds.clone() {
        let Some(grammar) = Generator::grammar(seed, taste) else { continue };
        n_compared += 1;
        let simple = rewrite::simplify(&grammar);
        for variant in [&grammar, &simple] {
            let machine =
                CfgMachine::new(variant, &limits).expect("within limits");
            compare(seed, &grammar, &machine, 7);
        }
    }
    assert!(n_compared * 2 > seeds.end - seeds.start, "too few grammars");
}

#[test]
fn random_grammars_without_counters() {
    let taste = Taste {
        n_rules: 3,
        depth: 2,
        repeats: 3,
        max_times: 2,
        machines: false,
    };
    compare_random(0..400, taste, 64);
}

#[test]
fn random_grammars_with_more_rules() {
    let taste = Taste {
        n_rules: 6,
        depth: 2,
        repeats: 1,
        max_times: 2,
        machines: false,
    };
    compare_random(1000..1200, taste, 64);
}

#[test]
fn random_grammars_with_counters() {
    let taste = Taste {
        n_rules: 3,
        depth: 3,
        repeats: 6,
        max_times: 4,
        machines: false,
    };
    compare_random(2000..2300, taste, 0);
}

#[test]
fn random_grammars_with_other_machines() {
    let taste = Taste {
        n_rules: 3,
        depth: 2,
        repeats: 3,
        max_times: 3,
        machines: true,
    };
    compare_random(3000..3300, taste, 64);
    compare_random(4000..4150, taste, 0);
}
