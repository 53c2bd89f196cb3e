//! The GBNF grammar notation.
#![forbid(unsafe_code)]
