//! The page.

use std::fmt;

use super::{
    escape::{Percent, Text},
    step::Step,
};
use crate::{
    generate::{Generation, Prompt, Role, TokenTrace},
    vocabulary::Vocabulary,
};

/// How many of the steps in which the mask removed much are named at the top.
const MAX_NAMED: usize = 8;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// A run, to be displayed as HTML.
#[derive(Clone, Copy, Debug)]
pub struct TracePage<'a> {
    /// What it is called.
    pub title: &'a str,
    /// What the model was asked.
    pub prompt: &'a Prompt,
    /// What the tokens spell.
    pub vocabulary: &'a Vocabulary,
    /// What came out, with records.
    pub sequences: &'a [Generation],
}

impl fmt::Display for TracePage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = Text(self.title);
        writeln!(
            f,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n\
             <meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, \
             initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"\
             default-src 'none'; style-src 'unsafe-inline'; script-src \
             'unsafe-inline'\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n\
             <body>\n<header>\n<h1>{title}</h1>"
        )?;
        self.write_prompt(f)?;
        f.write_str(LEGEND)?;
        f.write_str("</header>\n<main>\n")?;
        for (index, sequence) in self.sequences.iter().enumerate() {
            self.write_sequence(f, index, sequence)?;
        }
        writeln!(f, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>")
    }
}

/// What the signs mean, and what can be hidden.
const LEGEND: &str = "\
<details class=\"legend\"><summary>How to read this</summary>
<p><b>before</b> is the model's own probability of the token, <b>after</b> \
its probability among the tokens that the grammar allows, <b>removed</b> the \
probability that was on forbidden tokens. Where much was removed, model and \
grammar disagree: see whether the prompt says what the output should look \
like. <code><i>␣</i></code> is a space, <code><i>↵</i></code> the end of a \
line, <code><i>\\xE1</i></code> a part of a character.</p>
<ul>
<li><span class=\"token chosen\">chosen</span> from what the mask allows</li>
<li><span class=\"token steered\">steered</span> or \
<span class=\"token planned\">planned</span>, so that the text ends in \
time</li>
<li><span class=\"token forced\">forced</span>: the grammar leaves no other \
text. Where less than 100&nbsp;% is left to it after the mask, other tokens \
would have spelled the same</li>
<li><span class=\"token chosen contested\">contested</span>: the mask removed \
at least half</li>
</ul></details>
<p class=\"filters\">
<label><input type=\"checkbox\" id=\"no-forced\"> hide what is forced</label>
<label><input type=\"checkbox\" id=\"contested\"> only what is contested\
</label>
</p>
";

impl<'a> TracePage<'a> {
    fn write_prompt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |role: Role| match role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        f.write_str("<details class=\"prompt\"><summary>Prompt</summary>\n")?;
        match self.prompt {
            Prompt::Text(text) => write!(f, "<pre>{}</pre>", Text(text))?,
            Prompt::Chat(messages) => {
                for message in messages {
                    writeln!(
                        f,
                        "<h3>{}</h3><pre>{}</pre>",
                        name(message.role),
                        Text(&message.content),
                    )?;
                }
            }
        }
        f.write_str("</details>\n")
    }

    fn write_sequence(
        &self,
        f: &mut fmt::Formatter<'_>,
        index: usize,
        sequence: &'a Generation,
    ) -> fmt::Result {
        let steps = self.steps(index, sequence);
        f.write_str("<section>\n")?;
        if self.sequences.len() > 1 {
            writeln!(f, "<h2>Sequence {}</h2>", index + 1)?;
        }
        write_facts(f, sequence, &steps)?;
        f.write_str("<p class=\"text\">")?;
        for step in &steps {
            step.write_inline(f)?;
        }
        f.write_str("</p>\n")?;
        write_contested(f, &steps)?;
        f.write_str("<ol class=\"steps\">\n")?;
        for stretch in steps.chunk_by(|a, b| a.is_forced() && b.is_forced()) {
            write_stretch(f, stretch)?;
        }
        f.write_str("</ol>\n</section>\n")
    }

    fn steps(&self, sequence: usize, made: &'a Generation) -> Vec<Step<'a>> {
        let vocabulary = self.vocabulary;
        let traces = made.trace.steps.iter().chain(&made.trace.end);
        let step = |(trace, number): (&'a TokenTrace, usize)| Step {
            trace,
            vocabulary,
            sequence,
            number,
        };
        traces.zip(1..).map(step).collect()
    }
}

