//! Verdicts on random documents of random schemas, ours against the judge's.
//!
//! The documents of a schema are drawn at random, drawn from its own masks
//! and completed, and made of both by small changes; and what was read of a
//! document that is refused is completed too, which must be possible.

use std::{collections::BTreeMap, fmt, sync::Arc};

use maskwright::{
    compiled::CompiledGrammar, mask::TokenTrie, vocabulary::TokenId,
};
use maskwright_grammar_core::automaton::Completions;
use maskwright_json_schema::Draft;
use serde_json::Value;

use crate::{
    judge::{Judge, has_long_numbers},
    mutate::mutated,
    schemas::{KEYS, RandomSchema, SCALARS, document, schema},
    shrink::shrink,
    subject::{Subject, policy, widest},
    vocabularies::{Random, with_end},
    walk::{Draw, draw},
};

/// How deep the subschemas of a schema nest, and the values of a document.
const SCHEMA_DEPTH: usize = 3;
const DOCUMENT_DEPTH: usize = 2;

/// How many documents of each schema are drawn at random, and how many from
/// its masks; how many changed ones are made of each of these.
const N_RANDOM: usize = 14;
const N_DRAWN: usize = 6;
const N_MUTATED: usize = 3;

/// How many refused documents are completed from where they were refused.
const N_COMPLETED: usize = 3;

/// Few random schemas are worth more; those that need more are counted.
const MAX_FORMULAS: usize = 50_000;

/// The first token of [`pieces`] that is more than a byte.
const FIRST_PIECE: TokenId = TokenId(256);

/// A document about which we and the judge differ.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// The draft of the schema.
    pub draft: Draft,
    /// The schema.
    pub schema: Value,
    /// The document.
    pub text: String,
    /// What the judge says.
    pub valid: bool,
    /// What we say.
    pub ours: String,
}

/// As a line that the example `verdicts` reads.
impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { draft, schema, text, valid, ours } = self;
        let text = Value::from(text.as_str());
        write!(
            f,
            "{{\"draft\":\"{draft}\",\"schema\":{schema},\"text\":{text},\
             \"valid\":{valid},\"ours\":{}}}",
            Value::from(ours.as_str())
        )
    }
}

/// What was compared.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Schemas that both compiled.
    pub n_schemas: usize,
    /// Those of them that no value satisfies, as we say.
    pub n_unsatisfiable: usize,
    /// Schemas that were refused, by the kind of the error.
    pub refused: BTreeMap<String, usize>,
    /// Verdicts.
    pub n_verdicts: usize,
    /// Those that were *valid*.
    pub n_valid: usize,
    /// Documents that were completed.
    pub n_completed: usize,
    /// Documents that nest too deep for the judge, or about which it differs
    /// and which have numbers that are too much for it.
    pub n_not_judged: usize,
    /// Where we and the judge differ.
    pub mismatches: Vec<Mismatch>,
}

impl Tally {
    fn refuse(&mut self, kind: &str) {
        *self.refused.entry(kind.to_owned()).or_default() += 1;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} verdicts ({} valid) on {} schemas ({} unsatisfiable), {} \
             documents completed, {} not judged; refused schemas: {:?}; {} \
             mismatches",
            self.n_verdicts,
            self.n_valid,
            self.n_schemas,
            self.n_unsatisfiable,
            self.n_completed,
            self.n_not_judged,
            self.refused,
            self.mismatches.len(),
        )
    }
}

/// Every single byte, and pieces of documents over the keys and scalars of
/// random schemas.
///
/// # Panics
///
/// Never: the tokens are valid.
pub fn pieces() -> Arc<TokenTrie> {
    let mut tokens: Vec<Vec<u8>> =
        (0..=u8::MAX).map(|byte| vec![byte]).collect();
    let mut push = |text: String| tokens.push(text.into_bytes());
    for key in KEYS {
        for before in ["{", ","] {
            push(format!("{before}\"{key}\":"));
        }
    }
    for scalar in SCALARS {
        push(scalar.to_owned());
    }
    for joint in ["{}", "[]", "[{", "}]", "[[", "]]", ",0", ",\"a\"", "[0"] {
        push(joint.to_owned());
    }
    tokens.sort_by_key(|token| token.len() > 1);
    let mut seen: Vec<Vec<u8>> = Vec::new();
    tokens.retain(|token| {
        let is_new = !seen.contains(token);
        seen.push(token.clone());
        is_new
    });
    // The bytes stay in front, and the brackets among them are worth as much
    // as longer tokens.
    for bracket in ["}", "]", "{", "[", ","] {
        tokens.push(bracket.as_bytes().to_vec());
    }
    with_end(tokens)
}

