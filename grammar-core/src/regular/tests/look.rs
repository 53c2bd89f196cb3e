//! Look-around against a matcher that is slow and obvious.

use std::collections::BTreeSet;
use std::fmt::Write;

use proptest::prelude::*;

use super::super::*;
use super::differential::runner;

#[derive(Clone, Debug)]
enum Ast {
    Class(&'static str, &'static [char], bool),
    Cat(Vec<Ast>),
    Alt(Vec<Ast>),
    Repeat(Box<Ast>, usize, Option<usize>),
    Look { behind: bool, negative: bool, body: Box<Ast> },
    Start,
    End,
    Boundary { negative: bool },
}

impl Ast {
    fn print(&self, out: &mut String) {
        match self {
            Ast::Class(text, ..) => out.push_str(text),
            Ast::Cat(parts) => parts.iter().for_each(|part| part.print(out)),
            Ast::Alt(parts) => {
                out.push_str("(?:");
                for (index, part) in parts.iter().enumerate() {
                    if index > 0 {
                        out.push('|');
                    }
                    part.print(out);
                }
                out.push(')');
            }
            Ast::Repeat(body, min, max) => {
                out.push_str("(?:");
                body.print(out);
                let max = max.map_or(String::new(), |max| max.to_string());
                write!(out, "){{{min},{max}}}").expect("a string can grow");
            }
            Ast::Look { behind, negative, body } => {
                out.push_str(match (behind, negative) {
                    (false, false) => "(?=",
                    (false, true) => "(?!",
                    (true, false) => "(?<=",
                    (true, true) => "(?<!",
                });
                body.print(out);
                out.push(')');
            }
            Ast::Start => out.push('^'),
            Ast::End => out.push('$'),
            Ast::Boundary { negative: false } => out.push_str("\\b"),
            Ast::Boundary { negative: true } => out.push_str("\\B"),
        }
    }

    /// All places where a match that begins at `at` can end.
    fn ends(&self, text: &[char], at: usize) -> BTreeSet<usize> {
        let here = |holds: bool| holds.then_some(at).into_iter().collect();
        match self {
            Ast::Class(_, members, negated) => text
                .get(at)
                .filter(|c| members.contains(c) != *negated)
                .map(|_| at + 1)
                .into_iter()
                .collect(),
            Ast::Cat(parts) => {
                parts.iter().fold(BTreeSet::from([at]), |ends, part| {
                    ends.iter().flat_map(|&at| part.ends(text, at)).collect()
                })
            }
            Ast::Alt(parts) => {
                parts.iter().flat_map(|part| part.ends(text, at)).collect()
            }
            Ast::Repeat(body, min, max) => {
                let mut level = BTreeSet::from([at]);
                let mut ends = BTreeSet::new();
                // More rounds than this reach no new place.
                let most = max.unwrap_or(min + text.len() + 1);
                for round in 0..=most {
                    if round >= *min {
                        ends.extend(level.iter().copied());
                    }
                    level = level
                        .iter()
                        .flat_map(|&at| body.ends(text, at))
                        .collect();
                }
                ends
            }
            Ast::Look { behind: false, negative, body } => {
                here(body.ends(text, at).is_empty() == *negative)
            }
            Ast::Look { behind: true, negative, body } => {
                let found =
                    (0..=at).any(|from| body.ends(text, from).contains(&at));
                here(found != *negative)
            }
            Ast::Start => here(at == 0),
            Ast::End => here(at == text.len()),
            Ast::Boundary { negative } => {
                let is_word = |at: usize| {
                    text.get(at).is_some_and(char::is_ascii_alphanumeric)
                };
                let before = at > 0 && is_word(at - 1);
                here((before != is_word(at)) != *negative)
            }
        }
    }
}

