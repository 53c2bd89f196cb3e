//! Which texts of an instance are allowed.
//!
//! JSON Schema speaks of values; a text policy says how they may be written.
//! Every policy but [`Numbers`]' limit on digits restricts spellings only,
//! never values.

use crate::number::Policy;

/// In which order the members of an object come.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Order {
    /// As the schema names them: declared properties in the order of the
    /// document, then those that only `required` names, then all others.
    #[default]
    Schema,
    /// In any order.
    Any,
}

/// Where white space may stand between the tokens of JSON.
///
/// None may lead or trail the text.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Whitespace {
    /// Nowhere.
    Compact,
    /// One space after each comma and colon, as Python's `json.dumps` writes.
    Spaced,
    /// Up to `max` bytes of space, tab, line feed and carriage return in each
    /// place. `u32::MAX` is "any number".
    Any {
        /// The longest run.
        max: u32,
    },
    /// Each member and item on a line of its own, indented by its depth, and
    /// a space after each colon, as Python's `json.dumps` writes with
    /// `indent`: `{}` and `[]` where there is nothing in them.
    Indent {
        /// How many spaces a level of depth is.
        width: u8,
    },
}

impl Whitespace {
    /// Returns the longest run of white space where it is optional.
    pub(crate) fn max(self) -> u32 {
        match self {
            Whitespace::Compact
            | Whitespace::Spaced
            | Whitespace::Indent { .. } => 0,
            Whitespace::Any { max } => max,
        }
    }

    /// Whether one space must stand after a comma or a colon.
    pub(crate) fn is_spaced_after(self, byte: u8) -> bool {
        match self {
            Whitespace::Spaced => true,
            Whitespace::Indent { .. } => byte == b':',
            Whitespace::Compact | Whitespace::Any { .. } => false,
        }
    }

    /// The policy that does the same between two line feeds. Those are up to
    /// [`super::indent`].
    pub(crate) fn on_one_line(self) -> Whitespace {
        match self {
            Whitespace::Indent { .. } => Whitespace::Indent { width: 0 },
            other => other,
        }
    }
}

/// The default bound keeps a model from filling its budget with spaces.
impl Default for Whitespace {
    fn default() -> Whitespace {
        Whitespace::Any { max: 16 }
    }
}

/// Which spellings of a code point in a string are allowed.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Escapes {
    /// Every spelling.
    Any,
    /// Raw UTF-8, and one escape for what JSON requires to be escaped.
    #[default]
    Needed,
    /// Raw ASCII, and one escape for everything else, as Python's
    /// `ensure_ascii` writes.
    Ascii,
}

/// Which spellings of a number are allowed.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Numbers {
    /// Integers without fraction or exponent where only integers are
    /// allowed, no exponent where there are bounds, and a limit on digits.
    #[default]
    Plain,
    /// Everything that JSON allows.
    Json,
}

impl Numbers {
    pub(crate) fn policy(self) -> Policy {
        match self {
            Numbers::Plain => Policy::plain(),
            // What a consumer makes of 1e400 is the consumer's affair; and
            // without that limit a free number is nine states.
            Numbers::Json => Policy { range_f64: false, ..Policy::json() },
        }
    }
}

/// Which texts of an instance are allowed. The default is for generation.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct TextPolicy {
    /// The order of members.
    pub order: Order,
    /// White space.
    pub whitespace: Whitespace,
    /// Spellings in strings and keys.
    pub escapes: Escapes,
    /// Spellings of numbers.
    pub numbers: Numbers,
}

impl TextPolicy {
    /// Returns the policy that allows every text of an instance but for
    /// leading and trailing white space: what checking takes.
    pub fn widest() -> TextPolicy {
        TextPolicy {
            order: Order::Any,
            whitespace: Whitespace::Any { max: u32::MAX },
            escapes: Escapes::Any,
            numbers: Numbers::Json,
        }
    }
}
