//! Rules that any schema may need: strings, numbers, any value.

use maskwright_grammar_core::regular::CharSet;

use super::{
    ConvertError,
    expr::{Expr, RuleId},
    rules::{RuleKind, Rules},
};
use crate::machine::Whitespace;

/// Rules that are made when they are first asked for.
#[derive(Debug)]
pub(super) struct Basics {
    whitespace: Whitespace,
    made: [Option<RuleId>; N_BASICS],
}

/// The rules there are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Basic {
    Char,
    Escape,
    String,
    Integer,
    Number,
    Boolean,
    Value,
    Object,
    Array,
    Whitespace,
}

const N_BASICS: usize = 10;

impl Basics {
    pub(super) fn new(whitespace: Whitespace) -> Basics {
        Basics { whitespace, made: Default::default() }
    }

    /// The name of one of the rules.
    pub(super) fn get(
        &mut self,
        basic: Basic,
        rules: &mut Rules,
    ) -> Result<Expr, ConvertError> {
        if let Some(made) = self.made[basic as usize] {
            return Ok(Expr::rule(made));
        }
        let rule = rules.declare(basic.name(), RuleKind::Basic)?;
        // Values nest in objects and arrays, so the name comes first.
        self.made[basic as usize] = Some(rule);
        let body = self.body(basic, rules)?;
        rules.define(rule, body);
        Ok(Expr::rule(rule))
    }

    /// The rule of one of them, if it was asked for.
    pub(super) fn made(&self, basic: Basic) -> Option<RuleId> {
        self.made[basic as usize]
    }

    fn body(
        &mut self,
        basic: Basic,
        rules: &mut Rules,
    ) -> Result<Expr, ConvertError> {
        let digits = || class(&[('0', '9')]);
        Ok(match basic {
            Basic::Char => {
                let escape = self.get(Basic::Escape, rules)?;
                character(&CharSet::any(), &escape)
            }
            Basic::Escape => escapes(&escaped()),
            Basic::String => {
                let body = Expr::star(self.get(Basic::Char, rules)?);
                quoted(body)
            }
            Basic::Integer => Expr::seq([
                Expr::optional(Expr::literal("-")),
                Expr::choice([
                    Expr::literal("0"),
                    Expr::seq([class(&[('1', '9')]), Expr::star(digits())]),
                ]),
            ]),
            Basic::Number => {
                let many = || Expr::repeat(digits(), 1, None);
                let sign = class(&[('+', '+'), ('-', '-')]);
                let exponent = class(&[('E', 'E'), ('e', 'e')]);
                Expr::seq([
                    self.get(Basic::Integer, rules)?,
                    Expr::optional(Expr::seq([Expr::literal("."), many()])),
                    Expr::optional(Expr::seq([
                        exponent,
                        Expr::optional(sign),
                        many(),
                    ])),
                ])
            }
            Basic::Boolean => {
                Expr::choice(["true", "false"].map(Expr::literal))
            }
            Basic::Value => Expr::choice([
                self.get(Basic::Object, rules)?,
                self.get(Basic::Array, rules)?,
                self.get(Basic::String, rules)?,
                self.get(Basic::Number, rules)?,
                self.get(Basic::Boolean, rules)?,
                Expr::literal("null"),
            ]),
            Basic::Object => {
                let key = self.get(Basic::String, rules)?;
                let colon = self.colon(rules)?;
                let value = self.get(Basic::Value, rules)?;
                let member = Expr::seq([key, colon, value]);
                self.list("{", member, "}", rules)?
            }
            Basic::Array => {
                let value = self.get(Basic::Value, rules)?;
                self.list("[", value, "]", rules)?
            }
            Basic::Whitespace => {
                let most = match self.whitespace {
                    Whitespace::Any { max } if max < u32::MAX => Some(max),
                    _ => None,
                };
                let blank = [('\t', '\n'), ('\r', '\r'), (' ', ' ')];
                Expr::repeat(class(&blank), 0, most)
            }
        })
    }

