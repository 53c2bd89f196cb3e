//! Pipelines against worked numbers and a slow reference in double precision.
#![expect(clippy::cast_precision_loss, reason = "small numbers fit")]

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use self::random::{below, random_mask};
use super::*;
use crate::vocabulary::TokenId;

/// Shared with the tests of the library from outside.
#[path = "../../tests/pipeline/random.rs"]
mod random;

/// phở, bún chả, cơm tấm, pizza, sushi, kem.
const DISHES: [f32; 6] = [3.0, 2.4, 2.0, 1.0, 0.4, -0.5];

const NONE: f32 = f32::NEG_INFINITY;

fn boxed(stage: impl Stage + 'static) -> Box<dyn Stage> {
    Box::new(stage)
}

fn temperature(temperature: f32) -> Box<dyn Stage> {
    boxed(Temperature::new(temperature).expect("in range"))
}

fn top_k(k: usize) -> Box<dyn Stage> {
    boxed(TopK::new(k).expect("in range"))
}

fn top_p(p: f32) -> Box<dyn Stage> {
    boxed(TopP::new(p).expect("in range"))
}

fn min_p(p: f32) -> Box<dyn Stage> {
    boxed(MinP::new(p).expect("in range"))
}

/// Returns a pipeline of the mask and these stages.
fn after_mask(mut stages: Vec<Box<dyn Stage>>) -> Pipeline {
    stages.insert(0, boxed(GrammarMask));
    Pipeline::from_stages(stages, Choose::Draw { seed: 0 }).expect("lawful")
}

/// Returns the probability of every token, zero for the removed ones.
fn probabilities(
    pipeline: &Pipeline,
    logits: &[f32],
    mask: Option<&[u32]>,
) -> Result<Vec<f64>, PipelineError> {
    let history = History::default();
    let mut step = Step::new(&history);
    step.mask = mask.map(MaskBits::from);
    let kept = pipeline.probabilities(
        &mut logits.to_vec(),
        &step,
        &mut Scratch::new(),
    )?;
    let mut all = vec![0.0; logits.len()];
    for (token, probability) in kept {
        all[token.index()] = probability;
    }
    Ok(all)
}

/// Writes probabilities as the tables of the literature do.
fn row_text(probabilities: &[f64]) -> String {
    let cell = |&p: &f64| match p {
        0.0 => "--".to_owned(),
        _ => format!("{p:.2}").trim_start_matches('0').to_owned(),
    };
    probabilities.iter().map(cell).collect::<Vec<_>>().join(" ")
}

#[test]
fn worked_numbers_of_the_truncations() {
    let table: Vec<(Vec<Box<dyn Stage>>, &str)> = vec![
        (vec![temperature(0.5)], ".68 .21 .09 .01 .00 .00"),
        (vec![temperature(1.0)], ".46 .25 .17 .06 .03 .01"),
        (vec![temperature(1.5)], ".37 .25 .19 .10 .06 .04"),
        (vec![top_k(3)], ".52 .29 .19 -- -- --"),
        (vec![top_p(0.9)], ".49 .27 .18 .07 -- --"),
        (vec![min_p(0.1)], ".49 .27 .18 .07 -- --"),
        (vec![top_p(0.9), temperature(1.5)], ".41 .27 .21 .11 -- --"),
        (vec![temperature(1.5), top_p(0.9)], ".38 .26 .20 .10 .07 --"),
        // Hugging Face's order and vLLM's, with the same three options.
        (
            vec![temperature(1.5), top_p(0.9), min_p(0.1)],
            ".38 .26 .20 .10 .07 --",
        ),
        (
            vec![temperature(1.5), min_p(0.1), top_p(0.9)],
            ".41 .27 .21 .11 -- --",
        ),
    ];
    for (stages, expected) in table {
        let pipeline = after_mask(stages);
        for mask in [None, Some(&[0b11_1111][..])] {
            let kept =
                probabilities(&pipeline, &DISHES, mask).expect("a good row");
            assert_eq!(row_text(&kept), expected, "{pipeline:?}");
        }
    }
    let options = SamplingOptions {
        temperature: 1.5,
        top_p: 0.9,
        min_p: 0.1,
        ..SamplingOptions::default()
    };
    let pipeline = options.build().expect("in range");
    let kept = probabilities(&pipeline, &DISHES, None).expect("a good row");
    assert_eq!(row_text(&kept), ".38 .26 .20 .10 .07 --");
}

