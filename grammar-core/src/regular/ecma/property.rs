//! `\p{...}`: general categories, scripts and binary properties.
//!
//! ECMA-262 takes names exactly as Unicode writes them. The tables behind
//! them are those of `regex-syntax`, which are laxer about names, so names
//! are checked here first.

use super::parser::{Input, refuse};
use crate::regular::class::CharSet;
use crate::regular::error::{PatternError, PatternErrorKind};
use crate::regular::rust::table;
use crate::util::FxHashMap;

/// The sets of the properties that one pattern has named so far.
#[derive(Default)]
pub(super) struct Properties {
    known: FxHashMap<String, CharSet>,
}

impl Properties {
    /// Reads `{...}` after `\p` or `\P`.
    pub(super) fn read(
        &mut self,
        input: &mut Input<'_>,
        at: usize,
    ) -> Result<CharSet, PatternError> {
        let rest = input.rest();
        let name = rest
            .strip_prefix('{')
            .and_then(|rest| rest.split_once('}'))
            .map(|(name, _)| name);
        let Some(name) = name else {
            return refuse(
                PatternErrorKind::Property,
                at,
                "`\\p` must be followed by a property in braces, as in \
                 `\\p{L}`",
            );
        };
        input.at += name.len() + 2;
        if let Some(set) = self.known.get(name) {
            return Ok(set.clone());
        }
        let Some(set) = look_up(name) else {
            return unknown(name, at);
        };
        self.known.insert(name.to_owned(), set.clone());
        Ok(set)
    }
}

fn look_up(name: &str) -> Option<CharSet> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
    };
    match name.split_once('=') {
        Some((property, value)) => {
            let known = match property {
                "General_Category" | "gc" => CATEGORIES.contains(&value),
                "Script" | "sc" | "Script_Extensions" | "scx" => {
                    is_name(value)
                }
                _ => false,
            };
            known.then(|| table(&format!("\\p{{{name}}}"))).flatten()
        }
        None if CATEGORIES.contains(&name) => {
            table(&format!("\\p{{gc={name}}}"))
        }
        None => match name {
            "Any" => Some(CharSet::any()),
            "ASCII" => Some(CharSet::new([(0, 0x7F)])),
            "Assigned" => {
                table("\\p{gc=Unassigned}").map(|set| set.complement())
            }
            _ if BINARY.contains(&name) => table(&format!("\\p{{{name}}}")),
            _ => None,
        },
    }
}

fn unknown<T>(name: &str, at: usize) -> Result<T, PatternError> {
    let is_script = table(&format!("\\p{{sc={name}}}")).is_some();
    let way_out = if is_script {
        format!("; to mean the script, use `Script={name}`")
    } else {
        ": use a general category (`L`, `Lu`, `Letter`), `Script=...`, or a \
         binary property (`Alphabetic`), with Unicode's own spelling"
            .to_owned()
    };
    refuse(
        PatternErrorKind::Property,
        at,
        format!("`{name}` is no Unicode property that is known here{way_out}"),
    )
}

const CATEGORIES: &[&str] = &[
    "C",
    "Other",
    "Cc",
    "Control",
    "cntrl",
    "Cf",
    "Format",
    "Cn",
    "Unassigned",
    "Co",
    "Private_Use",
    "Cs",
    "Surrogate",
    "L",
    "Letter",
    "LC",
    "Cased_Letter",
    "Ll",
    "Lowercase_Letter",
    "Lm",
    "Modifier_Letter",
    "Lo",
    "Other_Letter",
    "Lt",
    "Titlecase_Letter",
    "Lu",
    "Uppercase_Letter",
    "M",
    "Mark",
    "Combining_Mark",
    "Mc",
    "Spacing_Mark",
    "Me",
    "Enclosing_Mark",
    "Mn",
    "Nonspacing_Mark",
    "N",
    "Number",
    "Nd",
    "Decimal_Number",
    "digit",
    "Nl",
    "Letter_Number",
    "No",
    "Other_Number",
    "P",
    "Punctuation",
    "punct",
    "Pc",
    "Connector_Punctuation",
    "Pd",
    "Dash_Punctuation",
    "Pe",
    "Close_Punctuation",
    "Pf",
    "Final_Punctuation",
    "Pi",
    "Initial_Punctuation",
    "Po",
    "Other_Punctuation",
    "Ps",
    "Open_Punctuation",
    "S",
    "Symbol",
    "Sc",
    "Currency_Symbol",
    "Sk",
    "Modifier_Symbol",
    "Sm",
    "Math_Symbol",
    "So",
    "Other_Symbol",
    "Z",
    "Separator",
    "Zl",
    "Line_Separator",
    "Zp",
    "Paragraph_Separator",
    "Zs",
    "Space_Separator",
];

const BINARY: &[&str] = &[
    "ASCII_Hex_Digit",
    "AHex",
    "Alphabetic",
    "Alpha",
    "Bidi_Control",
    "Bidi_C",
    "Bidi_Mirrored",
    "Bidi_M",
    "Case_Ignorable",
    "CI",
    "Cased",
    "Changes_When_Casefolded",
    "CWCF",
    "Changes_When_Casemapped",
    "CWCM",
    "Changes_When_Lowercased",
    "CWL",
    "Changes_When_NFKC_Casefolded",
    "CWKCF",
    "Changes_When_Titlecased",
    "CWT",
    "Changes_When_Uppercased",
    "CWU",
    "Dash",
    "Default_Ignorable_Code_Point",
    "DI",
    "Deprecated",
    "Dep",
    "Diacritic",
    "Dia",
    "Emoji",
    "Emoji_Component",
    "EComp",
    "Emoji_Modifier",
    "EMod",
    "Emoji_Modifier_Base",
    "EBase",
    "Emoji_Presentation",
    "EPres",
    "Extended_Pictographic",
    "ExtPict",
    "Extender",
    "Ext",
    "Grapheme_Base",
    "Gr_Base",
    "Grapheme_Extend",
    "Gr_Ext",
    "Hex_Digit",
    "Hex",
    "IDS_Binary_Operator",
    "IDSB",
    "IDS_Trinary_Operator",
    "IDST",
    "ID_Continue",
    "IDC",
    "ID_Start",
    "IDS",
    "Ideographic",
    "Ideo",
    "Join_Control",
    "Join_C",
    "Logical_Order_Exception",
    "LOE",
    "Lowercase",
    "Lower",
    "Math",
    "Noncharacter_Code_Point",
    "NChar",
    "Pattern_Syntax",
    "Pat_Syn",
    "Pattern_White_Space",
    "Pat_WS",
    "Quotation_Mark",
    "QMark",
    "Radical",
    "Regional_Indicator",
    "RI",
    "Sentence_Terminal",
    "STerm",
    "Soft_Dotted",
    "SD",
    "Terminal_Punctuation",
    "Term",
    "Unified_Ideograph",
    "UIdeo",
    "Uppercase",
    "Upper",
    "Variation_Selector",
    "VS",
    "White_Space",
    "space",
    "XID_Continue",
    "XIDC",
    "XID_Start",
    "XIDS",
];
