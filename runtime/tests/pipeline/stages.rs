//! Each stage against its definition, computed slowly in double precision,
//! and the orders.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "small numbers fit"
)]
#![expect(clippy::float_cmp, reason = "ties are exact")]

use maskwright::{
    pipeline::{
        BadWords, Choose, DryOptions, DynamicTemperature,
        DynamicTemperatureOptions, EpsilonCutoff, EtaCutoff, ForbiddenTokens,
        GrammarMask, History, LengthOptions, MaskBits, Mirostat,
        MirostatOptions, MirostatVersion, ModelDefaults, Order, Pipeline,
        PipelineError, SamplingOptions, SamplingWarning, Scratch,
        SettingLayers, Settings, Stage, Step, TopK, TopNSigma,
        TruncationOptions, TypicalP, Xtc,
    },
    vocabulary::TokenId,
};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};

use crate::random::{below, random_mask};

const NONE: f64 = f64::NEG_INFINITY;

fn pick<T: Copy>(random: &mut ChaCha8Rng, from: &[T]) -> T {
    from[random.next_u32() as usize % from.len()]
}

fn ids(tokens: &[u32]) -> Vec<TokenId> {
    tokens.iter().copied().map(TokenId).collect()
}

/// Returns logits with ties among them, some of them minus infinity.
fn random_row(random: &mut ChaCha8Rng, n_logits: usize) -> Vec<f32> {
    let grain = pick(random, &[1.0, 8.0, 1024.0]);
    let spread = pick(random, &[2.0, 10.0, 40.0]);
    let holes = pick(random, &[2, 10, 1000]);
    let mut row: Vec<f32> = (0..n_logits)
        .map(|_| {
            if below(random, holes) == 0 {
                return f32::NEG_INFINITY;
            }
            let unit = below(random, 1 << 16) as f32 / 65536.0;
            ((unit - 0.5) * spread * grain).round() / grain
        })
        .collect();
    let place = random.next_u32() as usize % n_logits;
    row[place] = 0.5;
    row
}

