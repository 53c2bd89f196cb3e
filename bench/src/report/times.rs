//! The times of one engine over some schemas, and of two over the same ones.

use serde_json::{Value, json};

use crate::clock::Span;
use crate::measure::{Compiled, Pass};
use crate::report::Column;
use crate::stats::Distribution;

/// Processor and wall times of masks, of masks with accepts, and of compiles.
#[derive(Debug)]
pub struct Times {
    /// Masks.
    pub mask: Distribution,
    /// Masks with the acceptance of the token.
    pub step: Distribution,
    /// Compile and first mask; the same in every pass.
    pub first: Distribution,
    /// Masks, on the wall clock.
    pub mask_wall: Distribution,
    step_wall: Distribution,
    first_wall: Distribution,
}

/// What a row of the tables is about.
pub const ROWS: [&str; 6] = [
    "mask",
    "mask + accept",
    "compile + first mask",
    "mask, wall",
    "mask + accept, wall",
    "compile + first mask, wall",
];

/// All rows.
pub const ALL_ROWS: [usize; 6] = [0, 1, 2, 3, 4, 5];

/// The rows of processor time.
pub const CPU_ROWS: [usize; 3] = [0, 1, 2];

/// The rows that differ from pass to pass, and the wall time of masks.
pub const MASK_ROWS: [usize; 3] = [0, 1, 3];

impl Times {
    /// The times of `pass` over the schemas; `reach` says how many masks of
    /// a test count, by the schema's index and the test's.
    pub fn new(
        schemas: &[&Compiled],
        pass: Pass,
        reach: impl Fn(usize, usize) -> usize,
    ) -> Times {
        let (mut masks, mut steps): (Vec<Span>, Vec<Span>) =
            Default::default();
        for (schema, compiled) in schemas.iter().enumerate() {
            for (test, run) in compiled.runs(pass).iter().enumerate() {
                let n_masks = reach(schema, test).min(run.masks.len());
                masks.extend(&run.masks[..n_masks]);
                steps.extend((0..n_masks).map(|index| run.step(index)));
            }
        }
        let firsts: Vec<Span> =
            schemas.iter().map(|one| one.to_first_mask()).collect();
        let cpu = |spans: &[Span]| {
            Distribution::new(spans.iter().map(|span| span.cpu))
        };
        let wall = |spans: &[Span]| {
            Distribution::new(spans.iter().map(|span| span.wall))
        };
        Times {
            mask: cpu(&masks),
            step: cpu(&steps),
            first: cpu(&firsts),
            mask_wall: wall(&masks),
            step_wall: wall(&steps),
            first_wall: wall(&firsts),
        }
    }

    /// The times of a pass over everything that the engine compiles, if that
    /// pass was made.
    pub fn alone(column: &Column, pass: Pass) -> Option<Times> {
        let times = Times::new(&column.all(), pass, |_, _| usize::MAX);
        (times.mask.len() > 0).then_some(times)
    }

    /// The times of one of [`ROWS`].
    pub fn row(&self, row: usize) -> &Distribution {
        match row {
            0 => &self.mask,
            1 => &self.step,
            2 => &self.first,
            3 => &self.mask_wall,
            4 => &self.step_wall,
            _ => &self.first_wall,
        }
    }
}

/// The schemas that two engines both compile.
#[derive(Debug)]
pub struct Pair<'a> {
    ours: Vec<&'a Compiled>,
    peer: Vec<&'a Compiled>,
}

/// The times of both engines over the same tokens.
#[derive(Debug)]
pub struct Both {
    /// Maskwright's.
    pub ours: Times,
    /// The other engine's.
    pub peer: Times,
    /// How many of our masks took longer than the peer's.
    pub slower: usize,
    /// How many took more than twice as long.
    pub twice: usize,
}

impl<'a> Pair<'a> {
    /// The schemas that compiled in both columns.
    pub fn new(ours: &'a Column, peer: &'a Column) -> Pair<'a> {
        let (ours, peer) = ours
            .outcomes
            .iter()
            .zip(&peer.outcomes)
            .filter_map(|(ours, peer)| {
                Some((ours.as_ref().ok()?, peer.as_ref().ok()?))
            })
            .unzip();
        Pair { ours, peer }
    }

    /// How many schemas there are.
    pub fn len(&self) -> usize {
        self.ours.len()
    }

    /// The times of a pass of ours and one of the peer's, over the tokens
    /// that both reached; none if either pass was not made.
    pub fn times(&self, our_pass: Pass, peer_pass: Pass) -> Option<Both> {
        let common = |schema: usize, test: usize| {
            let reached = |compiled: &Compiled, pass| {
                compiled.runs(pass).get(test).map_or(0, |run| run.masks.len())
            };
            reached(self.ours[schema], our_pass)
                .min(reached(self.peer[schema], peer_pass))
        };
        let ours = Times::new(&self.ours, our_pass, common);
        let peer = Times::new(&self.peer, peer_pass, common);
        let (slower, twice) = self.slower(our_pass, peer_pass);
        (ours.mask.len() > 0).then_some(Both { ours, peer, slower, twice })
    }

    fn slower(&self, our_pass: Pass, peer_pass: Pass) -> (usize, usize) {
        let (mut slower, mut twice) = (0, 0);
        for (ours, peer) in self.ours.iter().zip(&self.peer) {
            let runs = ours.runs(our_pass).iter().zip(peer.runs(peer_pass));
            for (ours, peer) in runs {
                for (ours, peer) in ours.masks.iter().zip(&peer.masks) {
                    slower += usize::from(ours.cpu > peer.cpu);
                    twice += usize::from(ours.cpu > 2 * peer.cpu);
                }
            }
        }
        (slower, twice)
    }
}

/// The peer's figures divided by ours, each with its name.
pub fn quotients(
    peer: &Distribution,
    ours: &Distribution,
) -> Vec<(&'static str, f64)> {
    let quotient = |peer: f64, ours: f64| {
        if ours > 0.0 { peer / ours } else { 0.0 }
    };
    peer.figures()
        .into_iter()
        .zip(ours.figures())
        .map(|((name, peer), (_, ours))| (name, quotient(peer, ours)))
        .collect()
}

/// [`quotients`] for the JSON line.
pub fn ratios(peer: &Distribution, ours: &Distribution) -> Value {
    Value::Object(quotients(peer, ours).into_iter().map(rounded).collect())
}

/// The figures of a distribution for the JSON line.
pub fn figures(times: &Distribution) -> Value {
    Value::Object(times.figures().into_iter().map(rounded).collect())
}

fn rounded((name, figure): (&'static str, f64)) -> (String, Value) {
    (name.to_owned(), json!((figure * 1000.0).round() / 1000.0))
}
