//! One token on the page.

use std::fmt;

use super::escape::{Percent, Text, Token};
use crate::{
    generate::{Origin, TokenTrace},
    vocabulary::{TokenId, Vocabulary},
};

/// Where the mask removed this much, model and grammar disagree.
pub(super) const MUCH: f64 = 0.5;

/// A token with its record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    pub(super) trace: &'a TokenTrace,
    pub(super) vocabulary: &'a Vocabulary,
    /// What links lead to.
    pub(super) sequence: usize,
    pub(super) number: usize,
}

impl<'a> Step<'a> {
    /// Whether it had no alternative.
    pub(super) fn is_forced(&self) -> bool {
        matches!(self.trace.origin, Origin::Forced | Origin::Ended)
    }

    /// Whether the mask removed much.
    pub(super) fn is_contested(&self) -> bool {
        self.trace.removed_mass.is_some_and(|mass| mass >= MUCH)
    }

    pub(super) fn token(&self) -> Token<'a> {
        self.token_of(self.trace.token)
    }

    fn token_of(&self, token: TokenId) -> Token<'a> {
        Token(self.vocabulary.raw_bytes(token))
    }

    /// Writes the token as a part of the text.
    pub(super) fn write_inline(
        &self,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let (sequence, number) = (self.sequence, self.number);
        let origin = self.trace.origin.name();
        let contested = if self.is_contested() { " contested" } else { "" };
        write!(
            f,
            "<a class=\"token {origin}{contested}\" \
             href=\"#s{sequence}t{number}\"><bdi>{}</bdi></a>",
            self.token(),
        )?;
        // A line breaks after the sign that says so.
        if self.vocabulary.raw_bytes(self.trace.token).ends_with(b"\n") {
            f.write_str("<br>")?;
        }
        Ok(())
    }

    /// Writes the token as an item of the list.
    pub(super) fn write_item(
        &self,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let Step { trace, sequence, number, .. } = self;
        let origin = trace.origin.name();
        let contested = if self.is_contested() { " contested" } else { "" };
        write!(
            f,
            "<li class=\"step {origin}{contested}\" \
             id=\"s{sequence}t{number}\"><details><summary>\
             <span class=\"number\">{number}</span>\
             <code class=\"chosen-token\"><bdi>{}</bdi></code>\
             <span class=\"tag\">{origin}</span>",
            self.token(),
        )?;
        self.write_chances(f)?;
        if let Some((token, log)) = trace.forbidden.first() {
            write!(
                f,
                "<span class=\"instead\">forbidden: \
                 <code><bdi>{}</bdi></code> {}</span>",
                self.token_of(*token),
                Percent::of_log(*log),
            )?;
        }
        if let Some(place) = &trace.place {
            write!(f, "<span class=\"place\">{}</span>", Text(place))?;
        }
        f.write_str("</summary><div class=\"lists\">")?;
        self.write_list(f, "allowed, after the mask", &trace.allowed)?;
        self.write_list(f, "forbidden, before the mask", &trace.forbidden)?;
        self.write_list(f, "all, before the mask", &trace.likeliest)?;
        f.write_str("</div>")?;
        let id = trace.token.0;
        match trace.n_allowed {
            Some(n) => write!(
                f,
                "<p class=\"small\">Token id {id}; {n} tokens were \
                 allowed.</p>"
            )?,
            None => write!(f, "<p class=\"small\">Token id {id}.</p>")?,
        }
        f.write_str("</details></li>\n")
    }

    fn write_chances(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(before), Some(after)) =
            (self.trace.before, self.trace.after)
        else {
            return f.write_str(
                "<span class=\"chances unasked\">the model was not asked\
                 </span>",
            );
        };
        let chances = [("before", before), ("after", after)]
            .map(|(label, log)| (label, Percent::of_log(log)));
        let removed =
            self.trace.removed_mass.map(|mass| ("removed", Percent::of(mass)));
        f.write_str("<span class=\"chances\">")?;
        for (label, percent) in chances.into_iter().chain(removed) {
            write!(
                f,
                "<span class=\"chance {label}\" style=\"--p:{:.2}%\">\
                 <b>{label}</b> {percent}</span>",
                percent.width(),
            )?;
        }
        f.write_str("</span>")
    }

    fn write_list(
        &self,
        f: &mut fmt::Formatter<'_>,
        title: &str,
        tokens: &[(TokenId, f64)],
    ) -> fmt::Result {
        write!(f, "<table><caption>{title}</caption><tbody>")?;
        if tokens.is_empty() {
            f.write_str("<tr><td class=\"none\">none</td></tr>")?;
        }
        for &(token, log) in tokens {
            let percent = Percent::of_log(log);
            let mark = if token == self.trace.token {
                " class=\"taken\""
            } else {
                ""
            };
            write!(
                f,
                "<tr{mark}><td><code><bdi>{}</bdi></code></td>\
                 <td style=\"--p:{:.2}%\">{percent}</td></tr>",
                self.token_of(token),
                percent.width(),
            )?;
        }
        f.write_str("</tbody></table>")
    }
}