fn softmax_slowly(logits: &[f64]) -> Vec<f64> {
    let max = logits.iter().copied().fold(NONE, f64::max);
    let weights: Vec<f64> = logits.iter().map(|z| (z - max).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

fn entropy_slowly(probabilities: &[f64]) -> f64 {
    let positive = probabilities.iter().filter(|p| **p > 0.0);
    -positive.map(|p| p * p.ln()).sum::<f64>()
}

/// A stage for sampling, with its parameters.
#[derive(Clone, Copy, Debug)]
enum Setting {
    ExactTopK(usize),
    TypicalP(f32),
    ExactTypicalP(f32),
    TopNSigma(f32),
    Epsilon(f32),
    Eta(f32),
    Xtc(f32),
    Dynamic(f32, f32, f32),
    MirostatV1(f32),
    MirostatV2(f32),
}

impl Setting {
    fn random(random: &mut ChaCha8Rng) -> Setting {
        let p = pick(random, &[0.05, 0.3, 0.7, 0.95, 0.999]);
        match below(random, 10) {
            0 => Setting::ExactTopK(1 + below(random, 50) as usize),
            1 => Setting::TypicalP(p),
            2 => Setting::ExactTypicalP(p),
            3 => Setting::TopNSigma(pick(random, &[0.1, 1.0, 2.5])),
            4 => Setting::Epsilon(pick(random, &[1e-4, 0.003, 0.2, 0.9])),
            5 => Setting::Eta(pick(random, &[1e-4, 0.003, 0.2, 0.9])),
            6 => Setting::Xtc(pick(random, &[0.0, 0.01, 0.1, 0.5])),
            7 => {
                let temperature = pick(random, &[0.5, 1.0, 1.7]);
                let range = pick(random, &[0.2, 0.5]);
                Setting::Dynamic(temperature, range, pick(random, &[1.0, 2.0]))
            }
            8 => Setting::MirostatV1(pick(random, &[0.7, 3.0, 5.0])),
            _ => Setting::MirostatV2(pick(random, &[0.7, 3.0, 5.0])),
        }
    }

    fn stage(self) -> Box<dyn Stage> {
        fn boxed(
            stage: Result<impl Stage + 'static, PipelineError>,
        ) -> Box<dyn Stage> {
            Box::new(stage.expect("in range"))
        }
        let mirostat = |version, tau| {
            let options =
                MirostatOptions { tau, ..MirostatOptions::new(version) };
            boxed(Mirostat::new(options))
        };
        match self {
            Setting::ExactTopK(k) => boxed(TopK::new(k).map(TopK::exactly)),
            Setting::TypicalP(p) => boxed(TypicalP::new(p)),
            Setting::ExactTypicalP(p) => {
                boxed(TypicalP::new(p).map(TypicalP::exactly))
            }
            Setting::TopNSigma(n) => boxed(TopNSigma::new(n)),
            Setting::Epsilon(epsilon) => boxed(EpsilonCutoff::new(epsilon)),
            Setting::Eta(epsilon) => boxed(EtaCutoff::new(epsilon)),
            Setting::Xtc(threshold) => boxed(Xtc::new(1.0, threshold, 0)),
            Setting::Dynamic(t, range, exponent) => {
                boxed(DynamicTemperature::new(t, range, exponent))
            }
            Setting::MirostatV1(tau) => mirostat(MirostatVersion::V1, tau),
            Setting::MirostatV2(tau) => mirostat(MirostatVersion::V2, tau),
        }
    }

    /// Does what the definition says to a row in which something is left.
    /// Returns false when the outcome hangs on the last digits.
    #[expect(clippy::too_many_lines, reason = "a definition a stage")]
    fn apply_slowly(self, logits: &mut [f64]) -> bool {
        let probability = softmax_slowly(logits);
        // Strongest first; equal logits stay in the order of their ids.
        let mut order: Vec<usize> =
            (0..logits.len()).filter(|&i| logits[i] > NONE).collect();
        order.sort_by(|&a, &b| {
            // Zero and minus zero tie.
            logits[b].partial_cmp(&logits[a]).expect("no NaN")
        });
        let is_far = |a: f64, b: f64| (a - b).abs() > 1e-5 * (1.0 + b.abs());
        let mut is_clear = true;
        let kept: Vec<usize> = match self {
            Setting::Dynamic(temperature, range, exponent) => {
                let [t, range, exponent] =
                    [temperature, range, exponent].map(f64::from);
                if order.len() > 1 {
                    let greatest = (order.len() as f64).ln();
                    let share = entropy_slowly(&probability) / greatest;
                    let low = (t - range).max(0.0);
                    let t = low + (t + range - low) * share.powf(exponent);
                    for logit in logits.iter_mut() {
                        *logit /= t;
                    }
                    return t > 0.01;
                }
                return true;
            }
            Setting::ExactTopK(k) => order[..k.min(order.len())].to_vec(),
            Setting::TypicalP(p) | Setting::ExactTypicalP(p) => {
                let p = f64::from(p);
                let entropy = entropy_slowly(&probability);
                let distance =
                    |i: usize| (-probability[i].ln() - entropy).abs();
                // Tokens without any mass to speak of are not looked at.
                let mut nearest: Vec<usize> =
                    (0..logits.len()).filter(|&i| logits[i] > NONE).collect();
                nearest.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)));
                let mut mass = 0.0;
                let mut n_kept = 0;
                for &token in &nearest {
                    mass += probability[token];
                    n_kept += 1;
                    is_clear &= is_far(mass, p);
                    let exceed =
                        matches!(self, Setting::ExactTypicalP(_)) && mass > p;
                    if exceed || mass >= p {
                        break;
                    }
                }
                let last = distance(nearest[n_kept - 1]);
                // Equal distances of unequal logits hang on digits.
                is_clear &= nearest.iter().all(|&i| {
                    logits[i] == logits[nearest[n_kept - 1]]
                        || is_far(distance(i), last)
                });
                if let Setting::TypicalP(_) = self {
                    while n_kept < nearest.len()
                        && logits[nearest[n_kept]]
                            == logits[nearest[n_kept - 1]]
                    {
                        n_kept += 1;
                    }
                }
                nearest[..n_kept].to_vec()
            }
            Setting::TopNSigma(n) => {
                let count = order.len() as f64;
                let mean =
                    order.iter().map(|&i| logits[i]).sum::<f64>() / count;
                let squares =
                    order.iter().map(|&i| (logits[i] - mean).powi(2));
                let sigma = (squares.sum::<f64>() / count).sqrt();
                let bound = logits[order[0]] - f64::from(n) * sigma;
                let far = |&i: &usize| is_far(logits[i], bound);
                is_clear = sigma == 0.0 || order.iter().all(far);
                let is_kept = |&i: &usize| logits[i] >= bound;
                order.iter().copied().filter(is_kept).collect()
            }
            Setting::Epsilon(epsilon) | Setting::Eta(epsilon) => {
                let mut bound = f64::from(epsilon);
                if let Setting::Eta(_) = self {
                    let entropy = entropy_slowly(&probability);
                    bound = bound.min(bound.sqrt() * (-entropy).exp());
                }
                is_clear =
                    order.iter().all(|&i| is_far(probability[i] / bound, 1.0));
                let strongest = logits[order[0]];
                let is_kept = |&i: &usize| {
                    probability[i] >= bound || logits[i] == strongest
                };
                order.iter().copied().filter(is_kept).collect()
            }
            Setting::Xtc(threshold) => {
                let threshold = f64::from(threshold);
                let top = |&i: &usize| probability[i] >= threshold;
                is_clear = threshold == 0.0
                    || order
                        .iter()
                        .all(|&i| is_far(probability[i] / threshold, 1.0));
                // A weight that the fast exponential calls nothing.
                is_clear &=
                    order.iter().all(|&i| logits[order[0]] - logits[i] < 80.0);
                let n_top = order.iter().filter(|i| top(i)).count();
                order[n_top.saturating_sub(1)..].to_vec()
            }
            Setting::MirostatV1(tau) => {
                let (mut products, mut squares) = (0.0, 0.0);
                for rank in 0..order.len().saturating_sub(1).min(99) {
                    let t = ((rank + 2) as f64 / (rank + 1) as f64).ln();
                    let b = logits[order[rank]] - logits[order[rank + 1]];
                    products += t * b;
                    squares += t * t;
                }
                let k = if order.len() < 2 {
                    1.0
                } else {
                    let s = products / squares;
                    let e = s - 1.0;
                    let n = logits.len() as f64;
                    let bound = 2.0 * f64::from(tau);
                    let base = e * bound.exp2() / (1.0 - n.powf(-e));
                    is_clear = s > 1e-3 && e.abs() > 1e-3;
                    base.powf(1.0 / s)
                };
                is_clear &= (k - k.round()).abs() > 1e-6 * k || k < 1.0;
                let k = (k.max(1.0) as usize).min(order.len());
                order[..k].to_vec()
            }
            Setting::MirostatV2(tau) => {
                let bound = 2.0 * f64::from(tau);
                let surprise = |i: usize| -probability[i].log2();
                is_clear = order.iter().all(|&i| is_far(surprise(i), bound));
                let n =
                    order.iter().filter(|&&i| surprise(i) <= bound).count();
                order[..n.max(1)].to_vec()
            }
        };
        let mut keep = vec![false; logits.len()];
        for &token in &kept {
            keep[token] = true;
        }
        for (logit, is_kept) in logits.iter_mut().zip(keep) {
            if !is_kept {
                *logit = NONE;
            }
        }
        is_clear
    }
}

