//! The formats of JSON Schema as regular languages.
//!
//! Each format is one expression over the code points of the whole string,
//! so that it can stand beside `pattern`, lengths and `enum`, under `not`
//! and in `oneOf`, with masks that never lead into a dead end. Each is built
//! when it is first asked for, once in a process.
//!
//! A known format is enforced in every draft, also in those before the one
//! that brought it: whoever writes `date` means a date.
//!
//! # Where exactness ends
//!
//! Most formats are exactly what their RFC says. The others:
//!
//! - `idn-email` bounds the local part to 64 code points where RFC 6531
//!   means octets, and allows any characters that are not ASCII in labels.
//! - `relative-json-pointer` has no index manipulation (`0+1`), which only
//!   2020-12 knows.
//! - `time` and `date-time` allow second 60 at 23:59 UTC of every day, for
//!   offsets of whole quarters of an hour.
//!
//! Three formats are not regular: `regex` (groups nest), and `hostname` and
//! `idn-hostname` (Punycode, normalization). Each lies between two languages
//! that are ([`Bound`]), and a string between these is checked when it ends:
//! nothing is accepted wrongly, and nothing refused, but such a string may
//! turn out to have no valid end (an `idn-hostname` that is too long).
//!
//! Of `regex` little is left between: groups more than eight deep, names of
//! groups and references, ranges whose ends are characters or escapes of one
//! part of Unicode (`[\xe9-\xe0`), and counts from numbers of three or more
//! digits that begin with the same (`{124,123`).

mod email;
mod host;
mod idn;
mod ip;
mod pointer;
mod regex;
mod time;
mod uri;

#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use maskwright_grammar_core::regular::{Language, Limits, Regex};

use crate::{draft::Draft, parse::language_matches};

/// A format: its name, the first draft that has it, and what it is.
struct Format {
    name: &'static str,
    since: Draft,
    /// The strings that may have it.
    most: fn() -> Regex,
    rest: Option<Rest>,
}

/// How a format that is not regular is told from what may have it.
struct Rest {
    /// The strings that have it for certain.
    least: fn() -> Regex,
    /// Whether one of those that may have it does.
    check: fn(&str) -> bool,
}

/// One of the two languages between which a format lies. Of most formats
/// they are one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Bound {
    /// What is so for certain.
    Least,
    /// What may be so.
    Most,
}

use Draft::{Draft4 as D4, Draft6 as D6, Draft7 as D7, Draft201909 as D19};

const fn row(name: &'static str, since: Draft, most: fn() -> Regex) -> Format {
    Format { name, since, most, rest: None }
}

const fn checked(
    name: &'static str,
    since: Draft,
    most: fn() -> Regex,
    rest: Rest,
) -> Format {
    Format { name, since, most, rest: Some(rest) }
}

/// What `hostname` is called before draft 7, where internationalized labels
/// are not looked into.
const PLAIN_HOSTNAME: &str = "hostname (RFC 1034)";

/// Names of hosts after their A-labels were decoded.
const DECODED_HOSTNAME: &str = "hostname (decoded)";

static FORMATS: [Format; 21] = [
    row("date-time", D4, time::date_time),
    row("date", D7, time::date),
    row("time", D7, time::time),
    row("duration", D19, time::duration),
    row("email", D4, email::email),
    row("idn-email", D7, email::idn_email),
    checked("hostname", D4, host::most, HOSTNAME),
    checked("idn-hostname", D7, idn::most, IDN_HOSTNAME),
    row("ipv4", D4, ip::v4),
    row("ipv6", D4, ip::v6),
    row("uri", D4, uri::uri),
    row("uri-reference", D6, uri::uri_reference),
    row("iri", D7, uri::iri),
    row("iri-reference", D7, uri::iri_reference),
    row("uri-template", D6, uri::template),
    row("uuid", D19, pointer::uuid),
    row("json-pointer", D6, pointer::json),
    row("relative-json-pointer", D7, pointer::relative),
    checked("regex", D7, regex::most, REGEX),
    row(PLAIN_HOSTNAME, D4, host::plain_hostname),
    row(DECODED_HOSTNAME, D4, idn::decoded),
];

const HOSTNAME: Rest = Rest { least: host::least, check: host::check };
const IDN_HOSTNAME: Rest = Rest { least: idn::least, check: host::check };
const REGEX: Rest = Rest { least: regex::least, check: regex::check };

