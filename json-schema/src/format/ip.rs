//! `ipv4` and `ipv6`: addresses in numbers.

use maskwright_grammar_core::regular::Regex;

use super::pattern;

/// A number up to 255 without leading zeros.
const OCTET: &str = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";

/// Dotted quads (RFC 2673, section 3.2).
pub(super) fn v4() -> Regex {
    pattern(&v4_pattern())
}

/// The addresses of RFC 4291, section 2.2, without zones.
pub(super) fn v6() -> Regex {
    pattern(&v6_pattern(1))
}

pub(super) fn v4_pattern() -> String {
    format!("{OCTET}(?:\\.{OCTET}){{3}}")
}

/// IPv6 addresses where `::` stands for `least` groups or more.
pub(super) fn v6_pattern(least: u32) -> String {
    let group = "[0-9A-Fa-f]{1,4}";
    let quad = v4_pattern();
    // Two groups may be written as an IPv4 address.
    let last = format!("(?:{group}:{group}|{quad})");
    let mut forms = vec![format!("(?:{group}:){{6}}{last}")];
    // By the number of groups after the gap; the rest may stand before it.
    for after in 0..=(8 - least) {
        let tail = match after {
            0 => String::new(),
            1 => group.to_owned(),
            _ => format!("(?:{group}:){{{}}}{last}", after - 2),
        };
        let head = match 8 - least - after {
            0 => String::new(),
            before => {
                let more = before - 1;
                format!("(?:{group}(?::{group}){{0,{more}}})?")
            }
        };
        forms.push(format!("{head}::{tail}"));
    }
    format!("(?:{})", forms.join("|"))
}
