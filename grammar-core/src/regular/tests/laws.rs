//! Boolean laws, and answers about states against exhaustive search.

use proptest::prelude::*;

use super::super::*;
use super::differential::{pattern, runner, text};

fn language(regex: &Regex) -> Language {
    Language::new(regex, Limits::new()).expect("it is small")
}

#[test]
fn boolean_operations_are_those_of_membership() {
    let texts = prop::collection::vec(text(), 10);
    let strategy = (pattern(3), pattern(3), texts);
    let check = |(a, b, texts): (String, String, Vec<String>)| {
        let a = Regex::rust(&a).expect("it is valid");
        let b = Regex::ecma(&b).expect("it is valid");
        let (in_a, in_b) = (language(&a), language(&b));
        let and = language(&a.and(&b));
        let or = language(&a.or(&b));
        let not = language(&a.not());
        let de_morgan = language(&a.not().or(&b.not()).not());
        // An intersection inside a larger expression.
        let inside = Regex::concat(&[a.and(&b.not()), Regex::literal("c")]);
        let inside = language(&inside);
        for text in &texts {
            let x = in_a.is_match(text).expect("within the limits");
            let y = in_b.is_match(text).expect("within the limits");
            prop_assert_eq!(and.is_match(text), Ok(x && y));
            prop_assert_eq!(de_morgan.is_match(text), Ok(x && y));
            prop_assert_eq!(or.is_match(text), Ok(x || y));
            prop_assert_eq!(not.is_match(text), Ok(!x));
            let longer = format!("{text}c");
            prop_assert_eq!(inside.is_match(&longer), Ok(x && !y));
        }
        let nothing = language(&a.and(&a.not()));
        prop_assert_eq!(nothing.is_dead(nothing.start()), Answer::Yes);
        let all = language(&b.or(&b.not()));
        prop_assert_eq!(all.never_dies(all.start()), Answer::Yes);
        Ok(())
    };
    runner(150).run(&strategy, check).expect("the laws hold");
}

/// The texts over two letters, shortest first.
fn short_texts(max: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut from = 0;
    for _ in 0..max {
        let level = all.len();
        for index in from..level {
            for letter in ['a', 'b'] {
                all.push(format!("{}{letter}", all[index]));
            }
        }
        from = level;
    }
    all
}

/// Restricts a language to two letters, so that short texts say all.
fn over_two_letters(pattern: &str) -> Regex {
    let letters = CharSet::new([(0x61, 0x62)]);
    let any = Regex::class(letters).repeat(0, None);
    Regex::rust(pattern).expect("it is valid").and(&any)
}

#[test]
fn answers_about_states_agree_with_exhaustive_search() {
    const LONGEST: usize = 9;
    let look = prop::sample::select(vec![
        "",
        "(?!a)",
        "(?=.*b)",
        "(?!.*ab)",
        "(?=(?:..)*$)",
    ]);
    let texts = short_texts(LONGEST);
    let check = |(look, pattern, prefix): (&str, String, String)| {
        let regex = over_two_letters(&format!("{look}(?:{pattern})"));
        let language = language(&regex);
        let mut state = language.start();
        for letter in prefix.chars() {
            match language.step(state, letter) {
                Ok(Some(next)) => state = next,
                Ok(None) => break,
                Err(error) => prop_assert!(false, "{}", error),
            }
        }
        let suffixes: Vec<&String> = texts
            .iter()
            .filter(|text| {
                let mut at = Some(state);
                for letter in text.chars() {
                    at = at.and_then(|at| {
                        language.step(at, letter).expect("small")
                    });
                }
                at.is_some_and(|at| language.is_accepting(at))
            })
            .collect();
        let shortest = suffixes.first().map(|text| text.len() as u64);
        match language.shortest(state) {
            Shortest::Exactly(n) if n <= LONGEST as u64 => {
                prop_assert_eq!(Some(n), shortest);
            }
            Shortest::Exactly(_) => prop_assert_eq!(shortest, None),
            Shortest::Never => {
                prop_assert_eq!(shortest, None);
                prop_assert_eq!(language.is_dead(state), Answer::Yes);
            }
            Shortest::AtLeast(_) => prop_assert!(false, "budget spent"),
        }
        for least in 0..LONGEST as u64 {
            for most in least..LONGEST as u64 {
                let expected = suffixes
                    .iter()
                    .any(|text| (least..=most).contains(&(text.len() as u64)));
                let expected = if expected { Answer::Yes } else { Answer::No };
                prop_assert_eq!(
                    language.accepts_length(state, least, most),
                    expected,
                    "{}..={}",
                    least,
                    most
                );
            }
        }
        match language.longest(state) {
            Longest::Never => prop_assert!(suffixes.is_empty()),
            Longest::Finite(n) if n <= LONGEST as u64 => {
                let longest = suffixes.last().map(|text| text.len() as u64);
                prop_assert_eq!(longest, Some(n));
                let words = language.enumerate_from(state, 2000);
                let words = words.expect("there are few");
                let listed: Vec<&String> = words.iter().collect();
                prop_assert_eq!(&listed, &suffixes);
                let n_words = words.len() as u64;
                prop_assert_eq!(
                    language.count_words(state, 2000),
                    WordCount::Exactly(n_words)
                );
                if n_words > 0 {
                    prop_assert_eq!(
                        language.count_words(state, n_words - 1),
                        WordCount::MoreThanCap
                    );
                }
            }
            Longest::Finite(_) => {}
            Longest::Unbounded => {
                prop_assert_eq!(
                    language.accepts_length(state, 50, u64::MAX),
                    Answer::Yes
                );
            }
            Longest::Unknown => prop_assert!(false, "budget spent"),
        }
        Ok(())
    };
    let prefix =
        prop::collection::vec(prop::sample::select(vec!['a', 'b']), 0..3)
            .prop_map(|letters| letters.into_iter().collect());
    let strategy = (look, pattern(3), prefix);
    runner(150).run(&strategy, check).expect("the answers are exact");
}