/// Compares a stage with its definition, on a row under a mask or not.
/// Returns false when the outcome hangs on the last digits.
fn compare(
    setting: Setting,
    row: &[f32],
    mask: Option<&[u32]>,
    first: Option<Setting>,
) -> bool {
    let mut slow: Vec<f64> = row.iter().copied().map(f64::from).collect();
    if let Some(mask) = mask {
        for (token, logit) in slow.iter_mut().enumerate() {
            if mask[token / 32] >> (token % 32) & 1 == 0 {
                *logit = NONE;
            }
        }
    }
    if slow.iter().all(|&logit| logit == NONE) {
        return false;
    }
    let mut stages: Vec<Box<dyn Stage>> = vec![Box::new(GrammarMask)];
    for one in first.into_iter().chain([setting]) {
        if !one.apply_slowly(&mut slow) {
            return false;
        }
        stages.push(one.stage());
    }
    let pipeline =
        match Pipeline::from_stages(stages, Choose::Draw { seed: 1 }) {
            Ok(pipeline) => pipeline,
            // The same stage twice.
            Err(PipelineError::DuplicateStage { .. }) => return false,
            Err(error) => panic!("{error}"),
        };
    let history = History::default();
    let mut step = Step::new(&history);
    step.mask = mask.map(MaskBits::from);
    let kept = pipeline
        .probabilities(&mut row.to_vec(), &step, &mut Scratch::new())
        .expect("a good row");
    assert!(!kept.is_empty(), "{setting:?} leaves nothing");
    let mut fast = vec![0.0; row.len()];
    for &(token, p) in &kept {
        fast[token.index()] = p;
    }
    for (token, expected) in softmax_slowly(&slow).iter().enumerate() {
        // What has next to no chance may be called impossible.
        let is_same = (fast[token] > 0.0) == (*expected > 0.0)
            && (fast[token] - expected).abs() < 1e-5;
        assert!(
            is_same || (fast[token] - expected).abs() < 1e-30,
            "{first:?}, {setting:?} on token {token} of a row of {}: {} for \
             {expected}",
            row.len(),
            fast[token],
        );
    }
    true
}

#[test]
fn stages_agree_with_their_definitions_on_random_rows() {
    let mut random = ChaCha8Rng::seed_from_u64(41);
    let mut n_compared = 0;
    for _ in 0..6000 {
        let n_logits = pick(&mut random, &[1, 2, 7, 64, 300, 1000]);
        let row = random_row(&mut random, n_logits);
        let sparsity = pick(&mut random, &[1, 2, 9, 60]);
        let mask = (below(&mut random, 3) > 0)
            .then(|| random_mask(&mut random, n_logits, sparsity));
        let setting = Setting::random(&mut random);
        let first =
            (below(&mut random, 2) == 0).then(|| Setting::random(&mut random));
        let is_clear = compare(setting, &row, mask.as_deref(), first);
        n_compared += usize::from(is_clear);
    }
    assert!(n_compared > 2000, "only {n_compared} rows were compared");
}

#[test]
fn stages_agree_with_their_definitions_on_wide_rows() {
    const N_LOGITS: usize = 151_936;
    let mut random = ChaCha8Rng::seed_from_u64(42);
    let mut row: Vec<f32> = (0..N_LOGITS)
        .map(|_| {
            let bits: u32 = (0..6).map(|_| below(&mut random, 1 << 16)).sum();
            (bits as f32 / 65536.0 - 3.0) * 4.0
        })
        .collect();
    row[N_LOGITS - 1] = 14.5;
    row[77] = f32::NEG_INFINITY;
    let few = random_mask(&mut random, N_LOGITS, 1000);
    let many = random_mask(&mut random, N_LOGITS, 2);
    let settings = [
        Setting::ExactTopK(50),
        Setting::TypicalP(0.9),
        Setting::ExactTypicalP(0.3),
        Setting::TopNSigma(1.5),
        Setting::Epsilon(3e-4),
        Setting::Eta(3e-4),
        Setting::Xtc(0.001),
        Setting::Dynamic(1.0, 0.5, 1.0),
        Setting::MirostatV1(3.0),
        Setting::MirostatV2(3.0),
    ];
    let mut n_compared = 0;
    for setting in settings {
        for mask in [None, Some(&*few), Some(&*many)] {
            n_compared += usize::from(compare(setting, &row, mask, None));
        }
    }
    assert!(n_compared > 15, "only {n_compared} rows were compared");
}

/// Returns the logits that the options leave of a row, in an order.
fn left(
    options: &SamplingOptions,
    row: &[f32],
    history: &History,
    mask: Option<&[u32]>,
) -> Result<Vec<f32>, PipelineError> {
    let pipeline = options.build()?;
    let mut step = Step::new(history);
    step.mask = mask.map(MaskBits::from);
    let mut logits = row.to_vec();
    let trace = pipeline.trace(&mut logits, &step, &mut Scratch::new());
    let choice = trace.outcome?;
    let last = trace.stages.last().expect("the row itself");
    let mut left = vec![f32::NEG_INFINITY; row.len()];
    for one in &last.survivors {
        left[one.token.index()] = one.logit;
    }
    if choice.has_yielded() {
        left[choice.token.index()] = choice.logit;
    }
    Ok(left)
}

fn history(prompt: &[u32], output: &[u32]) -> History {
    let mut history = History::new(ids(prompt));
    for &token in output {
        history.push(TokenId(token));
    }
    history
}

const X: f32 = f32::NEG_INFINITY;

#[test]
fn bans_and_biases_follow_their_definitions() {
    let row = [1.0, 2.0, -3.0, 4.0];
    let history = history(&[0, 1], &[2, 0]);
    let forbidden = ForbiddenTokens {
        allowed: Some(ids(&[0, 1, 3])),
        begin_suppress: ids(&[1]),
        ..ForbiddenTokens::default()
    };
    let options = SamplingOptions { forbidden, ..Default::default() };
    let found = left(&options, &row, &history, None);
    assert_eq!(found, Ok(vec![1.0, 2.0, X, 4.0]));
    let at_begin = left(&options, &row, &History::default(), None);
    assert_eq!(at_begin, Ok(vec![1.0, X, X, 4.0]));

    let with = |forbidden| SamplingOptions {
        forbidden,
        order: Order::HuggingFace,
        ..Default::default()
    };
    // 1 2 0 spans prompt and output, 3 stands alone.
    let words = ForbiddenTokens {
        bad_words: vec![ids(&[1, 2, 0, 1]), ids(&[0, 2]), ids(&[2, 3])],
        suppress: ids(&[3]),
        ..ForbiddenTokens::default()
    };
    let options = with(words);
    let found = left(&options, &row, &history, None);
    assert_eq!(found, Ok(vec![1.0, X, X, X]));
    let vllm = SamplingOptions { order: Order::Vllm, ..options };
    let found = left(&vllm, &row, &history, None);
    // vLLM does not look into the prompt.
    assert_eq!(found, Ok(vec![1.0, 2.0, X, X]));

    let options = SamplingOptions {
        sequence_bias: vec![
            (ids(&[1, 2, 0, 1]), 0.5),
            (ids(&[1]), 0.25),
            (ids(&[3, 3]), 9.0),
        ],
        logit_bias: vec![(TokenId(3), -150.0)],
        ..Default::default()
    };
    let found = left(&options, &row, &history, None);
    assert_eq!(found, Ok(vec![1.0, 2.75, -3.0, -146.0]));
    let vllm = SamplingOptions { order: Order::Vllm, ..options };
    assert_eq!(vllm.warnings()[0].option, "logit_bias");
    let found = left(&vllm, &row, &history, None);
    assert_eq!(found, Ok(vec![1.0, 2.75, -3.0, -96.0]));
}

