//! Number recognition against direct evaluation, both ways.
//!
//! The oracle knows nothing of windows or classes: it parses a text with its
//! own reader into a rational and evaluates the formula on it.

use std::collections::BTreeSet;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Pow, Zero};
use proptest::prelude::*;

use super::*;

const ALPHABET: &[u8] = b"-0123456789.eE+";

/// A small deterministic generator; the seed names the case.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 16) % n as u64).expect("below a usize")
    }

    fn choose<'v, T>(&mut self, values: &'v [T]) -> &'v T {
        &values[self.below(values.len())]
    }
}

fn decimal(text: &str) -> Decimal {
    text.parse().expect("a literal of this file")
}

fn pow10(exponent: i64) -> BigRational {
    Pow::pow(BigRational::from(BigInt::from(10)), BigInt::from(exponent))
}

/// Reads the text of a JSON number, if it is one.
fn read(text: &[u8]) -> Option<BigRational> {
    let text = std::str::from_utf8(text).ok()?;
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let at = rest.find(['e', 'E']).unwrap_or(rest.len());
    let (mantissa, exponent) = rest.split_at(at);
    let (whole, fraction) = match mantissa.find('.') {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, "0"),
    };
    let digits = |t: &str| {
        !t.is_empty() && t.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    if whole.len() > 1 && whole.starts_with('0') {
        return None;
    }
    let exponent = if exponent.is_empty() { "e0" } else { exponent };
    let exponent = &exponent[1..];
    let unsigned =
        exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if !digits(unsigned) {
        return None;
    }
    let exponent: i64 = exponent.parse().ok()?;
    let shift = exponent - i64::try_from(fraction.len()).ok()?;
    let whole: BigInt = format!("{whole}{fraction}").parse().ok()?;
    let value = BigRational::from(whole) * pow10(shift);
    Some(if negative { -value } else { value })
}

fn rational(value: &Decimal) -> BigRational {
    read(value.to_string().as_bytes()).expect("Display writes JSON")
}

/// Evaluates a formula directly.
fn holds(
    formula: &NumberFormula,
    value: &BigRational,
    integer_text: bool,
) -> bool {
    let all = |parts: &[NumberFormula], wanted: bool| {
        parts.iter().all(|part| holds(part, value, integer_text) == wanted)
    };
    match formula {
        NumberFormula::True => true,
        NumberFormula::False => false,
        NumberFormula::Ge(bound) => *value >= rational(bound),
        NumberFormula::Gt(bound) => *value > rational(bound),
        NumberFormula::Le(bound) => *value <= rational(bound),
        NumberFormula::Lt(bound) => *value < rational(bound),
        NumberFormula::MultipleOf(divisor) if divisor.is_zero() => {
            value.is_zero()
        }
        NumberFormula::MultipleOf(divisor) => {
            (value / rational(divisor)).is_integer()
        }
        NumberFormula::Integer => value.is_integer(),
        NumberFormula::IntegerText => integer_text,
        NumberFormula::In(values) => {
            values.iter().any(|listed| rational(listed) == *value)
        }
        NumberFormula::And(parts) => all(parts, true),
        NumberFormula::Or(parts) => !all(parts, false),
        NumberFormula::Not(inner) => !holds(inner, value, integer_text),
    }
}

/// Whether a text satisfies a formula, by the whole JSON grammar.
fn accepts(formula: &NumberFormula, text: &[u8]) -> bool {
    let whole = !text.iter().any(|byte| b".eE".contains(byte));
    read(text).is_some_and(|value| holds(formula, &value, whole))
}

const VALUES: &[&str] = &[
    "0", "1", "2", "5", "9", "10", "15", "99", "100", "-1", "-5", "-20",
    "0.5", "0.1", "0.25", "-1.5", "0.01", "12", "1e3", "119", "-0.05",
];

const DIVISORS: &[&str] =
    &["1", "2", "5", "0.1", "0.25", "3", "1.5", "25", "7", "10", "6", "100"];

