//! `uri` and `uri-reference` (RFC 3986), `iri` and `iri-reference`
//! (RFC 3987), `uri-template` (RFC 6570).

use maskwright_grammar_core::regular::Regex;

use super::{ip, pattern};

/// `ucschar` of RFC 3987: what an IRI has besides ASCII.
const UCS: &str = "\\u{A0}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFEF}\
    \\u{10000}-\\u{1FFFD}\\u{20000}-\\u{2FFFD}\\u{30000}-\\u{3FFFD}\
    \\u{40000}-\\u{4FFFD}\\u{50000}-\\u{5FFFD}\\u{60000}-\\u{6FFFD}\
    \\u{70000}-\\u{7FFFD}\\u{80000}-\\u{8FFFD}\\u{90000}-\\u{9FFFD}\
    \\u{A0000}-\\u{AFFFD}\\u{B0000}-\\u{BFFFD}\\u{C0000}-\\u{CFFFD}\
    \\u{D0000}-\\u{DFFFD}\\u{E1000}-\\u{EFFFD}";

/// `iprivate` of RFC 3987, for queries only.
const PRIVATE: &str = "\\u{E000}-\\u{F8FF}\\u{F0000}-\\u{FFFFD}\
    \\u{100000}-\\u{10FFFD}";

/// A character that is written as an octet.
const ESCAPED: &str = "%[0-9A-Fa-f]{2}";

/// `unreserved` and `sub-delims`, inside a class.
const PLAIN: &str = "A-Za-z0-9._~!$&'()*+,;=\\-";

pub(super) fn uri() -> Regex {
    pattern(&Syntax::new("", "").absolute())
}

pub(super) fn uri_reference() -> Regex {
    let syntax = Syntax::new("", "");
    pattern(&format!("{}|{}", syntax.absolute(), syntax.relative()))
}

pub(super) fn iri() -> Regex {
    pattern(&Syntax::new(UCS, PRIVATE).absolute())
}

pub(super) fn iri_reference() -> Regex {
    let syntax = Syntax::new(UCS, PRIVATE);
    pattern(&format!("{}|{}", syntax.absolute(), syntax.relative()))
}

/// The pieces that URIs and IRIs share, as patterns.
struct Syntax {
    /// From `//` to before the path.
    authority: String,
    /// A segment that may be empty.
    segment: String,
    /// A segment with a character at least.
    full_segment: String,
    /// The same without a colon.
    first_segment: String,
    /// What may follow a path: a query and a fragment.
    end: String,
}

impl Syntax {
    /// `more` characters everywhere, and `private` ones in queries.
    fn new(more: &str, private: &str) -> Syntax {
        let one =
            |extra: &str| format!("(?:[{PLAIN}{more}{extra}]|{ESCAPED})");
        let (user, name, segment) = (one(":"), one(""), one(":@"));
        let query = one(&format!(":@/?{private}"));
        let fragment = one(":@/?");
        let literal = format!(
            "\\[(?:{}|[Vv][0-9A-Fa-f]+\\.[{PLAIN}:]+)\\]",
            ip::v6_pattern(1)
        );
        Syntax {
            authority: format!(
                "//(?:{user}*@)?(?:{literal}|{name}*)(?::[0-9]*)?"
            ),
            segment: format!("{segment}*"),
            full_segment: format!("{segment}+"),
            first_segment: format!("{}+", one("@")),
            end: format!("(?:\\?{query}*)?(?:\\#{fragment}*)?"),
        }
    }

    /// With a scheme.
    fn absolute(&self) -> String {
        let rest = self.rest(&self.full_segment);
        format!("[A-Za-z][A-Za-z0-9+.\\-]*:{rest}")
    }

    /// Without a scheme, so that no colon may look like the end of one.
    fn relative(&self) -> String {
        self.rest(&self.first_segment)
    }

    /// What follows the scheme; `first` starts a path without a slash.
    fn rest(&self, first: &str) -> String {
        let Syntax { authority, segment, full_segment, end, .. } = self;
        let more = format!("(?:/{segment})*");
        format!(
            "(?:{authority}{more}|/(?:{full_segment}{more})?|\
             {first}{more}|){end}"
        )
    }
}

pub(super) fn template() -> Regex {
    let name_char = format!("(?:[A-Za-z0-9_]|{ESCAPED})");
    let variable =
        format!("{name_char}(?:\\.?{name_char})*(?::[1-9][0-9]{{0,3}}|\\*)?");
    let operator = "[+\\#./;?&=,!@|]";
    let literal = format!(
        "[!\\#$&'()*+,\\-./0-9:;=?@A-Z\\[\\]_a-z~{UCS}{PRIVATE}]|{ESCAPED}"
    );
    pattern(&format!(
        "(?:{literal}|\\{{{operator}?{variable}(?:,{variable})*\\}})*"
    ))
}