#[test]
fn spellings_of_bad_words_are_those_of_vllm() {
    // One token a letter; a space joins the letter after it.
    let encode = |text: &str| -> Result<Vec<TokenId>, PipelineError> {
        let text = text.replace(" a", "A").replace(" é", "é");
        Ok(text.chars().map(|c| TokenId(u32::from(c))).collect())
    };
    let spell = |word| BadWords::spellings(word, encode).expect("encodes");
    assert_eq!(spell("ab"), [ids(&[97, 98]), ids(&[65, 98])]);
    // No other first token, or more of them: one spelling.
    assert_eq!(spell("éa"), [ids(&[233, 97])]);
    assert_eq!(spell(" ba"), [ids(&[98, 97])]);
    assert!(spell("").is_empty());
}

#[test]
fn n_grams_are_not_repeated_and_yield_to_the_grammar() {
    let mut random = ChaCha8Rng::seed_from_u64(43);
    for _ in 0..500 {
        let n = 1 + below(&mut random, 4) as usize;
        let length = below(&mut random, 30);
        let tokens: Vec<u32> =
            (0..length).map(|_| below(&mut random, 4)).collect();
        let cut = below(&mut random, length + 1) as usize;
        let history = history(&tokens[..cut], &tokens[cut..]);
        let row = [1.0, 2.0, 3.0, 4.0, 5.0];
        let forbidden = ForbiddenTokens {
            no_repeat_ngram: n,
            ..ForbiddenTokens::default()
        };
        let options = SamplingOptions { forbidden, ..Default::default() };
        let expected: Vec<f32> = (0..5_u32)
            .map(|next| {
                let mut gram = tokens.clone();
                gram.push(next);
                let gram = &gram[gram.len().saturating_sub(n)..];
                let is_new = gram.len() < n
                    || !tokens.windows(n).any(|window| window == gram);
                if is_new { row[next as usize] } else { X }
            })
            .collect();
        let found = left(&options, &row, &history, None);
        assert_eq!(found, Ok(expected), "{n} of {tokens:?}");
    }

    let forbidden =
        ForbiddenTokens { no_repeat_ngram: 2, ..ForbiddenTokens::default() };
    for order in [Order::HuggingFace, Order::Vllm, Order::LlamaCpp] {
        let options = SamplingOptions {
            order,
            forbidden: forbidden.clone(),
            repetition_penalty: 2.0,
            ..SamplingOptions::default()
        };
        let pipeline = options.build().expect("in range");
        let history = history(&[], &[0, 1, 0]);
        let step = Step::new(&history).with_mask(&[0b010_u32][..]);
        let mut scratch = Scratch::new();
        let choice = pipeline
            .choose(&mut [9.0, 3.0, 9.0], &step, &mut scratch)
            .expect("the grammar never yields");
        assert_eq!((choice.token, choice.logit), (TokenId(1), 1.5));
        assert_eq!(pipeline.yielded(&choice), ["no_repeat_ngram"]);
        // With another token left, it does not yield.
        let step = Step::new(&history).with_mask(&[0b110_u32][..]);
        let choice = pipeline
            .choose(&mut [9.0, 3.0, 0.0], &step, &mut scratch)
            .expect("a token is left");
        assert_eq!(choice.token, TokenId(2));
        assert!(!choice.has_yielded());
    }
}

#[test]
fn minimum_lengths_hold_off_the_end_unless_it_is_all_there_is() {
    let length = LengthOptions {
        end_tokens: ids(&[0, 2]),
        min_new_tokens: 2,
        ..LengthOptions::default()
    };
    let row = [3.0, 2.0, 1.0];
    for order in [Order::HuggingFace, Order::Vllm, Order::LlamaCpp] {
        let options = SamplingOptions {
            order,
            length: length.clone(),
            ..SamplingOptions::default()
        };
        let short = history(&[1, 1, 1], &[1]);
        let found = left(&options, &row, &short, None);
        assert_eq!(found, Ok(vec![X, 2.0, X]));
        let through = left(&options, &row, &short, Some(&[0b001]));
        assert_eq!(through, Ok(vec![3.0, X, X]));
        let found = left(&options, &row, &history(&[], &[1, 1]), None);
        assert_eq!(found, Ok(row.to_vec()));
    }
    let length = LengthOptions { min_new_tokens: 0, min_length: 4, ..length };
    let options = SamplingOptions { length, ..Default::default() };
    let found = left(&options, &row, &history(&[1, 1, 1], &[]), None);
    assert_eq!(found, Ok(vec![X, 2.0, X]));
    let found = left(&options, &row, &history(&[1, 1, 1], &[1]), None);
    assert_eq!(found, Ok(row.to_vec()));
    // Without end tokens nothing could be held off.
    let mut options = options;
    options.length.end_tokens.clear();
    let error = options.build().expect_err("no end tokens");
    assert_eq!(
        error.to_string(),
        "min_length needs the ids of the end tokens, which is not given",
    );
}