fn ast() -> impl Strategy<Value = Ast> {
    let leaf = prop_oneof![
        8 => prop::sample::select(vec![
            Ast::Class("a", &['a'], false),
            Ast::Class("b", &['b'], false),
            Ast::Class("-", &['-'], false),
            Ast::Class("[ab]", &['a', 'b'], false),
            Ast::Class("[^a]", &['a'], true),
            Ast::Class(".", &['\n'], true),
        ]),
        1 => Just(Ast::Start),
        1 => Just(Ast::End),
        1 => any::<bool>().prop_map(|negative| Ast::Boundary { negative }),
        1 => Just(Ast::Cat(Vec::new())),
    ];
    leaf.prop_recursive(5, 24, 4, |inner| {
        let parts = prop::collection::vec(inner.clone(), 1..4);
        let count = prop::sample::select(vec![
            (0, None),
            (1, None),
            (2, None),
            (0, Some(1)),
            (0, Some(3)),
            (1, Some(2)),
            (2, Some(2)),
            (2, Some(4)),
            (3, Some(3)),
        ]);
        prop_oneof![
            3 => parts.clone().prop_map(Ast::Cat),
            2 => parts.prop_map(Ast::Alt),
            3 => (inner.clone(), count).prop_map(|(body, (min, max))| {
                Ast::Repeat(Box::new(body), min, max)
            }),
            3 => (inner, any::<bool>(), any::<bool>()).prop_map(
                |(body, behind, negative)| Ast::Look {
                    behind,
                    negative,
                    body: Box::new(body),
                }
            ),
        ]
    })
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    let letter = prop::sample::select(vec!['a', 'a', 'b', 'b', '-']);
    let text = prop::collection::vec(letter, 0..7)
        .prop_map(|letters| letters.into_iter().collect());
    prop::collection::vec(text, 10)
}

/// Found by the comparison below: a round that matches nothing, because of
/// where it stands, was taken for all rounds.
#[test]
fn a_round_that_matches_nothing_is_one_round() {
    for (pattern, text, expected) in [
        ("(?:^|[ab]){2,2}", "a", true),
        ("(?:^|[ab]){2,2}", "ab", true),
        ("(?:^|[ab]){2,2}", "aba", false),
        ("(?:^|a){3}b", "ab", true),
        ("(?:^|a){3}b", "aaaab", false),
        ("(?:(?:^|a){2}|b){2}", "aba", false),
        ("(?:(?:^|a){2}|b){2}", "ab", true),
        ("(?:\\b|a){2}", "a", true),
    ] {
        let regex = Regex::rust(pattern).expect("it is valid");
        let language = Language::new(&regex, Limits::new()).expect("small");
        let matches = language.is_match(text);
        assert_eq!(matches, Ok(expected), "{pattern} on {text:?}");
    }
}

#[test]
fn look_around_agrees_with_the_obvious_matcher() {
    let strategy = (ast(), texts());
    let check = |(ast, texts): (Ast, Vec<String>)| {
        let mut pattern = String::new();
        ast.print(&mut pattern);
        let whole = Regex::rust(&pattern).expect("it is valid");
        // `\b` of ECMA-262 is that of ASCII, and so are the texts.
        let search = Regex::ecma(&pattern).expect("it is valid");
        let whole = Language::new(&whole, Limits::new()).expect("small");
        let search = Language::new(&search, Limits::new()).expect("small");
        for text in &texts {
            let letters: Vec<char> = text.chars().collect();
            let expected = ast.ends(&letters, 0).contains(&letters.len());
            prop_assert_eq!(
                whole.is_match(text),
                Ok(expected),
                "{} on {:?}",
                pattern,
                text
            );
            let expected = (0..=letters.len())
                .any(|from| !ast.ends(&letters, from).is_empty());
            prop_assert_eq!(
                search.is_match(text),
                Ok(expected),
                "search {} in {:?}",
                pattern,
                text
            );
        }
        Ok(())
    };
    runner(1500).run(&strategy, check).expect("both agree");
}
