//! `generate --trace`: the page that shows a run.

use maskwright::{
    generate::{Generation, Prompt, TokenTrace},
    trace_page::TracePage,
    vocabulary::Vocabulary,
};

use crate::args::GrammarSource;

/// How many tokens of each kind the page lists.
pub(crate) const LISTED: usize = 5;

/// Returns the page.
pub(crate) fn page(
    title: &str,
    prompt: &Prompt,
    vocabulary: &Vocabulary,
    sequences: &[Generation],
) -> String {
    TracePage { title, prompt, vocabulary, sequences }.to_string()
}

/// Says in a line what was generated under.
pub(crate) fn title(source: &GrammarSource) -> String {
    let files = [
        ("schema", &source.schema),
        ("GBNF", &source.gbnf),
        ("tags", &source.tags),
        ("tools", &source.tools),
    ];
    for (kind, file) in files {
        if let Some(file) = file {
            return format!("Trace under the {kind} of {}", file.display());
        }
    }
    if let Some(regex) = &source.regex {
        format!("Trace under the expression {regex}")
    } else if let Some(choices) = &source.choices {
        format!("Trace under the choices {}", choices.join(", "))
    } else if source.json {
        "Trace under any JSON".to_owned()
    } else {
        "Trace without a grammar".to_owned()
    }
}

/// Keeps of the records what was asked for beside the page.
pub(crate) fn keep(made: &mut [Generation], logprobs: Option<usize>) {
    for one in made {
        let trace = &mut one.trace;
        let Some(n) = logprobs else {
            trace.steps.clear();
            trace.end = None;
            continue;
        };
        let keep = |step: &mut TokenTrace| {
            step.likeliest.truncate(n);
            step.allowed.truncate(n);
            step.forbidden.truncate(n);
        };
        trace.steps.iter_mut().for_each(keep);
        trace.end.iter_mut().for_each(keep);
    }
}