#[test]
fn forced_tokens_are_the_only_ones_where_the_grammar_lets_them() {
    let length = LengthOptions {
        forced_begin: Some(TokenId(1)),
        forced_end: ids(&[2, 0]),
        max_new_tokens: Some(3),
        ..LengthOptions::default()
    };
    let options = SamplingOptions { length, ..Default::default() };
    let row = [5.0, X, 1.0, 2.0];
    let begin = History::default();
    let found = left(&options, &row, &begin, None);
    assert_eq!(found, Ok(vec![X, 0.0, X, X]));
    let last = history(&[], &[3, 3]);
    let found = left(&options, &row, &last, None);
    assert_eq!(found, Ok(vec![0.0, X, 0.0, X]));
    let found = left(&options, &row, &last, Some(&[0b1100]));
    assert_eq!(found, Ok(vec![X, X, 0.0, X]));
    let found = left(&options, &row, &history(&[], &[3]), None);
    assert_eq!(found, Ok(row.to_vec()));
    let pipeline = options.build().expect("in range");
    let step = Step::new(&last).with_mask(&[0b1000_u32][..]);
    let choice = pipeline
        .choose(&mut row.to_vec(), &step, &mut Scratch::new())
        .expect("the grammar never yields");
    assert_eq!(choice.token, TokenId(3));
    assert_eq!(pipeline.yielded(&choice), ["forced_end_tokens"]);
}

#[test]
fn ends_grow_likelier_past_a_length() {
    let length = LengthOptions {
        end_tokens: ids(&[0, 1]),
        exponential_decay: Some((2, 1.5)),
        ..LengthOptions::default()
    };
    let options = SamplingOptions { length, ..Default::default() };
    let row = [2.0, -2.0, 1.0];
    let found = left(&options, &row, &history(&[2; 9], &[2, 2]), None);
    assert_eq!(found, Ok(row.to_vec()));
    // Two tokens too many: z + |z|·(1.5² - 1).
    let found = left(&options, &row, &history(&[2; 9], &[2; 4]), None);
    assert_eq!(found, Ok(vec![4.5, 0.5, 1.0]));
    let found = left(&options, &row, &history(&[], &[2; 2000]), None);
    assert_eq!(found.expect("no overflow")[0], 1e30);
}

#[test]
fn llama_cpp_penalises_what_is_in_its_window() {
    let mut output = vec![0, 1, 1];
    output.extend([2; 62]);
    let history = history(&[3], &output);
    let options = SamplingOptions {
        order: Order::LlamaCpp,
        repetition_penalty: 2.0,
        frequency_penalty: 0.5,
        presence_penalty: 0.25,
        ..SamplingOptions::default()
    };
    let row = [4.0, -4.0, 40.0, 1.0];
    // The last 64 tokens are two of the token 1 and 62 of the token 2.
    let found = left(&options, &row, &history, None);
    assert_eq!(found, Ok(vec![4.0, -9.25, -11.25, 1.0]));
    let wide = SamplingOptions { penalty_last_n: Some(66), ..options };
    let found = left(&wide, &row, &history, None);
    // The prompt counts for all three penalties.
    assert_eq!(found, Ok(vec![1.25, -9.25, -11.25, -0.25]));
    let off = SamplingOptions { penalty_last_n: Some(0), ..wide };
    let found = left(&off, &row, &history, None);
    assert_eq!(found, Ok(row.to_vec()));
    assert_eq!(off.warnings().len(), 3);
}

#[test]
fn dry_agrees_with_its_definition_on_random_texts() {
    let mut random = ChaCha8Rng::seed_from_u64(44);
    for _ in 0..500 {
        let length = below(&mut random, 40);
        let tokens: Vec<u32> =
            (0..length).map(|_| below(&mut random, 3)).collect();
        let dry = DryOptions {
            multiplier: 0.5,
            base: 1.5,
            allowed_length: below(&mut random, 4) as usize,
            last_n: pick(&mut random, &[None, Some(20), Some(0)]),
            breakers: pick(
                &mut random,
                &[&[][..], &[&[2][..]], &[&[2][..], &[0, 1]]],
            )
            .iter()
            .map(|breaker| ids(breaker))
            .collect(),
        };
        let seen = dry.last_n.unwrap_or(tokens.len()).min(tokens.len());
        let seen = &ids(&tokens)[tokens.len() - seen..];
        // How far back a breaker lets one look.
        let reach = (0..seen.len())
            .rev()
            .find_map(|start| {
                let rest = &seen[start..];
                let fit = |breaker: &&Vec<TokenId>| rest.starts_with(breaker);
                let longest =
                    dry.breakers.iter().filter(fit).map(Vec::len).max();
                longest.map(|length| rest.len() - length)
            })
            .unwrap_or(seen.len());
        let expected: Vec<f32> = (0..3_u32)
            .map(|next| {
                let next = TokenId(next);
                let longest = (1..seen.len())
                    .filter(|&end| seen[end] == next)
                    .map(|end| {
                        let before = seen[..end].iter().rev();
                        before
                            .zip(seen.iter().rev())
                            .take_while(|(a, b)| a == b)
                            .count()
                            .min(reach)
                    })
                    .max();
                let is_breaker = dry.breakers.contains(&vec![next]);
                let allowed = dry.allowed_length;
                match longest {
                    Some(n)
                        if n >= allowed
                            && seen.len() > allowed
                            && !is_breaker =>
                    {
                        let power = u8::try_from(n - allowed);
                        let power = i32::from(power.expect("short"));
                        (1.0 - 0.5 * 1.5_f64.powi(power)) as f32
                    }
                    _ => 1.0,
                }
            })
            .collect();
        let options = SamplingOptions { dry, ..Default::default() };
        let cut = below(&mut random, length + 1) as usize;
        let history = history(&tokens[..cut], &tokens[cut..]);
        let found = left(&options, &[1.0; 3], &history, None);
        let found = found.expect("a good row");
        for (found, expected) in found.iter().zip(&expected) {
            let error = (found - expected).abs();
            assert!(error < 1e-4, "{tokens:?}, {:?}", options.dry);
        }
    }
    let dry = DryOptions { multiplier: 1e9, ..DryOptions::default() };
    let options = SamplingOptions { dry, ..Default::default() };
    let found = left(&options, &[1.0], &history(&[], &[0; 900]), None);
    assert_eq!(found, Ok(vec![-1e30]));
}

/// The row of the worked numbers.
const DISHES: [f32; 6] = [3.0, 2.4, 2.0, 1.0, 0.4, -0.5];