/// Applies one stage and returns the logits that it leaves.
fn apply(stage: &dyn Stage, logits: &[f32], history: &History) -> Vec<f32> {
    let mut scratch = Scratch::new();
    let mut logits = logits.to_vec();
    let mut row = Row::new(&mut logits, &mut scratch);
    stage.apply(&mut row, &Step::new(history)).expect("a good row");
    (0..row.n_logits()).map(|i| row.logit(TokenId::from_index(i))).collect()
}

#[test]
fn worked_numbers_of_the_penalties() {
    let mut history = History::new([TokenId(0)]);
    history.push(TokenId(1));
    let both = RepetitionPenalty::new(1.3, true).expect("in range");
    let output = RepetitionPenalty::new(1.3, false).expect("in range");
    let logits = [2.0, -2.0, 0.5];
    let shown = |logits: &[f32]| -> Vec<String> {
        logits.iter().map(|logit| format!("{logit:.3}")).collect()
    };
    assert_eq!(
        shown(&apply(&both, &logits, &history)),
        ["1.538", "-2.600", "0.500"],
    );
    assert_eq!(
        shown(&apply(&output, &logits, &history)),
        ["2.000", "-2.600", "0.500"],
    );

    // Before temperature 2 a penalty of 1 weighs 0.5, after it 1.
    let presence =
        || boxed(FrequencyPresencePenalty::new(0.0, 1.0).expect("in range"));
    for (stages, weight) in [
        (vec![presence(), temperature(2.0)], 0.5),
        (vec![temperature(2.0), presence()], 1.0),
    ] {
        let pipeline = after_mask(stages);
        let mut logits = [1.0, 1.0];
        let mut history = History::new([TokenId(0)]);
        history.push(TokenId(1));
        history.push(TokenId(1));
        let kept = pipeline
            .probabilities(
                &mut logits,
                &Step::new(&history),
                &mut Scratch::new(),
            )
            .expect("a good row");
        let difference = (kept[0].1 / kept[1].1).ln();
        assert!((difference - weight).abs() < 1e-6, "{difference}");
    }

    history.push(TokenId(1));
    let frequency = FrequencyPresencePenalty::new(0.5, 0.25).expect("range");
    assert_eq!(apply(&frequency, &logits, &history), [2.0, -3.25, 0.5]);
}

#[test]
fn bias_adds_and_names_unknown_tokens() {
    let bias = LogitBias::new(vec![(TokenId(1), 2.0), (TokenId(1), 0.5)]);
    let logits = [1.0, -1.0, NONE];
    let history = History::default();
    assert_eq!(
        apply(&bias.expect("finite"), &logits, &history),
        [1.0, 1.5, NONE],
    );
    let pipeline = Pipeline::builder()
        .stage(LogitBias::new(vec![(TokenId(6), 1.0)]).expect("finite"))
        .build()
        .expect("lawful");
    let error = probabilities(&pipeline, &DISHES, None);
    assert_eq!(
        error.expect_err("no token 6").to_string(),
        "logit_bias names token 6; the row has 6 logits; does the token \
         belong to another model?",
    );
}

/// The stages that the reference below knows, with their parameters.
#[derive(Clone, Copy, Debug)]
enum Setting {
    Temperature(f32),
    TopK(usize),
    TopP(f32),
    MinP(f32),
}

impl Setting {
    fn stage(self) -> Box<dyn Stage> {
        match self {
            Setting::Temperature(t) => temperature(t),
            Setting::TopK(k) => top_k(k),
            Setting::TopP(p) => top_p(p),
            Setting::MinP(p) => min_p(p),
        }
    }

