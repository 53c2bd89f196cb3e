//! Prints grammars for people, a rule a line.

use std::fmt;

use super::{Expr, ExprId, Grammar};
use crate::automaton::AtomToken;

/// What is still to be printed.
enum Piece {
    Text(&'static str),
    /// An expression, and whether it stands where a choice, or where a
    /// sequence, needs no parentheses.
    Expr(ExprId, Place),
    Bounds(u32, Option<u32>),
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Place {
    Body,
    Alternative,
    Part,
    Repeated,
}

impl fmt::Display for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rule in &self.rules {
            write!(f, "{} ::= ", rule.name)?;
            self.print(f, rule.body)?;
            f.write_str("\n")?;
        }
        Ok(())
    }
}

impl Grammar {
    fn print(&self, f: &mut fmt::Formatter<'_>, body: ExprId) -> fmt::Result {
        let mut todo = vec![Piece::Expr(body, Place::Body)];
        while let Some(piece) = todo.pop() {
            match piece {
                Piece::Text(text) => f.write_str(text)?,
                Piece::Bounds(0, None) => f.write_str("*")?,
                Piece::Bounds(1, None) => f.write_str("+")?,
                Piece::Bounds(min, None) => write!(f, "{{{min},}}")?,
                Piece::Bounds(min, Some(max)) => {
                    write!(f, "{{{min},{max}}}")?;
                }
                Piece::Expr(expr, place) => {
                    self.print_expr(f, expr, place, &mut todo)?;
                }
            }
        }
        Ok(())
    }

    fn print_expr(
        &self,
        f: &mut fmt::Formatter<'_>,
        expr: ExprId,
        place: Place,
        todo: &mut Vec<Piece>,
    ) -> fmt::Result {
        let mut list = |parts: &[ExprId], separator, inner, bare: bool| {
            if !bare {
                todo.push(Piece::Text(")"));
            }
            for (i, &part) in parts.iter().enumerate().rev() {
                todo.push(Piece::Expr(part, inner));
                if i > 0 {
                    todo.push(Piece::Text(separator));
                }
            }
            if !bare {
                todo.push(Piece::Text("("));
            }
        };
        match self.expr(expr) {
            Expr::Empty => f.write_str("\"\""),
            Expr::Literal(bytes) => {
                write!(f, "\"{}\"", bytes.escape_ascii())
            }
            Expr::Class(class) => write!(f, "{class:?}"),
            Expr::Rule(rule) => f.write_str(&self.rule(*rule).name),
            Expr::Atom(atom) => {
                let atom = &self.atoms[atom.0 as usize];
                f.write_str(if atom.negated { "!" } else { "" })?;
                match &atom.token {
                    AtomToken::Id(id) => write!(f, "<[{id}]>"),
                    AtomToken::Text(text) => f.write_str(text),
                }
            }
            Expr::Machine(machine) => {
                write!(f, "%{}", self.machine(*machine).name)
            }
            Expr::Concat(parts) => {
                let bare = matches!(place, Place::Body | Place::Alternative);
                list(parts, " ", Place::Part, bare);
                Ok(())
            }
            Expr::Choice(parts) => {
                list(parts, " | ", Place::Alternative, place == Place::Body);
                Ok(())
            }
            Expr::Repeat { body, min, max } => {
                todo.push(Piece::Bounds(*min, *max));
                todo.push(Piece::Expr(*body, Place::Repeated));
                Ok(())
            }
        }
    }
}
