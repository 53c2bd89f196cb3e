//! What strangers may send: an answer each time, never an abort.
//!
//! What goes down into an input runs on threads whose stack is no larger than
//! 256 KiB, so that recursion on it would show.

mod deep;
mod grammars;
mod tokens;

use std::{panic::resume_unwind, thread};

const STACK_BYTES: usize = 256 << 10;

/// Does some work on a thread with a small stack.
fn on_a_small_stack<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> R {
    let thread = thread::Builder::new().stack_size(STACK_BYTES);
    let thread = thread.spawn(work).expect("a thread can be had");
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}