#[test]
fn worked_numbers_of_the_orders() {
    let options = |order| SamplingOptions {
        order,
        temperature: 1.5,
        top_p: 0.9,
        min_p: 0.1,
        ..SamplingOptions::default()
    };
    let shown = |order| {
        let pipeline = options(order).build().expect("in range");
        let history = History::default();
        let step = Step::new(&history);
        let kept = pipeline
            .probabilities(&mut DISHES.to_vec(), &step, &mut Scratch::new())
            .expect("a good row");
        let cells = kept.iter().map(|(_, p)| format!("{p:.2}"));
        cells.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(Order::HuggingFace), "0.38 0.26 0.20 0.10 0.07");
    assert_eq!(shown(Order::Vllm), "0.41 0.27 0.21 0.11");
    // Truncated as it is, then scaled: top-p 0.9 then T 1.5.
    assert_eq!(shown(Order::LlamaCpp), "0.41 0.27 0.21 0.11");
    // After min-p the three strongest have nine tenths of what is left.
    let Ok(own) = "mask,min_p,top_p,temperature".parse();
    assert_eq!(shown(own), "0.46 0.31 0.24");
}

#[test]
fn ties_at_the_cut_of_top_k_are_as_in_each_engine() {
    let row = [1.0, 2.0, 2.0, 2.0, 3.0];
    let kept = |order| {
        let options =
            SamplingOptions { order, top_k: 2, ..Default::default() };
        let left = left(&options, &row, &History::default(), None);
        let left = left.expect("a good row");
        (0..5).filter(|&i| left[i] > X).collect::<Vec<usize>>()
    };
    assert_eq!(kept(Order::HuggingFace), [1, 2, 3, 4]);
    assert_eq!(kept(Order::Vllm), [1, 2, 3, 4]);
    assert_eq!(kept(Order::LlamaCpp), [1, 4]);
}

#[test]
fn orders_of_the_users_own_are_lawful_or_refused() {
    let build = |list: &str| {
        let Ok(order) = list.parse();
        let options = SamplingOptions {
            order,
            temperature: 0.5,
            top_k: 2,
            ..SamplingOptions::default()
        };
        options.build().map(|pipeline| {
            let names = pipeline.stage_names().map(str::to_owned);
            names.collect::<Vec<_>>()
        })
    };
    let names = build("mask,top_p,top_k,temperature").expect("lawful");
    assert_eq!(names, ["mask", "top_k", "temperature"]);
    let refused = [
        ("top_k,mask", "top_k, which truncates"),
        ("temperature,mask", "temperature, which scales"),
        ("temperature,top_k", "0 grammar masks"),
        ("mask,top_k,top_k", "two stages are named top_k"),
        ("mask,topk", "no stage \"topk\""),
    ];
    for (list, reason) in refused {
        let error = build(list).expect_err(list).to_string();
        assert!(error.contains(reason), "{list}: {error}");
    }
    let Ok(order) = "mask,temperature,bad_words".parse();
    let mut options = SamplingOptions { order, ..Default::default() };
    options.temperature = 0.5;
    options.forbidden.bad_words = vec![ids(&[1])];
    assert!(options.build().is_err());
    // What the order does not list is not dropped in silence.
    let Ok(order) = "mask,temperature".parse();
    let options = SamplingOptions { order, top_k: 3, ..Default::default() };
    let warnings = options.warnings();
    assert_eq!(
        warnings[0].to_string(),
        "`top_k` has no effect: the order does not list it",
    );
}

