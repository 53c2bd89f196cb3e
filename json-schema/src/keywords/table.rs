//! The table of keywords as the crate's documentation shows it.

use std::fmt::Write as _;

use super::{KEYWORDS, KeywordInfo, Support};
use crate::draft::Draft;

/// A reason for which exactness ends somewhere, and how that shows.
struct Note {
    mark: &'static str,
    text: &'static str,
    keywords: &'static [&'static str],
}

/// Every note. None of them is about what is accepted: a text that fits is
/// never refused, and one that is finished fits.
const NOTES: &[Note] = &[
    Note {
        mark: "1",
        text: "Whether a value can still be finished is searched for within \
               a budget. Where it runs out, a mask may allow what turns out \
               a dead end; `Compiled::stats` counts the states in which \
               that can be.",
        keywords: &[
            "$ref",
            "$dynamicRef",
            "$recursiveRef",
            "propertyNames",
            "maxProperties",
            "dependencies",
            "dependentRequired",
            "dependentSchemas",
            "unevaluatedProperties",
            "contains",
            "unevaluatedItems",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "if",
        ],
    },
    Note {
        mark: "2",
        text: "Of the intervals, multiples and exceptions that meet at one \
               number, more than 64 parts are not told apart while it is \
               written, only at its end: as 1. An exponent beyond 10^17 is \
               an error.",
        keywords: &[
            "enum",
            "const",
            "multipleOf",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
        ],
    },
    Note {
        mark: "3",
        text: "A regular expression with a backreference is not regular: an \
               error, or on request (`Options::backreferences`) checked \
               when the string ends, as 6. One over the limits on size is \
               an error.",
        keywords: &["pattern", "patternProperties"],
    },
    Note {
        mark: "4",
        text: "An object whose keys more than ten expressions tell apart is \
               an error once it is reached, where these can match in \
               thousands of ways (by which of many words a key has, say).",
        keywords: &["patternProperties", "propertyNames"],
    },
    Note {
        mark: "5",
        text: "How many values an item can have is counted up to 4,096; its \
               negation beside a tight `maxItems` is as 1.",
        keywords: &["uniqueItems"],
    },
    Note {
        mark: "6",
        text: "Formats that are not known are annotations that are reported, \
               or errors, as the policy says. `regex`, `hostname` and \
               `idn-hostname` are checked when the string ends: as 1.",
        keywords: &["format"],
    },
];

/// The table of keywords by draft, in Markdown.
pub fn markdown() -> String {
    let mut table = String::from("| keyword |");
    for draft in Draft::ALL {
        let _ = write!(table, " {draft} |");
    }
    table.push_str(" exact but for |\n|---|---|---|---|---|---|---|\n");
    for info in KEYWORDS {
        let _ = write!(table, "| `{}` |", info.name);
        for draft in Draft::ALL {
            let _ = write!(table, " {} |", cell(info, draft));
        }
        let marks: Vec<&str> = NOTES
            .iter()
            .filter(|note| note.keywords.contains(&info.name))
            .map(|note| note.mark)
            .collect();
        let _ = writeln!(table, " {} |", marks.join(", "));
    }
    table.push('\n');
    for Note { mark, text, .. } in NOTES {
        let _ = writeln!(table, "{mark}. {text}");
    }
    table
}

fn cell(info: &KeywordInfo, draft: Draft) -> String {
    if !info.is_in(draft) {
        return "–".to_owned();
    }
    match info.support {
        Support::Enforced => "enforced".to_owned(),
        Support::EnforcedIfKnown => "where known".to_owned(),
        Support::Annotation => "annotation".to_owned(),
        Support::With(other) => format!("with `{other}`"),
        Support::NotYet(instead) => format!("refused: {instead}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// To renew the file, put what the failing test prints in it.
    #[test]
    fn documentation_shows_the_table() {
        let table = markdown();
        assert!(include_str!("../../KEYWORDS.md") == table, "{table}");
    }

    #[test]
    fn notes_are_about_keywords_that_are_enforced() {
        for keyword in NOTES.iter().flat_map(|note| note.keywords) {
            let support = crate::keywords::support(keyword);
            let enforced = [Support::Enforced, Support::EnforcedIfKnown];
            assert!(support.is_some_and(|it| enforced.contains(&it)));
        }
    }
}
