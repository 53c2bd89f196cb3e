//! `hostname`: names of hosts in ASCII.

use maskwright_grammar_core::regular::Regex;

use super::pattern;

/// Labels of letters, digits and inner hyphens.
const LABEL: &str = "[0-9A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?";

/// The greatest length of a name: 255 octets as it is sent.
pub(super) const MAX_NAME: u32 = 253;

/// RFC 1034, section 3.1, with the digits of RFC 1123.
pub(super) fn plain_hostname() -> Regex {
    let name = pattern(&format!("{LABEL}(?:\\.{LABEL})*"));
    name.and(&Regex::length(1, Some(MAX_NAME)))
}

/// Names without labels that RFC 5890 reserves (`??--`).
pub(super) fn hostname() -> Regex {
    plain_hostname().and(&pattern("(?s:(?:.*\\.)?[^.]{2}--.*)").not())
}
