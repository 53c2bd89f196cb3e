//! `hostname`: names of hosts in ASCII.

use maskwright_grammar_core::regular::Regex;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

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
pub(super) fn least() -> Regex {
    plain_hostname().and(&pattern("(?s:(?:.*\\.)?[^.]{2}--.*)").not())
}

/// Names in which a reserved label can only be an A-label (`xn--`).
pub(super) fn most() -> Regex {
    let reserved = "(?s:(?:.*\\.)?(?:[^.xX][^.]|[xX][^.nN])--.*)";
    plain_hostname().and(&pattern(reserved).not())
}

/// Whether a name is one by IDNA: its A-labels are the Punycode of labels
/// that are valid, in normalization form C and short enough (UTS #46), and
/// follow the rules of RFC 5892.
pub(super) fn check(name: &str) -> bool {
    let (denied, hyphens) = (AsciiDenyList::STD3, Hyphens::Check);
    let uts46 = Uts46::new();
    let bytes = name.as_bytes();
    if uts46.to_ascii(bytes, denied, hyphens, DnsLength::Verify).is_err() {
        return false;
    }
    let (decoded, result) = uts46.to_unicode(bytes, denied, hyphens);
    // What is not encoded must be as it is mapped to, but for ASCII capitals.
    let mut labels = name.split(DOTS).zip(decoded.split('.'));
    let is_mapped = |(label, decoded): (&str, &str)| {
        let label = label.to_ascii_lowercase();
        label.starts_with("xn--") || label == decoded
    };
    result.is_ok()
        && labels.all(is_mapped)
        && super::matches(super::DECODED_HOSTNAME, &decoded)
}

/// What separates labels.
const DOTS: [char; 4] = ['.', '\u{3002}', '\u{FF0E}', '\u{FF61}'];
