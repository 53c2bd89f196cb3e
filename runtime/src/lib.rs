//! Constrained decoding: from grammars to token masks.
#![deny(unsafe_code)]

pub mod vocabulary;
