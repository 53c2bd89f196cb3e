//! What a result depends on, so that two of them can be compared.

use sha2::{Digest, Sha256};

use super::request::Request;
use crate::model::to_hex;

/// What a result depends on beside prompt, grammar and seed.
///
/// Where two fingerprints are equal, the same request gives the same tokens,
/// whatever ran beside it and on however many threads.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fingerprint {
    /// The digest of the model's files
    /// ([`content_digest`](crate::model::content_digest)); nothing for a
    /// model that came from no file.
    pub model: Option<String>,
    /// What computes with what
    /// ([`Model::describe`](crate::model::Model::describe)).
    pub computation: String,
    /// The version of Maskwright.
    pub version: &'static str,
    /// A digest of the request's options.
    pub options: String,
}

/// Returns the digest of what a request asks for beside prompt and grammar.
pub(super) fn options_digest(request: &Request) -> String {
    let Request {
        prompt: _,
        grammar: _,
        max_tokens,
        sampling,
        finish_within_budget,
        search,
        stop,
        // When text is handed over, and how far it is recorded or broken
        // off, is not what it is.
        flush: _,
        boundaries,
        logprobs: _,
        interrupt: _,
    } = request;
    let text = format!(
        "{max_tokens} {sampling:?} {finish_within_budget} {search:?} \
         {stop:?} {boundaries:?}"
    );
    to_hex(&Sha256::digest(text))
}
