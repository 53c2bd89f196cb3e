//! Texts laid out anew.

/// The lines of a text, whatever its white space. Strings and scalars stay
/// as they are written.
pub(crate) fn indented(text: &str, width: u8) -> String {
    let text = one_line(text);
    let mut out = String::new();
    let mut depth = 0;
    let mut quoted = Quoted::default();
    let mut rest = text.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&" ".repeat(depth * usize::from(width)));
    };
    while let Some(character) = rest.next() {
        let inside = quoted.goes_on(character);
        match character {
            '{' | '[' if !inside => {
                out.push(character);
                if let Some(end) = rest.next_if(|&c| c == '}' || c == ']') {
                    out.push(end);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' if !inside => {
                depth -= 1;
                line(&mut out, depth);
                out.push(character);
            }
            ',' if !inside => {
                out.push(',');
                line(&mut out, depth);
            }
            ':' if !inside => out.push_str(": "),
            _ => out.push(character),
        }
    }
    out
}

/// A text without white space.
pub(crate) fn one_line(text: &str) -> String {
    let mut quoted = Quoted::default();
    let keeps = |&c: &char| quoted.goes_on(c) || !c.is_ascii_whitespace();
    text.chars().filter(keeps).collect()
}

/// Whether a place is inside a string.
#[derive(Default)]
pub(crate) struct Quoted {
    inside: bool,
    escaped: bool,
}

impl Quoted {
    /// Reads a character. Whether a string was open before it.
    pub(crate) fn goes_on(&mut self, character: char) -> bool {
        let before = self.inside;
        if self.escaped {
            self.escaped = false;
        } else if character == '"' {
            self.inside = !self.inside;
        } else {
            self.escaped = self.inside && character == '\\';
        }
        before
    }
}
