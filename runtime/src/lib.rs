//! Constrained decoding: from grammars to token masks.
#![deny(unsafe_code)]

pub mod pipeline;
pub mod vocabulary;
