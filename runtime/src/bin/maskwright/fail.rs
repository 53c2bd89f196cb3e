//! How a command fails: one line, and an exit code that tells what failed.

use std::{fmt, io, path::Path};

use maskwright::grammar::GrammarError;

/// The exit codes, which are part of the interface.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum Code {
    /// `check`: the text is not in the grammar.
    Refused = 1,
    /// The command line is wrong; the code that clap uses too.
    Usage = 2,
    /// The schema (or regex, choices, GBNF) is at fault.
    Grammar = 3,
    /// The model cannot be found, loaded or run.
    Model = 4,
    /// The output was cut off by the limit on tokens.
    Length = 5,
    /// A file cannot be read or written.
    File = 6,
    /// `extract`: some of many documents have no value.
    Documents = 7,
    /// A defect of Maskwright.
    Internal = 70,
    /// Ctrl-C; the code that shells give a command which it ended.
    Cancelled = 130,
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Fail {
    code: Code,
    message: String,
}

impl Fail {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Fail {
        Fail { code, message: message.into() }
    }

    pub(crate) fn usage(message: String) -> Fail {
        Fail::new(Code::Usage, message)
    }

    pub(crate) fn file(file: &Path, error: &io::Error) -> Fail {
        Fail::new(Code::File, format!("{}: {error}", file.display()))
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "the signature that `map_err` calls"
    )]
    pub(crate) fn read(error: io::Error) -> Fail {
        Fail::new(Code::File, format!("the input cannot be read: {error}"))
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "the signature that `map_err` calls"
    )]
    pub(crate) fn write(error: io::Error) -> Fail {
        Fail::new(Code::File, format!("the output cannot be written: {error}"))
    }

    /// A defect of Maskwright, or something it was not made for.
    pub(crate) fn internal(error: impl fmt::Display) -> Fail {
        Fail::new(Code::Internal, error.to_string())
    }

    pub(crate) fn model(error: impl fmt::Display) -> Fail {
        Fail::new(Code::Model, error.to_string())
    }

    pub(crate) fn code(&self) -> Code {
        self.code
    }
}

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<GrammarError> for Fail {
    fn from(error: GrammarError) -> Fail {
        Fail::new(Code::Grammar, error.to_string())
    }
}
