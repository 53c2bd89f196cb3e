//! What several of the programs do.
#![allow(dead_code, reason = "none of them does all of it")]

use std::thread;

use indicatif::{ProgressBar, ProgressStyle};

/// The judge recurses.
const STACK_BYTES: usize = 256 << 20;

/// A bar for `n` steps.
pub(crate) fn bar(n: u64) -> ProgressBar {
    let style = "{wide_bar} {pos} of {len}, {eta} left";
    let style = ProgressStyle::with_template(style).expect("a template");
    ProgressBar::new(n).with_style(style)
}

/// Runs what asks the judge.
pub(crate) fn on_deep_stack(run: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(run);
    thread.expect("a thread").join().expect("it ends well");
}