    /// Applies the setting as its definition reads, by sorting everything.
    /// Returns false when the outcome hangs on the last digits.
    fn apply_slowly(self, logits: &mut [f64]) -> bool {
        let mut order: Vec<usize> = (0..logits.len())
            .filter(|&token| logits[token] > f64::NEG_INFINITY)
            .collect();
        // Stable, so equal logits stay in the order of their ids.
        order.sort_by(|&a, &b| {
            logits[b].partial_cmp(&logits[a]).expect("no NaN")
        });
        let probability = softmax_slowly(logits);
        let max = probability[order[0]];
        let mut is_clear = true;
        let kept: Vec<usize> = match self {
            Setting::Temperature(t) => {
                for logit in &mut *logits {
                    *logit /= f64::from(t);
                }
                return true;
            }
            Setting::TopK(k) => {
                let least = logits[order[k.min(order.len()) - 1]];
                let is_kept = |&token: &usize| logits[token] >= least;
                order.iter().copied().filter(is_kept).collect()
            }
            Setting::TopP(p) => {
                let mut before = 0.0;
                let mut kept = Vec::new();
                for &token in &order {
                    is_clear &= (before - f64::from(p)).abs() > 1e-6;
                    if before >= f64::from(p) && !kept.is_empty() {
                        break;
                    }
                    kept.push(token);
                    before += probability[token];
                }
                kept
            }
            Setting::MinP(p) => {
                let bound = f64::from(p) * max;
                let ratio = |token: usize| probability[token] / bound;
                let is_far = |&t: &usize| (ratio(t) - 1.0).abs() > 1e-6;
                is_clear = p >= 1.0 || order.iter().all(is_far);
                let is_kept = |&token: &usize| probability[token] >= bound;
                order.iter().copied().filter(is_kept).collect()
            }
        };
        for (token, logit) in logits.iter_mut().enumerate() {
            if !kept.contains(&token) {
                *logit = f64::NEG_INFINITY;
            }
        }
        is_clear
    }
}

