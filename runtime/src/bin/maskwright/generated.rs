//! What `generate` prints of a sequence for machines.

use std::time::Duration;

use maskwright::{
    generate::{Fingerprint, Generation, TokenTrace},
    vocabulary::{TokenId, Vocabulary},
};
use serde_json::{Value, json};

use crate::extract::millis;

/// Returns the line of a sequence.
pub(crate) fn line(
    sequence: usize,
    made: &Generation,
    vocabulary: &Vocabulary,
    warnings: &[String],
) -> Value {
    let trace = &made.trace;
    let mut line = json!({
        "sequence": sequence,
        "text": made.text,
        "tokens": made.tokens.iter().map(|t| t.0).collect::<Vec<_>>(),
        "finish_reason": made.finish_reason.name(),
        "stop_string": made.stop_string,
        "complete": made.is_complete(),
        "prompt_tokens": made.n_prompt,
        "output_tokens": made.tokens.len(),
        "forced_tokens": made.n_forced,
        "steered_tokens": made.n_steered,
        "yielded_tokens": made.n_yielded,
        "healed_tokens": trace.n_healed,
        "not_canonical_tokens": trace.n_not_canonical,
        "log_probability": trace.log_probability,
        "scored_tokens": trace.n_scored,
        "score": trace.score,
        "prompt_ms": millis(made.prompt_time),
        "decode_ms": millis(made.decode_time),
        "phases_ms": {
            "forward": exact_millis(trace.phases.forward),
            "mask": exact_millis(trace.phases.mask),
            "choice": exact_millis(trace.phases.choice),
            "observe": exact_millis(trace.phases.observe),
            "plan": exact_millis(made.plan_time),
        },
        "warnings": warnings,
    });
    let steps = trace.steps.iter().map(|step| record(step, vocabulary));
    let steps: Vec<Value> = steps.collect();
    if !steps.is_empty() || trace.end.is_some() {
        line["logprobs"] = Value::Array(steps);
        line["end_logprobs"] = trace
            .end
            .as_ref()
            .map_or(Value::Null, |end| record(end, vocabulary));
    }
    line
}

/// Returns what the result depends on beside prompt, grammar and seed.
pub(crate) fn fingerprint(fingerprint: &Fingerprint) -> Value {
    json!({
        "model": fingerprint.model,
        "computation": fingerprint.computation,
        "version": fingerprint.version,
        "options": fingerprint.options,
    })
}

/// Returns the record of a token.
fn record(step: &TokenTrace, vocabulary: &Vocabulary) -> Value {
    let list = |tokens: &[(TokenId, f64)]| -> Vec<Value> {
        let one = |&(token, log): &(TokenId, f64)| {
            json!({
                "token": token.0,
                "text": vocabulary.text(token),
                "logprob": log,
            })
        };
        tokens.iter().map(one).collect()
    };
    json!({
        "token": step.token.0,
        "text": vocabulary.text(step.token),
        "origin": step.origin.name(),
        "logprob": step.before,
        "masked_logprob": step.after,
        "removed_mass": step.removed_mass,
        "allowed_tokens": step.n_allowed,
        "likeliest": list(&step.likeliest),
        "likeliest_allowed": list(&step.allowed),
        "likeliest_forbidden": list(&step.forbidden),
        "place": step.place,
    })
}

fn exact_millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