/// A pattern with anchors at some places, and where they are not plain.
fn anchored() -> impl Strategy<Value = String> {
    let front = prop::sample::select(vec!["", "^", "^", "a*^", "b^", "(?:^)"]);
    let back = prop::sample::select(vec!["", "$", "$", "$b*", "$a", "(?:$)"]);
    let one = (front, pattern(2), back)
        .prop_map(|(front, body, back)| format!("{front}(?:{body}){back}"));
    let many = prop::collection::vec(one, 1..4);
    (many, 0..3).prop_map(|(many, shape)| match (shape, &many[..]) {
        (0, _) => many.join("|"),
        (1, [first, rest @ ..]) => {
            format!("{first}(?:{})?", rest.join("|"))
        }
        _ => format!("(?:(?:{})|c)", many.join("|")),
    })
}

#[test]
fn anchors_and_lengths_are_those_of_a_search() {
    let texts = short_texts(6);
    let check = |(pattern, more): (String, Vec<String>)| {
        let oracle = regex_automata::meta::Regex::new(&pattern)
            .expect("the generator makes valid patterns");
        let searched = Regex::rust(&pattern).expect("as above").search();
        let language = language(&searched);
        for text in texts.iter().chain(&more) {
            prop_assert_eq!(
                language.is_match(text),
                Ok(oracle.is_match(text)),
                "{:?}",
                text
            );
        }
        for prefix in more.iter().chain(&texts[..15]) {
            let mut state = Some(language.start());
            for letter in prefix.chars() {
                state = state.and_then(|state| {
                    language.step(state, letter).expect("small")
                });
            }
            let Some(state) = state else { continue };
            let Shortest::Exactly(n) = language.shortest(state) else {
                continue;
            };
            prop_assert!(language.slack().is_none_or(|slack| n <= slack));
            let (min, max) = language.length_bounds(state);
            prop_assert!(min <= n);
            prop_assert!(max.is_none_or(|max| n <= max));
        }
        Ok(())
    };
    let more = prop::collection::vec(super::differential::text(), 8);
    let strategy = (anchored(), more);
    runner(400).run(&strategy, check).expect("both agree");
}

#[test]
fn anchors_at_the_ends_leave_a_plain_pattern() {
    for (pattern, slack) in [
        (r"^$|(^(?:\S+\s+){0,99}\S+$)", 2),
        ("^(a|b{3,})$", 2),
        ("^x|y$", 1),
        ("^(?:ab{2}){3}c{4}$", 13),
        ("(^a|b)c$", 2),
    ] {
        let searched = Regex::ecma(pattern).expect("it is valid");
        assert_eq!(language(&searched).slack(), Some(slack), "{pattern}");
    }
}

#[test]
fn words_are_counted_between_lengths() {
    let regex = Regex::rust("(?:ab|c)*").expect("it is valid");
    let language = language(&regex);
    // One word of no or one letter, two of two, three of three.
    for (least, most, n) in [(0, 0, 1), (0, 2, 4), (2, 3, 5), (3, 3, 3)] {
        let count =
            language.count_words_within(language.start(), least, most, 9);
        assert_eq!(count, WordCount::Exactly(n), "{least}..={most}");
    }
    let count = language.count_words_within(language.start(), 3, 3, 2);
    assert_eq!(count, WordCount::MoreThanCap);
}
