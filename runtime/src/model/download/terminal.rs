//! Progress for people: a bar on a terminal, plain lines elsewhere.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Progress;

/// Shows progress on the standard error stream: a bar if that is a terminal,
/// a line for every tenth otherwise.
pub struct TerminalProgress {
    is_terminal: bool,
    state: Mutex<Transfer>,
}

#[derive(Default)]
struct Transfer {
    bar: Option<ProgressBar>,
    what: String,
    total: u64,
    /// The last tenth for which a line was written.
    tenths: u64,
}

impl TerminalProgress {
    /// Creates a progress display on the standard error stream.
    pub fn stderr() -> TerminalProgress {
        TerminalProgress {
            is_terminal: io::stderr().is_terminal(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, Transfer> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a line. A closed stream must not end a download.
fn write_line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

const MEBIBYTE: u64 = 1 << 20;

impl Progress for TerminalProgress {
    fn note(&self, text: &str) {
        match &self.state().bar {
            Some(bar) => bar.suspend(|| write_line(text)),
            None => write_line(text),
        }
    }

    fn start(&self, what: &str, total: u64) {
        let mut state = self.state();
        *state =
            Transfer { what: what.to_owned(), total, ..Default::default() };
        if self.is_terminal {
            let bar = ProgressBar::with_draw_target(
                Some(total),
                ProgressDrawTarget::stderr(),
            );
            let template = "{msg} [{bar:30}] {bytes}/{total_bytes} {eta}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_message(what.to_owned());
            state.bar = Some(bar);
        } else {
            write_line(&format!("{what}: {} MiB", total / MEBIBYTE));
        }
    }

    fn advance(&self, position: u64) {
        let mut state = self.state();
        if let Some(bar) = &state.bar {
            bar.set_position(position);
            return;
        }
        let tenths = position.saturating_mul(10) / state.total.max(1);
        if tenths > state.tenths && tenths <= 10 {
            state.tenths = tenths;
            let (what, total) = (&state.what, state.total / MEBIBYTE);
            write_line(&format!(
                "{what}: {}0 % ({} of {total} MiB)",
                tenths,
                position / MEBIBYTE
            ));
        }
    }

    fn finish(&self) {
        if let Some(bar) = self.state().bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl fmt::Debug for TerminalProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalProgress")
            .field("is_terminal", &self.is_terminal)
            .finish_non_exhaustive()
    }
}
