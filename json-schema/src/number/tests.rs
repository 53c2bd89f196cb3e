//! Number recognition against direct evaluation, both ways.
//!
//! The oracle knows nothing of windows or classes: it parses a text with its
//! own reader into a rational and evaluates the formula on it.

use std::{cmp::Ordering, collections::BTreeSet};

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Pow;
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

/// The number of random cases; `MASKWRIGHT_NUMBER_CASES` multiplies it.
fn n_cases(usual: u64) -> u64 {
    let factor = std::env::var("MASKWRIGHT_NUMBER_CASES");
    usual * factor.ok().and_then(|text| text.parse().ok()).unwrap_or(1)
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
    let digits =
        |t: &str| !t.is_empty() && t.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    if whole.len() > 1 && whole.starts_with('0') {
        return None;
    }
    let exponent = if exponent.is_empty() { "e0" } else { exponent };
    let exponent = &exponent[1..];
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
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

type Oracle = Box<dyn Fn(&BigRational, bool) -> bool>;

/// Evaluates a formula directly.
fn oracle(formula: &NumberFormula) -> Oracle {
    let all = |parts: &[NumberFormula], wanted: bool| -> Oracle {
        let parts: Vec<Oracle> = parts.iter().map(oracle).collect();
        Box::new(move |value, text| {
            parts.iter().all(|part| part(value, text) == wanted)
        })
    };
    let compare = |bound: &Decimal, holds: fn(Ordering) -> bool| -> Oracle {
        let bound = rational(bound);
        Box::new(move |value, _| holds(value.cmp(&bound)))
    };
    match formula {
        NumberFormula::True => Box::new(|_, _| true),
        NumberFormula::False => Box::new(|_, _| false),
        NumberFormula::Ge(bound) => compare(bound, Ordering::is_ge),
        NumberFormula::Gt(bound) => compare(bound, Ordering::is_gt),
        NumberFormula::Le(bound) => compare(bound, Ordering::is_le),
        NumberFormula::Lt(bound) => compare(bound, Ordering::is_lt),
        NumberFormula::MultipleOf(divisor) => {
            let divisor = rational(divisor);
            Box::new(move |value, _| (value / &divisor).is_integer())
        }
        NumberFormula::Integer => Box::new(|value, _| value.is_integer()),
        NumberFormula::IntegerText => Box::new(|_, text| text),
        NumberFormula::In(values) => {
            let values: Vec<BigRational> =
                values.iter().map(rational).collect();
            Box::new(move |value, _| values.contains(value))
        }
        NumberFormula::And(parts) => all(parts, true),
        NumberFormula::Or(parts) => {
            let none = all(parts, false);
            Box::new(move |value, text| !none(value, text))
        }
        NumberFormula::Not(inner) => {
            let inner = oracle(inner);
            Box::new(move |value, text| !inner(value, text))
        }
    }
}

/// Whether a text satisfies a formula, by the whole JSON grammar.
fn accepts(oracle: &Oracle, text: &[u8]) -> bool {
    let whole = !text.iter().any(|byte| b".eE".contains(byte));
    read(text).is_some_and(|value| oracle(&value, whole))
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
        6 | 7 => {
            NumberFormula::MultipleOf(decimal(random.choose::<&str>(DIVISORS)))
        }
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
            let grammar = grammar.as_ref().and_then(|g| json.step(g, byte));
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
    let shown_need = need;
    let need = oracle(need);
    let goals: Vec<(&NumberFormula, Oracle)> =
        goals.iter().map(|goal| (goal, oracle(goal))).collect();
    let mut valid_prefixes = BTreeSet::new();
    let mut viable = Vec::new();
    walk(alphabet, max_len, spec, &mut |text, state| {
        let valid = allowed(text) && accepts(&need, text);
        let shown = String::from_utf8_lossy(text);
        let ends = state.is_some_and(|state| spec.may_end(state));
        assert_eq!(
            valid, ends,
            "text {shown} state {state:?} of {shown_need:?}"
        );
        if valid {
            for end in 0..=text.len() {
                valid_prefixes.insert(text[..end].to_vec());
            }
            let state = state.expect("it may end");
            for (index, (goal, oracle)) in goals.iter().enumerate() {
                let bit = spec.verdicts(state) >> index & 1 == 1;
                assert_eq!(bit, accepts(oracle, text), "{shown} {goal:?}");
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
                "dead but completable: {shown} of {shown_need:?}",
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
            panic!("no completion of {shown}, {state:?}, of {shown_need:?}")
        });
        text.extend(&rest);
        let full = String::from_utf8_lossy(&text);
        assert!(
            allowed(&text) && accepts(&need, &text),
            "{shown} completed to {full}, {state:?}, of {shown_need:?}",
        );
        let end = run(spec, &text);
        assert!(
            end.is_some_and(|end| spec.may_end(&end)),
            "{full} is refused by {shown_need:?}",
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
    for seed in 1..=n_cases(40) {
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
        let limit = rational(&Decimal::f64_limit());
        let allowed = |text: &[u8]| {
            !range_f64
                || read(text)
                    .is_none_or(|value| value < limit && -value < limit)
        };
        check(&need, &goals, &spec, &allowed, alphabet, 5);
    }
}

#[test]
fn json_spelling_is_exact_over_the_whole_alphabet() {
    for seed in 1..=n_cases(3) {
        let mut random = Random(seed * 0x1234_5677);
        let need = formula(&mut random, 1);
        let spec = NumberSpec::new(&need, &[], json_policy());
        check(&need, &[], &spec, &|_| true, ALPHABET, 4);
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
    for seed in 1..=n_cases(60) {
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
        check(&need, &goals, &spec, &allowed, alphabet, 5);
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
    let most = [130, 50, 210, 15, 70, 130, 210, 250, 1000];
    for (count, most) in counts.iter().zip(most) {
        assert!(*count <= most, "{counts:?}");
    }
}

/// Texts of JSON numbers, some of them long.
fn number_text() -> impl Strategy<Value = String> {
    let whole = "0|[1-9][0-9]{0,3}|[1-9][0-9]{30,50}|[1-9]0{0,45}";
    let fraction = "(\\.[0-9]{1,4}|\\.0{0,40}[0-9])?";
    let exponent = "([eE][+-]?[0-9]{1,2})?";
    (proptest::string::string_regex(&format!(
        "-?({whole}){fraction}{exponent}"
    )))
    .expect("a regex of this file")
}

proptest! {
    #[test]
    fn order_and_equality_are_those_of_the_value(
        left in number_text(),
        right in number_text(),
    ) {
        let (a, b) = (decimal(&left), decimal(&right));
        let value = |text: &str| read(text.as_bytes()).expect("a number");
        let (x, y) = (value(&left), value(&right));
        prop_assert_eq!(a.cmp(&b), x.cmp(&y));
        prop_assert_eq!(a == b, x == y);
        prop_assert_eq!(rational(&a), x.clone());
        prop_assert_eq!(a.is_integer(), x.is_integer());
        prop_assert_eq!(a.negated().negated(), a.clone());
        prop_assert_eq!(a.abs().cmp(&b.abs()), {
            let absolute = |v: &BigRational| v.clone().max(-v.clone());
            absolute(&x).cmp(&absolute(&y))
        });
    }

    #[test]
    fn divisibility_is_that_of_the_value(
        left in number_text(),
        right in number_text(),
        factor in 0_i64..10_000,
    ) {
        let (a, b) = (decimal(&left), decimal(&right).abs());
        prop_assume!(!b.is_zero());
        let divides = (rational(&a) / rational(&b)).is_integer();
        prop_assert_eq!(a.is_multiple_of(&b), divides);
        let product = rational(&b) * BigRational::from(BigInt::from(factor));
        let mut sum = Decimal::zero();
        for _ in 0..factor % 50 {
            sum = sum.plus(&b).expect("one exponent");
        }
        prop_assert!(sum.is_multiple_of(&b));
        let lcm = a.abs().lcm(&b);
        if let Some(lcm) = lcm.filter(|_| !a.is_zero()) {
            prop_assert!(lcm.is_multiple_of(&a) && lcm.is_multiple_of(&b));
        }
        let next = a.abs().next_multiple(&b, true).expect("near enough");
        prop_assert!(next > a.abs() && next.is_multiple_of(&b));
        prop_assert!(rational(&next) <= rational(&a.abs()) + rational(&b));
        prop_assert!(product >= BigRational::from(BigInt::from(0)));
    }
}

#[test]
fn huge_exponents_are_not_expanded() {
    let huge = decimal("1e999999999");
    assert!(huge > decimal("1e400") && huge.negated() < decimal("-1e400"));
    assert!(decimal("1e-999999999") < decimal("1e-400"));
    assert!(huge.is_multiple_of(&decimal("0.01")));
    assert!(!huge.is_multiple_of(&decimal("3")));
    assert!(!decimal("1e-999999999").is_multiple_of(&decimal("0.01")));
    assert_eq!(decimal("-0e999999999999999999999"), Decimal::zero());
    assert!("1e999999999999999999999".parse::<Decimal>().is_err());
    for text in ["", "-", "01", "1.", ".5", "1e", "1e+", "+1", "1 ", "0x1"] {
        assert!(text.parse::<Decimal>().is_err(), "{text}");
    }
    for need in [NumberFormula::Ge(huge.clone()), NumberFormula::Lt(huge)] {
        let policy = Policy { range_f64: false, ..Policy::json() };
        for policy in [policy, Policy::plain(), Policy::json()] {
            let spec = NumberSpec::new(&need, &[], policy);
            for text in ["1e999999999", "12.5e999999998", "7", "-1e99"] {
                let mut state = Some(spec.start());
                for &byte in text.as_bytes() {
                    state = state.and_then(|s| spec.step(&s, byte));
                }
                let ends = state.is_some_and(|s| spec.may_end(&s));
                let in_range = text.len() < 8 || !policy.range_f64;
                let plain =
                    policy.spelling == Spelling::Json || !text.contains('e');
                let value = decimal(text);
                let holds = match &need {
                    NumberFormula::Ge(bound) => value >= *bound,
                    _ => value < decimal("1e999999999"),
                };
                assert_eq!(ends, holds && in_range && plain, "{text}");
            }
        }
    }
}

#[test]
fn the_range_of_doubles_is_exact() {
    let spec = NumberSpec::new(&NumberFormula::True, &[], Policy::json());
    let texts = [
        "1e308",
        "1e309",
        "-1e309",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "0.0001e312",
        "0.0001e313",
        "1e-400",
        "17976e304",
        "17977e304",
        "0e999",
        "1e0000308",
        "1e0000309",
        "123e+305",
    ];
    for text in texts {
        let state = run(&spec, text.as_bytes());
        let ends = state.is_some_and(|state| spec.may_end(&state));
        let value: f64 = text.parse().expect("a number");
        assert_eq!(ends, value.is_finite(), "{text}");
    }
    let long = format!("1{}e-200", "0".repeat(400));
    assert!(run(&spec, long.as_bytes()).is_some_and(|s| spec.may_end(&s)));
    assert!(
        run(&spec, format!("1{}", "0".repeat(400)).as_bytes())
            .is_some_and(|state| !spec.may_end(&state))
    );
}

#[test]
fn plain_lists_spell_every_value() {
    let values = ["1e400", "1e50", "2.5", "-0.05", "100"];
    let need = NumberFormula::In(values.map(decimal).to_vec());
    let goal = NumberFormula::Gt(decimal("0"));
    let policy = Policy { range_f64: false, ..Policy::plain() };
    let spec = NumberSpec::new(&need, &[goal], policy);
    for (text, bit) in
        [("1e400", 1), ("1e50", 1), ("2.5", 1), ("-0.05", 0), ("100", 1)]
    {
        let state = run(&spec, text.as_bytes()).expect("a listed text");
        assert!(spec.may_end(&state), "{text}");
        assert_eq!(spec.verdicts(&state), bit, "{text}");
    }
    assert_eq!(after(&spec, ""), "-12");
    assert_eq!(after(&spec, "1"), "0e");
    assert!(run(&spec, b"2.50").is_none());
    let start = spec.shortest_completion(&spec.start());
    assert_eq!(start.as_deref(), Some(&b"100"[..]));
}

#[test]
fn emptiness_is_exact() {
    let ge = |text| NumberFormula::Ge(decimal(text));
    let gt = |text| NumberFormula::Gt(decimal(text));
    let lt = |text| NumberFormula::Lt(decimal(text));
    let multiple = |text| NumberFormula::MultipleOf(decimal(text));
    let empty = [
        and(&[gt("1"), lt("2"), NumberFormula::Integer]),
        and(&[ge("0.1"), lt("0.3"), multiple("0.3")]),
        and(&[multiple("4"), not(multiple("2"))]),
        and(&[multiple("6"), not(multiple("4")), gt("6"), lt("18")]),
        and(&[NumberFormula::IntegerText, not(NumberFormula::Integer)]),
        and(&[gt("1"), lt("1")]),
        NumberFormula::In(Vec::new()),
    ];
    for formula in &empty {
        assert!(Cells::new(formula).is_empty(), "{formula:?}");
        for policy in [Policy::plain(), Policy::json()] {
            let spec = NumberSpec::new(formula, &[], policy);
            assert!(spec.is_empty(), "{formula:?}");
        }
    }
    let tiny = and(&[gt("0"), lt("1e-50")]);
    let large = and(&[ge("1e300"), multiple("7")]);
    for formula in [&tiny, &large] {
        let spec = NumberSpec::new(formula, &[], Policy::plain());
        assert!(!spec.is_empty(), "{formula:?}");
        let text = spec.shortest_completion(&spec.start());
        let text = text.expect("a witness");
        assert!(accepts(&oracle(formula), &text), "{text:?}");
    }
}

#[test]
fn too_many_cells_leave_the_final_test_exact() {
    let clause = |index: i64| {
        NumberFormula::Or(vec![
            NumberFormula::Lt((10 * index).into()),
            NumberFormula::Gt((10 * index + 3).into()),
        ])
    };
    let need = NumberFormula::And((0..80).map(clause).collect());
    let spec = NumberSpec::new(&need, &[], Policy::plain());
    assert!(!spec.cells().is_exact());
    for (text, allowed) in [("11", false), ("14", true), ("790", false)] {
        let state = run(&spec, text.as_bytes()).expect("let through");
        assert_eq!(spec.may_end(&state), allowed, "{text}");
    }
}

#[test]
fn deep_formulas_do_not_recurse() {
    let mut formula = NumberFormula::Ge(decimal("3"));
    for _ in 0..2_000 {
        formula = not(and(&[formula]));
    }
    let spec = NumberSpec::new(&formula, &[], Policy::plain());
    assert!(run(&spec, b"3").is_some_and(|state| spec.may_end(&state)));
    assert!(run(&spec, b"-").is_none());
}
