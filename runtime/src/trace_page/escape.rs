//! Text and bytes in HTML.

use std::fmt::{self, Write};

/// Text as it stands in an element or an attribute.
///
/// What HTML would act on is escaped, and so is what a reader would not see
/// or what would move other text about (controls, marks of direction).
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a>(pub(super) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '\n' | '\t' => f.write_char(character),
            _ => write_char(f, character),
        })
    }
}

/// The bytes of a token, every one of them to be seen: spaces and line breaks
/// have signs, and what is no UTF-8 is in hexadecimal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a>(pub(super) &'a [u8]);

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("<i>nothing</i>");
        }
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                match character {
                    ' ' => f.write_str("<i>␣</i>")?,
                    '\n' => f.write_str("<i>↵</i>")?,
                    '\t' => f.write_str("<i>⇥</i>")?,
                    _ => write_char(f, character)?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "<i>\\x{byte:02X}</i>")?;
            }
        }
        Ok(())
    }
}

fn write_char(f: &mut fmt::Formatter<'_>, character: char) -> fmt::Result {
    match character {
        '&' => f.write_str("&amp;"),
        '<' => f.write_str("&lt;"),
        '>' => f.write_str("&gt;"),
        '"' => f.write_str("&quot;"),
        '\'' => f.write_str("&#39;"),
        _ if is_invisible(character) => {
            write!(f, "\\u{{{:x}}}", u32::from(character))
        }
        _ => f.write_char(character),
    }
}

/// Controls, marks of direction, and what has no width.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// A probability, given as a logarithm or as it is, in percent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Percent(f64);

impl Percent {
    pub(super) fn of_log(log: f64) -> Percent {
        Percent(log.exp() * 100.0)
    }

    pub(super) fn of(share: f64) -> Percent {
        Percent(share * 100.0)
    }

    /// Returns the value for a style: never out of range.
    pub(super) fn width(self) -> f64 {
        if self.0.is_nan() { 0.0 } else { self.0.clamp(0.0, 100.0) }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.width() {
            0.0 => f.write_str("0&nbsp;%"),
            value if value < 0.05 => f.write_str("&lt;&nbsp;0.1&nbsp;%"),
            value if value > 99.95 && value < 100.0 - 1e-9 => {
                f.write_str("&gt;&nbsp;99.9&nbsp;%")
            }
            value if value > 99.95 => f.write_str("100&nbsp;%"),
            value => write!(f, "{value:.1}&nbsp;%"),
        }
    }
}
