//! Byte-level automata for constrained decoding.
//!
//! This crate knows bytes and never tokens: regular languages with
//! intersection and complement ([`regular`]), and the trait through which
//! every front end offers its pushdown machine ([`automaton`]). What may take
//! long can be broken off ([`interrupt`]).
#![forbid(unsafe_code)]

pub mod automaton;
pub mod grammar;
pub mod interrupt;
pub mod regular;
pub mod util;