fn write_facts(
    f: &mut fmt::Formatter<'_>,
    made: &Generation,
    steps: &[Step<'_>],
) -> fmt::Result {
    let complete = if made.is_complete() { "whole" } else { "not whole" };
    let masses = steps.iter().filter_map(|step| step.trace.removed_mass);
    let (sum, n) =
        masses.fold((0.0, 0_u32), |(sum, n), mass| (sum + mass, n + 1));
    write!(
        f,
        "<dl class=\"facts\">\
         <div><dt>ended by</dt><dd>{}</dd></div>\
         <div><dt>text</dt><dd>{complete}</dd></div>\
         <div><dt>prompt</dt><dd>{} tokens</dd></div>\
         <div><dt>output</dt><dd>{} tokens</dd></div>\
         <div><dt>forced</dt><dd>{}</dd></div>\
         <div><dt>steered</dt><dd>{}</dd></div>",
        made.finish_reason.name(),
        made.n_prompt,
        made.tokens.len(),
        made.n_forced,
        made.n_steered,
    )?;
    if n > 0 {
        let mean = Percent::of(sum / f64::from(n));
        write!(f, "<div><dt>removed, mean</dt><dd>{mean}</dd></div>")?;
    }
    if let Some(log) = made.trace.log_probability {
        write!(f, "<div><dt>log-probability</dt><dd>{log:.2}</dd></div>")?;
    }
    let seconds = made.decode_time.as_secs_f64();
    writeln!(f, "<div><dt>time</dt><dd>{seconds:.2} s</dd></div></dl>")
}

/// Names the steps in which the mask removed most.
fn write_contested(
    f: &mut fmt::Formatter<'_>,
    steps: &[Step<'_>],
) -> fmt::Result {
    let mut contested: Vec<&Step<'_>> =
        steps.iter().filter(|step| step.is_contested()).collect();
    if contested.is_empty() {
        return Ok(());
    }
    let mass = |step: &Step<'_>| step.trace.removed_mass.unwrap_or(0.0);
    contested.sort_by(|a, b| mass(b).total_cmp(&mass(a)));
    write!(
        f,
        "<p class=\"disagree\">Model and grammar disagree in {} of {} steps, \
         most in",
        contested.len(),
        steps.len()
    )?;
    for (step, index) in contested.iter().take(MAX_NAMED).zip(0..) {
        let comma = if index > 0 { "," } else { "" };
        write!(
            f,
            "{comma} <a href=\"#s{}t{}\">{} <code><bdi>{}</bdi></code></a>",
            step.sequence,
            step.number,
            step.number,
            step.token(),
        )?;
    }
    f.write_str(".</p>\n")
}

/// Writes tokens that are forced one after the other, or another one.
fn write_stretch(
    f: &mut fmt::Formatter<'_>,
    stretch: &[Step<'_>],
) -> fmt::Result {
    if let [step] = stretch {
        return step.write_item(f);
    }
    write!(
        f,
        "<li class=\"stretch\"><p>forced, {} tokens: <code><bdi>",
        stretch.len()
    )?;
    for step in stretch {
        write!(f, "{}", step.token())?;
    }
    f.write_str("</bdi></code></p><ol>\n")?;
    for step in stretch {
        step.write_item(f)?;
    }
    f.write_str("</ol></li>\n")
}
