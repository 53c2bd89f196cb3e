//! The text of one sequence on its way out: characters, stop strings, pieces.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{detokenise::Detokeniser, stop::StopSet};

/// When text is handed over.
///
/// Whatever has gathered is handed over at the end, and earlier as soon as
/// one of the conditions is met after a token. With neither, which is the
/// default, every token is handed over as it comes.
///
/// Whole characters only, and nothing that could still become part of a stop
/// string.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Flush {
    /// When this many bytes have gathered.
    pub bytes: Option<usize>,
    /// When this much time has passed since the last piece.
    pub time: Option<Duration>,
}

impl Flush {
    fn is_due(self, n_bytes: usize, since: Instant) -> bool {
        if self.bytes.is_none() && self.time.is_none() {
            return true;
        }
        self.bytes.is_some_and(|limit| n_bytes >= limit)
            || self.time.is_some_and(|limit| since.elapsed() >= limit)
    }
}

/// The text of one sequence, and how much of it is out.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    text: String,
    detokeniser: Detokeniser,
    stops: Arc<StopSet>,
    /// The state of `stops` after all of `text`.
    state: usize,
    /// The stop string that was found, by its index.
    stopped_by: Option<usize>,
    includes_stop: bool,
    flush: Flush,
    last_flush: Instant,
    n_emitted: usize,
}

impl Writer {
    pub(super) fn new(
        stops: Arc<StopSet>,
        includes_stop: bool,
        flush: Flush,
    ) -> Writer {
        Writer {
            text: String::new(),
            detokeniser: Detokeniser::new(),
            stops,
            state: StopSet::START,
            stopped_by: None,
            includes_stop,
            flush,
            last_flush: Instant::now(),
            n_emitted: 0,
        }
    }

    /// Takes the bytes of a token, and returns true if they complete a stop
    /// string. The text ends there, and nothing more is taken.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        if self.stopped_by.is_none() {
            let n_read = self.text.len();
            self.detokeniser.push(bytes, &mut self.text);
            self.scan(n_read);
        }
        self.stopped_by.is_some()
    }

    /// Ends the text: half a character becomes U+FFFD.
    pub(super) fn finish(&mut self) {
        if self.stopped_by.is_none() {
            let n_read = self.text.len();
            self.detokeniser.finish(&mut self.text);
            self.scan(n_read);
        }
    }

    fn scan(&mut self, n_read: usize) {
        for (index, &byte) in
            self.text.as_bytes().iter().enumerate().skip(n_read)
        {
            self.state = self.stops.step(self.state, byte);
            if let Some((stop, length)) = self.stops.found(self.state) {
                let end = index + 1;
                let cut = if self.includes_stop { end } else { end - length };
                self.text.truncate(cut);
                self.detokeniser = Detokeniser::new();
                self.stopped_by = Some(stop);
                return;
            }
        }
    }

    /// Returns the index of the stop string that was found.
    pub(super) fn stopped_by(&self) -> Option<usize> {
        self.stopped_by
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Returns the text that is to be handed over now, if any; at the end
    /// all that is left.
    pub(super) fn piece(&mut self, is_end: bool) -> Option<&str> {
        let is_final = is_end || self.stopped_by.is_some();
        let held = if is_final { 0 } else { self.stops.held_back(self.state) };
        let until = self.text.len() - held;
        let n_new = until.checked_sub(self.n_emitted).filter(|&n| n > 0)?;
        if !is_final && !self.flush.is_due(n_new, self.last_flush) {
            return None;
        }
        let from = std::mem::replace(&mut self.n_emitted, until);
        self.last_flush = Instant::now();
        Some(&self.text[from..until])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However the bytes are cut, the pieces joined are the text, nothing
        /// of a stop string is in them, and the text is the same.
        #[test]
        fn pieces_joined_are_the_text_up_to_the_first_stop(
            bytes in prop::collection::vec(
                prop::sample::select(&b"ab<\xe1\xbb\x9f\xff"[..]), 0..40),
            cut in 1_usize..5,
            stops in prop::collection::vec("[ab<ở]{1,3}", 0..4),
            includes_stop: bool,
            flush in prop::option::of(0_usize..6),
        ) {
            let flush = Flush { bytes: flush, time: None };
            let run = |cut: usize| {
                let set = Arc::new(StopSet::new(&stops));
                let mut writer = Writer::new(set, includes_stop, flush);
                let mut pieces = String::new();
                for token in bytes.chunks(cut) {
                    let is_stopped = writer.push(token);
                    pieces.push_str(writer.piece(false).unwrap_or_default());
                    if is_stopped {
                        break;
                    }
                }
                writer.finish();
                pieces.push_str(writer.piece(true).unwrap_or_default());
                (pieces, writer.stopped_by(), writer.take_text())
            };
            let (pieces, stopped_by, text) = run(cut);
            prop_assert_eq!(&pieces, &text);
            prop_assert_eq!((&pieces, stopped_by), {
                let whole = run(100);
                (&whole.0.clone(), whole.1)
            });
            let contained = |stop: &String| text.contains(stop.as_str());
            if !includes_stop {
                prop_assert!(!stops.iter().any(contained));
            }
            let whole = String::from_utf8_lossy(&bytes);
            prop_assert_eq!(
                stopped_by.is_some(),
                stops.iter().any(|stop| whole.contains(stop.as_str()))
            );
            prop_assert!(whole.starts_with(&text));
        }
    }
}