fn softmax_slowly(logits: &[f64]) -> Vec<f64> {
    let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logits.iter().map(|z| (z - max).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

/// Returns logits with ties among them, a few of them minus infinity.
fn random_logits(random: &mut ChaCha8Rng, n_logits: usize) -> Vec<f32> {
    let grain = [1.0, 8.0, 1024.0][below(random, 3) as usize];
    let spread = [2.0, 10.0, 40.0][below(random, 3) as usize];
    (0..n_logits)
        .map(|_| {
            if below(random, 10) == 0 {
                return NONE;
            }
            let unit = below(random, 1 << 16) as f32 / 65536.0;
            ((unit - 0.5) * spread * grain).round() / grain
        })
        .collect()
}

fn random_settings(random: &mut ChaCha8Rng) -> Vec<Setting> {
    let mut settings = vec![
        Setting::Temperature([0.3, 0.7, 1.5][below(random, 3) as usize]),
        Setting::TopK(1 + below(random, 60) as usize),
        Setting::TopP([0.0, 0.1, 0.5, 0.9, 0.99][below(random, 5) as usize]),
        Setting::MinP([0.0, 0.02, 0.3, 1.0][below(random, 4) as usize]),
    ];
    for index in 0..settings.len() {
        settings.swap(index, below(random, 4) as usize);
    }
    settings.truncate(below(random, 5) as usize);
    settings
}

#[test]
fn stages_agree_with_the_reference_on_random_rows() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut n_compared = 0;
    for _ in 0..3000 {
        let n_logits =
            [1, 2, 7, 64, 300, 1000][below(&mut random, 6) as usize];
        let logits = random_logits(&mut random, n_logits);
        let sparsity = [1, 2, 9, 60][below(&mut random, 4) as usize];
        let mask = (below(&mut random, 3) > 0)
            .then(|| random_mask(&mut random, n_logits, sparsity));
        let settings = random_settings(&mut random);
        let mut slow: Vec<f64> =
            logits.iter().copied().map(f64::from).collect();
        if let Some(mask) = &mask {
            for (token, logit) in slow.iter_mut().enumerate() {
                if mask[token / 32] >> (token % 32) & 1 == 0 {
                    *logit = f64::NEG_INFINITY;
                }
            }
        }
        let is_empty = slow.iter().all(|&logit| logit == f64::NEG_INFINITY);
        let stages = settings.iter().map(|one| one.stage()).collect();
        let fast =
            probabilities(&after_mask(stages), &logits, mask.as_deref());
        if is_empty {
            assert!(matches!(fast, Err(PipelineError::NoTokenLeft { .. })));
            continue;
        }
        let mut is_clear = true;
        for one in &settings {
            is_clear &= one.apply_slowly(&mut slow);
        }
        if !is_clear {
            continue;
        }
        n_compared += 1;
        let fast = fast.expect("some token is left");
        for (token, expected) in softmax_slowly(&slow).iter().enumerate() {
            let is_same = (fast[token] == 0.0) == (*expected == 0.0)
                && (fast[token] - expected).abs() < 1e-5;
            assert!(
                is_same,
                "{settings:?} on token {token} of {logits:?} under {mask:?}: \
                 {} for {expected}",
                fast[token],
            );
        }
    }
    assert!(n_compared > 1500, "only {n_compared} rows were compared");
}

#[test]
fn penalties_agree_with_the_reference_before_and_after_the_mask() {
    let mut random = ChaCha8Rng::seed_from_u64(8);
    for _ in 0..500 {
        let n_logits = 1 + below(&mut random, 100) as usize;
        let logits = random_logits(&mut random, n_logits);
        let mask = random_mask(&mut random, n_logits, 9);
        let token = |random: &mut ChaCha8Rng| TokenId(below(random, 110));
        let prompt: Vec<TokenId> =
            (0..5).map(|_| token(&mut random)).collect();
        let mut history = History::new(prompt.clone());
        for _ in 0..below(&mut random, 30) {
            history.push(token(&mut random));
        }
        let count = |id: usize| {
            let is_it = |&&token: &&TokenId| token.index() == id;
            history.output().iter().filter(is_it).count()
        };
        let expected: Vec<f32> = (0..n_logits)
            .map(|id| {
                let is_allowed = mask[id / 32] >> (id % 32) & 1 == 1;
                let is_seen =
                    count(id) > 0 || prompt.contains(&TokenId::from_index(id));
                let logit = match logits[id] {
                    _ if !is_allowed => NONE,
                    logit if is_seen && logit > 0.0 => logit / 1.25,
                    logit if is_seen => logit * 1.25,
                    logit => logit,
                };
                let times = count(id) as f32;
                let presence = if times > 0.0 { 0.5 } else { 0.0 };
                logit - 0.25 * times - presence
            })
            .collect();
        let stages = [
            boxed(RepetitionPenalty::new(1.25, true).expect("in range")),
            boxed(FrequencyPresencePenalty::new(0.25, 0.5).expect("range")),
            boxed(GrammarMask),
        ];
        for order in [[0, 1, 2], [2, 0, 1], [0, 2, 1]] {
            let mut scratch = Scratch::new();
            let mut logits = logits.clone();
            let mut row = Row::new(&mut logits, &mut scratch);
            let step = Step::new(&history).with_mask(&*mask);
            for stage in order {
                stages[stage].apply(&mut row, &step).expect("a good row");
            }
            let found: Vec<f32> = (0..n_logits)
                .map(|id| row.logit(TokenId::from_index(id)))
                .collect();
            assert_eq!(found, expected, "order {order:?}");
        }
    }
}

fn choose(
    pipeline: &Pipeline,
    logits: &[f32],
    step: &Step<'_>,
) -> Result<TokenId, PipelineError> {
    pipeline
        .choose(&mut logits.to_vec(), step, &mut Scratch::new())
        .map(|choice| choice.token)
}

#[test]
fn greedy_takes_the_lowest_id_on_a_tie() {
    let pipeline = SamplingOptions::greedy().build().expect("in range");
    let history = History::default();
    let step = Step::new(&history);
    let mut logits = vec![-1.0; 100];
    for token in [30, 31, 70] {
        logits[token] = 2.5;
    }
    assert_eq!(choose(&pipeline, &logits, &step), Ok(TokenId(30)));
    let mut words = [u32::MAX; 4];
    words[0] = 0x8000_0001;
    let dense = step.with_mask(&words[..]);
    assert_eq!(choose(&pipeline, &logits, &dense), Ok(TokenId(31)));
    let words = [1 << 3, 0, 1 << 6 | 1 << 7, 0_u32];
    let sparse = step.with_mask(&words[..]);
    assert_eq!(choose(&pipeline, &logits, &sparse), Ok(TokenId(70)));
}

/// Greedy decoding under the mask alone is a pass of its own; a trace goes
/// through the stages.
#[test]
fn greedy_chooses_what_the_stages_choose() {
    let mut random = ChaCha8Rng::seed_from_u64(10);
    let pipeline = SamplingOptions::greedy().build().expect("in range");
    let history = History::default();
    let mut counts = [0; 2];
    for _ in 0..2_000 {
        let n_logits = below(&mut random, 400) as usize;
        let mut logits = random_logits(&mut random, n_logits);
        if n_logits > 0 && below(&mut random, 8) == 0 {
            let place = below(&mut random, 400) as usize % n_logits;
            logits[place] = [f32::NAN, f32::INFINITY][place % 2];
        }
        let sparsity = [1, 2, 9, 60, 900][below(&mut random, 5) as usize];
        let n_masked = n_logits + 32 * usize::from(sparsity == 9);
        let mask = random_mask(&mut random, n_masked, sparsity);
        let mut step = Step::new(&history);
        for mask in [None, Some(MaskBits::from(&*mask))] {
            step.mask = mask;
            let mut scratch = Scratch::new();
            let chosen =
                pipeline.choose(&mut logits.clone(), &step, &mut scratch);
            let traced =
                pipeline.trace(&mut logits.clone(), &step, &mut scratch);
            // An error may hold NaN, which equals nothing.
            let shown = |outcome| format!("{outcome:?}");
            counts[usize::from(chosen.is_err())] += 1;
            assert_eq!(
                shown(chosen),
                shown(traced.outcome),
                "{logits:?} under {mask:?}",
            );
        }
    }
    assert!(counts.iter().all(|&count| count > 500), "{counts:?}");
    // Another mask than ours is asked.
    let other = Ban { name: "mask", kind: StageKind::Mask };
    let pipeline = Pipeline::from_stages(vec![boxed(other)], Choose::Greedy);
    let pipeline = pipeline.expect("lawful");
    let step = Step::new(&history);
    assert_eq!(choose(&pipeline, &[2.0, 1.0], &step), Ok(TokenId(1)));
}

#[test]
fn the_strongest_token_never_hides_the_only_legal_one() {
    let options = SamplingOptions {
        top_k: 1,
        top_p: 0.1,
        min_p: 0.9,
        temperature: 0.1,
        ..SamplingOptions::default()
    };
    let pipeline = options.build().expect("in range");
    let history = History::default();
    // The grammar wants token 2, `{`; the model wants token 0, `@`.
    let step = Step::new(&history).with_mask(&[0b100_u32][..]);
    let logits = [50.0, 3.0, -40.0];
    assert_eq!(choose(&pipeline, &logits, &step), Ok(TokenId(2)));
}

#[test]
fn draws_follow_the_probabilities_whatever_the_form_of_the_row() {
    // The same distribution as a plain row and as a list under a mask.
    let mut wide = vec![9.0; 64];
    let mut mask = [0_u32; 2];
    for (dish, logit) in DISHES.iter().enumerate() {
        let token = 7 * dish;
        wide[token] = *logit;
        mask[token / 32] |= 1 << (token % 32);
    }
    let pipeline = SamplingOptions { seed: 3, ..SamplingOptions::default() }
        .build()
        .expect("in range");
    let expected =
        probabilities(&pipeline, &DISHES, None).expect("a good row");
    let history = History::default();
    let mut counts = [0_u32; 6];
    let n_draws = 20_000_u32;
    for position in 0..n_draws {
        let mut step = Step::new(&history);
        step.position = u64::from(position);
        let plain = choose(&pipeline, &DISHES, &step).expect("a good row");
        let masked = step.with_mask(&mask[..]);
        let listed = choose(&pipeline, &wide, &masked).expect("a good row");
        assert_eq!(listed.0, 7 * plain.0);
        counts[plain.index()] += 1;
    }
    for (count, p) in counts.iter().zip(expected) {
        let mean = f64::from(n_draws) * p;
        let deviation = (mean * (1.0 - p)).sqrt();
        let distance = (f64::from(*count) - mean).abs();
        assert!(distance < 5.0 * deviation, "{counts:?}");
    }
}

#[test]
fn broken_and_empty_rows_are_errors() {
    let history = History::default();
    for options in [SamplingOptions::default(), SamplingOptions::greedy()] {
        let pipeline = options.build().expect("in range");
        let step = Step::new(&history);
        for bad in [f32::NAN, f32::INFINITY] {
            // Even where the grammar would have hidden it.
            let step = step.with_mask(&[0b001_u32][..]);
            let error = choose(&pipeline, &[1.0, bad, 0.0], &step)
                .expect_err("a broken row");
            assert!(error.to_string().contains("token 1"), "{error}");
        }
        for (logits, mask, reason) in [
            (&[1.0, 2.0][..], Some(&[0_u32][..]), "allows no token"),
            (&[1.0, NONE], Some(&[0b10]), "allows 1 tokens"),
            (&[NONE, NONE], None, "no grammar"),
            (&[], None, "no grammar"),
        ] {
            let mut step = step;
            step.position = 9;
            step.mask = mask.map(MaskBits::from);
            let error = choose(&pipeline, logits, &step)
                .expect_err("an empty row")
                .to_string();
            assert!(error.contains("position 9"), "{error}");
            assert!(error.contains(reason), "{error}");
        }
        let wide = step.with_mask(&[1_u32, 0][..]);
        assert_eq!(
            choose(&pipeline, &[1.0], &wide),
            Err(PipelineError::MaskWidth {
                given: 2,
                expected: 1,
                n_logits: 1
            }),
        );
        let one = step.with_mask(&[1_u64][..]);
        assert_eq!(choose(&pipeline, &[-4.0], &one), Ok(TokenId(0)));
    }
    let hot = SamplingOptions { temperature: 1e-4, ..Default::default() };
    let pipeline = hot.build().expect("in range");
    let error = choose(&pipeline, &[f32::MAX, 0.0], &Step::new(&history));
    assert!(matches!(error, Err(PipelineError::BadLogit { .. })), "{error:?}");
}

#[test]
fn options_out_of_range_give_the_range() {
    type Change = fn(&mut SamplingOptions, f32);
    let changes: [(&str, Change, &[f32]); 6] = [
        ("temperature", |o, x| o.temperature = x, &[-0.1, f32::INFINITY]),
        ("top_p", |o, x| o.top_p = x, &[-0.1, 1.1]),
        ("min_p", |o, x| o.min_p = x, &[-0.1, 1.1]),
        ("repetition_penalty", |o, x| o.repetition_penalty = x, &[0.0, -1.0]),
        ("frequency_penalty", |o, x| o.frequency_penalty = x, &[-2.1, 2.1]),
        ("presence_penalty", |o, x| o.presence_penalty = x, &[-2.1, 2.1]),
    ];
    for (option, change, values) in changes {
        for &value in values.iter().chain(&[f32::NAN]) {
            let mut options = SamplingOptions::default();
            change(&mut options, value);
            let error = options.build().expect_err("out of range").to_string();
            assert!(error.starts_with(option), "{error}");
            assert!(error.contains("; it must be "), "{error}");
        }
    }
    let bias = LogitBias::new(vec![(TokenId(0), f32::NEG_INFINITY)]);
    assert!(bias.is_err());
}

/// Forbids one token, under any name and with any kind.
#[derive(Debug)]
struct Ban {
    name: &'static str,
    kind: StageKind,
}

impl Stage for Ban {
    fn name(&self) -> &'static str {
        self.name
    }

    fn kind(&self) -> StageKind {
        self.kind
    }

    fn apply(
        &self,
        row: &mut Row<'_>,
        _: &Step<'_>,
    ) -> Result<(), PipelineError> {
        row.forbid(TokenId(0));
        Ok(())
    }
}