#[test]
fn whatever_the_options_only_legal_tokens_come() {
    let mut random = ChaCha8Rng::seed_from_u64(45);
    for seed in 0..400 {
        let n_logits = pick(&mut random, &[1, 40, 500]);
        let row = random_row(&mut random, n_logits);
        let mask = random_mask(&mut random, n_logits, 20);
        let order = match below(&mut random, 3) {
            0 => Order::HuggingFace,
            1 => Order::Vllm,
            _ => Order::LlamaCpp,
        };
        let truncation = TruncationOptions {
            typical_p: pick(&mut random, &[0.01, 0.5, 1.0]),
            top_n_sigma: pick(&mut random, &[0.0, 0.01, 1.0]),
            xtc_probability: pick(&mut random, &[0.0, 1.0]),
            xtc_threshold: 0.01,
            epsilon_cutoff: pick(&mut random, &[0.0, 0.99]),
            eta_cutoff: pick(&mut random, &[0.0, 0.99]),
        };
        let version =
            pick(&mut random, &[MirostatVersion::V1, MirostatVersion::V2]);
        let mirostat = (below(&mut random, 4) == 0).then(|| MirostatOptions {
            tau: 0.1,
            ..MirostatOptions::new(version)
        });
        let options = SamplingOptions {
            order,
            truncation,
            mirostat,
            temperature: pick(&mut random, &[0.0, 0.01, 1.0, 5.0]),
            top_k: pick(&mut random, &[0, 1, 5]),
            top_p: pick(&mut random, &[0.0, 0.5, 1.0]),
            min_p: pick(&mut random, &[0.0, 0.5, 1.0]),
            seed,
            ..SamplingOptions::default()
        };
        let pipeline = options.build().expect("in range");
        let history = History::default();
        let step = Step::new(&history).with_mask(&*mask);
        let mut scratch = Scratch::new();
        let choice = pipeline.choose(&mut row.clone(), &step, &mut scratch);
        let is_legal =
            |token: usize| mask[token / 32] >> (token % 32) & 1 == 1;
        let has_any = (0..n_logits).any(|i| is_legal(i) && row[i] > X);
        match choice {
            Ok(choice) => assert!(is_legal(choice.token.index())),
            Err(PipelineError::NoTokenLeft { .. }) => assert!(!has_any),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn mirostat_holds_the_surprise_of_a_sequence() {
    // A flat row: without mirostat every token surprises by 9 bits.
    let row: Vec<f32> = (0..512_u16).map(|i| f32::from(i) * -0.01).collect();
    for version in [MirostatVersion::V1, MirostatVersion::V2] {
        let mirostat =
            MirostatOptions { tau: 3.0, ..MirostatOptions::new(version) };
        let options = SamplingOptions {
            order: Order::LlamaCpp,
            mirostat: Some(mirostat),
            repetition_penalty: 1.5,
            top_k: 1,
            ..SamplingOptions::default()
        };
        let ignored: Vec<&str> =
            options.warnings().iter().map(|one| one.option).collect();
        assert_eq!(ignored, ["top_k", "repetition_penalty"]);
        let pipeline = options.build().expect("in range");
        assert_eq!(
            pipeline.stage_names().collect::<Vec<_>>(),
            ["mask", "mirostat"]
        );
        let mut history = History::default();
        let mut scratch = Scratch::new();
        let mut surprises = Vec::new();
        for _ in 0..400 {
            let step = Step::new(&history);
            let kept = pipeline
                .probabilities(&mut row.clone(), &step, &mut scratch)
                .expect("a good row");
            let choice = pipeline
                .choose(&mut row.clone(), &step, &mut scratch)
                .expect("a good row");
            let p = kept.iter().find(|(token, _)| *token == choice.token);
            surprises.push(-p.expect("it was left").1.log2());
            history.observe(&choice);
            history.push(choice.token);
        }
        let late = &surprises[100..];
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        assert!((mean - 3.0).abs() < 0.2, "{version:?} holds {mean}");
        // The bound goes back with the tokens.
        let bound = history.memory();
        history.truncate(0);
        assert_eq!(history.memory(), None);
        assert!(bound.is_some());
    }
}

/// llama.cpp runs its chain at temperature 0, too; others do not.
#[test]
fn only_llama_cpp_truncates_what_is_greedy() {
    let mut strong = vec![0.0; 71];
    strong[5] = 3.4;
    let likely = vec![2.0, 1.5, 0.0];
    let typical =
        TruncationOptions { typical_p: 0.5, ..TruncationOptions::default() };
    let xtc = TruncationOptions {
        xtc_probability: 1.0,
        ..TruncationOptions::default()
    };
    for (row, truncation, top_k, expected) in [
        // The strongest is less surprising than expected by more than the
        // others are surprising.
        (&strong, typical, 0, [5, 0]),
        (&strong, typical, 1, [5, 5]),
        (&strong, TruncationOptions::default(), 3, [5, 5]),
        // The first two are above the threshold.
        (&likely, xtc, 0, [0, 1]),
        (&likely, xtc, 1, [0, 0]),
    ] {
        for (order, expected) in
            [Order::HuggingFace, Order::LlamaCpp].into_iter().zip(expected)
        {
            let is_llama_cpp = order == Order::LlamaCpp;
            let options = SamplingOptions {
                order,
                truncation,
                top_k,
                seed: 1,
                ..SamplingOptions::greedy()
            };
            let pipeline = options.build().expect("in range");
            let history = History::default();
            let step = Step::new(&history);
            let chosen = pipeline
                .choose(&mut row.clone(), &step, &mut Scratch::new())
                .expect("a good row");
            assert_eq!(chosen.token, TokenId(expected), "{options:?}");
            let truncates =
                is_llama_cpp && truncation != TruncationOptions::default();
            let ignored: Vec<&str> =
                options.warnings().iter().map(|one| one.option).collect();
            assert_eq!(ignored.contains(&"top_k"), top_k > 0 && !truncates);
            let draws = truncates && truncation.xtc_probability > 0.0;
            assert_eq!(ignored.contains(&"seed"), !draws);
        }
    }
}

#[test]
fn with_mirostat_llama_cpp_has_a_temperature_that_does_not_move() {
    for (order, moves) in
        [(Order::HuggingFace, true), (Order::LlamaCpp, false)]
    {
        let options = SamplingOptions {
            order,
            temperature: 2.0,
            dynamic_temperature: DynamicTemperatureOptions {
                range: 1.0,
                ..DynamicTemperatureOptions::default()
            },
            mirostat: Some(MirostatOptions {
                tau: 50.0,
                ..MirostatOptions::new(MirostatVersion::V2)
            }),
            ..SamplingOptions::default()
        };
        let pipeline = options.build().expect("in range");
        let history = History::default();
        let step = Step::new(&history);
        let kept = pipeline
            .probabilities(&mut [4.0, 0.0], &step, &mut Scratch::new())
            .expect("a good row");
        let difference = (kept[0].1 / kept[1].1).ln();
        assert_eq!((difference - 2.0).abs() > 0.1, moves, "{difference}");
        let warnings = options.warnings();
        let is_told =
            |one: &SamplingWarning| one.option == "dynamic_temperature_range";
        assert_eq!(warnings.iter().any(is_told), !moves);
    }
}

#[test]
fn xtc_is_on_as_often_as_it_should_be() {
    let truncation = TruncationOptions {
        xtc_probability: 0.3,
        xtc_threshold: 0.2,
        ..TruncationOptions::default()
    };
    let options = SamplingOptions { truncation, ..Default::default() };
    let pipeline = options.build().expect("in range");
    let history = History::default();
    let mut n_on = 0;
    for position in 0..2000 {
        let mut step = Step::new(&history);
        step.position = position;
        let mut kept = Vec::new();
        for attempt in [0, 1] {
            step.attempt = attempt;
            let mut scratch = Scratch::new();
            let row = &mut [3.0, 2.9, 0.0];
            let left = pipeline.probabilities(row, &step, &mut scratch);
            kept.push(left.expect("a good row").len());
        }
        // One position, one coin, however often a token is refused.
        assert_eq!(kept[0], kept[1]);
        n_on += usize::from(kept[0] == 2);
    }
    assert!((480..720).contains(&n_on), "{n_on} of 2000");
}

#[test]
fn layers_say_who_said_what() {
    let qwen = r#"{"do_sample": true, "temperature": 0.7, "top_p": 0.8,
        "top_k": 20, "repetition_penalty": 1.1}"#;
    let model = ModelDefaults::from_generation_config(qwen).expect("JSON");
    let command = Settings { temperature: Some(0.0), ..Settings::default() };
    let mut layers = SettingLayers {
        model: model.settings,
        command,
        ..SettingLayers::default()
    };
    let resolved = layers.resolve().expect("in range");
    assert_eq!(
        resolved.to_string(),
        "order hf, temperature 0.7 (model), top_k 20 (model), top_p 0.8 \
         (model), repetition_penalty 1.1 (model)",
    );
    assert_eq!(resolved.warnings, []);
    assert_eq!(resolved.options.top_k, 20);

    // Under a grammar the penalty is off unless the user wants it.
    layers.has_grammar = true;
    let resolved = layers.resolve().expect("in range");
    assert_eq!(resolved.options.repetition_penalty.to_bits(), 1_f32.to_bits());
    assert_eq!(resolved.warnings[0].option, "repetition_penalty");
    layers.user.repetition_penalty = Some(1.3);
    let resolved = layers.resolve().expect("in range");
    assert_eq!(resolved.warnings, []);
    assert!(resolved.to_string().contains("repetition_penalty 1.3"));

    // Greedy by the user: what only the model says is no reason to warn.
    layers.user.temperature = Some(0.0);
    layers.user.min_p = Some(0.1);
    let resolved = layers.resolve().expect("in range");
    assert!(resolved.options.is_greedy());
    let warned: Vec<&str> =
        resolved.warnings.iter().map(|one| one.option).collect();
    assert_eq!(warned, ["min_p"]);

    // An order brings its defaults, below the model's.
    layers.user = Settings::default();
    layers.order = Some(Order::LlamaCpp);
    let resolved = layers.resolve().expect("in range");
    let json = resolved.to_json();
    assert_eq!(json["top_p"]["source"], "model");
    assert_eq!(json["min_p"]["source"], "order");
    assert_eq!(json["order"], "llama.cpp");
    layers.user.top_p = Some(1.5);
    let error = layers.resolve().expect_err("out of range").to_string();
    assert_eq!(error, "top_p is 1.5; it must be from 0 to 1; 1 turns it off",);
    layers.user.top_p = None;
    layers.user.mirostat = Some(3);
    assert!(layers.resolve().is_err());
}

#[test]
fn chance_is_settled_by_who_has_most_weight() {
    let said = |do_sample, temperature| Settings {
        do_sample,
        temperature,
        ..Settings::default()
    };
    let (yes, no) = (Some(true), Some(false));
    let greedy = || said(None, Some(0.0));
    let cases = [
        (said(None, None), said(no, Some(0.7)), 0.0),
        (said(yes, None), said(no, Some(0.7)), 0.7),
        (said(yes, None), said(None, None), 1.0),
        (said(None, None), said(yes, None), 1.0),
        (said(no, None), said(yes, Some(0.7)), 0.0),
        (said(None, Some(0.5)), said(no, None), 0.5),
        (said(None, Some(0.0)), said(yes, Some(0.7)), 0.0),
        (said(None, None), said(None, None), 0.0),
    ];
    for (user, model, expected) in cases {
        let layers = SettingLayers {
            user,
            model,
            command: greedy(),
            ..SettingLayers::default()
        };
        let resolved = layers.resolve().expect("in range");
        let found = resolved.options.temperature;
        assert_eq!(found.to_bits(), f32::to_bits(expected), "{layers:?}");
    }
}

#[test]
fn every_range_is_checked_and_given() {
    let ranges = [
        ("typical_p", "0"),
        ("typical_p", "1.1"),
        ("top_n_sigma", "-1"),
        ("xtc_probability", "1.5"),
        ("xtc_threshold", "-0.5"),
        ("epsilon_cutoff", "1"),
        ("eta_cutoff", "-0.1"),
        ("dry_multiplier", "-1"),
        ("dry_base", "0.5"),
        ("dynamic_temperature_range", "-1"),
        ("dynamic_temperature_exponent", "-1"),
        ("exponential_decay_length_penalty", "[3, 0]"),
        ("temperature", "-1"),
        ("frequency_penalty", "3"),
    ];
    for (name, value) in ranges {
        let text = format!("{{\"{name}\": {value}}}");
        let user: Settings = serde_json::from_str(&text).expect("settings");
        let layers = SettingLayers { user, ..SettingLayers::default() };
        let error = layers.resolve().expect_err(name).to_string();
        assert!(error.starts_with(name), "{error}");
        assert!(error.contains("; it must be "), "{error}");
    }
    let mirostat = r#"{"mirostat": 2, "mirostat_tau": 0}"#;
    let user = serde_json::from_str(mirostat).expect("settings");
    let layers = SettingLayers { user, ..SettingLayers::default() };
    assert!(layers.resolve().is_err());
    let unknown = serde_json::from_str::<Settings>(r#"{"top_q": 1}"#);
    assert!(unknown.is_err());
    // A parameter of something that is off is said to have no effect.
    let idle = r#"{"dry_base": 2, "mirostat_tau": 3, "xtc_threshold": 0.2}"#;
    let user = serde_json::from_str(idle).expect("settings");
    let layers = SettingLayers { user, ..SettingLayers::default() };
    let warnings = layers.resolve().expect("in range").warnings;
    let named: Vec<&str> = warnings.iter().map(|one| one.option).collect();
    assert_eq!(named, ["xtc_threshold", "mirostat_tau", "dry_base"]);
}

#[test]
fn a_trace_ends_where_the_choice_is_made() {
    let options = SamplingOptions {
        temperature: 1.5,
        top_p: 0.9,
        repetition_penalty: 1.1,
        ..SamplingOptions::default()
    };
    let pipeline = options.build().expect("in range");
    let history = history(&[2], &[]);
    let step = Step::new(&history).with_mask(&[0b111_u32][..]);
    let mut scratch = Scratch::new();
    let trace = pipeline.trace(&mut DISHES.to_vec(), &step, &mut scratch);
    let names: Vec<&str> =
        trace.stages.iter().map(|stage| stage.stage.as_str()).collect();
    let expected =
        ["logits", "repetition_penalty", "mask", "temperature", "top_p"];
    assert_eq!(names, expected);
    let counts: Vec<usize> =
        trace.stages.iter().map(|stage| stage.survivors.len()).collect();
    assert_eq!(counts, [6, 6, 3, 3, 3]);
    let last = trace.stages.last().expect("a stage");
    let kept = pipeline
        .probabilities(&mut DISHES.to_vec(), &step, &mut scratch)
        .expect("a good row");
    for one in &last.survivors {
        assert!(kept.contains(&(one.token, one.probability)));
    }
    let choice = pipeline.choose(&mut DISHES.to_vec(), &step, &mut scratch);
    assert_eq!(trace.outcome, choice);
    let nothing = Step::new(&history).with_mask(&[0_u32][..]);
    let trace = pipeline.trace(&mut DISHES.to_vec(), &nothing, &mut scratch);
    assert!(matches!(trace.outcome, Err(PipelineError::NoTokenLeft { .. })));
    assert_eq!(trace.stages.len(), 3);
}
