//! A page that shows a run token by token.
//!
//! A [`TracePage`] displays as one HTML page that needs nothing else: no
//! file, no network. It has the text with each token a link, and for each
//! token how likely it was before and after the mask, what the mask forbade
//! and how much that was, how the token came about, and what the grammar was
//! reading. What is forced stands together.
//!
//! The sequences need records: set
//! [`Request::logprobs`](crate::generate::Request::logprobs), to five or so.
//!
//! # Example
//!
//! ```
//! use maskwright::generate::{Generator, Prompt, Request};
//! use maskwright::grammar::Grammar;
//! use maskwright::trace_page::TracePage;
//!
//! let mut generator = Generator::toy();
//! let grammar = Grammar::from_choices(&["</script>", "no"])?;
//! let request = Request {
//!     prompt: Prompt::Text("Is it?".to_owned()),
//!     grammar: Some(generator.compile(&grammar)?),
//!     logprobs: Some(5),
//!     ..Request::default()
//! };
//! let sequences = generator
//!     .generate_all(&request, &mut |_| std::ops::ControlFlow::Continue(()))?;
//! let page = TracePage {
//!     title: "Yes or no",
//!     prompt: &request.prompt,
//!     vocabulary: generator.vocabulary(),
//!     sequences: &sequences,
//! };
//! let html = page.to_string();
//! assert!(html.starts_with("<!doctype html>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Why it is safe to open
//!
//! A model may write anything, `</script>` too. Whatever came from outside
//! goes through one function, which leaves no character that HTML or a
//! terminal would act on; the only script is a constant, and the page's own
//! policy lets it load nothing.

mod escape;
mod page;
mod step;

#[cfg(test)]
mod tests;

pub use page::TracePage;
