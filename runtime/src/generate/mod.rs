//! From a prompt to text, under a grammar or free.
//!
//! A [`Generator`] runs requests: mask, pipeline, token, until the model or
//! the grammar ends, within the limit on tokens. Its parts know no grammar: a
//! [`Session`] is one sequence on one model; a [`ChatTemplate`] turns messages
//! into the prompt that the model was trained on; a [`Detokeniser`] turns the
//! bytes of tokens into text as they come.

mod chat;
mod detokenise;
mod generator;
mod run;
mod session;
mod steer;
mod toy;

pub use chat::{ChatError, ChatTemplate, Message, Role};
pub use detokenise::Detokeniser;
pub use generator::{
    Encoder, FinishReason, GenerateError, Generation, Generator, Prompt,
    Request,
};
pub use session::Session;
