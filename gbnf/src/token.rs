//! From a text to tokens, one at a time.

use maskwright_grammar_core::automaton::AtomToken;

use crate::{
    ast::Reference,
    error::{GbnfError, GbnfErrorKind, Span},
};

/// A token of the notation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Name(String),
    /// `::=`
    Define,
    Literal(String),
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
    /// `.`
    Any,
    /// `<...>`, with or without `!`.
    Token {
        negated: bool,
        token: AtomToken,
    },
    /// `%` and a word, with what follows it.
    Reference(Reference),
    /// `|`
    Bar,
    Open,
    Close,
    /// `*`, `+`, `?` or braces.
    Repeat {
        min: u32,
        max: Option<u32>,
    },
    /// The end of a line.
    Newline,
    /// The end of the text.
    End,
}

/// A token and its place.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

/// Cuts a text into tokens.
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Lexer<'a> {
        // A byte order mark is no part of the grammar.
        let at = if text.starts_with('\u{FEFF}') { 3 } else { 0 };
        Lexer { text, at }
    }

    /// Returns the next token; at the end, [`Kind::End`] for ever.
    pub(crate) fn next(&mut self) -> Result<Token, GbnfError> {
        self.skip_blanks();
        let start = self.at;
        let kind = self.kind(start)?;
        Ok(Token { kind, span: Span::new(start, self.at) })
    }

    fn kind(&mut self, start: usize) -> Result<Kind, GbnfError> {
        let Some(c) = self.bump() else { return Ok(Kind::End) };
        Ok(match c {
            '\n' => Kind::Newline,
            '\r' => {
                self.eat('\n');
                Kind::Newline
            }
            '|' => Kind::Bar,
            '(' => Kind::Open,
            ')' => Kind::Close,
            '.' => Kind::Any,
            '*' => Kind::Repeat { min: 0, max: None },
            '+' => Kind::Repeat { min: 1, max: None },
            '?' => Kind::Repeat { min: 0, max: Some(1) },
            '{' => self.braces(start)?,
            '"' => self.literal(start)?,
            '[' => self.class(start)?,
            '<' => self.token(false, start)?,
            '%' => Kind::Reference(self.reference(start)?),
            '!' => {
                if !self.eat('<') {
                    let span = Span::new(start, self.at);
                    return Err(self.error(
                        span,
                        "`!` stands before a token only, as in `!<think>`",
                    ));
                }
                self.token(true, start)?
            }
            ':' => {
                if !(self.eat(':') && self.eat('=')) {
                    let span = Span::new(start, self.at);
                    return Err(self.error(span, "expected `::=`"));
                }
                Kind::Define
            }
            c if is_name(c) => {
                self.name();
                Kind::Name(self.text[start..self.at].to_owned())
            }
            c => {
                let span = Span::new(start, self.at);
                let hint = match c {
                    '\'' => "; literals stand in double quotes",
                    ';' => "; a rule ends with its line",
                    '=' => "; a rule is defined with `::=`",
                    c if c.is_alphabetic() => {
                        "; names are letters `a-z`, `A-Z`, digits, `-` and `_`"
                    }
                    _ => "",
                };
                let c = c.escape_debug();
                let message = format!("unexpected character `{c}`{hint}");
                return Err(self.error(span, message));
            }
        })
    }

    /// Reads what follows `{`, up to `}`.
    fn braces(&mut self, start: usize) -> Result<Kind, GbnfError> {
        let min = self.number("repetition bound")?;
        self.skip_space();
        let has_comma = self.eat(',');
        let max =
            if has_comma { self.number("repetition bound")? } else { min };
        self.skip_space();
        let is_closed = self.eat('}');
        let span = Span::new(start, self.at);
        if !is_closed || (min.is_none() && max.is_none()) {
            return Err(
                self.error(span, "expected `{m}`, `{m,}`, `{m,n}` or `{,n}`")
            );
        }
        let min = min.unwrap_or(0);
        if let Some(max) = max.filter(|&max| max < min) {
            return Err(self.error(span, GbnfErrorKind::Bounds { min, max }));
        }
        Ok(Kind::Repeat { min, max })
    }

    /// Reads a decimal number, if one is next.
    fn number(
        &mut self,
        what: &'static str,
    ) -> Result<Option<u32>, GbnfError> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let len =
            rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if len == 0 {
            return Ok(None);
        }
        let digits = &rest[..len];
        let span = Span::new(self.at, self.at + len);
        self.at += len;
        digits.parse().map(Some).map_err(|_| {
            let value = shorten(digits);
            let limit = u32::MAX;
            self.error(span, GbnfErrorKind::TooLarge { what, value, limit })
        })
    }

    fn literal(&mut self, start: usize) -> Result<Kind, GbnfError> {
        let mut text = String::new();
        loop {
            let at = self.at;
            match self.bump() {
                Some('"') => return Ok(Kind::Literal(text)),
                Some('\\') => text.push(self.escape(at)?),
                Some(c) => text.push(c),
                None => {
                    let span = Span::new(start, start + 1);
                    return Err(self.error(
                        span,
                        "this literal never ends; close it with `\"`",
                    ));
                }
            }
        }
    }

    fn class(&mut self, start: usize) -> Result<Kind, GbnfError> {
        let negated = self.eat('^');
        let mut ranges = Vec::new();
        loop {
            let at = self.at;
            let lo = match self.bump() {
                Some(']') => break,
                Some('\\') => self.escape(at)?,
                Some(c) => c,
                None => return Err(self.unclosed_class(start)),
            };
            let rest = &self.text[self.at..];
            let mut hi = lo;
            // `-` is itself where it is last.
            if rest.starts_with('-') && !rest.starts_with("-]") {
                self.at += 1;
                let at = self.at;
                hi = match self.bump() {
                    Some('\\') => self.escape(at)?,
                    Some(c) => c,
                    None => return Err(self.unclosed_class(start)),
                };
            }
            if hi < lo {
                let span = Span::new(at, self.at);
                let message = format!(
                    "range `{}` is reversed; write `{}-{}`",
                    self.text[at..self.at].escape_debug(),
                    hi.escape_debug(),
                    lo.escape_debug(),
                );
                return Err(self.error(span, message));
            }
            ranges.push((lo, hi));
        }
        if ranges.is_empty() {
            let span = Span::new(start, self.at);
            let hint = if negated {
                "this class is empty; write `.` for any character, or `\\]` \
                 for a bracket in a class"
            } else {
                "this class is empty; write `\\]` for a bracket in a class"
            };
            return Err(self.error(span, hint));
        }
        Ok(Kind::Class { negated, ranges })
    }

    fn unclosed_class(&self, start: usize) -> GbnfError {
        let span = Span::new(start, start + 1);
        self.error(span, "this class never ends; close it with `]`")
    }

    /// Reads what follows a backslash, which stands at `start`.
    fn escape(&mut self, start: usize) -> Result<char, GbnfError> {
        let c = self.bump();
        Ok(match c {
            Some('t') => '\t',
            Some('r') => '\r',
            Some('n') => '\n',
            Some(c @ ('\\' | '"' | '[' | ']' | '-' | '^')) => c,
            Some('x') => return self.code_point(start, 2),
            Some('u') => return self.code_point(start, 4),
            Some('U') => return self.code_point(start, 8),
            Some(c) => {
                let span = Span::new(start, self.at);
                let shown = c.escape_debug();
                let hint = match c {
                    'd' => "write `[0-9]`".to_owned(),
                    'w' => "write `[a-zA-Z0-9_]`".to_owned(),
                    's' => "write `[ \\t\\r\\n]`".to_owned(),
                    '0' => "write `\\x00`".to_owned(),
                    'a' | 'b' | 'e' | 'f' | 'v' => format!(
                        "write `\\x{:02X}` for the control character, or \
                         `{c}` for the letter",
                        match c {
                            'a' => 7,
                            'b' => 8,
                            'e' => 27,
                            'f' => 12,
                            _ => 11,
                        },
                    ),
                    _ => format!(
                        "write `{shown}` for the character, or `\\\\{shown}` \
                         for a backslash and the character"
                    ),
                };
                let message = format!("unknown escape `\\{shown}`; {hint}");
                return Err(self.error(span, message));
            }
            None => {
                let span = Span::new(start, self.at);
                let message = "a backslash at the end of the text";
                return Err(self.error(span, message));
            }
        })
    }

    /// Reads `len` hexadecimal digits.
    fn code_point(
        &mut self,
        start: usize,
        len: usize,
    ) -> Result<char, GbnfError> {
        let mut value: u32 = 0;
        for _ in 0..len {
            let digit = self.peek().and_then(|c| c.to_digit(16));
            let Some(digit) = digit else {
                let span = Span::new(start, self.at);
                let shown = &self.text[start..self.at];
                let message =
                    format!("`{shown}` needs {len} hexadecimal digits");
                return Err(self.error(span, message));
            };
            self.at += 1;
            value = value << 4 | digit;
        }
        char::from_u32(value).ok_or_else(|| {
            let span = Span::new(start, self.at);
            let shown = &self.text[start..self.at];
            let message = if value > 0x10_FFFF {
                format!("`{shown}` is past the last code point, U+10FFFF")
            } else {
                format!(
                    "`{shown}` is a surrogate, not a code point; write the \
                     whole code point as `\\UHHHHHHHH`"
                )
            };
            self.error(span, message)
        })
    }

    /// Reads what follows `<`.
    fn token(
        &mut self,
        negated: bool,
        start: usize,
    ) -> Result<Kind, GbnfError> {
        let open = self.at - 1;
        if self.eat('[') {
            let id = self.number("token id")?;
            let is_closed = self.eat(']') && self.eat('>');
            let (Some(id), true) = (id, is_closed) else {
                let span = Span::new(start, self.at);
                return Err(
                    self.error(span, "a token by id is written `<[123]>`")
                );
            };
            return Ok(Kind::Token { negated, token: AtomToken::Id(id) });
        }
        let rest = &self.text[self.at..];
        let end = rest.find(['>', '\n', '\r']).unwrap_or(rest.len());
        if end == 0 || !rest[end..].starts_with('>') {
            let span = Span::new(start, self.at);
            return Err(self.error(
                span,
                "a token is written `<text>` or `<[123]>`, on one line",
            ));
        }
        self.at += end + 1;
        let text = self.text[open..self.at].to_owned();
        Ok(Kind::Token { negated, token: AtomToken::Text(text) })
    }

    /// Reads what follows `%`.
    fn reference(&mut self, start: usize) -> Result<Reference, GbnfError> {
        let word = self.name().to_owned();
        match &*word {
            "json" => self.json(start).map(Reference::Json),
            "regex" => self.regex(start).map(Reference::Regex),
            "grammar" => {
                self.skip_space();
                let name = self.name();
                if !name.is_empty() {
                    return Ok(Reference::Grammar(name.to_owned()));
                }
                let span = Span::new(start, self.at);
                let message = "expected the name of a grammar, as in \
                               `%grammar sql`";
                Err(self.error(span, message))
            }
            _ => {
                let span = Span::new(start, self.at);
                let message = "expected `%json {...}`, `%regex /.../` or \
                               `%grammar name`";
                Err(self.error(span, message))
            }
        }
    }

    /// Reads a schema: an object, `true` or `false`. What is inside is for
    /// the reader of schemas to judge.
    fn json(&mut self, start: usize) -> Result<String, GbnfError> {
        let blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r');
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches(blank).len();
        let first = self.at;
        if self.peek() != Some('{') {
            let word = self.name();
            if word == "true" || word == "false" {
                return Ok(word.to_owned());
            }
            let span = Span::new(start, self.at);
            let message = "expected a JSON Schema, as in \
                           `%json {\"type\": \"integer\"}`";
            return Err(self.error(span, message));
        }
        let mut depth = 0_usize;
        let (mut in_string, mut is_escaped) = (false, false);
        for (i, byte) in self.text.bytes().enumerate().skip(first) {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if in_string => is_escaped = true,
                b'"' => in_string = !in_string,
                _ if in_string => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                self.at = i + 1;
                return Ok(self.text[first..self.at].to_owned());
            }
        }
        let span = Span::new(first, first + 1);
        Err(self.error(span, "this schema never ends; close it with `}`"))
    }

    /// Reads an expression between slashes.
    fn regex(&mut self, start: usize) -> Result<String, GbnfError> {
        self.skip_space();
        let first = self.at + 1;
        if !self.eat('/') {
            let span = Span::new(start, self.at);
            let message = "expected a regular expression between slashes, \
                           as in `%regex /[0-9]+/`";
            return Err(self.error(span, message));
        }
        loop {
            match self.bump() {
                Some('/') => {
                    return Ok(self.text[first..self.at - 1].to_owned());
                }
                Some('\\') => {
                    self.bump();
                }
                Some('\n' | '\r') | None => {
                    let span = Span::new(first - 1, first);
                    let message = "this expression never ends; close it with \
                                   `/` on the same line, and write `\\/` for \
                                   a slash in it";
                    return Err(self.error(span, message));
                }
                Some(_) => {}
            }
        }
    }

    /// Takes the name that is next, which may be empty.
    fn name(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let len = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    /// Skips blanks and comments within a line.
    fn skip_blanks(&mut self) {
        self.skip_space();
        if self.peek() == Some('#') {
            let rest = &self.text[self.at..];
            self.at += rest.find(['\n', '\r']).unwrap_or(rest.len());
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, c: char) -> bool {
        let is_next = self.peek() == Some(c);
        if is_next {
            self.at += c.len_utf8();
        }
        is_next
    }

    fn error(&self, span: Span, kind: impl Into<GbnfErrorKind>) -> GbnfError {
        GbnfError::new(self.text, span, kind)
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

fn shorten(digits: &str) -> String {
    if digits.len() <= 20 {
        return digits.to_owned();
    }
    format!("{}... ({} digits)", &digits[..12], digits.len())
}
