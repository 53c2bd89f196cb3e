//! `{m,n}`: counts whose first number is not the greater.
//!
//! An order of numbers is not regular, but it is for numbers of so many
//! digits. It is told here by how many they have, then by their first ones:
//! of numbers of one and two digits, by all.

use std::fmt::Write as _;

use super::Bound;

/// How many digits numbers have that are told apart. There is a limit to the
/// first, and what is longer is past it.
const MAX_DIGITS: usize = 10;

/// From here on the first digit alone tells.
const MANY_DIGITS: usize = 3;

/// The pattern of a count, braces included.
pub(super) fn count(bound: Bound) -> String {
    let large = match bound {
        Bound::Least => "[1-3][0-9]{9}",
        Bound::Most => "[1-3][0-9]{9}|4[0-2][0-9]{8}",
    };
    let mut inner = format!(
        "0+(?:,[0-9]*)?|0*(?:[1-9][0-9]{{0,8}}|{large})(?:,(?:0*[1-9][0-9]\
         {{{MAX_DIGITS},}})?)?"
    );
    for n_digits in 1..MAX_DIGITS {
        let rest = n_digits - 1;
        let more = format!("|0*[1-9][0-9]{{{rest}}},0*[1-9][0-9]");
        let _ = write!(inner, "{more}{{{n_digits},{}}}", MAX_DIGITS - 1);
    }
    for first in 1..=9 {
        let _ = write!(inner, "|0*{}", of_equal_length(first, bound));
    }
    format!(r"\{{(?:{inner})\}}")
}

/// Two numbers of one length, of which the first begins with a digit.
fn of_equal_length(first: usize, bound: Bound) -> String {
    let mut rest = format!(",0*[{first}-9]");
    for second in 0..=9 {
        let _ = write!(rest, "|{second},0*{first}[{second}-9]");
    }
    if first < 9 {
        let _ = write!(rest, "|[0-9],0*[{}-9][0-9]", first + 1);
    }
    // More are past the limit of the first number.
    let is_within = match bound {
        Bound::Least => first < 4,
        Bound::Most => first < 5,
    };
    let max_digits = MAX_DIGITS - usize::from(!is_within);
    for n_digits in MANY_DIGITS..=max_digits {
        // What comes after the first digit.
        let n_rest = n_digits - 1;
        let any = format!("[0-9]{{{n_rest}}}");
        if first < 9 {
            let _ = write!(rest, "|{any},0*[{}-9]{any}", first + 1);
        }
        let _ = match bound {
            Bound::Least => write!(
                rest,
                "|0{{{n_rest}}},0*{first}{any}|{any},0*{first}9{{{n_rest}}}"
            ),
            Bound::Most => write!(rest, "|{any},0*{first}{any}"),
        };
    }
    format!("{first}(?:{rest})")
}
