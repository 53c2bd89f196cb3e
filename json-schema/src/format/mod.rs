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
//! - `hostname` since draft 7 refuses every label with `--` as its third and
//!   fourth character. Without `xn--` such labels are invalid; whether the
//!   rest of an `xn--` label is valid Punycode is not regular, so those are
//!   not let through unchecked. In drafts 4 and 6 they are plain labels and
//!   accepted.
//! - `idn-hostname` checks code points, the contextual rules and the Bidi
//!   rule; it refuses `xn--` labels too. It neither checks that a label is
//!   in normalization form C nor computes the length of its Punycode: a
//!   label with other than ASCII characters may have 57 of them. A name of
//!   200 characters and more may take over 10,000 states, which is an error,
//!   not a wrong answer.
//! - `idn-email` bounds the local part to 64 code points where RFC 6531
//!   means octets, and allows any characters that are not ASCII in labels.
//! - `relative-json-pointer` has no index manipulation (`0+1`), which only
//!   2020-12 knows.
//! - `time` and `date-time` allow second 60 at 23:59 UTC of every day, for
//!   offsets of whole quarters of an hour.
//! - `regex` is not here: nesting is not regular. It is an unknown format.

mod email;
mod host;
mod idn;
mod ip;
mod pointer;
mod time;
mod uri;

#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use maskwright_grammar_core::regular::Regex;

use crate::draft::Draft;

/// A format: its name, the first draft that has it, and its language.
struct Format {
    name: &'static str,
    since: Draft,
    build: fn() -> Regex,
}

use Draft::{Draft4 as D4, Draft6 as D6, Draft7 as D7, Draft201909 as D19};

const fn row(
    name: &'static str,
    since: Draft,
    build: fn() -> Regex,
) -> Format {
    Format { name, since, build }
}

/// What `hostname` is called before draft 7, where internationalized labels
/// are not looked into.
const PLAIN_HOSTNAME: &str = "hostname (RFC 1034)";

const FORMATS: [Format; 19] = [
    row("date-time", D4, time::date_time),
    row("date", D7, time::date),
    row("time", D7, time::time),
    row("duration", D19, time::duration),
    row("email", D4, email::email),
    row("idn-email", D7, email::idn_email),
    row("hostname", D4, host::hostname),
    row("idn-hostname", D7, idn::hostname),
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
    row(PLAIN_HOSTNAME, D4, host::plain_hostname),
];

/// The rows with a name that schemas use: all but the last.
const N_KNOWN: usize = FORMATS.len() - 1;

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

/// The language of a format: the strings that have it.
pub fn language(name: &str) -> Option<Regex> {
    static LANGUAGES: [OnceLock<Regex>; FORMATS.len()] =
        [const { OnceLock::new() }; FORMATS.len()];
    let index = FORMATS.iter().position(|format| format.name == name)?;
    Some(LANGUAGES[index].get_or_init(FORMATS[index].build).clone())
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