fn atom(random: &mut Random) -> NumberFormula {
    let value = decimal(random.choose::<&str>(VALUES));
    match random.below(12) {
        0 | 1 => NumberFormula::Ge(value),
        2 => NumberFormula::Gt(value),
        3 | 4 => NumberFormula::Le(value),
        5 => NumberFormula::Lt(value),
        6 | 7 => NumberFormula::MultipleOf(decimal(random.choose::<&str>(DIVISORS))),
        8 => NumberFormula::Integer,
        9 => NumberFormula::IntegerText,
        10 => {
            let more = decimal(random.choose::<&str>(VALUES));
            NumberFormula::In(vec![value, more])
        }
        _ => NumberFormula::True,
    }
}

fn formula(random: &mut Random, depth: usize) -> NumberFormula {
    if depth == 0 {
        return atom(random);
    }
    let n_parts = 1 + random.below(3);
    let mut parts = || -> Vec<NumberFormula> {
        (0..n_parts).map(|_| formula(random, depth - 1)).collect()
    };
    let parts = parts();
    match random.below(8) {
        0..=3 => NumberFormula::And(parts),
        4 | 5 => NumberFormula::Or(parts),
        6 => NumberFormula::Not(Box::new(NumberFormula::And(parts))),
        _ => atom(random),
    }
}

/// Steps through a text; `None` where a byte is refused.
fn run(spec: &NumberSpec, text: &[u8]) -> Option<NumberState> {
    text.iter().try_fold(spec.start(), |state, &byte| spec.step(&state, byte))
}

/// Walks all prefixes that the JSON grammar or the specification allows, up
/// to a length.
fn walk(
    alphabet: &[u8],
    max_len: usize,
    spec: &NumberSpec,
    visit: &mut dyn FnMut(&[u8], Option<&NumberState>),
) {
    // A refused prefix is visited too, with everything that continues it.
    let json = NumberSpec::new(
        &NumberFormula::True,
        &[],
        Policy { range_f64: false, ..Policy::json() },
    );
    let mut pending =
        vec![(Vec::new(), Some(json.start()), Some(spec.start()))];
    while let Some((text, grammar, state)) = pending.pop() {
        visit(&text, state.as_ref());
        if text.len() == max_len {
            continue;
        }
        for &byte in alphabet {
            let grammar =
                grammar.as_ref().and_then(|g| json.step(g, byte));
            let state = state.as_ref().and_then(|s| spec.step(s, byte));
            if grammar.is_none() && state.is_none() {
                continue;
            }
            let mut longer = text.clone();
            longer.push(byte);
            pending.push((longer, grammar, state));
        }
    }
}

