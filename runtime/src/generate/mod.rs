//! From a prompt to text, under a grammar or free.
//!
//! A [`Generator`] runs requests: mask, pipeline, token, until the model or
//! the grammar ends, within the limit on tokens. A [`Request`] says how many
//! sequences are written and which are returned ([`Search`]), what ends them
//! ([`Stop`]), and how text and tokens meet ([`Boundaries`]); a [`Generation`]
//! is one of them, with a record of each token if that was asked for.
//!
//! An [`Engine`] runs many requests side by side, which come and go.
//!
//! Its parts know no grammar: a [`Session`] is one sequence on one model; a
//! [`ChatTemplate`] turns messages into the prompt that the model was trained
//! on; a [`Detokeniser`] turns the bytes of tokens into text as they come.
//!
//! # Example
//!
//! ```
//! use maskwright::generate::{Beams, Generator, Prompt, Request, Search};
//! use maskwright::grammar::Grammar;
//! use maskwright::pipeline::SamplingOptions;
//!
//! let mut generator = Generator::toy();
//! let grammar = Grammar::from_choices(&["yes", "no", "perhaps"])?;
//! let request = Request {
//!     prompt: Prompt::Text("Is it?".to_owned()),
//!     grammar: Some(generator.compile(&grammar)?),
//!     sampling: SamplingOptions::greedy(),
//!     search: Search::Beams(Beams { width: 3, n: 3, ..Beams::default() }),
//!     ..Request::default()
//! };
//! let found = generator
//!     .generate_all(&request, &mut |_| std::ops::ControlFlow::Continue(()))?;
//! let mut texts: Vec<&str> = found.iter().map(|it| &it.text[..]).collect();
//! texts.sort_unstable();
//! assert_eq!(texts, ["no", "perhaps", "yes"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod beam;
mod chat;
mod context;
mod detokenise;
mod draw;
mod engine;
mod error;
mod fingerprint;
mod generator;
mod guide;
mod heal;
mod record;
mod request;
mod result;
mod sample;
mod sequence;
mod session;
mod steer;
mod stop;
mod toy;
mod writer;

pub use chat::{ChatError, ChatTemplate, Message, Role};
pub use detokenise::Detokeniser;
pub use engine::{CacheUse, Engine, EngineOptions, Event, RequestId};
pub use error::GenerateError;
pub use fingerprint::Fingerprint;
pub use generator::{Encoder, Generator};
pub use request::{
    Beams, Boundaries, EarlyStopping, LengthPenalty, Prompt, Request, Search,
    Stop, sample_seed,
};
pub use result::{
    FinishReason, Generation, Origin, Phases, Piece, TokenTrace, Trace,
};
pub use session::Session;
pub use writer::Flush;
