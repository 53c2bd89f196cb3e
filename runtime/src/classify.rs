//! One label of several, by the probability of whole labels.
//!
//! A label is more than its first token: `mixed` and `mistaken` may begin
//! alike, and a label that is a prefix of another is only meant if the answer
//! ends after it. [`classify`] scores each label by all of its tokens and the
//! end, so that the greatest probability wins, exactly.

use crate::generate::{GenerateError, Generator, Message, Prompt, Role};

/// A label and how probable it is among the labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The label.
    pub label: String,
    /// Its probability, given that the answer is one of the labels.
    pub probability: f64,
    /// The natural logarithm of its probability under the model, among all
    /// answers.
    pub log_probability: f64,
}

/// Scores each label for `text`, likeliest first; equal ones in the order in
/// which they were given. Duplicates count once.
///
/// # Errors
///
/// Fails when there are no labels, when a label is empty, and when the model
/// fails.
pub fn classify<S: AsRef<str>>(
    generator: &mut Generator,
    labels: &[S],
    text: &str,
) -> Result<Vec<Score>, ClassifyError> {
    classify_with(generator, labels, text, &ClassifyOptions::default())
}

/// How labels are scored.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ClassifyOptions {
    /// Whether a label with a space before it counts as the label, too: its
    /// probability is that of both spellings then. Off by default.
    pub leading_space: bool,
}

/// Does what [`classify`] does, with options.
///
/// # Errors
///
/// As [`classify`].
pub fn classify_with<S: AsRef<str>>(
    generator: &mut Generator,
    labels: &[S],
    text: &str,
    options: &ClassifyOptions,
) -> Result<Vec<Score>, ClassifyError> {
    let mut distinct: Vec<&str> = Vec::new();
    for label in labels.iter().map(AsRef::as_ref) {
        if label.is_empty() {
            return Err(ClassifyError::EmptyLabel);
        }
        if !distinct.contains(&label) {
            distinct.push(label);
        }
    }
    if distinct.is_empty() {
        return Err(ClassifyError::NoLabels);
    }
    let prompt = prompt(&distinct, text);
    let mut logs = generator.log_probabilities(&prompt, &distinct)?;
    if options.leading_space {
        let spaced: Vec<String> =
            distinct.iter().map(|label| format!(" {label}")).collect();
        let others = generator.log_probabilities(&prompt, &spaced)?;
        for (log, other) in logs.iter_mut().zip(others) {
            let greatest = log.max(other);
            if greatest > f64::NEG_INFINITY {
                let sum = (*log - greatest).exp() + (other - greatest).exp();
                *log = greatest + sum.ln();
            }
        }
    }
    let greatest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logs.iter().map(|log| (log - greatest).exp()).sum();
    let mut scores: Vec<Score> = distinct
        .iter()
        .zip(logs)
        .map(|(&label, log_probability)| Score {
            label: label.to_owned(),
            probability: (log_probability - greatest).exp() / total,
            log_probability,
        })
        .collect();
    scores.sort_by(|one, other| {
        other.log_probability.total_cmp(&one.log_probability)
    });
    Ok(scores)
}

/// The conversation in which a text is classified.
pub fn prompt(labels: &[&str], text: &str) -> Prompt {
    let labels = labels.join(", ");
    Prompt::Chat(vec![
        Message::new(
            Role::System,
            format!(
                "You classify texts. Answer with one of these labels and \
                 nothing else: {labels}."
            ),
        ),
        Message::new(Role::User, text),
    ])
}

/// An error that occurs while a text is classified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClassifyError {
    /// There is nothing to choose from.
    #[error("there are no labels to choose from; name at least one")]
    NoLabels,
    /// A label is the empty text.
    #[error("a label is empty; the end alone is no answer")]
    EmptyLabel,
    /// The model failed.
    #[error(transparent)]
    Generate(#[from] GenerateError),
}