    /// Any number of one thing between brackets.
    fn list(
        &mut self,
        open: &str,
        item: Expr,
        close: &str,
        rules: &mut Rules,
    ) -> Result<Expr, ConvertError> {
        let more = Expr::seq([self.comma(rules)?, item.clone()]);
        let gap = self.gap(rules)?;
        let items = Expr::seq([item, Expr::star(more), gap.clone()]);
        Ok(Expr::seq([
            Expr::literal(open),
            gap,
            Expr::optional(items),
            Expr::literal(close),
        ]))
    }

    /// White space where it is optional.
    pub(super) fn gap(
        &mut self,
        rules: &mut Rules,
    ) -> Result<Expr, ConvertError> {
        if self.whitespace.max() == 0 {
            return Ok(Expr::empty());
        }
        self.get(Basic::Whitespace, rules)
    }

    pub(super) fn comma(
        &mut self,
        rules: &mut Rules,
    ) -> Result<Expr, ConvertError> {
        self.separator(b',', rules)
    }

    pub(super) fn colon(
        &mut self,
        rules: &mut Rules,
    ) -> Result<Expr, ConvertError> {
        self.separator(b':', rules)
    }

    fn separator(
        &mut self,
        byte: u8,
        rules: &mut Rules,
    ) -> Result<Expr, ConvertError> {
        let gap = self.gap(rules)?;
        let space = self.whitespace.is_spaced_after(byte);
        let mark = char::from(byte);
        let mark = if space { format!("{mark} ") } else { mark.to_string() };
        Ok(Expr::seq([gap.clone(), Expr::literal(&mark), gap]))
    }
}

impl Basic {
    fn name(self) -> &'static str {
        match self {
            Basic::Char => "char",
            Basic::Escape => "escape",
            Basic::String => "string",
            Basic::Integer => "integer",
            Basic::Number => "number",
            Basic::Boolean => "boolean",
            Basic::Value => "value",
            Basic::Object => "object",
            Basic::Array => "array",
            Basic::Whitespace => "ws",
        }
    }
}

/// One character of some ranges.
fn class(ranges: &[(char, char)]) -> Expr {
    let ranges = ranges.iter().map(|&(lo, hi)| (lo.into(), hi.into()));
    Expr::class(ranges.collect())
}

/// An expression between quotes.
pub(super) fn quoted(body: Expr) -> Expr {
    let quote = Expr::literal("\"");
    Expr::seq([quote.clone(), body, quote])
}

/// A string of JSON, escaped where it must be.
pub(super) fn json_string(text: &str) -> Expr {
    // A string can always be written.
    Expr::literal(&serde_json::Value::from(text).to_string())
}

/// The characters that have an escape of one letter.
const SHORT: [(u32, char); 7] = [
    (0x22, '"'),
    (0x5C, '\\'),
    (0x08, 'b'),
    (0x0C, 'f'),
    (0x0A, 'n'),
    (0x0D, 'r'),
    (0x09, 't'),
];

/// The characters that must be escaped.
fn escaped() -> CharSet {
    CharSet::new([(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)])
}

/// How one character of a set is written in a string: as it is, or escaped
/// where it must be. `escape` names the rule of all escapes.
pub(super) fn character(set: &CharSet, escape: &Expr) -> Expr {
    let escaped = escaped();
    let raw = Expr::class(set.difference(&escaped));
    let rest = set.intersection(&escaped);
    let escape = if rest == escaped { escape.clone() } else { escapes(&rest) };
    Expr::choice([raw, escape])
}

/// The escapes of some of the characters that have one.
fn escapes(set: &CharSet) -> Expr {
    let short = SHORT.iter().filter(|(code, _)| set.contains(*code));
    let letters = short.map(|&(_, letter)| (letter.into(), letter.into()));
    let letters = Expr::class(letters.collect());
    let [low, high] = [(0, "u000"), (0x10, "u001")].map(|(base, head)| {
        let codes = (base..base + 0x10).filter(|&code| {
            set.contains(code) && !SHORT.iter().any(|it| it.0 == code)
        });
        let digits =
            codes.filter_map(|code| char::from_digit(code - base, 16));
        let digits = digits.map(|digit| (digit.into(), digit.into()));
        let digit = Expr::class(digits.collect());
        Expr::seq([Expr::literal(head), digit])
    });
    let letter = Expr::choice([letters, low, high]);
    Expr::seq([Expr::literal("\\"), letter])
}
