//! Beam search.
//!
//! A beam is a [`Sequence`]: it has its own matcher and its own fork of what
//! the model remembers, so that whatever may be forbidden is forbidden to each
//! by itself. A step looks at what may follow each of them, follows the
//! strongest, and has the model read them in one pass.
//!
//! # Beams that run ahead
//!
//! What a grammar forces is read in one pass, so that a beam may have more
//! tokens than another. Their scores would not be comparable then. So a beam
//! that ran ahead *lags*: the scores of the tokens it took wait, and are
//! counted one a step, as if it had taken them one by one. The same goes for
//! the end of a text after which nothing is allowed.

use std::{cmp::Ordering, collections::BinaryHeap};

use super::{
    draw::Workspace,
    error::GenerateError,
    guide::{Shared, Taken},
    request::{Beams, EarlyStopping},
    result::{FinishReason, Origin},
    sample::unless_interrupted,
    sequence::Sequence,
};
use crate::{
    mask::TokenMask,
    pipeline::{Candidate, Pipeline, PipelineError, log_sum_exp, uniform_at},
    vocabulary::TokenId,
};

/// A beginning that is followed.
struct Beam {
    sequence: Sequence,
    /// What the tokens that count so far sum up to, and how many these are.
    sum: f64,
    length: usize,
    /// How many of the sequence's log-probabilities count so far.
    n_counted: usize,
}

impl Beam {
    /// Returns the log-probability that counts next, if the beam lags.
    fn lag(&self) -> Option<f64> {
        self.sequence.trace.logs.get(self.n_counted).copied()
    }

    /// Whether its text has ended, and all of it counts.
    fn is_done(&self) -> bool {
        self.sequence.finish.is_some() && self.lag().is_none()
    }
}

/// A way in which a beam may go on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Way {
    beam: usize,
    /// The token; none if the beam lags.
    token: Option<TokenId>,
    /// What the beam's sum becomes.
    sum: f64,
}

impl Eq for Way {}

/// The strongest is the greatest; among equals the first beam, then the
/// lowest id.
impl Ord for Way {
    fn cmp(&self, other: &Way) -> Ordering {
        self.sum
            .total_cmp(&other.sum)
            .then_with(|| other.beam.cmp(&self.beam))
            .then_with(|| other.token.cmp(&self.token))
    }
}

impl PartialOrd for Way {
    fn partial_cmp(&self, other: &Way) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A search that is running.
struct Search<'a> {
    beams: Beams,
    pipeline: &'a Pipeline,
    shared: &'a Shared<'a>,
    live: Vec<Beam>,
    /// Whole texts, best first.
    done: Vec<(f64, Sequence)>,
    /// Texts that were cut off.
    cut: Vec<(f64, Sequence)>,
    work: Workspace,
    n_steps: u64,
}

/// Searches, and returns the sequences in the order of their scores: whole
/// texts first.
pub(super) fn run(
    first: Sequence,
    beams: Beams,
    pipeline: &Pipeline,
    shared: &Shared<'_>,
) -> Result<Vec<Sequence>, GenerateError> {
    let mut search = Search {
        beams,
        pipeline,
        shared,
        live: Vec::new(),
        done: Vec::new(),
        cut: Vec::new(),
        work: Workspace::default(),
        n_steps: 0,
    };
    let start = Beam { sequence: first, sum: 0.0, length: 0, n_counted: 0 };
    search.live.push(start);
    loop {
        let advanced = unless_interrupted(shared, || search.advance())?;
        if advanced.is_some() && search.is_over() {
            let found = search.finish(false);
            let is_none = found.is_empty();
            return if is_none {
                Err(GenerateError::NoBeam)
            } else {
                Ok(found)
            };
        }
        let stepped = match advanced {
            Some(()) => unless_interrupted(shared, || search.step())?,
            None => None,
        };
        if stepped.is_none() {
            return Ok(search.finish(true));
        }
    }
}