/// Checks a specification against the oracle on all short texts: accepted if
/// and only if valid (`allowed` restricts the texts of the policy), every
/// prefix of a valid text viable, and every viable prefix completed by its
/// witness.
fn check(
    need: &NumberFormula,
    goals: &[NumberFormula],
    spec: &NumberSpec,
    allowed: &dyn Fn(&[u8]) -> bool,
    alphabet: &[u8],
    max_len: usize,
) {
    let mut valid_prefixes = BTreeSet::new();
    let mut viable = Vec::new();
    walk(alphabet, max_len, spec, &mut |text, state| {
        let valid = allowed(text) && accepts(need, text);
        let shown = String::from_utf8_lossy(text);
        let ends = state.is_some_and(|state| spec.may_end(state));
        assert_eq!(valid, ends, "text {shown} state {state:?} of {need:?}");
        if valid {
            for end in 0..=text.len() {
                valid_prefixes.insert(text[..end].to_vec());
            }
            let state = state.expect("it may end");
            for (index, goal) in goals.iter().enumerate() {
                let bit = spec.verdicts(state) >> index & 1 == 1;
                assert_eq!(bit, accepts(goal, text), "{shown} {goal:?}");
            }
        }
        if let Some(state) = state {
            viable.push((text.to_vec(), state.clone()));
        }
    });
    let viable_texts: BTreeSet<&[u8]> =
        viable.iter().map(|(text, _)| text.as_slice()).collect();
    if !spec.is_empty() {
        for prefix in &valid_prefixes {
            let shown = String::from_utf8_lossy(prefix);
            assert!(
                viable_texts.contains(prefix.as_slice()),
                "dead but completable: {shown} of {need:?}",
            );
        }
    }
    for (prefix, state) in &viable {
        if spec.is_empty() {
            continue;
        }
        let mut text = prefix.clone();
        let shown = String::from_utf8_lossy(prefix);
        let rest = spec.shortest_completion(state);
        let rest = rest.unwrap_or_else(|| {
            panic!("no completion of {shown}, {state:?}, of {need:?}")
        });
        text.extend(&rest);
        let full = String::from_utf8_lossy(&text);
        assert!(
            allowed(&text) && accepts(need, &text),
            "{shown} completed to {full}, {state:?}, of {need:?}",
        );
        let end = run(spec, &text);
        assert!(
            end.is_some_and(|end| spec.may_end(&end)),
            "{full} is refused by {need:?}",
        );
        let live: Vec<(u8, NumberState)> = ALPHABET
            .iter()
            .filter_map(|&b| Some((b, spec.step(state, b)?)))
            .collect::<std::collections::BTreeMap<_, _>>()
            .into_iter()
            .collect();
        assert_eq!(spec.live_bytes(state).to_vec(), live, "after {shown}");
    }
}

fn json_policy() -> Policy {
    Policy { spelling: Spelling::Json, range_f64: false }
}

#[test]
fn json_spelling_is_exact_on_random_formulas() {
    for seed in 1..=500 {
        let mut random = Random(seed * 0x9E37_79B9);
        let depth = random.below(3);
        let need = formula(&mut random, depth);
        let goals = [formula(&mut random, 1), atom(&mut random)];
        let range_f64 = random.below(2) == 0;
        let policy = Policy { range_f64, ..json_policy() };
        let spec = NumberSpec::new(&need, &goals, policy);
        let alphabet: &[u8] = match random.below(3) {
            0 => b"-0125.e",
            1 => b"-019.e+",
            _ => b"0137.e-",
        };
        // The limit of doubles is past the exponents of short texts only
        // with three digits.
        let allowed = |text: &[u8]| {
            !range_f64
                || read(text).is_none_or(|value| {
                    let limit = rational(&Decimal::f64_limit());
                    value < limit && -value < limit
                })
        };
        check(&need, &goals, &spec, &allowed, alphabet, 5);
    }
}

#[test]
fn json_spelling_is_exact_over_the_whole_alphabet() {
    for seed in 1..=12 {
        let mut random = Random(seed * 0x1234_5677);
        let need = formula(&mut random, 1);
        let spec = NumberSpec::new(&need, &[], json_policy());
        check(&need, &[], &spec, &|_| true, ALPHABET, 5);
    }
}

/// What plain spelling allows where the values are not finitely many.
fn is_plain(text: &[u8], max_digits: usize, fraction: bool) -> bool {
    let n_digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    n_digits <= max_digits
        && !text.iter().any(|byte| b"eE".contains(byte))
        && (fraction || !text.contains(&b'.'))
}

