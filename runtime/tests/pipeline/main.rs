//! The decode pipeline: each stage and order against its definition, and the
//! command that shows what they do.

#[cfg(feature = "cli")]
mod command;
mod random;
mod stages;
