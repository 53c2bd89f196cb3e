//! Documents that are nearly like one that is there: a member dropped,
//! renamed or doubled, a value of another type, another digit, a piece cut
//! out or put in.
//!
//! A [`Tree`] is a JSON text whose parts can be told apart and whose objects
//! may have a key twice. The depth of what is mutated is that of the corpora.

use serde_json::Value;

use crate::vocabularies::Random;

/// A JSON text, in parts.
#[derive(Clone, Debug)]
pub enum Tree {
    /// A scalar, as it is written.
    Plain(String),
    /// An array.
    Array(Vec<Tree>),
    /// An object; the keys as they are written.
    Object(Vec<(String, Tree)>),
}

/// Values of every type, as they are written.
const OTHERS: [&str; 12] = [
    "null", "true", "false", "0", "-1", "1.5", "1.0", "\"\"", "\"a\"", "[]",
    "{}", "[0]",
];

/// What is put into a text.
const PIECES: [&str; 12] =
    [",", "\"", "0", "1", "{", "}", "[", "]", " ", "a", "\\", "-"];

/// Keys that take the place of others.
const NAMES: [&str; 5] = ["\"a\"", "\"b\"", "\"\"", "\"x-y\"", "\"A\""];

impl From<&Value> for Tree {
    fn from(value: &Value) -> Tree {
        match value {
            Value::Array(items) => {
                Tree::Array(items.iter().map(Tree::from).collect())
            }
            Value::Object(members) => Tree::Object(
                members
                    .iter()
                    .map(|(key, value)| (quoted(key), Tree::from(value)))
                    .collect(),
            ),
            plain => Tree::Plain(plain.to_string()),
        }
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

impl Tree {
    /// Writes the text, without white space.
    pub fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Tree::Plain(text) => out.push_str(text),
            Tree::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    item.write(out);
                }
                out.push(']');
            }
            Tree::Object(members) => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    out.push_str(key);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    fn n_nodes(&self) -> usize {
        1 + match self {
            Tree::Plain(_) => 0,
            Tree::Array(items) => items.iter().map(Tree::n_nodes).sum(),
            Tree::Object(members) => {
                members.iter().map(|(_, value)| value.n_nodes()).sum()
            }
        }
    }

    /// Returns a node by its number, counted from the outside inwards.
    fn node(&mut self, number: &mut usize) -> Option<&mut Tree> {
        if *number == 0 {
            return Some(self);
        }
        *number -= 1;
        match self {
            Tree::Plain(_) => None,
            Tree::Array(items) => {
                items.iter_mut().find_map(|item| item.node(number))
            }
            Tree::Object(members) => {
                members.iter_mut().find_map(|(_, value)| value.node(number))
            }
        }
    }
}

/// Returns a text that is one change away from a value's.
///
/// # Panics
///
/// Never: there is a node of every number that is drawn.
pub fn mutated(value: &Value, random: &mut Random) -> String {
    let mut tree = Tree::from(value);
    match random.below(10) {
        0 => return cut(&tree.text(), random),
        1 => return put_in(&tree.text(), random),
        2 => return change_digit(&tree.text(), random),
        _ => {}
    }
    let mut number = random.below(tree.n_nodes());
    let node = tree.node(&mut number).expect("a number below all");
    change(node, random);
    tree.text()
}

fn change(node: &mut Tree, random: &mut Random) {
    let other = Tree::Plain((*random.pick(&OTHERS)).to_owned());
    match node {
        Tree::Object(members) if !members.is_empty() => {
            let at = random.below(members.len());
            match random.below(6) {
                0 => drop(members.remove(at)),
                1 => (*random.pick(&NAMES)).clone_into(&mut members[at].0),
                2 => members.insert(at, members[at].clone()),
                3 => {
                    let key = (*random.pick(&NAMES)).to_owned();
                    members.insert(at, (key, other));
                }
                4 => members.reverse(),
                _ => *node = other,
            }
        }
        Tree::Array(items) if !items.is_empty() => {
            let at = random.below(items.len());
            match random.below(5) {
                0 => drop(items.remove(at)),
                1 => items.insert(at, items[at].clone()),
                2 => items.insert(at, other),
                3 => items.reverse(),
                _ => *node = other,
            }
        }
        Tree::Plain(text) if random.chance(50) => {
            *text = change_plain(text, random);
        }
        Tree::Object(members) if random.chance(50) => {
            let key = (*random.pick(&NAMES)).to_owned();
            members.push((key, other));
        }
        Tree::Array(items) if random.chance(50) => items.push(other),
        _ => *node = other,
    }
}

/// Returns a scalar of the same type, mostly.
fn change_plain(text: &str, random: &mut Random) -> String {
    let Some(inner) =
        text.strip_prefix('"').and_then(|text| text.strip_suffix('"'))
    else {
        return match random.below(4) {
            0 => change_digit(text, random),
            1 => format!("{text}.0"),
            2 => format!("{text}e1"),
            _ => format!("-{text}"),
        };
    };
    match random.below(5) {
        0 => format!("\"{inner}{inner}\""),
        1 => format!("\"{}\"", cut(inner, random)),
        2 => format!("\"{}\"", put_in(inner, random)),
        3 => format!("\"{inner} \""),
        _ => change_digit(text, random),
    }
}

/// Cuts out some characters.
fn cut(text: &str, random: &mut Random) -> String {
    let chars: Vec<char> = text.chars().collect();
    let start = random.below(chars.len());
    let end = (start + 1 + random.below(4)).min(chars.len());
    chars[..start].iter().chain(&chars[end.min(chars.len())..]).collect()
}

/// Puts a piece in.
fn put_in(text: &str, random: &mut Random) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let at = random.below(chars.len() + 1);
    chars.splice(at..at, random.pick(&PIECES).chars());
    chars.into_iter().collect()
}

/// Makes another digit of one; leaves a text without digits as it is.
fn change_digit(text: &str, random: &mut Random) -> String {
    let digits: Vec<usize> = text
        .char_indices()
        .filter(|(_, char)| char.is_ascii_digit())
        .map(|(at, _)| at)
        .collect();
    if digits.is_empty() {
        return text.to_owned();
    }
    let at = *random.pick(&digits);
    let digit = random.below(10).to_string();
    format!("{}{digit}{}", &text[..at], &text[at + 1..])
}