/// A schema on both sides.
struct Compared<'a> {
    subject: Subject,
    judge: Judge,
    draft: Draft,
    schema: &'a Value,
    tally: &'a mut Tally,
}

/// In draft 2019-09 `unevaluatedItems` looks at `items` and `additionalItems`
/// alone (its section 9.3.1.3); the judge takes what `contains` found for
/// evaluated, as draft 2020-12 does, and of objects too.
fn has_contains_and_unevaluated(schema: &Value) -> bool {
    let text = schema.to_string();
    text.contains("\"contains\"") && text.contains("\"unevaluated")
}

/// The judge looks for what a reference evaluates without an end, and takes
/// all memory, where the reference leads back.
fn refers_to_itself_unevaluated(schema: &Value) -> bool {
    let text = schema.to_string();
    let to_root = ["\"$ref\":\"#\"", "\"$recursiveRef\"", "\"$dynamicRef\""];
    to_root.iter().any(|part| text.contains(part))
        && text.contains("\"unevaluated")
}

/// The judge takes one `oneOf` for another where one of them is within
/// `contains`.
fn has_one_of_within_contains(schema: &Value) -> bool {
    let text = schema.to_string();
    let n_one_of = text.matches("\"oneOf\"").count();
    n_one_of > 1 && text.contains("\"contains\"")
}

/// Draws the schema of a seed; the draws that follow are its documents'.
pub fn drawn(seed: u64) -> (RandomSchema, Random) {
    let mut random = Random::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    (schema(SCHEMA_DEPTH, &mut random), random)
}

/// Draws the schema of a seed, and compares the verdicts on its documents.
pub fn compare(tokens: &Arc<TokenTrie>, seed: u64, tally: &mut Tally) {
    let (RandomSchema { draft, schema }, mut random) = drawn(seed);
    let random = &mut random;
    if draft == Draft::Draft201909 && has_contains_and_unevaluated(&schema) {
        return tally.refuse("contains and unevaluated… in 2019-09");
    }
    if refers_to_itself_unevaluated(&schema) {
        return tally.refuse("unevaluated… and a reference to the root");
    }
    if has_one_of_within_contains(&schema) {
        return tally.refuse("contains and several oneOf");
    }
    let mut options = widest(draft, policy(false));
    options.parse.limits.max_formulas = MAX_FORMULAS;
    let subject = match Subject::new(&schema, &options) {
        Ok(subject) => subject,
        Err(error) => return tally.refuse(error.kind()),
    };
    let judge = match Judge::new(&schema, draft, false) {
        Ok(judge) => judge,
        Err(error) => {
            // A schema that we take and the judge does not.
            return tally.refuse(&format!("by the judge: {error}"));
        }
    };
    tally.n_schemas += 1;
    tally.n_unsatisfiable += usize::from(subject.grammar().is_none());
    let schema = &schema;
    let mut compared = Compared { subject, judge, draft, schema, tally };
    compared.run(tokens, random);
}