#[test]
fn unlawful_orders_cannot_be_made() {
    let build =
        |stages| Pipeline::from_stages(stages, Choose::Draw { seed: 0 });
    let error = build(vec![top_k(2), boxed(GrammarMask)]);
    assert_eq!(
        error.expect_err("the mask comes too late").to_string(),
        "stage mask forbids tokens and stands after top_k, which truncates: \
         no legal token may be left by then; put mask first",
    );
    let ban = || boxed(Ban { name: "ban", kind: StageKind::Forbid });
    assert!(build(vec![boxed(GrammarMask), top_p(0.5), ban()]).is_err());
    assert!(build(vec![boxed(GrammarMask), ban(), top_p(0.5)]).is_ok());
    for stages in [vec![], vec![top_k(2)]] {
        assert!(matches!(
            build(stages),
            Err(PipelineError::MaskCount { given: 0 })
        ));
    }
    let twice = vec![boxed(GrammarMask), ban(), ban()];
    assert!(matches!(build(twice), Err(PipelineError::DuplicateStage { .. })));
    // The engine that truncates first and scales last is lawful.
    let llama = vec![boxed(GrammarMask), top_k(2), temperature(0.8)];
    assert!(build(llama).is_ok());
}

#[test]
fn stages_of_the_user_take_their_place() {
    let options = SamplingOptions {
        temperature: 0.7,
        top_k: 20,
        top_p: 0.8,
        min_p: 0.1,
        repetition_penalty: 1.1,
        frequency_penalty: 0.1,
        logit_bias: vec![(TokenId(0), 1.0)],
        ..SamplingOptions::default()
    };
    let names = |builder: PipelineBuilder| -> Vec<String> {
        let pipeline = builder.build().expect("lawful");
        pipeline.stage_names().map(str::to_owned).collect()
    };
    let builder = || Pipeline::builder().options(options.clone());
    let expected = [
        "logit_bias",
        "repetition_penalty",
        "frequency_presence_penalty",
        "mask",
        "temperature",
        "top_k",
        "top_p",
        "min_p",
    ];
    assert_eq!(names(builder()), expected);
    let ban = Ban { name: "ban", kind: StageKind::Forbid };
    let other = Ban { name: "other", kind: StageKind::Truncate };
    let with_ban = names(builder().stage(ban).stage(other));
    assert_eq!(with_ban[3..7], ["mask", "ban", "other", "temperature"]);
    // One with a built-in name replaces it, though that one be turned off.
    let own = Ban { name: "top_k", kind: StageKind::Truncate };
    let bare = Pipeline::builder().order(Order::HuggingFace).stage(own);
    assert_eq!(names(bare), ["mask", "top_k"]);
    let mask = Ban { name: "mask", kind: StageKind::Mask };
    assert!(matches!(
        builder().stage(mask).build(),
        Err(PipelineError::DuplicateStage { .. }),
    ));

    let greedy = SamplingOptions { temperature: 0.0, seed: 4, ..options };
    let ignored: Vec<&str> =
        greedy.warnings().iter().map(|one| one.option).collect();
    assert_eq!(ignored, ["top_k", "top_p", "min_p", "seed"]);
    let builder = Pipeline::builder().options(greedy);
    assert_eq!(names(builder), expected[..4]);
}

