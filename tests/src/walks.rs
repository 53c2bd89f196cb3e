//! Random walks through the grammars of real schemas, and small changes to
//! their instances: is what we write valid, and does the judge agree about
//! what is nearly an instance?

use std::{fmt, sync::Arc};

use maskwright::{
    grammar::{Grammar, SchemaOptions},
    mask::TokenTrie,
};
use maskwright_grammar_core::automaton::Completions;
use maskwright_json_schema::{Budgets, Draft};
use serde_json::Value;

use crate::{
    judge::{Judge, has_long_numbers},
    maskbench::Entry,
    mutate::mutated,
    subject::{Subject, draft_of, policy, widest},
    vocabularies::Random,
    walk::{Draw, draw},
};

/// What to walk.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Documents of each schema; changed ones of each valid instance.
    pub n_documents: usize,
    /// The most tokens that are drawn before a document is completed.
    pub n_tokens: usize,
    /// Makes every draw.
    pub seed: u64,
    /// Whether formats are enforced, on both sides.
    pub formats: bool,
    /// How long viability is searched for.
    pub budgets: Budgets,
}

impl Plan {
    /// The draws of one document.
    fn random(&self, name: &str, number: usize) -> Random {
        let of_name = name.bytes().fold(self.seed, |hash, byte| {
            hash.wrapping_mul(0x0100_0000_01B3).wrapping_add(byte.into())
        });
        Random::new(of_name.wrapping_mul(64).wrapping_add(number as u64))
    }
}

/// What is wrong with a document.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The name of the schema, and the number of the document.
    pub place: (String, usize),
    /// What is wrong.
    pub what: String,
    /// The document, as far as there is one.
    pub text: String,
    /// The schema.
    pub schema: Value,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { place: (name, number), what, text, schema } = self;
        write!(f, "{name}, document {number}: {what}\n  {text}\n  {schema}")
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Schemas that both sides understood.
    pub n_schemas: usize,
    /// Documents that were drawn and judged, or changed and compared.
    pub n_documents: usize,
    /// Those of them that were valid.
    pub n_valid: usize,
    /// Documents about which the judge's word is not taken: they nest too
    /// deep, or it differs and they have numbers that are too much for it.
    pub n_not_judged: usize,
    /// Tokens that were drawn.
    pub n_tokens: usize,
    /// The bytes of all documents.
    pub n_bytes: usize,
    /// Schemas that one side refused, and why.
    pub refused: Vec<String>,
    /// Documents that only a format makes wrong for the judge.
    pub of_formats: Vec<Failure>,
    /// What is wrong.
    pub failures: Vec<Failure>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} documents of {} schemas ({} tokens drawn, {} bytes): {} \
             valid, {} not judged, {} failures, {} more by formats alone; {} \
             schemas refused",
            self.n_documents,
            self.n_schemas,
            self.n_tokens,
            self.n_bytes,
            self.n_valid,
            self.n_not_judged,
            self.failures.len(),
            self.of_formats.len(),
            self.refused.len(),
        )
    }
}

/// A schema on both sides.
struct Walked<'a> {
    name: &'a str,
    schema: &'a Value,
    draft: Draft,
    judge: Judge,
    plan: &'a Plan,
    report: &'a mut Report,
}

/// Draws documents of a schema, every second one under the widest options and
/// the others under those of generation. Each must be accepted and valid, and
/// none may get stuck.
pub fn walk_schema(
    name: &str,
    schema: &Value,
    tokens: &Arc<TokenTrie>,
    plan: &Plan,
    report: &mut Report,
) {
    let (draft, judge) = match draft_of(schema, plan.formats) {
        Ok(found) => found,
        Err(why) => return report.refused.push(format!("{name}: {why}")),
    };
    let mut walked = Walked { name, schema, draft, judge, plan, report };
    walked.draw_all(tokens);
}

