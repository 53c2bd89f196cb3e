//! The drafts of JSON Schema and what differs between them.

use std::fmt;
use std::str::FromStr;

/// A draft of JSON Schema.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd,
)]
pub enum Draft {
    /// Draft 4.
    Draft4,
    /// Draft 6.
    Draft6,
    /// Draft 7.
    Draft7,
    /// Draft 2019-09.
    Draft201909,
    /// Draft 2020-12, the default.
    #[default]
    Draft202012,
}

impl Draft {
    /// Every draft, oldest first.
    pub const ALL: [Draft; 5] = [
        Draft::Draft4,
        Draft::Draft6,
        Draft::Draft7,
        Draft::Draft201909,
        Draft::Draft202012,
    ];

    /// Finds the draft that a `$schema` names.
    ///
    /// An empty fragment and the scheme (`http` or `https`) do not matter.
    pub fn from_uri(uri: &str) -> Option<Draft> {
        let uri = uri.strip_suffix('#').unwrap_or(uri);
        let path = uri
            .strip_prefix("https://")
            .or_else(|| uri.strip_prefix("http://"))?;
        match path.strip_prefix("json-schema.org/")? {
            "draft-04/schema" => Some(Draft::Draft4),
            "draft-06/schema" => Some(Draft::Draft6),
            "draft-07/schema" => Some(Draft::Draft7),
            "draft/2019-09/schema" => Some(Draft::Draft201909),
            "draft/2020-12/schema" => Some(Draft::Draft202012),
            _ => None,
        }
    }

    /// The keyword that gives a schema its address.
    pub(crate) fn id_keyword(self) -> &'static str {
        if self == Draft::Draft4 { "id" } else { "$id" }
    }

    /// Whether `$ref` makes its siblings void.
    pub(crate) fn ref_hides_siblings(self) -> bool {
        self <= Draft::Draft7
    }

    /// The short name, as the draft option spells it.
    pub fn name(self) -> &'static str {
        match self {
            Draft::Draft4 => "4",
            Draft::Draft6 => "6",
            Draft::Draft7 => "7",
            Draft::Draft201909 => "2019-09",
            Draft::Draft202012 => "2020-12",
        }
    }
}

impl fmt::Display for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A draft option that names no draft.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownDraft(String);

impl fmt::Display for UnknownDraft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown draft {:?}; one of 4, 6, 7, 2019-09, 2020-12",
            self.0
        )
    }
}

impl std::error::Error for UnknownDraft {}

impl FromStr for Draft {
    type Err = UnknownDraft;

    /// Reads a short name or a `$schema` address.
    fn from_str(text: &str) -> Result<Draft, UnknownDraft> {
        Draft::ALL
            .into_iter()
            .find(|draft| draft.name() == text)
            .or_else(|| Draft::from_uri(text))
            .ok_or_else(|| UnknownDraft(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_draft_is_found_by_name_and_by_address() {
        for draft in Draft::ALL {
            assert_eq!(draft.name().parse(), Ok(draft));
        }
        let with_fragment = "http://json-schema.org/draft-07/schema#";
        assert_eq!(Draft::from_uri(with_fragment), Some(Draft::Draft7));
        assert_eq!(Draft::from_uri("http://example.com/schema"), None);
        assert!("5".parse::<Draft>().is_err());
    }
}