#[test]
fn quantiles_are_found_in_rows_of_many_blocks() {
    let mut random = ChaCha8Rng::seed_from_u64(9);
    for n_logits in [1, 511, 512, 513, 3000] {
        let mut logits = random_logits(&mut random, n_logits);
        logits[n_logits / 2] = 1.0;
        // A tail without any mass, longer than a block.
        logits.extend([NONE; 700]);
        let mut scratch = Scratch::new();
        let mut copy = logits.clone();
        let plain = Row::new(&mut copy, &mut scratch);
        let exact: Vec<f64> = logits.iter().copied().map(f64::from).collect();
        let probability = softmax_slowly(&exact);
        for step in 0..100 {
            let quantile = f64::from(step) / 100.0 + 0.003;
            let found = plain.at_mass(plain.mass() * quantile);
            let found = found.expect("some mass").token.index();
            let before: f64 = probability[..found].iter().sum();
            let after = before + probability[found];
            assert!(
                before - 1e-6 <= quantile && quantile <= after + 1e-6,
                "{quantile} is not in {before}..{after}",
            );
        }
        let last = probability.iter().rposition(|&p| p > 1e-30);
        for beyond in [plain.mass() * 1.001, f64::INFINITY] {
            let found = plain.at_mass(beyond).map(|one| one.token.index());
            assert_eq!(found, last);
        }
    }
    let mut scratch = Scratch::new();
    let mut nothing = [NONE; 600];
    let row = Row::new(&mut nothing, &mut scratch);
    assert_eq!(row.at_mass(0.0), None);
}