impl Walked<'_> {
    fn draw_all(&mut self, tokens: &Arc<TokenTrie>) {
        let widest = widest(self.draft, policy(self.plan.formats));
        let parse = widest.parse.clone();
        let narrow = SchemaOptions { parse, ..SchemaOptions::default() };
        let mut walks = Vec::new();
        for mut options in [narrow, widest] {
            options.budgets = self.plan.budgets;
            match Grammar::from_schema_value(self.schema, &options) {
                Ok(grammar) => {
                    let compiled = grammar.compile(tokens).expect("no atoms");
                    walks.push((compiled, grammar, Completions::new()));
                }
                Err(error) => {
                    let why = format!("{}: {error}", self.name);
                    return self.report.refused.push(why);
                }
            }
        }
        self.report.n_schemas += 1;
        for number in 0..self.plan.n_documents {
            let random = &mut self.plan.random(self.name, number);
            let (compiled, grammar, completions) = &mut walks[number % 2];
            let n_tokens = random.below(self.plan.n_tokens + 1);
            let drawn =
                draw(compiled, completions, Draw::Even, n_tokens, random);
            match drawn {
                Ok(made) => {
                    self.report.n_tokens += made.n_tokens;
                    self.report.n_bytes += made.text.len();
                    let accepted = grammar.accepts(&made.text);
                    self.judge(number, &made.text, accepted.ok());
                }
                Err(stuck) => self.fail(number, &stuck.drawn, &stuck.why),
            }
        }
    }

    /// Judges a document that has to be valid.
    fn judge(&mut self, number: usize, text: &str, accepted: Option<bool>) {
        self.report.n_documents += 1;
        if accepted != Some(true) {
            self.fail(number, text, "refused, though we made it");
        }
        match self.judge.allows(text) {
            None => self.report.n_not_judged += 1,
            Some(true) => self.report.n_valid += 1,
            Some(false) if has_long_numbers(text) => {
                self.report.n_not_judged += 1;
            }
            Some(false) => {
                let complaint = self.judge.complaint(text);
                let failure = self.failure(number, text, &complaint);
                let bare = Judge::new(self.schema, self.draft, false);
                // It takes more for regular expressions than ECMA-262 does.
                let of_regex = complaint.contains(r#"{"format":"regex"}"#);
                if of_regex
                    || bare.is_ok_and(|bare| bare.allows(text) == Some(true))
                {
                    self.report.of_formats.push(failure);
                } else {
                    self.report.failures.push(failure);
                }
            }
        }
    }

    fn failure(&self, number: usize, text: &str, what: &str) -> Failure {
        Failure {
            place: (self.name.to_owned(), number),
            what: what.to_owned(),
            text: text.to_owned(),
            schema: self.schema.clone(),
        }
    }

    fn fail(&mut self, number: usize, text: &str, what: &str) {
        let failure = self.failure(number, text, what);
        self.report.failures.push(failure);
    }
}

/// Changes the valid instances of a schema a little, and compares our verdict
/// with the judge's.
pub fn mutate_entry(entry: &Entry, plan: &Plan, report: &mut Report) {
    let Entry { name, schema, tests } = entry;
    let (draft, judge) = match draft_of(schema, plan.formats) {
        Ok(found) => found,
        Err(why) => return report.refused.push(format!("{name}: {why}")),
    };
    let mut options = widest(draft, policy(plan.formats));
    options.budgets = plan.budgets;
    let Ok(subject) = Subject::new(schema, &options) else { return };
    report.n_schemas += 1;
    let mut walked = Walked { name, schema, draft, judge, plan, report };
    for (index, (data, _)) in
        tests.iter().filter(|(_, valid)| *valid).enumerate()
    {
        for number in 0..plan.n_documents {
            let number = index * plan.n_documents + number;
            let text = mutated(data, &mut plan.random(name, number));
            walked.compare(number, &text, &subject);
        }
    }
}

impl Walked<'_> {
    fn compare(&mut self, number: usize, text: &str, subject: &Subject) {
        self.report.n_documents += 1;
        self.report.n_bytes += text.len();
        let Some(valid) = self.judge.allows(text) else {
            self.report.n_not_judged += 1;
            return;
        };
        self.report.n_valid += usize::from(valid);
        let what = match subject.accepts(text) {
            Ok(accepted) if accepted == valid => return,
            Ok(_) if has_long_numbers(text) => {
                self.report.n_not_judged += 1;
                return;
            }
            Ok(true) => {
                format!("WRONGLY ACCEPTED: {}", self.judge.complaint(text))
            }
            Ok(false) => "wrongly refused".to_owned(),
            Err(error) => error.to_string(),
        };
        let failure = self.failure(number, text, &what);
        if self.plan.formats && self.is_of_formats(text) {
            self.report.of_formats.push(failure);
        } else {
            self.report.failures.push(failure);
        }
    }

    /// Whether both sides agree where formats are annotations.
    fn is_of_formats(&self, text: &str) -> bool {
        let options = widest(self.draft, policy(false));
        let Ok(subject) = Subject::new(self.schema, &options) else {
            return false;
        };
        let bare = Judge::new(self.schema, self.draft, false);
        bare.is_ok_and(|bare| subject.accepts(text).ok() == bare.allows(text))
    }
}