#[test]
fn plain_spelling_is_exact_on_random_formulas() {
    for seed in 1..=700 {
        let mut random = Random(seed * 0x51_7CC1);
        let depth = random.below(3);
        let need = formula(&mut random, depth);
        let goals = [formula(&mut random, 1), atom(&mut random)];
        let max_digits = *random.choose(&[4_u32, 6, 40]);
        let policy = Policy {
            spelling: Spelling::Plain { max_digits },
            range_f64: true,
        };
        let spec = NumberSpec::new(&need, &goals, policy);
        if spec.max_digits.is_none() || spec.free {
            continue;
        }
        let alphabet: &[u8] = match random.below(3) {
            0 => b"-0125.e",
            1 => b"-0179.",
            _ => b"-0369.",
        };
        let max_digits =
            usize::try_from(spec.max_digits.unwrap_or(0)).unwrap_or(0);
        let values = spec.cells().values().filter(|v| !v.is_empty());
        if let Some(values) = values {
            let texts: BTreeSet<String> =
                values.iter().map(ToString::to_string).collect();
            let allowed = |text: &[u8]| {
                let text = String::from_utf8_lossy(text);
                texts.contains(&*text)
            };
            check(&need, &goals, &spec, &allowed, alphabet, 5);
            continue;
        }
        let fraction = !spec.cells().all_integers();
        let allowed = |text: &[u8]| is_plain(text, max_digits, fraction);
        check(&need, &goals, &spec, &allowed, alphabet, 6);
    }
}

fn and(parts: &[NumberFormula]) -> NumberFormula {
    NumberFormula::And(parts.to_vec())
}

fn not(inner: NumberFormula) -> NumberFormula {
    NumberFormula::Not(Box::new(inner))
}

/// Lists the bytes that may follow a text.
fn after(spec: &NumberSpec, text: &str) -> String {
    let state = run(spec, text.as_bytes()).expect("the text is viable");
    spec.live_bytes(&state).iter().map(|(b, _)| char::from(*b)).collect()
}

#[test]
fn worked_example_h() {
    let need = and(&[
        NumberFormula::Ge(decimal("0")),
        NumberFormula::Le(decimal("1")),
        NumberFormula::MultipleOf(decimal("0.25")),
        not(NumberFormula::In(vec![decimal("0.5")])),
    ]);
    let json = NumberSpec::new(&need, &[], Policy::json());
    assert!(run(&json, b"5").is_none());
    assert!(run(&json, b"0.5").is_none());
    assert_eq!(after(&json, "25e-"), "02");
    let plain = NumberSpec::new(&need, &[], Policy::plain());
    assert_eq!(after(&plain, "0."), "027");
    assert_eq!(after(&plain, "1."), "0");
}

/// Counts the states that a walk over all continuations meets.
fn n_states(spec: &NumberSpec, most: usize) -> usize {
    let mut seen = BTreeSet::new();
    let mut pending = vec![spec.start()];
    seen.insert(format!("{:?}", spec.start()));
    while let Some(state) = pending.pop() {
        for (_, next) in spec.live_bytes(&state) {
            if seen.insert(format!("{next:?}")) {
                pending.push(next);
            }
        }
        if seen.len() > most {
            break;
        }
    }
    seen.len()
}

fn integers(low: &str, high: &str) -> NumberFormula {
    and(&[
        NumberFormula::Integer,
        NumberFormula::Ge(decimal(low)),
        NumberFormula::Le(decimal(high)),
    ])
}

#[test]
fn states_collapse() {
    let free = NumberSpec::new(&NumberFormula::True, &[], json_policy());
    assert_eq!(n_states(&free, 1000), 9);
    let plain = |need: &NumberFormula| {
        let spec = NumberSpec::new(need, &[], Policy::plain());
        n_states(&spec, 10_000)
    };
    let counts = [
        plain(&NumberFormula::True),
        plain(&NumberFormula::Integer),
        plain(&NumberFormula::Ge(decimal("0"))),
        plain(&integers("0", "150")),
        plain(&integers("0", "18446744073709551616")),
        plain(&integers("-9223372036854775808", "9223372036854775807")),
        plain(&and(&[
            NumberFormula::Integer,
            NumberFormula::MultipleOf(decimal("5")),
        ])),
        plain(&and(&[
            NumberFormula::Ge(decimal("0")),
            NumberFormula::Le(decimal("1")),
        ])),
        plain(&NumberFormula::MultipleOf(decimal("0.01"))),
    ];
    println!("{counts:?}");
    let most = [170, 50, 130, 15, 70, 130, 300, 130, 6000];
    for (count, most) in counts.iter().zip(most) {
        assert!(*count <= most, "{counts:?}");
    }
}
