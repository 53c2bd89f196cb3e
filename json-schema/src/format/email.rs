//! `email` (RFC 5321, `Mailbox`) and `idn-email` (RFC 6531).

use maskwright_grammar_core::regular::Regex;

use super::{host, ip, pattern};

/// The greatest length of what stands before the `@`.
const MAX_LOCAL: u32 = 64;

/// Characters that are not ASCII.
const OTHER: &str = "\\u{80}-\\u{10FFFF}";

pub(super) fn email() -> Regex {
    mailbox("", &host::plain_hostname())
}

pub(super) fn idn_email() -> Regex {
    let edge = format!("[0-9A-Za-z{OTHER}]");
    let inner = format!("[0-9A-Za-z{OTHER}-]");
    let label = format!("{edge}(?:{inner}{{0,61}}{edge})?");
    let domain = pattern(&format!("{label}(?:\\.{label})*"));
    let length = Regex::length(1, Some(host::MAX_NAME));
    mailbox(OTHER, &domain.and(&length))
}

/// A mailbox whose local part may have `more` characters.
fn mailbox(more: &str, domain: &Regex) -> Regex {
    let atom = format!("[0-9A-Za-z!#$%&'*+/=?^_`{{|}}~{more}-]+");
    let quoted = format!("[ !#-\\[\\]-~{more}]|\\\\[ -~]");
    let local = pattern(&format!("{atom}(?:\\.{atom})*|\"(?:{quoted})*\""));
    Regex::concat(&[
        local.and(&Regex::length(1, Some(MAX_LOCAL))),
        Regex::literal("@"),
        domain.or(&literal()),
    ])
}

/// An address in brackets. In mail `::` stands for two groups or more.
fn literal() -> Regex {
    let (v4, v6) = (ip::v4_pattern(), ip::v6_pattern(2));
    pattern(&format!("\\[(?:{v4}|(?i:IPv6:){v6})\\]"))
}
