//! A row of logits to a token: our pipeline, with a mask and without, beside
//! the `LogitsProcessor` of candle-transformers, which knows no mask.
//!
//! Ours is given a slice and copies it, since it uses the row up; the peer is
//! given a tensor that is there already. Both draw: the tables show processor
//! time of all threads.

use candle_core::{Device, Tensor};
use candle_transformers::generation::{LogitsProcessor, Sampling};
use maskwright::pipeline::{
    History, Pipeline, SamplingOptions, Scratch, Step,
};

use crate::clock::process_nanos;

/// The width of Qwen2.5's logits.
const WIDTH: usize = 151_936;

/// How many rows there are, and how often each is sampled.
const N_ROWS: usize = 16;
const N_ROUNDS: usize = 8;

/// A generator of our own, so that the rows never change.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// A number that is about normally distributed.
    #[allow(clippy::cast_precision_loss, reason = "31 bits and a sum")]
    fn normal(&mut self) -> f32 {
        let sum: u64 = (0..12).map(|_| self.next() & 0xffff).sum();
        sum as f32 / 65_536.0 - 6.0
    }
}

/// Returns rows as models have them: most logits in a bell, a few far out,
/// rounded as bf16 rounds, so that there are ties.
fn rows() -> Vec<Vec<f32>> {
    let mut random = Random(7);
    let round = |logit: f32| f32::from_bits(logit.to_bits() & 0xffff_0000);
    let row = |_| {
        let mut row: Vec<f32> =
            (0..WIDTH).map(|_| round(random.normal() * 2.5)).collect();
        for rank in 0..40_u8 {
            let place = usize::try_from(random.next()).unwrap_or(0) % WIDTH;
            row[place] = round(22.0 - f32::from(rank) * 0.3);
        }
        row
    };
    (0..N_ROWS).map(row).collect()
}

/// Returns a mask that allows about one token in `sparsity`, and one in any
/// case.
fn mask(sparsity: u64) -> Vec<u64> {
    let mut random = Random(11);
    let mut words = vec![0_u64; WIDTH.div_ceil(64)];
    for token in 0..WIDTH {
        if token == 77 || random.next() % sparsity == 0 {
            words[token / 64] |= 1 << (token % 64);
        }
    }
    words
}

/// The parameters, as both sides have them.
struct Case {
    name: &'static str,
    temperature: f32,
    top_k: usize,
    top_p: f32,
}

const CASES: [Case; 5] = [
    Case { name: "greedy", temperature: 0.0, top_k: 0, top_p: 1.0 },
    Case { name: "T 0.7", temperature: 0.7, top_k: 0, top_p: 1.0 },
    Case { name: "T 0.7, top-k 20", temperature: 0.7, top_k: 20, top_p: 1.0 },
    Case { name: "T 0.7, top-p 0.8", temperature: 0.7, top_k: 0, top_p: 0.8 },
    Case {
        name: "T 0.7, top-k 20, top-p 0.8",
        temperature: 0.7,
        top_k: 20,
        top_p: 0.8,
    },
];

impl Case {
    fn pipeline(&self) -> Result<Pipeline, String> {
        let options = SamplingOptions {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            ..SamplingOptions::default()
        };
        options.build().map_err(|error| error.to_string())
    }

    fn peer(&self) -> LogitsProcessor {
        let temperature = f64::from(self.temperature);
        let (k, p) = (self.top_k, f64::from(self.top_p));
        let sampling = match (k, self.top_p < 1.0) {
            _ if self.temperature <= 0.0 => Sampling::ArgMax,
            (0, false) => Sampling::All { temperature },
            (0, true) => Sampling::TopP { p, temperature },
            (_, false) => Sampling::TopK { k, temperature },
            (_, true) => Sampling::TopKThenTopP { k, p, temperature },
        };
        LogitsProcessor::from_sampling(1, sampling)
    }
}

/// Returns the median of the microseconds that each call takes.
fn median(
    mut work: impl FnMut(usize) -> Result<(), String>,
) -> Result<f64, String> {
    let mut nanos = Vec::new();
    for round in 0..=N_ROUNDS {
        for row in 0..N_ROWS {
            let started = process_nanos();
            work(row)?;
            let took = process_nanos() - started;
            // The first round only warms up.
            if round > 0 {
                nanos.push(took);
            }
        }
    }
    nanos.sort_unstable();
    #[allow(clippy::cast_precision_loss, reason = "microseconds")]
    let median = nanos[nanos.len() / 2] as f64 / 1000.0;
    Ok(median)
}

/// Runs the command.
///
/// # Errors
///
/// What a pipeline or the peer refuses.
pub fn run() -> Result<(), String> {
    let rows = rows();
    let tensors: Vec<Tensor> = rows
        .iter()
        .map(|row| Tensor::from_slice(row, WIDTH, &Device::Cpu))
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    println!(
        "One token from {WIDTH} logits, µs of processor time, the median of \
         {} draws.\n",
        N_ROWS * N_ROUNDS
    );
    println!(
        "| parameters | candle, no mask | no mask | mask of 1 token | 1 in \
         1,000 | 1 in 2 | all |"
    );
    println!("|:--|--:|--:|--:|--:|--:|--:|");
    let history = History::default();
    let masks = [mask(u64::MAX), mask(1000), mask(2), mask(1)];
    for case in &CASES {
        let mut peer = case.peer();
        let theirs = median(|row| {
            let token = peer.sample(&tensors[row]);
            token.map(drop).map_err(|error| error.to_string())
        })?;
        print!("| {} | {theirs:.0} |", case.name);
        let pipeline = case.pipeline()?;
        let mut scratch = Scratch::new();
        let mut copy = Vec::new();
        for mask in [None].into_iter().chain(masks.iter().map(Some)) {
            let mut position = 0;
            let ours = median(|row| {
                copy.clear();
                copy.extend_from_slice(&rows[row]);
                let mut step = Step::new(&history);
                step.mask = mask.map(|mask| mask[..].into());
                step.position = position;
                position += 1;
                let choice = pipeline.choose(&mut copy, &step, &mut scratch);
                choice.map(drop).map_err(|error| error.to_string())
            })?;
            print!(" {ours:.0} |");
        }
        println!();
    }
    Ok(())
}
