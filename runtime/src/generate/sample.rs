//! Independent sequences, and the best of them.

use std::ops::ControlFlow;

use super::{
    draw::Workspace,
    error::GenerateError,
    guide::Shared,
    result::{FinishReason, Piece},
    sequence::Sequence,
};
use crate::{
    interrupt::{self, Interrupt},
    pipeline::Pipeline,
};

/// Who receives text, and may ask to stop.
pub(super) type Receiver<'a> = dyn FnMut(Piece<'_>) -> ControlFlow<()> + 'a;

/// Runs something that the request's interrupt may break off; none if it did.
pub(super) fn unless_interrupted<T>(
    shared: &Shared<'_>,
    work: impl FnOnce() -> Result<T, GenerateError>,
) -> Result<Option<T>, GenerateError> {
    unless(shared.request.interrupt.as_ref(), work)
}

/// Runs something that an interrupt may break off; none if it did.
pub(super) fn unless<T>(
    interrupt: Option<&Interrupt>,
    work: impl FnOnce() -> Result<T, GenerateError>,
) -> Result<Option<T>, GenerateError> {
    let Some(interrupt) = interrupt else { return work().map(Some) };
    let result = interrupt.run(|| {
        if interrupt::check().is_err() { Ok(None) } else { work().map(Some) }
    });
    // Broken off: an error that came of it is none.
    result.unwrap_or(Ok(None))
}

/// Writes sequences side by side until each has ended. Those that have give
/// back what the model remembers of them at once.
///
/// Sequence `i` is drawn by pipeline `i`. Text is handed over as it comes if
/// `is_streamed`.
pub(super) fn run(
    sequences: &mut [Sequence],
    pipelines: &[Pipeline],
    shared: &Shared<'_>,
    is_streamed: bool,
    receive: &mut Receiver<'_>,
) -> Result<(), GenerateError> {
    let mut work = Workspace::default();
    let mut is_first = true;
    loop {
        let taken = take(sequences, pipelines, shared, &mut work, is_first)?;
        is_first = false;
        let mut is_cancelled = taken.is_none();
        if is_streamed && !is_cancelled {
            is_cancelled = hand_over(sequences, receive).is_break();
        }
        if is_cancelled {
            cancel(sequences);
            return Ok(());
        }
        let mut hungry: Vec<&mut Sequence> =
            sequences.iter_mut().filter(|one| one.is_hungry()).collect();
        Sequence::feed(&mut hungry, shared)?;
        // The first is what the next request may go on from.
        for sequence in sequences.iter_mut().skip(1) {
            if sequence.finish.is_some() {
                sequence.release();
            }
        }
        if sequences.iter().all(|one| one.finish.is_some()) {
            return Ok(());
        }
    }
}

/// Takes a token for each sequence that goes on, unless it is the first round,
/// and what needs no choice; none if the request's interrupt broke it off.
pub(super) fn take(
    sequences: &mut [Sequence],
    pipelines: &[Pipeline],
    shared: &Shared<'_>,
    work: &mut Workspace,
    is_first: bool,
) -> Result<Option<()>, GenerateError> {
    let is_forcing = shared.request.boundaries.forced;
    unless_interrupted(shared, || {
        for (sequence, pipeline) in sequences.iter_mut().zip(pipelines) {
            // What a pass that failed has not read comes first.
            if sequence.finish.is_some() || sequence.is_hungry() {
                continue;
            }
            if !is_first {
                sequence.draw(shared, pipeline, work)?;
            }
            sequence.settle(shared, is_forcing)?;
        }
        Ok(())
    })
}

/// Hands over what is new of each sequence.
fn hand_over(
    sequences: &mut [Sequence],
    receive: &mut Receiver<'_>,
) -> ControlFlow<()> {
    for (index, sequence) in sequences.iter_mut().enumerate() {
        if let Some(text) = sequence.writer.piece(false) {
            receive(Piece { sequence: index, text })?;
        }
    }
    ControlFlow::Continue(())
}

fn cancel(sequences: &mut [Sequence]) {
    for sequence in sequences {
        sequence.finish.get_or_insert(FinishReason::Cancelled);
        sequence.release();
    }
}

/// Puts the sequences with the greatest mean log-probability first, whole
/// ones before those that were cut off.
pub(super) fn rank(sequences: &mut [Sequence], shared: &Shared<'_>) {
    for sequence in &mut *sequences {
        let trace = &mut sequence.trace;
        let n = u32::try_from(trace.n_scored).unwrap_or(u32::MAX);
        let mean = |sum: f64| sum / f64::from(n.max(1));
        trace.score = trace.log_probability.map(mean);
    }
    sequences.sort_by(|a, b| {
        let score =
            |one: &Sequence| one.trace.score.unwrap_or(f64::NEG_INFINITY);
        let whole = b.is_whole(shared).cmp(&a.is_whole(shared));
        whole.then_with(|| score(b).total_cmp(&score(a)))
    });
}