impl Compared<'_> {
    fn run(&mut self, tokens: &Arc<TokenTrie>, random: &mut Random) {
        let mut texts: Vec<String> = (0..N_RANDOM)
            .map(|_| document(DOCUMENT_DEPTH, random).to_string())
            .collect();
        let mut completions = Completions::new();
        if let Some(grammar) = self.subject.grammar() {
            let compiled = grammar.compile(tokens).expect("no atoms");
            self.draw_all(&compiled, &mut completions, &mut texts, random);
        }
        let mut n_left = N_COMPLETED;
        for text in texts {
            self.judge(&text, false);
            let Ok(value) = serde_json::from_str::<Value>(&text) else {
                continue;
            };
            for _ in 0..N_MUTATED {
                let near = mutated(&value, random);
                let accepted = self.judge(&near, false);
                if accepted == Some(false) && n_left > 0 {
                    n_left -= 1;
                    self.complete(&near, &mut completions);
                }
            }
        }
    }

    fn draw_all(
        &mut self,
        compiled: &Arc<CompiledGrammar>,
        completions: &mut Completions,
        texts: &mut Vec<String>,
        random: &mut Random,
    ) {
        for _ in 0..N_DRAWN {
            let n_tokens = random.below(12);
            let how = Draw::From(FIRST_PIECE);
            match draw(compiled, completions, how, n_tokens, random) {
                Ok(made) => {
                    self.tally.n_completed += 1;
                    self.judge(&made.text, true);
                    texts.push(made.text);
                }
                Err(stuck) => self.fail(&stuck.drawn, &stuck.why),
            }
        }
    }

    /// Compares the verdicts on one text, and returns ours. A text that was
    /// made to be valid has to be.
    fn judge(&mut self, text: &str, must_hold: bool) -> Option<bool> {
        let accepted = match self.subject.accepts(text) {
            Ok(accepted) => accepted,
            Err(error) => {
                self.fail(text, &error.to_string());
                return None;
            }
        };
        if must_hold && !accepted {
            self.note(text, true, "refused what we made".to_owned());
        }
        let Some(valid) = self.judge.allows(text) else {
            self.tally.n_not_judged += 1;
            return Some(accepted);
        };
        self.tally.n_verdicts += 1;
        self.tally.n_valid += usize::from(valid);
        if accepted != valid && has_long_numbers(text) {
            self.tally.n_not_judged += 1;
        } else if accepted != valid {
            let ours = if accepted { "accepted" } else { "refused" };
            self.note(text, valid, ours.to_owned());
        }
        Some(accepted)
    }

    /// Completes what was read of a text that is refused.
    fn complete(&mut self, text: &str, completions: &mut Completions) {
        if self.subject.grammar().is_none() {
            return;
        }
        let completed = self.subject.completed(text.as_bytes(), completions);
        let (n_read, ending) = match completed {
            Ok(completed) => completed,
            Err(error) => return self.fail(text, &error.to_string()),
        };
        let read = &text.as_bytes()[..n_read];
        let Some(ending) = ending else {
            let read = String::from_utf8_lossy(read).into_owned();
            return self.note(&read, true, "a dead end".to_owned());
        };
        let whole = [read, &*ending].concat();
        let whole = String::from_utf8_lossy(&whole).into_owned();
        self.tally.n_completed += 1;
        self.judge(&whole, true);
    }

    /// Notes an error in the middle of a text. A schema that applies itself to
    /// the same value is refused, though late where that shows up late; and
    /// so is one that needs too many formulas.
    fn fail(&mut self, text: &str, why: &str) {
        if why.contains("applies itself to the same value") {
            self.tally.refuse("in_place_cycle, late");
        } else if why.contains(" the limit of ") {
            self.tally.refuse("a limit, late");
        } else {
            self.note(text, true, why.to_owned());
        }
    }

    fn note(&mut self, text: &str, valid: bool, ours: String) {
        self.tally.mismatches.push(Mismatch {
            draft: self.draft,
            schema: self.schema.clone(),
            text: text.to_owned(),
            valid,
            ours,
        });
    }
}

/// What differs between both sides about one text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fault {
    /// The verdicts differ; the judge's is this.
    Verdict(bool),
    /// What was read of it cannot be completed.
    DeadEnd,
    /// A limit was met, or the schema refused late.
    Failed,
}

fn fault(draft: Draft, schema: &Value, text: &str) -> Option<Fault> {
    let options = widest(draft, policy(false));
    let subject = Subject::new(schema, &options).ok()?;
    let Ok(accepted) = subject.accepts(text) else {
        return Some(Fault::Failed);
    };
    let judge = Judge::new(schema, draft, false).ok()?;
    let valid = judge.allows(text)?;
    if accepted != valid && !has_long_numbers(text) {
        return Some(Fault::Verdict(valid));
    }
    subject.grammar()?;
    let completions = &mut Completions::new();
    match subject.completed(text.as_bytes(), completions) {
        Ok((_, Some(_))) => None,
        Ok((_, None)) => Some(Fault::DeadEnd),
        Err(_) => Some(Fault::Failed),
    }
}

/// Makes schema and document of a mismatch smaller, as long as there is the
/// same fault.
pub fn smaller(mismatch: &Mismatch) -> Mismatch {
    let draft = mismatch.draft;
    let mut small = mismatch.clone();
    let text = &mismatch.text;
    let Some(kind) = fault(draft, &small.schema, text) else { return small };
    let is_it =
        |schema: &Value, text: &str| fault(draft, schema, text) == Some(kind);
    small.schema = shrink(&mismatch.schema, &mut |schema| is_it(schema, text));
    if let Ok(value) = serde_json::from_str::<Value>(text)
        && is_it(&small.schema, &value.to_string())
    {
        let schema = &small.schema;
        let value =
            shrink(&value, &mut |value| is_it(schema, &value.to_string()));
        small.text = value.to_string();
        let text = &small.text;
        small.schema =
            shrink(&small.schema, &mut |schema| is_it(schema, text));
    }
    if let Fault::Verdict(valid) = kind {
        small.valid = valid;
        let ours = if valid { "refused" } else { "accepted" };
        ours.clone_into(&mut small.ours);
    }
    small
}