/// The rows with a name that schemas use: all but the last two.
const N_KNOWN: usize = FORMATS.len() - 2;

const NAMES: [&str; N_KNOWN] = {
    let mut names = [""; N_KNOWN];
    let mut index = 0;
    while index < N_KNOWN {
        names[index] = FORMATS[index].name;
        index += 1;
    }
    names
};

/// The formats that can be enforced.
pub const KNOWN: &[&str] = &NAMES;

/// What is made of a format when it is first asked for.
struct Made {
    most: Bounded,
    /// Set if that is another.
    least: Option<Bounded>,
}

/// One of the languages of a format.
struct Bounded {
    regex: Regex,
    /// Its automaton, once a string is at hand; none if it is too large.
    automaton: OnceLock<Option<Language>>,
}

impl Bounded {
    fn new(build: fn() -> Regex) -> Bounded {
        Bounded { regex: build(), automaton: OnceLock::new() }
    }

    fn automaton(&self) -> Option<&Language> {
        let make = || Language::new(&self.regex, Limits::new()).ok();
        self.automaton.get_or_init(make).as_ref()
    }

    fn matches(&self, text: &str) -> Option<bool> {
        Some(language_matches(self.automaton()?, &self.regex, text))
    }
}

impl Made {
    fn of(format: &Format) -> Made {
        let least = format.rest.as_ref().map(|rest| Bounded::new(rest.least));
        Made { most: Bounded::new(format.most), least }
    }

    fn least(&self) -> &Bounded {
        self.least.as_ref().unwrap_or(&self.most)
    }
}

fn find(name: &str) -> Option<(&'static Format, &'static Made)> {
    static MADE: [OnceLock<Made>; FORMATS.len()] =
        [const { OnceLock::new() }; FORMATS.len()];
    let index = FORMATS.iter().position(|format| format.name == name)?;
    let format = &FORMATS[index];
    Some((format, MADE[index].get_or_init(|| Made::of(format))))
}

/// [`language`], or what stands in for it.
pub type Languages = fn(&str, bool, Bound) -> Option<Regex>;

/// A language around the strings that have a format (`sign`), or around those
/// that have not.
pub fn language(name: &str, sign: bool, bound: Bound) -> Option<Regex> {
    let (_, made) = find(name)?;
    Some(match (sign, bound) {
        (true, Bound::Least) => made.least().regex.clone(),
        (true, Bound::Most) => made.most.regex.clone(),
        (false, Bound::Least) => made.most.regex.not(),
        (false, Bound::Most) => made.least().regex.not(),
    })
}

/// How many states the automaton that all schemas share may have before a
/// schema gets one of its own, which then cannot meet the limit for others.
const MAX_SHARED_STATES: usize = 20_000;

/// The automaton of a format that is regular. Its states are made once in a
/// process, not once a schema.
pub(crate) fn automaton(name: &str) -> Option<Language> {
    let (format, made) = find(name)?;
    if format.rest.is_some() {
        return None;
    }
    let language = made.most.automaton()?;
    (language.n_states() < MAX_SHARED_STATES).then(|| language.clone())
}

/// Whether a format is its language, so that both bounds are one.
pub fn is_regular(name: &str) -> bool {
    let mut formats = FORMATS.iter();
    formats.any(|format| format.name == name && format.rest.is_none())
}

/// Whether a string has a format, if that is known.
pub fn holds(name: &str, text: &str) -> Option<bool> {
    let (format, made) = find(name)?;
    if !made.most.matches(text)? {
        return Some(false);
    }
    let Some(rest) = &format.rest else { return Some(true) };
    Some(made.least().matches(text)? || (rest.check)(text))
}

fn matches(name: &str, text: &str) -> bool {
    holds(name, text).unwrap_or(false)
}

/// The first draft that has a format, if it is known.
pub fn since(name: &str) -> Option<Draft> {
    let mut known = FORMATS[..N_KNOWN].iter();
    known.find(|format| format.name == name).map(|format| format.since)
}

/// The name under which [`language`] has what a draft means by a format.
pub(crate) fn name_in(name: &str, draft: Draft) -> &str {
    match name {
        "hostname" if draft < Draft::Draft7 => PLAIN_HOSTNAME,
        _ => name,
    }
}

/// Builds an expression from a pattern of this module.
fn pattern(pattern: &str) -> Regex {
    Regex::rust(pattern).expect("a pattern of this module, which tests build")
}