impl Search<'_> {
    fn score(&self, beam: &Beam) -> f64 {
        self.beams.length_penalty.score(beam.sum, beam.length)
    }

    /// Has the model read what the beams took, and ends those that have come
    /// to an end.
    fn advance(&mut self) -> Result<(), GenerateError> {
        let is_forcing = self.shared.request.boundaries.forced;
        for beam in &mut self.live {
            // What runs ahead has been settled and read.
            if beam.lag().is_none() {
                beam.sequence.settle(self.shared, is_forcing)?;
            }
        }
        // The parents are gone, so that what only one child has is not copied.
        let mut hungry: Vec<&mut Sequence> = self
            .live
            .iter_mut()
            .map(|beam| &mut beam.sequence)
            .filter(|one| one.is_hungry())
            .collect();
        Sequence::feed(&mut hungry, self.shared)?;
        let is_done = |beam: &mut Beam| beam.is_done();
        let done: Vec<Beam> = self.live.extract_if(.., is_done).collect();
        for beam in done {
            self.end(beam);
        }
        Ok(())
    }

    fn end(&mut self, beam: Beam) {
        let score = self.score(&beam);
        let mut sequence = beam.sequence;
        sequence.trace.score = Some(score);
        sequence.release();
        let is_cut = sequence.finish == Some(FinishReason::Length);
        let list = if is_cut { &mut self.cut } else { &mut self.done };
        let place = list.partition_point(|(other, _)| *other >= score);
        list.insert(place, (score, sequence));
        list.truncate(self.beams.width);
    }

    /// Whether nothing better can come, as far as was asked.
    fn is_over(&self) -> bool {
        if self.live.is_empty() {
            return true;
        }
        let worst = match self.done.last() {
            Some((worst, _)) if self.done.len() >= self.beams.width => *worst,
            _ => return false,
        };
        let limit = self.shared.request.max_tokens.min(self.shared.context);
        let penalty = self.beams.length_penalty;
        let best = self.live.iter().map(|beam| {
            let score = |length| penalty.score(beam.sum, length);
            match self.beams.early_stopping {
                EarlyStopping::Yes => f64::NEG_INFINITY,
                EarlyStopping::No => self.score(beam),
                EarlyStopping::Never => {
                    score(beam.length + 1).max(score(limit.saturating_add(1)))
                }
            }
        });
        best.fold(f64::NEG_INFINITY, f64::max) <= worst
    }

    /// Goes the ways that lead on, and makes the live beams those that went
    /// them.
    fn step(&mut self) -> Result<(), GenerateError> {
        let mut ways = self.ways()?;
        if ways.is_empty() && self.shared.request.boundaries.canonical {
            for beam in &mut self.live {
                beam.sequence.guide.is_lenient = true;
            }
            ways = self.ways()?;
        }
        if ways.is_empty() && self.done.is_empty() && self.cut.is_empty() {
            ways = self.planned()?;
        }
        self.n_steps += 1;
        let mut children = Vec::new();
        for (rank, way) in ways.into_iter().enumerate() {
            let child = self.child(way)?;
            if !child.is_done() {
                children.push(child);
            } else if rank < self.beams.width {
                self.end(child);
            }
            if children.len() == self.beams.width {
                break;
            }
        }
        self.live = children;
        Ok(())
    }

    /// Returns the beam that goes a way.
    fn child(&mut self, way: Way) -> Result<Beam, GenerateError> {
        let parent = &mut self.live[way.beam];
        let Some(token) = way.token else {
            let n_counted = parent.n_counted + 1;
            let length = parent.length + 1;
            let sequence = parent.sequence.branch_with_logits();
            return Ok(Beam { sequence, sum: way.sum, length, n_counted });
        };
        let mut sequence = parent.sequence.branch();
        let n_tail = sequence.guide.n_tail();
        let mut taking =
            parent.sequence.taking(self.shared, token, Origin::Chosen)?;
        taking.token = token;
        sequence.guide.take(self.shared, &parent.sequence.history, token)?;
        sequence.trace.n_not_canonical +=
            usize::from(sequence.guide.is_lenient);
        sequence.guide.is_lenient = false;
        let row = parent.sequence.logits()?;
        sequence.write_chosen(self.shared, taking, Some(row), n_tail);
        let n_counted = sequence.trace.logs.len();
        let length = parent.length + 1;
        Ok(Beam { sequence, sum: way.sum, length, n_counted })
    }

    /// Returns the ways that are looked at in this step, strongest first.
    fn ways(&mut self) -> Result<Vec<Way>, GenerateError> {
        let n_ends = self.shared.vocabulary().end_tokens().len();
        let n_looked_at = self.beams.width.saturating_mul((1 + n_ends).max(2));
        let mut all = Vec::new();
        let mut first_error = None;
        for index in 0..self.live.len() {
            let beam = &self.live[index];
            if let Some(log) = beam.lag() {
                let sum = beam.sum + log;
                all.push(Way { beam: index, token: None, sum });
                continue;
            }
            let sum = beam.sum;
            match self.followers(index) {
                Ok(followers) => {
                    all.extend(followers.into_iter().map(|one| Way {
                        beam: index,
                        token: Some(one.token),
                        sum: sum + f64::from(one.logit),
                    }));
                }
                Err(GenerateError::Pipeline(
                    error @ PipelineError::NoTokenLeft { .. },
                )) => {
                    first_error.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        let has_none =
            all.is_empty() && self.done.is_empty() && self.cut.is_empty();
        if let Some(error) = first_error.filter(|_| has_none) {
            return Err(error.into());
        }
        if self.beams.sampled {
            self.drawn(all, n_looked_at)
        } else {
            self.strongest(all, n_looked_at)
        }
    }

    /// Returns the ways that always lead to the end in time, for when the
    /// stages leave no other that does.
    fn planned(&mut self) -> Result<Vec<Way>, GenerateError> {
        let mut ways = Vec::new();
        for (index, beam) in self.live.iter().enumerate() {
            let Some(token) = beam.sequence.guide.first_of_plan() else {
                continue;
            };
            let logits = beam.sequence.logits()?;
            let logit = logits.get(token.index()).copied();
            let logit = logit.unwrap_or(f32::NEG_INFINITY);
            let log = f64::from(logit) - log_sum_exp(logits);
            let sum = beam.sum + log;
            ways.push(Way { beam: index, token: Some(token), sum });
        }
        ways.sort_by(|a, b| b.cmp(a));
        Ok(ways)
    }

    /// Returns the tokens that may follow a beam, with their scores.
    fn followers(
        &mut self,
        index: usize,
    ) -> Result<Vec<Candidate>, GenerateError> {
        let sequence = &mut self.live[index].sequence;
        let mask: Option<TokenMask> = sequence.guide.allowed(self.shared)?;
        let Workspace { row, scratch, .. } = &mut self.work;
        let logits = sequence.logits()?;
        let total = log_sum_exp(logits);
        row.clear();
        #[expect(clippy::cast_possible_truncation, reason = "logits are f32")]
        let log = |logit: f32| (f64::from(logit) - total) as f32;
        row.extend(logits.iter().map(|&logit| log(logit)));
        let step = sequence.step(mask.as_ref(), 0);
        Ok(self.pipeline.survivors(row, &step, scratch)?)
    }

    fn is_taken(&mut self, way: Way) -> Result<bool, GenerateError> {
        let Some(token) = way.token else { return Ok(true) };
        let Sequence { guide, history, .. } =
            &mut self.live[way.beam].sequence;
        if !guide.is_choosy(self.shared) {
            return Ok(true);
        }
        Ok(guide.would_take(self.shared, history, token)? == Taken::Yes)
    }

    fn strongest(
        &mut self,
        all: Vec<Way>,
        n: usize,
    ) -> Result<Vec<Way>, GenerateError> {
        let mut heap = BinaryHeap::from(all);
        let mut found = Vec::new();
        while found.len() < n
            && let Some(way) = heap.pop()
        {
            if self.is_taken(way)? {
                found.push(way);
            }
        }
        Ok(found)
    }

    /// Draws ways without replacement.
    fn drawn(
        &mut self,
        mut all: Vec<Way>,
        n: usize,
    ) -> Result<Vec<Way>, GenerateError> {
        let seed = self.shared.request.sampling.seed;
        let sums = all.iter().map(|way| way.sum);
        let greatest = sums.fold(f64::NEG_INFINITY, f64::max);
        let mut weights: Vec<f64> =
            all.iter().map(|way| (way.sum - greatest).exp()).collect();
        let mut found = Vec::new();
        let mut attempt = 0;
        while found.len() < n && !all.is_empty() {
            let total: f64 = weights.iter().sum();
            let target = total * uniform_at(seed, self.n_steps, attempt);
            attempt += 1;
            let mut mass = 0.0;
            let place = weights.iter().position(|weight| {
                mass += weight;
                mass > target
            });
            // Rounding may have put the target beyond all.
            let place = place.unwrap_or(all.len() - 1);
            weights.swap_remove(place);
            let way = all.swap_remove(place);
            if self.is_taken(way)? {
                found.push(way);
            }
        }
        found.sort_by(|a, b| b.cmp(a));
        Ok(found)
    }

    /// Returns what was found: whole texts, then those that were cut off,
    /// then those that were being written.
    fn finish(mut self, is_cancelled: bool) -> Vec<Sequence> {
        let mut found: Vec<Sequence> = self
            .done
            .drain(..)
            .chain(self.cut.drain(..))
            .map(|it| it.1)
            .collect();
        if is_cancelled {
            let mut live: Vec<Beam> = self.live.drain(..).collect();
            live.sort_by(|a, b| self.score(b).total_cmp(&self.score(a)));
            for beam in live {
                let score = self.score(&beam);
                let mut sequence = beam.sequence;
                sequence.trace.score = Some(score);
                sequence.finish.get_or_insert(FinishReason::Cancelled);
                sequence.release();
                found.push(sequence);
            }
        }
        found.truncate(self.beams.n);
        found
    }
}
