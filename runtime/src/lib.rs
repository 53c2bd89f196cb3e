//! Constrained decoding: from grammars to token masks.
#![deny(unsafe_code)]

pub mod batch;
#[cfg(feature = "generator")]
pub mod batch_extract;
pub mod budget;
pub mod check;
#[cfg(feature = "generator")]
pub mod classify;
pub mod compiled;
pub mod compiler;
#[cfg(feature = "generator")]
pub mod extract;
#[cfg(feature = "generator")]
pub mod generate;
pub mod grammar;
pub mod mask;
pub mod matcher;
#[cfg(feature = "generator")]
pub mod model;
pub mod pipeline;
pub mod precompute;
pub mod saved;
mod steps;
#[cfg(feature = "generator")]
pub mod trace_page;
pub mod vocabulary;
mod warm;

pub use maskwright_grammar_core::interrupt;
pub use maskwright_json_schema::convert;
