//! From a prompt to text: the parts that know no grammar.
//!
//! A [`Session`] is one sequence on one model; a [`ChatTemplate`] turns
//! messages into the prompt that the model was trained on; a [`Detokeniser`]
//! turns the bytes of tokens into text as they come.

mod chat;
mod detokenise;
mod session;

pub use chat::{ChatError, ChatTemplate, Message, Role};
pub use detokenise::Detokeniser;
pub use session::Session;
