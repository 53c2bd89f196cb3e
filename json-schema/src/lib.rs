//! JSON Schema as a lazily built pushdown automaton.
#![forbid(unsafe_code)]
