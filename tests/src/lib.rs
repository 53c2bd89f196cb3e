//! The harness: corpus, vocabularies, walks and oracles.
//!
//! Cases live in `testdata/`, one JSON object a line; each `#[test]` runs all
//! of them through one configuration. An oracle decides what is right: the
//! verdicts written in the corpus, the `jsonschema` crate for instances, and
//! brute force over the vocabulary for masks.

pub mod convert;
pub mod corpus;
pub mod gbnf;
pub mod hostile;
pub mod judge;
pub mod maskbench;
pub mod mutate;
pub mod schemas;
pub mod scripted;
pub mod sentences;
pub mod shrink;
pub mod subject;
pub mod suite;
pub mod tokens;
pub mod verdicts;
pub mod vocabularies;
pub mod walk;
pub mod walks;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct ReadMe;

/// So is the loop for serving engines.
#[cfg(doctest)]
#[doc = include_str!("../../docs/serving.md")]
pub struct Serving;
